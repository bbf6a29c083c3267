//! Arrow schemas as datashape types: the type that rows are written as, and what becomes of each field.

use std::collections::HashSet;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use super::hub::{ID, Layout, RowCount, arrow_schema, plain_number, with_ticks};
use super::types::{Encoding, FloatWidth, Kind, Missing, Pattern, Type, Width, Zone};
use crate::error::{Error, Result};
use crate::hub::extension::{self, FIXED_SHAPE_TENSOR};
use crate::hub::type_text::{print_field, print_type};
use crate::hub::{Effect, Form, LossKind, Plan, native, shape};

/// The datashape type that rows of an Arrow schema are written as, without the options of a writer.
///
/// ```
/// use pentaglot::formats::dynd::type_of_schema;
/// use pentaglot::arrow::schema::{DataType, Field, Schema};
/// let schema = Schema::new(vec![Field::new("x", DataType::Int32, true), Field::new("y", DataType::Utf8, false)]);
/// assert_eq!(type_of_schema(&schema)?.to_string(), "var * {x: ?int32, y: string}");
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn type_of_schema(schema: &Schema) -> Result<Type> {
    let planned = plan_type(schema, None, None, false);
    planned.plan.check(crate::hub::LossKinds::ALL)?;
    planned.ty.ok_or_else(|| Error::unsupported("this schema has no datashape"))
}

/// A type for a schema, and what becomes of each field.
pub(super) struct Planned {
    pub(super) ty: Option<Type>,
    pub(super) plan: Plan,
}

/// The type that rows of `schema` are written as: the one `given`, else the native one where it fits, else derived.
pub(super) fn plan_type(schema: &Schema, given: Option<&str>, row_count: Option<u64>, flag: bool) -> Planned {
    let mut plan = Plan::default();
    let fits = |ty: &Type| {
        let count_fits = match (Layout::of(ty).rows, row_count) {
            (RowCount::Fixed(count), Some(rows)) => count == rows,
            (RowCount::One, Some(rows)) => rows == 1,
            _ => true,
        };
        count_fits
            && ty.is_concrete()
            && arrow_schema(ty).is_ok_and(|own| {
                same_fields(own.fields(), schema.fields())
                    || same_fields(with_ticks(&own).fields(), schema.fields())
            })
    };
    // `--type` is said of the input; it holds for the output too if these rows are of that type.
    let given = given.and_then(|text| text.parse::<Type>().ok()).filter(fits);
    let native = || native::of_sliced(schema, ID).and_then(|native| native.as_str()?.parse().ok());
    let known = given.or_else(|| {
        let native = native().map(|ty: Type| match native::is_sliced(schema) {
            true => with_row_count(ty, row_count),
            false => ty,
        });
        native.filter(fits)
    });
    if let Some(ty) = known {
        let ty = if flag { with_flags(&ty) } else { ty };
        for (field, column) in schema.fields().iter().zip(Layout::of(&ty).columns()) {
            plan.step(field.name(), print_field(field), column.to_string(), checks_of(&column));
        }
        return Planned { ty: Some(ty), plan };
    }
    shape::plan_plain_table(schema, &mut plan);
    let mut columns: Vec<(String, Type)> = Vec::new();
    let mut names = HashSet::new();
    for field in schema.fields() {
        let mut derived = Derived { flag, effect: Effect::exact() };
        let ty = derived.field(field).and_then(|ty| {
            if names.insert(field.name()) {
                Ok(ty)
            } else {
                Err("a struct holds each field name once".to_owned())
            }
        });
        match ty {
            Ok(ty) => {
                plan.step(field.name(), print_field(field), ty.to_string(), derived.effect);
                columns.push((field.name().clone(), ty));
            }
            Err(why) => {
                let from = print_field(field);
                plan.step(field.name(), from, "a datashape", Effect::impossible(why));
            }
        }
    }
    if columns.len() < schema.fields().len() {
        return Planned { ty: None, plan };
    }
    let ty = match (Form::of(schema), columns.len()) {
        (Form::Array, 1) => columns.pop().map(|(_, ty)| Type::Var(Box::new(ty))),
        (Form::Value, 1) => columns.pop().map(|(_, ty)| ty),
        (Form::Dense, 1) => columns.pop().map(|(_, ty)| match shape::matrix_rows(schema) {
            Some(rows) if row_count.is_none_or(|count| count == rows) && i64::try_from(rows).is_ok() => {
                let matrix = Type::Fixed(rows, Box::new(ty));
                match shape::is_column_major(schema) {
                    true => Type::Storage { of: Box::new(matrix), axis: vec![1, 0] },
                    false => matrix,
                }
            }
            _ => Type::Var(Box::new(ty)),
        }),
        _ => Some(Type::Var(Box::new(Type::Struct(columns)))),
    };
    Planned { ty, plan }
}

/// The type of a selection of the rows of `ty`.
fn with_row_count(ty: Type, rows: Option<u64>) -> Type {
    match (ty, rows) {
        (Type::Fixed(_, of), Some(rows)) => Type::Fixed(rows, of),
        (Type::Fixed(_, of), None) => Type::Var(of),
        (Type::Storage { of, axis }, Some(_)) => {
            Type::Storage { of: Box::new(with_row_count(*of, rows)), axis }
        }
        (Type::Storage { of, .. }, None) => with_row_count(*of, None),
        (Type::Pointer(of), _) => Type::Pointer(Box::new(with_row_count(*of, rows))),
        (other, _) => other,
    }
}

/// Whether two lists of fields are the same but for metadata.
fn same_fields(a: &Fields, b: &Fields) -> bool {
    a.len() == b.len()
        && a.iter().zip(b.iter()).all(|(a, b)| {
            a.name() == b.name()
                && a.is_nullable() == b.is_nullable()
                && same_type(a.data_type(), b.data_type())
        })
}

fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => same_fields(a, b),
        (DataType::List(a), DataType::List(b)) => {
            a.is_nullable() == b.is_nullable() && same_type(a.data_type(), b.data_type())
        }
        (DataType::FixedSizeList(a, n), DataType::FixedSizeList(b, m)) => {
            n == m && a.is_nullable() == b.is_nullable() && same_type(a.data_type(), b.data_type())
        }
        _ => a == b,
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

/// Whether a value of the type may be the one that means "missing".
fn has_sentinel_value(ty: &Type) -> bool {
    matches!(ty.missing(), Missing::Sentinel(_)) && *ty != Type::Bool
}

/// What must be checked when rows of exactly this type are written.
fn checks_of(ty: &Type) -> Effect {
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
        Type::FixedString { .. } | Type::Char(_) | Type::Type | Type::Array(_) => {
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
struct Derived {
    flag: bool,
    effect: Effect,
}

impl Derived {
    fn worse(&mut self, effect: Effect, note: impl Into<String>) {
        let effect = effect.because(note);
        self.effect = std::mem::replace(&mut self.effect, Effect::exact()).and(effect);
    }

    fn field(&mut self, field: &Field) -> Result<Type, String> {
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
            // A dictionary or the like of a nullable field may have brought its own option.
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
                _ => return Err("bytes[0] is no type".to_owned()),
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
            (extension::DYND_ARRAY, DataType::Struct(fields)) if is_dynd_array(fields) => {
                self.worse(Effect::checked(LossKind::Range), "each must be data of its type");
                Some(Type::Array(Box::new(Pattern::Kind(Kind::Any).into())))
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
                self.worse(effect, format!("what {name} means is not kept"));
                None
            }
        })
    }
}

fn is_dynd_array(fields: &Fields) -> bool {
    matches!(fields.as_ref(), [ty, data] if ty.name() == "type" && *ty.data_type() == DataType::Utf8 && !ty.is_nullable()
        && data.name() == "data" && *data.data_type() == DataType::Binary && !data.is_nullable())
}
