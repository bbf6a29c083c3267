//! Only the blocks that a selection needs are read; bytes are counted at the source.

use super::*;
use crate::testing::asked::Asked;

/// 64 x 64 float64 in blocks of 8 x 8, as the writer makes them.
fn tiled(blocks: &str) -> Vec<u8> {
    let values: Vec<f64> = (0..64 * 64).map(|index| f64::from(index) + 1.0).collect();
    let schema = crate::hub::shape::dense_schema(arrow_schema::DataType::Float64, Some(64), 64).unwrap();
    let arrow_schema::DataType::FixedSizeList(item, width) = schema.field(0).data_type().clone() else {
        panic!()
    };
    let values = Arc::new(arrow_array::Float64Array::from(values));
    let list = arrow_array::FixedSizeListArray::new(item, width, values, None);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)]).unwrap();
    let pairs = [("blocks", blocks), ("block-rows", "8"), ("block-cols", "8")];
    write(&batch, &options("spec", &pairs)).unwrap()
}

#[test]
fn a_few_rows_and_columns_touch_a_few_blocks() {
    for blocks in ["dense", "sparse", "ultra-sparse"] {
        let file = tiled(blocks);
        let source = Source::from_bytes("tiled", file.clone());
        let document = Dbdf.open(source.clone(), &ReadOptions::default()).unwrap();
        let opened = source.bytes_read();
        let request = Asked { rows: Some(17..19), columns: Some(vec![9..10, 62..64]), ..Asked::default() };
        let batch = rows(&*document, &request).unwrap();
        let expected: Vec<f64> =
            [17, 18].iter().flat_map(|row| [9, 62, 63].map(|col| f64::from(row * 64 + col) + 1.0)).collect();
        assert_eq!(
            dense_bits(&batch),
            expected.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()
        );
        // Two blocks of 64, of which dense ones need only two rows. (Sparse ones in memory are borrowed, not
        // read.)
        let read = source.bytes_read() - opened;
        assert!(read <= 2 * 2 * 8 * 8, "{blocks}: {read} of {}", file.len());
        assert_eq!(batch.schema().metadata()["pentaglot.rows"], "2");
        assert_eq!(batch.schema().metadata()["pentaglot.cols"], "3");
    }
}

#[test]
fn sparse_blocks_of_a_file_are_touched_only_if_needed() {
    let folder = tempfile::tempdir().unwrap();
    for blocks in ["sparse", "ultra-sparse"] {
        let path = folder.path().join(blocks);
        std::fs::write(&path, tiled(blocks)).unwrap();
        let source = Source::open(&path).unwrap();
        let document = Dbdf.open(source.clone(), &ReadOptions::default()).unwrap();
        let opened = source.bytes_read();
        let request = Asked { rows: Some(17..19), columns: Some(vec![9..10, 10..11]), ..Asked::default() };
        assert_eq!(rows(&*document, &request).unwrap().num_rows(), 2);
        let read = source.bytes_read() - opened;
        assert!(read <= 64 * 16, "{blocks}: {read}");
    }
}

#[test]
fn rows_of_daphne_s_arrays_are_read_on_their_own() {
    let bytes = std::fs::read(testdata("suite/cps-csr.dbdf")).unwrap();
    let whole = all(&*open(&bytes).unwrap()).unwrap();
    let source = Source::from_bytes("csr", bytes.clone());
    let document = Dbdf.open(source.clone(), &ReadOptions::default()).unwrap();
    let opened = source.bytes_read();
    let request = Asked { rows: Some(10..12), ..Asked::default() };
    let batch = rows(&*document, &request).unwrap();
    assert_eq!(batch.column(0), &whole.column(0).slice(10, 2));
    assert!(source.bytes_read() - opened < bytes.len() as u64 / 4);
}

#[test]
fn every_range_of_rows_and_batch_size_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let dense = std::fs::read(testdata("suite/crk-f.dbdf")).unwrap();
    let table = all(&*open(&dense).unwrap()).unwrap();
    let csr = all(&*open(&std::fs::read(testdata("suite/cps-csr.dbdf")).unwrap()).unwrap()).unwrap();
    let files = [
        write(&table, &options("spec", &[("block-rows", "7")])).unwrap(),
        write(&table, &options("daphne", &[])).unwrap(),
        write(&csr, &options("spec", &[("blocks", "sparse"), ("block-rows", "9"), ("block-cols", "5")]))
            .unwrap(),
        write(&csr, &options("spec", &[("blocks", "sparse")])).unwrap(),
        write(&csr, &options("spec", &[("blocks", "ultra-sparse"), ("block-rows", "20")])).unwrap(),
        write(&csr, &options("daphne", &[])).unwrap(),
    ];
    for (index, file) in files.iter().enumerate() {
        let path = folder.path().join(index.to_string());
        std::fs::write(&path, file).unwrap();
        for threads in [1, 3] {
            let options = ReadOptions { control: crate::Control::new(threads), ..ReadOptions::default() };
            let document = Dbdf.open(Source::open(&path).unwrap(), &options).unwrap();
            let whole = all(&*document).unwrap();
            for (from, to, batch_rows) in [(0, 5, 2), (3, 17, 4), (10, 1000, 3), (60, 61, 1), (5, 5, 1)] {
                let request = Asked { rows: Some(from..to), batch_rows, ..Asked::default() };
                let part = rows(&*document, &request).unwrap();
                let end = (to as usize).min(whole.num_rows());
                let start = (from as usize).min(end);
                let cut = whole.slice(start, end - start);
                assert_eq!(part.columns(), cut.columns(), "{index} {from}..{to}");
            }
        }
    }
}
