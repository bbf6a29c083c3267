//! Writing.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

use super::cells::{Cells, Quoting, Scratch};
use super::dialect::CsvDialect;
use crate::control::Control;
use crate::error::{Error, ErrorKind, Result, excerpt};
use crate::formats::row_output::RowOutput;
use crate::formats::{WriteOptions, WritePlan, Writer, Written, planned};
use crate::hub::json::decode::{check_type, is_nested};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, LossKind, LossKinds, LossRecord, Plan, extension, shape};
use crate::sink::Sink;

pub(super) fn plan(schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
    let layout = CsvDialect::new(&options.options, options.name.as_deref().unwrap_or_default())?;
    let steps = steps(schema, &layout);
    let schema = Arc::clone(schema);
    let options = options.clone();
    Ok(planned(steps, move |sink| Ok(Box::new(CsvWriter::new(sink, &schema, layout, &options)?))))
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
    output: RowOutput,
    dialect: CsvDialect,
    names: Vec<String>,
    rows: u64,
    /// What may be lost, and what was.
    allowed: LossKinds,
    lost: LossRecord,
}

impl CsvWriter {
    fn new(sink: Sink, schema: &Schema, dialect: CsvDialect, options: &WriteOptions) -> Result<Self> {
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let mut header = Vec::new();
        if dialect.header {
            let quoting = Quoting::of_header(&dialect);
            for (index, name) in names.iter().enumerate() {
                if index > 0 {
                    header.push(dialect.delimiter);
                }
                quoting.write(&mut header, name.as_bytes())?;
            }
            header.push(b'\n');
        }
        // What is lost is recorded in the order of the rows.
        let in_order = !dialect.nulls.is_empty();
        let control = if in_order { Control::new(1) } else { options.control.clone() };
        let (mut output, lost) = (RowOutput::new(sink, &control), options.lost.clone());
        output.begin = header;
        Ok(CsvWriter { output, dialect, names, rows: 0, allowed: options.allow_lossy, lost })
    }
}

impl Writer for CsvWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let cells = Cells::new(rows, &self.dialect)?;
        let (first, names, dialect) = (self.rows, &self.names, &self.dialect);
        let (allowed, lost) = (self.allowed, &self.lost);
        self.output.write_rows(rows, 0, |range, out| {
            let mut scratch = Scratch::default();
            for row in range {
                for column in 0..cells.len() {
                    if column > 0 {
                        out.push(dialect.delimiter);
                    }
                    let place = |error: Error| {
                        if error.kind() != ErrorKind::Lossy {
                            return error;
                        }
                        let (row, name) = (first + row as u64, names.get(column).map_or("", String::as_str));
                        let message = format!("row {row}, column {name:?}: {}", error.message());
                        match error.advice() {
                            Some(hint) => Error::lossy(message).hint(hint.clone()),
                            None => Error::lossy(message),
                        }
                    };
                    let null_text = |text: &[u8]| {
                        let shown = excerpt(format_args!("{:?}", String::from_utf8_lossy(text)));
                        if !allowed.contains(LossKind::Nulls) {
                            let message = format!("the text {shown} would be read as null");
                            return Err(Error::lossy(message).hint(LossKind::Nulls.hint()));
                        }
                        let name = names.get(column).map_or("", String::as_str);
                        lost.add(LossKind::Nulls, name, 1, || Some(shown));
                        Ok(())
                    };
                    cells.write(column, row, out, &mut scratch, null_text).map_err(place)?;
                }
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
