mod budget;
mod by_column;
mod columns;
mod filtered;
mod image_files;
mod joined;
mod pipeline;
mod salvaged;
mod shapes;

use std::io::Write as _;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use serde_json::Value;

use super::*;
use crate::error::{Error, ErrorKind, Result};
use crate::hub::type_text::print_exact_schema;
use crate::hub::{Form, Verdict};
use crate::registry::Registry;
use crate::sink::Sink;
use crate::source::Source;
use crate::testing::arbitrary::Random;
use crate::testing::conformance::collect;
use crate::testing::writing::Writing as _;

/// Formats that hold tables, with the dialect that is written.
const TABLES: [&str; 11] = [
    "dbdf",
    "ds:msgpack",
    "ds:json",
    "dynd",
    "bsondf",
    "arrow",
    "arrow-stream",
    "parquet",
    "csv",
    "jsonl",
    "json",
];

fn arrow_file(registry: &Registry, schema: &SchemaRef, batches: &[RecordBatch]) -> Vec<u8> {
    let arrow = registry.get("arrow").unwrap();
    let (sink, memory) = Sink::memory();
    let mut writer = arrow.create(sink, Arc::clone(schema), &Default::default()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    memory.take()
}

/// Converts bytes of one format to another; `None` if the plan is not exact.
fn convert(
    registry: &Registry,
    bytes: Vec<u8>,
    from: &str,
    type_text: &str,
    to: &str,
) -> Option<Result<Vec<u8>>> {
    let mut options = ConvertOptions::default();
    options.open.from = Some(from.to_owned());
    options.open.type_text = matches!(from, "csv" | "jsonl" | "json").then(|| type_text.to_owned());
    let opened = open_source(registry, Source::from_bytes("data", bytes), None, &options.open).unwrap();
    let target = target(registry, to).unwrap();
    let conversion = Conversion::plan_opened(opened, target, None, &options).unwrap();
    if conversion.plan.verdict() != Verdict::Exact {
        return None;
    }
    let (sink, memory) = Sink::memory();
    Some(conversion.run_into(sink).map(|_| memory.take()))
}

fn read(registry: &Registry, bytes: Vec<u8>, from: &str, type_text: &str) -> RecordBatch {
    let mut options = OpenOptions::default();
    options.from = Some(from.to_owned());
    options.type_text = matches!(from, "csv" | "jsonl" | "json").then(|| type_text.to_owned());
    let opened = open_source(registry, Source::from_bytes("data", bytes), None, &options).unwrap();
    collect(opened.rows(&View::default()).unwrap()).unwrap()
}

#[test]
fn what_the_plan_calls_exact_comes_back_equal_through_every_pair_of_formats() {
    let registry = Registry::default();
    let mut compared = 0;
    let mut wrong = Vec::new();
    for (index, first) in TABLES.iter().enumerate() {
        for (other, second) in TABLES.iter().enumerate() {
            for seed in 0..3u64 {
                let mut random = Random::new(seed * 1000 + (index * 100 + other) as u64);
                let exact = |format: &str, field: &arrow_schema::Field| {
                    let named = target(&registry, format).unwrap();
                    let mut options = crate::formats::WriteOptions::default();
                    options.dialect = named.dialect.map(str::to_owned);
                    let alone = Schema::new(vec![field.clone()]);
                    named.format.steps(&alone, &options).verdict() == Verdict::Exact
                };
                let schema = random.schema_of(|field| exact(first, field) && exact(second, field));
                if Form::of(&schema) != Form::Table {
                    continue;
                }
                let batches = random.batches(&schema);
                let type_text = format!("arrow:{}", print_exact_schema(&schema));
                let what = format!("{first} -> {second}, seed {seed}, {type_text}");
                let start = arrow_file(&registry, &schema, &batches);
                let Some(middle) = convert(&registry, start, "arrow", &type_text, first) else { continue };
                let middle = match middle {
                    Ok(middle) => middle,
                    Err(error) => {
                        wrong.push(format!("{what}: {error}"));
                        continue;
                    }
                };
                let Some(end) = convert(&registry, middle, first, &type_text, second) else { continue };
                let end = match end {
                    Ok(end) => end,
                    Err(error) => {
                        wrong.push(format!("{what}: {error}"));
                        continue;
                    }
                };
                let found = read(&registry, end, second, &type_text);
                let expected = arrow_select::concat::concat_batches(&schema, &batches).unwrap();
                // The names of list items are not data.
                let same = |(left, right): (&ArrayRef, &ArrayRef)| {
                    left.data_type().equals_datatype(right.data_type())
                        && arrow_cast::cast(right, left.data_type()).is_ok_and(|right| *left == right)
                };
                let all = expected.columns().iter().zip(found.columns()).all(same);
                if found.num_rows() != expected.num_rows() || !all {
                    wrong.push(format!("{what}: found {:?}", found.schema().fields()));
                }
                compared += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 40, "{compared}");
}

/// The casts of other programs of the format, with their examples.
#[test]
fn every_cast_of_ds_is_planned_and_run_as_its_types_say() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/ds/casts.json");
    let casts: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let registry = Registry::default();
    let limits = crate::Limits::default();
    let schema = |kind: &Value| {
        let text = format!("ds:{kind}");
        parse_type(&text, None, &limits).unwrap_or_else(|error| panic!("{text}: {error}")).schema().unwrap()
    };
    let verdict = |case: &Value| {
        crate::convert::adapt::adapter(&schema(&case["from"]), &schema(&case["to"])).plan.verdict()
    };
    for case in casts["fundamental"].as_array().unwrap() {
        let (scala, go) = (&case["scala"], &case["go"]);
        let found = verdict(case);
        let safe = |program: &Value| program["loosing"] == false && program["canFail"] == false;
        let to_void = case["to"] == "void" && case["from"] != "void";
        match found {
            _ if to_void => assert_eq!(found, Verdict::Lossy, "{case}"),
            // The programs disagree about safe casts (Go: widening, Scala: bool); a cast that preserves every
            // value is safe.
            Verdict::Exact | Verdict::Widened => assert!(
                safe(scala) || safe(go) || case["from"] == "bool",
                "{case}: {found}, but neither program calls it safe"
            ),
            // Values that other programs change silently are errors here.
            Verdict::Checked | Verdict::Lossy => assert!(
                ["canFail", "loosing"].iter().any(|key| scala[key] == true || go[key] == true),
                "{case}"
            ),
            Verdict::Impossible => {
                assert!(scala.is_null() && go.is_null() || case["from"] == "void", "{case}")
            }
        }
    }
    let mut run = 0;
    for case in casts["composite_go"].as_array().unwrap().iter().chain(casts["values_go"].as_array().unwrap())
    {
        let Some(bundle) = case["bundle"].as_str() else { continue };
        let mut options = ConvertOptions::default();
        options.open.from = Some("ds:json".to_owned());
        options.as_type = Some(format!("ds:{}", case["to"]));
        options.allow_lossy = crate::hub::LossKinds::ALL;
        let source = Source::from_bytes("bundle.json", bundle.as_bytes().to_vec());
        let opened = open_source(&registry, source, None, &options.open).unwrap();
        let target = target(&registry, "ds:json").unwrap();
        let conversion = Conversion::plan_opened(opened, target, None, &options).unwrap();
        let (sink, memory) = Sink::memory();
        let done = conversion.run_into(sink).map(|_| memory.take());
        let (Some(expected), Ok(bytes)) = (case["go"]["value"].as_str(), &done) else {
            let error = done.as_ref().err().map(Error::kind);
            let refused = matches!(error, Some(ErrorKind::Lossy | ErrorKind::Unsupported) | None);
            assert!(refused, "{case}: {done:?}");
            continue;
        };
        let found: Value = serde_json::from_slice(bytes).unwrap();
        let expected: Value = serde_json::from_str(expected).unwrap();
        // A deliberate difference: floats are printed with the fewest digits.
        let by_choice = case["to"] == "string";
        assert!(same_numbers(&found["value"], &expected) || by_choice, "{case}: {found}");
        run += 1;
    }
    assert!(run > 30, "{run}");
}

/// Equal JSON, where `1` and `1.0` are the same number.
fn same_numbers(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_numbers(a, b))
        }
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

#[test]
fn a_file_is_not_converted_onto_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    std::fs::write(&path, "a\n1\n").unwrap();
    let name = path.to_str().unwrap();
    let mut options = ConvertOptions::default();
    options.force = true;
    let error = Conversion::plan(&Registry::default(), &[name], name, &options).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn a_failed_run_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("x.csv");
    let output = folder.path().join("x.dbdf");
    std::fs::write(&input, "a\n1\n\"\"\n").unwrap();
    std::fs::write(&output, "old").unwrap();
    let mut options = ConvertOptions::default();
    options.open.type_text = Some("arrow:struct{a: ?int64}".to_owned());
    options.force = true;
    let registry = Registry::default();
    let conversion =
        Conversion::plan(&registry, &[input.to_str().unwrap()], output.to_str().unwrap(), &options).unwrap();
    assert!(conversion.run(output.to_str().unwrap(), true).is_err());
    assert_eq!(std::fs::read(&output).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn packing_is_taken_off_by_name_and_by_magic() {
    use std::io::Write;

    use crate::source::Packing;
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::default();
    let text = "a,b\n1,x\n";
    for packing in Packing::ALL {
        for name in [format!("x.csv{}", packing.extension()), "x.csv".to_owned()] {
            let path = folder.path().join(name);
            let mut sink = Sink::create(&path, true).unwrap().packed(packing);
            sink.write_all(text.as_bytes()).unwrap();
            assert_eq!(sink.finish().unwrap(), text.len() as u64);
            let opened = open(&registry, path.to_str().unwrap(), &OpenOptions::default()).unwrap();
            assert_eq!(opened.format.info().id, "csv");
            // A compressed file can be read again.
            for _ in 0..2 {
                let rows = opened.rows(&View::default()).unwrap();
                assert_eq!(collect(rows).unwrap().num_rows(), 1);
            }
            let packed = std::fs::read(&path).unwrap();
            // Concatenated streams are one, as in the programs of these compressions.
            std::fs::write(&path, [packed.clone(), packed.clone()].concat()).unwrap();
            let twice = open(&registry, path.to_str().unwrap(), &OpenOptions::default()).unwrap();
            assert_eq!(collect(twice.rows(&View::default()).unwrap()).unwrap().num_rows(), 3);
            for cut in [packed.len() / 2, packed.len() - 1] {
                let source =
                    Source::from_bytes(format!("x.csv{}", packing.extension()), packed[..cut].to_vec());
                let error = open_source(&registry, source, None, &OpenOptions::default()).err().unwrap();
                assert_eq!(error.kind(), ErrorKind::Truncated, "{packing:?} cut at {cut}: {error}");
            }
        }
        // Endless output of a decoder reaches the limit.
        let (sink, memory) = Sink::memory();
        let mut sink = sink.packed(packing);
        sink.write_all(&vec![b'x'; 64 << 20]).unwrap();
        sink.finish().unwrap();
        let source = Source::from_bytes("x.csv", memory.take());
        let mut options = OpenOptions::default();
        options.budget = crate::Limits { max_ratio: 100, ..crate::Limits::default() }.budget();
        let error = open_source(&registry, source, None, &options)
            .and_then(|opened| opened.count(None))
            .err()
            .unwrap();
        assert_eq!(error.kind(), ErrorKind::Limit, "{packing:?}: {error}");
        // The name is wrong.
        let source = Source::from_bytes(format!("x.csv{}", packing.extension()), b"a,b\n".to_vec());
        let error = open_source(&registry, source, None, &OpenOptions::default()).err().unwrap();
        let expected =
            format!("at byte 0: expected {}, as the name says, found something else", packing.name());
        assert_eq!(error.to_string(), expected);
    }
    let python = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/csv/west.csv.bz2");
    let opened = open(&registry, python.to_str().unwrap(), &OpenOptions::default()).unwrap();
    assert_eq!(collect(opened.rows(&View::default()).unwrap()).unwrap().num_rows(), 3);
}

#[test]
fn matrices_without_columns_and_of_complex_numbers_come_back_from_tables() {
    let registry = Registry::default();
    let header = |descr: &str, shape: &str| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let text = format!("{text:<117}\n");
        [b"\x93NUMPY\x01\x00\x76\x00".as_slice(), text.as_bytes()].concat()
    };
    let complex = [header("<c16", "(2, 1)"), (0..32).collect()].concat();
    for bytes in [header("<f8", "(3, 0)"), header("<f8", "(0, 0)"), complex] {
        for middle in ["arrow", "arrow-stream", "parquet"] {
            let there = convert(&registry, bytes.clone(), "npy", "", middle).unwrap().unwrap();
            let back = convert(&registry, there, middle, "", "npy");
            let back = back.unwrap_or_else(|| panic!("{middle}: the way back is not exact")).unwrap();
            assert_eq!(back, bytes, "{middle}");
        }
    }
}

#[test]
fn rows_and_columns_are_chosen_by_text() {
    assert_eq!(parse_rows("3..").unwrap(), 3..u64::MAX);
    assert_eq!(parse_rows("..5").unwrap(), 0..5);
    assert_eq!(parse_rows("5..5").unwrap(), 5..5);
    for bad in ["7..5", "3..1", "5", "a..b", ""] {
        assert_eq!(parse_rows(bad).unwrap_err().kind(), ErrorKind::Usage, "{bad}");
    }
    assert_eq!(parse_columns(r"a,b\,c,"), ["a", "b,c", ""]);
}

/// Converts the given rows of a document named `name` to `to`.
fn convert_rows(name: &str, bytes: &[u8], to: &str, rows: std::ops::Range<u64>) -> Vec<u8> {
    let registry = Registry::default();
    let mut options = ConvertOptions::default();
    options.rows = Some(rows);
    let source = Source::from_bytes(name, bytes.to_vec());
    let opened = open_source(&registry, source, None, &options.open).unwrap();
    let target = target(&registry, to).unwrap();
    let conversion = Conversion::plan_opened(opened, target, None, &options).unwrap();
    assert_eq!(conversion.plan.verdict(), Verdict::Exact, "{:?}", conversion.plan);
    let (sink, memory) = Sink::memory();
    conversion.run_into(sink).unwrap();
    memory.take()
}

#[test]
fn a_selection_of_rows_keeps_the_native_type_and_adapts_its_count() {
    let bundle = |rows: &str, value: &str| {
        let columns = r#"{"x":{"type":"array","underlying":{"type":"struct","fields":{"a":"int32"}}},"n":{"type":"nullable","underlying":{"type":"nullable","underlying":"void"}}}"#;
        format!(r#"{{"type":{{"type":"tabular","columns":{columns}{rows}}},"value":{value}}}"#)
    };
    let whole = bundle(r#","rowCount":3"#, "[[[[1]],null],[[],null],[[[2],[3]],null]]");
    let rows = |bytes: &str, rows| {
        String::from_utf8(convert_rows("x.json", bytes.as_bytes(), "ds:json", rows)).unwrap()
    };
    assert_eq!(rows(&whole, 0..u64::MAX), whole);
    assert_eq!(rows(&whole, 1..u64::MAX), bundle(r#","rowCount":2"#, "[[[],null],[[[2],[3]],null]]"));
    assert_eq!(rows(&whole, 0..1), bundle(r#","rowCount":1"#, "[[[[1]],null]]"));
    assert_eq!(rows(&whole, 3..9), bundle(r#","rowCount":0"#, "[]"));
    // No row is invented.
    let free = bundle("", "[[[[1]],null],[[],null]]");
    assert_eq!(rows(&free, 1..2), bundle("", "[[[],null]]"));
    // Also through another format, with rows selected twice.
    let array = br#"{"type":{"type":"array","underlying":"int32"},"value":[1,2,3]}"#;
    let arrow = convert_rows("x.json", array, "arrow", 1..3);
    let back = convert_rows("x.arrow", &arrow, "ds:json", 0..1);
    assert_eq!(
        String::from_utf8(back).unwrap(),
        r#"{"type":{"type":"array","underlying":"int32"},"value":[2]}"#
    );
}

#[test]
fn half_a_bundle_is_a_bundle_that_lacks_a_key() {
    let registry = Registry::default();
    let format = |name: &str, text: &str| {
        let source = Source::from_bytes(name, text.as_bytes().to_vec());
        registry.detect(&source).unwrap().info().id
    };
    for text in [r#"{"type":"int32"}"#, r#"{"value":3}"#, " {\"value\" : [1]}\n\n"] {
        assert_eq!(format("x.ds.json", text), "ds", "{text}");
        assert_eq!(format("x.json", text), "jsonl", "{text}");
        assert_eq!(format("x.jsonl", text), "jsonl", "{text}");
        let source = Source::from_bytes("x.ds.json", text.as_bytes().to_vec());
        let error = open_source(&registry, source, None, &OpenOptions::default()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
    }
    for text in ["{\"type\":\"a\"}\n{\"type\":\"b\"}\n", "{\"value\":3}\n{\"value\":4}", r#"{"x":3}"#] {
        assert_eq!(format("x.json", text), "jsonl", "{text}");
    }
}

#[test]
fn a_packed_file_has_no_index() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.ds.gz", "x.ds"] {
        let path = folder.path().join(name);
        let mut sink = Sink::create(&path, true).unwrap().packed(crate::source::Packing::Gzip);
        sink.write_all(b"\x81\xa6format\xa5int32\x01").unwrap();
        sink.finish().unwrap();
        let error = index(&Registry::default(), path.to_str().unwrap(), &OpenOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("gzip"), "{error}");
    }
}

/// A plan prints types as Arrow type text, never with their names in the code.
#[test]
fn plans_print_types_as_type_text() {
    use arrow_schema::{DataType, Field, Fields, UnionFields, UnionMode};
    let registry = Registry::default();
    let mut types = Random::leaves();
    for leaf in types.clone() {
        let item = Arc::new(Field::new_list_field(leaf.clone(), true));
        let entries = vec![Field::new("k", DataType::Utf8, false), Field::new("v", leaf.clone(), true)];
        let entries = Field::new("entries", DataType::Struct(Fields::from(entries)), false);
        let parts: UnionFields = [(0, Arc::clone(&item))].into_iter().collect();
        types.extend([
            DataType::Map(Arc::new(entries), false),
            DataType::Union(parts, UnionMode::Sparse),
            DataType::LargeList(Arc::clone(&item)),
            DataType::ListView(item),
        ]);
        if leaf != DataType::Null {
            types.push(DataType::Dictionary(Box::new(DataType::Int16), Box::new(leaf)));
        }
    }
    for data_type in types {
        let schema = Schema::new(vec![Field::new("x", data_type, true)]);
        for format in registry.formats() {
            let text = format.steps(&schema, &Default::default()).to_string();
            for word in
                ["Utf8", "Int16", "Struct(", "Map(", "List(", "Union(", "Timestamp(", "Interval(", "non-null"]
            {
                assert!(!text.contains(word), "{}: {text}", format.info().id);
            }
        }
    }
}

#[test]
fn the_type_that_is_named_is_the_one_that_is_written() {
    let registry = Registry::default();
    for shape in ["(2, 3)", "(6,)", "(1, 2, 3)"] {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
        let header = [b"\x93NUMPY\x01\x00\x76\x00".as_slice(), format!("{text:<117}\n").as_bytes()].concat();
        let array = [header, vec![0; 48]].concat();
        for (to, language) in [("ds:json", Language::Ds), ("dynd", Language::Dynd)] {
            let mut options = OpenOptions::default();
            let source = Source::from_bytes("x.npy", array.clone());
            let opened = open_source(&registry, source, None, &options).unwrap();
            let named = document_type(opened.document.summary(), language).unwrap();
            let written = convert_all(&registry, array.clone(), "npy", to);
            options.from = Some(to.to_owned());
            let opened = open_source(&registry, Source::from_bytes("x", written), None, &options).unwrap();
            assert_eq!(named, document_type(opened.document.summary(), language).unwrap(), "{to} {shape}");
        }
    }
}

/// Both original implementations of bsondf, and Arrow, keep values of a dictionary that no row uses.
#[test]
fn dictionary_values_that_no_row_uses_are_kept() {
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, ListArray, StringArray};
    use arrow_schema::{DataType, Field};
    let registry = Registry::default();
    let words = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let none = DictionaryArray::<Int8Type>::new(Int8Array::from(Vec::<i8>::new()), words.clone());
    let kind = none.data_type().clone();
    let item = Arc::new(Field::new_list_field(kind.clone(), true));
    let lists = |count: usize| -> ArrayRef {
        let offsets = arrow_buffer::OffsetBuffer::from_lengths(std::iter::repeat_n(0, count));
        Arc::new(ListArray::new(Arc::clone(&item), offsets, Arc::new(none.clone()), None))
    };
    let field = |data_type: &DataType| Field::new("x", data_type.clone(), true);
    let list = DataType::List(Arc::clone(&item));
    let cases: [(Field, ArrayRef); 3] =
        [(field(&kind), Arc::new(none.clone())), (field(&list), lists(0)), (field(&list), lists(2))];
    let values = |batch: &RecordBatch| -> usize {
        let column = batch.column(0);
        let items = column.as_any().downcast_ref::<ListArray>().map(|list| Arc::clone(list.values()));
        let dictionary = items.unwrap_or_else(|| Arc::clone(column));
        dictionary.as_any().downcast_ref::<DictionaryArray<Int8Type>>().unwrap().values().len()
    };
    for (index, (field, column)) in cases.into_iter().enumerate() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
        for first in ["arrow", "arrow-stream"] {
            let named = registry.get(first).unwrap();
            let (sink, memory) = Sink::memory();
            let mut writer = named.create(sink, Arc::clone(&schema), &Default::default()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            let start = memory.take();
            let direct = read_first(&registry, start.clone(), first);
            assert_eq!(values(&direct), 3, "case {index}, {first}");
            let bson = convert_all(&registry, start, first, "bsondf");
            assert_eq!(
                values(&read_first(&registry, bson.clone(), "bsondf")),
                3,
                "case {index}, {first} to bsondf"
            );
            for second in ["arrow", "arrow-stream"] {
                let back = convert_all(&registry, bson.clone(), "bsondf", second);
                assert_eq!(
                    values(&read_first(&registry, back, second)),
                    3,
                    "case {index}, bsondf to {second}"
                );
            }
        }
    }
}

fn read_first(registry: &Registry, bytes: Vec<u8>, from: &str) -> RecordBatch {
    let mut options = OpenOptions::default();
    options.from = Some(from.to_owned());
    let opened = open_source(registry, Source::from_bytes("data", bytes), None, &options).unwrap();
    let mut rows = opened.rows(&View::default()).unwrap();
    rows.next().expect("a batch that has the dictionary").unwrap()
}

fn convert_all(registry: &Registry, bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    let mut options = ConvertOptions::default();
    options.open.from = Some(from.to_owned());
    options.allow_lossy = crate::hub::LossKinds::ALL;
    let opened = open_source(registry, Source::from_bytes("data", bytes), None, &options.open).unwrap();
    let target = target(registry, to).unwrap();
    let conversion = Conversion::plan_opened(opened, target, None, &options).unwrap();
    let (sink, memory) = Sink::memory();
    conversion.run_into(sink).unwrap();
    memory.take()
}

#[test]
fn a_run_says_what_it_lost() {
    use crate::hub::{LossKind, LossKinds};
    use arrow_array::{Float64Array, TimestampNanosecondArray};
    let registry = Registry::default();
    let times: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![100, 149, 150, 250]));
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), None, Some(f64::NAN), Some(2.0)]));
    let run = |name: &str, column: &ArrayRef, to: &str, allowed: LossKinds| {
        let field = arrow_schema::Field::new(name, column.data_type().clone(), true);
        let schema: SchemaRef = Arc::new(Schema::new(vec![field]));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(column)]).unwrap();
        let mut options = ConvertOptions::default();
        options.open.from = Some("arrow".to_owned());
        options.allow_lossy = allowed;
        let source = Source::from_bytes("data", arrow_file(&registry, &schema, &[batch]));
        let opened = open_source(&registry, source, None, &options.open).unwrap();
        let target = target(&registry, to).unwrap();
        let conversion = Conversion::plan_opened(opened, target, None, &options).unwrap();
        let (sink, memory) = Sink::memory();
        conversion.run_into(sink).map(|report| (report.lost, memory.take()))
    };
    // Ticks of 100 ns: rounded to nearest even.
    assert_eq!(run("t", &times, "dynd", LossKinds::NONE).unwrap_err().kind(), ErrorKind::Lossy);
    let (lost, bytes) = run("t", &times, "dynd", LossKind::Precision.into()).unwrap();
    let back = read(&registry, bytes, "dynd", "");
    let expected: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![100, 100, 200, 200]));
    assert_eq!(back.column(0), &expected);
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].kind, lost[0].column.as_str(), lost[0].values), (LossKind::Precision, "t", 3));
    assert_eq!(lost[0].example.as_deref(), Some("149"));
    // NaN has no JSON form: null, where the column is nullable.
    assert_eq!(run("x", &numbers, "ds:json", LossKinds::NONE).unwrap_err().kind(), ErrorKind::Lossy);
    let (lost, bytes) = run("x", &numbers, "ds:json", LossKind::Range.into()).unwrap();
    assert_eq!(read(&registry, bytes, "ds:json", "").column(0).null_count(), 2);
    assert_eq!((lost[0].kind, lost[0].values), (LossKind::Range, 1));
    // A matrix has no nulls.
    assert_eq!(run("x", &numbers, "npy", LossKind::Names.into()).unwrap_err().kind(), ErrorKind::Lossy);
    let (lost, _) = run("x", &numbers, "npy", LossKind::Nulls.into()).unwrap();
    let found: Vec<_> = lost.iter().map(|lost| (lost.kind, lost.column.as_str(), lost.values)).collect();
    assert_eq!(found, [(LossKind::Nulls, "x", 1)]);
    let (lost, _) = run("x", &numbers, "dbdf", LossKinds::ALL).unwrap();
    assert_eq!((lost[0].kind, lost[0].values), (LossKind::Nulls, 1));
}
