//! The Arrow type text: frozen, and the same in both directions.
//!
//! ```text
//! field   := '?'? type                                   `?` = nullable
//! type    := null | bool | int8 … int64 | uint8 … uint64 | float16 | float32 | float64
//!          | utf8 | large_utf8 | binary | large_binary | fixed_binary[N]
//!          | date32 | date64 | time[UNIT] | timestamp[UNIT] | timestamp[UNIT, 'zone'] | duration[UNIT]
//!          | decimal128[P, S] | list[field] | large_list[field] | fixed_list[N, field]
//!          | struct{name: field, …} | dict[type, type] | ordered_dict[type, type] | map[field, field]
//! UNIT    := s | ms | us | ns
//! name    := [A-Za-z_][A-Za-z0-9_]*  |  'quoted'         quoted as in datashape
//! schema  := struct{…}                                   a table
//!          | matrix[R, C, type] | sparse_matrix[R, C, type]     R is `*` where it is not known
//!          | array[field]
//!          | field | value[struct{…}]                    a single value; one that looks like a table says so
//! ```
//!
//! Arrow's other types are printed with their Arrow names and read back: `utf8_view`, `binary_view`, `list_view[T]`,
//! `large_list_view[T]`, `decimal32[P, S]`, `decimal64`, `decimal256`, `interval[year_month]` (`day_time`,
//! `month_day_nano`), `sorted_map[K, V]`, `run_end[I, V]`, `dense_union{0 name: T, …}`, `sparse_union{…}`.
//!
//! The text names storage types. Only the exact texts ([`print_exact_schema`]) name extension types, as
//! `extension['name', T]` or `extension['name', 'metadata', T]`; the parser always reads these. The names of list
//! items (`item`) and map entries (`entries`, `key`, `value`) are Arrow's own and are not part of the text.

mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use parse::{parse_field, parse_schema};
pub(crate) use print::write_name;
pub use print::{print_exact_schema, print_field, print_schema, print_type};

use crate::error::Error;

/// The text with a caret under the place of an error from [`parse_field`] or [`parse_schema`]: two lines for a
/// terminal.
///
/// ```
/// use pentaglot::hub::type_text::{caret, parse_field};
/// let text = "list[int33]";
/// let error = parse_field("x", text, &pentaglot::Limits::default()).unwrap_err();
/// assert_eq!(caret(text, &error), "list[int33]\n     ^");
/// ```
pub fn caret(text: &str, error: &Error) -> String {
    let offset = error.offset().and_then(|offset| usize::try_from(offset).ok()).unwrap_or(0);
    let before = text.char_indices().take_while(|(index, _)| *index < offset).count();
    let shown: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    format!("{shown}\n{}^", " ".repeat(before))
}

/// The error together with the faulty text, on one line, for use inside other messages.
pub(crate) fn caret_line(text: &str, error: &Error) -> String {
    let offset = error.offset().unwrap_or(0);
    format!("{} at character {offset} of {:?}", error.message(), text)
}
