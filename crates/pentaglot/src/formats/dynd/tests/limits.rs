//! Invalid input takes little memory; valid input that does not fit is an error with its place.

use crate::hub::Verdict;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{
    ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};

use arrow_schema::{DataType, TimeUnit};

use super::super::*;
use super::hub::{array_any, batches, dialect, open, raw, write};
use crate::formats::{Findings, OptionMap};
use crate::hub::rows;
use crate::testing::writing::Writing as _;
use crate::{Error, ErrorKind, Limits};

fn refused(bytes: &[u8], options: &ReadOptions) -> Error {
    let start = Instant::now();
    let error = open(bytes, options).and_then(|document| batches(document.all_rows()?)).unwrap_err();
    assert!(start.elapsed().as_secs() < 2, "at once: {error}");
    error
}

fn any(text: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::wire::varint::write(text.len() as u64, &mut bytes);
    [&bytes, text.as_bytes(), data].concat()
}

#[test]
fn claims_of_elements_without_bytes_meet_a_limit_at_once() {
    let all = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    for text in [
        "var * void",
        "var * ()",
        "var * ?void",
        "var * 0 * int32",
        "var * 0 * string",
        "(var * void)",
        "(var * 0 * string)",
    ] {
        assert_eq!(refused(&any(text, &all), &ReadOptions::default()).kind(), ErrorKind::Limit, "{text}");
        let ty: Type = text.parse().unwrap();
        assert_eq!(read_value(&all, &ty, &Limits::default()).unwrap_err().kind(), ErrorKind::Limit, "{text}");
    }
    for text in [
        "9223372036854775807 * void",
        "(9223372036854775807 * void)",
        "9223372036854775807 * 9223372036854775807 * void",
        "var * 1000000 * 1000000 * 1000000 * 1000000 * void",
        "1000 * array[Any]",
    ] {
        let error = refused(&any(text, &[1]), &ReadOptions::default());
        assert!(matches!(error.kind(), ErrorKind::Limit | ErrorKind::Truncated), "{text}: {error}");
    }
    // A missing value of a large fixed dimension takes one byte here and many in Arrow.
    let text = "var * ?1000000000 * int64";
    let error = refused(&any(text, &[3, 0, 0, 0]), &ReadOptions::default());
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn deep_types_and_bombs_meet_a_limit_at_once() {
    for text in [
        "1 * ".repeat(10_000) + "int8",
        "(".repeat(10_000),
        "{a: ".repeat(10_000),
        "pointer[".repeat(10_000),
        "array[".repeat(10_000),
        "2**10000 * int8".to_owned(),
        "T[".repeat(10_000),
        "() -> ".repeat(10_000),
        "2**100 * 2**100 * int8".to_owned(),
    ] {
        let error = text.parse::<Type>().unwrap_err();
        assert_eq!((error.kind(), error.rule_name()), (ErrorKind::Limit, "depth"), "{}", &text[..20]);
        assert_eq!(refused(&any(&text, &[]), &ReadOptions::default()).kind(), ErrorKind::Limit);
    }
    let deep = Limits { max_depth: u32::MAX, ..Limits::default() };
    assert_eq!(Type::parse_within(&"(".repeat(100_000), &deep).unwrap_err().kind(), ErrorKind::Limit);
    // array[Any] in array[Any] in …
    let mut bomb = Vec::new();
    (0..10_000).for_each(|_| bomb.extend_from_slice(b"\x0aarray[Any]"));
    assert_eq!(refused(&bomb, &ReadOptions::default()).rule_name(), "depth");
    let nested = vec![0x81; 10_000];
    assert_eq!(refused(&nested, &dialect("cbor")).rule_name(), "depth");
    // Patterns that could be tried in very many ways.
    let pattern: String = (0..40).map(|index| format!("D{index}... * ")).collect::<String>() + "int8";
    let stored = "1 * ".repeat(60) + "int16";
    let error = refused(&any(&format!("array[{pattern}]"), &any(&stored, &[0, 0])), &ReadOptions::default());
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn lengths_are_checked_against_the_bytes_left() {
    let limits = Limits { max_alloc: 1 << 16, ..Limits::default() };
    for (text, data) in [
        ("bytes", &[0xff, 0xff, 0xff, 0xff, 0x7f][..]),
        ("var * string", &[0xff, 0xff, 0xff, 0xff, 0x7f]),
        ("var * int64", &[0xff, 0xff, 0xff, 0xff, 0x7f]),
        ("(var * var * int64)", &[0xff, 0xff, 0xff, 0xff, 0x7f]),
        ("1000000000000 * int64", &[]),
    ] {
        let options = ReadOptions { budget: limits.budget(), ..ReadOptions::default() };
        let error = refused(&any(text, data), &options);
        assert_eq!(error.kind(), ErrorKind::Truncated, "{text}: {error}");
    }
}

#[test]
fn errors_name_offset_and_path() {
    let error = |text: &str, data: &[u8]| refused(data, &raw(text)).to_string();
    assert_eq!(
        error("var * {x: int8, y: (bool, string)}", &[2, 1, 1, 0, 1, 7, 0]),
        "dynd: at byte 5, [1].y[0]: expected a bool 00 or 01, found 07"
    );
    assert_eq!(
        error("3 * {a: bool, b: int16}", &[0, 1, 1, 1, 2, 2, 9, 3, 3]),
        "dynd: at byte 6, [2].a: expected a bool 00 or 01, found 09"
    );
    assert_eq!(
        error("var * string", &[2, 0, 2, 0xc3, 0x28]),
        "dynd: at byte 3, [1]: expected UTF-8, found byte c3"
    );
    assert_eq!(
        error("{s: ?string}", &[5]),
        "dynd: at byte 0, [0].s: expected a flag 00 (missing) or 01, found 05"
    );
    assert_eq!(
        refused(b"\x03int\0\0\0\0", &ReadOptions::default()).to_string(),
        "dynd: at byte 4, type: expected the canonical type text `int32`, found `int`"
    );
    assert_eq!(
        refused(b"\x05int33", &ReadOptions::default()).to_string(),
        "dynd: at byte 1, type: expected a type, found `int33`"
    );
    assert_eq!(error("int32", &[0; 5]), "dynd: at byte 4: expected the end, found 1 more bytes");
    let usage = open(&[], &dialect("raw")).map(drop).unwrap_err();
    assert_eq!(usage.kind(), ErrorKind::Usage);
}

#[test]
fn validate_goes_on_after_a_finding() {
    let document = open(&[3, 9, 1, 0xff, 7, 0, 1, 1, b'x'], &raw("var * {a: bool, b: string}")).unwrap();
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    let found: Vec<_> = findings
        .list()
        .iter()
        .map(|finding| (finding.rule.as_str(), finding.path.as_str(), finding.offset))
        .collect();
    assert_eq!(found, [("bool", "[0].a", Some(1)), ("utf8", "[0].b", Some(3)), ("bool", "[1].a", Some(4))]);
}

fn table(columns: Vec<(&str, ArrayRef, bool)>) -> rows::Rows {
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    rows::from_batches(batch.schema(), vec![Ok(batch)])
}

#[test]
fn a_value_that_means_missing_is_refused_or_flagged() {
    let column = || -> ArrayRef { Arc::new(Int32Array::from(vec![Some(1), None, Some(i32::MIN)])) };
    let plan = Dynd.steps(&table(vec![("x", column(), true)]).schema(), &WriteOptions::default());
    assert_eq!(plan.verdict(), Verdict::Checked);
    let error = write(table(vec![("x", column(), true)]), &WriteOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy);
    assert!(error.to_string().starts_with("dynd: row 2, column \"x\": "), "{error}");
    let options = WriteOptions {
        options: OptionMap::new(vec![("options".into(), "flag".into())]),
        ..WriteOptions::default()
    };
    assert_eq!(Dynd.steps(&table(vec![("x", column(), true)]).schema(), &options).verdict(), Verdict::Exact);
    let bytes = write(table(vec![("x", column(), true)]), &options).unwrap();
    assert_eq!(bytes, any("var * {x: ?pointer[int32]}", &[3, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0x80]));
    // With an additional text column rows have no fixed size; the result is the same.
    let texts = || -> ArrayRef { Arc::new(StringArray::from(vec!["a", "b", "c"])) };
    let error = write(table(vec![("t", texts(), false), ("x", column(), true)]), &WriteOptions::default())
        .unwrap_err();
    assert!(error.to_string().starts_with("dynd: row 2, column \"x\": "), "{error}");
}

#[test]
fn times_are_ticks_of_100_nanoseconds() {
    let nanos = |values: Vec<i64>| -> ArrayRef { Arc::new(TimestampNanosecondArray::from(values)) };
    let error =
        write(table(vec![("t", nanos(vec![100, 150]), false)]), &WriteOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "dynd: row 1, column \"t\": 150 is not a whole number of 100 ns in 64 bits"
    );
    let micros: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![3]));
    let bytes = write(table(vec![("t", micros, false)]), &WriteOptions::default()).unwrap();
    assert_eq!(bytes, any("var * {t: datetime}", &[1, 30, 0, 0, 0, 0, 0, 0, 0]));
    // Past 64 bits of nanoseconds, times are read as their ticks, unless timestamps are requested.
    let ty: Type = "var * {n: int8, t: ?datetime}".parse().unwrap();
    let row = |ticks: i128| Value::List(vec![Value::Int(0), Value::some(Value::Int(ticks))]);
    let bytes = array_any(&ty, &Value::List(vec![row(5), row(i128::from(i64::MAX))]));
    let document = open(&bytes, &ReadOptions::default()).unwrap();
    assert_eq!(document.summary().schema.field(1).data_type(), &DataType::Int64);
    assert!(document.summary().notes[0].starts_with("times are numbers of 100 ns"));
    assert_eq!(write(document.all_rows().unwrap(), &WriteOptions::default()).unwrap(), bytes);
    let mut timestamps = ReadOptions::default();
    timestamps.options.set("times", "timestamps");
    let error = refused(&bytes, &timestamps);
    assert_eq!(error.kind(), ErrorKind::Lossy);
    assert!(error.to_string().starts_with("dynd: row 1, column \"t\": "), "{error}");
    // If all fit, they are timestamps; ticks can be requested.
    let bytes = array_any(&ty, &Value::List(vec![row(5), Value::List(vec![Value::Int(1), Value::Missing])]));
    let mut ticks = ReadOptions::default();
    ticks.options.set("times", "ticks");
    for (options, expected) in
        [(ReadOptions::default(), DataType::Timestamp(TimeUnit::Nanosecond, None)), (ticks, DataType::Int64)]
    {
        let document = open(&bytes, &options).unwrap();
        assert_eq!(document.summary().schema.field(1).data_type(), &expected);
        assert_eq!(write(document.all_rows().unwrap(), &WriteOptions::default()).unwrap(), bytes);
    }
}

#[test]
fn patterns_match_as_in_libdynd() {
    let matches = |pattern: &str, ty: &str| pattern.parse::<Type>().unwrap().matches(&ty.parse().unwrap());
    assert!(matches("... * int32", "int32"));
    assert!(matches("... * int32", "3 * var * int32"));
    assert!(!matches("... * int32", "3 * int64"));
    assert!(matches("A... * (T, ... * T)", "4 * (int8, 5 * int8)"));
    assert!(!matches("A... * (T, ... * T)", "4 * (int8, 5 * bool)"));
    assert!(matches("(A... * int8, A... * bool)", "(2 * int8, 2 * bool)"));
    assert!(!matches("(A... * int8, A... * bool)", "(2 * int8, 3 * bool)"));
    assert!(matches("Fixed**N * int8", "2 * 3 * int8") && !matches("Fixed**N * int8", "2 * var * int8"));
    assert!(matches("A**N * int8", "2 * 2 * int8") && !matches("A**N * int8", "2 * 3 * int8"));
    assert!(matches("(M * int8, M * int8)", "(var * int8, var * int8)"));
    assert!(!matches("(M * int8, M * int8)", "(var * int8, 3 * int8)"));
    assert!(!matches("N * N", "3 * int8"));
    assert!(matches("Scalar", "{x: int8}") && !matches("Scalar", "3 * int8"));
    assert!(
        matches("String", "fixed_string[3]")
            && matches("Bytes", "bytes[3]")
            && !matches("FixedBytes", "bytes")
    );
    assert!(matches("array[Any]", "array[Any]") && !matches("array[Any]", "array[int8]"));
    assert!(matches("?T", "?int8") && !matches("?T", "int8") && !matches("T", "3 * int8"));
    assert!(matches("Dim * T", "var * int8") && matches("pointer[Int]", "pointer[int8]"));
}

#[test]
fn rows_wider_than_all_memory_are_cut_off() {
    // The widths of the fixed fields add up to 2^64.
    let half = "2147483647 * 2147483647 * 2 * {a: int8}";
    let fixed = format!("a: {half}, b: {half}, c: 2147483647 * 8 * {{a: int8}}, d: 4 * {{a: int8}}");
    for text in [format!("var * {{{fixed}, s: string}}"), format!("var * {{s: string, {fixed}}}")] {
        let data = [&[3][..], &[1; 100]].concat();
        assert_eq!(
            refused(&any(&text, &data), &ReadOptions::default()).kind(),
            ErrorKind::Truncated,
            "{text}"
        );
    }
}
