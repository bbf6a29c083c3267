//! Decodes PNG and JPEG images to plain ones, and encodes plain ones as PNG.
//!
//! A plain image that is decoded has `black` (grey, not inverted) or `red`, `green` and `blue` in any order, of any
//! component type that holds the samples: 8 bits fit all but `int8`, 16 bits all but `uint8` and `int8`; values are not
//! scaled. Grey samples of fewer than 8 bits are scaled to 8, as PNG requires; a palette is replaced by its colours. DS
//! has no alpha channel: colours are unchanged, and alpha is dropped.

use std::borrow::Cow;
use std::io::Cursor;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::types::{Channel, Fundamental, Image, ImageFormat, Tabular, Type};
use crate::cursor::allocate;
use crate::error::{Error, Result};
use crate::formats::guard::guarded;
use crate::limits::Budget;

pub(super) const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
pub(super) const JPEG_SIGNATURE: &[u8] = b"\xff\xd8";

/// The place of each component's sample in a pixel of a file; `None` if no file has such pixels.
fn sample_indices(image: &Image) -> Option<Vec<usize>> {
    let index = |channel: Channel| match channel {
        Channel::Black | Channel::Red => 0,
        Channel::Green => 1,
        Channel::Blue => 2,
    };
    let indices: Vec<usize> = image.components.iter().map(|(channel, _)| index(*channel)).collect();
    let grey = matches!(image.components.as_slice(), [(Channel::Black, _)]);
    let colour = indices.len() == 3 && image.components.iter().all(|(channel, _)| *channel != Channel::Black);
    (grey || colour).then_some(indices)
}

/// Whether files can be decoded to plain images of these components.
fn is_decodable(image: &Image) -> bool {
    sample_indices(image).is_some() && image.components.iter().all(|(_, kind)| *kind != Fundamental::Int8)
}

/// Whether a plain image of this type can be a PNG file: all components of one type that PNG has.
fn is_encodable(image: &Image) -> bool {
    let of = |wanted: Fundamental| image.components.iter().all(|(_, kind)| *kind == wanted);
    sample_indices(image).is_some() && (of(Fundamental::UInt8) || of(Fundamental::UInt32))
}

/// The transformation of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transform {
    /// Unchanged.
    Keep,
    /// PNG and JPEG become plain.
    Decode,
    /// Plain becomes PNG.
    Encode,
    /// PNG and JPEG become plain, and plain becomes PNG.
    Swap,
}

impl Transform {
    /// The type of an image afterwards. Returns an error if it cannot be decoded or encoded.
    pub(super) fn image(self, image: &Image) -> Result<Image> {
        let format = match (image.format, self) {
            (ImageFormat::Png | ImageFormat::Jpeg, Transform::Decode | Transform::Swap) => {
                if !is_decodable(image) {
                    return Err(Error::unsupported(
                        "decoding an image to other components than black or red, green and blue, or to int8",
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

/// Whether a type has PNG images.
pub(super) fn holds_png(kind: &Type) -> bool {
    match kind {
        Type::Fundamental(_) | Type::Tensor(_) => false,
        Type::Image(image) => image.format == ImageFormat::Png,
        Type::Nullable(inner) | Type::Array(inner) => holds_png(inner),
        Type::Struct(fields) => fields.iter().any(|(_, kind)| holds_png(kind)),
        Type::Tabular(table) => table.columns.iter().any(|(_, kind)| holds_png(kind)),
    }
}

/// The header of a PNG or JPEG file.
struct FileInfo {
    width: u32,
    height: u32,
    /// Whether pixels have colours, not only grey.
    colour: bool,
    /// Whether samples have 16 bits.
    wide: bool,
}

impl FileInfo {
    /// Returns an error unless the file matches its type, as far as files can.
    fn check(&self, image: &Image) -> Result<()> {
        let found = (self.width, self.height);
        if found != (image.width, image.height) {
            let expected = format_args!("an image of {} x {} pixels", image.width, image.height);
            return Err(
                Error::malformed(expected, format_args!("{} x {}", found.0, found.1)).rule("image_size")
            );
        }
        let Some(indices) = sample_indices(image) else { return Ok(()) };
        if self.colour != (indices.len() == 3) {
            let words = |colour| if colour { "red, green and blue" } else { "black" };
            return Err(Error::malformed(words(!self.colour), words(self.colour)).rule("image_size"));
        }
        let narrow = image.components.iter().any(|(_, kind)| *kind == Fundamental::UInt8);
        if self.wide && narrow {
            return Err(Error::malformed("samples of at most 8 bits", "16 bits").rule("image_size"));
        }
        Ok(())
    }
}

/// Decoded samples: pixel by pixel, row by row.
struct Samples {
    bytes: Vec<u8>,
    /// Samples of a pixel, alpha included.
    per_pixel: usize,
    wide: bool,
}

#[cold]
fn not_png(error: impl std::fmt::Display) -> Error {
    Error::malformed("a valid PNG file", error).rule("image_size")
}

#[cold]
fn not_jpeg(error: impl std::fmt::Debug) -> Error {
    Error::malformed("a valid JPEG file", format_args!("{error:?}")).rule("image_size")
}

type PngDecoder<'b> = png::Decoder<Cursor<&'b [u8]>>;

fn open_png<'b>(bytes: &'b [u8], budget: &Budget) -> Result<(PngDecoder<'b>, FileInfo)> {
    if !bytes.starts_with(PNG_SIGNATURE) {
        return Err(Error::malformed("a PNG file", "another signature").rule("image_size"));
    }
    let most = usize::try_from(budget.limits().max_alloc).unwrap_or(usize::MAX);
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: most });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let info = decoder.read_header_info().map_err(not_png)?;
    let grey = matches!(info.color_type, png::ColorType::Grayscale | png::ColorType::GrayscaleAlpha);
    let wide = info.bit_depth == png::BitDepth::Sixteen;
    let info = FileInfo { width: info.width, height: info.height, colour: !grey, wide };
    Ok((decoder, info))
}

fn png_samples(mut decoder: PngDecoder<'_>, plain_bytes: u64, budget: &Budget) -> Result<Samples> {
    // Samples of 1, 2 and 4 bits become 8, palettes become colours, a transparent colour becomes alpha.
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(not_png)?;
    let size = reader
        .output_buffer_size()
        .ok_or_else(|| Error::limit("the address space", usize::MAX, "more bytes for an image"))?;
    budget.check((size as u64).saturating_add(plain_bytes))?;
    let mut bytes = allocate(size as u64, budget)?;
    bytes.resize(size, 0u8);
    let frame = reader.next_frame(&mut bytes).map_err(not_png)?;
    reader.finish().map_err(not_png)?;
    bytes.truncate(frame.buffer_size());
    let wide = frame.bit_depth == png::BitDepth::Sixteen;
    Ok(Samples { bytes, per_pixel: frame.color_type.samples(), wide })
}

/// Returns an error unless a JPEG file has its end marker: the decoder would fill the missing part of a
/// truncated file.
fn check_jpeg_end(bytes: &[u8]) -> Result<()> {
    let cut = || Error::malformed("a valid JPEG file", "a truncated one").rule("image_size");
    let at = |position: usize| bytes.get(position).copied().ok_or_else(cut);
    let mut position = JPEG_SIGNATURE.len();
    loop {
        // A marker is preceded by any number of ff bytes.
        while at(position)? != 0xff || at(position + 1)? == 0xff {
            position += 1;
        }
        let marker = at(position + 1)?;
        position += 2;
        match marker {
            0xd9 => return Ok(()),
            0x01 | 0xd0..=0xd7 => continue,
            _ => {}
        }
        position += usize::from(u16::from_be_bytes([at(position)?, at(position + 1)?])).max(2);
        if marker == 0xda {
            // Coded data: an ff in it is followed by 00 or is a restart marker.
            while at(position)? != 0xff || matches!(at(position + 1)?, 0x00 | 0xd0..=0xd7) {
                position += 1;
            }
        }
    }
}

fn open_jpeg(bytes: &[u8]) -> Result<(JpegDecoder<ZCursor<&[u8]>>, FileInfo)> {
    if !bytes.starts_with(JPEG_SIGNATURE) {
        return Err(Error::malformed("a JPEG file", "another signature").rule("image_size"));
    }
    // Strict, so that a truncated file is an error instead of an image with a grey area.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX));
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(not_jpeg)?;
    let unknown = || Error::malformed("a JPEG file", "no frame").rule("image_size");
    let (width, height) = decoder.dimensions().ok_or_else(unknown)?;
    let number = |size: usize| u32::try_from(size).map_err(|_| unknown());
    let colour = decoder.input_colorspace().ok_or_else(unknown)? != ColorSpace::Luma;
    let info = FileInfo { width: number(width)?, height: number(height)?, colour, wide: false };
    Ok((decoder, info))
}

fn jpeg_samples(
    mut decoder: JpegDecoder<ZCursor<&[u8]>>,
    info: &FileInfo,
    file_bytes: usize,
    plain_bytes: u64,
    budget: &Budget,
) -> Result<Samples> {
    let (space, per_pixel) = if info.colour { (ColorSpace::RGB, 3) } else { (ColorSpace::Luma, 1) };
    let options = decoder.options().jpeg_set_out_colorspace(space);
    decoder.set_options(options);
    let size = u64::from(info.width) * u64::from(info.height) * per_pixel as u64;
    budget.limits().check_ratio(file_bytes as u64, size)?;
    // A progressive file needs memory for its coefficients, of two bytes each, until the last scan.
    budget.check(size.saturating_mul(4).saturating_add(plain_bytes))?;
    let mut bytes = allocate(size, budget)?;
    bytes.resize(usize::try_from(size).unwrap_or(usize::MAX), 0u8);
    decoder.decode_into(&mut bytes).map_err(not_jpeg)?;
    Ok(Samples { bytes, per_pixel, wide: false })
}

/// Decodes a file whose type has been compared with its header.
fn samples(bytes: &[u8], image: &Image, budget: &Budget) -> Result<Samples> {
    budget.check(bytes.len() as u64)?;
    let plain_bytes = image.plain_bytes().unwrap_or(u64::MAX);
    guarded(|| match image.format {
        ImageFormat::Png => {
            let (decoder, info) = open_png(bytes, budget)?;
            info.check(image)?;
            png_samples(decoder, plain_bytes, budget)
        }
        ImageFormat::Jpeg => {
            let (decoder, info) = open_jpeg(bytes)?;
            info.check(image)?;
            check_jpeg_end(bytes)?;
            jpeg_samples(decoder, &info, bytes.len(), plain_bytes, budget)
        }
        ImageFormat::Plain => Err(Error::usage("a plain image needs no decoder")),
    })
}

/// Returns an error if a PNG or JPEG file is invalid or does not match its type. The rows of a PNG file are decoded
/// one by one.
pub(super) fn check_file(bytes: &[u8], image: &Image, budget: &Budget) -> Result<()> {
    if image.format != ImageFormat::Png {
        return samples(bytes, image, budget).map(drop);
    }
    guarded(|| {
        let (decoder, info) = open_png(bytes, budget)?;
        info.check(image)?;
        let mut reader = decoder.read_info().map_err(not_png)?;
        while reader.next_row().map_err(not_png)?.is_some() {}
        reader.finish().map_err(not_png)
    })
}

/// The plain image of a PNG or JPEG file, checked against its type.
pub(super) fn decode(bytes: &[u8], image: &Image, budget: &Budget) -> Result<Vec<u8>> {
    let indices = sample_indices(image).filter(|_| is_decodable(image));
    let indices = indices.ok_or_else(|| Error::unsupported("decoding an image to such components"))?;
    let Samples { bytes, per_pixel, wide } = samples(bytes, image, budget)?;
    let same = !wide && image.components.iter().all(|(_, kind)| *kind == Fundamental::UInt8);
    if same && indices.is_sorted() && per_pixel == indices.len() {
        return Ok(bytes);
    }
    let mut plain = allocate(image.plain_bytes().unwrap_or(u64::MAX), budget)?;
    let sample_bytes = if wide { 2 } else { 1 };
    for pixel in bytes.chunks_exact(per_pixel * sample_bytes) {
        for (index, (_, kind)) in indices.iter().zip(&image.components) {
            let sample = match pixel.get(index * sample_bytes..(index + 1) * sample_bytes) {
                Some([high, low]) => u16::from_be_bytes([*high, *low]),
                Some([byte]) => u16::from(*byte),
                _ => 0,
            };
            match kind {
                Fundamental::UInt8 => plain.extend(sample.to_be_bytes().last()),
                Fundamental::UInt64 | Fundamental::Int64 => plain.extend(u64::from(sample).to_be_bytes()),
                Fundamental::Float32 => plain.extend(f32::from(sample).to_be_bytes()),
                Fundamental::Float64 => plain.extend(f64::from(sample).to_be_bytes()),
                _ => plain.extend(u32::from(sample).to_be_bytes()),
            }
        }
    }
    Ok(plain)
}

/// The image type of a PNG or JPEG file, by its header: `black` or `red`, `green` and `blue`, of 8 or 16 bits.
pub(crate) fn image_type_of_file(bytes: &[u8], budget: &Budget) -> Result<Image> {
    let (info, format) = guarded(|| match bytes.starts_with(JPEG_SIGNATURE) {
        true => Ok((open_jpeg(bytes)?.1, ImageFormat::Jpeg)),
        false => Ok((open_png(bytes, budget)?.1, ImageFormat::Png)),
    })?;
    let kind = if info.wide { Fundamental::UInt32 } else { Fundamental::UInt8 };
    let channels: &[Channel] =
        if info.colour { &[Channel::Red, Channel::Green, Channel::Blue] } else { &[Channel::Black] };
    let components = channels.iter().map(|channel| (*channel, kind)).collect();
    Ok(Image { width: info.width, height: info.height, components, format })
}

/// The bytes of an image of this type from a file: decoded if the type is plain, otherwise the file itself if it
/// matches the type.
pub(crate) fn image_from_file(bytes: &[u8], image: &Image, budget: &Budget) -> Result<Vec<u8>> {
    if image.format != ImageFormat::Plain {
        check_file(bytes, image, budget)?;
        return Ok(bytes.to_vec());
    }
    let format = if bytes.starts_with(JPEG_SIGNATURE) { ImageFormat::Jpeg } else { ImageFormat::Png };
    decode(bytes, &Image { format, ..image.clone() }, budget)
}

/// The file of an image of this type: a plain one becomes a PNG file.
pub(crate) fn image_to_file<'b>(bytes: &'b [u8], image: &Image) -> Result<Cow<'b, [u8]>> {
    let size = image.plain_bytes().unwrap_or(u64::MAX);
    match image.format {
        ImageFormat::Plain if bytes.len() as u64 != size => {
            Err(Error::malformed(format_args!("an image of {size} bytes"), bytes.len()).rule("image_size"))
        }
        ImageFormat::Plain => encode_png(bytes, image).map(Cow::Owned),
        ImageFormat::Png | ImageFormat::Jpeg => Ok(Cow::Borrowed(bytes)),
    }
}

impl Image {
    /// Whether plain images of this type can be PNG files.
    pub(crate) fn fits_png(&self) -> bool {
        is_encodable(self)
    }
}

/// The PNG file of a plain image whose size has been checked.
pub(super) fn encode_png(bytes: &[u8], image: &Image) -> Result<Vec<u8>> {
    let cannot = |error: png::EncodingError| Error::unsupported(format!("a PNG image: {error}"));
    let Some(indices) = sample_indices(image) else { return Err(Error::unsupported("such a PNG image")) };
    let wide = image.components.iter().all(|(_, kind)| *kind == Fundamental::UInt32);
    let component_bytes = if wide { 4 } else { 1 };
    let mut samples = Vec::new();
    for pixel in bytes.chunks_exact(indices.len() * component_bytes) {
        // The sample at position `place` of the file is the component with that index.
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
