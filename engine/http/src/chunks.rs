//! A request body that is never joined into one piece.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::{AsyncBufRead, AsyncRead};
use waxlog_core::rope::Rope;

/// The chunks of a request body, read one after the other without being joined.
pub(super) struct Chunks {
    body: Rope,
    current: usize,
    taken: usize,
}

impl Chunks {
    pub(super) fn new(body: Rope) -> Self {
        Self { body, current: 0, taken: 0 }
    }

    /// What is next; empty at the end.
    fn rest(&self) -> &[u8] {
        self.body.chunk(self.current).map_or(&[], |chunk| &chunk[self.taken..])
    }

    /// Goes on by `count` bytes, at most to the end of the current chunk.
    fn take(&mut self, count: usize) {
        self.taken += count;
        if self.body.chunk(self.current).is_some_and(|chunk| self.taken >= chunk.len()) {
            self.current += 1;
            self.taken = 0;
        }
    }
}

impl AsyncRead for Chunks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        // The buffer is filled from as many chunks as it takes: what one read gives is one write to the
        // socket, and chunks are small.
        let mut filled = 0;
        while filled < buffer.len() {
            let rest = self.rest();
            if rest.is_empty() {
                break;
            }
            let count = rest.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&rest[..count]);
            self.take(count);
            filled += count;
        }
        Poll::Ready(Ok(filled))
    }
}

impl AsyncBufRead for Chunks {
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Poll::Ready(Ok(self.get_mut().rest()))
    }

    fn consume(mut self: Pin<&mut Self>, count: usize) {
        self.take(count);
    }
}
