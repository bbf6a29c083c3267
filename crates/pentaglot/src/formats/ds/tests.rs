//! Bytes written by other programs, byte for byte; bad input with its class and place; seeks that count bytes.

mod access;
mod bare;
mod hub;
mod images;
mod plain;
mod reject;
mod robust;
mod values;
mod vectors;

use crate::testing::asked::Asked;
use arrow_array::RecordBatch;
use serde_json::Value;
use std::sync::Arc;

use super::Ds;
use crate::error::Result;
use crate::formats::{Document, Format, ReadOptions, WriteOptions};
use crate::sink::Sink;
use crate::source::Source;
use crate::testing::writing::Writing as _;

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/ds/golden.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|index| u8::from_str_radix(&text[2 * index..2 * index + 2], 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_options(pairs: &[(&str, &str)]) -> ReadOptions {
    let mut options = ReadOptions::default();
    for (key, value) in pairs {
        match *key {
            "type" => options.type_text = Some((*value).to_owned()),
            "dialect" => options.dialect = Some((*value).to_owned()),
            "threads" => options.control = crate::Control::new(value.parse().unwrap()),
            _ => options.options.set(*key, *value),
        }
    }
    options
}

fn write_options(dialect: &str, pairs: &[(&str, &str)]) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.dialect = Some(dialect.to_owned());
    pairs.iter().for_each(|(key, value)| options.options.set(*key, *value));
    options
}

fn open(bytes: &[u8], pairs: &[(&str, &str)]) -> Result<Arc<dyn Document>> {
    Ds.open(Source::from_bytes("test", bytes.to_vec()), &read_options(pairs))
}

fn collect(document: &dyn Document, request: &Asked) -> Result<Vec<RecordBatch>> {
    document.ask(request)?.map(|batch| Ok(batch?)).collect()
}

/// Everything that a bundle holds, as one batch.
fn read(bytes: &[u8], pairs: &[(&str, &str)]) -> Result<RecordBatch> {
    let document = open(bytes, pairs)?;
    let rows = document.all_rows()?;
    let schema = rows.schema();
    let batches = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(arrow_select::concat::concat_batches(&schema, &batches)?)
}

fn write(batch: &RecordBatch, dialect: &str, pairs: &[(&str, &str)]) -> Result<Vec<u8>> {
    let (sink, memory) = Sink::memory();
    let mut writer = Ds.create(sink, batch.schema(), &write_options(dialect, pairs))?;
    writer.write(batch)?;
    writer.finish()?;
    Ok(memory.take())
}

/// Reads a bundle and writes it again.
fn through(bytes: &[u8], dialect: &str) -> Result<Vec<u8>> {
    write(&read(bytes, &[])?, dialect, &[])
}
