//! [`Interval`]: what a filter says of one column in a way that bounds of many rows can be compared with.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;

use super::parse::Operator;
use super::resolve::Predicate;
use super::{Filter, FilterColumn};

/// Every row that matches the filter has a value of this column from `low` to `high`, both included.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Interval {
    /// The column, by its place in the schema.
    pub field: usize,
    /// The least value.
    pub low: Option<Limit>,
    /// The greatest value.
    pub high: Option<Limit>,
}

/// The end of an interval.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Limit {
    /// An integer, or the number of a date or time in the column's unit.
    Number(i64),
    /// A float.
    Float(f64),
    /// Text.
    Text(String),
}

impl Filter {
    /// What the filter says of its columns, one interval for each comparison that is one.
    ///
    /// ```
    /// use pentaglot::hub::{filter::{Filter, Limit}, type_text::parse_schema};
    /// let schema = parse_schema("struct{day: date32, n: int8}", &Default::default())?;
    /// let intervals = Filter::parse("day >= '1970-01-03' and n != 0", &schema)?.intervals();
    /// assert_eq!((intervals.len(), &intervals[0].low), (1, &Some(Limit::Number(2))));
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    pub fn intervals(&self) -> Vec<Interval> {
        let interval = |comparison: &super::Comparison| {
            let FilterColumn::Field(field) = comparison.column else { return None };
            let (operator, limit) = match &comparison.predicate {
                Predicate::Compare(operator, value) => (*operator, limit_of(value)?),
                Predicate::Float(operator, value) if !value.is_nan() => (*operator, Limit::Float(*value)),
                _ => return None,
            };
            let (low, high) = match operator {
                Operator::Equal => (Some(limit.clone()), Some(limit)),
                Operator::Less | Operator::LessOrEqual => (None, Some(limit)),
                Operator::Greater | Operator::GreaterOrEqual => (Some(limit), None),
                Operator::NotEqual => return None,
            };
            Some(Interval { field, low, high })
        };
        self.comparisons.iter().filter_map(interval).collect()
    }
}

fn limit_of(value: &ArrayRef) -> Option<Limit> {
    let value = match value.data_type() {
        DataType::Date32 | DataType::Time32(_) => cast(value, &DataType::Int32).ok()?,
        _ => ArrayRef::clone(value),
    };
    match value.data_type() {
        kind if kind.is_integer() || kind.is_temporal() => {
            let number = cast(&value, &DataType::Int64).ok()?;
            let number = number.as_primitive::<Int64Type>();
            (number.len() == 1 && number.is_valid(0)).then(|| Limit::Number(number.value(0)))
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let text = cast(&value, &DataType::Utf8).ok()?;
            let text = text.as_string::<i32>();
            (text.len() == 1 && text.is_valid(0)).then(|| Limit::Text(text.value(0).to_owned()))
        }
        _ => None,
    }
}
