//! Searching and listing, as commands on a command's `PATH`.

pub mod rg;
pub mod tree;

use std::io::{self, Write};

/// Most bytes that are printed.
pub(crate) const PRINTED_MAX_BYTES: usize = 50 * 1024;
/// Most lines that are printed.
pub(crate) const PRINTED_MAX_LINES: usize = 2000;
/// How deep folders are gone into.
pub(crate) const DEPTH_MAX: usize = 50;
/// The exit code of a command line that is wrong.
pub(crate) const USAGE_EXIT_CODE: u8 = 2;

/// A writer that falls silent at the limits.
pub(crate) struct Printed<W> {
    out: W,
    bytes: usize,
    lines: usize,
}

impl<W: Write> Printed<W> {
    /// A writer with the whole room left.
    pub(crate) fn new(out: W) -> Self {
        Self { out, bytes: 0, lines: 0 }
    }

    /// Prints a line if there is room. Says whether there was.
    pub(crate) fn line(&mut self, line: &[u8]) -> io::Result<bool> {
        if self.lines >= PRINTED_MAX_LINES || self.bytes + line.len() + 1 > PRINTED_MAX_BYTES {
            self.lines = PRINTED_MAX_LINES;
            return Ok(false);
        }
        self.lines += 1;
        self.bytes += line.len() + 1;
        self.out.write_all(line)?;
        self.out.write_all(b"\n")?;
        Ok(true)
    }
}
