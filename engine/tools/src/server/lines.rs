//! A client's lines: bytes in, whole lines out. One that is too long is passed over, and the next is read.

use std::io::{self, BufRead};

/// Longest line of a client, in bytes without its line feed. A picture of 20 MiB in base64 fits.
pub(crate) const LINE_MAX_BYTES: usize = 64 * 1024 * 1024;

/// What a client's side gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A line without its line feed. The last one may have had none.
    Line(Vec<u8>),
    /// A line beyond the limit was passed over.
    TooLong,
}

/// The next line, or nothing at the end.
pub(crate) fn next_line(input: &mut impl BufRead, max_bytes: usize) -> io::Result<Option<Incoming>> {
    let (mut line, mut is_too_long) = (Vec::new(), false);
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if chunk.is_empty() && line.is_empty() && !is_too_long {
            return Ok(None);
        }
        let feed = memchr::memchr(b'\n', chunk);
        let is_whole = feed.is_some() || chunk.is_empty();
        let part = &chunk[..feed.unwrap_or(chunk.len())];
        is_too_long |= line.len() + part.len() > max_bytes;
        match is_too_long {
            true => line = Vec::new(),
            false => line.extend_from_slice(part),
        }
        let taken = part.len() + usize::from(feed.is_some());
        input.consume(taken);
        if is_whole {
            return Ok(Some(if is_too_long { Incoming::TooLong } else { Incoming::Line(line) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn all(bytes: &[u8], chunk: usize) -> Vec<Incoming> {
        let mut input = BufReader::with_capacity(chunk, bytes);
        std::iter::from_fn(|| next_line(&mut input, 4).expect("memory can be read")).collect()
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_come() {
        for chunk in [1, 2, 3, 64] {
            let line = |text: &str| Incoming::Line(text.into());
            assert_eq!(
                all(b"ab\n\nabcd\nabcde\nf\r\ng", chunk),
                [line("ab"), line(""), line("abcd"), Incoming::TooLong, line("f\r"), line("g"),]
            );
            assert_eq!(all(b"", chunk), []);
            assert_eq!(all(b"abcdefgh", chunk), [Incoming::TooLong]);
        }
    }
}
