//! Parses the text of column and row selections, casts and renamings.

use std::ops::Range;

use crate::error::{Error, Result};

/// The names in `a,b`; a comma in a name is written `\,`.
///
/// ```
/// assert_eq!(pentaglot::job::parse_columns(r"price,a\,b"), ["price", "a,b"]);
/// ```
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

/// The rows `A..B`: half-open, counted from 0; either end may be missing.
///
/// ```
/// assert_eq!(pentaglot::job::parse_rows("10..")?, 10..u64::MAX);
/// # Ok::<(), pentaglot::Error>(())
/// ```
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

/// The renamings in `a=b,c=d`: names and new names. A comma or an equals sign in a name is written `\,`, `\=`.
///
/// ```
/// let renames = pentaglot::job::parse_renames(r"a=b,x\=y=z")?;
/// assert_eq!(renames, [("a".into(), "b".into()), ("x=y".into(), "z".into())]);
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn parse_renames(text: &str) -> Result<Vec<(String, String)>> {
    parse_pairs(text, |rest| take_name(rest, ','), "renamings as a=b,c=d")
}

/// The casts in `a=T,b=T`: names and types. A comma or an equals sign in a name is written `\,`, `\=`; a type may hold commas in
/// brackets or quotes.
///
/// ```
/// let casts = pentaglot::job::parse_casts("a=decimal128[10, 2],b\\,c=utf8")?;
/// assert_eq!(casts, [("a".into(), "decimal128[10, 2]".into()), ("b,c".into(), "utf8".into())]);
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn parse_casts(text: &str) -> Result<Vec<(String, String)>> {
    parse_pairs(text, take_type, "casts as a=TYPE,b=TYPE")
}

fn parse_pairs<'t>(
    text: &'t str,
    take: impl Fn(&'t str) -> (String, Option<&'t str>),
    expected: &str,
) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let (name, after) = take_name(text, '=');
        let bad = || Error::usage(format!("expected {expected}, found {text:?}"));
        let (value, after) = take(after.ok_or_else(bad)?);
        if value.is_empty() {
            return Err(bad());
        }
        if pairs.iter().any(|(known, _)| *known == name) {
            return Err(Error::usage(format!("expected each column once, found {name:?} twice")));
        }
        pairs.push((name, value));
        rest = after;
    }
    Ok(pairs)
}

/// A name up to `end`, and the text after it.
fn take_name(text: &str, end: char) -> (String, Option<&str>) {
    let mut name = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some((_, next @ (',' | '=')))) => {
                name.push(*next);
                characters.next();
            }
            (found, _) if found == end => return (name, text.get(at + end.len_utf8()..)),
            (other, _) => name.push(other),
        }
    }
    (name, None)
}

/// A type up to a comma outside brackets and quotes, and the text after it.
fn take_type(text: &str) -> (String, Option<&str>) {
    let (mut depth, mut quote) = (0u32, None);
    for (at, character) in text.char_indices() {
        match (character, quote) {
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(character),
            ('[' | '{' | '(', None) => depth += 1,
            (']' | '}' | ')', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                return (text.get(..at).unwrap_or_default().to_owned(), text.get(at + 1..));
            }
            _ => {}
        }
    }
    (text.to_owned(), None)
}
