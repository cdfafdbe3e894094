//! What an occurrence means before it is recorded: which record it becomes, if any.

use crate::acp::blocks;
use crate::acp::code;
use crate::acp::frame::{Frame, Id};
use crate::acp::params;
use crate::acp::permission;
use crate::mcp::ServerEvent;
use crate::record::{CallOutcome, Failure, Head, Hook, HookOutcome, Record, SessionOption};

use super::state::{Objectors, Phase, Progress, Session};

/// Something that came from outside of the fold.
#[derive(Clone, Debug)]
pub enum Input {
    /// A line of the client for this session.
    Line {
        /// The line classified.
        frame: Frame,
        /// The line itself.
        line: Vec<u8>,
        /// The ids that it may need.
        draws: Draws,
    },
    /// The model's endpoint answered with a good status.
    Answered {
        /// The round within the session.
        asked: u64,
        /// The HTTP status.
        status: u16,
        /// The headers that matter.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
        /// Milliseconds since the first attempt began.
        elapsed_ms: u64,
        /// The draw for a retry's back-off.
        jitter_permille: u16,
    },
    /// An attempt gave no good answer.
    AttemptFailed {
        /// The round within the session.
        asked: u64,
        /// What went wrong.
        failure: Failure,
        /// The headers that matter.
        headers: Vec<(String, String)>,
        /// The first bytes of the body.
        body: Vec<u8>,
        /// How long the endpoint asks to wait, in milliseconds, if it does.
        retry_after_ms: Option<u64>,
        /// Milliseconds since the first attempt began.
        elapsed_ms: u64,
        /// The draw for the back-off.
        jitter_permille: u16,
    },
    /// A call ended.
    CallFinished {
        /// The round within the session.
        asked: u64,
        /// Which call of the round.
        index: usize,
        /// How it ended.
        outcome: CallOutcome,
        /// The server's answer line, if one came.
        line: Vec<u8>,
        /// Milliseconds since it was started.
        elapsed_ms: u64,
    },
    /// A skill was read, or not.
    SkillLoaded {
        /// The round within the session.
        asked: u64,
        /// Which call of the round.
        index: usize,
        /// What the model is shown.
        text: String,
        /// Whether that is an error.
        is_error: bool,
    },
    /// The client did not say in time whether a call may run.
    PermissionExpired {
        /// The round within the session.
        asked: u64,
        /// Which call of the round.
        index: usize,
        /// The limit in seconds.
        after_secs: u64,
    },
    /// The mesh was looked for.
    MeshAnswered {
        /// The request within the session that waits for it.
        asked: u64,
        /// Whether the mesh is asked.
        available: bool,
        /// The endpoint's list of models, if it was asked for one now and gave it.
        list: Vec<u8>,
    },
    /// Calls that were told to stop had their time.
    DrainExpired {
        /// The round within the session.
        asked: u64,
    },
    /// A server died, came back or was given up.
    ServerChanged {
        /// Which server of the session.
        server: usize,
        /// What became of it.
        change: ServerEvent,
    },
    /// Hooks were run.
    HooksFinished {
        /// The round within the session.
        asked: u64,
        /// Which hook.
        hook: Hook,
        /// The servers, by index.
        servers: Vec<usize>,
        /// What came of each.
        outcomes: Vec<HookOutcome>,
        /// The answer lines, one after the other.
        lines: Vec<u8>,
    },
    /// The model has been silent for another keepalive period.
    KeepaliveTick {
        /// The round within the session.
        asked: u64,
    },
}

/// Ids drawn by the driver: chance is an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draws {
    /// A turn id.
    pub turn: String,
    /// A run id, `run_` and 16 hex digits.
    pub run: String,
    /// A steer id, `steer_` and 16 hex digits.
    pub message: String,
}

impl Session {
    /// The record that `input` becomes; `None` if it is late or means nothing now.
    pub fn admit(&self, input: Input) -> Option<Record> {
        match input {
            Input::Line { frame, line, draws } => self.admit_line(frame, line, draws),
            Input::Answered { asked, status, headers, body, elapsed_ms, jitter_permille } => {
                let head = Head::RoundAnswered { asked, status, headers, elapsed_ms, jitter_permille };
                self.is_asking(asked).then_some(Record { head, raw: body })
            }
            Input::AttemptFailed {
                asked,
                failure,
                headers,
                body,
                retry_after_ms,
                elapsed_ms,
                jitter_permille,
            } => {
                let head = Head::AttemptFailed {
                    asked,
                    failure,
                    headers,
                    retry_after_ms,
                    elapsed_ms,
                    jitter_permille,
                };
                self.is_asking(asked).then_some(Record { head, raw: body })
            }
            Input::CallFinished { asked, index, outcome, line, elapsed_ms } => {
                let head = Head::CallFinished { asked, index, outcome, elapsed_ms };
                let runs = matches!(self.progress(asked, index), Some(Progress::Started));
                runs.then_some(Record { head, raw: line })
            }
            Input::SkillLoaded { asked, index, text, is_error } => {
                let head = Head::SkillLoaded { asked, index, is_error };
                let loads = matches!(self.progress(asked, index), Some(Progress::Loading));
                loads.then(|| Record { head, raw: text.into_bytes() })
            }
            Input::PermissionExpired { asked, index, after_secs } => {
                let head = Head::PermissionExpired { asked, index, after_secs };
                self.is_questioned(asked, index).then(|| Record::bare(head))
            }
            Input::MeshAnswered { asked, available, list } => {
                let head = Head::MeshAnswered { asked, available };
                self.is_seeking(asked).then_some(Record { head, raw: list })
            }
            Input::DrainExpired { asked } => {
                let draining = self.is_calling(asked) && self.turn.as_ref().is_some_and(|t| t.cancelled);
                draining.then(|| Record::bare(Head::DrainExpired { asked }))
            }
            Input::ServerChanged { server, change } => {
                (server < self.servers.len()).then(|| Record::bare(Head::ServerChanged { server, change }))
            }
            Input::HooksFinished { asked, hook, servers, outcomes, lines } => {
                let head = Head::HooksFinished { asked, hook, servers, outcomes };
                self.is_hooked(asked, hook).then_some(Record { head, raw: lines })
            }
            Input::KeepaliveTick { asked } => {
                self.is_asking(asked).then(|| Record::bare(Head::KeepaliveTicked { asked }))
            }
        }
    }

    fn admit_line(&self, frame: Frame, line: Vec<u8>, draws: Draws) -> Option<Record> {
        let (id, method, params) = match frame {
            Frame::Request { id, method, params } => (Some(id), method, params),
            Frame::Notification { method, params } if method == "session/cancel" => (None, method, params),
            Frame::Answer { id, outcome } => return self.admit_answer(&id, &outcome, line),
            _ => return None,
        };
        let head = match (method.as_str(), id) {
            ("session/cancel", id) => Head::CancelRequested { id },
            ("session/prompt", Some(id)) => self.admit_prompt(id, &params, draws),
            ("_goose/unstable/session/steer", Some(id)) => self.admit_steer(id, &params, draws),
            ("session/set_model", Some(id)) => admit_model(id, &params),
            ("session/set_config_option", Some(id)) => self.admit_option(id, &params),
            ("session/close", Some(id)) => Head::CloseRequested { id },
            ("session/delete", Some(id)) => Head::DeleteRequested { id: Some(id) },
            _ => return None,
        };
        Some(Record { head, raw: line })
    }

    fn admit_answer(
        &self,
        id: &Id,
        outcome: &Result<serde_json::Value, String>,
        line: Vec<u8>,
    ) -> Option<Record> {
        let (session, asked, index) = permission::place_of(id)?;
        let head = Head::PermissionAnswered { asked, index, answer: permission::answer(outcome) };
        (session == self.id() && self.is_questioned(asked, index)).then_some(Record { head, raw: line })
    }

    fn admit_prompt(&self, id: Id, params: &serde_json::Value, draws: Draws) -> Head {
        match params::prompt(params) {
            Err(e) => refused(id, format!("session/prompt: {e}")),
            Ok(_) if self.is_busy() => refused(id, "session/prompt: prompt already in flight".to_owned()),
            Ok(_) => Head::TurnPrompted { id, turn: draws.turn, run: draws.run },
        }
    }

    fn admit_steer(&self, id: Id, params: &serde_json::Value, draws: Draws) -> Head {
        let steer = match params::steer(params) {
            Err(e) => return refused(id, format!("_goose/unstable/session/steer: {e}")),
            Ok(steer) => steer,
        };
        let reason = match &self.turn {
            _ if steer.blocks.is_empty() => "steer: prompt must not be empty".to_owned(),
            _ if steer.expected_run.is_empty() => "steer: expectedRunId must not be empty".to_owned(),
            None => "steer: no active run to steer".to_owned(),
            Some(turn) if turn.run != steer.expected_run => {
                format!("steer: expected active run id {} but found {}", steer.expected_run, turn.run)
            }
            Some(_) => return Head::SteerAccepted { id, message: draws.message },
        };
        refused(id, reason)
    }

    fn admit_option(&self, id: Id, params: &serde_json::Value) -> Head {
        let set = match params::set_option(params) {
            Err(e) => return refused_option(id, &e),
            Ok(set) => set,
        };
        let known = [SessionOption::Model, SessionOption::ThoughtLevel];
        let Some(option) = known.into_iter().find(|option| option.as_str() == set.option) else {
            return refused_option(
                id,
                &format!("unknown option `{}`; use model or thought_level", set.option),
            );
        };
        let fits = match option {
            SessionOption::Model => !set.value.trim().is_empty(),
            SessionOption::ThoughtLevel => self.efforts().any(|effort| effort.as_str() == set.value),
        };
        if !fits {
            return refused_option(id, &format!("`{}` is no value of {}", set.value, set.option));
        }
        Head::OptionSelected { id, option, value: set.value }
    }

    fn is_asking(&self, asked: u64) -> bool {
        let asking = self.turn.as_ref().is_some_and(|t| matches!(t.phase, Phase::Asking { .. }));
        asking && self.asked == asked
    }

    fn is_hooked(&self, asked: u64, hook: Hook) -> bool {
        let waits = match self.turn.as_ref().map(|t| &t.phase) {
            Some(Phase::Gate(_, Objectors::Waiting)) => hook == Hook::Stop,
            Some(Phase::Compacting(compacting)) => compacting.waiting && hook == Hook::PostCompact,
            _ => false,
        };
        waits && self.asked == asked
    }

    fn is_calling(&self, asked: u64) -> bool {
        let calling = self.turn.as_ref().is_some_and(|t| matches!(t.phase, Phase::Calling(_)));
        calling && self.asked == asked
    }

    pub(super) fn progress(&self, asked: u64, index: usize) -> Option<&Progress> {
        match self.turn.as_ref().map(|t| &t.phase) {
            Some(Phase::Calling(slots)) if self.asked == asked => slots.get(index).map(|s| &s.progress),
            _ => None,
        }
    }
}

fn refused_option(id: Id, what: &str) -> Head {
    refused(id, format!("session/set_config_option: {what}"))
}

fn admit_model(id: Id, params: &serde_json::Value) -> Head {
    match params::set_model(params) {
        Err(e) => refused(id, format!("session/set_model: {e}")),
        Ok(set) if set.model.trim().is_empty() => {
            refused(id, "session/set_model: modelId must not be empty".to_owned())
        }
        Ok(set) => Head::ModelSelected { id, model: set.model },
    }
}

fn refused(id: Id, message: String) -> Head {
    Head::LineRefused { id, code: code::INVALID_PARAMS, message }
}

/// The blocks of a recorded prompt or steer line.
pub(super) fn blocks_of(line: &[u8]) -> Vec<blocks::Block> {
    match crate::acp::frame::classify(line) {
        Frame::Request { params, .. } => blocks::decode(params.get("prompt")).unwrap_or_default(),
        _ => Vec::new(),
    }
}
