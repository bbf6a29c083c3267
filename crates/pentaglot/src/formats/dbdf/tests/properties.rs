//! Random objects in random tilings, and random damage.

use crate::testing::asked::Asked;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::hub::shape;

/// A rectangle divided at random: row, column, rows, columns of each tile.
fn tiling(rows: u32, cols: u32, cuts: &[(bool, u32)]) -> Vec<(u32, u32, u32, u32)> {
    let mut tiles = vec![(0, 0, rows, cols)];
    for (index, (across, at)) in cuts.iter().enumerate() {
        let (row, col, height, width) = tiles[index % tiles.len()];
        let place = index % tiles.len();
        if *across && height > 1 {
            let cut = 1 + at % (height - 1);
            tiles[place] = (row, col, cut, width);
            tiles.push((row + cut, col, height - cut, width));
        } else if !across && width > 1 {
            let cut = 1 + at % (width - 1);
            tiles[place] = (row, col, height, cut);
            tiles.push((row, col + cut, height, width - cut));
        }
    }
    tiles
}

/// The bytes of a tile by the diagrams of the document: a plain version of the writer.
fn block(
    file: Build,
    tile: (u32, u32, u32, u32),
    cells: &BTreeMap<(u32, u32), i64>,
    block_type: u8,
) -> Build {
    let (row, col, rows, cols) = tile;
    let inside: Vec<(u32, u32, i64)> = cells
        .iter()
        .filter(|((r, c), _)| (row..row + rows).contains(r) && (col..col + cols).contains(c))
        .map(|((r, c), value)| (r - row, c - col, *value))
        .collect();
    // The narrowest type that holds the tile's values, for a change.
    let small = inside.iter().all(|(_, _, value)| i8::try_from(*value).is_ok());
    let put = |file: Build, value: i64| match small {
        true => file.u8(value as i8 as u8),
        false => file.u64(value as u64),
    };
    let block_type = if block_type == 0 && !inside.is_empty() { 1 } else { block_type };
    let mut file = file.block((row.into(), col.into()), (rows, cols), block_type);
    if block_type != 0 {
        file = file.u8(if small { 5 } else { 8 });
    }
    match block_type {
        1 => {
            for r in 0..rows {
                for c in 0..cols {
                    let value =
                        inside.iter().find(|(row, col, _)| (*row, *col) == (r, c)).map_or(0, |entry| entry.2);
                    file = put(file, value);
                }
            }
        }
        2 => {
            file = file.u64(inside.len() as u64);
            for r in 0..rows {
                let row: Vec<_> = inside.iter().filter(|entry| entry.0 == r).collect();
                file = file.u32(row.len() as u32);
                for (_, c, value) in row {
                    file = put(file.u32(*c), *value);
                }
            }
        }
        3 => {
            file = file.u32(inside.len() as u32);
            // Any order is valid.
            for (r, c, value) in inside.iter().rev() {
                file = file.u32(*r);
                file = if cols == 1 { file } else { file.u32(*c) };
                file = put(file, *value);
            }
        }
        _ => {}
    }
    file
}

type Object = (u32, u32, BTreeMap<(u32, u32), i64>);

fn object() -> impl Strategy<Value = Object> {
    (1u32..9, 1u32..9).prop_flat_map(|(rows, cols)| {
        let value = prop_oneof![-128i64..0, 1i64..128, Just(i64::MAX), Just(i64::MIN), Just(1000)];
        let cells = proptest::collection::btree_map((0..rows, 0..cols), value, 0..20);
        (Just(rows), Just(cols), cells)
    })
}

fn dense_of((rows, cols, cells): &Object) -> Vec<u8> {
    let cell = |row, col| cells.get(&(row, col)).copied().unwrap_or(0).to_le_bytes();
    (0..*rows).flat_map(|row| (0..*cols).flat_map(move |col| cell(row, col))).collect()
}

fn dense_batch(object: &Object) -> RecordBatch {
    let values = arrow_array::Int64Array::from(
        dense_of(object)
            .chunks(8)
            .map(|cell| i64::from_le_bytes(cell.try_into().unwrap()))
            .collect::<Vec<_>>(),
    );
    let schema = shape::dense_schema(arrow_schema::DataType::Int64, None, object.1.into()).unwrap();
    let arrow_schema::DataType::FixedSizeList(item, width) = schema.field(0).data_type().clone() else {
        panic!()
    };
    let list = arrow_array::FixedSizeListArray::new(item, width, Arc::new(values), None);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(list)]).unwrap()
}

fn threads(bytes: &[u8], threads: usize) -> Arc<dyn Document> {
    let options = ReadOptions { control: crate::Control::new(threads), ..ReadOptions::default() };
    Dbdf.open(Source::from_bytes("test", bytes.to_vec()), &options).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tiling_in_any_order_is_read(
        object in object(),
        cuts in proptest::collection::vec((any::<bool>(), any::<u32>()), 0..8),
        kinds in proptest::collection::vec(0u8..4, 10),
        turn in 0usize..8,
        batch_rows in 1usize..5,
        lanes in 1usize..4,
    ) {
        let (rows, cols, cells) = &object;
        let mut tiles = tiling(*rows, *cols, &cuts);
        let turn = turn % tiles.len();
        tiles.rotate_left(turn);
        for data_type in [1u8, 2] {
            let mut file = Build::matrix(data_type, (*rows).into(), (*cols).into(), 8);
            for (tile, kind) in tiles.iter().zip(&kinds) {
                file = block(file, *tile, cells, *kind);
            }
            prop_assert!(findings(&file.0).is_valid(), "{:?}", findings(&file.0).list());
            let document = threads(&file.0, lanes);
            let request = Asked { batch_rows, ..Asked::default() };
            let batch = super::rows(&*document, &request).unwrap();
            if data_type == 1 {
                prop_assert_eq!(dense_bits(&batch), dense_of(&object));
            } else {
                let (offsets, found, values) = entries(&batch);
                let mut got = BTreeMap::new();
                for row in 0..*rows as usize {
                    for entry in offsets[row] as usize..offsets[row + 1] as usize {
                        let value = i64::from_le_bytes(values[entry * 8..][..8].try_into().unwrap());
                        got.insert((row as u32, found[entry] as u32), value);
                    }
                }
                prop_assert_eq!(&got, cells);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_whatever_the_options(
        object in object(),
        blocks in 0usize..4,
        narrow: bool,
        block_rows in 1u32..6,
        block_cols in 1u32..6,
        split in 0usize..8,
    ) {
        let batch = dense_batch(&object);
        let split = split.min(batch.num_rows());
        let parts = [batch.slice(0, split), batch.slice(split, batch.num_rows() - split)];
        let (block_rows, block_cols) = (block_rows.to_string(), block_cols.to_string());
        let pairs = [
            ("blocks", ["auto", "dense", "sparse", "ultra-sparse"][blocks]),
            ("narrow", if narrow { "true" } else { "false" }),
            ("block-rows", block_rows.as_str()),
            ("block-cols", block_cols.as_str()),
        ];
        let file = write_batches(&parts, &batch.schema(), &options("spec", &pairs)).unwrap();
        // The division into batches does not change the file.
        prop_assert_eq!(&file, &write(&batch, &options("spec", &pairs)).unwrap());
        let document = open_as(&file, "spec").unwrap();
        prop_assert_eq!(dense_bits(&all(&*document).unwrap()), dense_of(&object));
        let mut found = Findings::default();
        document.validate(&mut found).unwrap();
        prop_assert!(found.is_valid(), "{:?}", found.list());
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200), data_type in 1u8..5) {
        let mut bytes = bytes;
        bytes.splice(0..bytes.len().min(2), [1, data_type]);
        for dialect in ["spec", "daphne", "daphne01"] {
            if let Ok(document) = open_as(&bytes, dialect) {
                let request = Asked { rows: Some(0..100), ..Asked::default() };
                let _ = super::rows(&*document, &request);
                document.validate(&mut Findings::default()).unwrap();
            }
        }
    }
}

/// Opens the bytes; if that succeeds, reads some rows, validates, and walks the outline.
fn try_everything(bytes: &[u8]) {
    for dialect in [None, Some("spec"), Some("daphne"), Some("daphne01")] {
        let mut options = ReadOptions {
            dialect: dialect.map(str::to_owned),
            control: crate::Control::new(1),
            ..ReadOptions::default()
        };
        options.budget = crate::Limits { max_alloc: 1 << 20, ..crate::Limits::default() }.budget();
        let Ok(document) = Dbdf.open(Source::from_bytes("test", bytes.to_vec()), &options) else { continue };
        let request = Asked { rows: Some(0..100), ..Asked::default() };
        let _ = super::rows(&*document, &request);
        let _ = document.validate(&mut Findings::default());
        let outline = document.outline();
        for part in outline.parts.iter().flat_map(|parts| parts.nodes(0)).take(10).flatten() {
            for inner in part.parts.iter().flat_map(|parts| parts.nodes(0)).take(10).flatten() {
                for leaf in inner.parts.iter().flat_map(|parts| parts.nodes(0)).take(10).flatten() {
                    let _ = leaf.parts.iter().flat_map(|parts| parts.nodes(0)).take(10).count();
                }
            }
        }
    }
}

fn small_files() -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = std::fs::read_dir(testdata(""))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "dbdf" || end == "bin"))
        .map(|path| std::fs::read(path).unwrap())
        .filter(|bytes| bytes.len() < 200)
        .collect();
    files.sort();
    // Every third file of DAPHNE's, and each block type of the document.
    let mut files: Vec<Vec<u8>> = files.into_iter().step_by(3).collect();
    let object: Object = (3, 4, BTreeMap::from([((0, 1), 5), ((2, 3), 1000), ((2, 0), -1)]));
    for blocks in ["auto", "dense", "sparse", "ultra-sparse"] {
        let pairs = [("blocks", blocks), ("narrow", "true"), ("block-rows", "2"), ("block-cols", "3")];
        files.push(write(&dense_batch(&object), &options("spec", &pairs)).unwrap());
    }
    files
}

#[test]
fn truncation_at_every_byte_is_refused_and_never_panics() {
    for file in small_files() {
        for len in 0..file.len() {
            try_everything(&file[..len]);
        }
        // The exact length of the dialect is known, so a truncated file never fits.
        let dialect = open(&file).ok().and_then(|document| document.summary().dialect);
        if let Some(dialect) = dialect.filter(|dialect| *dialect != "spec") {
            for len in 0..file.len() {
                assert!(open_as(&file[..len], dialect).is_err(), "{dialect} {len} of {}", file.len());
            }
        }
    }
}

#[test]
fn a_flipped_bit_never_panics() {
    for file in small_files() {
        let mut file = file;
        for bit in 0..file.len() * 8 {
            file[bit / 8] ^= 1 << (bit % 8);
            try_everything(&file);
            file[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
