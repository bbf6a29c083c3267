//! The type that a conversion is asked for, and what adapts data to it.

use arrow_schema::SchemaRef;

use super::convert_options::ConvertOptions;
use super::{open, types};
use crate::convert::adapt::{self, Adapter};
use crate::convert::reshape;
use crate::error::{Hint, Result};
use crate::hub::Form;
use crate::registry::Registry;

/// The schema that a user asks for.
pub(super) fn wanted_type(text: &str, options: &ConvertOptions) -> Result<SchemaRef> {
    let limits = options.open.budget.limits();
    let wanted = types::parse_type(text, None, limits).and_then(|wanted| wanted.schema());
    wanted.map_err(|error| {
        let usage = types::as_usage("the wanted type", error);
        match open::target(&Registry::default(), text) {
            Ok(_) => usage.hint(Hint::Argument("to", text.to_owned().into())),
            Err(_) => usage,
        }
    })
}

/// What adapts data to a type: a matrix that is to be a table becomes columns first.
pub(super) fn adapter_to(
    text: &str,
    schema: &SchemaRef,
    options: &ConvertOptions,
) -> Result<(reshape::Reshape, Adapter)> {
    let wanted = wanted_type(text, options)?;
    let form = match (Form::of(schema), Form::of(&wanted)) {
        (Form::Dense | Form::Sparse, Form::Table) => Form::Columns,
        (Form::Array | Form::Value, Form::Table) => Form::Table,
        (from, to) if from != to && matches!(to, Form::Dense | Form::Sparse | Form::Array) => to,
        (from, _) => from,
    };
    let mut shaped = match (form, Form::of(&wanted)) {
        // All rows together are the one value that is wanted.
        (Form::Dense | Form::Array, Form::Value) => match reshape::rows_of_value(schema, wanted.field(0)) {
            Some(count) => reshape::plan_value(schema, count)?,
            None => reshape::plan(schema, form)?,
        },
        _ => reshape::plan(schema, form)?,
    };
    if form == Form::Columns && Form::of(&wanted) == Form::Table {
        shaped.forget_shape();
    }
    let adapter = adapt::adapter(&shaped.schema, &wanted);
    Ok((shaped, adapter))
}
