//! Rows as plain JSON, for tests that compare them with the output of other programs
//! (`testdata/make_numeric.py`).

use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float16Type, Float32Type, Float64Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, TimeUnit};
use serde_json::{Value, json};

use crate::hub::{Form, Rows, Shape, extension, shape};

/// A file under `testdata/`.
pub(crate) fn testdata(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// The files of a folder of `testdata/` with one extension, and the expected content of each, if there is
/// one.
pub(crate) fn expectations(folder: &str, extension: &str) -> Vec<(PathBuf, Option<Value>)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(testdata(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == extension));
    files.sort();
    let expectation = |path: PathBuf| {
        let json = std::fs::read(format!("{}.json", path.display())).ok();
        (path, json.map(|json| serde_json::from_slice(&json).unwrap()))
    };
    files.into_iter().map(expectation).collect()
}

/// All rows as one value, in the forms that `make_numeric.py` describes.
pub(crate) fn plain(rows: Rows) -> crate::Result<Value> {
    let schema = rows.schema();
    let batches: Vec<RecordBatch> = rows.collect::<Result<_, _>>()?;
    let mut all: Vec<Value> = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            all.push(match Shape::of(&schema) {
                Shape::Table => record(schema.fields(), batch.columns(), row),
                _ => value(schema.field(0), batch.column(0), row),
            });
        }
    }
    Ok(match Form::of(&schema) {
        Form::Value => all.remove(0),
        Form::Sparse => {
            let entry = |row: usize, entry: &Value| json!([row, entry["col"], entry["value"]]);
            let rows = all.iter().enumerate();
            let entries: Vec<Value> = rows
                .flat_map(|(row, list)| list.as_array().unwrap().iter().map(move |item| entry(row, item)))
                .collect();
            json!({ "rows": all.len(), "cols": shape::matrix_cols(&schema), "entries": entries })
        }
        _ => Value::Array(all),
    })
}

fn record<'a>(
    fields: impl IntoIterator<Item = &'a std::sync::Arc<Field>>,
    columns: &[ArrayRef],
    row: usize,
) -> Value {
    let pairs = fields.into_iter().zip(columns);
    Value::Object(pairs.map(|(field, column)| (field.name().clone(), value(field, column, row))).collect())
}

fn float(number: f64) -> Value {
    match number {
        _ if number.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ => json!(number),
    }
}

fn value(field: &Field, array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let base64 = |bytes: &[u8]| json!(base64_simd::STANDARD.encode_to_string(bytes));
    let list = |field: &Field, items: ArrayRef| {
        (0..items.len()).map(|index| value(field, &items, index)).collect::<Vec<_>>()
    };
    match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Float16 => float(f64::from(array.as_primitive::<Float16Type>().value(row))),
        DataType::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::UInt64 => json!(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::Binary => base64(array.as_binary::<i32>().value(row)),
        DataType::FixedSizeBinary(_) => base64(array.as_fixed_size_binary().value(row)),
        DataType::Duration(unit) => json!(match unit {
            TimeUnit::Second => array.as_primitive::<DurationSecondType>().value(row),
            TimeUnit::Millisecond => array.as_primitive::<DurationMillisecondType>().value(row),
            TimeUnit::Microsecond => array.as_primitive::<DurationMicrosecondType>().value(row),
            TimeUnit::Nanosecond => array.as_primitive::<DurationNanosecondType>().value(row),
        }),
        DataType::Date32 => json!(array.as_primitive::<Date32Type>().value_as_date(row).unwrap().to_string()),
        DataType::Timestamp(unit, None) => {
            let digits = match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 3,
                TimeUnit::Microsecond => 6,
                TimeUnit::Nanosecond => 9,
            };
            let text = arrow_cast::display::array_value_to_string(array, row).unwrap();
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            let dot = if digits > 0 { "." } else { "" };
            json!(format!("{whole}{dot}{fraction:0<digits$}"))
        }
        DataType::Struct(fields) => record(fields, array.as_struct().columns(), row),
        DataType::LargeList(item) => json!(list(item, array.as_list::<i64>().value(row))),
        DataType::FixedSizeList(item, _) => {
            let flat = list(item, array.as_fixed_size_list().value(row));
            match extension::tensor_shape(field) {
                Some(shape) => nest(&flat, &shape),
                None => Value::Array(flat),
            }
        }
        _ => serde_json::from_str(&arrow_cast::display::array_value_to_string(array, row).unwrap()).unwrap(),
    }
}

fn nest(flat: &[Value], shape: &[u64]) -> Value {
    match shape {
        [] => flat[0].clone(),
        [_] => json!(flat),
        [count, rest @ ..] => {
            let each = flat.len() / (*count as usize).max(1);
            Value::Array(
                (0..*count as usize)
                    .map(|index| nest(&flat[index * each..(index + 1) * each], rest))
                    .collect(),
            )
        }
    }
}
