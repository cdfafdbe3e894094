//! Reading a log: its streams, one stream or all records in order, every hash checked.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::damage::{Damage, Problem, ProblemKind};
use crate::error::{IoContext as _, LogError, OpenError};
use crate::layout;
use crate::lock::Lock;
use crate::options::Options;
use crate::record::{Hash, Record, StreamInfo};
use crate::socket::{Client, Server};
use crate::value::Value;
use crate::view::{self, Query, View};

/// How long a holder that has just taken the lock gets to open its segment and serve readers.
const HOLDER_WAIT: Duration = Duration::from_secs(5);
const HOLDER_POLL: Duration = Duration::from_millis(10);

/// Reads a log. Clones share what is open.
#[derive(Clone)]
pub struct Reader {
    source: Arc<Source>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("damage", &self.damage()).finish_non_exhaustive()
    }
}

enum Source {
    /// Beside the writer in its process.
    Beside(Arc<View>),
    /// The log is ours as long as we read; other readers are served meanwhile.
    Own { view: Arc<View>, damage: Option<Damage>, server: Option<Server>, _lock: Lock },
    /// A live process holds the log and answers.
    Remote { client: Client, damage: Option<Damage> },
}

impl Reader {
    /// Opens a log for reading. One that a live process holds is read through that process. A
    /// damaged one opens as far as it is sound: see [`Reader::damage`].
    pub fn open(dir: &Path) -> Result<Reader, OpenError> {
        let deadline = Instant::now() + HOLDER_WAIT;
        loop {
            let locked = match open_own(dir) {
                Err(locked @ OpenError::Locked { .. }) => locked,
                other => return other,
            };
            if let Ok((client, damage)) = Client::connect(dir) {
                return Ok(Reader { source: Arc::new(Source::Remote { client, damage }) });
            }
            if Instant::now() >= deadline {
                return Err(locked);
            }
            thread::sleep(HOLDER_POLL);
        }
    }

    pub(crate) fn beside(view: Arc<View>) -> Reader {
        Reader { source: Arc::new(Source::Beside(view)) }
    }

    /// What the log has lost, if anything.
    pub fn damage(&self) -> Option<&Damage> {
        match &*self.source {
            Source::Beside(_) => None,
            Source::Own { damage, .. } | Source::Remote { damage, .. } => damage.as_ref(),
        }
    }

    /// Whether a live process has the log open for writing: what looks unfinished may go on.
    pub fn has_writer(&self) -> Result<bool, LogError> {
        match &*self.source {
            Source::Beside(_) => Ok(true),
            Source::Own { .. } => Ok(false),
            Source::Remote { client, .. } => client.holder_writes(),
        }
    }

    /// All streams, in the order of their names. Reads no bodies.
    pub fn streams(&self) -> Result<Vec<StreamInfo>, LogError> {
        match &*self.source {
            Source::Beside(view) | Source::Own { view, .. } => view.streams(),
            Source::Remote { client, .. } => client.streams(),
        }
    }

    /// The records of one stream, in order. A stream that does not exist has none.
    pub fn stream(&self, stream: &str) -> Result<Records, LogError> {
        Ok(self.records(Query::Stream { stream: stream.to_owned(), from_sequence: 1 }))
    }

    /// All records from the global number `from_global` on, in order.
    pub fn all(&self, from_global: u64) -> Result<Records, LogError> {
        Ok(self.records(Query::All { from_global: from_global.max(1) }))
    }

    fn records(&self, query: Query) -> Records {
        Records { reader: self.clone(), query, page: VecDeque::new(), last: None, is_done: false }
    }

    fn page(&self, query: &Query) -> Result<Vec<Vec<u8>>, LogError> {
        match &*self.source {
            Source::Beside(view) | Source::Own { view, .. } => view.page(query),
            Source::Remote { client, .. } => client.page(query),
        }
    }
}

fn open_own(dir: &Path) -> Result<Reader, OpenError> {
    layout::expect_log(dir)?;
    let lock = Lock::take(dir)?;
    let layout = layout::inspect(dir)?;
    let outlook = view::open(&layout, Options::default().cache_bytes)?;
    let view = Arc::new(outlook.view);
    let server =
        Server::start(Arc::clone(&view), outlook.damage.clone(), false).context("serve readers of", dir)?;
    let source = Source::Own { view, damage: outlook.damage, server: Some(server), _lock: lock };
    Ok(Reader { source: Arc::new(source) })
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Source::Own { view, server, .. } = self {
            *server = None;
            view.close();
        }
    }
}

/// Records one after the other, read in pages. After an error there are no more.
#[derive(Debug)]
pub struct Records {
    reader: Reader,
    query: Query,
    page: VecDeque<Vec<u8>>,
    /// The hash of the record before, while that is known.
    last: Option<Hash>,
    is_done: bool,
}

impl Iterator for Records {
    type Item = Result<Record, LogError>;

    fn next(&mut self) -> Option<Result<Record, LogError>> {
        if self.is_done {
            return None;
        }
        let next = self.next_value().and_then(|value| value.map(|value| self.checked(&value)).transpose());
        self.is_done = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

impl Records {
    fn next_value(&mut self) -> Result<Option<Vec<u8>>, LogError> {
        if self.page.is_empty() {
            self.page = self.reader.page(&self.query)?.into();
        }
        Ok(self.page.pop_front())
    }

    /// The record, if it is the one that comes next and its body is the one its frame names.
    fn checked(&mut self, bytes: &[u8]) -> Result<Record, LogError> {
        let (expected, what) = match &self.query {
            Query::All { from_global } => (*from_global, "record"),
            Query::Stream { from_sequence, .. } => (*from_sequence, "sequence"),
        };
        let record = Value::parse_whole(bytes).and_then(Value::into_record).map_err(|found| {
            self.problem(ProblemKind::Changed, expected, "a sound record".to_owned(), found)
        })?;
        let found = match &self.query {
            Query::All { .. } => record.position.global,
            Query::Stream { .. } => record.position.sequence,
        };
        if found != expected {
            let expected_text = format!("{what} {expected}");
            return Err(self.problem(
                ProblemKind::Missing,
                expected,
                expected_text,
                format!("{what} {found}"),
            ));
        }
        match &mut self.query {
            Query::All { from_global } => {
                if let Some(last) = self.last.filter(|last| *last != record.previous) {
                    let expected_text = format!("a frame that follows {last}");
                    let found = format!("one that follows {}", record.previous);
                    return Err(self.problem(ProblemKind::Changed, expected, expected_text, found));
                }
                self.last = Some(record.hash);
                *from_global += 1;
            }
            Query::Stream { from_sequence, .. } => *from_sequence += 1,
        }
        Ok(record)
    }

    fn problem(&self, kind: ProblemKind, number: u64, expected: String, found: String) -> LogError {
        let place = "the log".to_owned();
        let problem = match &self.query {
            Query::All { .. } => Problem::new(kind, &place, Some(number), expected, found),
            Query::Stream { stream, .. } => {
                Problem::new(kind, &place, None, expected, found).in_stream(stream)
            }
        };
        LogError::Damaged(Box::new(problem))
    }
}
