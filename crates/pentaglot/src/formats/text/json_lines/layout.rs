//! Where rows begin and end: detection, and lines for the outline.

use std::io::{BufRead, Read};

use crate::error::{ErrorKind, Result};
use crate::formats::{Confidence, FormatInfo, Head};
use crate::limits::Budget;
use crate::wire::json::{JsonKind, Scanner};

/// How much of a line is shown.
pub(super) const SHOWN_BYTES: usize = 60;

/// Text that begins with an object is likely ours, and so are several lines that begin with an array. A document
/// `{"type":…,"value":…}` belongs to others first, and so does a single array unless it is named as ours.
pub(super) fn detect(head: &Head<'_>, info: &FormatInfo) -> Confidence {
    let bytes = head.bytes();
    let mut scanner = Scanner::new(bytes, Budget::default());
    let whole = head.len() == Some(bytes.len() as u64);
    let kind = match scanner.skip_byte_order_mark().and_then(|_| scanner.peek()) {
        Ok(kind @ (JsonKind::Object | JsonKind::Array)) => kind,
        _ => return Confidence::No,
    };
    let mut keys = Vec::new();
    let parsed = match kind {
        JsonKind::Object => object_keys(&mut scanner, &mut keys),
        _ => scanner.skip_value(),
    };
    let named = head.has_extension(info.extensions);
    match (parsed.and_then(|()| scanner.end_line()), kind) {
        (Ok(()), JsonKind::Object) if is_bundle(&keys) => Confidence::Possible,
        (Ok(()), JsonKind::Object) => Confidence::Likely,
        (Ok(()), _) if named => Confidence::Likely,
        (Ok(()), _) => match scanner.skip_space() {
            Ok(Some(b'[')) => Confidence::Likely,
            _ => Confidence::No,
        },
        // A first row that is longer than what detection sees.
        (Err(error), _) if error.kind() == ErrorKind::Truncated && !whole => match kind {
            JsonKind::Object => Confidence::Possible,
            _ if named => Confidence::Likely,
            _ => Confidence::No,
        },
        (Err(_), _) => Confidence::No,
    }
}

fn is_bundle(keys: &[String]) -> bool {
    matches!(keys, [first, second] if [first.as_str(), second.as_str()] == ["type", "value"] || [second.as_str(), first.as_str()] == ["type", "value"])
}

fn object_keys<R: Read>(scanner: &mut Scanner<R>, keys: &mut Vec<String>) -> Result<()> {
    scanner.begin_object()?;
    while let Some(key) = scanner.next_key()? {
        keys.push(key.to_owned());
        scanner.skip_value()?;
    }
    Ok(())
}

/// The beginning of the next line and the bytes it takes with its end.
pub(super) fn next_line(reader: &mut impl BufRead) -> Result<Option<(Vec<u8>, u64)>> {
    let mut head = Vec::new();
    let mut bytes = 0;
    loop {
        let window = reader.fill_buf()?;
        if window.is_empty() {
            return Ok((bytes > 0).then_some((head, bytes)));
        }
        let end = window.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        let taken = end.unwrap_or(window.len());
        let wanted = SHOWN_BYTES.saturating_sub(head.len()).min(taken);
        head.extend_from_slice(window.get(..wanted).unwrap_or_default());
        reader.consume(taken);
        bytes += taken as u64;
        if end.is_some() {
            return Ok(Some((head, bytes)));
        }
    }
}
