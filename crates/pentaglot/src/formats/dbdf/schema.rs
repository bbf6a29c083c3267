//! The Arrow schema of an object, with its native type; and back.

use std::collections::HashMap;

use arrow_schema::{DataType as ArrowType, Field, Schema};
use serde_json::{Value, json};

use crate::error::Result;
use crate::hub::{Form, native, shape};
use crate::limits::Limits;

use super::ID;
use super::layout::Header;
use super::meta::Meta;
use super::types::{BlockType, DataType, Dialect, ValueType};

/// The names of the columns of a frame in the hub.
pub(super) fn column_names(header: &Header, meta: Option<&Meta>) -> Vec<String> {
    let labels = meta.and_then(|meta| meta.columns.as_ref());
    let name = |(index, label): (usize, &Vec<u8>)| {
        let from_meta = labels.and_then(|labels| labels.get(index)).map(|(label, _)| label.clone());
        from_meta.filter(|label| !label.is_empty()).unwrap_or_else(|| own_name(header, index, label))
    };
    header.labels.iter().enumerate().map(name).collect()
}

/// The name of a column by its label alone.
fn own_name(header: &Header, index: usize, label: &[u8]) -> String {
    let text = match header.dialect {
        Dialect::Spec => std::str::from_utf8(label).ok().map(str::to_owned),
        // DAPHNE writes the memory of its string objects, which is never text.
        Dialect::Daphne | Dialect::Daphne01 => None,
    };
    text.unwrap_or_else(|| shape::column_name(index as u64))
}

/// Whether a matrix is read as dense rows: their width must fit in an Arrow list and in the budget.
pub(super) fn is_dense(header: &Header, limits: &Limits) -> bool {
    header.data_type == DataType::DenseMatrix
        && i32::try_from(header.cols).is_ok()
        && header.row_bytes().is_some_and(|bytes| bytes <= limits.max_alloc)
}

/// The schema of the rows of an object.
pub(super) fn of(header: &Header, names: &[String], limits: &Limits) -> Result<Schema> {
    let value = || header.value_type(0).map_or(ArrowType::Null, ValueType::arrow);
    let schema = match header.data_type {
        DataType::Frame => {
            let field = |(name, value_type): (&String, &ValueType)| {
                Field::new(name.clone(), value_type.arrow(), false)
            };
            let fields: Vec<Field> = names.iter().zip(&header.value_types).map(field).collect();
            let shape = (shape::SHAPE_KEY.to_owned(), shape::Shape::Table.name().to_owned());
            Schema::new_with_metadata(fields, HashMap::from([shape]))
        }
        DataType::Scalar => shape::value_schema(Field::new(shape::VALUE_FIELD, value(), false)),
        DataType::DenseMatrix if is_dense(header, limits) => {
            shape::dense_schema(value(), Some(header.rows), header.cols)?
        }
        DataType::DenseMatrix | DataType::CsrMatrix => {
            shape::sparse_schema(value(), Some(header.rows), header.cols)
        }
    };
    Ok(native::with(schema, ID, native_type(header, names)))
}

fn native_type(header: &Header, names: &[String]) -> Value {
    let data_type = header.data_type.name();
    if header.data_type != DataType::Frame {
        let value_type = header.value_type(0).map(ValueType::name);
        return json!({ "dataType": data_type, "valueType": value_type });
    }
    let column = |(index, ((name, value_type), label)): (usize, ((&String, &ValueType), &Vec<u8>))| {
        let mut column = json!({ "name": name, "valueType": value_type.name() });
        // The bytes of a label are kept only if they are the column's name: a name from `.meta` replaces
        // them.
        if let Some(column) = column.as_object_mut()
            && own_name(header, index, label) == *name
        {
            column.insert("label".to_owned(), Value::String(hex(label)));
        }
        column
    };
    let columns = names.iter().zip(&header.value_types).zip(&header.labels).enumerate();
    let columns: Vec<Value> = columns.map(column).collect();
    json!({ "dataType": data_type, "dialect": header.dialect.name(), "columns": columns })
}

/// The object that a writer creates for a schema, with the labels of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) data_type: DataType,
    /// One for a matrix, one per column for a frame; `None` if the format has no such type.
    pub(super) value_types: Vec<Option<ValueType>>,
    pub(super) labels: Vec<Vec<u8>>,
}

/// The object that is being written.
pub(super) struct Object {
    pub(super) dialect: Dialect,
    pub(super) data_type: DataType,
    pub(super) form: Form,
    pub(super) cols: u64,
    pub(super) value_types: Vec<ValueType>,
    pub(super) labels: Vec<Vec<u8>>,
}

impl Object {
    /// The header of a file of this object.
    pub(super) fn header(&self, rows: u64) -> Vec<u8> {
        let mut bytes = vec![1, self.data_type.code()];
        bytes.extend(rows.to_le_bytes());
        bytes.extend(self.cols.to_le_bytes());
        bytes.extend(self.value_types.iter().map(|value_type| value_type.code(self.dialect).unwrap_or(0)));
        for label in &self.labels {
            bytes.extend(u16::try_from(label.len()).unwrap_or(u16::MAX).to_le_bytes());
            bytes.extend(label);
        }
        bytes
    }

    /// The bytes between header and values in DAPHNE's dialect: position and, for a matrix, the block header.
    pub(super) fn daphne_block(&self, rows: u64) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        if self.data_type != DataType::Frame {
            bytes.extend(u32::try_from(rows).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend(u32::try_from(self.cols).unwrap_or(u32::MAX).to_le_bytes());
            let sparse = self.data_type == DataType::CsrMatrix;
            bytes.push(if sparse { BlockType::Sparse } else { BlockType::Dense }.code());
            bytes.extend(self.value_type().code(self.dialect));
        }
        bytes
    }

    pub(super) fn value_type(&self) -> ValueType {
        self.value_types.first().copied().unwrap_or(ValueType::Float64)
    }
}

/// The object that a writer of a dialect creates for a schema; `None` for shapes that the format does not
/// have.
pub(super) fn target(schema: &Schema, dialect: Dialect) -> Option<Target> {
    let mut target = match Form::of(schema) {
        Form::Table => Target {
            data_type: DataType::Frame,
            value_types: schema.fields().iter().map(|field| widened(field.data_type())).collect(),
            labels: schema.fields().iter().map(|field| field.name().clone().into_bytes()).collect(),
        },
        form @ (Form::Dense | Form::Sparse) => Target {
            data_type: if form == Form::Dense { DataType::DenseMatrix } else { DataType::CsrMatrix },
            value_types: vec![shape::matrix_value_type(schema).and_then(|kind| widened(&kind))],
            labels: Vec::new(),
        },
        _ => return None,
    };
    if let Some(native) = native::of(schema, ID) {
        apply_native(&mut target, schema, &native, dialect);
    }
    Some(target)
}

/// Applies the native type, if it is the type of exactly this schema.
fn apply_native(target: &mut Target, schema: &Schema, native: &Value, dialect: Dialect) -> Option<()> {
    let text = |value: &Value, key: &str| Some(value.get(key)?.as_str()?.to_owned());
    let data_type = DataType::from_name(&text(native, "dataType")?)?;
    match (target.data_type, data_type) {
        (DataType::Frame, DataType::Frame) => {
            let columns = native.get("columns")?.as_array()?;
            // Label bytes that are not the column's name are meaningless in another dialect: in DAPHNE's they
            // are memory.
            let same_dialect = text(native, "dialect").is_some_and(|name| name == dialect.name());
            let mut value_types = Vec::new();
            let mut labels = Vec::new();
            for (field, column) in schema.fields().iter().zip(columns) {
                let value_type = ValueType::from_name(&text(column, "valueType")?)?;
                if text(column, "name")? != *field.name() || value_type.arrow() != *field.data_type() {
                    return None;
                }
                value_types.push(Some(value_type));
                labels.push(match text(column, "label") {
                    Some(label) if same_dialect => unhex(&label)?,
                    _ => field.name().clone().into_bytes(),
                });
            }
            if columns.len() == schema.fields().len() {
                (target.value_types, target.labels) = (value_types, labels);
            }
        }
        // A dense matrix that is too wide for dense rows is read as sparse rows.
        (DataType::CsrMatrix, DataType::DenseMatrix | DataType::CsrMatrix)
        | (DataType::DenseMatrix, DataType::DenseMatrix) => {
            let value_type = ValueType::from_name(&text(native, "valueType")?)?;
            if shape::matrix_value_type(schema)? == value_type.arrow() {
                *target = Target { data_type, value_types: vec![Some(value_type)], labels: Vec::new() };
            }
        }
        _ => {}
    }
    Some(())
}

/// The type that holds every value of an Arrow type.
pub(super) fn widened(kind: &ArrowType) -> Option<ValueType> {
    match kind {
        ArrowType::Boolean => Some(ValueType::UInt8),
        ArrowType::Float16 => Some(ValueType::Float32),
        other => ValueType::from_arrow(other),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}
