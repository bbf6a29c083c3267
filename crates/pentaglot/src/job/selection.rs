//! `--columns` and `--rows`.

use std::ops::Range;

use arrow_schema::Schema;

use crate::error::{self, Error, Result};
use crate::hub::Form;
use crate::hub::rows::Columns;
use crate::hub::shape::{column_name, matrix_cols};

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

/// The chosen columns of this schema: names of a table; of a matrix `col_3`, `3`, `7..9`.
pub fn resolve_columns(names: &[String], schema: &Schema) -> Result<Columns> {
    let matrix = matches!(Form::of(schema), Form::Dense | Form::Sparse);
    let ranges = names.iter().map(|name| match matrix {
        true => matrix_range(name, matrix_cols(schema).unwrap_or(0)),
        false => table_column(name, schema),
    });
    Ok(Columns(ranges.collect::<Result<_>>()?))
}

fn table_column(name: &str, schema: &Schema) -> Result<Range<u64>> {
    let index = schema.fields().iter().position(|field| field.name() == name).ok_or_else(|| {
        let names = error::list(schema.fields().iter().map(|field| field.name()));
        Error::usage(format!("there is no column {:?} (there is {names})", error::excerpt(name)))
    })?;
    Ok(index as u64..index as u64 + 1)
}

fn matrix_range(name: &str, cols: u64) -> Result<Range<u64>> {
    let bad = || {
        let last = column_name(cols.saturating_sub(1));
        Error::usage(format!(
            "there is no matrix column {name:?} (there are col_0 to {last}, or ranges such as 7..9)"
        ))
    };
    let number = |text: &str| text.strip_prefix("col_").unwrap_or(text).parse::<u64>().map_err(|_| bad());
    match name.split_once("..") {
        Some((start, end)) => {
            let start = if start.is_empty() { 0 } else { number(start)? };
            let end = if end.is_empty() { cols } else { number(end)?.min(cols) };
            Ok(start.min(end)..end)
        }
        None => {
            let index = number(name)?;
            if index < cols { Ok(index..index + 1) } else { Err(bad()) }
        }
    }
}
