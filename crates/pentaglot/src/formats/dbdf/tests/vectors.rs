//! Files that DAPHNE's programs wrote: every value to the bit, and the same bytes when they are written again.

use arrow_array::cast::AsArray;
use serde_json::Value;

use super::*;

fn manifest() -> Vec<Value> {
    let text = std::fs::read_to_string(testdata("manifest.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    value["entries"].as_array().unwrap().clone()
}

fn unhex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The bits of the values that the manifest gives.
fn expected(entry: &Value, kind: &str) -> Vec<u8> {
    if let Some(hex) = entry.get("values_le_hex") {
        return hex.as_array().unwrap().iter().flat_map(unhex).collect();
    }
    let number = |value: &Value| -> Vec<u8> {
        match kind {
            "si8" | "ui8" => vec![value.as_i64().unwrap() as u8],
            "si32" | "ui32" => (value.as_i64().unwrap() as u32).to_le_bytes().to_vec(),
            "si64" | "ui64" => value.as_i64().unwrap().to_le_bytes().to_vec(),
            "f32" => (value.as_f64().unwrap() as f32).to_le_bytes().to_vec(),
            _ => value.as_f64().unwrap().to_le_bytes().to_vec(),
        }
    };
    entry["values"].as_array().unwrap().iter().flat_map(number).collect()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn every_value_is_read_to_the_bit() {
    let mut seen = 0;
    for entry in manifest() {
        let file = entry["file"].as_str().unwrap();
        let kind = entry["kind"].as_str().unwrap();
        if kind == "dense_str_raw" || file.contains("FAILS") {
            continue;
        }
        let document = Dbdf.open(Source::open(testdata(file)).unwrap(), &ReadOptions::default()).unwrap();
        let summary = document.summary();
        let legacy = entry["dialect"].as_str().unwrap().starts_with("v0.1");
        assert_eq!(summary.dialect, Some(if legacy { "daphne01" } else { "daphne" }), "{file}");
        if entry["rows"].is_u64() {
            assert_eq!(summary.rows, entry["rows"].as_u64(), "{file}");
        }
        let batch = all(&*document).unwrap();
        let vt = entry["vt"].as_str().unwrap_or_default();
        match kind {
            "dense" => assert_eq!(dense_bits(&batch), expected(&entry, vt), "{file}"),
            "csr" => {
                let (offsets, cols, values) = entries(&batch);
                let ends: Vec<u64> = offsets.iter().map(|end| *end as u64).collect();
                assert_eq!(ends, numbers(&entry["row_offsets"]), "{file}");
                assert_eq!(cols, numbers(&entry["col_idxs"]), "{file}");
                assert_eq!(values, expected(&entry, vt), "{file}");
                assert_eq!(summary.nonzeros, entry["nnz"].as_u64(), "{file}");
            }
            "frame" => {
                let columns = entry["columns"].as_array().unwrap();
                assert_eq!(batch.num_columns(), columns.len());
                assert_eq!(batch.num_rows() as u64, entry["rows"].as_u64().unwrap());
                for (index, (column, expects)) in batch.columns().iter().zip(columns).enumerate() {
                    assert_eq!(bits(column), expected(expects, expects["vt"].as_str().unwrap()), "{file}");
                    assert_eq!(*batch.schema().field(index).name(), format!("col_{index}"));
                }
            }
            "value" => assert_eq!(bits(batch.column(0)), unhex(&entry["value_le_hex"]), "{file}"),
            "dense_fixedstr16" => {
                let values = batch.column(0).as_fixed_size_list().values().as_string::<i32>().clone();
                let texts: Vec<&str> = values.iter().flatten().collect();
                assert_eq!(texts, ["a", "bc", "", "fifteen chars!!"]);
            }
            other => panic!("{file}: {other}"),
        }
        let mut findings = Findings::default();
        document.validate(&mut findings).unwrap();
        assert!(findings.is_valid(), "{file}: {:?}", findings.list());
        seen += 1;
    }
    assert!(seen > 130, "{seen}");
}

#[test]
fn daphne_output_is_byte_identical() {
    for entry in manifest() {
        let file = entry["file"].as_str().unwrap();
        let kind = entry["kind"].as_str().unwrap();
        let legacy = entry["dialect"].as_str().unwrap().starts_with("v0.1");
        // Labels are garbage, but the native type carries them.
        if legacy || kind == "value" || kind == "dense_str_raw" || file.contains("FAILS") {
            continue;
        }
        let bytes = std::fs::read(testdata(file)).unwrap();
        let batch = all(&*open(&bytes).unwrap()).unwrap();
        assert_eq!(write(&batch, &options("daphne", &[])).unwrap(), bytes, "{file}");
    }
}

#[test]
fn the_document_s_dialect_holds_what_daphne_wrote() {
    for entry in manifest() {
        let file = entry["file"].as_str().unwrap();
        let kind = entry["kind"].as_str().unwrap();
        if !matches!(kind, "dense" | "csr" | "frame") || file.contains("FAILS") {
            continue;
        }
        let batch = all(&*open(&std::fs::read(testdata(file)).unwrap()).unwrap()).unwrap();
        for pairs in [
            &[][..],
            &[("narrow", "true")],
            &[("blocks", "sparse"), ("block-rows", "2")],
            &[("blocks", "ultra-sparse"), ("block-cols", "2"), ("narrow", "true")],
        ] {
            let spec = write(&batch, &options("spec", pairs)).unwrap();
            let document = open(&spec).unwrap();
            assert_eq!(document.summary().dialect, Some("spec"), "{file}");
            let again = all(&*document).unwrap();
            match kind {
                "dense" => assert_eq!(dense_bits(&again), dense_bits(&batch), "{file} {pairs:?}"),
                "csr" => assert_eq!(entries(&again), entries(&batch), "{file} {pairs:?}"),
                _ => assert_eq!(again.columns(), batch.columns(), "{file} {pairs:?}"),
            }
            assert!(findings(&spec).is_valid(), "{file} {pairs:?}: {:?}", findings(&spec).list());
        }
    }
}

#[test]
fn values_that_daphne_s_own_tests_assert() {
    let cell = |file: &str, row: usize, col: usize| -> f64 {
        let batch = all(&*open(&std::fs::read(testdata(file)).unwrap()).unwrap()).unwrap();
        let value = match Form::of(&batch.schema()) {
            Form::Dense => batch.column(0).as_fixed_size_list().value(row).slice(col, 1),
            Form::Sparse => {
                let (offsets, cols, _) = entries(&batch);
                let span = offsets[row] as usize..offsets[row + 1] as usize;
                let Some(at) = cols[span.clone()].iter().position(|found| *found == col as u64) else {
                    return 0.0;
                };
                let list = batch.column(0).as_list::<i64>().values().as_struct().column(1).clone();
                list.slice(span.start + at, 1)
            }
            _ => batch.column(col).slice(row, 1),
        };
        let value = arrow_cast::cast(&value, &arrow_schema::DataType::Float64).unwrap();
        value.as_primitive::<arrow_array::types::Float64Type>().value(0)
    };
    for file in ["suite/aig.dbdf", "suite/aig-csr.dbdf", "suite/aig-f.dbdf"] {
        let found = [(0, 0), (1, 0), (0, 1), (3, 2), (2, 1)].map(|(row, col)| cell(file, row, col));
        assert_eq!(found, [1.0, 2.0, 5.0, 12.0, 7.0], "{file}");
    }
    let found = [(0, 0), (2, 0), (3, 4), (7, 4)].map(|(row, col)| cell("suite/cig-f.dbdf", row, col));
    assert_eq!(found, [1.0, 0.0, 9.0, 4.0]);
    assert_eq!(cell("suite/crk-f.dbdf", 29, 36), -926.188986068);
    assert_eq!(cell("suite/crk-f.dbdf", 36, 29), 926.188986068);
}

#[test]
fn a_matrix_without_cells_fits_two_dialects_and_says_so() {
    let bytes = std::fs::read(testdata("dense_f64_0x3.dbdf")).unwrap();
    let document = open(&bytes).unwrap();
    let summary = document.summary();
    assert_eq!(
        (summary.dialect, summary.also_fits.as_slice()),
        (Some("daphne"), &["dbdf:spec".to_owned()][..])
    );
    assert_eq!(summary.notes.len(), 1);
    assert_eq!(open_as(&bytes, "spec").unwrap().summary().dialect, Some("spec"));
}

#[test]
fn the_memory_of_string_objects_is_not_taken_for_text() {
    let bytes = std::fs::read(testdata("dense_str_2x2_RAWMEM.dbdf")).unwrap();
    let error = open(&bytes).err().unwrap();
    assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
}

#[test]
fn content_tells_the_format() {
    for file in
        ["dense_f64_5x3.dbdf", "csr_f64_3x3_slack10.dbdf", "frame_1x1.dbdf", "legacy01_csr_f64_4x5.dbdf"]
    {
        let bytes = std::fs::read(testdata(file)).unwrap();
        let source = Source::from_bytes("nameless", bytes.clone());
        let head = source.head().unwrap();
        let found = Dbdf.detect(&crate::formats::Head::new(&source, &head));
        assert_eq!(found, crate::formats::Confidence::Certain, "{file}");
    }
}

#[test]
fn a_stream_is_read_like_a_file() {
    let bytes = std::fs::read(testdata("csr_si32_4x5_mixed.dbdf")).unwrap();
    let stream = Source::from_reader("pipe", std::io::Cursor::new(bytes.clone()));
    let document = Dbdf.open(stream, &ReadOptions::default()).unwrap();
    assert_eq!(all(&*document).unwrap(), all(&*open(&bytes).unwrap()).unwrap());
}

#[test]
fn zeros_and_chance_lengths_do_not_mislead() {
    // 25 cells of float64 zeros: as the document's int32 they would be followed by blocks of nothing.
    let zeros = Build::matrix(1, 25, 2, 7).block((0, 0), (25, 2), 1).u8(7).bytes(&[0; 400]).0;
    let document = open(&zeros).unwrap();
    assert_eq!((document.summary().dialect, document.summary().also_fits.len()), (Some("daphne"), 0));
    // Five int16 in the document's frame are as long as five f32 in DAPHNE's.
    let frame = Build(vec![1, 3]).u64(5).u64(1).u8(6).u16(1).bytes(b"x");
    let spec = frame.block((0, 0), (5, 1), 1).u8(6).bytes(&[7; 10]).0;
    assert!(open_as(&spec, "daphne").is_ok());
    assert_eq!(open(&spec).unwrap().summary().dialect, Some("spec"));
    let frame = Build(vec![1, 3]).u64(9).u64(1).u8(3).u16(1).bytes(b"x").bytes(&[0; 25]).0;
    assert!(open_as(&frame, "spec").is_ok());
    assert_eq!(open(&frame).unwrap().summary().dialect, Some("daphne"));
}
