//! The two pipes to the client: lines in, lines out, each on a thread of its own.

use std::io::{self, Read, Write};
use std::thread;

use async_channel::{Receiver, Sender};
use waxlog_core::acp::lines::Line;

/// Lines that may wait to be written.
pub const OUT_MAX_LINES: usize = 64;
/// How much is read at a time, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// What the client's side gives.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// One line, without its line feed and a carriage return before it.
    Line(Vec<u8>),
    /// Nothing more comes, with the reason if it is not a plain end.
    End(Option<String>),
}

/// Cuts a stream into lines of at most `max_bytes`, line feed included. How the bytes are chunked makes no
/// difference.
#[derive(Debug)]
struct Splitter {
    max_bytes: usize,
    partial: Vec<u8>,
}

impl Splitter {
    /// Takes a chunk; the error is the end of the stream.
    fn feed(&mut self, chunk: &[u8], mut line: impl FnMut(Vec<u8>) -> bool) -> Result<bool, String> {
        let mut rest = chunk;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            self.partial.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
            self.check(1)?;
            let mut whole = std::mem::take(&mut self.partial);
            if whole.last() == Some(&b'\r') {
                whole.pop();
            }
            if let Err(e) = std::str::from_utf8(&whole) {
                return Err(format!("a line is not UTF-8 (byte {})", e.valid_up_to()));
            }
            if !line(whole) {
                return Ok(false);
            }
        }
        self.partial.extend_from_slice(rest);
        self.check(0)?;
        Ok(true)
    }

    fn check(&self, feed: usize) -> Result<(), String> {
        let bytes = self.partial.len() + feed;
        if bytes > self.max_bytes {
            return Err(format!(
                "a line has {bytes} bytes or more, the limit is {}; raise BUZZ_AGENT_MAX_LINE_BYTES",
                self.max_bytes
            ));
        }
        Ok(())
    }
}

/// Reads stdin until it ends; `send` takes what comes and says whether to go on.
pub fn read_lines(mut input: impl Read, max_bytes: usize, mut send: impl FnMut(Incoming) -> bool) {
    let end = read_until_end(&mut input, max_bytes, &mut send);
    if let Some(why) = end {
        send(Incoming::End(why));
    }
}

/// Reads lines until nothing more comes and says why; `None` if nobody takes them any more.
fn read_until_end(
    input: &mut impl Read,
    max_bytes: usize,
    send: &mut impl FnMut(Incoming) -> bool,
) -> Option<Option<String>> {
    let mut splitter = Splitter { max_bytes, partial: Vec::new() };
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) if splitter.partial.is_empty() => return Some(None),
            Ok(0) => {
                let dropped = splitter.partial.len();
                let why = format!("the stream ended inside of a line, its {dropped} bytes are dropped");
                return Some(Some(why));
            }
            Ok(count) => count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Some(Some(format!("stdin cannot be read: {e}"))),
        };
        match splitter.feed(&buffer[..count], |line| send(Incoming::Line(line))) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(why) => return Some(Some(why)),
        }
    }
}

/// Starts the thread that writes lines to stdout until every sender is gone. After a failed write, what
/// comes is dropped: the client is gone, but turns under way are still brought to their end.
pub fn start_writer() -> io::Result<(Sender<Line>, thread::JoinHandle<()>)> {
    let (sender, receiver) = async_channel::bounded(OUT_MAX_LINES);
    let writer = thread::Builder::new().name("stdout".to_owned()).spawn(move || write_lines(&receiver))?;
    Ok((sender, writer))
}

fn write_lines(lines: &Receiver<Line>) {
    let mut stdout = io::stdout().lock();
    while let Ok(mut line) = lines.recv_blocking() {
        line.push(b'\n');
        if let Err(e) = stdout.write_all(&line).and_then(|()| stdout.flush()) {
            log::warn!("stdout cannot be written any more: {e}");
            lines.close();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `input` in chunks of `chunk` bytes.
    fn read(input: &[u8], chunk: usize, max_bytes: usize) -> Vec<Incoming> {
        struct Chunks<'a>(&'a [u8], usize);
        impl Read for Chunks<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let count = self.1.min(self.0.len()).min(buffer.len());
                buffer[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut seen = Vec::new();
        read_lines(Chunks(input, chunk), max_bytes, |incoming| {
            seen.push(incoming);
            true
        });
        seen
    }

    fn line(text: &str) -> Incoming {
        Incoming::Line(text.into())
    }

    #[test]
    fn lines_end_in_a_line_feed_with_or_without_a_carriage_return() {
        assert_eq!(read(b"a\r\n\nb\n", 100, 100), [line("a"), line(""), line("b"), Incoming::End(None)]);
    }

    #[test]
    fn c47_the_limit_does_not_depend_on_chunking_and_earlier_lines_are_delivered() {
        let mut input = b"first\n".to_vec();
        input.extend_from_slice(&[b'x'; 16]);
        for chunk in [1, 3, 7, 1000] {
            let seen = read(&input, chunk, 15);
            assert_eq!(seen[0], line("first"), "chunks of {chunk}");
            assert!(
                matches!(&seen[1..], [Incoming::End(Some(why))] if why.contains("limit is 15")),
                "{seen:?}"
            );
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_accepted() {
        assert_eq!(read(b"abcd\n", 2, 5)[0], line("abcd"));
        assert!(matches!(read(b"abcde\n", 2, 5)[0], Incoming::End(Some(_))));
    }

    #[test]
    fn a_partial_line_at_the_end_is_dropped_with_a_reason() {
        assert!(matches!(&read(b"a\nbc", 9, 9)[1], Incoming::End(Some(why)) if why.contains("2 bytes")));
    }

    #[test]
    fn bytes_that_are_not_utf8_end_the_stream() {
        assert!(matches!(&read(b"\xff\n", 9, 9)[0], Incoming::End(Some(why)) if why.contains("UTF-8")));
    }
}
