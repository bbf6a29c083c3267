//! The levels of ordered dictionaries. Parquet keeps the values that occur, in the order of their first use; all levels in
//! their true order are in the footer under [`LEVELS_KEY`]: `[{"column": 0, "name": "size", "levels": ["s", "m", "l"]}]`.

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

/// Whether a field is an ordered dictionary.
pub(super) fn is_ordered(field: &Field) -> bool {
    field.dict_is_ordered() == Some(true)
}

/// The type of a column's levels if they are kept: those that are text, or that text says exactly.
pub(super) fn kept(field: &Field) -> Option<&DataType> {
    match field.data_type() {
        DataType::Dictionary(_, values)
            if is_ordered(field)
                && (values.is_integer()
                    || matches!(**values, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)) =>
        {
            Some(values)
        }
        _ => None,
    }
}

/// The levels of each column, of those that have some.
#[derive(Debug, Default)]
pub(super) struct Levels(Vec<Option<ArrayRef>>);

impl Levels {
    /// Levels to be gathered from the columns of `schema`.
    pub(super) fn gather(schema: &Schema) -> Self {
        Levels(schema.fields().iter().map(|_| None).collect())
    }

    /// Takes note of a batch's levels. One batch may have more of them than another, but in one order.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema();
        for ((levels, column), field) in self.0.iter_mut().zip(batch.columns()).zip(schema.fields()) {
            if kept(field).is_none() {
                continue;
            }
            let found = column.as_any_dictionary().values();
            let longer = match levels {
                None => true,
                Some(known) => {
                    let shared = known.len().min(found.len());
                    let same = Arc::ptr_eq(known, found)
                        || known.slice(0, shared).to_data() == found.slice(0, shared).to_data();
                    if !same {
                        let name = field.name();
                        return Err(Error::lossy(format!(
                            "column {name:?}: batches whose ordered dictionaries differ: one order cannot be told from them"
                        )));
                    }
                    found.len() > known.len()
                }
            };
            if longer {
                *levels = Some(Arc::clone(found));
            }
        }
        Ok(())
    }

    /// The text for the footer, if there are levels.
    pub(super) fn to_json(&self, schema: &Schema) -> Result<Option<String>> {
        let mut list = Vec::new();
        for (column, (levels, field)) in self.0.iter().zip(schema.fields()).enumerate() {
            let Some(levels) = levels else { continue };
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
                *place = kept(field).and_then(|values| parse(entry.get("levels")?.as_array()?, values));
            }
        }
        levels
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The dictionary of a column of the file with all its levels.
    pub(super) fn restore(&self, column: usize, array: &ArrayRef) -> Result<ArrayRef> {
        match self.0.get(column) {
            Some(Some(levels)) if matches!(array.data_type(), DataType::Dictionary(..)) => {
                restore(array, levels)
            }
            _ => Ok(Arc::clone(array)),
        }
    }
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
