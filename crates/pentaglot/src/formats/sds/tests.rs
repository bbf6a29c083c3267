use crate::testing::asked::Asked;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::containers::tag;
use super::layout::{self, Object};
use super::{Kind, Mapped, Query, Sds, answer, build_index, skeleton};
use crate::error::{ErrorKind, Result};
use crate::formats::{Confidence, Document, Findings, Format, Head, ReadOptions, WriteOptions};
use crate::limits::Budget;
use crate::map::InPlace;
use crate::sink::Sink;
use crate::source::Source;
use crate::testing::writing::Writing as _;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The committed files, and all of them where they are at hand.
fn vectors() -> Vec<(PathBuf, Value)> {
    let mut all = Vec::new();
    for folder in [root().join("testdata/sds"), root().join("../shared/vectors/sds")] {
        let Ok(text) = fs::read_to_string(folder.join("manifest.json")) else { continue };
        let manifest: Value = serde_json::from_str(&text).unwrap();
        for entry in manifest["entries"].as_array().unwrap() {
            all.push((folder.join(entry["file"].as_str().unwrap()), entry.clone()));
        }
    }
    assert!(all.len() > 50);
    all
}

fn kind_of(entry: &Value) -> Kind {
    let name = match entry["type"].as_str().unwrap() {
        "Vec<u64>" => "vec",
        "Vec<(u64,u64)>" => "pairs",
        "Vec<u8>" => "bytes",
        "String" => "string",
        "RawVector" => "raw",
        "IntVector" => "int",
        "BitVector" => "bit",
        "SparseVector" => "sparse",
        "RLVector" => "rl",
        "WMCore<BitVector>" => "wmcore",
        "WaveletMatrix" => "wm",
        "RLWM" => "rlwm",
        option if option.starts_with("Option") => "option",
        other => panic!("{other}"),
    };
    Kind::parse(name).unwrap()
}

fn open(bytes: Vec<u8>, dialect: Option<Kind>) -> Result<Arc<dyn Document>> {
    let mut options = ReadOptions::default();
    options.dialect = dialect.map(|kind| kind.name().to_owned());
    Sds.open(Source::from_bytes("x", bytes), &options)
}

fn written(document: &dyn Document, dialect: Option<Kind>) -> Vec<u8> {
    let rows = document.all_rows().unwrap();
    let mut options = WriteOptions::default();
    options.dialect = dialect.map(|kind| kind.name().to_owned());
    let schema = rows.schema();
    Sds.steps(&schema, &options).check(crate::hub::LossKinds::NONE).unwrap();
    let (sink, memory) = Sink::memory();
    let mut writer = Sds.create(sink, schema, &options).unwrap();
    rows.for_each(|batch| writer.write(&batch.unwrap()).unwrap());
    writer.finish().unwrap();
    memory.take()
}

#[test]
fn files_of_simple_sds_come_back_byte_for_byte() {
    for (path, entry) in vectors() {
        let bytes = fs::read(&path).unwrap();
        let document = open(bytes.clone(), Some(kind_of(&entry))).unwrap();
        assert_eq!(written(document.as_ref(), None), bytes, "{}", path.display());
        let mut findings = Findings::new(false);
        document.validate(&mut findings).unwrap();
        assert!(findings.is_valid(), "{}: {:?}", path.display(), findings.list());
    }
}

#[test]
fn kinds_are_found_or_named_among_those_that_fit() {
    for (path, entry) in vectors() {
        let document = open(fs::read(&path).unwrap(), None).unwrap();
        let summary = document.summary();
        let kind = kind_of(&entry).name();
        let fits = summary.dialect == Some(kind) || summary.also_fits.iter().any(|other| other == kind);
        assert!(fits, "{}: {:?} {:?}", path.display(), summary.dialect, summary.also_fits);
        let simple = ["vec", "pairs", "bytes", "string", "option", "raw"].contains(&kind);
        assert!(simple || summary.dialect == Some(kind), "{}: {:?}", path.display(), summary.dialect);
    }
}

/// A number of the manifest, which writes large ones as strings.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn answers_are_those_of_simple_sds() {
    let mut asked = 0;
    for (path, entry) in vectors() {
        let kind = kind_of(&entry);
        if !matches!(
            kind,
            Kind::Bit | Kind::Sparse | Kind::RunLength | Kind::Int | Kind::Wavelet | Kind::RunLengthWavelet
        ) {
            continue;
        }
        let object =
            Object::open(&Source::open(&path).unwrap(), Some(kind), Some(InPlace::in_tests())).unwrap();
        let wavelet = matches!(kind, Kind::Wavelet | Kind::RunLengthWavelet);
        let multiset = matches!(&object, Object::Sparse(vector) if vector.is_multiset());
        for (name, cases) in entry["expected"].as_object().unwrap() {
            let operation = match name.as_str() {
                "get" | "access" => "get",
                "select_zero" => "select0",
                "rank" | "select" | "pred" | "succ" | "inverse_select" => name.as_str(),
                _ => continue,
            };
            // simple-sds answers these of multisets wrongly; we say that there is no answer.
            if multiset && ["select0", "inverse_select"].contains(&operation) {
                continue;
            }
            for case in cases.as_array().unwrap() {
                let case = case.as_array().unwrap();
                let (arguments, expected): (Vec<String>, String) = match (wavelet, operation) {
                    (true, "pred" | "succ") => {
                        (vec![text(&case[0]), text(&case[1])], text(case[2].get(1).unwrap_or(&Value::Null)))
                    }
                    (true, "rank" | "select") => (vec![text(&case[0]), text(&case[1])], text(&case[2])),
                    (true, "inverse_select") => {
                        (vec![text(&case[0])], format!("{} {}", text(&case[1]), text(&case[2])))
                    }
                    (false, "inverse_select") if case[1].is_array() => {
                        let bit = u8::from(case[1][1].as_bool().unwrap_or(case[1][1] == 1));
                        (vec![text(&case[0])], format!("{} {bit}", text(&case[1][0])))
                    }
                    (false, "pred" | "succ") => {
                        (vec![text(&case[0])], text(case[1].get(1).unwrap_or(&Value::Null)))
                    }
                    (false, "get") if kind != Kind::Int => {
                        let bit =
                            case[1].as_bool().map_or_else(|| text(&case[1]), |bit| u8::from(bit).to_string());
                        (vec![text(&case[0])], bit)
                    }
                    _ => (vec![text(&case[0])], text(&case[1])),
                };
                let question = format!("{operation} {}", arguments.join(" "));
                let query: Query = question.parse().unwrap();
                let found = answer(&object, &query).unwrap().unwrap_or("null".to_owned());
                assert_eq!(found, expected, "{}: {question}", path.display());
                asked += 1;
            }
        }
    }
    assert!(asked > 1000);
}

#[test]
fn structures_become_one_another() {
    let positions: Vec<u64> = vec![0, 1, 2, 63, 64, 100, 4095];
    let sparse = pentaglot_succinct::SparseVector::from_sorted(5000, &positions).unwrap();
    let start: Vec<u8> = pentaglot_succinct::Structure::to_words(&sparse, pentaglot_succinct::Supports::Full)
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let mut bytes = start.clone();
    let way = [Kind::RunLength, Kind::Sparse, Kind::RunLength, Kind::Bit, Kind::RunLength, Kind::Sparse];
    let mut from = Kind::Sparse;
    for kind in way {
        let document = open(bytes, Some(from)).unwrap();
        bytes = written(document.as_ref(), Some(kind));
        from = kind;
    }
    assert_eq!(bytes, start);
}

#[test]
fn damage_is_refused_or_found_and_never_panics() {
    let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.len() <= 400);
    for (path, entry) in vectors().into_iter().filter(|(path, _)| small(path)).take(60) {
        let bytes = fs::read(&path).unwrap();
        let kind = kind_of(&entry);
        for len in 0..bytes.len() {
            let cut = open(bytes[..len].to_vec(), Some(kind));
            assert!(cut.is_err(), "{} cut at {len}", path.display());
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(document) = open(bytes, Some(kind)) else { continue };
            let mut findings = Findings::new(false);
            document.validate(&mut findings).unwrap();
            let mut request = Asked::default();
            request.rows = Some(0..1000);
            let rows = document.ask(&request);
            assert_eq!(rows.is_ok(), findings.is_valid(), "{} with bit {bit} flipped", path.display());
            rows.into_iter().for_each(|rows| rows.for_each(drop));
        }
    }
}

#[test]
fn lengths_are_rumours() {
    let elements = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let cases: [(Kind, &[u64]); 7] = [
        (Kind::Vec, &[1 << 61, 0]),
        (Kind::Pairs, &[1 << 63, 0]),
        (Kind::Raw, &[u64::MAX, 1 << 58]),
        (Kind::Int, &[1 << 60, 64, 0, 0]),
        (Kind::Int, &[1, 0, 0, 0]),
        (Kind::Int, &[1, 65, 65, 2, 0, 0]),
        (Kind::Wavelet, &[0, 1 << 40, 0]),
    ];
    for (kind, words) in cases {
        let error = open(elements(words), Some(kind)).err().unwrap();
        assert!(matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed), "{kind}: {error}");
    }
    let error = open(vec![0; 13], Some(Kind::Vec)).err().unwrap();
    assert_eq!(error.to_string(), "at byte 8: expected whole elements of 8 bytes, found 13 bytes");
}

#[test]
fn structures_that_grow_past_the_budget_are_a_limit() {
    let vector = pentaglot_succinct::RunLengthVector::from_runs(1 << 62, [(0, 1 << 60)]).unwrap();
    let words = pentaglot_succinct::Structure::to_words(&vector, pentaglot_succinct::Supports::Full);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let document = open(bytes, Some(Kind::RunLength)).unwrap();
    for kind in [Kind::Bit, Kind::Raw, Kind::Sparse] {
        let rows = document.all_rows().unwrap();
        let mut options = WriteOptions::default();
        options.dialect = Some(kind.name().to_owned());
        let (sink, _memory) = Sink::memory();
        let mut writer = Sds.create(sink, rows.schema(), &options).unwrap();
        rows.for_each(|batch| writer.write(&batch.unwrap()).unwrap());
        assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Limit, "{kind}");
    }
}

#[test]
fn padding_and_unused_bits_are_checked() {
    let mut bytes =
        [3u64, u64::from_le_bytes(*b"abc\0\0\0\0x")].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut findings = Findings::new(false);
    open(std::mem::take(&mut bytes), Some(Kind::Bytes)).unwrap().validate(&mut findings).unwrap();
    assert_eq!((findings.list()[0].rule.as_str(), findings.list()[0].offset), ("padding", Some(11)));
    let bytes: Vec<u8> = [3u64, 1, 0xff].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut findings = Findings::new(false);
    open(bytes, Some(Kind::Raw)).unwrap().validate(&mut findings).unwrap();
    assert_eq!(findings.list()[0].rule, "unused-bits");
}

#[test]
fn an_index_is_used_for_its_own_data_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sds");
    let write = |bits: &pentaglot_succinct::BitVector| {
        let words = pentaglot_succinct::Structure::to_words(bits, pentaglot_succinct::Supports::Lean);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        fs::write(&path, bytes).unwrap();
    };
    let open = || {
        let source = Source::open(&path).unwrap();
        Mapped::open(&source, Some(Kind::Bit), Some(InPlace::in_tests()), &Budget::default()).unwrap()
    };
    write(&(0..10_000).map(|i| i % 7 == 0).collect());
    let index = build_index(&open().object, &open().words).unwrap();
    fs::write(folder.path().join("x.sds.idx"), &index).unwrap();
    let mapped = open();
    assert_eq!(mapped.note, None);
    assert_eq!(answer(&mapped.object, &"select 100".parse().unwrap()).unwrap(), Some("700".to_owned()));
    write(&(0..10_000).map(|i| i % 7 == 1).collect());
    let mapped = open();
    assert!(mapped.note.unwrap().contains("data_hash"));
    assert_eq!(answer(&mapped.object, &"select 100".parse().unwrap()).unwrap(), Some("701".to_owned()));
}

#[test]
fn detection_follows_the_lengths_of_headers() {
    for (path, entry) in vectors() {
        let bytes = fs::read(&path).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let source = Source::from_bytes("x", bytes.clone());
        let words = layout::own_words(bytes.into());
        for kind in Kind::ALL.into_iter().filter(|kind| tag(*kind).is_none()) {
            if Object::from_words(kind, words.clone()).is_ok() {
                assert!(skeleton::fits(&source, kind), "{} {entry} as {kind}", path.display());
            }
        }
    }
    let values: Vec<u64> = (0..1 << 18).map(|i: u64| i * i % 251).collect();
    let vector = pentaglot_succinct::WaveletMatrix::from_values(&values).unwrap();
    let words = pentaglot_succinct::Structure::to_words(&vector, pentaglot_succinct::Supports::Full);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let source = Source::from_bytes("x", bytes);
    let head = source.head().unwrap();
    assert_eq!(Sds.detect(&Head::new(&source, &head)), Confidence::Likely);
    assert!(source.bytes_read() < 66 << 10, "{} bytes are read", source.bytes_read());
}

/// The containers of `testdata/make_containers.py`, and those of other programs where they are at hand.
fn containers() -> Vec<(PathBuf, Kind)> {
    let own = root().join("testdata/sds");
    let folders = [fs::read_dir(own), fs::read_dir(root().join("../shared/vectors/sds-real"))];
    let paths = folders.into_iter().flatten().flatten().map(|entry| entry.unwrap().path());
    let kind = |path: &Path| match path.extension()?.to_str()? {
        "gbz" => Some(Kind::Gbz),
        "gbwt" => Some(Kind::Gbwt),
        "gg" => Some(Kind::Gg),
        "meta" => Some(Kind::GbwtMeta),
        "chains" => Some(Kind::Chains),
        _ => None,
    };
    let all: Vec<_> = paths.filter_map(|path| kind(&path).map(|kind| (path, kind))).collect();
    assert!(all.len() >= 5);
    all
}

#[test]
fn pangenome_files_are_walked_to_the_last_byte() {
    for (path, kind) in containers() {
        let document = Sds.open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
        assert_eq!(document.summary().dialect, Some(kind.name()), "{}", path.display());
        let parts = &document.summary().parts;
        let covered: u64 = parts.iter().map(|part| part.bytes).sum();
        assert_eq!(Some(covered), document.summary().bytes, "{}", path.display());
        let mut findings = Findings::new(false);
        document.validate(&mut findings).unwrap();
        assert!(findings.is_valid(), "{}: {:?}", path.display(), findings.list());
        for member in document.summary().members.clone() {
            let mut options = ReadOptions::default();
            options.member = Some(member.clone());
            let document = Sds.open(Source::open(&path).unwrap(), &options).unwrap();
            let rows: usize = document.all_rows().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
            assert_eq!(Some(rows as u64), document.summary().rows, "{}::{member}", path.display());
        }
    }
}

#[test]
fn strings_of_containers_are_those_that_were_written() {
    let read = |file: &str, member: &str| {
        let mut options = ReadOptions::default();
        options.member = Some(member.to_owned());
        let source = Source::open(root().join("testdata/sds").join(file)).unwrap();
        let document = Sds.open(source, &options).unwrap();
        let batch = document.all_rows().unwrap().next().unwrap().unwrap();
        let text = |row: usize| {
            let column = |column| arrow_cast::display::array_value_to_string(column, row).unwrap();
            batch.columns().iter().map(|array| column(array.as_ref())).collect::<Vec<_>>().join("=")
        };
        (0..batch.num_rows()).map(text).collect::<Vec<_>>()
    };
    assert_eq!(read("small.gbz", "graph.sequences"), ["GATTACA", "C", "", "TTG"]);
    assert_eq!(read("small.gbwt", "tags"), ["source=testdata", "reference_samples=anna"]);
    assert_eq!(read("small.gbz", "gbwt.metadata.sample_names"), ["anna", "ben"]);
    assert_eq!(read("small.meta", "path_names"), ["0=0=1=0", "1=0=2=7"]);
}

#[test]
fn versions_that_we_do_not_know_are_unsupported() {
    for (name, text) in [
        ("small.gbz", "at byte 0, gbz.header: not supported: version 99 of a gbz (1 to 2 are read)"),
        ("small.gbwt", "at byte 0, gbwt.header: not supported: version 99 of a gbwt (5 is read)"),
        ("small.gg", "at byte 0, gg.header: not supported: version 99 of a gg (3 to 4 are read)"),
        ("small.meta", "at byte 0, gbwt-meta.header: not supported: version 99 of a gbwt-meta (2 is read)"),
    ] {
        let mut bytes = fs::read(root().join("testdata/sds").join(name)).unwrap();
        bytes[4] = 99;
        let error = open(bytes, None).err().unwrap();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Unsupported, text));
    }
    // A GBZ file with a GBWT index of another version inside.
    let mut bytes = fs::read(root().join("testdata/sds/small.gbz")).unwrap();
    let at = bytes.windows(8).position(|window| window == [0x37, 0x6b, 0x37, 0x6b, 5, 0, 0, 0]).unwrap();
    bytes[at + 4] = 99;
    assert_eq!(open(bytes, None).err().unwrap().kind(), ErrorKind::Unsupported);
}

#[test]
fn rows_can_be_chosen() {
    let (path, _) =
        vectors().into_iter().find(|(path, _)| path.ends_with("int_w7_1000.sds")).unwrap_or_else(|| {
            vectors()
                .into_iter()
                .find(|(_, entry)| entry["type"] == "IntVector" && entry["n"] == 1000)
                .unwrap()
        });
    let document: Arc<dyn Document> = open(fs::read(path).unwrap(), Some(Kind::Int)).unwrap();
    let read = |rows: Option<std::ops::Range<u64>>| {
        let mut request = Asked::default();
        request.rows = rows;
        request.batch_rows = 64;
        let batches: Vec<_> =
            document.ask(&request).unwrap().map(|batch| batch.unwrap().column(0).clone()).collect();
        let arrays: Vec<&dyn arrow_array::Array> = batches.iter().map(|array| array.as_ref()).collect();
        arrow_select::concat::concat(&arrays).unwrap()
    };
    assert_eq!(read(Some(100..300)).as_ref(), read(None).slice(100, 200).as_ref());
}

#[test]
fn statistics_have_the_first_and_the_last_position() {
    use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
    let numbers = |values: &[u64]| -> ArrayRef { Arc::new(UInt64Array::from(values.to_vec())) };
    let opened = |kind: &str, columns: Vec<(&str, ArrayRef)>| {
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let suite = crate::testing::conformance::Suite::new(&Sds).dialect(kind);
        let (_, bytes) = suite.encode(&rows.schema(), &[rows]).unwrap();
        open(bytes, Some(Kind::parse(kind).unwrap())).unwrap()
    };
    let sparse = |values: &[u64]| opened("sparse", vec![("item", numbers(values))]).statistics();
    let statistics = sparse(&[3, 70, 1000, 123_456]);
    assert_eq!((statistics.rows, statistics.columns.len()), (Some(4), 1));
    let column = &statistics.columns[0];
    assert_eq!(column.nulls, Some(0));
    assert_eq!(column.min, Some(numbers(&[3])));
    assert_eq!(column.max, Some(numbers(&[123_456])));
    assert!(sparse(&[]).columns[0].min.is_none());

    let runs = |starts: &[u64], lengths: &[u64]| {
        opened("rl", vec![("start", numbers(starts)), ("length", numbers(lengths))]).statistics()
    };
    let many: Vec<u64> = (0..1000).map(|run| 5 + run * 300).collect();
    let statistics = runs(&many, &vec![299; 1000]);
    assert_eq!(statistics.rows, None);
    let [start, length] = statistics.columns.as_slice() else { panic!("two columns") };
    assert_eq!((&start.min, &start.max), (&Some(numbers(&[5])), &Some(numbers(&[5 + 999 * 300]))));
    assert!(length.min.is_none() && length.max.is_none());
    assert_eq!(runs(&[0], &[9]).columns[0].max, Some(numbers(&[0])));
    assert!(runs(&[], &[]).columns[0].max.is_none());
}
