//! Arrays of objects are read in pieces: what is read does not depend on the number of threads.

use std::io::Cursor;

use arrow_array::Array;

use super::*;
use crate::Limits;

/// A budget whose pieces have [`PIECE_BYTES`].
const SMALL_BUDGET: u64 = 4 << 20;
const PIECE_BYTES: usize = 16 << 10;

/// Rows of 50 bytes or more that fill several pieces.
const ROWS: usize = 2500;

/// What is read of a text.
struct Outcome {
    batches: Vec<RecordBatch>,
    error: Option<String>,
    /// How many of the batches were read as pieces.
    pieces: usize,
}

impl Outcome {
    fn rows(&self) -> Vec<usize> {
        self.batches.iter().map(RecordBatch::num_rows).collect()
    }
}

struct How {
    max_alloc: u64,
    max_depth: u32,
    type_text: Option<&'static str>,
    columns: Option<&'static [&'static str]>,
}

const USUAL: How = How { max_alloc: SMALL_BUDGET, max_depth: 128, type_text: None, columns: None };

fn read(source: Source, threads: usize, how: &How) -> Outcome {
    let limits = Limits { max_alloc: how.max_alloc, max_depth: how.max_depth, ..Limits::default() };
    let mut options = ReadOptions { control: Control::new(threads), ..ReadOptions::default() };
    options.budget = limits.budget();
    options.type_text = how.type_text.map(str::to_owned);
    let rows = JsonRows::open("json", source, Framing::Array, &options).unwrap();
    let mut selection = Selection::new(&rows.summary.schema, rows.summary.rows);
    if let Some(columns) = how.columns {
        selection = selection.with_columns(columns).unwrap();
    }
    let mut reader = rows.reader(&selection).unwrap();
    let mut outcome = Outcome { batches: Vec::new(), error: None, pieces: 0 };
    loop {
        let plain = reader.pieces.plain();
        match reader.next() {
            Some(Ok(batch)) => outcome.batches.push(batch),
            Some(Err(error)) => {
                outcome.error = Some(error.to_string());
                return outcome;
            }
            None => return outcome,
        }
        outcome.pieces += usize::from(reader.pieces.plain() > plain);
    }
}

/// What is read of a stream with seven threads, which is the same as with fewer, and from memory.
fn read_all(text: impl AsRef<[u8]>, how: &How) -> Outcome {
    let text = text.as_ref();
    let memory = |threads| read(Source::from_bytes("data.json", text.to_vec()), threads, how);
    let stream = |threads| read(Source::from_reader("-", Cursor::new(text.to_vec())), threads, how);
    let one = memory(1);
    assert_eq!(one.pieces, 0);
    let mut last = None;
    for threads in [2, 7] {
        for other in [memory(threads), stream(1), stream(threads)] {
            assert_eq!(other.rows(), one.rows(), "with {threads} threads");
            assert!(other.batches == one.batches, "with {threads} threads");
            assert_eq!(other.error, one.error, "with {threads} threads");
            last = Some(other);
        }
    }
    last.unwrap()
}

fn row(number: usize) -> String {
    format!("{{\"id\":{number},\"text\":\"the text of row number {number}\"}}")
}

/// An array of such rows.
fn array(between: &str, row: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..ROWS).map(row).collect::<Vec<_>>().join(between))
}

/// How many rows each batch has, by the rule in words: it ends with the first row whose successor begins far enough from where the
/// batch begins.
fn expected_rows(text: &str, begins: &[usize]) -> Vec<usize> {
    let (mut counts, mut start) = (vec![0], begins[0]);
    for begin in begins.iter().skip(1).chain([&text.len()]) {
        *counts.last_mut().unwrap() += 1;
        if begin - start >= PIECE_BYTES && *begin < text.len() {
            counts.push(0);
            start = *begin;
        }
    }
    counts
}

#[test]
fn arrays_of_any_layout_are_read_in_pieces() {
    for (begin, between, end) in [
        ("[", ",", "]"),
        ("[", ", ", "]\n"),
        ("[", ",\n", "]\n"),
        ("\u{feff}[\r\n", "\r\n,\r\n", "\r\n]\r\n"),
        (" \n[ ", " , \t\n\n ", "\n]\n \n"),
    ] {
        let mut text = begin.to_owned();
        let mut begins = Vec::new();
        for number in 0..ROWS {
            text += if number > 0 { between } else { "" };
            begins.push(text.len());
            text += &row(number);
        }
        text += end;
        let read = read_all(&text, &USUAL);
        assert_eq!(read.error, None);
        assert_eq!(read.rows(), expected_rows(&text, &begins), "{between:?}");
        assert_eq!(
            read.pieces,
            read.batches.len() - 2,
            "all but the first batch and the last one: {between:?}"
        );
    }
    let indented = array(",\n  ", |number| row(number).replace(",", ",\n    ").replace("{", "{\n    "));
    let read = read_all(indented, &USUAL);
    assert_eq!((read.error, read.pieces), (None, read.batches.len() - 2));
    assert_eq!(read.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), ROWS);
}

#[test]
fn columns_may_be_chosen_and_types_given() {
    let text = array(",", row);
    let how = How { columns: Some(&["text"]), ..USUAL };
    let read = read_all(&text, &how);
    assert!(read.pieces > 4, "{}", read.pieces);
    assert_eq!(read.batches[0].num_columns(), 1);
    let given = How { type_text: Some("array[struct{id: int32, text: utf8}]"), ..USUAL };
    assert!(read_all(&text, &given).pieces > 4);
}

#[test]
fn pieces_that_are_cut_inside_rows_are_read_again() {
    let parts = |number: usize| (0..number % 3).map(row).collect::<Vec<_>>().join(",");
    let nested = |number| format!("{{\"id\":{number},\"parts\":[{}]}}", parts(number));
    let first_key = |number: usize| match number % 9 {
        4 => format!("{{\"text\":\"without a number: {number}\"}}"),
        5 => format!("{{\"text\":\"the text before its number\",\"id\":{number}}}"),
        _ => row(number),
    };
    // The begin of each row is the end of a text and the begin of the next one.
    let in_texts =
        |number| format!("{{\",\":{number},\"texts\":[\"{{\",\"{}\",\"{{\",\"}}\"]}}", "x".repeat(40));
    for (text, least) in [(array(",", nested), 1), (array(",\n", first_key), 1), (array(",", in_texts), 0)] {
        let read = read_all(text, &USUAL);
        assert_eq!(read.error, None);
        assert!((least..read.batches.len() - 2).contains(&read.pieces), "{} {:?}", read.pieces, read.rows());
        assert_eq!(read.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), ROWS);
    }
    // Some rows take more than a piece, and some more than is looked at for its end.
    let long = |number: usize| match number % 1000 {
        200 => row(number).replace("the", &"the".repeat(PIECE_BYTES / 3)),
        201 => row(number).replace("the", &"the".repeat(4 * PIECE_BYTES)),
        _ => row(number),
    };
    let read = read_all(array(",", long), &USUAL);
    assert_eq!(read.error, None);
    assert!((3..read.batches.len() - 2).contains(&read.pieces), "{} {:?}", read.pieces, read.rows());
}

#[test]
fn arrays_that_do_not_begin_with_an_object_with_keys_are_read_as_before() {
    for text in ["[]", " [ ] \n", "[{}]", "[{},{\"id\":1}]", "[1,{\"id\":1}]", "[[1,2],[3,4]]", "[null]"] {
        let read = read_all(text, &USUAL);
        assert_eq!((read.error, read.pieces), (None, 0), "{text}");
    }
    for (text, error) in [
        ("", "json: at byte 0 (line 1): expected an array, found the end of the input"),
        ("[{", "json: at byte 2 (line 1), row[0]: expected `,` or `}`, found the end of the input"),
        ("{\"id\":1}", "json: at byte 0 (line 1): expected an array, found an object"),
    ] {
        assert_eq!(read_all(text, &USUAL).error.as_deref(), Some(error));
    }
}

#[test]
fn errors_are_those_of_the_careful_reader() {
    let typed = How { type_text: Some("struct{id: ?int64, text: ?utf8}"), ..USUAL };
    let text = array(",\n", row);
    let end = text.len() - 1;
    let middle = text.find("{\"id\":2000,").unwrap();
    let with = |place: usize, removed: usize, added: &str| {
        format!("{}{added}{}", &text[..place], &text[place + removed..])
    };
    let cut = |place: usize| text[..place].to_owned();
    for (text, error) in [
        (with(end, 0, ","), format!("at byte {} (line 2500): expected a value, found `]`", end + 1)),
        (with(end, 0, ",\n"), format!("at byte {} (line 2501): expected a value, found `]`", end + 2)),
        (
            with(end, 0, ",,"),
            format!("at byte {} (line 2500), row[2500]: expected an object, found `,`", end + 1),
        ),
        (
            text.clone() + " x",
            format!("at byte {} (line 2500): expected the end of the input, found `x`", end + 2),
        ),
        (
            text.clone() + "]",
            format!("at byte {} (line 2500): expected the end of the input, found `]`", end + 1),
        ),
        (
            cut(end),
            format!("at byte {end} (line 2500), row[2499]: expected `,` or `]`, found the end of the input"),
        ),
        (
            cut(end) + ", ",
            format!(
                "at byte {} (line 2500), row[2500]: expected an object, found the end of the input",
                end + 2
            ),
        ),
        (
            cut(middle),
            format!(
                "at byte {middle} (line 2001), row[2000]: expected an object, found the end of the input"
            ),
        ),
        (
            cut(middle - 2),
            format!(
                "at byte {} (line 2000), row[1999]: expected `,` or `]`, found the end of the input",
                middle - 2
            ),
        ),
        (
            cut(middle + 6),
            format!(
                "at byte {} (line 2001), row[2000].id: expected a number, found the end of the input",
                middle + 6
            ),
        ),
        (
            with(middle + 6, 4, "\"2\""),
            format!("at byte {} (line 2001), row[2000].id: expected a number, found a string", middle + 6),
        ),
        (
            with(middle, row(2000).len(), "7"),
            format!("at byte {middle} (line 2001), row[2000]: expected an object, found a number"),
        ),
        (
            with(middle - 2, 1, ""),
            format!("at byte {} (line 2001): expected `,` or `]`, found an object", middle - 1),
        ),
        (
            with(middle - 2, 1, "]"),
            format!("at byte {} (line 2001): expected the end of the input, found an object", middle),
        ),
        (
            with(middle - 2, 1, ",]"),
            format!("at byte {} (line 2000): expected a value, found `]`", middle - 1),
        ),
        (
            with(middle, 0, "\u{c}"),
            format!("at byte {middle} (line 2001), row[2000]: expected an object, found byte 0x0c"),
        ),
    ] {
        let read = read_all(text, &typed);
        assert_eq!(read.error, Some(format!("json: {error}")));
        assert!(read.pieces > 0 && read.rows().iter().sum::<usize>() >= 1600, "{:?}: {error}", read.rows());
    }
    // The row is as deep as without pieces.
    let deep = |depth: usize| {
        array(",", |number| match number {
            2000 => format!("{{\"id\":2000,\"text\":{}{}}}", "[".repeat(depth), "]".repeat(depth)),
            3 => format!("{{\"id\":3,\"text\":{}}}", row(3)),
            _ => row(number),
        })
    };
    let shallow = How { max_depth: 6, ..USUAL };
    assert_eq!(read_all(deep(4), &shallow).error, None);
    let error = read_all(deep(5), &shallow).error.unwrap();
    assert!(error.contains("row[2000].text: needs at least 7 levels"), "{error}");
}

#[test]
fn lines_of_errors_are_known_also_if_the_row_begins_in_an_earlier_window() {
    let mut rows: Vec<String> = (0..ROWS).map(|number| row(number).replace(',', ",\n")).collect();
    let begins: Vec<usize> = rows
        .iter()
        .scan(1, |end, row| {
            let begin = *end;
            *end += row.len() + 2;
            Some(begin)
        })
        .collect();
    // A stream is read 64 KiB at a time.
    let number = begins.partition_point(|begin| *begin < 64 << 10) - 1;
    rows[number] = format!("{{\n\"text\"\n:\n\"{}\"\n}}", "no number ".repeat(10));
    let text = format!("[{}]", rows.join(",\n"));
    let given = How { type_text: Some("struct{id: int64, text: utf8}"), ..USUAL };
    let error = read_all(text, &given).error.unwrap();
    let place = format!("at byte {} (line {}), row[{number}]", begins[number], 2 * number + 1);
    assert_eq!(error, format!("json: {place}: expected key \"id\", found an object without it"));
}

#[test]
fn large_files_are_read_in_pieces_of_a_mebibyte() {
    let long = "0123456789abcdef".repeat(512);
    let text = (0..2800).map(|number| format!("{{\"id\":{number},\"text\":\"{long}\"}}")).collect::<Vec<_>>();
    let text = format!("[{}]", text.join(","));
    assert!(text.len() > 20 << 20);
    let how = How { max_alloc: Limits::default().max_alloc, ..USUAL };
    let [one, two] =
        [1, 2].map(|threads| read(Source::from_bytes("data.json", text.clone().into_bytes()), threads, &how));
    assert_eq!((one.error, two.error), (None, None));
    assert!(one.batches == two.batches);
    assert!(two.pieces > 18, "{}", two.pieces);
    assert_eq!(two.batches.iter().map(|batch| batch.column(1).len()).sum::<usize>(), 2800);
}
