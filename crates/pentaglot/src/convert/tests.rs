use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{ArrayRef, Float64Array, Int16Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use proptest::prelude::*;

use super::reshape;
use super::target_form::choose;
use crate::error::Result;
use crate::hub::matrix::widen::common_type;
use crate::hub::rows::{self, Rows, from_batches};
use crate::hub::shape::{self, Form};
use crate::hub::type_text::parse_schema;
use crate::hub::{LossKinds, LossRecord};
use crate::limits::Limits;

fn all(rows: Rows) -> Result<RecordBatch> {
    let schema = rows.schema();
    let batches = rows.collect::<Result<Vec<_>, _>>()?;
    if schema.fields().is_empty() {
        let count = batches.iter().map(|batch| batch.num_rows()).sum();
        return rows::batch(schema, vec![], count);
    }
    Ok(concat_batches(&schema, &batches)?)
}

fn through(batch: &RecordBatch, forms: &[Form]) -> RecordBatch {
    let budget = Limits::default().budget();
    let mut batch = batch.clone();
    for form in forms {
        let plan = reshape::plan(&batch.schema(), *form).unwrap();
        plan.plan.check(LossKinds::ALL).unwrap();
        // In two batches, so that row numbers must continue from one batch to the next.
        let half = batch.num_rows() / 2;
        let pieces = [Ok(batch.slice(0, half)), Ok(batch.slice(half, batch.num_rows() - half))];
        let stream = from_batches(batch.schema(), pieces);
        batch =
            all(reshape::reshape(stream, &plan, &budget, LossKinds::NONE, &LossRecord::default()).unwrap())
                .unwrap();
        assert_eq!(Form::of(&batch.schema()), *form);
    }
    batch
}

fn dense(rows: usize, cols: usize, values: Vec<f64>) -> RecordBatch {
    let schema: SchemaRef =
        Arc::new(shape::dense_schema(DataType::Float64, Some(rows as u64), cols as u64).unwrap());
    let DataType::FixedSizeList(item, size) = schema.field(0).data_type().clone() else { unreachable!() };
    let values: ArrayRef = Arc::new(Float64Array::from(values));
    let list = arrow_array::FixedSizeListArray::try_new_with_length(item, size, values, None, rows).unwrap();
    rows::batch(schema, vec![Arc::new(list)], rows).unwrap()
}

/// Bits, so that -0.0 and NaN are compared exactly.
fn bits(batch: &RecordBatch) -> Vec<u64> {
    let list = batch.column(0).as_fixed_size_list();
    list.values().as_primitive::<Float64Type>().values().iter().map(|value| value.to_bits()).collect()
}

fn matrices() -> impl Strategy<Value = RecordBatch> {
    let number = prop_oneof![3 => Just(0.0), 1 => Just(-0.0), 1 => Just(f64::NAN), 3 => any::<f64>()];
    (0usize..300, 0usize..9).prop_flat_map(move |(rows, cols)| {
        proptest::collection::vec(number.clone(), rows * cols)
            .prop_map(move |values| dense(rows, cols, values))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_matrix_comes_back_from_every_form(matrix in matrices()) {
        use Form::{Columns, Coo, Dense, Sparse};
        for way in [&[Columns, Dense][..], &[Sparse, Dense], &[Sparse, Coo, Sparse, Dense], &[Coo, Dense], &[Sparse, Columns, Dense], &[Coo, Columns, Coo, Dense]] {
            // A matrix without columns has no column to carry its rows or its type.
            if way.contains(&Columns) && shape::matrix_cols(&matrix.schema()) == Some(0) {
                continue;
            }
            let back = through(&matrix, way);
            prop_assert_eq!(back.num_rows(), matrix.num_rows(), "{:?}", way);
            prop_assert_eq!(bits(&back), bits(&matrix), "{:?}", way);
            prop_assert_eq!(shape::matrix_rows(&back.schema()), Some(matrix.num_rows() as u64));
        }
    }
}

#[test]
fn empty_trailing_rows_survive_row_col_value() {
    let matrix = dense(4, 2, vec![1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(through(&matrix, &[Form::Coo, Form::Sparse]).num_rows(), 4);
}

#[test]
fn a_table_becomes_a_matrix_of_the_narrowest_common_type() {
    let schema: SchemaRef = Arc::new(parse_schema("struct{a: int16, b: int32}", &Limits::default()).unwrap());
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int16Array::from(vec![1, 2])), Arc::new(Int32Array::from(vec![3, 4]))];
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let matrix = through(&batch, &[Form::Dense]);
    let values = matrix.column(0).as_fixed_size_list().values().as_primitive::<Int32Type>().values().to_vec();
    assert_eq!(values, [1, 3, 2, 4]);
}

#[test]
fn a_null_in_a_matrix_names_row_and_column() {
    let schema: SchemaRef = Arc::new(parse_schema("struct{a: ?int32}", &Limits::default()).unwrap());
    let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![Some(1), None]))];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let plan = reshape::plan(&schema, Form::Dense).unwrap();
    let stream = from_batches(schema, [Ok(batch.clone()), Ok(batch)]);
    let error = all(reshape::reshape(
        stream,
        &plan,
        &Limits::default().budget(),
        LossKinds::NONE,
        &LossRecord::default(),
    )
    .unwrap())
    .unwrap_err();
    assert_eq!(error.to_string(), "row 1, column \"a\": a matrix holds no nulls");
}

#[test]
fn common_types_hold_every_value() {
    let common = |text: &str| {
        let schema = parse_schema(text, &Limits::default()).unwrap();
        common_type(schema.fields())
    };
    assert_eq!(common("struct{a: uint8, b: int8}"), Some(DataType::Int16));
    assert_eq!(common("struct{a: uint32, b: float32}"), Some(DataType::Float64));
    assert_eq!(common("struct{a: int64, b: float64}"), None);
    assert_eq!(common("struct{a: uint64, b: int8}"), None);
    assert_eq!(common("struct{a: utf8}"), None);
}

#[test]
fn forms_are_chosen_for_what_targets_users_expect() {
    use Form::{Array, Columns, Coo, Dense, Sparse, Table, Value};
    let parse = |text: &str| parse_schema(text, &Limits::default()).unwrap();
    let (csv, arrow) = ([Table, Columns, Coo], [Table, Columns, Coo, Dense, Sparse, Array, Value]);
    let (dbdf, mtx, npz) = ([Table, Dense, Sparse], [Sparse, Dense], [Sparse, Dense, Array, Value, Table]);
    let auto = |text: &str, forms: &[Form]| choose(&parse(text), forms, "auto").unwrap();
    assert_eq!(auto("matrix[3, 4, float64]", &csv), Columns);
    assert_eq!(auto("matrix[3, 4, float64]", &arrow), Columns);
    assert_eq!(auto("matrix[3, 4000, float64]", &arrow), Dense);
    assert_eq!(auto("matrix[3, 4000, float64]", &csv), Columns);
    assert_eq!(auto("matrix[3, 4, float64]", &dbdf), Dense);
    assert_eq!(auto("sparse_matrix[3, 4, float64]", &csv), Coo);
    assert_eq!(auto("sparse_matrix[3, 4, float64]", &dbdf), Sparse);
    assert_eq!(auto("struct{a: int8, b: int16}", &dbdf), Table);
    assert_eq!(auto("struct{a: int8, b: int16}", &mtx), Dense);
    assert_eq!(auto("struct{a: int8, b: int16}", &npz), Dense);
    assert_eq!(auto("struct{a: int8, b: utf8}", &npz), Table);
    assert_eq!(auto("array[int8]", &csv), Table);
    assert_eq!(auto("array[int8]", &mtx), Dense);
    assert_eq!(auto("value[utf8]", &arrow), Value);
    assert!(choose(&parse("array[int8]"), &mtx, "table").is_err());
    assert!(choose(&parse("array[int8]"), &mtx, "cube").is_err());
}
