//! The schema of several inputs that are read as one.
//!
//! Columns are matched by name and come in order of first appearance; one that an input lacks is null there. Types:
//!
//! | of one input, of another | of both |
//! |---|---|
//! | T, T | T |
//! | null, T | T |
//! | integers, floats | the narrowest type that holds every value of both; none holds int64 or uint64 and floats, or uint64 and signed integers |
//! | text of any layout, dictionaries of text | utf8; equal dictionaries stay |
//! | dictionary of T, T | T |
//! | times, timestamps, durations in two units; date32, date64 | the finer unit; zones must be equal |
//! | lists of any layout | list of both elements; fixed lists of one size stay |
//! | structs of the same field names | field by field, in the order of the first |
//!
//! Every other pair is an error. [`super::adapt`] converts each input to the result.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use crate::error::{Error, Hint, Result};
use crate::hub::matrix::widen::join;
use crate::hub::type_text::print_field;
use crate::hub::{Form, extension, native};

/// An input by its name, for messages, and its schema.
pub type Named<'a> = (&'a str, SchemaRef);

/// The schema of these inputs read one after the other, with the metadata of the first and no native type.
///
/// Inputs must have the same form; names of columns must be unique in each, unless all inputs have the same columns.
pub fn schema(inputs: &[Named<'_>]) -> Result<SchemaRef> {
    let Some(((first_name, first), rest)) = inputs.split_first() else {
        return Err(Error::usage("no input"));
    };
    for (name, schema) in rest {
        let (one, other) = (Form::of(first), Form::of(schema));
        if one != other {
            let (one, other) = (form_name(one), form_name(other));
            return Err(Error::usage(format!(
                "{first_name} is {one}, {name} is {other}: they cannot be joined"
            )));
        }
    }
    if Form::of(first) == Form::Value && !rest.is_empty() {
        return Err(Error::usage(format!(
            "{first_name} and {} are single values, which are not joined",
            rest[0].0
        )));
    }
    let first = native::without(first);
    if rest.iter().all(|(_, schema)| schema.fields() == first.fields()) {
        return Ok(first);
    }
    let mut columns = Columns::default();
    for (name, schema) in inputs {
        columns.add(name, schema.fields())?;
    }
    let fields = columns.columns.into_iter().map(|column| {
        let missing = column.inputs < inputs.len();
        Arc::new(if missing { column.field.with_nullable(true) } else { column.field })
    });
    Ok(Arc::new(Schema::new_with_metadata(fields.collect::<Vec<FieldRef>>(), first.metadata().clone())))
}

struct UnionColumn<'a> {
    field: Field,
    /// The input that gave the field its type.
    origin: &'a str,
    /// The number of inputs that have it.
    inputs: usize,
}

#[derive(Default)]
struct Columns<'a> {
    columns: Vec<UnionColumn<'a>>,
    by_name: HashMap<String, usize>,
}

impl<'a> Columns<'a> {
    fn add(&mut self, input: &'a str, fields: &Fields) -> Result<()> {
        let mut names = HashSet::new();
        for field in fields {
            let name = field.name();
            if !names.insert(name) {
                return Err(Error::usage(format!(
                    "{input} has two columns {name:?}, so it cannot be joined by name"
                )));
            }
            let Some(index) = self.by_name.get(name) else {
                self.by_name.insert(name.clone(), self.columns.len());
                self.columns.push(UnionColumn { field: field.as_ref().clone(), origin: input, inputs: 1 });
                continue;
            };
            let column = &mut self.columns[*index];
            let both = self::field(&column.field, field).ok_or_else(|| {
                Error::usage(format!(
                    "column {name:?}: {} in {} and {} in {input} have no common type",
                    print_field(&column.field),
                    column.origin,
                    print_field(field),
                ))
                .hint(Hint::Type)
            })?;
            if both.data_type() != column.field.data_type() {
                column.origin = input;
            }
            column.field = both;
            column.inputs += 1;
        }
        Ok(())
    }
}

fn form_name(form: Form) -> &'static str {
    match form {
        Form::Table => "a table",
        Form::Dense => "a dense matrix",
        Form::Sparse => "a sparse matrix",
        Form::Columns => "a matrix in columns",
        Form::Coo => "a matrix of entries",
        Form::Array => "an array",
        Form::Value => "a single value",
    }
}

/// The field that holds the values of both, with the name and the metadata of `a`; `None` if there is none.
pub fn field(a: &Field, b: &Field) -> Option<Field> {
    let kind = |field: &Field| match field.data_type() {
        DataType::Null => field.is_nullable(),
        _ => true,
    };
    let nullable = a.is_nullable() || b.is_nullable();
    if a.data_type() == &DataType::Null && b.data_type() != &DataType::Null && kind(a) {
        return Some(b.clone().with_name(a.name()).with_nullable(true));
    }
    if b.data_type() == &DataType::Null && a.data_type() != &DataType::Null && kind(b) {
        return Some(a.clone().with_nullable(true));
    }
    if extension::name(a) != extension::name(b) || extension::metadata(a) != extension::metadata(b) {
        return None;
    }
    let data_type = data_type(a.data_type(), b.data_type())?;
    Some(a.clone().with_data_type(data_type).with_nullable(nullable))
}

/// The type that holds the values of both.
pub fn data_type(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::*;
    if a == b {
        return Some(a.clone());
    }
    Some(match (a, b) {
        (a, b) if is_number(a) && is_number(b) => join(a, b)?,
        (a, b) if is_text(a) && is_text(b) => Utf8,
        (Dictionary(_, value), other) | (other, Dictionary(_, value)) if value.as_ref() == other => {
            other.clone()
        }
        (Timestamp(unit, zone), Timestamp(other, same)) if zone == same => {
            Timestamp(finer(*unit, *other), zone.clone())
        }
        (Time32(unit) | Time64(unit), Time32(other) | Time64(other)) => match finer(*unit, *other) {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => Time32(unit),
            unit => Time64(unit),
        },
        (Duration(unit), Duration(other)) => Duration(finer(*unit, *other)),
        (Date32 | Date64, Date32 | Date64) => Date64,
        (FixedSizeList(one, size), FixedSizeList(other, same)) if size == same => {
            FixedSizeList(Arc::new(field(one, other)?), *size)
        }
        (LargeList(one), LargeList(other)) => LargeList(Arc::new(field(one, other)?)),
        (
            List(one) | LargeList(one) | FixedSizeList(one, _),
            List(other) | LargeList(other) | FixedSizeList(other, _),
        ) => List(Arc::new(field(one, other)?)),
        (Struct(one), Struct(other)) if one.len() == other.len() => Struct(structs(one, other)?),
        _ => return None,
    })
}

fn structs(one: &Fields, other: &Fields) -> Option<Fields> {
    let named = |name: &str| {
        let mut found = other.iter().filter(|field| field.name() == name);
        found.next().filter(|_| found.next().is_none())
    };
    one.iter().map(|own| field(own, named(own.name())?)).collect()
}

fn is_number(kind: &DataType) -> bool {
    kind.is_integer() || kind.is_floating()
}

/// Text, or a dictionary of text.
fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => is_text(value),
        kind => matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}

fn finer(a: TimeUnit, b: TimeUnit) -> TimeUnit {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let order = [Nanosecond, Microsecond, Millisecond, Second];
    order.into_iter().find(|unit| *unit == a || *unit == b).unwrap_or(a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::adapt::adapter;
    use crate::hub::Verdict;
    use crate::hub::type_text::{parse_schema, print_schema};

    fn parse(text: &str) -> SchemaRef {
        Arc::new(parse_schema(text, &Default::default()).unwrap())
    }

    fn union(a: &str, b: &str) -> Result<String> {
        schema(&[("a.csv", parse(a)), ("b.csv", parse(b))]).map(|both| print_schema(&both))
    }

    #[test]
    fn types_join_as_the_table_says() {
        let cases = [
            ("int32", "int32", "int32"),
            ("?null", "int32", "?int32"),
            ("?utf8", "utf8", "?utf8"),
            ("int8", "uint8", "int16"),
            ("int8", "int64", "int64"),
            ("uint32", "int8", "int64"),
            ("uint16", "uint64", "uint64"),
            ("uint64", "int8", ""),
            ("int8", "float16", "float16"),
            ("int16", "float32", "float32"),
            ("uint16", "float64", "float64"),
            ("int32", "float32", "float64"),
            ("uint32", "float64", "float64"),
            ("int64", "float64", ""),
            ("float16", "float32", "float32"),
            ("float64", "float32", "float64"),
            ("bool", "int8", ""),
            ("utf8", "large_utf8", "utf8"),
            ("utf8_view", "large_utf8", "utf8"),
            ("dict[int8, utf8]", "dict[int8, utf8]", "dict[int8, utf8]"),
            ("dict[int8, utf8]", "dict[int32, utf8]", "utf8"),
            ("dict[int8, large_utf8]", "utf8_view", "utf8"),
            ("dict[int8, int64]", "int64", "int64"),
            ("dict[int8, int64]", "dict[int16, int64]", ""),
            ("utf8", "int32", ""),
            ("binary", "large_binary", ""),
            ("fixed_binary[3]", "fixed_binary[4]", ""),
            ("timestamp[s]", "timestamp[us]", "timestamp[us]"),
            ("timestamp[s, 'UTC']", "timestamp[ms, 'UTC']", "timestamp[ms, 'UTC']"),
            ("timestamp[s, 'UTC']", "timestamp[s]", ""),
            ("timestamp[s, 'UTC']", "timestamp[s, 'Europe/Paris']", ""),
            ("time[s]", "time[ns]", "time[ns]"),
            ("time[s]", "time[ms]", "time[ms]"),
            ("duration[s]", "duration[ns]", "duration[ns]"),
            ("date32", "date64", "date64"),
            ("date32", "timestamp[s]", ""),
            ("decimal128[5, 2]", "decimal128[5, 2]", "decimal128[5, 2]"),
            ("decimal128[5, 2]", "decimal128[6, 2]", ""),
            ("list[int8]", "list[?int16]", "list[?int16]"),
            ("list[int8]", "large_list[int8]", "list[int8]"),
            ("fixed_list[2, int8]", "fixed_list[2, int16]", "fixed_list[2, int16]"),
            ("fixed_list[2, int8]", "fixed_list[3, int8]", "list[int8]"),
            ("list[int8]", "list[utf8]", ""),
            ("struct{a: int8, b: utf8}", "struct{b: ?utf8, a: int64}", "struct{a: int64, b: ?utf8}"),
            ("struct{a: int8}", "struct{b: int8}", ""),
            ("struct{a: int8}", "struct{a: int8, b: int8}", ""),
        ];
        for (a, b, expected) in cases {
            for (a, b) in [(a, b), (b, a)] {
                let (one, other) = (format!("struct{{x: {a}}}"), format!("struct{{x: {b}}}"));
                let found = union(&one, &other);
                if expected.is_empty() {
                    let error = found.unwrap_err().to_string();
                    assert_eq!(
                        error,
                        format!("column \"x\": {a} in a.csv and {b} in b.csv have no common type")
                    );
                    continue;
                }
                let found = found.unwrap();
                // The order of a struct's fields is that of the first.
                if !a.starts_with("struct") {
                    assert_eq!(found, format!("struct{{x: {expected}}}"), "{a} and {b}");
                }
                for part in [one, other] {
                    let verdict = adapter(&parse(&part), &parse(&found)).plan.verdict();
                    assert!(verdict <= Verdict::Checked, "{part} -> {found}: {verdict}");
                }
            }
        }
    }

    #[test]
    fn columns_come_in_order_of_first_appearance_and_missing_ones_are_nullable() {
        let found = union("struct{b: int8, a: utf8}", "struct{c: bool, b: int16}").unwrap();
        assert_eq!(found, "struct{b: int16, a: ?utf8, c: ?bool}");
        let same = "struct{x: int8, x: utf8}";
        assert_eq!(union(same, same).unwrap(), same);
        let error = union(same, "struct{x: int8}").unwrap_err().to_string();
        assert_eq!(error, "a.csv has two columns \"x\", so it cannot be joined by name");
        let error = union("struct{x: int8}", same).unwrap_err().to_string();
        assert_eq!(error, "b.csv has two columns \"x\", so it cannot be joined by name");
    }

    #[test]
    fn shapes_must_agree() {
        let error = union("struct{x: int8}", "matrix[*, 2, int8]").unwrap_err().to_string();
        assert_eq!(error, "a.csv is a table, b.csv is a dense matrix: they cannot be joined");
        assert_eq!(union("matrix[*, 2, int8]", "matrix[*, 2, float64]").unwrap(), "matrix[*, 2, float64]");
        assert_eq!(union("array[int8]", "array[?int16]").unwrap(), "array[?int16]");
        let error = union("value[int8]", "value[int8]").unwrap_err().to_string();
        assert_eq!(error, "a.csv and b.csv are single values, which are not joined");
    }
}
