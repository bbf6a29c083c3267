//! Files of the document, byte by byte from its diagrams.

use crate::testing::asked::Asked;
use arrow_array::Float64Array;
use arrow_array::types::Float64Type;

use super::*;
use crate::testing::writing::Writing as _;

fn floats(batch: &RecordBatch) -> Vec<f64> {
    let values = batch.column(0).as_fixed_size_list().values().clone();
    values.as_primitive::<Float64Type>().values().to_vec()
}

#[test]
fn an_empty_block_is_zeros() {
    let file = Build::matrix(1, 2, 3, 10).block((0, 0), (2, 3), 0).0;
    assert_eq!(file.len(), 44);
    let document = open(&file).unwrap();
    assert_eq!(document.summary().dialect, Some("spec"));
    assert_eq!(floats(&all(&*document).unwrap()), [0.0; 6]);
}

#[test]
fn a_dense_block_is_row_major() {
    let file = Build::matrix(1, 2, 2, 10).block((0, 0), (2, 2), 1).u8(10);
    let file = file.f64(1.0).f64(-0.0).f64(f64::NAN).f64(4.0).0;
    let batch = all(&*open(&file).unwrap()).unwrap();
    assert_eq!(dense_bits(&batch), &file[45..]);
}

#[test]
fn a_sparse_block_has_counts_and_pairs() {
    // Row 0 has no entries, row 1 has columns 2 and 0 in that order, row 2 a stored zero.
    let file = Build::matrix(2, 3, 4, 8).block((0, 0), (3, 4), 2).u8(8).u64(3);
    let file = file.u32(0).u32(2).u32(2).u64(7).u32(0).u64(u64::MAX).u32(1).u32(3).u64(0).0;
    let document = open(&file).unwrap();
    assert_eq!(document.summary().nonzeros, Some(3));
    let (offsets, cols, values) = entries(&all(&*document).unwrap());
    assert_eq!((offsets, cols), (vec![0, 0, 2, 3], vec![2, 0, 3]));
    assert_eq!(values, [7i64, -1, 0].map(i64::to_le_bytes).concat());
    // The order is valid, but gives a note.
    assert_eq!(rules(&file), ["unsorted"]);
    assert!(findings(&file).is_valid());
}

#[test]
fn an_ultra_sparse_block_of_one_column_has_no_column_index() {
    let file = Build::matrix(1, 5, 1, 5).block((0, 0), (5, 1), 3).u8(5).u32(2);
    let file = file.u32(4).u8(0xff).u32(1).u8(3).0;
    assert_eq!(dense_bits(&all(&*open(&file).unwrap()).unwrap()), [0, 3, 0, 0, 0xff]);
}

#[test]
fn an_ultra_sparse_block_of_several_columns_has_triples() {
    let file = Build::matrix(2, 3, 3, 2).block((0, 0), (3, 3), 3).u8(2).u32(3);
    let file = file.u32(2).u32(0).u16(5).u32(0).u32(2).u16(6).u32(2).u32(1).u16(0).0;
    let (offsets, cols, values) = entries(&all(&*open(&file).unwrap()).unwrap());
    assert_eq!((offsets, cols), (vec![0, 1, 1, 3], vec![2, 0, 1]));
    assert_eq!(values, [6, 0, 5, 0, 0, 0]);
}

#[test]
fn blocks_of_every_type_and_value_type_make_one_matrix() {
    // 3 x 4: a dense uint8 corner, a sparse int16 corner, an empty one, an ultra-sparse float one; in no order.
    let file = Build::matrix(1, 3, 4, 10)
        .block((2, 2), (1, 2), 3)
        .u8(9)
        .u32(1)
        .u32(0)
        .u32(1)
        .bytes(&0.5f32.to_le_bytes())
        .block((0, 2), (2, 2), 2)
        .u8(6)
        .u64(2)
        .u32(1)
        .u32(1)
        .u16(-3i16 as u16)
        .u32(1)
        .u32(0)
        .u16(9)
        .block((2, 0), (1, 2), 0)
        .block((0, 0), (2, 2), 1)
        .u8(1)
        .bytes(&[1, 2, 3, 4])
        .0;
    let batch = all(&*open(&file).unwrap()).unwrap();
    assert_eq!(floats(&batch), [1.0, 2.0, 0.0, -3.0, 3.0, 4.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.5]);
    assert!(findings(&file).is_valid());
}

#[test]
fn a_csr_matrix_of_mixed_blocks_is_sparse_rows() {
    let file = Build::matrix(2, 2, 4, 10)
        .block((0, 2), (2, 2), 1)
        .u8(10)
        .f64(0.0)
        .f64(-0.0)
        .f64(3.0)
        .f64(0.0)
        .block((0, 0), (2, 2), 2)
        .u8(10)
        .u64(2)
        .u32(2)
        .u32(1)
        .f64(0.0)
        .u32(0)
        .f64(1.0)
        .u32(0)
        .0;
    let (offsets, cols, values) = entries(&all(&*open(&file).unwrap()).unwrap());
    // The explicit zero is kept; a zero cell of a dense block is not an entry; -0.0 is one.
    assert_eq!((offsets, cols), (vec![0, 3, 4], vec![1, 0, 3, 2]));
    assert_eq!(values, [0.0, 1.0, -0.0, 3.0f64].map(f64::to_le_bytes).concat());
}

#[test]
fn a_frame_s_blocks_may_span_columns() {
    let file = Build(vec![1, 3])
        .u64(2)
        .u64(3)
        .bytes(&[8, 10, 1])
        .u16(1)
        .bytes(b"a")
        .u16(0)
        .u16(2)
        .bytes("é".as_bytes())
        .block((0, 0), (2, 2), 1)
        .u8(1)
        .bytes(&[1, 2, 3, 4])
        .block((0, 2), (1, 1), 0)
        .block((1, 2), (1, 1), 1)
        .u8(1)
        .u8(9)
        .0;
    let document = open(&file).unwrap();
    let batch = all(&*document).unwrap();
    let names: Vec<&str> =
        document.summary().schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["a", "", "é"]);
    assert_eq!(bits(batch.column(0)), [1i64, 3].map(i64::to_le_bytes).concat());
    assert_eq!(batch.column(1).as_primitive::<Float64Type>(), &Float64Array::from(vec![2.0, 4.0]));
    assert_eq!(bits(batch.column(2)), [0, 9]);
}

#[test]
fn an_object_without_cells_may_have_no_block() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0)] {
        let file = Build::matrix(1, rows, cols, 10).0;
        let document = open(&file).unwrap();
        assert_eq!(all(&*document).unwrap().num_rows() as u64, rows);
        assert!(findings(&file).is_valid());
    }
}

#[test]
fn an_empty_block_of_4e9_by_4e9_costs_nothing() {
    let big = 4_000_000_000u32;
    for data_type in [1, 2] {
        let file = Build::matrix(data_type, big.into(), big.into(), 10).block((0, 0), (big, big), 0).0;
        let source = Source::from_bytes("big", file.clone());
        let document = Dbdf.open(source.clone(), &ReadOptions::default()).unwrap();
        assert!(findings(&file).is_valid());
        assert_eq!(Form::of(&document.summary().schema), Form::Sparse);
        let mut request = Asked { rows: Some(3_999_999_990..u64::MAX), ..Asked::default() };
        assert_eq!(rows(&*document, &request).unwrap().num_rows(), 10);
        request.rows = Some(0..2);
        assert_eq!(entries(&rows(&*document, &request).unwrap()).0, [0, 0, 0]);
        assert!(source.bytes_read() < 1000);
    }
}

#[test]
fn free_cells_are_limited() {
    let file = Build::matrix(1, 1 << 60, 0, 10).0;
    let error = all(&*open(&file).unwrap()).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Limit);
    let file = Build::matrix(1, 4_000_000_000, 100, 10).block((0, 0), (4_000_000_000, 100), 0).0;
    assert_eq!(all(&*open(&file).unwrap()).unwrap_err().kind(), crate::ErrorKind::Limit);
}

#[test]
fn a_block_value_that_does_not_survive_is_refused() {
    // 300 is not a uint8; -0.0 is not an integer; 2^53 + 1 is not a float64.
    let cases: [(u8, u8, [u8; 8], &str); 3] = [
        (1, 8, 300u64.to_le_bytes(), "300"),
        (7, 10, (-0.0f64).to_le_bytes(), "-0.0"),
        (10, 4, ((1u64 << 53) + 1).to_le_bytes(), "9007199254740993"),
    ];
    for (to, from, value, found) in cases {
        let file = Build::matrix(1, 1, 1, to).block((0, 0), (1, 1), 1).u8(from).bytes(&value).0;
        let error = all(&*open_as(&file, "spec").unwrap()).unwrap_err();
        let name = super::super::ValueType::from_code(super::super::Dialect::Spec, to).unwrap();
        let text = format!(
            "dbdf: at byte 45, block[0].row[0].col[0]: expected a value that {name} holds, found {found}"
        );
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn a_signalling_nan_survives_a_wider_type() {
    let signalling = 0x7fa0_0001u32;
    let file = Build::matrix(1, 1, 1, 10).block((0, 0), (1, 1), 1).u8(9).u32(signalling).0;
    let bits = dense_bits(&all(&*open(&file).unwrap()).unwrap());
    assert_eq!(u64::from_le_bytes(bits.try_into().unwrap()), 0x7ff4_0000_2000_0000);
}

#[test]
fn dump_finds_every_byte() {
    fn walk(node: &crate::formats::Node, leaves: &mut u64) {
        match &node.parts {
            None => *leaves += node.bytes,
            Some(parts) => {
                let mut at = node.offset;
                let mut any = false;
                for part in parts.nodes(0) {
                    let part = part.unwrap();
                    assert_eq!(part.offset, at, "{part:?} in {node:?}");
                    at += part.bytes;
                    walk(&part, leaves);
                    any = true;
                }
                assert!(!any || at == node.offset + node.bytes, "{node:?}");
            }
        }
    }
    let files =
        ["dense_f64_5x3.dbdf", "csr_si32_4x5_mixed.dbdf", "frame_2x4_labellens.dbdf", "value_f64.bin"];
    let old = ["legacy01_csr_f64_4x5.dbdf", "legacy01_dense_si8_2x3.dbdf", "legacy01_frame_2x3.dbdf"];
    for file in files.into_iter().chain(old) {
        let bytes = std::fs::read(testdata(file)).unwrap();
        let mut leaves = 0;
        walk(&open(&bytes).unwrap().outline(), &mut leaves);
        assert_eq!(leaves, bytes.len() as u64, "{file}");
        let spec = open(&bytes).unwrap();
        if spec.summary().schema.fields().is_empty() || file.starts_with("value") {
            continue;
        }
        for blocks in ["dense", "sparse", "ultra-sparse"] {
            let Ok(spec) =
                write(&all(&*spec).unwrap(), &options("spec", &[("blocks", blocks), ("block-rows", "2")]))
            else {
                continue;
            };
            let mut leaves = 0;
            walk(&open(&spec).unwrap().outline(), &mut leaves);
            assert_eq!(leaves, spec.len() as u64, "{file} {blocks}");
        }
    }
}

#[test]
fn empty_blocks_cost_little_however_large_they_are() {
    let side = 4_000_000_000u32;
    let file = Build::matrix(2, u64::from(side) + 2, u64::from(side), 10);
    let file = file.block((0, 0), (side, side), 0).block((u64::from(side), 0), (2, side), 3).u8(10).u32(1);
    let file = file.u32(1).u32(7).f64(2.5).0;
    let document = open_free(&file).unwrap();
    let (sink, memory) = Sink::memory();
    let rows = document.all_rows().unwrap();
    let mut writer = Dbdf.create(sink, rows.schema(), &options("spec", &[])).unwrap();
    let (mut count, mut entries) = (0u64, 0);
    for batch in rows {
        let batch = batch.unwrap();
        count += batch.num_rows() as u64;
        entries += batch.column(0).as_list::<i64>().values().len();
        writer.write(&batch).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!((count, entries), (u64::from(side) + 2, 1));
    assert_eq!(memory.take(), file);
    // A requested number of rows per batch is respected.
    let request = Asked { batch_rows: 1000, ..Asked::default() };
    assert_eq!(document.ask(&request).unwrap().next().unwrap().unwrap().num_rows(), 1000);
}

#[test]
fn a_block_of_coordinates_costs_what_it_stores() {
    let side = 4_000_000_000u32;
    let file = Build::matrix(2, u64::from(side), u64::from(side), 10).block((0, 0), (side, side), 3);
    let file = file.u8(10).u32(2).u32(5).u32(7).f64(2.5).u32(side - 1).u32(side - 1).f64(1.0).0;
    let mut found = Vec::new();
    let mut first = 0u64;
    for batch in open_free(&file).unwrap().all_rows().unwrap() {
        let batch = batch.unwrap();
        let list = batch.column(0).as_list::<i64>();
        if !list.values().is_empty() {
            found.extend(
                (0..list.len()).filter(|row| list.value_length(*row) > 0).map(|row| first + row as u64),
            );
        }
        first += batch.num_rows() as u64;
    }
    assert_eq!((first, found), (u64::from(side), vec![5, u64::from(side) - 1]));
    // Dense rows of the same kind of block.
    let file =
        Build::matrix(1, 100_000, 1, 1).block((0, 0), (100_000, 1), 3).u8(1).u32(1).u32(99_999).u8(3).0;
    let request = Asked { batch_rows: 1000, ..Asked::default() };
    let bits = dense_bits(&rows(&*open(&file).unwrap(), &request).unwrap());
    assert_eq!(
        (bits.len(), bits.iter().filter(|bit| **bit == 0).count(), bits[99_999]),
        (100_000, 99_999, 3)
    );
}

#[test]
fn many_blocks_beside_each_other_cost_what_they_store() {
    // The left column in blocks of one row, the right one in blocks of three: the work per row depends on its two
    // blocks only, not on all blocks of the batch.
    let height = 21_000u32;
    let mut file = Build::matrix(2, u64::from(height), 2, 1);
    for row in (0..u64::from(height)).step_by(3) {
        file = file.block((row, 1), (3, 1), 2).u8(1).u64(2);
        // Its second row is empty.
        file = file.u32(1).u32(0).u8(4).u32(0).u32(1).u32(0).u8(5);
        for left in 0..3 {
            file = file.block((row + left, 0), (1, 1), 2).u8(1).u64(1).u32(1).u32(0).u8(left as u8 + 1);
        }
    }
    let start = std::time::Instant::now();
    let (offsets, cols, values) = entries(&all(&*open(&file.0).unwrap()).unwrap());
    assert!(start.elapsed().as_secs() < 10);
    let rounds = height as usize / 3;
    assert_eq!(offsets[..4], [0, 2, 3, 5]);
    assert_eq!((offsets.len(), offsets.last()), (height as usize + 1, Some(&(5 * rounds as i64))));
    assert_eq!((cols, values), ([0, 1, 0, 0, 1].repeat(rounds), [1, 4, 2, 3, 5].repeat(rounds)));
}
