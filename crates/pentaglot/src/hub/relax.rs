//! What values that do not fit become where that is allowed, for writers and reshaping.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_schema::DataType;

/// The array with NaN in place of nulls, if it is of floats.
pub fn nan_for_nulls(array: &ArrayRef) -> Option<ArrayRef> {
    macro_rules! filled {
        ($type:ty, $nan:expr) => {{
            let values = array.as_primitive::<$type>();
            let filled = values.iter().map(|value| value.unwrap_or($nan));
            Some(Arc::new(PrimitiveArray::<$type>::from_iter_values(filled)) as ArrayRef)
        }};
    }
    match array.data_type() {
        DataType::Float16 => filled!(Float16Type, half::f16::NAN),
        DataType::Float32 => filled!(Float32Type, f32::NAN),
        DataType::Float64 => filled!(Float64Type, f64::NAN),
        _ => None,
    }
}
