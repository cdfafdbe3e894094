//! The thread that carries flushes out: one sled batch, one sled flush and one head for all that
//! wait, and the change to a new segment when one is full.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{IoContext as _, LogError, OpenError};
use crate::evidence::STORE_DIR;
use crate::files;
use crate::frame::FORMAT_VERSION;
use crate::head::{Head, HeadFile};
use crate::layout::{Layout, Promised};
use crate::lock;
use crate::options::{Durability, Options};
use crate::record::Hash;
use crate::segment::{self, Segment};
use crate::tree::Entry;
use crate::view::{self, Part, Tail, View};
use crate::walk::{self, Spans};
use crate::writer::{Queued, Shared, Waiter};

/// The segment that is written.
pub(crate) struct Active {
    dir: PathBuf,
    segment: Arc<Segment>,
    head: HeadFile,
    /// Large values have files of their own, which never change: one fsync is enough for each.
    synced_blobs: BTreeSet<PathBuf>,
}

impl Active {
    /// Goes on in the last segment of an opened log.
    pub(crate) fn resume(layout: &Layout, view: &View, tail: &Tail) -> Result<Active, OpenError> {
        let dir = segment::dir_of(&layout.dir, tail.head.first);
        let head = HeadFile::resume(&dir, tail.head.clone()).context("open the head of", &dir)?;
        let segment = view.last_segment().ok_or_else(|| OpenError::NotALog { path: layout.dir.clone() })?;
        Ok(Active { dir, segment, head, synced_blobs: BTreeSet::new() })
    }

    /// Takes records into the head that a killed process flushed but did not acknowledge. Returns
    /// how many there are.
    pub(crate) fn absorb(&mut self, tail: &Tail) -> Result<u64, OpenError> {
        let absorbed = tail.count - tail.head.count;
        if absorbed > 0 {
            log::info!(
                "{}: {absorbed} flushed records were not acknowledged; they are kept",
                self.dir.display()
            );
            self.head
                .write(|head| set_tail(head, tail.count, tail.last, tail.stored_bytes))
                .context("write the head of", &self.dir)?;
        }
        Ok(absorbed)
    }

    fn fsync(&mut self) -> std::io::Result<()> {
        let store = self.dir.join(STORE_DIR);
        for file in files::files_under(&store)? {
            let is_blob = file.parent().is_some_and(|folder| folder.ends_with("blobs"));
            if self.synced_blobs.contains(&file) {
                continue;
            }
            match std::fs::File::open(&file) {
                Ok(open) => open.sync_all()?,
                // sled replaces its snapshots and removes values it has rewritten.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            }
            if is_blob {
                let _ = self.synced_blobs.insert(file);
            }
        }
        files::fsync_dir(&store.join("blobs"))?;
        files::fsync_dir(&store)?;
        self.head.fsync()?;
        files::fsync_dir(&self.dir)
    }
}

fn set_tail(head: &mut Head, count: u64, last: Hash, stored_bytes: u64) {
    head.count = count;
    head.last = last.0;
    head.stored_bytes = stored_bytes;
}

/// Makes the first segment and then the format file, which makes the folder a log.
pub(crate) fn make_new(dir: &Path, cache_bytes: u64) -> Result<(), OpenError> {
    let first = segment::dir_of(dir, 1);
    let store = segment::create(&first, cache_bytes).map_err(|reason| {
        OpenError::Log(LogError::Stopped { path: dir.to_path_buf(), reason: reason.into() })
    })?;
    let _ = HeadFile::create(&first, Head::new(FORMAT_VERSION, 1, Hash::ZERO))
        .context("create a head in", &first)?;
    drop(store);
    lock::write_format(dir).context("write the format file of", dir)?;
    let parent = files::parent_of(dir);
    files::fsync_dir(parent).context("sync", parent)
}

/// Ends a change of segment that a kill cut short: a next segment without a head goes, one with
/// a head takes over.
pub(crate) fn finish_roll(layout: &mut Layout) -> Result<(), OpenError> {
    if !layout.problems.is_empty() {
        return Ok(());
    }
    if let Some(unfinished) = layout.unfinished.take() {
        files::remove(&unfinished).context("remove", &unfinished)?;
    }
    let last = layout.segments.len().saturating_sub(1);
    for Promised { dir, head } in &mut layout.segments[..last] {
        if !head.closed {
            let mut file = HeadFile::resume(dir, head.clone()).context("open the head of", dir)?;
            file.close().context("close the head of", dir)?;
            *head = file.head().clone();
        }
    }
    Ok(())
}

/// What the flusher's thread owns.
pub(crate) struct Flusher {
    shared: Arc<Shared>,
    active: Active,
    options: Options,
}

impl Flusher {
    pub(crate) fn new(shared: Arc<Shared>, active: Active, options: Options) -> Flusher {
        Flusher { shared, active, options }
    }

    /// Flushes until the log closes. After a failure every request gets that failure.
    pub(crate) fn run(mut self) {
        loop {
            let mut state = self.shared.wait_for_work();
            let queue = state.take_queue();
            let waiters = std::mem::take(&mut state.waiters);
            let is_closing = state.is_closing;
            let stopped = state.stopped.clone();
            drop(state);
            let result = match stopped {
                Some(reason) => Err(reason),
                None => self.flush(queue, &waiters).map_err(Arc::from),
            };
            self.answer(waiters, result);
            if is_closing {
                return;
            }
        }
    }

    fn answer(&self, waiters: Vec<Waiter>, result: Result<(), Arc<str>>) {
        if let Err(reason) = &result {
            let stopped = view::lock(&self.shared.state).stopped.replace(Arc::clone(reason));
            if stopped.is_none() {
                log::error!("{}", self.shared.stopped(Arc::clone(reason)));
            }
        }
        for waiter in waiters {
            // Whoever dropped its future wants no answer.
            let _ = waiter.done.try_send(result.clone().map_err(|reason| self.shared.stopped(reason)));
        }
    }

    fn flush(&mut self, queue: Vec<Queued>, waiters: &[Waiter]) -> Result<(), String> {
        let has_records = !queue.is_empty();
        if has_records {
            self.write(queue)?;
        }
        let wants_fsync = waiters.iter().any(|waiter| waiter.wants_fsync);
        if wants_fsync || has_records && self.options.durability == Durability::Power {
            self.active
                .fsync()
                .map_err(|error| format!("fsync of {}: {error}", self.active.dir.display()))?;
        }
        if self.active.head.head().stored_bytes >= self.options.segment_bytes {
            self.roll()?;
        }
        Ok(())
    }

    /// Stores the records and then the head that promises them; then readers may see them.
    fn write(&mut self, queue: Vec<Queued>) -> Result<(), String> {
        let Some(last) = queue.last().map(|record| record.hash) else {
            return Ok(());
        };
        let times: Vec<u64> = queue.iter().map(|record| record.time_ms).collect();
        let entries: Vec<Entry> = queue.into_iter().map(|record| record.entry).collect();
        self.active.segment.tree.apply(&entries)?;
        self.active.segment.tree.flush()?;
        let head = self.active.head.head();
        let count = head.count + entries.len() as u64;
        let stored_bytes =
            head.stored_bytes + entries.iter().map(|entry| entry.value.len() as u64).sum::<u64>();
        self.active
            .head
            .write(|head| set_tail(head, count, last, stored_bytes))
            .map_err(|error| format!("write of the head in {}: {error}", self.active.dir.display()))?;
        self.shared.view.publish(self.active.head.head(), |spans| {
            for (entry, time_ms) in entries.iter().zip(times) {
                walk::extend(spans, &entry.stream, entry.sequence, entry.global, time_ms);
            }
        });
        view::lock(&self.shared.state).stats.flushes += 1;
        Ok(())
    }

    /// Closes the full segment and goes on in a new one. The order is the one `layout` expects.
    fn roll(&mut self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("change to a new segment: {error}");
        self.active.fsync().map_err(failed)?;
        let spans = self.shared.view.last_spans().map_err(|error| error.to_string())?;
        segment::write_streams(&self.active.dir, &spans).map_err(failed)?;
        let full = self.active.head.head();
        let first = full.next_global();
        let dir = segment::dir_of(self.shared.view.dir(), first);
        let next = Head::new(FORMAT_VERSION, first, Hash(full.last));
        let segment = Arc::new(segment::create(&dir, self.options.cache_bytes)?);
        let head = HeadFile::create(&dir, next).map_err(failed)?;
        files::fsync_dir(self.shared.view.dir()).map_err(failed)?;
        self.active.head.close().map_err(failed)?;
        let part = Part {
            dir: dir.clone(),
            head: head.head().clone(),
            count: 0,
            spans: Spans::new(),
            segment: Some(Arc::clone(&segment)),
        };
        self.shared.view.roll(self.active.head.head(), part);
        self.active = Active { dir, segment, head, synced_blobs: BTreeSet::new() };
        view::lock(&self.shared.state).stats.closed_segments += 1;
        Ok(())
    }
}
