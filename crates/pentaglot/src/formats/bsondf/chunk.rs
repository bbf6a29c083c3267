//! Chunks: the documents that one table becomes where a document may only be so long.
//!
//! A limit counts encoded bytes, which nobody knows before encoding. So a chunk takes as many rows as should fit by what
//! the chunks before it took; what turns out too long is encoded again with fewer rows.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;

use super::documents::CHUNK_FRAME;
use super::encode::{Encoder, Output};
use super::schema::Type;
use super::write::encode_columns;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::formats::OptionMap;
use crate::limits::Reservation;
use crate::wire::bson::{BsonKind, Writer};

/// A chunk holds at most so many bytes of values, however well they pack: readers decode chunks as a whole.
const MAX_PLAIN_BYTES: u64 = 32 << 20;

/// The part of the limit that a chunk is planned to take: estimates are not exact.
const FILL: f64 = 0.94;

/// Longer texts are not written as bounds.
const MAX_BOUND_BYTES: usize = 256;

/// How a table is split.
#[derive(Debug, Clone)]
pub(super) struct SplitOptions {
    max_bytes: u64,
    /// Only a chunk of one row is longer than this.
    target_bytes: u64,
    key: Option<String>,
    /// The ordering column.
    order: Option<usize>,
}

impl SplitOptions {
    /// What the options ask for; `None`: one document.
    pub(super) fn new(options: &OptionMap, columns: &[(String, Type)]) -> Result<Option<Self>> {
        let bytes = |key: &str| options.get(key).map(|text| parse_bytes(key, text)).transpose();
        let (max_bytes, target_bytes) = (bytes("max-bytes")?, bytes("target-bytes")?);
        let key = options.get("key").map(str::to_owned);
        let order = match options.get("order") {
            Some(name) => Some(order_column(name, columns)?),
            None => None,
        };
        match max_bytes {
            Some(max_bytes) => {
                let target_bytes = target_bytes.map_or(max_bytes, |target| target.min(max_bytes));
                Ok(Some(SplitOptions { max_bytes, target_bytes, key, order }))
            }
            None if key.is_some() || order.is_some() || target_bytes.is_some() => Err(Error::usage(
                "options key, order and target-bytes are for chunks: option max-bytes is missing",
            )),
            None => Ok(None),
        }
    }
}

/// `15M` and the like.
fn parse_bytes(key: &str, text: &str) -> Result<u64> {
    let wrong = || {
        let expected = "a number of bytes up to 2G such as 15M";
        Error::usage(format!("option {key}: expected {expected}, found {text:?}"))
    };
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(wrong)?;
    if (64..=i32::MAX as u64 + 1).contains(&bytes) { Ok(bytes) } else { Err(wrong()) }
}

fn order_column(name: &str, columns: &[(String, Type)]) -> Result<usize> {
    let place = columns.iter().position(|(own, _)| own == name).ok_or_else(|| {
        let names = crate::error::list(columns.iter().map(|(name, _)| name));
        Error::usage(format!("option order: there is no column {name:?} (there is {names})"))
    })?;
    match columns.get(place) {
        Some((_, kind)) if bounds_type(&kind.to_arrow()).is_some() => Ok(place),
        _ => Err(Error::usage(format!("option order: column {name:?} has a type without an order"))),
    }
}

/// The type in which the bounds of a column are compared.
fn bounds_type(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Dictionary(_, value) => bounds_type(value),
        kind if kind.is_integer() || kind.is_temporal() => Some(DataType::Int64),
        kind if kind.is_floating() => Some(DataType::Float64),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DataType::Utf8),
        _ => None,
    }
}

/// The least and the greatest value of some rows of the ordering column, as they are stored.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bounds {
    /// Integers, dates and times: their numbers.
    Numbers(i64, i64),
    Floats(f64, f64),
    Texts(String, String),
    /// No values, or such as have no bounds.
    Unknown,
}

impl Bounds {
    fn of(chunks: &[ArrayRef]) -> Result<Self> {
        let mut bounds: Option<Bounds> = None;
        for chunk in chunks {
            match (Bounds::of_array(chunk)?, &mut bounds) {
                (None, _) => {}
                (Some(Bounds::Unknown), _) | (_, Some(Bounds::Unknown)) => return Ok(Bounds::Unknown),
                (Some(own), None) => bounds = Some(own),
                (Some(Bounds::Numbers(low, high)), Some(Bounds::Numbers(least, most))) => {
                    (*least, *most) = (low.min(*least), high.max(*most));
                }
                (Some(Bounds::Floats(low, high)), Some(Bounds::Floats(least, most))) => {
                    (*least, *most) = (low.min(*least), high.max(*most));
                }
                (Some(Bounds::Texts(low, high)), Some(Bounds::Texts(least, most))) => {
                    (*least, *most) = (low.min(std::mem::take(least)), high.max(std::mem::take(most)));
                }
                _ => return Ok(Bounds::Unknown),
            }
        }
        Ok(bounds.unwrap_or(Bounds::Unknown))
    }

    /// `None` if there are no values.
    fn of_array(array: &ArrayRef) -> Result<Option<Self>> {
        let array = match array.data_type() {
            DataType::Dictionary(_, value) => cast(array, value)?,
            DataType::Date32 | DataType::Time32(_) => cast(array, &DataType::Int32)?,
            _ => ArrayRef::clone(array),
        };
        let present = array.len() - array.logical_null_count();
        if present == 0 {
            return Ok(None);
        }
        let Some(kind) = bounds_type(array.data_type()) else { return Ok(Some(Bounds::Unknown)) };
        let values = cast(&array, &kind)?;
        if values.len() - values.logical_null_count() < present {
            // Too large for 64 signed bits.
            return Ok(Some(Bounds::Unknown));
        }
        Ok(match kind {
            DataType::Int64 => {
                let mut numbers = values.as_primitive::<Int64Type>().iter().flatten();
                let first = numbers.next();
                first.map(|first| {
                    let (low, high) =
                        numbers.fold((first, first), |(low, high), own| (low.min(own), high.max(own)));
                    Bounds::Numbers(low, high)
                })
            }
            DataType::Float64 => {
                let floats = values.as_primitive::<Float64Type>().iter().flatten();
                let start = (f64::INFINITY, f64::NEG_INFINITY);
                // Neither bound says anything of NaN, which no comparison but != finds.
                let (low, high) = floats
                    .filter(|own| !own.is_nan())
                    .fold(start, |(low, high), own| (low.min(own), high.max(own)));
                Some(if low <= high { Bounds::Floats(low, high) } else { Bounds::Unknown })
            }
            _ => {
                let texts = values.as_string::<i32>();
                let least = texts.iter().flatten().min().unwrap_or_default();
                let most = texts.iter().flatten().max().unwrap_or_default();
                Some(match least.len().max(most.len()) {
                    ..=MAX_BOUND_BYTES => Bounds::Texts(least.to_owned(), most.to_owned()),
                    _ => Bounds::Unknown,
                })
            }
        })
    }

    fn write(&self, out: &mut Writer) -> Result<()> {
        match self {
            Bounds::Numbers(least, most) => {
                out.int64("min", *least);
                out.int64("max", *most);
            }
            Bounds::Floats(least, most) => {
                out.double("min", *least);
                out.double("max", *most);
            }
            Bounds::Texts(least, most) => {
                out.string("min", least)?;
                out.string("max", most)?;
            }
            Bounds::Unknown => {
                out.element(BsonKind(0x0a), "min", &[]);
                out.element(BsonKind(0x0a), "max", &[]);
            }
        }
        Ok(())
    }
}

/// Rows that wait for their chunk, and what is known of the chunks before it.
pub(super) struct Splitter {
    options: SplitOptions,
    batches: Vec<RecordBatch>,
    rows: u64,
    plain_bytes: u64,
    /// Encoded bytes for each byte of values, in the last chunk.
    density: f64,
    version: Option<[u8; 12]>,
    number: i32,
    first: u64,
}

/// A chunk as a document, in pieces, and what pays for them.
pub(super) type Encoded = (Vec<Vec<u8>>, Reservation);

impl Splitter {
    pub(super) fn new(options: SplitOptions) -> Self {
        Splitter {
            options,
            batches: Vec::new(),
            rows: 0,
            plain_bytes: 0,
            density: 1.0,
            version: None,
            number: 0,
            first: 0,
        }
    }

    pub(super) fn push(&mut self, batch: RecordBatch) {
        self.rows += batch.num_rows() as u64;
        self.plain_bytes += plain_bytes(&batch);
        self.batches.push(batch);
    }

    /// The bytes of values that the next chunk should hold.
    fn wanted_bytes(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, reason = "a float of at most 2^31, cut to a whole number")]
        let fitting = (self.options.target_bytes as f64 * FILL / self.density.max(1e-3)) as u64;
        fitting.clamp(1, MAX_PLAIN_BYTES)
    }

    /// The next chunk, if there are rows enough for one, or with `last` if there are rows or no chunk has been made.
    pub(super) fn next(
        &mut self,
        columns: &[(String, Type)],
        encoder: &Encoder,
        control: &Control,
        last: bool,
    ) -> Result<Option<Encoded>> {
        let wanted = self.wanted_bytes();
        if self.batches.is_empty() || !last && self.plain_bytes < wanted {
            return Ok(None);
        }
        let each = (self.plain_bytes / self.rows.max(1)).max(1);
        let mut rows =
            if self.plain_bytes <= wanted { self.rows } else { (wanted / each).clamp(1, self.rows) };
        loop {
            control.check()?;
            let (taken, plain) = self.take(0..rows);
            let document = self.encode(columns, taken, rows, encoder, control)?;
            let bytes = document.bson.bytes();
            if plain > 0 {
                self.density = bytes as f64 / plain as f64;
            }
            let most = if rows <= 1 { self.options.max_bytes } else { self.options.target_bytes };
            if bytes <= most {
                self.drop_first(rows);
                return Ok(Some((document.bson.into_pieces(), document.held)));
            }
            if rows <= 1 {
                let needed = format!("{bytes} bytes for row {} alone", self.first);
                return Err(Error::limit("option max-bytes", self.options.max_bytes, needed));
            }
            // At least a tenth less, so that this ends.
            let fitting = u128::from(rows) * u128::from(most) * 9 / 10 / u128::from(bytes.max(1));
            rows = u64::try_from(fitting).unwrap_or(1).clamp(1, (rows * 9 / 10).max(1));
        }
    }

    /// Some of the rows, column by column, and how many bytes they take.
    fn take(&self, range: Range<u64>) -> (Vec<Vec<ArrayRef>>, u64) {
        let mut columns: Vec<Vec<ArrayRef>> = Vec::new();
        let mut bytes = 0;
        let mut start = 0;
        for batch in &self.batches {
            let end = start + batch.num_rows() as u64;
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to || batch.num_rows() == 0 {
                let place = usize::try_from(from.saturating_sub(start)).unwrap_or(0);
                let count = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
                let slice = batch.slice(place, count);
                bytes += plain_bytes(&slice);
                columns.resize_with(slice.num_columns(), Vec::new);
                columns
                    .iter_mut()
                    .zip(slice.columns())
                    .for_each(|(chunks, column)| chunks.push(column.clone()));
            }
            start = end;
        }
        (columns, bytes)
    }

    fn drop_first(&mut self, rows: u64) {
        self.first += rows;
        self.number = self.number.saturating_add(1);
        let mut left = rows;
        let batches = std::mem::take(&mut self.batches);
        for batch in batches {
            let own = batch.num_rows() as u64;
            if left >= own {
                left -= own;
            } else {
                let place = usize::try_from(left).unwrap_or(0);
                self.batches.push(batch.slice(place, batch.num_rows() - place));
                left = 0;
            }
        }
        self.rows -= rows;
        self.plain_bytes = self.batches.iter().map(plain_bytes).sum();
    }

    /// The document of some rows.
    fn encode(
        &mut self,
        columns: &[(String, Type)],
        chunks: Vec<Vec<ArrayRef>>,
        rows: u64,
        encoder: &Encoder,
        control: &Control,
    ) -> Result<Output> {
        let bounds = match self.options.order.and_then(|order| chunks.get(order)) {
            Some(chunks) => Bounds::of(chunks)?,
            None => Bounds::Unknown,
        };
        let array = |chunks: Vec<ArrayRef>, kind: &Type| encoder.whole(kind, &chunks);
        let encoded = encode_columns(encoder, columns, chunks, control, array)?;
        let version = *self.version.get_or_insert_with(|| version_of(&encoded));
        let mut all = Output::new(&encoder.budget);
        let out = &mut all.bson;
        let document = out.begin(None);
        let id = out.begin(Some((BsonKind::DOCUMENT, "_id")));
        out.element(BsonKind(0x07), "v", &version);
        out.int32("n", self.number);
        out.end(id)?;
        match &self.options.key {
            Some(key) => out.string("k", key)?,
            None => out.element(BsonKind(0x0a), "k", &[]),
        }
        out.int64("first", i64::try_from(self.first).unwrap_or(i64::MAX));
        out.int64("rows", i64::try_from(rows).unwrap_or(i64::MAX));
        bounds.write(out)?;
        let frame = out.begin(Some((BsonKind::DOCUMENT, CHUNK_FRAME)));
        encoded.into_iter().for_each(|column| all.append(column));
        all.bson.end(frame)?;
        all.bson.end(document)?;
        Ok(all)
    }
}

/// The version of a table in a file: made of the first chunk that was encoded, so that the same table gives the same file.
fn version_of(columns: &[Output]) -> [u8; 12] {
    let mut hasher = blake3::Hasher::new();
    for piece in columns.iter().flat_map(|column| column.bson.pieces()) {
        hasher.update(piece);
    }
    let mut version = [0; 12];
    version.copy_from_slice(hasher.finalize().as_bytes().get(..12).unwrap_or(&[0; 12]));
    version
}

/// The bytes of the values of a batch, of slices only their own.
fn plain_bytes(batch: &RecordBatch) -> u64 {
    let column = |column: &ArrayRef| {
        let data = column.to_data();
        data.get_slice_memory_size().unwrap_or_else(|_| data.get_buffer_memory_size()) as u64
    };
    batch.columns().iter().map(column).sum()
}
