//! Values of options, from their text.

use std::io::Read;
use std::ops::Range;

use pentaglot::hub::LossKinds;

use super::Pairs;

pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.trim_end_matches(['i', 'B']).char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        Some((at, 't' | 'T')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a size such as 512M".to_owned())?;
    number.checked_shl(shift).filter(|size| size >> shift == number).ok_or("a size past 2^64".to_owned())
}

pub(super) fn parse_tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or("expected a number from 0".to_owned())
}

pub(super) fn parse_option(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE".to_owned())?;
    Ok((key.to_owned(), value.to_owned()))
}

/// A type in a file may have so many bytes.
const TYPE_BYTES: u64 = 64 << 20;

/// The text, or with `@FILE` the content of a file.
pub(super) fn text_or_file(text: &str) -> Result<String, String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let cannot = |error| pentaglot::Error::io(format_args!("cannot read {path}"), error).to_string();
    let mut content = String::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(TYPE_BYTES + 1).read_to_string(&mut content).map_err(cannot)?;
    if content.len() as u64 > TYPE_BYTES {
        return Err(format!("{path}: expected at most {TYPE_BYTES} bytes"));
    }
    Ok(content.trim_start_matches('\u{feff}').trim().to_owned())
}

pub(super) fn parse_kinds(text: &str) -> Result<LossKinds, String> {
    if text.is_empty() {
        Ok(LossKinds::ALL)
    } else {
        text.parse().map_err(|error: pentaglot::Error| error.to_string())
    }
}

pub(super) fn parse_casts(text: &str) -> Result<Pairs, String> {
    pentaglot::job::parse_casts(text).map(Pairs).map_err(|error| error.to_string())
}

pub(super) fn parse_renames(text: &str) -> Result<Pairs, String> {
    pentaglot::job::parse_renames(text).map(Pairs).map_err(|error| error.to_string())
}

pub(super) fn parse_rows(text: &str) -> Result<Range<u64>, String> {
    pentaglot::job::parse_rows(text).map_err(|error| error.to_string())
}

pub(super) fn parse_kind(text: &str) -> Result<pentaglot_plot::Kind, String> {
    text.parse().map_err(|error: pentaglot::Error| error.to_string())
}
