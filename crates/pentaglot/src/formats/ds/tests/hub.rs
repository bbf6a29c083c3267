//! From Arrow to DS, and the plan for it.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{
    ArrayRef, BinaryArray, Date32Array, DictionaryArray, FixedSizeListArray, Float16Array, Float64Array,
    Int16Array, Int32Array, LargeStringArray, StringArray, UInt16Array,
};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use super::*;
use crate::error::ErrorKind;
use crate::formats::ds::Type;
use crate::hub::{Verdict, extension, native, shape};
use crate::testing::writing::Writing as _;

fn batch(columns: Vec<(&str, ArrayRef, bool)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn verdicts(schema: &Schema, dialect: &str) -> Vec<(String, Verdict)> {
    let plan = Ds.steps(schema, &write_options(dialect, &[]));
    plan.steps.into_iter().map(|step| (step.to, step.verdict)).collect()
}

#[test]
fn arrow_types_become_the_nearest_ds_types() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int16, false),
        Field::new("b", DataType::UInt16, true),
        Field::new("c", DataType::Float16, false),
        Field::new("d", DataType::LargeUtf8, false),
        Field::new("e", DataType::Timestamp(TimeUnit::Second, None), false),
        Field::new("f", DataType::Decimal128(10, 2), false),
        Field::new("g", DataType::Binary, false),
        Field::new("h", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), false),
        Field::new_fixed_size_list("i", Field::new_list_field(DataType::Int8, false), 3, false),
        Field::new_fixed_size_list("j", Field::new_list_field(DataType::Int8, true), 3, false),
    ]);
    let expected = [
        (r#""int32""#, Verdict::Widened),
        (r#"{"type":"nullable","underlying":"uint32"}"#, Verdict::Widened),
        (r#""float32""#, Verdict::Widened),
        (r#""string""#, Verdict::Widened),
        (r#""int64""#, Verdict::Lossy),
        (r#""string""#, Verdict::Lossy),
        ("nothing", Verdict::Impossible),
        (r#""string""#, Verdict::Widened),
        (r#"{"type":"tensor","componentType":"int8","shape":[3]}"#, Verdict::Widened),
        (r#"{"type":"array","underlying":{"type":"nullable","underlying":"int8"}}"#, Verdict::Widened),
    ];
    let found = verdicts(&schema, "msgpack");
    let found: Vec<(&str, Verdict)> = found.iter().map(|(to, verdict)| (to.as_str(), *verdict)).collect();
    assert_eq!(found, expected);
    assert!(Type::from_schema(&schema).is_err());
    assert_eq!(verdicts(&Schema::empty(), "msgpack"), [("nothing".to_owned(), Verdict::Impossible)]);
    let twice =
        Schema::new(vec![Field::new("a", DataType::Int8, false), Field::new("a", DataType::Int8, false)]);
    assert!(verdicts(&twice, "msgpack").iter().any(|(_, verdict)| *verdict == Verdict::Impossible));
    let float = Schema::new(vec![Field::new("a", DataType::Float64, false)]);
    assert_eq!(verdicts(&float, "json")[0].1, Verdict::Checked);
    assert_eq!(verdicts(&float, "msgpack")[0].1, Verdict::Exact);
}

#[test]
fn arrow_values_are_written_as_planned() {
    let dictionary: DictionaryArray<arrow_array::types::Int32Type> =
        vec!["x", "y", "x"].into_iter().collect();
    let batch = batch(vec![
        ("a", Arc::new(Int16Array::from(vec![-1, 2, 3])), false),
        ("b", Arc::new(UInt16Array::from(vec![Some(1), None, Some(65535)])), true),
        ("c", Arc::new(LargeStringArray::from(vec!["p", "q", "r"])), false),
        ("d", Arc::new(dictionary), false),
        ("e", Arc::new(Date32Array::from(vec![0, 1, -1])), false),
        ("f", Arc::new(Float16Array::from(vec![half::f16::ONE; 3])), false),
    ]);
    let text = String::from_utf8(write(&batch, "json", &[]).unwrap()).unwrap();
    assert!(
        text.ends_with(r#""value":[[-1,1,"p","x",0,1.0],[2,null,"q","y",1,1.0],[3,65535,"r","x",-1,1.0]]}"#),
        "{text}"
    );
    // The offset of a slice is respected.
    let text = String::from_utf8(write(&batch.slice(1, 1), "json", &[]).unwrap()).unwrap();
    assert!(text.ends_with(r#""value":[[2,null,"q","y",1,1.0]]}"#), "{text}");
}

#[test]
fn lists_of_structs_are_embedded_tables() {
    let fields = Fields::from(vec![Field::new("a", DataType::Utf8, true)]);
    let item = Field::new_list_field(DataType::Struct(fields.clone()), false);
    let mut builder = ListBuilder::new(StructBuilder::from_fields(fields, 0)).with_field(item);
    for count in [2, 0, 1] {
        for index in 0..count {
            let text = (index != 1).then_some("t");
            builder.values().field_builder::<StringBuilder>(0).unwrap().append_option(text);
            builder.values().append(true);
        }
        builder.append(true);
    }
    let batch = batch(vec![("t", Arc::new(builder.finish()), false)]);
    for batch in [batch.clone(), batch.slice(0, 3)] {
        let text = String::from_utf8(write(&batch, "json", &[]).unwrap()).unwrap();
        let expected = r#"{"type":{"type":"tabular","columns":{"t":{"type":"tabular","columns":{"a":{"type":"nullable","underlying":"string"}}}}},"value":[[[["t"],[null]]],[[]],[[["t"]]]]}"#;
        assert_eq!(text, expected);
    }
}

#[test]
fn a_null_where_none_is_allowed_names_row_and_column() {
    // Arrow itself rejects nulls in a field that is not nullable; an image of the wrong size is a similar
    // error.
    let image = r#"{"width":2,"height":1,"components":[["black","uint8"]],"format":"plain"}"#;
    let field =
        extension::with(Field::new("i", DataType::Binary, false), extension::IMAGE, Some(image.to_owned()));
    let schema = Arc::new(Schema::new(vec![field]));
    let values: ArrayRef = Arc::new(BinaryArray::from(vec![&b"ab"[..], b"abc"]));
    let batch = RecordBatch::try_new(schema, vec![values]).unwrap();
    let error = write(&batch, "msgpack", &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy);
    assert_eq!(error.to_string(), r#"ds: row 1, column "i": an image of 2 bytes is declared, found 3"#);
    let floats = super::hub::batch(vec![("x", Arc::new(Float64Array::from(vec![1.0, f64::NAN])), false)]);
    let error = write(&floats, "json", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"ds: row 1, column "x": NaN has no JSON form (the option nan=null writes null)"#
    );
}

#[test]
fn arrays_and_values_keep_their_shape() {
    let schema = shape::array_schema(Field::new("x", DataType::Int32, false));
    let values: ArrayRef = Arc::new(Int32Array::from((0..70_000).collect::<Vec<i32>>()));
    let array = RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap();
    let bytes = write(&array, "msgpack", &[]).unwrap();
    let document = open(&bytes, &[]).unwrap();
    assert_eq!(document.summary().rows, Some(70_000));
    assert_eq!(read(&bytes, &[]).unwrap().num_rows(), 70_000);
    // With the count known in advance nothing is spooled; the bytes are the same.
    let (sink, memory) = Sink::memory();
    let mut options = write_options("msgpack", &[]);
    options.row_count = Some(70_000);
    let mut writer = Ds.create(sink, array.schema(), &options).unwrap();
    writer.write(&array).unwrap();
    writer.finish().unwrap();
    assert!(memory.take() == bytes);

    let schema = Arc::new(shape::value_schema(Field::new("x", DataType::Utf8, false)));
    let value = |texts: Vec<&str>| {
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(StringArray::from(texts)) as ArrayRef])
            .unwrap()
    };
    let text = String::from_utf8(write(&value(vec!["v"]), "json", &[]).unwrap()).unwrap();
    assert_eq!(text, r#"{"type":"string","value":"v"}"#);
    assert_eq!(write(&value(vec!["v", "w"]), "json", &[]).unwrap_err().kind(), ErrorKind::Lossy);
}

#[test]
fn the_native_type_is_used_only_where_it_fits() {
    let bytes = br#"{"type":{"columns":{"x":{"type":"nullable","underlying":{"type":"nullable","underlying":"int8"}}},"rowCount":2},"value":[[1],[null]]}"#;
    let batch = read(bytes, &[]).unwrap();
    let text = String::from_utf8(write(&batch, "json", &[]).unwrap()).unwrap();
    assert!(text.contains("rowCount") && text.matches("nullable").count() == 2, "{text}");
    // With another column name the type is derived again.
    let mut metadata = batch.schema().metadata().clone();
    let fields = vec![Field::new("y", DataType::Int8, true)];
    let schema = Schema::new_with_metadata(fields, std::mem::take(&mut metadata));
    assert!(native::of(&schema, "ds").is_some());
    let kind = Type::from_schema(&schema).unwrap().to_string();
    assert_eq!(kind, r#"{"type":"tabular","columns":{"y":{"type":"nullable","underlying":"int8"}}}"#);
    // A rowCount that differs from the number of rows.
    let error = write(&batch.slice(0, 1), "msgpack", &[]).unwrap_err();
    assert_eq!(error.to_string(), "ds: 2 rows are declared, found 1");
}

#[test]
fn void_is_null_also_inside() {
    let text = br#"{"type":{"columns":{"v":"void","n":{"type":"nullable","underlying":"void"},"s":{"type":"struct","fields":{"v":"void"}},"a":{"type":"array","underlying":"void"},"t":{"type":"tensor","componentType":"void","shape":[2]}}},"value":[[null,null,[null],[null,null],[null,null]]]}"#;
    let batch = read(text, &[]).unwrap();
    let nullable: Vec<bool> = batch.schema().fields().iter().map(|field| field.is_nullable()).collect();
    assert_eq!(nullable, [false, true, false, false, false]);
    let back: Value = serde_json::from_slice(&write(&batch, "json", &[]).unwrap()).unwrap();
    let given: Value = serde_json::from_slice(text).unwrap();
    assert_eq!(back["value"], given["value"]);
    // Without the native type the same type is derived.
    let schema = native::without(&batch.schema());
    let derived: Value = serde_json::from_str(&Type::from_schema(&schema).unwrap().to_string()).unwrap();
    assert_eq!(derived["columns"], given["type"]["columns"]);
}

#[test]
fn a_tensor_without_its_extension_is_still_one() {
    let list = FixedSizeListArray::try_new(
        Arc::new(Field::new_list_field(DataType::Int32, false)),
        2,
        Arc::new(Int32Array::from(vec![1, 2, 3, 4])),
        None,
    );
    let batch = batch(vec![("t", Arc::new(list.unwrap()), false)]);
    let text = String::from_utf8(write(&batch.slice(1, 1), "json", &[]).unwrap()).unwrap();
    assert!(text.ends_with(r#""shape":[2]}}},"value":[[[3,4]]]}"#), "{text}");
}
