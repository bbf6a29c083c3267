//! Writing.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

use super::dialect::CsvDialect;
use crate::error::{Error, Hint, Result, excerpt};
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned};
use crate::hub::json::decode::{check_type, is_nested};
use crate::hub::json::{Columns, JsonOptions};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, LossKind, LossKinds, LossRecord, Plan, extension, shape};
use crate::sink::Sink;

const BUFFER_BYTES: usize = 64 << 10;

pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let layout = CsvDialect::new(&options.options, options.name.as_deref().unwrap_or_default())?;
    let steps = steps(schema, &layout);
    let schema = Arc::clone(schema);
    let (allowed, lost) = (options.allow_lossy, options.lost.clone());
    Ok(planned(steps, move |sink| Ok(Box::new(CsvWriter::new(sink, &schema, layout, allowed, lost)?))))
}

/// Exact: what is read back without a type is equal. Types that are not found again from the text are widened where the
/// text says every value in full, and lossy where it does not say what it is.
fn steps(schema: &Schema, dialect: &CsvDialect) -> Plan {
    let mut plan = Plan::default();
    match Form::of(schema) {
        Form::Table | Form::Columns | Form::Coo => shape::plan_plain_table(schema, &mut plan),
        _ => plan.step("", "no table", "CSV", Effect::impossible("CSV holds tables")),
    }
    if !dialect.header {
        plan.step("", "names", "no header", Effect::widened().because("the names are not written"));
    }
    for field in schema.fields() {
        let to = if is_nested(field) { "JSON text" } else { "text" };
        let mut effect = effect(field);
        if dialect.quote.is_none() {
            let note = "a text that would have to be quoted ends the run";
            effect = effect.and(Effect::checked(LossKind::Range).because(note));
        }
        if !dialect.nulls.is_empty() {
            let note = format!("a text that reads {:?} ends the run, since that is null", dialect.null());
            effect = effect.and(Effect::checked(LossKind::Nulls).because(note));
        }
        plan.step(field.name(), print_field(field), to, effect);
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
        return back("an integer or a decimal as wide as its values need, or text");
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
        Decimal64(_, 0) | Decimal128(_, 0) => back("an integer or a decimal as wide as its values need"),
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
struct CsvWriter {
    sink: Sink,
    dialect: CsvDialect,
    names: Vec<String>,
    buffer: Vec<u8>,
    /// The JSON form of a value.
    value: Vec<u8>,
    text: Vec<u8>,
    rows: u64,
    /// What may be lost, and what was.
    allowed: LossKinds,
    lost: LossRecord,
}

impl CsvWriter {
    fn new(
        sink: Sink,
        schema: &Schema,
        dialect: CsvDialect,
        allowed: LossKinds,
        lost: LossRecord,
    ) -> Result<Self> {
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let mut buffer = Vec::new();
        if dialect.header {
            for (index, name) in names.iter().enumerate() {
                if index > 0 {
                    buffer.push(dialect.delimiter);
                }
                write_text(&mut buffer, name.as_bytes(), &dialect)?;
            }
            buffer.push(b'\n');
        }
        let (value, text) = (Vec::new(), Vec::new());
        Ok(CsvWriter { sink, dialect, names, buffer, value, text, rows: 0, allowed, lost })
    }
}

/// Appends a field that is not null: quoted if it is empty or holds a delimiter, a quote or a line end.
fn write_text(out: &mut Vec<u8>, text: &[u8], dialect: &CsvDialect) -> Result<()> {
    let special = |byte: &u8| {
        *byte == dialect.delimiter || Some(*byte) == dialect.quote || matches!(byte, b'\n' | b'\r')
    };
    // A byte order mark at the start of a file would be skipped.
    if !text.is_empty() && !text.iter().any(special) && !text.starts_with(b"\xef\xbb\xbf") {
        out.extend_from_slice(text);
        return Ok(());
    }
    let Some(quote) = dialect.quote else {
        let text = excerpt(format_args!("{:?}", String::from_utf8_lossy(text)));
        return Err(Error::lossy(format!("expected a text that needs no quotes, found {text}")));
    };
    out.push(quote);
    for byte in text {
        if *byte == quote {
            out.push(quote);
        }
        out.push(*byte);
    }
    out.push(quote);
    Ok(())
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
                    self.buffer.push(self.dialect.delimiter);
                }
                self.value.clear();
                columns.write_cell(column, row, &mut self.value)?;
                let text = match self.value.as_slice() {
                    b"null" => {
                        self.buffer.extend_from_slice(self.dialect.null().as_bytes());
                        continue;
                    }
                    [b'"', string @ .., b'"'] if string.contains(&b'\\') => {
                        unescape(string, &mut self.text);
                        self.text.as_slice()
                    }
                    [b'"', string @ .., b'"'] => string,
                    value => value,
                };
                let name = self.names.get(column).map_or("", String::as_str);
                let row = self.rows + row as u64;
                let place =
                    |error: Error| Error::lossy(format!("row {row}, column {name:?}: {}", error.message()));
                if self.dialect.nulls.iter().any(|null| null.as_bytes() == text) {
                    let shown = excerpt(format_args!("{:?}", String::from_utf8_lossy(text)));
                    if !self.allowed.contains(LossKind::Nulls) {
                        let message = format!("the text {shown} would be read as null");
                        return Err(place(Error::lossy(message)).hint(Hint::AllowLossy));
                    }
                    self.lost.add(LossKind::Nulls, name, 1, || Some(shown));
                }
                write_text(&mut self.buffer, text, &self.dialect).map_err(place)?;
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
