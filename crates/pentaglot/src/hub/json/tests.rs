use std::sync::Arc;

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_buffer::{OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, Field, Fields, Schema, UnionFields};
use half::f16;

use super::*;
use crate::hub::{extension, shape};

/// The text of each value of an array.
fn texts(field: Field, array: ArrayRef) -> Vec<String> {
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
    let columns = Columns::new(&batch, &JsonOptions::default()).unwrap();
    (0..batch.num_rows())
        .map(|row| {
            let mut out = Vec::new();
            columns.write_cell(0, row, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            serde_json::from_str::<serde_json::Value>(&text).expect("what is written is JSON");
            text
        })
        .collect()
}

fn plain(array: impl Array + 'static) -> Vec<String> {
    texts(Field::new("x", array.data_type().clone(), true), Arc::new(array))
}

fn typed(name: &str, metadata: Option<&str>, array: impl Array + 'static) -> Vec<String> {
    let field = Field::new("x", array.data_type().clone(), true);
    texts(extension::with(field, name, metadata.map(str::to_owned)), Arc::new(array))
}

#[test]
fn scalars_take_the_published_forms() {
    assert_eq!(plain(BooleanArray::from(vec![Some(true), None])), ["true", "null"]);
    assert_eq!(plain(UInt64Array::from(vec![u64::MAX])), ["18446744073709551615"]);
    assert_eq!(plain(Int8Array::from(vec![i8::MIN])), ["-128"]);
    let floats = [0.1, -0.0, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3.0];
    let expected = ["0.1", "-0.0", "1e300", "\"NaN\"", "\"Infinity\"", "\"-Infinity\"", "3.0"];
    assert_eq!(plain(Float64Array::from(floats.to_vec())), expected);
    assert_eq!(plain(Float32Array::from(vec![0.1f32, 16777216.0])), ["0.1", "16777216.0"]);
    assert_eq!(plain(Float16Array::from(vec![f16::from_f32(0.1), f16::NAN])), ["0.1", "\"NaN\""]);
    assert_eq!(plain(StringArray::from(vec!["é\"\\\n\u{1}"])), ["\"é\\\"\\\\\\n\\u0001\""]);
    assert_eq!(plain(StringViewArray::from(vec!["a"])), ["\"a\""]);
    assert_eq!(plain(BinaryArray::from(vec![b"hi!\xff".as_slice()])), ["\"aGkh/w==\""]);
    assert_eq!(plain(BinaryViewArray::from(vec![b"".as_slice()])), ["\"\""]);
    let decimal = Decimal128Array::from(vec![-5, 12345]).with_precision_and_scale(10, 2).unwrap();
    assert_eq!(plain(decimal), ["\"-0.05\"", "\"123.45\""]);
    let decimal = Decimal256Array::from(vec![i256::from(7)]).with_precision_and_scale(70, 0).unwrap();
    assert_eq!(plain(decimal), ["\"7\""]);
    assert_eq!(plain(NullArray::new(1)), ["null"]);
    assert_eq!(plain(DurationMillisecondArray::from(vec![-5])), ["-5"]);
}

#[test]
fn dates_and_times_take_the_published_forms() {
    assert_eq!(plain(Date32Array::from(vec![19_000, i32::MAX])), ["\"2022-01-08\"", "2147483647"]);
    assert_eq!(plain(Date64Array::from(vec![86_400_000, 1])), ["\"1970-01-02\"", "1"]);
    assert_eq!(plain(Time32MillisecondArray::from(vec![1_500, -1])), ["\"00:00:01.5\"", "-1"]);
    assert_eq!(plain(Time64NanosecondArray::from(vec![1])), ["\"00:00:00.000000001\""]);
    assert_eq!(plain(TimestampSecondArray::from(vec![0])), ["\"1970-01-01T00:00:00\""]);
    let zoned = TimestampMicrosecondArray::from(vec![1_500_000]).with_timezone("UTC");
    assert_eq!(plain(zoned), ["\"1970-01-01T00:00:01.5Z\""]);
    let zoned = TimestampSecondArray::from(vec![0]).with_timezone("America/New_York");
    assert_eq!(plain(zoned), ["\"1969-12-31T19:00:00-05:00\""]);
    let zoned = TimestampSecondArray::from(vec![7]).with_timezone("no such zone");
    assert_eq!(plain(zoned), ["7"]);
}

#[test]
fn extensions_take_the_published_forms() {
    let words = |word: u128| FixedSizeBinaryArray::new(16, word.to_le_bytes().to_vec().into(), None);
    let lowest = i128::MIN.cast_unsigned();
    let expected = ["-170141183460469231731687303715884105728"];
    assert_eq!(typed(extension::INT128, None, words(lowest)), expected);
    let expected = ["340282366920938463463374607431768211455"];
    assert_eq!(typed(extension::UINT128, None, words(u128::MAX)), expected);
    let expected = ["\"0x3fff0000000000000000000000000000\""];
    assert_eq!(typed(extension::FLOAT128, None, words(0x3fff << 112)), expected);

    let item = Arc::new(Field::new_list_field(DataType::Float32, false));
    let pair = Arc::new(Float32Array::from(vec![1.0, -0.0]));
    let complex = FixedSizeListArray::new(Arc::clone(&item), 2, pair, None);
    assert_eq!(typed(extension::COMPLEX, None, complex), ["[1.0,-0.0]"]);

    let six = Arc::new(Float32Array::from_iter_values((0..6).map(|value| value as f32)));
    let tensor = FixedSizeListArray::new(item, 6, six, None);
    let shape = Some("{\"shape\":[2,3]}");
    assert_eq!(typed(extension::FIXED_SHAPE_TENSOR, shape, tensor), ["[[0.0,1.0,2.0],[3.0,4.0,5.0]]"]);

    let image = BinaryArray::from(vec![b"png".as_slice()]);
    assert_eq!(typed(extension::IMAGE, Some("{}"), image), ["\"cG5n\""]);
    assert_eq!(typed(extension::JSON, None, StringArray::from(vec!["{}"])), ["\"{}\""]);

    let fields =
        Fields::from(vec![Field::new("_0", DataType::Int32, false), Field::new("_1", DataType::Utf8, true)]);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![7])), Arc::new(StringArray::from(vec![None::<&str>]))];
    assert_eq!(typed(extension::TUPLE, None, StructArray::new(fields, columns, None)), ["[7,null]"]);

    let fields = Fields::from(vec![
        Field::new("type", DataType::Utf8, false),
        Field::new("data", DataType::Binary, false),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["int8"])),
        Arc::new(BinaryArray::from(vec![b"\x05".as_slice()])),
    ];
    let array = StructArray::new(fields, columns, None);
    assert_eq!(typed(extension::DYND_ARRAY, None, array.clone()), [r#"{"type":"int8","value":"BQ=="}"#]);
    let field = Field::new("x", array.data_type().clone(), true);
    let field = extension::with(field, extension::DYND_ARRAY, None);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(array)]).unwrap();
    let hook: DyndValue = |_, data, out| {
        out.extend_from_slice(data[0].to_string().as_bytes());
        Ok(())
    };
    let mut out = Vec::new();
    let columns = Columns::new(&batch, &JsonOptions { dynd_value: Some(hook) }).unwrap();
    columns.write_object(0, &mut out).unwrap();
    assert_eq!(out, br#"{"x":{"type":"int8","value":5}}"#);
}

#[test]
fn nested_values_take_the_published_forms() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
    ]);
    assert_eq!(plain(lists.clone()), ["[1,null]", "null", "[]"]);
    assert_eq!(plain(lists.slice(1, 2)), ["null", "[]"]);
    let views = ListViewArray::from(lists);
    assert_eq!(plain(views), ["[1,null]", "null", "[]"]);
    let dictionary: DictionaryArray<Int8Type> = vec![Some("b"), None, Some("b")].into_iter().collect();
    assert_eq!(plain(dictionary), ["\"b\"", "null", "\"b\""]);
    let nulls_only: DictionaryArray<Int8Type> = vec![None::<&str>].into_iter().collect();
    assert_eq!(plain(nulls_only), ["null"]);
    let runs: RunArray<Int32Type> = vec![Some("a"), Some("a"), None].into_iter().collect();
    assert_eq!(plain(runs), ["\"a\"", "\"a\"", "null"]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_null();
    map.append(true).unwrap();
    assert_eq!(plain(map.finish()), [r#"{"k":null}"#]);
    let mut map = MapBuilder::new(None, Int32Builder::new(), Int32Builder::new());
    map.keys().append_value(1);
    map.values().append_value(2);
    map.append(true).unwrap();
    assert_eq!(plain(map.finish()), ["[[1,2]]"]);
    assert_eq!(plain(StructArray::new_empty_fields(1, None)), ["{}"]);
    let fields = [
        (0, Arc::new(Field::new("i", DataType::Int32, true))),
        (3, Arc::new(Field::new("s", DataType::Utf8, true))),
    ];
    let union = UnionArray::try_new(
        fields.into_iter().collect::<UnionFields>(),
        ScalarBuffer::from(vec![3, 0]),
        Some(ScalarBuffer::from(vec![0, 0])),
        vec![Arc::new(Int32Array::from(vec![5])), Arc::new(StringArray::from(vec!["x"]))],
    )
    .unwrap();
    assert_eq!(plain(union), [r#"{"s":"x"}"#, r#"{"i":5}"#]);
}

#[test]
fn a_tensor_of_nothing_costs_little() {
    let item = Arc::new(Field::new_list_field(DataType::Float32, false));
    let empty = Arc::new(Float32Array::from(Vec::<f32>::new()));
    let tensor = FixedSizeListArray::try_new_with_length(item, 0, empty, None, 1).unwrap();
    let shape = Some("{\"shape\":[2,0,3]}");
    assert_eq!(typed(extension::FIXED_SHAPE_TENSOR, shape, tensor.clone()), ["[[],[]]"]);
    let field = Field::new("x", tensor.data_type().clone(), true);
    let hostile = "{\"shape\":[1000000000000,0]}".to_owned();
    let field = extension::with(field, extension::FIXED_SHAPE_TENSOR, Some(hostile));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(tensor)]).unwrap();
    assert!(Columns::new(&batch, &JsonOptions::default()).is_err());
}

fn document(schema: Schema, batches: &[Vec<ArrayRef>]) -> crate::Result<String> {
    let schema = Arc::new(schema);
    let mut document = JsonDocument::begin(Vec::new(), Arc::clone(&schema), JsonOptions::default())?;
    for columns in batches {
        document.write(&RecordBatch::try_new(Arc::clone(&schema), columns.clone()).unwrap())?;
    }
    Ok(String::from_utf8(document.end()?).unwrap())
}

#[test]
fn documents_of_every_shape() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let field = || Field::new("x", DataType::Int32, false);
    let table =
        document(Schema::new(vec![field()]), &[vec![Arc::clone(&numbers)], vec![Arc::clone(&numbers)]]);
    assert_eq!(table.unwrap(), "[{\"x\":1},\n{\"x\":2},\n{\"x\":1},\n{\"x\":2}]\n");
    assert_eq!(document(Schema::new(vec![field()]), &[]).unwrap(), "[]\n");
    let array = document(shape::array_schema(field()), &[vec![Arc::clone(&numbers)]]);
    assert_eq!(array.unwrap(), "[1,\n2]\n");
    let value = document(shape::value_schema(field()), &[vec![numbers.slice(0, 1)]]);
    assert_eq!(value.unwrap(), "1\n");
    assert!(document(shape::value_schema(field()), &[]).is_err());
    assert!(document(shape::value_schema(field()), &[vec![Arc::clone(&numbers)]]).is_err());

    let dense = shape::dense_schema(DataType::Int32, Some(1), 2).unwrap();
    let DataType::FixedSizeList(item, _) = dense.field(0).data_type().clone() else { unreachable!() };
    let row: ArrayRef = Arc::new(FixedSizeListArray::new(item, 2, Arc::clone(&numbers), None));
    assert_eq!(document(dense, &[vec![row]]).unwrap(), "[[1,2]]\n");

    let columns = Schema::new_with_metadata(
        vec![Field::new("col_0", DataType::Int32, false), Field::new("col_1", DataType::Int32, false)],
        shape::matrix_metadata(None, 2),
    );
    let both = vec![Arc::clone(&numbers), Arc::clone(&numbers)];
    assert_eq!(document(columns, &[both]).unwrap(), "[[1,1],\n[2,2]]\n");

    let sparse = shape::sparse_schema(DataType::Int32, Some(3), 4);
    let DataType::LargeList(entry) = sparse.field(0).data_type().clone() else { unreachable!() };
    let DataType::Struct(fields) = entry.data_type().clone() else { unreachable!() };
    let cols: ArrayRef = Arc::new(UInt32Array::from(vec![3, 0]));
    let entries =
        Arc::new(StructArray::new(fields, vec![cols, Arc::new(Int32Array::from(vec![0, 9]))], None));
    let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0i64, 0, 1, 2]));
    let rows: ArrayRef = Arc::new(LargeListArray::new(entry, offsets, entries, None));
    assert!(rows.as_list::<i64>().len() == 3);
    let text = document(sparse.clone(), &[vec![Arc::clone(&rows)]]).unwrap();
    assert_eq!(text, "{\"rows\":3,\"cols\":4,\"entries\":[[1,3,0],\n[2,0,9]]}\n");
    let mut metadata = sparse.metadata().clone();
    metadata.remove(shape::ROWS_KEY);
    let text = document(sparse.with_metadata(metadata), &[vec![rows]]).unwrap();
    assert_eq!(text, "{\"cols\":4,\"entries\":[[1,3,0],\n[2,0,9]],\"rows\":3}\n");
}
