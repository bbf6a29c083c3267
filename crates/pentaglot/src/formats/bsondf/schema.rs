//! [`Type`]: what a column holds, in the format's own words, and how that maps to Arrow and back.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
use serde_json::{Value, json};

use crate::error::Error;

/// The type of an array: its fields `t` and `p`.
///
/// ```
/// use pentaglot::arrow::schema::{DataType, Field};
/// use pentaglot::formats::bsondf::Type;
/// let list = Type::List(Box::new(Type::Int32));
/// assert_eq!(list.to_string(), "list<int32>");
/// assert_eq!(list.to_arrow(), DataType::new_list(DataType::Int32, true));
/// assert_eq!(Type::of(&Field::new("x", DataType::LargeUtf8, true)), Ok(Type::Utf8));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// True or false, a byte each.
    Bool,
    /// A signed integer of 1 byte.
    Int8,
    /// A signed integer of 2 bytes.
    Int16,
    /// A signed integer of 4 bytes.
    Int32,
    /// A signed integer of 8 bytes.
    Int64,
    /// An unsigned integer of 1 byte.
    UInt8,
    /// An unsigned integer of 2 bytes.
    UInt16,
    /// An unsigned integer of 4 bytes.
    UInt32,
    /// An unsigned integer of 8 bytes.
    UInt64,
    /// An IEEE 754 float of 2 bytes.
    Float16,
    /// An IEEE 754 float of 4 bytes.
    Float32,
    /// An IEEE 754 float of 8 bytes.
    Float64,
    /// Days since 1970, stored as differences of 4 bytes.
    DateDay,
    /// Milliseconds since 1970, stored as differences of 8 bytes.
    DateMillisecond,
    /// A point in time and perhaps its zone, stored as differences of 8 bytes.
    Timestamp(TimeUnit, Option<Arc<str>>),
    /// A time of day: 4 bytes for seconds and milliseconds, else 8; stored as it is.
    Time(TimeUnit),
    /// Nothing.
    Null,
    /// Bytes.
    Bytes,
    /// Text.
    Utf8,
    /// Bytes of one length, which is at least 1.
    Opaque(i32),
    /// Indices into a dictionary.
    Factor {
        /// Whether the dictionary's order means something: `ordered`, not `factor`.
        ordered: bool,
        /// The type of the indices: an integer.
        index: Box<Type>,
        /// The type of the dictionary's values.
        dictionary: Box<Type>,
    },
    /// Lists of any length.
    List(Box<Type>),
    /// Named fields.
    Struct(Vec<(String, Type)>),
}

/// The types that have no parameter, by name.
const PLAIN: [(&str, Type); 25] = [
    ("bool", Type::Bool),
    ("int8", Type::Int8),
    ("int16", Type::Int16),
    ("int32", Type::Int32),
    ("int64", Type::Int64),
    ("uint8", Type::UInt8),
    ("uint16", Type::UInt16),
    ("uint32", Type::UInt32),
    ("uint64", Type::UInt64),
    ("float16", Type::Float16),
    ("float32", Type::Float32),
    ("float64", Type::Float64),
    ("date[d]", Type::DateDay),
    ("date[ms]", Type::DateMillisecond),
    ("time[s]", Type::Time(TimeUnit::Second)),
    ("time[ms]", Type::Time(TimeUnit::Millisecond)),
    ("time[us]", Type::Time(TimeUnit::Microsecond)),
    ("time[ns]", Type::Time(TimeUnit::Nanosecond)),
    ("timestamp[s]", Type::Timestamp(TimeUnit::Second, None)),
    ("timestamp[ms]", Type::Timestamp(TimeUnit::Millisecond, None)),
    ("timestamp[us]", Type::Timestamp(TimeUnit::Microsecond, None)),
    ("timestamp[ns]", Type::Timestamp(TimeUnit::Nanosecond, None)),
    ("null", Type::Null),
    ("bytes", Type::Bytes),
    ("utf8", Type::Utf8),
];

impl Type {
    /// The type without a parameter that has this name (a timestamp: without its zone).
    pub(super) fn plain(name: &str) -> Option<Type> {
        PLAIN.iter().find(|(known, _)| *known == name).map(|(_, kind)| kind.clone())
    }

    /// Whether field `t` can hold this.
    pub(super) fn is_name(name: &str) -> bool {
        matches!(name, "opaque" | "factor" | "ordered" | "list" | "struct") || Type::plain(name).is_some()
    }

    /// The name in field `t`.
    pub fn name(&self) -> &'static str {
        match self {
            Type::Timestamp(unit, Some(_)) => Type::Timestamp(*unit, None).name(),
            Type::Opaque(_) => "opaque",
            Type::Factor { ordered: false, .. } => "factor",
            Type::Factor { ordered: true, .. } => "ordered",
            Type::List(_) => "list",
            Type::Struct(_) => "struct",
            plain => PLAIN.iter().find(|(_, kind)| kind == plain).map_or("", |(name, _)| name),
        }
    }

    /// The bytes of one value in the buffer `d`, where all values take the same number.
    pub(super) fn width(&self) -> Option<u64> {
        match self {
            Type::Bool | Type::Int8 | Type::UInt8 => Some(1),
            Type::Int16 | Type::UInt16 | Type::Float16 => Some(2),
            Type::Int32 | Type::UInt32 | Type::Float32 | Type::DateDay => Some(4),
            Type::Time(TimeUnit::Second | TimeUnit::Millisecond) => Some(4),
            Type::Int64 | Type::UInt64 | Type::Float64 | Type::DateMillisecond => Some(8),
            Type::Time(_) | Type::Timestamp(..) => Some(8),
            Type::Opaque(width) => u64::try_from(*width).ok(),
            Type::Null | Type::Bytes | Type::Utf8 => None,
            Type::Factor { .. } | Type::List(_) | Type::Struct(_) => None,
        }
    }

    /// Whether the buffer `d` holds differences. (The spec says so of times too, which no program ever did.)
    pub(super) fn is_difference_encoded(&self) -> bool {
        matches!(self, Type::DateDay | Type::DateMillisecond | Type::Timestamp(..))
    }

    /// Whether this is one of the eight integer types.
    pub(super) fn is_integer(&self) -> bool {
        matches!(self, Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64)
            || matches!(self, Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64)
    }

    /// The Arrow type that holds the same values.
    pub fn to_arrow(&self) -> DataType {
        match self {
            Type::Bool => DataType::Boolean,
            Type::Int8 => DataType::Int8,
            Type::Int16 => DataType::Int16,
            Type::Int32 => DataType::Int32,
            Type::Int64 => DataType::Int64,
            Type::UInt8 => DataType::UInt8,
            Type::UInt16 => DataType::UInt16,
            Type::UInt32 => DataType::UInt32,
            Type::UInt64 => DataType::UInt64,
            Type::Float16 => DataType::Float16,
            Type::Float32 => DataType::Float32,
            Type::Float64 => DataType::Float64,
            Type::DateDay => DataType::Date32,
            Type::DateMillisecond => DataType::Date64,
            Type::Timestamp(unit, zone) => DataType::Timestamp(*unit, zone.clone()),
            Type::Time(unit @ (TimeUnit::Second | TimeUnit::Millisecond)) => DataType::Time32(*unit),
            Type::Time(unit) => DataType::Time64(*unit),
            Type::Null => DataType::Null,
            Type::Bytes => DataType::Binary,
            Type::Utf8 => DataType::Utf8,
            Type::Opaque(width) => DataType::FixedSizeBinary(*width),
            Type::Factor { index, dictionary, .. } => {
                DataType::Dictionary(Box::new(index.to_arrow()), Box::new(dictionary.to_arrow()))
            }
            Type::List(item) => DataType::List(Arc::new(item.to_field(Field::LIST_FIELD_DEFAULT_NAME))),
            Type::Struct(fields) => DataType::Struct(arrow_fields(fields)),
        }
    }

    /// The Arrow field of this name and type. All values can be missing: each array has a mask.
    pub fn to_field(&self, name: &str) -> Field {
        let ordered = matches!(self, Type::Factor { ordered: true, .. });
        Field::new(name, self.to_arrow(), true).with_dict_is_ordered(ordered)
    }

    /// The type that holds the values of an Arrow field.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn of(field: &Field) -> Result<Type, String> {
        Type::from_arrow(field.data_type(), field.dict_is_ordered() == Some(true))
    }

    fn from_arrow(data_type: &DataType, ordered: bool) -> Result<Type, String> {
        Ok(match data_type {
            DataType::Boolean => Type::Bool,
            DataType::Int8 => Type::Int8,
            DataType::Int16 => Type::Int16,
            DataType::Int32 => Type::Int32,
            DataType::Int64 => Type::Int64,
            DataType::UInt8 => Type::UInt8,
            DataType::UInt16 => Type::UInt16,
            DataType::UInt32 => Type::UInt32,
            DataType::UInt64 => Type::UInt64,
            DataType::Float16 => Type::Float16,
            DataType::Float32 => Type::Float32,
            DataType::Float64 => Type::Float64,
            DataType::Date32 => Type::DateDay,
            DataType::Date64 => Type::DateMillisecond,
            DataType::Timestamp(unit, zone) => {
                Type::Timestamp(*unit, zone.clone().filter(|zone| !zone.is_empty()))
            }
            DataType::Time32(unit) | DataType::Time64(unit) => Type::Time(*unit),
            DataType::Null => Type::Null,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::Bytes,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::Utf8,
            DataType::FixedSizeBinary(width) if *width > 0 => Type::Opaque(*width),
            DataType::FixedSizeBinary(_) => return Err("opaque values are at least 1 byte wide".to_owned()),
            DataType::Dictionary(index, value) => Type::Factor {
                ordered,
                index: Box::new(Type::from_arrow(index, false)?),
                dictionary: Box::new(Type::from_arrow(value, false)?),
            },
            DataType::RunEndEncoded(_, values) => Type::of(values)?,
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::Map(item, _) => Type::List(Box::new(Type::of(item)?)),
            DataType::Struct(fields) => Type::Struct(
                fields
                    .iter()
                    .map(|field| Ok((field.name().clone(), Type::of(field)?)))
                    .collect::<Result<_, String>>()
                    .and_then(check_field_names)?,
            ),
            DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => return Err("the format has no decimals".to_owned()),
            DataType::Duration(_) | DataType::Interval(_) => {
                return Err("the format has no durations or intervals".to_owned());
            }
            DataType::Union(..) => return Err("the format has no unions".to_owned()),
        })
    }

    /// The Arrow schema of a document whose columns are the fields of this struct.
    ///
    /// # Errors
    ///
    /// `Usage` if this is not a struct.
    pub fn to_schema(&self) -> crate::Result<Schema> {
        match self {
            Type::Struct(columns) => Ok(Schema::new(arrow_fields(columns))),
            other => Err(Error::usage(format!("expected a struct of the columns, found {other}"))),
        }
    }

    /// The columns that hold the rows of an Arrow schema, as a struct.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the format lacks a type or cannot hold a name.
    pub fn from_schema(schema: &Schema) -> crate::Result<Type> {
        let column = |field: &Arc<Field>| {
            let kind = Type::of(field);
            kind.map(|kind| (field.name().clone(), kind))
                .map_err(|reason| Error::unsupported(format!("column {:?}: {reason}", field.name())))
        };
        Ok(Type::Struct(schema.fields().iter().map(column).collect::<crate::Result<_>>()?))
    }

    /// The type as JSON: the same `t` and `p` as in the file.
    pub(super) fn to_json(&self) -> Value {
        let mut value = json!({ "t": self.name() });
        let parameter = match self {
            Type::Timestamp(_, Some(zone)) => json!(zone.as_ref()),
            Type::Opaque(width) => json!(width),
            Type::Factor { index, dictionary, .. } => {
                json!({ "i": index.to_json(), "d": dictionary.to_json() })
            }
            Type::List(item) => item.to_json(),
            Type::Struct(fields) => {
                fields.iter().map(|(name, kind)| json!([name, kind.to_json()])).collect::<Vec<_>>().into()
            }
            _ => return value,
        };
        if let Some(object) = value.as_object_mut() {
            object.insert("p".to_owned(), parameter);
        }
        value
    }

    /// The type that [`to_json`](Self::to_json) wrote.
    pub(super) fn from_json(value: &Value) -> Option<Type> {
        let parameter = value.get("p");
        let kind = match (value.get("t")?.as_str()?, parameter) {
            ("opaque", Some(width)) => {
                Type::Opaque(i32::try_from(width.as_i64()?).ok().filter(|width| *width > 0)?)
            }
            (name @ ("factor" | "ordered"), Some(parts)) => Type::Factor {
                ordered: name == "ordered",
                index: Box::new(Type::from_json(parts.get("i")?)?),
                dictionary: Box::new(Type::from_json(parts.get("d")?)?),
            },
            ("list", Some(item)) => Type::List(Box::new(Type::from_json(item)?)),
            ("struct", Some(fields)) => {
                let field = |field: &Value| {
                    Some((field.get(0)?.as_str()?.to_owned(), Type::from_json(field.get(1)?)?))
                };
                Type::Struct(fields.as_array()?.iter().map(field).collect::<Option<_>>()?)
            }
            (name, parameter) => match (Type::plain(name)?, parameter) {
                (Type::Timestamp(unit, _), Some(zone)) => Type::Timestamp(unit, Some(zone.as_str()?.into())),
                (plain, None) => plain,
                _ => return None,
            },
        };
        Some(kind)
    }
}

/// The Arrow fields of columns or of a struct.
pub(super) fn arrow_fields(fields: &[(String, Type)]) -> Fields {
    fields.iter().map(|(name, kind)| kind.to_field(name)).collect()
}

/// The fields of a struct, if a document can have their names.
pub(super) fn check_field_names(fields: Vec<(String, Type)>) -> Result<Vec<(String, Type)>, String> {
    let mut seen = std::collections::HashSet::new();
    for (name, _) in &fields {
        if name.is_empty() {
            return Err("a struct's field needs a name".to_owned());
        }
        check_name(name)?;
        if !seen.insert(name.as_str()) {
            return Err(format!("two fields of a struct are named {name:?}"));
        }
    }
    Ok(fields)
}

/// Whether a name can be a BSON key.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name.contains('\0') {
        return Err(format!("a BSON key cannot hold the zero byte of {name:?}"));
    }
    Ok(())
}

/// Whether two fields differ in nothing that the format keeps: their names, whether values may be missing and metadata
/// aside.
pub(super) fn is_same_field(left: &Field, right: &Field) -> bool {
    left.dict_is_ordered() == right.dict_is_ordered() && is_same(left.data_type(), right.data_type())
}

fn is_same(left: &DataType, right: &DataType) -> bool {
    match (left, right) {
        (DataType::List(left), DataType::List(right)) => is_same_field(left, right),
        (DataType::Struct(left), DataType::Struct(right)) => {
            let same = |(left, right): (&Arc<Field>, &Arc<Field>)| {
                left.name() == right.name() && is_same_field(left, right)
            };
            left.len() == right.len() && left.iter().zip(right).all(same)
        }
        (DataType::Dictionary(left_key, left), DataType::Dictionary(right_key, right)) => {
            left_key == right_key && is_same(left, right)
        }
        (left, right) => left == right,
    }
}
