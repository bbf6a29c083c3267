//! Writing: one object a line.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use crate::error::Result;
use crate::formats::text::json_plan::{check_keys, plan_fields};
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned};
use crate::hub::json::{Columns, JsonOptions};
use crate::hub::{Effect, Form, Plan, shape};
use crate::sink::Sink;

const BUFFER_BYTES: usize = 64 << 10;

pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let json = options.json;
    let writer = move |sink| JsonLinesWriter { sink, json, buffer: Vec::new(), rows: 0 };
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
    sink: Sink,
    json: JsonOptions,
    buffer: Vec<u8>,
    rows: u64,
}

impl Writer for JsonLinesWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        check_keys(rows, self.rows)?;
        let columns = Columns::new(rows, &self.json)?;
        for row in 0..rows.num_rows() {
            columns.write_object(row, &mut self.buffer)?;
            self.buffer.push(b'\n');
            if self.buffer.len() >= BUFFER_BYTES {
                self.sink.write_all(&self.buffer)?;
                self.buffer.clear();
            }
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        self.sink.write_all(&self.buffer)?;
        Ok(Written::new(self.rows, self.sink.finish()?))
    }
}
