//! Every vector of `testdata/dynd/golden.json`: values, malformed bytes, values that have no serialization, types, CBOR.

use serde_json::Value as Json;

use super::super::*;
use crate::Limits;

pub(super) fn golden() -> Json {
    serde_json::from_str(include_str!("../../../../../../testdata/dynd/golden.json")).unwrap()
}

pub(super) fn bytes_of(hex: &Json) -> Vec<u8> {
    let hex = hex.as_str().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

pub(super) fn type_of(text: &Json) -> Type {
    text.as_str().unwrap().parse().unwrap()
}

fn bits(json: &Json) -> u128 {
    u128::from_str_radix(json.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

/// The value that the JSON form of the vectors means; `None` where [`Value`] has no such value.
pub(super) fn value_of(ty: &Type, json: &Json) -> Option<Value> {
    Some(match ty {
        Type::Bool => Value::Bool(json.as_bool().unwrap()),
        Type::Int(_) | Type::Date | Type::Time(_) | Type::Datetime(_) => {
            Value::Int(json.as_str().unwrap().parse().ok()?)
        }
        Type::Uint(_) => Value::Uint(json.as_str().unwrap().parse().ok()?),
        Type::Float(_) => Value::Float(bits(json)),
        Type::Complex(_) => Value::Complex(Box::new([bits(&json[0]), bits(&json[1])])),
        Type::Char(_) => {
            Value::Char(char::from_u32(u32::from_str_radix(&json.as_str().unwrap()[2..], 16).unwrap())?)
        }
        Type::String | Type::Json | Type::FixedString { .. } => {
            Value::String(json.as_str().unwrap().to_owned())
        }
        Type::Bytes { .. } | Type::FixedBytes { .. } => Value::Bytes(bytes_of(json)),
        Type::Void => Value::Void,
        Type::Type => Value::Type(Box::new(type_of(json))),
        Type::Fixed(_, of) | Type::Var(of) => Value::List(
            json.as_array().unwrap().iter().map(|item| value_of(of, item)).collect::<Option<_>>()?,
        ),
        Type::Tuple(fields) => {
            let items = fields.iter().zip(json.as_array().unwrap());
            Value::List(items.map(|(ty, item)| value_of(ty, item)).collect::<Option<_>>()?)
        }
        Type::Struct(fields) => {
            let items = fields.iter().zip(json.as_array().unwrap());
            Value::List(items.map(|((_, ty), item)| value_of(ty, item)).collect::<Option<_>>()?)
        }
        Type::Option(_) if json.is_null() => Value::Missing,
        Type::Option(of) => Value::some(value_of(of, &json["some"])?),
        Type::Pointer(of) | Type::Storage { of, .. } => value_of(of, json)?,
        Type::Array(_) => {
            let stored = type_of(&json["type"]);
            let value = value_of(&stored, &json["value"])?;
            Value::array(stored, value)
        }
        Type::Merkle(_) => Value::merkle(type_of(&json["type"]), bytes_of(&json["hash"])),
        Type::Pattern(_) => panic!("no data has the type {ty}"),
    })
}

#[test]
fn every_value_has_its_bytes_and_back() {
    for vector in golden()["vectors"].as_array().unwrap() {
        let ty = type_of(&vector["type"]);
        let value = value_of(&ty, &vector["value"]).unwrap();
        let bytes = bytes_of(&vector["hex"]);
        assert_eq!(write_value(&ty, &value).unwrap(), bytes, "{vector}");
        assert_eq!(read_value(&bytes, &ty, &Limits::default()).unwrap(), value, "{vector}");
        if let Some(size) = ty.fixed_size() {
            assert_eq!(size, bytes.len() as u64, "{vector}");
        }
        assert!(ty.least_size() <= bytes.len() as u64, "{vector}");
        // Truncated anywhere, it is not a value.
        for end in 0..bytes.len() {
            assert!(read_value(&bytes[..end], &ty, &Limits::default()).is_err(), "{vector} cut at {end}");
        }
    }
}

#[test]
fn malformed_bytes_are_refused_by_their_rule() {
    for vector in golden()["malformed"].as_array().unwrap() {
        let ty = type_of(&vector["type"]);
        let bytes = bytes_of(&vector["hex"]);
        let error = read_value(&bytes, &ty, &Limits::default()).unwrap_err();
        assert_eq!(error.rule_name(), vector["error"].as_str().unwrap(), "{vector}: {error}");
        assert!(error.offset().is_some(), "{vector}: {error}");
        let mut cursor = crate::cursor::Cursor::new(&bytes);
        let walked = walk::Walker::new(&Limits::default(), walk::Care::Strict).value(&ty, &mut cursor);
        // The walk returns the same error, except for limits of memory.
        if vector["error"] != "limit" {
            let walked = walked.and_then(|()| cursor.expect_end()).unwrap_err();
            assert_eq!(walked.rule_name(), error.rule_name(), "{vector}: {walked}");
        }
    }
}

#[test]
fn values_that_have_no_serialization_are_refused_by_their_rule() {
    for vector in golden()["serialize_errors"].as_array().unwrap() {
        let ty = type_of(&vector["type"]);
        let Some(value) = value_of(&ty, &vector["value"]) else { continue };
        let error = write_value(&ty, &value).unwrap_err();
        assert_eq!(error.rule_name(), vector["error"].as_str().unwrap(), "{vector}: {error}");
    }
}

#[test]
fn types_have_one_canonical_text() {
    for vector in golden()["types_canonical"].as_array().unwrap() {
        let canonical = type_of(&vector["input"]).to_string();
        assert_eq!(canonical, vector["canonical"].as_str().unwrap());
        assert_eq!(type_of(&vector["canonical"]).to_string(), canonical);
        assert!(canonical.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    }
    for vector in golden()["types_invalid"].as_array().unwrap() {
        let text = vector["text"].as_str().unwrap();
        let error = text.parse::<Type>().unwrap_err();
        assert_eq!(error.rule_name(), vector["error"].as_str().unwrap(), "{text}: {error}");
        assert!(error.offset().unwrap() <= text.len() as u64);
    }
}

#[test]
fn cbor_has_one_form() {
    for vector in golden()["cbor"].as_array().unwrap() {
        let ty = type_of(&vector["type"]);
        let value = value_of(&ty, &vector["value"]).unwrap();
        let bytes = bytes_of(&vector["cbor"]);
        assert_eq!(write_cbor(&ty, &value).unwrap(), bytes, "{vector}");
        assert_eq!(read_cbor(&bytes, &Limits::default()).unwrap(), (ty.clone(), value), "{vector}");
        assert_eq!(cbor::is_native(&ty), vector["native"].as_bool().unwrap());
        for end in 0..bytes.len() {
            assert!(read_cbor(&bytes[..end], &Limits::default()).is_err(), "{vector} cut at {end}");
        }
    }
    for vector in golden()["cbor_malformed"].as_array().unwrap() {
        let error = read_cbor(&bytes_of(&vector["cbor"]), &Limits::default()).unwrap_err();
        assert_eq!(error.rule_name(), vector["error"].as_str().unwrap(), "{vector}: {error}");
    }
    // Every value of the vectors, also where no CBOR is given.
    for vector in golden()["vectors"].as_array().unwrap() {
        let ty = type_of(&vector["type"]);
        let value = value_of(&ty, &vector["value"]).unwrap();
        let bytes = write_cbor(&ty, &value).unwrap();
        assert_eq!(read_cbor(&bytes, &Limits::default()).unwrap(), (ty, value), "{vector}");
    }
}
