//! Checks every value of an array against every rule of the format.
//!
//! | rule | what |
//! |---|---|
//! | `alignment` | values start at a multiple of 16, as in all versions of NumPy (warning) |
//! | `newline` | the header ends in a newline (warning) |
//! | `bool` | a bool is 0 or 1 |
//! | `text` | `U` holds Unicode scalar values |
//! | `truncated`, `trailing`, `crc` | all values are present, nothing follows, the archive's checksum matches |

use super::decode;
use super::read::{ArrayFile, batch_rows};
use super::types::{Dtype, Scalar};
use crate::error::{Error, Result};
use crate::formats::Findings;

/// Checks one array; a member of an archive is named in what is found.
pub(in crate::formats) fn validate(
    array: &ArrayFile,
    member: Option<&str>,
    findings: &mut Findings,
) -> Result<()> {
    let named = |error: Error| match member {
        Some(member) => error.field(member.to_owned()),
        None => error,
    };
    let header = &array.header;
    let start = array.extent.base;
    if !header.bytes.is_multiple_of(16) {
        let found = format_args!("{}", header.bytes);
        let error = Error::malformed("values at a multiple of 16", found).at(start).rule("alignment");
        findings.warning(&named(error));
    }
    if !header.text.ends_with('\n') {
        let at = start + header.bytes.saturating_sub(1);
        let error = Error::malformed("a newline at the end of the header", "none").at(at).rule("newline");
        findings.warning(&named(error));
    }
    match values(array, &named, findings) {
        Err(error) if is_files_fault(&error) => findings.error(&named(error)),
        other => other.map_err(named)?,
    }
    Ok(())
}

/// Whether an error is a finding, after which validation continues.
pub(in crate::formats) fn is_files_fault(error: &Error) -> bool {
    matches!(error.kind(), crate::ErrorKind::Malformed | crate::ErrorKind::Truncated)
}

fn values(array: &ArrayFile, named: &dyn Fn(Error) -> Error, findings: &mut Findings) -> Result<()> {
    let header = &array.header;
    let total = header.rows();
    if header.row_bytes().unwrap_or(0) == 0 {
        return array.bands(0..total)?.end();
    }
    let mut bands = array.bands(0..total)?;
    let band_rows = batch_rows(header);
    let item = header.dtype.bytes().unwrap_or(0);
    let row_elements = header.row_elements().unwrap_or(0);
    let ruled = has_rules(&header.dtype);
    // A time that does not fit its Arrow type is not an error of the file: it is unsupported, as for `rows`.
    let mut refused = None;
    let mut next = 0;
    while next < total {
        let count = band_rows.min(total - next);
        let bytes = bands.next(count)?;
        if ruled {
            let first = next * row_elements;
            for (index, element) in bytes.chunks_exact(usize::try_from(item).unwrap_or(1).max(1)).enumerate()
            {
                let index = first + index as u64;
                check(&header.dtype, element, &mut |within, error| {
                    let error = error.at(array.element_offset(index) + within).index(index).field("data");
                    if is_files_fault(&error) {
                        findings.error(&named(error));
                    } else {
                        refused.get_or_insert(error);
                    }
                });
            }
        }
        next += count;
    }
    bands.end()?;
    refused.map_or(Ok(()), Err)
}

fn has_rules(dtype: &Dtype) -> bool {
    match dtype {
        Dtype::Scalar(scalar) => decode::has_rules(*scalar),
        Dtype::Struct(members) => members.iter().any(|member| has_rules(&member.dtype)),
    }
}

/// Reports each fault of one element with its offset in the element.
fn check(dtype: &Dtype, element: &[u8], report: &mut dyn FnMut(u64, Error)) {
    match dtype {
        Dtype::Scalar(scalar) => {
            let swapped: Vec<u8>;
            let mut little = element;
            if scalar.big_endian {
                let unit = usize::try_from(scalar.unit_bytes()).unwrap_or(1).max(1);
                swapped = element.chunks(unit).flat_map(|unit| unit.iter().rev().copied()).collect();
                little = &swapped;
            }
            if let Some(error) = decode::fault(Scalar { big_endian: false, ..*scalar }, little) {
                report(0, error);
            }
        }
        Dtype::Struct(members) => {
            let mut start = 0usize;
            for member in members {
                let size = member.bytes().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
                let item = member.dtype.bytes().and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
                let own = element.get(start..start + size).unwrap_or_default();
                if !member.is_padding() && item > 0 && has_rules(&member.dtype) {
                    for (index, part) in own.chunks_exact(item).enumerate() {
                        let base = (start + index * item) as u64;
                        check(&member.dtype, part, &mut |within, error| {
                            report(base + within, error.field(member.name.clone()));
                        });
                    }
                }
                start += size;
            }
        }
    }
}
