//! The typed interface: [`Value`]s of any DS type, read and written without Arrow, with or without their
//! type.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};

use super::columns::{ColumnBuilder, Reading, offset};
use super::decode::{out_of_range, wrong_arity, wrong_row_count};
use super::layout::open_given;
use super::rows::place_cell;
use super::schema::{root_columns, root_shape};
use super::types::{Fundamental, Type};
use super::{Ds, ID, ROWS, ROWS_JSON};
use crate::error::{Context, Error, Result};
use crate::formats::{Format, ReadOptions, WriteOptions};
use crate::hub::{Shape, rows};
use crate::limits::Limits;
use crate::sink::Sink;
use crate::source::Source;

/// A value of a DS type.
///
/// ```
/// use pentaglot::Limits;
/// use pentaglot::formats::ds::{Type, Value, Wire, read_bundle, read_value, write_bundle, write_value};
/// let kind = Type::parse(r#"{"columns": {"n": "int32", "s": {"type": "nullable", "underlying": "string"}}}"#)?;
/// let row = |n, s| Value::List(vec![Value::Int(n), s]);
/// let table = Value::List(vec![row(1, Value::String("x".into())), row(2, Value::Null)]);
/// // As an HTTP service takes it: rows alone.
/// let bytes = write_value(&kind, &table, Wire::MsgPack)?;
/// assert_eq!(bytes, [0x92, 1, 0xa1, b'x', 0x92, 2, 0xc0]);
/// assert_eq!(read_value(&bytes, &kind, Wire::MsgPack, &Limits::default())?, table);
/// // With its type.
/// let bundle = write_bundle(&kind, &table, Wire::Json)?;
/// assert_eq!(read_bundle(&bundle, &Limits::default())?, (kind, table));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Null, in a `nullable`
    Null,
    /// `void`
    Void,
    /// `bool`
    Bool(bool),
    /// `int8`, `int32`, `int64`
    Int(i64),
    /// `uint8`, `uint32`, `uint64`
    Uint(u64),
    /// `float32`
    Float32(f32),
    /// `float64`
    Float64(f64),
    /// `string`
    String(String),
    /// `image`: plain bytes, or a PNG or JPEG file
    Image(Vec<u8>),
    /// Rows of a table, cells of a row or a struct, elements of an array; those of a tensor flat, inner first
    List(Vec<Value>),
}

/// How values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wire {
    /// MessagePack, integers in the fewest bytes, as Scala and Python write them.
    MsgPack,
    /// MessagePack, integers in the full width of their type, as Go writes them.
    MsgPackFixed,
    /// JSON.
    Json,
}

/// The bytes of a value and its type: a whole bundle.
pub fn write_bundle(kind: &Type, value: &Value, wire: Wire) -> Result<Vec<u8>> {
    let dialect = match wire {
        Wire::MsgPack => "msgpack",
        Wire::MsgPackFixed => "msgpack-fixed",
        Wire::Json => "json",
    };
    write(kind, value, dialect).in_format(ID)
}

/// The type and the value of a bundle in any dialect.
pub fn read_bundle(bytes: &[u8], limits: &Limits) -> Result<(Type, Value)> {
    let source = Source::from_bytes("bundle", bytes.to_vec());
    let mut options = ReadOptions::default();
    options.budget = limits.budget();
    let kind = open_given(source.clone(), &options).in_format(ID)?.kind;
    let value = read(source, &kind, &options)?;
    Ok((kind, value))
}

/// The bytes of a value alone, for services where the type is known.
pub fn write_value(kind: &Type, value: &Value, wire: Wire) -> Result<Vec<u8>> {
    match wire {
        Wire::MsgPack => write(kind, value, ROWS).in_format(ID),
        Wire::Json => write(kind, value, ROWS_JSON).in_format(ID),
        Wire::MsgPackFixed => {
            let mut bytes = write(kind, value, "msgpack-fixed").in_format(ID)?;
            bytes.drain(..kind.header()?.len());
            Ok(bytes)
        }
    }
}

/// The value of a type from its bytes; integers of any width are read.
pub fn read_value(bytes: &[u8], kind: &Type, wire: Wire, limits: &Limits) -> Result<Value> {
    let mut options = ReadOptions::default();
    options.budget = limits.budget();
    options.type_text = Some(kind.to_string());
    options.dialect = Some(if wire == Wire::Json { ROWS_JSON } else { ROWS }.to_owned());
    read(Source::from_bytes("value", bytes.to_vec()), kind, &options)
}

fn read(source: Source, kind: &Type, options: &ReadOptions) -> Result<Value> {
    let columns = root_columns(kind);
    let shape = root_shape(kind);
    let mut elements = Vec::new();
    for batch in Ds.open(source, options)?.all_rows()? {
        let batch = batch.map_err(Error::from)?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().zip(batch.columns());
            let mut cells = cells.map(|((_, kind), array)| value_at(array, row, kind));
            elements.push(match shape {
                Shape::Table => Value::List(cells.collect::<Result<_>>()?),
                _ => cells.next().unwrap_or(Ok(Value::Void))?,
            });
        }
    }
    match shape {
        Shape::Table | Shape::Array => Ok(Value::List(elements)),
        _ => elements.pop().ok_or_else(|| Error::truncated("an element", "none").in_format(ID)),
    }
}

/// The type inside any number of `nullable`s.
fn underlying(kind: &Type) -> &Type {
    let mut kind = kind;
    while let Type::Nullable(inner) = kind {
        kind = inner;
    }
    kind
}

fn value_at(array: &ArrayRef, index: usize, kind: &Type) -> Result<Value> {
    let odd = || Error::unsupported(format!("a value of {kind} in another array"));
    if kind.is_nullable()
        && (array.is_null(index) || underlying(kind) == &Type::Fundamental(Fundamental::Void))
    {
        return Ok(Value::Null);
    }
    let list = |items: &ArrayRef, kind: &Type| -> Result<Value> {
        let items = (0..items.len()).map(|item| value_at(items, item, kind));
        Ok(Value::List(items.collect::<Result<_>>()?))
    };
    macro_rules! number {
        ($type:ty) => {
            array.as_primitive_opt::<$type>().ok_or_else(odd)?.value(index)
        };
    }
    Ok(match underlying(kind) {
        Type::Fundamental(kind) => match kind {
            Fundamental::UInt8 => Value::Uint(number!(UInt8Type).into()),
            Fundamental::UInt32 => Value::Uint(number!(UInt32Type).into()),
            Fundamental::UInt64 => Value::Uint(number!(UInt64Type)),
            Fundamental::Int8 => Value::Int(number!(Int8Type).into()),
            Fundamental::Int32 => Value::Int(number!(Int32Type).into()),
            Fundamental::Int64 => Value::Int(number!(Int64Type)),
            Fundamental::Float32 => Value::Float32(number!(Float32Type)),
            Fundamental::Float64 => Value::Float64(number!(Float64Type)),
            Fundamental::Bool => Value::Bool(array.as_boolean_opt().ok_or_else(odd)?.value(index)),
            Fundamental::String => {
                Value::String(array.as_string_opt::<i32>().ok_or_else(odd)?.value(index).to_owned())
            }
            Fundamental::Void => Value::Void,
        },
        Type::Image(_) => Value::Image(array.as_binary_opt::<i32>().ok_or_else(odd)?.value(index).to_vec()),
        Type::Tensor(tensor) => {
            let items = array.as_fixed_size_list_opt().ok_or_else(odd)?.value(index);
            list(&items, &Type::Fundamental(tensor.component))?
        }
        Type::Array(item) => list(&array.as_list_opt::<i32>().ok_or_else(odd)?.value(index), item)?,
        Type::Tabular(table) => {
            let items = array.as_list_opt::<i32>().ok_or_else(odd)?.value(index);
            list(&items, &Type::Struct(table.columns.clone()))?
        }
        Type::Struct(fields) => {
            let columns = array.as_struct_opt().ok_or_else(odd)?.columns().iter().zip(fields);
            let cells = columns.map(|(array, (_, kind))| value_at(array, index, kind));
            Value::List(cells.collect::<Result<_>>()?)
        }
        Type::Nullable(_) => return Err(odd()),
    })
}

fn write(kind: &Type, value: &Value, dialect: &str) -> Result<Vec<u8>> {
    let (columns, shape) = (root_columns(kind), root_shape(kind));
    let mut reading = Reading::plain(&Limits::default());
    let mut builders: Vec<ColumnBuilder> =
        columns.iter().map(|(_, kind)| ColumnBuilder::new(kind, &reading)).collect();
    let elements = match (shape, value) {
        (Shape::Table | Shape::Array, Value::List(elements)) => elements.as_slice(),
        (Shape::Table | Shape::Array, other) => return Err(mismatch("a list", other)),
        _ => std::slice::from_ref(value),
    };
    for (row, element) in elements.iter().enumerate() {
        let cells = match (shape, element) {
            (Shape::Table, Value::List(cells)) if cells.len() == columns.len() => cells.as_slice(),
            (Shape::Table, other) => {
                return Err(mismatch(&format!("a row of {} cells", columns.len()), other));
            }
            _ => std::slice::from_ref(element),
        };
        for ((cell, builder), (name, _)) in cells.iter().zip(&mut builders).zip(&columns) {
            let pushed = builder.push_value(cell, &mut reading);
            pushed.map_err(|error| place_cell(error, shape, row as u64, name))?;
        }
    }
    let schema = Arc::new(kind.to_schema()?);
    let arrays = builders.iter_mut().zip(schema.fields()).map(|(builder, field)| builder.finish(field, None));
    let batch = rows::batch(Arc::clone(&schema), arrays.collect::<Result<_>>()?, elements.len())?;
    let mut options = WriteOptions::default();
    options.dialect = Some(dialect.to_owned());
    options.row_count = Some(elements.len() as u64);
    let (sink, memory) = Sink::memory();
    let mut writer = Ds.plan(&schema, &options)?.create(sink)?;
    writer.write(&batch)?;
    writer.finish()?;
    Ok(memory.take())
}

#[cold]
fn mismatch(expected: &str, found: &Value) -> Error {
    let found = match found {
        Value::List(items) => format!("a list of {}", items.len()),
        Value::Image(bytes) => format!("an image of {} bytes", bytes.len()),
        other => format!("{other:?}"),
    };
    Error::malformed(expected, found).rule("mismatch")
}

impl ColumnBuilder {
    /// Appends a value.
    fn push_value(&mut self, value: &Value, reading: &mut Reading) -> Result<()> {
        fn integer<T: TryFrom<i64> + TryFrom<u64>>(value: &Value, kind: Fundamental) -> Result<T> {
            let number = match value {
                Value::Int(number) => T::try_from(*number).ok(),
                Value::Uint(number) => T::try_from(*number).ok(),
                other => return Err(mismatch(kind.name(), other)),
            };
            number.ok_or_else(|| out_of_range(kind, format_args!("{value:?}"), 0))
        }
        match (self, value) {
            (ColumnBuilder::Nullable { valid, inner }, Value::Null) => {
                inner.push_placeholders(1, reading)?;
                valid.push(false);
            }
            (ColumnBuilder::Nullable { valid, inner }, value) => {
                inner.push_value(value, reading)?;
                valid.push(true);
            }
            (ColumnBuilder::Void(len), Value::Void) => *len += 1,
            (ColumnBuilder::Bool(values), Value::Bool(value)) => values.push(*value),
            (ColumnBuilder::UInt8(values), value) => values.push(integer(value, Fundamental::UInt8)?),
            (ColumnBuilder::UInt32(values), value) => values.push(integer(value, Fundamental::UInt32)?),
            (ColumnBuilder::UInt64(values), value) => values.push(integer(value, Fundamental::UInt64)?),
            (ColumnBuilder::Int8(values), value) => values.push(integer(value, Fundamental::Int8)?),
            (ColumnBuilder::Int32(values), value) => values.push(integer(value, Fundamental::Int32)?),
            (ColumnBuilder::Int64(values), value) => values.push(integer(value, Fundamental::Int64)?),
            (ColumnBuilder::Float32(values), Value::Float32(value)) => values.push(*value),
            (ColumnBuilder::Float64(values), Value::Float64(value)) => values.push(*value),
            (ColumnBuilder::Text(blob), Value::String(text)) => {
                blob.bytes.extend_from_slice(text.as_bytes());
                blob.end()?;
            }
            (ColumnBuilder::Image(blob, picture), Value::Image(bytes)) => {
                blob.bytes.extend_from_slice(bytes);
                blob.end_image(picture, &reading.budget)?;
            }
            (ColumnBuilder::Tensor { item, count, len }, Value::List(items)) => {
                if items.len() != *count {
                    return Err(wrong_arity("a tensor", *count, items.len(), 0));
                }
                items.iter().try_for_each(|value| item.push_value(value, reading))?;
                *len += 1;
            }
            (ColumnBuilder::List { offsets, item, row_count }, Value::List(items)) => {
                if let Some(expected) = row_count.filter(|expected| *expected != items.len() as u64) {
                    return Err(wrong_row_count(expected, items.len(), 0));
                }
                items.iter().try_for_each(|value| item.push_value(value, reading))?;
                offsets.push(offset(item.len())?);
            }
            (ColumnBuilder::Struct { fields, len, .. }, Value::List(cells)) => {
                if cells.len() != fields.len() {
                    return Err(wrong_arity("an array", fields.len(), cells.len(), 0));
                }
                fields.iter_mut().zip(cells).try_for_each(|(field, cell)| field.push_value(cell, reading))?;
                *len += 1;
            }
            (column, other) => return Err(mismatch(column.noun(), other)),
        }
        Ok(())
    }

    /// The name of its values, for messages.
    fn noun(&self) -> &'static str {
        match self {
            ColumnBuilder::Void(_) => "void",
            ColumnBuilder::Bool(_) => "a bool",
            ColumnBuilder::Float32(_) => "a float32",
            ColumnBuilder::Float64(_) => "a float64",
            ColumnBuilder::Text(_) => "a string",
            ColumnBuilder::Image(..) => "an image",
            ColumnBuilder::Tensor { .. } | ColumnBuilder::List { .. } | ColumnBuilder::Struct { .. } => {
                "a list"
            }
            _ => "an integer",
        }
    }
}
