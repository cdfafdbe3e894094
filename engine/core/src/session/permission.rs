//! Whether a call may run: the client is asked, one call after the other and in their order, before any of a
//! round's calls starts.
//!
//! "In this session" holds until the session comes back with new servers: the same name may then stand for
//! another program.

use crate::acp::lines;
use crate::acp::permission::{question, question_id};
use crate::content::Part;
use crate::history::ToolResult;
use crate::record::{Head, PermissionAnswer, Record};

use super::state::{Leave, Phase, Progress, Session, Slot};
use super::Effect;

/// The result of a call that the user did not want.
pub(super) const REFUSED_TEXT: &str = "not run: the user refused this call";

impl Session {
    /// The next question, or `None` while one is open or none is left.
    pub(super) fn next_question(&self, slots: &[Slot]) -> Option<Record> {
        let index = slots.iter().position(|slot| slot.leave() == Some(Leave::Due))?;
        let said = self.said.since_decision();
        Some(Record::bare(Head::PermissionAsked { asked: self.asked, index, said }))
    }

    /// What stands between a new call of `name` and its start.
    pub(super) fn leave_for(&self, name: &str) -> Leave {
        match (self.opened.settings.ask_permission, self.permissions.get(name)) {
            (false, _) | (true, Some(true)) => Leave::Given,
            (true, Some(false)) => Leave::Refused,
            (true, None) => Leave::Due,
        }
    }

    pub(super) fn permission_asked(&mut self, index: usize) {
        self.said.settle();
        let asked = self.asked;
        let Some(slot) = self.slot(index) else { return };
        let Progress::Waiting { leave, arguments, .. } = &mut slot.progress else { return };
        *leave = Leave::Asked;
        let arguments = serde_json::Value::Object(arguments.clone());
        let (call, name) = (slot.id.clone(), slot.name.clone());
        let id = question_id(self.id(), asked, index);
        self.say(question(&id, self.id(), &call, &name, &arguments));
        self.outbox.push(Effect::AwaitPermission { asked, index });
    }

    pub(super) fn permission_answered(&mut self, asked: u64, index: usize, answer: &PermissionAnswer) {
        if !self.is_questioned(asked, index) {
            return;
        }
        self.outbox.push(Effect::PermissionSettled);
        let name = self.slot(index).map(|slot| slot.name.clone()).unwrap_or_default();
        match answer {
            PermissionAnswer::AllowOnce => self.allow(index),
            PermissionAnswer::RejectOnce => self.refuse(index, REFUSED_TEXT.to_owned()),
            PermissionAnswer::AllowAlways | PermissionAnswer::RejectAlways => {
                self.permissions.insert(name.clone(), *answer == PermissionAnswer::AllowAlways);
                self.settle_all_of(index, &name);
            }
            // The standard has a client say this when the turn was taken back.
            PermissionAnswer::Cancelled => self.cancelled(),
            PermissionAnswer::Unusable { text } => {
                self.outbox.push(Effect::Warn(format!(
                    "the client gave no usable answer to session/request_permission ({text}); the call is \
                     not run. For a client that cannot be asked, unset WAXLOG_ASK_PERMISSION"
                )));
                let text = format!("not run: the client could not be asked whether it may run ({text})");
                self.refuse(index, text);
            }
        }
        self.back_fill();
    }

    pub(super) fn permission_expired(&mut self, asked: u64, index: usize, after_secs: u64) {
        if !self.is_questioned(asked, index) {
            return;
        }
        self.outbox.push(Effect::PermissionSettled);
        let id = question_id(self.id(), asked, index);
        self.say(lines::cancel_request(&id));
        self.refuse(index, format!("not run: nobody said within {after_secs} s whether this call may run"));
        self.back_fill();
    }

    /// What was said of `name` holds for the call that was asked about and for all that were still to be.
    fn settle_all_of(&mut self, index: usize, name: &str) {
        let Some(Phase::Calling(slots)) = self.turn.as_ref().map(|t| &t.phase) else { return };
        let same =
            |at: usize, slot: &Slot| at == index || (slot.leave() == Some(Leave::Due) && slot.name == name);
        let same: Vec<usize> =
            slots.iter().enumerate().filter(|(at, slot)| same(*at, slot)).map(|(at, _)| at).collect();
        for at in same {
            match self.permissions.get(name) {
                Some(true) => self.allow(at),
                _ => self.refuse(at, REFUSED_TEXT.to_owned()),
            }
        }
    }

    fn allow(&mut self, index: usize) {
        if let Some(Progress::Waiting { leave, .. }) = self.slot(index).map(|slot| &mut slot.progress) {
            *leave = Leave::Given;
        }
    }

    fn refuse(&mut self, index: usize, text: String) {
        let Some(slot) = self.slot(index) else { return };
        let id = slot.id.clone();
        slot.progress = Progress::Done(refusal(&id, &text));
        self.say(lines::call_failed(self.id(), &id, &text));
    }

    /// Whether the client is being asked about call `index` of round `asked`.
    pub(super) fn is_questioned(&self, asked: u64, index: usize) -> bool {
        matches!(self.progress(asked, index), Some(Progress::Waiting { leave: Leave::Asked, .. }))
    }
}

/// The result of a call that may not run.
fn refusal(id: &str, text: &str) -> ToolResult {
    ToolResult { id: id.to_owned(), parts: vec![Part::Text(text.to_owned())], is_error: true }
}
