//! Files as databases have them: other fields, frames under fields, several documents, chunks.

use arrow_array::{Array, Float64Array, Int32Array, Int64Array, StringArray, TimestampNanosecondArray};
use bson::oid::ObjectId;
use bson::{Bson, doc};

use super::*;
use crate::ErrorKind;
use crate::formats::bsondf::{BsonColumn, Type, write_document};
use crate::testing::asked::Asked;

/// A frame with the column `x`.
fn frame(values: &[i64]) -> bson::Document {
    let column = BsonColumn::new("x", Type::Int64, Arc::new(Int64Array::from(values.to_vec()))).unwrap();
    bson::Document::from_reader(&write_document(&[column], &WriteOptions::default()).unwrap()[..]).unwrap()
}

fn bytes(documents: &[bson::Document]) -> Vec<u8> {
    documents.iter().flat_map(|document| document.to_vec().unwrap()).collect()
}

fn x_of(batch: &RecordBatch) -> Vec<i64> {
    use arrow_array::cast::AsArray;
    batch.column(0).as_primitive::<arrow_array::types::Int64Type>().values().to_vec()
}

fn member(name: &str) -> ReadOptions {
    ReadOptions::default().with_member(name)
}

fn chunk(version: ObjectId, number: i32, first: i64, values: &[i64]) -> bson::Document {
    let rows = values.len() as i64;
    doc! { "_id": { "v": version, "n": number }, "k": "AAPL", "first": first, "rows": rows, "min": Bson::Null, "max": Bson::Null, "df": frame(values) }
}

#[test]
fn fields_that_are_not_columns_are_metadata() {
    let mut document =
        doc! { "_id": ObjectId::from_bytes([7; 12]), "sy": "AAPL", "range": { "s": 1, "e": 2i64 } };
    document.extend(frame(&[1, 2, 3]));
    document.insert("note", Bson::Null);
    let bytes = document.to_vec().unwrap();
    let opened = open_with(&bytes, &ReadOptions::default()).unwrap();
    let summary = opened.summary();
    assert_eq!(summary.rows, Some(3));
    let expected = [
        ("_id", r#"{"$oid":"070707070707070707070707"}"#),
        ("sy", "AAPL"),
        ("range", r#"{"s":1,"e":2}"#),
        ("note", "null"),
    ];
    let expected: Vec<_> = expected.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    assert_eq!(summary.metadata, expected);
    assert_eq!(summary.schema.metadata()["sy"], "AAPL");
    assert_eq!(
        summary.notes,
        [r#"fields that are not columns are read as metadata: "_id", "sy", "range", "note""#]
    );
    assert_eq!(x_of(&read(&bytes).unwrap()), [1, 2, 3]);
    let error = read_with(&bytes, &read_options(&[("fields", "strict")])).unwrap_err();
    assert_eq!(error.to_string(), "bsondf: _id: expected columns only, found another field");
    assert!(
        read_with(
            &write(&read(&frame(&[1]).to_vec().unwrap()).unwrap()),
            &read_options(&[("fields", "strict")])
        )
        .is_ok()
    );
}

#[test]
fn a_frame_may_be_a_field() {
    let one = doc! { "_id": 5, "df": frame(&[4, 5]) }.to_vec().unwrap();
    assert_eq!(x_of(&read(&one).unwrap()), [4, 5]);
    assert_eq!(x_of(&read_with(&one, &member("df")).unwrap()), [4, 5]);
    let error = read_with(&one, &member("other")).unwrap_err();
    assert_eq!(error.to_string(), "bsondf: no data frame is under \"other\" (there is df)");
    let two = doc! { "a": frame(&[1]), "b": frame(&[2]) }.to_vec().unwrap();
    let opened = open_with(&two, &ReadOptions::default()).unwrap();
    assert_eq!(opened.summary().members, ["a", "b"]);
    assert!(opened.summary().is_container());
    assert_eq!(x_of(&read_with(&two, &member("b")).unwrap()), [2]);
    let none = doc! { "_id": 1, "name": "x", "d": 5 }.to_vec().unwrap();
    let error = read(&none).unwrap_err();
    assert_eq!((error.kind(), error.rule_name()), (ErrorKind::Malformed, "not-a-frame"));
    // Beside columns a frame is a member, and noted.
    let mut both = frame(&[6]);
    both.insert("inner", frame(&[7]));
    let both = both.to_vec().unwrap();
    let opened = open_with(&both, &ReadOptions::default()).unwrap();
    assert_eq!((opened.summary().rows, &opened.summary().members[..]), (Some(1), &["inner".to_owned()][..]));
    assert_eq!(opened.summary().notes, [r#"data frames under fields are read as members: "inner""#]);
    assert_eq!(x_of(&read_with(&both, &member("inner")).unwrap()), [7]);
    // Columns may be called as the fields of a column are.
    let names = ["d", "m", "t"]
        .map(|name| BsonColumn::new(name, Type::Int64, Arc::new(Int64Array::from(vec![1]))).unwrap());
    let inner =
        bson::Document::from_reader(&write_document(&names, &WriteOptions::default()).unwrap()[..]).unwrap();
    assert_eq!(read(&doc! { "df": inner }.to_vec().unwrap()).unwrap().num_columns(), 3);
}

#[test]
fn several_documents_are_one_table_or_read_one_by_one() {
    let documents: Vec<_> = [&[1, 2][..], &[], &[3]]
        .iter()
        .enumerate()
        .map(|(index, values)| {
            let mut document = doc! { "_id": index as i32 };
            document.extend(frame(values));
            document
        })
        .collect();
    let all = bytes(&documents);
    let opened = open_with(&all, &ReadOptions::default()).unwrap();
    assert_eq!(opened.summary().members, ["0", "1", "2"]);
    assert_eq!(opened.summary().parts.len(), 3);
    assert_eq!(opened.summary().rows, Some(3));
    assert_eq!(x_of(&read(&all).unwrap()), [1, 2, 3]);
    let middle = collect(opened.ask(&Asked { rows: Some(1..3), ..Asked::default() }).unwrap()).unwrap();
    assert_eq!(x_of(&middle), [2, 3]);
    assert_eq!(x_of(&read_with(&all, &member("2")).unwrap()), [3]);
    let error = read_with(&all, &member("3")).unwrap_err();
    assert_eq!(error.to_string(), "bsondf: there is no document 3 (the file has 3 documents, from 0 on)");
    assert!(findings(&all, true).is_empty());
    assert_eq!(
        Bsondf.detect(&crate::formats::Head::new(&Source::from_bytes("x", all.clone()), &all)),
        crate::formats::Confidence::Certain
    );
    // A column that is missing is null, one of another type is refused with its document.
    let mut other = doc! {};
    let y = BsonColumn::new("y", Type::Utf8, Arc::new(StringArray::from(vec!["a"]))).unwrap();
    other.extend(
        bson::Document::from_reader(&write_document(&[y], &WriteOptions::default()).unwrap()[..]).unwrap(),
    );
    let joined = read(&bytes(&[frame(&[1]), other])).unwrap();
    assert_eq!((joined.num_rows(), joined.column(0).null_count(), joined.column(1).null_count()), (2, 1, 1));
    let x = BsonColumn::new("x", Type::Int32, Arc::new(Int32Array::from(vec![1]))).unwrap();
    let narrow =
        bson::Document::from_reader(&write_document(&[x], &WriteOptions::default()).unwrap()[..]).unwrap();
    let error = read(&bytes(&[frame(&[1]), narrow])).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("documents[1].columns.x: expected int64, as in the documents before it, found int32"),
        "{error}"
    );
    // Cut in the second document; garbage behind the last.
    let error = read(&all[..all.len() - 1]).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Truncated, "documents[2]".to_owned()));
    let error = read(&[&all[..], b"\0\0\0\0"].concat()).unwrap_err();
    assert_eq!((error.kind(), error.rule_name()), (ErrorKind::Malformed, "trailing"));
}

#[test]
fn chunks_are_joined_by_number_and_faults_are_named() {
    let version = ObjectId::from_bytes([1; 12]);
    let parts = [chunk(version, 1, 2, &[3, 4]), chunk(version, 0, 0, &[1, 2]), chunk(version, 2, 4, &[5])];
    assert_eq!(x_of(&read(&bytes(&parts)).unwrap()), [1, 2, 3, 4, 5]);
    assert_eq!(open_with(&bytes(&parts), &ReadOptions::default()).unwrap().summary().metadata[0].1, "AAPL");
    assert_eq!(x_of(&read_with(&bytes(&parts), &member("AAPL")).unwrap()).len(), 5);
    // What a chunk says of itself is expected there.
    assert!(read_with(&bytes(&parts), &read_options(&[("fields", "strict")])).is_ok());
    let told = |parts: &[bson::Document]| read(&bytes(parts)).unwrap_err().to_string();
    let missing = told(&[parts[1].clone(), parts[2].clone()]);
    assert!(missing.ends_with("documents[1]: expected chunk 1, found none, and chunk 2 next"), "{missing}");
    let repeated = told(&[parts[1].clone(), parts[0].clone(), parts[0].clone()]);
    assert!(repeated.ends_with("documents[2]: expected chunk 1 once, found it a second time"), "{repeated}");
    let mut wrong = parts[2].clone();
    wrong.insert("rows", 2i64);
    let wrong = told(&[parts[1].clone(), parts[0].clone(), wrong]);
    assert!(wrong.ends_with("documents[2].df: expected 2 rows, as the chunk says, found 1"), "{wrong}");
    let other = told(&[parts[1].clone(), parts[0].clone(), frame(&[9])]);
    assert!(other.ends_with("expected a chunk, as other documents are, found another document"), "{other}");
    // Another version of the same table, and another key.
    let again = ObjectId::from_bytes([2; 12]);
    let versions = bytes(&[parts[1].clone(), chunk(again, 0, 0, &[7])]);
    let error = read(&versions).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("one of 010101010101010101010101, 0202"), "{error}");
    assert_eq!(x_of(&read_with(&versions, &member("020202020202020202020202")).unwrap()), [7]);
    let mut key = chunk(again, 0, 0, &[8]);
    key.insert("k", "MSFT");
    let keys = bytes(&[parts[1].clone(), key]);
    let listed = open_with(&keys, &ReadOptions::default()).unwrap();
    assert_eq!(listed.summary().members, ["0", "1", "AAPL", "MSFT"]);
    assert_eq!(read(&keys).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(x_of(&read_with(&keys, &member("MSFT")).unwrap()), [8]);
}

/// Rows whose columns pack differently well.
fn rows(count: usize) -> RecordBatch {
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let times: TimestampNanosecondArray = (0..count as i64).map(|row| Some(1_000_000 * row)).collect();
    let noise: Float64Array = (0..count).map(|_| Some(next() as f64)).collect();
    let texts: StringArray =
        (0..count).map(|row| (row % 5 != 0).then(|| format!("text {}", row % 17))).collect();
    table(vec![("time", Arc::new(times)), ("noise", Arc::new(noise)), ("text", Arc::new(texts))])
}

#[test]
fn chunks_keep_the_limit_by_their_encoded_size() {
    let batch = rows(20_000);
    for limit in ["3K", "20000", "64K", "1M"] {
        let options = write_options(&[("max-bytes", limit), ("key", "K"), ("order", "time")]);
        let pieces: Vec<RecordBatch> = (0..20).map(|piece| batch.slice(piece * 1000, 1000)).collect();
        let written = write_batches(batch.schema(), &pieces, &options).unwrap();
        assert_eq!(read(&written).unwrap().columns(), batch.columns(), "{limit}");
        let most = match limit {
            "3K" => 3 << 10,
            "64K" => 64 << 10,
            "1M" => 1 << 20,
            _ => 20_000,
        };
        let (mut at, mut count, mut first, mut version) = (0, 0, 0i64, None);
        while at < written.len() {
            let length = u32::from_le_bytes(written[at..at + 4].try_into().unwrap()) as usize;
            assert!(length <= most, "{length} of {most}");
            let document = bson::Document::from_reader(&written[at..at + length]).unwrap();
            assert_eq!(
                document.keys().collect::<Vec<_>>(),
                ["_id", "k", "first", "rows", "min", "max", "df"]
            );
            let id = document.get_document("_id").unwrap();
            assert_eq!(id.get_i32("n").unwrap(), count);
            assert_eq!(
                *version.get_or_insert(id.get_object_id("v").unwrap()),
                id.get_object_id("v").unwrap()
            );
            assert_eq!(document.get_i64("first").unwrap(), first);
            let own = document.get_i64("rows").unwrap();
            assert_eq!(document.get_i64("min").unwrap(), first * 1_000_000);
            assert_eq!(document.get_i64("max").unwrap(), (first + own - 1) * 1_000_000);
            first += own;
            count += 1;
            at += length;
        }
        assert_eq!(first, 20_000);
        // Chunks are well filled: noise does not pack.
        let least = (20_000 * 8) / most as i32;
        assert!((least..4 * least + 4).contains(&count), "{count} chunks of {limit}");
    }
    // A row that is longer than the target has a chunk of its own.
    let options = write_options(&[("max-bytes", "1M"), ("target-bytes", "100")]);
    let written = write_batches(batch.schema(), &[batch.slice(0, 5)], &options).unwrap();
    let opened = open_with(&written, &ReadOptions::default()).unwrap();
    assert_eq!((opened.summary().members.len(), opened.summary().rows), (5, Some(5)));
    let error = write_batches(batch.schema(), &[batch], &write_options(&[("max-bytes", "100")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("for row 0 alone"), "{error}");
}

#[test]
fn what_options_do_not_fit_is_refused() {
    let batch = rows(3);
    let refused = |pairs: &[(&str, &str)]| {
        write_batches(batch.schema(), std::slice::from_ref(&batch), &write_options(pairs))
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&[("max-bytes", "many")]).contains("such as 15M"));
    assert!(refused(&[("max-bytes", "3G")]).contains("up to 2G"));
    assert!(refused(&[("order", "time")]).contains("max-bytes is missing"));
    assert!(refused(&[("max-bytes", "1M"), ("order", "no")]).contains("there is no column \"no\""));
    assert!(refused(&[("json", "relaxed")]).contains("is for bsondf:json"));
}

#[test]
fn a_table_without_rows_is_one_chunk() {
    let batch = rows(0);
    let options = write_options(&[("max-bytes", "15M")]);
    let written = write_batches(batch.schema(), &[], &options).unwrap();
    let back = read(&written).unwrap();
    assert_eq!((back.num_rows(), back.num_columns()), (0, 3));
}

#[test]
fn names_that_mean_more_in_a_database_are_noted() {
    let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let batch = table(vec![
        ("_id", Arc::clone(&one)),
        ("a.b", Arc::clone(&one)),
        ("$c", Arc::clone(&one)),
        ("d", one),
    ]);
    let (sink, _) = Sink::memory();
    let mut writer = Bsondf.create(sink, batch.schema(), &WriteOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    let notes = writer.finish().unwrap().notes;
    let named: Vec<&str> = notes.iter().map(|note| note.split(':').next().unwrap()).collect();
    assert_eq!(named, ["column \"_id\"", "column \"a.b\"", "column \"$c\""]);
}
