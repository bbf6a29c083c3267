//! The typed door of DyND: types, and values of them as Python's own.
//!
//! | type | Python |
//! |---|---|
//! | `bool`, `intN`, `uintN`, `floatN`, `complex[floatN]` | `bool`, `int`, `float`, `complex` |
//! | `float128` | 16 bytes, little-endian: Python has no such float (its complex: a pair of them) |
//! | `string`, `json`, `char`, `fixed_string` | `str` |
//! | `bytes`, `bytes[N]` | `bytes` |
//! | `date`, `time`, `datetime` | `int`: days, or ticks of 100 ns; `datetime.date`, … are taken too |
//! | `void` | `None` |
//! | `type` | `Type`; its text is taken too |
//! | `N * T`, `var * T`, `storage[…]` | `list` |
//! | `(T, U)`, `{a: T}` | `tuple`, `dict` |
//! | `?T` | `None` or the value; where T itself may be `None`, a value is in a tuple of one |
//! | `array[T]` | `(Type, value)` |

use half::f16;
use pentaglot::formats::dynd::{self, FloatWidth, Value};
use pentaglot::{Error, Limits};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyList, PyMemoryView, PyString, PyTuple};

use crate::dynd_value::Walk;
use crate::error::Outcome;
use crate::watch::apart;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<DyndType>()?;
    module.add_function(wrap_pyfunction!(dynd_serialize, module)?)?;
    module.add_function(wrap_pyfunction!(dynd_deserialize, module)?)
}

/// A datashape type.
#[pyclass(frozen, eq, hash, name = "DyndType", module = "pentaglot._native")]
#[derive(PartialEq, Eq, Hash, Clone)]
pub(crate) struct DyndType(dynd::Type);

impl DyndType {
    pub(crate) fn ty(&self) -> &dynd::Type {
        &self.0
    }
}

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

/// So few bytes take less time than a thread.
const FEW: usize = 1 << 16;

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
        dynd::write_value(ty, &Value::Void)?;
    }
    let mut walk = Walk::new();
    let value = walk.value(value, ty)?;
    let bytes = match walk.is_long() {
        false => dynd::write_value(ty, &value)?,
        true => {
            let ty = ty.clone();
            apart(py, move || Ok(dynd::write_value(&ty, &value)?))?
        }
    };
    Ok(PyBytes::new(py, &bytes))
}

/// The value of its one serialization: bytes, or a buffer of them.
#[pyfunction]
fn dynd_deserialize<'py>(
    py: Python<'py>,
    bytes: &Bound<'py, PyAny>,
    of: &Bound<'py, DyndType>,
) -> Outcome<Bound<'py, PyAny>> {
    let ty = &of.get().0;
    let bytes = match bytes.cast::<PyBytes>() {
        Ok(bytes) => bytes.clone(),
        // Others may still write to a buffer, so its bytes are copied.
        Err(_) => PyMemoryView::from(bytes)?.call_method0("tobytes")?.cast_into().map_err(PyErr::from)?,
    };
    let value = match bytes.as_bytes() {
        few if few.len() <= FEW => dynd::read_value(few, ty, &Limits::default())?,
        many => {
            let (many, ty) = (many.to_vec(), ty.clone());
            apart(py, move || Ok(dynd::read_value(&many, &ty, &Limits::default())?))?
        }
    };
    Ok(to_python(py, &value, ty, &mut Walk::new())?)
}

/// Whether a value of this type may be `None` in Python.
pub(crate) fn may_be_none(ty: &dynd::Type) -> bool {
    match ty {
        dynd::Type::Option(_) | dynd::Type::Void => true,
        dynd::Type::Pointer(of) => may_be_none(of),
        _ => false,
    }
}

fn from_bits(bits: u128, width: FloatWidth) -> f64 {
    match width {
        FloatWidth::W16 => f16::from_bits(bits as u16).to_f64(),
        FloatWidth::W32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits as u64),
    }
}

fn to_python<'py>(
    py: Python<'py>,
    value: &Value,
    ty: &dynd::Type,
    walk: &mut Walk,
) -> PyResult<Bound<'py, PyAny>> {
    use dynd::Type as T;
    walk.step()?;
    let none = || Ok(py.None().into_bound(py));
    let mismatch =
        || PyErr::from(crate::error::Failure::from(Error::unsupported(format!("a value of {ty} in Python"))));
    match (value, ty) {
        (_, T::Pointer(of) | T::Storage { of, .. }) => to_python(py, value, of, walk),
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
            let items = items.iter().map(|item| to_python(py, item, of, walk));
            Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        (Value::List(items), T::Tuple(types)) => {
            let items = items.iter().zip(types).map(|(item, ty)| to_python(py, item, ty, walk));
            Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        (Value::List(items), T::Struct(fields)) => {
            let dict = PyDict::new(py);
            for (item, (name, ty)) in items.iter().zip(fields) {
                dict.set_item(name, to_python(py, item, ty, walk)?)?;
            }
            Ok(dict.into_any())
        }
        (Value::Some(inner), T::Option(of)) => {
            let inner = to_python(py, inner, of, walk)?;
            if may_be_none(of) { Ok(PyTuple::new(py, [inner])?.into_any()) } else { Ok(inner) }
        }
        (Value::Array(pair), _) => {
            let (own, value) = pair.as_ref();
            let value = to_python(py, value, own, walk)?;
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
