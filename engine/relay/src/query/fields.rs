//! The bridge's own filter fields, read and checked.

use serde_json::Value;
use waxlog_nostr::{EventId, Filter};

use crate::reply::Refusal;

/// How many rows a page may leave out. A page behind that is empty.
const MAX_OFFSET: usize = 1_000_000;

/// What a filter asks for beside the protocol's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) page: Page,
    /// The exact place to go on after.
    pub(crate) after: Option<(u64, EventId)>,
    number: usize,
    /// Whether a search matches the beginnings of words.
    pub(crate) prefix: bool,
}

/// Which sort of answer a filter wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    Plain,
    Window(Window),
    Feed(Vec<String>),
    Thread(ThreadPage),
}

/// A channel's top level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) channel: String,
    pub(crate) include_aux: bool,
    pub(crate) include_summaries: bool,
}

/// The replies under a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadPage {
    pub(crate) root: String,
    pub(crate) max_depth: u32,
    /// The time, and the event of that time, to go on after.
    pub(crate) after: Option<(u64, Option<EventId>)>,
}

/// Whether a filter searches for words.
pub(crate) fn is_search(filter: &Filter) -> bool {
    filter.search.as_ref().is_some_and(|query| !query.trim().is_empty())
}

impl Fields {
    pub(crate) fn read(filter: &Filter) -> Result<Self, Refusal> {
        let get = |name: &str| filter.extensions.get(name);
        let page = match (window(filter)?, feed(filter), thread(filter)) {
            (Some(window), _, _) => Page::Window(window),
            (None, Some(types), _) => Page::Feed(types),
            (None, None, Some(thread)) => Page::Thread(thread),
            (None, None, None) => Page::Plain,
        };
        let first = |names: &[&str]| names.iter().find_map(|name| get(name)?.as_u64());
        let names: &[&str] =
            if is_search(filter) { &["page", "search_page", "searchPage"] } else { &["page"] };
        let number = match filter.limit.is_some() || is_search(filter) {
            true => first(names).and_then(|page| usize::try_from(page).ok()).unwrap_or(1),
            false => 1,
        };
        let mode = get("search_mode").or_else(|| get("searchMode"));
        let prefix = mode.and_then(Value::as_str) == Some("prefix");
        Ok(Self { page, after: after(filter)?, number, prefix })
    }

    /// How many rows come before this page.
    pub(crate) fn offset(&self, limit: usize) -> usize {
        (self.number.max(1) - 1).saturating_mul(limit).min(MAX_OFFSET)
    }
}

fn after(filter: &Filter) -> Result<Option<(u64, EventId)>, Refusal> {
    let Some(value) = filter.extensions.get("before_id") else { return Ok(None) };
    let id = value.as_str().and_then(|text| text.parse().ok());
    let id = id.ok_or_else(|| Refusal::bad_request("before_id must be a 64-char hex event id"))?;
    let until = filter.until.ok_or_else(|| Refusal::bad_request("before_id requires until to be set"))?;
    Ok(Some((until, id)))
}

fn window(filter: &Filter) -> Result<Option<Window>, Refusal> {
    let is_set = |name: &str| filter.extensions.get(name) == Some(&Value::Bool(true));
    if !is_set("top_level") {
        return Ok(None);
    }
    let Some([channel]) = filter.tags.get(&'h').map(Vec::as_slice) else {
        return Err(Refusal::bad_request("top_level requires exactly one #h"));
    };
    if filter.until.is_some() != filter.extensions.contains_key("before_id") {
        return Err(Refusal::bad_request("top_level requires until and before_id together, or neither"));
    }
    let channel = channel.clone();
    let (include_aux, include_summaries) = (is_set("include_aux"), is_set("include_summaries"));
    Ok(Some(Window { channel, include_aux, include_summaries }))
}

fn feed(filter: &Filter) -> Option<Vec<String>> {
    let types = filter.extensions.get("feed_types")?.as_array().filter(|types| !types.is_empty())?;
    Some(types.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn thread(filter: &Filter) -> Option<ThreadPage> {
    let get = |name: &str| filter.extensions.get(name);
    let max_depth = get("depth_limit")?.as_u64().and_then(|depth| u32::try_from(depth).ok())?;
    let [root] = filter.tags.get(&'e')?.as_slice() else { return None };
    let after = get("thread_cursor").and_then(Value::as_u64).map(|created_at| {
        let id = get("thread_cursor_id").and_then(|id| id.as_str()?.parse().ok());
        (created_at, id)
    });
    Some(ThreadPage { root: root.clone(), max_depth, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Result<Fields, Refusal> {
        Fields::read(&Filter::from_json(&value).unwrap())
    }

    #[test]
    fn a_cursor_by_id_needs_its_time_and_all_its_digits() {
        let id = "ab".repeat(32);
        for value in [
            json!({"before_id": id}),
            json!({"until": 1, "before_id": "short"}),
            json!({"until": 1, "before_id": "z".repeat(64)}),
            json!({"until": 1, "before_id": "ab".repeat(33)}),
            json!({"until": 1, "before_id": 7}),
        ] {
            assert_eq!(fields(value).unwrap_err().status, 400);
        }
        assert!(fields(json!({"until": 1, "before_id": id})).unwrap().after.is_some());
    }

    #[test]
    fn fields_of_a_wrong_form_count_as_absent() {
        for depth in [json!(-1), json!(1.5), json!(4_294_967_296_u64), json!("1")] {
            assert_eq!(fields(json!({"#e": ["x"], "depth_limit": depth})).unwrap().page, Page::Plain);
        }
        for flag in [json!("true"), json!(1), json!(false)] {
            assert_eq!(fields(json!({"#h": ["x"], "top_level": flag})).unwrap().page, Page::Plain);
        }
        for types in [json!([]), json!("mentions")] {
            assert_eq!(fields(json!({"feed_types": types})).unwrap().page, Page::Plain);
        }
        assert_eq!(fields(json!({"page": 3})).unwrap().offset(10), 0);
        assert_eq!(fields(json!({"page": 3, "limit": 10})).unwrap().offset(10), 20);
    }
}
