//! `docs/dynd-profile.md` matches the code: its tables are tested or generated.

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
        assert_eq!(hex(&write_value(&ty, &Value::Missing).unwrap()), row[1], "{ty}");
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
            let bytes = if is_cbor { write_cbor(&ty, &value).unwrap() } else { array_any(&ty, &value) };
            assert_eq!(hex(&bytes), row[2], "{ty}");
            if is_cbor {
                assert_eq!(read_cbor(&bytes, &Limits::default()).unwrap(), (ty, value));
            }
        }
    }
}

/// Every constructor of the profile.
const DATASHAPES: &[&str] = &[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "int128",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint128",
    "float16",
    "float32",
    "float64",
    "float128",
    "complex[float32]",
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
    "merkle[bytes]",
    "storage[2 * 3 * int8, axis=[1, 0]]",
];

/// Every type of Arrow that a file can have, those with parameters once or for each unit.
const ARROW_TYPES: &[&str] = &[
    "null",
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "utf8",
    "large_utf8",
    "binary",
    "large_binary",
    "fixed_binary[4]",
    "date32",
    "date64",
    "time[s]",
    "time[us]",
    "time[ns]",
    "timestamp[us]",
    "timestamp[ns, 'UTC']",
    "list[int32]",
    "list[?int32]",
    "large_list[utf8]",
    "fixed_list[3, float32]",
    "struct{a: int8}",
    "dict[int32, utf8]",
    "decimal128[10, 2]",
    "duration[s]",
    "map[utf8, utf8]",
];

/// Compares the lines between the marks of `name` with `made`; `cargo xtask bless` rewrites them.
fn check_made(name: &str, made: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dynd-profile.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mark = format!("<!-- made by `cargo xtask bless`: {name} -->\n");
    let (before, rest) = page.split_once(&mark).unwrap();
    let (found, after) = rest.split_once("<!-- end -->\n").unwrap();
    if std::env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        std::fs::write(&path, format!("{before}{mark}{made}<!-- end -->\n{after}")).unwrap();
    } else {
        assert_eq!(found, made, "cargo xtask bless writes docs/dynd-profile.md");
    }
}

#[test]
fn the_arrow_tables_of_the_page_are_made() {
    let mut table = "| datashape | Arrow | extension |\n|---|---|---|\n".to_owned();
    for text in DATASHAPES {
        let field = super::super::schema::field_of("x", &text.parse().unwrap()).unwrap();
        let extension = extension::name(&field).map(|name| format!("`{name}`")).unwrap_or_default();
        table += &format!("| `{text}` | `{}` | {extension} |\n", type_text::print_field(&field));
    }
    let mut back = "| Arrow | datashape | nullable |\n|---|---|---|\n".to_owned();
    for arrow in ARROW_TYPES {
        let datashape = |mark: &str| {
            let text = format!("struct{{x: {mark}{arrow}}}");
            let schema = type_text::parse_schema(&text, &Limits::default()).unwrap();
            match Type::from_schema(&schema) {
                Ok(Type::Var(row)) => match *row {
                    Type::Struct(fields) => format!("`{}`", fields[0].1),
                    other => panic!("{other}"),
                },
                Ok(other) => panic!("{other}"),
                Err(_) => "refused".to_owned(),
            }
        };
        back += &format!("| `{arrow}` | {} | {} |\n", datashape(""), datashape("?"));
    }
    // One after the other: both rewrite the page.
    check_made("datashape to Arrow", &table);
    check_made("Arrow to datashape", &back);
}
