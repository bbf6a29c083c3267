//! What is put in comes out.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int32Array,
    ListArray, RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow_schema::{DataType, Field, Schema};

use super::super::root::{ROOT_TYPE, Root};
use super::super::{PutOptions, schema};
use super::{Random, Scratch, one, stream, table};
use crate::formats::{Format, ReadOptions, dynd};
use crate::hub::{extension, shape};
use crate::job::{self, Conversion, ConvertOptions, OpenOptions};
use crate::{Budget, Control, Limits, Registry, Source, identity};

fn identity_of(batches: &[RecordBatch]) -> String {
    identity::of_rows(stream(batches), &identity::IdentityOptions::default())
        .unwrap()
        .cid()
        .unwrap()
        .to_string()
}

#[test]
fn every_type_comes_back() {
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("")]));
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(i32::MIN)]));
    let list: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<arrow_array::types::Float64Type, _, _>(vec![
            Some(vec![Some(1.5), None]),
            None,
            Some(vec![]),
        ]));
    let fields = vec![
        (Arc::new(Field::new("t", DataType::Utf8, true)), Arc::clone(&text)),
        (Arc::new(Field::new("l", list.data_type().clone(), true)), Arc::clone(&list)),
    ];
    let nulls = Some(arrow_buffer::NullBuffer::from(vec![true, false, true]));
    let parts: StructArray = StructArray::from(fields);
    let nested: ArrayRef =
        Arc::new(StructArray::try_new(parts.fields().clone(), parts.columns().to_vec(), nulls).unwrap());
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        vec![Some([1u8, 2]), None, Some([3, 4])].into_iter(),
        2,
    );
    let batch = table(vec![
        ("text", text),
        ("numbers", numbers),
        ("list", list),
        ("nested", nested),
        ("fixed", Arc::new(fixed.unwrap())),
        ("bool", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("decimal", Arc::new(Decimal128Array::from(vec![1, 2, -3]).with_precision_and_scale(10, 2).unwrap())),
        ("null", Arc::new(arrow_array::NullArray::new(3))),
    ]);
    let scratch = Scratch::new();
    let stored = scratch.put(std::slice::from_ref(&batch));
    assert_eq!(one(&scratch.get(&stored)), batch);
    scratch.check_sound();
}

#[test]
fn random_tables_come_back() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let schema = random.schema();
        let batches: Vec<RecordBatch> = (0..3).map(|_| random.batch(&schema, 40)).collect();
        let rows = || stream(&batches);
        let Ok(expected) = identity::of_rows(rows(), &identity::IdentityOptions::default()) else { continue };
        let scratch = Scratch::new();
        let stored = scratch.store.put(rows(), &PutOptions::default()).unwrap();
        assert_eq!(stored.identity.cid().unwrap(), expected.cid().unwrap());
        let found = scratch.get(&stored);
        if found.is_empty() {
            continue;
        }
        assert_eq!(identity_of(&found), expected.cid().unwrap().to_string(), "{schema:?}");
        assert_eq!(found[0].schema().metadata(), schema.metadata());
    }
}

#[test]
fn a_dictionary_comes_back_in_its_order() {
    let values: ArrayRef = Arc::new(StringArray::from(vec!["z", "unused", "a"]));
    let keys = arrow_array::Int8Array::from(vec![Some(2), None, Some(0), Some(2)]);
    let column: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, values));
    let batch = table(vec![("d", column)]);
    let scratch = Scratch::new();
    let stored = scratch.put(&[batch.clone(), batch.clone()]);
    let found = one(&scratch.get(&stored));
    assert_eq!(found.slice(0, 4), batch);
    assert_eq!(found.column(0).data_type(), batch.column(0).data_type());
    scratch.check_sound();
    // Dictionaries that contradict each other are stored as values.
    let other: ArrayRef = Arc::new(vec!["b", "z"].into_iter().collect::<DictionaryArray<Int8Type>>());
    let stored = scratch.put(&[batch, table(vec![("d", other)])]);
    assert_eq!(one(&scratch.get(&stored)).column(0).data_type(), &DataType::Utf8);
    assert_eq!(scratch.collect().chunks, 0, "dictionaries are kept");
    // Polars writes dictionaries of views.
    let values: ArrayRef = Arc::new(arrow_array::StringViewArray::from(vec!["z", "unused", "a"]));
    let keys = arrow_array::Int8Array::from(vec![Some(2), None, Some(0), Some(2)]);
    let column: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, values));
    let found = one(&scratch.get(&scratch.put(&[table(vec![("d", column)])])));
    let found = found.column(0).as_any_dictionary();
    assert_eq!(found.values().as_string::<i32>().iter().flatten().collect::<Vec<_>>(), ["z", "unused", "a"]);
}

#[test]
fn views_come_back_as_plain_values() {
    let views: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a long enough text for a view"), None]));
    let plain: ArrayRef = Arc::new(StringArray::from(vec![Some("a long enough text for a view"), None]));
    let scratch = Scratch::new();
    let stored = scratch.put(&[table(vec![("v", views)])]);
    assert_eq!(one(&scratch.get(&stored)), table(vec![("v", plain)]));
}

fn matrix(schema: Schema, row: ArrayRef) -> RecordBatch {
    RecordBatch::try_new(Arc::new(schema), vec![row]).unwrap()
}

#[test]
fn matrices_come_back_and_share_chunks() {
    let values = Float64Array::from(vec![1.0, 0.0, 2.5, 0.0, -0.0, 0.0]);
    let dense = shape::dense_schema(DataType::Float64, Some(2), 3).unwrap();
    let item = Arc::new(Field::new_list_field(DataType::Float64, false));
    let rows = arrow_array::FixedSizeListArray::new(item, 3, Arc::new(values), None);
    let dense = matrix(dense, Arc::new(rows));
    let scratch = Scratch::new();
    let first = scratch.put(std::slice::from_ref(&dense));
    assert_eq!(one(&scratch.get(&first)), dense);
    let bytes = scratch.pack_bytes();
    let sparse = |entries: Vec<(u32, f64)>, offsets: Vec<i64>| {
        let schema = shape::sparse_schema(DataType::Float64, Some(2), 3);
        let DataType::LargeList(entry) = schema.field(0).data_type().clone() else { panic!() };
        let DataType::Struct(fields) = entry.data_type().clone() else { panic!() };
        let cols: ArrayRef =
            Arc::new(arrow_array::UInt32Array::from_iter_values(entries.iter().map(|(col, _)| *col)));
        let values: ArrayRef =
            Arc::new(Float64Array::from_iter_values(entries.iter().map(|(_, value)| *value)));
        let entries = StructArray::new(fields, vec![cols, values], None);
        let offsets = arrow_buffer::OffsetBuffer::new(offsets.into());
        matrix(schema, Arc::new(arrow_array::LargeListArray::new(entry, offsets, Arc::new(entries), None)))
    };
    let second = sparse(vec![(0, 1.0), (2, 2.5), (1, -0.0)], vec![0, 2, 3]);
    let stored = scratch.put(std::slice::from_ref(&second));
    assert_eq!(stored.identity.cid().unwrap(), first.identity.cid().unwrap());
    assert_eq!(scratch.pack_bytes(), bytes, "the chunks are the same");
    assert_eq!(one(&scratch.get(&stored)), second, "the latest form");
    // Explicit zeros and their order are kept, though they are not part of the identity.
    let third = sparse(vec![(2, 2.5), (1, 0.0), (0, 1.0), (1, -0.0)], vec![0, 3, 4]);
    let stored = scratch.put(std::slice::from_ref(&third));
    assert_eq!(stored.identity.cid().unwrap(), first.identity.cid().unwrap());
    assert_eq!(one(&scratch.get(&stored)), third);
    scratch.check_sound();
}

#[test]
fn arrays_values_and_nothing_come_back() {
    let scratch = Scratch::new();
    for (schema, column) in [
        (shape::array_schema(Field::new("item", DataType::Utf8, true)), vec![Some("a"), None]),
        (shape::value_schema(Field::new("value", DataType::Utf8, true)), vec![Some("a")]),
        (shape::array_schema(Field::new("item", DataType::Utf8, true)), vec![]),
    ] {
        let batch = matrix(schema, Arc::new(StringArray::from(column)));
        let stored = scratch.put(std::slice::from_ref(&batch));
        let id = stored.identity.cid().unwrap().to_string();
        let document = scratch.store.document(&id, None, &Budget::default(), &Control::default()).unwrap();
        assert_eq!(document.summary().schema, batch.schema());
        assert_eq!(document.summary().rows, Some(batch.num_rows() as u64));
        let found = scratch.get(&stored);
        assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), batch.num_rows());
        if batch.num_rows() > 0 {
            assert_eq!(one(&found), batch);
        }
    }
}

#[test]
fn chosen_rows_and_columns_are_read() {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..200_000));
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..200_000).map(|i| i.to_string())));
    let batch = table(vec![("a", Arc::clone(&numbers)), ("b", texts)]);
    let scratch = Scratch::new();
    let stored = scratch.put(std::slice::from_ref(&batch));
    let id = stored.identity.cid().unwrap().to_string();
    let document = scratch.store.document(&id, None, &Budget::default(), &Control::default()).unwrap();
    let selection = document.selection().with_columns(&["b"]).unwrap().with_rows(100_000..100_003);
    let found: Vec<RecordBatch> =
        document.rows(&selection).unwrap().map(Result::unwrap).filter(|batch| batch.num_rows() > 0).collect();
    let found = one(&found);
    assert_eq!(found.column(0), &batch.column(1).slice(100_000, 3));
    assert_eq!(found.num_columns(), 1);
    let small = document.selection().with_batch_rows(1000);
    assert!(document.rows(&small).unwrap().all(|batch| batch.unwrap().num_rows() == 1000));
}

/// The root is what the dynd format says: its own reader takes it, with its links.
#[test]
fn a_root_is_a_dynd_value() {
    let values: ArrayRef = Arc::new(StringArray::from(vec!["z", "a"]));
    let keys = arrow_array::Int8Array::from(vec![1, 0]);
    let column: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, values));
    let scratch = Scratch::new();
    let mut options = PutOptions::default();
    options.name = Some("named".to_owned());
    options.time = Some(1_700_000_000 * 10_000_000);
    let stored = scratch.store.put(stream(&[table(vec![("d", column)])]), &options).unwrap();
    let id = stored.identity.cid().unwrap().to_string();
    let path = scratch.folder.path().join("roots").join(&id);
    let file = std::fs::File::open(&path).unwrap();
    let bytes = zstd::decode_all(file).unwrap();
    let any: dynd::Type = "array[Any]".parse().unwrap();
    let value = dynd::read_value(&bytes, &any, &Limits::default()).unwrap();
    let dynd::Value::Array(value) = value else { panic!() };
    assert_eq!(value.0.to_string(), ROOT_TYPE);
    let dynd::Value::List(fields) = &value.1 else { panic!() };
    assert_eq!(fields[2], dynd::Value::Uint(2));
    assert_eq!(dynd::write_value(&any, &dynd::Value::Array(value.clone())).unwrap(), bytes);
    let document = dynd::Dynd.open(Source::from_bytes("root", bytes), &ReadOptions::default()).unwrap();
    assert!(document.all_rows().unwrap().all(|batch| batch.is_ok()));
    // Read and written again, it is the same.
    let root = Root::read(&Source::open(&path).unwrap(), &id, &Budget::default()).unwrap();
    let mut again = Vec::new();
    root.write(&mut again).unwrap();
    assert_eq!(again, std::fs::read(&path).unwrap());
    let listed = scratch.store.list(&Budget::default(), &Control::default()).unwrap();
    assert_eq!((listed[0].name.as_str(), listed[0].time_text().as_str()), ("named", "2023-11-14T22:13:20Z"));
    assert_eq!(scratch.store.find("named", &Budget::default()).unwrap(), id);
}

#[test]
fn a_schema_keeps_extensions_and_metadata() {
    let field = Field::new("x", DataType::Utf8, true);
    let field = extension::with(field, extension::JSON, None);
    let metadata = [("a".to_owned(), "b".to_owned())].into();
    let given = Schema::new_with_metadata(vec![field], metadata);
    assert_eq!(schema::from_bytes(&schema::to_bytes(&given), &Limits::default()).unwrap(), given);
}

/// A file comes back byte for byte, in the dialect that it was in.
#[test]
fn the_dialect_comes_back() {
    let (registry, scratch) = (Registry::default(), Scratch::new());
    let place = |name: &str| scratch.folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(place("a.csv"), "x,y\n1,2.5\n3,4.5\n").unwrap();
    for (name, to) in [("a.dbdf", "dbdf:daphne"), ("b.ds", "ds:msgpack-fixed"), ("c.dbdf", "dbdf:spec")] {
        let mut options = ConvertOptions::default();
        options.to = Some(to.to_owned());
        let conversion = Conversion::plan(&registry, &[place("a.csv")], &place(name), &options).unwrap();
        conversion.run_to(&registry, &place(name), false).unwrap();
        let opened = job::open(&registry, &place(name), &OpenOptions::default()).unwrap();
        let stored = opened.put(&scratch.store, None, &OpenOptions::default()).unwrap();
        let id = stored.identity.cid().unwrap().to_string();
        let again = place(&format!("again-{name}"));
        let options = ConvertOptions::default();
        let conversion = Conversion::plan_stored(&registry, &scratch.store, &id, &again, &options).unwrap();
        conversion.run_to(&registry, &again, false).unwrap();
        assert_eq!(std::fs::read(again).unwrap(), std::fs::read(place(name)).unwrap(), "{to}");
    }
}
