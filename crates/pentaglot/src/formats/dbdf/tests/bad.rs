//! Broken files: each is an error with its place; none causes a panic or an allocation out of proportion to its bytes.

use super::*;
use crate::ErrorKind;

fn outcome(bytes: &[u8]) -> String {
    match open(bytes).and_then(|document| all(&*document)) {
        Ok(_) => "sound".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_probe_is_refused_with_its_place() {
    let expected = [
        (
            "csr_bt_empty",
            "at byte 43, block[0].block_type: expected block type 2 (sparse) in a CSRMatrix, found 0",
        ),
        (
            "csr_bt_ultrasparse",
            "at byte 43, block[0].block_type: expected block type 2 (sparse) in a CSRMatrix, found 3",
        ),
        ("csr_nnz_2_62", "at byte 53, block[0].values: expected more bytes than 64 bits can count, found 56"),
        ("csr_nnz_smaller_than_offsets", "at byte 93: expected the end, found 16 more bytes"),
        ("csr_offset_first_nonzero", "at byte 53, block[0].row_offsets[0]: expected 0, found 1"),
        ("csr_offset_nonmonotonic", "at byte 69, block[0].row_offsets[2]: expected at least 2, found 1"),
        ("csr_rows_4e9_tiny", "at byte 53, block[0].values: expected 34359738400 bytes, found 56"),
        ("csr_trunc_in_values", "at byte 53, block[0].values: expected 56 bytes, found 52"),
        (
            "dense_block_u32max_x_u32max",
            "at byte 35, block[0].rows: expected 1 as in the header, found 4294967295",
        ),
        (
            "dense_block_vt_differs_f32",
            "at byte 44, block[0].value_type: expected f64 as in the header, found f32",
        ),
        (
            "dense_bt_77",
            "at byte 43, block[0].block_type: expected block type 1 (dense) in a DenseMatrix, found 77",
        ),
        (
            "dense_bt_empty_padded_to45",
            "at byte 43, block[0].block_type: expected block type 1 (dense) in a DenseMatrix, found 0",
        ),
        (
            "dense_bt_sparse_in_dense",
            "at byte 43, block[0].block_type: expected block type 1 (dense) in a DenseMatrix, found 2",
        ),
        ("dense_hdr_2x2_block_1x4", "at byte 35, block[0].rows: expected 2 as in the header, found 1"),
        ("dense_hdr_9x9_block_2x2", "at byte 77, block[1].rows: expected 4 bytes, found 0"),
        ("dense_rows_2_32_2__u32_truncation_", "at byte 77, block[1].rows: expected 4 bytes, found 0"),
        ("dense_trunc_44", "at byte 44, block[0].value_type: expected 1 bytes, found 0"),
        ("dense_trunc_in_header20", "at byte 19, block[0].row: expected 8 bytes, found 1"),
        ("dense_trunc_values", "at byte 45, block[0].values: expected 32 bytes, found 15"),
        ("dense_vt_200", "at byte 18, header.value_type: expected a value type code 0..=9, found 200"),
        ("frame_rows_2_40", "at byte 38, block[0].values: expected 8796093022208 bytes, found 8"),
        (
            "frame_rows_2_61__x8_wraps_",
            "at byte 38, block[0].values: expected more bytes than 64 bits can count, found 8",
        ),
    ];
    for (file, text) in expected {
        let bytes = std::fs::read(testdata(&format!("bad/{file}.dbdf"))).unwrap();
        assert_eq!(outcome(&bytes), format!("dbdf: {text}"), "{file}");
        assert!(!findings(&bytes).is_valid(), "{file}");
    }
    // These crash DAPHNE's reader, but not ours; and code 10 is the document's float64.
    for file in ["frame_label_32", "frame_label_33", "dense_vt_mismatch_spec_code10"] {
        assert_eq!(
            outcome(&std::fs::read(testdata(&format!("bad/{file}.dbdf"))).unwrap()),
            "sound",
            "{file}"
        );
    }
    assert_eq!(rules(&std::fs::read(testdata("bad/frame_label_33.dbdf")).unwrap()), ["label-length"]);
}

#[test]
fn tilings_with_gaps_and_overlaps_are_refused() {
    let two = |at: (u64, u64), shape: (u32, u32)| {
        Build::matrix(1, 4, 4, 1).block((0, 0), (2, 4), 0).block(at, shape, 0).0
    };
    assert_eq!(outcome(&two((2, 0), (2, 4))), "sound");
    let cases = [
        (
            two((2, 0), (2, 3)),
            "at byte 69, block: expected a block for every cell, found none for row 2, column 3",
        ),
        (
            two((3, 0), (1, 4)),
            "at byte 69, block: expected a block for every cell, found none for row 2, column 0",
        ),
        (
            two((2, 0), (1, 4)),
            "at byte 69, block: expected a block for every cell, found none for row 3, column 0",
        ),
        (
            two((1, 0), (3, 4)),
            "at byte 44, block[1]: expected blocks that do not overlap, found an overlap with block 0",
        ),
        (two((2, 0), (3, 4)), "at byte 44, block[1]: expected a block within 4 rows, found rows 2 to 5"),
        (
            two((2, 1), (2, 4)),
            "at byte 52, block[1]: expected a block within 4 columns, found columns 1 to 5",
        ),
        (
            two((u64::MAX, 0), (2, 4)),
            "at byte 44, block[1]: expected a block within 4 rows, found rows 18446744073709551615 to 18446744073709551617",
        ),
        (
            Build::matrix(1, 4, 4, 10).0,
            "at byte 19, block: expected a block for every cell, found none for row 0, column 0",
        ),
    ];
    for (file, text) in cases {
        assert_eq!(outcome(&file), format!("dbdf: {text}"));
    }
    // All of them are reported.
    let file = Build::matrix(1, 4, 4, 1)
        .block((0, 0), (2, 4), 0)
        .block((0, 3), (1, 1), 0)
        .block((9, 9), (1, 1), 0)
        .0;
    assert_eq!(rules(&file), ["block-outside", "block-overlap", "block-gap"]);
    // And the cells of a block past the last number of a column, too.
    for at in [(0, u64::MAX), (u64::MAX, 0)] {
        let file = Build::matrix(1, 4, 4, 1).block(at, (2, 2), 1).u8(10);
        let file = [3.5, 0.0, 1.0, 2.0].into_iter().fold(file, Build::f64).0;
        assert_eq!(rules(&file), ["block-outside", "block-gap", "value-range"]);
    }
}

#[test]
fn entries_outside_or_repeated_or_miscounted_are_refused() {
    let sparse = |counts: [u32; 2], cols: [u32; 3], entries: u64| {
        let mut file = Build::matrix(2, 2, 3, 1).block((0, 0), (2, 3), 2).u8(1).u64(entries);
        let mut next = cols.iter();
        for count in counts {
            file = file.u32(count);
            for col in next.by_ref().take(count as usize) {
                file = file.u32(*col).u8(1);
            }
        }
        for col in next {
            file = file.u32(*col).u8(1);
        }
        file.0
    };
    assert_eq!(outcome(&sparse([1, 2], [0, 1, 2], 3)), "sound");
    let cases = [
        (
            sparse([1, 2], [0, 1, 3], 3),
            "at byte 71, block[0].row[1].entry[1].col: expected a column below 3, found 3",
            "column-range",
        ),
        (
            sparse([1, 2], [0, 2, 2], 3),
            "at byte 71, block[0].row[1].entry[1].col: expected columns that do not repeat in a row, found 2",
            "repeated-entry",
        ),
        (
            sparse([1, 3], [0, 1, 2], 3),
            "at byte 62, block[0].row[1].count: expected at most 2, found 3",
            "entry-count",
        ),
        (
            sparse([1, 1], [0, 1, 2], 3),
            "at byte 45, block[0].entries: expected 3 entries in all rows, as the block says, found 2",
            "entry-count",
        ),
    ];
    for (file, text, rule) in cases {
        assert_eq!(outcome(&file), format!("dbdf: {text}"));
        assert_eq!(rules(&file), [rule]);
    }
    let coo = |entries: &[(u32, u32)]| {
        let file = Build::matrix(2, 2, 3, 1).block((0, 0), (2, 3), 3).u8(1).u32(entries.len() as u32);
        entries.iter().fold(file, |file, (row, col)| file.u32(*row).u32(*col).u8(9)).0
    };
    assert_eq!(outcome(&coo(&[(1, 0), (0, 2)])), "sound");
    let cases = [
        (coo(&[(2, 0)]), "at byte 49, block[0].entry[0].row: expected a row below 2, found 2", "row-range"),
        (
            coo(&[(1, 3)]),
            "at byte 53, block[0].entry[0].col: expected a col below 3, found 3",
            "column-range",
        ),
        (
            coo(&[(1, 2), (0, 0), (1, 2)]),
            "at byte 67, block[0].entry[2]: expected entries that do not repeat, found row 1, column 2 again",
            "repeated-entry",
        ),
    ];
    for (file, text, rule) in cases {
        assert_eq!(outcome(&file), format!("dbdf: {text}"));
        assert_eq!(rules(&file), [rule]);
    }
    // Columns of DAPHNE's arrays.
    let bytes = std::fs::read(testdata("csr_f64_2x3_full.dbdf")).unwrap();
    for (value, rule) in [(3u64, "column-range"), (1 << 40, "column-range"), (1, "repeated-entry")] {
        let mut bytes = bytes.clone();
        // The last column of the first row, which has 0, 1, 2.
        bytes[93..101].copy_from_slice(&value.to_le_bytes());
        let error = open(&bytes).and_then(|document| all(&*document)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert_eq!(rules(&bytes), [rule], "{error}");
    }
}

#[test]
fn validate_goes_on_after_a_finding() {
    // A value too large, a column outside, and a gap, in three blocks.
    let file = Build::matrix(1, 3, 2, 1)
        .block((0, 0), (1, 2), 1)
        .u8(2)
        .u16(300)
        .u16(256)
        .block((1, 0), (1, 2), 2)
        .u8(1)
        .u64(1)
        .u32(1)
        .u32(7)
        .u8(1)
        .block((2, 0), (1, 1), 0)
        .0;
    assert_eq!(rules(&file), ["block-gap", "value-range", "value-range", "column-range"]);
}

#[test]
fn a_claim_allocates_nothing() {
    // 77 bytes that claim 1e5 x 1e5, in both tables; and sizes that overflow.
    for shape in [100_000u32, u32::MAX] {
        for code in [7u8, 10] {
            let file =
                Build::matrix(1, shape.into(), shape.into(), code).block((0, 0), (shape, shape), 1).u8(code);
            let file = file.bytes(&[0; 32]).0;
            assert_eq!(file.len(), 77);
            let error = open(&file).err().unwrap();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Truncated, Some(45)));
        }
    }
    let file =
        Build::matrix(2, 5, 5, 10).block((0, 0), (5, 5), 2).u8(10).u64(u64::MAX / 12 + 1).bytes(&[0; 20]).0;
    assert_eq!(open(&file).err().unwrap().kind(), ErrorKind::Truncated);
    // A frame that claims 2^60 columns.
    let file = Build(vec![1, 3]).u64(1).u64(1 << 60).bytes(&[7; 30]).0;
    assert_eq!(open(&file).err().unwrap().kind(), ErrorKind::Truncated);
    let file = Build(vec![1, 3]).u64(1).u64(u64::MAX).bytes(&[7; 30]).0;
    assert_eq!(open(&file).err().unwrap().kind(), ErrorKind::Truncated);
}

#[test]
fn the_first_bytes_are_checked() {
    assert_eq!(outcome(&[]), "dbdf: at byte 0, header.version: expected 1 bytes, found 0");
    assert_eq!(outcome(&[2, 1]), "dbdf: at byte 0, header.version: not supported: version 2 (1 is read)");
    assert_eq!(
        outcome(&[1, 9]),
        "dbdf: at byte 1, header.data_type: expected a data type code 1..=4, found 9"
    );
}

#[test]
fn a_budget_of_little_memory_still_reads_wide_dense_rows_as_sparse_ones() {
    let file = Build::matrix(1, 2, 100_000, 10).block((0, 0), (2, 100_000), 3).u8(1).u32(1);
    let file = file.u32(1).u32(99_999).u8(7).0;
    let mut options = ReadOptions::default();
    options.budget = crate::Limits { max_alloc: 64 << 10, ..crate::Limits::default() }.budget();
    let document = Dbdf.open(Source::from_bytes("wide", file), &options).unwrap();
    let (offsets, cols, _) = entries(&all(&*document).unwrap());
    assert_eq!((offsets, cols), (vec![0, 0, 1], vec![99_999]));
}

#[test]
fn a_value_that_does_not_fit_has_the_place_that_validate_names() {
    // f64 in the header, entries of u64 in blocks: 2^63 + 1 cannot be cast exactly.
    let odd = (1u64 << 63) + 1;
    let matrix = || Build::matrix(2, 2, 6, 10);
    let sparse = matrix().block((0, 0), (2, 3), 2).u8(4).u64(2).u32(0).u32(2).u32(1).u64(60).u32(2).u64(odd);
    let sparse = sparse.block((0, 3), (2, 3), 0);
    let ultra =
        matrix().block((0, 0), (2, 3), 0).block((0, 3), (2, 3), 3).u8(4).u32(1).u32(1).u32(2).u64(odd);
    let mut text = Build::matrix(1, 2, 1, 9).block((0, 0), (2, 1), 1).u8(9).bytes(&[0; 32]).0;
    *text.last_mut().unwrap() = 7;
    for (bytes, path) in [
        (sparse.0, "block[0].row[1].col[2]"),
        (ultra.0, "block[1].row[1].col[2]"),
        (text, "block[0].row[1].col[0]"),
    ] {
        let findings = findings(&bytes);
        let [finding] = findings.list() else { panic!("{findings:?}") };
        assert_eq!(finding.path, path);
        let place = format!("dbdf: at byte {}, {path}: {}", finding.offset.unwrap(), finding.message);
        assert_eq!(outcome(&bytes), place);
    }
}
