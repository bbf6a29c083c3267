//! Prints types.

use std::fmt::Write as _;

use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema, TimeUnit, UnionMode};

use super::parse::is_table;
use crate::hub::extension;
use crate::hub::shape::{self, Form};

/// The text of a type.
///
/// ```
/// use arrow_schema::{DataType, Field};
/// use pentaglot::hub::type_text::print_type;
/// assert_eq!(print_type(&DataType::new_list(DataType::Utf8, true)), "list[?utf8]");
/// ```
pub fn print_type(data_type: &DataType) -> String {
    let mut out = String::new();
    Printer { extensions: false }.data_type(&mut out, data_type);
    out
}

/// The text of a field's type: with `?` if it is nullable, without its name.
pub fn print_field(field: &Field) -> String {
    let mut out = String::new();
    Printer { extensions: false }.field(&mut out, field);
    out
}

/// The text of a whole schema with its shape; see the [module](super) for the forms.
pub fn print_schema(schema: &Schema) -> String {
    Printer { extensions: false }.schema(schema)
}

/// The text of a whole schema with its extension types.
pub fn print_exact_schema(schema: &Schema) -> String {
    Printer { extensions: true }.schema(schema)
}

struct Printer {
    extensions: bool,
}

impl Printer {
    fn schema(&self, schema: &Schema) -> String {
        let mut out = String::new();
        let count = |count: Option<u64>| count.map_or_else(|| "*".to_owned(), |count| count.to_string());
        let rows = count(shape::matrix_rows(schema));
        let cols = count(shape::matrix_cols(schema));
        let value = shape::matrix_value_type(schema);
        match (Form::of(schema), value, schema.fields().first()) {
            (Form::Dense, Some(value), _) => {
                let _ = write!(out, "matrix[{rows}, {cols}, ");
                self.data_type(&mut out, &value);
                out.push(']');
            }
            (Form::Sparse, Some(value), _) => {
                let _ = write!(out, "sparse_matrix[{rows}, {cols}, ");
                self.data_type(&mut out, &value);
                out.push(']');
            }
            (Form::Array, _, Some(item)) => self.bracket(&mut out, "array[", item),
            (Form::Value, _, Some(value)) if !is_table(value) => self.field(&mut out, value),
            (Form::Value, _, Some(value)) => self.bracket(&mut out, "value[", value),
            _ => self.fields(&mut out, schema.fields()),
        }
        out
    }

    fn field(&self, out: &mut String, field: &Field) {
        let name = extension::name(field).filter(|_| self.extensions);
        if let Some(name) = name {
            out.push_str("extension[");
            write_quoted(out, name);
            if let Some(metadata) = extension::metadata(field) {
                out.push_str(", ");
                write_quoted(out, metadata);
            }
            out.push_str(", ");
        }
        if field.is_nullable() {
            out.push('?');
        }
        if field.dict_is_ordered() == Some(true) {
            out.push_str("ordered_");
        }
        self.data_type(out, field.data_type());
        if name.is_some() {
            out.push(']');
        }
    }

    fn bracket(&self, out: &mut String, open: &str, field: &Field) {
        out.push_str(open);
        self.field(out, field);
        out.push(']');
    }

    fn fields(&self, out: &mut String, fields: &Fields) {
        out.push_str("struct{");
        for (index, field) in fields.iter().enumerate() {
            out.push_str(if index == 0 { "" } else { ", " });
            write_name(out, field.name());
            out.push_str(": ");
            self.field(out, field);
        }
        out.push('}');
    }

    fn pair(&self, out: &mut String, open: &str, first: &Field, second: &Field) {
        out.push_str(open);
        self.field(out, first);
        out.push_str(", ");
        self.field(out, second);
        out.push(']');
    }

    fn data_type(&self, out: &mut String, data_type: &DataType) {
        let _ = match data_type {
            DataType::Null => out.write_str("null"),
            DataType::Boolean => out.write_str("bool"),
            DataType::Int8 => out.write_str("int8"),
            DataType::Int16 => out.write_str("int16"),
            DataType::Int32 => out.write_str("int32"),
            DataType::Int64 => out.write_str("int64"),
            DataType::UInt8 => out.write_str("uint8"),
            DataType::UInt16 => out.write_str("uint16"),
            DataType::UInt32 => out.write_str("uint32"),
            DataType::UInt64 => out.write_str("uint64"),
            DataType::Float16 => out.write_str("float16"),
            DataType::Float32 => out.write_str("float32"),
            DataType::Float64 => out.write_str("float64"),
            DataType::Utf8 => out.write_str("utf8"),
            DataType::LargeUtf8 => out.write_str("large_utf8"),
            DataType::Utf8View => out.write_str("utf8_view"),
            DataType::Binary => out.write_str("binary"),
            DataType::LargeBinary => out.write_str("large_binary"),
            DataType::BinaryView => out.write_str("binary_view"),
            DataType::FixedSizeBinary(size) => write!(out, "fixed_binary[{size}]"),
            DataType::Date32 => out.write_str("date32"),
            DataType::Date64 => out.write_str("date64"),
            DataType::Time32(unit) | DataType::Time64(unit) => write!(out, "time[{}]", unit_name(*unit)),
            DataType::Timestamp(unit, None) => write!(out, "timestamp[{}]", unit_name(*unit)),
            DataType::Timestamp(unit, Some(zone)) => {
                let _ = write!(out, "timestamp[{}, ", unit_name(*unit));
                write_quoted(out, zone);
                out.write_char(']')
            }
            DataType::Duration(unit) => write!(out, "duration[{}]", unit_name(*unit)),
            DataType::Interval(unit) => out.write_str(match unit {
                IntervalUnit::YearMonth => "interval[year_month]",
                IntervalUnit::DayTime => "interval[day_time]",
                IntervalUnit::MonthDayNano => "interval[month_day_nano]",
            }),
            DataType::Decimal32(precision, scale) => write!(out, "decimal32[{precision}, {scale}]"),
            DataType::Decimal64(precision, scale) => write!(out, "decimal64[{precision}, {scale}]"),
            DataType::Decimal128(precision, scale) => write!(out, "decimal128[{precision}, {scale}]"),
            DataType::Decimal256(precision, scale) => write!(out, "decimal256[{precision}, {scale}]"),
            DataType::List(item) => return self.bracket(out, "list[", item),
            DataType::LargeList(item) => return self.bracket(out, "large_list[", item),
            DataType::ListView(item) => return self.bracket(out, "list_view[", item),
            DataType::LargeListView(item) => return self.bracket(out, "large_list_view[", item),
            DataType::FixedSizeList(item, size) => {
                return self.bracket(out, &format!("fixed_list[{size}, "), item);
            }
            DataType::Struct(fields) => return self.fields(out, fields),
            DataType::Dictionary(index, value) => {
                out.push_str("dict[");
                self.data_type(out, index);
                out.push_str(", ");
                self.data_type(out, value);
                out.write_char(']')
            }
            DataType::Map(entries, sorted) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    let open = if *sorted { "sorted_map[" } else { "map[" };
                    return self.pair(out, open, &fields[0], &fields[1]);
                }
                other => return self.data_type(out, other),
            },
            DataType::RunEndEncoded(ends, values) => return self.pair(out, "run_end[", ends, values),
            DataType::Union(fields, mode) => {
                out.push_str(if *mode == UnionMode::Dense { "dense_union{" } else { "sparse_union{" });
                for (index, (id, field)) in fields.iter().enumerate() {
                    let _ = write!(out, "{}{id} ", if index == 0 { "" } else { ", " });
                    write_name(out, field.name());
                    out.push_str(": ");
                    self.field(out, field);
                }
                out.write_char('}')
            }
        };
    }
}

fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

/// Appends a name: bare if it is `[A-Za-z_][A-Za-z0-9_]*`, else quoted.
pub(crate) fn write_name(out: &mut String, name: &str) {
    let mut bytes = name.bytes();
    let bare = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if bare {
        out.push_str(name);
    } else {
        write_quoted(out, name);
    }
}

/// Appends text in single quotes, as datashape does: printable ASCII only.
fn write_quoted(out: &mut String, text: &str) {
    out.push('\'');
    for char in text.chars() {
        let _ = match char {
            '\x08' => out.write_str("\\b"),
            '\x0c' => out.write_str("\\f"),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            '\\' => out.write_str("\\\\"),
            '\'' => out.write_str("\\'"),
            ' '..='~' => out.write_char(char),
            '\0'..='\u{ffff}' => write!(out, "\\u{:04x}", u32::from(char)),
            _ => write!(out, "\\U{:08x}", u32::from(char)),
        };
    }
    out.push('\'');
}
