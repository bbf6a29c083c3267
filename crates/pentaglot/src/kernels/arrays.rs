//! Arrays whose content must be checked, with one fast check for the whole array.

#![allow(unsafe_code, reason = "arrow's own checks take an element at a time, and would be a second pass")]

use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer};

/// The dictionary array, if all keys, including those of missing values, are within the dictionary; otherwise
/// returns keys and dictionary.
pub(crate) fn dictionary<K: ArrowDictionaryKeyType>(
    keys: PrimitiveArray<K>,
    values: ArrayRef,
) -> Result<DictionaryArray<K>, (PrimitiveArray<K>, ArrayRef)> {
    let zero = K::Native::usize_as(0);
    // If the dictionary is longer than the largest key, only the sign of the keys must be checked.
    let within = match K::Native::from_usize(values.len()) {
        Some(end) => keys.values().iter().fold(true, |all, key| all & key.is_ge(zero) & key.is_lt(end)),
        None => keys.values().iter().fold(true, |all, key| all & key.is_ge(zero)),
    };
    if !within {
        return Err((keys, values));
    }
    // SAFETY: each key is at least 0 and below the length of the dictionary, checked above.
    Ok(unsafe { DictionaryArray::new_unchecked(keys, values) })
}

/// The strings, if all bytes are UTF-8 and no offset is inside a character; otherwise returns all parts.
///
/// # Panics
///
/// If the last offset is past the end of `bytes`, or there are not as many validity bits as strings.
pub(crate) fn strings(
    offsets: OffsetBuffer<i32>,
    bytes: Buffer,
    nulls: Option<NullBuffer>,
) -> Result<StringArray, (OffsetBuffer<i32>, Buffer, Option<NullBuffer>)> {
    let end = *offsets.last().expect("an offset buffer has a first offset");
    assert!(usize::try_from(end).is_ok_and(|end| end <= bytes.len()));
    assert!(nulls.as_ref().is_none_or(|nulls| nulls.len() == offsets.len() - 1));
    let Ok(text) = simdutf8::basic::from_utf8(&bytes) else { return Err((offsets, bytes, nulls)) };
    // In ASCII text every offset is a character boundary; otherwise each offset is checked.
    let whole = text.is_ascii() || offsets.iter().all(|offset| text.is_char_boundary(*offset as usize));
    if !whole {
        return Err((offsets, bytes, nulls));
    }
    // SAFETY: all bytes are UTF-8, checked above;
    // offsets rise from 0 on, as `OffsetBuffer` promises, and end within `bytes`, asserted above;
    // each offset is a character boundary, checked above;
    // there are as many validity bits as strings, asserted above.
    Ok(unsafe { StringArray::new_unchecked(offsets, bytes, nulls) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{Int8Array, NullArray};

    use super::*;

    proptest! {
        #[test]
        fn keys_that_are_taken_are_those_within(keys: Vec<i8>, count in 0usize..300) {
            let values: ArrayRef = Arc::new(NullArray::new(count));
            let fits = keys.iter().all(|key| usize::try_from(*key).is_ok_and(|key| key < count));
            prop_assert_eq!(dictionary::<Int8Type>(Int8Array::from(keys), values).is_ok(), fits);
        }

        #[test]
        fn what_is_taken_is_what_arrow_takes(parts in prop::collection::vec(
            prop_oneof!["[a-zé€😀]{0,3}".prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..3)], 0..6,
        )) {
            let offsets = OffsetBuffer::<i32>::from_lengths(parts.iter().map(Vec::len));
            let bytes = Buffer::from(parts.concat());
            let arrow = StringArray::try_new(offsets.clone(), bytes.clone(), None);
            match (strings(offsets, bytes, None), arrow) {
                (Ok(ours), Ok(arrow)) => prop_assert_eq!(ours, arrow),
                (ours, arrow) => prop_assert!(ours.is_err() && arrow.is_err()),
            }
        }
    }
}
