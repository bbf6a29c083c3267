//! `docs/dynd-profile.md` says what the code does: its tables are read and tried, or made.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::super::*;
use super::golden::value_of;
use super::hub::array_any;
use crate::Limits;
use crate::hub::{extension, type_text};

const PAGE: &str = include_str!("../../../../../../docs/dynd-profile.md");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The rows of the table under `heading` whose header begins with `first`: the code in each cell.
fn table(heading: &str, first: &str) -> Vec<Vec<String>> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with(&format!("| {first} |"))).skip(2);
    let cells = |line: &str| {
        let cells = line.trim_matches('|').split(" | ").map(str::trim);
        cells.map(|cell| cell.trim_start_matches('`').trim_end_matches('`').to_owned()).collect()
    };
    let rows: Vec<Vec<String>> = lines.take_while(|line| line.starts_with('|')).map(cells).collect();
    assert!(rows.len() > 5, "{heading}");
    rows
}

#[test]
fn the_sentinels_of_the_page_hold() {
    for row in table("Missing values", "T") {
        let ty: Type = format!("?{}", row[0]).parse().unwrap();
        assert_eq!(hex(&serialize(&ty, &Value::Missing).unwrap()), row[1], "{ty}");
    }
}

#[test]
fn the_canonical_texts_of_the_page_hold() {
    for row in table("Types", "given") {
        assert_eq!(row[0].parse::<Type>().unwrap().to_string(), row[1]);
    }
}

#[test]
fn the_worked_examples_of_the_page_hold() {
    for (heading, is_cbor) in [("Worked examples", false), ("CBOR", true)] {
        for row in table(heading, "type") {
            let ty: Type = row[0].parse().unwrap();
            let value = value_of(&ty, &serde_json::from_str(&row[1]).unwrap()).unwrap();
            let bytes = if is_cbor { to_cbor(&ty, &value).unwrap() } else { array_any(&ty, &value) };
            assert_eq!(hex(&bytes), row[2], "{ty}");
            if is_cbor {
                assert_eq!(from_cbor(&bytes, &Limits::default()).unwrap(), (ty, value));
            }
        }
    }
}

fn to_arrow() -> String {
    let types = [
        "bool",
        "int32",
        "int128",
        "uint64",
        "uint128",
        "float16",
        "float128",
        "complex[float64]",
        "void",
        "?void",
        "string",
        "json",
        "char",
        "type",
        "bytes",
        "bytes[16]",
        "fixed_string[10]",
        "date",
        "time",
        "datetime",
        "datetime[tz='UTC']",
        "3 * string",
        "2 * 3 * float64",
        "2 * 3 * ?float64",
        "var * int32",
        "(int8, string)",
        "{a: int8, b: ?bool}",
        "?int32",
        "?string",
        "pointer[int32]",
        "?pointer[?int32]",
        "array[Any]",
        "storage[2 * 3 * int8, axis=[1, 0]]",
    ];
    let mut out = String::from("| datashape (of a field) | Arrow | extension |\n|---|---|---|\n");
    for text in types {
        let field = super::super::hub::field_of("x", &text.parse().unwrap()).unwrap();
        let name = extension::name(&field).map_or(String::new(), |name| format!("`{name}`"));
        out.push_str(&format!("| `{text}` | `{}` | {name} |\n", type_text::print_field(&field)));
    }
    out
}

fn from_arrow() -> String {
    let item = |kind| Arc::new(Field::new_list_field(kind, true));
    let entries = Field::new_struct(
        "entries",
        vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)],
        false,
    );
    let types = [
        DataType::Null,
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Binary,
        DataType::LargeBinary,
        DataType::BinaryView,
        DataType::FixedSizeBinary(4),
        DataType::FixedSizeBinary(0),
        DataType::Date32,
        DataType::Date64,
        DataType::Time32(TimeUnit::Second),
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Time64(TimeUnit::Nanosecond),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Paris".into())),
        DataType::Duration(TimeUnit::Second),
        DataType::Decimal128(10, 2),
        DataType::List(item(DataType::Int32)),
        DataType::LargeList(item(DataType::Utf8)),
        DataType::FixedSizeList(item(DataType::Float32), 3),
        DataType::Struct(vec![Field::new("a", DataType::Int8, false)].into()),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        DataType::Map(Arc::new(entries), false),
    ];
    let mut out = String::from("| Arrow | datashape | nullable | verdict |\n|---|---|---|---|\n");
    for kind in types {
        let step = |nullable| {
            let schema = Schema::new(vec![Field::new("x", kind.clone(), nullable)]);
            Dynd.plan(&schema, &WriteOptions::default()).steps.remove(0)
        };
        let (plain, nullable) = (step(false), step(true));
        let shape = |to: &str, verdict| {
            if verdict == Verdict::Impossible { String::new() } else { format!("`{to}`") }
        };
        let note = nullable.note.as_ref().map_or(String::new(), |note| format!(": {note}"));
        out.push_str(&format!(
            "| `{kind}` | {} | {} | {}{note} |\n",
            shape(&plain.to, plain.verdict),
            shape(&nullable.to, nullable.verdict),
            nullable.verdict
        ));
    }
    out
}

#[test]
fn the_arrow_tables_of_the_page_are_those_of_the_code() {
    let mut page = PAGE.to_owned();
    for (name, table) in [("to arrow", to_arrow()), ("from arrow", from_arrow())] {
        let mark = format!("<!-- generated: {name} -->\n");
        let start = page.find(&mark).unwrap() + mark.len();
        let end = start + page[start..].find("<!-- end -->").unwrap();
        page.replace_range(start..end, &format!("\n{table}\n"));
    }
    if std::env::var_os("DYND_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dynd-profile.md"), &page).unwrap();
        return;
    }
    assert!(page == PAGE, "docs/dynd-profile.md differs from the code; DYND_BLESS=1 rewrites its tables");
}
