//! Content identity: one identifier for the same typed data, independent of the file that holds it. Defined in
//! `docs/identity.md`.
//!
//! ```text
//! value  --enc-->  bytes  --BLAKE3 of 65,536 rows-->  chunk digest  --BLAKE3-->  column digest  --root-->  identity
//! ```
//!
//! It does not depend on batches, encodings, offsets, compression, byte order, dialect, metadata, or the nullability of
//! columns without nulls. Rows are hashed while they are read, columns and chunks in parallel.

mod chunk;
mod cid;
mod column;
mod encoder;
mod matrix;
mod rows;
#[cfg(test)]
mod tests;
mod types;

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;

use serde_json::json;

use crate::control::Control;
use crate::convert::reshape;
use crate::error::Result;
use crate::formats::dynd;
use crate::hub::{Early, Form, LossKinds, LossRecord, Rows, overlapped};
use crate::limits::Budget;

pub use cid::Cid;
pub(crate) use column::HashedColumn;
pub(crate) use encoder::Encoder;
pub(crate) use matrix::MatrixRows;
pub use rows::RowHasher;
pub use types::type_text;

/// Rows of a chunk.
pub const CHUNK_ROWS: u64 = 65_536;

/// The datashape of the root.
pub const ROOT_TYPE: &str = "{version: int32, shape: string, rows: uint64, cols: uint64, \
    columns: var * {name: string, type: string, digest: bytes[32]}}";

/// The version of the definition.
const VERSION: i128 = 1;

/// How rows are hashed.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct IdentityOptions {
    /// The memory that the job may use, and its other limits.
    pub budget: Budget,
    /// The handle on the job: its threads, and the flag that cancels it.
    pub control: Control,
}

impl IdentityOptions {
    setters! {
        texts []
        values [
            with_budget(budget: Budget),
            with_control(control: Control),
        ]
    }

    /// The rows, read on a thread of their own while earlier ones are hashed.
    pub(crate) fn overlapped(&self, rows: Rows) -> Result<Rows> {
        overlapped(rows, Early::Detach, &self.control, &self.budget)
    }
}

/// The identity of typed data, and the digests that it is computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// `table`, `matrix`, `array` or `value`.
    pub shape: &'static str,
    /// Rows.
    pub rows: u64,
    /// Columns of a matrix; 0 for other shapes.
    pub cols: u64,
    /// The columns of a table; a single one without a name for other shapes.
    pub columns: Vec<ColumnIdentity>,
}

/// A column in an identity.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnIdentity {
    /// Its name; empty unless it is the column of a table.
    pub name: String,
    /// The text of its type; see [`type_text`].
    pub data_type: String,
    /// The digest of its values.
    pub digest: [u8; 32],
    /// The digests of its chunks of [`CHUNK_ROWS`] rows.
    pub chunks: Vec<[u8; 32]>,
}

impl ColumnIdentity {
    /// A column of which only the digest is known.
    pub(crate) fn new(name: String, data_type: String, digest: [u8; 32]) -> Self {
        ColumnIdentity { name, data_type, digest, chunks: Vec::new() }
    }

    /// The identity of the column alone: the CID of the bytes that its digest hashes.
    pub fn cid(&self) -> Cid {
        Cid::new(self.digest)
    }
}

impl Identity {
    /// An identity from its parts.
    pub(crate) fn new(shape: &'static str, rows: u64, cols: u64, columns: Vec<ColumnIdentity>) -> Self {
        Identity { shape, rows, cols, columns }
    }

    /// The bytes that are hashed: the DyND `array[Any]` of the root.
    pub fn root(&self) -> Result<Vec<u8>> {
        use dynd::Value;
        let columns = self.columns.iter().map(|column| {
            Value::List(vec![
                Value::String(column.name.clone()),
                Value::String(column.data_type.clone()),
                Value::Bytes(column.digest.to_vec()),
            ])
        });
        let value = Value::List(vec![
            Value::Int(VERSION),
            Value::String(self.shape.to_owned()),
            Value::Uint(self.rows.into()),
            Value::Uint(self.cols.into()),
            Value::List(columns.collect()),
        ]);
        let any: dynd::Type = "array[Any]".parse()?;
        dynd::write_value(&any, &Value::array(ROOT_TYPE.parse()?, value))
    }

    /// The identity: the CID of the root.
    pub fn cid(&self) -> Result<Cid> {
        Ok(Cid::new(*blake3::hash(&self.root()?).as_bytes()))
    }

    /// One object: `{file, identity, rows, columns: [{name, type, identity}]}`.
    pub fn to_json(&self, file: &str) -> Result<String> {
        let columns = self.columns.iter().map(|column| {
            json!({ "name": column.name, "type": column.data_type, "identity": column.cid().to_string() })
        });
        let columns: Vec<serde_json::Value> = columns.collect();
        let identity = self.cid()?.to_string();
        Ok(json!({ "file": file, "identity": identity, "rows": self.rows, "columns": columns }).to_string())
    }
}

/// The identity of a stream of rows. A matrix in columns or as `row, col, value` is hashed as that matrix.
///
/// ```
/// use pentaglot::{Registry, Source, identity, job};
/// let source = Source::from_bytes("x.csv", b"a,b\n1,x\n2,\n".to_vec());
/// let opened = job::open_source(&Registry::default(), source, None, &job::OpenOptions::default())?;
/// let rows = opened.rows(&job::View::default())?;
/// let identity = identity::of_rows(rows, &identity::IdentityOptions::default())?;
/// assert_eq!((identity.rows, identity.columns.len()), (2, 2));
/// assert!(identity.cid()?.to_string().starts_with("bafkr4i"));
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn of_rows(rows: Rows, options: &IdentityOptions) -> Result<Identity> {
    let rows = as_matrix(rows, options)?;
    let mut hasher = RowHasher::new(&rows.schema(), options)?;
    options.overlapped(rows)?.try_for_each(|batch| hasher.push(&batch?))?;
    hasher.finish()
}

/// Converts rows of a matrix in a table form to a matrix; other rows are unchanged.
pub(crate) fn as_matrix(rows: Rows, options: &IdentityOptions) -> Result<Rows> {
    let form = match Form::of(&rows.schema()) {
        Form::Columns => Form::Dense,
        Form::Coo => Form::Sparse,
        _ => return Ok(rows),
    };
    let plan = reshape::plan(&rows.schema(), form)?;
    plan.plan.check(LossKinds::NONE)?;
    reshape::reshape(rows, &plan, &options.budget, LossKinds::NONE, &LossRecord::default())
}

/// A digest of each row of some columns: equal rows have equal ones.
pub(crate) fn row_digests(columns: &[ArrayRef]) -> Result<Vec<[u8; 32]>> {
    let columns: Vec<column::HashedColumn> =
        columns.iter().map(|array| column::HashedColumn::new(array)).collect::<Result<_>>()?;
    let rows = columns.first().map_or(0, column::HashedColumn::len);
    let digest = |row: usize| {
        let mut hasher = blake3::Hasher::new();
        let mut take = |bytes: &[u8]| {
            hasher.update(bytes);
            Ok(())
        };
        let mut out = encoder::Encoder::new(&mut take);
        columns.iter().try_for_each(|column| column.slot(row, &mut out))?;
        out.flush()?;
        Ok(*hasher.finalize().as_bytes())
    };
    (0..rows).map(digest).collect()
}

/// The form as which rows of this schema are hashed. A matrix in columns or as `row, col, value` is hashed as a plain
/// table, unless [`as_matrix`] has converted it.
fn form_of(schema: &SchemaRef) -> Form {
    match Form::of(schema) {
        Form::Columns | Form::Coo => Form::Table,
        form => form,
    }
}
