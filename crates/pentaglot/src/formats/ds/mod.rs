//! Mantik DS.
mod columns;
mod from_json;
mod from_msgpack;
mod images;
mod rows;
mod schema;
mod tree;
mod types;
mod window;
pub use types::{Channel, Fundamental, Image, ImageFormat, Tabular, Tensor, Type};
pub(super) const ID: &str = "ds";
