//! The list of what is to be done, with the two hooks that hold the model to it.
//!
//! There is one list for each server, in memory: a server belongs to one session.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::tool::{arguments, Outcome, Said, ToolError};

/// Most items on a list.
pub(crate) const ITEMS_MAX: usize = 50;
/// Longest text of an item, in characters after trimming.
pub(crate) const ITEM_MAX_CHARS: usize = 200;

/// One thing to be done.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    text: String,
    #[serde(default)]
    done: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    todos: Option<Vec<Item>>,
}

/// The hooks take nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The list of a session.
#[derive(Debug, Default)]
pub(crate) struct Todo {
    items: Mutex<Vec<Item>>,
}

impl Todo {
    /// Reads the list, or puts another in its place.
    pub(crate) fn call(&self, given: Map<String, Value>) -> Outcome {
        let Arguments { todos } = arguments(given)?;
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(todos) = todos else { return Ok(Said::Text(render(&items))) };
        let new = checked(todos).map_err(|why| ToolError::Refused(format!("Error: {why}")))?;
        let mut text = render(&new);
        text.push_str(&warning(&items, &new));
        *items = new;
        Ok(Said::Text(text))
    }

    /// Objects to the end of a turn while items are open.
    pub(crate) fn stop(&self, given: Map<String, Value>) -> Outcome {
        let Nothing {} = arguments(given)?;
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Said::Text(match items.iter().any(|item| !item.done) {
            true => format!(
                "There are open todo items. Go on with them; if one is no longer wanted, say so and update the \
                 list.\n\n{}",
                render(&items)
            ),
            false => String::new(),
        }))
    }

    /// Puts the list into a context that was made anew.
    pub(crate) fn post_compact(&self, given: Map<String, Value>) -> Outcome {
        let Nothing {} = arguments(given)?;
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Said::Text(match items.is_empty() {
            true => String::new(),
            false => format!("# Todo List\n{}", render(&items)),
        }))
    }
}

/// The items trimmed, or what is wrong with the first that is.
fn checked(items: Vec<Item>) -> Result<Vec<Item>, String> {
    if items.len() > ITEMS_MAX {
        return Err(format!("too many items: {} of at most {ITEMS_MAX}; merge or drop some", items.len()));
    }
    for (position, item) in (1..).zip(&items) {
        check_text(position, &item.text)?;
    }
    let mut seen = BTreeSet::new();
    for (position, item) in (1..).zip(&items) {
        if !seen.insert(item.text.trim()) {
            return Err(format!("item {position} is a duplicate of an earlier one; give it another text"));
        }
    }
    let trimmed = |item: Item| Item { text: item.text.trim().to_owned(), ..item };
    Ok(items.into_iter().map(trimmed).collect())
}

fn check_text(position: usize, text: &str) -> Result<(), String> {
    let trimmed = text.trim();
    let chars = trimmed.chars().count();
    if trimmed.is_empty() {
        return Err(format!("item {position}: text is empty; say what is to be done"));
    }
    if chars > ITEM_MAX_CHARS {
        return Err(format!("item {position}: text exceeds {ITEM_MAX_CHARS} characters, it has {chars}"));
    }
    match text.chars().find(|c| is_forbidden(*c)) {
        Some(c) => Err(format!(
            "item {position}: text has invalid characters (U+{:04X}); use one line of visible ones",
            u32::from(c)
        )),
        None => Ok(()),
    }
}

/// What would break a line of the list or hide in it.
fn is_forbidden(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    c.is_control() || (c.is_whitespace() && c != ' ') || is_invisible
}

fn render(items: &[Item]) -> String {
    if items.is_empty() {
        return "(todo list is empty)".to_owned();
    }
    let next = items.iter().position(|item| !item.done);
    let lines: Vec<_> = items
        .iter()
        .enumerate()
        .map(|(at, item)| {
            let mark = if item.done { "[x]" } else { "[ ]" };
            let pointer = if next == Some(at) { "  \u{2190} next" } else { "" };
            format!("{mark} {}. {}{pointer}", at + 1, item.text)
        })
        .collect();
    lines.join("\n")
}

/// Names the open items that are gone without having been done.
fn warning(old: &[Item], new: &[Item]) -> String {
    let kept: BTreeSet<_> = new.iter().map(|item| item.text.as_str()).collect();
    let gone: Vec<_> = old.iter().filter(|item| !item.done && !kept.contains(item.text.as_str())).collect();
    let mut text = String::new();
    if !gone.is_empty() {
        let were = if gone.len() == 1 { "item was" } else { "items were" };
        let names: Vec<_> = gone.iter().map(|item| format!("\"{}\"", item.text)).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n\n\u{26a0}\u{fe0f} {} open {were} removed: {}. Add what is still to be done again, or mark it done \
             before it goes.",
            gone.len(),
            names.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    fn set(todo: &Todo, items: Value) -> String {
        match todo.call(given(json!({ "todos": items }))) {
            Ok(Said::Text(text)) => text,
            Err(ToolError::Refused(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_open_item_is_next_and_only_that() {
        let todo = Todo::default();
        let text = set(&todo, json!([{"text": "a", "done": true}, {"text": " b "}, {"text": "c"}]));
        assert_eq!(text, "[x] 1. a\n[ ] 2. b  \u{2190} next\n[ ] 3. c");
        let again = set(&todo, json!([{"text": "b", "done": true}, {"text": "c"}]));
        assert!(!again.contains('\u{26a0}'), "a trimmed text is the same text: {again}");
        assert_eq!(set(&todo, Value::Null), "[x] 1. b\n[ ] 2. c  \u{2190} next");
        assert_eq!(set(&todo, json!([{"text": "c", "done": true}])), "[x] 1. c");
        assert_eq!(set(&todo, json!([])), "(todo list is empty)");
    }

    #[test]
    fn a_list_that_is_refused_changes_nothing() {
        let todo = Todo::default();
        set(&todo, json!([{"text": "keep"}]));
        let many: Vec<_> = (0..=ITEMS_MAX).map(|n| json!({ "text": n.to_string() })).collect();
        let long = "x".repeat(ITEM_MAX_CHARS + 1);
        for (items, word) in [
            (json!(many), "too many items"),
            (json!([{"text": "ok"}, {"text": "  "}]), "item 2: text is empty"),
            (json!([{"text": long}]), "exceeds 200"),
            (json!([{"text": "a\nb"}]), "invalid characters"),
            (json!([{"text": "a\tb"}]), "invalid characters"),
            (json!([{"text": "a\u{2028}b"}]), "invalid characters"),
            (json!([{"text": "a\u{202e}b"}]), "invalid characters"),
            (json!([{"text": "a\u{200b}b"}]), "invalid characters"),
            (json!([{"text": "a\u{a0}b"}]), "invalid characters"),
            (json!([{"text": "a\n"}]), "invalid characters"),
            (json!([{"text": "a"}, {"text": " a "}]), "item 2 is a duplicate"),
        ] {
            let text = set(&todo, items);
            assert!(text.starts_with("Error: ") && text.contains(word), "{text}");
        }
        assert_eq!(set(&todo, Value::Null), "[ ] 1. keep  \u{2190} next");
        let widest = "\u{e9}".repeat(ITEM_MAX_CHARS);
        assert!(set(&todo, json!([{"text": "keep"}, {"text": widest}])).contains("2. "));
    }

    #[test]
    fn open_items_that_vanish_are_named() {
        let todo = Todo::default();
        set(&todo, json!([{"text": "one"}, {"text": "two"}, {"text": "three"}]));
        let text = set(&todo, json!([{"text": "three"}]));
        assert!(text.contains("2 open items were removed: \"one\", \"two\""), "{text}");
        assert!(set(&todo, json!([{"text": "other"}])).contains("1 open item was removed"));
    }

    #[test]
    fn hooks_take_no_arguments_and_speak_only_with_cause() {
        let todo = Todo::default();
        let none = Map::new();
        assert_eq!(todo.stop(none.clone()), Ok(Said::Text(String::new())));
        assert_eq!(todo.post_compact(none.clone()), Ok(Said::Text(String::new())));
        set(&todo, json!([{"text": "a"}]));
        let Ok(Said::Text(text)) = todo.stop(none.clone()) else { panic!("an objection") };
        assert!(text.contains("open todo items") && text.ends_with("\n\n[ ] 1. a  \u{2190} next"), "{text}");
        set(&todo, json!([{"text": "a", "done": true}]));
        assert_eq!(todo.stop(none.clone()), Ok(Said::Text(String::new())));
        assert_eq!(todo.post_compact(none), Ok(Said::Text("# Todo List\n[x] 1. a".to_owned())));
        assert!(matches!(todo.stop(given(json!({"x": 1}))), Err(ToolError::Refused(_))));
    }
}
