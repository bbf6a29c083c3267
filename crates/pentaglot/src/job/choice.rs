//! What helps where a plan cannot run as it is.

use arrow_schema::Schema;

use crate::error::Hint;
use crate::hub::{FieldPlan, Form, Plan, Verdict, extension};

/// The argument that helps: a type without images, or a choice of columns. `target` is a format.
pub(super) fn hint(schema: &Schema, plan: &Plan, target: &str) -> Option<Hint> {
    let mut fields = schema.fields().iter();
    match fields.any(|field| extension::name(field) == Some(extension::IMAGE)) {
        true => Some(Hint::Argument("as", "TYPE".into())),
        false => columns(schema, plan, target),
    }
}

/// The choice of columns that helps where the target holds only some columns of a table, or only one.
fn columns(schema: &Schema, plan: &Plan, target: &str) -> Option<Hint> {
    let is_several = Form::of(schema) == Form::Table && schema.fields().len() > 1;
    let is_impossible = |step: &&FieldPlan| step.verdict == Verdict::Impossible;
    let impossible: Vec<&FieldPlan> = plan.steps.iter().filter(is_impossible).collect();
    let first = impossible.first().filter(|_| is_several)?;
    if first.field.is_empty() && first.to == target {
        return Some(Hint::Argument("columns", "NAME".into()));
    }
    let mut names: Vec<&str> = impossible.iter().map(|step| step.field.as_str()).collect();
    names.dedup();
    let is_column = |name: &&str| schema.fields().iter().any(|field| field.name() == *name);
    if names.len() >= schema.fields().len() || !names.iter().all(is_column) {
        return None;
    }
    let escaped: Vec<String> = names.iter().map(|name| name.replace(',', "\\,")).collect();
    Some(Hint::Argument("exclude", escaped.join(",").into()))
}
