//! Writing: one object a line.

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use crate::error::Result;
use crate::formats::row_output::RowOutput;
use crate::formats::text::json_plan::{check_keys, plan_fields};
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned};
use crate::hub::json::{Columns, JsonOptions};
use crate::hub::{Effect, Form, Plan, shape};

pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let json = options.json;
    let control = options.control.clone();
    let writer = move |sink| JsonLinesWriter { output: RowOutput::new(sink, &control), json, rows: 0 };
    Ok(planned(steps(schema), move |sink| Ok(Box::new(writer(sink)))))
}

fn steps(schema: &Schema) -> Plan {
    let mut plan = Plan::default();
    match Form::of(schema) {
        Form::Table | Form::Columns | Form::Coo => shape::plan_plain_table(schema, &mut plan),
        _ => plan.step("", "no table", "JSON lines", Effect::impossible("JSON lines hold tables")),
    }
    plan_fields(schema, &mut plan);
    plan
}

/// A file being written.
struct JsonLinesWriter {
    output: RowOutput,
    json: JsonOptions,
    rows: u64,
}

impl Writer for JsonLinesWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        check_keys(rows, self.rows)?;
        let columns = Columns::new(rows, &self.json)?;
        self.output.write_rows(rows, 0, |range, out| {
            for row in range {
                columns.write_object(row, out)?;
                out.push(b'\n');
            }
            Ok(())
        })?;
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        Ok(Written::new(self.rows, self.output.finish()?))
    }
}
