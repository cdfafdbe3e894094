//! A second fold, fed by durable records only. Every effect that is performed must be the next one that
//! this fold calls for: so nothing is done early, out of order, or for any other reason than the log.

use std::collections::VecDeque;

use waxlog_core::record::Record;
use waxlog_core::session::{Effect, Session};

use crate::violation::{Invariant, Violation};

/// The fold with what it calls for and was not done yet.
#[derive(Debug, Default)]
pub(super) struct Witness {
    session: Option<Session>,
    called_for: VecDeque<Effect>,
}

impl Witness {
    pub(super) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    pub(super) fn fold(&mut self, record: &Record) {
        match self.session.as_mut() {
            None => self.session = Session::open(record),
            Some(session) => session.fold(record),
        }
        self.called_for.extend(self.session.iter_mut().flat_map(Session::take_outbox));
    }

    pub(super) fn acts(&mut self, effect: &Effect) -> Result<(), Violation> {
        match self.called_for.pop_front() {
            Some(expected) if is_same(&expected, effect) => Ok(()),
            expected => {
                let detail = format!("done is {effect:.400?}, durable records call for {expected:.400?}");
                Err(Violation::new(Invariant::Durable, detail))
            }
        }
    }

    pub(super) fn forget(&mut self) {
        self.called_for.clear();
    }
}

fn is_same(a: &Effect, b: &Effect) -> bool {
    match (a, b) {
        (
            Effect::Ask { asked, first, keepalive, after_ms, path, body },
            Effect::Ask {
                asked: asked_b,
                first: first_b,
                keepalive: keepalive_b,
                after_ms: after_b,
                path: path_b,
                body: body_b,
            },
        ) => {
            let ours = (asked, first, keepalive, after_ms, path, body.to_vec());
            ours == (asked_b, first_b, keepalive_b, after_b, path_b, body_b.to_vec())
        }
        (Effect::Say(a), Effect::Say(b)) => a == b,
        (a, b) => format!("{a:?}") == format!("{b:?}"),
    }
}
