//! Simulated tool servers: fast, slow, failing, dying, coming back and given up; and their hooks.

use serde_json::json;
use waxlog_core::mcp::{Catalogue, ServerEvent};
use waxlog_core::record::{CallOutcome, HookOutcome};

use crate::dice::Dice;

/// How long a call may take, in milliseconds.
const CALL_MAX_MS: u64 = 60_000;
/// How long a hook may take, in milliseconds.
pub const HOOK_MAX_MS: u64 = 2_500;
/// Failures in a row after which a server is given up.
const ATTEMPTS_MAX: u32 = 3;
/// Longest pause before a server is started again, in milliseconds.
const PAUSE_MAX_MS: u64 = 20_000;
/// Longest text of a result, in bytes.
const TEXT_MAX_BYTES: usize = 4_000;

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// How long it takes, in milliseconds.
    pub wait_ms: u64,
    /// What happens to the server before.
    pub changes: Vec<ServerEvent>,
    /// How it ends.
    pub outcome: CallOutcome,
    /// The answer line, if one comes.
    pub line: Vec<u8>,
}

/// What becomes of a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct Hooked {
    /// How long it takes, in milliseconds.
    pub wait_ms: u64,
    /// What it says, or that it does not; its line is in [`Hooked::line`].
    pub outcome: HookOutcome,
    /// The answer line, if one comes.
    pub line: Vec<u8>,
}

/// All servers of the session.
#[derive(Clone, Debug)]
pub struct Servers {
    list: Vec<Server>,
    fault_permille: u32,
}

#[derive(Clone, Debug)]
struct Server {
    tools: Vec<String>,
    /// Failures in a row, and when it may be started again; nothing while it is well.
    dead: Option<(u32, u64)>,
}

impl Servers {
    /// The servers of `catalogue`, just started.
    pub fn start(catalogue: &Catalogue, fault_permille: u32) -> Servers {
        let server = |index: usize| Server {
            tools: catalogue.of_server(index).map(|tool| tool.bare.clone()).collect(),
            dead: None,
        };
        Servers { list: (0..catalogue.servers.len()).map(server).collect(), fault_permille }
    }

    /// A call of `tool` at server number `server`.
    pub fn call(&mut self, server: usize, tool: &str, now_ms: u64, dice: &mut Dice) -> Called {
        let (changes, down) = self.wake(server, now_ms, dice);
        let unsent = |text: String| Called {
            wait_ms: 0,
            changes: Vec::new(),
            outcome: CallOutcome::Unavailable { text },
            line: Vec::new(),
        };
        let mut called = match down {
            Some(why) => unsent(why),
            None if dice.chance(self.fault_permille) => self.failing(server, tool, now_ms, dice),
            None => returned(dice.wait_ms(CALL_MAX_MS / 2), answer(dice)),
        };
        called.changes.splice(0..0, changes);
        called
    }

    /// A hook of server number `server`.
    pub fn hook(&mut self, dice: &mut Dice) -> Hooked {
        let (wait_ms, outcome, line) = match dice.size(0..8) {
            0 => (HOOK_MAX_MS, HookOutcome::TimedOut, Vec::new()),
            1 => (1, HookOutcome::Failed { text: "mcp: server is recovering".to_owned() }, Vec::new()),
            2 => (dice.within(0..HOOK_MAX_MS), HookOutcome::Returned { bytes: 0 }, b"not json".to_vec()),
            3 | 4 => (
                dice.within(0..HOOK_MAX_MS),
                HookOutcome::Returned { bytes: 0 },
                text_line("there is more", false),
            ),
            5 => (dice.within(0..HOOK_MAX_MS), HookOutcome::Returned { bytes: 0 }, text_line("failed", true)),
            _ => (dice.within(0..HOOK_MAX_MS), HookOutcome::Returned { bytes: 0 }, text_line(" ", false)),
        };
        let outcome = match outcome {
            HookOutcome::Returned { .. } => HookOutcome::Returned { bytes: line.len() },
            silent => silent,
        };
        Hooked { wait_ms, outcome, line }
    }

    /// Kills a server; nothing happens to one that is dead already.
    pub fn kill(&mut self, server: usize, reason: &str, now_ms: u64, dice: &mut Dice) -> Vec<ServerEvent> {
        match self.list.get(server) {
            Some(Server { dead: None, .. }) => self.bury(server, reason, now_ms, dice),
            _ => Vec::new(),
        }
    }

    /// Starts a dead server again if its pause is over; says why it cannot be had, if so.
    fn wake(&mut self, server: usize, now_ms: u64, dice: &mut Dice) -> (Vec<ServerEvent>, Option<String>) {
        let Some(Server { dead: Some((attempts, retry_at_ms)), tools }) = self.list.get(server) else {
            return (Vec::new(), None);
        };
        if *attempts >= ATTEMPTS_MAX {
            return (Vec::new(), Some(format!("mcp: server {server} has exhausted its attempts")));
        }
        if *retry_at_ms > now_ms {
            return (Vec::new(), Some(format!("mcp: server {server} is recovering")));
        }
        if dice.chance(300) {
            let attempt = attempts + 1;
            let retry_in_ms = self.fail(server, attempt, now_ms, dice);
            let reason = "no handshake".to_owned();
            let mut changes = vec![ServerEvent::RestartFailed { reason, attempt, retry_in_ms }];
            changes.extend((attempt >= ATTEMPTS_MAX).then_some(ServerEvent::Exhausted));
            return (changes, Some(format!("mcp: server {server}: restart failed")));
        }
        // A new process may list fewer tools.
        let tools = tools.iter().filter(|_| dice.chance(800)).cloned().collect();
        if let Some(server) = self.list.get_mut(server) {
            server.dead = None;
        }
        (vec![ServerEvent::Restarted { tools }], None)
    }

    fn failing(&mut self, server: usize, tool: &str, now_ms: u64, dice: &mut Dice) -> Called {
        let gone = |outcome, wait_ms, changes| Called { wait_ms, changes, outcome, line: Vec::new() };
        match dice.size(0..7) {
            0 => {
                let outcome =
                    CallOutcome::TransportFailed { text: format!("mcp: call {tool}: end of stream") };
                gone(outcome, dice.wait_ms(CALL_MAX_MS), self.bury(server, "end of stream", now_ms, dice))
            }
            1 => {
                let outcome = CallOutcome::TimedOut { after_secs: CALL_MAX_MS / 1000 };
                gone(outcome, CALL_MAX_MS, self.bury(server, "timeout", now_ms, dice))
            }
            2 => {
                let error = json!({"code": -32602, "message": "no", "data": {"why": 1}});
                let line = json!({"jsonrpc": "2.0", "id": 7, "error": error});
                returned(dice.wait_ms(CALL_MAX_MS), line.to_string().into_bytes())
            }
            3 => returned(dice.wait_ms(1_000), b"{\"id\":7,\"result\":".to_vec()),
            4 => returned(
                dice.wait_ms(1_000),
                b"{\"id\":7,\"result\":{\"content\":[{\"type\":\"odd\"}]}}".to_vec(),
            ),
            5 => {
                let outcome =
                    CallOutcome::Unavailable { text: format!("mcp: tool {tool} is no longer available") };
                gone(outcome, 0, Vec::new())
            }
            _ => returned(dice.wait_ms(CALL_MAX_MS), text_line("it failed", true)),
        }
    }

    fn bury(&mut self, server: usize, reason: &str, now_ms: u64, dice: &mut Dice) -> Vec<ServerEvent> {
        let attempt = self.list.get(server).and_then(|s| s.dead).map_or(1, |(attempts, _)| attempts + 1);
        let retry_in_ms = self.fail(server, attempt, now_ms, dice);
        let died = ServerEvent::Died { reason: reason.to_owned(), attempt, retry_in_ms };
        [died].into_iter().chain((attempt >= ATTEMPTS_MAX).then_some(ServerEvent::Exhausted)).collect()
    }

    fn fail(&mut self, server: usize, attempt: u32, now_ms: u64, dice: &mut Dice) -> u64 {
        let pause_ms = dice.wait_ms(PAUSE_MAX_MS);
        if let Some(server) = self.list.get_mut(server) {
            server.dead = Some((attempt, now_ms + pause_ms));
        }
        pause_ms
    }
}

fn returned(wait_ms: u64, line: Vec<u8>) -> Called {
    Called { wait_ms, changes: Vec::new(), outcome: CallOutcome::Returned, line }
}

/// A sound answer: text short and long, nothing at all, an image, a link.
fn answer(dice: &mut Dice) -> Vec<u8> {
    let content = match dice.size(0..6) {
        0 => json!([]),
        1 => json!([{"type": "text", "text": "long \u{1f41d} ".repeat(dice.size(1..TEXT_MAX_BYTES / 10))}]),
        2 => json!([
            {"type": "image", "data": "iVBORw0KGgo=".repeat(dice.size(1..50)), "mimeType": "image/png"},
            {"type": "text", "text": "a picture"},
        ]),
        3 => {
            json!([{"type": "resource_link", "uri": "file:///x"}, {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}])
        }
        _ => json!([{"type": "text", "text": "done"}]),
    };
    json!({"jsonrpc": "2.0", "id": 7, "result": {"content": content}}).to_string().into_bytes()
}

fn text_line(text: &str, is_error: bool) -> Vec<u8> {
    let result = json!({"content": [{"type": "text", "text": text}], "isError": is_error});
    json!({"jsonrpc": "2.0", "id": 7, "result": result}).to_string().into_bytes()
}
