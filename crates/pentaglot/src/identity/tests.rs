//! The vectors of `docs/identity.md`, and what an identity does not depend on.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, LargeStringArray, ListArray, RecordBatch, RunArray,
    StringArray, StringViewArray,
};
use arrow_schema::{DataType, Field, Schema};
use serde_json::Value;

use super::{Identity, IdentityOptions, RowHasher};
use crate::error::ErrorKind;
use crate::formats::OptionMap;
use crate::hub::type_text::{parse_schema, print_schema};
use crate::hub::{Form, rows, shape};
use crate::job::{self, ConvertOptions, OpenOptions, View};
use crate::limits::Limits;
use crate::registry::Registry;
use crate::sink::Sink;
use crate::source::Source;
use crate::testing::arbitrary::Random;

const CHECK: &str = "bafkr4iembasmya7jd2bmzbterkxv7lmzaauoj3tawq4lufmkaxva72qtqm";

fn identity(batches: &[RecordBatch]) -> Identity {
    let mut hasher = RowHasher::new(&batches[0].schema(), &IdentityOptions::default()).unwrap();
    batches.iter().for_each(|batch| hasher.push(batch).unwrap());
    hasher.finish().unwrap()
}

fn cid(batch: &RecordBatch) -> String {
    identity(std::slice::from_ref(batch)).cid().unwrap().to_string()
}

fn column(array: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter([("x", array)]).unwrap()
}

fn check_table() -> RecordBatch {
    let lists = vec![Some(vec![Some(1.5)]), None, Some(vec![])];
    RecordBatch::try_from_iter([
        ("a", Arc::new(Int32Array::from(vec![Some(1), None, Some(3)])) as ArrayRef),
        ("s", Arc::new(StringArray::from(vec![Some("x"), Some(""), None]))),
        ("l", Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))),
    ])
    .unwrap()
}

#[test]
fn the_check_value_holds() {
    assert_eq!(cid(&check_table()), CHECK);
}

/// Rows given as JSON, of a type in Arrow text. Rows of an array or a matrix are read as the single column of a table.
fn from_json(text: &str, values: &str) -> Identity {
    let registry = Registry::default();
    let values: Value = serde_json::from_str(values).unwrap();
    let schema = Arc::new(parse_schema(text, &Limits::default()).unwrap());
    let is_table = Form::of(&schema) == Form::Table;
    let line = |row: &Value| if is_table { format!("{row}\n") } else { format!("{{\"x\": {row}}}\n") };
    let lines: String = values.as_array().unwrap().iter().map(line).collect();
    let mut options = OpenOptions::default();
    options.from = Some("jsonl".to_owned());
    let column = || Schema::new(vec![schema.field(0).clone().with_name("x")]);
    options.type_text = Some(if is_table { text.to_owned() } else { print_schema(&column()) });
    let source = Source::from_bytes("x.jsonl", lines.into_bytes());
    let opened = job::open_source(&registry, source, None, &options).unwrap();
    let rows = opened.rows(&View::default()).unwrap();
    let mut hasher = RowHasher::new(&schema, &IdentityOptions::default()).unwrap();
    for batch in rows {
        let columns = batch.unwrap().columns().to_vec();
        hasher.push(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()).unwrap();
    }
    hasher.finish().unwrap()
}

#[test]
fn the_vectors_of_the_document_hold() {
    let page = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/identity.md"),
    )
    .unwrap();
    let vectors = page.lines().filter(|line| line.contains("| `bafkr4i"));
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in vectors {
        let cells: Vec<&str> = line.split(" | ").map(|cell| cell.trim_matches(['|', ' ', '`'])).collect();
        let [text, values, expected] = cells[..] else { panic!("{line}") };
        let found = from_json(text, values).cid().unwrap().to_string();
        if found != expected {
            wrong.push(format!("{text} {values}: {found}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 10, "{count} vectors");
}

#[test]
fn encodings_offsets_and_nullability_do_not_matter() {
    let texts = [Some("a"), None, Some("b"), Some("a"), None];
    let expected = cid(&column(Arc::new(StringArray::from(texts.to_vec()))));
    let dictionary: DictionaryArray<Int32Type> = texts.into_iter().collect();
    let runs: RunArray<Int32Type> = texts.into_iter().collect();
    let padded = StringArray::from([&[Some("zzz")], &texts[..], &[None]].concat());
    let sliced = arrow_array::Array::slice(&padded, 1, 5);
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(LargeStringArray::from(texts.to_vec())),
        Arc::new(StringViewArray::from(texts.to_vec())),
        Arc::new(dictionary),
        Arc::new(runs),
        sliced,
    ];
    for array in arrays {
        assert_eq!(cid(&column(Arc::clone(&array))), expected, "{}", array.data_type());
    }
    let bools = || -> ArrayRef { Arc::new(BooleanArray::from(vec![true, false])) };
    let of = |nullable| {
        let schema = Schema::new(vec![Field::new("x", DataType::Boolean, nullable)]);
        cid(&RecordBatch::try_new(Arc::new(schema), vec![bools()]).unwrap())
    };
    assert_eq!(of(true), of(false));
}

#[test]
fn batches_threads_and_spooling_do_not_matter() {
    let rows = 150_000;
    let numbers: Int32Array = (0..rows).map(|row| (row % 7 != 0).then_some(row)).collect();
    let texts: StringArray = (0..rows).map(|row| Some(format!("text {row}"))).collect();
    let batch = RecordBatch::try_from_iter([
        ("n", Arc::new(numbers) as ArrayRef),
        ("t", Arc::new(texts)),
        ("d", Arc::new(Int32Array::from_iter_values(0..rows))),
    ])
    .unwrap();
    let expected = cid(&batch);
    for (size, threads) in [(1000, 1), (65_536, 2), (65_537, 3), (131_072, 2), (7777, 2)] {
        let mut options = IdentityOptions::default();
        options.control = crate::Control::new(threads);
        let mut hasher = RowHasher::new(&batch.schema(), &options).unwrap();
        for start in (0..batch.num_rows()).step_by(size) {
            hasher.push(&batch.slice(start, size.min(batch.num_rows() - start))).unwrap();
        }
        assert_eq!(hasher.finish().unwrap().cid().unwrap().to_string(), expected, "{size}");
    }
    // Values of 4 KiB, so that an unfinished chunk is far larger than what is kept in memory.
    let long = "x".repeat(4096);
    let texts: StringArray = (0..8192).map(|row| (row != 5).then_some(long.as_str())).collect();
    let batch = column(Arc::new(texts));
    let pieces: Vec<RecordBatch> = (0..9).map(|_| batch.clone()).collect();
    let whole = arrow_select::concat::concat_batches(&batch.schema(), &pieces).unwrap();
    let expected = cid(&whole);
    assert_eq!(identity(&pieces).cid().unwrap().to_string(), expected);
}

#[test]
fn names_types_values_and_missing_values_matter() {
    let table = check_table();
    let all = cid(&table);
    let mut others = vec![cid(&table.slice(0, 2)), cid(&table.project(&[1, 0, 2]).unwrap())];
    let zero = |value: f64| cid(&column(Arc::new(arrow_array::Float64Array::from(vec![value]))));
    others.extend([zero(0.0), zero(-0.0), zero(f64::NAN), zero(-f64::NAN)]);
    let text = |values: Vec<Option<&str>>| cid(&column(Arc::new(StringArray::from(values))));
    others.extend([text(vec![None]), text(vec![Some("")]), text(vec![]), text(vec![None, None])]);
    let date = |unit: DataType| cid(&column(arrow_cast::cast(&Int32Array::from(vec![3]), &unit).unwrap()));
    others.extend([date(DataType::Int32), date(DataType::Date32), date(DataType::UInt32)]);
    others.push(all);
    let count = others.len();
    others.sort();
    others.dedup();
    assert_eq!(others.len(), count);
}

#[test]
fn a_union_has_no_identity() {
    let field = Field::new("a", DataType::Int32, true);
    let union = arrow_schema::UnionFields::try_new([0], [field]).unwrap();
    let union = DataType::Union(union, arrow_schema::UnionMode::Dense);
    let schema = Arc::new(Schema::new(vec![Field::new("u", union, false)]));
    let error = RowHasher::new(&schema, &IdentityOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

/// Writes rows in a format and reads them back; `None` where the format cannot hold them exactly.
fn through(batches: &[RecordBatch], to: &str, type_text: Option<&str>) -> Option<Identity> {
    let registry = Registry::default();
    let schema = batches[0].schema();
    let (sink, memory) = Sink::memory();
    let mut ipc = Vec::new();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut ipc, &schema).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    drop(writer);
    let source = Source::from_bytes("x.arrows", ipc);
    let opened = job::open_source(&registry, source, None, &OpenOptions::default()).unwrap();
    let target = job::target(&registry, to).unwrap();
    let conversion = job::Conversion::plan_opened(opened, target, None, &ConvertOptions::default()).ok()?;
    // A target that does not keep the size of a matrix holds other data.
    let loses_size = conversion.plan.to_string().contains(crate::hub::shape::SIZE_NOT_KEPT);
    if loses_size || conversion.plan.verdict() > crate::hub::Verdict::Checked {
        return None;
    }
    conversion.run_into(sink).ok()?;
    let mut options = OpenOptions::default();
    options.from = Some(to.to_owned());
    options.type_text = type_text.map(str::to_owned);
    options.options = OptionMap::default();
    let source = Source::from_bytes("x", memory.take());
    let opened = job::open_source(&registry, source, None, &options).unwrap();
    Some(opened.identity(&options).unwrap())
}

#[test]
fn one_table_has_one_identity_in_every_format() {
    let numbers: Vec<i64> = (0..1000).collect();
    let batch = RecordBatch::try_from_iter([
        ("i", Arc::new(arrow_array::Int64Array::from(numbers.clone())) as ArrayRef),
        ("f", Arc::new(numbers.iter().map(|n| Some(*n as f64 / 8.0)).collect::<arrow_array::Float64Array>())),
        ("t", Arc::new(numbers.iter().map(|n| Some(format!("text {n}"))).collect::<StringArray>())),
    ])
    .unwrap();
    let expected = identity(std::slice::from_ref(&batch));
    let mut held = Vec::new();
    for format in [
        "arrow",
        "arrow-stream",
        "parquet",
        "csv",
        "jsonl",
        "json",
        "ds",
        "ds:json",
        "dynd",
        "dynd:cbor",
        "bsondf",
    ] {
        let text =
            matches!(format, "csv" | "jsonl" | "json").then_some("struct{i: int64, f: float64, t: utf8}");
        if let Some(found) = through(std::slice::from_ref(&batch), format, text) {
            assert_eq!(found, expected, "{format}");
            held.push(format);
        }
    }
    assert_eq!(held.len(), 11, "{held:?}");
    // Not every dialect of DAPHNE frames holds such text, but all hold numbers.
    let numbers = batch.project(&[0, 1]).unwrap();
    let expected = identity(std::slice::from_ref(&numbers));
    for format in ["dbdf", "parquet", "bsondf", "dynd"] {
        assert_eq!(through(std::slice::from_ref(&numbers), format, None).unwrap(), expected, "{format}");
    }
}

/// A matrix, dense and sparse, with about half of its values zero.
fn matrices(random: &mut Random, rows_count: usize, cols: usize) -> (RecordBatch, RecordBatch) {
    let values = (0..rows_count * cols).map(|_| match random.below(4) {
        0 | 1 => 0.0,
        2 => -0.0,
        _ => random.below(100) as f64,
    });
    let values: arrow_array::Float64Array = values.map(Some).collect();
    let dense =
        Arc::new(shape::dense_schema(DataType::Float64, Some(rows_count as u64), cols as u64).unwrap());
    let DataType::FixedSizeList(item, size) = dense.field(0).data_type().clone() else { unreachable!() };
    let list =
        arrow_array::FixedSizeListArray::try_new_with_length(item, size, Arc::new(values), None, rows_count);
    let dense = RecordBatch::try_new(dense, vec![Arc::new(list.unwrap())]).unwrap();
    let plan = crate::convert::reshape::plan(&dense.schema(), Form::Sparse).unwrap();
    let stream = rows::from_batches(dense.schema(), [Ok(dense.clone())]);
    let none = crate::hub::LossKinds::NONE;
    let mut sparse = crate::convert::reshape::reshape(
        stream,
        &plan,
        &Limits::default().budget(),
        none,
        &Default::default(),
    )
    .unwrap();
    let sparse = sparse.next().unwrap().unwrap();
    (dense, sparse)
}

#[test]
fn dense_and_sparse_matrices_with_equal_values_are_equal() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (rows_count, cols) = (1 + random.below(20), 1 + random.below(9));
        let (dense, sparse) = matrices(&mut random, rows_count, cols);
        let expected = identity(std::slice::from_ref(&dense));
        assert_eq!((expected.shape, expected.cols), ("matrix", cols as u64));
        assert_eq!(identity(std::slice::from_ref(&sparse)), expected);
        for format in ["npy", "npz", "mtx", "dbdf", "dbdf:daphne", "arrow", "parquet", "dynd"] {
            for batch in [&dense, &sparse] {
                // mtx stores decimal text, which keeps -0.0.
                if let Some(found) = through(std::slice::from_ref(batch), format, None) {
                    assert_eq!(found.cid().unwrap(), expected.cid().unwrap(), "seed {seed}, {format}");
                }
            }
        }
    }
}

#[test]
fn a_column_twice_in_a_row_is_refused() {
    let (_, sparse) = matrices(&mut Random::new(1), 3, 4);
    let schema = sparse.schema();
    let DataType::LargeList(entry) = schema.field(0).data_type().clone() else { unreachable!() };
    let DataType::Struct(fields) = entry.data_type().clone() else { unreachable!() };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(arrow_array::UInt32Array::from(vec![1, 1])),
        Arc::new(arrow_array::Float64Array::from(vec![1.0, 2.0])),
    ];
    let entries = arrow_array::StructArray::try_new(fields, columns, None).unwrap();
    let offsets = arrow_buffer::OffsetBuffer::new(vec![0i64, 2].into());
    let list = arrow_array::LargeListArray::try_new(entry, offsets, Arc::new(entries), None).unwrap();
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(list)]).unwrap();
    let mut hasher = RowHasher::new(&schema, &IdentityOptions::default()).unwrap();
    let error = hasher.push(&batch).and_then(|()| hasher.finish().map(drop)).unwrap_err();
    assert!(error.message().contains("column 1 twice"), "{error}");
}
