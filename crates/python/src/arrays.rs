//! Arrow buffers as NumPy sees them: [`Values`] speaks NumPy's array interface, so that nothing is copied.

use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Numbers in memory that `numpy.asarray` takes as they are. They are read-only, since others may hold them too.
#[pyclass(frozen, module = "pentaglot._native")]
pub(crate) struct Values {
    buffer: Buffer,
    shape: Vec<usize>,
    /// NumPy's name of the type.
    kind: String,
    is_copy: bool,
}

#[pymethods]
impl Values {
    /// Whether these are not the memory of the table.
    #[getter]
    fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// The array interface of NumPy, version 3.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", &self.kind)?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("data", (self.buffer.as_ptr() as usize, true))?;
        Ok(interface)
    }
}

impl Values {
    /// Values of a type of NumPy.
    pub(crate) fn new(buffer: Buffer, shape: Vec<usize>, kind: impl Into<String>) -> Self {
        Values { buffer, shape, kind: kind.into(), is_copy: false }
    }

    /// The same, as a copy if `is_copy` says so or if it was one already.
    pub(crate) fn copied(self, is_copy: bool) -> Self {
        Values { is_copy: self.is_copy || is_copy, ..self }
    }

    /// The values of an array: those of nested lists of fixed size are one array of several dimensions. `None` where
    /// NumPy has no such type, or where values are missing.
    pub(crate) fn of(array: &ArrayRef, is_complex: bool) -> Option<Self> {
        let values = Values::with_missing(array, is_complex)?;
        values.1.is_none().then_some(values.0)
    }

    /// The same, and what is missing: a truth value for each. A missing value is any number of its type.
    pub(crate) fn with_missing(array: &ArrayRef, is_complex: bool) -> Option<(Self, Option<Self>)> {
        let mut shape = vec![array.len()];
        let mut array = array.clone();
        let mut missing: Option<Vec<u8>> = None;
        // The two numbers of a complex one are not values of their own.
        let depth = fixed_depth(array.data_type()).checked_sub(usize::from(is_complex))?;
        for level in 0.. {
            missing = merged(missing, array.nulls());
            let Some(list) = array.as_fixed_size_list_opt() else { break };
            let width = usize::try_from(list.value_length()).ok()?;
            shape.push(width);
            let values = list.values().clone();
            if level == depth {
                // A complex number is missing if a part of it is.
                let parts = merged(None, values.nulls());
                let parts = parts.map(|parts| parts.chunks(width.max(1)).map(any_set).collect());
                missing = either(missing, parts);
                array = values;
                break;
            }
            missing = missing.map(|missing| repeated(&missing, width));
            array = values;
        }
        let values = numbers(&array, &mut shape, is_complex)?;
        let missing = missing.map(|missing| Values::new(Buffer::from(missing), shape, "|b1"));
        Some((values, missing))
    }
}

/// How many lists of fixed size are around the values.
fn fixed_depth(kind: &DataType) -> usize {
    match kind {
        DataType::FixedSizeList(item, _) => 1 + fixed_depth(item.data_type()),
        _ => 0,
    }
}

/// What is missing: here, or with the list around it.
fn merged(around: Option<Vec<u8>>, nulls: Option<&NullBuffer>) -> Option<Vec<u8>> {
    let here = nulls.filter(|nulls| nulls.null_count() > 0);
    either(around, here.map(|nulls| nulls.iter().map(|is_valid| u8::from(!is_valid)).collect()))
}

/// What is missing in one of two.
fn either(first: Option<Vec<u8>>, second: Option<Vec<u8>>) -> Option<Vec<u8>> {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.iter().zip(&second).map(|(a, b)| a | b).collect()),
        (first, second) => first.or(second),
    }
}

fn any_set(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |all, byte| all | byte)
}

/// Each byte so many times.
fn repeated(bytes: &[u8], count: usize) -> Vec<u8> {
    bytes.iter().flat_map(|byte| std::iter::repeat_n(*byte, count)).collect()
}

/// The numbers of an array; the last dimension of complex ones is taken off.
fn numbers(array: &ArrayRef, shape: &mut Vec<usize>, is_complex: bool) -> Option<Values> {
    if let Some(bits) = array.as_boolean_opt() {
        let bytes: Vec<u8> = bits.values().iter().map(u8::from).collect();
        return Some(Values::new(Buffer::from(bytes), shape.clone(), "|b1").copied(true));
    }
    if is_complex {
        let kind = match (shape.pop(), array.data_type()) {
            (Some(2), DataType::Float32) => "<c8",
            (Some(2), DataType::Float64) => "<c16",
            _ => return None,
        };
        return Some(Values::new(primitive_buffer(array)?, shape.clone(), kind));
    }
    let kind = type_string(array.data_type())?;
    if let DataType::Date32 = array.data_type() {
        let days = array.as_primitive::<arrow_array::types::Date32Type>().values();
        let days: Vec<i64> = days.iter().map(|day| i64::from(*day)).collect();
        return Some(Values::new(Buffer::from_vec(days), shape.clone(), kind).copied(true));
    }
    Some(Values::new(primitive_buffer(array)?, shape.clone(), kind))
}

/// The values of a primitive array alone.
pub(crate) fn primitive_buffer(array: &dyn Array) -> Option<Buffer> {
    let width = array.data_type().primitive_width()?;
    let data = array.to_data();
    let buffer = data.buffers().first()?;
    Some(buffer.slice_with_length(data.offset() * width, data.len() * width))
}

/// NumPy's name of a type.
pub(crate) fn type_string(kind: &DataType) -> Option<String> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    };
    Some(match kind {
        DataType::Int8 => "|i1".to_owned(),
        DataType::Int16 => "<i2".to_owned(),
        DataType::Int32 => "<i4".to_owned(),
        DataType::Int64 => "<i8".to_owned(),
        DataType::UInt8 => "|u1".to_owned(),
        DataType::UInt16 => "<u2".to_owned(),
        DataType::UInt32 => "<u4".to_owned(),
        DataType::UInt64 => "<u8".to_owned(),
        DataType::Float16 => "<f2".to_owned(),
        DataType::Float32 => "<f4".to_owned(),
        DataType::Float64 => "<f8".to_owned(),
        DataType::Boolean => "|b1".to_owned(),
        DataType::Date32 => "<M8[D]".to_owned(),
        DataType::Timestamp(of, _) => format!("<M8[{}]", unit(of)),
        DataType::Duration(of) => format!("<m8[{}]", unit(of)),
        _ => return None,
    })
}
