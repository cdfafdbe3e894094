//! Taking a record in: total, deterministic, and the only way in which a session changes.

use std::collections::BTreeMap;

use crate::acp::{blocks, lines, Profile};
use crate::dialect::{self, Answer, AnswerError, Dialect, Encoder, Stop};
use crate::effort;
use crate::history::{Assistant, History, Item};
use crate::mcp::ServerEvent;
use crate::provider::ApiMode;
use crate::record::{CallOutcome, Failure, Head, Outcome, Record, StopReason};
use crate::retry::{Attempts, Failed, Timing, Verdict};
use crate::rope::Rope;
use crate::said::Said;
use crate::usage::{Tally, Usage};

use super::admit::blocks_of;
use super::calls::{for_history, unique_ids};
use super::decide::invalid_prompt;
use super::mesh::StandIn;
use super::state::{
    Closing, Compaction, LastUsage, Objectors, Phase, Progress, Purpose, ServerState, Session, Turn,
};
use super::{Effect, CALLS_PER_ANSWER_MAX};

impl Session {
    /// The session that `record` opens; `None` if it opens none.
    pub fn open(record: &Record) -> Option<Session> {
        let Head::SessionOpened(opened) = &record.head else { return None };
        let opened = (**opened).clone();
        let system_prompt = String::from_utf8_lossy(&record.raw).into_owned();
        let route = opened.settings.route(&opened.settings.model, opened.upgraded);
        let encoder = Encoder::new(route.form, &opened.settings, &system_prompt);
        let mut session = Session {
            servers: ServerState::all(&opened.catalogue),
            permissions: BTreeMap::new(),
            upgraded: opened.upgraded,
            closing: None,
            deleted: false,
            opened,
            system_prompt,
            history: History::default(),
            encoder,
            original_task: None,
            last_usage: None,
            handoffs: 0,
            objections: 0,
            tally: Tally::default(),
            model_override: None,
            tools: None,
            turns: 0,
            asked: 0,
            previous: Rope::default(),
            turn: None,
            said: Said::default(),
            outbox: Vec::new(),
        };
        session.encode_tools();
        session.say(lines::result(&session.opened.id, &session.opened_answer()));
        Some(session)
    }

    /// Takes one record in. Records that do not fit the state change nothing.
    pub fn fold(&mut self, record: &Record) {
        match &record.head {
            Head::SessionOpened(_) => {}
            Head::SessionResumed { opened, tells_history } => self.resumed(opened, *tells_history),
            Head::OptionSelected { id, option, value } => self.option_selected(id, *option, value),
            Head::CloseRequested { id } => self.ends(Closing::Close(id.clone())),
            Head::DeleteRequested { id } => self.ends(Closing::Delete(id.clone())),
            Head::SessionClosed { id } => self.closed_for(Some(id)),
            Head::SessionDeleted { id } => {
                self.deleted = true;
                self.closed_for(id.as_ref());
            }
            Head::TurnPrompted { id, run, .. } => self.prompted(id, run, &record.raw),
            Head::LineRefused { id, code, message } => {
                self.say(lines::error(id, self.opened.profile.code(*code), message));
            }
            Head::SteerAccepted { id, message } => self.steered(id, message, &record.raw),
            Head::CancelRequested { id } => self.cancel_requested(id.as_ref()),
            Head::ModelSelected { id, model } => self.model_selected(id, model),
            Head::SteersApplied { count } => self.steers_applied(*count),
            Head::HistoryTruncated { items, .. } => self.forget(*items),
            Head::SummaryAsked { .. } => self.summary_asked(),
            Head::HandoffDone { items, bytes, .. } => self.handoff_done(*items, *bytes, &record.raw),
            Head::HooksAsked { asked, hook, servers } => self.hooks_asked(*asked, *hook, servers),
            Head::HooksFinished { hook, servers, outcomes, .. } => {
                self.hooks_finished(*hook, servers, outcomes, &record.raw);
            }
            Head::EndObjected { objections, reminder } => self.objected(objections, *reminder),
            Head::MeshSought { asked } => self.mesh_sought(*asked),
            Head::MeshAnswered { available, .. } => self.mesh_answered(*available),
            Head::RoundAsked { .. } => self.round_asked(),
            Head::RoundAnswered { elapsed_ms, jitter_permille, .. } => {
                self.answered(&record.raw, *elapsed_ms, *jitter_permille);
            }
            Head::AttemptFailed { failure, retry_after_ms, elapsed_ms, jitter_permille, .. } => {
                let (retry_after_ms, elapsed_ms) = (*retry_after_ms, *elapsed_ms);
                let timing = Timing { retry_after_ms, elapsed_ms, jitter_permille: *jitter_permille };
                self.attempt_failed(failure, timing, &record.raw);
            }
            Head::PermissionAsked { index, .. } => self.permission_asked(*index),
            Head::PermissionAnswered { asked, index, answer } => {
                self.permission_answered(*asked, *index, answer)
            }
            Head::PermissionExpired { asked, index, after_secs } => {
                self.permission_expired(*asked, *index, *after_secs)
            }
            Head::CallsStarted { calls, .. } => self.start_calls(calls.iter().map(|c| c.index)),
            Head::CallFinished { index, outcome, .. } => self.finish_call(*index, outcome, &record.raw),
            Head::SkillLoaded { index, is_error, .. } => {
                self.skill_loaded(*index, &String::from_utf8_lossy(&record.raw), *is_error);
            }
            Head::DrainExpired { .. } => self.abort_calls(),
            Head::ServerChanged { server, change } => self.server_changed(*server, change),
            Head::KeepaliveTicked { .. } => {
                self.say(lines::keepalive(self.id(), self.opened.profile));
            }
            Head::TurnEnded { outcome, .. } => self.ended(outcome),
            Head::TurnInterrupted { .. } => self.interrupted(),
        }
    }

    fn prompted(&mut self, id: &crate::acp::frame::Id, run: &str, line: &[u8]) {
        self.turns += 1;
        self.say(lines::active_run(self.id(), run));
        let phase = match blocks::prompt_item(&blocks_of(line), self.opened.profile) {
            Err(e) => Phase::Ending(invalid_prompt(&e)),
            Ok(item) => {
                self.original_task.get_or_insert_with(|| item.user_text());
                self.remember(vec![item]);
                Phase::Boundary(Compaction::Due)
            }
        };
        let model = self.model();
        let route = self.opened.settings.route(&model, self.upgraded);
        self.encode_for(&route);
        let settings = &self.opened.settings;
        let replaced = settings
            .effort
            .and_then(|e| effort::replaced(route.form.dialect, &model, e, settings.max_output_tokens));
        self.outbox.extend(replaced.map(Effect::Warn));
        self.turn = Some(Turn {
            id: id.clone(),
            run: run.to_owned(),
            model,
            stand_in: StandIn::Unknown,
            route,
            round: 0,
            cancelled: false,
            steers: std::collections::VecDeque::new(),
            saw_usage: false,
            rejections: 0,
            reminders: 0,
            reply_seen: false,
            phase,
        });
    }

    fn steered(&mut self, id: &crate::acp::frame::Id, message: &str, line: &[u8]) {
        let Some(turn) = self.turn.as_mut() else { return };
        turn.steers.push_back(blocks_of(line));
        let run = turn.run.clone();
        self.say(lines::result(id, &serde_json::json!({"runId": run, "messageId": message})));
        self.say(lines::queued_steer(self.id(), &run, message));
    }

    fn cancel_requested(&mut self, id: Option<&crate::acp::frame::Id>) {
        if let Some(id) = id {
            self.say(lines::result(id, &serde_json::Value::Null));
        }
        self.cancelled();
    }

    pub(super) fn cancelled(&mut self) {
        let Some(turn) = self.turn.as_mut() else { return };
        turn.cancelled = true;
        match &turn.phase {
            Phase::Asking { .. } => {
                turn.phase = Phase::Ending(Outcome::Stopped(StopReason::Cancelled));
                self.outbox.push(Effect::StopAsking);
            }
            Phase::Calling(slots) => {
                if slots.iter().any(|s| matches!(s.progress, Progress::Started)) {
                    self.outbox.push(Effect::StopCalls { asked: self.asked });
                }
                self.cancel_calls(false);
            }
            // Hooks are not interrupted; the flag counts at the next boundary.
            Phase::Boundary(_) | Phase::Compacting(_) | Phase::Gate(..) | Phase::Ending(_) => {}
        }
    }

    fn steers_applied(&mut self, count: usize) {
        let Some(turn) = self.turn.as_mut() else { return };
        let count = count.min(turn.steers.len());
        let steers: Vec<_> = turn.steers.drain(..count).collect();
        let at_gate = matches!(turn.phase, Phase::Gate(..));
        let before = self.history.items().len();
        self.apply_steers(steers);
        // A steer that says nothing gives the model nothing to answer.
        if at_gate && self.history.items().len() > before {
            self.set_phase(Phase::Boundary(Compaction::Due));
        }
    }

    fn apply_steers(&mut self, steers: Vec<Vec<blocks::Block>>) {
        for steer in steers {
            match blocks::text(&steer, self.opened.profile) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => self.remember(vec![Item::User(text)]),
                Err(e) => self.outbox.push(Effect::Warn(format!("a steer was dropped: {e}"))),
            }
        }
    }

    fn round_asked(&mut self) {
        self.said.settle();
        let Some(turn) = self.turn.as_mut() else { return };
        turn.round = turn.round.saturating_add(1);
        self.asked += 1;
        let body = self.encoder.request(turn.asked_model(), self.tools.as_ref()).rope;
        self.previous = body.clone();
        turn.phase = Phase::Asking { purpose: Purpose::Round, attempts: Attempts::default(), body };
        self.send(true, 0);
    }

    /// Puts the current request into the outbox.
    pub(super) fn send(&mut self, first: bool, after_ms: u64) {
        let Some(turn) = &self.turn else { return };
        let Phase::Asking { purpose, body, .. } = &turn.phase else { return };
        self.outbox.push(Effect::Ask {
            asked: self.asked,
            first,
            keepalive: *purpose == Purpose::Round,
            after_ms,
            path: turn.route.path.clone(),
            body: body.clone(),
        });
    }

    fn attempt_failed(&mut self, failure: &Failure, timing: Timing, body: &[u8]) {
        let body = String::from_utf8_lossy(body).into_owned();
        if !self.mesh_failed_at(failure, &body) {
            self.judge(&body, timing, |failed, before| failed.judge(failure, before));
        }
    }

    /// A failed attempt: the same bytes again, another wire, or the end of the turn.
    fn judge(&mut self, body: &str, timing: Timing, verdict: impl Fn(&Failed<'_>, Attempts) -> Verdict) {
        let retry = self.opened.settings.provider.spec().retry;
        let may_upgrade = self.may_upgrade();
        let Some(turn) = self.turn.as_mut() else { return };
        let Phase::Asking { purpose, attempts, .. } = &mut turn.phase else { return };
        let failed = Failed { retry, model: &turn.model, body, timing };
        match verdict(&failed, *attempts) {
            Verdict::Again { after_ms, attempts: next } => {
                *attempts = next;
                self.send(false, after_ms);
            }
            Verdict::Fail(outcome) if may_upgrade && wants_responses(&outcome) => self.upgrade(),
            Verdict::Fail(outcome) if *purpose == Purpose::Summary => self.handoff_skipped(&outcome),
            Verdict::Fail(outcome) => turn.phase = Phase::Ending(outcome),
        }
    }

    fn may_upgrade(&self) -> bool {
        let chat = self.turn.as_ref().is_some_and(|t| t.route.form.dialect == Dialect::Chat);
        let settings = &self.opened.settings;
        chat && settings.provider.spec().has_api_modes && settings.api == ApiMode::Auto && !self.upgraded
    }

    /// The endpoint wants the other OpenAI wire: for good, and for this very request first.
    fn upgrade(&mut self) {
        self.upgraded = true;
        self.outbox.push(Effect::Upgraded);
        self.outbox.push(Effect::Warn("the endpoint wants the Responses API; using it from now on".into()));
        let Some(turn) = self.turn.as_mut() else { return };
        turn.route = self.opened.settings.route(&turn.model, true);
        let route = turn.route.clone();
        self.ask_again();
        self.encode_for(&route);
    }

    /// An answer: accounting first, with the history as it was sent; then lines; then what it asks for.
    fn answered(&mut self, body: &[u8], elapsed_ms: u64, jitter_permille: u16) {
        let Some(turn) = &self.turn else { return };
        let Phase::Asking { purpose, .. } = turn.phase else { return };
        let decoded = dialect::decode(turn.route.form.dialect, body);
        self.account(&decoded.usage, purpose);
        match decoded.answer {
            Ok(answer) if purpose == Purpose::Summary => self.took_summary(answer.text),
            Ok(answer) if self.mesh_garbled(&answer) => {}
            Ok(answer) => self.took_answer(answer),
            Err(error) => {
                let text = error.to_string();
                let code = match &error {
                    AnswerError::Provider { code, .. } => code.as_str(),
                    AnswerError::Json(_) | AnswerError::Shape(_) => "",
                };
                let timing = Timing { retry_after_ms: None, elapsed_ms, jitter_permille };
                self.judge("", timing, |failed, before| failed.judge_wrapped(code, &text, before));
            }
        }
    }

    /// A summary is billed like any answer, but says nothing of the history's size.
    fn account(&mut self, usage: &Usage, purpose: Purpose) {
        if let (Some(input_tokens), Purpose::Round) = (usage.input, purpose) {
            let history_bytes = self.history.pressure_bytes();
            self.last_usage = Some(LastUsage { input_tokens, history_bytes });
        }
        self.tally.add(usage);
        let Some(turn) = self.turn.as_mut() else { return };
        if !usage.is_reported() {
            return;
        }
        turn.saw_usage = true;
        let line = lines::usage(&self.opened.session, &self.tally, &turn.model);
        self.say(line);
        if self.opened.profile == Profile::Standard {
            let used = usage.input.unwrap_or(0).saturating_add(usage.output.unwrap_or(0));
            self.say(lines::context(self.id(), used, self.opened.settings.max_context_tokens));
        }
    }

    fn took_answer(&mut self, answer: Answer) {
        self.stand_in(StandIn::Unknown);
        if !answer.reasoning.is_empty() {
            self.say(lines::thought(self.id(), &answer.reasoning));
        }
        if !answer.text.is_empty() {
            self.say(lines::message(self.id(), &answer.text));
        }
        let (turns, round) = (self.turns, self.turn.as_ref().map_or(0, |t| t.round));
        let mut calls = answer.calls;
        if calls.len() > CALLS_PER_ANSWER_MAX {
            self.outbox.push(Effect::Warn(format!(
                "an answer holds {} calls, those past the limit of {CALLS_PER_ANSWER_MAX} are dropped",
                calls.len()
            )));
            calls.truncate(CALLS_PER_ANSWER_MAX);
        }
        let nameless = calls.iter().any(|call| call.name.is_empty());
        if nameless || (calls.is_empty() && answer.stop == Stop::ToolUse) {
            let what = if nameless { "tool_call missing name" } else { "stop=tool_use but zero tool_calls" };
            self.set_phase(Phase::Ending(Outcome::Failed {
                code: crate::acp::code::FAILED,
                message: format!("llm: provider: {what}"),
            }));
            return;
        }
        unique_ids(&mut calls, turns, round);
        self.look_for_reply(&calls);
        self.remember(vec![Item::Assistant(Assistant {
            text: answer.text,
            calls: for_history(&calls),
            reasoning_details: answer.reasoning_details,
        })]);
        if calls.is_empty() {
            let stop = match answer.stop {
                Stop::MaxTokens => StopReason::MaxTokens,
                Stop::Refusal => StopReason::Refusal,
                Stop::EndTurn | Stop::ToolUse | Stop::Other => StopReason::EndTurn,
            };
            self.set_phase(Phase::Gate(stop, Objectors::Unasked));
            return;
        }
        let slots = self.preflight(calls);
        self.set_phase(Phase::Calling(slots));
        self.back_fill();
    }

    pub(super) fn set_phase(&mut self, phase: Phase) {
        if let Some(turn) = self.turn.as_mut() {
            turn.phase = phase;
        }
    }

    fn server_changed(&mut self, server: usize, change: &ServerEvent) {
        let Some(state) = self.servers.get_mut(server) else { return };
        match change {
            ServerEvent::Died { attempt, .. } | ServerEvent::RestartFailed { attempt, .. } => {
                state.attempts = *attempt;
            }
            ServerEvent::Restarted { tools } => {
                state.attempts = 0;
                state.tools = tools.iter().cloned().collect();
            }
            ServerEvent::Exhausted => state.exhausted = true,
        }
        self.encode_tools();
    }

    fn ended(&mut self, outcome: &Outcome) {
        let Some(turn) = self.turn.take() else { return };
        self.outbox.push(Effect::Settle);
        for line in self.ending_lines(&turn, outcome) {
            self.say(line);
        }
        // The decision's record covers its own lines: see Session::decide.
        self.said.settle();
        // A steer that was acknowledged reaches the model, with the next prompt if this turn may ask no
        // more; only a cancel takes back what was queued before it.
        if !turn.cancelled {
            self.apply_steers(turn.steers.into());
        }
    }

    fn interrupted(&mut self) {
        self.said.settle();
        let open = match self.turn.as_ref().map(|t| &t.phase) {
            Some(Phase::Calling(slots)) => slots.len(),
            _ => 0,
        };
        for index in 0..open {
            self.finish_call(index, &CallOutcome::Interrupted, b"");
        }
        // As at any other end: a cancel takes back what was queued before it.
        if let Some(turn) = self.turn.take().filter(|turn| !turn.cancelled) {
            self.apply_steers(turn.steers.into());
        }
    }
}

/// Whether an endpoint's refusal says that it takes only Responses requests for this model.
fn wants_responses(outcome: &Outcome) -> bool {
    let Outcome::Failed { code: crate::acp::code::FAILED, message } = outcome else { return false };
    let message = message.to_lowercase();
    ["/v1/responses", "responses api instead", "use the responses api"]
        .iter()
        .any(|words| message.contains(words))
}
