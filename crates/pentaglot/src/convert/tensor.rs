//! Arrays of tensors, single tensors and matrices: the same numbers with dimensions merged or split.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;

use crate::error::{Error, Result};
use crate::hub::matrix::widen;
use crate::hub::rows::{self, Rows};
use crate::hub::{extension, matrix, shape};
use crate::limits::Budget;

/// The type of a field of tensors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    /// One number.
    pub(super) item: Field,
    /// The dimensions of one value; empty for a plain number.
    pub(super) shape: Vec<u64>,
}

impl Tensor {
    /// The numbers and dimensions of a field, if it holds numbers of a fixed shape.
    pub(super) fn of(field: &Field) -> Option<Self> {
        let DataType::FixedSizeList(item, size) = field.data_type() else {
            let plain = widen::is_matrix_value(field.data_type()) && extension::name(field).is_none();
            return plain.then(|| Tensor { item: field.clone(), shape: Vec::new() });
        };
        if extension::name(field) == Some(extension::COMPLEX) {
            return Some(Tensor { item: field.clone(), shape: Vec::new() });
        }
        if extension::metadata(field).is_some_and(|text| text.contains("\"permutation\"")) {
            return None;
        }
        let own = extension::tensor_shape(field).unwrap_or(vec![u64::try_from(*size).ok()?]);
        let inner = Tensor::of(item)?;
        Some(Tensor { item: inner.item, shape: own.into_iter().chain(inner.shape).collect() })
    }

    /// The numbers of one value.
    pub(super) fn len(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, count| product.checked_mul(*count))
    }

    /// A field of values of this shape: a number, or a tensor.
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        if self.shape.is_empty() {
            return Some(self.item.clone().with_name(name));
        }
        let plain = extension::tensor_field(name, self.item.data_type().clone(), &self.shape, false)?;
        let DataType::FixedSizeList(_, size) = plain.data_type() else { return None };
        let item = Arc::new(self.item.clone().with_name(Field::LIST_FIELD_DEFAULT_NAME));
        let list = DataType::FixedSizeList(item, *size);
        Some(plain.clone().with_data_type(list))
    }

    /// The outermost dimension, and the tensor without it.
    pub(super) fn outer(mut self) -> Option<(u64, Self)> {
        if self.shape.is_empty() {
            return None;
        }
        let count = self.shape.remove(0);
        Some((count, self))
    }
}

/// The schema of a dense matrix with a row for each value.
pub(super) fn dense_schema(tensor: &Tensor, rows: Option<u64>) -> Option<Schema> {
    let plain = shape::dense_schema(tensor.item.data_type().clone(), rows, tensor.len()?).ok()?;
    let (_, cols) = matrix::dense_item(&plain).ok()?;
    let item = tensor.item.clone().with_name(Field::LIST_FIELD_DEFAULT_NAME);
    let row = Field::new_fixed_size_list(shape::ROW_FIELD, item, cols, false);
    Some(Schema::new_with_metadata(vec![row], plain.metadata().clone()))
}

/// The numbers of an array of tensors, one after the other. A null tensor is an error that names its row.
fn flat(array: &ArrayRef, leaf: &DataType, start: u64, column: &str) -> Result<ArrayRef> {
    if array.data_type() == leaf {
        return Ok(Arc::clone(array));
    }
    let list =
        array.as_fixed_size_list_opt().ok_or_else(|| Error::unsupported("values without a fixed shape"))?;
    if list.null_count() > 0 {
        let row = start + (0..list.len()).find(|row| list.is_null(*row)).unwrap_or(0) as u64;
        return Err(Error::lossy(format!("row {row}, column {column:?}: a matrix holds no nulls")));
    }
    flat(list.values(), leaf, start, column)
}

/// Tensors of a batch as dense rows.
pub(super) fn to_dense(batch: &RecordBatch, schema: &SchemaRef, start: u64) -> Result<RecordBatch> {
    let (item, _) = matrix::dense_item(schema)?;
    let column = batch.schema().field(0).name().clone();
    let values = flat(batch.column(0), item.data_type(), start, &column)?;
    let list = matrix::dense_rows(schema, values, batch.num_rows())?;
    rows::batch(Arc::clone(schema), vec![list], batch.num_rows())
}

/// The one value of a stream as the elements of its outermost dimension.
pub(super) fn unpack(batch: &RecordBatch, schema: &SchemaRef, tensor: &Tensor) -> Result<RecordBatch> {
    let Some((count, inner)) = tensor.clone().outer() else {
        return Err(Error::unsupported("a value without dimensions"));
    };
    let count = usize::try_from(count)
        .map_err(|_| Error::limit("the address space", usize::MAX, format!("{count} rows")))?;
    if batch.num_rows() != 1 {
        return Err(Error::usage(format!("a single value has one row, found {}", batch.num_rows())));
    }
    let values = flat(batch.column(0), tensor.item.data_type(), 0, shape::VALUE_FIELD)?;
    let items: ArrayRef = match schema.field(0).data_type() {
        DataType::FixedSizeList(item, size)
            if !inner.shape.is_empty() || schema.field(0).name() == shape::ROW_FIELD =>
        {
            Arc::new(FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, values, None, count)?)
        }
        _ => values,
    };
    rows::batch(Arc::clone(schema), vec![items], count)
}

/// All `count` rows of a stream as one value. Holds all rows in memory, within the budget.
pub(super) fn pack(stream: Rows, schema: SchemaRef, count: u64, budget: &Budget) -> Result<Rows> {
    let (inner, budget) = (Arc::clone(&schema), budget.clone());
    let mut stream = Some(stream);
    let batches = std::iter::from_fn(move || {
        let stream = stream.take()?;
        let pack = || -> Result<RecordBatch> {
            let field = inner.field(0);
            let tensor = Tensor::of(field).ok_or_else(|| Error::unsupported("a value without dimensions"))?;
            let leaf = tensor.item.data_type();
            let mut parts: Vec<ArrayRef> = vec![arrow_array::new_empty_array(leaf)];
            let mut rows = 0u64;
            for batch in stream {
                let batch = batch?;
                budget.charge(&batch)?;
                parts.push(flat(batch.column(0), leaf, rows, batch.schema().field(0).name())?);
                rows += batch.num_rows() as u64;
            }
            if rows != count {
                return Err(Error::usage(format!(
                    "expected {count} rows, as the wanted type says, found {rows}"
                )));
            }
            let _held = budget.reserve(parts.iter().map(|part| part.get_array_memory_size() as u64).sum())?;
            let values = concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?;
            let DataType::FixedSizeList(item, size) = field.data_type() else {
                return Err(Error::unsupported("a value without dimensions"));
            };
            let list = FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, values, None, 1)?;
            rows::batch(Arc::clone(&inner), vec![Arc::new(list)], 1)
        };
        Some(pack())
    });
    Ok(rows::from_batches(schema, batches))
}
