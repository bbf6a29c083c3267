//! What the command and other front ends call: [`open`], [`validate`], [`Conversion`]. Follow the calls down from here.

mod conversion;
mod dense;
mod open;
#[cfg(feature = "sds")]
mod query;
mod read;
mod selection;
#[cfg(test)]
mod tests;
mod types;

pub use conversion::{Conversion, ConvertOptions, Report};
pub use open::{OpenOptions, Opened, Target, open, open_source, target, validate};
#[cfg(feature = "sds")]
pub use query::{Queries, index};
pub use read::View;
pub use selection::{parse_columns, parse_rows};
#[cfg(feature = "dbdf")]
pub use types::daphne_meta;
pub use types::{Language, TypeText, json_options, parse_type, print_type};
