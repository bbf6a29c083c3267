//! Cells from JSON.

use std::io::Read;

use super::columns::{Column, Reading, offset};
use super::from_msgpack::{out_of_range, wrong_arity, wrong_row_count};
use super::types::Fundamental;
use crate::cursor::allocate;
use crate::error::{Error, Result};
use crate::kernels::rows::{Json, Wire, read_rows};
use crate::limits::Budget;
use crate::wire::json::{JsonKind as Kind, Scanner};

/// Errs unless a value of this kind stands next.
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

/// Whether a null stands here that means NaN.
#[inline]
fn null_as_nan<R: Read>(scanner: &mut Scanner<R>, reading: &Reading) -> Result<bool> {
    if reading.nan_null { scanner.skip_null() } else { Ok(false) }
}

impl Column {
    /// Reads elements of an array for as long as they are plain and in the scanner's window: `limit` of them at the most.
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
        reading.stood_in(taken.stand_ins)?;
        Ok(taken.rows)
    }

    /// Reads one value behind the others.
    pub(super) fn read_json<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        reading: &mut Reading,
    ) -> Result<()> {
        match self {
            Column::Int32(values) => values.push(signed(scanner, Fundamental::Int32)?),
            Column::Int64(values) => values.push(signed(scanner, Fundamental::Int64)?),
            Column::Int8(values) => values.push(signed(scanner, Fundamental::Int8)?),
            Column::UInt8(values) => values.push(unsigned(scanner, Fundamental::UInt8)?),
            Column::UInt32(values) => values.push(unsigned(scanner, Fundamental::UInt32)?),
            Column::UInt64(values) => values.push(unsigned(scanner, Fundamental::UInt64)?),
            Column::Bool(values) => {
                expect(scanner, Kind::Bool)?;
                values.push(scanner.bool()?);
            }
            Column::Float64(values) => values.push(if null_as_nan(scanner, reading)? {
                f64::NAN
            } else {
                expect(scanner, Kind::Number)?;
                scanner.f64()?
            }),
            Column::Float32(values) => values.push(if null_as_nan(scanner, reading)? {
                f32::NAN
            } else {
                expect(scanner, Kind::Number)?;
                scanner.f32()?
            }),
            Column::Text(blob) => {
                expect(scanner, Kind::String)?;
                blob.bytes.extend_from_slice(scanner.str_bytes()?);
                blob.end()?;
            }
            Column::Image(blob, picture) => {
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
            Column::Void(len) => {
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
            Column::Nullable { valid, inner } => {
                if scanner.skip_null()? {
                    inner.push_stand_ins(1, reading)?;
                    valid.push(false);
                } else {
                    inner.read_json(scanner, reading)?;
                    valid.push(true);
                }
            }
            Column::Tensor { item, count, len } => {
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
            Column::List { offsets, item, row_count } => {
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
            Column::Struct { names, fields, len } => {
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

/// Room for `more` bytes, twice as much as before where there is none: the decoder asks for just what it needs.
fn make_room(bytes: &mut Vec<u8>, more: usize, budget: &Budget) -> Result<()> {
    if bytes.capacity() - bytes.len() < more {
        let size = (bytes.len() + more).max(bytes.capacity() * 2);
        let mut larger = allocate(size as u64, budget)?;
        larger.extend_from_slice(bytes);
        *bytes = larger;
    }
    Ok(())
}

/// Begins the array of a row's or a struct's cells; gives its offset.
pub(super) fn begin_cells<R: Read>(scanner: &mut Scanner<R>) -> Result<u64> {
    expect(scanner, Kind::Array)?;
    let start = scanner.offset();
    scanner.begin_array()?;
    Ok(start)
}
