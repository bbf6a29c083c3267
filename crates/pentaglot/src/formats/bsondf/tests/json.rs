//! Extended JSON: text that pymongo printed is the judge (`extended.jsonl`: canonical, then relaxed).

use bson::{Bson, doc};

use super::*;
use crate::formats::{Confidence, Head};
use crate::wire::bson::Reader;

/// BSON bytes as Extended JSON by our printer.
fn printed(bytes: &[u8], relaxed: bool) -> String {
    let source = Source::from_bytes("x", bytes.to_vec());
    let limits = crate::Limits::default();
    let mut out = Vec::new();
    let mut reader = Reader::new(&source);
    let root = reader.document_at(0, bytes.len() as u64).unwrap();
    super::super::json_write::JsonPrinter { reader, relaxed, limits: &limits, out: &mut out }
        .document(root)
        .unwrap();
    String::from_utf8(out).unwrap()
}

/// Text as BSON by our parser.
fn parsed(text: &str) -> Result<Vec<u8>> {
    let source = Source::from_bytes("x", text.as_bytes().to_vec());
    let budget = crate::Limits::default().budget();
    let translated = super::super::json_read::translate(&source, &budget)?;
    Ok(translated.read_range(0, translated.len().unwrap(), &budget)?.to_vec())
}

/// A document with every type.
fn every_type() -> bson::Document {
    doc! {
        "double": 1.5, "whole": 1.0, "nan": f64::NAN, "inf": f64::NEG_INFINITY, "huge": 1e300,
        "text": "a\"b\u{e9}\n", "document": { "x": 1, "empty": {} }, "array": [1, "two", [3.5]],
        "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![0, 1, 2, 255] },
        "uuid": bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![9; 16] },
        "old": bson::Binary { subtype: bson::spec::BinarySubtype::BinaryOld, bytes: vec![7; 3] },
        "oid": bson::oid::ObjectId::from_bytes([0xab; 12]), "yes": true, "no": false,
        "date": bson::DateTime::from_millis(1_700_000_000_123), "early": bson::DateTime::from_millis(-5),
        "null": Bson::Null,
        "pattern": bson::Regex { pattern: "a.*b".try_into().unwrap(), options: "im".try_into().unwrap() },
        "code": Bson::JavaScriptCode("f()".to_owned()),
        "scoped": bson::JavaScriptCodeWithScope { code: "g()".to_owned(), scope: doc! { "y": 2i64 } },
        "int": 7, "negative": -7,
        "timestamp": bson::Timestamp { time: 4_000_000_000, increment: 5 }, "long": 1i64 << 60,
        "decimal": "1.50E+3".parse::<bson::Decimal128>().unwrap(), "min": Bson::MinKey, "max": Bson::MaxKey,
    }
}

#[test]
fn every_type_is_printed_and_parsed_as_mongodb_defines_it() {
    let document = every_type();
    let bytes = document.to_vec().unwrap();
    let expected = String::from_utf8(load("extended.jsonl")).unwrap();
    let lines: Vec<&str> = expected.lines().collect();
    assert_eq!(printed(&bytes, false), lines[0]);
    assert_eq!(printed(&bytes, true), lines[1]);
    assert_eq!(parsed(lines[0]).unwrap(), bytes);
    // Types that pymongo does not write.
    let other = doc! { "u": Bson::Undefined, "s": Bson::Symbol("s".to_owned()) };
    let text = r#"{"u":{"$undefined":true},"s":{"$symbol":"s"}}"#;
    assert_eq!(printed(&other.to_vec().unwrap(), false), text);
    assert_eq!(parsed(text).unwrap(), other.to_vec().unwrap());
    let pointer = r#"{"p":{"$dbPointer":{"$ref":"c","$id":{"$oid":"070707070707070707070707"}}}}"#;
    assert_eq!(printed(&parsed(pointer).unwrap(), false), pointer);
    // Dates and binary in other forms.
    let forms = r#"{"a":{"$date":{"$numberLong":"5"}},"b":{"$date":"1970-01-01T00:00:00.005Z"},"c":{"$date":5},
        "d":{"$binary":"AAEC","$type":"0"},"e":{"$binary":{"subType":"00","base64":"AAEC"}},
        "f":{"$uuid":"09090909-0909-0909-0909-090909090909"},"g":{"$ref":"c","$id":3}}"#;
    let back = bson::Document::from_reader(&parsed(forms).unwrap()[..]).unwrap();
    assert_eq!((&back["a"], &back["b"]), (&back["c"], &back["c"]));
    assert_eq!(back["d"], back["e"]);
    assert_eq!(back["f"], document["uuid"]);
    assert_eq!(back.get_document("g").unwrap(), &doc! { "$ref": "c", "$id": 3 });
}

#[test]
fn text_that_is_not_extended_json_is_refused_with_its_place() {
    for (text, expected) in [
        ("", "a document"),
        ("[1]", "an object"),
        (r#"{"a":{"$oid":"12"}}"#, "24 hex digits"),
        (r#"{"a":{"$numberLong":"x"}}"#, "an int64 as text"),
        (r#"{"a":{"$binary":{"base64":"?","subType":"00"}}}"#, "base64"),
        (r#"{"a":{"$binary":{"base64":"AA=="}}}"#, "base64 and subType"),
        (r#"{"a":{"$oid":"070707070707070707070707","b":1}}"#, "the end of the value"),
        (r#"{"a":{"$date":"yesterday"}}"#, "ISO 8601"),
        (r#"{"a":"#, "a value"),
        ("{\"a\\u0000\":1}", "zero byte"),
    ] {
        let error = parsed(text).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

fn with_dialect(pairs: &[(&str, &str)]) -> WriteOptions {
    let mut options = write_options(pairs);
    options.dialect = Some("json".to_owned());
    options
}

#[test]
fn frames_come_back_through_text() {
    let batch = read(&load("ticks_5k.bson")).unwrap();
    for pairs in [&[][..], &[("json", "relaxed")], &[("max-bytes", "16K")]] {
        let text = write_batches(batch.schema(), std::slice::from_ref(&batch), &with_dialect(pairs)).unwrap();
        assert!(text.starts_with(b"{\"") && text.ends_with(b"}\n"), "{pairs:?}");
        assert_eq!(read(&text).unwrap().columns(), batch.columns(), "{pairs:?}");
        let head = &text[..text.len().min(64 << 10)];
        assert_eq!(
            Bsondf.detect(&Head::new(&Source::from_bytes("x.json", text.clone()), head)),
            Confidence::Certain
        );
        assert!(findings(&text, true).is_empty(), "{pairs:?}");
        // As `mongoexport --jsonArray` writes it.
        let lines = String::from_utf8(text).unwrap();
        let array = format!("[{}]", lines.trim_end().replace("}\n{", "},\n{"));
        assert_eq!(read(array.as_bytes()).unwrap().columns(), batch.columns());
    }
    for name in ["structs", "factors", "strings", "list_struct_list", "times", "opaque"] {
        let bytes = load(&format!("{name}.bson"));
        for relaxed in [false, true] {
            let text = printed(&bytes, relaxed);
            assert_eq!(read(text.as_bytes()).unwrap().columns(), read(&bytes).unwrap().columns(), "{name}");
        }
    }
}

#[test]
fn other_text_is_left_to_other_formats() {
    for text in [
        "{\"a\":1}\n",
        "[{\"t\":\"int64\"}]",
        "{\"d\":{\"$binary\":{\"base64\":\"AA==\",\"subType\":\"00\"}}}\n",
        "a,b\n1,2\n",
        "",
    ] {
        let source = Source::from_bytes("x.json", text.as_bytes().to_vec());
        assert_eq!(Bsondf.detect(&Head::new(&source, text.as_bytes())), Confidence::No, "{text}");
    }
}
