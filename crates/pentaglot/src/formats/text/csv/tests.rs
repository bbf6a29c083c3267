use crate::sink::Sink;
use crate::testing::asked::Asked;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};

use super::*;
use crate::formats::{Findings, Node, OptionMap};
use crate::hub::Verdict;
use crate::hub::json::{Columns, JsonOptions};
use crate::hub::type_text::{parse_schema, print_exact_schema, print_schema};
use crate::testing::arbitrary::Random;
use crate::testing::conformance::{Suite, collect};
use crate::testing::writing::Writing as _;
use crate::{ErrorKind, Limits};

fn options(pairs: &[(&str, &str)], type_text: Option<&str>) -> ReadOptions {
    let mut map = OptionMap::default();
    pairs.iter().for_each(|(key, value)| map.set(*key, *value));
    ReadOptions { options: map, type_text: type_text.map(str::to_owned), ..ReadOptions::default() }
}

fn open_as(text: impl AsRef<[u8]>, name: &str, options: &ReadOptions) -> Result<Arc<dyn Document>> {
    Csv.open(Source::from_bytes(name, text.as_ref().to_vec()), options)
}

fn open(text: impl AsRef<[u8]>) -> Arc<dyn Document> {
    open_as(text, "data.csv", &ReadOptions::default()).unwrap()
}

fn typed(text: impl AsRef<[u8]>, type_text: &str) -> Result<Arc<dyn Document>> {
    open_as(text, "data.csv", &options(&[], Some(type_text)))
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

fn write(batch: &RecordBatch, pairs: &[(&str, &str)]) -> String {
    let mut options = WriteOptions::default();
    pairs.iter().for_each(|(key, value)| options.options.set(*key, *value));
    let (sink, memory) = Sink::memory();
    let mut writer = Csv.create(sink, batch.schema(), &options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    String::from_utf8(memory.take()).unwrap()
}

#[test]
fn what_the_plan_promises_comes_back_with_the_same_type() {
    let mut done = 0;
    for seed in 0..120 {
        let mut random = Random::new(seed);
        let schema = random.schema_of(|field| {
            let alone = Schema::new(vec![field.clone()]);
            // The text does not say metadata of a user's own.
            let said = parse_schema(&print_exact_schema(&alone), &Limits::default()).unwrap();
            let plan = Csv.steps(&alone, &WriteOptions::default());
            is_read_back(&plan) && said.field(0).data_type() == field.data_type()
        });
        let batches = random.batches(&schema);
        let mut suite = Suite::new(&Csv).allowing_loss();
        if seed % 3 == 1 {
            suite = suite.option("delimiter", ";").option("header", "false");
            suite.read.options = suite.write.options.clone();
        }
        suite.read.type_text = Some(print_exact_schema(&Schema::new(schema.fields().clone())));
        done += usize::from(suite.check(&schema, &batches));
    }
    assert!(done > 50, "{done}");
}

#[test]
fn bad_input_never_panics() {
    for seed in 0..8 {
        let mut random = Random::new(900 + seed);
        let schema = random.schema();
        let batch = random.batch(&schema, 4);
        let suite = Suite::new(&Csv);
        let Some((_, bytes)) = suite.encode(&schema, &[batch]) else { continue };
        suite.bad_input(&bytes, 5);
    }
}

#[test]
fn null_and_empty_string_differ() {
    let batch = read(open("a,b\n,\"\"\n\"\",\n").as_ref()).unwrap();
    assert_eq!(lines(&batch), ["[null,\"\"]", "[\"\",null]"]);
    assert_eq!(write(&batch, &[]), "a,b\n,\"\"\n\"\",\n");
    let document = typed("a,b\n,\n", "struct{a: utf8, b: ?utf8}").unwrap();
    assert_eq!(lines(&read(document.as_ref()).unwrap()), ["[\"\",null]"]);
    let error = read(typed("a\n1\n\n", "struct{a: int8}").unwrap().as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "csv: at byte 4 (line 3), row[1].a: expected int8, found null");
}

#[test]
fn quotes_hold_delimiters_quotes_and_line_ends() {
    let text = "a,b\r\n\"x,\"\"y\"\"\r\nz\",\"1\"\r\n\"\"\"\",2\r\nit \"is\",3";
    let batch = read(open(text).as_ref()).unwrap();
    assert_eq!(lines(&batch), ["[\"x,\\\"y\\\"\\r\\nz\",1]", "[\"\\\"\",2]", "[\"it \\\"is\\\"\",3]"]);
    let written = write(&batch, &[]);
    assert_eq!(written, "a,b\n\"x,\"\"y\"\"\r\nz\",1\n\"\"\"\",2\n\"it \"\"is\"\"\",3\n");
    assert_eq!(read(open(&written).as_ref()).unwrap(), batch);
}

#[test]
fn records_that_straddle_the_window_are_whole() {
    let long = "x\"\"\n,".repeat(30_000);
    let text = format!("a,b\n\"{long}\",1\n").repeat(1) + &"short,2\n".repeat(20_000);
    let batch = read(open(&text).as_ref()).unwrap();
    assert_eq!(batch.num_rows(), 20_001);
    let first = lines(&batch.slice(0, 1)).remove(0);
    assert_eq!(first.len(), "[\"\",1]".len() + "x\\\"\\n,".len() * 30_000);
    let mut small = options(&[], Some("struct{a: ?utf8, b: ?int64}"));
    small.budget = crate::Limits { max_alloc: 2 << 20, ..crate::Limits::default() }.budget();
    let huge = format!("a,b\n\"{}", "y".repeat(4 << 20));
    let error = open_as(&huge, "data.csv", &small).and_then(|document| read(document.as_ref())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn types_are_guessed_by_the_published_rules() {
    for (cells, expected) in [
        ("1|-2|", "?int64"),
        ("1|2.5", "?float64"),
        ("1|NaN|-inf", "?float64"),
        ("1e5|.5", "?float64"),
        ("-0", "?float64"),
        ("18446744073709551615", "?uint64"),
        ("18446744073709551616|-1", "?decimal128[38, 0]"),
        ("99999999999999999999999999999999999999999", "?utf8"),
        ("9007199254740993|0.5", "?utf8"),
        ("007", "?utf8"),
        ("+5", "?utf8"),
        ("true|False", "?bool"),
        ("true|1", "?utf8"),
        ("2024-02-29", "?date32"),
        ("2023-02-29", "?utf8"),
        ("12:30:00|12:30:00.5", "?time[us]"),
        ("2024-02-29T12:00:00|2024-02-29 12:00:00.25", "?timestamp[us]"),
        ("2024-02-29T12:00:00.123456789", "?timestamp[ns]"),
        ("2024-02-29T12:00:00Z", "?timestamp[us, 'UTC']"),
        ("2024-02-29T12:00:00+02:00", "?utf8"),
        ("2024-02-29|2024-02-29T12:00:00", "?utf8"),
        ("a|b", "?utf8"),
        ("|", "?utf8"),
    ] {
        let text = format!(
            "x,y\n{}\n",
            cells.split('|').map(|cell| format!("{cell},")).collect::<Vec<_>>().join("\n")
        );
        let schema = print_schema(&open(&text).summary().schema);
        assert_eq!(schema, format!("struct{{x: {expected}, y: ?utf8}}"), "{cells}");
        read(open(&text).as_ref()).unwrap();
    }
}

#[test]
fn headers_and_delimiters_are_as_asked() {
    let batch = read(
        open_as("1;a\n2;b\n", "data.csv", &options(&[("header", "false"), ("delimiter", ";")], None))
            .unwrap()
            .as_ref(),
    );
    let batch = batch.unwrap();
    assert_eq!(print_schema(&batch.schema()), "struct{col_0: ?int64, col_1: ?utf8}");
    assert_eq!(write(&batch, &[("header", "false"), ("delimiter", "tab")]), "1\ta\n2\tb\n");
    let tsv = open_as("a\tb\n1\tx,y\n", "data.TSV.gz", &ReadOptions::default()).unwrap();
    assert_eq!(lines(&read(tsv.as_ref()).unwrap()), ["[1,\"x,y\"]"]);
    for bad in ["", "ab", "\"", "é", "\n"] {
        let error = open_as("", "a.csv", &options(&[("delimiter", bad)], None)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage, "{bad:?}");
    }
    assert_eq!(
        open_as("", "a.csv", &options(&[("header", "yes")], None)).err().unwrap().kind(),
        ErrorKind::Usage
    );
}

#[test]
fn lines_that_are_empty_stand_for_nothing_or_for_a_null() {
    assert_eq!(lines(&read(open("a,b\n1,2\n\n3,4\n\n").as_ref()).unwrap()), ["[1,2]", "[3,4]"]);
    assert_eq!(lines(&read(open("a\n1\n\n2\n").as_ref()).unwrap()), ["[1]", "[null]", "[2]"]);
    let none = open("\n\n\n");
    assert_eq!(none.summary().rows, Some(2));
    assert_eq!(read(none.as_ref()).unwrap().num_rows(), 2);
    assert_eq!(open("").summary().rows, Some(0));
    let marked = open("\u{feff}a,b\n1,2");
    assert_eq!(print_schema(&marked.summary().schema), "struct{a: ?int64, b: ?int64}");
}

#[test]
fn a_later_record_that_does_not_fit_names_its_place_and_the_way_out() {
    let text = "id,name\n1,a\n".to_owned() + &"2,b\n".repeat(10_999) + "3x,c\n";
    let error = read(open(&text).as_ref()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "csv: at byte {} (line 11002), row[11000].id: expected int64, found \"3x\" \
             (types were guessed from the first rows)",
            text.len() - 5
        )
    );
    assert!(read(typed(&text, "struct{id: utf8, name: utf8}").unwrap().as_ref()).is_ok());
    let error = typed(&text, "struct{id: utf8}").err().unwrap();
    assert_eq!(
        error.to_string(),
        "csv: the given type: expected the columns of the header (\"id\", \"name\"), found \"id\""
    );
}

#[test]
fn faults_are_told_with_their_places() {
    for (text, expected) in [
        ("a,b\n1\n", "csv: at byte 4 (line 2), row[0]: expected 2 fields, found 1"),
        ("a,b\n1,2,3\n", "csv: at byte 4 (line 2), row[0]: expected 2 fields, found 3"),
        (
            "a,b\n\"1\"x,2\n",
            "csv: at byte 7 (line 2), row[0]: expected a delimiter or the end of the line after a closing quote, \
             found 'x'",
        ),
        (
            "a,b\n1,\"2\n",
            "csv: at byte 6 (line 2), row[0]: expected a closing quote, found the end of the input",
        ),
    ] {
        assert_eq!(read(open(text).as_ref()).unwrap_err().to_string(), expected);
    }
    let error = read(open(b"a,b\nx,\xff\n").as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "csv: at byte 6 (line 2), row[0].b: expected UTF-8, found other bytes");
    let error = open_as(b"a,\xff\n", "data.csv", &ReadOptions::default()).err().unwrap();
    assert_eq!(error.to_string(), "csv: at byte 2 (line 1), header[1]: expected UTF-8, found other bytes");
    let nested = typed("a,b\n1,\"[1,x]\"\n", "struct{a: int8, b: list[int8]}").unwrap();
    let error = read(nested.as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "csv: at byte 10 (line 2), row[0].b[1]: expected a number, found `x`");
}

#[test]
fn validate_tells_every_fault() {
    let text = "a,b\n1,x\ny,\"q\"z\n1\n5,6,7\nq,r\n9,\"";
    let document = typed(text, "struct{a: ?int8, b: ?int8}").unwrap();
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    let found: Vec<(&str, &str)> =
        findings.list().iter().map(|finding| (finding.rule.as_str(), finding.path.as_str())).collect();
    let expected = [
        ("type", "row[0].b"),
        ("quote", "row[1]"),
        ("field-count", "row[2]"),
        ("field-count", "row[3]"),
        ("type", "row[4].a"),
        ("type", "row[4].b"),
        ("truncated", "row[5]"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn nested_values_are_json_text() {
    let schema = "struct{l: ?list[?int8], s: ?struct{a: utf8}, b: ?binary, c: extension['pentaglot.complex', fixed_list[2, float64]]}";
    let text = "l,s,b,c\n\"[1,null]\",\"{\"\"a\"\":\"\"x\\n\"\"}\",aGk=,\"[1.0,-0.0]\"\n,,,\"[0.0,0.0]\"\n";
    let batch = read(typed(text, schema).unwrap().as_ref()).unwrap();
    assert_eq!(
        lines(&batch),
        ["[[1,null],{\"a\":\"x\\n\"},\"aGk=\",[1.0,-0.0]]", "[null,null,null,[0.0,0.0]]"]
    );
    assert_eq!(write(&batch, &[]), text);
}

#[test]
fn detection_is_modest() {
    let detect = |text: &[u8], name: &str| {
        let source = Source::from_bytes(name, text.to_vec());
        Csv.detect(&Head::new(&source, text))
    };
    assert_eq!(detect(b"a,b\n1,2\n", "-"), Confidence::Possible);
    assert_eq!(detect(b"a\tb\n1\t2\n", "-"), Confidence::Possible);
    assert_eq!(detect(b"one\ntwo\n", "-"), Confidence::No);
    assert_eq!(detect(b"one\ntwo\n", "x.csv"), Confidence::Possible);
    assert_eq!(detect(b"a,b\n1\n", "-"), Confidence::No);
    assert_eq!(detect(b"a,b\x00\n1,2\n", "-"), Confidence::No);
    assert_eq!(detect(b"a,\xff\n", "x.csv"), Confidence::No);
    assert_eq!(detect(b"", "x.csv"), Confidence::No);
}

#[test]
fn the_outline_shows_records_and_fields_where_they_stand() {
    let document = open("a,\"b\"\n1,\"x\"\"y\"\n\n,2\n");
    let all =
        |node: &Node| -> Vec<Node> { node.parts.as_ref().unwrap().nodes(0).map(Result::unwrap).collect() };
    let parts = all(&document.outline());
    assert_eq!(format!("{parts:?}"), "[header 0..6, row 6..19]");
    assert_eq!(format!("{:?}", all(&parts[0])), "[[0] 0..1 = a, [1] 2..5 = b]");
    let rows = all(&parts[1]);
    assert_eq!(format!("{rows:?}"), "[[0] 6..15, [1] 16..19]");
    assert_eq!(format!("{:?}", all(&rows[0])), "[a 6..7 = 1, b 8..14 = x\"y]");
    assert_eq!(format!("{:?}", all(&rows[1])), "[a 16..16 = null, b 17..18 = 2]");
}

#[test]
fn requests_read_what_they_ask_for() {
    let document = open("a,b,c\n1,x,true\n2,y,false\n");
    let columns = Some(vec![2..3, 0..1]);
    let request = Asked { columns, rows: Some(1..9), batch_rows: 0 };
    let batch = collect(document.ask(&request).unwrap()).unwrap();
    assert_eq!(lines(&batch), ["[false,2]"]);
}

#[test]
fn a_stream_is_read_once() {
    let text = "a,b\n".to_owned() + &"1,\"x\ny\"\n".repeat(40_000);
    let reader = std::io::Cursor::new(text.clone().into_bytes());
    let document = Csv.open(Source::from_reader("-", reader), &ReadOptions::default()).unwrap();
    let batch = read(document.as_ref()).unwrap();
    assert_eq!(batch.num_rows(), 40_000);
    assert_eq!(document.all_rows().err().unwrap().kind(), ErrorKind::Usage);
}

#[test]
fn what_no_type_reads_back_is_lossy() {
    let union = parse_schema("struct{u: sparse_union{0 a: int8}}", &Limits::default()).unwrap();
    assert_eq!(Csv.steps(&union, &WriteOptions::default()).verdict(), Verdict::Lossy);
    let field = Field::new("a", DataType::Int8, true);
    let twice = Arc::new(Schema::new(vec![field.clone(), field]));
    assert_eq!(Csv.steps(&twice, &WriteOptions::default()).verdict(), Verdict::Widened);
}

fn testdata(name: &str) -> Arc<dyn Document> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/csv").join(name);
    Csv.open(Source::open(path).unwrap(), &ReadOptions::default()).unwrap()
}

#[test]
fn files_of_pandas_and_polars_read_equal() {
    let schema =
        "struct{id: ?int64, ratio: ?float64, name: ?utf8, flag: ?bool, when: ?timestamp[us], maybe: ?int64}";
    let rows = [
        r#"[1,0.1,"a",true,"2024-02-29T12:00:00",7]"#,
        r#"[2,null,"says \"hi\", twice",false,"1969-12-31T23:59:59",null]"#,
        r#"[3,1e300,"line\nend é",true,"2038-01-19T03:14:08",-9]"#,
    ];
    for name in ["pandas.csv", "pandas_quote_all.tsv"] {
        let batch = read(testdata(name).as_ref()).unwrap();
        assert_eq!(print_schema(&batch.schema()), schema, "{name}");
        assert_eq!(lines(&batch), rows, "{name}");
    }
    let batch = read(testdata("polars.csv").as_ref()).unwrap();
    let schema = "struct{id: ?int64, big: ?uint64, x: ?float64, s: ?utf8, d: ?date32, t: ?timestamp[us]}";
    assert_eq!(print_schema(&batch.schema()), schema);
    let rows = [
        r#"[1,18446744073709551615,0.1,"","2024-02-29","2024-02-29T12:00:00.25"]"#,
        r#"[null,0,"Infinity",null,null,null]"#,
        r#"[3,5,"NaN","ä,\"b\"","0001-01-01","1970-01-01T00:00:00"]"#,
    ];
    assert_eq!(lines(&batch), rows);
}

/// Whether some type reads the fields back.
fn is_read_back(plan: &crate::hub::Plan) -> bool {
    let none = |step: &crate::hub::FieldPlan| step.note.as_deref() == Some("no type reads it back");
    plan.verdict() < Verdict::Impossible && !plan.steps.iter().any(none)
}

/// The rows of a file of the test data, and its notes.
fn west(name: &str, pairs: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/csv");
    let document = Csv.open(Source::open(folder.join(name)).unwrap(), &options(pairs, None)).unwrap();
    assert_eq!(
        print_schema(&document.summary().schema),
        "struct{ville: ?utf8, prix: ?float64, note: ?utf8}",
        "{name}"
    );
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    assert!(findings.is_valid(), "{name}: {:?}", findings.list());
    let notes = document.summary().notes.iter().filter(|note| note.starts_with("fields")).cloned().collect();
    (lines(&read(document.as_ref()).unwrap()), notes)
}

#[test]
fn files_in_other_encodings_and_with_other_delimiters_read_equal() {
    let expected = [r#"["Zürich",1.5,"à"]"#, r#"["Genève",22.25,null]"#, r#"["Åre",3.0,"ok"]"#];
    for (name, pairs, note) in [
        ("west_latin1.csv", &[("encoding", "latin1")][..], "';'"),
        ("west_latin1.csv", &[("encoding", "ISO-8859-1"), ("sample", "all")], "';'"),
        ("west_utf16.csv", &[], "tabs"),
        ("west_utf16.csv", &[("encoding", "utf-16le")], "tabs"),
        ("west_utf16be.csv", &[("encoding", "utf-16be")], "'|'"),
        ("west_bom.csv", &[("null", "NA")], "';'"),
        ("west_quote.csv", &[("quote", "'"), ("null", "n/a,NULL")], ""),
        ("west_preamble.csv", &[("skip", "2"), ("comment", "#")], ""),
    ] {
        let (found, notes) = west(name, pairs);
        assert_eq!(found, expected, "{name}");
        let notes = notes.join("");
        let note = match note {
            "" => String::new(),
            note => format!("fields are separated by {note}, as the first lines show"),
        };
        assert_eq!(notes, note, "{name}");
    }
}

#[test]
fn text_in_an_unknown_encoding_names_the_option_that_helps() {
    let error = read(open(b"a;b\nZ\xfcrich;1\n").as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "csv: at byte 4 (line 2), row[0].a: expected UTF-8, found other bytes");
    assert_eq!(error.advice(), Some(&crate::Hint::Option("encoding=latin1".into())));
    let given = options(&[("encoding", "latin-9000")], None);
    let error = open_as("a\n", "x.csv", &given).err().unwrap();
    assert!(error.to_string().contains("option encoding: expected an encoding such as utf-8"), "{error}");
    let given = options(&[("encoding", "shift_jis")], None);
    let error = open_as(b"a\nx\xff\xff\n", "x.csv", &given).err().unwrap();
    assert_eq!(error.to_string(), "csv: at byte 3: expected Shift_JIS text, found other bytes");
    // A value of another type has a line, but no byte: the text was decoded.
    let text: Vec<u8> = "\u{feff}a\n1\nx\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let typed = options(&[], Some("struct{a: int8}"));
    let error = read(open_as(text, "x.csv", &typed).unwrap().as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "csv: line 3, row[1].a: expected int8, found \"x\"");
}

#[test]
fn delimiters_are_found_by_looking() {
    for (text, delimiter) in [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb,c\n1\t2\n", "\t"),
        ("a|b|c\n1|2|3\n", "|"),
        ("\"a;b\",c\n1,2\n", ","),
        ("alone\n1\n2\n", ","),
        ("a;b\n", ";"),
        ("a,b\n1,2,3\n4,5\n6,7\n", ","),
        ("", ","),
    ] {
        let document = open(text);
        let found = document.summary().metadata.iter().find(|(key, _)| key == "delimiter").unwrap();
        assert_eq!(found.1, delimiter, "{text}");
    }
    let given = options(&[("delimiter", ",")], None);
    let document = open_as("a;b\n1;2\n", "x.csv", &given).unwrap();
    assert_eq!(print_schema(&document.summary().schema), "struct{'a;b': ?utf8}");
    // A cut sample does not mislead.
    let long = format!("a;b,c\n{}", "1,1;2,2\n".repeat(300_000));
    assert_eq!(open(&long).summary().schema.fields().len(), 2);
}

#[test]
fn quotes_comments_spaces_and_nulls_are_as_asked() {
    let rows = |text: &str, pairs: &[(&str, &str)]| {
        let document = open_as(text, "x.csv", &options(pairs, None)).unwrap();
        lines(&read(document.as_ref()).unwrap())
    };
    assert_eq!(rows("a,b\n \"x, y\" , 1 \n\tz,2\n", &[("trim", "true")]), ["[\"x, y\",1]", "[\"z\",2]"]);
    assert_eq!(rows("a\tb\n x \t\n", &[("trim", "true"), ("delimiter", "tab")]), ["[\"x\",null]"]);
    assert_eq!(rows("a,b\n\"x,1\n", &[("quote", "none")]), ["[\"\\\"x\",1]"]);
    assert_eq!(rows("#c\na\n#1\n2\n#", &[("comment", "#")]), ["[2]"]);
    assert_eq!(rows("x\r\ny\r\na\r\n1\r\n", &[("skip", "2")]), ["[1]"]);
    assert_eq!(rows("a,b\nNA,-\n1,x\n", &[("null", "NA,-")]), ["[null,null]", "[1,\"x\"]"]);
    for (key, value) in [("quote", "ab"), ("comment", "é"), ("skip", "-1"), ("trim", "yes"), ("sample", "x")]
    {
        let error = open_as("a\n", "x.csv", &options(&[(key, value)], None)).err().unwrap();
        assert!(error.to_string().starts_with(&format!("csv: option {key}: expected")), "{error}");
    }
    let typed = options(&[("null", "NA")], Some("struct{a: int8}"));
    let error = read(open_as("a\nNA\n", "x.csv", &typed).unwrap().as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "csv: at byte 2 (line 2), row[0].a: expected int8, found null");
}

#[test]
fn nulls_and_quotes_are_written_as_asked() {
    let batch = read(open("a,b\n,x\n1,\"y'z\"\n").as_ref()).unwrap();
    assert_eq!(write(&batch, &[("null", "NA")]), "a,b\nNA,x\n1,y'z\n");
    assert_eq!(write(&batch, &[("quote", "'")]), "a,b\n,x\n1,'y''z'\n");
    let error = |batch: &RecordBatch, pairs: &[(&str, &str)]| {
        let mut options = WriteOptions::default();
        pairs.iter().for_each(|(key, value)| options.options.set(*key, *value));
        let mut writer = Csv.create(Sink::memory().0, batch.schema(), &options).unwrap();
        let error = writer.write(batch).unwrap_err();
        (error.kind(), error.to_string())
    };
    let found = error(&batch, &[("null", "x")]);
    assert_eq!(
        found,
        (ErrorKind::Lossy, "row 0, column \"b\": the text \"x\" would be read as null".to_owned())
    );
    let comma = read(open("a,b\n1,\"y,z\"\n").as_ref()).unwrap();
    let found = error(&comma, &[("quote", "none")]);
    let expected = "row 0, column \"b\": expected a text that needs no quotes, found \"y,z\"".to_owned();
    assert_eq!(found, (ErrorKind::Lossy, expected));
}

#[test]
fn a_value_past_the_sample_names_its_line_and_the_option_that_helps() {
    let text = format!("a,b\n{}x,\"two\nlines\"\n", "1,\"two\nlines\"\n".repeat(20_000));
    let error = read(open(&text).as_ref()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("(line 40002), row[20000].a: expected int64, found \"x\" (types were guessed"),
        "{message}"
    );
    assert_eq!(error.advice(), Some(&crate::Hint::Option("sample=all".into())));
    let document = open_as(&text, "x.csv", &options(&[("sample", "all")], None)).unwrap();
    assert_eq!(print_schema(&document.summary().schema), "struct{a: ?utf8, b: ?utf8}");
    assert_eq!(read(document.as_ref()).unwrap().num_rows(), 20_001);
    let stream = Source::from_reader("-", std::io::Cursor::new(text.clone().into_bytes()));
    let document = Csv.open(stream, &options(&[("sample", "20001")], None)).unwrap();
    assert_eq!(read(document.as_ref()).unwrap().num_rows(), 20_001);
    let document = open_as(&text, "x.csv", &options(&[("sample", "5")], None)).unwrap();
    assert_eq!(print_schema(&document.summary().schema), "struct{a: ?int64, b: ?utf8}");
}

#[test]
fn integers_past_64_bits_are_decimals_or_text() {
    let digits = "99999999999999999999999999999999999999";
    let text = format!("a,b\n{digits},{digits}9\n-1,0\n");
    let document = open(&text);
    assert_eq!(print_schema(&document.summary().schema), "struct{a: ?decimal128[38, 0], b: ?utf8}");
    let batch = read(document.as_ref()).unwrap();
    assert_eq!(write(&batch, &[]), text);
}
