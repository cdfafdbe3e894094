//! The reply guard: an agent that speaks only by running a command is reminded when it is about to end its
//! turn without having run it.

use crate::mcp::Tool;
use serde_json::{Map, Value};

/// Reminders of one turn.
pub const REMINDERS_MAX: u32 = 2;
/// The server name under which reminders stand in the history.
pub const SERVER: &str = "buzz-agent";

/// What a reminder says.
pub const REMINDER: &str = "This turn is about to end and you have not run `buzz messages send`. Nobody can \
see your text or your reasoning: people read only what you publish with that command. If you owe someone an \
answer, send it now through the shell tool. If silence is genuinely correct here, ignore this reminder and \
end your turn again.";

/// Whether a call counts as publishing a reply: an attempt is enough, its result is not looked at.
pub fn is_reply(tool: &Tool, arguments: &Map<String, Value>) -> bool {
    let command = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
    let publishes = ["messages send", "reactions add"].iter().any(|words| command.contains(words));
    !tool.hook && tool.qualified.ends_with("__shell") && publishes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn is_reply_call(qualified: &str, arguments: Value) -> bool {
        let tool = Tool {
            qualified: qualified.into(),
            server: 0,
            bare: "x".into(),
            description: String::new(),
            schema: json!({}),
            hook: false,
        };
        is_reply(&tool, arguments.as_object().expect("an object"))
    }

    #[test]
    fn every_way_to_publish_counts() {
        for command in [
            "buzz --relay ws://x messages send hi",
            "/usr/bin/buzz messages send hi",
            "echo hi | buzz messages send --content -",
            "buzz messages send-diff x",
            "buzz reactions add x",
            "sh -c \"buzz messages send hi\"",
        ] {
            assert!(is_reply_call("buzz-dev-mcp__shell", json!({"command": command})), "{command}");
        }
    }

    #[test]
    fn other_commands_do_not_count() {
        for command in [
            "buzz messages get x",
            "buzz channels list",
            "buzz reactions remove x",
            "buzz pr open",
            "buzz social publish",
            "buzz notes set",
            "cargo test",
        ] {
            assert!(!is_reply_call("dev__shell", json!({"command": command})), "{command}");
        }
    }

    #[test]
    fn other_tools_and_other_shapes_do_not_count() {
        let send = json!({"command": "buzz messages send hi"});
        for name in ["dev__powershell", "dev__noshell", "shell", "dev__send_message"] {
            assert!(!is_reply_call(name, send.clone()), "{name}");
        }
        for odd in
            [json!({"text": "messages send"}), json!({"command": 3}), json!({"command": null}), json!({})]
        {
            assert!(!is_reply_call("dev__shell", odd.clone()), "{odd}");
        }
    }

    #[test]
    fn the_reminder_names_the_command_and_allows_silence() {
        assert!(REMINDER.contains("buzz messages send") && REMINDER.contains("silence is genuinely correct"));
    }
}
