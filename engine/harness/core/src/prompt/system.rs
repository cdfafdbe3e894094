//! The system prompt of a session, and the prompts that no message asks for.

use super::{time_text, MEMORY_HEADING};
use crate::settings::Prompts;

/// How to live on this network: what every agent is told unless the operator says otherwise.
pub const BASE: &str = include_str!("base.md");

/// What a session's system prompt is made of.
pub struct SystemParts<'a> {
    /// The working folder.
    pub cwd: &'a str,
    /// The texts.
    pub prompts: &'a Prompts,
    /// The section of the agent's memory.
    pub core: Option<&'a str>,
    /// The section of the channel's canvas.
    pub canvas: Option<&'a str>,
}

/// The system prompt, if there is anything in it.
pub fn system_prompt(parts: &SystemParts) -> Option<String> {
    let workspace = parts.prompts.base.as_ref().and_then(|_| workspace(parts.cwd));
    let rest = [parts.core, parts.canvas].into_iter().flatten().map(str::to_owned);
    let all: Vec<String> = workspace.into_iter().chain(sections(parts.prompts)).chain(rest).collect();
    (!all.is_empty()).then(|| all.join("\n\n"))
}

/// The sections of the operator's texts.
pub(super) fn sections(prompts: &Prompts) -> Vec<String> {
    let section = |heading: &str, text: &Option<String>| {
        text.as_ref().map(|text| format!("[{heading}]\n{}", text.trim_end()))
    };
    let team = prompts.team.as_ref().filter(|team| !team.trim().is_empty()).cloned();
    [section("Base", &prompts.base), section("System", &prompts.system), section("Team Instructions", &team)]
        .into_iter()
        .flatten()
        .collect()
}

/// The section that tells of the working folder, if it is one to work in.
pub fn workspace(cwd: &str) -> Option<String> {
    if !cwd.starts_with('/') || cwd == "/" {
        return None;
    }
    Some(format!(
        "[Workspace]\nYour working folder is {cwd}. It keeps what you want to find again: AGENTS.md, RESEARCH/, PLANS/, \
         GUIDES/, WORK_LOGS/ and OUTBOX/. Clone repositories under {cwd}/REPOS/. Look for things here; do not \
         search $HOME."
    ))
}

/// The section for an agent without a memory of its own yet.
pub fn memory_nudge() -> String {
    format!(
        "{MEMORY_HEADING}\nYou have no core memory yet. Keep what you should always know with `buzz mem set core \
         \"...\"`; ask the person you work for to tell you about yourself."
    )
}

/// The prompt of a heartbeat. `now_secs` is in seconds since 1970.
pub fn heartbeat(own: Option<&str>, now_secs: u64) -> String {
    if let Some(text) = own {
        return text.to_owned();
    }
    let time = time_text(now_secs).unwrap_or_default();
    format!(
        "[System: Heartbeat]\nTime: {time}\nNo message has come. Run `buzz feed get --types needs_action` and `buzz feed \
         get --types mentions` and see whether anything waits for you. If so, act on it, for example with `buzz \
         workflows approve --token <UUID>` or `buzz messages send --reply-to <event-id>`. If nothing waits, end your \
         turn. Do not run `buzz channels list` or `buzz messages search` without a reason, and do not invent work."
    )
}
