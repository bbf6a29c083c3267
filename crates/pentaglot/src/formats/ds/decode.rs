//! Decodes cells of MessagePack and JSON into columns.

use std::io::Read;

use super::columns::{ColumnBuilder, Reading, offset};
use super::types::Fundamental;
use crate::cursor::{Cursor, allocate};
use crate::error::{Error, Result};
use crate::kernels::rows::{Json, MsgPack, Wire, read_rows};
use crate::limits::Budget;
use crate::wire::json::{JsonKind as Kind, Scanner};
use crate::wire::msgpack::{self, Float, Integer};

/// From this many elements on, the fast loop for an array's elements is worth its setup.
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

/// Whether an integer comes next that is read as a float.
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
#[expect(clippy::cast_possible_truncation, reason = "rounding is intended")]
fn single(value: f64) -> Option<f32> {
    let single = value as f32;
    (single.is_finite() || !value.is_finite()).then_some(single)
}

impl ColumnBuilder {
    /// Reads elements of an array while they are simple; returns how many of the `count` were read.
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
        reading.count_placeholders(taken.placeholder_bytes)?;
        Ok(taken.rows)
    }

    /// Appends one value.
    pub(super) fn read_msgpack(&mut self, cursor: &mut Cursor<'_>, reading: &mut Reading) -> Result<()> {
        match self {
            ColumnBuilder::Int32(values) => values.push(integer(cursor, Fundamental::Int32)?),
            ColumnBuilder::Int64(values) => values.push(integer(cursor, Fundamental::Int64)?),
            ColumnBuilder::UInt8(values) => values.push(integer(cursor, Fundamental::UInt8)?),
            ColumnBuilder::Int8(values) => values.push(integer(cursor, Fundamental::Int8)?),
            ColumnBuilder::UInt32(values) => values.push(integer(cursor, Fundamental::UInt32)?),
            ColumnBuilder::UInt64(values) => values.push(integer(cursor, Fundamental::UInt64)?),
            ColumnBuilder::Bool(values) => values.push(msgpack::read_bool(cursor)?),
            ColumnBuilder::Float64(values) => values.push(if lenient_integer(cursor, reading) {
                integer_as_float(cursor)?
            } else {
                match msgpack::read_float(cursor)? {
                    Float::Double(value) => value,
                    Float::Single(value) => f64::from(value),
                }
            }),
            ColumnBuilder::Float32(values) => {
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
            ColumnBuilder::Text(blob) => {
                let bytes = msgpack::read_bytes(cursor, "a string")?;
                if !bytes.is_ascii() && simdutf8::basic::from_utf8(bytes).is_err() {
                    let offset = cursor.offset() - bytes.len() as u64;
                    return Err(Error::malformed("UTF-8", "other bytes").at(offset).rule("utf8"));
                }
                blob.bytes.extend_from_slice(bytes);
                blob.end()?;
            }
            ColumnBuilder::Image(blob, picture) => {
                let offset = cursor.offset();
                let bytes = msgpack::read_bytes(cursor, "the bytes of an image")?;
                blob.bytes.extend_from_slice(bytes);
                blob.end_image(picture, &reading.budget).map_err(|error| error.at(offset))?;
            }
            ColumnBuilder::Void(len) => {
                msgpack::read_nil(cursor)?;
                *len += 1;
            }
            ColumnBuilder::Nullable { valid, inner } => {
                if cursor.peek() == Some(0xc0) {
                    msgpack::read_nil(cursor)?;
                    inner.push_placeholders(1, reading)?;
                    valid.push(false);
                } else {
                    inner.read_msgpack(cursor, reading)?;
                    valid.push(true);
                }
            }
            ColumnBuilder::Tensor { item, count, len } => {
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
            ColumnBuilder::List { offsets, item, row_count } => {
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
            ColumnBuilder::Struct { names, fields, len } => {
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

/// Returns an error unless a value of this kind comes next.
#[inline]
pub(super) fn expect<R: Read>(scanner: &mut Scanner<R>, kind: Kind) -> Result<()> {
    let found = scanner.peek()?;
    if found == kind { Ok(()) } else { Err(mismatch(kind.name(), found, scanner.offset())) }
}

#[cold]
fn mismatch(expected: &str, found: Kind, offset: u64) -> Error {
    Error::malformed(expected, found.name()).at(offset).rule("mismatch")
}

#[inline]
fn signed<R: Read, T: TryFrom<i64>>(scanner: &mut Scanner<R>, kind: Fundamental) -> Result<T> {
    expect(scanner, Kind::Number)?;
    let offset = scanner.offset();
    let value = scanner.i64()?;
    T::try_from(value).map_err(|_| out_of_range(kind, value, offset))
}

#[inline]
fn unsigned<R: Read, T: TryFrom<u64> + TryFrom<i128>>(
    scanner: &mut Scanner<R>,
    kind: Fundamental,
) -> Result<T> {
    expect(scanner, Kind::Number)?;
    let offset = scanner.offset();
    if scanner.peek_byte()? == Some(b'-') {
        // Only -0 fits, which is 0 in an integer column.
        let value = scanner.i128()?;
        return T::try_from(value).map_err(|_| out_of_range(kind, value, offset));
    }
    let value = scanner.u64()?;
    T::try_from(value).map_err(|_| out_of_range(kind, value, offset))
}

/// Whether a null comes next that is read as NaN.
#[inline]
fn null_as_nan<R: Read>(scanner: &mut Scanner<R>, reading: &Reading) -> Result<bool> {
    if reading.nan_null { scanner.skip_null() } else { Ok(false) }
}

impl ColumnBuilder {
    /// Reads elements of an array while they are simple and in the scanner's window: at most `limit`.
    fn read_plain_json<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        limit: usize,
        reading: &mut Reading,
    ) -> Result<usize> {
        let (Some(column), Some((window, fresh))) = (self.plain(), scanner.elements()) else { return Ok(0) };
        let mut wire = Json::elements(window, fresh);
        let taken = read_rows(&mut wire, &mut [column], limit, usize::MAX);
        scanner.skip_elements(wire.position());
        reading.count_placeholders(taken.placeholder_bytes)?;
        Ok(taken.rows)
    }

    /// Appends one value.
    pub(super) fn read_json<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        reading: &mut Reading,
    ) -> Result<()> {
        match self {
            ColumnBuilder::Int32(values) => values.push(signed(scanner, Fundamental::Int32)?),
            ColumnBuilder::Int64(values) => values.push(signed(scanner, Fundamental::Int64)?),
            ColumnBuilder::Int8(values) => values.push(signed(scanner, Fundamental::Int8)?),
            ColumnBuilder::UInt8(values) => values.push(unsigned(scanner, Fundamental::UInt8)?),
            ColumnBuilder::UInt32(values) => values.push(unsigned(scanner, Fundamental::UInt32)?),
            ColumnBuilder::UInt64(values) => values.push(unsigned(scanner, Fundamental::UInt64)?),
            ColumnBuilder::Bool(values) => {
                expect(scanner, Kind::Bool)?;
                values.push(scanner.bool()?);
            }
            ColumnBuilder::Float64(values) => values.push(if null_as_nan(scanner, reading)? {
                f64::NAN
            } else {
                expect(scanner, Kind::Number)?;
                scanner.f64()?
            }),
            ColumnBuilder::Float32(values) => values.push(if null_as_nan(scanner, reading)? {
                f32::NAN
            } else {
                expect(scanner, Kind::Number)?;
                scanner.f32()?
            }),
            ColumnBuilder::Text(blob) => {
                expect(scanner, Kind::String)?;
                blob.bytes.extend_from_slice(scanner.str_bytes()?);
                blob.end()?;
            }
            ColumnBuilder::Image(blob, picture) => {
                expect(scanner, Kind::String)?;
                let start = scanner.offset();
                let text = scanner.base64_text()?;
                make_room(&mut blob.bytes, text.len(), &reading.budget)?;
                let mut decoded = base64_simd::STANDARD.decode_append(text, &mut blob.bytes);
                if decoded.is_err() && reading.lenient {
                    decoded = base64_simd::STANDARD_NO_PAD.decode_append(text, &mut blob.bytes);
                }
                decoded
                    .map_err(|_| Error::malformed("padded base64", "other text").at(start).rule("base64"))?;
                blob.end_image(picture, &reading.budget).map_err(|error| error.at(start))?;
            }
            ColumnBuilder::Void(len) => {
                match scanner.peek()? {
                    Kind::Null => scanner.null()?,
                    // Scala writes void as {} and reads [] too.
                    kind @ (Kind::Object | Kind::Array) => {
                        let start = scanner.offset();
                        let empty = if kind == Kind::Object {
                            scanner.begin_object()?;
                            scanner.next_key()?.is_none()
                        } else {
                            scanner.begin_array()?;
                            !scanner.next_element()?
                        };
                        if !empty {
                            return Err(mismatch("null", kind, start));
                        }
                    }
                    other => return Err(mismatch("null", other, scanner.offset())),
                }
                *len += 1;
            }
            ColumnBuilder::Nullable { valid, inner } => {
                if scanner.skip_null()? {
                    inner.push_placeholders(1, reading)?;
                    valid.push(false);
                } else {
                    inner.read_json(scanner, reading)?;
                    valid.push(true);
                }
            }
            ColumnBuilder::Tensor { item, count, len } => {
                expect(scanner, Kind::Array)?;
                let start = scanner.offset();
                scanner.begin_array()?;
                let mut found = item.read_plain_json(scanner, *count, reading)?;
                while scanner.next_element()? {
                    if found == *count {
                        return Err(wrong_arity("a tensor", *count, "more", start));
                    }
                    item.read_json(scanner, reading).map_err(|error| error.index(found as u64))?;
                    found += 1;
                }
                if found != *count {
                    return Err(wrong_arity("a tensor", *count, found, start));
                }
                *len += 1;
            }
            ColumnBuilder::List { offsets, item, row_count } => {
                expect(scanner, Kind::Array)?;
                let start = scanner.offset();
                scanner.begin_array()?;
                let mut found = item.read_plain_json(scanner, usize::MAX, reading)? as u64;
                while scanner.next_element()? {
                    item.read_json(scanner, reading).map_err(|error| error.index(found))?;
                    found += 1;
                }
                if let Some(expected) = *row_count
                    && expected != found
                {
                    return Err(wrong_row_count(expected, found, start));
                }
                offsets.push(offset(item.len())?);
            }
            ColumnBuilder::Struct { names, fields, len } => {
                let start = begin_cells(scanner)?;
                let expected = fields.len();
                for (index, (field, name)) in fields.iter_mut().zip(names).enumerate() {
                    if !scanner.next_element()? {
                        return Err(wrong_arity("an array", expected, index, start));
                    }
                    field.read_json(scanner, reading).map_err(|error| error.field(name.clone()))?;
                }
                if scanner.next_element()? {
                    return Err(wrong_arity("an array", expected, "more", start));
                }
                *len += 1;
            }
        }
        Ok(())
    }
}

/// Reserves room for `more` bytes, at least doubling the capacity: the decoder itself reserves only what it
/// needs.
fn make_room(bytes: &mut Vec<u8>, more: usize, budget: &Budget) -> Result<()> {
    if bytes.capacity() - bytes.len() < more {
        let size = (bytes.len() + more).max(bytes.capacity() * 2);
        let mut larger = allocate(size as u64, budget)?;
        larger.extend_from_slice(bytes);
        *bytes = larger;
    }
    Ok(())
}

/// Begins the array of a row's or a struct's cells; returns its offset.
pub(super) fn begin_cells<R: Read>(scanner: &mut Scanner<R>) -> Result<u64> {
    expect(scanner, Kind::Array)?;
    let start = scanner.offset();
    scanner.begin_array()?;
    Ok(start)
}
