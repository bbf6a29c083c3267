//! One dictionary per field: the file form allows a dictionary to grow from batch to batch, but not to change.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array, make_array};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, SchemaRef};

use crate::error::{Error, Result};
use crate::hub::{inner_fields, rows};
use crate::limits::Budget;

/// Whether a type is or holds a dictionary.
pub(super) fn has_dictionary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..))
        || inner_fields(data_type).into_iter().any(|field| has_dictionary(field.data_type()))
}

/// The dictionaries written so far, in the order in which a walk over the schema meets them.
pub(super) struct Unifier {
    known: Vec<Known>,
    budget: Budget,
    rows: u64,
}

#[derive(Default)]
struct Known {
    values: Option<ArrayRef>,
    /// Where each value is; filled up to `indexed`.
    index: HashMap<Option<Vec<u8>>, u64>,
    indexed: usize,
}

impl Unifier {
    pub(super) fn new(budget: Budget) -> Self {
        Unifier { known: Vec::new(), budget, rows: 0 }
    }

    /// The batch with dictionaries that begin with all that were written before.
    pub(super) fn unify(&mut self, schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut next = 0;
        let mut columns = Vec::new();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            if !has_dictionary(field.data_type()) {
                columns.push(Arc::clone(column));
                continue;
            }
            let data = self.walk(field, column.to_data(), &mut next).map_err(|refusal| match refusal {
                Refusal::Row(row, why) => {
                    let row = self.rows + row;
                    Error::lossy(format!("row {row}, column {:?}: {why}", field.name()))
                }
                Refusal::Batch(why) => {
                    let (from, to) = (self.rows, self.rows + batch.num_rows() as u64);
                    Error::lossy(format!("rows {from}..{to}, column {:?}: {why}", field.name()))
                }
                Refusal::Error(error) => error,
            })?;
            columns.push(make_array(data));
        }
        self.rows += batch.num_rows() as u64;
        rows::batch(batch.schema(), columns, batch.num_rows())
    }

    fn walk(&mut self, field: &Field, data: ArrayData, next: &mut usize) -> Result<ArrayData, Refusal> {
        if let DataType::Dictionary(..) = data.data_type() {
            let index = *next;
            *next += 1;
            if self.known.len() <= index {
                self.known.resize_with(index + 1, Known::default);
            }
            let known = self.known.get_mut(index).ok_or_else(|| Error::unsupported("a dictionary"))?;
            let ordered = field.dict_is_ordered().unwrap_or(false);
            return known.apply(data, ordered, &self.budget);
        }
        let fields: Vec<FieldRef> = inner_fields(data.data_type()).into_iter().cloned().collect();
        let children = data.child_data().iter().zip(fields);
        let children = children
            .map(|(child, field)| match has_dictionary(field.data_type()) {
                // A row inside a list is no row of the table.
                true => self.walk(&field, child.clone(), next).map_err(Refusal::inside),
                false => Ok(child.clone()),
            })
            .collect::<Result<Vec<_>, Refusal>>()?;
        Ok(data.into_builder().child_data(children).build().map_err(Error::from)?)
    }
}

/// Why a dictionary cannot be joined to the ones before.
enum Refusal {
    Row(u64, String),
    Batch(String),
    Error(Error),
}

impl Refusal {
    fn inside(self) -> Self {
        match self {
            Refusal::Row(_, why) => Refusal::Batch(why),
            other => other,
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Error(error)
    }
}

impl Known {
    fn apply(&mut self, data: ArrayData, ordered: bool, budget: &Budget) -> Result<ArrayData, Refusal> {
        let array = make_array(data.clone());
        let dictionary = array.as_any_dictionary();
        let fresh = dictionary.values();
        let Some(values) = self.values.clone() else {
            self.values = Some(Arc::clone(fresh));
            return Ok(data);
        };
        let shared = fresh.len().min(values.len());
        if fresh.slice(0, shared) == values.slice(0, shared) {
            if fresh.len() > values.len() {
                self.values = Some(Arc::clone(fresh));
                return Ok(data);
            }
            let builder = data.into_builder().child_data(vec![values.to_data()]);
            return Ok(builder.build().map_err(Error::from)?);
        }
        if ordered {
            return Err(Refusal::Batch(
                "the order of its dictionary is not that of the batches before, and a file holds one".into(),
            ));
        }
        let (values, moved) = self.merge(values, fresh)?;
        budget.check(values.get_array_memory_size() as u64)?;
        self.values = Some(Arc::clone(&values));
        rekey(dictionary.keys(), &moved, &values, data.data_type())
    }

    /// The values together with the fresh ones that they lack, and where each fresh one is.
    fn merge(&mut self, values: ArrayRef, fresh: &ArrayRef) -> Result<(ArrayRef, Vec<u64>)> {
        for (position, key) in keys_of(&values).enumerate().skip(self.indexed) {
            if let Some(key) = key {
                self.index.entry(key).or_insert(position as u64);
            }
        }
        let mut added: Vec<u64> = Vec::new();
        let mut moved: Vec<u64> = Vec::new();
        for (position, key) in keys_of(fresh).enumerate() {
            let end = (values.len() + added.len()) as u64;
            let at = match key {
                Some(key) => *self.index.entry(key).or_insert(end),
                None => end,
            };
            if at == end {
                added.push(position as u64);
            }
            moved.push(at);
        }
        let more = arrow_select::take::take(fresh, &UInt64Array::from(added), None)?;
        let values = arrow_select::concat::concat(&[&values, &more])?;
        self.indexed = values.len();
        Ok((values, moved))
    }
}

/// The same rows over the merged values.
fn rekey(
    keys: &dyn Array,
    moved: &[u64],
    values: &ArrayRef,
    data_type: &DataType,
) -> Result<ArrayData, Refusal> {
    let DataType::Dictionary(key, _) = data_type else {
        return Err(Refusal::Error(Error::unsupported("keys without a dictionary")));
    };
    let wide = arrow_cast::cast(keys, &DataType::UInt64).map_err(Error::from)?;
    let wide = wide.as_primitive::<UInt64Type>();
    let new: UInt64Array = wide
        .iter()
        .map(|key| key.and_then(|key| moved.get(usize::try_from(key).unwrap_or(usize::MAX)).copied()))
        .collect();
    let most = match key.as_ref() {
        DataType::Int8 => i8::MAX as u64,
        DataType::UInt8 => u8::MAX.into(),
        DataType::Int16 => i16::MAX as u64,
        DataType::UInt16 => u16::MAX.into(),
        DataType::Int32 => i32::MAX as u64,
        DataType::UInt32 => u32::MAX.into(),
        _ => i64::MAX as u64,
    };
    if let Some(row) = new.iter().position(|key| key.is_some_and(|key| key > most)) {
        let why = format!("the dictionary of the whole file has more values than {key} can count");
        return Err(Refusal::Row(row as u64, why));
    }
    let keys = arrow_cast::cast(&new, key).map_err(Error::from)?.to_data();
    let builder = keys.into_builder().data_type(data_type.clone()).child_data(vec![values.to_data()]);
    Ok(builder.build().map_err(Error::from)?)
}

/// Each value as bytes to look it up by (a null is a value of its own); `None` where the type has no such bytes, and the
/// value counts as new.
fn keys_of(values: &ArrayRef) -> Box<dyn Iterator<Item = Option<Option<Vec<u8>>>> + '_> {
    macro_rules! bytes {
        ($array:expr) => {
            Box::new(
                $array.iter().map(|value| Some(value.map(|value| AsRef::<[u8]>::as_ref(value).to_vec()))),
            )
        };
    }
    match values.data_type() {
        DataType::Utf8 => bytes!(values.as_string::<i32>()),
        DataType::LargeUtf8 => bytes!(values.as_string::<i64>()),
        DataType::Utf8View => bytes!(values.as_string_view()),
        DataType::Binary => bytes!(values.as_binary::<i32>()),
        DataType::LargeBinary => bytes!(values.as_binary::<i64>()),
        DataType::BinaryView => bytes!(values.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes!(values.as_fixed_size_binary()),
        DataType::Boolean => {
            Box::new(values.as_boolean().iter().map(|value| Some(value.map(|value| vec![u8::from(value)]))))
        }
        other => match other.primitive_width() {
            Some(width) => {
                let data = values.to_data();
                Box::new((0..values.len()).map(move |row| {
                    let start = (data.offset() + row) * width;
                    let bytes = data.buffers().first().and_then(|bytes| bytes.get(start..start + width));
                    Some(data.is_valid(row).then(|| bytes.unwrap_or_default().to_vec()))
                }))
            }
            None => Box::new((0..values.len()).map(|_| None)),
        },
    }
}
