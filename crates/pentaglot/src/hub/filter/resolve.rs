//! Turns a parsed comparison into one that can be evaluated: finds the column and converts the literal to its type.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::i256;
use arrow_schema::{DataType, Schema, TimeUnit};

use super::literal::{Floor, Literal, floor_seconds};
use super::parse::{Operator, Test, Written};
use super::{Comparison, FilterColumn};
use crate::error::{Error, Result};
use crate::hub::json::{Zone, parse_clock, parse_moment};
use crate::hub::shape::{self, Form};
use crate::hub::type_text::print_type;

/// A condition that is evaluated on the values of a column.
#[derive(Debug, Clone)]
pub(super) enum Predicate {
    IsNull,
    IsNotNull,
    /// No value matches.
    Never,
    /// Every value that is not null matches.
    Always,
    /// Values of the type of this array of one element.
    Compare(Operator, ArrayRef),
    /// Floats of any width.
    Float(Operator, f64),
}

pub(super) fn resolve(written: Written, schema: &Schema) -> Result<Comparison> {
    let Written { column: name, test } = written;
    let (column, data_type) = find(&name, schema)?;
    let predicate = match test {
        Test::IsNull => Predicate::IsNull,
        Test::IsNotNull => Predicate::IsNotNull,
        Test::Compare(operator, literal) => compare(operator, &literal, &data_type).map_err(|expected| {
            Error::usage(format!(
                "filter, column {name:?} of type {}: expected {expected}, found {literal}",
                print_type(&data_type)
            ))
        })?,
    };
    Ok(Comparison { column, predicate })
}

fn find(name: &str, schema: &Schema) -> Result<(FilterColumn, DataType)> {
    let form = Form::of(schema);
    if matches!(form, Form::Dense | Form::Sparse) {
        let cols = shape::matrix_cols(schema).unwrap_or(0);
        let index = name.strip_prefix("col_").and_then(|digits| digits.parse().ok());
        let index: Option<u64> = index.filter(|index| *index < cols && shape::column_name(*index) == name);
        let (Some(index), Some(kind)) = (index, shape::matrix_value_type(schema)) else {
            let last = shape::column_name(cols.saturating_sub(1));
            let there = if cols == 0 { "no columns".to_owned() } else { format!("col_0 to {last}") };
            return Err(Error::usage(format!(
                "filter: there is no matrix column {name:?} (there are {there})"
            )));
        };
        let column = match form {
            Form::Dense => FilterColumn::Dense(usize::try_from(index).unwrap_or(usize::MAX)),
            _ => FilterColumn::Sparse(index),
        };
        return Ok((column, kind));
    }
    if form == Form::Value {
        return Err(Error::usage("filter: a single value has no rows to choose from"));
    }
    let index = schema.fields().iter().position(|field| field.name() == name).ok_or_else(|| {
        let names: Vec<_> = schema.fields().iter().take(20).map(|field| field.name().as_str()).collect();
        Error::usage(format!("filter: there is no column {name:?} (there is {})", names.join(", ")))
    })?;
    Ok((FilterColumn::Field(index), schema.field(index).data_type().clone()))
}

/// The comparison of values of a type with a literal; `Err` says which literals the type can be compared
/// with.
fn compare(operator: Operator, literal: &Literal, kind: &DataType) -> Result<Predicate, String> {
    use DataType::*;
    match kind {
        Dictionary(_, value) => return compare(operator, literal, value),
        Null => return Ok(Predicate::Never),
        Boolean => {
            let Literal::Bool(value) = literal else { return Err("true or false".to_owned()) };
            return Ok(Predicate::Compare(operator, Arc::new(BooleanArray::from(vec![*value]))));
        }
        Utf8 | LargeUtf8 | Utf8View => {
            let Literal::Text(text) = literal else { return Err("a text in single quotes".to_owned()) };
            let text = StringArray::from(vec![text.as_str()]);
            let text = arrow_cast::cast(&text, kind).map_err(|error| error.to_string())?;
            return Ok(Predicate::Compare(operator, text));
        }
        Float16 | Float32 | Float64 => return float(operator, literal, kind),
        _ => {}
    }
    let floor = if kind.is_integer() || matches!(kind, Duration(_)) {
        number(literal, 0, "a number")?
    } else if let Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) =
        kind
    {
        number(literal, i64::from(*scale), "a number")?
    } else {
        temporal(literal, kind)?
    };
    let Some(floor) = floor else {
        // No value is equal to, less or greater than NaN.
        return Ok(if operator == Operator::NotEqual { Predicate::Always } else { Predicate::Never });
    };
    Ok(discrete(operator, floor, kind))
}

/// The floor of a number; `None` for NaN.
fn number(literal: &Literal, scale: i64, expected: &str) -> Result<Option<Floor>, String> {
    match literal {
        Literal::Number(number) => Ok(Some(number.floor(scale))),
        Literal::Infinity { negative: true } => Ok(Some(Floor::Below)),
        Literal::Infinity { negative: false } => Ok(Some(Floor::Above)),
        Literal::NaN => Ok(None),
        _ => Err(expected.to_owned()),
    }
}

fn temporal(literal: &Literal, kind: &DataType) -> Result<Option<Floor>, String> {
    let Literal::Text(text) = literal else { return Err(expected_text(kind)) };
    let bad = || expected_text(kind);
    Ok(Some(match kind {
        DataType::Date32 | DataType::Date64 => {
            let moment = parse_moment(text).filter(|moment| moment.offset.is_none()).ok_or_else(bad)?;
            match (kind, floor_seconds(moment.seconds, moment.fraction, 3)) {
                (DataType::Date32, Floor::At(_, exact)) => {
                    let exact = exact && moment.fraction.bytes().all(|digit| digit == b'0');
                    let (day, rest) = (moment.seconds.div_euclid(86_400), moment.seconds.rem_euclid(86_400));
                    Floor::At(i256::from_i128(day.into()), exact && rest == 0)
                }
                (_, floor) => floor,
            }
        }
        DataType::Time32(unit) | DataType::Time64(unit) => {
            let moment = parse_clock(text).ok_or_else(bad)?;
            floor_seconds(moment.seconds, moment.fraction, digits(*unit))
        }
        DataType::Timestamp(unit, zone) => {
            let moment = parse_moment(text).ok_or_else(bad)?;
            let seconds = match (zone, moment.offset) {
                (None, Some(_)) => {
                    return Err("a time without an offset, as the column has no zone".to_owned());
                }
                (None, None) => moment.seconds,
                (Some(_), Some(offset)) => moment.seconds - offset,
                (Some(zone), None) => match Zone::new(Some(zone)).utc_of_local(moment.seconds)[..] {
                    [utc] => utc,
                    [] => return Err(format!("a time with an offset, as {zone} has no such local time")),
                    _ => return Err(format!("a time with an offset, as {zone} has that local time twice")),
                },
            };
            floor_seconds(seconds, moment.fraction, digits(*unit))
        }
        _ => return Err(bad()),
    }))
}

fn digits(unit: TimeUnit) -> usize {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

fn expected_text(kind: &DataType) -> String {
    match kind {
        DataType::Date32 | DataType::Date64 => "a date as 'YYYY-MM-DD'",
        DataType::Time32(_) | DataType::Time64(_) => "a time as 'HH:MM:SS'",
        DataType::Timestamp(_, None) => "a time as 'YYYY-MM-DDTHH:MM:SS'",
        DataType::Timestamp(_, Some(_)) => "a time as 'YYYY-MM-DDTHH:MM:SSZ'",
        _ => "`is null` or `is not null`, all that can be asked of this type",
    }
    .to_owned()
}

/// A comparison of integers with a number that may lie between two of them, or out of their range.
fn discrete(operator: Operator, floor: Floor, kind: &DataType) -> Predicate {
    use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let always = |yes: bool| if yes { Predicate::Always } else { Predicate::Never };
    let (value, exact) = match floor {
        Floor::Above => return always(matches!(operator, Less | LessOrEqual | NotEqual)),
        Floor::Below => return always(matches!(operator, Greater | GreaterOrEqual | NotEqual)),
        Floor::At(value, exact) => (value, exact),
    };
    let operator = match operator {
        Equal | NotEqual if !exact => return always(operator == NotEqual),
        Less | LessOrEqual if !exact => LessOrEqual,
        Greater | GreaterOrEqual if !exact => Greater,
        _ => operator,
    };
    match scalar(value, kind) {
        Some(scalar) => Predicate::Compare(operator, scalar),
        None if value > i256::ZERO => always(matches!(operator, Less | LessOrEqual | NotEqual)),
        None => always(matches!(operator, Greater | GreaterOrEqual | NotEqual)),
    }
}

/// One element of a type whose values are integers; `None` if the number is out of range.
fn scalar(value: i256, kind: &DataType) -> Option<ArrayRef> {
    fn one<T: ArrowPrimitiveType>(value: T::Native, kind: &DataType) -> Option<ArrayRef> {
        Some(Arc::new(PrimitiveArray::<T>::from_value(value, 1).with_data_type(kind.clone())))
    }
    macro_rules! narrow {
        ($type:ty) => {
            one::<$type>(value.to_i128()?.try_into().ok()?, kind)
        };
    }
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    match kind {
        DataType::Int8 => narrow!(Int8Type),
        DataType::Int16 => narrow!(Int16Type),
        DataType::Int32 => narrow!(Int32Type),
        DataType::Int64 => narrow!(Int64Type),
        DataType::UInt8 => narrow!(UInt8Type),
        DataType::UInt16 => narrow!(UInt16Type),
        DataType::UInt32 => narrow!(UInt32Type),
        DataType::UInt64 => narrow!(UInt64Type),
        DataType::Date32 => narrow!(Date32Type),
        DataType::Date64 => narrow!(Date64Type),
        DataType::Time32(Second) => narrow!(Time32SecondType),
        DataType::Time32(_) => narrow!(Time32MillisecondType),
        DataType::Time64(Microsecond) => narrow!(Time64MicrosecondType),
        DataType::Time64(_) => narrow!(Time64NanosecondType),
        DataType::Timestamp(Second, _) => narrow!(TimestampSecondType),
        DataType::Timestamp(Millisecond, _) => narrow!(TimestampMillisecondType),
        DataType::Timestamp(Microsecond, _) => narrow!(TimestampMicrosecondType),
        DataType::Timestamp(Nanosecond, _) => narrow!(TimestampNanosecondType),
        DataType::Duration(Second) => narrow!(DurationSecondType),
        DataType::Duration(Millisecond) => narrow!(DurationMillisecondType),
        DataType::Duration(Microsecond) => narrow!(DurationMicrosecondType),
        DataType::Duration(Nanosecond) => narrow!(DurationNanosecondType),
        DataType::Decimal32(..) => narrow!(Decimal32Type),
        DataType::Decimal64(..) => narrow!(Decimal64Type),
        DataType::Decimal128(..) => narrow!(Decimal128Type),
        DataType::Decimal256(..) => one::<Decimal256Type>(value, kind),
        _ => None,
    }
}

/// Floats: the literal is the nearest value of the column's width; a number out of range stays greater or
/// less than every finite value.
fn float(operator: Operator, literal: &Literal, kind: &DataType) -> Result<Predicate, String> {
    use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let expected = || "a number".to_owned();
    let (value, finite) = match literal {
        Literal::NaN => (f64::NAN, false),
        Literal::Infinity { negative } => (if *negative { f64::NEG_INFINITY } else { f64::INFINITY }, false),
        Literal::Number(number) => {
            let wide: f64 = number.nearest().ok_or_else(expected)?;
            let value = match kind {
                DataType::Float16 => half::f16::from_f64(wide).to_f64(),
                DataType::Float32 => number.nearest::<f32>().ok_or_else(expected)?.into(),
                _ => wide,
            };
            (value, true)
        }
        _ => return Err(expected()),
    };
    if !(finite && value.is_infinite()) {
        return Ok(Predicate::Float(operator, value));
    }
    let above = value > 0.0;
    Ok(match operator {
        Equal => Predicate::Never,
        NotEqual => Predicate::Always,
        Less | LessOrEqual => Predicate::Float(if above { Less } else { LessOrEqual }, value),
        Greater | GreaterOrEqual => Predicate::Float(if above { GreaterOrEqual } else { Greater }, value),
    })
}
