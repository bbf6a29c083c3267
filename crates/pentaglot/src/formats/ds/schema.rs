//! Maps DS types to Arrow schemas and back, with the effect of writing a field as DS.
//!
//! | DS | Arrow | shape |
//! |---|---|---|
//! | table at the root | one field a column | `table` |
//! | array at the root | field `item` | `array` |
//! | anything else at the root | field `value` | `value` |
//! | embedded table | List of Struct | |
//! | tensor | `arrow.fixed_shape_tensor` | |
//! | image | Binary, `pentaglot.image` | |
//! | nullable | a nullable field | |
//! | void | Null (nullable inside lists and structs, as Arrow requires) | |

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};

use super::images::Transform;
use super::types::{Channel, Fundamental, Image, ImageFormat, Tabular, Tensor, Type};
use crate::error::{Error, Result};
use crate::hub::{Effect, Form, LossKind, Plan, Shape, extension, native, same_fields, shape, type_text};
use crate::limits::Limits;

impl Fundamental {
    /// The Arrow type of its values.
    pub fn data_type(self) -> DataType {
        match self {
            Fundamental::UInt8 => DataType::UInt8,
            Fundamental::Int8 => DataType::Int8,
            Fundamental::UInt32 => DataType::UInt32,
            Fundamental::Int32 => DataType::Int32,
            Fundamental::UInt64 => DataType::UInt64,
            Fundamental::Int64 => DataType::Int64,
            Fundamental::Bool => DataType::Boolean,
            Fundamental::Float32 => DataType::Float32,
            Fundamental::Float64 => DataType::Float64,
            Fundamental::String => DataType::Utf8,
            Fundamental::Void => DataType::Null,
        }
    }
}

impl Type {
    /// The Arrow schema of the rows, with shape and native type in its metadata.
    ///
    /// ```
    /// use pentaglot::formats::ds::Type;
    /// let schema = Type::parse(r#"{"columns":{"x":"int32"}}"#)?.to_schema()?;
    /// assert_eq!(schema.field(0).name(), "x");
    /// assert_eq!(Type::from_schema(&schema)?.to_string(), r#"{"type":"tabular","columns":{"x":"int32"}}"#);
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    pub fn to_schema(&self) -> Result<Schema> {
        Ok(native::with(self.bare_schema()?, super::ID, self.native()))
    }

    /// The schema without the native type.
    fn bare_schema(&self) -> Result<Schema> {
        Ok(match self {
            Type::Tabular(table) => {
                let fields = table.columns.iter().map(|(name, kind)| kind.field(name, true));
                Schema::new(fields.collect::<Result<Vec<Field>>>()?)
            }
            Type::Array(item) => shape::array_schema(item.field(shape::ITEM_FIELD, true)?),
            other => shape::value_schema(other.field(shape::VALUE_FIELD, true)?),
        })
    }

    fn native(&self) -> serde_json::Value {
        let text = self.to_string();
        // A type that is nested too deep for serde_json is stored as text.
        serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text))
    }

    /// The field of a value of this type; `top` says that it is a column of a batch.
    pub(super) fn field(&self, name: &str, top: bool) -> Result<Field> {
        let list = |item: Field| Field::new(name, DataType::List(Arc::new(item)), false);
        Ok(match self {
            Type::Fundamental(kind) => Field::new(name, kind.data_type(), *kind == Fundamental::Void && !top),
            Type::Tabular(table) => list(Field::new_list_field(struct_type(&table.columns)?, false)),
            Type::Array(item) => list(item.field(Field::LIST_FIELD_DEFAULT_NAME, false)?),
            Type::Struct(fields) => Field::new(name, struct_type(fields)?, false),
            Type::Tensor(tensor) => {
                let dims: Vec<u64> = tensor.shape.iter().map(|dim| u64::from(*dim)).collect();
                let field = extension::tensor_field(name, tensor.component.data_type(), &dims, false);
                let field = field.ok_or_else(|| Error::unsupported("a tensor past 2147483647 elements"))?;
                match (tensor.component, field.data_type()) {
                    (Fundamental::Void, DataType::FixedSizeList(_, size)) => {
                        let item = Arc::new(Field::new_list_field(DataType::Null, true));
                        let list = DataType::FixedSizeList(item, *size);
                        field.with_data_type(list)
                    }
                    _ => field,
                }
            }
            Type::Image(image) => {
                let field = Field::new(name, DataType::Binary, false);
                extension::with(field, extension::IMAGE, Some(image_metadata(image)))
            }
            Type::Nullable(inner) => inner.field(name, top)?.with_nullable(true),
        })
    }

    /// The DS type for rows of this schema: the native one if it matches, otherwise the nearest.
    pub fn from_schema(schema: &Schema) -> Result<Type> {
        let Derived { kind, plan, .. } = derive(schema, None);
        plan.check(crate::hub::LossKinds::ALL)?;
        kind.ok_or_else(|| Error::unsupported("the schema has no DS type"))
    }
}

/// The columns of a type at the root, with their names.
pub(super) fn root_columns(kind: &Type) -> Vec<(&str, &Type)> {
    match kind {
        Type::Tabular(table) => table.columns.iter().map(|(name, kind)| (name.as_str(), kind)).collect(),
        Type::Array(item) => vec![("item", item)],
        other => vec![("value", other)],
    }
}

/// The shape that a type has at the root.
pub(super) fn root_shape(kind: &Type) -> Shape {
    match kind {
        Type::Tabular(_) => Shape::Table,
        Type::Array(_) => Shape::Array,
        _ => Shape::Value,
    }
}

/// How many elements the root must have, if its type declares it.
pub(super) fn declared_rows(kind: &Type) -> Option<u64> {
    match kind {
        Type::Tabular(table) => table.row_count,
        Type::Array(_) => None,
        _ => Some(1),
    }
}

/// The schema of the rows; decoded images are plain, which the native type records.
pub(super) fn schema_of(kind: &Type, decode: bool) -> Result<Schema> {
    if !decode {
        return kind.to_schema();
    }
    let decoded = Transform::Decode.apply(kind)?;
    let schema = decoded.to_schema()?;
    if decoded == *kind {
        return Ok(schema);
    }
    let native = native::of(&schema, super::ID).unwrap_or_default();
    Ok(native::with(schema, super::ID, serde_json::json!({ super::DECODED_KEY: native })))
}

fn struct_type(fields: &[(String, Type)]) -> Result<DataType> {
    let fields = fields.iter().map(|(name, kind)| kind.field(name, false));
    Ok(DataType::Struct(fields.collect::<Result<Fields>>()?))
}

fn image_metadata(image: &Image) -> String {
    let components: Vec<_> = image
        .components
        .iter()
        .map(|(channel, kind)| serde_json::json!([channel.name(), kind.name()]))
        .collect();
    serde_json::json!({
        "width": image.width, "height": image.height, "components": components, "format": image.format.name(),
    })
    .to_string()
}

impl Image {
    /// The image type of a field, if it is one of images.
    pub(crate) fn of_field(field: &Field) -> Option<Image> {
        let image = extension::name(field) == Some(extension::IMAGE) && is_binary(field.data_type());
        field_image(field).filter(|_| image)
    }

    /// The field of images of this type.
    pub(crate) fn field(&self, name: &str) -> Result<Field> {
        Type::Image(self.clone()).field(name, true)
    }
}

/// The image type that a field's extension metadata describes.
fn field_image(field: &Field) -> Option<Image> {
    let value: serde_json::Value = serde_json::from_str(extension::metadata(field)?).ok()?;
    let dim = |key: &str| {
        let dim = u32::try_from(value.get(key)?.as_u64()?).ok()?;
        (1..=0x7fff_ffff).contains(&dim).then_some(dim)
    };
    let component = |pair: &serde_json::Value| {
        let kind = Fundamental::by_name(pair.get(1)?.as_str()?)?;
        kind.component_bytes()?;
        Some((Channel::by_name(pair.get(0)?.as_str()?)?, kind))
    };
    let components: Vec<_> =
        value.get("components")?.as_array()?.iter().map(component).collect::<Option<_>>()?;
    let repeated = components
        .iter()
        .enumerate()
        .any(|(index, (channel, _))| components.iter().skip(index + 1).any(|(other, _)| other == channel));
    let format = ImageFormat::by_name(value.get("format")?.as_str()?)?;
    (!components.is_empty() && !repeated).then_some(Image {
        width: dim("width")?,
        height: dim("height")?,
        components,
        format,
    })
}

/// The native type of a schema, if it maps to exactly this schema, and whether its images were decoded. For a
/// selection of rows, `rowCount` is their number if known.
fn native_type(schema: &Schema, row_count: Option<u64>) -> Option<(Type, bool)> {
    let mut native = native::of_sliced(schema, super::ID)?;
    let decoded = native.get_mut(super::DECODED_KEY).map(serde_json::Value::take);
    let (native, decoded) = match decoded {
        Some(inner) => (inner, true),
        None => (native, false),
    };
    let text = match native {
        serde_json::Value::String(text) if text.starts_with('{') => text,
        other => other.to_string(),
    };
    let mut kind = Type::parse_within(&text, &Limits::default()).ok()?;
    if let Type::Tabular(table) = &mut kind
        && native::is_sliced(schema)
    {
        table.row_count = table.row_count.and(row_count);
    }
    let own = kind.bare_schema().ok()?;
    let same_shape = Form::of(&own) == Form::of(schema);
    (same_shape && same_fields(own.fields(), schema.fields(), same_extension)).then_some((kind, decoded))
}

/// Whether two fields have the same extension with the same parameters, even if the metadata text differs.
fn same_extension(one: &Field, other: &Field) -> bool {
    let name = extension::name(one);
    name == extension::name(other)
        && match name {
            Some(extension::IMAGE) => field_image(one) == field_image(other),
            Some(extension::FIXED_SHAPE_TENSOR) => {
                extension::tensor_shape(one) == extension::tensor_shape(other)
            }
            _ => extension::metadata(one) == extension::metadata(other),
        }
}

/// The DS type of a schema.
pub(super) struct Derived {
    /// The type, if there is one.
    pub(super) kind: Option<Type>,
    /// The effect on each field.
    pub(super) plan: Plan,
    /// Whether a reader of DS has decoded the images.
    pub(super) decoded: bool,
}

/// Derives the DS type of a schema, and the effect on each field. `row_count` is the number of rows, if known.
pub(super) fn derive(schema: &Schema, row_count: Option<u64>) -> Derived {
    let mut plan = Plan::default();
    if let Some((kind, decoded)) = native_type(schema, row_count) {
        for (field, (_, own)) in schema.fields().iter().zip(root_columns(&kind)) {
            plan.step(field.name(), from_text(field), own.to_string(), Effect::exact());
        }
        return Derived { kind: Some(kind), plan, decoded };
    }
    shape::plan_plain_table(schema, &mut plan);
    let mut columns: Vec<(String, Type)> = Vec::new();
    let mut complete = true;
    for field in schema.fields() {
        match column(field, &mut Vec::new()) {
            Ok(ColumnPlan { kind, effect }) => {
                plan.step(field.name(), from_text(field), kind.to_string(), effect);
                if columns.iter().any(|(name, _)| name == field.name()) {
                    let effect = Effect::impossible("DS needs every column name once");
                    plan.step(field.name(), from_text(field), "", effect);
                    complete = false;
                }
                columns.push((field.name().clone(), kind));
            }
            Err(note) => {
                plan.step(field.name(), from_text(field), "", Effect::impossible(note));
                complete = false;
            }
        }
    }
    if schema.fields().is_empty() {
        plan.step("", "a table without columns", "", Effect::impossible("DS tables have columns"));
        complete = false;
    }
    if !complete {
        return Derived { kind: None, plan, decoded: false };
    }
    let kind = match (Form::of(schema), columns.pop()) {
        (Form::Array, Some((_, item))) => Type::Array(Box::new(item)),
        (Form::Value, Some((_, value))) => value,
        (_, last) => {
            columns.extend(last);
            Type::Tabular(Tabular { columns, row_count: None })
        }
    };
    Derived { kind: Some(kind), plan, decoded: false }
}

fn from_text(field: &Field) -> String {
    type_text::print_field(field)
}

/// The DS type of one field.
struct ColumnPlan {
    kind: Type,
    effect: Effect,
}

impl ColumnPlan {
    fn of(kind: Type, effect: Effect) -> Self {
        ColumnPlan { kind, effect }
    }

    /// Wraps the type in another.
    fn wrap(self, wrap: impl FnOnce(Box<Type>) -> Type) -> Self {
        ColumnPlan { kind: wrap(Box::new(self.kind)), ..self }
    }

    fn and(self, effect: Effect) -> Self {
        ColumnPlan { effect: self.effect.and(effect), ..self }
    }
}

/// The DS type of a field; `Err` says why there is none. `path` has the enclosing fields, to limit the depth.
fn column(field: &Field, path: &mut Vec<String>) -> std::result::Result<ColumnPlan, String> {
    if path.len() > Limits::default().max_depth as usize {
        return Err("the type nests too deeply".to_owned());
    }
    path.push(field.name().clone());
    let bare = bare_column(field, path);
    path.pop();
    let bare = bare?;
    // Inside lists and structs Arrow requires Null to be nullable: that alone is not a `nullable`.
    let void = bare.kind == Type::Fundamental(Fundamental::Void);
    if field.is_nullable() && (!void || path.is_empty()) { Ok(bare.wrap(Type::Nullable)) } else { Ok(bare) }
}

fn fundamental(data_type: &DataType) -> Option<(Fundamental, Effect)> {
    let unit = || {
        let note = "DS has no dates and times: the number stays, its meaning is lost";
        Effect::lossy(LossKind::Metadata).because(note)
    };
    let decimal = || Effect::lossy(LossKind::Metadata).because("DS has no decimals: written as text");
    Some(match data_type {
        DataType::UInt8 => (Fundamental::UInt8, Effect::exact()),
        DataType::Int8 => (Fundamental::Int8, Effect::exact()),
        DataType::UInt32 => (Fundamental::UInt32, Effect::exact()),
        DataType::Int32 => (Fundamental::Int32, Effect::exact()),
        DataType::UInt64 => (Fundamental::UInt64, Effect::exact()),
        DataType::Int64 => (Fundamental::Int64, Effect::exact()),
        DataType::Boolean => (Fundamental::Bool, Effect::exact()),
        DataType::Float32 => (Fundamental::Float32, Effect::exact()),
        DataType::Float64 => (Fundamental::Float64, Effect::exact()),
        DataType::Utf8 => (Fundamental::String, Effect::exact()),
        DataType::LargeUtf8 | DataType::Utf8View => (Fundamental::String, Effect::widened()),
        DataType::Null => (Fundamental::Void, Effect::exact()),
        DataType::Int16 => (Fundamental::Int32, Effect::widened()),
        DataType::UInt16 => (Fundamental::UInt32, Effect::widened()),
        DataType::Float16 => (Fundamental::Float32, Effect::widened()),
        DataType::Date32 | DataType::Time32(_) => (Fundamental::Int32, unit()),
        DataType::Date64 | DataType::Time64(_) | DataType::Timestamp(_, _) | DataType::Duration(_) => {
            (Fundamental::Int64, unit())
        }
        DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _) => (Fundamental::String, decimal()),
        _ => return None,
    })
}

fn bare_column(field: &Field, path: &mut Vec<String>) -> std::result::Result<ColumnPlan, String> {
    let extension = extension::name(field);
    if extension == Some(extension::IMAGE) && is_binary(field.data_type()) {
        let image = field_image(field).ok_or("the image's metadata is not valid")?;
        let effect = Effect::checked(LossKind::Range).because("each must be such an image");
        return Ok(ColumnPlan::of(Type::Image(image), effect));
    }
    if let Some((kind, effect)) = fundamental(field.data_type()) {
        return Ok(ColumnPlan::of(Type::Fundamental(kind), effect.and(extension::dropped(field))));
    }
    match field.data_type() {
        DataType::Dictionary(_, values) => {
            let values = Field::new(field.name(), values.as_ref().clone(), false);
            let inner = bare_column(&values, path)?;
            Ok(inner.and(Effect::widened().because("a dictionary is written as its values")))
        }
        DataType::List(item) => list_column(item, path),
        DataType::LargeList(item) => Ok(list_column(item, path)?.and(Effect::widened())),
        DataType::Map(entries, _) => {
            let note = "a map is written as a table of its entries";
            Ok(list_column(entries, path)?.and(Effect::widened().because(note)))
        }
        DataType::FixedSizeList(item, size) => fixed_list_column(field, item, *size, path),
        DataType::Struct(fields) => {
            let mut all = ColumnPlan::of(Type::Struct(Vec::new()), Effect::exact());
            let mut types = Vec::new();
            for field in fields {
                if types.iter().any(|(name, _)| name == field.name()) {
                    return Err(format!("DS needs every field name once, found {:?} twice", field.name()));
                }
                let inner = column(field, path)?;
                types.push((field.name().clone(), inner.kind));
                all = all.and(inner.effect);
            }
            all.kind = Type::Struct(types);
            Ok(all.and(extension::dropped(field)))
        }
        data_type if is_binary(data_type) => Err("DS has no type for bytes, other than images".to_owned()),
        other => Err(format!("DS has no type for {}", type_text::print_type(other))),
    }
}

pub(super) fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// A list of structs is an embedded table, any other list an array.
fn list_column(item: &Field, path: &mut Vec<String>) -> std::result::Result<ColumnPlan, String> {
    let inner = column(item, path)?;
    Ok(match inner {
        ColumnPlan { kind: Type::Struct(columns), effect } if !columns.is_empty() => {
            ColumnPlan { kind: Type::Tabular(Tabular { columns, row_count: None }), effect }
        }
        inner => inner.wrap(Type::Array),
    })
}

/// A fixed list of fundamental values is a tensor, any other fixed list an array.
fn fixed_list_column(
    field: &Field,
    item: &Field,
    size: i32,
    path: &mut Vec<String>,
) -> std::result::Result<ColumnPlan, String> {
    let inner = column(item, path)?;
    let dims = extension::tensor_shape(field).unwrap_or_else(|| vec![u64::try_from(size).unwrap_or(0)]);
    let dims: Option<Vec<u32>> =
        dims.into_iter().map(|dim| u32::try_from(dim).ok().filter(|dim| *dim > 0)).collect();
    match (inner, dims) {
        (ColumnPlan { kind: Type::Fundamental(component), effect }, Some(shape)) if !shape.is_empty() => {
            let tensor = ColumnPlan::of(Type::Tensor(Tensor { component, shape }), effect);
            Ok(match extension::tensor_shape(field) {
                Some(_) => tensor,
                None => {
                    let note = "comes back as a tensor";
                    tensor.and(Effect::widened().because(note)).and(extension::dropped(field))
                }
            })
        }
        (inner, _) => {
            let note = "a list of fixed size becomes an array of any size";
            Ok(inner.wrap(Type::Array).and(Effect::widened().because(note)).and(extension::dropped(field)))
        }
    }
}
