//! What follows from the state: the next decision, if one can be made without an input.

use crate::acp::lines::{self, Line};
use crate::acp::{code, Profile};
use crate::dialect;
use crate::evidence;
use crate::guard;
use crate::handoff::{self, Handoff};
use crate::history::Item;
use crate::record::{Head, Hook, Objection, Outcome, Record, StartedCall, StopReason};
use crate::rope::{Body, Rope};
use crate::usage::Tally;

use super::mesh::StandIn;
use super::state::{Closing, Compacting, Compaction, Leave, Objectors, Phase, Progress, Session, Slot, Turn};

impl Session {
    /// The decision that follows now; `None` while only an input can move the session.
    ///
    /// Pure and cheap to ask again: it changes nothing until its record is folded.
    pub fn decide(&self) -> Option<Record> {
        let Some(turn) = &self.turn else {
            return self.closed();
        };
        match &turn.phase {
            Phase::Boundary(_) if turn.stand_in == StandIn::Sought && !turn.cancelled => None,
            Phase::Boundary(compaction) => Some(self.at_boundary(turn, *compaction)),
            Phase::Asking { .. } => None,
            Phase::Compacting(compacting) => self.compact(compacting),
            Phase::Calling(slots) => self.next_starts(turn, slots),
            Phase::Gate(stop, objectors) => self.at_gate(turn, *stop, objectors),
            Phase::Ending(outcome) => Some(self.end(turn, outcome.clone())),
        }
    }

    fn closed(&self) -> Option<Record> {
        let head = match self.closing.clone()? {
            Closing::Close(id) => Head::SessionClosed { id },
            Closing::Delete(id) => Head::SessionDeleted { id },
        };
        Some(Record::bare(head))
    }

    /// The top of the loop. The order of the rules is part of the behaviour.
    fn at_boundary(&self, turn: &Turn, compaction: Compaction) -> Record {
        let settings = &self.opened.settings;
        if settings.max_rounds > 0 && turn.round >= settings.max_rounds {
            return self.end(turn, Outcome::Stopped(StopReason::MaxTurnRequests));
        }
        if turn.cancelled {
            return self.end(turn, Outcome::Stopped(StopReason::Cancelled));
        }
        if !turn.steers.is_empty() {
            return Record::bare(Head::SteersApplied { count: turn.steers.len() });
        }
        if compaction == Compaction::Due && self.wants_handoff() {
            return self.seek_mesh(turn).unwrap_or_else(|| self.ask_summary(turn));
        }
        let surplus = match compaction {
            Compaction::Due | Compaction::Skipped => self.history.surplus(settings.max_history_bytes),
            Compaction::Performed => 0,
        };
        if surplus > 0 {
            let gone = &self.history.items()[..surplus];
            let bytes = gone.iter().map(Item::wire_bytes).sum();
            return Record::bare(Head::HistoryTruncated { items: surplus, bytes });
        }
        self.seek_mesh(turn).unwrap_or_else(|| self.ask(turn))
    }

    /// Whether the context window is so full that the session must go on from a summary.
    fn wants_handoff(&self) -> bool {
        let settings = &self.opened.settings;
        let now = self.history.pressure_bytes();
        let full = match self.last_usage {
            Some(last) => {
                let grown = now.saturating_sub(last.history_bytes);
                last.input_tokens.saturating_add(grown) >= handoff::threshold_tokens(settings)
            }
            None => now > handoff::threshold_bytes(settings),
        };
        full && self.handoffs < settings.max_handoffs
    }

    fn ask_summary(&self, turn: &Turn) -> Record {
        let body = self.summary_request(turn);
        let (evidence, raw) = evidence::describe(&Rope::default(), &body);
        let head = Head::SummaryAsked {
            asked: self.asked + 1,
            model: turn.asked_model().to_owned(),
            path: turn.route.path.clone(),
            dialect: turn.route.form.dialect,
            evidence,
            said: self.said.since_decision(),
        };
        Record { head, raw }
    }

    pub(super) fn summary_request(&self, turn: &Turn) -> Body {
        let tools: Vec<&str> = self
            .opened
            .catalogue
            .tools
            .iter()
            .filter(|tool| self.is_offered(tool))
            .map(|tool| tool.qualified.as_str())
            .collect();
        let prompt = handoff::summary_prompt(&Handoff {
            count: self.handoffs,
            original_task: self.original_task.as_deref(),
            tools: &tools,
            history: &self.history,
            max_context_tokens: self.opened.settings.max_context_tokens,
        });
        dialect::summary_request(turn.route.form, turn.asked_model(), &prompt)
    }

    /// Between a summary and the history that it replaces.
    fn compact(&self, compacting: &Compacting) -> Option<Record> {
        if compacting.waiting {
            return None;
        }
        let servers = self.hook_servers(Hook::PostCompact);
        if compacting.outputs.is_none() && !servers.is_empty() {
            return Some(self.ask_hooks(Hook::PostCompact, servers));
        }
        let outputs = compacting.outputs.as_deref().unwrap_or_default();
        let text = handoff::replacement(&compacting.summary, outputs);
        let current = self.history.last_user().map_or(0, Item::pressure_bytes);
        let after = 1 + usize::from(self.history.last_user().is_some());
        let head = Head::HandoffDone {
            count: self.handoffs + 1,
            items: (self.history.items().len(), after),
            bytes: (self.history.pressure_bytes(), text.len() as u64 + current),
        };
        Some(Record { head, raw: text.into_bytes() })
    }

    fn ask_hooks(&self, hook: Hook, servers: Vec<usize>) -> Record {
        Record::bare(Head::HooksAsked { asked: self.asked, hook, servers })
    }

    /// The servers that may run `hook` and have it, in order.
    pub(super) fn hook_servers(&self, hook: Hook) -> Vec<usize> {
        let has = |server: &usize| {
            let mut tools = self.opened.catalogue.of_server(*server);
            tools.any(|t| t.bare == hook.as_str()) && !self.servers.get(*server).is_none_or(|s| s.exhausted)
        };
        self.opened.hook_servers.iter().copied().filter(has).collect()
    }

    /// The model ended its turn: servers and the reply guard may hold it open.
    fn at_gate(&self, turn: &Turn, stop: StopReason, objectors: &Objectors) -> Option<Record> {
        if matches!(objectors, Objectors::Waiting) {
            return None;
        }
        // A steer that was accepted during the last round is not lost: the turn goes on with it.
        if !turn.steers.is_empty() {
            return Some(self.at_boundary(turn, Compaction::Due));
        }
        let settings = &self.opened.settings;
        let ends = self.end(turn, Outcome::Stopped(stop));
        if stop != StopReason::EndTurn || turn.rejections >= settings.stop_max_rejections {
            return Some(ends);
        }
        let mut heard = match objectors {
            Objectors::Heard(heard) => heard.clone(),
            Objectors::Unasked | Objectors::Waiting => Vec::new(),
        };
        let servers = self.hook_servers(Hook::Stop);
        if matches!(objectors, Objectors::Unasked) && !servers.is_empty() {
            return Some(self.ask_hooks(Hook::Stop, servers));
        }
        let reminder = settings.require_reply && !turn.reply_seen && turn.reminders < guard::REMINDERS_MAX;
        if reminder {
            heard.push((guard::SERVER.to_owned(), guard::REMINDER.to_owned()));
        }
        if heard.is_empty() {
            return Some(ends);
        }
        let objections = heard.into_iter().zip(self.objections..);
        let objections =
            objections.map(|((server, text), ordinal)| Objection { server, text, ordinal }).collect();
        Some(Record::bare(Head::EndObjected { objections, reminder }))
    }

    fn ask(&self, turn: &Turn) -> Record {
        let body = self.encoder.request(turn.asked_model(), self.tools.as_ref());
        let (evidence, raw) = evidence::describe(&self.previous, &body);
        let head = Head::RoundAsked {
            round: turn.round.saturating_add(1),
            asked: self.asked + 1,
            model: turn.asked_model().to_owned(),
            path: turn.route.path.clone(),
            dialect: turn.route.form.dialect,
            evidence,
            said: self.said.since_decision(),
        };
        Record { head, raw }
    }

    /// Waiting calls start in call order while there is room for them.
    fn next_starts(&self, turn: &Turn, slots: &[Slot]) -> Option<Record> {
        // Skills are read before anything else runs: they may say how it should be done.
        let loading = slots.iter().any(|slot| matches!(slot.progress, Progress::Loading));
        let questioned = slots.iter().any(|slot| slot.leave() == Some(Leave::Asked));
        if turn.cancelled || loading || questioned {
            return None;
        }
        if let Some(question) = self.next_question(slots) {
            return Some(question);
        }
        let running = slots.iter().filter(|s| matches!(s.progress, Progress::Started)).count();
        let room = self.opened.settings.max_parallel_tools.max(1).saturating_sub(running);
        let waiting = slots.iter().enumerate().filter_map(|(index, slot)| match &slot.progress {
            Progress::Waiting { server, .. } => Some(StartedCall {
                index,
                id: slot.id.clone(),
                name: slot.name.clone(),
                server: self.opened.catalogue.servers.get(*server).cloned().unwrap_or_default(),
            }),
            _ => None,
        });
        let calls: Vec<StartedCall> = waiting.take(room).collect();
        let said = self.said.since_decision();
        (!calls.is_empty()).then(|| Record::bare(Head::CallsStarted { calls, said }))
    }

    fn end(&self, turn: &Turn, outcome: Outcome) -> Record {
        let mut said = self.said.clone();
        for line in self.ending_lines(turn, &outcome) {
            said.add(&line);
        }
        Record::bare(Head::TurnEnded { outcome, said: said.since_decision() })
    }

    /// The last lines of a turn: what it cost, then the answer.
    pub(super) fn ending_lines(&self, turn: &Turn, outcome: &Outcome) -> Vec<Line> {
        let usage = turn.saw_usage.then(|| lines::usage(self.id(), &self.tally, &turn.model));
        let answer = match outcome {
            Outcome::Stopped(stop) => {
                let mut answer = serde_json::json!({"stopReason": stop.as_str()});
                if let (Profile::Standard, true) = (self.opened.profile, turn.saw_usage) {
                    answer["usage"] = session_usage(&self.tally);
                }
                lines::result(&turn.id, &answer)
            }
            Outcome::Failed { code, message } => {
                lines::error(&turn.id, self.opened.profile.code(*code), message)
            }
        };
        usage.into_iter().chain([answer]).collect()
    }

    /// What closes the turn and the session that a killed process left open, as records to append.
    ///
    /// Nothing is run again: calls that have no result get one that says so.
    pub fn recovery(&self) -> Vec<Record> {
        self.interruption().into_iter().chain(self.closed()).collect()
    }

    fn interruption(&self) -> Vec<Record> {
        let Some(turn) = &self.turn else { return Vec::new() };
        let open = match &turn.phase {
            Phase::Calling(slots) => slots.as_slice(),
            _ => &[],
        };
        let closing = open.iter().enumerate().filter(|(_, s)| !matches!(s.progress, Progress::Done(_)));
        let mut records: Vec<Record> = closing
            .map(|(index, _)| {
                let outcome = crate::record::CallOutcome::Interrupted;
                Record::bare(Head::CallFinished { asked: self.asked, index, outcome, elapsed_ms: 0 })
            })
            .collect();
        let said = self.said.since_decision();
        records.push(Record::bare(Head::TurnInterrupted { said }));
        records
    }
}

/// A session's tokens in the public standard's words, whose sums run over the session; what is not known is
/// left out.
fn session_usage(tally: &Tally) -> serde_json::Value {
    let mut usage = serde_json::json!({
        "inputTokens": tally.input.unwrap_or(0),
        "outputTokens": tally.output.unwrap_or(0),
    });
    if let Some(cached) = tally.cached {
        usage["cachedReadTokens"] = cached.into();
    }
    if let Some(total) = tally.total.exact() {
        usage["totalTokens"] = total.into();
    }
    usage
}

/// The error of a turn whose prompt is none.
pub(super) fn invalid_prompt(error: &crate::acp::blocks::PromptError) -> Outcome {
    Outcome::Failed { code: code::INVALID_PARAMS, message: format!("invalid params: {error}") }
}
