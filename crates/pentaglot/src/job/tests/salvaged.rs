//! The output of `salvage` is always valid, for any damage.

use std::path::{Path, PathBuf};

use crate::Source;
use crate::error::ErrorKind;
use crate::formats::Findings;
use crate::job::{Conversion, ConvertOptions, OpenOptions, open_source, salvage, target, validate};
use crate::registry::Registry;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// Salvages a file and checks the output. Returns the number of saved rows and whether anything was lost.
fn check(input: &Path, folder: &Path) -> Option<(u64, bool)> {
    let registry = Registry::default();
    let output = folder.join("out.arrow");
    let mut options = ConvertOptions::default();
    options.force = true;
    options.allow_lossy = crate::hub::LossKinds::ALL;
    let _ = std::fs::remove_file(&output);
    let done = salvage(&registry, input.to_str().unwrap(), output.to_str().unwrap(), &options);
    let salvaged = match done {
        Ok(salvaged) => salvaged,
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Io, "{}: {error}", input.display());
            assert!(!output.exists(), "{}", input.display());
            return None;
        }
    };
    assert_eq!(salvaged.report.is_some(), output.exists(), "{}", input.display());
    if let Some(report) = &salvaged.report {
        let mut findings = Findings::new(false);
        validate(&registry, output.to_str().unwrap(), &OpenOptions::default(), &mut findings).unwrap();
        assert!(findings.is_valid(), "{}: {:?}", input.display(), findings.list());
        assert!(report.rows > 0 || !salvaged.is_lossy() || salvaged.rows > 0, "{}", input.display());
    }
    Some((salvaged.rows, salvaged.is_lossy()))
}

#[test]
fn what_is_saved_of_damaged_files_validates() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for format in std::fs::read_dir(testdata()).unwrap() {
        let bad = format.unwrap().path().join("bad");
        for file in std::fs::read_dir(bad).into_iter().flatten() {
            check(&file.unwrap().path(), folder.path());
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} files");
}

#[test]
fn whole_rows_before_a_truncation_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::default();
    let csv = folder.path().join("x.csv");
    let lines: String = (0..3000).map(|row| format!("{row},text {row},{row}.5\n")).collect();
    std::fs::write(&csv, format!("a,b,c\n{lines}")).unwrap();
    for extension in ["ds", "dynd", "npy", "arrow", "arrows", "parquet", "dbdf", "jsonl", "bson"] {
        let whole = folder.path().join(format!("whole.{extension}"));
        let mut options = ConvertOptions::default();
        options.to = (extension == "arrows").then(|| "arrow-stream".to_owned());
        options.allow_lossy = crate::hub::LossKinds::ALL;
        options.batch_rows = 500;
        options.columns = matches!(extension, "npy" | "dbdf").then(|| vec!["c".to_owned()]);
        let inputs = [csv.to_str().unwrap()];
        let conversion =
            crate::job::Conversion::plan(&registry, &inputs, whole.to_str().unwrap(), &options).unwrap();
        conversion.run(whole.to_str().unwrap(), false).unwrap();
        assert_eq!(check(&whole, folder.path()), Some((3000, false)), "{extension}");
        let bytes = std::fs::read(&whole).unwrap();
        let cut = folder.path().join(format!("cut.{extension}"));
        for part in [1, 3, 7, 9] {
            std::fs::write(&cut, &bytes[..bytes.len() * part / 10]).unwrap();
            let found = check(&cut, folder.path());
            // A batch is saved completely or lost; the table has several.
            if matches!(extension, "arrow" | "arrows") && part == 9 {
                assert!(
                    found.is_some_and(|(rows, lossy)| lossy && rows > 0),
                    "{extension} {part}: {found:?}"
                );
            }
            // The columns before the end are complete.
            if extension == "bson" && part >= 7 {
                assert_eq!(found, Some((3000, true)), "{extension} {part}");
            }
            // These store rows one after the other; a dynd count that exceeds the bytes left is an error at once.
            if extension == "ds" || (extension == "dynd" && part >= 7) {
                let (rows, lossy) = found.unwrap();
                assert!(
                    lossy && rows < 3000 && rows + 200 >= 300 * part as u64,
                    "{extension} {part}: {rows}"
                );
            }
        }
    }
}

#[test]
fn intact_batches_after_a_damaged_one_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.arrow");
    let texts: arrow_array::StringArray = (0..3000).map(|row| Some(format!("text {row}"))).collect();
    let batch =
        arrow_array::RecordBatch::try_from_iter([("t", std::sync::Arc::new(texts) as arrow_array::ArrayRef)]);
    let batch = batch.unwrap();
    let mut bytes = Vec::new();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
    (0..6).for_each(|part| writer.write(&batch.slice(500 * part, 500)).unwrap());
    writer.finish().unwrap();
    drop(writer);
    let at = bytes.windows(9).position(|window| window == b"text 1234").unwrap();
    bytes[at] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(check(&path, folder.path()), Some((2500, true)));
}

#[test]
fn intact_columns_beside_a_damaged_one_are_saved() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::default();
    let (csv, path) = (folder.path().join("x.csv"), folder.path().join("x.bson"));
    std::fs::write(&csv, "a,b,c\n".to_owned() + &"1,text,2.5\n".repeat(100)).unwrap();
    let mut options = ConvertOptions::default();
    options.to = Some("bsondf".to_owned());
    let inputs = [csv.to_str().unwrap()];
    let conversion =
        crate::job::Conversion::plan(&registry, &inputs, path.to_str().unwrap(), &options).unwrap();
    conversion.run(path.to_str().unwrap(), false).unwrap();
    let opened = crate::job::open(&registry, path.to_str().unwrap(), &OpenOptions::default()).unwrap();
    let part = opened.document.summary().parts.iter().find(|part| part.path == "columns.b").unwrap().clone();
    let mut bytes = std::fs::read(&path).unwrap();
    let cut = bytes[..(part.offset + part.bytes / 2) as usize].to_vec();
    let column = &mut bytes[part.offset as usize..(part.offset + part.bytes) as usize];
    // The common text of all rows is in the compressed values once; damage to its end makes it invalid UTF-8.
    let at = column.windows(4).position(|window| window == b"text").unwrap();
    column[at] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    let output = folder.path().join("out.csv");
    let options = ConvertOptions::default();
    let done = salvage(&registry, path.to_str().unwrap(), output.to_str().unwrap(), &options).unwrap();
    let lost: Vec<&str> = done.lost_columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((done.rows, lost), (100, vec!["b"]));
    assert!(std::fs::read_to_string(&output).unwrap().starts_with("a,c\n1,2.5\n"));
    // Of a file that ends within a column, the columns before it have all their rows.
    std::fs::write(&path, cut).unwrap();
    let options = ConvertOptions::default().with_force(true);
    let done = salvage(&registry, path.to_str().unwrap(), output.to_str().unwrap(), &options).unwrap();
    let lost: Vec<&str> = done.lost_columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((done.rows, lost, done.lost_rows.len()), (100, vec!["b"], 0));
    assert!(std::fs::read_to_string(output).unwrap().starts_with("a\n1\n"));
}

#[test]
fn a_file_that_a_limit_keeps_closed_is_not_called_damaged() {
    let registry = Registry::default();
    let csv = "a,b\n".to_owned() + &"123456789,2\n".repeat(20_000);
    let mut options = ConvertOptions::default();
    let source = Source::from_bytes("x.csv", csv.into_bytes());
    let opened = open_source(&registry, source, None, &options.open).unwrap();
    let conversion =
        Conversion::plan_opened(opened, target(&registry, "bsondf").unwrap(), None, &options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    conversion.run(&path("x.bsondf"), false).unwrap();
    options.open.budget = crate::Limits { max_alloc: 100_000, ..crate::Limits::default() }.budget();
    let error = salvage(&registry, &path("x.bsondf"), &path("y.bsondf"), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

/// Three chunks of one table, and where each document begins.
fn chunks() -> (Vec<u8>, Vec<usize>) {
    let registry = Registry::default();
    let version = bson::oid::ObjectId::from_bytes([7; 12]);
    let (mut bytes, mut starts, mut first) = (Vec::new(), Vec::new(), 0i64);
    for (number, values) in [&[1, 2][..], &[3, 4, 5], &[6]].into_iter().enumerate() {
        let text = "x\n".to_owned() + &values.iter().map(|value| format!("{value}\n")).collect::<String>();
        let source = Source::from_bytes("x.csv", text.into_bytes());
        let opened = open_source(&registry, source, None, &OpenOptions::default()).unwrap();
        let options = ConvertOptions::default();
        let to = target(&registry, "bsondf").unwrap();
        let (sink, memory) = crate::sink::Sink::memory();
        Conversion::plan_opened(opened, to, None, &options).unwrap().run_into(sink).unwrap();
        let frame = bson::Document::from_reader(&memory.take()[..]).unwrap();
        let rows = values.len() as i64;
        let chunk = bson::doc! {
            "_id": { "v": version, "n": number as i32 }, "first": first, "rows": rows, "df": frame,
        };
        starts.push(bytes.len());
        bytes.extend(chunk.to_vec().unwrap());
        first += rows;
    }
    (bytes, starts)
}

/// What is saved of these bytes as CSV, and the rows that are lost.
fn saved_of(name: &str, bytes: &[u8]) -> (String, Vec<crate::job::LostRows>) {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join(name), folder.path().join("out.csv"));
    std::fs::write(&input, bytes).unwrap();
    let options = ConvertOptions::default();
    let registry = Registry::default();
    let done = salvage(&registry, input.to_str().unwrap(), output.to_str().unwrap(), &options).unwrap();
    for lost in &done.lost_rows {
        assert!(lost.bytes.start <= lost.bytes.end, "{lost:?}");
        assert!(lost.rows.start <= lost.rows.end, "{lost:?}");
    }
    (std::fs::read_to_string(output).unwrap_or_default(), done.lost_rows)
}

#[test]
fn sound_documents_before_and_after_a_damaged_one_are_saved() {
    let (bytes, starts) = chunks();
    assert_eq!(saved_of("x.bson", &bytes).0, "x\n1\n2\n3\n4\n5\n6\n");
    let expected = ["x\n3\n4\n5\n6\n", "x\n1\n2\n6\n", "x\n1\n2\n3\n4\n5\n"];
    let rows = [0..2, 2..5, 5..6];
    for (index, (start, expected)) in starts.iter().zip(expected).enumerate() {
        // A type that there is not.
        let mut damaged = bytes.clone();
        let at = damaged[*start..].windows(5).position(|text| text == b"int64").unwrap();
        damaged[*start + at] = b'j';
        let (text, lost) = saved_of("x.bson", &damaged);
        assert_eq!(text, expected);
        assert_eq!(lost.len(), 1, "{lost:?}");
        assert_eq!(lost[0].rows, rows[index]);
        assert!(lost[0].bytes.start >= *start as u64, "{lost:?}");
        assert!(lost[0].reason.contains(&format!("documents[{index}]")), "{lost:?}");
    }
    // Bytes too many within a document.
    let at = starts[2] + bytes[starts[2]..].windows(5).position(|text| text == b"int64").unwrap();
    let inserted = [&bytes[..at], &[0xff; 5], &bytes[at..]].concat();
    let (text, lost) = saved_of("x.bson", &inserted);
    assert_eq!((text.as_str(), lost[0].rows.start), ("x\n1\n2\n3\n4\n5\n", 5));
    // Bytes that are no document: those after them cannot be found.
    let mut inserted = bytes[..starts[2]].to_vec();
    inserted.extend([1, 2, 3, 4, 5]);
    inserted.extend(&bytes[starts[2]..]);
    let (text, lost) = saved_of("x.bson", &inserted);
    assert_eq!(text, "x\n1\n2\n3\n4\n5\n");
    assert_eq!((lost[0].rows.clone(), lost[0].bytes.start), (5..u64::MAX, starts[2] as u64));
}

#[test]
fn lost_rows_of_a_block_that_is_elsewhere_name_its_bytes() {
    let registry = Registry::default();
    let text = "a,b\n".to_owned() + &(0..30).map(|row| format!("{row},{row}\n")).collect::<String>();
    let source = Source::from_bytes("x.csv", text.into_bytes());
    let opened = open_source(&registry, source, None, &OpenOptions::default()).unwrap();
    let mut options = ConvertOptions::default();
    options.open.options.set("block-rows", "10");
    options.open.options.set("as", "matrix");
    let (sink, memory) = crate::sink::Sink::memory();
    let to = target(&registry, "dbdf:spec").unwrap();
    Conversion::plan_opened(opened, to, None, &options).unwrap().run_into(sink).unwrap();
    let mut bytes = memory.take();
    let opened =
        open_source(&registry, Source::from_bytes("x.dbdf", bytes.clone()), None, &OpenOptions::default())
            .unwrap();
    let part = opened.document.summary().parts.iter().find(|part| part.path == "block[1]").unwrap().clone();
    bytes[part.offset as usize + 5] = 0x64;
    let (text, lost) = saved_of("x.dbdf", &bytes);
    assert!(text.lines().count() > 10, "{text}");
    assert_eq!((lost[0].rows.clone(), lost[0].bytes.start), (10..30, part.offset));
}

#[test]
fn types_of_saved_rows_are_guessed_from_them() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..9).map(|row| format!("{row},{row}.5\n")).collect();
    let lines: String = (0..9).map(|row| format!("{{\"a\":{row},\"b\":{row}.5}}\n")).collect();
    for (name, text) in [
        ("x.csv", format!("a,b\n{rows}zz\n1,2\n")),
        ("x.jsonl", format!("{lines}{{\"a\":\"x\",\"b\":\"y\"\n{{\"a\":1,\"b\":2}}\n")),
    ] {
        let (input, output) = (folder.path().join(name), folder.path().join("out.arrow"));
        std::fs::write(&input, text).unwrap();
        let options = ConvertOptions::default().with_force(true);
        let registry = Registry::default();
        let done = salvage(&registry, input.to_str().unwrap(), output.to_str().unwrap(), &options).unwrap();
        assert_eq!((done.rows, done.is_lossy()), (9, true), "{name}");
        let opened = crate::job::open(&registry, output.to_str().unwrap(), &OpenOptions::default()).unwrap();
        let schema = crate::hub::type_text::print_schema(&opened.document.summary().schema);
        assert_eq!(schema, "struct{a: ?int64, b: ?float64}", "{name}");
    }
}
