//! The rows of a query as a document, in types that writers of files know.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pentaglot::formats::{Document, Findings, Node, Outline, Summary};
use pentaglot::hub::{Rows, Selection, rows};
use pentaglot::job::{OpenOptions, Opened};
use pentaglot::{Error, Registry, Result, Source};

/// Rows as what a conversion takes.
pub(crate) fn as_opened(registry: &Registry, rows: Rows, options: &OpenOptions) -> Result<Opened> {
    let format = registry.get("arrow-stream")?;
    let summary = Summary::new("arrow-stream", rows.schema());
    let document = Arc::new(QueryDocument { summary, rows: Mutex::new(Some(rows)) });
    // Rows are read once, as those of a pipe.
    let source = Source::from_reader("query", std::io::empty());
    Ok(Opened::new(format, document, source, options))
}

/// A type without views: what writers of files know.
fn plain_type(kind: &DataType) -> DataType {
    let field = |field: &Arc<Field>| Arc::new(plain_field(field));
    match kind {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::ListView(item) | DataType::List(item) => DataType::List(field(item)),
        DataType::LargeListView(item) | DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}

fn plain_field(field: &Field) -> Field {
    field.clone().with_data_type(plain_type(field.data_type()))
}

pub(crate) fn plain_schema(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(|field| plain_field(field)).collect::<Vec<_>>()))
}

pub(crate) fn plain(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        datafusion::arrow::compute::cast(column, field.data_type()).map_err(Error::from)
    });
    rows::batch(Arc::clone(schema), columns.collect::<Result<_>>()?, batch.num_rows())
}

/// The rows of a query, which can be read once.
struct QueryDocument {
    summary: Summary,
    rows: Mutex<Option<Rows>>,
}

impl Document for QueryDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        Node::new("rows", 0, 0)
    }

    fn validate(&self, _: &mut Findings) -> Result<()> {
        Ok(())
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        let rows = rows.ok_or_else(|| Error::usage("the rows of a query can be read once"))?;
        let rows = if selection.is_sliced() { rows::slice(rows, selection.range(u64::MAX)) } else { rows };
        selection.project(rows)
    }
}
