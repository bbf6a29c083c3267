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
    let twice = [NO_GROUPS, b"\x09\x08\x0c"].concat();
    // The name of an element as a number, within the schema.
    let name = [b"\x19\x2c".as_slice(), &group(1), b"\x15\x04\x25\0\x15\x01x\0"].concat();
    for (fields, expected) in [
        ([VERSION, &schema, NO_ROWS, number], "a list"),
        ([b"\x18\0", &schema, NO_ROWS, NO_GROUPS], "an i32"),
        ([VERSION, b"\x1c\0", NO_ROWS, NO_GROUPS], "a list"),
        ([VERSION, b"\x19\x25\x02\x02", NO_ROWS, NO_GROUPS], "a struct"),
        ([VERSION, &name, NO_ROWS, NO_GROUPS], "a binary"),
        ([VERSION, &schema, b"\x18\0", NO_GROUPS], "an i64"),
        ([b"\x16\xfe\xff\xff\xff\x1f", &schema, NO_ROWS, NO_GROUPS], "an i32"),
        ([VERSION, &schema, NO_ROWS, &twice], "field 4 once"),
    ] {
        let error = open(&fields).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().contains(&format!("expected {expected}")), "{error}");
        assert!(error.offset().is_some());
    }
}

/// For the crate, the bools of a field that it passes over take no bytes: what is in them would be fields, unchecked.
#[test]
fn bools_that_hide_fields_are_refused() {
    let elements = schema(&[group(1), leaf()]);
    let hidden = b"\x19\xfc\xff\xff\xff\x07";
    let list = [b"\xc9\x61".as_slice(), hidden].concat();
    let map = [b"\xcb\x03\x11".as_slice(), hidden].concat();
    let nested = [b"\xc9\x19\x61".as_slice(), hidden].concat();
    // An unknown member of a logical type.
    let element = [b"\x15\x04\x25\0\x18\x01x\x6c\x0c\x32\x19\x61".as_slice(), hidden, b"\0\0\0"].concat();
    let member = schema(&[group(1), element]);
    for (elements, more) in [(&elements, list), (&elements, map), (&elements, nested), (&member, Vec::new())]
    {
        let error = open(&[VERSION, elements, NO_ROWS, NO_GROUPS, &more]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains("bools"), "{error}");
    }
}

#[test]
fn unknown_fields_of_every_type_are_passed_over() {
    let schema = schema(&[group(1), leaf()]);
    let uuid = [b"\xcd".as_slice(), &[7; 16]].concat();
    for field in [
        b"\xc1".as_slice(),
        b"\xc3\x07",
        b"\xc6\x07",
        b"\xc7\0\0\0\0\0\0\0\0",
        b"\xc8\x02hi",
        b"\xc9\x25\x02\x04",
        b"\xc9\x02",
        b"\xcb\0",
        b"\xcb\x01\x58\x02\x02hi",
        b"\xcc\x11\0",
        &uuid,
    ] {
        open(&[VERSION, &schema, NO_ROWS, NO_GROUPS, field]).unwrap();
    }
}

#[test]
fn elements_have_no_more_children_than_there_are() {
    for elements in [
        vec![group(i32::MAX), leaf()],
        vec![group(2), leaf()],
        vec![group(-1), leaf()],
        vec![group(2), group(2), leaf(), leaf()],
        vec![group(2), leaf(), group(1)],
    ] {
        let error = open(&[VERSION, &schema(&elements), NO_ROWS, NO_GROUPS]).unwrap_err();
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
