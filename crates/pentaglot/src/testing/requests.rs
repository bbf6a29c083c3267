//! The requests and bytes of opening a file and reading a part of it, where reads are costly.

use std::sync::Arc;

use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int64Array, ListArray,
    RecordBatch, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::conformance::collect;
use super::costly::Costly;
use crate::hub::shape;
use crate::job::{Conversion, ConvertOptions, OpenOptions, View, open_source, target};
use crate::registry::Registry;
use crate::sink::Sink;
use crate::source::Source;
use crate::testing::writing::Writing as _;

const KIB: u64 = 1 << 10;

fn noise(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed | 1), move |last| {
        Some(last.wrapping_mul(6364136223846793005).wrapping_add(seed | 1))
    })
    .map(|value| value >> 11)
}

/// A file of `to` that holds the batch.
fn file(registry: &Registry, batch: &RecordBatch, to: &str, form: Option<&str>) -> Vec<u8> {
    let arrow = registry.get("arrow").unwrap();
    let (sink, memory) = Sink::memory();
    let mut writer = arrow.create(sink, batch.schema(), &Default::default()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    let mut options = ConvertOptions::default();
    options.allow_lossy = crate::hub::LossKinds::ALL;
    if let Some(form) = form {
        options.open.options.set("as", form);
    }
    let source = Source::from_bytes("x.arrow", memory.take());
    let opened = open_source(registry, source, None, &options.open).unwrap();
    let target = target(registry, to).unwrap();
    let (sink, memory) = Sink::memory();
    Conversion::plan_opened(opened, target, None, &options).unwrap().run_into(sink).unwrap();
    memory.take()
}

/// `(requests, bytes)` of opening a file and of reading `view`, and the number of rows.
fn cost(registry: &Registry, name: &str, bytes: Vec<u8>, view: &View) -> (u64, u64, usize) {
    let costly = Costly::new(bytes);
    let source = Source::from_read_at(name, Arc::clone(&costly) as _);
    let opened = open_source(registry, source, None, &OpenOptions::default()).unwrap();
    let rows = collect(opened.rows(view).unwrap()).unwrap().num_rows();
    let (requests, bytes) = costly.counts();
    (requests, bytes, rows)
}

fn table(columns: usize, rows: usize) -> RecordBatch {
    let fields: Vec<Field> = (0..columns)
        .map(|index| {
            Field::new(
                format!("c{index}"),
                if index % 2 == 0 { DataType::Int64 } else { DataType::Float64 },
                false,
            )
        })
        .collect();
    let arrays: Vec<ArrayRef> = (0..columns)
        .map(|index| {
            let values = noise(index as u64 + 17).take(rows);
            match index % 2 {
                0 => Arc::new(values.map(|value| value as i64).collect::<Int64Array>()) as ArrayRef,
                _ => {
                    Arc::new(values.map(|value| value as f64 / 1024.0).collect::<Float64Array>()) as ArrayRef
                }
            }
        })
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// Texts, lists of numbers, and texts of a dictionary.
fn texts(rows: usize) -> RecordBatch {
    let texts: StringArray = noise(31).take(rows).map(|value| Some(value.to_string())).collect();
    let lists =
        noise(37).take(rows).map(|value| Some((0..value % 5).map(move |item| Some((value + item) as i64))));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
    let words: Vec<String> = noise(41).take(rows).map(|value| format!("word {}", value % 100)).collect();
    let words: DictionaryArray<Int32Type> = words.iter().map(String::as_str).collect();
    let columns: [(&str, ArrayRef); 3] =
        [("texts", Arc::new(texts)), ("lists", Arc::new(lists)), ("words", Arc::new(words))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A matrix of which every other cell is zero.
fn matrix(rows: usize, cols: usize) -> RecordBatch {
    let values = noise(3).take(rows * cols).map(|value| if value % 2 == 0 { 0.0 } else { value as f64 });
    let values = Arc::new(values.collect::<Float64Array>());
    let schema = shape::dense_schema(DataType::Float64, Some(rows as u64), cols as u64).unwrap();
    let item = match schema.field(0).data_type() {
        DataType::FixedSizeList(item, _) => Arc::clone(item),
        _ => unreachable!("rows of a dense matrix are lists"),
    };
    let list = FixedSizeListArray::try_new(item, cols as i32, values, None).unwrap();
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)]).unwrap()
}

fn array(item: Field, values: ArrayRef) -> RecordBatch {
    let schema: SchemaRef = Arc::new(shape::array_schema(item));
    RecordBatch::try_new(schema, vec![values]).unwrap()
}

#[test]
fn opening_and_ten_rows_take_few_requests() {
    let registry = Registry::default();
    let table = table(4, 300_000);
    let matrix = matrix(300_000, 8);
    let numbers = array(
        Field::new("item", DataType::UInt64, false),
        Arc::new(noise(5).take(1_200_000).collect::<UInt64Array>()),
    );
    let bits = array(
        Field::new("item", DataType::Boolean, false),
        Arc::new(noise(7).take(40_000_000).map(|value| Some(value % 3 == 0)).collect::<BooleanArray>()),
    );
    let mut wrong = Vec::new();
    let mut check = |name: &str, batch: &RecordBatch, to: &str, form: Option<&str>, units: u64| {
        let bytes = file(&registry, batch, to, form);
        let size = bytes.len();
        let mut view = View::default();
        view.rows = Some(0..10);
        let (requests, read, rows) = cost(&registry, name, bytes, &view);
        assert_eq!(rows, 10, "{to}");
        let (most_requests, most_bytes) = match units {
            0 => (8, 4_000_000),
            units => (8 + 4 * units, (8 + 4 * units) * 64 * KIB),
        };
        if requests > most_requests || read > most_bytes {
            wrong.push(format!(
                "{to}: {requests} requests of {most_requests}, {read} bytes of {most_bytes}, file {size}"
            ));
        }
    };
    check("x.parquet", &table, "parquet", None, 0);
    check("x.arrow", &table, "arrow", None, 0);
    check("x.csv", &table, "csv", None, 0);
    check("x.jsonl", &table, "jsonl", None, 0);
    check("x.ds", &table, "ds", None, 0);
    check("x.dynd", &table, "dynd", None, 0);
    check("x.bson", &table, "bsondf", None, 4);
    check("x.bson", &texts(300_000), "bsondf", None, 3);
    check("x.dbdf", &table, "dbdf", None, 4);
    check("x.npy", &matrix, "npy", None, 0);
    check("x.npz", &matrix, "npz", Some("sparse"), 0);
    check("x.dbdf", &matrix, "dbdf:daphne", None, 0);
    check("x.dbdf", &matrix, "dbdf", None, 0);
    check("x.sds", &numbers, "sds:int", None, 0);
    check("x.sds", &numbers, "sds:vec", None, 0);
    check("x.sds", &bits, "sds:bit", None, 0);
    check("x.sds", &bits, "sds:raw", None, 0);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_column_of_a_wide_file_costs_its_bytes_and_little_of_the_others() {
    let registry = Registry::default();
    let columns = 40;
    let table = table(columns, 50_000);
    let mut wrong = Vec::new();
    for (name, to) in
        [("x.parquet", "parquet"), ("x.arrow", "arrow"), ("x.dbdf", "dbdf"), ("x.bson", "bsondf")]
    {
        let bytes = file(&registry, &table, to, None);
        let own = bytes.len() as u64 / columns as u64;
        let most = own * 11 / 10 + columns as u64 * 64 * KIB;
        let mut view = View::default();
        view.columns = Some(vec!["c20".to_owned()]);
        let (requests, read, rows) = cost(&registry, name, bytes, &view);
        assert_eq!(rows, 50_000, "{to}");
        if read > most {
            wrong.push(format!("{to}: {read} bytes of {most} in {requests} requests"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
