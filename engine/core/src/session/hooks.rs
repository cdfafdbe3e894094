//! What holds a turn open or carries it over a full context: summaries, hooks and the reply guard.

use serde_json::{json, Map};

use crate::content::text_form;
use crate::content::Part;
use crate::dialect::AnsweredCall;
use crate::guard;
use crate::history::{Assistant, Call, Item, ToolResult};
use crate::mcp::{shape_result, ResultLimits};
use crate::record::{Hook, HookOutcome, Objection, Outcome};
use crate::retry::Attempts;

use super::mesh::StandIn;
use super::state::{Compacting, Compaction, Objectors, Phase, Purpose, Session};
use super::Effect;

/// Cap of what one hook may say, in bytes.
const HOOK_RESULT_MAX_BYTES: usize = 16_384;
/// Hooks in a row that may be too slow before their server is killed.
const HOOK_TIMEOUTS_MAX: u32 = 2;

impl Session {
    pub(super) fn summary_asked(&mut self) {
        self.said.settle();
        let Some(turn) = self.turn.as_ref() else { return };
        let body = self.summary_request(turn).rope;
        self.asked += 1;
        self.set_phase(Phase::Asking { purpose: Purpose::Summary, attempts: Attempts::default(), body });
        self.send(true, 0);
    }

    pub(super) fn took_summary(&mut self, summary: String) {
        self.stand_in(StandIn::Unknown);
        if summary.trim().is_empty() {
            self.outbox
                .push(Effect::Warn("a handoff summary was blank; the history is only truncated".into()));
            self.set_phase(Phase::Boundary(Compaction::Skipped));
            return;
        }
        self.set_phase(Phase::Compacting(Compacting { summary, outputs: None, waiting: false }));
    }

    pub(super) fn handoff_skipped(&mut self, outcome: &Outcome) {
        self.stand_in(StandIn::Unknown);
        let why = match outcome {
            Outcome::Failed { message, .. } => message.as_str(),
            Outcome::Stopped(stop) => stop.as_str(),
        };
        self.outbox.push(Effect::Warn(format!("a handoff failed, the history is only truncated: {why}")));
        self.set_phase(Phase::Boundary(Compaction::Skipped));
    }

    /// The history becomes the summary and the last thing that the user said.
    pub(super) fn handoff_done(&mut self, items: (usize, usize), bytes: (u64, u64), text: &[u8]) {
        let summary = Item::User(String::from_utf8_lossy(text).into_owned());
        let current = self.history.last_user().cloned();
        self.forget(self.history.items().len());
        self.remember([summary].into_iter().chain(current).collect());
        self.handoffs += 1;
        self.outbox.push(Effect::Inform(format!(
            "handoff #{} (history {} -> {} items; {} -> {} tokens)",
            self.handoffs, items.0, items.1, bytes.0, bytes.1
        )));
        self.last_usage = None;
        self.set_phase(Phase::Boundary(Compaction::Performed));
    }

    pub(super) fn hooks_asked(&mut self, asked: u64, hook: Hook, servers: &[usize]) {
        match self.turn.as_mut().map(|t| &mut t.phase) {
            Some(Phase::Gate(_, objectors)) => *objectors = Objectors::Waiting,
            Some(Phase::Compacting(compacting)) => compacting.waiting = true,
            _ => return,
        }
        self.outbox.push(Effect::RunHooks { asked, hook, servers: servers.to_vec() });
    }

    /// Keeps what hooks had to say: answers that are no errors and not blank. Everything else is silence.
    pub(super) fn hooks_finished(
        &mut self,
        hook: Hook,
        servers: &[usize],
        outcomes: &[HookOutcome],
        lines: &[u8],
    ) {
        let (mut heard, mut rest) = (Vec::new(), lines);
        for (server, outcome) in servers.iter().zip(outcomes) {
            let name = self.opened.catalogue.servers.get(*server).cloned().unwrap_or_default();
            if let HookOutcome::Returned { bytes } = outcome {
                let (line, after) = rest.split_at((*bytes).min(rest.len()));
                rest = after;
                heard.extend(hook_text(&name, hook, line).map(|text| (name.clone(), text)));
            }
            self.count_hook(*server, &name, outcome);
        }
        match self.turn.as_mut().map(|t| &mut t.phase) {
            Some(Phase::Gate(_, objectors)) => *objectors = Objectors::Heard(heard),
            Some(Phase::Compacting(compacting)) => {
                compacting.waiting = false;
                compacting.outputs = Some(heard);
            }
            _ => {}
        }
    }

    fn count_hook(&mut self, server: usize, name: &str, outcome: &HookOutcome) {
        let Some(state) = self.servers.get_mut(server) else { return };
        match outcome {
            HookOutcome::Returned { .. } => state.hook_timeouts = 0,
            HookOutcome::Failed { .. } => {}
            HookOutcome::TimedOut => {
                state.hook_timeouts += 1;
                if state.hook_timeouts < HOOK_TIMEOUTS_MAX {
                    self.outbox.push(Effect::Warn(format!("server {name}: a hook was too slow")));
                    return;
                }
                state.hook_timeouts = 0;
                let reason = format!("{HOOK_TIMEOUTS_MAX} hooks in a row were too slow");
                self.outbox.push(Effect::KillServer { server, reason });
            }
        }
    }

    /// The turn goes on: each objection stands in the history as the result of a call nobody made, so that
    /// its words cannot pass for the user's.
    pub(super) fn objected(&mut self, objections: &[Objection], reminder: bool) {
        let Some(turn) = self.turn.as_mut() else { return };
        turn.rejections = turn.rejections.saturating_add(1);
        turn.reminders += u32::from(reminder);
        turn.phase = Phase::Boundary(Compaction::Due);
        self.objections += objections.len() as u64;
        self.remember(objections.iter().flat_map(as_call).collect());
    }

    pub(super) fn look_for_reply(&mut self, calls: &[AnsweredCall]) {
        if !self.opened.settings.require_reply {
            return;
        }
        let catalogue = &self.opened.catalogue;
        let replies = calls.iter().any(|call| match (catalogue.find(&call.name), &call.arguments) {
            (Some(tool), Ok(arguments)) => guard::is_reply(tool, arguments),
            _ => false,
        });
        if let Some(turn) = self.turn.as_mut() {
            turn.reply_seen |= replies;
        }
    }
}

fn hook_text(server: &str, hook: Hook, line: &[u8]) -> Option<String> {
    let limits = ResultLimits { text_bytes: HOOK_RESULT_MAX_BYTES, total_bytes: HOOK_RESULT_MAX_BYTES };
    let result = shape_result(&format!("{server}__{}", hook.as_str()), line, limits);
    let text = text_form(&result.parts);
    (!result.is_error && !text.trim().is_empty()).then_some(text)
}

fn as_call(objection: &Objection) -> [Item; 2] {
    let (server, hook) = (&objection.server, Hook::Stop.as_str());
    let id = format!("buzz_hook_{hook}_{server}_{}", objection.ordinal);
    let text = json!({"hook": hook, "server": server, "text": objection.text}).to_string();
    let call =
        Call { id: id.clone(), name: format!("{server}__{hook}"), arguments: Map::new(), extra: Map::new() };
    [
        Item::Assistant(Assistant { calls: vec![call], ..Assistant::default() }),
        Item::ToolResult(ToolResult { id, parts: vec![Part::Text(text)], is_error: false }),
    ]
}
