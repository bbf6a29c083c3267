//! Datashape types as Arrow fields, and Arrow fields as datashape types.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use super::layout::{RowCount, RowLayout};
use super::types::{Encoding, FloatWidth, Missing, Pattern, Type, TypeKind, Width, Zone};
use super::write::plan_type;
use crate::error::{Error, Result};
use crate::hub::extension::{self, FIXED_SHAPE_TENSOR};
use crate::hub::type_text::print_type;
use crate::hub::{Effect, LossKind, Shape, native, shape};

/// The id of the native type.
pub(super) const ID: &str = "dynd";

impl Type {
    /// The Arrow schema of this type's data, with shape and native type in its metadata.
    ///
    /// ```
    /// use pentaglot::formats::dynd::Type;
    /// let schema = Type::parse("var * {x: ?int32, y: string}")?.to_schema()?;
    /// assert_eq!(schema.fields().len(), 2);
    /// assert!(schema.field(0).is_nullable());
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    pub fn to_schema(&self) -> Result<Schema> {
        if !self.is_concrete() {
            return Err(Error::unsupported(format!(
                "no data has the type {self}, so it has no Arrow schema"
            )));
        }
        let layout = RowLayout::of(self);
        let fields = layout.fields()?;
        let metadata = match (layout.shape, layout.rows, &layout.row) {
            (Shape::Matrix, RowCount::Fixed(rows), Type::Fixed(cols, _)) => {
                let mut metadata = shape::matrix_metadata(Some(rows), *cols);
                if matches!(self, Type::Storage { .. }) {
                    metadata.insert(shape::ORDER_KEY.to_owned(), "F".to_owned());
                }
                metadata
            }
            (Shape::Table, ..) => [(shape::SHAPE_KEY.to_owned(), Shape::Table.name().to_owned())].into(),
            (shape, ..) => [(shape::SHAPE_KEY.to_owned(), shape.name().to_owned())].into(),
        };
        let schema = Schema::new_with_metadata(fields, metadata);
        Ok(native::with(schema, ID, self.to_string()))
    }

    /// The datashape type that rows of an Arrow schema are written as, without the options of a writer.
    ///
    /// ```
    /// use pentaglot::formats::dynd::Type;
    /// use pentaglot::arrow::schema::{DataType, Field, Schema};
    /// let schema = Schema::new(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, false)]);
    /// assert_eq!(Type::from_schema(&schema)?.to_string(), "var * {x: ?int32, y: string}");
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    pub fn from_schema(schema: &Schema) -> Result<Type> {
        Type::of_rows(schema, None)
    }

    /// Like [`from_schema`](Self::from_schema), for this many rows: an array of known length is `N * T`.
    ///
    /// ```
    /// use pentaglot::formats::dynd::Type;
    /// let schema = Type::parse("var * int8")?.to_schema()?;
    /// let schema = pentaglot::hub::native::without(&schema.into());
    /// assert_eq!(Type::of_rows(&schema, Some(3))?.to_string(), "3 * int8");
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    pub fn of_rows(schema: &Schema, row_count: Option<u64>) -> Result<Type> {
        let planned = plan_type(schema, None, row_count, false);
        planned.plan.check(crate::hub::LossKinds::ALL)?;
        planned.ty.ok_or_else(|| Error::unsupported("this schema has no datashape"))
    }
}

/// The schema with times as numbers of ticks, whose range is larger than that of 64-bit nanoseconds. In a schema
/// of [`Type::to_schema`] no other type than `time` and `datetime` becomes a time in nanoseconds.
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

/// Whether the value of `?of` is wrapped in a struct, since the value itself may be null.
pub(super) fn needs_some(of: &Type) -> bool {
    matches!(of, Type::Pointer(_)) && matches!(of.pointee(), Type::Option(_) | Type::Void)
}

/// The field of something inside a list or struct: Arrow requires Null to be nullable there.
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
        Type::Merkle(_) => {
            let fields =
                vec![Field::new("type", DataType::Utf8, false), Field::new("hash", DataType::Binary, false)];
            extended(DataType::Struct(fields.into()), extension::DYND_MERKLE)
        }
        Type::Bool | Type::Pattern(_) => Err(Error::unsupported(format!("no Arrow type for {ty}"))),
    }
}

/// The type with a flag byte for every option: `?pointer[T]` has no sentinel.
pub(super) fn with_flags(ty: &Type) -> Type {
    let boxed = |ty: &Type| Box::new(with_flags(ty));
    match ty {
        Type::Option(of) if has_sentinel_value(of) => Type::Option(Box::new(Type::Pointer(of.clone()))),
        Type::Option(of) => Type::Option(boxed(of)),
        Type::Fixed(count, of) => Type::Fixed(*count, boxed(of)),
        Type::Var(of) => Type::Var(boxed(of)),
        Type::Pointer(of) => Type::Pointer(boxed(of)),
        Type::Tuple(fields) => Type::Tuple(fields.iter().map(with_flags).collect()),
        Type::Struct(fields) => {
            Type::Struct(fields.iter().map(|(name, ty)| (name.clone(), with_flags(ty))).collect())
        }
        other => other.clone(),
    }
}

/// Whether a value of the type may equal the sentinel.
fn has_sentinel_value(ty: &Type) -> bool {
    matches!(ty.missing(), Missing::Sentinel(_)) && *ty != Type::Bool
}

/// The checks when rows of exactly this type are written.
pub(super) fn checks_of(ty: &Type) -> Effect {
    match ty {
        Type::Option(of) if has_sentinel_value(of) => {
            Effect::checked(LossKind::Range).because(sentinel_note(of)).and(checks_of(of))
        }
        Type::Option(of)
        | Type::Pointer(of)
        | Type::Fixed(_, of)
        | Type::Var(of)
        | Type::Storage { of, .. } => checks_of(of),
        Type::Tuple(fields) => fields.iter().map(checks_of).fold(Effect::exact(), Effect::and),
        Type::Struct(fields) => fields.iter().map(|(_, ty)| checks_of(ty)).fold(Effect::exact(), Effect::and),
        Type::Time(_) | Type::Datetime(_) => Effect::checked(LossKind::Precision).because(TICKS),
        Type::FixedString { .. } | Type::Char(_) | Type::Type | Type::Array(_) | Type::Merkle(_) => {
            Effect::checked(LossKind::Range).because(format!("each must be a {ty}"))
        }
        _ => Effect::exact(),
    }
}

const TICKS: &str = "in ticks of 100 ns";

fn sentinel_note(of: &Type) -> String {
    let what = match of {
        Type::Uint(_) => "4294967295".to_owned(),
        Type::Int(_) | Type::Date | Type::Time(_) | Type::Datetime(_) => "the least value".to_owned(),
        _ => "one NaN".to_owned(),
    };
    format!("{what} means missing in ?{of}; the option options=flag has no such value")
}

/// Derives types, keeping the worst verdict.
pub(super) struct Derived {
    pub(super) flag: bool,
    pub(super) effect: Effect,
}

impl Derived {
    fn worse(&mut self, effect: Effect, note: impl Into<String>) {
        let effect = effect.because(note);
        self.effect = std::mem::replace(&mut self.effect, Effect::exact()).and(effect);
    }

    pub(super) fn field(&mut self, field: &Field) -> Result<Type, String> {
        let ty = self.data_type(field)?;
        if !field.is_nullable() {
            return Ok(ty);
        }
        if has_sentinel_value(&ty) {
            if self.flag {
                return Ok(Type::Option(Box::new(Type::Pointer(Box::new(ty)))));
            }
            self.worse(Effect::checked(LossKind::Range), sentinel_note(&ty));
        }
        Ok(match ty {
            // The values of a dictionary of a nullable field may already be an option.
            Type::Option(_) => ty,
            other => Type::Option(Box::new(other)),
        })
    }

    fn boxed(&mut self, field: &Field) -> Result<Box<Type>, String> {
        self.field(field).map(Box::new)
    }

    fn fields(&mut self, fields: &Fields) -> Result<Vec<(String, Type)>, String> {
        let (mut out, mut names) = (Vec::new(), HashSet::new());
        for field in fields {
            if !names.insert(field.name()) {
                return Err("a struct holds each field name once".to_owned());
            }
            out.push((field.name().clone(), self.field(field)?));
        }
        Ok(out)
    }

    fn data_type(&mut self, field: &Field) -> Result<Type, String> {
        if let Some(ty) = self.extension(field)? {
            return Ok(ty);
        }
        Ok(match field.data_type() {
            DataType::Null => Type::Void,
            DataType::Boolean => Type::Bool,
            DataType::Int8 => Type::Int(Width::W8),
            DataType::Int16 => Type::Int(Width::W16),
            DataType::Int32 => Type::Int(Width::W32),
            DataType::Int64 => Type::Int(Width::W64),
            DataType::UInt8 => Type::Uint(Width::W8),
            DataType::UInt16 => Type::Uint(Width::W16),
            DataType::UInt32 => Type::Uint(Width::W32),
            DataType::UInt64 => Type::Uint(Width::W64),
            DataType::Float16 => Type::Float(FloatWidth::W16),
            DataType::Float32 => Type::Float(FloatWidth::W32),
            DataType::Float64 => Type::Float(FloatWidth::W64),
            DataType::Utf8 => Type::String,
            DataType::LargeUtf8 | DataType::Utf8View => {
                self.worse(Effect::widened(), "comes back as utf8");
                Type::String
            }
            DataType::Binary => Type::Bytes { align: 1 },
            DataType::LargeBinary | DataType::BinaryView => {
                self.worse(Effect::widened(), "comes back as binary");
                Type::Bytes { align: 1 }
            }
            DataType::FixedSizeBinary(size) => match u64::try_from(*size) {
                Ok(size) if size > 0 => Type::FixedBytes { size, align: 1 },
                _ => return Err("bytes[0] is not a type".to_owned()),
            },
            DataType::Date32 => Type::Date,
            DataType::Date64 => {
                self.worse(Effect::checked(LossKind::Precision), "whole days only");
                Type::Date
            }
            DataType::Time32(_) | DataType::Time64(TimeUnit::Microsecond) => {
                self.worse(Effect::widened(), TICKS);
                Type::Time(Zone::Abstract)
            }
            DataType::Time64(_) => {
                self.worse(Effect::checked(LossKind::Precision | LossKind::Range), TICKS);
                Type::Time(Zone::Abstract)
            }
            DataType::Timestamp(_, zone) => {
                self.worse(Effect::checked(LossKind::Precision | LossKind::Range), TICKS);
                match zone.as_deref() {
                    None => Type::Datetime(Zone::Abstract),
                    Some("UTC" | "Z" | "+00:00" | "Etc/UTC") => Type::Datetime(Zone::Utc),
                    Some(zone) => {
                        self.worse(Effect::lossy(LossKind::Timezone), format!("the zone {zone} becomes UTC"));
                        Type::Datetime(Zone::Utc)
                    }
                }
            }
            DataType::List(item) => Type::Var(self.boxed(item)?),
            DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
                self.worse(Effect::widened(), "comes back as list");
                Type::Var(self.boxed(item)?)
            }
            DataType::FixedSizeList(item, size) => Type::Fixed(
                u64::try_from(*size).map_err(|_| "a negative size".to_owned())?,
                self.boxed(item)?,
            ),
            DataType::Struct(fields) => Type::Struct(self.fields(fields)?),
            DataType::Dictionary(_, value) => {
                self.worse(Effect::widened(), "each value is written out");
                self.data_type(&Field::new("", value.as_ref().clone(), false))?
            }
            DataType::RunEndEncoded(_, value) => {
                self.worse(Effect::widened(), "each value is written out");
                self.data_type(&value.as_ref().clone().with_nullable(false))?
            }
            other => return Err(format!("{} has no datashape", print_type(other))),
        })
    }

    /// The type of a field with an extension that has one here.
    fn extension(&mut self, field: &Field) -> Result<Option<Type>, String> {
        let Some(name) = extension::name(field) else { return Ok(None) };
        let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        let is_16 = matches!(field.data_type(), DataType::FixedSizeBinary(16));
        Ok(match (name, field.data_type()) {
            (extension::INT128, _) if is_16 => Some(Type::Int(Width::W128)),
            (extension::UINT128, _) if is_16 => Some(Type::Uint(Width::W128)),
            (extension::FLOAT128, _) if is_16 => Some(Type::Float(FloatWidth::W128)),
            (extension::JSON, _) if is_text => Some(Type::Json),
            ("arrow.json", _) if is_text => {
                self.worse(Effect::widened(), "comes back as pentaglot.json");
                Some(Type::Json)
            }
            (extension::CHAR, _) if is_text => {
                self.worse(Effect::checked(LossKind::Range), "each text must be one char");
                Some(Type::Char(Encoding::Utf32))
            }
            (extension::DYND_TYPE, _) if is_text => {
                self.worse(Effect::checked(LossKind::Range), "each text must be a type");
                Some(Type::Type)
            }
            (extension::COMPLEX, DataType::FixedSizeList(part, 2)) if !part.is_nullable() => {
                match self.data_type(part)? {
                    Type::Float(width) => Some(Type::Complex(width)),
                    _ => None,
                }
            }
            (extension::TUPLE, DataType::Struct(fields)) => {
                let fields = fields.iter().map(|field| self.field(field));
                Some(Type::Tuple(fields.collect::<Result<_, String>>()?))
            }
            (extension::DYND_ARRAY, DataType::Struct(fields)) if is_text_and_bytes(fields, "data") => {
                self.worse(Effect::checked(LossKind::Range), "each must be data of its type");
                Some(Type::Array(Box::new(Pattern::Kind(TypeKind::Any).into())))
            }
            (extension::DYND_MERKLE, DataType::Struct(fields)) if is_text_and_bytes(fields, "hash") => {
                self.worse(Effect::checked(LossKind::Range), "each must be a type and a multihash");
                Some(Type::Merkle(Box::new(Pattern::Kind(TypeKind::Any).into())))
            }
            (FIXED_SHAPE_TENSOR, DataType::FixedSizeList(item, _)) => {
                let Some(shape) = extension::tensor_shape(field) else { return Ok(None) };
                let element = self.field(item)?;
                if plain_number(&element).is_none() {
                    self.worse(Effect::widened(), "comes back as nested lists");
                }
                Some(shape.iter().rev().fold(element, |ty, dim| Type::Fixed(*dim, Box::new(ty))))
            }
            (extension::IMAGE, DataType::Binary) => {
                self.worse(extension::dropped(field), "an image becomes plain bytes");
                None
            }
            (name, _) => {
                let effect = extension::dropped(field);
                let note = effect.note.clone();
                self.worse(effect, note.unwrap_or_else(|| format!("the meaning of {name} is not kept")));
                None
            }
        })
    }
}

/// Whether the fields are a type and bytes of this name.
fn is_text_and_bytes(fields: &Fields, bytes: &str) -> bool {
    matches!(fields.as_ref(), [ty, data] if ty.name() == "type" && *ty.data_type() == DataType::Utf8 && !ty.is_nullable()
        && data.name() == bytes && *data.data_type() == DataType::Binary && !data.is_nullable())
}
