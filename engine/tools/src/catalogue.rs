//! The tools as they are listed: names, what a model is told of them, and their schemas.

use serde_json::{json, Value};

use crate::files::{FILE_MAX_BYTES, LINES_DEFAULT};
use crate::image::{EDGE_DEFAULT, EDGE_RANGE};
use crate::shell::{COMMAND_MAX_BYTES, TAIL_BYTES, TIMEOUT_DEFAULT_MS, TIMEOUT_MAX_MS};
use crate::todo::{ITEMS_MAX, ITEM_MAX_CHARS};

/// One of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Puts the todo list into a context that was made anew.
    PostCompact,
    /// Objects to the end of a turn while items are open.
    Stop,
    /// Shows lines of a file.
    ReadFile,
    /// Runs a command.
    Shell,
    /// Changes a file.
    StrReplace,
    /// Reads or sets the todo list.
    Todo,
    /// Shows a picture.
    ViewImage,
}

impl Tool {
    /// All tools in the order of their names.
    const ALL: [Tool; 7] = [
        Tool::PostCompact,
        Tool::Stop,
        Tool::ReadFile,
        Tool::Shell,
        Tool::StrReplace,
        Tool::Todo,
        Tool::ViewImage,
    ];

    /// The tool of this name.
    pub(crate) fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Tool::PostCompact => "_PostCompact",
            Tool::Stop => "_Stop",
            Tool::ReadFile => "read_file",
            Tool::Shell => "shell",
            Tool::StrReplace => "str_replace",
            Tool::Todo => "todo",
            Tool::ViewImage => "view_image",
        }
    }

    fn description(self) -> String {
        match self {
            Tool::PostCompact => "Hook: the todo list, for a context that was made anew.".to_owned(),
            Tool::Stop => "Hook: objects to the end of a turn while todo items are open.".to_owned(),
            Tool::ReadFile => format!(
                "Shows a text file with line numbers. offset is the number of lines to pass over (default 0), limit \
                 the number to show (default {LINES_DEFAULT}). Files up to {FILE_MAX_BYTES} bytes, UTF-8 only."
            ),
            Tool::Shell => format!(
                "Runs a command in a shell (bash unless told otherwise) and gives exit code, stdout and stderr. Each \
                 call is a fresh process: folder and variables of one call do not reach the next; use workdir instead \
                 of cd. stdin is empty, and background jobs end with the call. timeout_ms: default \
                 {TIMEOUT_DEFAULT_MS}, at most {TIMEOUT_MAX_MS}; use 300000 or more for builds and test suites. Of \
                 long output the last {TAIL_BYTES} bytes are shown, and all of it is in a file that is named. On PATH: \
                 rg (searches text), tree (lists files with line counts), buzz (messages and channels; see buzz \
                 --help)."
            ),
            Tool::StrReplace => "Replaces old_str by new_str in a text file and shows the diff. old_str must match \
                                 exactly and once, blanks and line ends included; with replace_all every match is \
                                 replaced. The file must exist: make new ones with the shell."
                .to_owned(),
            Tool::Todo => format!(
                "Reads the todo list, or replaces it when todos is given; [] clears it. Give all items each time, at \
                 most {ITEMS_MAX} of {ITEM_MAX_CHARS} characters, one line each. Mark what is done before you drop it."
            ),
            Tool::ViewImage => format!(
                "Shows a picture (png, jpeg, gif, webp; not animated) from a path, an http(s) URL or a base64 data \
                 URL. One whose longer edge is beyond max_dim (default {EDGE_DEFAULT}, {} to {}) is made smaller.",
                EDGE_RANGE.0, EDGE_RANGE.1
            ),
        }
    }

    fn schema(self) -> Value {
        let workdir = optional("string", "Folder that relative paths start from; default: the server's.");
        match self {
            Tool::PostCompact | Tool::Stop => closed(json!({})),
            Tool::ReadFile => open(
                json!({
                    "path": required("string", "The file."),
                    "offset": optional_count("Lines to pass over."),
                    "limit": optional_count("Lines to show."),
                    "workdir": workdir,
                }),
                &["path"],
            ),
            Tool::Shell => open(
                json!({
                    "command": required("string", &format!("The command, at most {COMMAND_MAX_BYTES} bytes.")),
                    "workdir": optional("string", "Folder to run in; default: the server's."),
                    "timeout_ms": optional_count("Time limit in milliseconds."),
                }),
                &["command"],
            ),
            Tool::StrReplace => open(
                json!({
                    "path": required("string", "The file."),
                    "old_str": required("string", "The text to replace."),
                    "new_str": required("string", "The text in its place; empty deletes."),
                    "replace_all": { "type": "boolean", "default": false, "description": "Replace every match." },
                    "workdir": workdir,
                }),
                &["path", "old_str", "new_str"],
            ),
            Tool::Todo => closed(json!({
                "todos": {
                    "type": ["array", "null"],
                    "default": null,
                    "description": "The whole new list; without it the list is read.",
                    "items": {
                        "type": "object",
                        "additionalProperties": false,
                        "properties": {
                            "text": required("string", "What is to be done."),
                            "done": { "type": "boolean", "default": false, "description": "Whether it is done." },
                        },
                        "required": ["text"],
                    },
                },
            })),
            Tool::ViewImage => open(
                json!({
                    "source": required("string", "A path, an http(s) URL, or data:image/...;base64,..."),
                    "max_dim": optional_count("Longer edge in pixels."),
                    "workdir": workdir,
                }),
                &["source"],
            ),
        }
    }
}

/// The listing, which never changes.
pub(crate) fn listing() -> Value {
    let tools = Tool::ALL.map(|tool| {
        json!({ "name": tool.name(), "description": tool.description(), "inputSchema": tool.schema() })
    });
    json!({ "tools": tools })
}

fn required(kind: &str, description: &str) -> Value {
    json!({ "type": kind, "description": description })
}

fn optional(kind: &str, description: &str) -> Value {
    json!({ "type": [kind, "null"], "default": null, "description": description })
}

fn optional_count(description: &str) -> Value {
    json!({ "type": ["integer", "null"], "minimum": 0, "default": null, "description": description })
}

fn open(properties: Value, required: &[&str]) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": required,
    })
}

fn closed(properties: Value) -> Value {
    let mut schema = open(properties, &[]);
    schema["additionalProperties"] = false.into();
    schema
}

#[cfg(test)]
mod tests {
    use waxlog_core::mcp::{TOOL_DESCRIPTION_MAX_BYTES, TOOL_SCHEMA_MAX_BYTES};

    use super::*;

    #[test]
    fn names_are_sorted_and_lead_back_to_their_tools() {
        let names = Tool::ALL.map(Tool::name);
        assert!(names.is_sorted());
        assert!(Tool::ALL.into_iter().all(|tool| Tool::named(tool.name()) == Some(tool)));
        assert_eq!(Tool::named("Shell"), None);
    }

    #[test]
    fn agents_pass_descriptions_and_schemas_on_whole() {
        for tool in Tool::ALL {
            assert!(
                tool.description().len() <= TOOL_DESCRIPTION_MAX_BYTES,
                "{tool:?}: {}",
                tool.description().len()
            );
            assert!(tool.schema().to_string().len() <= TOOL_SCHEMA_MAX_BYTES, "{tool:?}");
        }
    }
}
