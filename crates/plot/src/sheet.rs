//! Contact sheets: the first images or tensors of a column.

use arrow_cast::cast;
use pentaglot::arrow::array::cast::AsArray;
use pentaglot::arrow::array::types::Float64Type;
use pentaglot::arrow::array::{Array, ArrayRef, RecordBatch};
use pentaglot::arrow::schema::{DataType, Field};
use pentaglot::hub::extension;
use pentaglot::hub::json::{Columns, JsonOptions};
use pentaglot::job::Opened;
use pentaglot::{Error, Result};

use crate::PlotOptions;
use crate::chart::{Chart, Tile};

/// Maximum number of images of a sheet.
const MOST: u64 = 60;
/// Maximum width and height of a tile in pixels; larger images are sampled.
const SIDE: usize = 256;
/// Bytes that a decoded image may take.
const IMAGE_BYTES: usize = 64 << 20;

/// Whether a column has images, or tensors that can be shown as images.
pub(crate) fn is_picture(field: &Field) -> bool {
    let tensor = extension::tensor_shape(field).is_some_and(|shape| shape.len() >= 2);
    extension::name(field) == Some(extension::IMAGE) || tensor
}

/// A column of fixed-size lists of numbers, which can be shown as one line.
fn is_line(field: &Field) -> bool {
    matches!(field.data_type(), DataType::FixedSizeList(item, _) if item.data_type().is_numeric())
}

pub(crate) fn chart(opened: &Opened, options: &PlotOptions) -> Result<Chart> {
    let schema = &opened.document.summary().schema;
    let chosen = options.view.columns.as_ref().and_then(|names| names.first());
    let found = match chosen {
        Some(name) => schema.fields().iter().find(|field| field.name() == name),
        None => {
            let picture = schema.fields().iter().find(|field| is_picture(field));
            picture.or_else(|| schema.fields().iter().find(|field| is_line(field)))
        }
    };
    let field = found.filter(|field| is_picture(field) || is_line(field));
    let field = field.ok_or_else(|| Error::usage("there is no column of images or tensors"))?;
    let label = schema.fields().iter().find(|other| !other.data_type().is_nested() && !is_picture(other));
    let mut view = options.view.clone();
    view.columns = Some(std::iter::once(field).chain(label).map(|field| field.name().clone()).collect());
    // From the first row of the view on.
    let first = view.rows.map_or(0, |rows| rows.start);
    view.rows = Some(first..first.saturating_add(MOST));
    let mut tiles = Vec::new();
    for batch in opened.rows(&view)? {
        let batch = batch.map_err(Error::from)?;
        for row in 0..batch.num_rows() {
            if batch.column(0).is_valid(row) {
                let (width, height, rgb) = tile(field, batch.column(0), row)?;
                let label = label_of(&batch, row, tiles.len())?;
                tiles.push(sampled(width, height, &rgb, label));
            }
        }
    }
    let name = opened.content.name();
    let name = name.rsplit('/').next().unwrap_or(name);
    let title = format!("{name}: {} (first {})", field.name(), tiles.len());
    Ok(Chart::Sheet { title, tiles })
}

fn label_of(batch: &RecordBatch, row: usize, index: usize) -> Result<String> {
    if batch.num_columns() < 2 {
        return Ok(index.to_string());
    }
    let mut out = Vec::new();
    Columns::new(batch, &JsonOptions::default())?.write_cell(1, row, &mut out)?;
    let text = String::from_utf8_lossy(&out).into_owned();
    Ok(format!("{} {}", batch.schema_ref().field(1).name(), text.trim_matches('"')))
}

/// Width, height and pixels of one value.
fn tile(field: &Field, array: &ArrayRef, row: usize) -> Result<(usize, usize, Vec<u8>)> {
    if extension::name(field) == Some(extension::IMAGE) {
        let bytes = cast(&array.slice(row, 1), &DataType::Binary)?;
        return image(field, bytes.as_binary::<i32>().value(0));
    }
    let list = array.as_fixed_size_list_opt().ok_or_else(|| Error::usage("this column has no tensors"))?;
    let values = cast(&list.value(row), &DataType::Float64)?;
    let values = values.as_primitive::<Float64Type>();
    let shape = extension::tensor_shape(field).unwrap_or_else(|| vec![values.len() as u64]);
    let width = shape.last().map_or(1, |width| *width as usize).max(1);
    // Further dimensions are stacked from top to bottom.
    let height = (values.len() / width).max(1);
    Ok((width, height, grey(values.values())))
}

/// Numbers as shades: the least is black, the greatest white.
fn grey(values: &[f64]) -> Vec<u8> {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let shade = |value: &f64| {
        let part = if high > low { (value - low) / (high - low) } else { 0.5 };
        (part.clamp(0.0, 1.0) * 255.0) as u8
    };
    values.iter().flat_map(|value| [shade(value); 3]).collect()
}

fn image(field: &Field, bytes: &[u8]) -> Result<(usize, usize, Vec<u8>)> {
    let wrong = || Error::unsupported("an image whose size does not fit its bytes");
    let about =
        extension::metadata(field).and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    let about = about.ok_or_else(wrong)?;
    match about["format"].as_str() {
        Some("png") => return decode_png(bytes),
        Some("plain") | None => {}
        Some(other) => return Err(Error::unsupported(format!("pictures of images in {other}"))),
    }
    let number = |key: &str| about[key].as_u64().and_then(|number| usize::try_from(number).ok());
    let (width, height) = (number("width").ok_or_else(wrong)?, number("height").ok_or_else(wrong)?);
    let components = about["components"].as_array().ok_or_else(wrong)?;
    let channels: Vec<&str> = components.iter().filter_map(|component| component[0].as_str()).collect();
    let samples = width
        .checked_mul(height)
        .and_then(|count| count.checked_mul(channels.len()))
        .filter(|count| *count > 0);
    let samples = samples.filter(|count| bytes.len().is_multiple_of(*count)).ok_or_else(wrong)?;
    // Samples of several bytes are big-endian: the first byte is the most significant one that differs.
    let size = bytes.len() / samples;
    let number = |sample: &[u8]| sample.iter().fold(0f64, |number, byte| number * 256.0 + f64::from(*byte));
    let values: Vec<f64> = bytes.chunks(size.max(1)).map(number).collect();
    let shades: Vec<u8> = match size {
        1 => bytes.to_vec(),
        _ => grey(&values).chunks(3).map(|shade| shade[0]).collect(),
    };
    let place = |channel: &str| channels.iter().position(|other| *other == channel);
    let pixel = |samples: &[u8]| match (place("red"), place("green"), place("blue")) {
        (Some(red), Some(green), Some(blue)) => [samples[red], samples[green], samples[blue]],
        _ => [samples[0]; 3],
    };
    Ok((width, height, shades.chunks(channels.len()).flat_map(pixel).collect()))
}

fn decode_png(bytes: &[u8]) -> Result<(usize, usize, Vec<u8>)> {
    let wrong = |error: png::DecodingError| Error::malformed("a PNG image", error.to_string());
    let mut decoder =
        png::Decoder::new_with_limits(std::io::Cursor::new(bytes), png::Limits { bytes: IMAGE_BYTES });
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(wrong)?;
    let size = reader.output_buffer_size().filter(|size| *size <= IMAGE_BYTES);
    let size = size.ok_or_else(|| Error::limit("an image", IMAGE_BYTES, "more bytes are"))?;
    let mut pixels = vec![0; size];
    let info = reader.next_frame(&mut pixels).map_err(wrong)?;
    pixels.truncate(info.buffer_size());
    let samples = info.color_type.samples();
    let rgb = pixels.chunks(samples).flat_map(|pixel| match pixel {
        [red, green, blue, ..] => [*red, *green, *blue],
        [grey, ..] => [*grey; 3],
        [] => [0; 3],
    });
    Ok((info.width as usize, info.height as usize, rgb.collect()))
}

/// A tile of at most `SIDE` pixels in each direction.
fn sampled(width: usize, height: usize, rgb: &[u8], label: String) -> Tile {
    let (columns, rows) = (width.min(SIDE), height.min(SIDE));
    let mut out = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let at = (row * height / rows * width + column * width / columns) * 3;
            out.extend_from_slice(rgb.get(at..at + 3).unwrap_or(&[0; 3]));
        }
    }
    Tile { width: columns as u32, height: rows as u32, rgb: out, label }
}
