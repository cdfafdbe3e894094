//! What kind of picture some bytes are, by the bytes alone, and whether it moves.

use image::ImageFormat;

/// The kind and its media type, if it is one that models take.
pub(super) fn kind(bytes: &[u8]) -> Option<(ImageFormat, &'static str)> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((ImageFormat::Png, "image/png"));
    }
    if bytes.starts_with(b"\xff\xd8\xff") {
        return Some((ImageFormat::Jpeg, "image/jpeg"));
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        return Some((ImageFormat::Gif, "image/gif"));
    }
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP".as_slice());
    is_webp.then_some((ImageFormat::WebP, "image/webp"))
}

/// Whether the picture has more than one frame. Nothing is decoded.
pub(super) fn is_animated(format: ImageFormat, bytes: &[u8]) -> bool {
    match format {
        ImageFormat::Gif => gif_frames(bytes) > 1,
        ImageFormat::WebP => is_animated_webp(bytes),
        _ => false,
    }
}

/// The extended header of a webp has a bit for it.
fn is_animated_webp(bytes: &[u8]) -> bool {
    const ANIMATION_BIT: u8 = 0b10;
    bytes.get(12..16) == Some(b"VP8X".as_slice())
        && bytes.get(20).is_some_and(|flags| flags & ANIMATION_BIT != 0)
}

/// Counts frames from block to block, up to the second. A file that breaks off has those up to there.
fn gif_frames(bytes: &[u8]) -> usize {
    const HEADER_BYTES: usize = 13;
    const EXTENSION: u8 = 0x21;
    const FRAME: u8 = 0x2c;
    let table_bytes = |flags: u8| if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) };
    let Some(flags) = bytes.get(10) else { return 0 };
    let mut at = HEADER_BYTES + table_bytes(*flags);
    let mut frames = 0;
    while let Some(block) = bytes.get(at) {
        at = match *block {
            EXTENSION => skip_blocks(bytes, at + 2),
            FRAME => {
                frames += 1;
                let Some(flags) = bytes.get(at + 9).filter(|_| frames < 2) else { return frames };
                // The frame's header, its colours, and a byte before its data.
                skip_blocks(bytes, at + 10 + table_bytes(*flags) + 1)
            }
            _ => return frames,
        };
    }
    frames
}

/// The position behind a run of blocks, each with its length before it, that ends in an empty one.
fn skip_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(length) = bytes.get(at) {
        at += 1 + usize::from(*length);
        if *length == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gif(frames: usize) -> Vec<u8> {
        let mut bytes = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff".to_vec();
        for _ in 0..frames {
            bytes.extend_from_slice(b"\x21\xf9\x04\0\x0a\0\0\0");
            bytes.extend_from_slice(b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0");
        }
        bytes.push(0x3b);
        bytes
    }

    fn webp(flags: u8) -> Vec<u8> {
        [b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0".as_slice(), &[flags, 0, 0, 0]].concat()
    }

    #[test]
    fn a_kind_is_known_by_its_bytes() {
        let mime = |bytes: &[u8]| kind(bytes).map(|(_, mime)| mime);
        assert_eq!(mime(b"\x89PNG\r\n\x1a\nx"), Some("image/png"));
        assert_eq!(mime(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(mime(&gif(1)), Some("image/gif"));
        assert_eq!(mime(&webp(0)), Some("image/webp"));
        for other in [b"BM\x1a\0".as_slice(), b"no image", b"", b"RIFF\0\0\0\0WAVE"] {
            assert_eq!(mime(other), None);
        }
    }

    #[test]
    fn what_moves_is_known_without_decoding() {
        assert!(!is_animated(ImageFormat::Gif, &gif(1)));
        assert!(is_animated(ImageFormat::Gif, &gif(2)));
        assert!(!is_animated(ImageFormat::WebP, &webp(0b1_0000)));
        assert!(is_animated(ImageFormat::WebP, &webp(0b10)));
        let whole = gif(2);
        for cut in 0..whole.len() {
            gif_frames(&whole[..cut]);
        }
    }
}
