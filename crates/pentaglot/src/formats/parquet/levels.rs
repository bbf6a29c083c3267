//! The levels of dictionaries. Parquet keeps the values that occur, in the order of their first use; all levels in
//! their true order are in the footer under [`LEVELS_KEY`]: `[{"column": 0, "name": "size", "levels": ["s", "m", "l"]}]`.
//!
//! Levels of an ordered dictionary must be the same in all batches. Those of other dictionaries are kept if they are, and if
//! they are few; otherwise the values that occur are all that comes back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt64Array, make_array};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat;
use arrow_select::take::take;
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// Footer key of the levels.
pub(super) const LEVELS_KEY: &str = "pentaglot.levels";

/// The most levels of a dictionary without an order that are kept.
const MAX_UNORDERED: usize = 1 << 12;

/// The most bytes of their values.
const MAX_UNORDERED_BYTES: usize = 1 << 18;

/// Whether a field is an ordered dictionary.
pub(super) fn is_ordered(field: &Field) -> bool {
    field.dict_is_ordered() == Some(true)
}

/// The type of a column's levels if they are kept: those that are text, or that text says exactly.
pub(super) fn kept(field: &Field) -> Option<&DataType> {
    match field.data_type() {
        DataType::Dictionary(_, values)
            if values.is_integer()
                || matches!(**values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) =>
        {
            Some(values)
        }
        _ => None,
    }
}

/// The levels of each column, of those that have some.
#[derive(Debug, Default)]
pub(super) struct Levels(Vec<Found>);

/// The levels of one column.
#[derive(Debug, Default)]
enum Found {
    /// None so far.
    #[default]
    None,
    /// These, in their order.
    Levels(ArrayRef),
    /// Different ones in different batches of a dictionary without an order, or too many.
    Dropped,
}

impl Levels {
    /// Levels to be gathered from the columns of `schema`.
    pub(super) fn gather(schema: &Schema) -> Self {
        Levels(schema.fields().iter().map(|_| Found::None).collect())
    }

    /// Takes note of a batch's levels. One batch may have more of them than another, but in one order.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema();
        for ((levels, column), field) in self.0.iter_mut().zip(batch.columns()).zip(schema.fields()) {
            if kept(field).is_none() {
                continue;
            }
            let found = column.as_any_dictionary().values();
            let is_longer = match levels {
                Found::None => true,
                Found::Levels(known) => {
                    let is_same = agree(known, found);
                    if !is_same && is_ordered(field) {
                        let name = field.name();
                        return Err(Error::lossy(format!(
                            "column {name:?}: batches whose ordered dictionaries differ: one order cannot be told from them"
                        )));
                    }
                    if !is_same {
                        *levels = Found::Dropped;
                        continue;
                    }
                    found.len() > known.len()
                }
                Found::Dropped => false,
            };
            if is_longer {
                let is_kept = is_ordered(field) || is_small(found);
                *levels = if is_kept { Found::Levels(Arc::clone(found)) } else { Found::Dropped };
            }
        }
        Ok(())
    }

    /// The text for the footer, if there are levels.
    pub(super) fn to_json(&self, schema: &Schema) -> Result<Option<String>> {
        let mut list = Vec::new();
        for (column, (levels, field)) in self.0.iter().zip(schema.fields()).enumerate() {
            let Found::Levels(levels) = levels else { continue };
            let texts = cast(levels, &DataType::LargeUtf8)?;
            let texts: Vec<Option<&str>> = texts.as_string::<i64>().iter().collect();
            list.push(json!({ "column": column, "name": field.name(), "levels": texts }));
        }
        Ok((!list.is_empty()).then(|| Value::Array(list).to_string()))
    }

    /// The levels that a footer has for the columns of `schema`. What does not fit them (someone else may have changed the
    /// columns and kept the footer's keys) is ignored.
    pub(super) fn from_json(text: &str, schema: &Schema) -> Self {
        let mut levels = Levels::gather(schema);
        let Ok(Value::Array(list)) = serde_json::from_str(text) else { return levels };
        for entry in &list {
            let column = entry.get("column").and_then(Value::as_u64);
            let Some(column) = column.and_then(|column| usize::try_from(column).ok()) else { continue };
            let (Some(field), Some(place)) = (schema.fields().get(column), levels.0.get_mut(column)) else {
                continue;
            };
            if entry.get("name").and_then(Value::as_str) == Some(field.name()) {
                let parsed = kept(field).and_then(|values| parse(entry.get("levels")?.as_array()?, values));
                *place = parsed.map_or(Found::None, Found::Levels);
            }
        }
        levels
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.0.iter().any(|found| matches!(found, Found::Levels(_)))
    }

    /// The dictionary of a column of the file with all its levels.
    pub(super) fn restore(&self, column: usize, array: &ArrayRef) -> Result<ArrayRef> {
        match self.0.get(column) {
            Some(Found::Levels(levels)) if matches!(array.data_type(), DataType::Dictionary(..)) => {
                restore(array, levels)
            }
            _ => Ok(Arc::clone(array)),
        }
    }
}

/// Whether the shorter of two dictionaries begins the longer one.
fn agree(known: &ArrayRef, found: &ArrayRef) -> bool {
    let shared = known.len().min(found.len());
    Arc::ptr_eq(known, found) || known.slice(0, shared).to_data() == found.slice(0, shared).to_data()
}

fn is_small(levels: &ArrayRef) -> bool {
    let bytes = levels.to_data().get_slice_memory_size();
    levels.len() <= MAX_UNORDERED && bytes.is_ok_and(|bytes| bytes <= MAX_UNORDERED_BYTES)
}

fn parse(list: &[Value], values: &DataType) -> Option<ArrayRef> {
    let text = |value: &Value| match value {
        Value::Null => Some(None),
        Value::String(text) => Some(Some(text.clone())),
        _ => None,
    };
    let texts: StringArray = list.iter().map(text).collect::<Option<Vec<_>>>()?.into();
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&texts, values, &exact).ok()
}

/// Moves the keys of a dictionary to its place among the levels. Values that are no level follow after them.
fn restore(array: &ArrayRef, levels: &ArrayRef) -> Result<ArrayRef> {
    let dictionary = array.as_any_dictionary();
    let (keys, values) = (dictionary.keys(), dictionary.values());
    let mut places: HashMap<Option<String>, u64> = HashMap::new();
    for (text, place) in texts(levels)?.into_iter().zip(0..) {
        places.entry(text).or_insert(place);
    }
    let mut others: Vec<u64> = Vec::new();
    let mut moved: Vec<u64> = Vec::new();
    for (text, index) in texts(values)?.into_iter().zip(0..) {
        let next = (levels.len() + others.len()) as u64;
        let place = *places.entry(text).or_insert(next);
        if place == next {
            others.push(index);
        }
        moved.push(place);
    }
    let values = if others.is_empty() {
        Arc::clone(levels)
    } else {
        let others = take(values, &UInt64Array::from(others), None)?;
        concat(&[levels.as_ref(), others.as_ref()])?
    };
    let wide = cast(&keys.slice(0, keys.len()), &DataType::UInt64)?;
    let place = |key: u64| usize::try_from(key).ok().and_then(|key| moved.get(key)).copied();
    let wide: UInt64Array = wide.as_primitive::<UInt64Type>().iter().map(|key| key.and_then(place)).collect();
    let exact = CastOptions { safe: false, ..CastOptions::default() };
    let Ok(keys) = cast_with_options(&wide, keys.data_type(), &exact) else {
        // More values than keys can count, which no writer of levels leaves behind.
        return Ok(Arc::clone(array));
    };
    let data = keys.to_data().into_builder().data_type(array.data_type().clone());
    Ok(make_array(data.child_data(vec![values.to_data()]).build()?))
}

fn texts(values: &ArrayRef) -> Result<Vec<Option<String>>> {
    let texts = cast(values, &DataType::LargeUtf8)?;
    Ok(texts.as_string::<i64>().iter().map(|text| text.map(str::to_owned)).collect())
}
