//! The suite that every format passes: the data read back is what the plan says.
//!
//! ```text
//! Suite::new(&Parquet).keeping_metadata().run(0..200);       // random schemas and data, kept where the plan allows
//! Suite::new(&Parquet).check(&schema, &batches);             // one case
//! Suite::new(&Parquet).bad_input(&bytes, 1);                 // truncation and bit flips of a file
//! ```

use crate::testing::asked::Asked;
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema, SchemaRef};
use arrow_select::concat::concat_batches;

use super::arbitrary::Random;
use crate::error::{ErrorKind, Result};
use crate::formats::{Confidence, Document, Findings, Format, Head, Node, ReadOptions, WriteOptions};
use crate::hub::{Form, Plan, Rows, Verdict};
use crate::sink::Sink;
use crate::source::Source;
use crate::testing::writing::Writing as _;

/// A format under test, and how it is opened and written.
pub(crate) struct Suite<'a> {
    pub(crate) format: &'a dyn Format,
    pub(crate) read: ReadOptions,
    pub(crate) write: WriteOptions,
    metadata: bool,
    detected: bool,
    lossy: bool,
}

impl<'a> Suite<'a> {
    pub(crate) fn new(format: &'a dyn Format) -> Self {
        let mut read = ReadOptions::default();
        read.budget = crate::Limits { max_alloc: 64 << 20, ..crate::Limits::default() }.budget();
        Suite { format, read, write: WriteOptions::default(), metadata: false, detected: true, lossy: false }
    }

    /// The schema comes back with its metadata, field names, nullability and extension types.
    pub(crate) fn keeping_metadata(mut self) -> Self {
        self.metadata = true;
        self
    }

    /// Any bytes may be of this format, so it is never detected but always named.
    pub(crate) fn undetected(mut self) -> Self {
        self.detected = false;
        self
    }

    /// Also tests fields whose plan is lossy; reading with the type given must restore them.
    pub(crate) fn allowing_loss(mut self) -> Self {
        self.lossy = true;
        self
    }

    /// Uses a dialect for writing and reading.
    pub(crate) fn dialect(mut self, name: &str) -> Self {
        self.read.dialect = Some(name.to_owned());
        self.write.dialect = Some(name.to_owned());
        self
    }

    /// Sets an option of the writer.
    pub(crate) fn option(mut self, key: &str, value: &str) -> Self {
        self.write.options.set(key, value);
        self
    }

    /// Random cases of fields that the format can hold. Returns how many were written and read; fails if
    /// none.
    pub(crate) fn run(&self, seeds: Range<u64>) -> usize {
        let mut done = 0;
        for seed in seeds {
            let mut random = Random::new(seed);
            let schema = random.schema_of(|field| {
                let alone = Schema::new(vec![field.clone()]);
                self.format.steps(&alone, &self.write).verdict() < Verdict::Lossy
            });
            let batches = random.batches(&schema);
            let run = || self.check(&schema, &batches);
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(written) => done += usize::from(written),
                Err(panic) => {
                    eprintln!("seed {seed}, schema {schema:#?}");
                    std::panic::resume_unwind(panic);
                }
            }
        }
        assert!(done > 0, "no schema could be written");
        done
    }

    /// One case. Returns `false` if the plan, or a value in a checked step, does not allow it.
    pub(crate) fn check(&self, schema: &SchemaRef, batches: &[RecordBatch]) -> bool {
        let Some((plan, bytes)) = self.encode(schema, batches) else { return false };
        let expected = concat_batches(schema, batches).expect("random batches have one schema");
        let source = || Source::from_bytes(self.name(), bytes.clone());
        self.check_detection(&source());
        let document = self.format.open(source(), &self.read).expect("what we write opens");
        self.check_summary(document.as_ref(), &expected, bytes.len() as u64);
        let mut findings = Findings::new(false);
        document.validate(&mut findings).expect("what we write can be validated");
        assert!(findings.is_valid(), "what we write is valid, found {:#?}", findings.list());
        check_outline(&document.outline(), bytes.len() as u64, 4);
        let found = collect(document.all_rows().expect("what we write has rows"));
        let found = found.expect("what we write can be read");
        self.check_equal(&plan, &expected, &found);
        check_requests(document.as_ref(), &found);
        super::statistics::check(document.as_ref(), &found);
        self.check_stream(&bytes, &found);
        true
    }

    /// The bytes of a case, and the plan used; `None` if the case cannot be written.
    pub(crate) fn encode(&self, schema: &SchemaRef, batches: &[RecordBatch]) -> Option<(Plan, Vec<u8>)> {
        let plan = self.format.steps(schema, &self.write);
        if plan.verdict() == Verdict::Lossy && !self.lossy || plan.verdict() == Verdict::Impossible {
            assert!(plan.check(crate::hub::LossKinds::NONE).is_err());
            return None;
        }
        let (sink, memory) = Sink::memory();
        let write = || -> Result<_> {
            let mut writer = self.format.create(sink, Arc::clone(schema), &self.write)?;
            batches.iter().try_for_each(|batch| writer.write(batch))?;
            writer.finish()
        };
        match write() {
            Ok(written) => {
                let bytes = memory.take();
                let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
                assert_eq!((written.rows, written.bytes), (rows as u64, bytes.len() as u64));
                Some((plan, bytes))
            }
            Err(error) if plan.verdict() >= Verdict::Checked && error.kind() == ErrorKind::Lossy => None,
            Err(error) => panic!("the plan allows what the writer refuses: {error}\n{plan}"),
        }
    }

    fn name(&self) -> String {
        let extension = self.format.info().extensions.first().expect("a format has an extension");
        format!("data.{extension}")
    }

    fn check_detection(&self, source: &Source) {
        let bytes = source.head().unwrap();
        let confidence = self.format.detect(&Head::new(source, &bytes));
        assert!(
            confidence > Confidence::No || bytes.is_empty() || !self.detected,
            "what we write is detected"
        );
    }

    fn check_summary(&self, document: &dyn Document, expected: &RecordBatch, len: u64) {
        let summary = document.summary();
        assert_eq!(summary.format, self.format.info().id);
        assert!(summary.rows.is_none_or(|rows| rows == expected.num_rows() as u64), "{:?}", summary.rows);
        assert!(summary.bytes.is_none_or(|bytes| bytes == len));
        for part in &summary.parts {
            assert!(part.offset + part.bytes <= len, "{part:?} is in the file");
        }
        assert!(summary.null_counts.is_empty() || summary.null_counts.len() == summary.schema.fields().len());
        for (index, count) in summary.null_counts.iter().enumerate() {
            let column = expected.columns().get(index);
            if let (Some(count), Some(column)) = (count, column) {
                assert_eq!(*count, column.logical_null_count() as u64, "nulls of column {index}");
            }
        }
    }

    fn check_equal(&self, plan: &Plan, expected: &RecordBatch, found: &RecordBatch) {
        if self.metadata {
            let (expected, found) = (expected.schema(), found.schema());
            let exact = plan.verdict() != Verdict::Widened;
            assert!(!exact || expected == found, "schema: expected {expected:#?}, found {found:#?}");
            // Equality of fields ignores whether dictionaries are ordered.
            let ordered = |schema: &SchemaRef| -> Vec<Option<bool>> {
                schema.flattened_fields().iter().map(|field| field.dict_is_ordered()).collect()
            };
            assert!(!exact || ordered(&expected) == ordered(&found), "ordered dictionaries: {found:#?}");
        }
        assert_eq!(expected.num_rows(), found.num_rows(), "rows");
        assert_eq!(expected.num_columns(), found.num_columns(), "columns");
        for (index, (left, right)) in expected.columns().iter().zip(found.columns()).enumerate() {
            assert!(
                plan.verdict() >= Verdict::Widened || left.data_type().equals_datatype(right.data_type()),
                "column {index}: an exact plan keeps {}, found {}",
                left.data_type(),
                right.data_type()
            );
            // A dictionary may become its values; Arrow cannot cast all values to a dictionary for the
            // comparison.
            let left = match (left.data_type(), right.data_type()) {
                (from, to) if from == to => Arc::clone(left),
                (DataType::Dictionary(_, values), _) => arrow_cast::cast(left, values).expect("it unpacks"),
                _ => Arc::clone(left),
            };
            let right = if left.data_type() == right.data_type() {
                Arc::clone(right)
            } else {
                cast_back(right, left.data_type())
            };
            assert_eq!(&left, &right, "column {index}");
        }
    }

    fn check_stream(&self, bytes: &[u8], found: &RecordBatch) {
        let source = Source::from_reader(self.name(), Cursor::new(bytes.to_vec()));
        let document = match self.format.open(source, &self.read) {
            Ok(document) => document,
            Err(error) => panic!("a stream opens, found {error}"),
        };
        let rows = document.all_rows().expect("a stream has rows");
        assert_eq!(&collect(rows).expect("a stream can be read"), found);
        // A format that spools may return the same rows again, but never others.
        match document.all_rows().and_then(collect) {
            Ok(again) => assert_eq!(&again, found),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Usage, "{error}"),
        }
    }

    /// Opens, validates and reads `bytes` cut at every `stride`-th place and with bits flipped: no panic, no large
    /// allocation, and only errors about the file or a limit.
    pub(crate) fn bad_input(&self, bytes: &[u8], stride: usize) {
        for cut in (0..bytes.len()).step_by(stride) {
            self.try_all(bytes[..cut].to_vec(), &format!("cut at {cut}"));
        }
        for bit in (0..bytes.len() * 8).step_by(stride) {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            self.try_all(flipped, &format!("bit {} of byte {} flipped", bit % 8, bit / 8));
        }
    }

    /// All operations on a file of these bytes; checks the kinds of their errors.
    pub(crate) fn try_all(&self, bytes: Vec<u8>, what: &str) {
        let run = || -> Result<()> {
            let source = Source::from_bytes(self.name(), bytes);
            let head = source.head()?;
            let _ = self.format.detect(&Head::new(&source, &head));
            let document = self.format.open(source, &self.read)?;
            document.validate(&mut Findings::new(false))?;
            walk(&document.outline(), 3);
            drop((document.splits(3), document.statistics()));
            // Not collected: a file may hold many rows of few bytes.
            for batch in document.all_rows()? {
                batch?;
            }
            Ok(())
        };
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => assert!(
                !matches!(error.kind(), ErrorKind::Io | ErrorKind::Lossy),
                "{what}: expected the file's fault, found {error:?}"
            ),
            Err(panic) => {
                eprintln!("{what}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Casts a widened column back to its own type; types that Arrow does not cast are cast through integers.
fn cast_back(column: &ArrayRef, to: &DataType) -> ArrayRef {
    let number = if to.primitive_width() == Some(4) { DataType::Int32 } else { DataType::Int64 };
    let cast = |column: &ArrayRef, to: &DataType| arrow_cast::cast(column, to);
    cast(column, to)
        .or_else(|_| cast(&cast(&cast(column, &DataType::Int64)?, &number)?, to))
        .expect("a widened type casts back")
}

/// All rows in one batch.
pub(crate) fn collect(rows: Rows) -> Result<RecordBatch> {
    let schema = rows.schema();
    let batches = rows.collect::<Result<Vec<_>, _>>()?;
    for batch in &batches {
        assert_eq!(batch.schema(), schema, "every batch has the stream's schema");
    }
    Ok(concat_batches(&schema, &batches)?)
}

/// Every selection equals the same slice of all rows.
fn check_requests(document: &dyn Document, whole: &RecordBatch) {
    let total = whole.num_rows() as u64;
    let mut requests = Vec::new();
    for rows in [0..0, 0..1, total / 3..total * 2 / 3 + 1, total / 2..u64::MAX, total + 5..total + 9] {
        for batch_rows in [0, 1, 3] {
            requests.push(Asked { columns: None, rows: Some(rows.clone()), batch_rows });
        }
    }
    for request in requests {
        let range = request.range(total);
        let rows = document.ask(&request).expect("a range of rows can be requested");
        let batches = rows.collect::<Result<Vec<_>, _>>().expect("a range of rows can be read");
        if request.batch_rows > 0 {
            assert!(batches.iter().all(|batch| batch.num_rows() <= request.batch_rows), "{request:?}");
        }
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(count as u64, range.end - range.start, "{request:?}");
        if let Some(first) = batches.first() {
            let found = concat_batches(first.schema_ref(), &batches).unwrap();
            let expected = whole.slice(range.start as usize, count);
            assert_eq!(expected.columns(), found.columns(), "{request:?}");
        }
    }
    let fields = whole.num_columns() as u64;
    if fields == 0 || !matches!(Form::of(&whole.schema()), Form::Table | Form::Columns) {
        return;
    }
    // The columns in another order, and half of the rows.
    let chosen = std::iter::once(fields - 1..fields).chain((fields > 1).then_some(0..1)).collect();
    let rows = Some(total / 4..total / 2 + 1);
    let request = Asked { columns: Some(chosen), rows, batch_rows: 0 };
    let range = request.range(total);
    let found = collect(document.ask(&request).expect("columns can be requested"));
    let found = found.expect("columns can be read");
    let slice = whole.slice(range.start as usize, (range.end - range.start) as usize);
    let chosen =
        request.columns.clone().map(|columns| columns.into_iter().flatten().map(|index| index as usize));
    let chosen: Vec<usize> = chosen.into_iter().flatten().collect();
    assert_eq!(slice.project(&chosen).unwrap().columns(), found.columns(), "{request:?}");
}

/// Nodes are within the file, children within their parents.
fn check_outline(node: &Node, len: u64, depth: usize) {
    assert!(node.offset + node.bytes <= len, "{node:?} is in the file");
    let Some(parts) = node.parts.as_ref().filter(|_| depth > 0) else { return };
    for (index, part) in parts.nodes(0).take(50).enumerate() {
        let part = part.expect("what we write can be outlined");
        assert!(
            part.offset >= node.offset && part.offset + part.bytes <= node.offset + node.bytes,
            "part {index}, {part:?}, is in {node:?}"
        );
        check_outline(&part, len, depth - 1);
    }
}

/// Walks a part of an outline; a broken file may end the walk.
fn walk(node: &Node, depth: usize) {
    let Some(parts) = node.parts.as_ref().filter(|_| depth > 0) else { return };
    for part in parts.nodes(0).take(20).flatten() {
        walk(&part, depth - 1);
    }
}
