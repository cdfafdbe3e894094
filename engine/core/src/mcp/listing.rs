//! The tools a server lists: one page of `tools/list`, and the sizes each tool is cut to.

use serde::{Deserialize, Serialize};
use serde_json::{json, Map, Value};
use thiserror::Error;

use super::elide::clamp;
use crate::json::compact;

/// Longest description of a tool towards a model, in bytes, marker included.
pub const TOOL_DESCRIPTION_MAX_BYTES: usize = 1024;

/// Largest input schema of a tool in its compact form, in bytes.
pub const TOOL_SCHEMA_MAX_BYTES: usize = 4096;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name towards the server.
    pub name: String,
    /// What it does; empty when the server does not say.
    pub description: String,
    /// The JSON schema of its arguments; an empty object when the server gives none.
    pub input_schema: Value,
}

/// One page of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolsPage {
    /// Its tools, in the server's order.
    pub tools: Vec<ToolSpec>,
    /// What to ask for the next page with, if there is one.
    pub next_cursor: Option<String>,
}

/// A listing cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ListingError {
    /// There is no list of tools in the result.
    #[error("the result has no array `tools`; the server must list its tools in one")]
    NoTools,
    /// A tool cannot be called, because it has no name.
    #[error("tool {index} of the page has no string `name`")]
    NoName {
        /// Its place in the page, from 0.
        index: usize,
    },
}

impl ToolsPage {
    /// Reads the result of `tools/list`.
    ///
    /// A tool without a description gets an empty one, a schema that is no object counts as `{}`; all other
    /// properties are passed over.
    pub fn read(result: Value) -> Result<Self, ListingError> {
        let Value::Object(mut result) = result else {
            return Err(ListingError::NoTools);
        };
        let Some(Value::Array(tools)) = result.remove("tools") else {
            return Err(ListingError::NoTools);
        };
        let tools = tools
            .into_iter()
            .enumerate()
            .map(|(index, tool)| ToolSpec::read(tool).ok_or(ListingError::NoName { index }))
            .collect::<Result<_, _>>()?;
        let next_cursor = match result.remove("nextCursor") {
            Some(Value::String(cursor)) => Some(cursor),
            _ => None,
        };
        Ok(Self { tools, next_cursor })
    }
}

impl ToolSpec {
    /// The description in at most [`TOOL_DESCRIPTION_MAX_BYTES`].
    pub fn clamped_description(&self) -> String {
        clamp(&self.description, TOOL_DESCRIPTION_MAX_BYTES)
    }

    /// Whether the schema exceeds [`TOOL_SCHEMA_MAX_BYTES`], so that a model is offered `{}` instead.
    pub fn schema_is_oversized(&self) -> bool {
        compact(&self.input_schema).len() > TOOL_SCHEMA_MAX_BYTES
    }

    fn read(tool: Value) -> Option<Self> {
        let Value::Object(mut tool) = tool else {
            return None;
        };
        Some(Self {
            name: take_string(&mut tool, "name")?,
            description: take_string(&mut tool, "description").unwrap_or_default(),
            input_schema: tool.remove("inputSchema").filter(Value::is_object).unwrap_or_else(|| json!({})),
        })
    }
}

fn take_string(object: &mut Map<String, Value>, key: &str) -> Option<String> {
    match object.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gives_its_tools_in_order_and_the_next_cursor() {
        let page = ToolsPage::read(json!({
            "tools": [
                { "name": "b", "description": "does b", "inputSchema": { "type": "object" }, "title": "B" },
                { "name": "a" },
            ],
            "nextCursor": "2",
        }))
        .expect("a page");
        assert_eq!(
            page.tools,
            [
                ToolSpec {
                    name: "b".to_owned(),
                    description: "does b".to_owned(),
                    input_schema: json!({ "type": "object" }),
                },
                ToolSpec { name: "a".to_owned(), description: String::new(), input_schema: json!({}) },
            ]
        );
        assert_eq!(page.next_cursor.as_deref(), Some("2"));
    }

    #[test]
    fn a_null_cursor_ends_the_listing() {
        let page = ToolsPage::read(json!({ "tools": [], "nextCursor": null })).expect("a page");
        assert_eq!(page.next_cursor, None);
    }

    #[test]
    fn a_page_without_tools_or_names_is_refused() {
        assert_eq!(ToolsPage::read(json!({})), Err(ListingError::NoTools));
        assert_eq!(ToolsPage::read(json!([])), Err(ListingError::NoTools));
        assert_eq!(
            ToolsPage::read(json!({ "tools": [{ "name": "a" }, {}] })),
            Err(ListingError::NoName { index: 1 })
        );
    }

    #[test]
    fn a_schema_of_exactly_the_limit_is_kept() {
        let of = |bytes: usize| ToolSpec {
            name: "t".to_owned(),
            description: String::new(),
            input_schema: json!({ "d": "x".repeat(bytes - r#"{"d":""}"#.len()) }),
        };
        assert!(!of(TOOL_SCHEMA_MAX_BYTES).schema_is_oversized());
        assert!(of(TOOL_SCHEMA_MAX_BYTES + 1).schema_is_oversized());
    }
}
