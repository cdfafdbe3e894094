//! Search by words: which events hold them all, those that hold them most often first.

use std::cmp::Reverse;
use std::collections::HashSet;

use waxlog_nostr::Filter;

use super::stream::{Meeting, Union};
use super::{matches, Reader, Wanted};
use crate::index::Index;
use crate::live::Row;
use crate::store::key::{self, Place};
use crate::store::record::Record;
use crate::store::{Store, StoreError};
use crate::words::words;

/// How much of a query is read, in characters.
const MAX_QUERY_CHARS: usize = 4096;
/// How many of the newest events with all words are put in order.
const MAX_RANKED: usize = 2000;
/// How many words with a beginning are looked at.
const MAX_EXPANSIONS: usize = 256;

/// What a query wants of a text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    /// Each is a choice of phrases of which one must be there.
    wanted: Vec<Vec<Phrase>>,
    unwanted: Vec<Phrase>,
}

/// Words that follow each other.
type Phrase = Vec<String>;

impl Query {
    /// Reads words, `"phrases"`, `-exclusions` and `or`, as web searches have them.
    fn parse(text: &str) -> Self {
        let text: String = text.chars().take(MAX_QUERY_CHARS).collect();
        let mut query = Self::default();
        let mut is_choice = false;
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (is_unwanted, body) = match rest.strip_prefix('-') {
                Some(body) => (true, body),
                None => (false, rest),
            };
            let (token, is_quoted, tail) = next_token(body);
            rest = tail.trim_start();
            let phrase: Phrase = words(token).collect();
            if !is_quoted && !is_unwanted && token.eq_ignore_ascii_case("or") {
                is_choice = !query.wanted.is_empty();
                continue;
            }
            match (phrase.is_empty(), is_unwanted, is_choice) {
                (true, _, _) => {}
                (_, true, _) => query.unwanted.push(phrase),
                (_, _, true) => {
                    query.wanted.last_mut().into_iter().for_each(|choice| choice.push(phrase.clone()))
                }
                (_, _, false) => query.wanted.push(vec![phrase]),
            }
            is_choice = false;
        }
        query
    }

    /// How often a text holds what is wanted; nothing if it lacks something or holds what is unwanted.
    fn hits(&self, text: &str, prefix: bool) -> Option<usize> {
        let found: Vec<_> = words(text).collect();
        let count = |phrase: &Phrase| {
            let is_word = |(have, want): (&String, &String)| match prefix {
                true => have.starts_with(want.as_str()),
                false => have == want,
            };
            found.windows(phrase.len()).filter(|run| run.iter().zip(phrase).all(is_word)).count()
        };
        if self.unwanted.iter().any(|phrase| count(phrase) > 0) {
            return None;
        }
        let mut hits = 0;
        for choice in &self.wanted {
            let here: usize = choice.iter().map(count).sum();
            if here == 0 {
                return None;
            }
            hits += here;
        }
        Some(hits)
    }
}

/// A quoted phrase or a run up to a blank, whether it was quoted, and what follows.
fn next_token(text: &str) -> (&str, bool, &str) {
    if let Some(quoted) = text.strip_prefix('"') {
        let (phrase, rest) = quoted.split_once('"').unwrap_or((quoted, ""));
        return (phrase, true, rest);
    }
    let end = text.find(|sign: char| sign.is_whitespace() || sign == '"').unwrap_or(text.len());
    (&text[..end], false, &text[end..])
}

impl Reader<'_> {
    /// The events that answer the filter and its search. With `prefix`, words match by their beginnings.
    pub(crate) fn search(
        &self,
        filter: &Filter,
        wanted: &Wanted<'_>,
        prefix: bool,
    ) -> Result<Vec<Row>, StoreError> {
        let query = Query::parse(filter.search.as_deref().unwrap_or_default());
        if query.wanted.is_empty() || wanted.limit == 0 {
            return Ok(Vec::new());
        }
        let mut places = Meeting::new(self.unions(&query, prefix)?);
        let mut ranked: Vec<(usize, Record)> = Vec::new();
        while ranked.len() < MAX_RANKED {
            let Some(place) = places.next()? else { break };
            if filter.since.is_some_and(|since| place.created_at() < since) {
                break;
            }
            let Some(record) = self.at(place)? else { continue };
            let hits = query.hits(&record.event.content, prefix);
            let is_asked_for =
                |id: &Option<Vec<_>>| id.as_ref().is_none_or(|ids| ids.contains(&record.event.id));
            if let Some(hits) = hits.filter(|_| is_asked_for(&filter.ids)) {
                if matches(filter, &record) && self.is_wanted(&record, wanted) {
                    ranked.push((hits, record));
                }
            }
        }
        ranked.sort_by_key(|(hits, record)| {
            (Reverse(*hits), Reverse(record.event.created_at), record.event.id)
        });
        let page = ranked.into_iter().skip(wanted.offset).take(wanted.limit);
        Ok(page.map(|(_, record)| Row { event: record.event, channel: record.channel }).collect())
    }

    /// One union for each choice of a single phrase's words; a choice of several is one union of its first
    /// words.
    fn unions(&self, query: &Query, prefix: bool) -> Result<Vec<Union<'_>>, StoreError> {
        let mut unions = Vec::new();
        for choice in &query.wanted {
            let each_word: Vec<Vec<&String>> = match choice.as_slice() {
                [phrase] => phrase.iter().map(|word| vec![word]).collect(),
                several => vec![several.iter().filter_map(|phrase| phrase.first()).collect()],
            };
            for words in each_word {
                let mut prefixes = Vec::new();
                for word in words {
                    match prefix {
                        true => prefixes.extend(expand(self.store, self.index, word)?),
                        false => prefixes.push(key::by_word(word)),
                    }
                }
                unions.push(Union::open(self.store, self.index, prefixes, Place::FIRST)?);
            }
        }
        Ok(unions)
    }
}

/// The index prefixes of the words that begin like this, one seek for each.
fn expand(store: &Store, index: &Index, beginning: &str) -> Result<HashSet<Vec<u8>>, StoreError> {
    let all = key::by_word_beginning(beginning);
    let mut prefixes = HashSet::new();
    let mut from = Some(all.clone());
    while let (Some(start), true) = (from, prefixes.len() < MAX_EXPANSIONS) {
        let mut next = index.scan(store, &all, &start)?.next_key()?;
        if let Some(key) = &mut next {
            key.truncate(key.len().saturating_sub(key::PLACE_BYTES));
        }
        from = next.as_deref().and_then(key::after);
        prefixes.extend(next);
    }
    Ok(prefixes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(query: &str, text: &str) -> Option<usize> {
        Query::parse(query).hits(text, false)
    }

    #[test]
    fn all_words_must_be_there_in_any_case() {
        assert_eq!(hits("fox QUICK", "The quick brown Fox, a fox"), Some(3));
        assert_eq!(hits("quick cat", "The quick brown fox"), None);
        assert_eq!(hits("light", "lighthouse"), None);
        assert_eq!(Query::parse("light").hits("a Lighthouse", true), Some(1));
    }

    #[test]
    fn phrases_exclusions_and_choices_are_known() {
        assert_eq!(hits("\"brown fox\"", "the brown fox"), Some(1));
        assert_eq!(hits("\"fox brown\"", "the brown fox"), None);
        assert_eq!(hits("fox -brown", "the brown fox"), None);
        assert_eq!(hits("fox -\"fox brown\"", "the brown fox"), Some(1));
        assert_eq!(hits("cat or fox", "the brown fox"), Some(1));
        assert_eq!(hits("cat or dog", "the brown fox"), None);
        assert_eq!(hits("\"unclosed fox", "unclosed fox"), Some(1));
    }
}
