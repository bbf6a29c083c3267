//! Footers that say what the `parquet` crate would believe.

use super::*;
use crate::error::ErrorKind;
use crate::formats::parquet::Parquet;
use crate::formats::{Format, ReadOptions};

const VERSION: &[u8] = b"\x15\x02";
const NO_ROWS: &[u8] = b"\x16\0";
const NO_GROUPS: &[u8] = b"\x19\x0c";

fn varint(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A required column of 64-bit numbers.
fn leaf() -> Vec<u8> {
    b"\x15\x04\x25\0\x18\x01x\0".to_vec()
}

fn group(children: i32) -> Vec<u8> {
    let zigzag = (children << 1) ^ (children >> 31);
    [b"\x35\0\x18\x01g\x15", varint(zigzag.cast_unsigned()).as_slice(), b"\0"].concat()
}

fn schema(elements: &[Vec<u8>]) -> Vec<u8> {
    [b"\x19\xfc", varint(elements.len() as u32).as_slice(), &elements.concat()].concat()
}

/// What opening a file with a footer of these fields says.
fn open(fields: &[&[u8]]) -> Result<()> {
    let footer = [fields.concat().as_slice(), b"\0"].concat();
    let length = (footer.len() as u32).to_le_bytes();
    let file = [MAGIC.as_slice(), &footer, &length, MAGIC].concat();
    Parquet.open(Source::from_bytes("x", file), &ReadOptions::default()).map(drop)
}

#[test]
fn a_sound_footer_is_read() {
    let schema = schema(&[group(2), leaf(), group(1), leaf()]);
    open(&[VERSION, &schema, NO_ROWS, NO_GROUPS]).unwrap();
}

#[test]
fn a_field_of_another_type_is_malformed() {
    let schema = schema(&[group(1), leaf()]);
    // For the crate, the number is the header of a list with 2^31 - 1 row groups.
    let number = b"\x16\xfc\xff\xff\xff\x07";
    // The name of an element as a number, within the schema.
    let name = [b"\x19\x2c".as_slice(), &group(1), b"\x15\x04\x25\0\x15\x01x\0"].concat();
    for (fields, expected) in [
        ([VERSION, &schema, NO_ROWS, number], "a list"),
        ([b"\x18\0", &schema, NO_ROWS, NO_GROUPS], "an i32"),
        ([VERSION, b"\x1c\0", NO_ROWS, NO_GROUPS], "a list"),
        ([VERSION, b"\x19\x25\x02\x02", NO_ROWS, NO_GROUPS], "a struct"),
        ([VERSION, &name, NO_ROWS, NO_GROUPS], "a binary"),
        ([VERSION, &schema, b"\x15\0", NO_GROUPS], "an i64"),
    ] {
        let error = open(&fields).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().contains(&format!("expected {expected}")), "{error}");
        assert!(error.offset().is_some());
    }
}

#[test]
fn elements_have_no_more_children_than_there_are() {
    for children in [i32::MAX, 2, -1] {
        let error = open(&[VERSION, &schema(&[group(children), leaf()]), NO_ROWS, NO_GROUPS]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().contains("children"), "{error}");
    }
}

#[test]
fn a_deep_schema_is_a_limit() {
    let deep = |levels: usize| {
        let elements: Vec<_> = (0..levels).map(|_| group(1)).chain([leaf()]).collect();
        open(&[VERSION, &schema(&elements), NO_ROWS, NO_GROUPS])
    };
    deep(100).unwrap();
    for levels in [300, 300_000] {
        assert_eq!(deep(levels).unwrap_err().kind(), ErrorKind::Limit);
    }
}
