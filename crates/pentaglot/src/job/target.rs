//! The plan of the output of a conversion.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};

use super::open::Target;
use crate::convert::adapt::{self, Adapter};
use crate::error::{Context, Result};
use crate::formats::{WriteOptions, WritePlan};
use crate::hub::{Verdict, native};

/// The plan of a target and, if it has no dictionaries, what replaces them by their values.
pub(super) fn plan_target(
    target: &Target,
    schema: &SchemaRef,
    options: &WriteOptions,
) -> Result<(Box<dyn WritePlan>, Option<Adapter>)> {
    let planned = |schema: &SchemaRef| {
        let planned = target.format.plan(schema, options).in_format(target.format.info().id);
        planned.map_err(|error| match &options.name {
            Some(name) => error.in_output(name),
            None => error,
        })
    };
    let plan = planned(schema)?;
    let impossible = |plan: &dyn WritePlan| {
        plan.plan().steps.iter().filter(|step| step.verdict == Verdict::Impossible).count()
    };
    if impossible(&*plan) > 0
        && let Some(values) = dictionary_values(schema)
    {
        let again = planned(&values)?;
        if impossible(&*again) < impossible(&*plan) {
            let mut adapter = adapt::adapter(schema, &values);
            adapter.plan.steps.retain(|step| step.verdict > Verdict::Exact);
            return Ok((again, Some(adapter)));
        }
    }
    Ok((plan, None))
}

/// The schema with the values of dictionaries in place of them; `None` if there are no dictionaries.
fn dictionary_values(schema: &SchemaRef) -> Option<SchemaRef> {
    let values = |field: &FieldRef| match field.data_type() {
        DataType::Dictionary(_, value) => {
            Arc::new(field.as_ref().clone().with_data_type(value.as_ref().clone()))
        }
        _ => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(values).collect();
    let plain = native::without(schema);
    let changed = fields.iter().zip(schema.fields()).any(|(one, other)| one != other);
    changed.then(|| Arc::new(Schema::new_with_metadata(fields, plain.metadata().clone())))
}
