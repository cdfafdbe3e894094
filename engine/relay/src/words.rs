//! Words of a text, as the search index knows them.

use std::collections::BTreeSet;

/// How many different words of one text are indexed. What comes after is not found.
pub(crate) const MAX_INDEXED_WORDS: usize = 1024;
/// How much of a word is looked at, in bytes; longer ones are cut.
const MAX_WORD_BYTES: usize = 64;

/// The words of a text in their order: runs of letters and digits, in lower case.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty()).map(fold)
}

/// The different words of a text that are indexed.
pub(crate) fn indexed(text: &str) -> BTreeSet<String> {
    let mut set = BTreeSet::new();
    for word in words(text) {
        if set.len() == MAX_INDEXED_WORDS {
            break;
        }
        set.insert(word);
    }
    set
}

fn fold(word: &str) -> String {
    let mut folded = word.to_lowercase();
    let mut end = folded.len().min(MAX_WORD_BYTES);
    while !folded.is_char_boundary(end) {
        end -= 1;
    }
    folded.truncate(end);
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        let found: Vec<_> = words("The quick-brown FOX, über 9 lives_").collect();
        assert_eq!(found, ["the", "quick", "brown", "fox", "über", "9", "lives"]);
        assert_eq!(words(&"ü".repeat(100)).next().unwrap().len(), MAX_WORD_BYTES);
    }
}
