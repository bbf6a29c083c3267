//! `merkle[T]`: links to data. The vectors of `testdata/dynd/merkle.json`, and links in files.

use serde_json::Value as Json;

use super::super::*;
use super::golden::{bytes_of, type_of, value_of};
use super::hub::{check_round_trip, open, raw};
use crate::hub::extension;
use crate::{Error, Limits};

fn vectors() -> Json {
    serde_json::from_str(include_str!("../../../../../../testdata/dynd/merkle.json")).unwrap()
}

#[test]
fn the_published_vectors_hold() {
    for vector in vectors()["vectors"].as_array().unwrap() {
        let ty = type_of(&vector["type"]);
        assert_eq!(ty.to_string(), vector["type"].as_str().unwrap());
        let value = value_of(&ty, &vector["value"]).unwrap();
        let bytes = bytes_of(&vector["hex"]);
        assert_eq!(write_value(&ty, &value).unwrap(), bytes, "{vector}");
        assert!(ty.least_size() <= bytes.len() as u64, "{vector}");
        check_round_trip(&ty, &value);
        assert_eq!(
            read_cbor(&write_cbor(&ty, &value).unwrap(), &Limits::default()).unwrap(),
            (ty.clone(), value)
        );
        for end in 0..bytes.len() {
            assert!(read_value(&bytes[..end], &ty, &Limits::default()).is_err(), "{vector} cut at {end}");
        }
    }
    for vector in vectors()["types_canonical"].as_array().unwrap() {
        assert_eq!(type_of(&vector["input"]).to_string(), vector["canonical"].as_str().unwrap());
    }
    for vector in vectors()["types_invalid"].as_array().unwrap() {
        let text = vector["text"].as_str().unwrap();
        assert_eq!(text.parse::<Type>().unwrap_err().rule_name(), "type-syntax", "{text}");
    }
}

#[test]
fn other_bytes_are_refused_by_their_rule() {
    for vector in vectors()["malformed"].as_array().unwrap() {
        let (ty, bytes) = (type_of(&vector["type"]), bytes_of(&vector["hex"]));
        let rule = vector["error"].as_str().unwrap();
        let check = |error: Error| {
            assert_eq!(error.rule_name(), rule, "{vector}: {error}");
            assert!(error.offset().is_some(), "{vector}: {error}");
        };
        check(read_value(&bytes, &ty, &Limits::default()).unwrap_err());
        // Also where rows are read.
        let read = open(&bytes, &raw(&ty.to_string())).and_then(|document| {
            document.all_rows()?.try_for_each(|batch| batch.map(drop).map_err(Error::from))
        });
        assert!(read.is_err() || rule == "trailing", "{vector}");
    }
    for vector in vectors()["serialize_errors"].as_array().unwrap() {
        let ty = type_of(&vector["type"]);
        let error = write_value(&ty, &value_of(&ty, &vector["value"]).unwrap()).unwrap_err();
        assert_eq!(error.rule_name(), vector["error"].as_str().unwrap(), "{vector}: {error}");
    }
}

#[test]
fn a_link_in_arrow_is_a_type_and_a_hash() {
    let ty: Type = "2 * {a: int8, data: merkle[bytes]}".parse().unwrap();
    let link = || Value::merkle("bytes".parse().unwrap(), blake3_multihash(&[9; 32]));
    let row = |a| Value::List(vec![Value::Int(a), link()]);
    let bytes = write_value(&ty, &Value::List(vec![row(1), row(2)])).unwrap();
    let document = open(&bytes, &raw(&ty.to_string())).unwrap();
    let schema = &document.summary().schema;
    assert_eq!(extension::name(schema.field(1)), Some(extension::DYND_MERKLE));
    // Without the datashape the extension gives a link to anything.
    let plain = crate::hub::native::without(schema);
    assert_eq!(Type::from_schema(&plain).unwrap().to_string(), "var * {a: int8, data: merkle[Any]}");
    assert_eq!(blake3_digest(&blake3_multihash(&[9; 32])), Some([9; 32]));
    assert_eq!(blake3_digest(&[0x12, 32]), None);
}
