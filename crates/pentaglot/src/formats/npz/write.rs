//! Writes rows to an archive: one array, a member per column, a sparse matrix, or any number of members.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};

use super::INFO;
use super::schema::{index_limit, sparse_value};
use super::sparse_write::SparseBody;
use super::zip_write::ZipWriter;
use crate::error::{Context, Error, Result};
use crate::formats::npy::write::{self as array_write, Collector, Target};
use crate::formats::{
    Archive, ArchivePlan, NULLS, WriteOptions, WritePlan, Writer, Written, planned, relaxed,
};
use crate::hub::relax::Rules;
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, Plan, Rows, shape};
use crate::limits::Budget;
use crate::sink::Sink;

/// The effect of writing rows of this schema on each field, and the writer.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    options.options.word(NULLS.key, &["nan"])?;
    let compressed = options.options.bool("compressed")?.unwrap_or(false);
    let (schema, options) = (Arc::clone(schema), options.clone());
    Ok(planned(steps(&schema), move |sink| {
        let writer = create(sink, &schema, compressed, options.budget.clone()).in_format(INFO.id)?;
        Ok(relaxed(writer, Rules { nan_for_null: true, ..Rules::default() }, &options))
    }))
}

/// Starts an archive of any members.
pub(super) fn archive(options: &WriteOptions) -> Result<ArchivePlan> {
    let compressed = options.options.bool("compressed")?.unwrap_or(false);
    let budget = options.budget.clone();
    Ok(Box::new(move |sink| {
        Ok(Box::new(NpzArchive { zip: ZipWriter::new(sink, compressed)?, budget, rows: 0 }))
    }))
}

/// An archive whose members are written one after the other.
struct NpzArchive {
    zip: ZipWriter,
    budget: Budget,
    rows: u64,
}

impl Archive for NpzArchive {
    fn member(&mut self, name: &str, rows: Rows) -> Result<u64> {
        let schema = rows.schema();
        let target = Target::of(&schema, INFO.id).field(name.to_owned()).in_format(INFO.id)?;
        let mut collector = Collector::new(target, schema, self.budget.clone());
        for batch in rows {
            collector.write(&batch.map_err(Error::from)?).in_format(INFO.id)?;
        }
        let mut count = 0;
        self.zip.member(name, |out| {
            count = collector.finish(out)?;
            Ok(())
        })?;
        self.rows += count;
        Ok(count)
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        Ok(Written::new(self.rows, self.zip.finish()?))
    }
}

fn steps(schema: &Schema) -> Plan {
    if Form::of(schema) != Form::Sparse {
        let mut plan = array_write::steps(schema, INFO.id);
        if Form::of(schema) == Form::Table {
            let effect = Effect::widened().because("each column comes back as an array of its own");
            plan.step("", "table", "a member per column", effect);
        }
        return plan;
    }
    let mut plan = Plan::default();
    let from = print_field(schema.field(0));
    match sparse_value(schema) {
        Ok((_, effect)) if index_limit(schema) => plan.step(shape::ROW_FIELD, from, "csr", effect),
        Ok(_) => {
            let effect = Effect::impossible("SciPy counts rows and columns up to 2^63-1");
            plan.step(shape::ROW_FIELD, from, "csr", effect);
        }
        Err(why) => plan.step(shape::ROW_FIELD, from, "csr", Effect::impossible(why)),
    }
    plan
}

fn create(sink: Sink, schema: &SchemaRef, compressed: bool, budget: Budget) -> Result<Box<dyn Writer>> {
    let body = match Form::of(schema) {
        Form::Sparse => {
            let (scalar, _) = sparse_value(schema).map_err(Error::unsupported)?;
            Body::Sparse(Box::new(SparseBody::new(scalar, schema, &budget)?))
        }
        Form::Table => Body::Members(
            schema
                .fields()
                .iter()
                .map(|field| {
                    let schema = Arc::new(shape::array_schema(field.as_ref().clone()));
                    let target = Target::of(&schema, INFO.id)?;
                    Ok((field.name().clone(), Collector::new(target, schema, budget.clone())))
                })
                .collect::<Result<_>>()?,
        ),
        _ => {
            let target = Target::of(schema, INFO.id)?;
            Body::Single(Box::new(Collector::new(target, Arc::clone(schema), budget.clone())))
        }
    };
    let zip = ZipWriter::new(sink, compressed)?;
    Ok(Box::new(NpzWriter { zip, body, budget, rows: 0 }))
}

struct NpzWriter {
    zip: ZipWriter,
    body: Body,
    budget: Budget,
    rows: u64,
}

enum Body {
    Single(Box<Collector>),
    Members(Vec<(String, Collector)>),
    Sparse(Box<SparseBody>),
}

impl Writer for NpzWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        match &mut self.body {
            Body::Single(collector) => collector.write(rows)?,
            Body::Sparse(body) => body.write(rows, &self.budget)?,
            Body::Members(members) => {
                for ((name, collector), column) in members.iter_mut().zip(rows.columns()) {
                    let field = Field::new(shape::ITEM_FIELD, column.data_type().clone(), true);
                    let schema = Arc::new(shape::array_schema(field));
                    let item = RecordBatch::try_new(schema, vec![Arc::clone(column)])?;
                    collector.write(&item).map_err(|error| rename(error, name))?;
                }
            }
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let NpzWriter { mut zip, body, rows, budget } = *self;
        match body {
            Body::Single(collector) => zip.member("arr_0", |out| collector.finish(out).map(drop))?,
            Body::Sparse(body) => body.finish(&mut zip, &budget)?,
            Body::Members(members) => {
                for (name, collector) in members {
                    zip.member(&name, |out| {
                        collector.finish(out).map(drop).map_err(|error| rename(error, &name))
                    })?;
                }
            }
        }
        Ok(Written::new(rows, zip.finish()?))
    }
}

/// The error names the column, not the field `item` of the array that the column became.
fn rename(error: Error, column: &str) -> Error {
    if error.kind() != crate::ErrorKind::Lossy {
        return error;
    }
    Error::lossy(error.message().replace("column \"item\"", &format!("column {column:?}")))
}
