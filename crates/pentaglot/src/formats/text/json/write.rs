//! Writing: one array, in constant memory.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, IntervalUnit, Schema, SchemaRef};

use crate::error::Result;
use crate::formats::row_output::RowOutput;
use crate::formats::text::json_plan::{check_keys, plan_fields};
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned};
use crate::hub::json::{Columns, JsonOptions};
use crate::hub::{Effect, Form, Plan, shape};

pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let (json, control, written) = (options.json, options.control.clone(), as_written(schema));
    Ok(planned(steps(schema), move |sink| {
        Columns::check_names(&written)?;
        let mut output = RowOutput::new(sink, &control);
        output.begin.push(b'[');
        Ok(Box::new(JsonWriter { output, json, form: Form::of(&written), rows: 0 }))
    }))
}

/// A sparse matrix is written as the table of its entries.
fn as_written(schema: &SchemaRef) -> Schema {
    match Form::of(schema) {
        Form::Coo | Form::Columns => Schema::new(schema.fields().clone()),
        _ => schema.as_ref().clone(),
    }
}

fn steps(schema: &Schema) -> Plan {
    let mut plan = Plan::default();
    match Form::of(schema) {
        Form::Table | Form::Coo | Form::Columns => shape::plan_plain_table(schema, &mut plan),
        Form::Dense if shape::matrix_cols(schema) == Some(0) => {
            plan.step("", "matrix", "array", Effect::widened().because("comes back as an array"));
        }
        Form::Array if is_interval(schema) => {
            let effect = Effect::impossible("its objects would come back as a table");
            plan.step("", "array of intervals", "JSON", effect);
        }
        Form::Dense | Form::Array => {}
        _ => plan.step("", "neither table, matrix nor array", "JSON", Effect::impossible("JSON holds those")),
    }
    plan_fields(schema, &mut plan);
    plan
}

/// Whether the elements are intervals of several parts.
fn is_interval(schema: &Schema) -> bool {
    let item = schema.fields().first().map(|item| item.data_type());
    matches!(item, Some(DataType::Interval(IntervalUnit::DayTime | IntervalUnit::MonthDayNano)))
}

/// A file being written.
struct JsonWriter {
    output: RowOutput,
    json: JsonOptions,
    form: Form,
    rows: u64,
}

impl Writer for JsonWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        check_keys(rows, self.rows)?;
        let columns = Columns::new(rows, &self.json)?;
        let (form, is_first) = (self.form, self.rows == 0);
        self.output.write_rows(rows, 0, |range, out| {
            for row in range {
                if row > 0 || !is_first {
                    out.extend_from_slice(Columns::SEPARATOR);
                }
                columns.write_row(form, row, out)?;
            }
            Ok(())
        })?;
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        self.output.write(b"]\n")?;
        Ok(Written::new(self.rows, self.output.finish()?))
    }
}
