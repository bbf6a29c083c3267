//! The typed door of DyND: types, and values of them as Python's own.
//!
//! | type | Python |
//! |---|---|
//! | `bool`, `intN`, `uintN`, `floatN`, `complex[floatN]` | `bool`, `int`, `float`, `complex` |
//! | `float128` | 16 bytes, little-endian: Python has no such float (its complex: a pair of them) |
//! | `string`, `json`, `char`, `fixed_string` | `str` |
//! | `bytes`, `bytes[N]` | `bytes` |
//! | `date`, `time`, `datetime` | `int`: days, or ticks of 100 ns |
//! | `void` | `None` |
//! | `type` | `Type` |
//! | `N * T`, `var * T`, `storage[…]` | `list` |
//! | `(T, U)`, `{a: T}` | `tuple`, `dict` |
//! | `?T` | `None` or the value; where T itself may be `None`, a value is in a tuple of one |
//! | `array[T]` | `(Type, value)` |

use half::f16;
use pentaglot::formats::dynd::{self, FloatWidth, Value};
use pentaglot::{Error, Limits};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyList, PyString, PyTuple};

use crate::error::Outcome;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DyndType>()?;
    module.add_function(wrap_pyfunction!(dynd_serialize, module)?)?;
    module.add_function(wrap_pyfunction!(dynd_deserialize, module)?)
}

/// A datashape type.
#[pyclass(frozen, eq, hash, name = "DyndType", module = "pentaglot._native")]
#[derive(PartialEq, Eq, Hash, Clone)]
pub(crate) struct DyndType(dynd::Type);

#[pymethods]
impl DyndType {
    #[new]
    fn new(text: &str) -> Outcome<Self> {
        Ok(DyndType(dynd::Type::parse(text)?))
    }

    /// Whether data of this type can be serialized.
    #[getter]
    fn is_concrete(&self) -> bool {
        self.0.is_concrete()
    }

    /// How many bytes every value takes, if the type decides that.
    #[getter]
    fn fixed_size(&self) -> Option<u64> {
        self.0.fixed_size()
    }

    /// Whether this pattern matches another type.
    fn matches(&self, other: &DyndType) -> bool {
        self.0.matches(&other.0)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Type({:?})", self.0.to_string())
    }
}

/// The one serialization of a value.
#[pyfunction]
fn dynd_serialize<'py>(
    py: Python<'py>,
    value: &Bound<'py, PyAny>,
    of: &Bound<'py, DyndType>,
) -> Outcome<Bound<'py, PyBytes>> {
    let ty = &of.get().0;
    if !ty.is_concrete() {
        // The library says why, before any value is looked at.
        dynd::serialize(ty, &Value::Void)?;
    }
    let value = to_value(value, ty)?;
    let bytes = py.detach(|| dynd::serialize(ty, &value))?;
    Ok(PyBytes::new(py, &bytes))
}

/// The value of its one serialization.
#[pyfunction]
fn dynd_deserialize<'py>(
    py: Python<'py>,
    bytes: &[u8],
    of: &Bound<'py, DyndType>,
) -> Outcome<Bound<'py, PyAny>> {
    let ty = &of.get().0;
    let value = dynd::deserialize(bytes, ty, &Limits::default())?;
    Ok(to_python(py, &value, ty)?)
}

fn wrong(expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let name = found.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {expected}, found {name}"))
}

/// Whether a value of this type may be `None` in Python.
fn may_be_none(ty: &dynd::Type) -> bool {
    match ty {
        dynd::Type::Option(_) | dynd::Type::Void => true,
        dynd::Type::Pointer(of) => may_be_none(of),
        _ => false,
    }
}

fn to_value(object: &Bound<'_, PyAny>, ty: &dynd::Type) -> PyResult<Value> {
    use dynd::Type as T;
    Ok(match ty {
        T::Bool => Value::Bool(object.extract()?),
        T::Int(_) | T::Date | T::Time(_) | T::Datetime(_) => Value::Int(object.extract()?),
        T::Uint(_) => Value::Uint(object.extract()?),
        T::Float(width) => Value::Float(float_bits(object, *width)?),
        T::Complex(width) => Value::Complex(Box::new(complex_bits(object, *width)?)),
        T::Void if object.is_none() => Value::Void,
        T::Void => return Err(wrong("None", object)),
        T::String | T::Json | T::FixedString { .. } => Value::String(object.extract()?),
        T::Char(_) => Value::Char(object.extract()?),
        T::Bytes { .. } | T::FixedBytes { .. } => {
            Value::Bytes(object.cast::<PyBytes>().map_err(|_| wrong("bytes", object))?.as_bytes().to_vec())
        }
        T::Type => Value::Type(Box::new(
            object.cast::<DyndType>().map_err(|_| wrong("a Type", object))?.get().0.clone(),
        )),
        T::Fixed(_, of) | T::Var(of) => list(object, of)?,
        T::Storage { of, .. } => to_value(object, of)?,
        T::Pointer(of) => to_value(object, of)?,
        T::Tuple(fields) => {
            let items: Vec<Bound<'_, PyAny>> = object.extract()?;
            if items.len() != fields.len() {
                let (expected, found) = (fields.len(), items.len());
                return Err(PyValueError::new_err(format!("expected {expected} items, found {found}")));
            }
            let items = items.iter().zip(fields).map(|(item, ty)| to_value(item, ty));
            Value::List(items.collect::<PyResult<_>>()?)
        }
        T::Struct(fields) => {
            let dict = object.cast::<PyDict>().map_err(|_| wrong("a dict", object))?;
            let mut items = Vec::new();
            for (name, ty) in fields {
                let item = dict.get_item(name)?;
                let item = item.ok_or_else(|| PyValueError::new_err(format!("there is no key {name:?}")))?;
                items.push(to_value(&item, ty)?);
            }
            if dict.len() != fields.len() {
                let (expected, found) = (fields.len(), dict.len());
                return Err(PyValueError::new_err(format!("expected {expected} keys, found {found}")));
            }
            Value::List(items)
        }
        T::Option(_) if object.is_none() => Value::Missing,
        T::Option(of) if may_be_none(of) => {
            let (inner,): (Bound<'_, PyAny>,) = object.extract()?;
            Value::some(to_value(&inner, of)?)
        }
        T::Option(of) => Value::some(to_value(object, of)?),
        T::Array(_) => {
            let (own, value): (Bound<'_, DyndType>, Bound<'_, PyAny>) = object.extract()?;
            let own = own.get().0.clone();
            let value = to_value(&value, &own)?;
            Value::array(own, value)
        }
        // A type and a multihash.
        T::Merkle(_) => {
            let (linked, hash): (Bound<'_, DyndType>, Vec<u8>) = object.extract()?;
            Value::merkle(linked.get().0.clone(), hash)
        }
        other => return Err(PyTypeError::new_err(format!("there are no values of {other}"))),
    })
}

fn list(object: &Bound<'_, PyAny>, of: &dynd::Type) -> PyResult<Value> {
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Err(wrong("a list", object));
    }
    // Items of an array of NumPy are no Python numbers; those of its list are.
    let listed = if object.hasattr("tolist")? { Some(object.call_method0("tolist")?) } else { None };
    let items = listed.as_ref().unwrap_or(object).try_iter()?.map(|item| to_value(&item?, of));
    Ok(Value::List(items.collect::<PyResult<_>>()?))
}

fn float_bits(object: &Bound<'_, PyAny>, width: FloatWidth) -> PyResult<u128> {
    if width == FloatWidth::W128 {
        return quad_bits(object);
    }
    number_bits(object.extract()?, width)
}

fn quad_bits(object: &Bound<'_, PyAny>) -> PyResult<u128> {
    let bytes = object.cast::<PyBytes>().map_err(|_| wrong("16 bytes of a float128", object))?;
    let bytes = bytes.as_bytes().try_into().map_err(|_| PyValueError::new_err("expected 16 bytes"))?;
    Ok(u128::from_le_bytes(bytes))
}

/// The bits of a number that a float of this width holds exactly; NaN of any width is its usual one.
fn number_bits(number: f64, width: FloatWidth) -> PyResult<u128> {
    let inexact = || PyValueError::new_err(format!("{number} is not a float of {} bytes", width.bytes()));
    match width {
        FloatWidth::W16 => {
            let narrow = f16::from_f64(number);
            let same = narrow.to_f64() == number || number.is_nan();
            if same { Ok(narrow.to_bits().into()) } else { Err(inexact()) }
        }
        FloatWidth::W32 => {
            let narrow = number as f32;
            let same = f64::from(narrow) == number || number.is_nan();
            if same { Ok(narrow.to_bits().into()) } else { Err(inexact()) }
        }
        _ => Ok(number.to_bits().into()),
    }
}

fn complex_bits(object: &Bound<'_, PyAny>, width: FloatWidth) -> PyResult<[u128; 2]> {
    if width == FloatWidth::W128 {
        let (real, imaginary): (Bound<'_, PyAny>, Bound<'_, PyAny>) = object.extract()?;
        return Ok([quad_bits(&real)?, quad_bits(&imaginary)?]);
    }
    let (real, imaginary): (f64, f64) = match object.cast::<PyComplex>() {
        Ok(number) => (number.real(), number.imag()),
        Err(_) => (object.extract()?, 0.0),
    };
    Ok([number_bits(real, width)?, number_bits(imaginary, width)?])
}

fn from_bits(bits: u128, width: FloatWidth) -> f64 {
    match width {
        FloatWidth::W16 => f16::from_bits(bits as u16).to_f64(),
        FloatWidth::W32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits as u64),
    }
}

fn to_python<'py>(py: Python<'py>, value: &Value, ty: &dynd::Type) -> PyResult<Bound<'py, PyAny>> {
    use dynd::Type as T;
    let none = || Ok(py.None().into_bound(py));
    let mismatch =
        || PyErr::from(crate::error::Failure::from(Error::unsupported(format!("a value of {ty} in Python"))));
    match (value, ty) {
        (_, T::Pointer(of) | T::Storage { of, .. }) => to_python(py, value, of),
        (Value::Bool(flag), _) => Ok(flag.into_pyobject(py)?.to_owned().into_any()),
        (Value::Int(number), _) => Ok(number.into_pyobject(py)?.into_any()),
        (Value::Uint(number), _) => Ok(number.into_pyobject(py)?.into_any()),
        (Value::Float(bits), T::Float(FloatWidth::W128)) => {
            Ok(PyBytes::new(py, &bits.to_le_bytes()).into_any())
        }
        (Value::Float(bits), T::Float(width)) => Ok(from_bits(*bits, *width).into_pyobject(py)?.into_any()),
        (Value::Complex(parts), T::Complex(FloatWidth::W128)) => {
            let parts = parts.map(|bits| PyBytes::new(py, &bits.to_le_bytes()));
            Ok(PyTuple::new(py, parts)?.into_any())
        }
        (Value::Complex(parts), T::Complex(width)) => {
            let [real, imaginary] = parts.map(|bits| from_bits(bits, *width));
            Ok(PyComplex::from_doubles(py, real, imaginary).into_any())
        }
        (Value::Char(char), _) => Ok(char.into_pyobject(py)?.into_any()),
        (Value::String(text), _) => Ok(PyString::new(py, text).into_any()),
        (Value::Bytes(bytes), _) => Ok(PyBytes::new(py, bytes).into_any()),
        (Value::Void | Value::Missing, _) => none(),
        (Value::Type(own), _) => Ok(Bound::new(py, DyndType(own.as_ref().clone()))?.into_any()),
        (Value::List(items), T::Fixed(_, of) | T::Var(of)) => {
            let items = items.iter().map(|item| to_python(py, item, of));
            Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        (Value::List(items), T::Tuple(types)) => {
            let items = items.iter().zip(types).map(|(item, ty)| to_python(py, item, ty));
            Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        (Value::List(items), T::Struct(fields)) => {
            let dict = PyDict::new(py);
            for (item, (name, ty)) in items.iter().zip(fields) {
                dict.set_item(name, to_python(py, item, ty)?)?;
            }
            Ok(dict.into_any())
        }
        (Value::Some(inner), T::Option(of)) => {
            let inner = to_python(py, inner, of)?;
            if may_be_none(of) { Ok(PyTuple::new(py, [inner])?.into_any()) } else { Ok(inner) }
        }
        (Value::Array(pair), _) => {
            let (own, value) = pair.as_ref();
            let value = to_python(py, value, own)?;
            let own = Bound::new(py, DyndType(own.clone()))?.into_any();
            Ok(PyTuple::new(py, [own, value])?.into_any())
        }
        (Value::Merkle(link), _) => {
            let (linked, hash) = link.as_ref();
            let linked = Bound::new(py, DyndType(linked.clone()))?.into_any();
            Ok(PyTuple::new(py, [linked, PyBytes::new(py, hash).into_any()])?.into_any())
        }
        _ => Err(mismatch()),
    }
}
