//! How a log is kept, and what it counts.

/// What a flush protects from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A kill of the process. Power loss: only what [`sync`](crate::Log::sync) covered is safe.
    #[default]
    Process,
    /// A loss of power as well: every flush does what [`sync`](crate::Log::sync) does.
    Power,
}

/// How a log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// A segment with this many bytes of stored values is closed and the next one started.
    pub segment_bytes: u64,
    /// How much memory sled's cache may take for each open segment.
    pub cache_bytes: u64,
    /// What a flush protects from.
    pub durability: Durability,
}

impl Default for Options {
    fn default() -> Options {
        Options { segment_bytes: 64 << 20, cache_bytes: 4 << 20, durability: Durability::Process }
    }
}

/// What a log did since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Records that were appended.
    pub appended_records: u64,
    /// Records of a killed process that were flushed but not acknowledged, and are kept.
    pub absorbed_records: u64,
    /// Flushes that were asked for.
    pub flush_requests: u64,
    /// Writes to the disk, each for all that waited at the time.
    pub flushes: u64,
    /// Segments that were closed.
    pub closed_segments: u64,
}
