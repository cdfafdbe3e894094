//! A segment: a folder with one sled store, its head file and, once closed, a list of its streams.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bincode::Options as _;
use sha2::{Digest, Sha256};

use crate::damage::{Problem, ProblemKind};
use crate::evidence::{self, Evidence};
use crate::files;
use crate::head::Head;
use crate::quiet;
use crate::tree::{Tree, BLOCK_BYTES};
use crate::walk::{self, Depth, Spans, Walked};

const DIR_LEAD: &str = "segment-";
const STREAMS_FILE: &str = "streams";
/// The most bytes the list of a segment's streams may have.
const MAX_STREAMS_FILE_BYTES: u64 = 256 << 20;
const CHECKSUM_BYTES: usize = 32;
/// Far more than the walk over a full segment takes; sled hung longer than this is stuck.
const OPEN_LIMIT: Duration = Duration::from_secs(120);

/// The folder of the segment whose first record is `first`.
pub(crate) fn dir_of(log: &Path, first: u64) -> PathBuf {
    log.join(format!("{DIR_LEAD}{first:020}"))
}

/// The segments' first records and folders, in order.
pub(crate) fn list(log: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(log)? {
        let entry = entry?;
        let name = entry.file_name();
        let first = name.to_str().and_then(|name| name.strip_prefix(DIR_LEAD)).and_then(|n| n.parse().ok());
        if let Some(first) = first {
            found.push((first, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

/// The name by which problems call a segment.
pub(crate) fn place_of(dir: &Path) -> String {
    dir.file_name().map_or_else(|| dir.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// An open segment. What sled changed by opening a damaged one is undone when it is dropped.
pub(crate) struct Segment {
    // Declared, and so dropped, before the evidence that takes the store's place.
    pub(crate) tree: Tree,
    evidence: Option<Evidence>,
}

/// A segment's store after it was opened and walked.
pub(crate) enum Opened {
    /// sled opened; whether the walk found a problem is in the second field.
    Store(Segment, Walked),
    /// sled did not open.
    Refused(Problem),
}

/// Creates the store of a new segment. The head file, which makes it one, is the caller's.
pub(crate) fn create(dir: &Path, cache_bytes: u64) -> Result<Segment, String> {
    let store = dir.join(evidence::STORE_DIR);
    let prepare = || {
        files::remove(dir)?;
        files::create_private_dir(&store)
    };
    prepare().map_err(|error| format!("cannot create {}: {error}", store.display()))?;
    let tree = Tree::open(&store, cache_bytes, BLOCK_BYTES)?;
    tree.flush()?;
    files::make_private(&store)
        .map_err(|error| format!("cannot make {} private: {error}", store.display()))?;
    Ok(Segment { tree, evidence: None })
}

/// Opens the store and walks over it. The store's files change only when nothing was missing.
pub(crate) fn open(dir: &Path, head: &Head, cache_bytes: u64, depth: Depth) -> io::Result<Opened> {
    Evidence::recover(dir)?;
    let mut sizes = Tree::block_sizes(&dir.join(evidence::STORE_DIR))?;
    let last = sizes.pop().unwrap_or(BLOCK_BYTES);
    for block_bytes in sizes {
        if let Opened::Store(segment, walked) =
            open_as(dir, head, Opening { cache_bytes, block_bytes, depth })?
        {
            if !segment.is_damaged() {
                return Ok(Opened::Store(segment, walked));
            }
        }
    }
    open_as(dir, head, Opening { cache_bytes, block_bytes: last, depth })
}

/// How a store is opened.
#[derive(Clone, Copy)]
struct Opening {
    cache_bytes: u64,
    block_bytes: usize,
    depth: Depth,
}

fn open_as(dir: &Path, head: &Head, opening: Opening) -> io::Result<Opened> {
    let place = place_of(dir);
    let refused = |reason: String| {
        let expected = "a store that sled can open";
        Opened::Refused(Problem::new(ProblemKind::File, &place, Some(head.first), expected, reason))
    };
    let evidence = Evidence::secure(dir)?;
    let store = dir.join(evidence::STORE_DIR);
    if !store.exists() {
        return Ok(refused("no store".to_owned()));
    }
    let (tree, walked) = match open_and_walk(store, head.clone(), place.clone(), opening) {
        Ok(opened) => opened,
        Err(reason) => return Ok(refused(reason)),
    };
    if walked.problem.is_some() {
        return Ok(Opened::Store(Segment { tree, evidence: Some(evidence) }, walked));
    }
    evidence.discard()?;
    files::make_private(tree.path())?;
    Ok(Opened::Store(Segment { tree, evidence: None }, walked))
}

/// Does the work in a thread of its own: sled can get stuck on a damaged file.
fn open_and_walk(
    store: PathBuf,
    head: Head,
    place: String,
    opening: Opening,
) -> Result<(Tree, Walked), String> {
    let Opening { cache_bytes, block_bytes, depth } = opening;
    let (done, result) = mpsc::sync_channel(1);
    let work = move || {
        let opened = quiet::catch(|| {
            let tree = Tree::open(&store, cache_bytes, block_bytes)?;
            let walked = walk::walk(&tree, &head, &place, depth);
            Ok((tree, walked))
        });
        // Nobody listens any more when this took too long.
        let _ = done.send(opened);
    };
    let _ = thread::Builder::new()
        .name("waxlog-open".to_owned())
        .spawn(work)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    result
        .recv_timeout(OPEN_LIMIT)
        .map_err(|_| format!("sled did not open within {} s", OPEN_LIMIT.as_secs()))??
}

impl Segment {
    /// Whether the store is damaged and will be put back as it was found.
    pub(crate) fn is_damaged(&self) -> bool {
        self.evidence.is_some()
    }
}

/// Writes the list of a closed segment's streams, so that listing them opens no store.
pub(crate) fn write_streams(dir: &Path, spans: &Spans) -> io::Result<()> {
    let mut bytes = streams_codec().serialize(spans).map_err(io::Error::other)?;
    let checksum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&checksum);
    files::write_whole(&dir.join(STREAMS_FILE), &bytes)
}

/// Reads that list. None when it is missing or damaged: it can be had from the records again.
pub(crate) fn read_streams(dir: &Path) -> Option<Spans> {
    let file = std::fs::File::open(dir.join(STREAMS_FILE)).ok()?;
    let mut bytes = Vec::new();
    let _ = file.take(MAX_STREAMS_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    let content_bytes = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let (content, checksum) = bytes.split_at(content_bytes);
    if Sha256::digest(content)[..] != *checksum {
        return None;
    }
    streams_codec().deserialize(content).ok()
}

fn streams_codec() -> impl bincode::Options {
    bincode::options().with_limit(MAX_STREAMS_FILE_BYTES).with_fixint_encoding()
}
