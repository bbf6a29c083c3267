//! DyND serialization.

mod parse;
mod pattern;
mod types;
mod value;
mod walk;

#[cfg(test)]
mod tests;

pub use parse::caret;
pub use types::{Base, Callable, Encoding, FloatWidth, Kind, Pattern, Type, Width, Zone};
pub use value::{Value, deserialize, is_nan_bits, serialize};
