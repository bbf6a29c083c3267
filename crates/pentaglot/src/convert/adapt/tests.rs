use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, UInt8Array,
};
use arrow_schema::{Schema, SchemaRef};

use super::adapter;
use crate::error::{Error, ErrorKind, Result};
use crate::hub::rows::{self, from_batches};
use crate::hub::type_text::parse_schema;
use crate::hub::{Verdict, extension};
use crate::limits::Limits;

fn schema(text: &str) -> SchemaRef {
    Arc::new(parse_schema(text, &Limits::default()).unwrap())
}

fn verdict(from: &str, to: &str) -> Verdict {
    adapter(&schema(from), &schema(to)).plan.verdict()
}

fn run(from: &SchemaRef, columns: Vec<ArrayRef>, to: &SchemaRef) -> Result<RecordBatch> {
    let rows = columns.first().map_or(0, |column| column.len());
    let batch = rows::batch(Arc::clone(from), columns, rows)?;
    let adapted = adapter(from, to).adapt(from_batches(Arc::clone(from), [Ok(batch)])).next().unwrap();
    adapted.map_err(Error::from)
}

#[test]
fn verdicts_follow_the_values_that_survive() {
    use Verdict::{Checked, Exact, Impossible, Lossy, Widened};
    let cases = [
        ("value[int32]", "value[int32]", Exact),
        ("value[int32]", "value[?int32]", Widened),
        ("value[?int32]", "value[int32]", Checked),
        ("value[uint8]", "value[uint32]", Widened),
        ("value[uint8]", "value[uint64]", Widened),
        ("value[int8]", "value[uint8]", Lossy),
        ("value[int64]", "value[float64]", Lossy),
        ("value[uint32]", "value[float64]", Widened),
        ("value[float64]", "value[float32]", Lossy),
        ("value[float32]", "value[int64]", Lossy),
        ("value[bool]", "value[int8]", Widened),
        ("value[int8]", "value[bool]", Lossy),
        ("value[float64]", "value[utf8]", Widened),
        ("value[utf8]", "value[float64]", Checked),
        ("value[utf8]", "value[null]", Lossy),
        ("value[?null]", "value[?float32]", Widened),
        ("value[null]", "value[int8]", Impossible),
        ("value[list[int8]]", "value[list[int64]]", Widened),
        ("value[list[int64]]", "value[list[int8]]", Lossy),
        ("value[fixed_list[6, uint8]]", "value[fixed_list[4, uint8]]", Impossible),
        ("value[int32]", "value[fixed_list[1, int64]]", Widened),
        ("value[struct{a: int32, b: utf8}]", "value[struct{x: int64, y: float64}]", Checked),
        ("value[struct{a: int32}]", "value[struct{a: int32, b: int32}]", Impossible),
        ("value[timestamp[ms]]", "value[timestamp[s]]", Lossy),
        ("value[timestamp[s]]", "value[timestamp[ns]]", Checked),
        ("value[int32]", "struct{x: int32}", Impossible),
    ];
    for (from, to, expected) in cases {
        assert_eq!(verdict(from, to), expected, "{from} -> {to}");
    }
}

#[test]
fn columns_go_by_name_and_what_is_dropped_is_said() {
    let adapter = adapter(
        &schema("struct{x: int32, y: utf8, z: float32}"),
        &schema("struct{z: float32, x: int64, n: ?bool}"),
    );
    let steps: Vec<String> = adapter.plan.steps.iter().map(|step| step.to_string()).collect();
    assert_eq!(
        steps,
        [
            "z: float32 -> float32: exact",
            "x: int32 -> int64: widened",
            "n: missing -> ?bool: widened (filled with nulls)",
            "y: utf8 -> dropped: exact",
        ]
    );
}

#[test]
fn a_single_column_left_over_on_each_side_is_paired() {
    let (from, to) = (schema("struct{x: int32, k: utf8}"), schema("struct{y: int64, k: utf8}"));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![5])), Arc::new(StringArray::from(vec!["a"]))];
    let out = run(&from, columns, &to).unwrap();
    assert_eq!(out.column(0).as_primitive::<Int64Type>().value(0), 5);
    assert_eq!(verdict("struct{a: int32, b: int32}", "struct{c: int32, d: int32}"), Verdict::Impossible);
}

#[test]
fn narrow_integers_wrap_and_floats_saturate() {
    let column: ArrayRef = Arc::new(Int32Array::from(vec![200, -200, 7]));
    let out = run(&schema("struct{x: int32}"), vec![column], &schema("struct{x: int8}")).unwrap();
    assert_eq!(out.column(0).as_primitive::<Int8Type>().values(), &[-56, 56, 7]);
    let column: ArrayRef = Arc::new(Float64Array::from(vec![1.9, -1.9, 1e10, -1e10, f64::NAN]));
    let out = run(&schema("struct{x: float64}"), vec![column], &schema("struct{x: int32}")).unwrap();
    assert_eq!(out.column(0).as_primitive::<Int32Type>().values(), &[1, -1, i32::MAX, i32::MIN, 0]);
}

#[test]
fn text_that_does_not_parse_names_row_and_column() {
    let column: ArrayRef = Arc::new(StringArray::from(vec!["+5", "5.0"]));
    let error = run(&schema("struct{x: utf8}"), vec![column], &schema("struct{x: int32}")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy);
    assert_eq!(error.to_string(), "row 1, column \"x\": \"5.0\" does not become int32");
}

#[test]
fn a_null_that_is_not_wanted_names_row_and_column() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let error = run(&schema("struct{x: ?int64}"), vec![column], &schema("struct{x: int64}")).unwrap_err();
    assert_eq!(error.to_string(), "row 1, column \"x\": a null does not become int64");
}

#[test]
fn images_become_tensors_and_back() {
    let metadata = r#"{"width":2,"height":1,"components":[["black","uint32"]],"format":"plain"}"#;
    let image = extension::with(
        arrow_schema::Field::new("i", arrow_schema::DataType::Binary, false),
        extension::IMAGE,
        Some(metadata.to_owned()),
    );
    let images: SchemaRef = Arc::new(Schema::new(vec![image]));
    let tensor = extension::tensor_field("i", arrow_schema::DataType::Int64, &[1, 2], false).unwrap();
    let tensors: SchemaRef = Arc::new(Schema::new(vec![tensor]));
    let bytes: ArrayRef = Arc::new(arrow_array::BinaryArray::from(vec![&[0u8, 0, 1, 2, 0, 0, 0, 9][..]]));
    let out = run(&images, vec![Arc::clone(&bytes)], &tensors).unwrap();
    let values = out.column(0).as_fixed_size_list().values().as_primitive::<Int64Type>().values().to_vec();
    assert_eq!(values, [258, 9]);
    let back = run(&tensors, out.columns().to_vec(), &images).unwrap();
    assert_eq!(back.column(0).as_ref(), bytes.as_ref());
    assert_eq!(adapter(&tensors, &images).plan.verdict(), Verdict::Lossy);
}

#[test]
fn elements_of_lists_are_named_by_their_row() {
    let (from, to) = (schema("struct{x: list[utf8]}"), schema("struct{x: list[uint8]}"));
    let mut builder = arrow_array::builder::ListBuilder::new(arrow_array::builder::StringBuilder::new())
        .with_field(arrow_schema::Field::new_list_field(arrow_schema::DataType::Utf8, false));
    for row in [vec!["1", "2"], vec![], vec!["300"]] {
        row.into_iter().for_each(|text| builder.values().append_value(text));
        builder.append(true);
    }
    let lists: ArrayRef = Arc::new(builder.finish());
    let error = run(&from, vec![Arc::clone(&lists)], &to).unwrap_err();
    assert_eq!(error.to_string(), "row 2, column \"x\": \"300\" does not become uint8");
    let out = run(&from, vec![lists.slice(0, 2)], &to).unwrap();
    let values = out.column(0).as_list::<i32>().values().clone();
    assert_eq!(values.as_ref(), &UInt8Array::from(vec![1, 2]) as &dyn Array);
}
