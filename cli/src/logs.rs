//! `waxlog log`: reading, checking and moving logs.

mod check;
mod list;
mod round;
mod show;
mod summary;
mod transfer;

use std::io::Write;
use std::path::PathBuf;

use structopt::StructOpt;

pub(crate) use self::round::request_bytes;
use crate::failure::Failure;
use crate::home::HomeOption;

/// What can be done with logs.
#[derive(StructOpt)]
#[structopt(after_help = "EXAMPLE:\n    waxlog log ls")]
pub(crate) enum Log {
    /// Lists the sessions of all logs.
    #[structopt(after_help = "EXAMPLE:\n    waxlog log ls --json | jq -r '.[].session'")]
    Ls {
        #[structopt(flatten)]
        home: HomeOption,
        /// Prints an array with one object a session
        #[structopt(long)]
        json: bool,
    },
    /// Shows the records of a session, or one of its rounds.
    #[structopt(
        after_help = "EXAMPLE:\n    waxlog log show ses_0123456789abcdef --round 3 --request | jq .messages"
    )]
    Show {
        #[structopt(flatten)]
        home: HomeOption,
        /// The session's id
        session: String,
        /// Shows this round, counted from 1 over the session: request, answer and calls
        #[structopt(long, value_name = "N")]
        round: Option<u64>,
        /// Prints the exact bytes of the round's request and nothing else
        #[structopt(long, requires = "round")]
        request: bool,
    },
    /// Checks logs and names the first record that is missing, changed or extra.
    #[structopt(after_help = "EXAMPLE:\n    waxlog log verify && echo sound")]
    Verify {
        #[structopt(flatten)]
        home: HomeOption,
        /// Folders or slot numbers [default: every log of the home]
        #[structopt(name = "LOG")]
        logs: Vec<PathBuf>,
    },
    /// Builds a sound log from what a damaged one still has and keeps the damaged folder aside.
    #[structopt(after_help = "EXAMPLE:\n    waxlog log repair 0")]
    Repair {
        #[structopt(flatten)]
        home: HomeOption,
        /// The log's folder or slot number
        #[structopt(name = "LOG")]
        log: PathBuf,
    },
    /// Prints a log as JSON, a record a line, from which every byte comes back.
    #[structopt(after_help = "EXAMPLE:\n    waxlog log export 0 > log.jsonl")]
    Export {
        #[structopt(flatten)]
        home: HomeOption,
        /// Exports this session only
        #[structopt(long, value_name = "SESSION")]
        session: Option<String>,
        /// The log's folder or slot number [default: the session's log, or the home's only one]
        #[structopt(name = "LOG")]
        log: Option<PathBuf>,
    },
    /// Makes a new log from an export.
    #[structopt(after_help = "EXAMPLE:\n    waxlog log import log.jsonl copy && waxlog log verify copy")]
    Import {
        /// The export
        #[structopt(name = "FILE")]
        file: PathBuf,
        /// The new log's folder, which must not be there yet
        #[structopt(name = "DIR")]
        dir: PathBuf,
    },
}

impl Log {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        match self {
            Log::Ls { home, json } => list::list(home, *json, out),
            Log::Show { home, session, round: None, .. } => show::show(home, session, out),
            Log::Show { home, session, round: Some(number), request: true } => {
                round::request(home, session, *number, out)
            }
            Log::Show { home, session, round: Some(number), request: false } => {
                round::show(home, session, *number, out)
            }
            Log::Verify { home, logs } => check::verify(home, logs, out),
            Log::Repair { home, log } => check::repair(home, log, out),
            Log::Export { home, session, log } => {
                transfer::export(home, session.as_deref(), log.as_deref(), out)
            }
            Log::Import { file, dir } => transfer::import(file, dir, out),
        }
    }
}
