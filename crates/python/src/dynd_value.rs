//! Python's objects as DyND values.

use half::f16;
use pentaglot::Error;
use pentaglot::formats::dynd::{self, FloatWidth, Value, Zone};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyDict, PyFloat, PyString};

use crate::dynd::{DyndType, may_be_none};
use crate::error::Failure;
use crate::watch::Pulse;

/// The walk through an object; it looks at signals on its way.
pub(crate) struct Walk {
    pulse: Pulse,
    steps: u64,
}

impl Walk {
    pub(crate) fn new() -> Self {
        Walk { pulse: Pulse::new(), steps: 0 }
    }

    /// Whether so many values were met that work on them may take long.
    pub(crate) fn is_long(&self) -> bool {
        self.steps > 1 << 14
    }

    /// Counts a value.
    pub(crate) fn step(&mut self) -> PyResult<()> {
        self.steps = self.steps.saturating_add(1);
        if self.steps.is_multiple_of(1024) { self.pulse.look() } else { Ok(()) }
    }

    /// The value of this type that an object represents.
    pub(crate) fn value(&mut self, object: &Bound<'_, PyAny>, ty: &dynd::Type) -> PyResult<Value> {
        use dynd::Type as T;
        self.step()?;
        Ok(match ty {
            T::Bool => Value::Bool(object.extract()?),
            T::Int(width) => Value::Int(signed(object, ty, width.bytes())?),
            T::Date => Value::Int(days(object, ty)?),
            T::Time(zone) => Value::Int(time_ticks(object, ty, *zone)?),
            T::Datetime(zone) => Value::Int(datetime_ticks(object, ty, *zone)?),
            T::Uint(width) => Value::Uint(unsigned(object, ty, width.bytes())?),
            T::Float(width) => Value::Float(float_bits(object, *width, ty)?),
            T::Complex(width) => Value::Complex(Box::new(complex_bits(object, *width, ty)?)),
            T::Void if object.is_none() => Value::Void,
            T::Void => return Err(wrong("None", object)),
            T::String | T::Json | T::FixedString { .. } => Value::String(object.extract()?),
            T::Char(_) => Value::Char(object.extract()?),
            T::Bytes { .. } | T::FixedBytes { .. } => {
                let bytes = object.cast::<PyBytes>().map_err(|_| wrong("bytes", object))?;
                Value::Bytes(bytes.as_bytes().to_vec())
            }
            T::Type => Value::Type(Box::new(own_type(object)?)),
            T::Fixed(_, of) | T::Var(of) => self.list(object, of)?,
            T::Storage { of, .. } => self.value(object, of)?,
            T::Pointer(of) => self.value(object, of)?,
            T::Tuple(fields) => {
                let items: Vec<Bound<'_, PyAny>> = object.extract()?;
                if items.len() != fields.len() {
                    let (expected, found) = (fields.len(), items.len());
                    return Err(PyValueError::new_err(format!("expected {expected} items, found {found}")));
                }
                let items = items.iter().zip(fields).map(|(item, ty)| self.value(item, ty));
                Value::List(items.collect::<PyResult<_>>()?)
            }
            T::Struct(fields) => {
                let dict = object.cast::<PyDict>().map_err(|_| wrong("a dict", object))?;
                let mut items = Vec::new();
                for (name, ty) in fields {
                    let item = dict.get_item(name)?;
                    let missing = || PyValueError::new_err(format!("there is no key {name:?}"));
                    items.push(self.value(&item.ok_or_else(missing)?, ty)?);
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
                Value::some(self.value(&inner, of)?)
            }
            T::Option(of) => Value::some(self.value(object, of)?),
            T::Array(_) => {
                let (own, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = object.extract()?;
                let own = own_type(&own)?;
                let value = self.value(&value, &own)?;
                Value::array(own, value)
            }
            // A type and a multihash.
            T::Merkle(_) => {
                let (linked, hash): (Bound<'_, PyAny>, Vec<u8>) = object.extract()?;
                Value::merkle(own_type(&linked)?, hash)
            }
            other => return Err(PyTypeError::new_err(format!("there are no values of {other}"))),
        })
    }

    fn list(&mut self, object: &Bound<'_, PyAny>, of: &dynd::Type) -> PyResult<Value> {
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            return Err(wrong("a list", object));
        }
        // Items of an array of NumPy are no Python numbers; those of its list are.
        let listed = if object.hasattr("tolist")? { Some(object.call_method0("tolist")?) } else { None };
        let items = listed.as_ref().unwrap_or(object).try_iter()?.map(|item| self.value(&item?, of));
        Ok(Value::List(items.collect::<PyResult<_>>()?))
    }
}

fn wrong(expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let name = found.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
    PyTypeError::new_err(format!("expected {expected}, found {name}"))
}

/// A type, or the text of one.
fn own_type(object: &Bound<'_, PyAny>) -> PyResult<dynd::Type> {
    if let Ok(own) = object.cast::<DyndType>() {
        return Ok(own.get().ty().clone());
    }
    let text = object.cast::<PyString>().map_err(|_| wrong("a Type or its text", object))?;
    Ok(dynd::Type::parse(&text.to_cow()?).map_err(Failure::from)?)
}

/// A number that the type cannot hold.
fn lossy(object: &Bound<'_, PyAny>, why: &str, rule: &'static str) -> PyErr {
    // Python refuses to print integers of very many digits.
    let text = object.str().map_or_else(|_| "a very large number".to_owned(), |text| text.to_string());
    let short: String = text.chars().take(60).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    Failure::from(Error::lossy(format!("{short}{dots} {why}")).rule(rule)).into()
}

fn out_of_range(object: &Bound<'_, PyAny>, ty: &dynd::Type) -> PyErr {
    lossy(object, &format!("is out of the range of {ty}"), "range")
}

/// Why a number could not be taken: one that does not fit into the type of Rust does not fit into that of DyND.
fn past(object: &Bound<'_, PyAny>, ty: &dynd::Type, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyOverflowError>(object.py()) { out_of_range(object, ty) } else { error }
}

fn signed(object: &Bound<'_, PyAny>, ty: &dynd::Type, bytes: u8) -> PyResult<i128> {
    let number: i128 = object.extract().map_err(|error| past(object, ty, error))?;
    let spare = 128 - 8 * u32::from(bytes);
    let fits = number << spare >> spare == number;
    if fits { Ok(number) } else { Err(out_of_range(object, ty)) }
}

fn unsigned(object: &Bound<'_, PyAny>, ty: &dynd::Type, bytes: u8) -> PyResult<u128> {
    let number: u128 = object.extract().map_err(|error| past(object, ty, error))?;
    let spare = 128 - 8 * u32::from(bytes);
    let fits = number << spare >> spare == number;
    if fits { Ok(number) } else { Err(out_of_range(object, ty)) }
}

/// The day that `datetime.date.toordinal` numbers so is 1970-01-01.
const EPOCH: i128 = 719_163;
const TICKS_PER_DAY: i128 = 24 * 3600 * TICKS_PER_SECOND;
const TICKS_PER_SECOND: i128 = 10_000_000;

/// Whether an object is of a class of the module `datetime`.
fn is_a(object: &Bound<'_, PyAny>, class: &str) -> PyResult<bool> {
    object.is_instance(&object.py().import("datetime")?.getattr(class)?)
}

/// The days since 1970-01-01 of a number of them or of a `datetime.date`.
fn days(object: &Bound<'_, PyAny>, ty: &dynd::Type) -> PyResult<i128> {
    if !is_a(object, "date")? {
        return signed(object, ty, 4);
    }
    if is_a(object, "datetime")? {
        return Err(wrong("a date or a number of days", object));
    }
    Ok(object.call_method0("toordinal")?.extract::<i128>()? - EPOCH)
}

/// The ticks since midnight of a number of them or of a `datetime.time`.
fn time_ticks(object: &Bound<'_, PyAny>, ty: &dynd::Type, zone: Zone) -> PyResult<i128> {
    if !is_a(object, "time")? {
        return signed(object, ty, 8);
    }
    match (offset_ticks(object, ty, zone)?, zone) {
        (0, _) => clock_ticks(object),
        _ => Err(PyValueError::new_err(format!("expected a time in UTC for {ty}"))),
    }
}

/// The ticks since 1970-01-01 of a number of them or of a `datetime.datetime`.
fn datetime_ticks(object: &Bound<'_, PyAny>, ty: &dynd::Type, zone: Zone) -> PyResult<i128> {
    if !is_a(object, "datetime")? {
        return signed(object, ty, 8);
    }
    let days = object.call_method0("toordinal")?.extract::<i128>()? - EPOCH;
    Ok(days * TICKS_PER_DAY + clock_ticks(object)? - offset_ticks(object, ty, zone)?)
}

/// The ticks since midnight that a clock shows.
fn clock_ticks(object: &Bound<'_, PyAny>) -> PyResult<i128> {
    let part = |name: &str| object.getattr(name)?.extract::<i128>();
    let seconds = (part("hour")? * 60 + part("minute")?) * 60 + part("second")?;
    Ok(seconds * TICKS_PER_SECOND + part("microsecond")? * 10)
}

/// How far a clock is ahead of UTC. A type with a zone takes aware times, one without takes naive ones.
fn offset_ticks(object: &Bound<'_, PyAny>, ty: &dynd::Type, zone: Zone) -> PyResult<i128> {
    let offset = object.call_method0("utcoffset")?;
    match (offset.is_none(), zone) {
        (true, Zone::Abstract) => Ok(0),
        (false, Zone::Utc) => {
            let part = |name: &str| offset.getattr(name)?.extract::<i128>();
            let seconds = part("days")? * 24 * 3600 + part("seconds")?;
            Ok(seconds * TICKS_PER_SECOND + part("microseconds")? * 10)
        }
        (false, _) => Err(PyValueError::new_err(format!("expected a time without a time zone for {ty}"))),
        (true, _) => Err(PyValueError::new_err(format!("expected a time with a time zone for {ty}"))),
    }
}

/// A number as a float of 64 bits that is equal to it.
fn number(object: &Bound<'_, PyAny>, ty: &dynd::Type) -> PyResult<f64> {
    if let Ok(float) = object.cast::<PyFloat>() {
        return Ok(float.value());
    }
    let number: f64 = object.extract().map_err(|error| past(object, ty, error))?;
    let is_same = number.is_nan() || object.eq(number)?;
    if is_same { Ok(number) } else { Err(inexact(object, ty)) }
}

fn inexact(object: &Bound<'_, PyAny>, ty: &dynd::Type) -> PyErr {
    lossy(object, &format!("is not exactly a number of {ty}"), "precision")
}

fn float_bits(object: &Bound<'_, PyAny>, width: FloatWidth, ty: &dynd::Type) -> PyResult<u128> {
    if width == FloatWidth::W128 {
        return quad_bits(object);
    }
    number_bits(number(object, ty)?, width).ok_or_else(|| inexact(object, ty))
}

fn quad_bits(object: &Bound<'_, PyAny>) -> PyResult<u128> {
    let bytes = object.cast::<PyBytes>().map_err(|_| wrong("16 bytes of a float128", object))?;
    let bytes = bytes.as_bytes().try_into().map_err(|_| PyValueError::new_err("expected 16 bytes"))?;
    Ok(u128::from_le_bytes(bytes))
}

/// The bits of a number that a float of this width holds exactly; NaN of any width is its usual one.
fn number_bits(number: f64, width: FloatWidth) -> Option<u128> {
    match width {
        FloatWidth::W16 => {
            let narrow = f16::from_f64(number);
            let same = narrow.to_f64() == number || number.is_nan();
            same.then(|| narrow.to_bits().into())
        }
        FloatWidth::W32 => {
            let narrow = number as f32;
            let same = f64::from(narrow) == number || number.is_nan();
            same.then(|| narrow.to_bits().into())
        }
        _ => Some(number.to_bits().into()),
    }
}

fn complex_bits(object: &Bound<'_, PyAny>, width: FloatWidth, ty: &dynd::Type) -> PyResult<[u128; 2]> {
    if width == FloatWidth::W128 {
        let (real, imaginary): (Bound<'_, PyAny>, Bound<'_, PyAny>) = object.extract()?;
        return Ok([quad_bits(&real)?, quad_bits(&imaginary)?]);
    }
    let (real, imaginary) = match object.cast::<PyComplex>() {
        Ok(number) => (number.real(), number.imag()),
        Err(_) => (number(object, ty)?, 0.0),
    };
    let bits = |number| number_bits(number, width).ok_or_else(|| inexact(object, ty));
    Ok([bits(real)?, bits(imaginary)?])
}
