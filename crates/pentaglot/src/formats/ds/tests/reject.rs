//! Invalid input: the class, the place and the exact text of the error.

use super::*;
use crate::error::ErrorKind;
use crate::formats::Findings;
use crate::formats::ds::Type;
use crate::testing::asked::Asked;

/// The bytes of a reject vector.
fn input(vector: &Value) -> Vec<u8> {
    let text = match vector.get("gen") {
        Some(made) => {
            let part = |key: &str| made[key].as_str().unwrap().to_owned();
            let repeated = part("repeat").repeat(made["count"].as_u64().unwrap() as usize);
            part("prefix") + &repeated + &part("suffix")
        }
        None => vector.get("hex").or(vector.get("text")).unwrap().as_str().unwrap().to_owned(),
    };
    if vector["format"] == "msgpack" { unhex(&text) } else { text.into_bytes() }
}

#[test]
fn every_reject_vector_is_refused_with_its_class() {
    let golden = golden();
    for vector in list(&golden, "reject") {
        let bytes = input(vector);
        let error = match vector["format"].as_str().unwrap() {
            "type" => Type::parse(std::str::from_utf8(&bytes).unwrap()).map(drop).unwrap_err(),
            form => {
                let dialect = if form == "json" { "json" } else { "msgpack" };
                read(&bytes, &[("dialect", dialect)]).map(drop).unwrap_err()
            }
        };
        assert_eq!(error.rule_name(), vector["code"].as_str().unwrap(), "{}: {error}", vector["id"]);
    }
}

#[test]
fn validate_reports_the_same_classes() {
    let golden = golden();
    for vector in list(&golden, "reject").iter().filter(|vector| vector["format"] != "type") {
        let bytes = input(vector);
        let document = match open(&bytes, &[("dialect", vector["format"].as_str().unwrap())]) {
            Ok(document) => document,
            // An error on opening is the first finding of validate.
            Err(_) => continue,
        };
        let mut findings = Findings::new(false);
        document.validate(&mut findings).unwrap();
        let rules: Vec<&str> = findings.list().iter().map(|finding| finding.rule.as_str()).collect();
        assert_eq!(rules, [vector["code"].as_str().unwrap()], "{}: {:?}", vector["id"], findings.list());
    }
}

fn bundle(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = Type::parse(kind).unwrap().header().unwrap();
    bytes.extend_from_slice(body);
    bytes
}

const XY: &str = r#"{"columns":{"x":"int8","y":"string"}}"#;

#[test]
fn errors_name_row_column_and_byte() {
    let nested = r#"{"columns":{"n":"int8","t":{"columns":{"a":"int8"}}}}"#;
    let cases: [(&str, &[u8], &str); 9] = [
        (
            XY,
            &[0x92, 1, 0xa1, b'a', 0x92, 0xcc, 200, 0xa1, b'b'],
            r#"ds: at byte 52, row 1, column "x": expected a value in the range of int8, found 200"#,
        ),
        (XY, &[0x92, 1, 0xc0], r#"ds: at byte 49, row 0, column "y": expected a string, found nil"#),
        (
            XY,
            &[0x92, 1, 0xa1, 0xff],
            r#"ds: at byte 50, row 0, column "y": expected UTF-8, found other bytes"#,
        ),
        (XY, &[0x91, 1], "ds: at byte 47, row 0: expected a row of 2, found 1"),
        (XY, &[0x92, 1, 0xa3, b'a'], r#"ds: at byte 50, row 0, column "y": expected 3 bytes, found 1"#),
        (XY, &[0x92, 1, 0xa0, 0x92, 1], "ds: at byte 51, row 1: expected 2 items of 1 bytes, found 1 bytes"),
        (XY, &[0x92, 1, 0xa0, 0x4d], "ds: at byte 50, row 1: expected an array, found an integer"),
        (
            nested,
            &[0x92, 1, 0x92, 0x91, 1, 0x91, 0xc0],
            r#"ds: at byte 76, row 0, column "t"[1].a: expected an integer, found nil"#,
        ),
        (r#""int8""#, &[1, 2], "ds: at byte 14: expected the end, found 1 or more bytes"),
    ];
    for (kind, body, words) in cases {
        assert_eq!(read(&bundle(kind, body), &[]).unwrap_err().to_string(), words);
    }
    let json = r#"{"type":{"columns":{"x":"int8","y":"string"}},"value":[[1,"a"],[2,3]]}"#;
    assert_eq!(
        read(json.as_bytes(), &[]).unwrap_err().to_string(),
        r#"ds: at byte 66, row 1, column "y": expected a string, found a number"#
    );
    let words = "ds: at byte 0, header: expected a map with \"format\", found an array";
    assert_eq!(read(&[0x91, 1], &[]).unwrap_err().to_string(), words);
}

#[test]
fn validate_goes_on_after_a_finding() {
    let body = [
        0x92, 0xcc, 200, 0xa1, 0xff, // both cells wrong
        0x92, 1, 0xa1, b'a', // sound
        0x91, 1,    // too short
        0x01, // no row
        0x92, 0xc0, 0xc0, // both wrong
        0x92, 1, // cut
    ];
    let document = open(&bundle(XY, &body), &[]).unwrap();
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    let found: Vec<_> = findings.list().iter().map(|one| (one.rule.as_str(), one.path.as_str())).collect();
    let expected = [
        ("range", r#"row 0, column "x""#),
        ("utf8", r#"row 0, column "y""#),
        ("arity", "row 2"),
        ("mismatch", "row 3"),
        ("mismatch", r#"row 4, column "x""#),
        ("mismatch", r#"row 4, column "y""#),
        ("truncated", "row 5"),
    ];
    assert_eq!(found, expected);

    let json = r#"{"type":{"columns":{"x":"int8","y":"string"}},"value":[[300,1],[1,"\ud800\""],[1],5,[1,"a",2],[null,"x"]]}"#;
    let document = open(json.as_bytes(), &[]).unwrap();
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    let found: Vec<_> = findings.list().iter().map(|one| (one.rule.as_str(), one.path.as_str())).collect();
    let expected = [
        ("range", r#"row 0, column "x""#),
        ("mismatch", r#"row 0, column "y""#),
        ("utf8", r#"row 1, column "y""#),
        ("arity", "row 2"),
        ("mismatch", "row 3"),
        ("arity", "row 4"),
        ("mismatch", r#"row 5, column "x""#),
    ];
    assert_eq!(found, expected);
}

#[test]
fn bombs_cost_nothing() {
    let deep =
        format!("{}\"int8\"{}", r#"{"type":"nullable","underlying":"#.repeat(100_000), "}".repeat(100_000));
    let error = Type::parse(&deep).unwrap_err();
    assert_eq!((error.kind(), error.rule_name()), (ErrorKind::Limit, "depth"));
    let yaml = format!("{}x{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Type::parse(&yaml).is_err());
    // A null tensor is one byte in the file: its memory is checked against the budget.
    let tensor = r#"{"type":"nullable","underlying":{"type":"tensor","shape":[2147483647],"componentType":"float64"}}"#;
    let error = read(&bundle(tensor, &[0xc0]), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    let string = bundle(r#""string""#, &[0xdb, 0xff, 0xff, 0xff, 0xff, b'a']);
    let stream = Source::from_reader("stream", std::io::Cursor::new(string));
    let document = Ds.open(stream, &ReadOptions::default()).unwrap();
    let error = collect(document.as_ref(), &Asked::default()).unwrap_err();
    assert_eq!(error.rule_name(), "truncated");
}

#[test]
fn a_given_type_must_agree_with_the_header() {
    let bytes = bundle(XY, &[0x92, 1, 0xa1, b'a']);
    assert_eq!(read(&bytes, &[("type", XY)]).unwrap().num_rows(), 1);
    let error = read(&bytes, &[("type", "int8")]).unwrap_err();
    assert_eq!(error.rule_name(), "header");
    assert_eq!(read(&[], &[("type", XY)]).unwrap().num_rows(), 0);
    assert_eq!(read(&[], &[]).unwrap_err().rule_name(), "header");
}
