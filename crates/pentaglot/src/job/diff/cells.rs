//! Whether two cells are equal.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// Which floats are equal, besides those with the same bits and two NaNs: those that satisfy any of these.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Tolerance {
    /// The difference is at most this.
    pub abs: f64,
    /// The difference is at most this fraction of the greater magnitude.
    pub rel: f64,
    /// The floats are at most this many representable values apart.
    pub ulp: u64,
}

impl Tolerance {
    fn is_none(&self) -> bool {
        *self == Tolerance::default()
    }

    /// Whether two floats with different bits are equal; `steps` is their distance in representable values.
    fn close(&self, a: f64, b: f64, steps: u64) -> bool {
        if a.is_nan() || b.is_nan() || self.is_none() {
            return a.is_nan() && b.is_nan();
        }
        if !a.is_finite() || !b.is_finite() {
            return a == b;
        }
        let difference = (a - b).abs();
        difference <= self.abs || difference <= self.rel * a.abs().max(b.abs()) || steps <= self.ulp
    }
}

/// The rows of two slices of equal length and type in which they differ.
pub(super) fn differing(a: &ArrayRef, b: &ArrayRef, tolerance: &Tolerance) -> Vec<usize> {
    if a.to_data() == b.to_data() {
        return Vec::new();
    }
    let candidate = |row: &usize| !same(a, *row, b, *row, tolerance);
    // Nested types are compared cell by cell.
    match arrow_ord::cmp::distinct(a, b) {
        Ok(distinct) => distinct.values().set_indices().filter(candidate).collect(),
        Err(_) => (0..a.len()).filter(candidate).collect(),
    }
}

/// Whether cell `i` of `a` and cell `j` of `b`, which have the same type, are equal.
pub(super) fn same(a: &dyn Array, i: usize, b: &dyn Array, j: usize, tolerance: &Tolerance) -> bool {
    let null = a.is_null(i);
    if null || b.is_null(j) {
        return null == b.is_null(j);
    }
    let all = |a: &ArrayRef, first: (usize, usize), b: &ArrayRef, second: (usize, usize)| {
        first.1 - first.0 == second.1 - second.0
            && (first.0..first.1).zip(second.0..second.1).all(|(i, j)| same(a, i, b, j, tolerance))
    };
    match a.data_type() {
        DataType::Null => true,
        DataType::Float64 => {
            let (x, y) = (a.as_primitive::<Float64Type>().value(i), b.as_primitive::<Float64Type>().value(j));
            let steps = ordered(x.to_bits(), 63).abs_diff(ordered(y.to_bits(), 63));
            x.to_bits() == y.to_bits() || tolerance.close(x, y, steps)
        }
        DataType::Float32 => {
            let (x, y) = (a.as_primitive::<Float32Type>().value(i), b.as_primitive::<Float32Type>().value(j));
            let steps = ordered(x.to_bits().into(), 31).abs_diff(ordered(y.to_bits().into(), 31));
            x.to_bits() == y.to_bits() || tolerance.close(x.into(), y.into(), steps)
        }
        DataType::Float16 => {
            let (x, y) = (a.as_primitive::<Float16Type>().value(i), b.as_primitive::<Float16Type>().value(j));
            let steps = ordered(x.to_bits().into(), 15).abs_diff(ordered(y.to_bits().into(), 15));
            x.to_bits() == y.to_bits() || tolerance.close(x.into(), y.into(), steps)
        }
        DataType::List(_) => {
            let (a, b) = (a.as_list::<i32>(), b.as_list::<i32>());
            all(a.values(), range(a.value_offsets(), i), b.values(), range(b.value_offsets(), j))
        }
        DataType::LargeList(_) => {
            let (a, b) = (a.as_list::<i64>(), b.as_list::<i64>());
            let range = |offsets: &[i64], at: usize| (offsets[at] as usize, offsets[at + 1] as usize);
            all(a.values(), range(a.value_offsets(), i), b.values(), range(b.value_offsets(), j))
        }
        DataType::FixedSizeList(_, size) => {
            let size = *size as usize;
            let (a, b) = (a.as_fixed_size_list(), b.as_fixed_size_list());
            all(a.values(), (i * size, (i + 1) * size), b.values(), (j * size, (j + 1) * size))
        }
        DataType::Struct(_) => {
            let pairs = a.as_struct().columns().iter().zip(b.as_struct().columns());
            pairs.into_iter().all(|(a, b)| same(a, i, b, j, tolerance))
        }
        DataType::Map(_, _) => {
            let (a, b) = (a.as_map(), b.as_map());
            let (first, second) = (range(a.value_offsets(), i), range(b.value_offsets(), j));
            all(a.keys(), first, b.keys(), second) && all(a.values(), first, b.values(), second)
        }
        _ => a.slice(i, 1).to_data() == b.slice(j, 1).to_data(),
    }
}

fn range(offsets: &[i32], at: usize) -> (usize, usize) {
    (offsets[at] as usize, offsets[at + 1] as usize)
}

/// The bits of a float, whose sign is bit `sign`, as a number that grows with the float; both zeros are 0.
fn ordered(bits: u64, sign: u32) -> i64 {
    let magnitude = (bits & !(1 << sign)) as i64;
    if bits >> sign == 1 { -magnitude } else { magnitude }
}
