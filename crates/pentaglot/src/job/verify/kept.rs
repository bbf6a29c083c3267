//! The types under which rows are compared with what is read back: those written, without what the file does not
//! keep and the plan says so.
//!
//! | written | read | compared as |
//! |---|---|---|
//! | an extension type | its storage | the storage |
//! | a timestamp of a zone | of no or another zone | read |
//! | a map | a list of structs | read |
//! | anything else | | written: what was read is cast |
//!
//! All of these have the same encoding in an identity, so that only the text of the type changes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::error::Result;
use crate::hub::{Plan, Rows, Verdict, extension, rows};

/// The schema under which rows of the schema `written` are compared.
pub(super) fn schema(written: &SchemaRef, read: &SchemaRef, plan: &Plan) -> SchemaRef {
    if read.fields().len() != written.fields().len() {
        return Arc::clone(written);
    }
    let is_changed = |name: &str| {
        let mut steps = plan.steps.iter().filter(|step| step.verdict > Verdict::Exact);
        steps.any(|step| step.field.is_empty() || is_within(&step.field, name))
    };
    let fields = written.fields().iter().zip(read.fields());
    let fields: Vec<FieldRef> = fields
        .map(|(written, read)| match is_changed(written.name()) {
            true => Arc::new(field(written, read)),
            false => Arc::clone(written),
        })
        .collect();
    Arc::new(Schema::new_with_metadata(fields, written.metadata().clone()))
}

/// Whether a path is that of the column or of a part of it.
fn is_within(path: &str, column: &str) -> bool {
    path.strip_prefix(column).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn field(written: &Field, read: &Field) -> Field {
    let kept = written.clone().with_data_type(data_type(written.data_type(), read.data_type()));
    match (extension::name(written), extension::name(read)) {
        (Some(_), None) => extension::without(kept),
        _ => kept,
    }
}

fn data_type(written: &DataType, read: &DataType) -> DataType {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct, Timestamp};
    match (written, read) {
        (Timestamp(unit, _), Timestamp(_, zone)) => Timestamp(*unit, zone.clone()),
        (List(a), List(b) | LargeList(b) | FixedSizeList(b, _)) => List(Arc::new(field(a, b))),
        (LargeList(a), List(b) | LargeList(b) | FixedSizeList(b, _)) => LargeList(Arc::new(field(a, b))),
        (FixedSizeList(a, size), List(b) | LargeList(b) | FixedSizeList(b, _)) => {
            FixedSizeList(Arc::new(field(a, b)), *size)
        }
        (Map(a, sorted), Map(b, _)) => Map(Arc::new(field(a, b)), *sorted),
        (Map(entries, _), List(b) | LargeList(b)) => match (entries.data_type(), b.data_type()) {
            // The names of the entries are those of the list: a map has none in an identity.
            (Struct(a), Struct(names)) if a.len() == names.len() => {
                let parts = a.iter().zip(names);
                let parts = parts.map(|(a, b)| Arc::new(field(a, b).with_name(b.name())));
                let entry = Struct(parts.collect::<Fields>());
                List(Arc::new(entries.as_ref().clone().with_data_type(entry)))
            }
            _ => written.clone(),
        },
        (Struct(a), Struct(b)) if a.len() == b.len() => {
            let by_name = |name: &str| b.iter().find(|field| field.name() == name);
            let parts = a.iter().zip(b);
            let parts = parts.map(|(a, other)| Arc::new(field(a, by_name(a.name()).unwrap_or(other))));
            Struct(parts.collect())
        }
        _ => written.clone(),
    }
}

/// Times of day that were stored as durations since midnight, as times again.
pub(super) fn as_times(stream: Rows, written: &SchemaRef) -> Rows {
    let found = stream.schema();
    let fields = found.fields().iter().zip(written.fields()).map(|(found, written)| {
        let kind = with_times(found.data_type(), written.data_type());
        Arc::new(found.as_ref().clone().with_data_type(kind))
    });
    let fields: Fields = fields.collect();
    if fields == *found.fields() || fields.len() != found.fields().len() {
        return stream;
    }
    let schema: SchemaRef = Arc::new(Schema::new_with_metadata(fields, found.metadata().clone()));
    let own = Arc::clone(&schema);
    let batches = stream.map(move |batch| {
        let batch = batch?;
        let columns = batch.columns().iter().zip(own.fields());
        let columns = columns.map(|(column, field)| times(column, field.data_type()));
        rows::batch(Arc::clone(&own), columns.collect::<Result<_>>()?, batch.num_rows())
    });
    rows::from_batches(schema, batches)
}

/// The type that was read, with the times that were written in place of durations.
fn with_times(read: &DataType, written: &DataType) -> DataType {
    use DataType::{Duration, FixedSizeList, Struct, Time32, Time64};
    let field = |read: &FieldRef, written: &FieldRef| {
        let kind = with_times(read.data_type(), written.data_type());
        Arc::new(read.as_ref().clone().with_data_type(kind))
    };
    match (read, written) {
        (Duration(a), Time32(b) | Time64(b)) if a == b => written.clone(),
        (FixedSizeList(a, size), FixedSizeList(b, _)) => FixedSizeList(field(a, b), *size),
        (Struct(a), Struct(b)) if a.len() == b.len() => {
            Struct(a.iter().zip(b).map(|(a, b)| field(a, b)).collect())
        }
        _ => read.clone(),
    }
}

fn times(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let whole = match (array.data_type(), to) {
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, size)) => {
            let list = array.as_fixed_size_list();
            let values = times(list.values(), item.data_type())?;
            let (nulls, len) = (list.nulls().cloned(), list.len());
            let list = FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, values, nulls, len)?;
            return Ok(Arc::new(list));
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let all = array.as_struct();
            let columns = all.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| times(column, field.data_type()));
            let (columns, nulls) = (columns.collect::<Result<_>>()?, all.nulls().cloned());
            let all = StructArray::try_new_with_length(fields.clone(), columns, nulls, all.len())?;
            return Ok(Arc::new(all));
        }
        (DataType::Duration(_), DataType::Time32(_)) => DataType::Int32,
        (DataType::Duration(_), DataType::Time64(_)) => DataType::Int64,
        _ => return Ok(Arc::clone(array)),
    };
    let ticks = arrow_cast::cast(array, &DataType::Int64)?;
    Ok(arrow_cast::cast(&arrow_cast::cast(&ticks, &whole)?, to)?)
}
