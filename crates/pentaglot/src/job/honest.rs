//! Plans are correct: every type is written to every format and read back, and the result is compared with the plan.
//!
//! | verdict | what must hold |
//! |---|---|
//! | exact | type, names, shape, zone, extension types and values come back |
//! | widened, checked | the values come back once they are adapted to the type they had, or the run says what does not fit |
//! | lossy | the step names a kind |

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use super::*;
use crate::convert::{adapt, reshape};
use crate::error::{Error, ErrorKind, Result};
use crate::hub::rows::from_batches;
use crate::hub::type_text::print_field;
use crate::hub::{FieldPlan, Form, LossKind, LossKinds, LossRecord, Plan, Shape, Verdict, extension, shape};
use crate::registry::Registry;
use crate::sink::Sink;
use crate::source::Source;
use crate::testing::arbitrary::Random;
use crate::testing::conformance::collect;
use crate::testing::writing::Writing;

const ROWS: usize = 9;

/// All types: those without children, each in every kind of container, and the extension types.
fn fields() -> Vec<Field> {
    let mut types = Random::leaves();
    for leaf in Random::leaves() {
        let item = Arc::new(Field::new_list_field(leaf.clone(), true));
        let entries = vec![Field::new("key", DataType::Utf8, false), Field::new("value", leaf.clone(), true)];
        let entries = Field::new("entries", DataType::Struct(Fields::from(entries)), false);
        let parts = vec![Field::new("a", leaf.clone(), true), Field::new("b", DataType::Int32, true)];
        types.extend([
            DataType::List(Arc::clone(&item)),
            DataType::LargeList(Arc::clone(&item)),
            DataType::FixedSizeList(item, 2),
            DataType::Struct(Fields::from(parts)),
            DataType::Map(Arc::new(entries), false),
        ]);
    }
    for values in [DataType::Utf8, DataType::Int64, DataType::Float64, DataType::Date32] {
        for key in [DataType::Int8, DataType::UInt32] {
            let dictionary = DataType::Dictionary(Box::new(key), Box::new(values.clone()));
            types.push(DataType::List(Arc::new(Field::new_list_field(dictionary.clone(), true))));
            types.push(dictionary);
        }
    }
    let mut fields: Vec<Field> = Vec::new();
    for data_type in types {
        fields.push(Field::new("x", data_type.clone(), true));
        if data_type != DataType::Null {
            fields.push(Field::new("x", data_type.clone(), false));
        }
        if matches!(data_type, DataType::Dictionary(..)) {
            fields.push(Field::new("x", data_type, true).with_dict_is_ordered(true));
        }
    }
    let mut random = Random::new(7);
    fields.extend((0..60).map(|_| random.extension_field("x")));
    fields
}

/// Tables, arrays and values of every field, and matrices.
fn schemas() -> Vec<SchemaRef> {
    let mut schemas = Vec::new();
    for field in fields() {
        schemas.push(Schema::new(vec![field.clone()]));
        schemas.push(Schema::new(vec![Field::new("k", DataType::Utf8, false), field.clone()]));
        if !field.data_type().is_nested() {
            schemas.push(shape::array_schema(field.clone()));
            schemas.push(shape::value_schema(field));
        }
    }
    for value in [
        DataType::Boolean,
        DataType::Int8,
        DataType::Int64,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
    ] {
        schemas.push(shape::dense_schema(value.clone(), Some(ROWS as u64), 3).unwrap());
        schemas.push(shape::sparse_schema(value, Some(ROWS as u64), 12));
    }
    schemas.push(Schema::new(vec![
        Field::new("a", DataType::Int32, false),
        Field::new("b", DataType::Int32, false),
    ]));
    schemas.into_iter().map(Arc::new).collect()
}

/// Every format and dialect that can be written and read without further options.
fn targets(registry: &Registry) -> Vec<String> {
    let mut targets = Vec::new();
    for format in registry.formats() {
        let info = format.info();
        let written = info
            .dialects
            .iter()
            // Formats that store no type are tested elsewhere, with a type given.
            .filter(|dialect| dialect.write && dialect.read)
            .filter(|dialect| {
                !matches!((info.id, dialect.name), ("dynd", "raw") | ("ds", "rows" | "rows-json"))
            });
        let before = targets.len();
        targets.extend(written.map(|dialect| format!("{}:{}", info.id, dialect.name)));
        if targets.len() == before {
            targets.push(info.id.to_owned());
        }
    }
    targets
}

/// Random rows; those of a sparse matrix are in its columns.
fn random_batch(seed: u64, schema: &SchemaRef, rows: usize) -> RecordBatch {
    if Form::of(schema) != Form::Sparse {
        return Random::new(seed).batch(schema, rows);
    }
    let value = shape::matrix_value_type(schema).unwrap();
    let dense = shape::dense_schema(value, Some(rows as u64), shape::matrix_cols(schema).unwrap()).unwrap();
    shaped(Random::new(seed).batch(&Arc::new(dense), rows), schema).unwrap()
}

/// Texts cannot be cast to decimals of negative scale.
fn has_negative_scale(kind: &DataType) -> bool {
    matches!(kind, DataType::Decimal64(_, ..0) | DataType::Decimal128(_, ..0))
}

/// Maps come back as lists of structs, which cannot be cast to maps.
fn holds_map(kind: &DataType) -> bool {
    match kind {
        DataType::Map(..) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            holds_map(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| holds_map(field.data_type())),
        _ => false,
    }
}

/// Writes a batch; `None` if the plan does not allow it.
fn write(registry: &Registry, batch: &RecordBatch, to: &str, allowed: LossKinds) -> (Plan, Result<Vec<u8>>) {
    let mut options = ConvertOptions::default();
    options.allow_lossy = allowed;
    let (plan, done) = convert(registry, batch, to, options);
    (plan, done.map(|(bytes, _)| bytes))
}

fn convert(
    registry: &Registry,
    batch: &RecordBatch,
    to: &str,
    mut options: ConvertOptions,
) -> (Plan, Result<(Vec<u8>, Report)>) {
    let arrow = registry.get("arrow").unwrap();
    let (sink, memory) = Sink::memory();
    let mut writer = arrow.create(sink, batch.schema(), &Default::default()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    options.open.from = Some("arrow".to_owned());
    let opened =
        open_source(registry, Source::from_bytes("data", memory.take()), None, &options.open).unwrap();
    let conversion = match Conversion::plan_opened(opened, target(registry, to).unwrap(), Some("-"), &options)
    {
        Ok(conversion) => conversion,
        Err(error) => return (Plan::default(), Err(error)),
    };
    let plan = conversion.plan.clone();
    let (sink, memory) = Sink::memory();
    let done = conversion.run_into(sink).map(|report| (memory.take(), report));
    (plan, done)
}

fn read(registry: &Registry, bytes: Vec<u8>, from: &str) -> Result<RecordBatch> {
    let mut options = OpenOptions::default();
    options.from = Some(from.to_owned());
    let opened = open_source(registry, Source::from_bytes("data", bytes), None, &options)?;
    collect(opened.rows(&View::default())?)
}

/// Types, names, order of dictionaries and extension types; nullability and the names of list items are
/// ignored.
fn same_field(a: &Field, b: &Field) -> bool {
    let plain = |field: &Field| print_field(field).replace('?', "");
    let metadata = |field: &Field| {
        let text = extension::metadata(field)?;
        serde_json::from_str::<serde_json::Value>(text).ok()
    };
    plain(a) == plain(b)
        && a.name() == b.name()
        && a.dict_is_ordered() == b.dict_is_ordered()
        && extension::name(a) == extension::name(b)
        && metadata(a) == metadata(b)
        && match (a.data_type(), b.data_type()) {
            (DataType::Struct(a), DataType::Struct(b)) => a.iter().zip(b).all(|(a, b)| same_field(a, b)),
            (
                DataType::List(a)
                | DataType::LargeList(a)
                | DataType::FixedSizeList(a, _)
                | DataType::Map(a, _),
                DataType::List(b)
                | DataType::LargeList(b)
                | DataType::FixedSizeList(b, _)
                | DataType::Map(b, _),
            ) => same_field(&a.as_ref().clone().with_name(""), &b.as_ref().clone().with_name("")),
            _ => true,
        }
}

fn same_values(a: &ArrayRef, b: &ArrayRef) -> bool {
    let unpacked = |array: &ArrayRef| match array.data_type() {
        DataType::Dictionary(_, values) => arrow_cast::cast(array, values).unwrap(),
        _ => Arc::clone(array),
    };
    let (a, b) = (unpacked(a), unpacked(b));
    a.data_type() == b.data_type() && a.as_ref() == b.as_ref()
        || arrow_cast::cast(&b, a.data_type()).is_ok_and(|b| a.as_ref() == b.as_ref())
}

/// The form in which two streams can be compared.
fn shaped(batch: RecordBatch, like: &Schema) -> Result<RecordBatch> {
    // A value, an array or a table of one column needs no other form.
    if matches!(Form::of(like), Form::Value | Form::Array) {
        return Ok(batch);
    }
    let one_list =
        like.fields().len() == 1 && matches!(like.field(0).data_type(), DataType::FixedSizeList(..));
    // A table that became a matrix has a column for each of the matrix's; one of tensors has them in its rows.
    let form = match (Form::of(&batch.schema()), Form::of(like)) {
        (Form::Dense, Form::Table) if one_list => Form::Table,
        (Form::Dense | Form::Sparse, Form::Table) => Form::Columns,
        (_, form) => form,
    };
    let plan = reshape::plan(&batch.schema(), form)?;
    plan.plan.check(LossKinds::ALL)?;
    let stream = from_batches(batch.schema(), [Ok(batch)]);
    let budget = crate::Limits::default().budget();
    collect(reshape::reshape(stream, &plan, &budget, LossKinds::NONE, &LossRecord::default())?)
}

fn check_exact(expected: &RecordBatch, found: RecordBatch) -> std::result::Result<(), String> {
    let (from, to) = (expected.schema(), found.schema());
    if Shape::of(&from) != Shape::of(&to) {
        return Err(format!("a {} came back as a {}", Shape::of(&from), Shape::of(&to)));
    }
    if Shape::of(&from) == Shape::Matrix && shape::matrix_cols(&from) != shape::matrix_cols(&to) {
        return Err("another number of columns".to_owned());
    }
    let found = shaped(found, &from).map_err(|error| error.to_string())?;
    let to = found.schema();
    if from.fields().len() != to.fields().len() {
        return Err(format!("{} fields came back", to.fields().len()));
    }
    for (a, b) in from.fields().iter().zip(to.fields()) {
        if !same_field(a, b) {
            return Err(format!(
                "{} {} came back as {} {}",
                a.name(),
                print_field(a),
                b.name(),
                print_field(b)
            ));
        }
    }
    if expected.num_rows() != found.num_rows() {
        return Err(format!("{} rows came back", found.num_rows()));
    }
    match expected.columns().iter().zip(found.columns()).all(|(a, b)| same_values(a, b)) {
        true => Ok(()),
        false => Err("other values came back".to_owned()),
    }
}

fn is_untyped_text(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, Dictionary, Duration, FixedSizeBinary, Interval, LargeBinary};
    match data_type {
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) | Duration(_) | Interval(_) => true,
        Dictionary(_, values) => is_untyped_text(values),
        _ => false,
    }
}

fn check_values(
    expected: &RecordBatch,
    found: RecordBatch,
    is_text: bool,
    has_names: bool,
) -> std::result::Result<(), String> {
    let from = expected.schema();
    let found = shaped(found, &from).map_err(|error| error.to_string())?;
    let to = found.schema();
    if from.fields().len() != to.fields().len() || expected.num_rows() != found.num_rows() {
        return Err("other rows or columns came back".to_owned());
    }
    let names =
        |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    if has_names && names(&from) != names(&to) && Form::of(&from) == Form::Table {
        return Err(format!("the names came back as {:?}", names(&to)));
    }
    // Text has all digits of a number, but it is first read as a wider type.
    let allowed = if is_text { LossKind::Precision.into() } else { LossKinds::NONE };
    for (index, field) in from.fields().iter().enumerate() {
        let (expected, found) = (expected.column(index), found.column(index));
        let wide = matches!(extension::name(field), Some(extension::INT128 | extension::UINT128));
        if same_values(expected, found)
            || is_text && (field.data_type().is_nested() || wide || has_negative_scale(field.data_type()))
            // Base64, and numbers without their unit: only a type reads them back.
            || is_text && is_untyped_text(field.data_type())
            || holds_map(field.data_type())
        {
            continue;
        }
        let wanted: SchemaRef = Arc::new(Schema::new(vec![field.as_ref().clone().with_nullable(true)]));
        let own: SchemaRef = Arc::new(Schema::new(vec![to.field(index).clone()]));
        let adapter = adapt::adapter(&own, &wanted);
        adapter.plan.check(LossKinds::ALL).map_err(|error| error.to_string())?;
        let batch = RecordBatch::try_new(Arc::clone(&own), vec![Arc::clone(found)]).unwrap();
        let stream = from_batches(own, [Ok(batch)]);
        let back = collect(adapter.adapt(stream, allowed, LossRecord::default()));
        let back = back.map_err(|error: Error| error.to_string())?;
        if !same_values(expected, back.column(0)) {
            return Err(format!(
                "other values of {} came back as {}",
                print_field(field),
                print_field(to.field(index))
            ));
        }
    }
    Ok(())
}

#[test]
fn every_plan_says_what_becomes_of_every_type_in_every_format() {
    let registry = Registry::default();
    let mut wrong = Vec::new();
    let (mut exact, mut others) = (0, 0);
    for (seed, schema) in schemas().iter().enumerate() {
        let rows = if Shape::of(schema) == Shape::Value { 1 } else { ROWS };
        let batch = random_batch(seed as u64, schema, rows);
        for to in targets(&registry) {
            let (plan, done) = write(&registry, &batch, &to, LossKinds::NONE);
            let what = || {
                format!(
                    "{to}, {}: {}",
                    crate::hub::type_text::print_schema(schema),
                    plan.to_string().trim_end().replace('\n', " | ")
                )
            };
            for step in &plan.steps {
                let names_none = step.kinds.is_empty();
                let is_right = match step.verdict {
                    Verdict::Lossy => !names_none,
                    // Where nothing allows values that do not fit, it says so.
                    Verdict::Checked => !names_none || step.note.is_some(),
                    _ => names_none,
                };
                if !is_right {
                    wrong.push(format!("{}: {step} names {:?}", what(), step.kinds));
                }
            }
            let verdict = plan.verdict();
            let bytes = match done {
                Ok(bytes) => bytes,
                Err(error) => {
                    let refused = match verdict {
                        Verdict::Impossible => error.kind() == ErrorKind::Unsupported,
                        Verdict::Checked | Verdict::Lossy => error.kind() == ErrorKind::Lossy,
                        _ => plan.steps.is_empty(),
                    };
                    // The size of a structure depends on its values.
                    let refused = refused || to.starts_with("sds") && error.kind() == ErrorKind::Limit;
                    if !refused {
                        wrong.push(format!("{}: the run ends with {error:?}", what()));
                    }
                    continue;
                }
            };
            let found = match read(&registry, bytes, &to) {
                Ok(found) => found,
                // A member per column.
                Err(_) if to == "npz" && schema.fields().len() > 1 => continue,
                Err(error) => {
                    wrong.push(format!("{}: cannot be read: {error}", what()));
                    continue;
                }
            };
            let is_text = ["csv", "jsonl", "json", "mtx"].contains(&to.as_str());
            let says = |note: &str| {
                plan.steps.iter().any(|step| step.note.as_deref().is_some_and(|said| said.contains(note)))
            };
            let held = match verdict {
                // A table of entries does not store the size of the matrix.
                _ if says(shape::SIZE_NOT_KEPT) => Ok(()),
                // Positions and runs represent the same bits with other rows, and numbers may be the bytes of
                // one value.
                Verdict::Widened | Verdict::Checked
                    if ["sds:bit", "sds:raw", "sds:sparse", "sds:rl", "sds:bytes", "sds:string"]
                        .contains(&to.as_str()) =>
                {
                    Ok(())
                }
                // The name of a member is that of the column.
                Verdict::Widened | Verdict::Checked if to == "npz" && Form::of(schema) == Form::Table => {
                    Ok(())
                }
                Verdict::Exact => check_exact(&batch, found),
                _ => check_values(&batch, found, is_text, !says(shape::NAMES_NOT_KEPT)),
            };
            match verdict {
                Verdict::Exact => exact += 1,
                _ => others += 1,
            }
            if let Err(why) = held {
                wrong.push(format!("{}: {why}", what()));
            }
        }
    }
    let shown: Vec<String> = wrong.iter().map(|wrong| wrong.chars().take(500).collect()).collect();
    assert!(wrong.is_empty(), "{} of {exact} exact and {others} others:\n{shown:#?}", wrong.len());
    assert!(exact > 1000 && others > 1000, "{exact} exact, {others} others");
}

#[cfg(feature = "dynd")]
#[test]
fn whatever_is_written_can_be_verified() {
    let registry = Registry::default();
    let (mut wrong, mut verified) = (Vec::new(), 0);
    // Every third schema: all of them take minutes.
    for (seed, schema) in schemas().iter().enumerate().step_by(3) {
        let rows = if Shape::of(schema) == Shape::Value { 1 } else { ROWS };
        let batch = random_batch(seed as u64, schema, rows);
        // DS writes decimals as text, from which those of negative scale are not parsed.
        let text = crate::hub::type_text::print_exact_schema(schema);
        let is_parsed = |to: &String| !(to.starts_with("ds") && text.contains(", -"));
        for to in targets(&registry).into_iter().filter(is_parsed) {
            let (plan, done) = write(&registry, &batch, &to, LossKinds::ALL);
            if let Err(error) = done {
                // A plan that names a kind keeps its word.
                let names = |step: &FieldPlan| step.kinds.contains(LossKind::Nulls);
                let is_strict = |step: &FieldPlan| step.verdict == Verdict::Checked && step.kinds.is_empty();
                // A nested column has one step for parts that differ in this.
                let is_nested = schema.fields().iter().any(|field| field.data_type().is_nested());
                if error.message().contains("null")
                    && plan.steps.iter().any(names)
                    && !plan.steps.iter().any(is_strict)
                    && !is_nested
                {
                    wrong.push(format!("{to}, {text}: {error}; {plan}"));
                }
                continue;
            }
            let mut options = ConvertOptions::default();
            options.allow_lossy = LossKinds::ALL;
            options.verify = true;
            let (plan, done) = convert(&registry, &batch, &to, options);
            let said = match done {
                Ok((_, report)) => {
                    verified += 1;
                    let found = report.verified.unwrap();
                    // A matrix in columns is verified as a table.
                    let is_exact = plan.verdict() == Verdict::Exact && Shape::of(schema) != Shape::Matrix;
                    if !is_exact || found.source == Some(found.written) {
                        continue;
                    }
                    "the plan is exact, and the identities differ".to_owned()
                }
                Err(error) => error.to_string(),
            };
            let plan = plan.to_string().trim_end().replace('\n', " | ");
            wrong.push(format!("{to}, {text}: {said}; {plan}"));
        }
    }
    let shown: Vec<String> = wrong.iter().map(|wrong| wrong.chars().take(500).collect()).collect();
    assert!(wrong.is_empty(), "{} of {verified}:\n{shown:#?}", wrong.len());
    assert!(verified > 2000, "{verified}");
}
