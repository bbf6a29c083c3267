//! NumPy's data types as in a `.npy` header, and their Arrow types.
//!
//! | dtype | Arrow |
//! |---|---|
//! | `\|b1` | Boolean |
//! | `i1`…`i8`, `u1`…`u8`, `f2`, `f4`, `f8` | the same |
//! | `c8`, `c16` | `FixedSizeList<float, 2>`, `pentaglot.complex` |
//! | `S` | Binary, trailing NULs dropped as NumPy does |
//! | `U` | Utf8, trailing NULs dropped |
//! | `V` | FixedSizeBinary |
//! | `M8[s\|ms\|us\|ns]` | Timestamp of that unit; `[m]`, `[h]` in seconds; `[D]`, `[W]`, `[M]`, `[Y]` Date32; NaT is null |
//! | `m8[s\|ms\|us\|ns]` | Duration of that unit; `[m]`, `[h]`, `[D]`, `[W]` in seconds; NaT is null |
//! | a list of fields | Struct (the whole array: a table) |

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, TimeUnit};

use super::literal::Literal;
use crate::error::{Context, Error, Result};
use crate::hub::extension;

/// A data type: one scalar, or named fields one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::formats) enum Dtype {
    Scalar(Scalar),
    Struct(Vec<Member>),
}

/// A field of a structured type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::formats) struct Member {
    pub(in crate::formats) name: String,
    pub(in crate::formats) title: Option<String>,
    pub(in crate::formats) dtype: Dtype,
    /// Dimensions of a subarray; none for a single element.
    pub(in crate::formats) shape: Vec<u64>,
}

/// A type without fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats) struct Scalar {
    pub(in crate::formats) kind: DtypeKind,
    /// Bytes per element.
    pub(in crate::formats) bytes: u64,
    pub(in crate::formats) big_endian: bool,
}

/// The kind of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats) enum DtypeKind {
    Bool,
    Int,
    Uint,
    Float,
    Complex,
    Bytes,
    Text,
    Void,
    Datetime(Unit),
    Timedelta(Unit),
}

/// A datetime unit: a multiple of a base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats) struct Unit {
    pub(in crate::formats) count: u32,
    pub(in crate::formats) base: &'static str,
}

/// The base units that have an Arrow type.
const BASES: [&str; 10] = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"];

impl Unit {
    pub(in crate::formats) const fn of(base: &'static str) -> Unit {
        Unit { count: 1, base }
    }

    fn parse(text: &str) -> Result<Unit> {
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (count, base) = text.split_at(split);
        let count = if count.is_empty() { Some(1) } else { count.parse().ok().filter(|count| *count > 0) };
        match (count, BASES.iter().find(|known| **known == base)) {
            (Some(count), Some(base)) => Ok(Unit { count, base }),
            _ if matches!(base, "ps" | "fs" | "as" | "generic") => {
                Err(Error::unsupported(format!("datetime unit {base}: Arrow has no unit that holds it")))
            }
            _ => Err(Error::malformed("a datetime unit", format_args!("{text:?}")).rule("descr")),
        }
    }

    fn text(self) -> String {
        if self.count == 1 { self.base.to_owned() } else { format!("{}{}", self.count, self.base) }
    }

    /// Whether a point in time of this unit is a date.
    pub(in crate::formats) fn is_days(self) -> bool {
        matches!(self.base, "W" | "D") || self.is_calendar()
    }

    /// Whether the unit has no fixed length.
    pub(in crate::formats) fn is_calendar(self) -> bool {
        matches!(self.base, "Y" | "M")
    }

    /// Arrow's unit.
    pub(in crate::formats) fn arrow(self) -> TimeUnit {
        match self.base {
            "ms" => TimeUnit::Millisecond,
            "us" => TimeUnit::Microsecond,
            "ns" => TimeUnit::Nanosecond,
            _ => TimeUnit::Second,
        }
    }

    /// The length of this unit in Arrow units (days for a date, else [`arrow`](Self::arrow)), or in months for a
    /// calendar unit.
    pub(in crate::formats) fn factor(self, date: bool) -> i64 {
        let one = match (self.base, date) {
            ("Y", _) => 12,
            ("W", true) => 7,
            ("W", false) => 7 * 86_400,
            ("D", false) => 86_400,
            ("h", _) => 3_600,
            ("m", _) => 60,
            _ => 1,
        };
        one * i64::from(self.count)
    }
}

impl Scalar {
    pub(in crate::formats) const fn new(kind: DtypeKind, bytes: u64) -> Scalar {
        Scalar { kind, bytes, big_endian: false }
    }

    fn parse(text: &str) -> Result<Scalar> {
        let bad = || Error::malformed("a dtype such as '<f8'", format_args!("{text:?}")).rule("descr");
        let (big_endian, rest) = match text.as_bytes().first() {
            Some(b'>' | b'!') => (true, text.get(1..)),
            Some(b'<' | b'|' | b'=') => (false, text.get(1..)),
            _ => (false, Some(text)),
        };
        let rest = rest.ok_or_else(bad)?;
        let letter = rest.chars().next().ok_or_else(bad)?;
        let tail = rest.get(letter.len_utf8()..).unwrap_or_default();
        let (digits, unit) = match tail.split_once('[') {
            Some((digits, unit)) => (digits, Some(unit.strip_suffix(']').ok_or_else(bad)?)),
            None => (tail, None),
        };
        if letter == '?' && tail.is_empty() {
            return Ok(Scalar::new(DtypeKind::Bool, 1));
        }
        if letter == 'O' {
            return Err(Error::unsupported(
                "dtype object ('|O'): its elements are Python pickles, which are programs",
            ));
        }
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let count: u64 = digits.parse().map_err(|_| bad())?;
        let sized = |kind: DtypeKind, sizes: &[u64]| match sizes.contains(&count) {
            true => Ok(kind),
            false if matches!(letter, 'f' | 'c') => {
                Err(Error::unsupported(format!("dtype {text:?}: Arrow has no float of that size")))
            }
            false => Err(bad()),
        };
        let kind = match letter {
            'b' => sized(DtypeKind::Bool, &[1])?,
            'i' => sized(DtypeKind::Int, &[1, 2, 4, 8])?,
            'u' => sized(DtypeKind::Uint, &[1, 2, 4, 8])?,
            'f' => sized(DtypeKind::Float, &[2, 4, 8])?,
            'c' => sized(DtypeKind::Complex, &[8, 16])?,
            'S' | 'a' => DtypeKind::Bytes,
            'U' => DtypeKind::Text,
            'V' => DtypeKind::Void,
            'M' => DtypeKind::Datetime(Unit::parse(unit.unwrap_or("generic"))?),
            'm' => match Unit::parse(unit.unwrap_or("generic"))? {
                unit if unit.is_calendar() => {
                    return Err(Error::unsupported(format!(
                        "dtype {text:?}: years and months have no fixed length"
                    )));
                }
                unit => DtypeKind::Timedelta(unit),
            },
            _ => return Err(bad()),
        };
        let timed = matches!(kind, DtypeKind::Datetime(_) | DtypeKind::Timedelta(_));
        if timed != unit.is_some() || timed && count != 8 {
            return Err(bad());
        }
        let bytes = if kind == DtypeKind::Text { count.checked_mul(4) } else { Some(count) };
        let bytes = bytes.filter(|bytes| i32::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or_else(|| {
            Error::limit("the limit", i32::MAX, format!("more bytes per element, for dtype {text:?}"))
        })?;
        let swaps = bytes > 1 && !matches!(kind, DtypeKind::Bytes | DtypeKind::Void | DtypeKind::Bool);
        Ok(Scalar { kind, bytes, big_endian: big_endian && swaps })
    }

    /// The canonical text, as NumPy writes it.
    pub(in crate::formats) fn text(self) -> String {
        let order = match self.kind {
            DtypeKind::Bytes | DtypeKind::Void | DtypeKind::Bool => '|',
            DtypeKind::Int | DtypeKind::Uint if self.bytes == 1 => '|',
            _ if self.big_endian => '>',
            _ => '<',
        };
        let (letter, count, unit) = match self.kind {
            DtypeKind::Bool => ('b', 1, None),
            DtypeKind::Int => ('i', self.bytes, None),
            DtypeKind::Uint => ('u', self.bytes, None),
            DtypeKind::Float => ('f', self.bytes, None),
            DtypeKind::Complex => ('c', self.bytes, None),
            DtypeKind::Bytes => ('S', self.bytes, None),
            DtypeKind::Text => ('U', self.bytes / 4, None),
            DtypeKind::Void => ('V', self.bytes, None),
            DtypeKind::Datetime(unit) => ('M', 8, Some(unit)),
            DtypeKind::Timedelta(unit) => ('m', 8, Some(unit)),
        };
        let unit = unit.map(|unit| format!("[{}]", unit.text())).unwrap_or_default();
        format!("{order}{letter}{count}{unit}")
    }

    /// The size of the groups of bytes that are swapped.
    pub(in crate::formats) fn unit_bytes(self) -> u64 {
        match self.kind {
            DtypeKind::Complex => self.bytes / 2,
            DtypeKind::Text => 4,
            _ => self.bytes,
        }
    }

    /// Whether NaT values become nulls.
    pub(in crate::formats) fn is_nullable(self) -> bool {
        matches!(self.kind, DtypeKind::Datetime(_) | DtypeKind::Timedelta(_))
    }

    /// Its Arrow type.
    pub(in crate::formats) fn arrow(self) -> DataType {
        let sized = |types: [DataType; 4]| {
            let [one, two, four, eight] = types;
            match self.bytes {
                1 => one,
                2 => two,
                4 => four,
                _ => eight,
            }
        };
        use DataType::*;
        match self.kind {
            DtypeKind::Bool => Boolean,
            DtypeKind::Int => sized([Int8, Int16, Int32, Int64]),
            DtypeKind::Uint => sized([UInt8, UInt16, UInt32, UInt64]),
            DtypeKind::Float => sized([Float16, Float16, Float32, Float64]),
            DtypeKind::Complex => complex(if self.bytes == 8 { Float32 } else { Float64 }),
            DtypeKind::Bytes => Binary,
            DtypeKind::Text => Utf8,
            DtypeKind::Void => FixedSizeBinary(i32::try_from(self.bytes).unwrap_or(i32::MAX)),
            DtypeKind::Datetime(unit) if unit.is_days() => Date32,
            DtypeKind::Datetime(unit) => Timestamp(unit.arrow(), None),
            DtypeKind::Timedelta(unit) => Duration(unit.arrow()),
        }
    }
}

/// The storage of a complex number.
pub(in crate::formats) fn complex(part: DataType) -> DataType {
    DataType::FixedSizeList(Arc::new(Field::new_list_field(part, false)), 2)
}

impl Dtype {
    /// Parses the `descr` of a header.
    pub(in crate::formats) fn parse(descr: &Literal) -> Result<Dtype> {
        match descr {
            Literal::Text(text) => Scalar::parse(text).map(Dtype::Scalar),
            Literal::List(items) => {
                let members: Vec<Member> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| Member::parse(item).index(index as u64))
                    .collect::<Result<_>>()?;
                let mut names: Vec<&str> = members
                    .iter()
                    .filter(|member| !member.is_padding())
                    .map(|member| member.name.as_str())
                    .collect();
                names.sort_unstable();
                if let Some(name) = names.windows(2).find_map(|pair| match pair {
                    [one, two] if one == two => Some(one),
                    _ => None,
                }) {
                    return Err(Error::malformed("distinct field names", format_args!("{name:?} twice"))
                        .rule("descr"));
                }
                Ok(Dtype::Struct(members))
            }
            other => Err(Error::malformed("a dtype string or a list of fields", other).rule("descr")),
        }
    }

    /// The canonical `descr`, as NumPy writes it.
    pub(in crate::formats) fn descr(&self) -> Literal {
        match self {
            Dtype::Scalar(scalar) => Literal::Text(scalar.text()),
            Dtype::Struct(members) => Literal::List(members.iter().map(Member::descr).collect()),
        }
    }

    /// Bytes per element; `None` if they overflow.
    pub(in crate::formats) fn bytes(&self) -> Option<u64> {
        match self {
            Dtype::Scalar(scalar) => Some(scalar.bytes),
            Dtype::Struct(members) => {
                members.iter().try_fold(0u64, |sum, member| sum.checked_add(member.bytes()?))
            }
        }
    }

    /// Whether any field is stored big-endian.
    pub(in crate::formats) fn is_big_endian(&self) -> bool {
        match self {
            Dtype::Scalar(scalar) => scalar.big_endian,
            Dtype::Struct(members) => members.iter().any(|member| member.dtype.is_big_endian()),
        }
    }

    /// The same type, stored little-endian.
    pub(in crate::formats) fn little_endian(&self) -> Dtype {
        match self {
            Dtype::Scalar(scalar) => Dtype::Scalar(Scalar { big_endian: false, ..*scalar }),
            Dtype::Struct(members) => Dtype::Struct(
                members
                    .iter()
                    .map(|member| Member { dtype: member.dtype.little_endian(), ..member.clone() })
                    .collect(),
            ),
        }
    }

    /// The Arrow field of one element.
    pub(in crate::formats) fn field(&self, name: &str) -> Result<Field> {
        Ok(match self {
            Dtype::Scalar(scalar) => {
                let field = Field::new(name, scalar.arrow(), scalar.is_nullable());
                if scalar.kind == DtypeKind::Complex {
                    extension::with(field, extension::COMPLEX, None)
                } else {
                    field
                }
            }
            Dtype::Struct(members) => {
                let named = members.iter().filter(|member| !member.is_padding());
                let fields: Vec<Field> = named.map(Member::field).collect::<Result<_>>()?;
                Field::new(name, DataType::Struct(Fields::from(fields)), false)
            }
        })
    }
}

impl Member {
    fn parse(item: &Literal) -> Result<Member> {
        let bad = || {
            let expected = "a field such as ('x', '<f8') or ('x', '<f8', (3,))";
            Error::malformed(expected, item).rule("descr")
        };
        let Literal::Tuple(parts) = item else { return Err(bad()) };
        let (name, dtype, shape) = match parts.as_slice() {
            [name, dtype] => (name, dtype, None),
            [name, dtype, shape] => (name, dtype, Some(shape)),
            _ => return Err(bad()),
        };
        let (title, name) = match name {
            Literal::Text(name) => (None, name.clone()),
            Literal::Tuple(pair) => match pair.as_slice() {
                [Literal::Text(title), Literal::Text(name)] => (Some(title.clone()), name.clone()),
                _ => return Err(bad()),
            },
            _ => return Err(bad()),
        };
        let dimension = |literal: &Literal| match literal {
            Literal::Whole(count) => u64::try_from(*count).map_err(|_| bad()),
            _ => Err(bad()),
        };
        let shape = match shape {
            None => Vec::new(),
            Some(Literal::Tuple(dimensions)) => dimensions.iter().map(dimension).collect::<Result<_>>()?,
            Some(count) => vec![dimension(count)?],
        };
        let dtype = Dtype::parse(dtype).field(name.clone())?;
        let member = Member { name, title, dtype, shape };
        member.bytes().filter(|bytes| i64::try_from(*bytes).is_ok()).ok_or_else(bad)?;
        Ok(member)
    }

    fn descr(&self) -> Literal {
        let name = Literal::Text(self.name.clone());
        let name = match &self.title {
            Some(title) => Literal::Tuple(vec![Literal::Text(title.clone()), name]),
            None => name,
        };
        let mut parts = vec![name, self.dtype.descr()];
        if !self.shape.is_empty() {
            parts.push(Literal::Tuple(
                self.shape.iter().map(|count| Literal::Whole(i128::from(*count))).collect(),
            ));
        }
        Literal::Tuple(parts)
    }

    /// NumPy writes the gaps of an aligned record as nameless void fields.
    pub(in crate::formats) fn is_padding(&self) -> bool {
        self.name.is_empty() && matches!(self.dtype, Dtype::Scalar(Scalar { kind: DtypeKind::Void, .. }))
    }

    /// Elements of the subarray; 1 if there is none.
    pub(in crate::formats) fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, count| product.checked_mul(*count))
    }

    /// Bytes of the field in one record.
    pub(in crate::formats) fn bytes(&self) -> Option<u64> {
        self.elements()?.checked_mul(self.dtype.bytes()?)
    }

    fn field(&self) -> Result<Field> {
        let item = self.dtype.field(&self.name)?;
        if self.shape.is_empty() { Ok(item) } else { tensor(&self.name, item, &self.shape) }
    }
}

/// A field with `shape` elements per row: a tensor, or nested fixed lists if elements are nullable.
pub(in crate::formats) fn tensor(name: &str, item: Field, shape: &[u64]) -> Result<Field> {
    let too_many = || Error::unsupported(format!("{shape:?} elements a row (at most 2147483647 fit)"));
    if item.is_nullable() {
        let mut field = item.with_name(Field::LIST_FIELD_DEFAULT_NAME);
        for count in shape.iter().rev() {
            let count = i32::try_from(*count).map_err(|_| too_many())?;
            field = Field::new_fixed_size_list(Field::LIST_FIELD_DEFAULT_NAME, field, count, false);
        }
        return Ok(field.with_name(name));
    }
    let plain = extension::tensor_field(name, item.data_type().clone(), shape, false).ok_or_else(too_many)?;
    let DataType::FixedSizeList(_, size) = plain.data_type() else { return Err(too_many()) };
    let item = Arc::new(item.with_name(Field::LIST_FIELD_DEFAULT_NAME));
    Ok(plain.clone().with_data_type(DataType::FixedSizeList(item, *size)))
}
