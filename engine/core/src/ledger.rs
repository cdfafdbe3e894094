//! What turns cost: a fold that reads only the token counts, for tables over whole logs.
//!
//! It agrees with [`crate::session`] by construction (the same decoder, the same sums) and needs no history.

use serde::Serialize;

use crate::dialect::{self, Dialect};
use crate::record::{Head, Outcome, Record};
use crate::usage::Tally;

/// One turn of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TurnCost {
    /// The turn's id.
    pub turn: String,
    /// How it ended: a stop reason, `error` or `interrupted`; `None` without an end in the log.
    pub stop: Option<String>,
    /// Requests asked.
    pub rounds: u64,
    /// Requests answered with a good status.
    pub answered: u64,
    /// The tokens of the answered requests.
    pub tally: Tally,
    /// The model of the last request.
    pub model: Option<String>,
}

/// The turns of one session, folded record by record.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The wire format of the last request.
    dialect: Option<Dialect>,
    turns: Vec<TurnCost>,
}

impl Ledger {
    /// The turns so far, oldest first.
    pub fn turns(&self) -> &[TurnCost] {
        &self.turns
    }

    /// Takes one record in.
    pub fn fold(&mut self, record: &Record) {
        match &record.head {
            Head::TurnPrompted { turn, .. } => self.turns.push(TurnCost {
                turn: turn.clone(),
                stop: None,
                rounds: 0,
                answered: 0,
                tally: Tally::default(),
                model: None,
            }),
            head => {
                if let Head::RoundAsked { dialect, .. } | Head::SummaryAsked { dialect, .. } = head {
                    self.dialect = Some(*dialect);
                }
                if let Some(turn) = self.turns.last_mut() {
                    count(turn, self.dialect, head, &record.raw);
                }
            }
        }
    }
}

fn count(turn: &mut TurnCost, dialect: Option<Dialect>, head: &Head, raw: &[u8]) {
    match head {
        Head::RoundAsked { model, .. } => {
            turn.rounds += 1;
            turn.model = Some(model.clone());
        }
        Head::RoundAnswered { .. } => {
            turn.answered += 1;
            turn.tally.add(&dialect.map(|d| dialect::decode(d, raw).usage).unwrap_or_default());
        }
        Head::TurnEnded { outcome, .. } => {
            turn.stop = Some(match outcome {
                Outcome::Stopped(stop) => stop.as_str().to_owned(),
                Outcome::Failed { .. } => "error".to_owned(),
            });
        }
        Head::TurnInterrupted { .. } => turn.stop = Some("interrupted".to_owned()),
        _ => {}
    }
}
