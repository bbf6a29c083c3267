//! Parts of files as rows: how a scan tells other processes what each partition reads.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::Result as TheirResult;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::ExecutionPlan;
use pentaglot::Result;

use crate::place::absolute;
use crate::scan::Part;
use crate::table::TableFile;

/// Rows of a file that has still to be opened.
#[derive(Debug)]
pub(crate) struct NamedPart {
    pub(crate) name: String,
    /// How long the file was when the query was planned, if it has a length.
    pub(crate) bytes: Option<u64>,
    pub(crate) rows: Range<u64>,
    /// The texts of the partition columns.
    pub(crate) values: Vec<Option<String>>,
}

/// A plan that gives, in each partition, the parts of one group.
pub(crate) fn plan(
    files: &[TableFile],
    groups: &[Vec<Part>],
    keys: &[FieldRef],
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = schema(keys.len());
    let partitions = groups.iter().map(|parts| Ok(vec![batch(files, parts, &schema)?]));
    let partitions: Vec<Vec<RecordBatch>> = partitions.collect::<Result<_>>()?;
    Ok(MemorySourceConfig::try_new_exec(&partitions, schema, None).map_err(crate::fault::ours)?)
}

fn schema(keys: usize) -> SchemaRef {
    let fixed = [
        Field::new("name", DataType::Utf8, false),
        Field::new("bytes", DataType::UInt64, true),
        Field::new("start", DataType::UInt64, false),
        Field::new("end", DataType::UInt64, false),
    ];
    let keys = (0..keys).map(|key| Field::new(format!("key_{key}"), DataType::Utf8, true));
    Arc::new(Schema::new(fixed.into_iter().chain(keys).collect::<Vec<_>>()))
}

fn batch(files: &[TableFile], parts: &[Part], schema: &SchemaRef) -> Result<RecordBatch> {
    let mut names = StringBuilder::new();
    for part in parts {
        names.append_value(absolute(&files[part.file].name)?);
    }
    let bytes: UInt64Array = parts.iter().map(|part| files[part.file].opened.source.len()).collect();
    let starts: UInt64Array = parts.iter().map(|part| Some(part.rows.start)).collect();
    let ends: UInt64Array = parts.iter().map(|part| Some(part.rows.end)).collect();
    let mut columns: Vec<ArrayRef> =
        vec![Arc::new(names.finish()), Arc::new(bytes), Arc::new(starts), Arc::new(ends)];
    for key in 0..schema.fields().len() - columns.len() {
        let texts: StringArray = parts.iter().map(|part| files[part.file].texts[key].as_deref()).collect();
        columns.push(Arc::new(texts));
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// The parts that batches name. They come from another process, so nothing about them is taken for granted.
pub(crate) fn read(batches: &[RecordBatch], keys: usize) -> TheirResult<Vec<NamedPart>> {
    let expected = schema(keys);
    let mut parts = Vec::new();
    for batch in batches {
        let same = batch.num_columns() == expected.fields().len()
            && batch.columns().iter().zip(expected.fields()).all(|(column, field)| {
                column.data_type() == field.data_type() && (field.is_nullable() || column.null_count() == 0)
            });
        if !same {
            let text = format!("expected parts of files as {expected:?}, found {:?}", batch.schema());
            return Err(DataFusionError::Execution(text));
        }
        let numbers = |column: usize| batch.column(column).as_primitive::<UInt64Type>();
        for row in 0..batch.num_rows() {
            let values = (4..4 + keys).map(|column| {
                let texts = batch.column(column).as_string::<i32>();
                texts.is_valid(row).then(|| texts.value(row).to_owned())
            });
            parts.push(NamedPart {
                name: batch.column(0).as_string::<i32>().value(row).to_owned(),
                bytes: numbers(1).is_valid(row).then(|| numbers(1).value(row)),
                rows: numbers(2).value(row).min(numbers(3).value(row))..numbers(3).value(row),
                values: values.collect(),
            });
        }
    }
    Ok(parts)
}
