//! Leaving the hub: which form a stream takes for its target (`-O as=…`).

use arrow_schema::{DataType, Schema, SchemaRef};

use super::reshape::{self, Reshape, common_type};
use crate::error::{Error, Result};
use crate::hub::Form;
use crate::hub::shape::matrix_cols;

/// A matrix wider than this stays a matrix of `row` lists where the target holds both forms.
pub const MAX_COLUMNS: u64 = 1024;

/// The words of `-O as=…`.
pub const WORDS: &[&str] = &["auto", "table", "matrix", "sparse", "columns", "rows", "coo"];

/// The form that a stream with this schema takes for a target that takes `forms`, the preferred one first.
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
    // Whoever takes tables takes every form as the plain table that its rows are.
    if takes(form) || takes(Form::Table) {
        return Ok(form);
    }
    Err(Error::unsupported(format!("the target does not take as={word}")))
}

/// What a stream with this schema becomes for a target that takes `forms`: the one place that decides it.
pub fn leave(schema: &SchemaRef, forms: &[Form], word: &str) -> Result<Reshape> {
    let form = choose(schema, forms, word)?;
    let mut shaped = reshape::plan(schema, form)?;
    if !forms.contains(&form) && forms.contains(&Form::Table) {
        // The target holds it as the plain table that its rows are.
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
            match common_type(schema.fields()) {
                Some(_) if before(matrix, Form::Table) => matrix,
                _ if takes(Form::Table) => Form::Table,
                _ if takes(Form::Array) && schema.fields().len() == 1 => Form::Array,
                _ => matrix,
            }
        }
        Form::Dense | Form::Columns => {
            // Without columns there is nothing that could carry the matrix's type and rows.
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
        Form::Value if takes(Form::Value) => Form::Value,
        // Numbers are a matrix of one column where there are matrices but no arrays (dbdf).
        Form::Array if is_number(schema) && takes(Form::Dense) => Form::Dense,
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
