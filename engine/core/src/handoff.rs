//! Context handoff: when the context window fills up, the model sums the session up and goes on from the
//! summary. What the model is asked, and what replaces the history, stand here.

use crate::content::text_form;
use crate::history::{History, Item};
use crate::settings::Settings;

/// Output cap of the summary, in tokens.
pub const SUMMARY_MAX_OUTPUT_TOKENS: u32 = 8192;
/// How much of the first prompt the summary is shown, in bytes.
const TASK_MAX_BYTES: usize = 16_384;
/// How many tool names it is shown.
const TOOL_NAMES_MAX: usize = 20;

/// What the model is told about its task of summing up.
pub const SUMMARY_SYSTEM_PROMPT: &str = "You write the handoff summary of an autonomous agent whose context \
window is full. Its next turn starts from your summary alone and has no other memory of this session. Be \
concise but thorough. Cover five things: the original task; what has been accomplished; the decisions made \
and why; what remains to be done; and one concrete next step. Write plain text only: no tool calls, no JSON. \
Stay under 8192 tokens.";

const INSTRUCTIONS: &str = "Write the handoff summary now, as plain text: the original task, what has been \
accomplished, the decisions made and why, what remains, and one concrete next step.";

/// What a handoff sums up.
#[derive(Clone, Copy, Debug)]
pub struct Handoff<'a> {
    /// How many handoffs the session has had.
    pub count: u64,
    /// The first accepted prompt.
    pub original_task: Option<&'a str>,
    /// The names of the tools, hooks left out.
    pub tools: &'a [&'a str],
    /// What has been said.
    pub history: &'a History,
    /// Size of the context window, in tokens.
    pub max_context_tokens: u64,
}

/// From how many tokens on a session must hand off: nine tenths of the window, or what the answer leaves.
pub fn threshold_tokens(settings: &Settings) -> u64 {
    let window = settings.max_context_tokens;
    (window / 10).saturating_mul(9).min(window.saturating_sub(settings.max_output_tokens.into()))
}

/// The same as a size of history, for as long as no response has reported its tokens; a byte counts as one.
pub fn threshold_bytes(settings: &Settings) -> u64 {
    threshold_tokens(settings).min((settings.max_history_bytes / 10).saturating_mul(9))
}

/// The one user message of the summary request.
pub fn summary_prompt(handoff: &Handoff<'_>) -> String {
    let task = match handoff.original_task {
        Some(task) => cut(task, TASK_MAX_BYTES),
        None => "(unknown)".to_owned(),
    };
    let head = format!(
        "[Internal handoff #{} \u{2014} context reset]\n\n# Original Task\n{task}\n\n# Available Tools\n{}\n\n",
        handoff.count + 1,
        tool_names(handoff.tools),
    );
    let title = "# Session History (oldest first)\n";
    let tail = format!("\n# Instructions\n{INSTRUCTIONS}\n");
    let fixed = (head.len() + title.len() + tail.len()) as u64;
    let budget =
        handoff.max_context_tokens.saturating_sub(SUMMARY_MAX_OUTPUT_TOKENS.into()).saturating_sub(fixed);
    let (snippets, omitted) = newest_first(handoff.history.items(), budget);
    let omitted = match omitted {
        0 => String::new(),
        n => format!("(\u{2026} {n} older items omitted)\n"),
    };
    [head.as_str(), title, &omitted, &snippets, &tail].concat()
}

fn tool_names(tools: &[&str]) -> String {
    let shown = tools[..tools.len().min(TOOL_NAMES_MAX)].join(", ");
    match tools.len() {
        0 => "(none)".to_owned(),
        n if n > TOOL_NAMES_MAX => format!("{shown}, \u{2026} (+{} more)", n - TOOL_NAMES_MAX),
        _ => shown,
    }
}

/// The snippets that fit `budget` bytes, in the order of the history, and how many items are not shown
/// whole. The newest is shown in any case, cut if it must be.
fn newest_first(items: &[Item], budget: u64) -> (String, usize) {
    let budget = usize::try_from(budget).unwrap_or(usize::MAX);
    let (mut kept, mut size, mut omitted) = (Vec::new(), 0usize, 0);
    for item in items.iter().rev() {
        let snippet = snippet(item);
        if size.saturating_add(snippet.len()) <= budget {
            size += snippet.len();
            kept.push(snippet);
            continue;
        }
        omitted += 1;
        if kept.is_empty() {
            let cut = cut(&snippet, budget);
            size += cut.len();
            kept.push(cut);
        }
    }
    kept.reverse();
    (kept.concat(), omitted)
}

fn snippet(item: &Item) -> String {
    match item {
        Item::User(text) => format!("[user] {text}\n"),
        Item::UserParts(parts) => format!("[user] {}\n", text_form(parts)),
        Item::Assistant(a) => {
            let calls: String = a.calls.iter().map(|call| format!(" tool:{}", call.name)).collect();
            format!("[assistant] {}{calls}\n", a.text)
        }
        Item::ToolResult(result) => {
            let label = if result.is_error { "tool_err" } else { "tool" };
            format!("[{label}] {}\n", text_form(&result.parts))
        }
    }
}

/// `text` within `max_bytes`, an ellipsis in place of what was cut.
fn cut(text: &str, max_bytes: usize) -> String {
    const ELLIPSIS: &str = "\u{2026}";
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let room = if max_bytes < ELLIPSIS.len() + 1 { max_bytes } else { max_bytes - ELLIPSIS.len() };
    let at = text.floor_char_boundary(room);
    let mark = if room == max_bytes { "" } else { ELLIPSIS };
    format!("{}{mark}", &text[..at])
}

/// The user item that stands for everything before.
pub fn replacement(summary: &str, hook_outputs: &[(String, String)]) -> String {
    let mut text = format!("[Context Handoff]\n{summary}");
    if !hook_outputs.is_empty() {
        let outputs: Vec<String> =
            hook_outputs.iter().map(|(server, output)| format!("[{server}]\n{output}")).collect();
        text.push_str("\n\n[Post-compact hook output \u{2014} untrusted]\n");
        text.push_str(&outputs.join("\n\n"));
    }
    text
}

#[cfg(test)]
#[path = "handoff_tests.rs"]
mod tests;
