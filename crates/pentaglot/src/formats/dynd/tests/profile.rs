//! `docs/dynd-profile.md` says what the code does: its tables are read and tried, or made.

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

#[test]
fn the_arrow_tables_of_the_page_hold() {
    for row in table("Arrow", "datashape") {
        let field = super::super::hub::field_of("x", &row[0].parse().unwrap()).unwrap();
        assert_eq!(type_text::print_field(&field), row[1], "{}", row[0]);
        assert_eq!(extension::name(&field).unwrap_or_default(), row[2], "{}", row[0]);
    }
    for row in table("Arrow", "Arrow") {
        for (mark, expected) in [("", &row[1]), ("?", &row[2])] {
            let text = format!("struct{{x: {mark}{}}}", row[0]);
            let schema = type_text::parse_schema(&text, &Limits::default()).unwrap();
            let found = type_of_schema(&schema).map(|ty| ty.to_string());
            match expected.as_str() {
                "refused" => assert!(found.is_err(), "{text}"),
                expected => assert_eq!(found.unwrap(), format!("var * {{x: {expected}}}"), "{text}"),
            }
        }
    }
}
