//! Arrow buffers as NumPy sees them: [`Values`] speaks NumPy's array interface, so that nothing is copied.

use arrow_array::{Array, ArrayRef, cast::AsArray};
use arrow_buffer::Buffer;
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
}

#[pymethods]
impl Values {
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
        Values { buffer, shape, kind: kind.into() }
    }

    /// The values of an array: those of nested lists of fixed size are one array of several dimensions. `None` where
    /// NumPy has no such type, or where values are missing.
    pub(crate) fn of(array: &ArrayRef, is_complex: bool) -> Option<Self> {
        let mut shape = vec![array.len()];
        let mut array = array.clone();
        while let Some(list) = array.as_fixed_size_list_opt() {
            if list.null_count() > 0 {
                return None;
            }
            shape.push(usize::try_from(list.value_length()).ok()?);
            let values = list.values().clone();
            array = values;
        }
        if array.null_count() > 0 {
            return None;
        }
        if let Some(bits) = array.as_boolean_opt() {
            let bytes: Vec<u8> = bits.values().iter().map(u8::from).collect();
            return Some(Values::new(Buffer::from(bytes), shape, "|b1"));
        }
        if is_complex {
            let kind = match (shape.pop(), array.data_type()) {
                (Some(2), DataType::Float32) => "<c8",
                (Some(2), DataType::Float64) => "<c16",
                _ => return None,
            };
            return Some(Values::new(primitive_buffer(&array)?, shape, kind));
        }
        let kind = type_string(array.data_type())?;
        if let DataType::Date32 = array.data_type() {
            let days = array.as_primitive::<arrow_array::types::Date32Type>().values();
            let days: Vec<i64> = days.iter().map(|day| i64::from(*day)).collect();
            return Some(Values::new(Buffer::from_vec(days), shape, kind));
        }
        Some(Values::new(primitive_buffer(&array)?, shape, kind))
    }
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
