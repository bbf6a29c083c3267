//! Datashape types as Arrow fields: which is which. The way back is [`plan`](super::plan).

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use super::types::{FloatWidth, Type, Width, Zone};
use crate::error::{Error, Result};
use crate::hub::extension;
use crate::hub::{Shape, native, shape};

/// The id under which the native type travels.
pub(super) const ID: &str = "dynd";

/// How a type's data shows as rows.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) shape: Shape,
    pub(super) rows: RowCount,
    /// The type of one row's data.
    pub(super) row: Type,
    /// The logical type and the axes, if all data stands in another order than the rows.
    pub(super) stored: Option<(Type, Vec<usize>)>,
}

/// What says how many rows there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowCount {
    /// The type.
    Fixed(u64),
    /// A varint before the data.
    Var,
    /// It is a single value.
    One,
}

impl Layout {
    pub(super) fn of(ty: &Type) -> Self {
        let (logical, stored) = match ty.pointee() {
            Type::Storage { of, axis } => (of.as_ref(), Some((of.as_ref().clone(), axis.clone()))),
            other => (other, None),
        };
        let (rows, element) = match logical {
            Type::Fixed(count, of) => (RowCount::Fixed(*count), of.as_ref()),
            Type::Var(of) => (RowCount::Var, of.as_ref()),
            other => (RowCount::One, other),
        };
        let shape = match (rows, element.pointee()) {
            (RowCount::One, _) => Shape::Value,
            (_, Type::Struct(_)) => Shape::Table,
            (RowCount::Fixed(_), Type::Fixed(_, of)) if plain_number(of).is_some() => Shape::Matrix,
            _ => Shape::Array,
        };
        let row = if rows == RowCount::One { ty.pointee() } else { element.pointee() };
        Layout { shape, rows, row: row.clone(), stored: stored.filter(|_| rows != RowCount::One) }
    }

    /// The fields of the rows, each with the type of its data.
    pub(super) fn fields(&self) -> Result<Vec<Field>> {
        match (self.shape, &self.row) {
            (Shape::Table, Type::Struct(fields)) => {
                fields.iter().map(|(name, ty)| field_of(name, ty)).collect()
            }
            (Shape::Matrix, row) => Ok(vec![field_of(shape::ROW_FIELD, row)?]),
            (Shape::Array, row) => Ok(vec![field_of(shape::ITEM_FIELD, row)?]),
            (_, row) => Ok(vec![field_of(shape::VALUE_FIELD, row)?]),
        }
    }

    /// The columns of a row: their names and types.
    pub(super) fn columns(&self) -> Vec<Type> {
        match (self.shape, &self.row) {
            (Shape::Table, Type::Struct(fields)) => fields.iter().map(|(_, ty)| ty.clone()).collect(),
            (_, row) => vec![row.clone()],
        }
    }
}

/// The Arrow schema of a type's data, with shape and native type in its metadata.
///
/// ```
/// use pentaglot::formats::dynd::{Type, arrow_schema};
/// let schema = arrow_schema(&"var * {x: ?int32, y: string}".parse::<Type>()?)?;
/// assert_eq!(schema.fields().len(), 2);
/// assert!(schema.field(0).is_nullable());
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn arrow_schema(ty: &Type) -> Result<Schema> {
    if !ty.is_concrete() {
        return Err(Error::unsupported(format!("no data has the type {ty}, so it has no Arrow schema")));
    }
    let layout = Layout::of(ty);
    let fields = layout.fields()?;
    let metadata = match (layout.shape, layout.rows, &layout.row) {
        (Shape::Matrix, RowCount::Fixed(rows), Type::Fixed(cols, _)) => {
            let mut metadata = shape::matrix_metadata(Some(rows), *cols);
            if matches!(ty, Type::Storage { .. }) {
                metadata.insert(shape::ORDER_KEY.to_owned(), "F".to_owned());
            }
            metadata
        }
        (Shape::Table, ..) => [(shape::SHAPE_KEY.to_owned(), Shape::Table.name().to_owned())].into(),
        (shape, ..) => [(shape::SHAPE_KEY.to_owned(), shape.name().to_owned())].into(),
    };
    let schema = Schema::new_with_metadata(fields, metadata);
    Ok(native::with(schema, ID, ty.to_string()))
}

/// The schema with times as numbers of their ticks, which hold what 64 bits of nanoseconds do not. In a schema of
/// [`arrow_schema`] no other type than `time` and `datetime` becomes a time in nanoseconds.
pub(super) fn with_ticks(schema: &Schema) -> Schema {
    fn field(field: &Arc<Field>) -> Arc<Field> {
        Arc::new(field.as_ref().clone().with_data_type(data_type(field.data_type())))
    }
    fn data_type(of: &DataType) -> DataType {
        match of {
            DataType::Timestamp(..) | DataType::Time64(_) => DataType::Int64,
            DataType::List(item) => DataType::List(field(item)),
            DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
            other => other.clone(),
        }
    }
    Schema::new_with_metadata(
        schema.fields().iter().map(field).collect::<Fields>(),
        schema.metadata().clone(),
    )
}

/// Plain numbers: what matrices and tensors are made of.
pub(super) fn plain_number(ty: &Type) -> Option<DataType> {
    Some(match ty {
        Type::Bool => DataType::Boolean,
        Type::Int(Width::W8) => DataType::Int8,
        Type::Int(Width::W16) => DataType::Int16,
        Type::Int(Width::W32) => DataType::Int32,
        Type::Int(Width::W64) => DataType::Int64,
        Type::Uint(Width::W8) => DataType::UInt8,
        Type::Uint(Width::W16) => DataType::UInt16,
        Type::Uint(Width::W32) => DataType::UInt32,
        Type::Uint(Width::W64) => DataType::UInt64,
        Type::Float(width) => float(*width)?,
        _ => return None,
    })
}

fn float(width: FloatWidth) -> Option<DataType> {
    match width {
        FloatWidth::W16 => Some(DataType::Float16),
        FloatWidth::W32 => Some(DataType::Float32),
        FloatWidth::W64 => Some(DataType::Float64),
        FloatWidth::W128 => None,
    }
}

/// The dimensions of a tensor of plain numbers (two or more), and the number type.
pub(super) fn tensor(ty: &Type) -> Option<(Vec<u64>, &Type)> {
    let (dims, element) = ty.fixed_dims();
    (dims.len() >= 2 && plain_number(element).is_some()).then_some((dims, element))
}

/// Whether `?of` needs a struct round its value, since the value itself may be null.
pub(super) fn needs_some(of: &Type) -> bool {
    matches!(of, Type::Pointer(_)) && matches!(of.pointee(), Type::Option(_) | Type::Void)
}

/// The field of something inside a list or struct: Arrow wants Null to be nullable there.
fn inner_field_of(name: &str, ty: &Type) -> Result<Field> {
    let field = field_of(name, ty)?;
    let nullable = field.is_nullable() || field.data_type() == &DataType::Null;
    Ok(field.with_nullable(nullable))
}

/// The Arrow field of data of a concrete type.
pub(super) fn field_of(name: &str, ty: &Type) -> Result<Field> {
    let plain = |data_type| Ok(Field::new(name, data_type, false));
    let extended =
        |data_type, extension: &str| Ok(extension::with(Field::new(name, data_type, false), extension, None));
    let size = |size: u64| {
        i32::try_from(size)
            .map_err(|_| Error::limit("the limit", i32::MAX, format!("{size} elements in a fixed dimension")))
    };
    if let Some(number) = plain_number(ty) {
        return plain(number);
    }
    match ty {
        Type::Int(_) => extended(DataType::FixedSizeBinary(16), extension::INT128),
        Type::Uint(_) => extended(DataType::FixedSizeBinary(16), extension::UINT128),
        Type::Float(_) => extended(DataType::FixedSizeBinary(16), extension::FLOAT128),
        Type::Complex(width) => {
            let part = field_of(Field::LIST_FIELD_DEFAULT_NAME, &Type::Float(*width))?;
            extended(DataType::FixedSizeList(Arc::new(part), 2), extension::COMPLEX)
        }
        Type::Void => plain(DataType::Null),
        Type::String | Type::FixedString { .. } => plain(DataType::Utf8),
        Type::Json => extended(DataType::Utf8, extension::JSON),
        Type::Char(_) => extended(DataType::Utf8, extension::CHAR),
        Type::Type => extended(DataType::Utf8, extension::DYND_TYPE),
        Type::Date => plain(DataType::Date32),
        Type::Time(_) => plain(DataType::Time64(TimeUnit::Nanosecond)),
        Type::Datetime(zone) => {
            let zone = (*zone == Zone::Utc).then(|| "UTC".into());
            plain(DataType::Timestamp(TimeUnit::Nanosecond, zone))
        }
        Type::Bytes { .. } => plain(DataType::Binary),
        Type::FixedBytes { size: bytes, .. } => plain(DataType::FixedSizeBinary(size(*bytes)?)),
        Type::Fixed(count, of) => match tensor(ty) {
            Some((dims, element)) => {
                let number = plain_number(element).unwrap_or(DataType::Null);
                extension::tensor_field(name, number, &dims, false).ok_or_else(|| {
                    Error::limit("the limit", i32::MAX, format!("{dims:?} elements in a tensor"))
                })
            }
            None => {
                let item = inner_field_of(Field::LIST_FIELD_DEFAULT_NAME, of)?;
                plain(DataType::FixedSizeList(Arc::new(item), size(*count)?))
            }
        },
        Type::Var(of) => {
            let item = inner_field_of(Field::LIST_FIELD_DEFAULT_NAME, of)?;
            plain(DataType::List(Arc::new(item)))
        }
        Type::Tuple(fields) => {
            let fields =
                fields.iter().enumerate().map(|(index, ty)| inner_field_of(&format!("_{index}"), ty));
            extended(DataType::Struct(fields.collect::<Result<Fields>>()?), extension::TUPLE)
        }
        Type::Struct(fields) => {
            let fields = fields.iter().map(|(name, ty)| inner_field_of(name, ty));
            plain(DataType::Struct(fields.collect::<Result<Fields>>()?))
        }
        Type::Option(of) if needs_some(of) => {
            let some = inner_field_of("some", of.pointee())?;
            Ok(Field::new(name, DataType::Struct(vec![some].into()), true))
        }
        Type::Option(of) => Ok(field_of(name, of)?.with_nullable(true)),
        Type::Pointer(of) | Type::Storage { of, .. } => field_of(name, of),
        Type::Array(_) => {
            let fields =
                vec![Field::new("type", DataType::Utf8, false), Field::new("data", DataType::Binary, false)];
            extended(DataType::Struct(fields.into()), extension::DYND_ARRAY)
        }
        Type::Bool | Type::Pattern(_) => Err(Error::unsupported(format!("no Arrow type for {ty}"))),
    }
}
