//! Whatever is written can be verified, and the identities say what the file holds.

use std::io;

use arrow_array::{ArrayRef, FixedSizeBinaryArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::*;
use crate::hub::{LossKinds, extension};
use crate::job::{Conversion, ConvertOptions, Report, View, open, open_source};
use crate::registry::Registry;
use crate::sink::Output;
use crate::source::{ReadAt, Source};
use crate::testing::writing::Writing;

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
    let kinds = ["int", "vec", "wm", "sparse", "bit", "raw", "rl"].map(|kind| format!("sds:{kind}"));
    for to in &kinds {
        let report = verified(column, to, Sink::memory().0, |_| {});
        let found = report.unwrap_or_else(|error| panic!("{to}: {error}")).verified.unwrap();
        assert_eq!(found.written, found.read, "{to}");
    }
}

/// Found by a fuzzer: the bytes of a short text are also those of other structures.
#[test]
fn a_short_text_is_read_back_as_the_structure_that_was_written() {
    assert!(verified(b"t\n:", "sds", Sink::memory().0, |_| {}).is_ok());
    // And a name with semicolons is one column.
    assert!(verified(b"\";cJ;k[[\"\n", "csv", Sink::memory().0, |_| {}).is_ok());
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
    verified(ROWS, "csv", Sink::create(&path, false).unwrap().packed(crate::source::Packing::Gzip), |_| {})
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

#[test]
fn bits_positions_runs_and_bytes_are_compared_as_they_were_written() {
    let bits = b"b\nfalse\ntrue\ntrue\nfalse\ntrue\nfalse\n";
    let runs = b"start,length\n0,3\n5,1\n7,100000\n";
    let bytes = b"a\n104\n105\n";
    let cases: [(&[u8], &[&str]); 3] = [
        (bits, &["sds:bit", "sds:raw", "sds:sparse", "sds:rl"]),
        (runs, &["sds:bit", "sds:raw", "sds:sparse", "sds:rl"]),
        (bytes, &["sds:bytes", "sds:string"]),
    ];
    for (text, kinds) in cases {
        for to in kinds {
            let report = verified(text, to, Sink::memory().0, |_| {});
            let found = report.unwrap_or_else(|error| panic!("{to}: {error}")).verified.unwrap();
            assert_eq!(found.source, Some(found.written), "{to}");
        }
    }
}

#[test]
fn the_type_of_a_sparse_matrix_may_be_widened() {
    let matrix = b"%%MatrixMarket matrix coordinate integer general\n3 4 2\n1 1 7\n3 2 -2\n";
    for value in ["int8", "int32", "float32"] {
        let (sink, memory) = Sink::memory();
        let narrow = |options: &mut ConvertOptions| {
            options.as_type = Some(format!("3 * 4 * {value}"));
            options.open.options.set("as", "sparse");
        };
        verified(matrix, "npz", sink, narrow).unwrap_or_else(|error| panic!("{value}: {error}"));
        let report = verified(&memory.take(), "mtx", Sink::memory().0, |_| {});
        report.unwrap_or_else(|error| panic!("{value}: {error}"));
    }
}

#[test]
fn members_of_columns_and_matrices_in_documents_are_verified() {
    let columns = b"a,b\n1,x\n2,y\n";
    let found = verified(columns, "npz", Sink::memory().0, |_| {}).unwrap().verified.unwrap();
    assert_eq!(found.source, Some(found.written));
    let matrix = b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n";
    for to in ["bsondf", "bsondf:json", "ds", "jsonl"] {
        let report = verified(matrix, to, Sink::memory().0, |_| {});
        report.unwrap_or_else(|error| panic!("{to}: {error}"));
    }
}

#[test]
fn a_dialect_that_the_name_decides_is_that_of_reading_back() {
    let registry = Registry::default();
    for (name, id, dialect) in
        [("x.bson.json", "bsondf", "json"), ("x.ds.json", "ds", "json"), ("x.cbor", "dynd", "cbor")]
    {
        let source = Source::from_bytes("x.csv", ROWS.to_vec());
        let opened = open_source(&registry, source, None, &OpenOptions::default()).unwrap();
        let mut options = ConvertOptions::default();
        options.verify = true;
        let target = open::target(&registry, id).unwrap();
        let conversion = Conversion::plan_opened(opened, target, Some(name), &options).unwrap();
        assert_eq!(conversion.target().dialect, Some(dialect));
        conversion.run_into(Sink::memory().0).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// An Arrow file of universally unique identifiers, an extension type of another program.
fn identifiers(registry: &Registry) -> Vec<u8> {
    let field = Field::new("id", DataType::FixedSizeBinary(16), false);
    let schema = Arc::new(Schema::new(vec![extension::with(field, "arrow.uuid", None)]));
    let values = FixedSizeBinaryArray::try_from_iter([[1; 16], [2; 16]].iter()).unwrap();
    let batch = RecordBatch::try_new(schema, vec![Arc::new(values) as ArrayRef]).unwrap();
    let (sink, memory) = Sink::memory();
    let mut writer =
        registry.get("arrow").unwrap().create(sink, batch.schema(), &Default::default()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    memory.take()
}

#[test]
fn an_extension_type_that_is_not_kept_is_said_and_not_part_of_what_was_written() {
    let registry = Registry::default();
    let bytes = identifiers(&registry);
    for to in ["dynd", "bsondf", "npy", "npz", "csv", "jsonl", "arrow", "parquet"] {
        let opened = |bytes: Vec<u8>, from: &str| {
            let mut options = OpenOptions::default();
            options.from = Some(from.to_owned());
            open_source(&registry, Source::from_bytes("x", bytes), None, &options).unwrap()
        };
        let mut options = ConvertOptions::default();
        options.verify = true;
        let target = open::target(&registry, to).unwrap();
        let keeps = target.format.keeps_extensions();
        let conversion =
            Conversion::plan_opened(opened(bytes.clone(), "arrow"), target, None, &options).unwrap();
        let is_said = conversion.plan.to_string().contains("the extension type arrow.uuid is not kept");
        assert_eq!(is_said, !keeps, "{to}: {}", conversion.plan);
        let (sink, memory) = Sink::memory();
        let found =
            conversion.run_into(sink).unwrap_or_else(|error| panic!("{to}: {error}")).verified.unwrap();
        assert_eq!(found.source == Some(found.written), keeps, "{to}");
        // What the receipt says is what the file says of itself, where it has types and names.
        if ["dynd", "bsondf", "arrow", "parquet"].contains(&to) {
            let rows = opened(memory.take(), to).rows(&View::default()).unwrap();
            let own = crate::identity::of_rows(rows, &Default::default()).unwrap();
            assert_eq!(own.cid().unwrap(), found.read, "{to}");
        }
    }
}
