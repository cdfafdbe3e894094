//! A picture in the size that is wanted: as it is if it fits, else smaller.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};

use super::kinds;
use crate::tool::ToolError;

/// Most pixels that are decoded.
const PIXELS_MAX: u64 = 67_108_864;
/// Most memory that a decoder may take, in bytes.
const DECODER_MAX_BYTES: u64 = 256 * 1024 * 1024;
/// Largest picture that is passed on, in bytes.
const SHOWN_MAX_BYTES: usize = 3 * 1024 * 1024;
/// How good a JPEG is made, of 100.
const JPEG_QUALITY: u8 = 85;
/// The edge of a second try, in percent of the first.
const SECOND_EDGE_PERCENT: u64 = 75;
/// The least edge of a second try, in pixels.
const SECOND_EDGE_MIN: u32 = 64;

/// A picture as it is passed on.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) bytes: Vec<u8>,
    pub(super) mime: &'static str,
    /// Width and height, in pixels.
    pub(super) size: (u32, u32),
    /// Width and height before it was made smaller.
    pub(super) original: Option<(u32, u32)>,
}

/// Brings a picture's longer edge within `edge` pixels, and its size within what is passed on.
pub(super) fn shrink(bytes: Vec<u8>, edge: u32) -> Result<Shown, ToolError> {
    let unsupported = "unsupported image format; use png, jpeg, gif or webp";
    let (format, mime) = kinds::kind(&bytes).ok_or_else(|| ToolError::of_image(unsupported))?;
    if kinds::is_animated(format, &bytes) {
        return Err(ToolError::of_image("animated images are not supported; save one frame as png"));
    }
    let size = reader(&bytes, format).into_dimensions().map_err(|error| broken(&error))?;
    let pixels = u64::from(size.0) * u64::from(size.1);
    if pixels > PIXELS_MAX {
        return Err(ToolError::of_image(format!(
            "the picture has {pixels} pixels, the limit is {PIXELS_MAX}; make it smaller first"
        )));
    }
    if size.0.max(size.1) <= edge && bytes.len() <= SHOWN_MAX_BYTES {
        return Ok(Shown { bytes, mime, size, original: None });
    }
    let decoded = reader(&bytes, format).decode().map_err(|error| broken(&error))?;
    let second = u64::from(edge) * SECOND_EDGE_PERCENT / 100;
    let second = u32::try_from(second).unwrap_or(edge).max(SECOND_EDGE_MIN);
    for edge in [edge, second] {
        let shown = encode(&decoded, edge)?;
        if shown.bytes.len() <= SHOWN_MAX_BYTES {
            return Ok(shown);
        }
    }
    Err(ToolError::of_image(format!(
        "the picture has more than {SHOWN_MAX_BYTES} bytes even when it is made smaller; ask for a smaller max_dim"
    )))
}

fn reader(bytes: &[u8], format: ImageFormat) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(DECODER_MAX_BYTES);
    reader.limits(limits);
    reader
}

fn broken(error: &image::ImageError) -> ToolError {
    ToolError::of_image(format!("the picture cannot be decoded: {error}"))
}

fn encode(picture: &DynamicImage, edge: u32) -> Result<Shown, ToolError> {
    let original = (picture.width(), picture.height());
    let size = fitting(original, edge);
    let small = picture.resize_exact(size.0, size.1, FilterType::Lanczos3);
    let mut bytes = Cursor::new(Vec::new());
    let (encoded, mime) = match picture.color().has_alpha() {
        true => (small.write_to(&mut bytes, ImageFormat::Png), "image/png"),
        false => {
            let encoder = JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY);
            (small.to_rgb8().write_with_encoder(encoder), "image/jpeg")
        }
    };
    encoded.map_err(|error| ToolError::Trouble(format!("the smaller picture cannot be encoded: {error}")))?;
    Ok(Shown { bytes: bytes.into_inner(), mime, size, original: Some(original) })
}

/// The size with the longer edge at `edge`, unless it is shorter already.
fn fitting((width, height): (u32, u32), edge: u32) -> (u32, u32) {
    let longer = width.max(height);
    if longer <= edge {
        return (width, height);
    }
    let scaled = |side: u32| (u64::from(side) * u64::from(edge) / u64::from(longer)).max(1);
    // Both are at most `edge`.
    (u32::try_from(scaled(width)).unwrap_or(edge), u32::try_from(scaled(height)).unwrap_or(edge))
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, RgbImage, RgbaImage};

    use super::*;

    fn bytes(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.into().write_to(&mut bytes, format).expect("encodes");
        bytes.into_inner()
    }

    /// Pixels that no encoder makes small.
    fn noise(width: u32, height: u32) -> RgbaImage {
        let mut state = 1_u32;
        RgbaImage::from_fn(width, height, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            image::Rgba(state.to_le_bytes())
        })
    }

    #[test]
    fn a_small_picture_is_passed_on_to_the_byte() {
        for format in [ImageFormat::Png, ImageFormat::Gif, ImageFormat::WebP] {
            let given = bytes(RgbaImage::new(4, 2), format);
            let shown = shrink(given.clone(), 64).expect("shown");
            assert_eq!((shown.bytes, shown.size, shown.original), (given, (4, 2), None));
        }
    }

    #[test]
    fn a_large_one_is_png_with_alpha_and_jpeg_without() {
        let alpha = shrink(bytes(RgbaImage::new(4096, 2048), ImageFormat::Png), 512).expect("shown");
        assert_eq!((alpha.mime, alpha.size, alpha.original), ("image/png", (512, 256), Some((4096, 2048))));
        let photo = shrink(bytes(RgbImage::new(3000, 2000), ImageFormat::Jpeg), 800).expect("shown");
        assert_eq!((photo.mime, photo.size), ("image/jpeg", (800, 533)));
        let grey = shrink(bytes(GrayImage::new(100, 1), ImageFormat::Png), 64).expect("shown");
        assert_eq!((grey.mime, grey.size), ("image/jpeg", (64, 1)));
        for shown in [alpha, photo, grey] {
            let (format, mime) = kinds::kind(&shown.bytes).expect("a kind");
            assert_eq!(mime, shown.mime);
            assert_eq!(reader(&shown.bytes, format).into_dimensions().expect("sound"), shown.size);
        }
    }

    #[test]
    fn one_that_stays_too_heavy_is_tried_at_three_quarters_and_then_refused() {
        let heavy = bytes(noise(1024, 1024), ImageFormat::Png);
        let shown = shrink(heavy, 1000).expect("shown");
        assert_eq!(shown.size, (750, 750));
        let heavier = bytes(noise(2048, 1800), ImageFormat::Png);
        let error = shrink(heavier, 2048).expect_err("refused").to_string();
        assert!(error.contains("3145728 bytes"), "{error}");
    }

    #[test]
    fn too_many_pixels_are_refused_before_they_are_decoded() {
        let mut png = bytes(GrayImage::new(1, 1), ImageFormat::Png);
        png[16..24].copy_from_slice(&[0, 0, 0x23, 0x28, 0, 0, 0x23, 0x28]);
        // The header's checksum.
        let crc = crc(&png[12..29]).to_be_bytes();
        png[29..33].copy_from_slice(&crc);
        let error = shrink(png, 64).expect_err("refused").to_string();
        assert!(error.contains("81000000 pixels"), "{error}");
        assert!(shrink(b"\x89PNG\r\n\x1a\n".to_vec(), 64).is_err());
    }

    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |crc: u32, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
        })
    }
}
