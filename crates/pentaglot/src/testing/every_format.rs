//! The suite over every format of the registry and every dialect that is written, each with data in the forms it takes.

#![cfg(all(feature = "sds", feature = "dynd"))]

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, LargeListArray, RecordBatch, StructArray, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::arbitrary::Random;
use super::conformance::Suite;
use super::faults;
use crate::formats::{Format, OptionInfo, Side, WriteOptions};
use crate::hub::type_text::{parse_schema, print_exact_schema};
use crate::hub::{Form, Plan, Verdict, extension, shape};
use crate::job::{Language, print_type};
use crate::limits::Limits;
use crate::registry::Registry;
use crate::testing::writing::Writing as _;

/// Random cases of each form.
const SEEDS: u64 = 8;
/// A file of at most this many bytes is damaged at each of them.
const SMALL_BYTES: usize = 400;

#[test]
fn every_format_and_dialect_passes_the_suite() {
    let mut failed = Vec::new();
    for format in Registry::default().formats() {
        let written = format.info().dialects.iter().filter(|dialect| dialect.write && dialect.read);
        let mut dialects: Vec<Option<&str>> = written.map(|dialect| Some(dialect.name)).collect();
        if dialects.is_empty() {
            dialects.push(None);
        }
        for dialect in dialects {
            let name = format!("{}:{}", format.info().id, dialect.unwrap_or("-"));
            if check(format.as_ref(), dialect, &name, &mut failed) == 0 {
                failed.push(format!("{name}: no case could be written"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A plan reads every option, so that planning fails wherever the run would fail.
#[test]
fn options_are_read_by_the_plan() {
    for format in Registry::default().formats() {
        let info = format.info();
        let numbers = || Field::new("item", DataType::UInt8, false);
        let schemas = [
            shape::array_schema(numbers()),
            shape::dense_schema(DataType::Int64, None, 3).unwrap(),
            Schema::new(vec![numbers()]),
        ];
        let plan = |options: &WriteOptions| {
            let plans = schemas.iter().map(|schema| format.steps(schema, options));
            plans.min_by_key(Plan::verdict).unwrap()
        };
        assert!(plan(&WriteOptions::default()).verdict() < Verdict::Lossy, "{}: no schema fits", info.id);
        // Any text is a valid spelling of null, or a valid name.
        let is_free = |option: &OptionInfo| ["TEXT", "NAME"].iter().any(|word| option.values.contains(word));
        let checked = |option: &&OptionInfo| option.side.includes(Side::Write) && !is_free(option);
        for option in info.options.iter().filter(checked) {
            let mut options = WriteOptions::default();
            options.options.set(option.key, "nonsense");
            let plan = plan(&options);
            assert_eq!(plan.verdict(), Verdict::Impossible, "{} {}: {plan:?}", info.id, option.key);
            assert!(format!("{plan:?}").contains(option.key), "{} {}: {plan:?}", info.id, option.key);
        }
    }
}

/// Returns how many cases were written and read.
fn check(format: &dyn Format, dialect: Option<&str>, name: &str, failed: &mut Vec<String>) -> usize {
    let mut checked = 0;
    let mut small: Option<(Suite<'_>, Vec<u8>)> = None;
    for form in format.info().forms {
        for seed in 0..SEEDS {
            let mut random = Random::new(seed);
            let mut suite = Suite::new(format);
            if let Some(dialect) = dialect {
                suite = suite.dialect(dialect);
            }
            let case = match (format.info().id, dialect) {
                ("sds", Some(kind)) => structure(&mut random, *form, kind),
                _ => rows(&mut random, *form, &suite),
            };
            let Some((schema, batches)) = case else { continue };
            if is_text(format) {
                let told = match form {
                    Form::Dense | Form::Array => schema.as_ref().clone(),
                    _ => Schema::new(schema.fields().clone()),
                };
                suite.read.type_text = Some(print_exact_schema(&told));
            }
            if format.info().id == "dynd" && matches!(dialect, Some("raw" | "cbor")) {
                suite = suite.undetected();
            }
            if format.info().id == "dynd" && dialect == Some("raw") {
                let Ok(text) = print_type(&schema, Language::Dynd) else { continue };
                suite.read.type_text = Some(text);
            }
            if format.info().id == "ds" && matches!(dialect, Some("rows" | "rows-json")) {
                let Ok(text) = print_type(&schema, Language::Ds) else { continue };
                suite = suite.undetected();
                suite.read.type_text = Some(text);
            }
            let run = || suite.check(&schema, &batches);
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(written) => checked += usize::from(written),
                Err(_) => {
                    // The message of the panic has been printed.
                    eprintln!("{name}, {form:?}, seed {seed}, schema {schema}");
                    failed.push(format!("{name}, {form:?}, seed {seed}"));
                    continue;
                }
            }
            let Some((_, bytes)) = suite.encode(&schema, &batches) else { continue };
            // The largest of the small ones, else the smallest.
            let is_better = |best: &[u8]| match bytes.len() <= SMALL_BYTES {
                true => best.len() > SMALL_BYTES || best.len() < bytes.len(),
                false => best.len() > bytes.len(),
            };
            if small.as_ref().is_none_or(|(_, best): &(_, Vec<u8>)| is_better(best)) {
                small = Some((suite, bytes));
            }
        }
    }
    if let Some((suite, bytes)) = small {
        suite.bad_input(&bytes, 1);
        let wrong = faults::every_read_fails(&suite, &bytes);
        failed.extend(wrong.iter().map(|wrong| format!("{name}: {wrong}")));
    }
    checked
}

/// Whether types are given, since text formats do not store them.
fn is_text(format: &dyn Format) -> bool {
    matches!(format.info().id, "csv" | "jsonl" | "json")
}

/// Random rows in this form, of fields that the format can hold.
fn rows(random: &mut Random, form: Form, suite: &Suite<'_>) -> Option<(SchemaRef, Vec<RecordBatch>)> {
    let numbers = [DataType::Float64, DataType::Int32, DataType::Int64, DataType::UInt8, DataType::Float32];
    let cols = 1 + random.below(5) as u64;
    let schema = match form {
        Form::Table => {
            // Each column of a table is a member of an npz archive, and one member is read at a time.
            let count = if suite.format.info().id == "npz" { 1 } else { 1 + random.below(4) };
            let fields = (0..count).map(|index| fitting(random, &format!("c{index}"), suite));
            Schema::new(fields.collect::<Option<Vec<_>>>()?)
        }
        Form::Array => shape::array_schema(fitting(random, "item", suite)?),
        Form::Value => shape::value_schema(fitting(random, "value", suite)?),
        Form::Dense => shape::dense_schema(random.pick(&numbers), None, cols).unwrap(),
        Form::Sparse => shape::sparse_schema(random.pick(&numbers), None, cols),
        // Forms that only `convert` makes.
        Form::Columns | Form::Coo => return None,
    };
    let schema = Arc::new(schema);
    let batches = match form {
        Form::Sparse => {
            let count = 1 + random.below(6);
            vec![sparse_rows(random, &schema, count, cols)]
        }
        _ => random.batches(&schema),
    };
    Some((schema, batches))
}

/// A field that the format holds without loss; `None` if no random field was one.
fn fitting(random: &mut Random, name: &str, suite: &Suite<'_>) -> Option<Field> {
    let fits = |field: &Field| {
        let alone = Schema::new(vec![field.clone()]);
        let said = parse_schema(&print_exact_schema(&alone), &Limits::default());
        let told = said.is_ok_and(|said| said.field(0).data_type() == field.data_type());
        (told || !is_text(suite.format))
            && suite.format.steps(&alone, &suite.write).verdict() < Verdict::Lossy
            && !format!("{field:?}").contains("Map(")
    };
    (0..200).find_map(|_| {
        let depth = random.below(3);
        Some(random.field(name, depth)).filter(&fits)
    })
}

/// Rows of ascending columns, each with a value.
fn sparse_rows(random: &mut Random, schema: &SchemaRef, rows: usize, cols: u64) -> RecordBatch {
    let DataType::LargeList(entry) = schema.field(0).data_type() else { panic!("{schema:#?}") };
    let DataType::Struct(fields) = entry.data_type() else { panic!("{schema:#?}") };
    let (mut chosen, mut lengths) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let row: Vec<u32> = (0..cols as u32).filter(|_| random.one_in(2)).collect();
        lengths.push(row.len());
        chosen.extend(row);
    }
    let values = random.array(&fields[1], chosen.len());
    let columns: Vec<ArrayRef> = vec![Arc::new(arrow_array::UInt32Array::from(chosen)), values];
    let entries = StructArray::new(fields.clone(), columns, None);
    let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
    let list = LargeListArray::new(Arc::clone(entry), offsets, Arc::new(entries), None);
    RecordBatch::try_new(Arc::clone(schema), vec![Arc::new(list)]).unwrap()
}

/// Rows that a succinct structure of this kind holds.
fn structure(random: &mut Random, form: Form, kind: &str) -> Option<(SchemaRef, Vec<RecordBatch>)> {
    let len = random.below(40);
    let numbers = |values: Vec<u64>| -> ArrayRef { Arc::new(UInt64Array::from(values)) };
    let ascending = |random: &mut Random, least: usize| {
        let mut next = 0;
        let values = (0..len).map(|_| {
            next += (least + random.below(9)) as u64;
            next
        });
        values.collect::<Vec<u64>>()
    };
    let number = |name: &str| Field::new(name, DataType::UInt64, false);
    let (schema, columns): (Schema, Vec<ArrayRef>) = match (kind, form) {
        ("bit" | "raw", Form::Array) => {
            let bits: Vec<bool> = (0..len).map(|_| random.one_in(2)).collect();
            let item = Field::new("item", DataType::Boolean, false);
            (shape::array_schema(item), vec![Arc::new(BooleanArray::from(bits))])
        }
        ("sparse", Form::Array) => (shape::array_schema(number("item")), vec![numbers(ascending(random, 1))]),
        ("int" | "wm" | "wmcore" | "rlwm" | "vec" | "option", Form::Array) => {
            let values = (0..len).map(|_| random.next() % 50).collect();
            (shape::array_schema(number("item")), vec![numbers(values)])
        }
        ("rl", Form::Table) => {
            // A run ends at least one bit before the next.
            let starts = ascending(random, 2);
            let lengths = vec![1; starts.len()];
            (Schema::new(vec![number("start"), number("length")]), vec![numbers(starts), numbers(lengths)])
        }
        ("pairs", Form::Array) => {
            let parts = [number("_0"), number("_1")];
            let columns = [0, 1].map(|_| numbers((0..len).map(|_| random.next()).collect()));
            let pairs = StructArray::new(parts.to_vec().into(), columns.to_vec(), None);
            let item = Field::new("item", DataType::Struct(parts.to_vec().into()), false);
            (shape::array_schema(extension::with(item, extension::TUPLE, None)), vec![Arc::new(pairs)])
        }
        ("string" | "bytes", Form::Value) => {
            let data_type = if kind == "string" { DataType::Utf8 } else { DataType::Binary };
            let value = Field::new("value", data_type, false);
            let column = random.array(&value, 1);
            (shape::value_schema(value), vec![column])
        }
        _ => return None,
    };
    let schema = Arc::new(schema);
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    Some((schema, vec![batch]))
}
