//! Writing.

use std::collections::HashSet;
use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

use crate::error::Result;
use crate::formats::{Writer, Written};
use crate::hub::extension;
use crate::hub::json::{Columns, JsonOptions};
use crate::hub::type_text::print_field;
use crate::hub::{Form, Plan, Verdict};
use crate::sink::Sink;
use crate::wire::columns::check_type;

const BUFFER_BYTES: usize = 64 << 10;

/// Exact: what is read back with the same `--type` is equal.
pub(super) fn plan(schema: &Schema, json: &JsonOptions) -> Plan {
    let mut plan = Plan::default();
    match Form::of(schema) {
        Form::Table | Form::Columns => {}
        Form::Coo => plan.push_with(
            "",
            "sparse matrix",
            "objects of row, col, value",
            Verdict::Widened,
            "the numbers of rows and columns are not written",
        ),
        _ => plan.push("", "no table", "JSON lines", Verdict::Impossible),
    }
    let mut names = HashSet::new();
    for field in schema.fields() {
        let from = print_field(field);
        let repeated = !names.insert(field.name());
        let (verdict, note) = if repeated || repeats(field) {
            (Verdict::Impossible, Some("an object cannot hold two keys of one name"))
        } else if check_type(field).is_err() {
            (Verdict::Lossy, Some("no type reads it back"))
        } else if field.dict_is_ordered() == Some(true) {
            (Verdict::Widened, Some("the order of the dictionary's values is not written"))
        } else if json.dynd_value.is_some() && holds_array(field) {
            (Verdict::Widened, Some("arrays are written as their values, not as their bytes"))
        } else {
            (Verdict::Exact, None)
        };
        match note {
            Some(note) => plan.push_with(field.name(), from, form(field), verdict, note),
            None => plan.push(field.name(), from, form(field), verdict),
        }
    }
    plan
}

/// Whether a dynd array stands in the field.
fn holds_array(field: &Field) -> bool {
    let schema = Schema::new(vec![field.clone()]);
    schema.flattened_fields().iter().any(|field| extension::name(field) == Some(extension::DYND_ARRAY))
}

/// Whether a struct inside has two fields of one name.
fn repeats(field: &Field) -> bool {
    let all = |fields: &Fields| {
        let mut names = HashSet::new();
        fields.iter().any(|field: &FieldRef| !names.insert(field.name()) || repeats(field))
    };
    match field.data_type() {
        DataType::Struct(fields) => all(fields),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => repeats(item),
        _ => false,
    }
}

/// The JSON form in a word.
fn form(field: &Field) -> &'static str {
    match field.data_type() {
        DataType::Null => "null",
        DataType::Boolean => "bool",
        DataType::Dictionary(_, value) => form(&Field::new("", value.as_ref().clone(), true)),
        DataType::RunEndEncoded(_, value) => form(value),
        DataType::FixedSizeBinary(16) if matches!(crate::hub::extension::name(field), Some(name) if name.ends_with("int128")) => {
            "number"
        }
        DataType::Struct(_) if crate::hub::extension::name(field) == Some(crate::hub::extension::TUPLE) => {
            "array"
        }
        DataType::Duration(_) => "number",
        data_type if data_type.is_integer() || data_type.is_floating() => "number",
        DataType::Struct(_) | DataType::Map(_, _) | DataType::Union(_, _) | DataType::Interval(_) => "object",
        data_type if data_type.is_nested() => "array",
        _ => "string",
    }
}

/// A file being written.
pub(super) struct JsonLinesWriter {
    sink: Sink,
    json: JsonOptions,
    buffer: Vec<u8>,
    rows: u64,
}

impl JsonLinesWriter {
    pub(super) fn new(sink: Sink, json: JsonOptions) -> Self {
        JsonLinesWriter { sink, json, buffer: Vec::new(), rows: 0 }
    }
}

impl Writer for JsonLinesWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
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
