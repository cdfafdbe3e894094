//! The loop: an occurrence is appended, folded, flushed and acted on, in this order and one at a time.

use std::time::Duration;

use async_channel::{Receiver, Sender};
use async_std::future::timeout;
use waxlog_harness_core::effect::Effect;
use waxlog_harness_core::record::Happened;
use waxlog_harness_core::Machine;
use waxlog_store::{Log, LogError, OpenError};

use crate::config::Config;
use crate::effects::Hands;
use crate::journal::{self, now_ms, Journal, JournalError};

/// How many occurrences wait for the loop. Whoever has one more waits too.
const OCCURRENCES_MAX: usize = 1_024;
/// How many of them share a flush.
const BATCH_MAX: usize = 64;

/// Why the harness ended before it should have.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The log cannot be opened.
    #[error("log: {0}; WAXLOG_HOME says where logs lie")]
    Open(#[from] OpenError),
    /// The log cannot be read.
    #[error("log: {0}")]
    Read(#[from] JournalError),
    /// The log cannot be written: nothing may happen any more.
    #[error("log: {0}")]
    Log(#[from] LogError),
    /// The system does not give what is needed.
    #[error("cannot start: {0}")]
    Io(#[from] std::io::Error),
    /// No HTTP client can be made.
    #[error("cannot start: {0}")]
    Http(#[from] waxlog_http::SetupError),
}

/// Something that happened, on its way to the loop.
pub(crate) struct Occurrence {
    pub(crate) happened: Happened,
    pub(crate) raw: Vec<u8>,
}

impl Occurrence {
    pub(crate) fn bare(happened: Happened) -> Self {
        Self { happened, raw: Vec::new() }
    }
}

/// Runs the harness until it is told to end. Gives its exit code.
pub async fn run(config: Config) -> Result<i32, RunError> {
    let log = Log::open(&config.log_dir(), config.log_options())?;
    let mut machine = Machine::new();
    journal::read(&log.reader(), |record| machine.fold(record))?;
    machine.take_effects();
    let (queue, occurrences) = async_channel::bounded(OCCURRENCES_MAX);
    watch_signals(queue.clone())?;
    let started =
        Happened::ProcessStarted { settings: Box::new(config.settings.clone()), pid: std::process::id() };
    let hands = Hands::new(config, queue)?;
    let driver = Driver { machine, journal: Journal::new(log), hands, occurrences };
    driver.run(Occurrence::bare(started)).await
}

struct Driver {
    machine: Machine,
    journal: Journal,
    hands: Hands,
    occurrences: Receiver<Occurrence>,
}

impl Driver {
    async fn run(mut self, first: Occurrence) -> Result<i32, RunError> {
        let mut batch = vec![first];
        loop {
            for occurrence in batch.drain(..) {
                self.take(occurrence)?;
            }
            if let Some(code) = self.act().await? {
                self.hands.finish().await;
                self.journal.sync().await?;
                return Ok(code);
            }
            batch.push(self.next().await);
            while batch.len() < BATCH_MAX {
                let Ok(occurrence) = self.occurrences.try_recv() else { break };
                batch.push(occurrence);
            }
        }
    }

    /// Appends what happened, then folds it.
    fn take(&mut self, occurrence: Occurrence) -> Result<(), RunError> {
        let Occurrence { happened, raw } = occurrence;
        let Some(record) = self.machine.admit(happened, raw, now_ms(), fastrand::u64(..)) else {
            return Ok(());
        };
        self.journal.append(&record)?;
        self.machine.fold(&record);
        Ok(())
    }

    /// Does what follows, once what caused it is flushed. Gives the exit code if that is to end.
    async fn act(&mut self) -> Result<Option<i32>, RunError> {
        let effects = self.machine.take_effects();
        if effects.is_empty() {
            return Ok(None);
        }
        self.journal.flush().await?;
        for effect in effects {
            match effect {
                Effect::Exit { code } => return Ok(Some(code)),
                effect => self.hands.act(effect),
            }
        }
        Ok(None)
    }

    /// The next thing that happens, be it that time has passed.
    async fn next(&self) -> Occurrence {
        let passed = || Occurrence::bare(Happened::TimePassed);
        let Some(due_ms) = self.machine.wake_at_ms() else {
            return self.occurrences.recv().await.unwrap_or_else(|_| passed());
        };
        let wait = Duration::from_millis(due_ms.saturating_sub(now_ms()));
        match timeout(wait, self.occurrences.recv()).await {
            Ok(Ok(occurrence)) => occurrence,
            _ => passed(),
        }
    }
}

fn watch_signals(queue: Sender<Occurrence>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
    let watcher = move || {
        for signal in signals.forever() {
            let by = if signal == SIGTERM { "SIGTERM" } else { "SIGINT" }.to_owned();
            if queue.send_blocking(Occurrence::bare(Happened::StopAsked { by })).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watcher).map(drop)
}
