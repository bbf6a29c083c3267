//! Through the hub and back to the same bytes; what the hub shows.

use crate::hub::Verdict;
use crate::testing::asked::Asked;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};

use super::super::*;
use super::golden::{bytes_of, golden, type_of, value_of};
use crate::hub::rows::Rows;
use crate::testing::writing::Writing as _;
use crate::{Error, ErrorKind, Limits, Sink, Source};

pub(super) fn open(bytes: &[u8], options: &ReadOptions) -> Result<Arc<dyn Document>> {
    Dynd.open(Source::from_bytes("t", bytes.to_vec()), options)
}

pub(super) fn dialect(name: &str) -> ReadOptions {
    ReadOptions { dialect: Some(name.to_owned()), ..ReadOptions::default() }
}

pub(super) fn raw(ty: &str) -> ReadOptions {
    ReadOptions { type_text: Some(ty.to_owned()), ..dialect("raw") }
}

pub(super) fn batches(rows: Rows) -> Result<Vec<RecordBatch>> {
    rows.map(|batch| batch.map_err(Error::from)).collect()
}

pub(super) fn write(rows: Rows, options: &WriteOptions) -> Result<Vec<u8>> {
    let (sink, memory) = Sink::memory();
    let schema = rows.schema();
    Dynd.steps(&schema, options).check(crate::hub::LossKinds::NONE)?;
    let mut writer = Dynd.create(sink, schema, options)?;
    for batch in rows {
        writer.write(&batch.map_err(Error::from)?)?;
    }
    writer.finish()?;
    Ok(memory.take())
}

pub(super) fn array_any(ty: &Type, value: &Value) -> Vec<u8> {
    let any: Type = "array[Any]".parse().unwrap();
    write_value(&any, &Value::array(ty.clone(), value.clone())).unwrap()
}

/// Reads `bytes` in one dialect and writes them in each; all must give the one form again.
pub(super) fn check_round_trip(ty: &Type, value: &Value) {
    let (any, cbor, data) =
        (array_any(ty, value), write_cbor(ty, value).unwrap(), write_value(ty, value).unwrap());
    let text = ty.to_string();
    let inputs = [(&any, ReadOptions::default()), (&cbor, dialect("cbor")), (&data, raw(&text))];
    for (bytes, options) in &inputs {
        let document = open(bytes, options).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut findings = crate::formats::Findings::new(false);
        document.validate(&mut findings).unwrap();
        assert!(findings.is_valid(), "{text}: {:?}", findings.list());
        for batch_rows in [0, 1] {
            for (name, expected) in [("array", &any), ("cbor", &cbor), ("raw", &data)] {
                let request = Asked { batch_rows, ..Asked::default() };
                let rows = document.ask(&request).unwrap_or_else(|error| panic!("{text}: {error}"));
                let options = WriteOptions { dialect: Some(name.to_owned()), ..WriteOptions::default() };
                let written =
                    write(rows, &options).unwrap_or_else(|error| panic!("{text} as {name}: {error}"));
                assert_eq!(&written, expected, "{text} as {name}");
            }
        }
        // A stream gives the same.
        let source = Source::from_reader("t", std::io::Cursor::new(bytes.to_vec()));
        let rows = Dynd.open(source, options).unwrap().all_rows().unwrap();
        assert_eq!(write(rows, &WriteOptions::default()).unwrap(), any, "{text} from a stream");
    }
}

#[test]
fn every_vector_goes_through_the_hub_to_its_own_bytes() {
    for vector in golden()["vectors"].as_array().unwrap() {
        let ty = type_of(&vector["type"]);
        check_round_trip(&ty, &value_of(&ty, &vector["value"]).unwrap());
    }
}

#[test]
fn a_selection_of_rows_keeps_its_type() {
    for (text, count, expected) in [
        ("4 * {a: ?int8, s: string}", Some(2), "2 * {a: ?int8, s: string}"),
        ("4 * ?date", Some(2), "2 * ?date"),
        ("4 * ?date", None, "var * ?date"),
        ("var * char", Some(2), "var * char"),
        ("storage[4 * 2 * int8, axis=[1, 0]]", Some(2), "storage[2 * 2 * int8, axis=[1, 0]]"),
    ] {
        let ty: Type = text.parse().unwrap();
        let schema = crate::hub::native::sliced(&Arc::new(ty.to_schema().unwrap()));
        let found = super::super::write::plan_type(&schema, None, count, false).ty.unwrap();
        assert_eq!(found.to_string(), expected, "{text}");
    }
}

#[test]
fn malformed_data_is_refused_by_rows_and_found_by_validate() {
    for vector in golden()["malformed"].as_array().unwrap() {
        let text = vector["type"].as_str().unwrap();
        let rule = vector["error"].as_str().unwrap();
        let bytes = bytes_of(&vector["hex"]);
        let limits = Limits { max_free_rows: 1 << 20, ..Limits::default() };
        let options = ReadOptions { budget: limits.budget(), ..raw(text) };
        let read = open(&bytes, &options).and_then(|document| batches(document.all_rows()?));
        let error = read.unwrap_err();
        assert_eq!(error.rule_name(), rule, "{vector}: {error}");
        assert!(error.offset().is_some(), "{vector}: {error}");
        if let Ok(document) = open(&bytes, &options) {
            let mut findings = crate::formats::Findings::new(false);
            document.validate(&mut findings).unwrap();
            assert_eq!(findings.list()[0].rule, rule, "{vector}");
        }
    }
}

#[test]
fn shapes_are_those_of_the_design() {
    let shape = |text: &str| {
        let schema = Type::parse(text).unwrap().to_schema().unwrap();
        let fields: Vec<_> =
            schema.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type())).collect();
        (crate::hub::Shape::of(&schema).name(), fields.join(", "))
    };
    assert_eq!(shape("var * {x: int32, y: string}"), ("table", "x: Int32, y: Utf8".to_owned()));
    assert_eq!(shape("3 * 4 * float64").0, "matrix");
    assert_eq!(shape("5 * ?int16"), ("array", "item: Int16".to_owned()));
    assert_eq!(shape("(int32, string)").0, "value");
    assert_eq!(shape("storage[3 * 4 * float64, order='F']").0, "matrix");
    assert_eq!(shape("pointer[var * pointer[{a: int8}]]"), ("table", "a: Int8".to_owned()));
    let tensor = Type::parse("2 * 3 * 4 * float64").unwrap().to_schema().unwrap();
    assert_eq!(crate::hub::extension::tensor_shape(tensor.field(0)), Some(vec![3, 4]));
    let void = Type::parse("2 * void").unwrap().to_schema().unwrap();
    assert!(!void.field(0).is_nullable());
}

#[test]
fn arrow_types_without_a_datashape_are_refused_by_the_plan() {
    let decimal = DataType::Decimal128(10, 2);
    let duration = DataType::Duration(arrow_schema::TimeUnit::Second);
    let entries = Field::new(
        "entries",
        DataType::Struct(
            vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)].into(),
        ),
        false,
    );
    let map = DataType::Map(Arc::new(entries), false);
    for data_type in [decimal, duration, map, DataType::FixedSizeBinary(0)] {
        let schema = Schema::new(vec![Field::new("x", data_type.clone(), false)]);
        let plan = Dynd.steps(&schema, &WriteOptions::default());
        assert_eq!(plan.verdict(), Verdict::Impossible, "{data_type}");
        assert_eq!(plan.check(crate::hub::LossKinds::ALL).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
