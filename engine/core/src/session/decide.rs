//! What follows from the state: the next decision, if one can be made without an input.

use crate::acp::lines::{self, Line};
use crate::acp::code;
use crate::evidence;
use crate::record::{Head, Outcome, Record, StartedCall, StopReason};

use super::state::{Phase, Progress, Session, Slot, Turn};

impl Session {
    /// The decision that follows now; `None` while only an input can move the session.
    ///
    /// Pure and cheap to ask again: it changes nothing until its record is folded.
    pub fn decide(&self) -> Option<Record> {
        let turn = self.turn.as_ref()?;
        match &turn.phase {
            Phase::Boundary => Some(self.at_boundary(turn)),
            Phase::Asking { .. } => None,
            Phase::Calling(slots) => self.next_starts(turn, slots),
            // A steer that was accepted during the last round is not lost: the turn goes on with it.
            Phase::Gate(_) if !turn.steers.is_empty() => Some(self.at_boundary(turn)),
            Phase::Gate(stop) => Some(self.end(turn, Outcome::Stopped(*stop))),
            Phase::Ending(outcome) => Some(self.end(turn, outcome.clone())),
        }
    }

    /// The top of the loop. The order of the rules is part of the behaviour.
    fn at_boundary(&self, turn: &Turn) -> Record {
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
        let surplus = self.history.surplus(settings.max_history_bytes);
        if surplus > 0 {
            let gone = &self.history.items()[..surplus];
            let bytes = gone.iter().map(crate::history::Item::wire_bytes).sum();
            return Record::bare(Head::HistoryTruncated { items: surplus, bytes });
        }
        self.ask(turn)
    }

    fn ask(&self, turn: &Turn) -> Record {
        let body = self.encoder.request(&turn.model, self.tools.as_ref());
        let (evidence, raw) = evidence::describe(&self.previous, &body);
        let head = Head::RoundAsked {
            round: turn.round.saturating_add(1),
            asked: self.asked + 1,
            model: turn.model.clone(),
            evidence,
            said: self.said.since_decision(),
        };
        Record { head, raw }
    }

    /// Waiting calls start in call order while there is room for them.
    fn next_starts(&self, turn: &Turn, slots: &[Slot]) -> Option<Record> {
        if turn.cancelled {
            return None;
        }
        let running = slots.iter().filter(|s| matches!(s.progress, Progress::Started)).count();
        let room = self.opened.settings.max_parallel_tools.max(1).saturating_sub(running);
        let waiting = slots.iter().enumerate().filter_map(|(index, slot)| match &slot.progress {
            Progress::Waiting { server, .. } => Some(StartedCall {
                index,
                id: slot.id.clone(),
                name: slot.name.clone(),
                server: self.opened.catalogue.servers[*server].clone(),
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
                lines::result(&turn.id, &serde_json::json!({"stopReason": stop.as_str()}))
            }
            Outcome::Failed { code, message } => {
                lines::error(&turn.id, self.opened.profile.code(*code), message)
            }
        };
        usage.into_iter().chain([answer]).collect()
    }

    /// What closes the turn that a killed process left open, as records to append.
    ///
    /// Nothing is run again: calls that have no result get one that says so.
    pub fn recovery(&self) -> Vec<Record> {
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

/// The error of a turn whose prompt is none.
pub(super) fn invalid_prompt(error: &crate::acp::blocks::PromptError) -> Outcome {
    Outcome::Failed { code: code::INVALID_PARAMS, message: format!("invalid params: {error}") }
}
