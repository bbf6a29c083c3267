//! JSON values: the one text form of every value.

mod text;

pub(crate) use text::write_string;
