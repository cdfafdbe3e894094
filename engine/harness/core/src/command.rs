//! Agents by their command: what each is known as, which arguments it needs, and what sessions are called.

/// Agents that take no arguments.
const ZERO_ARG: [&str; 7] =
    ["codex", "codex-acp", "claude-agent-acp", "claude-code-acp", "claude-code", "claudecode", "buzz-agent"];
/// The longest title, in characters.
const TITLE_MAX_CHARS: usize = 80;
const TITLE_SEPARATOR: &str = " \u{b7} ";

pub use waxlog_nostr::turn_metric::harness_name as identity;

/// The arguments that a command gets for these, which are separated by commas.
pub fn arguments(identity: &str, given: &str) -> Vec<String> {
    let given: Vec<String> =
        given.split(',').map(str::trim).filter(|arg| !arg.is_empty()).map(str::to_owned).collect();
    let is_default = given.is_empty() || matches!(&given[..], [one] if one.eq_ignore_ascii_case("acp"));
    match is_default {
        true if ZERO_ARG.contains(&identity) => Vec::new(),
        true if given.is_empty() && identity == "goose" => vec!["acp".to_owned()],
        _ => given,
    }
}

/// A title without control characters and runs of blanks, of at most 80 characters; blank is none.
pub fn clean_title(title: &str) -> Option<String> {
    let words: Vec<String> = title
        .split_whitespace()
        .map(|word| word.chars().filter(|char| !char.is_control()).collect::<String>())
        .filter(|word| !word.is_empty())
        .collect();
    let cut: String = words.join(" ").chars().take(TITLE_MAX_CHARS).collect();
    let title = cut.trim_end().to_owned();
    (!title.is_empty()).then_some(title)
}

/// The title of a channel's session. Only the channel's part is cut to fit.
pub fn session_title(agent: &str, channel: Option<&str>) -> String {
    let room = TITLE_MAX_CHARS.saturating_sub(agent.chars().count());
    let channel = channel.filter(|name| !name.trim().is_empty() && *name != "unknown");
    let Some(name) = channel else { return agent.to_owned() };
    let part = format!("{TITLE_SEPARATOR}#{name}");
    let fitting: String = part.chars().take(room).collect();
    match fitting.chars().count() > TITLE_SEPARATOR.chars().count() + 1 {
        true => format!("{agent}{}", fitting.trim_end()),
        false => agent.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_by_its_bare_name() {
        for (command, wanted) in [
            ("goose", "goose"),
            ("/usr/local/bin/codex-acp", "codex-acp"),
            ("C:\\Program Files\\Goose\\goose.exe", "goose"),
            ("Claude_Code", "claude-code"),
            ("Claude Code", "claude-code"),
            ("Goose.EXE", "goose"),
            ("/usr/local/bin/", "bin"),
        ] {
            assert_eq!(identity(command), wanted, "{command}");
        }
    }

    #[test]
    fn arguments_are_those_that_the_agent_needs() {
        let none: [&str; 0] = [];
        assert_eq!(arguments("goose", ""), ["acp"]);
        assert_eq!(arguments("codex", "ACP"), none);
        assert_eq!(arguments("buzz-agent", " acp "), none);
        assert_eq!(arguments("codex", "acp,-v"), ["acp", "-v"]);
        assert_eq!(arguments("other", "acp"), ["acp"]);
        assert_eq!(arguments("other", " a , ,b"), ["a", "b"]);
        assert_eq!(arguments("other", ""), none);
    }

    #[test]
    fn a_title_is_one_clean_line() {
        assert_eq!(clean_title(" a\t\nb\u{7}  c ").as_deref(), Some("a b c"));
        assert_eq!(clean_title("\u{1}\n"), None);
        let long = format!("{} {}", "x".repeat(79), "y".repeat(9));
        assert_eq!(clean_title(&long), Some("x".repeat(79)));
    }

    #[test]
    fn only_the_channels_part_of_a_title_is_cut() {
        assert_eq!(session_title("Robin", Some("general")), "Robin \u{b7} #general");
        assert_eq!(session_title("Robin", Some("unknown")), "Robin");
        assert_eq!(session_title("Robin", None), "Robin");
        let long = session_title("Robin", Some(&"c".repeat(200)));
        assert_eq!(long.chars().count(), 80);
        let agent = "a".repeat(80);
        assert_eq!(session_title(&agent, Some("general")), agent);
    }
}
