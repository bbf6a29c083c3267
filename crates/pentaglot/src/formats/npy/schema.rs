//! Maps NumPy's types to Arrow's, and back.

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use serde_json::json;

use super::layout::Header;
use super::types::{self, Dtype, DtypeKind, Member, Scalar, Unit};
use crate::error::{Error, Result};
use crate::hub::{Effect, Form, LossKind, extension, relax, shape};

/// The schema of an array's rows.
pub(in crate::formats) fn arrow_schema(header: &Header) -> Result<Schema> {
    let item = header.dtype.field(shape::ITEM_FIELD)?;
    let structured = matches!(header.dtype, Dtype::Struct(_));
    match header.shape.as_slice() {
        [] => Ok(shape::value_schema(item)),
        [_] if structured => match item.data_type() {
            DataType::Struct(fields) => Ok(Schema::new(fields.clone())),
            _ => Err(Error::unsupported("a structured type without fields")),
        },
        [_] => Ok(shape::array_schema(item)),
        [rows, cols] if !structured => {
            let plain = shape::dense_schema(item.data_type().clone(), Some(*rows), *cols)?;
            let item = item.with_name(Field::LIST_FIELD_DEFAULT_NAME);
            let width = i32::try_from(*cols).unwrap_or(i32::MAX);
            let row = Field::new_fixed_size_list(shape::ROW_FIELD, item, width, false);
            let mut metadata = plain.metadata().clone();
            if header.is_column_major() {
                metadata.insert(shape::ORDER_KEY.to_owned(), "F".to_owned());
            }
            Ok(Schema::new_with_metadata(vec![row], metadata))
        }
        [_, inner @ ..] => {
            let plain = shape::array_schema(types::tensor(shape::ITEM_FIELD, item, inner)?);
            let mut metadata = plain.metadata().clone();
            if header.is_column_major() {
                metadata.insert(shape::ORDER_KEY.to_owned(), "F".to_owned());
            }
            Ok(plain.with_metadata(metadata))
        }
    }
}

/// The native type, with which the same bytes can be written again.
pub(super) fn native_type(header: &Header) -> serde_json::Value {
    let descr = header.dtype.descr().to_string();
    let mut native = json!({
        "descr": descr,
        "fortran_order": header.fortran_order,
        "shape": header.shape,
        "version": format!("{}.0", header.version),
    });
    if !header.is_canonical()
        && let Some(map) = native.as_object_mut()
    {
        map.insert("header".to_owned(), json!(header.text));
    }
    native
}

/// The NumPy type of an Arrow field: a dtype, the dimensions of one value, and the effect on values.
#[derive(Debug, Clone)]
pub(in crate::formats) struct Derived {
    pub(in crate::formats) dtype: Dtype,
    pub(in crate::formats) shape: Vec<u64>,
    pub(in crate::formats) effect: Effect,
}

impl Derived {
    fn new(kind: DtypeKind, bytes: u64) -> Self {
        let dtype = Dtype::Scalar(Scalar::new(kind, bytes));
        Derived { dtype, shape: Vec::new(), effect: Effect::exact() }
    }

    fn and(mut self, effect: Effect) -> Self {
        self.effect = self.effect.and(effect);
        self
    }
}

/// The NumPy type of a field; `Err` says why there is none. In a matrix (`pairs`), two floats are a complex
/// number even if the extension name was lost.
pub(in crate::formats) fn derive(field: &Field, pairs: bool) -> Result<Derived, String> {
    use DataType::*;
    let derived = match field.data_type() {
        Boolean => Derived::new(DtypeKind::Bool, 1),
        Int8 => Derived::new(DtypeKind::Int, 1),
        Int16 => Derived::new(DtypeKind::Int, 2),
        Int32 => Derived::new(DtypeKind::Int, 4),
        Int64 => Derived::new(DtypeKind::Int, 8),
        UInt8 => Derived::new(DtypeKind::Uint, 1),
        UInt16 => Derived::new(DtypeKind::Uint, 2),
        UInt32 => Derived::new(DtypeKind::Uint, 4),
        UInt64 => Derived::new(DtypeKind::Uint, 8),
        Float16 => Derived::new(DtypeKind::Float, 2),
        Float32 => Derived::new(DtypeKind::Float, 4),
        Float64 => Derived::new(DtypeKind::Float, 8),
        FixedSizeBinary(size) => Derived::new(DtypeKind::Void, u64::try_from(*size).unwrap_or(0)),
        Utf8 => Derived::new(DtypeKind::Text, 0).and(range("a text must not end in NUL")),
        Binary => Derived::new(DtypeKind::Bytes, 0).and(range("a value must not end in a zero byte")),
        LargeUtf8 => Derived::new(DtypeKind::Text, 0).and(range("a text must not end in NUL")),
        LargeBinary => Derived::new(DtypeKind::Bytes, 0).and(range("a value must not end in a zero byte")),
        Date32 => Derived::new(DtypeKind::Datetime(Unit::of("D")), 8),
        Date64 => Derived::new(DtypeKind::Datetime(Unit::of("ms")), 8).and(range("the lowest value is NaT")),
        Timestamp(unit, zone) => {
            let derived =
                Derived::new(DtypeKind::Datetime(unit_of(*unit)), 8).and(range("the lowest value is NaT"));
            match zone {
                Some(_) => derived.and(
                    Effect::lossy(LossKind::Timezone)
                        .because("NumPy has no time zones; the instants are kept"),
                ),
                None => derived,
            }
        }
        Duration(unit) => {
            Derived::new(DtypeKind::Timedelta(unit_of(*unit)), 8).and(range("the lowest value is NaT"))
        }
        Time32(unit) | Time64(unit) => Derived::new(DtypeKind::Timedelta(unit_of(*unit)), 8).and(
            Effect::lossy(LossKind::Metadata)
                .because("a time of day becomes the time since midnight: it comes back as a duration"),
        ),
        FixedSizeList(item, size) => {
            let float = matches!(item.data_type(), Float32 | Float64);
            let complex = extension::name(field) == Some(extension::COMPLEX)
                || pairs && extension::name(field).is_none();
            let dimensions = match extension::tensor_shape(field) {
                Some(shape) => shape,
                None => vec![u64::try_from(*size).unwrap_or(0)],
            };
            if *size == 2 && float && complex {
                let bytes = if *item.data_type() == Float32 { 8 } else { 16 };
                let derived = Derived::new(DtypeKind::Complex, bytes);
                if item.is_nullable() { derived.and(nulls(item)) } else { derived }
            } else {
                if extension::metadata(field).is_some_and(|text| text.contains("\"permutation\"")) {
                    return Err("a tensor whose dimensions are permuted".to_owned());
                }
                let inner = derive(item, false)?;
                let shape = dimensions.into_iter().chain(inner.shape.iter().copied()).collect();
                Derived { shape, ..inner }
            }
        }
        Struct(fields) => {
            let mut members = Vec::new();
            let mut all = Derived { dtype: Dtype::Struct(vec![]), shape: vec![], effect: Effect::exact() };
            for field in fields {
                let own = derive(field, false).map_err(|why| format!("field {:?}: {why}", field.name()))?;
                all.effect = all.effect.and(own.effect);
                if field.name().is_empty() {
                    return Err("a field without a name".to_owned());
                }
                if members.iter().any(|member: &Member| member.name == *field.name()) {
                    return Err(format!("two fields named {:?}", field.name()));
                }
                members.push(Member {
                    name: field.name().clone(),
                    title: None,
                    dtype: own.dtype,
                    shape: own.shape,
                });
            }
            if members.is_empty() {
                return Err("a struct without fields".to_owned());
            }
            Derived { dtype: Dtype::Struct(members), ..all }
        }
        _ => return Err("NumPy has no such type".to_owned()),
    };
    let derived = match extension::name(field) {
        None | Some(extension::COMPLEX | extension::FIXED_SHAPE_TENSOR) => derived,
        Some(_) => derived.and(extension::dropped(field)),
    };
    let keeps_nulls =
        matches!(derived.dtype, Dtype::Scalar(scalar) if scalar.is_nullable()) && derived.shape.is_empty();
    Ok(if field.is_nullable() && !keeps_nulls { derived.and(nulls(field)) } else { derived })
}

fn range(note: &str) -> Effect {
    Effect::checked(LossKind::Range).because(note)
}

fn nulls(field: &Field) -> Effect {
    relax::no_nulls(field.data_type(), "NumPy has no nulls")
}

fn unit_of(unit: TimeUnit) -> Unit {
    Unit::of(match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    })
}

/// The NumPy type of rows of a schema, from their Arrow types alone, without the outermost dimension.
pub(in crate::formats) fn derive_rows(schema: &Schema) -> Result<Derived, String> {
    match Form::of(schema) {
        Form::Dense => {
            let field = schema.field(0);
            let DataType::FixedSizeList(item, cols) = field.data_type() else {
                return Err("a matrix whose rows are not lists".to_owned());
            };
            let value = derive(item, true)?;
            let cols = u64::try_from(*cols).unwrap_or(0);
            Ok(Derived { shape: std::iter::once(cols).chain(value.shape.iter().copied()).collect(), ..value })
        }
        Form::Array | Form::Value => derive(schema.field(0), false),
        Form::Table => {
            let record = Field::new("", DataType::Struct(schema.fields().clone()), false);
            derive(&record, false)
        }
        Form::Sparse | Form::Columns | Form::Coo => {
            Err("a matrix in a form that NumPy has no array for".to_owned())
        }
    }
}
