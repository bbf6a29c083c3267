//! All differences as a table: `kind, row, col, key, column, a, b`.

use std::sync::Arc;

use arrow_array::builder::{StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::report::{Difference, Place};
use crate::error::{Context, Error, Hint, Result};
use crate::formats::{WriteOptions, Writer};
use crate::hub::LossKinds;
use crate::job::names;
use crate::registry::Registry;

/// Differences per batch.
const BATCH_ROWS: usize = 8192;

/// Writes differences to a file of any format that holds such a table.
pub struct DiffTable {
    writer: Box<dyn Writer>,
    format: &'static str,
    schema: SchemaRef,
    waiting: Vec<Difference>,
}

impl DiffTable {
    /// Creates a file; its extension determines the format.
    pub fn create(registry: &Registry, output: &str, force: bool) -> Result<Self> {
        let format = registry.by_extension(output).ok_or_else(|| {
            Error::usage("cannot tell a format from the name of the output")
                .in_output(output)
                .hint(Hint::Advice("an extension such as .parquet says it".into()))
        })?;
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        let number = |name: &str| Field::new(name, DataType::UInt64, true);
        let schema = Arc::new(Schema::new(vec![
            Field::new("kind", DataType::Utf8, false),
            number("row"),
            number("col"),
            text("key"),
            text("column"),
            text("a"),
            text("b"),
        ]));
        let mut options = WriteOptions::default();
        options.name = Some(output.to_owned());
        let id = format.info().id;
        let plan = format.plan(&schema, &options).in_format(id)?;
        plan.plan().check(LossKinds::NONE).in_format(id)?;
        let writer = plan.create(names::create(registry, output, force)?).in_format(id)?;
        Ok(DiffTable { writer, format: id, schema, waiting: Vec::new() })
    }

    /// Adds a difference.
    pub fn push(&mut self, difference: &Difference) -> Result<()> {
        self.waiting.push(difference.clone());
        if self.waiting.len() >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let (mut rows, mut cols) = (UInt64Builder::new(), UInt64Builder::new());
        let mut texts: [StringBuilder; 5] = Default::default();
        let [kinds, keys, columns, a, b] = &mut texts;
        for found in waiting {
            kinds.append_value(found.kind);
            let (row, col, key) = match found.place {
                None => (None, None, None),
                Some(Place::Row(row)) => (Some(row), None, None),
                Some(Place::Entry { row, col }) => (Some(row), Some(col), None),
                Some(Place::Key(key)) => (None, None, Some(key)),
            };
            rows.append_option(row);
            cols.append_option(col);
            keys.append_option(key);
            columns.append_option(found.column);
            a.append_option(found.a);
            b.append_option(found.b);
        }
        let [kinds, keys, columns, a, b] = texts.map(|mut text| Arc::new(text.finish()) as ArrayRef);
        let all = vec![kinds, Arc::new(rows.finish()), Arc::new(cols.finish()), keys, columns, a, b];
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), all)?;
        self.writer.write(&batch).in_format(self.format)
    }

    /// Writes the remaining differences and commits the file.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.writer.finish().in_format(self.format).map(drop)
    }
}
