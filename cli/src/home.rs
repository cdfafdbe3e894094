//! Where logs are found: the home with its slots, a log by name or path, the log of a session.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use structopt::StructOpt;
use waxlog_agent::config::{read_home, Environment};
use waxlog_agent::slot::agents_folder;
use waxlog_core::connection::STREAM_PREFIX;
use waxlog_store::{OpenError, Reader, StreamInfo};

use crate::failure::Failure;

// The option that every reading command has. (A doc comment here would become the help of the commands
// that take it in.)
#[derive(StructOpt)]
pub(crate) struct HomeOption {
    /// The folder of all logs [default: $WAXLOG_HOME, else waxlog in the user's state folder]
    #[structopt(long, value_name = "DIR")]
    home: Option<PathBuf>,
}

/// A log that is open for reading.
pub(crate) struct OpenLog {
    /// Its folder.
    pub(crate) dir: PathBuf,
    /// What reads it.
    pub(crate) reader: Reader,
}

impl OpenLog {
    /// Opens the log in `dir`. A damaged one opens as far as it is sound, with a warning.
    pub(crate) fn open(dir: &Path) -> Result<OpenLog, OpenError> {
        let reader = Reader::open(dir)?;
        if let Some(damage) = reader.damage() {
            eprintln!("waxlog: {damage}");
        }
        Ok(OpenLog { dir: dir.to_path_buf(), reader })
    }

    /// The streams that are sessions, in the order in which they began.
    pub(crate) fn sessions(&self) -> Result<Vec<StreamInfo>, Failure> {
        let mut streams = self.reader.streams()?;
        streams.retain(|stream| !stream.stream.starts_with(STREAM_PREFIX));
        streams.sort_by_key(|stream| stream.first_global);
        Ok(streams)
    }

    /// Fails, once everything readable was shown, if something was not.
    pub(crate) fn expect_whole(&self) -> Result<(), Failure> {
        match self.reader.damage() {
            None => Ok(()),
            Some(_) => Err(Failure::Check(format!(
                "the log {} is damaged, what is shown of it is not all; run `waxlog log verify`",
                self.dir.display()
            ))),
        }
    }
}

impl HomeOption {
    /// The home in a certain folder.
    pub(crate) fn at(home: &Path) -> HomeOption {
        HomeOption { home: Some(home.to_path_buf()) }
    }

    /// The home's folder.
    pub(crate) fn folder(&self) -> Result<PathBuf, Failure> {
        let home = match &self.home {
            Some(home) => home.clone(),
            None => {
                read_home(&Environment::of_process()).map_err(|error| Failure::SetUp(error.to_string()))?
            }
        };
        std::path::absolute(&home)
            .map_err(|error| Failure::io(format!("cannot use {}", home.display()), &error))
    }

    /// The folders of all logs, by slot. A home that was never used has none, but one that was typed
    /// must be there.
    pub(crate) fn logs(&self) -> Result<Vec<PathBuf>, Failure> {
        let home = self.folder()?;
        if self.home.is_some() && !home.is_dir() {
            return Err(Failure::Check(format!("there is no home {}; check the path", home.display())));
        }
        let agents = agents_folder(&home);
        let unreadable = |error: &io::Error| Failure::io(format!("cannot list {}", agents.display()), error);
        let entries = match fs::read_dir(&agents) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(&error)),
        };
        let mut slots = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| unreadable(&error))?.file_name();
            // Other names are what `log repair` and `log import` leave beside a log.
            if let Some(name) = name.to_str().filter(|name| is_slot(name)) {
                slots.push((name.parse::<u32>().unwrap_or(u32::MAX), agents.join(name)));
            }
        }
        slots.sort();
        Ok(slots.into_iter().map(|(_, dir)| dir).collect())
    }

    /// Opens the logs one after the other, as they are asked for: whoever reads a log keeps it from a new
    /// agent. A slot in which nothing was ever written is passed over.
    pub(crate) fn open_logs(&self) -> Result<impl Iterator<Item = Result<OpenLog, Failure>>, Failure> {
        let opened = self.logs()?.into_iter().map(|dir| OpenLog::open(&dir));
        let used = opened.filter(|log| !matches!(log, Err(OpenError::NotALog { .. })));
        Ok(used.map(|log| log.map_err(Failure::from)))
    }

    /// The log that was named: a folder, or a slot of the home.
    pub(crate) fn log(&self, typed: &Path) -> Result<PathBuf, Failure> {
        if typed.is_dir() {
            return Ok(typed.to_path_buf());
        }
        let dir = match typed.to_str().filter(|typed| is_slot(typed)) {
            Some(slot) => Some(agents_folder(&self.folder()?).join(slot)),
            None => None,
        };
        dir.filter(|dir| dir.is_dir()).ok_or_else(|| {
            let typed = typed.display();
            Failure::Check(format!(
                "there is no log {typed}: give a log's folder, or the number or name of a slot"
            ))
        })
    }

    /// The log that was named, or else the home's only one.
    pub(crate) fn log_or_only(&self, typed: Option<&Path>) -> Result<PathBuf, Failure> {
        if let Some(typed) = typed {
            return self.log(typed);
        }
        let logs = self.logs()?;
        match logs.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(Failure::Check(format!("there is no log below {}", self.folder()?.display()))),
            several => Err(Failure::Usage(format!(
                "waxlog: {} has {} logs; say which: a slot's number, or a folder",
                self.folder()?.display(),
                several.len()
            ))),
        }
    }

    /// The log that holds `session`.
    pub(crate) fn log_of_session(&self, session: &str) -> Result<OpenLog, Failure> {
        for log in self.open_logs()? {
            let log = log?;
            if log.reader.streams()?.iter().any(|stream| stream.stream == session) {
                return Ok(log);
            }
        }
        let home = self.folder()?;
        Err(Failure::Check(format!(
            "there is no session {session:?} in the logs below {}; `waxlog log ls` lists them",
            home.display()
        )))
    }
}

/// Whether a folder's name is that of a slot: a number, or a name that a harness keeps for an agent.
fn is_slot(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
