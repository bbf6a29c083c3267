//! `--columns` and `--rows`.

use std::ops::Range;

use crate::error::{Error, Result};

/// The names in `a,b`; a comma in a name is written `\,`.
pub fn parse_columns(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek(), names.last_mut()) {
            ('\\', Some(','), Some(name)) => {
                name.push(',');
                characters.next();
            }
            (',', _, _) => names.push(String::new()),
            (other, _, Some(name)) => name.push(other),
            (_, _, None) => {}
        }
    }
    names
}

/// The rows `A..B`: half-open from 0, either end may be missing.
pub fn parse_rows(text: &str) -> Result<Range<u64>> {
    let bad = || Error::usage(format!("expected rows as A..B, found {text:?}"));
    let (start, end) = text.split_once("..").ok_or_else(bad)?;
    let number = |text: &str, missing: u64| {
        if text.is_empty() { Ok(missing) } else { text.parse().map_err(|_| bad()) }
    };
    let (start, end) = (number(start, 0)?, number(end, u64::MAX)?);
    if end < start {
        return Err(Error::usage(format!("expected rows as A..B with A up to B, found {text:?}")));
    }
    Ok(start..end)
}
