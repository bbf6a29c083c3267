use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::Filter;
use crate::error::ErrorKind;
use crate::hub::rows::{batch, from_batches};
use crate::hub::type_text::parse_schema;
use crate::hub::{native, shape};
use crate::testing::arbitrary::Random;
use crate::testing::conformance::collect;

const OPERATORS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

fn holds(operator: &str, ordering: Option<Ordering>) -> bool {
    match operator {
        "=" => ordering == Some(Ordering::Equal),
        "!=" => ordering != Some(Ordering::Equal),
        "<" => ordering == Some(Ordering::Less),
        "<=" => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        ">" => ordering == Some(Ordering::Greater),
        _ => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// The rows of one column `x` that a filter keeps.
fn kept(column: ArrayRef, text: &str) -> Vec<usize> {
    let schema = Arc::new(Schema::new(vec![Field::new("x", column.data_type().clone(), true)]));
    let len = column.len();
    let batch = batch(Arc::clone(&schema), vec![column], len).unwrap();
    let filter = Filter::parse(text, &schema).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mask = filter.mask(&batch).unwrap();
    assert_eq!(mask.null_count(), 0);
    (0..len).filter(|row| mask.value(*row)).collect()
}

/// The message for a column of this type.
fn refused(kind: &str, text: &str) -> String {
    let schema = parse_schema(&format!("struct{{x: ?{kind}}}"), &Default::default()).unwrap();
    let error = Filter::parse(text, &schema).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    error.to_string()
}

/// Compares a value with `numerator / 4`, one row at a time; `None` if the two have no order.
fn naive(array: &ArrayRef, row: usize, numerator: i128) -> Option<Ordering> {
    let whole = |value: i128| (value * 4).cmp(&numerator);
    let decimal = |value: i256, scale: i8| {
        let ten = |power: u32| i256::from_i128(10i128.pow(power));
        let value = value.checked_mul(i256::from_i128(4)).unwrap();
        let literal = i256::from_i128(numerator);
        match u32::try_from(scale) {
            Ok(scale) => value.cmp(&literal.checked_mul(ten(scale)).unwrap()),
            Err(_) => value.checked_mul(ten(scale.unsigned_abs().into())).unwrap().cmp(&literal),
        }
    };
    let float = |value: f64| value.partial_cmp(&(numerator as f64 / 4.0));
    match array.data_type() {
        DataType::Int8 => Some(whole(array.as_primitive::<Int8Type>().value(row).into())),
        DataType::Int16 => Some(whole(array.as_primitive::<Int16Type>().value(row).into())),
        DataType::Int32 => Some(whole(array.as_primitive::<Int32Type>().value(row).into())),
        DataType::Int64 => Some(whole(array.as_primitive::<Int64Type>().value(row).into())),
        DataType::UInt8 => Some(whole(array.as_primitive::<UInt8Type>().value(row).into())),
        DataType::UInt16 => Some(whole(array.as_primitive::<UInt16Type>().value(row).into())),
        DataType::UInt32 => Some(whole(array.as_primitive::<UInt32Type>().value(row).into())),
        DataType::UInt64 => Some(whole(array.as_primitive::<UInt64Type>().value(row).into())),
        DataType::Float16 => float(array.as_primitive::<Float16Type>().value(row).to_f64()),
        DataType::Float32 => float(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal32(_, scale) => {
            let value = array.as_primitive::<Decimal32Type>().value(row);
            Some(decimal(i256::from_i128(value.into()), *scale))
        }
        DataType::Decimal64(_, scale) => {
            let value = array.as_primitive::<Decimal64Type>().value(row);
            Some(decimal(i256::from_i128(value.into()), *scale))
        }
        DataType::Decimal128(_, scale) => {
            Some(decimal(i256::from_i128(array.as_primitive::<Decimal128Type>().value(row)), *scale))
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            naive(dictionary.values(), dictionary.normalized_keys()[row], numerator)
        }
        other => panic!("{other}"),
    }
}

#[test]
fn numbers_compare_as_numbers_whatever_the_column_holds() {
    use DataType::*;
    let dictionary = |value: DataType| Dictionary(Box::new(Int8), Box::new(value));
    let kinds = [
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Decimal32(9, 2),
        Decimal32(1, 0),
        Decimal64(18, 5),
        Decimal64(7, -2),
        Decimal128(38, 10),
        Decimal128(5, 5),
        Decimal128(20, -3),
        dictionary(Int64),
        dictionary(Float64),
        dictionary(Decimal128(38, 10)),
    ];
    let mut random = Random::new(1);
    let mut compared = 0;
    for kind in &kinds {
        for _ in 0..40 {
            let column = random.array(&Field::new("x", kind.clone(), true), 50);
            // Quarters: exact in every float as long as they are small. Values of the column are among the literals.
            let small = random.below(4000) as i128 - 2000;
            let large = (random.next() as i128) << random.below(50);
            let numerator = match random.below(4) {
                0 if !matches!(kind, Float16 | Float32) => large,
                1 if !matches!(kind, Float16 | Float32) => -large,
                _ => small,
            };
            let numerator = if matches!(kind, Float64) { numerator % (1 << 50) } else { numerator };
            let text =
                format!("{}{}", if numerator < 0 { "-" } else { "" }, quarters(numerator.unsigned_abs()));
            for operator in OPERATORS {
                let filter = format!("x {operator} {text}");
                let expected: Vec<usize> = (0..column.len())
                    .filter(|row| {
                        let valid = column.logical_nulls().is_none_or(|nulls| nulls.is_valid(*row));
                        valid && holds(operator, naive(&column, *row, numerator))
                    })
                    .collect();
                assert_eq!(kept(Arc::clone(&column), &filter), expected, "{filter}: {column:?}");
                compared += expected.len();
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

fn quarters(numerator: u128) -> String {
    let fraction = ["", ".25", ".5", ".750e0"][(numerator % 4) as usize];
    format!("{}{fraction}", numerator / 4)
}

#[test]
fn numbers_past_the_type_are_past_every_value() {
    let bytes = || Arc::new(UInt8Array::from(vec![Some(0), None, Some(255)])) as ArrayRef;
    for (text, expected) in [
        ("x < 300", &[0, 2][..]),
        ("x > -1", &[0, 2]),
        ("x != 256", &[0, 2]),
        ("x = 256", &[]),
        ("x > 254.5", &[2]),
        ("x >= -0.5", &[0, 2]),
        ("x < 1e999999999999999999999", &[0, 2]),
        ("x > -1e100", &[0, 2]),
        ("x > 1e-400", &[2]),
        ("x <= 0.0e5", &[0]),
        ("x < inf", &[0, 2]),
        ("x > nan", &[]),
        ("x != NaN", &[0, 2]),
    ] {
        assert_eq!(kept(bytes(), text), expected, "{text}");
    }
    let wide = [i256::MIN, i256::ZERO, i256::from_string(&"9".repeat(76)).unwrap()];
    let decimals = Decimal256Array::from(wide.to_vec()).with_precision_and_scale(76, 0).unwrap();
    let decimals: ArrayRef = Arc::new(decimals);
    assert_eq!(kept(Arc::clone(&decimals), &format!("x = {}", "9".repeat(76))), [2]);
    assert_eq!(kept(Arc::clone(&decimals), "x < 1e76"), [0, 1, 2]);
    assert_eq!(kept(decimals, "x > -1e75"), [1, 2]);
}

#[test]
fn floats_are_compared_at_their_own_width_and_nan_matches_only_not_equal() {
    let narrow = Float32Array::from(vec![Some(0.1), None, Some(f32::NAN), Some(f32::INFINITY), Some(-0.0)]);
    let narrow: ArrayRef = Arc::new(narrow);
    for (text, expected) in [
        ("x = 0.1", &[0][..]),
        ("x < 0.1", &[4]),
        ("x != 0.1", &[2, 3, 4]),
        ("x = 0", &[4]),
        ("x = nan", &[]),
        ("x != nan", &[0, 2, 3, 4]),
        ("x <= inf", &[0, 3, 4]),
        ("x = inf", &[3]),
        ("x > -inf", &[0, 3, 4]),
        // Finite, but out of range for float32.
        ("x > 1e39", &[3]),
        ("x <= 1e39", &[0, 4]),
        ("x = 1e39", &[]),
        ("x >= -1e39", &[0, 3, 4]),
    ] {
        assert_eq!(kept(Arc::clone(&narrow), text), expected, "{text}");
    }
}

#[test]
fn text_compares_by_bytes_in_every_layout() {
    let plain: ArrayRef =
        Arc::new(StringArray::from(vec![Some("b"), None, Some("it's"), Some("é"), Some("")]));
    let texts = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    for kind in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, texts] {
        let column = arrow_cast::cast(&plain, &kind).unwrap();
        for (text, expected) in
            [("x = 'it''s'", &[2][..]), ("x>'b'", &[2, 3]), ("x != ''", &[0, 2, 3]), ("x >= 'é'", &[3])]
        {
            assert_eq!(kept(Arc::clone(&column), text), expected, "{kind}: {text}");
        }
    }
    // A dictionary that is longer than the batch.
    let column =
        arrow_cast::cast(&plain, &DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)));
    assert_eq!(kept(column.unwrap().slice(2, 2), "x = 'é'"), [1]);
}

#[test]
fn dates_and_times_compare_with_texts() {
    let cases: &[(ArrayRef, &str, &[usize])] = &[
        (Arc::new(Date32Array::from(vec![0, 1, -1])), "x >= '1970-01-01'", &[0, 1]),
        (Arc::new(Date32Array::from(vec![0, 1, -1])), "x < '1970-01-01T12:00'", &[0, 2]),
        (Arc::new(Date32Array::from(vec![0, 1, -1])), "x = '1970-01-01T00:00:00.0001'", &[]),
        (Arc::new(Date64Array::from(vec![0, 86_400_000])), "x = '1970-01-02'", &[1]),
        (Arc::new(Time32SecondArray::from(vec![0, 60, 61])), "x > '00:01'", &[2]),
        (Arc::new(Time32SecondArray::from(vec![0, 60, 61])), "x < '00:01:00.5'", &[0, 1]),
        (Arc::new(Time64NanosecondArray::from(vec![0, 1])), "x = '00:00:00.000000001'", &[1]),
        (Arc::new(TimestampMillisecondArray::from(vec![-1, 0, 1])), "x < '1970-01-01'", &[0]),
        (
            Arc::new(TimestampMillisecondArray::from(vec![-1, 0, 1])),
            "x <= '1970-01-01 00:00:00.0009'",
            &[0, 1],
        ),
        // Out of range for nanoseconds.
        (Arc::new(TimestampNanosecondArray::from(vec![i64::MIN, i64::MAX])), "x < '9999-12-31'", &[0, 1]),
        (Arc::new(DurationSecondArray::from(vec![-5, 5])), "x > 4.5", &[1]),
    ];
    for (column, text, expected) in cases {
        assert_eq!(kept(Arc::clone(column), text), *expected, "{text}");
    }
    let zoned = |zone: &str| {
        Arc::new(TimestampSecondArray::from(vec![0, 3600, 1_720_000_000]).with_timezone(zone)) as ArrayRef
    };
    assert_eq!(kept(zoned("UTC"), "x = '1970-01-01T01:00:00+01:00'"), [0]);
    assert_eq!(kept(zoned("+01:00"), "x = '1970-01-01T02:00'"), [1]);
    assert_eq!(kept(zoned("Europe/Berlin"), "x = '2024-07-03T11:46:40'"), [2]);
    let (naive, berlin) = ("timestamp[s]", "timestamp[s, 'Europe/Berlin']");
    assert!(refused(naive, "x = '2024-07-03T11:46:40Z'").contains("without an offset"));
    assert!(refused(berlin, "x = '2024-10-27T02:30'").contains("Europe/Berlin has that local time twice"));
    assert!(refused(berlin, "x = '2024-03-31T02:30'").contains("Europe/Berlin has no such local time"));
}

#[test]
fn nulls_match_is_null_only() {
    let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    assert_eq!(kept(Arc::clone(&column), "x is null"), [1]);
    assert_eq!(kept(Arc::clone(&column), "x IS NOT NULL and x = 1"), [0]);
    assert_eq!(kept(Arc::clone(&column), "x != 2 and x != 1"), [0usize; 0]);
    assert_eq!(kept(Arc::new(NullArray::new(2)), "x is null"), [0, 1]);
    assert_eq!(kept(Arc::new(NullArray::new(2)), "x != 2"), [0usize; 0]);
    assert_eq!(kept(Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])), "x < true"), [2]);
}

#[test]
fn every_type_is_filtered_and_its_rows_stay_what_they_are() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut fields: Vec<Field> = (0..3).map(|index| random.field(&format!("c{index}"), 2)).collect();
        fields.push(Field::new("pick", DataType::Int32, true));
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let whole = random.batch(&schema, 40);
        let filter = Filter::parse("pick > 0 and c0 is not null", &schema).unwrap();
        let pick = whole.column(3).as_primitive::<Int32Type>();
        let first = whole.column(0).logical_nulls();
        let expected: Vec<usize> = (0..40)
            .filter(|row| pick.is_valid(*row) && pick.value(*row) > 0)
            .filter(|row| first.as_ref().is_none_or(|nulls| nulls.is_valid(*row)))
            .collect();
        let rows = filter.apply(from_batches(Arc::clone(&schema), [Ok(whole.clone())]));
        let found: Vec<RecordBatch> = rows.collect::<Result<_, _>>().unwrap();
        assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), expected.len(), "{schema}");
        for (row, source) in expected.into_iter().enumerate() {
            for (found, whole) in found[0].columns().iter().zip(whole.columns()) {
                assert_eq!(&found.slice(row, 1), &whole.slice(source, 1), "seed {seed}: {schema}");
            }
        }
    }
}

#[test]
fn matrices_are_filtered_by_their_columns() {
    let dense = shape::dense_schema(DataType::Int32, Some(3), 2).unwrap();
    let values = Int32Array::from(vec![1, 2, 3, 4, 5, 6]);
    let item = Arc::new(Field::new_list_field(DataType::Int32, false));
    let rows: ArrayRef = Arc::new(FixedSizeListArray::new(item, 2, Arc::new(values), None));
    let filter = Filter::parse("col_1 >= 4", &dense).unwrap();
    let dense = Arc::new(native::with(dense, "npy", "x"));
    let whole = batch(Arc::clone(&dense), vec![Arc::clone(&rows)], 3).unwrap();
    // A slice: offsets do not begin at zero.
    let found =
        collect(filter.apply(from_batches(dense, [Ok(whole.slice(1, 2)), Ok(whole.slice(0, 1))]))).unwrap();
    assert_eq!(found.num_rows(), 2);
    assert_eq!(shape::matrix_rows(&found.schema()), None);
    assert_eq!(shape::matrix_cols(&found.schema()), Some(2));
    assert!(native::is_sliced(&found.schema()));

    let sparse = Arc::new(shape::sparse_schema(DataType::Float64, Some(3), 9));
    let entries = shape::entry_fields(DataType::Float64, 9);
    let cols: ArrayRef = Arc::new(UInt32Array::from(vec![8, 3, 3]));
    let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0, -2.0, 5.0]));
    let entries = StructArray::new(entries, vec![cols, values], None);
    let item = Arc::new(Field::new_list_field(entries.data_type().clone(), false));
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([2, 0, 1]);
    let rows: ArrayRef = Arc::new(LargeListArray::new(item, offsets, Arc::new(entries), None));
    let whole = batch(Arc::clone(&sparse), vec![rows], 3).unwrap();
    for (text, expected) in [
        ("col_3 > 0", [false, false, true]),
        ("col_3 <= 0", [true, true, false]),
        ("col_3 < 0 and col_8 = 1", [true, false, false]),
        ("col_0 = 0", [true, true, true]),
    ] {
        let mask = Filter::parse(text, &sparse).unwrap().mask(&whole).unwrap();
        assert_eq!(mask, BooleanArray::from(expected.to_vec()), "{text}");
    }
    let error = Filter::parse("col_9 = 0", &sparse).unwrap_err();
    assert_eq!(error.to_string(), "filter: there is no matrix column \"col_9\" (there are col_0 to col_8)");
}

#[test]
fn messages_say_where_and_what_is_expected() {
    for (kind, text, expected) in [
        ("int32", "", "filter, at byte 0: expected a column, found the end of the filter"),
        (
            "int32",
            "x",
            "filter, at byte 1: expected an operator (= != < <= > >=) or `is`, found the end of the filter",
        ),
        ("int32", "x ! 3", "filter, at byte 2: expected an operator (= != < <= > >=), found `!`"),
        ("int32", "x = 3 or x = 4", "filter, at byte 6: expected `and` or the end of the filter, found `or`"),
        ("int32", "x = 'three", "filter, at byte 4: expected a closing ', found the end of the filter"),
        (
            "int32",
            "x = 3.5.1",
            "filter, at byte 4: expected a number, true, false or a text in single quotes, found `3.5.1`",
        ),
        ("int32", "x is 3", "filter, at byte 5: expected `null`, found `3`"),
        (
            "int32",
            "x = null",
            "filter, at byte 4: expected a number, true, false or a text in single quotes (nulls: `is null`), found `null`",
        ),
        ("int32", "y = 3", "filter: there is no column \"y\" (there is x)"),
        ("int32", "x = 'a'", "filter, column \"x\" of type int32: expected a number, found 'a'"),
        ("utf8", "x = 3.0", "filter, column \"x\" of type utf8: expected a text in single quotes, found 3.0"),
        ("bool", "x = 1", "filter, column \"x\" of type bool: expected true or false, found 1"),
        (
            "date32",
            "x = 'May'",
            "filter, column \"x\" of type date32: expected a date as 'YYYY-MM-DD', found 'May'",
        ),
        (
            "list[int8]",
            "x = 3",
            "filter, column \"x\" of type list[int8]: expected `is null` or `is not null`, all that can be asked of this type, found 3",
        ),
    ] {
        assert_eq!(refused(kind, text), expected);
    }
}

#[test]
fn operators_of_other_languages_are_the_same() {
    let schema = parse_schema("struct{x: int32}", &Default::default()).unwrap();
    for (given, same) in [("x == 1", "x = 1"), ("x==1", "x = 1"), ("x <> 1", "x != 1"), ("x<>1", "x != 1")] {
        let given = Filter::parse(given, &schema).unwrap();
        assert_eq!(format!("{given:?}"), format!("{:?}", Filter::parse(same, &schema).unwrap()));
    }
}

#[test]
fn odd_names_are_quoted() {
    let schema = parse_schema("struct{'a b': int32, 'q\"': int32, and: int32}", &Default::default()).unwrap();
    let filter = Filter::parse("\"a b\"=1 and \"q\"\"\" is null and and >2", &schema).unwrap();
    assert_eq!(filter.fields(), [0, 1, 2]);
    let filter = filter.for_fields(&[2, 0, 1]).unwrap();
    assert_eq!(filter.fields(), [0, 1, 2]);
    let value = shape::value_schema(Field::new("value", DataType::Int32, true));
    assert!(Filter::parse("value = 1", &value).is_err());
}
