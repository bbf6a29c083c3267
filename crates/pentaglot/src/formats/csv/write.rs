//! Writing.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema, TimeUnit};

use super::Layout;
use crate::error::Result;
use crate::formats::{Writer, Written};
use crate::hub::json::decode::{check_type, is_nested};
use crate::hub::json::{Columns, JsonOptions};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, LossKind, Plan, extension, shape};
use crate::sink::Sink;

const BUFFER_BYTES: usize = 64 << 10;

/// Exact: what is read back without a type is equal. Types that are not found again from the text are widened where the
/// text says every value in full, and lossy where it does not say what it is.
pub(super) fn plan(schema: &Schema, layout: Layout) -> Plan {
    let mut plan = Plan::default();
    match Form::of(schema) {
        Form::Table | Form::Columns | Form::Coo => shape::plan_plain_table(schema, &mut plan),
        _ => plan.step("", "no table", "CSV", Effect::impossible("CSV holds tables")),
    }
    if !layout.header {
        plan.step("", "names", "no header", Effect::widened().because("the names are not written"));
    }
    for field in schema.fields() {
        let to = if is_nested(field) { "JSON text" } else { "text" };
        plan.step(field.name(), print_field(field), to, effect(field));
    }
    plan
}

fn effect(field: &FieldRef) -> Effect {
    use DataType::*;
    let back = |kind: &str| Effect::widened().because(format!("comes back as {kind} without a type"));
    let meaning = |note: &str| Effect::lossy(LossKind::Metadata).because(note);
    if check_type(field).is_err() {
        return meaning("no type reads it back");
    }
    if matches!(extension::name(field), Some(extension::INT128 | extension::UINT128)) {
        return back("an integer as wide as its values need");
    }
    let own = match field.data_type() {
        Boolean | Int64 | Float64 | Date32 | Time64(TimeUnit::Microsecond) => Effect::exact(),
        Timestamp(TimeUnit::Microsecond, None) => Effect::exact(),
        Timestamp(unit, Some(zone)) if zone.as_ref() == "UTC" => match unit {
            TimeUnit::Microsecond => Effect::exact(),
            _ => back("microseconds or nanoseconds"),
        },
        Timestamp(_, Some(_)) => {
            let note = "written with the zone's offset, comes back as text: the zone's name is lost";
            Effect::lossy(LossKind::Timezone).because(note)
        }
        Timestamp(_, None) | Time32(_) | Time64(_) => back("microseconds or nanoseconds"),
        Utf8 => Effect::widened()
            .because("texts that all look like numbers, dates or truth values come back as such"),
        LargeUtf8 | Utf8View | Null => back("utf8"),
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 | UInt64 => back("int64"),
        Float16 | Float32 => back("float64"),
        // A float64 has room for 15 digits of any decimal.
        Decimal32(..) | Decimal64(..=15, _) | Decimal128(..=15, _) | Decimal256(..=15, _) => back("float64"),
        Decimal64(..) | Decimal128(..) | Decimal256(..) => Effect::lossy(LossKind::Precision)
            .because("comes back as float64 without a type, which has fewer digits"),
        Interval(_) => Effect::widened().because("numbers that do not say what they count"),
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Effect::widened()
            .because("base64, which comes back as text: only a type tells it from other text"),
        Duration(_) => Effect::widened().because("a number, whose unit is not written"),
        Dictionary(_, values) => {
            let values = effect(&Arc::new(Field::new(field.name(), values.as_ref().clone(), true)));
            values.and(Effect::widened().because("comes back as its values"))
        }
        _ => back("text"),
    };
    let order = match field.dict_is_ordered() {
        Some(true) => {
            Effect::lossy(LossKind::Order).because("the order of the dictionary's values is not written")
        }
        _ => Effect::exact(),
    };
    let meaning = match extension::tensor_shape(field) {
        Some(_) => Effect::exact(),
        None => extension::all_dropped(field),
    };
    own.and(order).and(meaning)
}

/// A file being written.
pub(super) struct CsvWriter {
    sink: Sink,
    delimiter: u8,
    buffer: Vec<u8>,
    /// The JSON form of a value.
    value: Vec<u8>,
    text: Vec<u8>,
    rows: u64,
}

impl CsvWriter {
    pub(super) fn new(sink: Sink, schema: &Schema, layout: Layout) -> Self {
        let mut writer = CsvWriter {
            sink,
            delimiter: layout.delimiter,
            buffer: Vec::new(),
            value: Vec::new(),
            text: Vec::new(),
            rows: 0,
        };
        if layout.header {
            for (index, field) in schema.fields().iter().enumerate() {
                if index > 0 {
                    writer.buffer.push(layout.delimiter);
                }
                write_text(&mut writer.buffer, field.name().as_bytes(), layout.delimiter);
            }
            writer.buffer.push(b'\n');
        }
        writer
    }
}

/// Appends a field that is not null: quoted if it is empty or holds a delimiter, a quote or a line end.
fn write_text(out: &mut Vec<u8>, text: &[u8], delimiter: u8) {
    let special = |byte: &u8| *byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r');
    // A byte order mark at the start of a file would be passed over.
    if !text.is_empty() && !text.iter().any(special) && !text.starts_with(b"\xef\xbb\xbf") {
        return out.extend_from_slice(text);
    }
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// The text inside a JSON string that we wrote.
fn unescape(string: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut rest = string;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        let Some((escape, tail)) = rest.split_first() else { return };
        rest = tail;
        match escape {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                // Only control characters are written as four digits.
                let code = rest.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
                let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                out.extend(code);
                rest = rest.get(4..).unwrap_or_default();
            }
            other => out.push(*other),
        }
    }
}

impl Writer for CsvWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let columns = Columns::new(rows, &JsonOptions::default())?;
        for row in 0..rows.num_rows() {
            for column in 0..rows.num_columns() {
                if column > 0 {
                    self.buffer.push(self.delimiter);
                }
                self.value.clear();
                columns.write_cell(column, row, &mut self.value)?;
                match self.value.as_slice() {
                    b"null" => {}
                    [b'"', string @ .., b'"'] => {
                        if string.contains(&b'\\') {
                            unescape(string, &mut self.text);
                            write_text(&mut self.buffer, &self.text, self.delimiter);
                        } else {
                            write_text(&mut self.buffer, string, self.delimiter);
                        }
                    }
                    value => write_text(&mut self.buffer, value, self.delimiter),
                }
            }
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
