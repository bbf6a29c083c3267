//! Which type holds every value of another exactly.

use arrow_schema::{DataType, Fields};

/// The values that a numeric type holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Integers, with this many bits of magnitude.
    Whole { signed: bool, bits: u32 },
    /// Floats, with this many bits of mantissa.
    Float { mantissa: u32 },
}

fn numbers(kind: &DataType) -> Option<Holds> {
    let whole = |signed, bits| Some(Holds::Whole { signed, bits });
    match kind {
        DataType::UInt8 => whole(false, 8),
        DataType::UInt16 => whole(false, 16),
        DataType::UInt32 => whole(false, 32),
        DataType::UInt64 => whole(false, 64),
        DataType::Int8 => whole(true, 7),
        DataType::Int16 => whole(true, 15),
        DataType::Int32 => whole(true, 31),
        DataType::Int64 => whole(true, 63),
        DataType::Float16 => Some(Holds::Float { mantissa: 11 }),
        DataType::Float32 => Some(Holds::Float { mantissa: 24 }),
        DataType::Float64 => Some(Holds::Float { mantissa: 53 }),
        _ => None,
    }
}

/// Whether `to` holds every value of `from` exactly.
///
/// ```
/// use pentaglot::arrow::schema::DataType;
/// use pentaglot::hub::matrix::widen::holds;
/// assert!(holds(&DataType::Float64, &DataType::Int32));
/// assert!(!holds(&DataType::Float64, &DataType::Int64));
/// ```
pub fn holds(to: &DataType, from: &DataType) -> bool {
    use Holds::{Float, Whole};
    match (numbers(to), numbers(from)) {
        (Some(Whole { signed, bits }), Some(Whole { signed: from_signed, bits: from_bits })) => {
            bits >= from_bits && (signed || !from_signed)
        }
        (Some(Float { mantissa }), Some(Whole { bits, .. })) => mantissa >= bits,
        (Some(Float { mantissa }), Some(Float { mantissa: from })) => mantissa >= from,
        _ => to == from,
    }
}

/// The narrowest type that holds all values of both.
pub fn join(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    if a == b {
        return Some(a.clone());
    }
    let candidates = [UInt8, Int8, UInt16, Int16, UInt32, Int32, UInt64, Int64, Float16, Float32, Float64];
    candidates.into_iter().find(|to| holds(to, a) && holds(to, b))
}

/// Whether matrices can have values of this type: a number or a boolean.
pub fn is_matrix_value(kind: &DataType) -> bool {
    *kind == DataType::Boolean || numbers(kind).is_some()
}

/// The type of the values of a field: for a dictionary, that of its values.
pub fn value_type(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, value) => value,
        other => other,
    }
}

/// The narrowest type that holds every value of all fields exactly; `None` if there is none, or no field.
pub fn common_type(fields: &Fields) -> Option<DataType> {
    let mut kinds = fields.iter().map(|field| value_type(field.data_type()));
    let first = kinds.next()?;
    if !is_matrix_value(first) {
        return None;
    }
    kinds.try_fold(first.clone(), |common, kind| join(&common, kind))
}

/// Whether all fields are numbers, so that float64 can hold them approximately.
pub fn are_numbers(fields: &Fields) -> bool {
    !fields.is_empty() && fields.iter().all(|field| numbers(value_type(field.data_type())).is_some())
}
