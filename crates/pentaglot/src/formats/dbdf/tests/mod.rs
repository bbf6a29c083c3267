//! Tests with files of other programs, files built by hand, and random ones.

mod bad;
mod blocks;
mod messages;
mod meta;
mod properties;
mod random_access;
mod replacing;
mod vectors;
mod writing;

use crate::testing::asked::Asked;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::Schema;

use super::Dbdf;
use crate::error::{Error, Result};
use crate::formats::{Document, Findings, Format, ReadOptions, WriteOptions};
use crate::hub::Form;
use crate::testing::writing::Writing as _;
use crate::{Sink, Source};

fn testdata(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dbdf").join(file)
}

fn open(bytes: &[u8]) -> Result<Arc<dyn Document>> {
    Dbdf.open(Source::from_bytes("test", bytes.to_vec()), &ReadOptions::default())
}

/// Opens a file of which most rows take no bytes.
fn open_free(bytes: &[u8]) -> Result<Arc<dyn Document>> {
    let mut options = ReadOptions::default();
    options.budget = crate::Limits { max_free_rows: 1 << 32, ..crate::Limits::default() }.budget();
    Dbdf.open(Source::from_bytes("test", bytes.to_vec()), &options)
}

fn open_as(bytes: &[u8], dialect: &str) -> Result<Arc<dyn Document>> {
    let options = ReadOptions { dialect: Some(dialect.to_owned()), ..ReadOptions::default() };
    Dbdf.open(Source::from_bytes("test", bytes.to_vec()), &options)
}

fn rows(document: &dyn Document, request: &Asked) -> Result<RecordBatch> {
    let rows = document.ask(request)?;
    let schema = rows.schema();
    let batches: Vec<RecordBatch> = rows.collect::<std::result::Result<_, _>>().map_err(Error::from)?;
    Ok(arrow_select::concat::concat_batches(&schema, &batches)?)
}

fn all(document: &dyn Document) -> Result<RecordBatch> {
    rows(document, &Asked::default())
}

/// The bytes of a numeric array's values.
fn bits(array: &ArrayRef) -> Vec<u8> {
    let data = array.to_data();
    let size = data.data_type().primitive_width().unwrap();
    data.buffers()[0].as_slice()[data.offset() * size..][..data.len() * size].to_vec()
}

/// A matrix as a map from cells to bits of what is stored, and a table as columns of bits.
fn entries(batch: &RecordBatch) -> (Vec<i64>, Vec<u64>, Vec<u8>) {
    let list = batch.column(0).as_list::<i64>();
    let entries = list.values().as_struct();
    let cols = arrow_cast::cast(entries.column(0), &arrow_schema::DataType::UInt64).unwrap();
    let cols = cols.as_primitive::<arrow_array::types::UInt64Type>().values().to_vec();
    (list.value_offsets().to_vec(), cols, bits(entries.column(1)))
}

fn dense_bits(batch: &RecordBatch) -> Vec<u8> {
    assert_eq!(Form::of(&batch.schema()), Form::Dense);
    bits(batch.column(0).as_fixed_size_list().values())
}

fn options(dialect: &str, pairs: &[(&str, &str)]) -> WriteOptions {
    let (dialect, name) = (Some(dialect.to_owned()), Some("x.dbdf".to_owned()));
    let mut options = WriteOptions { dialect, name, ..WriteOptions::default() };
    pairs.iter().for_each(|(key, value)| options.options.set(*key, *value));
    options
}

fn write(batch: &RecordBatch, options: &WriteOptions) -> Result<Vec<u8>> {
    write_batches(std::slice::from_ref(batch), &batch.schema(), options)
}

fn write_batches(batches: &[RecordBatch], schema: &Arc<Schema>, options: &WriteOptions) -> Result<Vec<u8>> {
    Dbdf.steps(schema, options).check(crate::hub::LossKinds::NONE)?;
    let (sink, memory) = Sink::memory();
    let mut writer = Dbdf.create(sink, Arc::clone(schema), options)?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.finish()?;
    Ok(memory.take())
}

fn findings(bytes: &[u8]) -> Findings {
    let mut findings = Findings::default();
    match open(bytes) {
        Ok(document) => document.validate(&mut findings).unwrap(),
        Err(error) => findings.error(&error),
    }
    findings
}

fn rules(bytes: &[u8]) -> Vec<String> {
    findings(bytes).list().iter().map(|finding| finding.rule.clone()).collect()
}

/// A file of the document, built field by field.
struct Build(Vec<u8>);

impl Build {
    fn matrix(data_type: u8, rows: u64, cols: u64, value_type: u8) -> Self {
        Build(vec![1, data_type]).u64(rows).u64(cols).u8(value_type)
    }

    fn block(self, at: (u64, u64), shape: (u32, u32), block_type: u8) -> Self {
        self.u64(at.0).u64(at.1).u32(shape.0).u32(shape.1).u8(block_type)
    }

    fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn f64(self, value: f64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
}
