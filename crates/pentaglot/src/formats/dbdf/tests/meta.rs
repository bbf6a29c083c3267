//! The `.meta` file beside the data.

use super::super::meta::Meta;
use super::super::meta_text;
use super::super::replace::{Old, old_meta};
use super::*;
use crate::testing::writing::Writing as _;

fn with_meta(file: &[u8], meta: &str) -> Result<Arc<dyn Document>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.dbdf");
    std::fs::write(&path, file).unwrap();
    std::fs::write(folder.path().join("x.dbdf.meta"), meta).unwrap();
    Dbdf.open(Source::open(&path).unwrap(), &ReadOptions::default())
}

fn read(file: &str) -> Vec<u8> {
    std::fs::read(testdata(file)).unwrap()
}

#[test]
fn labels_of_a_daphne_frame_come_from_it() {
    let meta = r#"{"numCols":3,"numRows":2,"schema":[{"label":"id","valueType":"si64"},{"label":"π","valueType":"f64"},{"label":"","valueType":"ui8"}]}"#;
    let document = with_meta(&read("frame_2x3_defaultlabels.dbdf"), meta).unwrap();
    let names: Vec<&str> =
        document.summary().schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["id", "π", "col_2"]);
    assert!(document.summary().notes.is_empty());
    // The old style, with labels and without.
    let document = with_meta(&read("frame_2x3_defaultlabels.dbdf"), "2,3,0,si64,f64,ui8,a,b,c\n").unwrap();
    assert_eq!(document.summary().schema.field(1).name(), "b");
    let document = with_meta(&read("frame_2x3_defaultlabels.dbdf"), "2,3,0,si64,f64,ui8").unwrap();
    assert_eq!(document.summary().schema.field(1).name(), "col_1");
}

#[test]
fn labels_from_it_are_written() {
    let meta = r#"{"numCols":3,"numRows":2,"schema":[{"label":"foo","valueType":"si64"},{"label":"π","valueType":"f64"},{"label":"","valueType":"ui8"}]}"#;
    let file = read("frame_2x3_defaultlabels.dbdf");
    let batch = all(&*with_meta(&file, meta).unwrap()).unwrap();
    for dialect in ["spec", "daphne"] {
        let written = write(&batch, &options(dialect, &[])).unwrap();
        let labels = written.get(21..).unwrap();
        assert_eq!(&labels[..9], b"\x03\0foo\x02\0\xcf\x80", "{dialect}");
    }
    let written = write(&batch, &options("spec", &[])).unwrap();
    let names: Vec<String> =
        open(&written).unwrap().summary().schema.fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names[..2], ["foo", "π"]);
    // Without it the labels are the file's own bytes.
    let batch = all(&*open(&file).unwrap()).unwrap();
    assert_eq!(write(&batch, &options("daphne", &[])).unwrap(), file);
}

#[test]
fn a_disagreement_names_both() {
    let file = read("dense_f64_5x3.dbdf");
    let cases = [
        (
            r#"{"numCols":3,"numRows":6,"valueType":"f64"}"#,
            ".meta.numRows: expected 5 as in the header, found 6",
        ),
        (
            r#"{"numCols":4,"numRows":5,"valueType":"f64"}"#,
            ".meta.numCols: expected 3 as in the header, found 4",
        ),
        (
            r#"{"numCols":3,"numRows":5,"valueType":"f32"}"#,
            ".meta.valueType: expected f64 as in the header, found f32",
        ),
        ("5,3,1,si64", ".meta.valueType: expected f64 as in the header, found si64"),
        (r#"{"numCols":3}"#, ".meta.numRows: expected a whole number, found nothing"),
        ("what?", r#".meta.numRows: expected a JSON object or a comma line, found "what?""#),
    ];
    for (meta, text) in cases {
        let error = with_meta(&file, meta).err().unwrap();
        assert_eq!(error.to_string(), format!("dbdf: {text}"));
        assert_eq!(error.kind(), crate::ErrorKind::Malformed);
    }
    for meta in [
        r#"{"numCols":3,"numRows":5,"valueType":"f64"}"#,
        r#"{"numCols":3,"numNonZeros":-1,"numRows":5,"valueType":"unheard"}"#,
        "5,3,1,f64,nnz=14",
    ] {
        with_meta(&file, meta).unwrap();
    }
    let error = with_meta(
        &read("frame_1x1.dbdf"),
        r#"{"numCols":1,"numRows":1,"schema":[{"label":"a","valueType":"si8"}]}"#,
    )
    .err()
    .unwrap();
    assert_eq!(
        error.to_string(),
        "dbdf: .meta.schema[0].valueType: expected f64 as in the header, found si8"
    );
}

/// The document's own labels and sizes need no `.meta`.
#[test]
fn one_that_disagrees_with_a_file_of_the_document_is_ignored() {
    let batch = all(&*with_meta(
        &read("frame_1x1.dbdf"),
        r#"{"numCols":1,"numRows":1,"schema":[{"label":"own","valueType":"f64"}]}"#,
    )
    .unwrap())
    .unwrap();
    let file = write(&batch, &options("spec", &[])).unwrap();
    let name = |meta: &str| {
        let document = with_meta(&file, meta).unwrap();
        (document.summary().schema.field(0).name().clone(), document.summary().notes.clone())
    };
    let agreeing = r#"{"numCols":1,"numRows":1,"schema":[{"label":"own","valueType":"f64"}]}"#;
    assert_eq!(name(agreeing), ("own".to_owned(), vec![]));
    let cases = [
        (
            r#"{"numCols":1,"numRows":1,"schema":[{"label":"old","valueType":"f64"}]}"#,
            r#".meta.schema[0].label: expected "own" as in the header, found "old""#,
        ),
        (
            r#"{"numCols":1,"numRows":7,"schema":[{"label":"own","valueType":"f64"}]}"#,
            ".meta.numRows: expected 1 as in the header, found 7",
        ),
        ("notes", r#".meta.numRows: expected a JSON object or a comma line, found "notes""#),
        (
            r#"{"numCols":1,"numRows":1,"pentaglotData":{"bytes":1,"crc32First":2,"crc32Last":3},"schema":[{"label":"old","valueType":"f64"}]}"#,
            "it belongs to other data",
        ),
        (r#"{"numCols":1,"numRows":1,"pentaglotData":7,"valueType":"f64"}"#, "it belongs to other data"),
    ];
    for (meta, why) in cases {
        let note = format!("the .meta file beside it is ignored: {why}");
        assert_eq!(name(meta), ("own".to_owned(), vec![note.clone()]));
        let mut findings = Findings::default();
        with_meta(&file, meta).unwrap().validate(&mut findings).unwrap();
        assert!(findings.is_valid());
        let found: Vec<_> =
            findings.list().iter().map(|found| (found.rule.as_str(), &found.message)).collect();
        assert_eq!(found, [("meta-ignored", &note)]);
        // A stamp would make it believed: a write that replaces the data, and fails, must not add one.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.dbdf");
        std::fs::write(&path, &file).unwrap();
        std::fs::write(folder.path().join("x.dbdf.meta"), meta).unwrap();
        let is_stamped = meta.contains("pentaglotData");
        assert_eq!(matches!(old_meta(&path, false).unwrap(), Old::Unusable), !is_stamped, "{meta}");
    }
}

/// A label that is not text is memory of the program that wrote it.
#[test]
fn unreadable_labels_become_names_in_another_dialect() {
    let file = read("frame_2x3_defaultlabels.dbdf");
    let batch = all(&*open(&file).unwrap()).unwrap();
    let written = write(&batch, &options("spec", &[])).unwrap();
    assert_eq!(written.get(21..42).unwrap(), b"\x05\0col_0\x05\0col_1\x05\0col_2");
    let batch = all(&*open(&written).unwrap()).unwrap();
    let again = write(&batch, &options("daphne", &[])).unwrap();
    assert_eq!(again.get(21..42).unwrap(), b"\x05\0col_0\x05\0col_1\x05\0col_2");
    // In its own dialect they stay, in both.
    let mut latin = written.clone();
    latin[23] = 0xe4;
    let batch = all(&*open(&latin).unwrap()).unwrap();
    assert_eq!(batch.schema().field(0).name(), "col_0");
    assert_eq!(write(&batch, &options("spec", &[])).unwrap(), latin);
    assert_eq!(write(&batch, &options("daphne", &[])).unwrap(), again);
}

#[test]
fn it_decides_between_dialects_that_both_fit() {
    // 0 x 3 with code 7: DAPHNE's f64, the document's int32.
    let file = read("dense_f64_0x3.dbdf");
    for (value_type, dialect) in [("f64", "daphne"), ("si32", "spec")] {
        let meta = format!(r#"{{"numCols":3,"numRows":0,"valueType":"{value_type}"}}"#);
        let document = with_meta(&file, &meta).unwrap();
        assert_eq!(document.summary().dialect, Some(dialect));
        assert!(document.summary().notes.is_empty());
    }
}

#[test]
fn daphne_files_get_one() {
    let folder = tempfile::tempdir().unwrap();
    let side = |file: &str, dialect: &str, pairs: &[(&str, &str)]| {
        let batch = all(&*open(&read(file)).unwrap()).unwrap();
        let path = folder.path().join(format!("{}-{dialect}-{}.dbdf", file.len(), pairs.len()));
        let sink = Sink::create(&path, true).unwrap();
        let mut writer = Dbdf.create(sink, batch.schema(), &options(dialect, pairs)).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        // The output can be read with it.
        Dbdf.open(Source::open(&path).unwrap(), &ReadOptions::default()).unwrap();
        let mut name = path.into_os_string();
        name.push(".meta");
        // The text that DAPHNE would write, and a stamp.
        let text = std::fs::read_to_string(name).ok()?;
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(text.contains(r#""pentaglotData":{"bytes":"#), "{text}");
        value.as_object_mut().unwrap().shift_remove("pentaglotData").unwrap();
        Some(value.to_string())
    };
    assert_eq!(
        side("dense_f64_5x3.dbdf", "daphne", &[]).unwrap(),
        r#"{"numCols":3,"numRows":5,"valueType":"f64"}"#
    );
    assert_eq!(
        side("csr_f64_3x3_slack10.dbdf", "daphne", &[]).unwrap(),
        r#"{"numCols":3,"numNonZeros":3,"numRows":3,"valueType":"f64"}"#
    );
    assert_eq!(
        side("frame_2x3_defaultlabels.dbdf", "daphne", &[]).unwrap(),
        r#"{"numCols":3,"numRows":2,"schema":[{"label":"col_0","valueType":"si64"},{"label":"col_1","valueType":"f64"},{"label":"col_2","valueType":"ui8"}]}"#
    );
    assert_eq!(side("dense_f64_5x3.dbdf", "spec", &[]), None);
    assert_eq!(side("dense_f64_5x3.dbdf", "daphne", &[("meta", "false")]), None);
    assert!(side("dense_f64_5x3.dbdf", "spec", &[("meta", "true"), ("narrow", "true")]).is_some());
}

#[test]
fn its_text_is_what_daphne_writes() {
    let meta = Meta::parse(br#"{"valueType":"f64","numRows":10,"numCols":10}"#).unwrap();
    assert_eq!(meta.text(), r#"{"numCols":10,"numRows":10,"valueType":"f64"}"#);
    let document = open(&read("csr_f64_3x3_slack10.dbdf")).unwrap();
    let text = meta_text(document.summary()).unwrap();
    assert_eq!(text, r#"{"numCols":3,"numNonZeros":3,"numRows":3,"valueType":"f64"}"#);
    let document = open(&read("frame_1x1.dbdf")).unwrap();
    let text = meta_text(document.summary()).unwrap();
    assert_eq!(text, r#"{"numCols":1,"numRows":1,"schema":[{"label":"col_0","valueType":"f64"}]}"#);
}
