//! Elements without their type, and values without Arrow.

use super::*;
use crate::error::ErrorKind;
use crate::formats::ds::{self, Type, Wire};
use crate::limits::Limits;

/// Rows that other programs wrote for a service: MessagePack one after the other, and JSON.
fn rows() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ds/rows.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn rows_of_other_programs_are_read_with_a_type_and_written_again() {
    let found = rows();
    let kind = found["type"].to_string();
    let (packed, text) =
        (unhex(found["msgpack"].as_str().unwrap()), found["json"].as_str().unwrap().as_bytes());
    let packed_rows = read(&packed, &[("type", &kind), ("dialect", "rows")]).unwrap();
    let text_rows = read(text, &[("type", &kind), ("dialect", "rows-json")]).unwrap();
    assert_eq!(packed_rows, text_rows);
    assert_eq!(packed_rows.num_rows(), 3);
    assert_eq!(write(&packed_rows, "rows", &[]).unwrap(), packed);
    let again = write(&text_rows, "rows-json", &[]).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&again).unwrap(),
        serde_json::from_slice::<Value>(text).unwrap()
    );
    // Also detected by the bytes alone.
    let document = open(&packed, &[("type", &kind)]).unwrap();
    assert_eq!(document.summary().dialect, Some("rows"));
    assert_eq!(open(text, &[("type", &kind)]).unwrap().summary().dialect, Some("rows-json"));
    // A bundle is its header and these rows.
    let bundle = write(&packed_rows, "msgpack", &[]).unwrap();
    assert!(bundle.ends_with(&packed));
    assert!(read(&bundle, &[("type", &kind), ("dialect", "rows")]).is_err());
    let error = open(&packed, &[("dialect", "rows")]).err().unwrap();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Usage, "ds: ds:rows holds no type"));
}

#[test]
fn every_golden_value_is_read_and_written_as_a_value() {
    for vector in list(&golden(), "golden") {
        let Some(hexed) = vector["msgpack"].as_str() else { continue };
        let header = unhex(vector["header"].as_str().unwrap());
        let bundle = unhex(hexed);
        let body = bundle[header.len()..].to_vec();
        let (kind, value) = ds::read_bundle(&bundle, &Limits::default()).unwrap();
        let name = &vector["type"];
        assert_eq!(ds::write_value(&kind, &value, Wire::MsgPack).unwrap(), body, "{name}");
        let fixed = vector["msgpack_go"].as_str().unwrap_or(hexed);
        assert_eq!(hex(&ds::write_bundle(&kind, &value, Wire::MsgPackFixed).unwrap()), fixed, "{name}");
        assert_eq!(
            ds::write_value(&kind, &value, Wire::MsgPackFixed).unwrap(),
            unhex(fixed)[header.len()..],
            "{name}"
        );
        // NaN is not equal to itself, but prints the same.
        let again = ds::read_value(&body, &kind, Wire::MsgPack, &Limits::default()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{value:?}"), "{name}");
        if let Ok(text) = ds::write_bundle(&kind, &value, Wire::Json) {
            assert_eq!(ds::read_bundle(&text, &Limits::default()).unwrap(), (kind, value), "{name}");
        }
    }
}

#[test]
fn values_that_are_not_of_their_type_are_refused_with_their_place() {
    use ds::Value::{Float64, Int, List, Null, String};
    let kind = Type::parse(
        r#"{"columns": {"n": "int8", "t": {"type": "tensor", "componentType": "float64", "shape": [2]}}}"#,
    );
    let kind = kind.unwrap();
    let row = |n, t| List(vec![List(vec![n, t])]);
    let tensor = |count| List(vec![Float64(0.5); count]);
    assert!(ds::write_value(&kind, &row(Int(5), tensor(2)), Wire::Json).is_ok());
    for (value, message) in [
        (
            row(Int(500), tensor(2)),
            r#"ds: at byte 0, row 0, column "n": expected a value in the range of int8, found Int(500)"#,
        ),
        (row(Null, tensor(2)), r#"ds: row 0, column "n": expected int8, found Null"#),
        (row(Int(5), tensor(3)), r#"ds: at byte 0, row 0, column "t": expected a tensor of 2, found 3"#),
        (row(Int(5), String("x".into())), r#"ds: row 0, column "t": expected a list, found String("x")"#),
        (List(vec![Int(5)]), "ds: expected a row of 2 cells, found Int(5)"),
        (Int(5), "ds: expected a list, found Int(5)"),
    ] {
        assert_eq!(ds::write_value(&kind, &value, Wire::MsgPack).unwrap_err().to_string(), message);
    }
}

#[test]
fn media_types_are_looked_up_both_ways() {
    let registry = crate::Registry::default();
    for (media_type, dialect) in [
        ("application/x-mantik-bundle", "msgpack"),
        ("application/x-mantik-bundle-json", "json"),
        ("Application-X-Mantik-Bundle-JSON", "json"),
        ("application/x-msgpack; charset=binary", "rows"),
    ] {
        let (format, found) = registry.by_media_type(media_type).unwrap();
        assert_eq!((format.info().id, found), ("ds", Some(dialect)), "{media_type}");
    }
    assert_eq!(Ds.media_type(None), Some("application/x-mantik-bundle"));
    assert_eq!(Ds.media_type(Some("rows-json")), Some("application/json"));
    assert_eq!(Ds.media_type(Some("json")), Some("application/x-mantik-bundle-json"));
    let (parquet, dialect) = registry.by_media_type("application/vnd.apache.parquet").unwrap();
    assert_eq!((parquet.info().id, dialect), ("parquet", None));
    assert!(registry.by_media_type("text/x-nothing").is_none());
}
