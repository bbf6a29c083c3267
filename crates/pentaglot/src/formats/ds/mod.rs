//! Mantik DS.
mod tree;
mod types;
pub use types::{Channel, Fundamental, Image, ImageFormat, Tabular, Tensor, Type};
