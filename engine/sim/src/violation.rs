//! What a run can be found guilty of.

use std::fmt;

/// The rules that hold in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// Effects follow durable records, in their order.
    Durable,
    /// Requests are what a provider takes: readable, each call with its one result.
    Requests,
    /// Token sums never fall and are those of the answered requests.
    Usage,
    /// What a client was told is queued gets to the model.
    Steers,
    /// A turn ends once nobody holds it open.
    Ends,
    /// One answer per request.
    Answers,
    /// The log folds again to the same decisions, bytes and lines.
    Replay,
    /// Recovery closes what a kill left open, once.
    Recovery,
    /// The log alone gives each request back, to the byte.
    Evidence,
}

impl Invariant {
    /// The rule in words.
    pub fn rule(self) -> &'static str {
        match self {
            Invariant::Durable => "nothing is acted on before its record is durable",
            Invariant::Requests => "every request can be read and has no call without a result",
            Invariant::Usage => "usage never falls and equals the answered requests",
            Invariant::Steers => "an accepted steer reaches the model",
            Invariant::Ends => "every turn ends",
            Invariant::Answers => "a request gets exactly one answer",
            Invariant::Replay => "the log replays without a difference",
            Invariant::Recovery => "recovery closes an open turn once and for all",
            Invariant::Evidence => "the evidence gives back each request's bytes",
        }
    }
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: Invariant,
    /// How it showed.
    pub detail: String,
}

impl Violation {
    /// `invariant` was broken: `detail`.
    pub fn new(invariant: Invariant, detail: impl Into<String>) -> Violation {
        Violation { invariant, detail: detail.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant.rule(), self.detail)
    }
}
