//! Rows read back under another schema: names, a single value, a struct in place of its fields.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::Result;
use crate::hub::{Form, Rows, rows, shape};

/// Rows of which each batch is changed.
fn changed(
    stream: Rows,
    schema: SchemaRef,
    change: impl Fn(&RecordBatch) -> Result<Vec<ArrayRef>> + Send + 'static,
) -> Rows {
    let own = Arc::clone(&schema);
    let batches = stream.map(move |batch| {
        let batch = batch?;
        rows::batch(Arc::clone(&own), change(&batch)?, batch.num_rows())
    });
    rows::from_batches(schema, batches)
}

/// Rows under the names of the columns that were written, if there are as many.
pub(super) fn named(stream: Rows, written: &SchemaRef) -> Rows {
    let found = stream.schema();
    if found.fields().len() != written.fields().len() {
        return stream;
    }
    let fields = found.fields().iter().zip(written.fields());
    let fields = fields.map(|(found, written)| found.as_ref().clone().with_name(written.name()));
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), found.metadata().clone());
    changed(stream, Arc::new(schema), |batch| Ok(batch.columns().to_vec()))
}

/// A column as the single value that was written.
pub(super) fn as_value(stream: Rows, written: &SchemaRef) -> Rows {
    let found = stream.schema();
    let is_column = matches!(Form::of(&found), Form::Table | Form::Array);
    match found.fields().as_ref() {
        [only] if is_column && Form::of(written) == Form::Value => {
            let schema = shape::value_schema(only.as_ref().clone());
            changed(stream, Arc::new(schema), |batch| Ok(batch.columns().to_vec()))
        }
        _ => stream,
    }
}

/// The fields of the only column that was written, which were read as columns, as that column.
pub(super) fn as_struct(stream: Rows, written: &SchemaRef) -> Rows {
    let found = stream.schema();
    let [only] = written.fields().as_ref() else { return stream };
    let DataType::Struct(wanted) = only.data_type() else { return stream };
    let names = |fields: &arrow_schema::Fields| -> Vec<String> {
        fields.iter().map(|field| field.name().clone()).collect()
    };
    if Form::of(&found) != Form::Table || names(found.fields()) != names(wanted) {
        return stream;
    }
    let fields = found.fields().clone();
    let column = Field::new(only.name(), DataType::Struct(fields.clone()), false);
    let schema = Schema::new_with_metadata(vec![column], written.metadata().clone());
    changed(stream, Arc::new(schema), move |batch| {
        let columns = batch.columns().to_vec();
        let all = StructArray::try_new_with_length(fields.clone(), columns, None, batch.num_rows())?;
        Ok(vec![Arc::new(all)])
    })
}
