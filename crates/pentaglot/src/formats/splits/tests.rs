//! Splits of documents of every format: they cover all rows, and reading them separately, on several threads, gives
//! the same rows as a full read.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, BooleanArray, DictionaryArray, FixedSizeListArray, Float64Array, Int64Array, LargeListArray,
    RecordBatch, StringArray, StructArray, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;

use super::*;
use crate::Registry;
use crate::formats::{Document, ReadOptions};
use crate::hub::shape;
use crate::source::Source;
use crate::testing::conformance::{Suite, collect};

const ROWS: u64 = 1000;
const BATCHES: u64 = 10;

#[test]
fn strides_and_joined_pieces_tile_all_rows() {
    let splits = Split::strided(0..10, 100, 8, 3);
    assert_eq!(splits.first(), Some(&Split { rows: 0..4, bytes: 100..132 }));
    assert_eq!(splits.last(), Some(&Split { rows: 8..10, bytes: 164..180 }));
    assert!(Split::strided(0..0, 0, 8, 3).is_empty());
    let pieces = [10u64, 1, 1, 8, 20].iter().scan((0, 0), |(row, byte), size| {
        let split = Split { rows: *row..*row + 5, bytes: *byte..*byte + size };
        (*row, *byte) = (*row + 5, *byte + size);
        Some(split)
    });
    let joined = Split::joined(pieces, 2);
    assert_eq!(joined.iter().map(|split| split.rows.clone()).collect::<Vec<_>>(), [0..20, 20..25]);
}

fn numbers() -> RecordBatch {
    let a = Int64Array::from_iter_values((0..ROWS as i64).map(|row| row * row - 777));
    let b = Float64Array::from_iter_values((0..ROWS).map(|row| row as f64 / 8.0));
    let fields = vec![Field::new("a", DataType::Int64, false), Field::new("b", DataType::Float64, false)];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(a), Arc::new(b)]).unwrap()
}

fn texts() -> RecordBatch {
    let texts = StringArray::from_iter_values((0..ROWS).map(|row| "x".repeat(row as usize % 13)));
    let words: DictionaryArray<Int32Type> =
        (0..ROWS).map(|row| Some(["red", "green", "blue"][row as usize % 3])).collect();
    let columns: [(&str, ArrayRef); 2] = [("text", Arc::new(texts)), ("word", Arc::new(words))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn text() -> RecordBatch {
    texts().project(&[0]).unwrap()
}

fn dense() -> RecordBatch {
    let schema: SchemaRef = Arc::new(shape::dense_schema(DataType::Float64, Some(ROWS), 3).unwrap());
    let values = Float64Array::from_iter_values((0..3 * ROWS).map(|cell| cell as f64 / 4.0));
    let item = Arc::new(Field::new_list_field(DataType::Float64, false));
    let rows = FixedSizeListArray::new(item, 3, Arc::new(values), None);
    RecordBatch::try_new(schema, vec![Arc::new(rows)]).unwrap()
}

fn sparse() -> RecordBatch {
    let schema: SchemaRef = Arc::new(shape::sparse_schema(DataType::Float64, Some(ROWS), 50));
    let counts = || (0..ROWS).map(|row| row as usize % 4);
    let cols: UInt32Array = counts().flat_map(|count| (0..count as u32).map(|col| col * 7)).collect();
    let values = Float64Array::from_iter_values((1..=cols.len()).map(|value| value as f64));
    let fields = shape::entry_fields(DataType::Float64, 50);
    let entries = StructArray::new(fields, vec![Arc::new(cols), Arc::new(values)], None);
    let DataType::LargeList(item) = schema.field(0).data_type().clone() else { panic!("no list") };
    let rows = LargeListArray::new(item, OffsetBuffer::from_lengths(counts()), Arc::new(entries), None);
    RecordBatch::try_new(schema, vec![Arc::new(rows)]).unwrap()
}

fn array(items: ArrayRef) -> RecordBatch {
    let schema = shape::array_schema(Field::new("item", items.data_type().clone(), false));
    RecordBatch::try_new(Arc::new(schema), vec![items]).unwrap()
}

fn bits() -> RecordBatch {
    array(Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| Some(row % 3 == 0)))))
}

fn positions() -> RecordBatch {
    array(Arc::new(UInt64Array::from_iter_values((0..ROWS).map(|row| row * 5 + row % 3))))
}

fn runs() -> RecordBatch {
    let start: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..ROWS).map(|row| row * 9 + 4)));
    let length: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..ROWS).map(|row| 1 + row % 7)));
    let fields = ["start", "length"].map(|name| Field::new(name, DataType::UInt64, false));
    RecordBatch::try_new(Arc::new(Schema::new(fields.to_vec())), vec![start, length]).unwrap()
}

/// Whether a document can be split.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    No,
    Yes,
    Either,
}

type Options = &'static [(&'static str, &'static str)];

/// What determines the splits of a file: id, dialect, options of the writer, rows.
type Case = (&'static str, &'static str, Options, fn() -> RecordBatch, Cut);

/// Every format, in each layout that can be split or cannot.
const CASES: &[Case] = &[
    ("dbdf", "spec", &[("block-rows", "100")], numbers, Cut::Yes),
    ("dbdf", "spec", &[("block-rows", "90"), ("block-cols", "2")], dense, Cut::Yes),
    ("dbdf", "spec", &[("blocks", "dense")], dense, Cut::Yes),
    ("dbdf", "spec", &[("block-rows", "100"), ("blocks", "sparse")], sparse, Cut::Yes),
    ("dbdf", "spec", &[("block-rows", "100"), ("blocks", "ultra-sparse")], sparse, Cut::Yes),
    ("dbdf", "spec", &[("blocks", "sparse")], sparse, Cut::No),
    ("dbdf", "daphne", &[("meta", "false")], numbers, Cut::Yes),
    ("dbdf", "daphne", &[("meta", "false")], dense, Cut::Yes),
    ("dbdf", "daphne", &[("meta", "false")], sparse, Cut::Yes),
    ("ds", "msgpack", &[], numbers, Cut::No),
    ("ds", "msgpack-fixed", &[], text, Cut::No),
    ("ds", "json", &[], numbers, Cut::No),
    ("dynd", "array", &[], numbers, Cut::Yes),
    ("dynd", "array", &[], dense, Cut::Yes),
    ("dynd", "array", &[], bits, Cut::Yes),
    ("dynd", "array", &[], text, Cut::No),
    ("dynd", "cbor", &[], dense, Cut::Either),
    ("dynd", "cbor", &[], numbers, Cut::Either),
    ("bsondf", "", &[], texts, Cut::No),
    ("sds", "int", &[], positions, Cut::No),
    ("sds", "sparse", &[], positions, Cut::No),
    ("sds", "rl", &[], runs, Cut::No),
    ("sds", "bit", &[], bits, Cut::No),
    ("arrow", "", &[], texts, Cut::Yes),
    ("arrow-stream", "", &[], texts, Cut::Yes),
    ("parquet", "", &[], texts, Cut::No),
    ("csv", "", &[], numbers, Cut::No),
    ("jsonl", "", &[], text, Cut::No),
    ("json", "", &[], text, Cut::No),
    ("json", "", &[], dense, Cut::No),
    ("npy", "", &[], dense, Cut::Yes),
    ("npy", "", &[], bits, Cut::Yes),
    ("npy", "", &[], numbers, Cut::Yes),
    ("npz", "", &[], dense, Cut::Yes),
    ("npz", "", &[("compressed", "true")], dense, Cut::No),
    ("npz", "", &[], sparse, Cut::No),
    ("mtx", "", &[], dense, Cut::No),
    ("mtx", "", &[], sparse, Cut::No),
];

#[test]
fn splits_of_every_format_are_read_side_by_side() {
    let registry = Registry::default();
    let mut met = BTreeSet::new();
    for (id, dialect, options, rows, cut) in CASES {
        let Some(format) = registry.formats().find(|format| format.info().id == *id) else { continue };
        met.insert(*id);
        let name = format!("{id}:{dialect} {options:?}");
        let mut suite = Suite::new(format.as_ref()).allowing_loss();
        if !dialect.is_empty() {
            suite = suite.dialect(dialect);
        }
        for (key, value) in *options {
            suite = suite.option(key, value);
        }
        let rows = rows();
        let each = (ROWS / BATCHES) as usize;
        let batches: Vec<RecordBatch> =
            (0..BATCHES as usize).map(|index| rows.slice(index * each, each)).collect();
        let (_, bytes) = suite.encode(&rows.schema(), &batches).expect("the plan allows it");
        let extension = format.info().extensions[0];
        let source = Source::from_bytes(format!("data.{extension}"), bytes);
        check(&name, format.open(source, &suite.read).unwrap(), *cut);
    }
    let known: BTreeSet<_> = registry.formats().map(|format| format.info().id).collect();
    assert_eq!(met, known, "every format has a case");
}

#[cfg(feature = "parquet")]
#[test]
fn splits_of_parquet_are_row_groups() {
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(70)).build();
    let rows = texts();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    let document = open("parquet", Source::from_bytes("x.parquet", writer.into_inner().unwrap()));
    assert_eq!(document.splits(100).len(), 15);
    assert!(document.splits(7).iter().all(|split| split.rows.start % 70 == 0), "no row group is read twice");
    check("parquet with row groups", document, Cut::Yes);
}

#[cfg(feature = "ds")]
#[test]
fn splits_of_ds_are_segments_of_its_index() {
    let count = 60_000;
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..count).map(|row| format!("{row:020}"))));
    let rows = RecordBatch::try_from_iter([("text", texts)]).unwrap();
    let (_, bytes) = Suite::new(&crate::formats::ds::Ds).encode(&rows.schema(), &[rows]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.ds");
    std::fs::write(&path, bytes).unwrap();
    let source = Source::open(&path).unwrap();
    let index = crate::formats::ds::build_index(&source, &ReadOptions::default()).unwrap();
    std::fs::write(folder.path().join("x.ds.idx"), index).unwrap();
    check("ds with an index", open("ds", source), Cut::Yes);
}

#[cfg(feature = "npy")]
#[test]
fn an_array_in_fortran_order_is_one_split() {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let header = format!("{{'descr': '<i2', 'fortran_order': True, 'shape': ({ROWS}, 2), }}\n");
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend((0..2 * ROWS as u16).flat_map(u16::to_le_bytes));
    check("npy in Fortran order", open("npy", Source::from_bytes("x.npy", bytes)), Cut::No);
}

#[cfg(feature = "npy")]
#[test]
fn no_rows_are_no_split() {
    let mut bytes = b"\x93NUMPY\x01\x00\x3c\x00".to_vec();
    bytes.extend(b"{'descr': '<i2', 'fortran_order': False, 'shape': (0, 2), }\n");
    let document = open("npy", Source::from_bytes("x.npy", bytes));
    assert!(document.splits(3).is_empty());
    assert!(Split::whole(document.summary()).is_empty());
}

fn open(id: &str, source: Source) -> Arc<dyn Document> {
    Registry::default().get(id).unwrap().open(source, &ReadOptions::default()).unwrap()
}

fn check(name: &str, document: Arc<dyn Document>, cut: Cut) {
    let whole = collect(document.all_rows().unwrap()).unwrap();
    for wanted in [1, 2, 7] {
        let splits = document.splits(wanted);
        match cut {
            Cut::No => assert_eq!(splits.len(), 1, "{name}"),
            Cut::Yes if wanted == 7 => assert!((3..=7).contains(&splits.len()), "{name}: {splits:?}"),
            _ => assert!((1..=wanted).contains(&splits.len()), "{name}: {splits:?}"),
        }
        let mut next = 0;
        for split in &splits {
            assert_eq!(split.rows.start, next, "{name}: {splits:?}");
            assert!(split.rows.end > next && split.bytes.start <= split.bytes.end, "{name}: {splits:?}");
            assert!(
                document.summary().bytes.is_none_or(|bytes| split.bytes.end <= bytes),
                "{name}: {splits:?}"
            );
            next = split.rows.end;
        }
        let expected = document.summary().rows.unwrap_or(u64::MAX);
        assert_eq!(next, expected, "{name}: {splits:?}");
        let parts = side_by_side(&document, splits.iter().map(|split| split.rows.clone()));
        for (index, column) in whole.columns().iter().enumerate() {
            let columns: Vec<&dyn Array> = parts.iter().map(|part| part.column(index).as_ref()).collect();
            assert_eq!(&concat(&columns).unwrap(), column, "{name}: {splits:?}");
        }
    }
    for all in side_by_side(&document, [0..u64::MAX, 0..u64::MAX, 0..u64::MAX]) {
        assert_eq!(all.columns(), whole.columns(), "{name}");
    }
}

/// Each range of rows of one document, read on a separate thread.
fn side_by_side(
    document: &Arc<dyn Document>,
    ranges: impl IntoIterator<Item = Range<u64>>,
) -> Vec<RecordBatch> {
    let read =
        |rows: Range<u64>| collect(document.rows(&document.selection().with_rows(rows)).unwrap()).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranges.into_iter().map(|rows| scope.spawn(move || read(rows))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
