//! PNG images to plain ones and back.
//!
//! A plain image has `black` (grey, not inverted) or `red`, `green` and `blue` in any order, each `uint8` or `uint32`.
//! Samples of 8 bits become `uint8` (or fit `uint32`), samples of 16 bits become `uint32`, unscaled. Grey samples of
//! fewer than 8 bits are scaled to 8, as PNG asks. Alpha and palettes are refused.

use std::io::Cursor;

use super::types::{Channel, Fundamental, Image, ImageFormat, Tabular, Type};
use crate::cursor::allocate;
use crate::error::{Error, Result};
use crate::limits::Budget;

pub(super) const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
pub(super) const JPEG_SIGNATURE: &[u8] = b"\xff\xd8";

/// Where each component's sample stands in a pixel of a PNG file; `None` if a PNG file has no such pixels.
fn sample_indices(image: &Image) -> Option<Vec<usize>> {
    let index = |channel: Channel| match (channel, image.components.len()) {
        (Channel::Black | Channel::Red, _) => 0,
        (Channel::Green, _) => 1,
        (Channel::Blue, _) => 2,
    };
    let indices: Vec<usize> = image.components.iter().map(|(channel, _)| index(*channel)).collect();
    let grey = matches!(image.components.as_slice(), [(Channel::Black, _)]);
    let colour = indices.len() == 3 && image.components.iter().all(|(channel, _)| *channel != Channel::Black);
    let samples =
        image.components.iter().all(|(_, kind)| matches!(kind, Fundamental::UInt8 | Fundamental::UInt32));
    ((grey || colour) && samples).then_some(indices)
}

/// Whether a plain image of this type can be a PNG file: all components of one type.
fn is_encodable(image: &Image) -> bool {
    let mut kinds = image.components.iter().map(|(_, kind)| kind);
    let first = kinds.next();
    sample_indices(image).is_some() && kinds.all(|kind| Some(kind) == first)
}

/// What is done to images on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transform {
    /// They stay as they are.
    Keep,
    /// PNG becomes plain.
    Decode,
    /// Plain becomes PNG.
    Encode,
    /// PNG becomes plain and plain becomes PNG.
    Swap,
}

impl Transform {
    /// The type that an image has afterwards. Errs if it cannot be decoded.
    pub(super) fn image(self, image: &Image) -> Result<Image> {
        let format = match (image.format, self) {
            (ImageFormat::Png, Transform::Decode | Transform::Swap) => {
                if sample_indices(image).is_none() {
                    return Err(Error::unsupported(
                        "decoding a PNG image to other components than black or red, green and blue of uint8 or uint32",
                    ));
                }
                ImageFormat::Plain
            }
            (ImageFormat::Plain, Transform::Encode | Transform::Swap) if is_encodable(image) => {
                ImageFormat::Png
            }
            (ImageFormat::Plain, Transform::Encode) => {
                return Err(Error::unsupported(
                    "encoding an image as PNG that has other components than black or red, green and blue, all of uint8 or all of uint32",
                ));
            }
            (format, _) => format,
        };
        Ok(Image { format, ..image.clone() })
    }

    /// The type with its images transformed.
    pub(super) fn apply(self, kind: &Type) -> Result<Type> {
        let named = |fields: &[(String, Type)]| {
            fields
                .iter()
                .map(|(name, kind)| Ok((name.clone(), self.apply(kind)?)))
                .collect::<Result<Vec<_>>>()
        };
        Ok(match kind {
            Type::Fundamental(_) | Type::Tensor(_) => kind.clone(),
            Type::Image(image) => Type::Image(self.image(image)?),
            Type::Nullable(inner) => Type::Nullable(Box::new(self.apply(inner)?)),
            Type::Array(inner) => Type::Array(Box::new(self.apply(inner)?)),
            Type::Struct(fields) => Type::Struct(named(fields)?),
            Type::Tabular(table) => {
                Type::Tabular(Tabular { columns: named(&table.columns)?, row_count: table.row_count })
            }
        })
    }
}

#[cold]
fn not_png(error: impl std::fmt::Display) -> Error {
    Error::malformed("a sound PNG file", error).rule("image_size")
}

/// Opens a PNG file whose size is that of its type.
fn open_png<'b>(bytes: &'b [u8], image: &Image, budget: &Budget) -> Result<png::Decoder<Cursor<&'b [u8]>>> {
    if !bytes.starts_with(PNG_SIGNATURE) {
        return Err(Error::malformed("a PNG file", "another signature").rule("image_size"));
    }
    let most = usize::try_from(budget.limits().max_alloc).unwrap_or(usize::MAX);
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: most });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let info = decoder.read_header_info().map_err(not_png)?;
    let found = (info.width, info.height);
    if found != (image.width, image.height) {
        let expected = format_args!("an image of {} x {} pixels", image.width, image.height);
        return Err(Error::malformed(expected, format_args!("{} x {}", found.0, found.1)).rule("image_size"));
    }
    Ok(decoder)
}

/// Compares the channels of a PNG file with those of its type, where a PNG file can have those; gives whether samples
/// have 16 bits. A palette holds colours; alpha is beside the channels.
fn check_channels(info: &png::Info<'_>, image: &Image) -> Result<bool> {
    let wide = info.bit_depth == png::BitDepth::Sixteen;
    let Some(indices) = sample_indices(image) else { return Ok(wide) };
    let colour = !matches!(info.color_type, png::ColorType::Grayscale | png::ColorType::GrayscaleAlpha);
    if colour != (indices.len() == 3) {
        let words = |colour| if colour { "red, green and blue" } else { "black" };
        return Err(Error::malformed(words(!colour), words(colour)).rule("image_size"));
    }
    let narrow = image.components.iter().any(|(_, kind)| *kind == Fundamental::UInt8);
    if wide && narrow {
        return Err(Error::malformed("samples of at most 8 bits", "16 bits").rule("image_size"));
    }
    Ok(wide)
}

/// Errs if a PNG file is not sound, or not what its type says. Its rows are decoded one by one.
pub(super) fn check_png(bytes: &[u8], image: &Image, budget: &Budget) -> Result<()> {
    let mut decoder = open_png(bytes, image, budget)?;
    check_channels(decoder.read_header_info().map_err(not_png)?, image)?;
    let mut reader = decoder.read_info().map_err(not_png)?;
    while reader.next_row().map_err(not_png)?.is_some() {}
    reader.finish().map_err(not_png)
}

/// The plain image of a PNG file, checked against its type.
pub(super) fn decode_png(bytes: &[u8], image: &Image, budget: &Budget) -> Result<Vec<u8>> {
    let unsupported = |what: &str| Err(Error::unsupported(format!("decoding a PNG image with {what}")));
    let mut decoder = open_png(bytes, image, budget)?;
    let Some(indices) = sample_indices(image) else { return unsupported("such components") };
    let info = decoder.read_header_info().map_err(not_png)?;
    match info.color_type {
        png::ColorType::Grayscale | png::ColorType::Rgb => {}
        png::ColorType::Indexed => return unsupported("a palette"),
        png::ColorType::GrayscaleAlpha | png::ColorType::Rgba => return unsupported("alpha"),
    }
    let wide = check_channels(info, image)?;
    if bytes.len() as u64 > budget.limits().max_alloc {
        budget.check(bytes.len() as u64)?;
    }
    // Samples of 1, 2 and 4 bits become 8.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(not_png)?;
    if reader.info().trns.is_some() {
        return unsupported("transparency");
    }
    let size = reader
        .output_buffer_size()
        .ok_or_else(|| Error::limit("the address space", usize::MAX, "more bytes for an image"))?;
    let plain_bytes = image.plain_bytes().unwrap_or(u64::MAX);
    budget.check((size as u64).saturating_add(plain_bytes))?;
    let mut samples = allocate(size as u64, budget)?;
    samples.resize(size, 0u8);
    let frame = reader.next_frame(&mut samples).map_err(not_png)?;
    samples.truncate(frame.buffer_size());
    let same = !wide && image.components.iter().all(|(_, kind)| *kind == Fundamental::UInt8);
    if same && indices.is_sorted() {
        return Ok(samples);
    }
    let mut plain = allocate(plain_bytes, budget)?;
    let sample_bytes = if wide { 2 } else { 1 };
    for pixel in samples.chunks_exact(indices.len() * sample_bytes) {
        for (index, (_, kind)) in indices.iter().zip(&image.components) {
            let sample = match pixel.get(index * sample_bytes..(index + 1) * sample_bytes) {
                Some([high, low]) => u32::from(*high) << 8 | u32::from(*low),
                Some([byte]) => u32::from(*byte),
                _ => 0,
            };
            let [.., low] = sample.to_be_bytes();
            match kind {
                Fundamental::UInt8 => plain.push(low),
                _ => plain.extend_from_slice(&sample.to_be_bytes()),
            }
        }
    }
    Ok(plain)
}

/// The PNG file of a plain image whose bytes have been held against its size.
pub(super) fn encode_png(bytes: &[u8], image: &Image) -> Result<Vec<u8>> {
    let cannot = |error: png::EncodingError| Error::unsupported(format!("a PNG image: {error}"));
    let Some(indices) = sample_indices(image) else { return Err(Error::unsupported("such a PNG image")) };
    let wide = image.components.iter().all(|(_, kind)| *kind == Fundamental::UInt32);
    let component_bytes = if wide { 4 } else { 1 };
    let mut samples = Vec::new();
    for pixel in bytes.chunks_exact(indices.len() * component_bytes) {
        // The sample at place `place` of the file is the component that names it.
        for place in 0..indices.len() {
            let from = indices.iter().position(|index| *index == place).unwrap_or(0);
            match pixel.get(from * component_bytes..(from + 1) * component_bytes) {
                Some([0, 0, high, low]) => samples.extend_from_slice(&[*high, *low]),
                Some([byte]) => samples.push(*byte),
                _ => return Err(Error::lossy("a sample above 65535 does not fit a PNG image")),
            }
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, image.width, image.height);
    encoder.set_color(if indices.len() == 3 { png::ColorType::Rgb } else { png::ColorType::Grayscale });
    encoder.set_depth(if wide { png::BitDepth::Sixteen } else { png::BitDepth::Eight });
    let mut writer = encoder.write_header().map_err(cannot)?;
    writer.write_image_data(&samples).map_err(cannot)?;
    writer.finish().map_err(cannot)?;
    Ok(file)
}
