//! `diff`: the differences of two documents of any formats.
//!
//! Schemas are compared first, then rows by position or by key, cell by cell. Columns whose types differ are compared
//! in their common type, if there is one. Slices of columns with equal bytes take a single memory comparison.

mod cells;
mod json;
mod keyed;
mod matrix;
mod position;
mod report;
mod schema;
mod spill;
mod table;
#[cfg(test)]
mod tests;

use arrow_schema::SchemaRef;

use super::open::{OpenOptions, Opened};
use super::read::View;
use crate::convert::adapt;
use crate::error::{Error, Result};
use crate::hub::rows::from_batches;
use crate::hub::{LossKinds, LossRecord, Rows, Shape};
use crate::identity;

pub use cells::Tolerance;
pub use report::{Cell, ColumnDifferences, Diff, Difference, Place, RowDifferences};
pub use schema::SchemaDifference;
pub use table::DiffTable;

use report::Collector;

/// The options of `diff`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DiffOptions {
    /// How the documents were opened: limits and threads.
    pub open: OpenOptions,
    /// Columns by which rows are matched; if empty, rows are matched by position.
    pub key: Vec<String>,
    /// Which floats are considered equal.
    pub tolerance: Tolerance,
    /// How many differences of each column are kept in the report.
    pub first: usize,
}

impl Default for DiffOptions {
    fn default() -> Self {
        DiffOptions {
            open: OpenOptions::default(),
            key: Vec::new(),
            tolerance: Tolerance::default(),
            first: 20,
        }
    }
}

impl DiffOptions {
    setters! {
        texts []
        values [
            with_open(open: OpenOptions),
            with_tolerance(tolerance: Tolerance),
            with_first(first: usize),
        ]
    }

    /// Sets [`key`](Self::key).
    #[must_use]
    pub fn with_key(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.key = names.into_iter().map(Into::into).collect();
        self
    }
}

/// Called with every difference, also with those that the report does not keep.
pub type OnDifference<'l> = &'l mut dyn FnMut(&Difference) -> Result<()>;

/// Compares two documents.
///
/// ```
/// use pentaglot::{Registry, Source, job};
/// let open = |text: &str| {
///     let source = Source::from_bytes("x.csv", text.as_bytes().to_vec());
///     job::open_source(&Registry::default(), source, None, &job::OpenOptions::default())
/// };
/// let options = job::DiffOptions::default();
/// let diff = job::diff(&open("a,b\n1,x\n2,y\n")?, &open("a,b\n1,x\n3,y\n4,z\n")?, &options, None)?;
/// assert_eq!((diff.rows.changed, diff.rows.added, diff.columns[0].changed), (1, 1, 1));
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn diff(
    a: &Opened,
    b: &Opened,
    options: &DiffOptions,
    listener: Option<OnDifference<'_>>,
) -> Result<Diff> {
    let own = options.open.identity();
    let name = |side: &Opened| side.source.name().to_owned();
    let rows = |side: &Opened| -> Result<Rows> {
        let rows = identity::as_matrix(side.rows(&View::default())?, &own)?;
        // An error says which of the two files it is about.
        let (schema, name) = (rows.schema(), name(side));
        let rows = rows.map(move |batch| batch.map_err(|error| Error::from(error).in_input(name.as_str())));
        Ok(from_batches(schema, rows))
    };
    let identity = |side: &Opened| {
        let found = side.identity(&options.open).and_then(|identity| identity.cid());
        found.map_err(|error| error.in_input(name(side)))
    };
    if !options.key.is_empty() && identity(a)? == identity(b)? {
        keyed::key_columns(&a.document.summary().schema, options)?;
        return Ok(Diff::default());
    }
    let rows = |side: &Opened| rows(side).map_err(|error| error.in_input(name(side)));
    let (rows_a, rows_b) = (rows(a)?, rows(b)?);
    let compared = schema::compare(&rows_a.schema(), &rows_b.schema())?;
    let mut collector = Collector::new(options.first, listener);
    collector.schema(compared.differences)?;
    if Shape::of(&rows_a.schema()) != Shape::of(&rows_b.schema()) {
        return Ok(collector.finish());
    }
    if Shape::of(&rows_a.schema()) == Shape::Matrix {
        if !options.key.is_empty() {
            return Err(Error::usage("rows of a matrix have no key"));
        }
        collector.columns([String::new()]);
        matrix::compare(rows_a, rows_b, options, &mut collector)?;
        return Ok(collector.finish());
    }
    let (rows_a, rows_b) = (
        adapted(rows_a, &compared.columns_a, &compared.schema)?,
        adapted(rows_b, &compared.columns_b, &compared.schema)?,
    );
    collector.columns(compared.schema.fields().iter().map(|field| field.name().clone()));
    if options.key.is_empty() {
        position::compare(rows_a, rows_b, options, &mut collector)?;
    } else {
        keyed::compare(rows_a, rows_b, options, &mut collector)?;
    }
    Ok(collector.finish())
}

/// The chosen columns of a stream, cast to the common types.
fn adapted(rows: Rows, columns: &[usize], schema: &SchemaRef) -> Result<Rows> {
    let chosen = std::sync::Arc::new(rows.schema().project(columns)?);
    let columns = columns.to_vec();
    let projected = rows.map(move |batch| Ok(batch?.project(&columns)?));
    let rows = from_batches(chosen.clone(), projected);
    if chosen.fields() == schema.fields() {
        return Ok(rows);
    }
    let adapter = adapt::adapter(&chosen, schema);
    adapter.plan.check(LossKinds::NONE)?;
    Ok(adapter.adapt(rows, LossKinds::NONE, LossRecord::default()))
}
