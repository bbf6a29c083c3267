//! The `.meta` file beside the data: DAPHNE cannot read a file without it, and only it has the labels of a DAPHNE frame
//! as text.

use arrow_schema::{DataType as ArrowType, Schema};
use serde_json::{Value, json};

use crate::error::{Context, Error, Result};
use crate::formats::Summary;
use crate::hub::{Form, shape, type_text};
use crate::sink::{END_BYTES, Ends};
use crate::source::Source;

use super::layout::Header;
use super::types::{DataType, ValueType};

/// The suffix of the side file.
pub(super) const SUFFIX: &str = ".meta";

/// The key of the description of data that is being replaced: see [`super::replace`].
const PREVIOUS_KEY: &str = "pentaglotPrevious";

/// The content of a `.meta` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) rows: u64,
    pub(super) cols: u64,
    /// The type of all values, or the default of columns that name none.
    pub(super) value_type: Option<String>,
    /// Label and type of each column of a frame.
    pub(super) columns: Option<Vec<(String, Option<String>)>>,
    pub(super) nonzeros: Option<u64>,
    /// The stamp of the data that it belongs to, if it has one.
    pub(super) stamp: Option<Stamp>,
    /// The description of the data that is being replaced.
    pub(super) previous: Option<Box<Meta>>,
}

impl Meta {
    /// Parses JSON, or the older comma-separated style.
    pub(super) fn parse(text: &[u8]) -> Result<Meta> {
        let text = std::str::from_utf8(text)
            .map_err(|error| Error::malformed("UTF-8 text", error).at(error.valid_up_to() as u64))?;
        if text.trim_start().starts_with('{') { Meta::parse_json(text) } else { Meta::parse_commas(text) }
    }

    fn parse_json(text: &str) -> Result<Meta> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| Error::malformed("a JSON object", error))?;
        let mut meta = Meta::of_json(&value)?;
        meta.previous = value.get(PREVIOUS_KEY).map(Meta::of_json).transpose()?.map(Box::new);
        Ok(meta)
    }

    fn of_json(value: &Value) -> Result<Meta> {
        let count = |key: &'static str| {
            let found = value.get(key);
            found.and_then(Value::as_u64).ok_or_else(|| {
                Error::malformed("a whole number", found.map_or("nothing".to_owned(), Value::to_string))
                    .field(key)
            })
        };
        let text_of = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let columns = match value.get("schema") {
            None => None,
            Some(Value::Array(entries)) => {
                let column = |(index, entry): (usize, &Value)| {
                    // DAPHNE's own parser requires the label, too.
                    let label = text_of(entry, "label").ok_or_else(|| {
                        Error::malformed("a label", "none").index(index as u64).field("schema")
                    })?;
                    Ok((label, text_of(entry, "valueType").filter(|name| !name.is_empty())))
                };
                Some(entries.iter().enumerate().map(column).collect::<Result<_>>()?)
            }
            Some(other) => return Err(Error::malformed("an array", other).field("schema")),
        };
        Ok(Meta {
            rows: count("numRows")?,
            cols: count("numCols")?,
            value_type: text_of(value, "valueType"),
            columns,
            // -1 means "unknown".
            nonzeros: value.get("numNonZeros").and_then(Value::as_u64),
            stamp: value.get(STAMP_KEY).map(Stamp::parse),
            previous: None,
        })
    }

    /// `numRows,numCols,isSingleValueType,valueType…[,label…][,nnz=…]`, on one line.
    fn parse_commas(text: &str) -> Result<Meta> {
        let line = text.lines().next().unwrap_or_default();
        let mut nonzeros = None;
        let mut words: Vec<&str> = line.split(',').map(str::trim).collect();
        if let Some(count) = words.last().and_then(|word| word.strip_prefix("nnz=")) {
            nonzeros = count.parse().ok();
            words.pop();
        }
        let mut words = words.into_iter();
        let mut count = |name: &'static str| {
            let word = words.next().unwrap_or_default();
            word.parse::<u64>()
                .map_err(|_| Error::malformed("a JSON object or a comma line", format_args!("{word:?}")))
                .field(name)
        };
        let (rows, cols, single) = (count("numRows")?, count("numCols")?, count("isSingleValueType")?);
        let words: Vec<&str> = words.collect();
        if single != 0 {
            let value_type = words.first().map(|word| (*word).to_owned());
            return Ok(Meta { rows, cols, value_type, nonzeros, ..Meta::default() });
        }
        let types = words.iter().take(usize::try_from(cols).unwrap_or(usize::MAX));
        if (types.len() as u64) < cols {
            let expected = format!("{cols} value types");
            return Err(Error::malformed(expected, types.len()).field("valueType"));
        }
        let labels = words.iter().skip(types.len()).copied().chain(std::iter::repeat(""));
        let columns = types.zip(labels).map(|(kind, label)| (label.to_owned(), Some((*kind).to_owned())));
        Ok(Meta { rows, cols, columns: Some(columns.collect()), nonzeros, ..Meta::default() })
    }

    /// The types of `count` columns, if the file names known ones.
    fn value_types(&self, count: usize) -> impl Iterator<Item = Option<ValueType>> + '_ {
        let default = || self.value_type.as_deref().and_then(ValueType::from_name);
        (0..count).map(move |index| {
            let own = self.columns.as_ref().and_then(|columns| columns.get(index));
            own.and_then(|(_, kind)| ValueType::from_name(kind.as_deref()?)).or_else(default)
        })
    }

    /// Whether the types that it names are those of the header.
    pub(super) fn fits_types(&self, header: &Header) -> bool {
        let count = header.value_types.len();
        self.value_types(count)
            .zip(&header.value_types)
            .all(|(ours, theirs)| ours.is_none_or(|ours| ours == *theirs))
    }

    /// Returns an error that names both values if it contradicts the header.
    pub(super) fn check(&self, header: &Header) -> Result<()> {
        let disagree = |key: &'static str, header: &dyn std::fmt::Display, meta: &dyn std::fmt::Display| {
            Error::malformed(format_args!("{header} as in the header"), meta)
                .field(key)
                .field(SUFFIX)
                .rule("meta-disagrees")
        };
        if self.rows != header.rows {
            return Err(disagree("numRows", &header.rows, &self.rows));
        }
        if self.cols != header.cols {
            return Err(disagree("numCols", &header.cols, &self.cols));
        }
        if let (DataType::Frame, Some(columns)) = (header.data_type, &self.columns)
            && columns.len() as u64 != header.cols
        {
            let found = format!("{} entries", columns.len());
            return Err(disagree("schema", &format_args!("{} columns", header.cols), &found));
        }
        let types = self.value_types(header.value_types.len()).zip(&header.value_types);
        for (index, (ours, theirs)) in (0u64..).zip(types) {
            if let Some(ours) = ours.filter(|ours| ours != theirs) {
                let error = Error::malformed(format_args!("{theirs} as in the header"), ours);
                let error = match &self.columns {
                    Some(_) => error.field("valueType").index(index).field("schema"),
                    None => error.field("valueType"),
                };
                return Err(error.field(SUFFIX).rule("meta-disagrees"));
            }
        }
        Ok(())
    }

    /// The text as DAPHNE writes it: compact, keys in alphabetical order, no newline.
    pub(super) fn text(&self) -> String {
        self.to_json().to_string()
    }

    fn to_json(&self) -> Value {
        let mut object = serde_json::Map::new();
        object.insert("numCols".to_owned(), json!(self.cols));
        if let Some(nonzeros) = self.nonzeros {
            object.insert("numNonZeros".to_owned(), json!(nonzeros));
        }
        object.insert("numRows".to_owned(), json!(self.rows));
        if let Some(stamp) = self.stamp {
            object.insert(STAMP_KEY.to_owned(), stamp.to_json());
        }
        if let Some(previous) = &self.previous {
            object.insert(PREVIOUS_KEY.to_owned(), previous.to_json());
        }
        match &self.columns {
            Some(columns) => {
                let columns: Vec<Value> = columns
                    .iter()
                    .map(|(label, kind)| json!({ "label": label, "valueType": kind }))
                    .collect();
                object.insert("schema".to_owned(), Value::Array(columns));
                // The default of columns that name none.
                if let Some(value_type) = &self.value_type {
                    object.insert("valueType".to_owned(), json!(value_type));
                }
            }
            None => {
                object.insert("valueType".to_owned(), json!(self.value_type));
            }
        }
        Value::Object(object)
    }
}

/// DAPHNE's name of a type; 16-byte strings have none.
pub(super) fn type_name(value_type: ValueType) -> Option<String> {
    (value_type != ValueType::FixedStr16).then(|| value_type.name().to_owned())
}

/// Whether DAPHNE has a type: it has no integers of 16 bits and does not accept their names.
pub(super) fn is_known(value_type: ValueType) -> bool {
    !matches!(value_type, ValueType::UInt16 | ValueType::Int16)
}

/// The `.meta` text that DAPHNE needs beside a file with these rows.
///
/// Returns an `Unsupported` error for types that DAPHNE does not have, and if the number of rows is not
/// known.
///
/// ```
/// use std::sync::Arc;
/// use pentaglot::arrow::array::UInt8Array;
/// use pentaglot::formats::dbdf::{Dbdf, Matrix, meta_text, write_matrix};
/// use pentaglot::formats::Format;
/// use pentaglot::{Sink, Source};
/// let (sink, memory) = Sink::memory();
/// let matrix = Matrix::Dense { rows: 1, cols: 2, values: Arc::new(UInt8Array::from(vec![40, 2])) };
/// write_matrix(sink, &matrix, &Default::default())?;
/// let file = Dbdf.open(Source::from_bytes("m.dbdf", memory.take()), &Default::default())?;
/// assert!(meta_text(file.summary())?.contains("ui8"));
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn meta_text(summary: &Summary) -> Result<String> {
    let schema: &Schema = &summary.schema;
    let rows = summary.rows.or_else(|| shape::matrix_rows(schema)).ok_or_else(|| {
        Error::unsupported("a .meta text needs the number of rows, which this file does not say")
    })?;
    let named = |kind: &ArrowType, name: &str| match kind {
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => Ok("str".to_owned()),
        other => {
            let known = ValueType::from_arrow(other).filter(|value_type| is_known(*value_type));
            known.map(|value_type| value_type.name().to_owned()).ok_or_else(|| {
                Error::unsupported(format!(
                    "column {name:?}: DAPHNE has no value type for {}",
                    type_text::print_type(other)
                ))
            })
        }
    };
    let mut meta = Meta { rows, ..Meta::default() };
    match Form::of(schema) {
        Form::Table => {
            let column = |field: &arrow_schema::FieldRef| {
                Ok((field.name().clone(), Some(named(field.data_type(), field.name())?)))
            };
            meta.cols = schema.fields().len() as u64;
            meta.columns = Some(schema.fields().iter().map(column).collect::<Result<_>>()?);
        }
        Form::Dense | Form::Sparse | Form::Columns | Form::Coo => {
            let kind = shape::matrix_value_type(schema);
            let kind = kind.ok_or_else(|| Error::unsupported("the columns of this matrix differ in type"))?;
            meta.cols = shape::matrix_cols(schema).unwrap_or(0);
            meta.rows = shape::matrix_rows(schema).unwrap_or(rows);
            meta.value_type = Some(named(&kind, shape::ROW_FIELD)?);
            meta.nonzeros = summary.nonzeros;
        }
        Form::Array | Form::Value => {
            return Err(Error::unsupported("a .meta text describes a matrix or a frame only"));
        }
    }
    Ok(meta.text())
}

/// The key of the stamp in a `.meta` file; DAPHNE ignores unknown keys.
const STAMP_KEY: &str = "pentaglotData";

/// Identifies the data that one of our `.meta` files belongs to: its length, and the CRC-32 of its first and its last
/// 64 KiB.
///
/// Two files cannot be renamed in one step, so data and `.meta` may be of different versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    first: u32,
    last: u32,
}

impl Stamp {
    /// The stamp of the data written.
    pub(super) fn of_written(ends: &Ends) -> Stamp {
        let (bytes, first, last) = ends.parts();
        Stamp { bytes, first: crc(first), last: crc(last) }
    }

    /// The stamp of a file; `None` for a stream, whose end is not known.
    pub(super) fn of(source: &Source) -> Result<Option<Stamp>> {
        let Some(bytes) = source.len() else { return Ok(None) };
        let mut room = vec![0; END_BYTES];
        let mut end = |offset: u64| -> Result<u32> {
            let count = source.read_at(offset, &mut room)?;
            Ok(crc(room.get(..count).unwrap_or_default()))
        };
        let first = end(0)?;
        let last = if bytes > END_BYTES as u64 { end(bytes - END_BYTES as u64)? } else { first };
        Ok(Some(Stamp { bytes, first, last }))
    }

    /// Reads the value of [`STAMP_KEY`]. An unknown form matches no data.
    fn parse(value: &Value) -> Stamp {
        let number = |key: &str| value.get(key).and_then(Value::as_u64);
        let sum = |key: &str| number(key).and_then(|sum| u32::try_from(sum).ok());
        match (number("bytes"), sum("crc32First"), sum("crc32Last")) {
            (Some(bytes), Some(first), Some(last)) => Stamp { bytes, first, last },
            _ => Stamp { bytes: u64::MAX, first: 0, last: 0 },
        }
    }

    pub(super) fn to_json(self) -> Value {
        json!({ "bytes": self.bytes, "crc32First": self.first, "crc32Last": self.last })
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
