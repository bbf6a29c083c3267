//! Arrays whose values are checked: text is UTF-8, and indices are within their dictionary.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array as _, ArrayRef, BinaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::kernels::arrays;

/// Strings, from row `first` of a column. Bytes under a missing one may be anything, and are dropped where they are no text.
pub(super) fn strings(
    offsets: OffsetBuffer<i32>,
    bytes: Buffer,
    mask: Option<NullBuffer>,
    first: u64,
) -> Result<ArrayRef> {
    let (offsets, bytes, mask) = match arrays::strings(offsets, bytes, mask) {
        Ok(strings) => return Ok(Arc::new(strings)),
        Err(parts) => parts,
    };
    let binary = BinaryArray::try_new(offsets, bytes, mask)?;
    let mut texts: Vec<Option<&str>> = Vec::new();
    for (index, value) in binary.iter().enumerate() {
        let text = value.map(std::str::from_utf8).transpose().map_err(|_| {
            Error::malformed("UTF-8 text", "bytes that are none (the option utf8=bytes reads them as binary)")
                .index(first + index as u64)
                .rule("utf8")
        });
        texts.push(text?);
    }
    Ok(Arc::new(StringArray::from(texts)))
}

/// Values of a dictionary, from row `first` of a column.
pub(super) fn factor(
    index_type: &DataType,
    index: &ArrayRef,
    mask: Option<NullBuffer>,
    dictionary: &ArrayRef,
    first: u64,
) -> Result<ArrayRef> {
    match index_type {
        DataType::Int8 => factor_of::<Int8Type>(index, mask, dictionary, first),
        DataType::Int16 => factor_of::<Int16Type>(index, mask, dictionary, first),
        DataType::Int32 => factor_of::<Int32Type>(index, mask, dictionary, first),
        DataType::Int64 => factor_of::<Int64Type>(index, mask, dictionary, first),
        DataType::UInt8 => factor_of::<UInt8Type>(index, mask, dictionary, first),
        DataType::UInt16 => factor_of::<UInt16Type>(index, mask, dictionary, first),
        DataType::UInt32 => factor_of::<UInt32Type>(index, mask, dictionary, first),
        DataType::UInt64 => factor_of::<UInt64Type>(index, mask, dictionary, first),
        other => Err(Error::malformed("an integer index", other)),
    }
}

/// A dictionary array. Indices under missing values may be anything; those past the dictionary become 0.
fn factor_of<K: ArrowDictionaryKeyType>(
    index: &ArrayRef,
    mask: Option<NullBuffer>,
    dictionary: &ArrayRef,
    first: u64,
) -> Result<ArrayRef> {
    let keys = PrimitiveArray::<K>::new(index.as_primitive::<K>().values().clone(), mask);
    let (keys, dictionary) = match arrays::dictionary(keys, Arc::clone(dictionary)) {
        Ok(factor) => return Ok(Arc::new(factor)),
        Err(parts) => parts,
    };
    let count = dictionary.len();
    let zero = K::Native::default();
    let is_within = |key: K::Native| key >= zero && key.to_usize().is_some_and(|key| key < count);
    if let Some(row) = keys.iter().position(|key| key.is_some_and(|key| !is_within(key))) {
        let key = keys.value(row);
        return Err(Error::malformed(format_args!("an index below {count}"), format_args!("{key:?}"))
            .index(first + row as u64)
            .rule("index-range"));
    }
    let nulls = keys.nulls().cloned();
    let within = keys.values().iter().map(|key| if is_within(*key) { *key } else { zero });
    let keys = PrimitiveArray::<K>::new(within.collect(), nulls);
    Ok(Arc::new(arrow_array::DictionaryArray::<K>::try_new(keys, dictionary)?))
}
