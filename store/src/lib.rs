//! The log under Waxlog: append-only, hash-chained streams of records on sled.
//!
//! The log knows bytes, not agents. A [`Log`] is its one writer: [`Log::append`] numbers and
//! chains records, [`Log::flush`] makes them survive a kill. A [`Reader`] gives them back, each
//! hash checked. What was flushed is never lost in silence: [`verify`] names the first record that
//! is missing, changed or extra, and [`repair`] builds a new log from what is sound.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let dir = folder.path().join("log");
//! use waxlog_store::{Log, NewRecord, Options};
//!
//! let log = Log::open(&dir, Options::default())?;
//! let record = NewRecord {
//!     stream: "session/1".to_owned(),
//!     kind: "prompt".to_owned(),
//!     version: 1,
//!     time_ms: 1_700_000_000_000,
//!     head: b"{\"turn\":1}".to_vec(),
//!     raw: b"Hello.".to_vec(),
//! };
//! let positions = log.append(vec![record])?;
//! log.flush_blocking()?; // only now may anything act on it
//! assert_eq!(positions[0].global, 1);
//! for record in log.reader().stream("session/1")? {
//!     assert_eq!(record?.raw, b"Hello.");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Inside, from the bytes up: `frame` and `value` are a record on disk, `tree` is the only file
//! that talks to sled, `head` says outside of sled what sled must hold, `walk` compares the two,
//! `segment`, `layout` and `evidence` are the folders, `writer` and `flusher` write, `view`,
//! `reader` and `socket` read, `verify`, `salvage` and `repair` are for damage.

mod damage;
mod error;
mod evidence;
mod files;
mod flusher;
mod frame;
mod head;
pub mod jsonl;
mod layout;
mod lock;
mod options;
mod protocol;
mod quiet;
mod reader;
mod record;
mod refill;
mod repair;
mod salvage;
mod segment;
mod socket;
mod tree;
mod value;
mod verify;
mod view;
mod walk;
mod writer;

pub use damage::{Damage, Problem, ProblemKind};
pub use error::{LogError, OpenError};
pub use frame::FORMAT_VERSION;
pub use options::{Durability, Options, Stats};
pub use reader::{Reader, Records};
pub use record::{
    Hash, NewRecord, Position, Record, StreamInfo, MAX_BODY_BYTES, MAX_KIND_BYTES, MAX_STREAM_BYTES,
};
pub use repair::{repair, Repaired};
pub use verify::{verify, Report};
pub use writer::Log;
