use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema, TimeUnit};
use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::hub::{extension, shape};
use crate::limits::Limits;

fn parse(text: &str) -> crate::Result<Field> {
    parse_field("x", text, &Limits::default())
}

#[test]
fn every_frozen_text_parses_and_prints_as_it_is() {
    for text in [
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
        "fixed_binary[16]",
        "date32",
        "date64",
        "time[s]",
        "time[ms]",
        "time[us]",
        "time[ns]",
        "timestamp[ns]",
        "timestamp[us, 'Europe/Berlin']",
        "duration[ms]",
        "decimal128[10, 2]",
        "decimal128[38, -3]",
        "null",
        "?null",
        "list[?int32]",
        "large_list[list[utf8]]",
        "fixed_list[3, ?float32]",
        "struct{}",
        "?struct{a: int8, _b2: ?utf8, 'with space': binary, '': null}",
        "dict[int32, utf8]",
        "?ordered_dict[uint8, large_utf8]",
        "map[utf8, ?int64]",
        "sorted_map[utf8, int64]",
        "utf8_view",
        "binary_view",
        "list_view[int8]",
        "large_list_view[?int8]",
        "decimal32[9, 0]",
        "decimal64[18, 1]",
        "decimal256[76, 76]",
        "interval[year_month]",
        "interval[day_time]",
        "interval[month_day_nano]",
        "run_end[int32, ?utf8]",
        "dense_union{0 a: int8, 5 'b c': ?utf8}",
        "sparse_union{1 x: null}",
        r"struct{'\u00e9\'\\\n\U0001f600': int8}",
    ] {
        assert_eq!(print_field(&parse(text).unwrap()), text);
    }
}

#[test]
fn texts_mean_the_arrow_types_they_name() {
    let field = parse(" ? timestamp [ us , \"UTC\" ] ").unwrap();
    assert_eq!(field, Field::new("x", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true));
    assert_eq!(parse("time[ms]").unwrap().data_type(), &DataType::Time32(TimeUnit::Millisecond));
    assert_eq!(parse("time[ns]").unwrap().data_type(), &DataType::Time64(TimeUnit::Nanosecond));
    assert_eq!(parse("list[?int32]").unwrap().data_type(), &DataType::new_list(DataType::Int32, true));
    assert_eq!(parse("ordered_dict[int8, utf8]").unwrap().dict_is_ordered(), Some(true));
}

#[test]
fn errors_have_a_place() {
    for (text, expected) in [
        ("", "at byte 0: expected an Arrow type, found the end of the text"),
        ("int33", "at byte 0: expected an Arrow type, found `int33`"),
        ("list[int8", "at byte 9: expected `]`, found the end of the text"),
        ("struct{a int8}", "at byte 9: expected `:`, found `int8`"),
        ("struct{a: int8,}", "at byte 15: expected a name, found `}`"),
        ("int8 int8", "at byte 5: expected the end of the type, found `int8`"),
        ("??int8", "at byte 1: expected a type, found `?`"),
        ("time[h]", "at byte 5: expected a unit (s, ms, us, ns), found `h`"),
        ("decimal128[39, 0]", "at byte 11: expected a precision 1..=38, found `39`"),
        ("decimal128[5, 6]", "at byte 14: expected a scale that is at most the precision, found `6`"),
        ("dict[utf8, utf8]", "at byte 5: expected an integer type for the indices, found `utf8`"),
        ("map[?utf8, utf8]", "at byte 4: expected keys that are not nullable, found `?`"),
        ("fixed_list[-1, int8]", "at byte 11: expected a size 0..=2147483647, found `-`"),
        ("struct{'a: int8}", "at byte 7: expected a closing quote, found the end of the text"),
        (
            r"struct{'\ud800': int8}",
            r"at byte 8: expected 4 hex digits of a character after `\u`, found something else",
        ),
        (
            "dense_union{0 a: int8, 0 b: int8}",
            "at byte 11: expected type ids 0..=127, each once, found others",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
    }
    let error = parse("struct{é: int8}").unwrap_err();
    assert_eq!(caret("struct{é: int8}", &error), "struct{é: int8}\n       ^");
}

#[test]
fn depth_is_limited() {
    let text = "list[".repeat(100_000);
    assert_eq!(parse(&text).unwrap_err().kind(), ErrorKind::Limit);
    let text = "extension['a', ".repeat(100_000);
    assert_eq!(parse(&text).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn schemas_of_every_shape_come_back() {
    let limits = Limits::default();
    let int128 =
        extension::with(Field::new("i", DataType::FixedSizeBinary(16), true), extension::INT128, None);
    let tensor = extension::tensor_field("t", DataType::Float32, &[2, 3], false).unwrap();
    for (schema, text) in [
        (Schema::new(vec![Field::new("a b", DataType::Int8, true)]), "struct{'a b': ?int8}"),
        (Schema::empty(), "struct{}"),
        (shape::dense_schema(DataType::Float64, Some(3), 4).unwrap(), "matrix[3, 4, float64]"),
        (shape::sparse_schema(DataType::Int8, None, 1 << 40), "sparse_matrix[*, 1099511627776, int8]"),
        (shape::array_schema(Field::new("x", DataType::Utf8, true)), "array[?utf8]"),
        (shape::value_schema(Field::new("x", DataType::Utf8, false)), "utf8"),
        (shape::value_schema(Field::new("x", DataType::Struct(Fields::empty()), false)), "value[struct{}]"),
        (shape::value_schema(Field::new("x", DataType::Struct(Fields::empty()), true)), "?struct{}"),
        (Schema::new(vec![int128]), "struct{i: extension['pentaglot.int128', ?fixed_binary[16]]}"),
        (
            Schema::new(vec![tensor]),
            "struct{t: extension['arrow.fixed_shape_tensor', '{\"shape\":[2,3]}', fixed_list[6, float32]]}",
        ),
    ] {
        assert_eq!(print_exact_schema(&schema), text);
        assert_eq!(parse_schema(text, &limits).unwrap(), schema);
    }
    assert!(parse_schema("int33", &limits).is_err());
}

/// Any type that has a text.
fn any_field() -> impl Strategy<Value = Field> {
    let unit = prop_oneof![
        Just(TimeUnit::Second),
        Just(TimeUnit::Millisecond),
        Just(TimeUnit::Microsecond),
        Just(TimeUnit::Nanosecond)
    ];
    let time = |unit| match unit {
        TimeUnit::Second | TimeUnit::Millisecond => DataType::Time32(unit),
        _ => DataType::Time64(unit),
    };
    let leaf = prop_oneof![
        Just(DataType::Null),
        Just(DataType::Boolean),
        Just(DataType::Int8),
        Just(DataType::UInt64),
        Just(DataType::Float16),
        Just(DataType::Utf8),
        Just(DataType::LargeBinary),
        Just(DataType::Interval(IntervalUnit::DayTime)),
        (0..i32::MAX).prop_map(DataType::FixedSizeBinary),
        unit.clone().prop_map(time),
        (unit.clone(), any::<Option<String>>())
            .prop_map(|(unit, zone)| DataType::Timestamp(unit, zone.map(Arc::from))),
        unit.prop_map(DataType::Duration),
        (1u8..=38, -128i8..=1).prop_map(|(precision, scale)| DataType::Decimal128(precision, scale)),
    ];
    let data_type = leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            (inner.clone(), any::<bool>()).prop_map(|(item, nullable)| DataType::new_list(item, nullable)),
            (inner.clone(), any::<bool>(), 0..i32::MAX)
                .prop_map(|(item, nullable, size)| DataType::new_fixed_size_list(item, size, nullable)),
            prop::collection::vec((any::<String>(), inner.clone(), any::<bool>()), 0..4).prop_map(|fields| {
                let fields =
                    fields.into_iter().map(|(name, kind, nullable)| Field::new(name, kind, nullable));
                DataType::Struct(Fields::from_iter(fields))
            }),
            inner.clone().prop_map(|value| DataType::Dictionary(Box::new(DataType::Int16), Box::new(value))),
            (inner.clone(), inner, any::<bool>()).prop_map(|(key, value, nullable)| {
                let fields = vec![Field::new("key", key, false), Field::new("value", value, nullable)];
                DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields.into()), false)), false)
            }),
        ]
    });
    (data_type, any::<bool>()).prop_map(|(data_type, nullable)| Field::new("x", data_type, nullable))
}

proptest! {
    #[test]
    fn parsing_is_the_inverse_of_printing(field in any_field()) {
        let text = print_field(&field);
        prop_assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        prop_assert_eq!(parse(&text).unwrap(), field);
    }

    #[test]
    fn no_text_panics(text in "[a-z0-9?\\[\\]{}:, '\\\\]{0,40}") {
        let _ = parse(&text);
    }
}
