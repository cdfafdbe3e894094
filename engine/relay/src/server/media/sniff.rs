//! What a blob is, told from its bytes.

/// How many bytes tell it.
pub(super) const HEAD_BYTES: usize = 8 << 10;

/// The sorts that differ in what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Image,
    Gif,
    Video,
    Audio,
    /// Of the image or video family, but none that is taken.
    OtherPicture,
    File,
}

/// What a blob is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sniffed {
    pub(super) sort: Sort,
    pub(super) mime: &'static str,
    /// The ending of its name: 1 to 8 of a-z and 0-9.
    pub(super) ending: &'static str,
}

/// Tells it from the first bytes.
pub(super) fn sniff(head: &[u8]) -> Sniffed {
    let of = |sort, mime, ending| Sniffed { sort, mime, ending };
    if let Some(known) = infer::get(head) {
        let (mime, ending) = (known.mime_type(), known.extension());
        let sort = match (mime, known.matcher_type()) {
            ("image/gif", _) => Sort::Gif,
            ("image/png" | "image/jpeg" | "image/webp", _) => Sort::Image,
            ("video/mp4", _) => Sort::Video,
            (_, infer::MatcherType::Audio) => Sort::Audio,
            (_, infer::MatcherType::Image | infer::MatcherType::Video) => Sort::OtherPicture,
            _ => Sort::File,
        };
        return of(sort, mime, ending);
    }
    // A head may end within a character.
    let is_text = match std::str::from_utf8(head) {
        Ok(text) => !text.is_empty() && !text.contains('\0'),
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0 && !head.contains(&0),
    };
    match is_text {
        true => of(Sort::File, "text/plain", "txt"),
        false => of(Sort::File, "application/octet-stream", "bin"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_tell_what_a_blob_is() {
        let sniffed = |head: &[u8]| {
            let sniffed = sniff(head);
            (sniffed.sort, sniffed.ending)
        };
        assert_eq!(sniffed(b"\x89PNG\r\n\x1a\n0000"), (Sort::Image, "png"));
        assert_eq!(sniffed(b"GIF89a000"), (Sort::Gif, "gif"));
        assert_eq!(sniffed(b"RIFF\0\0\0\0WEBPVP8 "), (Sort::Image, "webp"));
        assert_eq!(sniffed(b"%PDF-1.7 "), (Sort::File, "pdf"));
        assert_eq!(sniffed(b"ID3\x03\0\0\0\0\0\0"), (Sort::Audio, "mp3"));
        assert_eq!(sniffed(b"BM0000000000"), (Sort::OtherPicture, "bmp"));
        assert_eq!(sniffed("plain \u{e9}".as_bytes()), (Sort::File, "txt"));
        assert_eq!(sniffed(b""), (Sort::File, "bin"));
        assert_eq!(sniffed(b"\x01\x02\xff\xfe"), (Sort::File, "bin"));
    }
}
