//! The golden vectors: all of them, in both profiles and in JSON.

use super::*;
use crate::formats::ds::Type;

#[test]
fn golden_vectors_are_written_byte_for_byte_in_both_profiles() {
    let golden = golden();
    for vector in list(&golden, "golden") {
        let id = &vector["id"];
        let kind = Type::parse(&vector["type_in"].to_string()).unwrap();
        assert_eq!(kind.to_string(), vector["type"].as_str().unwrap(), "{id}");
        assert_eq!(hex(&kind.header().unwrap()), vector["header"].as_str().unwrap(), "{id}");
        let minimal = vector["msgpack"].as_str().unwrap();
        let fixed = vector["msgpack_go"].as_str().unwrap_or(minimal);
        for from in [minimal, fixed] {
            let bytes = unhex(from);
            assert_eq!(hex(&through(&bytes, "msgpack").unwrap()), minimal, "{id}");
            assert_eq!(hex(&through(&bytes, "msgpack-fixed").unwrap()), fixed, "{id}");
            // Without the header, with the type given.
            let header = vector["header"].as_str().unwrap().len() / 2;
            let bare = read(&bytes[header..], &[("type", &kind.to_string())]).unwrap();
            assert_eq!(hex(&write(&bare, "msgpack", &[]).unwrap()), minimal, "{id}");
        }
    }
}

#[test]
fn golden_vectors_in_json_hold_the_same_values() {
    let golden = golden();
    for vector in list(&golden, "golden") {
        let id = &vector["id"];
        let minimal = vector["msgpack"].as_str().unwrap();
        let Some(text) = vector["json"].as_str() else {
            // NaN and infinities are errors, unless they are written as null, which is read back as NaN.
            let batch = read(&unhex(minimal), &[]).unwrap();
            let error = write(&batch, "json", &[]).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Lossy, "{id}");
            let text = write(&batch, "json", &[("nan", "null")]).unwrap();
            assert_eq!(
                String::from_utf8(text.clone()).unwrap(),
                vector["json_scala"].as_str().unwrap(),
                "{id}"
            );
            read(&text, &[("nan", "null")]).unwrap();
            continue;
        };
        let written = through(&unhex(minimal), "json").unwrap();
        let ours: Value = serde_json::from_slice(&written).unwrap();
        let theirs: Value = serde_json::from_str(text).unwrap();
        assert_eq!(ours, theirs, "{id}");
        for key in ["json", "json_go", "json_scala"] {
            if let Some(text) = vector[key].as_str() {
                let back =
                    through(text.as_bytes(), "msgpack").unwrap_or_else(|error| panic!("{id} {key}: {error}"));
                assert_eq!(hex(&back), minimal, "{id} {key}");
            }
        }
        assert_eq!(hex(&through(&written, "msgpack").unwrap()), minimal, "{id}");
    }
}

#[test]
fn other_spellings_are_taken_and_written_canonically() {
    let golden = golden();
    for vector in list(&golden, "accept_noncanonical_msgpack") {
        let bytes = unhex(vector["msgpack"].as_str().unwrap());
        let back = through(&bytes, "msgpack").unwrap_or_else(|error| panic!("{vector}: {error}"));
        assert_eq!(hex(&back), vector["canonical_msgpack"].as_str().unwrap(), "{vector}");
    }
    for vector in list(&golden, "accept_noncanonical_json") {
        let back = through(vector["json"].as_str().unwrap().as_bytes(), "msgpack").unwrap();
        assert_eq!(hex(&back), vector["canonical_msgpack"].as_str().unwrap(), "{vector}");
    }
}

#[test]
fn large_strings_and_images_take_32_bit_lengths() {
    let golden = golden();
    for vector in list(&golden, "large") {
        let mut bytes = unhex(vector["msgpack_prefix"].as_str().unwrap());
        if vector["id"] == "b001" {
            bytes.extend((0..65536u32).map(|index| (index * 7 % 256) as u8));
        } else {
            bytes.extend(std::iter::repeat_n(b'x', 65536));
        }
        assert_eq!(bytes.len() as u64, vector["length"].as_u64().unwrap());
        assert!(through(&bytes, "msgpack").unwrap() == bytes, "{}", vector["id"]);
    }
}
