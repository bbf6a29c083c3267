//! Documents that another program wrote, with their Arrow twins.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_select::concat::concat_batches;

use super::*;
use crate::formats::Confidence;

/// Documents that say the same as we do in other bytes, and why.
const OTHER_BYTES: [(&str, &str); 5] = [
    ("empty_rows_cpp_style", "empty buffers of 4 bytes"),
    ("garbage_under_null", "a value under a missing one"),
    ("garbage_under_null_diff", "a value under a missing one"),
    ("list_null_with_values", "items under a missing list"),
    ("utf8_null_with_bytes", "bytes under a missing string"),
];

fn twin(name: &str) -> RecordBatch {
    let file = std::fs::File::open(testdata().join(format!("{name}.arrow"))).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().unwrap();
    concat_batches(&schema, &batches).unwrap()
}

#[test]
fn documents_equal_their_twins() {
    let mut count = 0;
    for name in names("", "arrow") {
        let (found, expected) = (read(&load(&format!("{name}.bson"))).unwrap(), twin(&name));
        assert_eq!(found.num_rows(), expected.num_rows(), "{name}");
        assert_eq!(found.schema().fields(), expected.schema().fields(), "{name}");
        for (found, expected) in found.schema().fields().iter().zip(expected.schema().fields()) {
            assert_eq!(found.dict_is_ordered(), expected.dict_is_ordered(), "{name}, {}", found.name());
        }
        assert_eq!(found.columns(), expected.columns(), "{name}");
        count += 1;
    }
    assert_eq!(count, 28);
}

#[test]
fn documents_are_written_to_the_byte() {
    for name in names("", "arrow") {
        let bytes = load(&format!("{name}.bson"));
        let [from_twin, from_us] = [twin(&name), read(&bytes).unwrap()].map(|batch| write(&batch));
        assert_eq!(from_twin, from_us, "{name}: Arrow and our own rows give the same document");
        match OTHER_BYTES.iter().find(|(other, _)| *other == name) {
            None => assert_eq!(from_us, bytes, "{name}"),
            Some((_, why)) => assert_ne!(from_us, bytes, "{name}: {why}"),
        }
    }
    let batch = twin("empty_rows_cpp_style");
    let short = write_batches(batch.schema(), &[batch], &write_options(&[("empty", "4")])).unwrap();
    assert_eq!(short, load("empty_rows_cpp_style.bson"));
}

/// Batches are an accident of the way here: a document does not show them.
#[test]
fn documents_are_the_same_however_the_rows_arrive() {
    for name in names("", "arrow") {
        let whole = twin(&name);
        for size in [1, 7] {
            let starts = (0..whole.num_rows()).step_by(size);
            let slices: Vec<RecordBatch> =
                starts.map(|start| whole.slice(start, size.min(whole.num_rows() - start))).take(50).collect();
            let rows = slices.iter().map(RecordBatch::num_rows).sum();
            let sliced = write_batches(whole.schema(), &slices, &WriteOptions::default()).unwrap();
            assert_eq!(sliced, write(&whole.slice(0, rows)), "{name} in batches of {size}");
        }
    }
}

#[test]
fn the_examples_of_the_spec_are_written_to_the_byte() {
    for example in [1, 2, 3, 5, 6] {
        let bytes = load(&format!("seed_example_{example}.bson"));
        assert_eq!(write(&read(&bytes).unwrap()), bytes, "example {example}");
    }
    assert_eq!(load("seed_example_1.bson"), load("toy_seed.bson"));
    let batch = read(&load("seed_example_2.bson")).unwrap();
    let numbers = batch.column(0).as_primitive::<arrow_array::types::Int32Type>();
    assert_eq!(numbers.values(), &[1514294447, 775943886, -1853539531]);
}

/// Its dictionary is random bytes that are called text.
#[test]
fn the_ordered_example_of_the_spec_is_refused_or_read_as_bytes() {
    let bytes = load("seed_example_4.bson");
    assert_eq!(
        read(&bytes).unwrap_err().to_string(),
        "bsondf: at byte 93, columns.c.d.d.d[0]: expected UTF-8 text, found bytes that are none \
         (the option utf8=bytes reads them as binary)"
    );
    let options = read_options(&[("utf8", "bytes")]);
    let document = open_with(&bytes, &options).unwrap();
    assert_eq!(document.summary().notes.len(), 1);
    let batch = read_with(&bytes, &options).unwrap();
    assert_eq!(batch.schema().field(0).dict_is_ordered(), Some(true));
    let column = batch.column(0).as_dictionary::<arrow_array::types::Int32Type>();
    assert_eq!(column.keys().values(), &[9, 1, 7]);
    let dictionary = column.values().as_binary::<i32>();
    let lengths: Vec<usize> = dictionary.iter().map(|value| value.unwrap().len()).collect();
    assert_eq!(lengths, [4, 4, 3, 1, 6, 1, 2, 1, 2, 8]);
    assert_eq!(dictionary.value(0), [0x1f, 0xb2, 0x5c, 0x98]);
    // Read as bytes, it is written as bytes.
    assert_eq!(read(&write(&batch)).unwrap().columns(), batch.columns());
}

/// `utf8=bytes` leaves text alone that is text.
#[test]
fn sound_text_stays_text() {
    let bytes = load("strings.bson");
    let options = read_options(&[("utf8", "bytes")]);
    assert_eq!(read_with(&bytes, &options).unwrap(), read(&bytes).unwrap());
}

#[test]
fn documents_are_detected() {
    let registry = crate::Registry::new(vec![Arc::new(Bsondf)]);
    for name in names("", "bson") {
        let source = Source::from_bytes("no extension", load(&format!("{name}.bson")));
        assert!(registry.detect(&source).is_ok(), "{name}");
        let head = source.head().unwrap();
        let confidence = Bsondf.detect(&crate::formats::Head::new(&source, &head));
        let expected = if name == "no_columns" { Confidence::Likely } else { Confidence::Certain };
        assert_eq!(confidence, expected, "{name}");
    }
    for other in [&b"PAR1"[..], b"a,b\n1,2\n", b"", b"{}", &bson::doc! { "a": 1 }.to_vec().unwrap()] {
        let source = Source::from_bytes("data", other.to_vec());
        let confidence = Bsondf.detect(&crate::formats::Head::new(&source, other));
        assert_eq!(confidence, Confidence::No, "{other:?}");
    }
}

/// The `bson` crate agrees about every document, and writes the fields in an order of its own.
#[test]
fn the_bson_crate_reads_ours_and_we_read_its() {
    fn reordered(document: &bson::Document) -> bson::Document {
        let inner = |value: &bson::Bson| match value {
            bson::Bson::Document(inner) => bson::Bson::Document(reordered(inner)),
            other => other.clone(),
        };
        let is_array = document.contains_key("t") && document.contains_key("m");
        let mut entries: Vec<_> = document.iter().map(|(key, value)| (key.clone(), inner(value))).collect();
        if is_array {
            entries.reverse();
        }
        entries.into_iter().collect()
    }
    for name in names("", "arrow") {
        let batch = twin(&name);
        let document = bson::Document::from_reader(&write(&batch)[..]).unwrap();
        assert_eq!(document.len(), batch.num_columns(), "{name}");
        let other_order = reordered(&document).to_vec().unwrap();
        assert_eq!(read(&other_order).unwrap(), read(&write(&batch)).unwrap(), "{name}");
    }
}

#[test]
fn nulls_of_factors_come_from_both_masks() {
    let factor: ArrayRef = Arc::new(
        vec![Some("a"), None, Some("b"), Some("a")]
            .into_iter()
            .collect::<arrow_array::DictionaryArray<arrow_array::types::Int32Type>>(),
    );
    let mut document = bson::Document::from_reader(&write(&table(vec![("f", factor)]))[..]).unwrap();
    // The outer mask hides the last, the inner one the second; the index under the last is past the dictionary.
    let column = document.get_document_mut("f").unwrap();
    let mask = |bits: u8| bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: vec![1, 0, 0, 0, 0x10, bits],
    };
    column.insert("m", mask(0b1110_0000));
    let index = column.get_document_mut("d").unwrap().get_document_mut("i").unwrap();
    index.insert("m", mask(0b1011_0000));
    let batch = read(&document.to_vec().unwrap()).unwrap();
    let valid: Vec<bool> = (0..4).map(|row| batch.column(0).is_valid(row)).collect();
    assert_eq!(valid, [true, false, true, false]);
}
