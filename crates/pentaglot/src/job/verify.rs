//! Verification of a conversion: the output is read back before it gets its name, and must contain the same
//! data.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};

use super::open::{self, OpenOptions, Target};
use super::read::View;
use super::types::{self, Language};
use crate::convert::{adapt, reshape};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::{FormatInfo, OptionMap, Side, TypeLanguage, dynd};
use crate::hub::type_text::print_exact_schema;
use crate::hub::{Form, LossKinds, LossRecord, Rows, rows};
use crate::identity::{Cid, RowHasher};
use crate::registry::Registry;
use crate::sink::Sink;
use crate::source::{ReadAt, Source};

/// The identities of a verified conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The identity of the input; `None` for a matrix that its file holds as a table.
    pub source: Option<Cid>,
    /// The identity of the rows passed to the writer.
    pub written: Cid,
    /// The identity of the rows read back; always the same as `written`.
    pub read: Cid,
}

/// A conversion that is being verified.
pub(super) struct Verification {
    source: Option<Arc<Mutex<RowHasher>>>,
    written: RowHasher,
    /// The identity of the rows written, once complete, and of those read back.
    found: Arc<Mutex<(Option<Cid>, Option<Cid>)>>,
}

/// How the output is opened again.
struct ReadBack {
    target: Target,
    schema: SchemaRef,
    /// The number of rows, if known in advance.
    row_count: Option<u64>,
    options: OpenOptions,
    name: String,
}

impl Verification {
    /// Starts hashing rows of these schemas, and sets the check of the sink.
    pub(super) fn start(
        options: &OpenOptions,
        target: &Target,
        (source, written): (&SchemaRef, &SchemaRef),
        row_count: Option<u64>,
        sink: Sink,
    ) -> Result<(Self, Sink)> {
        let own = options.identity();
        let source = match Form::of(source) {
            Form::Columns | Form::Coo => None,
            _ => Some(Arc::new(Mutex::new(RowHasher::new(source, &own)?))),
        };
        let verification =
            Verification { source, written: RowHasher::new(written, &own)?, found: Arc::default() };
        let name = sink.path().map_or_else(String::new, |path| path.display().to_string());
        let schema = Arc::clone(written);
        let (target, options) = (target.clone(), options.clone());
        let read_back = ReadBack { target, schema, row_count, options, name };
        let found = Arc::clone(&verification.found);
        let sink = sink.before_commit(Box::new(move |bytes| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            let read = read_back.identity(bytes).map_err(|error| {
                Error::unsupported(format!("what was written cannot be read back: {error}"))
            })?;
            found.1 = Some(read);
            match found.0 {
                Some(written) if written == read => Ok(()),
                Some(written) => Err(Error::new(
                    ErrorKind::Lossy,
                    format!("what was written reads back as other data: wrote {written}, read {read}"),
                )),
                None => Err(Error::unsupported("the output was complete before its rows were")),
            }
        }));
        Ok((verification, sink))
    }

    /// The rows of the input, hashed while they are read.
    pub(super) fn source(&self, stream: Rows) -> Rows {
        let Some(hasher) = self.source.clone() else { return stream };
        let schema = stream.schema();
        let batches = stream.map(move |batch| {
            let batch = batch?;
            hasher.lock().unwrap_or_else(PoisonError::into_inner).push(&batch)?;
            Ok(batch)
        });
        rows::from_batches(schema, batches)
    }

    /// Hashes rows that are passed to the writer.
    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        self.written.push(batch)
    }

    /// Called when all rows are written, before the output is finished.
    pub(super) fn complete(self) -> Result<Complete> {
        let source = match self.source {
            Some(hasher) => match Arc::try_unwrap(hasher) {
                Ok(hasher) => {
                    let hasher = hasher.into_inner().unwrap_or_else(PoisonError::into_inner);
                    Some(hasher.finish()?.cid()?)
                }
                Err(_) => None,
            },
            None => None,
        };
        let written = self.written.finish()?.cid()?;
        self.found.lock().unwrap_or_else(PoisonError::into_inner).0 = Some(written);
        Ok(Complete { source, written, found: self.found })
    }
}

/// A conversion whose rows are all written.
pub(super) struct Complete {
    source: Option<Cid>,
    written: Cid,
    found: Arc<Mutex<(Option<Cid>, Option<Cid>)>>,
}

impl Complete {
    /// The identities, after the output was finished.
    pub(super) fn verified(self) -> Result<Verified> {
        let read = self.found.lock().unwrap_or_else(PoisonError::into_inner).1;
        let read = read.ok_or_else(|| Error::unsupported("the output was not read back"))?;
        Ok(Verified { source: self.source, written: self.written, read })
    }
}

impl ReadBack {
    fn identity(&self, bytes: Arc<dyn ReadAt>) -> Result<Cid> {
        let info = self.target.format.info();
        let mut options = OpenOptions::default();
        options.from = Some(match self.target.dialect {
            Some(dialect) => format!("{}:{dialect}", info.id),
            None => info.id.to_owned(),
        });
        options.budget = self.options.budget.clone();
        options.control = self.options.control.clone();
        options.options = read_options(&self.options.options, info);
        options.type_text = self.type_text()?;
        let registry = Registry::new(vec![Arc::clone(&self.target.format)]);
        let source = Source::from_read_at(self.name.clone(), bytes);
        let opened = open::open_source(&registry, source, None, &options)?;
        let stream = opened.rows(&View::default())?;
        let stream = self.as_written(stream)?;
        let mut hasher = RowHasher::new(&stream.schema(), &options.identity())?;
        options.identity().overlapped(stream)?.try_for_each(|batch| hasher.push(&batch?))?;
        hasher.finish()?.cid()
    }

    /// The type of the output, if its format does not store one.
    fn type_text(&self) -> Result<Option<String>> {
        let columns = Arc::new(Schema::new(self.schema.fields().clone()));
        let info = self.target.format.info();
        Ok(match (info.id, self.target.dialect) {
            // Matrices and arrays are written as such.
            ("json", _) if matches!(Form::of(&self.schema), Form::Dense | Form::Array) => {
                Some(print_exact_schema(&self.schema))
            }
            _ if matches!(info.type_language, TypeLanguage::Arrow) => Some(print_exact_schema(&columns)),
            ("dynd", Some("raw")) => Some(dynd::Type::of_rows(&self.schema, self.row_count)?.to_string()),
            ("sds", None) => self.options.type_text.clone().filter(|text| Language::is_sds(text)),
            ("ds", Some("rows" | "rows-json")) => Some(types::print_type(&self.schema, Language::Ds)?),
            _ => None,
        })
    }

    /// The rows read back, in the form and the types of the rows written.
    fn as_written(&self, stream: Rows) -> Result<Rows> {
        // A matrix in a table form is hashed as a table.
        let form = |schema: &SchemaRef| match Form::of(schema) {
            Form::Columns | Form::Coo => Form::Table,
            form => form,
        };
        let wanted = form(&self.schema);
        let none = LossKinds::NONE;
        let stream = if form(&stream.schema()) == wanted {
            stream
        } else {
            let plan = reshape::plan(&stream.schema(), wanted)?;
            plan.plan.check(none)?;
            let stream = reshape::reshape(stream, &plan, &self.options.budget, none, &LossRecord::default())?;
            // What is no table has no names of columns.
            if wanted == Form::Table { named(stream, &self.schema) } else { stream }
        };
        self.check_bits(&stream.schema())?;
        if stream.schema().fields() == self.schema.fields() || wanted == Form::Sparse {
            return Ok(stream);
        }
        let adapter = adapt::adapter(&stream.schema(), &self.schema);
        adapter.plan.check(none)?;
        Ok(adapter.adapt(stream, none, LossRecord::default()))
    }
}

impl ReadBack {
    /// Errors if numbers were written as the positions of bits: what is read back are the bits.
    fn check_bits(&self, found: &Schema) -> Result<()> {
        let mut columns = found.fields().iter().zip(self.schema.fields());
        let is_bits = |(found, written): (&FieldRef, &FieldRef)| {
            *found.data_type() == DataType::Boolean && *written.data_type() != DataType::Boolean
        };
        match columns.any(is_bits) {
            true => Err(Error::unsupported("verifying numbers that became the positions of bits")),
            false => Ok(()),
        }
    }
}

/// Rows under the names of the columns that were written, if there are as many.
fn named(stream: Rows, written: &SchemaRef) -> Rows {
    let found = stream.schema();
    if found.fields().len() != written.fields().len() {
        return stream;
    }
    let fields = found.fields().iter().zip(written.fields());
    let fields = fields.map(|(found, written)| found.as_ref().clone().with_name(written.name()));
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), found.metadata().clone());
    let schema: SchemaRef = Arc::new(schema);
    let own = Arc::clone(&schema);
    let batches = stream.map(move |batch| {
        let batch = batch?;
        rows::batch(Arc::clone(&own), batch.columns().to_vec(), batch.num_rows())
    });
    rows::from_batches(schema, batches)
}

/// The options of the writer that its reader has, too.
fn read_options(given: &OptionMap, info: &FormatInfo) -> OptionMap {
    let written = super::options::of_side(given, Side::Write, info);
    let mut own = OptionMap::default();
    for option in info.options.iter().filter(|option| option.side.includes(Side::Read)) {
        if let Some(value) = written.get(option.key) {
            own.set(option.key, value);
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::job::{Conversion, ConvertOptions, Report, open_source};
    use crate::sink::Output;

    const ROWS: &[u8] = b"i,f,t\n1,0.5,x\n2,,y\n-3,-0.0,\n";

    fn verified(text: &[u8], to: &str, sink: Sink, change: impl Fn(&mut ConvertOptions)) -> Result<Report> {
        let registry = Registry::default();
        let source = Source::from_bytes("x.csv", text.to_vec());
        let opened = open_source(&registry, source, None, &OpenOptions::default())?;
        let mut options = ConvertOptions::default();
        options.verify = true;
        change(&mut options);
        Conversion::plan_opened(opened, open::target(&registry, to)?, None, &options)?.run_into(sink)
    }

    #[test]
    fn what_every_format_writes_is_verified() {
        let formats = [
            "arrow",
            "arrow-stream",
            "parquet",
            "csv",
            "jsonl",
            "ds",
            "ds:json",
            "dynd",
            "dynd:raw",
            "dynd:cbor",
            "bsondf",
        ];
        for to in formats {
            let (sink, memory) = Sink::memory();
            let report = verified(ROWS, to, sink, |_| {}).unwrap_or_else(|error| panic!("{to}: {error}"));
            let found = report.verified.unwrap();
            assert_eq!(found.written, found.read, "{to}");
            assert_eq!(found.source, Some(found.written), "{to}");
            assert!(!memory.take().is_empty());
        }
        let matrix = b"%%MatrixMarket matrix coordinate real general\n3 4 2\n1 1 1.5\n3 2 -2\n";
        for to in ["npy", "npz", "mtx", "dbdf", "dbdf:daphne", "arrow", "parquet", "csv"] {
            let lossy = |options: &mut ConvertOptions| options.allow_lossy = LossKinds::ALL;
            let report = verified(matrix, to, Sink::memory().0, lossy);
            let found = report.unwrap_or_else(|error| panic!("{to}: {error}")).verified.unwrap();
            assert_eq!(found.written, found.read, "{to}");
        }
    }

    #[test]
    fn a_column_is_verified_where_the_target_has_no_names() {
        let column = b"height\n1\n2\n300\n";
        for to in ["sds:int", "sds:vec", "sds:wm", "sds:sparse"] {
            let report = verified(column, to, Sink::memory().0, |_| {});
            let found = report.unwrap_or_else(|error| panic!("{to}: {error}")).verified.unwrap();
            assert_eq!(found.written, found.read, "{to}");
        }
        // Numbers are the positions of bits, which are read back as bits.
        let error = verified(column, "sds:bit", Sink::memory().0, |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn options_of_the_output_are_those_of_reading_it_back() {
        let set = |options: &mut ConvertOptions| options.open.options.set("out.delimiter", ";");
        let report = verified(ROWS, "csv", Sink::memory().0, set).unwrap();
        assert!(report.verified.is_some());
    }

    #[test]
    fn files_and_their_side_files_are_read_before_they_have_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.dbdf");
        let sink = Sink::create(&path, false).unwrap();
        let numbers = b"height,weight\n1,2.5\n3,4.5\n";
        verified(numbers, "dbdf:daphne", sink, |_| {}).unwrap();
        assert!(path.exists() && path.with_extension("dbdf.meta").exists());
        let path = folder.path().join("x.csv.gz");
        verified(
            ROWS,
            "csv",
            Sink::create(&path, false).unwrap().packed(crate::source::Packing::Gzip),
            |_| {},
        )
        .unwrap();
        assert!(path.exists());
    }

    #[test]
    fn a_pipe_cannot_be_verified() {
        let error = verified(ROWS, "csv", Sink::pipe(io::sink()), |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }

    /// An output that changes a byte.
    struct Broken {
        bytes: Vec<u8>,
        committed: Arc<Mutex<bool>>,
    }

    impl Output for Broken {
        fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.bytes.extend_from_slice(bytes);
            Ok(())
        }

        fn can_patch(&self) -> bool {
            false
        }

        fn patch(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn sibling(&mut self, _: &str) -> io::Result<Option<Box<dyn Output>>> {
            Ok(None)
        }

        fn reread(&mut self) -> io::Result<Option<Arc<dyn ReadAt>>> {
            let at = self.bytes.iter().rposition(|byte| *byte == b'3').unwrap();
            self.bytes[at] = b'4';
            Ok(Some(Arc::new(crate::source::MemoryBytes(self.bytes.clone().into()))))
        }

        fn commit(self: Box<Self>) -> io::Result<()> {
            *self.committed.lock().unwrap() = true;
            Ok(())
        }
    }

    #[test]
    fn other_data_is_refused_and_never_committed() {
        let committed = Arc::new(Mutex::new(false));
        let output = Broken { bytes: Vec::new(), committed: Arc::clone(&committed) };
        let error = verified(ROWS, "csv", Sink::from_output(Box::new(output)), |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lossy);
        assert!(error.message().contains("reads back as other data"), "{error}");
        assert!(!*committed.lock().unwrap());
    }
}
