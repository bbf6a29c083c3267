//! Conversions that change the shape of data, from files that pandas, NumPy and SciPy wrote.

use std::fs;
use std::path::Path;

use super::*;
use crate::testing::plain::testdata;

fn shapes(name: &str) -> String {
    testdata("shapes").join(name).to_str().unwrap().to_owned()
}

fn options(pairs: &[(&str, &str)]) -> ConvertOptions {
    let mut options = ConvertOptions::default();
    for (key, value) in pairs {
        match *key {
            "as_type" => options.as_type = Some((*value).to_owned()),
            "to" => options.to = Some((*value).to_owned()),
            key => options.open.options.set(key, *value),
        }
    }
    options
}

/// Converts to a file in a folder.
fn to_file(input: &str, folder: &Path, name: &str, options: &ConvertOptions) -> Result<String> {
    let output = folder.join(name).to_str().unwrap().to_owned();
    Conversion::plan(&Registry::default(), &[input], &output, options)?.run(&output, true)?;
    Ok(output)
}

fn bytes(path: &str) -> Vec<u8> {
    fs::read(path).unwrap()
}

fn lines(path: &str, options: &OpenOptions) -> String {
    let mut convert = ConvertOptions::default();
    convert.open = options.clone();
    convert.to = Some("jsonl".to_owned());
    let (sink, memory) = Sink::memory();
    let conversion = Conversion::plan(&Registry::default(), &[path], "out.jsonl", &convert).unwrap();
    conversion.run_into(sink).unwrap();
    String::from_utf8(memory.take()).unwrap()
}

fn same_data(one: &str, other: &str) {
    let registry = Registry::default();
    let rows = |path: &str| {
        let opened = open(&registry, path, &OpenOptions::default()).unwrap();
        let mut view = View::default();
        view.forms = vec![Form::Coo];
        collect(opened.rows(&view).unwrap()).unwrap()
    };
    let (one, other) = (rows(one), rows(other));
    assert_eq!(
        one.schema().metadata().get("pentaglot.rows"),
        other.schema().metadata().get("pentaglot.rows")
    );
    assert_eq!(
        one.schema().metadata().get("pentaglot.cols"),
        other.schema().metadata().get("pentaglot.cols")
    );
    assert_eq!(one.columns(), other.columns());
}

#[test]
fn tables_of_entries_become_the_matrix_that_scipy_makes_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let sized = options(&[("as", "sparse"), ("shape", "40x30")]);
    for input in ["triplets.csv", "triplets.jsonl", "triplets.parquet"] {
        for target in ["out.npz", "out.mtx", "out.dbdf"] {
            let output = to_file(&shapes(input), folder.path(), target, &sized).unwrap();
            let sorted = to_file(&output, folder.path(), "sorted.npz", &ConvertOptions::default()).unwrap();
            // Entries of a row keep their order, which is that of the table; SciPy sorts them.
            let (found, expected) = (entries(&sorted), entries(&shapes("triplets.npz")));
            assert_eq!(found, expected, "{input} to {target}");
        }
    }
    // Through formats that have no sparse matrices, and back.
    for middle in ["m.csv", "m.jsonl", "m.ds", "m.dynd", "m.bsondf", "m.parquet", "m.arrow"] {
        let table =
            to_file(&shapes("triplets.npz"), folder.path(), middle, &options(&[("as", "coo")])).unwrap();
        let keeps_size = Form::of(
            &open(&Registry::default(), &table, &OpenOptions::default()).unwrap().document.summary().schema,
        ) == Form::Coo;
        let back = if keeps_size { options(&[("as", "sparse")]) } else { sized.clone() };
        let output = to_file(&table, folder.path(), "back.npz", &back).unwrap();
        same_data(&output, &shapes("triplets.npz"));
    }
}

/// Entries by row and column.
fn entries(path: &str) -> Vec<(u64, u64, u64)> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
    let opened = open(&Registry::default(), path, &OpenOptions::default()).unwrap();
    let mut view = View::default();
    view.forms = vec![Form::Coo];
    let rows = collect(opened.rows(&view).unwrap()).unwrap();
    let row = rows.column(0).as_primitive::<UInt64Type>().values();
    let col = rows.column(1).as_primitive::<UInt32Type>().values();
    let value = rows.column(2).as_primitive::<Float64Type>().values();
    let all = row.iter().zip(col).zip(value);
    let mut all: Vec<_> = all.map(|((row, col), value)| (*row, u64::from(*col), value.to_bits())).collect();
    all.sort_unstable();
    all
}

#[test]
fn the_largest_index_gives_the_size_where_none_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| {
        let path = folder.path().join("t.csv").to_str().unwrap().to_owned();
        fs::write(&path, text).unwrap();
        path
    };
    let sparse = options(&[("as", "sparse")]);
    let size = |path: &str| {
        let schema = Arc::clone(
            &open(&Registry::default(), path, &OpenOptions::default()).unwrap().document.summary().schema,
        );
        (crate::hub::shape::matrix_rows(&schema), crate::hub::shape::matrix_cols(&schema))
    };
    // Any order of the columns, and other common names.
    for text in ["row,col,value\n6,2,1.5\n0,3,2\n", "v,j,i\n1.5,2,6\n2,3,0\n"] {
        let output = to_file(&write(text), folder.path(), "out.mtx", &sparse).unwrap();
        assert_eq!(size(&output), (Some(7), Some(4)));
        assert!(String::from_utf8(bytes(&output)).unwrap().ends_with("\n7 4 2\n1 4 2\n7 3 1.5\n"));
    }
    // Whole numbers as pandas writes them beside missing values; a null that may be NaN; no entries at all.
    let output =
        to_file(&write("row,col,value\n6.0,2.0,1.5\n0.0,3.0,2\n"), folder.path(), "out.mtx", &sparse);
    assert!(String::from_utf8(bytes(&output.unwrap())).unwrap().ends_with("\n7 4 2\n1 4 2\n7 3 1.5\n"));
    let nan = options(&[("as", "sparse"), ("nulls", "nan")]);
    let output = to_file(&write("row,col,value\n1,0,0.5\n1,1,\n"), folder.path(), "out.mtx", &nan).unwrap();
    assert!(String::from_utf8(bytes(&output)).unwrap().ends_with("\n2 2 2\n2 1 0.5\n2 2 nan\n"));
    let none = options(&[("as", "sparse"), ("shape", "3x4")]);
    let output = to_file(&write("row,col,value\n"), folder.path(), "out.mtx", &none).unwrap();
    assert!(String::from_utf8(bytes(&output)).unwrap().ends_with("\n3 4 0\n"));
    // A matrix of that size is one already.
    let again = to_file(&output, folder.path(), "again.npz", &none).unwrap();
    assert_eq!(size(&again), (Some(3), Some(4)));
    // With a size the three columns may have any names.
    let named = write("user,item,stars\n1,2,5\n");
    let output = to_file(&named, folder.path(), "out.npz", &options(&[("shape", "3x4")])).unwrap();
    assert_eq!(size(&output), (Some(3), Some(4)));
    for (text, pairs, expected) in [
        (
            "row,col,value\n0,0,1\n0,0,2\n",
            &[("as", "sparse")][..],
            "csv: row 0, column 0 of the matrix: a second entry for the cell",
        ),
        (
            "row,col,value\n0,0,1\n-1,0,2\n",
            &[("as", "sparse")],
            "csv: row 1, column \"row\": -1 is not a row or column number of a matrix",
        ),
        (
            "row,col,value\n0,0,1\n,0,2\n",
            &[("as", "sparse")],
            "csv: row 1, column \"row\": null is not a row or column number of a matrix",
        ),
        (
            "row,col,value\n0,0,1\n1,0,\n",
            &[("as", "sparse")],
            "csv: row 1, column \"value\": a matrix holds no nulls",
        ),
        (
            "row,col,value\n0,0,1\n5,0,2\n",
            &[("shape", "2x2")],
            "csv: row 1: the entry is in row 5 of a matrix of 2 rows",
        ),
        (
            "row,col,value\n0,9,1\n",
            &[("shape", "2x2")],
            "csv: row 0: the entry is in column 9 of a matrix of 2 columns",
        ),
        (
            "row,col,value\n0,9,1\n",
            &[("shape", "2")],
            "option shape: expected ROWSxCOLS such as 3x4, found \"2\"",
        ),
        (
            "row,col,value\n0,0.5,1\n",
            &[("as", "sparse")],
            "csv: row 0, column \"col\": 0.5 is not a row or column number of a matrix",
        ),
        (
            "row,col,value\n0,0,one\n",
            &[("as", "sparse")],
            "csv: row 0: column \"value\": \"one\" is not a number",
        ),
        (
            "id,row,col,value\n7,0,0,1\n",
            &[("as", "sparse")],
            "a table of 4 columns: \"row\", \"col\" and \"value\" are entries, what are the others?",
        ),
        (
            "a,b\n0,9\n",
            &[("shape", "2x2")],
            "option shape: expected a table of row, col and value, found a table of 2 columns",
        ),
    ] {
        let error = to_file(&write(text), folder.path(), "bad.mtx", &options(pairs)).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(!folder.path().join("bad.mtx").exists());
    }
}

#[test]
fn many_entries_are_sorted_in_bands_within_a_small_budget() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let mut text = String::from("row,col,value\n");
    let (rows, count) = (50_000u64, 200_000u64);
    for entry in 0..count {
        // A permutation of the used cells that is far from sorted.
        let at = entry * 7919 % count;
        text.push_str(&format!("{},{},{}\n", at % rows, at / rows, at));
    }
    fs::write(&path, text).unwrap();
    let mut sized = options(&[("shape", "50000x4")]);
    sized.open.budget = crate::Limits { max_alloc: 6 << 20, ..crate::Limits::default() }.budget();
    let output = to_file(path.to_str().unwrap(), folder.path(), "out.npz", &sized).unwrap();
    let found = open(&Registry::default(), &output, &OpenOptions::default()).unwrap();
    assert_eq!(found.document.summary().nonzeros, Some(count));
    let rows = collect(found.rows(&View::default()).unwrap()).unwrap();
    let rows = crate::hub::matrix::SparseRows::of(rows.column(0), 0).unwrap();
    assert!((0..rows.len()).all(|row| rows.row(row).len() == 4));
}

#[test]
fn nulls_become_nan_if_asked_for_and_the_refusal_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let nan = options(&[("nulls", "nan")]);
    for target in ["out.npy", "out.npz", "out.dbdf", "out.mtx"] {
        let error =
            to_file(&shapes("nan.parquet"), folder.path(), target, &ConvertOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lossy, "{target}: {error}");
        assert_eq!(error.advice(), Some(&crate::Hint::Option("nulls=nan".into())), "{target}: {error}");
        to_file(&shapes("nan.parquet"), folder.path(), target, &nan).unwrap();
        let planned = Conversion::plan(&Registry::default(), &[shapes("nan.parquet")], target, &nan).unwrap();
        assert!(planned.plan.to_string().contains("nulls become NaN"), "{}", planned.plan);
    }
    // NumPy's own bytes of the same matrix.
    let matrix = options(&[("nulls", "nan"), ("as", "matrix")]);
    let output = to_file(&shapes("nan.parquet"), folder.path(), "m.npy", &matrix).unwrap();
    assert_eq!(bytes(&output), bytes(&shapes("nan.npy")));
    // And back: a dense matrix and a frame.
    let text = lines(&shapes("nan.npy"), &nan.open);
    assert_eq!(
        text,
        "{\"col_0\":1.5,\"col_1\":1.0,\"col_2\":null}\n{\"col_0\":null,\"col_1\":2.0,\"col_2\":0.25}\n{\"col_0\":-3.0,\"col_1\":3.0,\"col_2\":\"Infinity\"}\n"
    );
    let frame = to_file(&shapes("nan.parquet"), folder.path(), "f.dbdf", &nan).unwrap();
    assert_eq!(
        lines(&frame, &nan.open),
        "{\"a\":1.5,\"b\":1,\"c\":null}\n{\"a\":null,\"b\":2,\"c\":0.25}\n{\"a\":-3.0,\"b\":3,\"c\":\"Infinity\"}\n"
    );
}

#[test]
fn a_target_without_dictionaries_gets_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let expected = "{\"kind\":\"x\",\"n\":7}\n{\"kind\":\"longer\",\"n\":7}\n{\"kind\":\"x\",\"n\":9}\n";
    for target in ["out.npy", "out.csv", "out.jsonl", "out.ds", "out.dynd", "out.bsondf"] {
        let output =
            to_file(&shapes("category.parquet"), folder.path(), target, &ConvertOptions::default()).unwrap();
        assert_eq!(lines(&output, &OpenOptions::default()), expected, "{target}");
    }
    // Columns of numbers are numbers.
    let mut numbers = ConvertOptions::default();
    numbers.columns = Some(vec!["n".to_owned()]);
    let output = to_file(&shapes("category.parquet"), folder.path(), "n.mtx", &numbers).unwrap();
    assert!(String::from_utf8(bytes(&output)).unwrap().ends_with("3 1\n7\n7\n9\n"));
    let output = to_file(&shapes("category.parquet"), folder.path(), "n.dbdf", &numbers).unwrap();
    assert_eq!(lines(&output, &OpenOptions::default()), "{\"n\":7}\n{\"n\":7}\n{\"n\":9}\n");
}

#[test]
fn mixed_numbers_become_a_matrix_if_every_value_survives() {
    let folder = tempfile::tempdir().unwrap();
    let output =
        to_file(&shapes("mixed.parquet"), folder.path(), "m.mtx", &ConvertOptions::default()).unwrap();
    assert!(String::from_utf8(bytes(&output)).unwrap().ends_with("2 3\n1\n2\n0.5\n1\n3\n4\n"));
    let large = shapes("mixed_large.parquet");
    let error = to_file(&large, folder.path(), "l.mtx", &ConvertOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "parquet: row 1, column \"i\": float64 does not hold 9007199254740993 exactly"
    );
    let mut allowed = ConvertOptions::default();
    allowed.allow_lossy = crate::hub::LossKind::Precision.into();
    let name = folder.path().join("l.mtx").to_str().unwrap().to_owned();
    let conversion = Conversion::plan(&Registry::default(), &[&large], &name, &allowed).unwrap();
    let lost = conversion.run(&name, false).unwrap().lost;
    assert_eq!((lost.len(), lost[0].values, lost[0].column.as_str()), (1, 1, "i"));
    assert_eq!(lost[0].example.as_deref(), Some("9007199254740993"));
}

#[test]
fn arrays_tensors_and_matrices_are_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let (cube, rows, four) = (shapes("cube.npy"), shapes("rows.npy"), shapes("four.npy"));
    let plain = ConvertOptions::default();
    let tensor = options(&[("as_type", r#"{"type":"tensor","componentType":"float32","shape":[2,3,4]}"#)]);
    for (target, wanted) in
        [("t.ds", &tensor), ("t.dynd", &plain), ("t.parquet", &plain), ("t.arrow", &plain)]
    {
        let there = to_file(&cube, folder.path(), target, wanted).unwrap();
        let back = to_file(&there, folder.path(), "back.npy", &plain).unwrap();
        assert_eq!(bytes(&back), bytes(&cube), "{target}");
    }
    // A DS tensor goes on to dynd, and to formats that hold matrices.
    let ds = to_file(&cube, folder.path(), "t.ds", &tensor).unwrap();
    let dynd = to_file(&ds, folder.path(), "u.dynd", &plain).unwrap();
    assert_eq!(bytes(&to_file(&dynd, folder.path(), "u.npy", &plain).unwrap()), bytes(&cube));
    for target in ["m.dbdf", "m.mtx"] {
        for from in [&ds, &cube, &folder.path().join("t.parquet").to_str().unwrap().to_owned()] {
            let there = to_file(from, folder.path(), target, &plain).unwrap();
            let as_rows = options(&[("as_type", "2 * 12 * float32")]);
            let back = to_file(&there, folder.path(), "back.npy", &as_rows).unwrap();
            assert_eq!(bytes(&back), bytes(&rows), "{from} to {target}");
            let as_cube = options(&[("as_type", "2 * 3 * 4 * float32")]);
            let back = to_file(&there, folder.path(), "back.npy", &as_cube).unwrap();
            assert_eq!(bytes(&back), bytes(&cube), "{from} to {target}");
        }
    }
    let sparse = to_file(&four, folder.path(), "s.npz", &options(&[("as", "sparse")])).unwrap();
    let size = open(&Registry::default(), &sparse, &OpenOptions::default()).unwrap();
    let schema = &size.document.summary().schema;
    assert_eq!(
        (crate::hub::shape::matrix_cols(schema), size.document.summary().nonzeros),
        (Some(60), Some(119))
    );
    let wrong = options(&[("as_type", r#"{"type":"tensor","componentType":"float32","shape":[3,3,4]}"#)]);
    let error = to_file(&cube, folder.path(), "w.ds", &wrong).unwrap_err();
    assert_eq!(error.to_string(), "npy: expected 3 rows, as the wanted type says, found 2");
}

#[test]
fn an_output_is_split_into_parts_and_the_parts_are_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::default();
    let frame =
        to_file(&shapes("mixed.parquet"), folder.path(), "frame.dbdf", &ConvertOptions::default()).unwrap();
    for (input, rows, parts) in
        [(shapes("rows.npy"), "1", 2), (shapes("triplets.npz"), "16", 3), (frame, "1", 2)]
    {
        for dialect in ["dbdf:spec", "dbdf:daphne"] {
            let name = folder.path().join("part.dbdf").to_str().unwrap().to_owned();
            let mut split = options(&[("split-rows", rows), ("to", dialect)]);
            split.force = true;
            let report =
                Conversion::plan(&registry, &[&input], &name, &split).unwrap().run(&name, true).unwrap();
            assert!(
                report.notes.iter().any(|note| note.starts_with(&format!("{parts} files"))),
                "{:?}",
                report.notes
            );
            let pattern = folder.path().join("part-*.dbdf").to_str().unwrap().to_owned();
            assert_eq!(expand(&Registry::default(), &[&pattern]).unwrap().len(), parts);
            let whole = folder.path().join("whole.arrow").to_str().unwrap().to_owned();
            let same = options(&[("to", "arrow"), ("as", "auto")]);
            Conversion::plan(&registry, &[&pattern], &whole, &same).unwrap().run(&whole, true).unwrap();
            let direct = to_file(&input, folder.path(), "direct.arrow", &same).unwrap();
            assert_eq!(
                lines(&whole, &OpenOptions::default()),
                lines(&direct, &OpenOptions::default()),
                "{input}"
            );
            expand(&Registry::default(), &[&pattern])
                .unwrap()
                .iter()
                .for_each(|part| fs::remove_file(part).unwrap());
            for side in fs::read_dir(folder.path()).unwrap().flatten() {
                if side.file_name().to_string_lossy().ends_with(".meta") {
                    fs::remove_file(side.path()).unwrap();
                }
            }
        }
    }
}

#[test]
fn parts_appear_together_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::default();
    let name = folder.path().join("p.dbdf").to_str().unwrap().to_owned();
    let names = || {
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let split = options(&[("split-rows", "1")]);
    // The null is in the second part.
    let run = |input: &str, force| {
        Conversion::plan(&registry, &[shapes(input)], &name, &split).and_then(|plan| plan.run(&name, force))
    };
    run("nan.parquet", false).unwrap_err();
    assert!(names().is_empty());
    fs::write(folder.path().join("p-00001.dbdf"), "mine").unwrap();
    let error = run("mixed.parquet", false).unwrap_err();
    assert_eq!(error.to_string(), "the file exists already");
    assert_eq!(names(), ["p-00001.dbdf"]);
    assert_eq!(fs::read(folder.path().join("p-00001.dbdf")).unwrap(), b"mine");
    run("mixed.parquet", true).unwrap();
    assert_eq!(names(), ["p-00000.dbdf", "p-00001.dbdf"]);
    let own = folder.path().join("p-00000.dbdf").to_str().unwrap().to_owned();
    let error = Conversion::plan(&registry, &[&own], &name, &split).unwrap().run(&name, true).unwrap_err();
    assert_eq!(error.to_string(), "the output is one of the inputs");
    assert_eq!(error.output(), Some(own.as_str()));
    let error = Conversion::plan(&registry, &[&own], &name, &options(&[("split-rows", "0")])).err().unwrap();
    assert_eq!(error.to_string(), "option split-rows: expected a whole number from 1 on, found \"0\"");
}

#[test]
fn all_members_go_into_an_archive_or_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::default();
    let input = shapes("members.npz");
    let copy = folder.path().join("copy.npz").to_str().unwrap().to_owned();
    let members = Members::plan(&registry, &[&input], &copy, &ConvertOptions::default()).unwrap().unwrap();
    members.run(false).unwrap();
    assert_eq!(bytes(&copy), bytes(&input));
    let into = format!("{}/out/", folder.path().to_str().unwrap());
    let run = |force| {
        Members::plan(&registry, &[&input], &into, &ConvertOptions::default()).unwrap().unwrap().run(force)
    };
    run(false).unwrap();
    assert_eq!(bytes(&format!("{into}cube.npy")), bytes(&shapes("cube.npy")));
    let mut names: Vec<_> = fs::read_dir(&into).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["cube.npy", "table.npy", "text.npy", "x.npy"]);
    fs::remove_file(format!("{into}cube.npy")).unwrap();
    let error = run(false).unwrap_err();
    assert_eq!(error.to_string(), "the file exists already");
    assert!(!Path::new(&format!("{into}cube.npy")).exists());
    run(true).unwrap();
    assert!(Path::new(&format!("{into}cube.npy")).exists());
    // If one member cannot be written, the folder is not created.
    let other = format!("{}/other/", folder.path().to_str().unwrap());
    let to_mtx = options(&[("to", "mtx")]);
    let planned = Members::plan(&registry, &[&input], &other, &to_mtx).unwrap().unwrap();
    assert!(planned.run(false).is_err());
    assert!(!Path::new(&other).exists());
    // A single member, a member by name, or another target is a plain conversion.
    for (name, target) in [
        (shapes("triplets.npz"), copy.clone()),
        (format!("{input}::x"), copy.clone()),
        (input.clone(), "x.npy".to_owned()),
    ] {
        assert!(
            Members::plan(&registry, &[&name], &target, &ConvertOptions::default()).unwrap().is_none(),
            "{name}"
        );
    }
}
