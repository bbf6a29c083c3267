use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt8Array,
};
use arrow_schema::{Schema, SchemaRef};

use super::adapter;
use crate::error::{Error, ErrorKind, Result};
use crate::hub::rows::{self, from_batches};
use crate::hub::type_text::parse_schema;
use crate::hub::{LossKind, LossKinds, LossRecord, Lost, Verdict, extension};
use crate::limits::Limits;

fn schema(text: &str) -> SchemaRef {
    Arc::new(parse_schema(text, &Limits::default()).unwrap())
}

fn verdict(from: &str, to: &str) -> Verdict {
    adapter(&schema(from), &schema(to)).plan.verdict()
}

fn run(from: &SchemaRef, columns: Vec<ArrayRef>, to: &SchemaRef) -> Result<RecordBatch> {
    run_allowing(from, columns, to, LossKinds::NONE).map(|(batch, _)| batch)
}

fn run_allowing(
    from: &SchemaRef,
    columns: Vec<ArrayRef>,
    to: &SchemaRef,
    allowed: LossKinds,
) -> Result<(RecordBatch, Vec<Lost>)> {
    let rows = columns.first().map_or(0, |column| column.len());
    let batch = rows::batch(Arc::clone(from), columns, rows)?;
    let lost = LossRecord::default();
    let stream = from_batches(Arc::clone(from), [Ok(batch)]);
    let adapted = adapter(from, to).adapt(stream, allowed, lost.clone()).next().unwrap();
    Ok((adapted.map_err(Error::from)?, lost.lost()))
}

/// Casts one column; the result has the text of each value, `None` for nulls.
fn cast(
    column: ArrayRef,
    from: &str,
    to: &str,
    allowed: LossKinds,
) -> Result<(Vec<Option<String>>, Vec<Lost>)> {
    let (from, to) = (schema(&format!("struct{{x: {from}}}")), schema(&format!("struct{{x: {to}}}")));
    let (batch, lost) = run_allowing(&from, vec![column], &to, allowed)?;
    let column = batch.column(0);
    let text = |index| column.is_valid(index).then(|| super::scalar::shown(column, index));
    Ok(((0..column.len()).map(text).collect(), lost))
}

fn texts(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| (*value != "-").then(|| (*value).to_owned())).collect()
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
        ("value[int8]", "value[uint8]", Checked),
        ("value[int64]", "value[float64]", Checked),
        ("value[uint32]", "value[float64]", Widened),
        ("value[float64]", "value[float32]", Checked),
        ("value[float32]", "value[int64]", Checked),
        ("value[bool]", "value[int8]", Widened),
        ("value[int8]", "value[bool]", Checked),
        ("value[float64]", "value[utf8]", Widened),
        ("value[utf8]", "value[float64]", Checked),
        ("value[utf8]", "value[null]", Lossy),
        ("value[?null]", "value[?float32]", Widened),
        ("value[null]", "value[int8]", Impossible),
        ("value[list[int8]]", "value[list[int64]]", Widened),
        ("value[list[int64]]", "value[list[int8]]", Checked),
        ("value[fixed_list[6, uint8]]", "value[fixed_list[4, uint8]]", Impossible),
        ("value[int32]", "value[fixed_list[1, int64]]", Widened),
        ("value[struct{a: int32, b: utf8}]", "value[struct{x: int64, y: float64}]", Checked),
        ("value[struct{a: int32}]", "value[struct{a: int32, b: int32}]", Impossible),
        ("value[timestamp[ms]]", "value[timestamp[s]]", Checked),
        ("value[timestamp[s]]", "value[timestamp[ns]]", Checked),
        ("value[timestamp[s, 'UTC']]", "value[timestamp[s]]", Lossy),
        ("value[timestamp[s, 'UTC']]", "value[timestamp[s, '+02:00']]", Widened),
        ("value[decimal128[9, 2]]", "value[decimal128[9, 1]]", Checked),
        ("value[decimal128[9, 2]]", "value[decimal128[10, 3]]", Widened),
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
            "y: utf8 -> dropped: lossy, dropped",
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
fn nothing_wraps_or_saturates() {
    let (none, range, precision) = (LossKinds::NONE, LossKind::Range.into(), LossKind::Precision.into());
    let integers = || -> ArrayRef { Arc::new(Int32Array::from(vec![7, 200, -200])) };
    let error = cast(integers(), "int32", "?int8", none).unwrap_err();
    assert_eq!(error.to_string(), "row 1, column \"x\": \"200\" does not become int8");
    assert_eq!(error.advice(), Some(&LossKind::Range.hint()));
    assert_eq!(cast(integers(), "int32", "?int8", precision).unwrap_err().kind(), ErrorKind::Lossy);
    let (values, lost) = cast(integers(), "int32", "?int8", range).unwrap();
    assert_eq!(values, texts(&["7", "-", "-"]));
    assert_eq!((lost[0].kind, lost[0].values, lost[0].example.as_deref()), (LossKind::Range, 2, Some("200")));
    // A value out of range can only become null, and the target is not nullable.
    let error = cast(integers(), "int32", "int8", LossKinds::ALL).unwrap_err();
    assert_eq!((error.kind(), error.advice()), (ErrorKind::Lossy, None));

    let floats = |values: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    for value in [1e10, -1e10, f64::NAN, f64::INFINITY] {
        assert!(cast(floats(&[value]), "float64", "?int32", precision).is_err(), "{value}");
        assert_eq!(cast(floats(&[value]), "float64", "?int32", range).unwrap().0, [None], "{value}");
    }
    assert!(cast(floats(&[1.5]), "float64", "int32", range).is_err());
    let (values, lost) = cast(floats(&[1.9, -1.9, 3.0, -0.0]), "float64", "int32", precision).unwrap();
    assert_eq!(values, texts(&["1", "-1", "3", "0"]));
    assert_eq!(
        (lost[0].kind, lost[0].values, lost[0].example.as_deref()),
        (LossKind::Precision, 3, Some("1.9"))
    );

    assert!(cast(floats(&[0.1]), "float64", "float32", range).is_err());
    assert_eq!(cast(floats(&[0.1, 0.5]), "float64", "float32", precision).unwrap().0, texts(&["0.1", "0.5"]));
    assert!(cast(floats(&[1e300]), "float64", "?float32", precision).is_err());
    assert_eq!(
        cast(floats(&[1e300, f64::INFINITY]), "float64", "?float32", range).unwrap().0,
        texts(&["-", "inf"])
    );
    let wide: ArrayRef = Arc::new(Int64Array::from(vec![1, (1 << 53) + 1, (1 << 53) + 3]));
    assert!(cast(Arc::clone(&wide), "int64", "float64", range).is_err());
    let (values, _) = cast(wide, "int64", "float64", precision).unwrap();
    assert_eq!(values, texts(&["1.0", "9007199254740992.0", "9007199254740996.0"]));
    assert!(cast(floats(&[2.0]), "float64", "bool", precision).is_err());
    assert_eq!(
        cast(floats(&[1.0, 0.0, 1.5]), "float64", "bool", precision).unwrap().0,
        texts(&["true", "false", "true"])
    );
    let huge: ArrayRef = Arc::new(StringArray::from(vec!["1e999", "inf"]));
    assert_eq!(cast(huge, "utf8", "?float64", range).unwrap().0, texts(&["-", "inf"]));
}

#[test]
fn times_are_rounded_to_nearest_even() {
    let precision = LossKind::Precision.into();
    let stamps = |values: &[i64]| -> ArrayRef { Arc::new(TimestampNanosecondArray::from(values.to_vec())) };
    assert!(cast(stamps(&[1_500]), "timestamp[ns]", "timestamp[us]", LossKinds::NONE).is_err());
    let values = stamps(&[500, 1_500, 2_500, 2_501, -500, -1_500, 4_000]);
    let (values, lost) = cast(values, "timestamp[ns]", "timestamp[us]", precision).unwrap();
    let expected = [0, 2, 2, 3, 0, -2, 4].map(|value| {
        let array: ArrayRef = Arc::new(arrow_array::TimestampMicrosecondArray::from(vec![value]));
        Some(super::scalar::shown(&array, 0))
    });
    assert_eq!(values, expected);
    assert_eq!(lost[0].values, 6);
    // A timestamp becomes the date it is in.
    let (values, _) = cast(stamps(&[86_399_000_000_000, -1]), "timestamp[ns]", "date32", precision).unwrap();
    assert_eq!(values, texts(&["1970-01-01", "1969-12-31"]));
    let seconds: ArrayRef = Arc::new(arrow_array::TimestampSecondArray::from(vec![1, i64::MAX]));
    assert!(cast(Arc::clone(&seconds), "timestamp[s]", "?timestamp[ms]", precision).is_err());
    let (values, _) = cast(seconds, "timestamp[s]", "?timestamp[ms]", LossKind::Range.into()).unwrap();
    assert_eq!(values[1], None);
}

#[test]
fn decimals_are_rounded_to_nearest_even() {
    let decimals = arrow_array::Decimal128Array::from(vec![125, 135, -125, 999, 120]);
    let decimals: ArrayRef = Arc::new(decimals.with_precision_and_scale(9, 2).unwrap());
    assert!(cast(Arc::clone(&decimals), "decimal128[9, 2]", "decimal128[9, 1]", LossKinds::NONE).is_err());
    let (values, lost) =
        cast(Arc::clone(&decimals), "decimal128[9, 2]", "decimal128[9, 1]", LossKind::Precision.into())
            .unwrap();
    assert_eq!(values, texts(&["1.2", "1.4", "-1.2", "10.0", "1.2"]));
    assert_eq!(lost[0].values, 4);
    let (values, _) = cast(decimals, "decimal128[9, 2]", "?decimal128[2, 1]", LossKinds::ALL).unwrap();
    assert_eq!(values, texts(&["1.2", "1.4", "-1.2", "-", "1.2"]));
}

#[test]
fn a_null_becomes_nan_if_that_is_allowed() {
    let column = || -> ArrayRef { Arc::new(Float64Array::from(vec![Some(1.0), None])) };
    assert!(cast(column(), "?float64", "float64", LossKind::Range.into()).is_err());
    let (values, lost) = cast(column(), "?float64", "float64", LossKind::Nulls.into()).unwrap();
    assert_eq!(values, texts(&["1.0", "NaN"]));
    assert_eq!((lost[0].kind, lost[0].values), (LossKind::Nulls, 1));
}

#[test]
fn dropped_columns_count_their_rows() {
    let (from, to) = (schema("struct{x: int32, y: utf8}"), schema("struct{x: int32}"));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![1, 2])), Arc::new(StringArray::from(vec!["a", "b"]))];
    let (_, lost) = run_allowing(&from, columns, &to, LossKinds::ALL).unwrap();
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].to_string(), "loss (dropped) in column \"y\": 2 values, such as a");
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
    assert_eq!(adapter(&tensors, &images).plan.verdict(), Verdict::Checked);
}

#[test]
fn colour_images_become_tensors_with_the_components_last() {
    let field = |metadata: &str| {
        let field = arrow_schema::Field::new("i", arrow_schema::DataType::Binary, false);
        let field = extension::with(field, extension::IMAGE, Some(metadata.to_owned()));
        let schema: SchemaRef = Arc::new(Schema::new(vec![field]));
        schema
    };
    let rgb = r#"[["red","uint8"],["green","uint8"],["blue","uint8"]]"#;
    let images = field(&format!(r#"{{"width":2,"height":1,"components":{rgb},"format":"plain"}}"#));
    let tensor = |kind: arrow_schema::DataType, shape: &[u64]| {
        let field = extension::tensor_field("i", kind, shape, false).unwrap();
        let schema: SchemaRef = Arc::new(Schema::new(vec![field]));
        schema
    };
    let floats = tensor(arrow_schema::DataType::Float32, &[1, 2, 3]);
    let bytes: ArrayRef = Arc::new(arrow_array::BinaryArray::from(vec![&[1u8, 2, 3, 4, 5, 255][..]]));
    let out = run(&images, vec![Arc::clone(&bytes)], &floats).unwrap();
    let values = out.column(0).as_fixed_size_list().values().clone();
    assert_eq!(values.as_primitive::<Float32Type>().values().to_vec(), [1.0, 2.0, 3.0, 4.0, 5.0, 255.0]);
    let back = run(&floats, out.columns().to_vec(), &images).unwrap();
    assert_eq!(back.column(0).as_ref(), bytes.as_ref());
    // Planar images order the numbers differently; encoded files are not numbers; channels must be the same.
    let refused = |from: &SchemaRef, to: &SchemaRef| adapter(from, to).plan.verdict() == Verdict::Impossible;
    assert!(refused(&images, &tensor(arrow_schema::DataType::UInt8, &[3, 1, 2])));
    assert!(refused(&images, &tensor(arrow_schema::DataType::UInt8, &[1, 2])));
    let png = field(&format!(r#"{{"width":2,"height":1,"components":{rgb},"format":"png"}}"#));
    assert!(refused(&png, &floats));
    let bgr = rgb.replace("red", "x").replace("blue", "red").replace('x', "blue");
    let bgr = field(&format!(r#"{{"width":2,"height":1,"components":{bgr},"format":"plain"}}"#));
    assert!(refused(&images, &bgr));
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

#[test]
fn a_time_without_a_text_is_shown_as_its_number() {
    use arrow_array::TimestampSecondArray;
    let times: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX]));
    assert_eq!(super::scalar::shown(&times, 0), i64::MAX.to_string());
}
