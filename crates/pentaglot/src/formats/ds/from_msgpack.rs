//! Cells from MessagePack.

use super::columns::{Column, Reading, offset};
use super::types::Fundamental;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::kernels::rows::{MsgPack, Wire, read_rows};
use crate::wire::msgpack::{self, Float, Integer};

/// From this many elements on it pays to read an array's elements many at a time.
const PLAIN_ELEMENTS: usize = 8;

/// The error that a number does not fit its column.
#[cold]
pub(super) fn out_of_range(kind: Fundamental, found: impl std::fmt::Display, offset: u64) -> Error {
    Error::malformed(format_args!("a value in the range of {}", kind.name()), found).at(offset).rule("range")
}

#[cold]
pub(super) fn wrong_arity(what: &str, expected: usize, found: impl std::fmt::Display, offset: u64) -> Error {
    let expected = format_args!("{what} of {expected}");
    Error::malformed(expected, found).at(offset).rule("arity")
}

#[cold]
pub(super) fn wrong_row_count(expected: u64, found: impl std::fmt::Display, offset: u64) -> Error {
    Error::malformed(format_args!("rowCount = {expected} rows"), found).at(offset).rule("row_count")
}

#[inline]
fn integer<T: TryFrom<u64> + TryFrom<i64>>(cursor: &mut Cursor<'_>, kind: Fundamental) -> Result<T> {
    let offset = cursor.offset();
    let integer = msgpack::read_integer(cursor)?;
    let value = match integer {
        Integer::Unsigned(value) => T::try_from(value).ok(),
        Integer::Negative(value) => T::try_from(value).ok(),
    };
    value.ok_or_else(|| out_of_range(kind, integer, offset))
}

/// Whether an integer stands here and is to be taken as a float.
#[inline]
fn lenient_integer(cursor: &Cursor<'_>, reading: &Reading) -> bool {
    reading.lenient && cursor.peek().is_some_and(msgpack::is_integer)
}

#[expect(clippy::cast_precision_loss, reason = "a lenient reader takes the nearest float")]
fn integer_as_float(cursor: &mut Cursor<'_>) -> Result<f64> {
    Ok(match msgpack::read_integer(cursor)? {
        Integer::Unsigned(value) => value as f64,
        Integer::Negative(value) => value as f64,
    })
}

/// The nearest single to a double; `None` if that is infinite while the double is not.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what is asked for")]
fn single(value: f64) -> Option<f32> {
    let single = value as f32;
    (single.is_finite() || !value.is_finite()).then_some(single)
}

impl Column {
    /// Reads elements of an array for as long as they are plain; gives how many of the `count` that there are.
    fn read_plain_msgpack(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        reading: &mut Reading,
    ) -> Result<usize> {
        let Some(column) = self.plain().filter(|_| count >= PLAIN_ELEMENTS) else { return Ok(0) };
        let mut wire = MsgPack::elements(cursor.rest(), reading.lenient);
        let taken = read_rows(&mut wire, &mut [column], count, usize::MAX);
        cursor.skip(wire.position() as u64)?;
        reading.stood_in(taken.stand_ins)?;
        Ok(taken.rows)
    }

    /// Reads one value behind the others.
    pub(super) fn read_msgpack(&mut self, cursor: &mut Cursor<'_>, reading: &mut Reading) -> Result<()> {
        match self {
            Column::Int32(values) => values.push(integer(cursor, Fundamental::Int32)?),
            Column::Int64(values) => values.push(integer(cursor, Fundamental::Int64)?),
            Column::UInt8(values) => values.push(integer(cursor, Fundamental::UInt8)?),
            Column::Int8(values) => values.push(integer(cursor, Fundamental::Int8)?),
            Column::UInt32(values) => values.push(integer(cursor, Fundamental::UInt32)?),
            Column::UInt64(values) => values.push(integer(cursor, Fundamental::UInt64)?),
            Column::Bool(values) => values.push(msgpack::read_bool(cursor)?),
            Column::Float64(values) => values.push(if lenient_integer(cursor, reading) {
                integer_as_float(cursor)?
            } else {
                match msgpack::read_float(cursor)? {
                    Float::Double(value) => value,
                    Float::Single(value) => f64::from(value),
                }
            }),
            Column::Float32(values) => {
                let offset = cursor.offset();
                let value = if lenient_integer(cursor, reading) {
                    Float::Double(integer_as_float(cursor)?)
                } else {
                    msgpack::read_float(cursor)?
                };
                values.push(match value {
                    Float::Single(value) => value,
                    Float::Double(value) => {
                        single(value).ok_or_else(|| out_of_range(Fundamental::Float32, value, offset))?
                    }
                });
            }
            Column::Text(blob) => {
                let bytes = msgpack::read_bytes(cursor, "a string")?;
                if !bytes.is_ascii() && simdutf8::basic::from_utf8(bytes).is_err() {
                    let offset = cursor.offset() - bytes.len() as u64;
                    return Err(Error::malformed("UTF-8", "other bytes").at(offset).rule("utf8"));
                }
                blob.bytes.extend_from_slice(bytes);
                blob.end()?;
            }
            Column::Image(blob, picture) => {
                let offset = cursor.offset();
                let bytes = msgpack::read_bytes(cursor, "the bytes of an image")?;
                blob.bytes.extend_from_slice(bytes);
                blob.end_image(picture, &reading.budget).map_err(|error| error.at(offset))?;
            }
            Column::Void(len) => {
                msgpack::read_nil(cursor)?;
                *len += 1;
            }
            Column::Nullable { valid, inner } => {
                if cursor.peek() == Some(0xc0) {
                    msgpack::read_nil(cursor)?;
                    inner.push_stand_ins(1, reading)?;
                    valid.push(false);
                } else {
                    inner.read_msgpack(cursor, reading)?;
                    valid.push(true);
                }
            }
            Column::Tensor { item, count, len } => {
                let offset = cursor.offset();
                let found = msgpack::read_array(cursor)?;
                if found != *count {
                    return Err(wrong_arity("a tensor", *count, found, offset));
                }
                for index in item.read_plain_msgpack(cursor, found, reading)?..found {
                    item.read_msgpack(cursor, reading).map_err(|error| error.index(index as u64))?;
                }
                *len += 1;
            }
            Column::List { offsets, item, row_count } => {
                let start = cursor.offset();
                let found = msgpack::read_array(cursor)?;
                if let Some(expected) = *row_count
                    && expected != found as u64
                {
                    return Err(wrong_row_count(expected, found, start));
                }
                for index in item.read_plain_msgpack(cursor, found, reading)?..found {
                    item.read_msgpack(cursor, reading).map_err(|error| error.index(index as u64))?;
                }
                offsets.push(offset(item.len())?);
            }
            Column::Struct { names, fields, len } => {
                let offset = cursor.offset();
                let found = msgpack::read_array(cursor)?;
                if found != fields.len() {
                    return Err(wrong_arity("an array", fields.len(), found, offset));
                }
                for (field, name) in fields.iter_mut().zip(names) {
                    field.read_msgpack(cursor, reading).map_err(|error| error.field(name.clone()))?;
                }
                *len += 1;
            }
        }
        Ok(())
    }
}
