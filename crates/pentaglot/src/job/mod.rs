//! What the command and other front ends call: [`open`], [`validate`], [`Conversion`]. Follow the calls down from here.

mod conversion;
mod open;
mod selection;
#[cfg(test)]
mod tests;

pub use conversion::{Conversion, ConvertOptions, Report};
pub use open::{OpenOptions, Opened, Target, open, open_source, target, validate};
pub use selection::{parse_columns, parse_rows, resolve_columns};
