//! A request body that is never joined into one piece.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_lite::{AsyncBufRead, AsyncRead};

/// The chunks of a request body, read one after the other without being joined.
pub(super) struct Chunks {
    chunks: std::vec::IntoIter<Arc<[u8]>>,
    current: Arc<[u8]>,
    taken: usize,
}

impl Chunks {
    pub(super) fn new(chunks: Vec<Arc<[u8]>>) -> Self {
        Self { chunks: chunks.into_iter(), current: Arc::from([].as_slice()), taken: 0 }
    }

    /// What is next; empty at the end.
    fn rest(&mut self) -> &[u8] {
        while self.taken == self.current.len() {
            let Some(next) = self.chunks.next() else {
                break;
            };
            self.current = next;
            self.taken = 0;
        }
        &self.current[self.taken..]
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
            self.taken += count;
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
        self.taken += count;
    }
}
