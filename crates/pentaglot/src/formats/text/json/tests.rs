use std::io::Cursor;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::*;
use crate::formats::{Findings, Node};
use crate::hub::Verdict;
use crate::hub::json::{Columns, JsonDocument, JsonOptions};
use crate::hub::type_text::{parse_schema, print_exact_schema, print_schema};
use crate::registry::Registry;
use crate::sink::Sink;
use crate::testing::arbitrary::Random;
use crate::testing::asked::Asked;
use crate::testing::conformance::{Suite, collect};
use crate::testing::writing::Writing as _;
use crate::{ErrorKind, Limits};

fn options(pairs: &[(&str, &str)], type_text: Option<&str>) -> ReadOptions {
    let mut options = ReadOptions { type_text: type_text.map(str::to_owned), ..ReadOptions::default() };
    pairs.iter().for_each(|(key, value)| options.options.set(*key, *value));
    options
}

fn try_open(text: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Arc<dyn Document>> {
    Json.open(Source::from_bytes("data.json", text.as_ref().to_vec()), options)
}

fn open(text: impl AsRef<[u8]>) -> Arc<dyn Document> {
    try_open(text, &ReadOptions::default()).unwrap()
}

fn read(document: &dyn Document) -> Result<RecordBatch> {
    collect(document.all_rows()?)
}

fn lines(batch: &RecordBatch) -> Vec<String> {
    let columns = Columns::new(batch, &JsonOptions::default()).unwrap();
    let row = |row| {
        let mut out = Vec::new();
        columns.write_array(row, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The type that is inferred, and the values of each row.
fn rows(text: &str) -> (String, Vec<String>) {
    let document = open(text);
    (print_schema(&document.summary().schema), lines(&read(document.as_ref()).unwrap()))
}

fn write(batch: &RecordBatch) -> String {
    let (sink, memory) = Sink::memory();
    let mut writer = Json.create(sink, batch.schema(), &WriteOptions::default()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    String::from_utf8(memory.take()).unwrap()
}

#[test]
fn arrays_are_read_as_what_their_elements_are() {
    for (text, schema, expected) in [
        (
            r#"[{"a":1,"b":"x"},{"b":null,"a":2}]"#,
            "struct{a: ?int64, b: ?utf8}",
            &["[1,\"x\"]", "[2,null]"][..],
        ),
        (" [ { \"a\" : [ 1 ] } ,\n{ } ] \n", "struct{a: ?list[?int64]}", &["[[1]]", "[null]"]),
        ("[]", "struct{}", &[]),
        ("[{}]", "struct{}", &["[]"]),
        ("[[1,2.5],[3,4]]", "matrix[2, 2, float64]", &["[[1.0,2.5]]", "[[3.0,4.0]]"]),
        ("[[1,2],[3,4]]", "matrix[2, 2, int64]", &["[[1,2]]", "[[3,4]]"]),
        ("[[1,\"a\"],[null,\"b\"]]", "struct{col_0: ?int64, col_1: ?utf8}", &["[1,\"a\"]", "[null,\"b\"]"]),
        ("[[1],[2,3]]", "array[?list[?int64]]", &["[[1]]", "[[2,3]]"]),
        ("[1,null,2.5]", "array[?float64]", &["[1.0]", "[null]", "[2.5]"]),
        ("[{\"a\":1},3]", "array[?utf8]", &["[\"{\\\"a\\\":1}\"]", "[\"3\"]"]),
        ("[\"2024-02-29\"]", "array[?date32]", &["[\"2024-02-29\"]"]),
    ] {
        let (found, rows) = rows(text);
        assert_eq!(
            (found.as_str(), rows),
            (schema, expected.iter().map(ToString::to_string).collect()),
            "{text}"
        );
    }
}

#[test]
fn objects_of_columns_are_tables() {
    let text = " {\"a\": [1, 2], \"b\": [\"x\", {\"y\": 1}], \"c\": {\"0\": true, \"1\": null}} ";
    let error = try_open(text, &ReadOptions::default()).err().unwrap();
    assert_eq!(error.rule_name(), "labels", "{error}");
    let text = "{\"a\": [1, 2], \"b\": [\"x\", {\"y\": 1}]}";
    let (schema, found) = rows(text);
    assert_eq!(schema, "struct{a: ?int64, b: ?utf8}");
    assert_eq!(found, ["[1,\"x\"]", "[2,\"{\\\"y\\\":1}\"]"]);
    let labelled = "{\"a\": {\"p\": 1, \"q\": 2}, \"b\": {\"p\": 3, \"q\": 4}}";
    let (schema, found) = rows(labelled);
    assert_eq!(schema, "struct{index: utf8, a: ?int64, b: ?int64}");
    assert_eq!(found, ["[\"p\",1,3]", "[\"q\",2,4]"]);
    let columns = Some(vec![2..3, 0..1]);
    let batch =
        collect(open(labelled).ask(&Asked { columns, rows: Some(1..9), batch_rows: 0 }).unwrap()).unwrap();
    assert_eq!(lines(&batch), ["[4,\"q\"]"]);
    for (text, expected) in [
        ("{\"a\":[1],\"b\":[]}", "json: at byte 13, b: expected 1 values, as the first column has, found 0"),
        (
            "{\"a\":[1],\"b\":2}",
            "json: at byte 13 (line 1), b: expected a column: an array, or an object with a key per row, found a number",
        ),
        ("{\"a\":[1],\"a\":[2]}", "json: at byte 13: expected each key once, found \"a\" twice"),
        ("{\"a\":[1]} x", "json: at byte 10: expected the end of the input, found `x`"),
    ] {
        assert_eq!(try_open(text, &ReadOptions::default()).err().unwrap().to_string(), expected);
    }
    let given = options(&[], Some("struct{b: utf8, a: int8}"));
    let batch = read(try_open("{\"a\":[1],\"b\":[\"x\"]}", &given).unwrap().as_ref()).unwrap();
    assert_eq!(lines(&batch), ["[\"x\",1]"]);
    // A stream is spooled.
    let stream = Source::from_reader("-", Cursor::new(labelled.as_bytes().to_vec()));
    let document = Json.open(stream, &ReadOptions::default()).unwrap();
    assert_eq!(lines(&read(document.as_ref()).unwrap()), found);
}

#[test]
fn detection_follows_the_published_rules() {
    let registry = Registry::default();
    for (name, text, expected) in [
        ("x.json", "[{\"a\":1}]", "json"),
        ("x", " [1,\n2]\n", "json"),
        ("x", "[]", "json"),
        ("x", "\u{feff}[{\"a\":1}]", "json"),
        ("x.json", "[1,2]\n[3,4]\n", "jsonl"),
        ("x", "[1,2]\n[3,4]\n", "jsonl"),
        ("x.jsonl", "[1,2]\n", "jsonl"),
        ("x.json", "{\"a\":[1,2]}", "jsonl"),
        ("x.json", "{\n  \"a\": [1, 2]\n}\n", "jsonl"),
        ("x.json", "{\"a\":1}\n{\"a\":2}\n", "jsonl"),
        ("x.json", "{\"type\":\"int32\",\"value\":5}", "ds"),
        ("x.json", "[{\"a\":1},{\"a\":", "json"),
        ("x.json", "", "json"),
    ] {
        let source = Source::from_bytes(name, text.as_bytes().to_vec());
        assert_eq!(registry.detect(&source).unwrap().info().id, expected, "{name}: {text}");
    }
    let long = format!("[{}1]", "{\"a\":\"0123456789\"},\n".repeat(10_000));
    let source = Source::from_bytes("x", long.into_bytes());
    assert_eq!(registry.detect(&source).unwrap().info().id, "json");
    assert_eq!(registry.by_extension("x.json").unwrap().info().id, "json");
    assert_eq!(registry.by_extension("x.ds.json").unwrap().info().id, "ds");
}

#[test]
fn what_the_plan_promises_comes_back_with_the_same_type() {
    let mut done = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let schema = random.schema_of(|field| {
            let alone = Schema::new(vec![field.clone()]);
            // The text does not say metadata of a user's own.
            let said = parse_schema(&print_exact_schema(&alone), &Limits::default()).unwrap();
            let plan = Json.steps(&alone, &WriteOptions::default());
            plan.verdict() < Verdict::Lossy && said.field(0).data_type() == field.data_type()
        });
        let batches = random.batches(&schema);
        let mut suite = Suite::new(&Json);
        let told = match Form::of(&schema) {
            Form::Dense | Form::Array => schema.as_ref().clone(),
            _ => Schema::new(schema.fields().clone()),
        };
        suite.read.type_text = Some(print_exact_schema(&told));
        done += usize::from(suite.check(&schema, &batches));
    }
    assert!(done > 20, "{done}");
}

#[test]
fn bad_input_never_panics() {
    let mut texts = vec![
        "[{\"a\":1,\"b\":[true,null]},\n{\"a\":-2.5e3,\"b\":\"\\u00e9\"}]\n".to_owned(),
        "{\"a\":[1,2,\"x\"],\"b\":[null,{\"c\":1},[]]}".to_owned(),
        "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"p\":3,\"q\":4}}".to_owned(),
        "[[1,2.5],[3,4]]".to_owned(),
    ];
    for seed in 0..4 {
        let mut random = Random::new(500 + seed);
        let schema = random.schema();
        let batch = random.batch(&schema, 4);
        let Some((_, bytes)) = Suite::new(&Json).encode(&schema, &[batch]) else { continue };
        texts.extend(String::from_utf8(bytes));
    }
    for text in texts {
        Suite::new(&Json).bad_input(text.as_bytes(), if text.len() < 200 { 1 } else { 11 });
    }
}

#[test]
fn faults_have_places_and_the_way_out() {
    let error = read(open("[{\"a\":1},\n{\"a\":2}\n").as_ref()).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Truncated, Some(18)));
    let error = read(open("[{\"a\":1}] [").as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "json: at byte 10 (line 1): expected the end of the input, found an array");
    let mut text = format!("[{}", "{\"a\":1},\n".repeat(11_000));
    let offset = text.len();
    text += "{\"a\":\"x\"}]";
    let error = read(open(&text).as_ref()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "json: at byte {} (line 11001), row[11000].a: expected a number, found a string (types were guessed \
             from the first rows)",
            offset + 5
        )
    );
    assert_eq!(format!("{:?}", error.advice()), "Some(Option(\"sample=all\"))");
    let all = options(&[("sample", "all")], None);
    let document = try_open(&text, &all).unwrap();
    assert_eq!(print_schema(&document.summary().schema), "struct{a: ?utf8}");
    assert_eq!(
        (document.summary().rows, read(document.as_ref()).unwrap().num_rows()),
        (Some(11_001), 11_001)
    );
    let stream = Source::from_reader("-", Cursor::new(text.into_bytes()));
    assert_eq!(read(Json.open(stream, &all).unwrap().as_ref()).unwrap().num_rows(), 11_001);
    let error = try_open("[]", &options(&[("sample", "some")], None)).err().unwrap();
    assert_eq!(error.to_string(), "json: option sample: expected a number of rows or all, found \"some\"");
    assert_eq!(
        read(open("5").as_ref()).unwrap_err().to_string(),
        "json: at byte 0 (line 1): expected an array, found a number"
    );
}

#[test]
fn validate_goes_on_after_a_finding() {
    let given = options(&[], Some("struct{a: ?int64}"));
    let text = "[{\"a\":1},{\"a\":\"x\"},{\"a\":1,\"a\":2},{\"b\":[{}]},{\"a\":4},{\"a\":}]";
    let document = try_open(text, &given).unwrap();
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    let found: Vec<(&str, &str)> =
        findings.list().iter().map(|finding| (finding.rule.as_str(), finding.path.as_str())).collect();
    let expected = [
        ("type", "row[1].a"),
        ("repeated-key", "row[2]"),
        ("unknown-key", "row[3]"),
        ("malformed", "row[5].a"),
    ];
    assert_eq!(found, expected);
    let document =
        try_open("{\"a\":[1,\"x\"],\"b\":[true,2]}", &options(&[], Some("struct{a: int8, b: bool}")))
            .unwrap();
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    assert_eq!(
        findings.list().iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(),
        ["a[1]", "b[1]"]
    );
}

#[test]
fn the_outline_shows_records_and_columns() {
    let text = "[{\"a\": 1, \"b\": [2, 3]},\n{\"a\":\"x\"}]";
    let all =
        |node: &Node| -> Vec<Node> { node.parts.as_ref().unwrap().nodes(0).map(Result::unwrap).collect() };
    let root = open(text).outline();
    let row = all(&root).remove(0);
    assert_eq!(
        format!("{:?}", all(&row)),
        "[[0] 1..22 = {\"a\": 1, \"b\": [2, 3]}, [1] 24..33 = {\"a\":\"x\"}]"
    );
    assert_eq!(format!("{:?}", all(&all(&row)[0])), "[a 7..8 = 1, b 15..21 = [2, 3]]");
    let root = open("{\"a\":[1,22],\"b\":[3,4]}").outline();
    assert_eq!(format!("{:?}", all(&root)), "[a 5..11, b 16..21]");
    assert_eq!(format!("{:?}", all(&all(&root)[0])), "[[0] 6..7 = 1, [1] 8..10 = 22]");
}

#[test]
fn records_are_written_a_line_each() {
    let batch = read(open("[{\"a\":1,\"b\":\"x\"},{\"a\":null,\"b\":\"é\\n\"}]").as_ref()).unwrap();
    assert_eq!(write(&batch), "[{\"a\":1,\"b\":\"x\"},\n{\"a\":null,\"b\":\"é\\n\"}]\n");
    assert_eq!(read(open(write(&batch)).as_ref()).unwrap(), batch);
    for text in ["[[1,2],\n[3,4]]\n", "[1,\n2]\n", "[]\n"] {
        assert_eq!(write(&read(open(text).as_ref()).unwrap()), text);
    }
}

#[test]
fn arrays_are_printed_in_pieces_as_in_one() {
    let number = |row: usize| format!("{{\"id\":{row},\"text\":\"the text of row {row}\"}}");
    let table = (0..9000).map(number).collect::<Vec<_>>().join(",");
    let matrix = "[1,2.5],[3,4],".repeat(5000) + "[5,6]";
    for text in ["", &table, &matrix, "1,null,3", "{},{}", "[]"] {
        let rows = read(open(format!("[{text}]")).as_ref()).unwrap();
        let schema = rows.schema();
        let empty = rows.slice(0, 0);
        let half = rows.num_rows() / 2;
        let batches =
            [empty, rows.slice(0, half), rows.slice(0, 0), rows.slice(half, rows.num_rows() - half)];
        let mut document = JsonDocument::begin(Vec::new(), schema.clone(), JsonOptions::default()).unwrap();
        batches.iter().try_for_each(|batch| document.write(batch)).unwrap();
        let expected = document.end().unwrap();
        for threads in [1, 2, 7] {
            let options = WriteOptions { control: crate::Control::new(threads), ..WriteOptions::default() };
            let (sink, memory) = Sink::memory();
            let mut writer = Json.create(sink, schema.clone(), &options).unwrap();
            batches.iter().try_for_each(|batch| writer.write(batch)).unwrap();
            assert_eq!(writer.finish().unwrap().rows, rows.num_rows() as u64);
            assert!(memory.take() == expected, "{} rows with {threads} threads", rows.num_rows());
        }
    }
}

#[test]
fn a_large_file_is_read_in_little_memory() {
    let text = format!("[{}0]", "{\"a\":\"0123456789abcdef\"},".repeat(400_000)).replace(",0]", "]");
    let columns = format!("{{\"a\":[{}0],\"b\":[{}0]}}", "1,".repeat(999_999), "\"x\",".repeat(999_999))
        .replace("\",0]", "\",\"\"]");
    for (text, count) in [(text, 400_000), (columns, 1_000_000)] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let small = Limits { max_alloc: 4 << 20, ..Limits::default() };
        let mut given = ReadOptions::default();
        given.budget = small.budget();
        let document = Json.open(Source::open(file.path()).unwrap(), &given).unwrap();
        let rows: usize = document.all_rows().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, count);
    }
}

#[test]
fn files_of_pandas_and_python_read_equal() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/json");
    let open = |name: &str| {
        let source = Source::open(folder.join(name)).unwrap();
        read(Json.open(source, &ReadOptions::default()).unwrap().as_ref()).unwrap()
    };
    let records = open("pandas_records.json");
    assert_eq!(
        print_schema(&records.schema()),
        "struct{id: ?int64, ratio: ?float64, name: ?utf8, flag: ?bool, when: ?timestamp[us], maybe: ?int64}"
    );
    assert_eq!(lines(&records)[2], r#"[3,1e300,"line\nend é",true,"2038-01-19T03:14:08",-9]"#);
    assert_eq!(open("pandas_indented.json"), records);
    assert_eq!(open("pandas_columns.json"), records);
    assert_eq!(lines(&open("pandas_values.json")), lines(&records));
    let labelled = open("pandas_labelled.json");
    assert_eq!(labelled.project(&[1, 2, 0, 3, 4, 5]).unwrap().columns(), records.columns());
    assert_eq!(print_schema(&open("pandas_matrix.json").schema()), "matrix[2, 2, float64]");
    let lists = open("python_lists.json");
    assert_eq!(lines(&lists), [r#"[1,"x",[1]]"#, "[2,null,[]]", r#"[3,"é",[2,3]]"#]);
    let array = open("python_array.json");
    assert_eq!(print_schema(&array.schema()), "array[?decimal128[38, 0]]");
    assert_eq!(lines(&array), ["[\"1\"]", "[\"1180591620717411303424\"]", "[\"-3\"]"]);
}
