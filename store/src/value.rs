//! One record as it lies in sled: a prefix, the frame, and the body in the form it is kept in.
//!
//! ```text
//! magic "WXR1" | kept u8 | frame length u32 | stored body length u32 | frame | stored body
//! ```
//!
//! Numbers are little-endian. The prefix stands outside of the chained frame. With the magic and
//! the lengths, a value can be found and checked in the raw bytes of a file that sled cannot open.

use zstd::bulk::Compressor;

use crate::frame::{body_hash, frame_hash, Frame, MAX_FRAME_BYTES};
use crate::record::{Hash, Position, Record, MAX_BODY_BYTES};

/// What every stored value starts with.
pub(crate) const MAGIC: [u8; 4] = *b"WXR1";
const PREFIX_BYTES: usize = 13;
/// Bodies up to this size are not worth the processor time of compressing them.
const COMPRESS_OVER_BYTES: usize = 256;
const ZSTD_LEVEL: i32 = 1;

/// How a body is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Raw = 0,
    Zstd = 1,
    /// Reserved for bodies encrypted to a key; this version neither writes nor reads them.
    Sealed = 2,
}

impl Kept {
    fn from_tag(tag: u8) -> Result<Kept, String> {
        match tag {
            0 => Ok(Kept::Raw),
            1 => Ok(Kept::Zstd),
            2 => Ok(Kept::Sealed),
            other => Err(format!("the body is kept in an unknown way (tag {other})")),
        }
    }
}

/// A value taken apart, its body not yet looked at.
pub(crate) struct Value<'a> {
    pub(crate) frame: Frame,
    pub(crate) hash: Hash,
    kept: u8,
    stored_body: &'a [u8],
    /// How many bytes the value has in all.
    pub(crate) total_bytes: usize,
}

/// Encodes values; what compression needs is set up once.
pub(crate) struct Encoder {
    compressor: Option<Compressor<'static>>,
}

impl Encoder {
    /// An encoder that keeps bodies raw where compression cannot be set up.
    pub(crate) fn new() -> Encoder {
        let compressor = Compressor::new(ZSTD_LEVEL)
            .inspect_err(|error| log::warn!("bodies are not compressed: {error}"))
            .ok();
        Encoder { compressor }
    }

    /// The bytes of a value: the encoded frame, and the body in the smaller of its two forms.
    pub(crate) fn encode(&mut self, frame: &[u8], head: &[u8], raw: &[u8]) -> Vec<u8> {
        let body = [head, raw].concat();
        match self.compressed(&body) {
            Some(smaller) => value(frame, Kept::Zstd, &smaller),
            None => value(frame, Kept::Raw, &body),
        }
    }

    /// The compressed form when it saves at least an eighth.
    fn compressed(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        if body.len() <= COMPRESS_OVER_BYTES {
            return None;
        }
        let smaller = self.compressor.as_mut()?.compress(body).ok()?;
        (smaller.len() <= body.len() - body.len() / 8).then_some(smaller)
    }
}

fn value(frame: &[u8], kept: Kept, stored: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(PREFIX_BYTES + frame.len() + stored.len());
    value.extend_from_slice(&MAGIC);
    value.push(kept as u8);
    // Both fit: a frame has a limit far below u32::MAX, and so has a body.
    value.extend_from_slice(&(frame.len() as u32).to_le_bytes());
    value.extend_from_slice(&(stored.len() as u32).to_le_bytes());
    value.extend_from_slice(frame);
    value.extend_from_slice(stored);
    value
}

impl<'a> Value<'a> {
    /// Takes the value at the start of `bytes` apart. Bytes after it are left alone.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Value<'a>, String> {
        let (prefix, rest) =
            bytes.split_at_checked(PREFIX_BYTES).ok_or("the value is shorter than its prefix")?;
        if prefix[..4] != MAGIC {
            return Err("the value does not start with the magic of a record".to_owned());
        }
        let frame_bytes = u32_at(prefix, 5) as usize;
        let body_bytes = u32_at(prefix, 9) as usize;
        if frame_bytes > MAX_FRAME_BYTES || body_bytes > MAX_BODY_BYTES {
            return Err(format!(
                "the value claims a frame of {frame_bytes} bytes (limit {MAX_FRAME_BYTES}) and a body of \
                 {body_bytes} bytes (limit {MAX_BODY_BYTES})"
            ));
        }
        let (frame, rest) = rest.split_at_checked(frame_bytes).ok_or("the frame is cut short")?;
        let stored_body = rest.get(..body_bytes).ok_or("the body is cut short")?;
        Ok(Value {
            hash: frame_hash(frame),
            frame: Frame::decode(frame)?,
            kept: prefix[4],
            stored_body,
            total_bytes: PREFIX_BYTES + frame_bytes + body_bytes,
        })
    }

    /// Takes `bytes` apart as one value and nothing else.
    pub(crate) fn parse_whole(bytes: &'a [u8]) -> Result<Value<'a>, String> {
        let value = Value::parse(bytes)?;
        if value.total_bytes != bytes.len() {
            return Err(format!(
                "the value has {} bytes, its prefix says {}",
                bytes.len(),
                value.total_bytes
            ));
        }
        Ok(value)
    }

    /// The body as it was appended, head and raw part, checked against the frame.
    pub(crate) fn body(&self) -> Result<(Vec<u8>, Vec<u8>), String> {
        let head_bytes = self.frame.head_bytes as usize;
        let body_bytes = self.frame.head_bytes.saturating_add(self.frame.raw_bytes);
        if body_bytes > MAX_BODY_BYTES as u64 {
            return Err(format!(
                "the frame claims a body of {body_bytes} bytes, the limit is {MAX_BODY_BYTES}"
            ));
        }
        let mut head = match Kept::from_tag(self.kept)? {
            Kept::Raw => self.stored_body.to_vec(),
            Kept::Zstd => zstd::bulk::decompress(self.stored_body, body_bytes as usize)
                .map_err(|error| format!("the body cannot be decompressed: {error}"))?,
            Kept::Sealed => return Err("the body is sealed, which this version cannot read".to_owned()),
        };
        if head.len() as u64 != body_bytes {
            return Err(format!("the body has {} bytes, its frame says {body_bytes}", head.len()));
        }
        let raw = head.split_off(head_bytes);
        let found = body_hash(&head, &raw);
        if found.0 != self.frame.body {
            return Err(format!("the body has the hash {found}, its frame says {}", Hash(self.frame.body)));
        }
        Ok((head, raw))
    }

    /// The whole record, its body checked.
    pub(crate) fn into_record(self) -> Result<Record, String> {
        let (head, raw) = self.body()?;
        let frame = self.frame;
        Ok(Record {
            position: Position { global: frame.global, sequence: frame.sequence },
            stream: frame.stream,
            kind: frame.kind,
            version: frame.version,
            time_ms: frame.time_ms,
            head,
            raw,
            previous: Hash(frame.previous),
            hash: self.hash,
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::NewRecord;

    fn value_of(head: &[u8], raw: &[u8]) -> Vec<u8> {
        let record = NewRecord {
            stream: "s".to_owned(),
            kind: "k".to_owned(),
            version: 1,
            time_ms: 0,
            head: head.to_vec(),
            raw: raw.to_vec(),
        };
        let frame = Frame::of(&record, Position { global: 1, sequence: 1 }, Hash::ZERO);
        Encoder::new().encode(&frame.encode().expect("encode"), head, raw)
    }

    #[test]
    fn a_body_that_compresses_is_kept_smaller_and_comes_back_exact() {
        let raw = b"the same words again ".repeat(100);
        let value = value_of(b"{\"a\":1}", &raw);
        assert!(value.len() < raw.len() / 4);
        let (head, back) = Value::parse_whole(&value).expect("parse").body().expect("body");
        assert_eq!((head.as_slice(), back), (&b"{\"a\":1}"[..], raw));
    }

    #[test]
    fn a_sealed_body_is_refused_with_a_reason() {
        let mut value = value_of(b"{}", b"raw");
        value[4] = Kept::Sealed as u8;
        let error = Value::parse_whole(&value).expect("parse").body().expect_err("sealed");
        assert!(error.contains("sealed"), "{error}");
    }

    #[test]
    fn no_changed_byte_goes_unnoticed() {
        let value = value_of(b"{\"a\":1}", &[7; 40]);
        let sound = Value::parse_whole(&value).expect("parse").hash;
        for at in 0..value.len() {
            let mut changed = value.clone();
            changed[at] ^= 0x20;
            let noticed = match Value::parse_whole(&changed) {
                Err(_) => true,
                Ok(parsed) => parsed.hash != sound || parsed.body().is_err(),
            };
            assert!(noticed, "byte {at} changed and nothing noticed");
        }
    }
}
