//! Arrays with a mask: the values that it covers are missing.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, RecordBatch, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Schema};
use pentaglot::hub::native;
use pentaglot::{Error, Result};

use crate::batches::is_complex;

/// Rows of one column whose values are missing where `mask`, which has a byte for each of them, row by row, is not zero.
pub(crate) fn masked(batch: &RecordBatch, mask: &[u8]) -> Result<RecordBatch> {
    let schema = native::without(&batch.schema());
    let ([field], [column]) = (schema.fields().as_ref(), batch.columns()) else {
        return Err(Error::usage("expected rows of one column"));
    };
    let (field, column) = masked_column(field, column, mask)?;
    let schema = Schema::new_with_metadata(vec![field], schema.metadata().clone());
    Ok(RecordBatch::try_new(Arc::new(schema), vec![column])?)
}

fn masked_column(field: &Field, column: &ArrayRef, mask: &[u8]) -> Result<(Field, ArrayRef)> {
    // A complex number is a list of two that is missing as a whole.
    let is_number = is_complex(field) && !matches!(item(field), Some(item) if is_complex(item));
    if let (Some(list), Some(inner), false) = (column.as_fixed_size_list_opt(), item(field), is_number) {
        let (inner, values) = masked_column(inner, list.values(), mask)?;
        let (inner, width) = (Arc::new(inner), list.value_length());
        let masked =
            FixedSizeListArray::try_new_with_length(Arc::clone(&inner), width, values, None, list.len())?;
        return Ok((field.clone().with_data_type(masked.data_type().clone()), Arc::new(masked)));
    }
    if mask.len() != column.len() {
        let message = format!("expected a mask of {} values, found {}", column.len(), mask.len());
        return Err(Error::usage(message));
    }
    let valid: NullBuffer = mask.iter().map(|byte| *byte == 0).collect();
    let valid = NullBuffer::union(column.nulls(), Some(&valid));
    let data = column.to_data().into_builder().nulls(valid).build()?;
    Ok((field.clone().with_nullable(true), make_array(data)))
}

fn item(field: &Field) -> Option<&Field> {
    match field.data_type() {
        DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}
