//! Documents that break a rule, what we say of them, and what they may cost.

use super::*;
use crate::ErrorKind;

/// Read by default, and a finding of `validate` (an error in the strict profile).
const CHOICES: [(&str, &str); 5] = [
    ("bool_byte_2", "bool-byte columns.x.d[1]"),
    ("mask_trailing_bits", "mask-trailing-bits columns.x.m"),
    ("null_d_int32", "integer-type columns.x.d"),
    ("opaque_p_int64", "integer-type columns.x.p"),
    ("struct_l_int32", "integer-type columns.x.d.l"),
];

#[test]
fn bad_documents_are_refused_with_their_place() {
    let texts = String::from_utf8(load("bad/errors.txt")).unwrap();
    let mut expected = texts.lines();
    for name in names("bad", "bson") {
        if ["factor_missing_p", "toplevel_id"].contains(&&*name)
            || CHOICES.iter().any(|(choice, _)| *choice == name)
        {
            continue;
        }
        let error = read(&load(&format!("bad/{name}.bson"))).unwrap_err();
        assert_eq!(expected.next(), Some(&*format!("{name}: {error}")));
        assert!(matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated), "{name}");
        assert!(error.offset().is_some(), "{name}");
        assert!(!findings(&load(&format!("bad/{name}.bson")), false).is_empty(), "{name}");
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn what_the_last_text_forbids_is_read_and_refused_by_the_strict_profile() {
    for (name, finding) in CHOICES {
        let bytes = load(&format!("bad/{name}.bson"));
        read(&bytes).unwrap();
        assert_eq!(findings(&bytes, false), [format!("warning {finding}")], "{name}");
        assert_eq!(findings(&bytes, true), [format!("error {finding}")], "{name}");
    }
    // The last text makes this parameter optional.
    let bytes = load("bad/factor_missing_p.bson");
    assert_eq!(read(&bytes).unwrap().num_rows(), 3);
    assert!(findings(&bytes, true).is_empty());
}

#[test]
fn validate_tells_every_fault() {
    let mut columns: Vec<(String, bson::Bson)> = Vec::new();
    for name in ["prefix_larger", "mask_short", "offset_negative", "utf8_split", "bool_byte_2"] {
        let mut document = bson::Document::from_reader(&load(&format!("bad/{name}.bson"))[..]).unwrap();
        let (_, column) = document.iter_mut().next().unwrap();
        columns.push((name.to_owned(), column.clone()));
    }
    let document: bson::Document = columns.into_iter().collect();
    let found = findings(&document.to_vec().unwrap(), false);
    assert_eq!(
        found,
        [
            "error row-count columns.mask_short",
            "error lz4-length columns.prefix_larger.d",
            "error mask-length columns.mask_short.m",
            "error offsets columns.offset_negative.o[2]",
            "error utf8 columns.utf8_split.d[0]",
            "warning bool-byte columns.bool_byte_2.d[1]",
        ]
    );
}

/// A column `c` of int8 whose buffer claims `length` bytes and whose block is `block`.
fn with_block(length: i32, block: &[u8]) -> Vec<u8> {
    let binary = |length: i32, block: &[u8]| bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: [&length.to_le_bytes(), block].concat(),
    };
    let column = bson::doc! { "d": binary(length, block), "m": binary(0, &[]), "t": "int8" };
    bson::doc! { "c": column }.to_vec().unwrap()
}

/// A legal block of zeros.
fn zeros(length: usize) -> Vec<u8> {
    // One literal, then a match of 4 + 15 + 255 * n + rest bytes one byte back, then five literals.
    let matched = length - 6 - 19;
    let mut block = vec![0x1f, 0, 1, 0];
    block.extend(std::iter::repeat_n(255, matched / 255));
    block.push((matched % 255) as u8);
    block.extend([0x50, 0, 0, 0, 0, 0]);
    block
}

#[test]
fn a_length_that_no_block_can_reach_costs_nothing() {
    let bytes = with_block(i32::MAX, &[0; 100]);
    let mut document = open_with(&bytes, &ReadOptions::default()).unwrap();
    assert_eq!(document.summary().rows, Some(i32::MAX as u64));
    // With a mask of that size, the block is looked at.
    let column = bson::Document::from_reader(&bytes[..]).unwrap();
    let mut column = column.get_document("c").unwrap().clone();
    let mask = (1u32 << 28).to_le_bytes();
    column.insert(
        "m",
        bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: [&mask[..], &[0; 9]].concat() },
    );
    document = open_with(&bson::doc! { "c": column }.to_vec().unwrap(), &ReadOptions::default()).unwrap();
    let error = collect(document.all_rows().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "bsondf: at byte 19, columns.c.d: expected the length of what the LZ4 block holds, \
         found 2147483647, which 100 bytes of LZ4 cannot become"
    );
}

#[test]
fn a_legal_bomb_meets_the_memory_limit() {
    let length = 80 << 20;
    let mut bytes = with_block(length, &zeros(length as usize));
    let mut document = bson::Document::from_reader(&bytes[..]).unwrap();
    let mask = [&(length / 8).to_le_bytes()[..], &zeros(length as usize / 8)].concat();
    let mask = bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: mask };
    document.get_document_mut("c").unwrap().insert("m", mask);
    bytes = document.to_vec().unwrap();
    assert!(bytes.len() < 400_000);
    let mut options = ReadOptions::default();
    options.budget = crate::Limits { max_alloc: 64 << 20, ..crate::Limits::default() }.budget();
    let error = read_with(&bytes, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    options.budget = crate::Limits { max_alloc: 128 << 20, ..crate::Limits::default() }.budget();
    assert_eq!(read_with(&bytes, &options).unwrap().num_rows(), length as usize);
    options.budget = crate::Limits { max_ratio: 100, ..crate::Limits::default() }.budget();
    assert_eq!(read_with(&bytes, &options).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn deep_nesting_meets_the_depth_limit() {
    let nested = |depth: usize| {
        let mut array: ArrayRef = Arc::new(arrow_array::NullArray::new(1));
        for _ in 0..depth {
            let field = arrow_schema::Field::new_list_field(array.data_type().clone(), true);
            let offsets = arrow_buffer::OffsetBuffer::from_lengths([1]);
            array = Arc::new(arrow_array::ListArray::new(Arc::new(field), offsets, array, None));
        }
        write(&table(vec![("c", array)]))
    };
    assert_eq!(read(&nested(100)).unwrap().num_rows(), 1);
    let error = read(&nested(130)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    let mut options = ReadOptions::default();
    options.budget = crate::Limits { max_depth: 3, ..crate::Limits::default() }.budget();
    assert!(read_with(&nested(2), &options).is_ok());
    assert!(read_with(&nested(3), &options).is_err());
}

#[test]
fn duplicates_are_refused() {
    let column = load("toy_seed.bson");
    let x = &column[4..4 + 66];
    assert_eq!(&x[..3], b"\x03x\0");
    let end = 3 + u32::from_le_bytes(x[3..7].try_into().unwrap()) as usize;
    let twice = [&x[..end], &x[..end], &[0]].concat();
    let bytes = [&(twice.len() as i32 + 4).to_le_bytes()[..], &twice].concat();
    let error = read(&bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "bsondf: at byte {}, columns.x: expected columns of different names, found the name a second time",
            4 + end
        )
    );
}

#[test]
fn a_null_column_has_a_mask_of_zeros() {
    let batch = table(vec![("n", Arc::new(arrow_array::NullArray::new(3)) as ArrayRef)]);
    let bytes = write(&batch);
    assert_eq!(read(&bytes).unwrap().columns(), batch.columns());
    // The mask is one literal byte in an LZ4 block: its length, a token, the byte.
    let mask = [1, 0, 0, 0, 0x10, 0];
    let at = bytes.windows(mask.len()).position(|window| window == mask).unwrap() + mask.len() - 1;
    for ones in [0x80, 0x20, 0xe0] {
        let mut bad = bytes.clone();
        bad[at] = ones;
        assert_eq!(findings(&bad, false), ["error null-mask columns.n.m"], "{ones:#x}");
        assert_eq!(read(&bad).unwrap_err().rule_name(), "null-mask");
    }
}
