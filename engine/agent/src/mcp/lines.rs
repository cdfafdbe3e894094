//! A server's output, line by line.

use std::io;

use futures_lite::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Longest line of a server, in bytes, without its line feed. A longer one ends the connection.
pub const MCP_LINE_MAX_BYTES: usize = 64 * 1024 * 1024;

/// The next line without its line feed; nothing at the end. The last line may lack a line feed.
pub(super) async fn read_line<R>(reader: &mut R, max_bytes: usize) -> io::Result<Option<Vec<u8>>>
where
    R: AsyncBufRead + Unpin,
{
    let mut line = Vec::new();
    let most = max_bytes as u64 + 1;
    reader.take(most).read_until(b'\n', &mut line).await?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > max_bytes {
        return Err(io::Error::other(format!("a line has more than {max_bytes} bytes")));
    } else if line.is_empty() {
        return Ok(None);
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use async_std::task;
    use futures_lite::io::BufReader;
    use futures_lite::AsyncRead;

    use super::*;

    /// Gives one byte at a time.
    struct Trickle(Vec<u8>);

    impl AsyncRead for Trickle {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            let count = self.0.len().min(buffer.len()).min(1);
            for (slot, byte) in buffer.iter_mut().zip(self.0.drain(..count)) {
                *slot = byte;
            }
            Poll::Ready(Ok(count))
        }
    }

    fn lines(bytes: &[u8]) -> (Vec<Vec<u8>>, bool) {
        async fn all<R: AsyncBufRead + Unpin>(mut reader: R) -> (Vec<Vec<u8>>, bool) {
            let mut lines = Vec::new();
            loop {
                match read_line(&mut reader, 8).await {
                    Ok(Some(line)) => lines.push(line),
                    Ok(None) => return (lines, true),
                    Err(_) => return (lines, false),
                }
            }
        }
        let whole = task::block_on(all(bytes));
        let trickled = task::block_on(all(BufReader::new(Trickle(bytes.to_vec()))));
        assert_eq!(whole, trickled, "depends on the chunks");
        whole
    }

    fn of(lines: &[&str]) -> Vec<Vec<u8>> {
        lines.iter().map(|line| line.as_bytes().to_vec()).collect()
    }

    #[test]
    fn lines_are_split_whatever_the_chunks() {
        assert_eq!(lines(b"a\n\nbc\nd"), (of(&["a", "", "bc", "d"]), true));
        assert_eq!(lines(b""), (of(&[]), true));
    }

    #[test]
    fn c47_a_line_beyond_the_limit_ends_it_and_those_before_are_delivered() {
        assert_eq!(lines(b"ok\n12345678\n123456789"), (of(&["ok", "12345678"]), false));
        assert_eq!(lines(b"123456789\nlate\n"), (of(&[]), false));
        assert!(lines("\u{e9}\u{e9}\u{e9}\u{e9}\n".as_bytes()).1, "bytes, not characters");
    }
}
