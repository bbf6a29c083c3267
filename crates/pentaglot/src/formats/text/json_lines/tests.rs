use crate::testing::asked::Asked;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::*;
use crate::formats::{Findings, Node};
use crate::hub::Verdict;
use crate::hub::json::{Columns, JsonOptions};
use crate::hub::type_text::{parse_schema, print_exact_schema, print_schema};
use crate::testing::arbitrary::Random;
use crate::testing::conformance::{Suite, collect};
use crate::testing::writing::Writing as _;
use crate::{ErrorKind, Limits};

fn source(text: impl AsRef<[u8]>) -> Source {
    Source::from_bytes("data.jsonl", text.as_ref().to_vec())
}

fn open(text: impl AsRef<[u8]>) -> Arc<dyn Document> {
    JsonLines.open(source(text), &ReadOptions::default()).unwrap()
}

fn typed(text: impl AsRef<[u8]>, type_text: &str) -> Result<Arc<dyn Document>> {
    let options = ReadOptions { type_text: Some(type_text.to_owned()), ..ReadOptions::default() };
    JsonLines.open(source(text), &options)
}

fn read(document: &dyn Document) -> Result<RecordBatch> {
    collect(document.all_rows()?)
}

fn lines(batch: &RecordBatch) -> Vec<String> {
    let columns = Columns::new(batch, &JsonOptions::default()).unwrap();
    let row = |row| {
        let mut out = Vec::new();
        columns.write_object(row, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    (0..batch.num_rows()).map(row).collect()
}

fn guessed(text: &str) -> String {
    print_schema(&open(text).summary().schema)
}

#[test]
fn what_the_plan_promises_comes_back_with_the_same_type() {
    let mut done = 0;
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let schema = random.schema_of(|field| {
            let alone = Schema::new(vec![field.clone()]);
            // The text does not say metadata of a user's own.
            let said = parse_schema(&print_exact_schema(&alone), &Limits::default()).unwrap();
            let plan = JsonLines.steps(&alone, &WriteOptions::default());
            is_read_back(&plan) && said.field(0).data_type() == field.data_type()
        });
        let batches = random.batches(&schema);
        let mut suite = Suite::new(&JsonLines).allowing_loss();
        suite.read.type_text = Some(print_exact_schema(&Schema::new(schema.fields().clone())));
        done += usize::from(suite.check(&schema, &batches));
    }
    assert!(done > 40, "{done}");
}

#[test]
fn bad_input_never_panics() {
    for seed in 0..6 {
        let mut random = Random::new(500 + seed);
        let schema = random.schema();
        let batch = random.batch(&schema, 4);
        let suite = Suite::new(&JsonLines);
        let Some((_, bytes)) = suite.encode(&schema, &[batch]) else { continue };
        suite.bad_input(&bytes, 11);
    }
}

#[test]
fn types_are_guessed_by_the_published_rules() {
    for (text, expected) in [
        ("{\"a\":1}\n{\"a\":-2}", "struct{a: ?int64}"),
        ("{\"a\":1}\n{\"a\":2.5}", "struct{a: ?float64}"),
        ("{\"a\":1}\n{\"a\":\"NaN\"}", "struct{a: ?float64}"),
        ("{\"a\":\"NaN\"}", "struct{a: ?utf8}"),
        ("{\"a\":18446744073709551615}", "struct{a: ?uint64}"),
        ("{\"a\":18446744073709551615}\n{\"a\":-1}", "struct{a: ?decimal128[38, 0]}"),
        ("{\"a\":9007199254740993}\n{\"a\":0.5}", "struct{a: ?utf8}"),
        ("{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":[1]}", "struct{a: ?utf8}"),
        ("{\"a\":true}\n{\"a\":null}", "struct{a: ?bool}"),
        ("{\"a\":null}", "struct{a: ?null}"),
        ("{\"a\":[]}", "struct{a: ?list[?null]}"),
        ("{\"a\":[1,null]}\n{\"a\":[2.5]}", "struct{a: ?list[?float64]}"),
        ("{\"a\":{\"x\":1}}\n{\"a\":{\"y\":\"s\"}}", "struct{a: ?struct{x: ?int64, y: ?utf8}}"),
        ("{\"b\":1}\n{\"a\":1}", "struct{b: ?int64, a: ?int64}"),
        ("{}\n{}", "struct{}"),
        ("", "struct{}"),
    ] {
        assert_eq!(guessed(text), expected, "{text}");
    }
}

#[test]
fn mixtures_keep_the_text_of_each_value() {
    let text = "{\"a\":1.50}\n{\"a\":\"x\"}\n{\"a\":{\"k\": [1, 2]}}\n{\"a\":null}\n{\"a\":true}\n{}\n";
    let batch = read(open(text).as_ref()).unwrap();
    let expected = [
        r#"{"a":"1.50"}"#,
        r#"{"a":"x"}"#,
        r#"{"a":"{\"k\":[1,2]}"}"#,
        r#"{"a":null}"#,
        r#"{"a":"true"}"#,
        r#"{"a":null}"#,
    ];
    assert_eq!(lines(&batch), expected);
    assert!(batch.schema().field(0).metadata().is_empty());
}

#[test]
fn digits_past_64_bits_survive() {
    let text =
        "{\"a\":99999999999999999999999999999999999999,\"b\":-170141183460469231731687303715884105728}\n";
    assert_eq!(guessed(text), "struct{a: ?decimal128[38, 0], b: ?utf8}");
    let batch = read(open(text).as_ref()).unwrap();
    let expected =
        r#"{"a":"99999999999999999999999999999999999999","b":"-170141183460469231731687303715884105728"}"#;
    assert_eq!(lines(&batch), [expected]);
    let huge = "{\"a\":1234567890123456789012345678901234567890123}\n";
    let batch = read(open(huge).as_ref()).unwrap();
    assert_eq!(lines(&batch), [r#"{"a":"1234567890123456789012345678901234567890123"}"#]);
}

#[test]
fn a_later_row_that_does_not_fit_names_its_place_and_the_way_out() {
    let mut text = "{\"a\":1,\"b\":{\"c\":2}}\n".repeat(11_000);
    let offset = text.len();
    let fit = text.clone() + "{\"a\":1,\"b\":{\"c\":\"x\"}}\n";
    let error = read(open(&fit).as_ref()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "jsonl: at byte {} (line 11001), row[11000].b.c: expected a number, found a string \
             (types were guessed from the first rows)",
            offset + 16
        )
    );
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let document = typed(&fit, "struct{a: int8, b: struct{c: ?utf8}}").unwrap();
    let error = read(document.as_ref()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "jsonl: at byte 16 (line 1), row[0].b.c: expected a string, found a number"
    );
    text.push_str("{\"a\":1,\"z\":2}\n");
    let error = read(open(&text).as_ref()).unwrap_err().to_string();
    assert!(
        error.contains("row[11000]: expected a known key (a, b), found key \"z\" (types were guessed"),
        "{error}"
    );
}

#[test]
fn lines_end_where_they_should() {
    let text = "\u{feff}{\"a\":1}\r\n\r\n  {\"a\":2} \t\r\n{\"a\":3}";
    let batch = read(open(text).as_ref()).unwrap();
    assert_eq!(lines(&batch), [r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#]);
    let error = read(open("{\"a\":1} {\"a\":2}\n").as_ref()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "jsonl: at byte 8 (line 1), row[0]: expected the end of the line, found an object"
    );
    let error = read(open("{\"a\":1}\n[1]\n").as_ref()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("jsonl: at byte 8 (line 2), row[1]: expected an object, found an array")
    );
    let error = read(open("{\"a\":1}\n{\"a\":").as_ref()).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Truncated, Some(13)));
}

#[test]
fn hostile_nesting_reaches_a_limit() {
    let text = format!("{{\"a\":{}", "[".repeat(1 << 20));
    let document = open(&text);
    assert_eq!(read(document.as_ref()).unwrap_err().kind(), ErrorKind::Limit);
    assert_eq!(document.validate(&mut Findings::new(false)).unwrap_err().kind(), ErrorKind::Limit);
    let document = typed(&text, "struct{a: ?list[?list[?int8]]}").unwrap();
    assert!(read(document.as_ref()).is_err());
}

#[test]
fn validate_tells_every_fault() {
    let text = b"\xef\xbb\xbf{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":1,\"a\":2}\n{\"a\":}\nnonsense\n{\"a\":\"\xff\"}\n{\"b\":1}\n{\"a\":5}\n{\"a\"";
    let document = typed(text, "struct{a: ?int64}").unwrap();
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    let found: Vec<(&str, &str)> =
        findings.list().iter().map(|finding| (finding.rule.as_str(), finding.path.as_str())).collect();
    let expected = [
        ("byte-order-mark", ""),
        ("type", "row[1].a"),
        ("repeated-key", "row[2]"),
        ("malformed", "row[3].a"),
        ("malformed", "row[4]"),
        ("type", "row[5].a"),
        ("unknown-key", "row[6]"),
        ("truncated", "row[8]"),
    ];
    assert_eq!(found, expected);
    let document = typed(b"{\"a\":\"\xff\"}\n", "struct{a: ?utf8}").unwrap();
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    assert_eq!(findings.list()[0].rule, "utf8");
}

#[test]
fn detection_leaves_documents_to_others() {
    let detect = |text: &str| {
        let source = source(text);
        JsonLines.detect(&Head::new(&source, text.as_bytes()))
    };
    assert_eq!(detect("{\"a\":1}\n{\"a\":2}\n"), Confidence::Likely);
    assert_eq!(detect("\u{feff} {\"a\":1}"), Confidence::Likely);
    assert_eq!(detect("{\"type\":\"int32\",\"value\":5}"), Confidence::Possible);
    assert_eq!(detect("{\n \"a\":1}\n"), Confidence::Likely);
    assert_eq!(detect("{\n \"a\":1\n"), Confidence::No);
    assert_eq!(detect("[1]\n"), Confidence::Likely);
    assert_eq!(detect("a,b\n"), Confidence::No);
    assert_eq!(detect(""), Confidence::No);
}

#[test]
fn the_outline_shows_rows_and_values_where_they_stand() {
    let text = "{\"a\": 1, \"b\": [2, 3]}\n\n{\"a\":\"x\"}\n{\"a\":";
    let document = open(text);
    let all = |node: &Node| -> Vec<_> { node.parts.as_ref().unwrap().nodes(0).collect() };
    let root = document.outline();
    let row = all(&root).remove(0).unwrap();
    let rows: Vec<Node> = all(&row).into_iter().map(Result::unwrap).collect();
    assert_eq!(
        format!("{rows:?}"),
        "[[0] 0..22 = {\"a\": 1, \"b\": [2, 3]}, [1] 23..33 = {\"a\":\"x\"}, [2] 33..38 = {\"a\":]"
    );
    let values: Vec<Node> = all(&rows[0]).into_iter().map(Result::unwrap).collect();
    assert_eq!(format!("{values:?}"), "[a 6..7 = 1, b 14..20 = [2, 3]]");
    assert!(all(&rows[2])[0].is_err());
    assert_eq!(row.parts.unwrap().nodes(1).next().unwrap().unwrap().offset, 23);
}

#[test]
fn requests_read_what_they_ask_for() {
    let document = open("{\"a\":1,\"b\":\"x\",\"c\":true}\n{\"a\":2,\"b\":\"y\",\"c\":false}\n");
    let columns = Some(vec![2..3, 0..1, 2..3]);
    let request = Asked { columns, rows: Some(1..9), batch_rows: 0 };
    let batch = collect(document.ask(&request).unwrap()).unwrap();
    assert_eq!(lines(&batch), [r#"{"c":false,"a":2,"c":false}"#]);
}

#[test]
fn types_are_held_against_what_can_be_read() {
    assert!(typed("", "struct{a: int33}").err().unwrap().to_string().contains("at character 10"));
    assert_eq!(typed("", "list[int8]").err().unwrap().kind(), ErrorKind::Usage);
    assert_eq!(typed("", "struct{a: sparse_union{0 x: null}}").err().unwrap().kind(), ErrorKind::Unsupported);
    assert!(typed("", "arrow:struct{a: int8}").is_ok());
}

#[test]
fn two_columns_of_one_name_are_refused_by_the_plan() {
    let field = arrow_schema::Field::new("a", arrow_schema::DataType::Int8, true);
    let schema = Schema::new(vec![field.clone(), field]);
    assert_eq!(JsonLines.steps(&schema, &WriteOptions::default()).verdict(), Verdict::Impossible);
}

#[test]
fn a_stream_is_read_once_and_in_pieces() {
    let text = "{\"a\":1,\"s\":\"é\\n\"}\n".repeat(5000);
    let reader = std::io::Cursor::new(text.clone().into_bytes());
    let document = JsonLines.open(Source::from_reader("-", reader), &ReadOptions::default()).unwrap();
    let batch = read(document.as_ref()).unwrap();
    assert_eq!(batch, read(open(&text).as_ref()).unwrap());
    assert_eq!(document.all_rows().err().unwrap().kind(), ErrorKind::Usage);
    assert_eq!(batch.schema(), Arc::clone(&open(&text).summary().schema));
}

#[test]
fn files_of_pandas_and_polars_read_equal() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/jsonl");
    let open = |name: &str| {
        let source = Source::open(folder.join(name)).unwrap();
        read(JsonLines.open(source, &ReadOptions::default()).unwrap().as_ref()).unwrap()
    };
    let batch = open("pandas.jsonl");
    let schema =
        "struct{id: ?int64, ratio: ?float64, name: ?utf8, flag: ?bool, when: ?timestamp[us], maybe: ?int64}";
    assert_eq!(print_schema(&batch.schema()), schema);
    assert_eq!(
        lines(&batch)[2],
        r#"{"id":3,"ratio":1e300,"name":"line\nend é","flag":true,"when":"2038-01-19T03:14:08","maybe":-9}"#
    );
    let batch = open("polars.ndjson");
    let schema = "struct{id: ?int64, big: ?uint64, x: ?float64, s: ?utf8, d: ?date32, t: ?timestamp[us], l: ?list[?int64], \
                  st: ?struct{a: ?int64, b: ?utf8}}";
    assert_eq!(print_schema(&batch.schema()), schema);
    let text = std::fs::read_to_string(folder.join("polars.ndjson")).unwrap();
    let text = text.replace("29 12:00:00.250", "29T12:00:00.25").replace("01 00:00:00", "01T00:00:00");
    assert_eq!(lines(&batch), text.lines().collect::<Vec<_>>());
}

#[test]
fn values_of_several_kinds_inside_lists_and_objects_are_text() {
    for (text, schema, line) in [
        (r#"{"a":[1,"x"]}"#, "struct{a: ?list[?utf8]}", r#"{"a":["1","x"]}"#),
        (r#"{"a":[[1,"x"]]}"#, "struct{a: ?list[?list[?utf8]]}", r#"{"a":[["1","x"]]}"#),
        (r#"{"a":{"b":[1,"x"]}}"#, "struct{a: ?struct{b: ?list[?utf8]}}", r#"{"a":{"b":["1","x"]}}"#),
        (
            r#"{"a":[{"b":1},{"b":[2]}]}"#,
            "struct{a: ?list[?struct{b: ?utf8}]}",
            r#"{"a":[{"b":"1"},{"b":"[2]"}]}"#,
        ),
    ] {
        assert_eq!(guessed(text), schema);
        assert_eq!(lines(&read(&*open(text)).unwrap()), [line]);
    }
}

/// Whether some type reads the fields back.
fn is_read_back(plan: &crate::hub::Plan) -> bool {
    let none = |step: &crate::hub::FieldPlan| step.note.as_deref() == Some("no type reads it back");
    plan.verdict() < Verdict::Impossible && !plan.steps.iter().any(none)
}

#[test]
fn arrays_are_rows_whose_columns_have_numbers() {
    let text = "[1,\"x\"]\n[2]\n\n[null,\"y\",true]\n";
    assert_eq!(guessed(text), "struct{col_0: ?int64, col_1: ?utf8, col_2: ?bool}");
    let found = lines(&read(open(text).as_ref()).unwrap());
    assert_eq!(found[0], r#"{"col_0":1,"col_1":"x","col_2":null}"#);
    assert_eq!(found[2], r#"{"col_0":null,"col_1":"y","col_2":true}"#);
    let given = typed(text, "struct{a: ?int8, b: ?utf8, c: ?bool}").unwrap();
    assert_eq!(lines(&read(given.as_ref()).unwrap())[1], r#"{"a":2,"b":null,"c":null}"#);
    let error = read(typed("[1,2]\n", "struct{a: ?int8}").unwrap().as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "jsonl: at byte 3 (line 1), row[0]: expected at most 1 values, found more");
}

#[test]
fn later_rows_are_looked_at_on_request() {
    let text = "{\"a\":1}\n".repeat(20_000) + "{\"a\":\"x\",\"b\":[1]}\n";
    let mut options = ReadOptions::default();
    options.options.set("sample", "all");
    let document = JsonLines.open(source(&text), &options).unwrap();
    assert_eq!(print_schema(&document.summary().schema), "struct{a: ?utf8, b: ?list[?int64]}");
    assert_eq!(document.summary().rows, Some(20_001));
    assert_eq!(read(document.as_ref()).unwrap().num_rows(), 20_001);
}
