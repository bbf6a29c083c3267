//! The shapes of data and how a schema declares them.
//!
//! | shape | rows of the stream |
//! |---|---|
//! | `table` | one per record, a field per column |
//! | `matrix`, dense | one per matrix row; a single field `row`: `FixedSizeList<T, cols>` |
//! | `matrix`, sparse | one per matrix row; a single field `row`: `LargeList<Struct<col, value>>`, extension `pentaglot.sparse_row`: this is CSR |
//! | `array` | one per element of the outermost dimension; a single field `item` |
//! | `value` | exactly one row; a single field `value` |
//!
//! For formats without matrices, a matrix also has two table forms: one column per matrix column (`col_0`, `col_1`, …)
//! or `row, col, value`. Schema metadata still declares the matrix, so converting back is exact.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};

use super::extension::{self, SPARSE_ROW};
use super::plan::{Effect, Plan};
use crate::error::{Error, Result};

/// The note of a step whose target cannot store the names of columns. Every value is preserved; a run reports the note
/// afterwards.
pub const NAMES_NOT_KEPT: &str = "names are not kept";

/// The note of a step whose target cannot store the size of a sparse matrix. Every entry is preserved; a run reports
/// the note afterwards.
pub const SIZE_NOT_KEPT: &str = "the numbers of rows and columns are not kept";

/// Schema-metadata key of the shape.
pub const SHAPE_KEY: &str = "pentaglot.shape";
/// Schema-metadata key of a matrix's number of rows.
pub const ROWS_KEY: &str = "pentaglot.rows";
/// Schema-metadata key of a matrix's number of columns.
pub const COLS_KEY: &str = "pentaglot.cols";
/// Schema-metadata key of the order in which a dense matrix was stored: `F` for column by column. The rows of the
/// stream are the same; a target that supports both orders keeps it.
pub const ORDER_KEY: &str = "pentaglot.order";
/// Name of the single field of a matrix.
pub const ROW_FIELD: &str = "row";
/// Name of the single field of an array.
pub const ITEM_FIELD: &str = "item";
/// Name of the single field of a value.
pub const VALUE_FIELD: &str = "value";

/// The shape of the data of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Records with named columns.
    Table,
    /// Two dimensions of one type.
    Matrix,
    /// One dimension of any type.
    Array,
    /// One value of any type.
    Value,
}

impl Shape {
    /// The name in the metadata.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Table => "table",
            Shape::Matrix => "matrix",
            Shape::Array => "array",
            Shape::Value => "value",
        }
    }

    /// The shape that a schema declares; a schema that declares none is a table.
    pub fn of(schema: &Schema) -> Self {
        match schema.metadata().get(SHAPE_KEY).map(String::as_str) {
            Some("matrix") => Shape::Matrix,
            Some("array") if schema.fields().len() == 1 => Shape::Array,
            Some("value") if schema.fields().len() == 1 => Shape::Value,
            _ => Shape::Table,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the rows of a stream represent its shape: formats declare the forms that they accept, and reshaping
/// produces them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// A table.
    Table,
    /// A dense matrix, one `FixedSizeList` per row.
    Dense,
    /// A sparse matrix, one list of (col, value) per row.
    Sparse,
    /// A matrix as a table with one column per matrix column.
    Columns,
    /// A matrix as a table `row, col, value`.
    Coo,
    /// An array.
    Array,
    /// A single value.
    Value,
}

impl Form {
    /// The form that a schema has. A `matrix` whose fields fit no matrix form is a table.
    pub fn of(schema: &Schema) -> Self {
        match Shape::of(schema) {
            Shape::Table => Form::Table,
            Shape::Array => Form::Array,
            Shape::Value => Form::Value,
            Shape::Matrix => matrix_form(schema).unwrap_or(Form::Table),
        }
    }
}

fn matrix_form(schema: &Schema) -> Option<Form> {
    let fields = schema.fields();
    if let [only] = fields.as_ref() {
        match only.data_type() {
            DataType::FixedSizeList(_, _) if only.name() == ROW_FIELD => return Some(Form::Dense),
            DataType::LargeList(_) if extension::name(only) == Some(SPARSE_ROW) => return Some(Form::Sparse),
            _ => {}
        }
    }
    if let [row, col, value] = fields.as_ref()
        && (row.name().as_str(), col.name().as_str(), value.name().as_str()) == ("row", "col", "value")
        && row.data_type().is_integer()
        && col.data_type().is_integer()
    {
        return Some(Form::Coo);
    }
    let columns = fields.iter().enumerate().all(|(index, field)| *field.name() == column_name(index as u64));
    columns.then_some(Form::Columns)
}

/// The name of matrix column `index`: `col_0`, `col_1`, …
pub fn column_name(index: u64) -> String {
    format!("col_{index}")
}

/// The schema of a dense matrix. `rows` is `None` if not known in advance.
pub fn dense_schema(value: DataType, rows: Option<u64>, cols: u64) -> Result<Schema> {
    let width = i32::try_from(cols).map_err(|_| {
        Error::unsupported(format!("a dense matrix of {cols} columns (at most 2147483647 fit)"))
    })?;
    let item = Field::new_list_field(value, false);
    let field = Field::new_fixed_size_list(ROW_FIELD, item, width, false);
    Ok(Schema::new_with_metadata(vec![field], matrix_metadata(rows, cols)))
}

/// The schema of a sparse matrix. Column indices are UInt32, past 2^32 columns UInt64.
pub fn sparse_schema(value: DataType, rows: Option<u64>, cols: u64) -> Schema {
    let list = DataType::LargeList(Arc::new(Field::new_list_field(
        DataType::Struct(entry_fields(value, cols)),
        false,
    )));
    let field = extension::with(Field::new(ROW_FIELD, list, false), SPARSE_ROW, None);
    Schema::new_with_metadata(vec![field], matrix_metadata(rows, cols))
}

/// The fields `col`, `value` of the entries of a sparse row.
pub fn entry_fields(value: DataType, cols: u64) -> Fields {
    let col = if cols > 1 << 32 { DataType::UInt64 } else { DataType::UInt32 };
    Fields::from(vec![Field::new("col", col, false), Field::new("value", value, false)])
}

/// The schema of an array with elements `item` (its name is replaced by `item`).
pub fn array_schema(item: Field) -> Schema {
    let metadata = HashMap::from([(SHAPE_KEY.to_owned(), Shape::Array.name().to_owned())]);
    Schema::new_with_metadata(vec![item.with_name(ITEM_FIELD)], metadata)
}

/// The schema of a single value (its name is replaced by `value`).
pub fn value_schema(value: Field) -> Schema {
    let metadata = HashMap::from([(SHAPE_KEY.to_owned(), Shape::Value.name().to_owned())]);
    Schema::new_with_metadata(vec![value.with_name(VALUE_FIELD)], metadata)
}

/// The metadata of a matrix of this shape.
pub fn matrix_metadata(rows: Option<u64>, cols: u64) -> HashMap<String, String> {
    let mut metadata = HashMap::from([
        (SHAPE_KEY.to_owned(), Shape::Matrix.name().to_owned()),
        (COLS_KEY.to_owned(), cols.to_string()),
    ]);
    if let Some(rows) = rows {
        metadata.insert(ROWS_KEY.to_owned(), rows.to_string());
    }
    metadata
}

/// Adds the effect on a matrix in columns or as `row, col, value` of a target that writes its rows as a plain table.
pub fn plan_plain_table(schema: &Schema, plan: &mut Plan) {
    match Form::of(schema) {
        Form::Columns => {
            plan.step("", "matrix", "table", Effect::widened().because("comes back as a table"));
        }
        Form::Coo => {
            let effect = Effect::widened().because(SIZE_NOT_KEPT);
            plan.step("", "sparse matrix", "row, col, value", effect);
        }
        _ => {}
    }
}

/// Whether a dense matrix was stored column by column.
pub fn is_column_major(schema: &Schema) -> bool {
    has_fortran_order(schema) && Form::of(schema) == Form::Dense
}

/// Whether elements were stored in Fortran order, whatever the number of dimensions.
pub fn has_fortran_order(schema: &Schema) -> bool {
    schema.metadata().get(ORDER_KEY).is_some_and(|order| order == "F")
}

/// The number of rows that the schema of a matrix declares.
pub fn matrix_rows(schema: &Schema) -> Option<u64> {
    schema.metadata().get(ROWS_KEY)?.parse().ok()
}

/// The number of columns of a matrix in any of its forms.
pub fn matrix_cols(schema: &Schema) -> Option<u64> {
    match (Form::of(schema), schema.fields().first().map(|field| field.data_type())) {
        (Form::Dense, Some(DataType::FixedSizeList(_, cols))) => u64::try_from(*cols).ok(),
        (Form::Columns, _) => Some(schema.fields().len() as u64),
        (Form::Sparse | Form::Coo, _) => schema.metadata().get(COLS_KEY)?.parse().ok(),
        _ => None,
    }
}

/// The type of a matrix's values in any of its forms; `None` where columns differ or there are none.
pub fn matrix_value_type(schema: &Schema) -> Option<DataType> {
    let first = schema.fields().first()?;
    match (Form::of(schema), first.data_type()) {
        (Form::Dense, DataType::FixedSizeList(item, _)) => Some(item.data_type().clone()),
        (Form::Sparse, DataType::LargeList(entry)) => match entry.data_type() {
            DataType::Struct(fields) => fields.get(1).map(|field| field.data_type().clone()),
            _ => None,
        },
        (Form::Coo, _) => schema.fields().get(2).map(|field| field.data_type().clone()),
        (Form::Columns, kind) => {
            schema.fields().iter().all(|field| field.data_type() == kind).then(|| kind.clone())
        }
        _ => None,
    }
}
