//! `waxlog usage`: what turns cost.

use std::io::Write;

use serde::Serialize;
use structopt::StructOpt;
use waxlog_core::ledger::{Ledger, TurnCost};
use waxlog_core::usage::Tally;

use crate::failure::Failure;
use crate::home::{HomeOption, OpenLog};
use crate::session::records;
use crate::table::{known, Table};

/// A killed turn counts with the answers that it got.
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog usage --json | jq 'map(.output) | add'")]
pub(crate) struct Usage {
    #[structopt(flatten)]
    home: HomeOption,
    /// Prints an array with one object a turn
    #[structopt(long)]
    json: bool,
}

/// One turn as other tools read it. Unknown numbers are null, which differs from 0.
#[derive(Debug, Serialize)]
pub(crate) struct TurnUsage {
    pub(crate) session: String,
    pub(crate) turn: String,
    /// A stop reason, `error`, `interrupted`, or `open` while it runs.
    pub(crate) stop: String,
    pub(crate) rounds: u64,
    pub(crate) answered: u64,
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) total: Option<u64>,
    pub(crate) model: Option<String>,
}

impl Usage {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut turns = Vec::new();
        let mut whole = Ok(());
        for log in self.home.open_logs()? {
            let log = log?;
            turns.extend(turns_of(&log)?);
            whole = whole.and(log.expect_whole());
        }
        if self.json {
            serde_json::to_writer(&mut *out, &turns).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            table(&turns).write(out)?;
        }
        whole
    }
}

/// The turns of a log, session by session.
pub(crate) fn turns_of(log: &OpenLog) -> Result<Vec<TurnUsage>, Failure> {
    // A turn without an end still runs only while a process writes the log: nobody else could end it.
    let without_end = if log.reader.has_writer()? { "open" } else { "interrupted" };
    let mut turns = Vec::new();
    for session in log.sessions()? {
        let mut ledger = Ledger::default();
        for record in records(log, &session.stream)? {
            record?.known()?.into_iter().for_each(|record| ledger.fold(record));
        }
        let costs = ledger.turns().iter();
        turns.extend(costs.map(|cost| turn_usage(&session.stream, cost, without_end)));
    }
    Ok(turns)
}

fn turn_usage(session: &str, cost: &TurnCost, without_end: &str) -> TurnUsage {
    TurnUsage {
        session: session.to_owned(),
        turn: cost.turn.clone(),
        stop: cost.stop.clone().unwrap_or_else(|| without_end.to_owned()),
        rounds: cost.rounds,
        answered: cost.answered,
        input: cost.tally.input,
        output: cost.tally.output,
        cached: cost.tally.cached,
        total: cost.tally.total.exact(),
        model: cost.model.clone(),
    }
}

/// Turns by session, with the sums of each.
pub(crate) fn table(turns: &[TurnUsage]) -> Table {
    let headings = [
        "session",
        "turn",
        "stop",
        "#rounds",
        "#answered",
        "#input",
        "#output",
        "#cached",
        "#total",
        "model",
    ];
    let mut table = Table::new(&headings);
    for session in turns.chunk_by(|a, b| a.session == b.session) {
        session.iter().for_each(|turn| table.row(cells(turn)));
        if let [first, _, ..] = session {
            table.row(cells(&sum(&first.session, session)));
        }
    }
    table
}

fn cells(turn: &TurnUsage) -> [String; 10] {
    [
        turn.session.clone(),
        turn.turn.clone(),
        turn.stop.clone(),
        turn.rounds.to_string(),
        turn.answered.to_string(),
        known(turn.input),
        known(turn.output),
        known(turn.cached),
        known(turn.total),
        turn.model.clone().unwrap_or_default(),
    ]
}

/// The sum over a session's turns, by the rules of the sums within a turn.
fn sum(session: &str, turns: &[TurnUsage]) -> TurnUsage {
    let mut tally = Tally::default();
    for turn in turns {
        let (input, output, cached, total) = (turn.input, turn.output, turn.cached, turn.total);
        tally.add(&waxlog_core::usage::Usage { input, output, cached, total });
    }
    TurnUsage {
        session: session.to_owned(),
        turn: "all turns".to_owned(),
        stop: String::new(),
        rounds: turns.iter().map(|turn| turn.rounds).sum(),
        answered: turns.iter().map(|turn| turn.answered).sum(),
        input: tally.input,
        output: tally.output,
        cached: tally.cached,
        total: tally.total.exact(),
        model: None,
    }
}
