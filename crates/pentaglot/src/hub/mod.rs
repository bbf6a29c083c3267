//! The hub: all input becomes a stream of Arrow record batches with a schema ([`Rows`]), and all output is written
//! from such a stream. What a plain table cannot express is stored in extension types of fields ([`extension`]) and a
//! few schema-metadata keys ([`shape`], [`native`]).

mod columns;
pub mod extension;
pub mod filter;
mod inner;
pub mod json;
pub mod loss;
pub mod matrix;
pub mod native;
mod overlap;
pub mod plan;
pub mod relax;
pub mod rows;
pub mod selection;
pub mod shape;
pub mod type_text;
mod value_bytes;

pub use columns::Columns;
pub(crate) use columns::distinct;
pub(crate) use inner::{inner_fields, same_fields};
pub use loss::{LossKind, LossKinds, LossRecord, Lost};
pub(crate) use overlap::{Early, overlapped};
pub use plan::{Effect, FieldPlan, Plan, Verdict};
pub use rows::Rows;
pub use selection::Selection;
pub use shape::{Form, Shape};
pub(crate) use value_bytes::{batch_bytes, value_bytes};
