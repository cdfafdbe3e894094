//! The model name `auto` with a relay mesh behind it: who is asked, and the way back when the mesh fails.

use crate::acp::code;
use crate::dialect::Answer;
use crate::mesh::{is_call_markup, is_failure, AUTO, MESH};
use crate::record::{Failure, Head, Outcome, Record};

use super::state::{Compaction, Phase, Purpose, Session, Turn};
use super::Effect;

/// Whether the mesh stands in for the turn's model. It is found out anew for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StandIn {
    /// To be found out, if it matters.
    Unknown,
    /// Being found out.
    Sought,
    /// The mesh is asked.
    Mesh,
    /// The model itself is.
    Nobody,
}

impl Turn {
    /// The model that a request names.
    pub(super) fn asked_model(&self) -> &str {
        match self.stand_in {
            StandIn::Mesh => MESH,
            StandIn::Unknown | StandIn::Sought | StandIn::Nobody => &self.model,
        }
    }
}

impl Session {
    /// The decision to look for the mesh before the next request, if it matters and is not known.
    pub(super) fn seek_mesh(&self, turn: &Turn) -> Option<Record> {
        let matters = self.opened.settings.prefer_mesh_for_auto && turn.model == AUTO;
        let head = Head::MeshSought { asked: self.asked + 1 };
        (matters && turn.stand_in == StandIn::Unknown).then(|| Record::bare(head))
    }

    pub(super) fn mesh_sought(&mut self, asked: u64) {
        self.stand_in(StandIn::Sought);
        self.outbox.push(Effect::SeekMesh { asked });
    }

    pub(super) fn mesh_answered(&mut self, available: bool) {
        self.stand_in(if available { StandIn::Mesh } else { StandIn::Nobody });
    }

    /// The next request looks for the mesh anew.
    pub(super) fn stand_in(&mut self, stand_in: StandIn) {
        if let Some(turn) = self.turn.as_mut() {
            turn.stand_in = stand_in;
        }
    }

    /// Whether the mesh is being looked for under the number `asked`.
    pub(super) fn is_seeking(&self, asked: u64) -> bool {
        let seeks = self.turn.as_ref().is_some_and(|turn| turn.stand_in == StandIn::Sought);
        seeks && self.asked + 1 == asked
    }

    /// Takes an attempt that the mesh failed at back: the same request goes to the model itself, once. With
    /// the mesh as the model that was chosen, that is the end of it. False if it was no failure of the mesh.
    pub(super) fn mesh_failed_at(&mut self, failure: &Failure, body: &str) -> bool {
        let Failure::Status { status, reason } = failure else { return false };
        let Some(turn) = self.turn.as_ref() else { return false };
        let has_mesh = self.opened.settings.provider.spec().has_mesh;
        if !has_mesh || turn.asked_model() != MESH || !is_failure(*status, body) {
            return false;
        }
        if turn.stand_in == StandIn::Mesh {
            self.leave_mesh();
            return true;
        }
        let message = format!("llm: ({}) {status} {reason}: {body}", turn.model);
        let outcome = Outcome::Failed { code: code::FAILED, message };
        match turn.phase {
            Phase::Asking { purpose: Purpose::Summary, .. } => self.handoff_skipped(&outcome),
            _ => self.set_phase(Phase::Ending(outcome)),
        }
        true
    }

    /// Whether the mesh's answer is a call written as text; then it is taken back like a failure. It was
    /// billed, and stays counted.
    pub(super) fn mesh_garbled(&mut self, answer: &Answer) -> bool {
        let stands_in = self.turn.as_ref().is_some_and(|turn| turn.stand_in == StandIn::Mesh);
        let garbled =
            stands_in && self.tools.is_some() && answer.calls.is_empty() && is_call_markup(&answer.text);
        if garbled {
            self.leave_mesh();
        }
        garbled
    }

    fn leave_mesh(&mut self) {
        self.outbox.push(Effect::MeshFailed);
        self.outbox
            .push(Effect::Warn("the mesh failed at a request; the model `auto` is asked itself".into()));
        self.stand_in(StandIn::Nobody);
        self.ask_again();
    }

    /// The request under way is made anew, for another model or wire.
    pub(super) fn ask_again(&mut self) {
        let Some(turn) = self.turn.as_mut() else { return };
        turn.phase = match turn.phase {
            // The round is asked again, so it must not count twice, nor may the history change in between.
            Phase::Asking { purpose: Purpose::Round, .. } => {
                turn.round = turn.round.saturating_sub(1);
                Phase::Boundary(Compaction::Performed)
            }
            _ => Phase::Boundary(Compaction::Due),
        };
    }
}
