//! The history model: what the model has been told so far, in items, with both of its sizes.

use serde_json::{Map, Value};

use crate::content::{text_form, Part};
use crate::json::compact;

/// What an image weighs in the context-pressure measure, whatever its real size, in bytes.
pub const IMAGE_PRESSURE_BYTES: u64 = 16_384;

/// One entry of the history.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A prompt, a steer or a handoff text.
    User(String),
    /// A prompt that holds images: its texts and images, in order.
    UserParts(Vec<Part>),
    /// What the model said in one round.
    Assistant(Assistant),
    /// The result of one call of the last assistant item.
    ToolResult(ToolResult),
}

/// The model's part of one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assistant {
    /// Its text, possibly empty.
    pub text: String,
    /// Its calls, in the order in which it made them.
    pub calls: Vec<Call>,
    /// A raw array that one provider wants back, if it gave one.
    pub reasoning_details: Option<Value>,
}

/// One call as it is replayed to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The provider's id, unique within the response.
    pub id: String,
    /// The qualified tool name as the model gave it.
    pub name: String,
    /// The arguments, always an object.
    pub arguments: Map<String, Value>,
    /// Keys of the call beside `id`, `type` and `function`, which some models want back.
    pub extra: Map<String, Value>,
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call that it answers.
    pub id: String,
    /// Its parts, in order, after all cuts.
    pub parts: Vec<Part>,
    /// Whether it reports a failure.
    pub is_error: bool,
}

impl Item {
    /// Size by which truncation goes: real bytes, images in full.
    pub fn wire_bytes(&self) -> u64 {
        self.bytes(|data, mime| (data.len() + mime.len()) as u64)
    }

    /// Size by which the handoff gate goes: an image costs a flat weight.
    pub fn pressure_bytes(&self) -> u64 {
        self.bytes(|_, mime| IMAGE_PRESSURE_BYTES + mime.len() as u64)
    }

    fn bytes(&self, image: impl Fn(&str, &str) -> u64) -> u64 {
        match self {
            Item::User(text) => text.len() as u64,
            Item::UserParts(parts) => parts_bytes(parts, image),
            Item::Assistant(a) => {
                let calls: usize = a.calls.iter().map(Call::bytes).sum();
                let details = a.reasoning_details.as_ref().map_or(0, |d| compact(d).len());
                (a.text.len() + calls + details) as u64
            }
            Item::ToolResult(result) => result.id.len() as u64 + parts_bytes(&result.parts, image),
        }
    }

    /// The text form of a user item; empty for any other.
    pub fn user_text(&self) -> String {
        match self {
            Item::User(text) => text.clone(),
            Item::UserParts(parts) => text_form(parts),
            Item::Assistant(_) | Item::ToolResult(_) => String::new(),
        }
    }

    /// Whether the item is the user's: a block of the history starts with it.
    pub fn is_user(&self) -> bool {
        matches!(self, Item::User(_) | Item::UserParts(_))
    }
}

fn parts_bytes(parts: &[Part], image: impl Fn(&str, &str) -> u64) -> u64 {
    let bytes = parts.iter().map(|part| match part {
        Part::Text(text) => text.len() as u64,
        Part::Image { data, mime } => image(data, mime),
    });
    bytes.sum()
}

impl Call {
    fn bytes(&self) -> usize {
        let json = |map: &Map<String, Value>| serde_json::to_string(map).map_or(0, |s| s.len());
        self.id.len() + self.name.len() + json(&self.arguments) + json(&self.extra)
    }
}

/// The items with their sizes summed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    items: Vec<Item>,
    wire_bytes: u64,
    pressure_bytes: u64,
}

impl History {
    /// The items, oldest first.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Sum of [`Item::wire_bytes`].
    pub fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// Sum of [`Item::pressure_bytes`].
    pub fn pressure_bytes(&self) -> u64 {
        self.pressure_bytes
    }

    /// Appends one item.
    pub fn push(&mut self, item: Item) {
        self.wire_bytes += item.wire_bytes();
        self.pressure_bytes += item.pressure_bytes();
        self.items.push(item);
    }

    /// How many of the oldest items must go so that the rest fits `budget_bytes`.
    ///
    /// Whole blocks go, each from one user item up to the next, so that a call never loses its result.
    /// The last block stays even where it alone is over the budget; a size equal to the budget fits.
    pub fn surplus(&self, budget_bytes: u64) -> usize {
        let mut size = self.wire_bytes;
        let mut dropped = 0;
        while size > budget_bytes {
            let next = (dropped + 1..self.items.len()).find(|&i| self.items[i].is_user());
            let Some(next) = next else { break };
            size -= self.items[dropped..next].iter().map(Item::wire_bytes).sum::<u64>();
            dropped = next;
        }
        dropped
    }

    /// The last user item.
    pub fn last_user(&self) -> Option<&Item> {
        self.items.iter().rev().find(|item| item.is_user())
    }

    /// Drops the `count` oldest items.
    pub fn drop_front(&mut self, count: usize) {
        for item in self.items.drain(..count.min(self.items.len())) {
            self.wire_bytes -= item.wire_bytes();
            self.pressure_bytes -= item.pressure_bytes();
        }
    }

    /// The first call without exactly one result before the next assistant or user item, if any.
    ///
    /// Every request must be free of them: providers refuse it otherwise.
    pub fn unpaired_call(&self) -> Option<&str> {
        let mut open: Vec<&str> = Vec::new();
        for item in &self.items {
            match item {
                Item::ToolResult(result) => match open.iter().position(|id| *id == result.id) {
                    Some(at) => drop(open.remove(at)),
                    None => return Some(&result.id),
                },
                Item::User(_) | Item::UserParts(_) if open.is_empty() => {}
                Item::Assistant(a) if open.is_empty() => open.extend(a.calls.iter().map(|c| c.id.as_str())),
                Item::User(_) | Item::UserParts(_) | Item::Assistant(_) => break,
            }
        }
        open.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(size: usize) -> Item {
        Item::User("u".repeat(size))
    }

    fn call(id: &str) -> Item {
        Item::Assistant(Assistant {
            calls: vec![Call { id: id.into(), name: "n".into(), arguments: Map::new(), extra: Map::new() }],
            ..Assistant::default()
        })
    }

    fn result(id: &str, parts: Vec<Part>) -> Item {
        Item::ToolResult(ToolResult { id: id.into(), parts, is_error: false })
    }

    fn history(items: Vec<Item>) -> History {
        let mut history = History::default();
        items.into_iter().for_each(|item| history.push(item));
        history
    }

    #[test]
    fn empty_arguments_and_extras_cost_two_bytes_each() {
        assert_eq!(call("id").wire_bytes(), 2 + 1 + 2 + 2);
    }

    #[test]
    fn c40_an_image_has_a_flat_weight_in_the_pressure_measure_only() {
        let image = result("i", vec![Part::Image { data: "d".repeat(3_100_000), mime: "image/png".into() }]);
        assert_eq!(image.pressure_bytes(), 1 + IMAGE_PRESSURE_BYTES + 9);
        assert_eq!(image.wire_bytes(), 1 + 3_100_000 + 9);
    }

    #[test]
    fn truncation_drops_whole_blocks_oldest_first() {
        let h = history(vec![user(100), call("a"), result("a", vec![]), user(50), user(10)]);
        assert_eq!(h.surplus(h.wire_bytes()), 0);
        assert_eq!(h.surplus(h.wire_bytes() - 1), 3);
        assert_eq!(h.surplus(59), 4);
    }

    #[test]
    fn the_last_block_stays_even_over_the_budget() {
        let h = history(vec![user(100), call("a"), result("a", vec![])]);
        assert_eq!(h.surplus(1), 0);
    }

    #[test]
    fn dropping_items_keeps_the_sums() {
        let mut h = history(vec![user(100), user(7)]);
        h.drop_front(1);
        assert_eq!((h.wire_bytes(), h.pressure_bytes(), h.items().len()), (7, 7, 1));
    }

    #[test]
    fn c63_a_call_without_a_result_is_named() {
        assert_eq!(history(vec![user(1), call("a"), user(1)]).unpaired_call(), Some("a"));
        assert_eq!(history(vec![user(1), call("a")]).unpaired_call(), Some("a"));
        assert_eq!(history(vec![call("a"), result("a", vec![]), user(1)]).unpaired_call(), None);
        assert_eq!(history(vec![result("b", vec![])]).unpaired_call(), Some("b"));
    }
}
