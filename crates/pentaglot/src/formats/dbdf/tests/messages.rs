//! Blocks, single values and chunks as messages: as DAPHNE writes them, as the document defines them, and in
//! any order.

use arrow_array::{Float64Array, Int16Array, UInt8Array, UInt16Array, UInt32Array};
use arrow_buffer::OffsetBuffer;
use proptest::prelude::*;

use super::super::{
    DataType, Joiner, Matrix, ValueType, join_chunks, read_block, read_matrix, read_scalar, write_block,
    write_matrix, write_scalar,
};
use super::*;

fn dense(rows: u64, cols: u64, values: ArrayRef) -> Matrix {
    Matrix::Dense { rows, cols, values }
}

fn with(key: &str, value: &str) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.options.set(key, value);
    options
}

fn values(matrix: &Matrix) -> (Vec<u8>, &ArrayRef) {
    let (Matrix::Dense { values, .. } | Matrix::Sparse { values, .. }) = matrix;
    (bits(values), values)
}

#[test]
fn a_block_has_the_bytes_that_the_document_draws() {
    let cells = dense(2, 2, Arc::new(UInt16Array::from(vec![1, 0, 0, 0])));
    let place: Vec<u8> = [9u64.to_le_bytes(), 4u64.to_le_bytes()].concat();
    let expect = |body: &[u8]| [&place, body].concat();
    let message = |blocks: &str| write_block(9, 4, &cells, &with("blocks", blocks)).unwrap();
    assert_eq!(message("dense"), expect(&[2, 0, 0, 0, 2, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0]));
    let csr =
        [2, 0, 0, 0, 2, 0, 0, 0, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0];
    assert_eq!(message("sparse"), expect(&csr));
    let coo = [2, 0, 0, 0, 2, 0, 0, 0, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    assert_eq!(message("ultra-sparse"), expect(&coo));
    let zeros = dense(3, 2, Arc::new(UInt8Array::from(vec![0; 6])));
    let empty = write_block(0, 0, &zeros, &WriteOptions::default()).unwrap();
    assert_eq!(empty[16..], [3, 0, 0, 0, 2, 0, 0, 0, 0]);
    let back = read_block(&empty, &ReadOptions::default()).unwrap();
    assert_eq!((back.cells.size(), values(&back.cells).0), ((3, 2), vec![0; 6]));
}

#[test]
fn values_that_daphne_sent_are_read_and_sent_again() {
    for (file, kind) in [
        ("value_si64.bin", ValueType::Int64),
        ("value_ui8.bin", ValueType::UInt8),
        ("value_ui64.bin", ValueType::UInt64),
        ("value_f32.bin", ValueType::Float32),
        ("value_f64.bin", ValueType::Float64),
    ] {
        let bytes = std::fs::read(testdata(file)).unwrap();
        let scalar = read_scalar(&bytes).unwrap();
        assert_eq!((scalar.value_type, bits(&scalar.value)), (kind, bytes[19..].to_vec()), "{file}");
        let again = write_scalar(&scalar.value).unwrap();
        // DAPHNE leaves the bytes between uninitialised.
        assert_eq!((&again[..2], &again[18..]), (&bytes[..2], &bytes[18..]), "{file}");
        for end in 0..bytes.len() {
            read_scalar(&bytes[..end]).unwrap_err();
        }
    }
    let short: ArrayRef = Arc::new(Int16Array::from(vec![1]));
    let error = write_scalar(&short).unwrap_err().to_string();
    assert_eq!(error, "dbdf: not supported: si16, which DAPHNE's messages do not have");
    let two: ArrayRef = Arc::new(UInt8Array::from(vec![1, 2]));
    assert_eq!(
        write_scalar(&two).unwrap_err().to_string(),
        "dbdf: not supported: 2 values with 0 nulls as one value"
    );
    let matrix = std::fs::read(testdata("csr_f64_2x3_full.dbdf")).unwrap();
    let error = read_scalar(&matrix).unwrap_err().to_string();
    assert_eq!(error, "dbdf: at byte 1, data_type: expected data type 4, a single value, found CSRMatrix");
}

/// Objects that DAPHNE wrote, cut as its out-of-order transfer cuts them.
#[test]
fn chunks_in_any_order_are_the_object() {
    for (file, before) in [("csr_f64_2x3_full.dbdf", 53), ("dense_f64_3x4_edges.dbdf", 45)] {
        let bytes = std::fs::read(testdata(file)).unwrap();
        let whole =
            read_matrix(&Source::from_bytes("whole", bytes.clone()), &ReadOptions::default()).unwrap();
        let chunk = |start: usize, end: usize| {
            [&bytes[..before], &(start as u64).to_le_bytes(), &bytes[start..end]].concat()
        };
        let (one, two) = (before + 3, bytes.len() - 5);
        let chunks = [chunk(two, bytes.len()), chunk(0, one), chunk(one, two)];
        let joined = join_chunks(&chunks, &ReadOptions::default()).unwrap();
        assert_eq!((joined.size(), values(&joined).0), (whole.size(), values(&whole).0), "{file}");
        let error = join_chunks(&chunks[..2], &ReadOptions::default()).unwrap_err();
        assert_eq!(error.rule_name(), "chunk-start", "{file}");
    }
}

#[test]
fn what_does_not_fit_a_matrix_is_refused() {
    let mut joiner = Joiner::new(DataType::DenseMatrix, ValueType::UInt8, 2, 2).unwrap();
    let block = |row, value: u8| {
        let cells = dense(1, 2, Arc::new(UInt8Array::from(vec![value; 2])));
        write_block(row, 0, &cells, &WriteOptions::default()).unwrap()
    };
    let error = joiner.push(&block(2, 1)).unwrap_err();
    assert_eq!(error.rule_name(), "block-outside");
    let whole = block(1, 7);
    for end in 0..whole.len() {
        joiner.push(&whole[..end]).unwrap_err();
    }
    joiner.push(&[whole.clone(), vec![0]].concat()).unwrap_err();
    joiner.push(&whole).unwrap();
    assert!(!joiner.is_complete());
    let gap = joiner.clone().finish(&ReadOptions::default()).unwrap_err();
    assert_eq!(gap.rule_name(), "block-gap");
    let mut twice = joiner.clone();
    twice.push(&block(0, 1)).unwrap();
    twice.push(&whole).unwrap();
    assert_eq!(twice.finish(&ReadOptions::default()).unwrap_err().rule_name(), "block-overlap");
    // A block may have another type, as long as the object's holds its values.
    let wide = dense(1, 2, Arc::new(UInt32Array::from(vec![5, 300])));
    let mut wrong = joiner.clone();
    wrong.push(&write_block(0, 0, &wide, &WriteOptions::default()).unwrap()).unwrap();
    let error = wrong.finish(&ReadOptions::default()).unwrap_err();
    assert_eq!(error.rule_name(), "value-range");
    assert!(error.to_string().contains("block[1].row[0].col[1]"), "{error}");
    joiner.push(&block(0, 9)).unwrap();
    let joined = joiner.finish(&ReadOptions::default()).unwrap();
    assert_eq!(values(&joined).0, [9, 9, 7, 7]);
    let frame = Joiner::new(DataType::Frame, ValueType::UInt8, 1, 1).unwrap_err().to_string();
    assert!(frame.starts_with("dbdf: not supported: blocks of a Frame of ui8"), "{frame}");
}

#[test]
fn write_matrix_writes_a_sparse_matrix() {
    let matrix = Matrix::Sparse {
        rows: 3,
        cols: 4,
        row_offsets: OffsetBuffer::new(vec![0, 1, 1, 3].into()),
        column_indices: Arc::new(UInt32Array::from(vec![2, 3, 0])),
        values: Arc::new(Float64Array::from(vec![1.5, 0.0, -2.0])),
    };
    for dialect in ["spec", "daphne"] {
        let mut options = WriteOptions::default();
        options.dialect = Some(dialect.to_owned());
        let (sink, memory) = Sink::memory();
        assert_eq!(write_matrix(sink, &matrix, &options).unwrap().rows, 3);
        let source = Source::from_bytes("m", memory.take());
        let back = read_matrix(&source, &ReadOptions::default()).unwrap();
        let Matrix::Sparse { row_offsets, column_indices, .. } = &back else { panic!("{back:?}") };
        assert_eq!((back.size(), &row_offsets[..]), ((3, 4), &[0, 1, 1, 3][..]));
        assert_eq!(column_indices.as_primitive::<arrow_array::types::UInt32Type>().values(), &[2, 3, 0]);
        assert_eq!(values(&back).0, values(&matrix).0);
    }
    let Matrix::Sparse { column_indices, values, .. } = matrix else { panic!() };
    let row_offsets = OffsetBuffer::new(vec![0, 3].into());
    let wrong = Matrix::Sparse { rows: 3, cols: 4, row_offsets, column_indices, values };
    let error = write_matrix(Sink::memory().0, &wrong, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "dbdf: expected 4 row offsets, found 2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Any matrix, divided into bands, in any order and with any block type, is joined to the same bits.
    #[test]
    fn blocks_in_any_order_are_the_matrix(
        rows in 1usize..12,
        cols in 1usize..6,
        height in 1usize..5,
        seed in proptest::collection::vec(prop_oneof![3 => Just(0.0f64), 2 => any::<f64>()], 72),
        order in any::<u64>(),
        kinds in proptest::collection::vec(0usize..4, 12),
    ) {
        let cells: Vec<f64> = seed.into_iter().take(rows * cols).collect();
        let mut messages = Vec::new();
        for (index, band) in cells.chunks(height * cols).enumerate() {
            let part = dense((band.len() / cols) as u64, cols as u64, Arc::new(Float64Array::from(band.to_vec())));
            let options = with("blocks", ["auto", "dense", "sparse", "ultra-sparse"][kinds[index]]);
            messages.push(write_block((index * height) as u64, 0, &part, &options).unwrap());
        }
        let count = messages.len();
        let mut joiner = Joiner::new(DataType::DenseMatrix, ValueType::Float64, rows as u64, cols as u64).unwrap();
        for step in 0..count {
            let at = (order as usize).wrapping_add(step * 7) % messages.len();
            joiner.push(&messages.swap_remove(at)).unwrap();
        }
        prop_assert!(joiner.is_complete());
        let joined = joiner.finish(&ReadOptions::default()).unwrap();
        let expected: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
        prop_assert_eq!(values(&joined).0, expected);
    }
}
