//! What we write under each option, what the plan says, and the typed door.

use crate::testing::asked::Asked;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, BinaryArray, DictionaryArray, Int8Array, Int32Array, LargeStringArray, StringArray,
    StringViewArray, TimestampNanosecondArray, UInt8Array,
};
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use super::*;
use crate::formats::bsondf::{BsonColumn, Type, read_document, write_document};
use crate::hub::{Verdict, native};
use crate::testing::writing::Writing as _;

/// A table whose buffers do not all compress equally.
fn ticks() -> RecordBatch {
    read(&load("ticks_5k.bson")).unwrap()
}

#[test]
fn high_compression_is_smaller_and_equal() {
    let batch = ticks();
    let sizes: Vec<usize> = ["0", "1", "9", "12"]
        .map(|level| {
            let options = write_options(&[("level", level)]);
            let bytes = write_batches(batch.schema(), std::slice::from_ref(&batch), &options).unwrap();
            assert_eq!(read(&bytes).unwrap(), batch, "level {level}");
            bytes.len()
        })
        .to_vec();
    assert!(sizes[2] < sizes[0] && sizes[3] <= sizes[2], "{sizes:?}");
    assert!(write_batches(batch.schema(), &[], &write_options(&[("level", "13")])).is_err());
}

#[test]
fn empty_buffers_are_the_same_on_all_levels() {
    let none = |data_type: DataType| arrow_array::new_empty_array(&data_type);
    let factor = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let nested = DataType::List(Arc::new(Field::new_list_field(factor.clone(), true)));
    let empty = table(vec![
        ("n", none(DataType::Int32)),
        ("s", none(DataType::Utf8)),
        ("f", none(factor)),
        ("l", none(nested)),
    ]);
    let blank = table(vec![("s", Arc::new(StringArray::from(vec!["", ""])))]);
    for batch in [empty, blank] {
        for empty in ["5", "4"] {
            for level in 0..=12 {
                let options = write_options(&[("level", &level.to_string()), ("empty", empty)]);
                let bytes = write_batches(batch.schema(), std::slice::from_ref(&batch), &options).unwrap();
                assert_eq!(read(&bytes).unwrap().columns(), batch.columns(), "level {level}, empty {empty}");
            }
        }
    }
}

#[test]
fn repeated_values_under_nulls_are_smaller_and_equal() {
    let times: TimestampNanosecondArray = (0..4000i64)
        .map(|row| (row % 7 != 3).then_some(1_700_000_000_000_000_000 + row * 1_000_000))
        .collect();
    let batch = table(vec![("time", Arc::new(times))]);
    let half = [batch.slice(0, 11), batch.slice(11, 3989)];
    let repeat = write_options(&[("nulls", "repeat")]);
    let [zero, repeated] = [WriteOptions::default(), repeat]
        .map(|options| write_batches(batch.schema(), &half, &options).unwrap());
    assert_eq!(read(&repeated).unwrap().columns(), batch.columns());
    assert!(repeated.len() * 3 < zero.len(), "{} and {}", repeated.len(), zero.len());
    // A first value that is missing, also in the first row of a later batch.
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(5), None, Some(7)]));
    let batch = table(vec![("n", numbers)]);
    let parts = [batch.slice(0, 2), batch.slice(2, 2)];
    let bytes = write_batches(batch.schema(), &parts, &write_options(&[("nulls", "repeat")])).unwrap();
    let document = bson::Document::from_reader(&bytes[..]).unwrap();
    let values = document.get_document("n").unwrap().get_binary_generic("d").unwrap();
    // Behind a length, a token and a literal length.
    assert_eq!(&values[6..], [0, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0]);
}

#[test]
fn threads_change_nothing() {
    let bytes = load("ticks_5k.bson");
    for threads in [0, 1, 3] {
        let read_options = ReadOptions { control: crate::Control::new(threads), ..ReadOptions::default() };
        let options = WriteOptions { control: crate::Control::new(threads), ..WriteOptions::default() };
        let batch = read_with(&bytes, &read_options).unwrap();
        assert_eq!(write_batches(batch.schema(), &[batch], &options).unwrap(), bytes);
    }
}

#[test]
fn dictionaries_of_batches_become_one() {
    let factor = |texts: &[Option<&str>]| -> ArrayRef {
        Arc::new(texts.iter().copied().collect::<DictionaryArray<Int8Type>>())
    };
    let first = table(vec![("f", factor(&[Some("b"), None, Some("a")]))]);
    let second = table(vec![("f", factor(&[Some("c"), Some("a"), Some("b")]))]);
    let batches = [first.clone(), second];
    let bytes = write_batches(first.schema(), &batches, &WriteOptions::default()).unwrap();
    let batch = read(&bytes).unwrap();
    let column = batch.column(0).as_dictionary::<Int8Type>();
    assert_eq!(column.values().as_string::<i32>(), &StringArray::from(vec!["b", "a", "c"]));
    assert_eq!(column.keys(), &Int8Array::from(vec![Some(0), None, Some(1), Some(2), Some(1), Some(0)]));
    // One order cannot be told from two.
    let ordered = first.schema().field(0).clone().with_dict_is_ordered(true);
    let error = write_batches(Arc::new(Schema::new(vec![ordered])), &batches, &WriteOptions::default());
    assert_eq!(error.unwrap_err().kind(), crate::ErrorKind::Lossy);
    // More values than the indices can count.
    let many = |from: usize| {
        let texts: Vec<String> = (from..from + 100).map(|number| number.to_string()).collect();
        table(vec![("f", factor(&texts.iter().map(|text| Some(text.as_str())).collect::<Vec<_>>()))])
    };
    let error = write_batches(first.schema(), &[many(0), many(100)], &WriteOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "bsondf: columns.f: a dictionary with Int8 indices cannot hold the 200 values of all batches together"
    );
}

#[test]
fn plain_forms_are_widened_and_the_rest_is_refused() {
    let verdict = |data_type: DataType| {
        let plan =
            Bsondf.steps(&Schema::new(vec![Field::new("x", data_type, true)]), &WriteOptions::default());
        plan.verdict()
    };
    let item = || Arc::new(Field::new_list_field(DataType::Int8, true));
    for exact in [
        DataType::Null,
        DataType::Float16,
        DataType::Date64,
        DataType::Timestamp(TimeUnit::Second, Some("Europe/Paris".into())),
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::FixedSizeBinary(3),
        DataType::List(Arc::new(Field::new("element", DataType::Int8, false))),
        DataType::Dictionary(Box::new(DataType::UInt64), Box::new(DataType::List(item()))),
    ] {
        assert_eq!(verdict(exact.clone()), Verdict::Exact, "{exact}");
    }
    let checked =
        Field::new("x", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)), true);
    assert_eq!(verdict(checked.data_type().clone()), Verdict::Checked);
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Int8, true),
    ]);
    for widened in [
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::LargeList(item()),
        DataType::ListView(item()),
        DataType::FixedSizeList(item(), 2),
        DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false),
        DataType::RunEndEncoded(Arc::new(Field::new("run_ends", DataType::Int32, false)), item()),
        DataType::Timestamp(TimeUnit::Second, Some("".into())),
    ] {
        assert_eq!(verdict(widened.clone()), Verdict::Widened, "{widened}");
    }
    let struct_of = |name: &str| DataType::Struct(vec![Field::new(name, DataType::Int8, true)].into());
    let twice = vec![Field::new("a", DataType::Int8, true); 2];
    for impossible in [
        DataType::Decimal128(10, 2),
        DataType::Duration(TimeUnit::Second),
        DataType::Interval(arrow_schema::IntervalUnit::DayTime),
        DataType::FixedSizeBinary(0),
        DataType::List(Arc::new(Field::new_list_field(DataType::Decimal32(5, 1), true))),
        DataType::Union(arrow_schema::UnionFields::empty(), arrow_schema::UnionMode::Dense),
        struct_of(""),
        struct_of("a\0b"),
        DataType::Struct(twice.clone().into()),
    ] {
        assert_eq!(verdict(impossible.clone()), Verdict::Impossible, "{impossible}");
    }
    let plan = Bsondf.steps(&Schema::new(twice), &WriteOptions::default());
    assert_eq!(plan.verdict(), Verdict::Impossible);
    assert_eq!(plan.steps[1].to_string(), "a: ?int8 -> int8: impossible (two columns have this name)");
}

#[test]
fn wide_forms_give_the_bytes_of_plain_ones() {
    let texts = ["a", "", "a longer text than a view holds itself"];
    let plain = write(&table(vec![("t", Arc::new(StringArray::from(texts.to_vec())))]));
    let large: ArrayRef = Arc::new(LargeStringArray::from(texts.to_vec()));
    let views: ArrayRef = Arc::new(StringViewArray::from(texts.to_vec()));
    let run_ends = Int32Array::from(vec![1, 2, 3]);
    let runs: ArrayRef =
        Arc::new(arrow_array::RunArray::try_new(&run_ends, &StringArray::from(texts.to_vec())).unwrap());
    for wide in [large, views, runs] {
        assert_eq!(write(&table(vec![("t", wide)])), plain);
    }
}

/// A map is written as the list of structs that it is.
#[test]
fn maps_become_lists_of_entries() {
    use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    maps.keys().append_value("a");
    maps.values().append_value(1);
    maps.append(true).unwrap();
    maps.append(false).unwrap();
    maps.keys().append_value("b");
    maps.values().append_null();
    maps.append(true).unwrap();
    let maps = maps.finish();
    let batch = read(&write(&table(vec![("m", Arc::new(maps.clone()))]))).unwrap();
    let lists = batch.column(0).as_list::<i32>();
    assert_eq!(lists.offsets(), maps.offsets());
    assert_eq!(lists.nulls(), maps.nulls());
    assert_eq!(lists.values().as_struct().columns(), maps.entries().columns());
}

/// Arrow does not know that a dictionary inside a dictionary is ordered; the native type does.
#[test]
fn the_native_type_keeps_what_arrow_cannot() {
    let inner: ArrayRef = Arc::new(vec!["x", "y"].into_iter().collect::<DictionaryArray<Int32Type>>());
    let factor = DictionaryArray::<Int8Type>::new(Int8Array::from(vec![1, 0, 1]), inner);
    let ordered = |ordered, index, dictionary: Type| Type::Factor {
        ordered,
        index: Box::new(index),
        dictionary: Box::new(dictionary),
    };
    let kind = ordered(false, Type::Int8, ordered(true, Type::Int32, Type::Utf8));
    let column = BsonColumn::new("f", kind.clone(), Arc::new(factor)).unwrap();
    let bytes = write_document(std::slice::from_ref(&column), &WriteOptions::default()).unwrap();
    let batch = read(&bytes).unwrap();
    assert_eq!(write(&batch), bytes);
    let bare = RecordBatch::try_new(native::without(&batch.schema()), batch.columns().to_vec()).unwrap();
    assert_ne!(write(&bare), bytes);
    assert_eq!(read_document(bytes, &ReadOptions::default()).unwrap(), [column]);
}

#[test]
fn the_native_type_yields_to_the_schema() {
    let batch = ticks();
    let text = batch.schema().metadata().get(native::NATIVE_KEY).unwrap().clone();
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"\xff"[..]]));
    let changed = table(vec![("c", bytes)]);
    let schema =
        changed.schema().as_ref().clone().with_metadata([(native::NATIVE_KEY.to_owned(), text)].into());
    let changed = changed.with_schema(Arc::new(schema)).unwrap();
    assert_eq!(read(&write(&changed)).unwrap().columns(), changed.columns());
}

#[test]
fn large_documents_are_noted() {
    let mut random = crate::testing::arbitrary::Random::new(4);
    let noise = (0..17u64 << 20).map(|_| (random.next() >> 56) as u8);
    let batch = table(vec![("n", Arc::new(UInt8Array::from_iter_values(noise)))]);
    let (sink, memory) = Sink::memory();
    let mut writer = Bsondf.create(sink, batch.schema(), &WriteOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    let written = writer.finish().unwrap();
    assert_eq!(written.bytes, memory.take().len() as u64);
    assert_eq!(written.notes.len(), 1, "{} bytes", written.bytes);
    assert!(written.notes[0].contains("MongoDB"));
}

#[test]
fn a_writer_holds_what_columns_are_compressed_to() {
    let mut options = WriteOptions::default();
    options.budget = crate::Limits { max_alloc: 2 << 20, ..crate::Limits::default() }.budget();
    let column = |numbers: Vec<i32>| table(vec![("n", Arc::new(Int32Array::from(numbers)))]);
    let zeros = vec![column(vec![0; 100_000]); 20];
    assert!(write_batches(zeros[0].schema(), &zeros, &options).is_ok(), "8 MB in 400 kB at a time");
    let mut random = crate::testing::arbitrary::Random::new(4);
    let mut noise = || column((0..100_000).map(|_| random.next() as i32).collect());
    let noise: Vec<_> = (0..20).map(|_| noise()).collect();
    let error = write_batches(noise[0].schema(), &noise, &options).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Limit);
    drop((zeros, noise));
    assert_eq!(options.budget.used(), 0);
}

#[test]
fn columns_are_checked_at_the_typed_door() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    assert!(BsonColumn::new("x", Type::Int64, Arc::clone(&numbers)).is_err());
    assert!(BsonColumn::new("x\0", Type::Int32, Arc::clone(&numbers)).is_err());
    let x = BsonColumn::new("x", Type::Int32, numbers).unwrap();
    assert!(write_document(&[x.clone(), x], &WriteOptions::default()).is_err());
}

#[test]
fn dictionaries_without_rows_are_kept() {
    for ordered in [false, true] {
        let values: ArrayRef = Arc::new(StringArray::from(vec!["low", "mid", "high"]));
        let keys = Int8Array::from(vec![Some(2), None, Some(0)]);
        let factor: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::clone(&values)));
        let kind = factor.data_type().clone();
        let field = Field::new("f", kind, true).with_dict_is_ordered(ordered);
        let schema = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(schema, vec![factor]).unwrap();
        let bytes = write(&batch.slice(0, 0));
        let document = open_with(&bytes, &ReadOptions::default()).unwrap();
        let batches: Vec<_> = document.all_rows().unwrap().map(|batch| batch.unwrap()).collect();
        assert_eq!(batches.len(), 1);
        assert_eq!(batches[0].num_rows(), 0);
        assert_eq!(batches[0].column(0).as_any_dictionary().values(), &values);
        assert_eq!(write(&batches[0]), bytes);
        // Also of a selection that leaves no row.
        let document = open_with(&write(&batch), &ReadOptions::default()).unwrap();
        let request = Asked { rows: Some(0..0), ..Asked::default() };
        let batches: Vec<_> = document.ask(&request).unwrap().map(|batch| batch.unwrap()).collect();
        assert_eq!(write_batches(batches[0].schema(), &batches, &WriteOptions::default()).unwrap(), bytes);
        // A batch without rows adds nothing to others.
        let both = [batch.slice(0, 0), batch.clone()];
        let joined = write_batches(batch.schema(), &both, &WriteOptions::default()).unwrap();
        assert_eq!(joined, write(&batch));
    }
}
