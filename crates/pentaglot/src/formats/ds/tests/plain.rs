//! Rows read by the fast loop are compared with the same rows read one by one: the same values, the same
//! errors.

use crate::hub::Selection;
use crate::testing::asked::Asked;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::cursor::Cursor;
use crate::error::Context;
use crate::formats::ds::columns::Reading;
use crate::formats::ds::rows::RowBuilder;
use crate::formats::ds::types::Type;
use crate::limits::Budget;
use crate::source::HEAD_BYTES;

const TYPE: &str = r#"{"columns":{
    "a":"int32","b":{"type":"nullable","underlying":"int64"},"c":"float64","d":"bool","e":"string",
    "f":{"type":"image","width":2,"height":2,"components":{"black":{"componentType":"uint8"}}},
    "g":"uint8","h":"float32","i":{"type":"nullable","underlying":"string"},"j":"uint64"}}"#;

const NESTED: &str = r#"{"columns":{
    "t":{"type":"tensor","componentType":"float32","shape":[3,4]},
    "a":{"type":"array","underlying":{"type":"nullable","underlying":"int64"}},
    "s":{"type":"array","underlying":"string"},"n":"int32"}}"#;

const ROWS: usize = 60;

/// A JSON bundle of rows with tensors and arrays.
fn nested() -> String {
    let list = |count: usize, item: &dyn Fn(usize) -> String| {
        format!("[{}]", (0..count).map(item).collect::<Vec<_>>().join(","))
    };
    let rows = list(ROWS, &|row| {
        let tensor = list(12, &|at| format!("{}.5", row * at));
        let array =
            list(row % 23, &|at| if at % 4 == 1 { "null".to_owned() } else { (at << row).to_string() });
        let texts = list(row % 11, &|at| format!("\"{}\"", "ü".repeat(at)));
        format!("[{tensor},{array},{texts},{row}]")
    });
    format!("{{\"type\":{NESTED},\"value\":{rows}}}")
}

/// Rows without a header, all of them simple.
fn rows(fixed: bool) -> Vec<u8> {
    let texts = (0..ROWS).map(|row| {
        let null = |text: String| if row % 5 == 0 { "null".to_owned() } else { text };
        let (b, i) =
            (null(format!("{}", (row as i64 - 20) << (row % 50))), null(format!("\"{}\"", "é".repeat(row))));
        format!(
            "[{row},{b},{row}.25,{},\"row {row}\",\"AAECAw==\",{row},0.5,{i},{}]",
            row % 2 == 0,
            u64::MAX >> row
        )
    });
    let json = format!("{{\"type\":{TYPE},\"value\":[{}]}}", texts.collect::<Vec<_>>().join(","));
    let batch = read(json.as_bytes(), &[]).unwrap();
    let bytes = write(&batch, if fixed { "msgpack-fixed" } else { "msgpack" }, &[]).unwrap();
    bytes[Type::parse(TYPE).unwrap().header().unwrap().len()..].to_vec()
}

/// The rows read one by one, with all checks.
fn one_by_one(
    bytes: &[u8],
    lenient: bool,
    columns: Option<Vec<std::ops::Range<u64>>>,
) -> Result<RecordBatch> {
    let kind = Type::parse(TYPE).unwrap();
    let reading = Reading {
        lenient,
        nan_null: false,
        decode: false,
        check_images: false,
        budget: Budget::default(),
        placeholder_bytes: 0,
    };
    let mut selection = Selection::new(&Arc::new(kind.to_schema().unwrap()), None);
    if let Some(columns) = columns {
        selection = selection.with_column_ranges(columns).unwrap();
    }
    let schema = Arc::clone(selection.schema());
    let mut builder = RowBuilder::new(&kind, selection.columns(), schema, reading, 0)?;
    let mut cursor = Cursor::new(bytes);
    while !cursor.is_empty() {
        builder.read_msgpack(&mut cursor).in_format("ds")?;
    }
    builder.finish()
}

fn same(quick: Result<RecordBatch>, careful: Result<RecordBatch>) {
    match (quick, careful) {
        (Ok(quick), Ok(careful)) => assert_eq!(quick, careful),
        (Err(quick), Err(careful)) => assert_eq!(quick.to_string(), careful.to_string()),
        (quick, careful) => panic!("{quick:?} against {careful:?}"),
    }
}

/// A reader that returns one byte at a time: after the bytes read for detection, no window ever has a complete
/// row.
struct Drop(std::io::Cursor<Vec<u8>>);

impl std::io::Read for Drop {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(1);
        self.0.read(&mut buffer[..len])
    }
}

fn read_from(source: Source, pairs: &[(&str, &str)], request: &Asked) -> Result<RecordBatch> {
    let document = Ds.open(source, &read_options(pairs))?;
    let rows = document.ask(request)?;
    let schema = rows.schema();
    let batches = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(arrow_select::concat::concat_batches(&schema, &batches)?)
}

#[test]
fn plain_rows_are_the_same_one_by_one() {
    for bytes in [rows(false), rows(true)] {
        let quick = read(&bytes, &[("type", TYPE)]);
        assert_eq!(quick.as_ref().unwrap().num_rows(), ROWS);
        same(quick, one_by_one(&bytes, false, None));
    }
}

/// Rows read by a scanner byte by byte.
fn drop_by_drop(text: &[u8], request: &Asked) -> Result<RecordBatch> {
    let source = Source::from_reader("test", Drop(std::io::Cursor::new(text.to_vec())));
    read_from(source, &[("dialect", "json")], request)
}

/// Moves the value of a bundle past the bytes read for detection.
fn moved(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    let body = text.windows(8).position(|window| window == b"\"value\":").unwrap() + 8;
    text.splice(body..body, vec![b' '; HEAD_BYTES]);
    text
}

#[test]
fn elements_of_tensors_and_arrays_are_the_same_one_by_one() {
    let text = moved(nested().as_bytes());
    let careful = drop_by_drop(&text, &Asked::default()).unwrap();
    assert_eq!(careful.num_rows(), ROWS);
    assert_eq!(read(&text, &[]).unwrap(), careful);
    for dialect in ["msgpack", "msgpack-fixed"] {
        assert_eq!(read(&write(&careful, dialect, &[]).unwrap(), &[]).unwrap(), careful);
    }
}

#[test]
fn an_element_that_is_not_plain_is_named() {
    let kind = r#"{"columns":{"t":{"type":"tensor","componentType":"float32","shape":[3,4]}}}"#;
    let mut bytes = vec![0x91, 0x9c];
    (0..12).for_each(|_| bytes.extend([0xca, 0x3f, 0, 0, 0]));
    assert_eq!(read(&bytes, &[("type", kind)]).unwrap().num_rows(), 1);
    bytes[2 + 7 * 5] = 0xc3;
    let error = read(&bytes, &[("type", kind), ("dialect", "msgpack")]).unwrap_err().to_string();
    assert_eq!(error, "ds: at byte 37, row 0, column \"t\"[7]: expected a float, found a bool");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn damaged_rows_give_the_same_values_or_errors(
        fixed: bool,
        lenient: bool,
        place: prop::sample::Index,
        with in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xc0), Just(0xca), Just(0xcb), Just(0xff)], 1..3),
        kept: bool,
        cut in prop::option::of(any::<prop::sample::Index>()),
        batch_rows in 0..50usize,
        some: bool,
    ) {
        let mut bytes = rows(fixed);
        let start = place.index(bytes.len());
        let end = if kept { (start + with.len()).min(bytes.len()) } else { start };
        bytes.splice(start..end, with);
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len() + 1)));
        let flag = if lenient { "true" } else { "false" };
        let mut request = Asked::default();
        request.batch_rows = batch_rows;
        request.columns = some.then(|| vec![1..2, 4..6, 8..9]);
        let careful = one_by_one(&bytes, lenient, request.columns.clone());
        let options = [("type", TYPE), ("lenient", flag), ("dialect", "msgpack")];
        same(read_from(Source::from_bytes("test", bytes), &options, &request), careful);
    }

    #[test]
    fn damaged_json_gives_the_same_values_or_errors(
        place: prop::sample::Index,
        with in "[-0-9.eE,\" \\]\\[\\\\a=\u{e9}\n]{0,3}",
        end in 0..3usize,
        batch_rows in 0..50usize,
        flat: bool,
    ) {
        let mut text = if flat {
            write(&read(&rows(false), &[("type", TYPE)]).unwrap(), "json", &[]).unwrap()
        } else {
            nested().into_bytes()
        };
        let body = text.windows(8).position(|window| window == b"\"value\":").unwrap() + 8;
        let start = body + place.index(text.len() - body);
        let end = (start + end).min(text.len());
        text.splice(start..end, with.into_bytes());
        let text = moved(&text);
        let mut request = Asked::default();
        request.batch_rows = batch_rows;
        let read = |source: Source| read_from(source, &[("dialect", "json")], &request);
        same(read(Source::from_bytes("test", text.clone())), drop_by_drop(&text, &request));
        // Through the scanner's window, not from memory.
        let stream = Source::from_reader("test", std::io::Cursor::new(text.clone()));
        same(read(stream), drop_by_drop(&text, &request));
    }
}
