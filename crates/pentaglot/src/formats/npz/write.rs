//! Writes rows to an archive: one array, a member per column, a sparse matrix, or any number of members.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};

use super::schema::{SparseLayout, SparseTarget};
use super::sparse_write::SparseBody;
use super::zip_write::ZipWriter;
use super::{INFO, LAYOUT};
use crate::error::{Context, Error, Hint, Result};
use crate::formats::npy::write::{self as array_write, Collector, Target};
use crate::formats::{
    Archive, ArchivePlan, ColumnReader, NULLS, WriteOptions, WritePlan, Writer, Written, allowed, planned,
    relaxed,
};
use crate::hub::relax::Rules;
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, Plan, Rows, shape};
use crate::limits::Budget;
use crate::sink::Sink;

/// What becomes of values that an array does not hold, where that is allowed.
const RULES: Rules = Rules { time_step: None, whole_days: false, null_for_nan: false, nan_for_null: true };

/// What writing rows of this schema does to each field, and the writer.
pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    options.options.word(NULLS.key, &["nan"])?;
    let compressed = options.options.bool("compressed")?.unwrap_or(false);
    let layout = options.options.word(LAYOUT.key, &SparseLayout::WRITTEN.map(SparseLayout::name))?;
    let sparse = (Form::of(schema) == Form::Sparse).then(|| SparseTarget::of(schema, layout));
    let (steps, members) = (steps(schema, sparse.as_ref()), NpzMembers::of(schema, sparse));
    let (schema, options) = (Arc::clone(schema), options.clone());
    Ok(planned(steps, move |sink| {
        let budget = options.budget.clone();
        let body = members.and_then(|members| members.body(&schema, &budget)).in_format(INFO.id)?;
        let zip = ZipWriter::new(sink, compressed, &options.control).in_format(INFO.id)?;
        let writer = Box::new(NpzWriter { zip, body, budget, rows: 0 });
        Ok(relaxed(writer, RULES, &options))
    }))
}

/// Plans an archive of any members.
pub(super) fn archive(options: &WriteOptions) -> Result<Box<dyn ArchivePlan>> {
    options.options.word(NULLS.key, &["nan"])?;
    let compressed = options.options.bool("compressed")?.unwrap_or(false);
    Ok(Box::new(NpzArchivePlan { compressed, options: options.clone(), members: Vec::new() }))
}

struct NpzArchivePlan {
    compressed: bool,
    options: WriteOptions,
    members: Vec<PlannedMember>,
}

/// A member's name, the schema of its rows, and what they become.
type PlannedMember = (String, SchemaRef, Result<Target>);

impl ArchivePlan for NpzArchivePlan {
    fn member(&mut self, name: &str, schema: &SchemaRef) -> Plan {
        self.members.push((name.to_owned(), Arc::clone(schema), Target::of(schema, INFO.id)));
        array_write::steps(schema, INFO.id)
    }

    fn create(self: Box<Self>, sink: Sink) -> Result<Box<dyn Archive>> {
        let zip = ZipWriter::new(sink, self.compressed, &self.options.control)?;
        Ok(Box::new(NpzArchive { zip, options: self.options, members: self.members.into_iter(), rows: 0 }))
    }
}

/// An archive whose members are written one after the other.
struct NpzArchive {
    zip: ZipWriter,
    options: WriteOptions,
    members: std::vec::IntoIter<PlannedMember>,
    rows: u64,
}

impl Archive for NpzArchive {
    fn member(&mut self, rows: Rows) -> Result<u64> {
        let (name, schema, target) =
            self.members.next().ok_or_else(|| Error::usage("more members than were planned"))?;
        let target = target.field(name.clone()).in_format(INFO.id)?;
        let rules = allowed(RULES, &self.options);
        let mut collector = Collector::new(target, schema, self.options.budget.clone());
        for batch in rows {
            let mut batch = batch.map_err(Error::from)?;
            if let Some(rules) = rules {
                batch = rules.apply(&batch, &self.options.lost)?;
            }
            collector.write(&batch).in_format(INFO.id)?;
        }
        let mut count = 0;
        self.zip.member(&name, |out| {
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

fn steps(schema: &Schema, sparse: Option<&SparseResult>) -> Plan {
    let Some(sparse) = sparse else {
        let mut plan = array_write::steps(schema, INFO.id);
        if Form::of(schema) == Form::Table {
            let effect = Effect::widened().because("each column comes back as an array of its own");
            plan.step("", "table", "a member per column", effect);
        }
        return plan;
    };
    let mut plan = Plan::default();
    let (to, effect) = match sparse {
        Ok((target, effect)) => (target.layout.name(), effect.clone()),
        Err(why) => ("csr", Effect::impossible(why)),
    };
    plan.step(shape::ROW_FIELD, print_field(schema.field(0)), to, effect);
    plan
}

/// How a sparse matrix is written and what that does to it, or why it cannot be.
type SparseResult = Result<(SparseTarget, Effect), String>;

/// What the members of an archive will be written as.
enum NpzMembers {
    Single(Target),
    Columns(Vec<(String, SchemaRef, Target)>),
    Sparse(SparseTarget),
}

impl NpzMembers {
    fn of(schema: &SchemaRef, sparse: Option<SparseResult>) -> Result<Self> {
        if let Some(sparse) = sparse {
            return Ok(NpzMembers::Sparse(sparse.map_err(Error::unsupported)?.0));
        }
        match Form::of(schema) {
            Form::Table => {
                let columns = schema.fields().iter().map(|field| {
                    let schema = Arc::new(shape::array_schema(field.as_ref().clone()));
                    let target = Target::of(&schema, INFO.id)?;
                    Ok((field.name().clone(), schema, target))
                });
                Ok(NpzMembers::Columns(columns.collect::<Result<_>>()?))
            }
            _ => Ok(NpzMembers::Single(Target::of(schema, INFO.id)?)),
        }
    }

    /// The members, without rows yet.
    fn body(self, schema: &SchemaRef, budget: &Budget) -> Result<Body> {
        let collect = |schema, target| Collector::new(target, schema, budget.clone());
        Ok(match self {
            NpzMembers::Single(target) => Body::Single(Box::new(collect(Arc::clone(schema), target))),
            NpzMembers::Columns(columns) => Body::Members(
                columns.into_iter().map(|(name, schema, target)| (name, collect(schema, target))).collect(),
            ),
            NpzMembers::Sparse(target) => Body::Sparse(Box::new(SparseBody::new(target, schema, budget)?)),
        })
    }
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
    /// All members are in the archive.
    Written,
}

impl Writer for NpzWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        match &mut self.body {
            Body::Single(collector) => collector.write(rows)?,
            Body::Sparse(body) => body.write(rows, &self.budget)?,
            Body::Written => return Err(Error::usage("rows after the last")),
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

    fn write_columns(&mut self, columns: &ColumnReader<'_>) -> Result<bool> {
        let Body::Sparse(body) = &mut self.body else { return Ok(false) };
        let is_written = body.write_twice(&mut self.zip, columns, &self.budget)?;
        if is_written {
            (self.body, self.rows) = (Body::Written, columns.rows);
        }
        Ok(is_written)
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let NpzWriter { mut zip, body, rows, budget } = *self;
        match body {
            Body::Single(collector) => zip.member("arr_0", |out| collector.finish(out).map(drop))?,
            Body::Sparse(body) => body.finish(&mut zip, &budget)?,
            Body::Written => {}
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
    let renamed = Error::lossy(error.message().replace("column \"item\"", &format!("column {column:?}")));
    match error.advice() {
        Some(Hint::Argument(name, value)) => {
            renamed.hint(Hint::Argument(name, value.replace("\"item\"", &format!("\"{column}\"")).into()))
        }
        Some(hint) => renamed.hint(hint.clone()),
        None => renamed,
    }
}
