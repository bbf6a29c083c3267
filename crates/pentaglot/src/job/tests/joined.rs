//! Several inputs read as one.

use std::fs;
use std::path::Path;

use super::*;
use crate::hub::type_text::print_schema;

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The inputs as JSON lines, with these options.
fn joined(names: &[String], options: &ConvertOptions) -> Result<String> {
    let registry = Registry::default();
    let mut options = options.clone();
    options.to = Some("jsonl".to_owned());
    let (sink, memory) = Sink::memory();
    Conversion::plan(&registry, names, "out.jsonl", &options)?.run_into(sink)?;
    Ok(String::from_utf8(memory.take()).unwrap())
}

/// The same file under another name and in another format.
fn convert_file(from: &str, to: &str) {
    let conversion = Conversion::plan(&Registry::default(), &[from], to, &ConvertOptions::default()).unwrap();
    conversion.run(to, false).unwrap();
}

#[test]
fn tables_are_joined_by_name_and_missing_columns_are_null() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        write(folder.path(), "a.csv", "id,name\n1,x\n2,y\n"),
        write(folder.path(), "b.jsonl", "{\"name\":\"z\",\"id\":2.5,\"ok\":true}\n"),
        write(folder.path(), "c.csv", "ok\nfalse\n"),
    ];
    let text = joined(&names, &ConvertOptions::default());
    // int64 of the first file and float64 of the second have no type that holds both.
    let error = text.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().starts_with("column \"id\": "), "{error}");
    assert!(error.to_string().contains("a.csv and ") && error.to_string().contains("b.jsonl"), "{error}");
    let names = [names[0].clone(), names[2].clone()];
    let text = joined(&names, &ConvertOptions::default()).unwrap();
    let expected = "{\"id\":1,\"name\":\"x\",\"ok\":null}\n{\"id\":2,\"name\":\"y\",\"ok\":null}\n{\"id\":null,\"name\":null,\"ok\":false}\n";
    assert_eq!(text, expected);
    let opened = open_all(&Registry::default(), &names, &OpenOptions::default()).unwrap();
    let schema = &opened.document.summary().schema;
    assert_eq!(print_schema(schema), "struct{id: ?int64, name: ?utf8, ok: ?bool}");
    assert!(!schema.metadata().contains_key(crate::hub::native::NATIVE_KEY));
    let plan = opened.plan.to_string();
    assert!(
        plan.contains("ok: missing -> ?bool: widened (in ") && plan.contains("a.csv: filled with nulls)"),
        "{plan}"
    );
}

/// Ranges of rows and choices of columns over inputs that know their row counts (arrow, parquet, bsondf) and others.
#[test]
fn rows_count_over_all_inputs_and_columns_are_those_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(7);
    for round in 0..6 {
        let mut names = Vec::new();
        let mut expected: Vec<(Option<i64>, Option<String>)> = Vec::new();
        for part in 0..4 {
            let count = random.below(5);
            let with_b = random.below(3) > 0;
            let mut text = String::from(if with_b { "b,a\n" } else { "a\n" });
            for row in 0..count {
                let a = (round * 100 + part * 10 + row) as i64;
                text += &if with_b { format!("t{a},{a}\n") } else { format!("{a}\n") };
                expected.push((Some(a), with_b.then(|| format!("t{a}"))));
            }
            let csv = write(folder.path(), &format!("{round}-{part}.csv"), text);
            let format = random.pick(&["csv", "jsonl", "json", "arrow", "parquet", "bson"]);
            let name = format!("{}.{format}", csv.strip_suffix(".csv").unwrap());
            if format != "csv" && count > 0 {
                convert_file(&csv, &name);
                names.push(name);
            } else if count > 0 {
                names.push(csv);
            }
        }
        if names.len() < 2 {
            continue;
        }
        let any_b = expected.iter().any(|(_, b)| b.is_some());
        let total = expected.len() as u64;
        for start in 0..=total {
            for end in start..=total + 1 {
                for (choice, batch_rows) in [(None, 0), (Some("a"), 2), (Some("b"), 1), (Some("b,a"), 3)] {
                    if choice.is_some_and(|choice| choice.contains('b')) && !any_b {
                        continue;
                    }
                    let mut options = ConvertOptions::default();
                    options.rows = Some(start..end);
                    options.columns = Some(choice.map_or(vec!["a".to_owned()], parse_columns));
                    options.batch_rows = batch_rows;
                    let found = joined(&names, &options).unwrap();
                    let cell_a = |a: &Option<i64>| format!("\"a\":{}", a.unwrap());
                    let cell_b = |b: &Option<String>| match b {
                        Some(b) => format!("\"b\":\"{b}\""),
                        None => "\"b\":null".to_owned(),
                    };
                    let wanted = &expected[start as usize..end.min(total) as usize];
                    let wanted: String = wanted
                        .iter()
                        .map(|(a, b)| match choice {
                            None | Some("a") => format!("{{{}}}\n", cell_a(a)),
                            Some("b") => format!("{{{}}}\n", cell_b(b)),
                            _ => format!("{{{},{}}}\n", cell_b(b), cell_a(a)),
                        })
                        .collect();
                    assert_eq!(found, wanted, "{names:?} {start}..{end} {choice:?}");
                }
            }
        }
    }
}

#[test]
fn matrices_are_stacked_and_one_sparse_one_makes_all_sparse() {
    let folder = tempfile::tempdir().unwrap();
    let mtx = "%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 0.5\n";
    let sparse = write(folder.path(), "s.mtx", mtx);
    let dense = |name: &str, shape: (u64, u64), kind: &str, data: &[u8]| {
        let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape:?}, }}");
        let header =
            [b"\x93NUMPY\x01\x00\x76\x00".as_slice(), format!("{text:<117}\n").as_bytes(), data].concat();
        write(folder.path(), name, header)
    };
    let bytes = dense("a.npy", (2, 2), "|u1", &[1, 2, 3, 4]);
    let shorts = dense("b.npy", (1, 2), "<i2", &[0xff, 0xff, 7, 0]);
    let registry = Registry::default();
    let open = |names: &[&String]| open_all(&registry, names, &OpenOptions::default());
    let opened = open(&[&bytes, &shorts]).unwrap();
    assert_eq!(print_schema(&opened.document.summary().schema), "matrix[3, 2, int16]");
    let splits: Vec<_> = opened.document.splits(2).into_iter().map(|split| split.rows).collect();
    assert_eq!(splits, [0..2, 2..3]);
    let names = [bytes.clone(), shorts.clone()];
    let rows = "{\"col_0\":1,\"col_1\":2}\n{\"col_0\":3,\"col_1\":4}\n{\"col_0\":-1,\"col_1\":7}\n";
    assert_eq!(joined(&names, &ConvertOptions::default()).unwrap(), rows);
    let mut options = ConvertOptions::default();
    options.columns = Some(vec!["1".to_owned()]);
    options.rows = Some(1..3);
    assert_eq!(joined(&names, &options).unwrap(), "{\"col_0\":4}\n{\"col_0\":7}\n");
    // The same from a file with one column per matrix column, whose metadata declares the matrix.
    let columns = folder.path().join("c.parquet").to_str().unwrap().to_owned();
    convert_file(&shorts, &columns);
    let mixed = open(&[&bytes, &columns, &sparse]).unwrap();
    assert_eq!(print_schema(&mixed.document.summary().schema), "sparse_matrix[5, 2, float64]");
    // JSON lines do not store the size of a sparse matrix.
    let mut options = ConvertOptions::default();
    options.allow_lossy = crate::hub::LossKind::Metadata.into();
    let entries = joined(&[bytes.clone(), columns, sparse], &options).unwrap();
    let expected = [
        (0, 0, "1.0"),
        (0, 1, "2.0"),
        (1, 0, "3.0"),
        (1, 1, "4.0"),
        (2, 0, "-1.0"),
        (2, 1, "7.0"),
        (4, 0, "0.5"),
    ];
    let line =
        |(row, col, value): (u64, u64, &str)| format!("{{\"row\":{row},\"col\":{col},\"value\":{value}}}\n");
    assert_eq!(entries, expected.map(line).concat());
    let wide = dense("w.npy", (2, 1), "|u1", &[1, 2]);
    let error = open(&[&bytes, &wide]).err().unwrap().to_string();
    assert!(error.contains("has 2 columns") && error.contains("has 1 columns"), "{error}");
}

#[test]
fn an_error_names_the_input_that_it_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let good = write(folder.path(), "a.csv", "x\n1\n");
    let late = write(folder.path(), "b.csv", format!("x\n{}\"open", "1\n".repeat(100_000)));
    let missing = folder.path().join("c.csv").to_str().unwrap().to_owned();
    let error = joined(&[good.clone(), late.clone()], &ConvertOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.input()), (ErrorKind::Truncated, Some(late.as_str())), "{error}");
    let error = joined(&[good.clone(), missing.clone()], &ConvertOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.input()), (ErrorKind::Io, Some(missing.as_str())));
}

#[test]
fn an_output_that_is_an_input_is_refused_even_with_force() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.csv", "b.csv", "all.csv"] {
        write(folder.path(), name, "x\n1\n");
    }
    let pattern = folder.path().join("*.csv").to_str().unwrap().to_owned();
    let out = folder.path().join("all.csv").to_str().unwrap().to_owned();
    let mut options = ConvertOptions::default();
    options.force = true;
    let error = Conversion::plan(&Registry::default(), &[&pattern], &out, &options).err().unwrap();
    assert_eq!((error.kind(), error.output()), (ErrorKind::Usage, Some(out.as_str())));
    assert_eq!(error.to_string(), "the output is one of the inputs");
    fs::remove_file(&out).unwrap();
    let done = Conversion::plan(&Registry::default(), &[&pattern], &out, &options).unwrap();
    assert_eq!(done.run(&out, true).unwrap().rows, 2);
}
