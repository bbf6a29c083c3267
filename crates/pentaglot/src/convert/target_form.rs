//! Which form a stream takes for its target (`-O as=…`).

use arrow_schema::{DataType, Schema, SchemaRef};

use super::reshape::{self, Reshape};
use super::tensor::Tensor;
use super::triplets::Triplets;
use crate::error::{Error, Result};
use crate::hub::matrix::widen::{are_numbers, common_type};
use crate::hub::shape::{column_name, matrix_cols};
use crate::hub::{Form, native};

/// A matrix wider than this stays a matrix of `row` lists where the target holds both forms.
pub const MAX_COLUMNS: u64 = 1024;

/// The values of the option `as`.
pub const WORDS: &[&str] = &["auto", "table", "matrix", "sparse", "columns", "rows", "coo"];

/// The form of a stream with this schema for a target that accepts `forms`, the preferred one first.
pub fn choose(schema: &Schema, forms: &[Form], word: &str) -> Result<Form> {
    let from = Form::of(schema);
    let takes = |form: Form| forms.contains(&form);
    let form = match word {
        "auto" => return Ok(automatic(schema, from, forms)),
        "table" if matches!(from, Form::Dense | Form::Sparse) => Form::Columns,
        "table" => Form::Table,
        "matrix" | "rows" => Form::Dense,
        "sparse" => Form::Sparse,
        "columns" => Form::Columns,
        "coo" => Form::Coo,
        _ => {
            return Err(Error::usage(format!(
                "option as: expected one of {}, found {word:?}",
                WORDS.join(", ")
            )));
        }
    };
    // Every form is also a plain table of its rows, so a target that accepts tables accepts it.
    if takes(form) || takes(Form::Table) {
        return Ok(form);
    }
    Err(Error::unsupported(format!("as={word} for this target")))
}

/// The columns of a table that becomes a sparse matrix, one entry per row. A table does if its column names fit
/// and `as=sparse` is set, or if the size of the matrix is given.
pub fn triplets(schema: &Schema, word: &str, has_size: bool) -> Result<Option<Triplets>> {
    let is_table = matches!(Form::of(schema), Form::Table);
    let is_asked = word == "sparse" || has_size && word == "auto";
    if is_table && is_asked { Triplets::of(schema, has_size) } else { Ok(None) }
}

/// A note on a table of three columns of numbers that may be meant as entries, but whose rows become rows of a sparse
/// matrix: the names of its columns say nothing else.
pub fn note_on_rows(schema: &Schema, word: &str) -> Option<String> {
    let fields = schema.fields();
    let is_asked = word == "sparse" && matches!(Form::of(schema), Form::Table) && fields.len() == 3;
    // Columns of a matrix that was a table in between.
    let is_matrix = || (0..).zip(fields).all(|(index, field)| *field.name() == column_name(index));
    if !is_asked || !are_numbers(fields) || is_matrix() {
        return None;
    }
    let renames = Triplets::renames(schema).join(",");
    Some(format!(
        "each row is a row of the matrix; for entries rename {renames}, or give the option shape=ROWSxCOLS"
    ))
}

/// Plans the change of a table of row, column and value, as a matrix of a known size, for a target that
/// accepts `forms`.
pub fn plan_triplets(
    schema: &SchemaRef,
    forms: &[Form],
    triplets: Triplets,
    size: (u64, u64),
) -> Result<Reshape> {
    if !forms.contains(&Form::Sparse) {
        return Err(Error::unsupported("as=sparse for this target"));
    }
    Ok(reshape::plan_triplets(schema, triplets, size))
}

/// Plans what a stream with this schema becomes for a target that accepts `forms`. No other code decides
/// this.
pub fn plan(schema: &SchemaRef, forms: &[Form], word: &str) -> Result<Reshape> {
    let form = choose(schema, forms, word)?;
    let mut shaped = reshape::plan(schema, form)?;
    if !forms.contains(&form) && forms.contains(&Form::Table) {
        // The target holds it as the plain table of its rows.
        shaped.forget_shape();
    }
    Ok(shaped)
}

fn automatic(schema: &Schema, from: Form, forms: &[Form]) -> Form {
    let rank = |form: Form| forms.iter().position(|taken| *taken == form);
    let takes = |form: Form| rank(form).is_some();
    let before = |first: Form, second: Form| match (rank(first), rank(second)) {
        (Some(first), Some(second)) => first < second,
        (first, _) => first.is_some(),
    };
    match from {
        Form::Table => {
            let matrix = if takes(Form::Dense) { Form::Dense } else { Form::Sparse };
            // An array of structs stays one.
            let is_struct = native::of_sliced(schema, "npy").is_some() && takes(Form::Table);
            match common_type(schema.fields()) {
                Some(_) if !is_struct && before(matrix, Form::Table) => matrix,
                // A column of tensors is an array with one dimension more, or the rows of a matrix.
                None if is_tensor(schema) && before(Form::Array, Form::Table) => Form::Array,
                None if is_tensor(schema) && takes(Form::Dense) && !takes(Form::Array) => Form::Dense,
                _ if takes(Form::Table) => Form::Table,
                _ if takes(Form::Array) && schema.fields().len() == 1 => Form::Array,
                _ => matrix,
            }
        }
        Form::Dense | Form::Columns => {
            // Without columns, the type of the matrix and its rows would be lost.
            let wide = matrix_cols(schema).is_some_and(|cols| cols > MAX_COLUMNS || cols == 0);
            if before(Form::Dense, Form::Columns) || (wide && takes(Form::Dense)) {
                Form::Dense
            } else if takes(Form::Columns) || takes(Form::Table) {
                Form::Columns
            } else if takes(Form::Sparse) {
                Form::Sparse
            } else {
                from
            }
        }
        Form::Sparse | Form::Coo => {
            if before(Form::Sparse, Form::Coo) {
                Form::Sparse
            } else if takes(Form::Coo) {
                Form::Coo
            } else if takes(Form::Dense) {
                Form::Dense
            } else {
                Form::Coo
            }
        }
        Form::Array if takes(Form::Array) => Form::Array,
        // In formats whose arrays have dimensions (npy, dynd), a tensor is an array of its outermost dimension. A
        // nullable tensor is a value, if the target has values.
        Form::Value
            if is_tensor(schema)
                && before(Form::Dense, Form::Array)
                && before(Form::Array, Form::Value)
                && !(takes(Form::Value) && schema.field(0).is_nullable()) =>
        {
            if dimensions(schema) == 2 {
                Form::Dense
            } else {
                Form::Array
            }
        }
        Form::Value if takes(Form::Value) => Form::Value,
        // Numbers and tensors are the rows of a matrix in targets with matrices but without arrays (dbdf).
        Form::Array if (is_number(schema) || is_tensor(schema)) && takes(Form::Dense) => Form::Dense,
        Form::Value if is_tensor(schema) && takes(Form::Array) => Form::Array,
        Form::Value if is_tensor(schema) && takes(Form::Dense) => Form::Dense,
        Form::Array | Form::Value if takes(Form::Table) => Form::Table,
        other => other,
    }
}

fn is_number(schema: &Schema) -> bool {
    schema.fields().first().is_some_and(|field| {
        field.data_type().is_numeric()
            && !matches!(field.data_type(), DataType::Decimal128(..) | DataType::Decimal256(..))
    })
}

/// Whether the only field holds numbers in one dimension or more.
fn is_tensor(schema: &Schema) -> bool {
    dimensions(schema) > 0
}

/// The dimensions of the values of the only field; 0 if they are not numbers of a fixed shape.
fn dimensions(schema: &Schema) -> usize {
    match schema.fields().as_ref() {
        [field] => Tensor::of(field).map_or(0, |tensor| tensor.shape.len()),
        _ => 0,
    }
}
