//! The interface for the command and other front ends: [`open`], [`validate`], [`Conversion`]. Start reading the code
//! here.

mod as_type;
mod chain;
mod choice;
mod columns;
#[cfg(feature = "sds")]
mod composite;
mod conversion;
mod convert_options;
mod dense;
mod describe;
#[cfg(feature = "dynd")]
mod diff;
mod filtered;
#[cfg(feature = "dynd")]
mod hash;
#[cfg(test)]
mod honest;
#[cfg(feature = "ds")]
mod image_files;
mod index;
mod inputs;
mod members;
mod names;
mod open;
mod options;
mod parts;
#[cfg(feature = "sds")]
mod query;
mod read;
mod report;
mod salvage;
mod sample;
mod selection;
mod split;
#[cfg(feature = "dynd")]
mod store;
mod target;
#[cfg(test)]
mod tests;
mod types;
#[cfg(feature = "dynd")]
mod verify;

pub use columns::ColumnChanges;
pub use conversion::{Conversion, output_target};
pub use convert_options::ConvertOptions;
pub use describe::{
    ColumnDescription, Description, Histogram, Lengths, MatrixDescription, QUANTILES, SuccinctDescription,
    TableDescription,
};
#[cfg(feature = "dynd")]
pub use diff::{
    Cell, ColumnDifferences, Diff, DiffOptions, DiffTable, Difference, OnDifference, Place, RowDifferences,
    SchemaDifference, Tolerance, diff,
};
#[cfg(feature = "dynd")]
pub use hash::RawDigest;
pub use index::index;
pub use inputs::{join, open_all};
pub use members::Members;
pub use names::{create, expand, source, split_member};
pub use open::{
    Broken, OpenOptions, Opened, Target, open, open_broken, open_source, target, validate, validate_opened,
};
pub use options::CONVERSION_OPTIONS;
#[cfg(feature = "sds")]
pub use query::Queries;
pub use read::View;
pub use report::Report;
pub use salvage::{LostRows, Salvaged, salvage};
pub use selection::{parse_casts, parse_columns, parse_renames, parse_rows};
#[cfg(feature = "dbdf")]
pub use types::daphne_meta;
pub use types::{Language, TypeText, document_type, json_options, parse_type, print_type};
#[cfg(feature = "dynd")]
pub use verify::Verified;
