use crate::hub::{Verdict, extension};
use crate::sink::Sink;
use crate::testing::asked::Asked;
use arrow_schema::Schema;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields, SchemaRef, UnionFields, UnionMode};
use bytes::Bytes;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::*;
use crate::ErrorKind;
use crate::formats::Findings;
use crate::testing::arbitrary::Random;
use crate::testing::columnar::{self, assert_same, expected};
use crate::testing::conformance::{Suite, collect};
use crate::testing::writing::Writing as _;

#[test]
fn it_passes_the_conformance_suite() {
    let done = Suite::new(&Parquet).keeping_metadata().run(0..250);
    assert!(done > 150, "{done}");
}

/// Every Arrow type, alone and in every kind of nesting: what the plan allows comes back, the rest it refuses.
#[test]
fn every_type_survives_or_is_refused_by_the_plan() {
    let leaves = Random::leaves();
    let mut types = leaves.clone();
    let item = |data_type: &DataType| Arc::new(Field::new_list_field(data_type.clone(), true));
    for leaf in &leaves {
        types.push(DataType::List(item(leaf)));
        types.push(DataType::FixedSizeList(item(leaf), 0));
        types.push(DataType::FixedSizeList(item(leaf), 2));
        types.push(DataType::ListView(item(leaf)));
        types.push(DataType::Struct(Fields::from(vec![Field::new("a", leaf.clone(), true)])));
        let entries = vec![Field::new("k", DataType::Utf8, false), Field::new("v", leaf.clone(), true)];
        let entries = Field::new("entries", DataType::Struct(Fields::from(entries)), false);
        types.push(DataType::Map(Arc::new(entries), false));
        let run_ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
        if !matches!(leaf, DataType::Null) {
            types.push(DataType::Dictionary(Box::new(DataType::Int32), Box::new(leaf.clone())));
            types.push(DataType::RunEndEncoded(run_ends, Arc::new(Field::new("values", leaf.clone(), true))));
        }
    }
    types.push(DataType::Struct(Fields::empty()));
    types.push(DataType::List(item(&DataType::Struct(Fields::empty()))));
    let parts: UnionFields = [(0, item(&DataType::Int32))].into_iter().collect();
    types.push(DataType::Union(parts.clone(), UnionMode::Dense));
    types.push(DataType::List(item(&DataType::Union(parts, UnionMode::Sparse))));
    let suite = Suite::new(&Parquet).keeping_metadata();
    let mut refused = Vec::new();
    for (seed, data_type) in types.into_iter().enumerate() {
        let nullable = seed % 3 > 0 || matches!(data_type, DataType::RunEndEncoded(..));
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("x", data_type.clone(), nullable)]));
        let mut random = Random::new(seed as u64);
        let batches = [random.batch(&schema, 9), random.batch(&schema, 4)];
        if !suite.check(&schema, &batches) {
            refused.push(data_type);
        }
    }
    let union = |data_type: &DataType| match data_type {
        DataType::List(item) => matches!(item.data_type(), DataType::Union(..)),
        DataType::RunEndEncoded(_, values) => *values.data_type() == DataType::FixedSizeBinary(0),
        other => matches!(other, DataType::Union(..)),
    };
    assert!(refused.iter().all(union), "{refused:#?}");
    assert_eq!(refused.len(), 3);
}

#[test]
fn what_pyarrow_writes_reads_equal() {
    for name in ["v2_zstd", "checksums", "gzip", "brotli", "lz4", "plain"] {
        let found = columnar::read(&Parquet, &format!("parquet/{name}.parquet"));
        // The format calls the items of a list `element`, Arrow calls them `item`.
        assert_same(name, &expected(), &found);
        assert_eq!(found.column(9).data_type(), expected().column(9).data_type(), "{name}");
        assert_eq!(found.schema().metadata(), expected().schema().metadata(), "{name}");
    }
    // Version 1 has no unsigned integers nor nanoseconds, but all that this table needs.
    assert_same("v1_snappy", &expected(), &columnar::read(&Parquet, "parquet/v1_snappy.parquet"));
    let plain = columnar::read(&Parquet, "parquet/no_arrow_schema.parquet");
    assert_same("no_arrow_schema", &expected(), &plain);
    let few = expected().project(&[0, 1, 2, 10]).unwrap();
    assert_same("encodings", &few, &columnar::read(&Parquet, "parquet/encodings.parquet"));
    let moments = columnar::read(&Parquet, "parquet/int96.parquet");
    let years = RecordBatch::try_from_iter([("t", expected().column(5).slice(0, 2))]).unwrap();
    assert_same("int96", &years, &moments.slice(0, 2));
    let none = columnar::read(&Parquet, "parquet/no_rows.parquet");
    assert_same("no_rows", &expected().slice(0, 0), &none);
}

#[test]
fn pandas_metadata_survives() {
    let document = columnar::open(&Parquet, "parquet/pandas.parquet");
    let schema = Arc::clone(&document.summary().schema);
    let pandas = schema.metadata()["pandas"].clone();
    assert!(pandas.contains("\"index_columns\": [\"key\"]"), "{pandas}");
    let batch = columnar::read(&Parquet, "parquet/pandas.parquet");
    let (_, bytes) = Suite::new(&Parquet).encode(&schema, &[batch]).unwrap();
    let document = Parquet.open(Source::from_bytes("x", bytes.clone()), &ReadOptions::default()).unwrap();
    assert_eq!(document.summary().schema, schema);
    // Not only inside Arrow's schema: pandas looks for the key itself.
    assert!(String::from_utf8_lossy(&bytes).contains("\"index_columns\": [\"key\"]"));
}

#[test]
fn zero_columns_keep_their_rows() {
    let schema: SchemaRef = Arc::new(Schema::empty());
    let batch = crate::hub::rows::batch(Arc::clone(&schema), Vec::new(), 7).unwrap();
    assert!(Suite::new(&Parquet).keeping_metadata().check(&schema, &[batch.clone(), batch]));
}

#[test]
fn every_compression_is_written_and_read() {
    let batch = expected();
    let schema = batch.schema();
    for text in ["none", "snappy", "gzip", "gzip:9", "brotli", "brotli:4", "lz4", "zstd", "zstd:19"] {
        let suite = Suite::new(&Parquet).keeping_metadata().option("compression", text);
        assert!(suite.check(&schema, std::slice::from_ref(&batch)), "{text}");
    }
    for text in ["lzo", "zstd:0", "zstd:x", "snappy:3", ""] {
        let mut options = WriteOptions::default();
        options.options.set("compression", text);
        assert_eq!(Parquet.steps(&schema, &options).verdict(), Verdict::Impossible, "{text}");
        let error = Parquet.create(Sink::memory().0, Arc::clone(&schema), &options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}

/// With `cdc`, rows that are inserted leave most pages as they were.
#[test]
fn pages_that_end_where_the_content_says_are_shared() {
    let mut random = crate::testing::arbitrary::Random::new(5);
    let column = Float64Array::from_iter_values((0..300_000).map(|_| random.next() as f64));
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("x", DataType::Float64, false)]));
    let batch =
        |values: Float64Array| RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(values)]).unwrap();
    let first = batch(column.clone());
    let mut more: Vec<f64> = column.values().to_vec();
    more.splice(1000..1000, (0..500).map(f64::from));
    let second = batch(Float64Array::from(more));
    let written = |rows: &RecordBatch, cdc: &str| {
        let mut options = WriteOptions::default();
        options.options.set("cdc", cdc);
        let (sink, memory) = Sink::memory();
        let mut writer = Parquet.create(sink, Arc::clone(&schema), &options).unwrap();
        writer.write(rows).unwrap();
        writer.finish().unwrap();
        memory.take()
    };
    // The last part of the data of both files, before their footers.
    let shared = |cdc: &str| {
        let (one, other) = (written(&first, cdc), written(&second, cdc));
        let piece = &one[one.len() / 2..one.len() / 2 + 64];
        memchr::memmem::find(&other, piece).is_some()
    };
    assert!(shared("true"));
    assert!(!shared("false"));
    assert!(Suite::new(&Parquet).keeping_metadata().option("cdc", "true").check(&schema, &[first, second]));
}

fn wide(rows: usize, cols: usize) -> (SchemaRef, RecordBatch) {
    let fields: Vec<Field> =
        (0..cols).map(|index| Field::new(format!("c{index}"), DataType::Float64, false)).collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let column = |index: usize| -> arrow_array::ArrayRef {
        Arc::new(Float64Array::from_iter_values(
            (0..rows).map(|row| f64::from_bits(((row * cols + index) as u64).wrapping_mul(0x9e37_79b9_7f4a))),
        ))
    };
    (Arc::clone(&schema), RecordBatch::try_new(schema, (0..cols).map(column).collect()).unwrap())
}

#[test]
fn columns_and_pages_that_are_not_asked_for_are_not_read() {
    let (schema, batch) = wide(200_000, 4);
    let suite = Suite::new(&Parquet).option("compression", "none");
    let (_, bytes) = suite.encode(&schema, std::slice::from_ref(&batch)).unwrap();
    let source = Source::from_bytes("x", bytes);
    let document = Parquet.open(source.clone(), &ReadOptions::default()).unwrap();
    let before = source.bytes_read();
    assert!(before < 20_000, "the footer only: {before}");
    let column = std::iter::once(2..3).collect();
    let request = Asked { columns: Some(column), rows: Some(150_000..150_010), batch_rows: 0 };
    let found = collect(document.ask(&request).unwrap()).unwrap();
    assert_eq!(found.column(0), &batch.column(2).slice(150_000, 10));
    let read = source.bytes_read() - before;
    assert!(read < 300_000, "one page or two of 1.6 MB: {read}");
}

#[test]
fn row_groups_close_at_64_mebibytes() {
    let (schema, batch) = wide(900_000, 10);
    let suite = Suite::new(&Parquet).option("compression", "none");
    let (_, bytes) = suite.encode(&schema, std::slice::from_ref(&batch)).unwrap();
    let document = Parquet.open(Source::from_bytes("x", bytes), &ReadOptions::default()).unwrap();
    let groups: Vec<u64> = (0..)
        .map(|index| {
            let prefix = format!("row_group[{index}].");
            let parts = document.summary().parts.iter().filter(|part| part.path.starts_with(&prefix));
            parts.map(|part| part.bytes).sum::<u64>()
        })
        .take_while(|bytes| *bytes > 0)
        .collect();
    assert!(groups.len() >= 2, "{groups:?}");
    assert!(groups.iter().all(|bytes| *bytes < 80 << 20), "{groups:?}");
}

#[test]
fn a_dictionary_that_was_full_early_is_not_tried_again() {
    let count = (1 << 20) + 1000;
    let numbers =
        |modulus: i64| Arc::new(Int64Array::from_iter_values((0..count).map(|row| row * 7 % modulus)));
    let inner = |name: &str| Field::new(name, DataType::Int64, false);
    let all = Fields::from(vec![inner("few"), inner("many")]);
    let nested = StructArray::new(all.clone(), vec![numbers(100), numbers(i64::MAX)], None);
    let schema =
        Schema::new(vec![inner("few"), inner("many"), Field::new("both", DataType::Struct(all), false)]);
    let columns: Vec<ArrayRef> = vec![numbers(100), numbers(i64::MAX), Arc::new(nested)];
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let (_, bytes) = Suite::new(&Parquet).encode(&batch.schema(), std::slice::from_ref(&batch)).unwrap();
    let document = Parquet.open(Source::from_bytes("x", bytes.clone()), &ReadOptions::default()).unwrap();
    assert_eq!(collect(document.all_rows().unwrap()).unwrap(), batch);
    let reader = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
    let groups = reader.metadata().row_groups();
    let has_dictionary = |group: &RowGroupMetaData| {
        group.columns().iter().map(|leaf| leaf.dictionary_page_offset().is_some()).collect()
    };
    let found: Vec<Vec<bool>> = groups.iter().map(has_dictionary).collect();
    assert_eq!(found, [[true, true, true, true], [true, false, true, false]]);
}

#[test]
fn errors_say_what_and_where() {
    let whole = std::fs::read(columnar::path("parquet/plain.parquet")).unwrap();
    let error = |bytes: Vec<u8>| {
        let open = Parquet.open(Source::from_bytes("x", bytes), &ReadOptions::default());
        let result = open.and_then(|document| collect(document.all_rows()?).map(drop));
        result.unwrap_err().to_string()
    };
    assert_eq!(
        error(whole[..whole.len() - 1].to_vec()),
        "parquet: at byte 3318: expected the magic PAR1 at the end, found 00 50 41 52"
    );
    assert_eq!(error(b"PAR2".to_vec()), "parquet: at byte 0: expected the magic PAR1, found 50 41 52 32");
    assert_eq!(error(b"PA".to_vec()), "parquet: at byte 0: expected the magic PAR1, found 50 41");
    assert_eq!(error(b"PARExxxxxxxx".to_vec()), "parquet: not supported: an encrypted Parquet footer");
    let mut long = whole.clone();
    let at = whole.len() - 8;
    long[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        error(long),
        "parquet: at byte 3315, footer_length: expected a footer length 1..=3311, found 4294967295"
    );
}

/// A page header may ask for two gibibytes; it gets none.
#[test]
fn a_page_that_claims_too_much_is_refused_before_it_is_unpacked() {
    let (schema, batch) = wide(100, 1);
    let (_, bytes) = Suite::new(&Parquet).encode(&schema, &[batch]).unwrap();
    // The first page begins after the magic: type 0 (15 00), then the unpacked size (15 and a varint).
    assert_eq!(bytes[4..7], [0x15, 0x00, 0x15]);
    let varint = bytes[7..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let mut lying = bytes[..7].to_vec();
    let mut size = (i32::MAX as u64) << 1;
    while size >= 0x80 {
        lying.push(size as u8 | 0x80);
        size >>= 7;
    }
    lying.push(size as u8);
    let shift = lying.len() - 7 - varint;
    lying.extend_from_slice(&bytes[7 + varint..]);
    // The footer's offsets stay; the chunk is a few bytes longer than it says, and the page does not fit it.
    assert!(shift > 0);
    let document = Parquet.open(Source::from_bytes("x", lying), &ReadOptions::default()).unwrap();
    let error = collect(document.all_rows().unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Limit), "{error}");
    assert!(error.to_string().starts_with("parquet: at byte 4, row_group[0].columns[0].c0: "), "{error}");
}

#[test]
fn every_flipped_bit_of_a_checked_page_is_found() {
    let bytes = std::fs::read(columnar::path("parquet/checksums.parquet")).unwrap();
    let document = Parquet.open(Source::from_bytes("x", bytes.clone()), &ReadOptions::default()).unwrap();
    let first = document.summary().parts[0].clone();
    let mut flipped = bytes;
    flipped[(first.offset + first.bytes - 1) as usize] ^= 1;
    let document = Parquet.open(Source::from_bytes("x", flipped), &ReadOptions::default()).unwrap();
    let mut findings = Findings::new(false);
    document.validate(&mut findings).unwrap();
    assert_eq!(findings.list()[0].rule, "crc", "{:#?}", findings.list());
    // A reader gets the same error.
    let error = collect(document.all_rows().unwrap()).unwrap_err();
    assert!(error.kind() == ErrorKind::Malformed && error.to_string().contains("checksum"), "{error}");
}

#[test]
fn every_cut_and_flipped_bits_of_small_files_are_told_or_harmless() {
    let bytes = std::fs::read(columnar::path("parquet/int96.parquet")).unwrap();
    Suite::new(&Parquet).bad_input(&bytes, 1);
    for name in ["v2_zstd", "v1_snappy", "encodings", "pandas"] {
        let bytes = std::fs::read(columnar::path(&format!("parquet/{name}.parquet"))).unwrap();
        Suite::new(&Parquet).bad_input(&bytes, 37);
    }
}

#[test]
fn bad_input_never_panics() {
    for seed in 0..6 {
        let mut random = Random::new(2000 + seed);
        let suite = Suite::new(&Parquet).option("compression", ["none", "zstd", "lz4"][seed as usize % 3]);
        let schema = random.schema_of(|field| {
            let alone = Schema::new(vec![field.clone()]);
            Parquet.steps(&alone, &WriteOptions::default()).verdict() < Verdict::Lossy
        });
        let batch = random.batch(&schema, 5);
        let Some((_, bytes)) = suite.encode(&schema, std::slice::from_ref(&batch)) else { continue };
        suite.bad_input(&bytes, 13);
    }
}

#[test]
fn the_summary_counts_nulls_from_statistics() {
    let document = columnar::open(&Parquet, "parquet/v1_snappy.parquet");
    let summary = document.summary();
    assert_eq!(summary.rows, Some(5));
    let nested = ["l", "o"];
    for (field, count) in expected().schema().fields().iter().zip(&summary.null_counts) {
        let known = (!nested.contains(&field.name().as_str())).then_some(1);
        assert_eq!(*count, known, "{}", field.name());
    }
    assert!(summary.metadata.contains(&("compression".to_owned(), "snappy".to_owned())));
    assert_eq!(expected().column(0).null_count(), 1);
}

fn ordered(texts: Vec<&str>, keys: Vec<Option<i8>>) -> RecordBatch {
    let values = Arc::new(arrow_array::StringArray::from(texts));
    let keys = arrow_array::Int8Array::from(keys);
    let sizes = arrow_array::DictionaryArray::new(keys, values);
    let numbers = Arc::new(arrow_array::Int32Array::from_iter_values(0..sizes.len() as i32));
    let fields = vec![
        Field::new("n", DataType::Int32, false),
        Field::new("size", sizes.data_type().clone(), true).with_dict_is_ordered(true),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![numbers, Arc::new(sizes)]).unwrap()
}

fn levels(array: &arrow_array::ArrayRef) -> Vec<Option<String>> {
    use arrow_array::cast::AsArray;
    let values = array.as_any_dictionary().values();
    values.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn the_levels_of_ordered_dictionaries_are_kept() {
    let batch = ordered(vec!["s", "m", "l", "xl"], vec![Some(2), None, Some(0), Some(2)]);
    let schema = batch.schema();
    let plan = Parquet.steps(&schema, &WriteOptions::default());
    assert_eq!(plan.verdict(), Verdict::Checked);
    let more = ordered(vec!["s", "m", "l", "xl", "xxl"], vec![Some(4)]);
    let (_, bytes) =
        Suite::new(&Parquet).encode(&schema, &[batch.slice(0, 2), batch.slice(2, 2), more]).unwrap();
    let open =
        |bytes: Vec<u8>| Parquet.open(Source::from_bytes("x", bytes), &ReadOptions::default()).unwrap();
    let document = open(bytes);
    assert_eq!(document.summary().schema, schema);
    let found = collect(document.all_rows().unwrap()).unwrap();
    let all = ["s", "m", "l", "xl", "xxl"].map(|text| Some(text.to_owned()));
    assert_eq!(levels(found.column(1)), all);
    assert_eq!(found.slice(0, 4).column(0), batch.column(0));
    let texts = |array: &arrow_array::ArrayRef| arrow_cast::cast(array, &DataType::Utf8).unwrap();
    assert_eq!(&texts(&found.column(1).slice(0, 4)), &texts(batch.column(1)));
    // Of some columns and rows too.
    let columns = Some(std::iter::once(1..2).collect());
    let request = Asked { columns, rows: Some(2..4), batch_rows: 0 };
    let found = collect(document.ask(&request).unwrap()).unwrap();
    assert_eq!(levels(found.column(0)), all);
    assert_eq!(&texts(found.column(0)), &texts(&batch.column(1).slice(2, 2)));
    // And of none.
    let request = Asked { rows: Some(1..1), ..Asked::default() };
    let found = collect(document.ask(&request).unwrap()).unwrap();
    assert_eq!((found.num_rows(), levels(found.column(1))), (0, all.to_vec()));
    // Two orders cannot be one.
    let (sink, _) = Sink::memory();
    let mut writer = Parquet.create(sink, Arc::clone(&schema), &WriteOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    let error = writer.write(&ordered(vec!["m", "s"], vec![Some(0)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy, "{error}");
    // Inside a list there is no place for them.
    let list = Field::new("l", DataType::List(Arc::new(schema.field(1).clone())), true);
    let plan = Parquet.steps(&Schema::new(vec![list]), &WriteOptions::default());
    assert_eq!(plan.verdict(), Verdict::Lossy);
}

#[test]
fn the_levels_of_other_dictionaries_are_kept_if_batches_agree_and_they_are_few() {
    let unordered = |batch: RecordBatch| {
        let schema = batch.schema();
        let field = schema.field(1).clone().with_dict_is_ordered(false);
        let schema = Arc::new(Schema::new(vec![schema.field(0).clone(), field]));
        RecordBatch::try_new(schema, batch.columns().to_vec()).unwrap()
    };
    let written = |batches: &[RecordBatch]| {
        let (plan, bytes) = Suite::new(&Parquet).encode(&batches[0].schema(), batches).unwrap();
        assert_eq!(plan.verdict(), Verdict::Exact);
        let document = Parquet.open(Source::from_bytes("x", bytes), &ReadOptions::default()).unwrap();
        levels(collect(document.all_rows().unwrap()).unwrap().column(1))
    };
    let first = unordered(ordered(vec!["never", "s", "m"], vec![Some(2), Some(1)]));
    let all = ["never", "s", "m"].map(|text| Some(text.to_owned()));
    assert_eq!(written(std::slice::from_ref(&first)), all);
    assert_eq!(written(&[first.slice(0, 0)]), all);
    // Without an order, batches may differ; then the values that occur come back.
    let other = unordered(ordered(vec!["m", "xl"], vec![Some(1)]));
    assert_eq!(written(&[first, other]), ["m", "s", "xl"].map(|text| Some(text.to_owned())));
    // Many levels would make the footer long.
    let texts: Vec<String> = (0..100).map(|number| format!("{number}{}", "x".repeat(4000))).collect();
    let many = unordered(ordered(texts.iter().map(String::as_str).collect(), vec![Some(7)]));
    assert_eq!(written(&[many]).len(), 1);
}

#[test]
fn levels_that_do_not_fit_the_columns_are_passed_over() {
    let batch = ordered(vec!["s", "m", "l"], vec![Some(2), Some(0)]);
    let schema = batch.schema();
    let read = |text: &str| levels::Levels::from_json(text, &schema);
    for text in [
        "",
        "[",
        "{}",
        "[1]",
        r#"[{"column":9,"name":"size","levels":["s"]}]"#,
        r#"[{"column":1,"name":"n","levels":["s"]}]"#,
        r#"[{"column":0,"name":"n","levels":["1"]}]"#,
        r#"[{"column":1,"name":"size","levels":[1]}]"#,
        r#"[{"column":1,"name":"size"}]"#,
    ] {
        assert!(read(text).is_empty(), "{text}");
    }
    // Values that are no levels come after them.
    let found =
        read(r#"[{"column":1,"name":"size","levels":["l",null,"xl"]}]"#).restore(1, batch.column(1)).unwrap();
    assert_eq!(
        levels(&found),
        [Some("l"), None, Some("xl"), Some("s"), Some("m")].map(|text| text.map(str::to_owned))
    );
    let texts = |array: &arrow_array::ArrayRef| arrow_cast::cast(array, &DataType::Utf8).unwrap();
    assert_eq!(&texts(&found), &texts(batch.column(1)));
}

/// Parquet has no seconds and only whole days; what is stored is what other programs take for moments.
#[test]
fn seconds_and_dates_in_milliseconds_are_stored_as_moments() {
    use arrow_array::{ArrayRef, Date64Array, Time32SecondArray, TimestampSecondArray};
    let day = 86_400_000;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("t", Arc::new(TimestampSecondArray::from(vec![Some(-1), None, Some(5)]))),
        ("z", Arc::new(TimestampSecondArray::from(vec![1, 2, 3]).with_timezone("+05:30"))),
        ("h", Arc::new(Time32SecondArray::from(vec![0, 1, 86_399]))),
        ("d", Arc::new(Date64Array::from(vec![Some(-day), Some(0), None]))),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
    let suite = Suite::new(&Parquet).keeping_metadata();
    assert!(suite.check(&batch.schema(), std::slice::from_ref(&batch)));
    let (plan, bytes) = suite.encode(&batch.schema(), &[batch]).unwrap();
    assert!(plan.steps.iter().all(|step| step.verdict == Verdict::Checked), "{plan}");
    // What the file says without the schema that only we know.
    let file = bytes::Bytes::from(bytes);
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let types: Vec<String> =
        reader.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(types, ["Timestamp(ms)", "Timestamp(ms, \"+05:30\")", "Time32(ms)", "Date32"]);

    let refused = |name: &str, column: ArrayRef, text: &str| {
        let batch = RecordBatch::try_from_iter([(name, column)]).unwrap();
        let mut writer = Parquet.create(Sink::memory().0, batch.schema(), &WriteOptions::default()).unwrap();
        writer.write(&batch.slice(0, 1)).unwrap();
        let error = writer.write(&batch.slice(1, 2)).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Lossy, text));
    };
    let list = |values: Vec<i64>| -> ArrayRef {
        let item = Arc::new(Field::new_list_field(DataType::Date64, true));
        let ends = arrow_buffer::OffsetBuffer::from_lengths([1, 1, 1]);
        Arc::new(arrow_array::ListArray::new(item, ends, Arc::new(Date64Array::from(values)), None))
    };
    refused("d", list(vec![0, day, 1]), r#"row 2, column "d": 1 milliseconds are no whole days"#);
    refused(
        "t",
        Arc::new(TimestampSecondArray::from(vec![0, i64::MAX, 1])),
        r#"row 1, column "t": 9223372036854775807 seconds in milliseconds do not fit 64 bits"#,
    );
}

/// Other programs say UUID and JSON without an Arrow schema in the footer.
#[test]
fn uuid_and_json_are_kept_without_an_arrow_schema() {
    use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
    use parquet::basic::LogicalType;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let uuid = extension::with(Field::new("u", DataType::FixedSizeBinary(16), false), "arrow.uuid", None);
    let json = extension::with(Field::new("j", DataType::Utf8, true), "arrow.json", None);
    let schema: SchemaRef = Arc::new(Schema::new(vec![uuid, json]));
    let uuids = arrow_array::FixedSizeBinaryArray::try_from_iter([[7u8; 16]].iter()).unwrap();
    let texts = arrow_array::StringArray::from(vec![Some("{}")]);
    let columns: Vec<ArrayRef> = vec![Arc::new(uuids), Arc::new(texts)];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let descriptor = parquet::arrow::ArrowSchemaConverter::new().convert(&schema).unwrap();
    let descriptor = super::schema::with_logical_types(descriptor, &schema).unwrap();
    let options = ArrowWriterOptions::new().with_parquet_schema(descriptor).with_skip_arrow_metadata(true);
    let mut foreign = Vec::new();
    let mut writer = ArrowWriter::try_new_with_options(&mut foreign, Arc::clone(&schema), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let logical = |bytes: Vec<u8>| -> Vec<Option<LogicalType>> {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let columns = reader.metadata().file_metadata().schema_descr().root_schema().get_fields().to_vec();
        columns.iter().map(|column| column.get_basic_info().logical_type_ref().cloned()).collect()
    };
    let expected = [Some(LogicalType::Uuid), Some(LogicalType::Json)];
    assert_eq!(logical(foreign.clone()), expected);
    let document = Parquet.open(Source::from_bytes("x.parquet", foreign), &Default::default()).unwrap();
    let rows = document.rows(&crate::hub::Selection::new(&document.summary().schema, None)).unwrap();
    let found = rows.schema();
    let names: Vec<_> = found.fields().iter().map(|field| extension::name(field)).collect();
    assert_eq!(names, [Some("arrow.uuid"), Some("arrow.json")]);
    assert_eq!(Parquet.steps(&found, &WriteOptions::default()).verdict(), Verdict::Exact);
    let (sink, memory) = Sink::memory();
    let mut writer = Parquet.create(sink, found, &WriteOptions::default()).unwrap();
    rows.for_each(|batch| writer.write(&batch.unwrap()).unwrap());
    writer.finish().unwrap();
    assert_eq!(logical(memory.take()), expected);
}
