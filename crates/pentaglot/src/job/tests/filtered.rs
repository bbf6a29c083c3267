//! Filtered rows with every reader.

use super::*;

fn table() -> (SchemaRef, RecordBatch) {
    let schema =
        crate::hub::type_text::parse_schema("struct{a: int32, b: utf8, c: float64}", &Default::default());
    let schema = Arc::new(schema.unwrap());
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..1000).collect::<arrow_array::Int32Array>()),
        Arc::new((0..1000).map(|row| Some(format!("t{}", row % 7))).collect::<arrow_array::StringArray>()),
        Arc::new((0..1000).map(|row| Some(f64::from(row) / 4.0)).collect::<arrow_array::Float64Array>()),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    (schema, batch)
}

#[test]
fn a_filter_comes_before_rows_and_columns_in_every_format() {
    let registry = Registry::default();
    let (schema, batch) = table();
    let start = arrow_file(&registry, &schema, std::slice::from_ref(&batch));
    let type_text = format!("arrow:{}", print_exact_schema(&schema));
    let formats = [
        "ds:msgpack",
        "ds:json",
        "dynd",
        "bsondf",
        "arrow",
        "arrow-stream",
        "parquet",
        "csv",
        "jsonl",
        "json",
    ];
    for format in formats {
        let mut to = ConvertOptions::default();
        to.allow_lossy = crate::hub::LossKinds::ALL;
        let source = Source::from_bytes("data", start.clone());
        let opened = open_source(&registry, source, None, &to.open).unwrap();
        let (sink, memory) = Sink::memory();
        let conversion = Conversion::plan_opened(opened, target(&registry, format).unwrap(), None, &to);
        conversion.unwrap().run_into(sink).unwrap();
        let mut options = OpenOptions::default();
        options.from = Some(format.to_owned());
        options.type_text = matches!(format, "csv" | "jsonl" | "json").then(|| type_text.clone());
        let source = Source::from_bytes("data", memory.take());
        let opened = open_source(&registry, source.seekable().unwrap(), None, &options).unwrap();
        let mut view = View::default();
        view.filter = Some("b = 't3' and c < 200".to_owned());
        // Rows 3, 10, …, 794 match; of those the third and the fourth.
        view.rows = Some(2..4);
        view.columns = Some(vec!["c".to_owned(), "a".to_owned()]);
        view.batch_rows = 64;
        let found = collect(opened.rows(&view).unwrap()).unwrap();
        let expected = arrow_select::concat::concat_batches(
            &Arc::new(schema.project(&[2, 0]).unwrap()),
            &[17, 24].map(|row| batch.project(&[2, 0]).unwrap().slice(row, 1)),
        );
        assert_eq!(found.columns(), expected.unwrap().columns(), "{format}");
        assert_eq!(opened.count(view.filter.as_deref()).unwrap(), 114, "{format}");
        assert_eq!(opened.count(None).unwrap(), 1000, "{format}");
        let error = opened.filtered("d = 1").err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}

#[test]
fn a_filtered_matrix_keeps_its_form() {
    let registry = Registry::default();
    let text = "%%MatrixMarket matrix coordinate real general\n4 3 4\n1 1 1\n2 3 2\n3 3 -3\n4 2 4\n";
    let open = || {
        let source = Source::from_bytes("m.mtx", text.as_bytes().to_vec());
        open_source(&registry, source, None, &OpenOptions::default()).unwrap()
    };
    assert_eq!(open().count(Some("col_2 != 0")).unwrap(), 2);
    for (to, expected) in [
        ("csv", "row,col,value\n0,2,2.0\n1,2,-3.0\n"),
        ("mtx", "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 3 2\n2 3 -3\n"),
    ] {
        let mut options = ConvertOptions::default();
        options.filter = Some("col_2 != 0".to_owned());
        // CSV does not store the size of a sparse matrix.
        options.allow_lossy = crate::hub::LossKind::Metadata.into();
        let (sink, memory) = Sink::memory();
        let conversion = Conversion::plan_opened(open(), target(&registry, to).unwrap(), None, &options);
        conversion.unwrap().run_into(sink).unwrap();
        let found = String::from_utf8(memory.take()).unwrap();
        let plain: String = found
            .lines()
            .filter(|line| !line.starts_with('%') || line.starts_with("%%"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(plain, expected, "{to}");
    }
}
