//! The one writer of a log: numbers, chains and queues records, and waits for their flush.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::{IoContext as _, LogError, OpenError};
use crate::files;
use crate::flusher::{self, Active, Flusher};
use crate::frame::{frame_hash, Frame};
use crate::layout;
use crate::lock::Lock;
use crate::options::{Options, Stats};
use crate::reader::Reader;
use crate::record::{Hash, NewRecord, Position};
use crate::socket::Server;
use crate::tree::Entry;
use crate::value::Encoder;
use crate::view::{self, lock, View};

/// Queued records are flushed without being asked for once they take this much memory.
const QUEUE_FLUSH_BYTES: usize = 8 << 20;

/// The one writer of a log. Clones share it; the last one to go flushes and gives the lock back.
#[derive(Clone)]
pub struct Log {
    handle: Arc<Handle>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("dir", &self.dir()).finish_non_exhaustive()
    }
}

struct Handle {
    shared: Arc<Shared>,
    flusher: Option<JoinHandle<()>>,
    server: Option<Server>,
    // The last to be dropped: until the stores are closed nobody else may open them.
    _lock: Lock,
}

/// What the appenders and the flusher share.
pub(crate) struct Shared {
    pub(crate) view: Arc<View>,
    pub(crate) state: Mutex<State>,
    pub(crate) wake: Condvar,
}

/// The queue, and the end of the chain over what is queued.
pub(crate) struct State {
    pub(crate) queue: Vec<Queued>,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) stopped: Option<Arc<str>>,
    pub(crate) is_closing: bool,
    pub(crate) is_busy: bool,
    pub(crate) stats: Stats,
    encoder: Encoder,
    queue_bytes: usize,
    next_global: u64,
    last: Hash,
    sequences: BTreeMap<String, u64>,
}

/// A record on its way to the flusher.
pub(crate) struct Queued {
    pub(crate) entry: Entry,
    pub(crate) hash: Hash,
    pub(crate) time_ms: u64,
}

/// Somebody who waits for a flush.
pub(crate) struct Waiter {
    pub(crate) wants_fsync: bool,
    pub(crate) done: async_channel::Sender<Result<(), LogError>>,
}

impl State {
    /// Whether the flusher has something to do.
    pub(crate) fn is_due(&self) -> bool {
        !self.waiters.is_empty() || self.queue_bytes >= QUEUE_FLUSH_BYTES
    }

    /// Takes the queue for one flush.
    pub(crate) fn take_queue(&mut self) -> Vec<Queued> {
        self.queue_bytes = 0;
        std::mem::take(&mut self.queue)
    }
}

impl Log {
    /// Opens the log in `dir`, or makes a new one. The last segment is walked once. A log that
    /// another process holds, that a newer version wrote or that is damaged is an error, at once.
    pub fn open(dir: &Path, options: Options) -> Result<Log, OpenError> {
        files::create_private_dir(dir).context("create", dir)?;
        let lock = Lock::take(dir)?;
        let mut layout = layout::inspect(dir)?;
        if layout.is_new {
            flusher::make_new(dir, options.cache_bytes)?;
            layout = layout::inspect(dir)?;
        }
        flusher::finish_roll(&mut layout)?;
        let outlook = view::open(&layout, options.cache_bytes)?;
        if let Some(damage) = outlook.damage {
            return Err(OpenError::Damaged(Box::new(damage)));
        }
        let Some(tail) = outlook.tail else {
            return Err(OpenError::NotALog { path: dir.to_path_buf() });
        };
        let view = Arc::new(outlook.view);
        let mut active = Active::resume(&layout, &view, &tail)?;
        let absorbed_records = active.absorb(&tail)?;
        let state = State {
            queue: Vec::new(),
            waiters: Vec::new(),
            stopped: None,
            is_closing: false,
            is_busy: false,
            stats: Stats { absorbed_records, ..Stats::default() },
            encoder: Encoder::new(),
            queue_bytes: 0,
            next_global: tail.head.first + tail.count,
            last: tail.last,
            sequences: view.last_sequences()?,
        };
        let shared = Arc::new(Shared { view, state: Mutex::new(state), wake: Condvar::new() });
        let flusher = Flusher::new(Arc::clone(&shared), active, options);
        let thread = thread::Builder::new()
            .name("waxlog-flusher".to_owned())
            .spawn(move || flusher.run())
            .context("start the flusher of", dir)?;
        let mut handle = Handle { shared, flusher: Some(thread), server: None, _lock: lock };
        handle.server = Some(
            Server::start(Arc::clone(&handle.shared.view), None, true).context("serve readers of", dir)?,
        );
        Ok(Log { handle: Arc::new(handle) })
    }

    /// Queues the records, in order, and gives their positions. They become durable and readable
    /// together, by the next flush; nothing may act on them before that.
    pub fn append(&self, batch: Vec<NewRecord>) -> Result<Vec<Position>, LogError> {
        for record in &batch {
            record.check()?;
        }
        let mut state = lock(&self.handle.shared.state);
        self.refuse_if_stopped(&state)?;
        let mut queued = Vec::with_capacity(batch.len());
        let mut positions = Vec::with_capacity(batch.len());
        let mut last = state.last;
        let mut next = BTreeMap::new();
        for (offset, record) in (0..).zip(batch) {
            let known = next.get(&record.stream).or_else(|| state.sequences.get(&record.stream));
            let sequence = known.copied().unwrap_or(0) + 1;
            let position = Position { global: state.next_global + offset, sequence };
            let _ = next.insert(record.stream.clone(), sequence);
            let record = self.queued(&mut state.encoder, record, position, last)?;
            last = record.hash;
            positions.push(position);
            queued.push(record);
        }
        state.last = last;
        state.next_global += queued.len() as u64;
        state.sequences.append(&mut next);
        state.stats.appended_records += queued.len() as u64;
        state.queue_bytes += queued.iter().map(|record| record.entry.value.len()).sum::<usize>();
        state.queue.append(&mut queued);
        if state.is_due() {
            self.handle.shared.wake.notify_one();
        }
        Ok(positions)
    }

    fn queued(
        &self,
        encoder: &mut Encoder,
        record: NewRecord,
        position: Position,
        previous: Hash,
    ) -> Result<Queued, LogError> {
        let frame = Frame::of(&record, position, previous)
            .encode()
            .map_err(|reason| self.handle.shared.unreadable(reason))?;
        let value = encoder.encode(&frame, &record.head, &record.raw);
        let Position { global, sequence } = position;
        let entry = Entry { stream: record.stream, sequence, global, value };
        Ok(Queued { entry, hash: frame_hash(&frame), time_ms: record.time_ms })
    }

    /// Resolves when all that was appended before this call survives a kill of the process, with
    /// [`Durability::Power`](crate::Durability::Power) a loss of power. All that wait at a time share one flush. Works on
    /// any executor, and the flush happens also when the future is dropped.
    pub fn flush(&self) -> impl Future<Output = Result<(), LogError>> + Send + 'static {
        self.wait_for(false)
    }

    /// Resolves when all that was appended before this call survives a loss of power.
    pub fn sync(&self) -> impl Future<Output = Result<(), LogError>> + Send + 'static {
        self.wait_for(true)
    }

    /// [`Log::flush`] for callers that are not async.
    pub fn flush_blocking(&self) -> Result<(), LogError> {
        self.wait_blocking(false)
    }

    /// [`Log::sync`] for callers that are not async.
    pub fn sync_blocking(&self) -> Result<(), LogError> {
        self.wait_blocking(true)
    }

    fn wait_blocking(&self, wants_fsync: bool) -> Result<(), LogError> {
        let done = self.request(wants_fsync)?;
        done.recv_blocking().unwrap_or_else(|_| Err(LogError::Closed { path: self.dir().to_path_buf() }))
    }

    fn wait_for(&self, wants_fsync: bool) -> impl Future<Output = Result<(), LogError>> + Send + 'static {
        let path = self.dir().to_path_buf();
        let request = self.request(wants_fsync);
        async move {
            let done = request?;
            done.recv().await.unwrap_or(Err(LogError::Closed { path }))
        }
    }

    fn request(&self, wants_fsync: bool) -> Result<async_channel::Receiver<Result<(), LogError>>, LogError> {
        let (done, result) = async_channel::bounded(1);
        let mut state = lock(&self.handle.shared.state);
        self.refuse_if_stopped(&state)?;
        state.stats.flush_requests += 1;
        if state.queue.is_empty() && !state.is_busy && !wants_fsync {
            // Everything is flushed already. The channel has room for one answer.
            let _ = done.try_send(Ok(()));
        } else {
            state.waiters.push(Waiter { wants_fsync, done });
            self.handle.shared.wake.notify_one();
        }
        Ok(result)
    }

    fn refuse_if_stopped(&self, state: &State) -> Result<(), LogError> {
        state.stopped.clone().map_or(Ok(()), |reason| Err(self.handle.shared.stopped(reason)))
    }

    /// Reads what is flushed, beside the writer.
    pub fn reader(&self) -> Reader {
        Reader::beside(Arc::clone(&self.handle.shared.view))
    }

    /// The log's folder.
    pub fn dir(&self) -> &Path {
        self.handle.shared.view.dir()
    }

    /// The hash of the last record appended.
    pub(crate) fn last_hash(&self) -> Hash {
        lock(&self.handle.shared.state).last
    }

    /// What the log did since it was opened.
    pub fn stats(&self) -> Stats {
        lock(&self.handle.shared.state).stats
    }
}

impl Shared {
    pub(crate) fn stopped(&self, reason: Arc<str>) -> LogError {
        LogError::Stopped { path: self.path(), reason }
    }

    fn unreadable(&self, reason: String) -> LogError {
        LogError::Unreadable { path: self.path(), reason }
    }

    fn path(&self) -> PathBuf {
        self.view.dir().to_path_buf()
    }

    /// Waits until there is something to flush or the log is closing.
    pub(crate) fn wait_for_work(&self) -> std::sync::MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        state.is_busy = false;
        while !state.is_due() && !state.is_closing {
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_busy = true;
        state
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.server = None;
        lock(&self.shared.state).is_closing = true;
        self.shared.wake.notify_one();
        if let Some(flusher) = self.flusher.take() {
            if flusher.join().is_err() {
                log::error!("the flusher of the log {} panicked", self.shared.view.dir().display());
            }
        }
        self.shared.view.close();
    }
}
