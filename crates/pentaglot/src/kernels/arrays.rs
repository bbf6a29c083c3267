//! Arrays whose content must be checked, with one fast check for the whole array.

#![allow(unsafe_code, reason = "arrow's own checks take an element at a time, and would be a second pass")]

use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer};

/// The parts as one slice, if they are adjacent slices of one array, in order.
pub(crate) fn adjacent(parts: &[Buffer]) -> Option<&[u8]> {
    let mut parts = parts.iter().filter(|part| !part.is_empty());
    let Some(first) = parts.next() else { return Some(&[]) };
    let mut length = first.len();
    for part in parts {
        let follows = part.as_ptr() == first.as_ptr().wrapping_add(length);
        if !follows || part.data_ptr() != first.data_ptr() {
            return None;
        }
        length += part.len();
    }
    // SAFETY: all parts lie in the one allocation that starts at `data_ptr`, whose bytes are initialised where a buffer
    // shows them; they follow each other without a gap; and they are borrowed for as long as the slice is.
    Some(unsafe { std::slice::from_raw_parts(first.as_ptr(), length) })
}

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

    #[test]
    fn parts_are_adjacent_in_order_and_of_one_buffer() {
        let whole = Buffer::from_vec((0..100u8).collect());
        let part = |start, length| whole.slice_with_length(start, length);
        assert_eq!(adjacent(&[]), Some(&[][..]));
        assert_eq!(adjacent(&[part(3, 7)]), Some(&whole[3..10]));
        assert_eq!(adjacent(&[part(3, 7), part(10, 0), part(10, 30)]), Some(&whole[3..40]));
        assert_eq!(adjacent(&[part(3, 0), part(50, 50)]), Some(&whole[50..]));
        for apart in [[part(3, 7), part(11, 4)], [part(3, 7), part(9, 4)], [part(10, 4), part(3, 7)]] {
            assert_eq!(adjacent(&apart), None);
        }
        // Two allocations may be adjacent by chance; they must not be read as one slice.
        let copies: Vec<Buffer> = (0..64).map(|_| Buffer::from_slice_ref([1u8; 64])).collect();
        assert!(copies.windows(2).all(|pair| adjacent(pair).is_none()));
    }

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
