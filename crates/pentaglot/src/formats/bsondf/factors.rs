//! Dictionaries of a column whose batches have dictionaries of their own.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions};
use arrow_select::concat::concat;
use arrow_select::take::take;

use crate::error::{Error, Result};

/// Indices and one dictionary for all chunks.
///
/// Mostly the chunks share a dictionary, or each adds to the one before it: then nothing changes. Else the dictionary
/// is all values in the order of their first appearance, which would garble the order of an ordered one.
pub(super) fn unify(chunks: &[ArrayRef], ordered: bool) -> Result<(Vec<ArrayRef>, Vec<ArrayRef>)> {
    let indices = chunks.iter().map(|chunk| {
        let keys = chunk.as_any_dictionary().keys();
        keys.slice(0, keys.len())
    });
    let dictionaries: Vec<&ArrayRef> =
        chunks.iter().map(|chunk| chunk.as_any_dictionary().values()).collect();
    let Some(longest) = dictionaries.iter().max_by_key(|values| values.len()) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let is_prefix = |values: &&ArrayRef| {
        values.len() == longest.len() && values.to_data().ptr_eq(&longest.to_data())
            || longest.slice(0, values.len()).to_data() == values.to_data()
    };
    if dictionaries.iter().all(is_prefix) {
        return Ok((indices.collect(), vec![Arc::clone(longest)]));
    }
    if ordered {
        let message = "batches whose ordered dictionaries differ: one order cannot be told from them";
        return Err(Error::lossy(message));
    }
    let all: Vec<&dyn Array> = dictionaries.iter().map(|values| values.as_ref()).collect();
    let all = concat(&all)?;
    let (firsts, places) = distinct(&all)?;
    let values = take(&all, &UInt64Array::from(firsts), None)?;
    let mut base = 0;
    let mut moved = Vec::new();
    for (index, dictionary) in indices.zip(&dictionaries) {
        let wide = cast(&index, &DataType::UInt64)?;
        let wide = wide.as_primitive::<arrow_array::types::UInt64Type>();
        let place = |key: u64| usize::try_from(key).ok().and_then(|key| places.get(base + key)).copied();
        let keys: UInt64Array = wide.iter().map(|key| key.and_then(place)).collect();
        let options = CastOptions { safe: false, ..CastOptions::default() };
        moved.push(cast_with_options(&keys, index.data_type(), &options).map_err(|_| {
            let found = format!("the {} values of all batches together", values.len());
            Error::lossy(format!("a dictionary with {} indices cannot hold {found}", index.data_type()))
        })?);
        base += dictionary.len();
    }
    Ok((moved, vec![values]))
}

/// The first place of each distinct value, in order, and for each value which of those it is.
fn distinct(values: &ArrayRef) -> Result<(Vec<u64>, Vec<u64>)> {
    let compare = make_comparator(values, values, SortOptions::default())?;
    let mut sorted: Vec<usize> = (0..values.len()).collect();
    sorted.sort_by(|left, right| compare(*left, *right));
    // The sort is stable: the first of equal values is the one that appeared first.
    let mut first_of = vec![0; values.len()];
    let mut first = 0;
    for (place, value) in sorted.iter().enumerate() {
        let is_new = place == 0 || compare(first, *value).is_ne();
        if is_new {
            first = *value;
        }
        if let Some(slot) = first_of.get_mut(*value) {
            *slot = first;
        }
    }
    let mut firsts = Vec::new();
    let mut places: Vec<u64> = Vec::new();
    for (value, first) in first_of.iter().enumerate() {
        let place = match places.get(*first) {
            Some(place) => *place,
            None => {
                firsts.push(value as u64);
                firsts.len() as u64 - 1
            }
        };
        places.push(place);
    }
    Ok((firsts, places))
}
