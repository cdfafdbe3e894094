//! The calls of one answer: ids, what can run at all, and what becomes of each.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::acp::lines;
use crate::content::{text_form, Part};
use crate::dialect::AnsweredCall;
use crate::history::{Call, Item, ToolResult};
use crate::mcp::{self, CallResult};
use crate::record::CallOutcome;
use crate::skills;

use super::permission::REFUSED_TEXT;
use super::state::{Leave, Phase, Progress, Session, Slot};
use super::{Effect, INTERRUPTED_TEXT, REFLECTION};

/// Gives every call an id of its own.
///
/// A missing id is made from the call's position, a repeated one gets the first free number behind it:
/// never chance, so that a replay agrees.
pub(super) fn unique_ids(calls: &mut [AnsweredCall], turn: u64, round: u32) {
    let mut taken = BTreeSet::new();
    for (index, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() {
            call.id = format!("call_{turn}_{round}_{index}");
        }
        if taken.contains(&call.id) {
            let base = call.id.clone();
            let mut n = 2u64;
            while taken.contains(&call.id) {
                call.id = format!("{base}-{n}");
                n += 1;
            }
        }
        taken.insert(call.id.clone());
    }
}

/// The form in which calls are replayed to the model. Unusable arguments become an empty object there:
/// every provider wants an object, and the result says what was wrong.
pub(super) fn for_history(calls: &[AnsweredCall]) -> Vec<Call> {
    calls
        .iter()
        .map(|call| Call {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone().unwrap_or_default(),
            extra: call.extra.clone(),
        })
        .collect()
}

impl Session {
    /// Announces the calls in order and fails at once those that cannot run.
    pub(super) fn preflight(&mut self, calls: Vec<AnsweredCall>) -> Vec<Slot> {
        let mut slots = Vec::with_capacity(calls.len());
        for call in calls {
            let shown = Value::Object(call.arguments.clone().unwrap_or_default());
            self.say(lines::call_pending(self.id(), &call.id, &call.name, &shown));
            if call.name == skills::TOOL {
                self.say(lines::call_started(self.id(), &call.id));
                let name = shown.get("name").and_then(Value::as_str).map(str::to_owned);
                self.outbox.push(Effect::LoadSkill { asked: self.asked, index: slots.len(), name });
                slots.push(Slot { id: call.id, name: call.name, progress: Progress::Loading });
                continue;
            }
            let tool = self.opened.catalogue.find(&call.name).filter(|t| !t.hook);
            let progress = match (tool, call.arguments) {
                (Some(tool), Ok(arguments)) => match self.leave_for(&call.name) {
                    Leave::Refused => self.fail_call(&call.id, REFUSED_TEXT.to_owned()),
                    leave => {
                        Progress::Waiting { leave, server: tool.server, bare: tool.bare.clone(), arguments }
                    }
                },
                (None, _) => self.fail_call(&call.id, format!("unknown tool: {}", call.name)),
                (Some(_), Err(what)) => self.fail_call(&call.id, what),
            };
            slots.push(Slot { id: call.id, name: call.name, progress });
        }
        slots
    }

    fn fail_call(&mut self, id: &str, text: String) -> Progress {
        self.say(lines::call_failed(self.id(), id, &text));
        Progress::Done(ToolResult { id: id.to_owned(), parts: vec![Part::Text(text)], is_error: true })
    }

    /// Starts calls: the lines, then the work.
    pub(super) fn start_calls(&mut self, indices: impl Iterator<Item = usize>) {
        self.said.settle();
        let asked = self.asked;
        for index in indices {
            let Some(slot) = self.slot(index) else { continue };
            let Progress::Waiting { server, bare, arguments, .. } = &slot.progress else { continue };
            let (id, tool, server, bare) = (slot.id.clone(), slot.name.clone(), *server, bare.clone());
            let arguments = Value::Object(arguments.clone());
            slot.progress = Progress::Started;
            self.say(lines::call_started(self.id(), &id));
            self.outbox.push(Effect::Call { asked, index, server, tool, bare, arguments });
        }
    }

    /// Fills the slot of a call that ended; the first outcome wins.
    pub(super) fn finish_call(&mut self, index: usize, outcome: &CallOutcome, line: &[u8]) {
        let limits = self.limits();
        let Some(slot) = self.slot(index) else { return };
        if matches!(slot.progress, Progress::Done(_)) {
            return;
        }
        let (id, name) = (slot.id.clone(), slot.name.clone());
        let result = match outcome {
            CallOutcome::Returned => mcp::shape_result(&name, line, limits),
            CallOutcome::TransportFailed { text } | CallOutcome::Unavailable { text } => {
                CallResult::not_returned(text.clone())
            }
            CallOutcome::TimedOut { after_secs } => mcp::timed_out(&name, *after_secs),
            CallOutcome::Cancelled => mcp::cancelled(),
            CallOutcome::Interrupted => CallResult::not_returned(INTERRUPTED_TEXT),
        };
        // Whoever waited for an interrupted call is gone with the process that ran it.
        if *outcome != CallOutcome::Interrupted {
            let text = text_form(&result.parts);
            self.say(if result.returned {
                lines::call_returned(self.id(), &id, &text, result.is_error)
            } else {
                lines::call_failed(self.id(), &id, &text)
            });
        }
        let done = ToolResult { id, parts: result.parts, is_error: result.is_error };
        if let Some(slot) = self.slot(index) {
            slot.progress = Progress::Done(done);
        }
        self.back_fill();
    }

    /// Fills the slot of a call that loads a skill.
    pub(super) fn skill_loaded(&mut self, index: usize, text: &str, is_error: bool) {
        let Some(slot) = self.slot(index) else { return };
        let id = slot.id.clone();
        let parts = vec![Part::Text(text.to_owned())];
        slot.progress = Progress::Done(ToolResult { id: id.clone(), parts, is_error });
        self.say(lines::call_returned(self.id(), &id, text, is_error));
        self.back_fill();
    }

    /// Ends calls as cancelled: those that never started, or all that are still open.
    pub(super) fn cancel_calls(&mut self, started_too: bool) {
        let Some(Phase::Calling(slots)) = self.turn.as_ref().map(|t| &t.phase) else { return };
        let ends = |slot: &Slot| match slot.progress {
            Progress::Waiting { .. } => true,
            Progress::Started | Progress::Loading => started_too,
            Progress::Done(_) => false,
        };
        let open: Vec<usize> = slots.iter().enumerate().filter(|(_, s)| ends(s)).map(|(i, _)| i).collect();
        for index in open {
            self.finish_call(index, &CallOutcome::Cancelled, b"");
        }
    }

    /// The time of calls that were told to stop is over.
    pub(super) fn abort_calls(&mut self) {
        self.outbox.push(Effect::AbortCalls);
        self.cancel_calls(true);
    }

    /// Once every call has its result, the history takes them in call order, whatever the order in which
    /// they came.
    pub(super) fn back_fill(&mut self) {
        let Some(turn) = self.turn.as_mut() else { return };
        let Phase::Calling(slots) = &mut turn.phase else { return };
        if slots.iter().any(|slot| !matches!(slot.progress, Progress::Done(_))) {
            return;
        }
        let results = std::mem::take(slots).into_iter().filter_map(|slot| match slot.progress {
            Progress::Done(result) => Some(Item::ToolResult(reflected(result))),
            _ => None,
        });
        let results = results.collect();
        turn.phase = if turn.cancelled {
            Phase::Ending(crate::record::Outcome::Stopped(crate::record::StopReason::Cancelled))
        } else {
            Phase::Boundary(super::state::Compaction::Due)
        };
        self.remember(results);
    }

    pub(super) fn slot(&mut self, index: usize) -> Option<&mut Slot> {
        match self.turn.as_mut().map(|t| &mut t.phase) {
            Some(Phase::Calling(slots)) => slots.get_mut(index),
            _ => None,
        }
    }
}

fn reflected(mut result: ToolResult) -> ToolResult {
    if result.is_error {
        result.parts.push(Part::Text(REFLECTION.to_owned()));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(given: &[&str]) -> Vec<String> {
        let call = |id: &&str| AnsweredCall {
            id: (*id).to_owned(),
            name: "t".into(),
            arguments: Ok(serde_json::Map::new()),
            extra: serde_json::Map::new(),
        };
        let mut calls: Vec<AnsweredCall> = given.iter().map(call).collect();
        unique_ids(&mut calls, 4, 2);
        calls.into_iter().map(|c| c.id).collect()
    }

    #[test]
    fn c15_ids_are_made_unique_from_position() {
        assert_eq!(ids(&["", ""]), ["call_4_2_0", "call_4_2_1"]);
        assert_eq!(ids(&["x", "x", "x"]), ["x", "x-2", "x-3"]);
        assert_eq!(ids(&["x", "x-2", "x"]), ["x", "x-2", "x-3"]);
    }
}
