//! The behaviour that scripts rely on, tested by running the command.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io::Write};

use common::{files, folder, good, json, root, run};

#[test]
fn a_receipt_replaces_neither_an_input_nor_the_output() {
    let (_folder, name) = folder();
    fs::write(name("a.csv"), "x\n1\n").unwrap();
    fs::write(name("b.csv"), "x\n2\n").unwrap();
    let pattern = name("?.csv");
    for (receipt, inputs) in [("a.csv", [&name("a.csv"), &name("b.csv")]), ("b.csv", [&pattern, &pattern])] {
        let (out, receipt) = (name("out.csv"), name(receipt));
        let words = ["convert", inputs[0], inputs[1], &out, "--verify", "--force", "--receipt", &receipt];
        let (status, _, said) = run(&words);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains("the receipt would replace "), "{said}");
    }
    let out = name("out.csv");
    let (status, ..) = run(&["convert", &name("a.csv"), &out, "--verify", "--receipt", &out]);
    assert_eq!(status, Some(2));
    assert!(!Path::new(&out).exists());
    assert_eq!(fs::read_to_string(name("a.csv")).unwrap(), "x\n1\n");
}

#[cfg(unix)]
#[test]
fn a_file_that_is_replaced_keeps_its_permissions_and_links_stay() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, name) = folder();
    fs::write(name("in.csv"), "x\n1\n2\n").unwrap();
    fs::write(name("private.csv"), "old").unwrap();
    fs::set_permissions(name("private.csv"), fs::Permissions::from_mode(0o600)).unwrap();
    good(&["convert", &name("in.csv"), &name("private.csv"), "--force"]);
    assert_eq!(fs::metadata(name("private.csv")).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(name("target.csv"), "old").unwrap();
    std::os::unix::fs::symlink(name("target.csv"), name("part-00000.csv")).unwrap();
    good(&["convert", &name("in.csv"), &name("part.csv"), "--force", "-O", "split-rows=5"]);
    assert!(Path::new(&name("part-00000.csv")).is_symlink());
    assert_eq!(fs::read_to_string(name("target.csv")).unwrap(), "x\n1\n2\n");
}

#[test]
fn dump_takes_every_path_that_inspect_prints() {
    let mut paths = 0;
    for file in files() {
        let file = file.to_str().unwrap();
        let (status, printed, _) = run(&["inspect", "--json", file]);
        if status != Some(0) {
            continue;
        }
        let object = json(&printed);
        let parts = object["parts"].as_array().unwrap();
        let few = parts.len().min(3);
        for part in parts[..few].iter().chain(&parts[parts.len() - few..]) {
            let path = part["path"].as_str().unwrap();
            let shown = good(&["dump", file, "--at", path, "--depth", "0", "--json"]);
            let shown = json(&shown);
            assert_eq!(
                (&shown["offset"], &shown["bytes"]),
                (&part["offset"], &part["bytes"]),
                "{file} {path}"
            );
            paths += 1;
        }
    }
    assert!(paths > 60, "{paths}");
}

#[test]
fn what_schema_prints_is_a_type() {
    let mut types = 0;
    for file in files() {
        let file = file.to_str().unwrap();
        let (status, printed, _) = run(&["schema", file]);
        if status == Some(0) {
            assert_eq!(good(&["type", printed.trim_end()]), printed, "{file}");
            types += 1;
        }
    }
    assert!(types > 20, "{types}");
}

#[test]
fn what_schema_prints_is_taken_by_as_and_type() {
    let (_folder, name) = folder();
    let csv = root().join("examples/data/stations.csv");
    let csv = csv.to_str().unwrap();
    let schema = good(&["schema", csv]);
    assert_eq!(good(&["schema", csv, "--type", schema.trim_end()]), schema);
    good(&["convert", csv, &name("x.parquet"), "--as", schema.trim_end()]);
    assert_eq!(good(&["schema", &name("x.parquet")]), schema);
    let matrix = root().join("examples/data/ratings.mtx");
    let schema = good(&["schema", matrix.to_str().unwrap()]);
    good(&["convert", matrix.to_str().unwrap(), &name("x.npz"), "--as", schema.trim_end()]);
    assert_eq!(good(&["schema", &name("x.npz")]), schema);
}

#[test]
fn an_archive_of_several_members_is_listed_and_checked_whole() {
    let file = root().join("testdata/npz/several.npz");
    let file = file.to_str().unwrap();
    let object = json(&good(&["inspect", "--json", file]));
    let members: Vec<&str> =
        object["members"].as_array().unwrap().iter().map(|member| member.as_str().unwrap()).collect();
    assert!(members.len() > 1);
    assert!(good(&["inspect", file]).contains(&format!("{} members", members.len())));
    assert_eq!(good(&["validate", file]), format!("{file}: valid npz\n"));
    let dumped = good(&["dump", file, "--depth", "1"]);
    for member in &members {
        assert!(dumped.contains(&format!("  {member} ")), "{dumped}");
    }
    for verb in [&["cat", file][..], &["schema", file], &["convert", file, "-", "--to", "csv"]] {
        let (status, _, said) = run(verb);
        assert_eq!(status, Some(2));
        assert!(said.contains(&format!("FILE::MEMBER with one of {}", members.join(", "))), "{said}");
    }
    // A broken member is found, though it is not the first.
    let mut bytes = fs::read(file).unwrap();
    let at = bytes.windows(6).rposition(|window| window == b"\x93NUMPY").unwrap();
    bytes[at] ^= 1;
    let (_folder, name) = folder();
    fs::write(name("broken.npz"), bytes).unwrap();
    assert_eq!(run(&["validate", &name("broken.npz")]).0, Some(1));
}

#[test]
fn members_of_containers_are_queried() {
    let (_folder, name) = folder();
    // Two chains: 7, 1, 3 in three bits each, twice.
    let chain: [u64; 5] = [3, 3, 9, 1, 0b011_001_111];
    let elements = [&[2][..], &chain, &chain].concat();
    let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
    fs::write(name("x.sds"), bytes).unwrap();
    let member = format!("{}::chain[1]", name("x.sds"));
    assert_eq!(good(&["query", &member, "get", "0", "--from", "sds:chains"]), "7\n");
    assert_eq!(good(&["query", &member, "len", "--from", "sds:chains"]), "3\n");
    let (status, _, said) = run(&["query", &name("x.sds"), "len", "--from", "sds:chains"]);
    assert_eq!(status, Some(2));
    assert!(said.ends_with("(a member has them: FILE::MEMBER)\n"), "{said}");
    let (status, _, said) =
        run(&["query", &format!("{}::nix", name("x.sds")), "len", "--from", "sds:chains"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("there is no member \"nix\" (there is chain[0], chain[1])"), "{said}");
}

#[test]
fn a_vec_that_looks_like_an_option_is_queried_as_either() {
    let (_folder, name) = folder();
    fs::write(name("x.csv"), "item\n5\n6\n7\n").unwrap();
    good(&["convert", &name("x.csv"), &name("x.sds"), "--to", "sds:vec", "-q"]);
    let object = json(&good(&["inspect", "--json", &name("x.sds")]));
    assert_eq!(object["dialect"], "option");
    assert_eq!(object["also_fits"], json("[\"vec\"]"));
    // The content of an option is a vector too.
    assert_eq!(good(&["query", &name("x.sds"), "get", "1"]), "6\n");
    assert_eq!(good(&["query", &name("x.sds"), "get", "1", "--from", "sds:vec"]), "6\n");
}

#[test]
fn a_sparse_matrix_keeps_its_shape_in_columns() {
    let (_folder, name) = folder();
    let matrix = root().join("examples/data/ratings.mtx");
    for target in ["x.parquet", "x.arrow"] {
        good(&["convert", matrix.to_str().unwrap(), &name(target)]);
        let object = json(&good(&["inspect", "--json", &name(target)]));
        assert_eq!(
            (&object["rows"], &object["cols"], &object["nonzeros"]),
            (&5.into(), &6.into(), &9.into())
        );
        assert!(good(&["inspect", &name(target)]).contains("sparse matrix, 5 x 6 of float64"));
    }
}

#[test]
fn progress_is_also_printed_without_a_terminal() {
    let csv = root().join("examples/data/stations.csv");
    let csv = csv.to_str().unwrap();
    let (_, _, said) = run(&["cat", csv, "--progress=always"]);
    assert!(said.contains("read 344 bytes of 344 bytes, 6 of 6 rows in "), "{said}");
    assert_eq!(run(&["cat", csv]).2, "");
}

#[test]
fn a_line_of_an_error_is_short() {
    let (_folder, name) = folder();
    let wide: Vec<String> = (0..1000).map(|index| format!("column_{index}")).collect();
    let row = vec!["1.5"; 1000].join(",");
    fs::write(name("wide.csv"), format!("{}\n{row}\n", wide.join(","))).unwrap();
    let long = "x".repeat(5000);
    fs::write(name("long.csv"), format!("a\n1\n{long}\n")).unwrap();
    fs::write(name("long.jsonl"), format!("{{\"a\":1}}\n{{\"{long}\":1}}\n")).unwrap();
    for args in [
        &["convert", &name("wide.csv"), &name("wide.sds")][..],
        &["cat", &name("wide.csv"), "--columns", &long],
        &["cat", &name("long.csv"), "--type", "struct{a: int64}"],
        &["cat", &name("long.jsonl"), "--type", "struct{a: int64}"],
        &["cat", &name("wide.csv"), "--from", &long],
        &["type", &long],
        &[&long],
    ] {
        let (status, _, said) = run(args);
        assert_ne!(status, Some(0));
        for line in said.lines() {
            assert!(line.chars().count() <= 500, "{} characters: {line}", line.chars().count());
            assert!(!line.contains(&long[..210]), "{line}");
        }
        assert!(said.lines().count() <= 3, "{said}");
    }
}

#[test]
fn errors_of_text_files_give_the_line() {
    let (_folder, name) = folder();
    let rows: String = (0..30_000).map(|row| format!("{row},{row}\n")).collect();
    fs::write(name("x.csv"), format!("a,b\n{rows}1,x\n1\n")).unwrap();
    let lines: String = (0..30_000).map(|row| format!("{{\"a\":{row}}}\n")).collect();
    fs::write(name("x.jsonl"), format!("{lines}\n{{\"a\":}}\n")).unwrap();
    let (status, _, said) = run(&["cat", &name("x.csv")]);
    assert_eq!(status, Some(1));
    assert!(said.contains(" (line 30002), row[30000].b: "), "{said}");
    assert!(
        run(&["validate", &name("x.csv")])
            .1
            .contains(" (line 30003), row[30001]: expected 2 fields, found 1")
    );
    let (status, _, said) = run(&["cat", &name("x.jsonl")]);
    assert_eq!(status, Some(1));
    assert!(said.contains(" (line 30002), row[30000].a: "), "{said}");
    assert!(run(&["validate", &name("x.jsonl")]).1.contains(" (line 30002), row[30000].a: "));
    // Also where the text cannot be read twice.
    let mut child = Command::new(env!("CARGO_BIN_EXE_pentaglot"))
        .args(["cat", "-", "--from", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&fs::read(name("x.csv")).unwrap()).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(said.contains(" (line 30002), "), "{said}");
}

#[test]
fn a_dense_output_that_is_too_large_is_refused_before_it_is_written() {
    let (_folder, name) = folder();
    let matrix =
        |rows: u64| format!("%%MatrixMarket matrix coordinate real general\n{rows} {rows} 1\n5 5 1.5\n");
    fs::write(name("huge.mtx"), matrix(1_000_000)).unwrap();
    fs::write(name("large.mtx"), matrix(1000)).unwrap();
    fs::write(name("small.mtx"), matrix(100)).unwrap();
    let (status, _, said) = run(&["convert", &name("large.mtx"), &name("x.npy")]);
    assert_eq!(status, Some(2));
    assert!(
        said.contains("the dense output takes 8000000 bytes") && said.ends_with("(try -O as=matrix)\n"),
        "{said}"
    );
    let plan = good(&["convert", &name("large.mtx"), &name("x.npy"), "-O", "as=matrix", "--dry-run"]);
    assert!(plan.contains("with its zeros 8000000 bytes)"), "{plan}");
    // In whatever form a target holds a dense matrix.
    for (output, word) in [
        ("x.csv", "as=matrix"),
        ("x.csv", "as=columns"),
        ("x.csv", "as=table"),
        ("x.jsonl", "as=matrix"),
        ("x.jsonl", "as=columns"),
        ("x.json", "as=matrix"),
        ("x.parquet", "as=matrix"),
        ("x.parquet", "as=columns"),
        ("x.arrow", "as=matrix"),
        ("x.ds", "as=matrix"),
        ("x.dynd", "as=matrix"),
        ("x.bson", "as=columns"),
        ("x.dbdf", "as=matrix"),
        ("x.npz", "as=matrix"),
    ] {
        let plan = good(&["convert", &name("large.mtx"), &name(output), "-O", word, "--dry-run"]);
        assert!(plan.contains("with its zeros 8000000 bytes"), "{output} {word}: {plan}");
        if output != "x.bson" && word != "as=columns" {
            let (status, _, said) = run(&["convert", &name("huge.mtx"), &name(output), "-O", "as=matrix"]);
            assert_eq!(status, Some(4), "{output}: {said}");
            assert!(said.contains("the free space in the folder of the output is "), "{output}: {said}");
            assert!(!Path::new(&name(output)).exists());
        }
    }
    let (status, _, said) = run(&["convert", &name("huge.mtx"), &name("x.npy"), "-O", "as=matrix"]);
    assert_eq!(status, Some(4));
    assert!(said.contains("the free space in the folder of the output is "), "{said}");
    assert!(!Path::new(&name("x.npy")).exists());
    good(&["convert", &name("small.mtx"), &name("x.npy")]);
}

#[test]
fn rows_that_take_no_bytes_are_limited() {
    let (_folder, name) = folder();
    fs::write(name("x.npy"), npy("<f8", "(2147483648, 0)", &[])).unwrap();
    let (status, _, said) = run(&["cat", &name("x.npy")]);
    assert_eq!(status, Some(4));
    assert!(said.ends_with("(--max-free-rows raises the limit)\n"), "{said}");
    assert_eq!(good(&["head", "-n", "2", &name("x.npy")]), "{}\n{}\n");
    assert_eq!(run(&["head", "-n", "2", &name("x.npy"), "--max-free-rows", "1"]).0, Some(4));
}

/// A NumPy array.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn complex_arrays_go_to_dynd() {
    let (_folder, name) = folder();
    let floats =
        |count: u32| (0..count).flat_map(|value| f64::from(value).to_le_bytes()).collect::<Vec<u8>>();
    fs::write(name("3d.npy"), npy("<c16", "(2, 3, 4)", &floats(48))).unwrap();
    good(&["convert", &name("3d.npy"), &name("3d.dynd")]);
    good(&["convert", &name("3d.dynd"), &name("back.npy")]);
    assert_eq!(fs::read(name("back.npy")).unwrap(), fs::read(name("3d.npy")).unwrap());
    fs::write(name("2d.npy"), npy("<c16", "(2, 3)", &floats(12))).unwrap();
    let own = good(&["schema", &name("2d.npy"), "--as", "dynd"]);
    assert_eq!(own, "2 * 3 * complex[float64]\n");
    good(&["convert", &name("2d.npy"), &name("plain.dynd")]);
    good(&["convert", &name("2d.npy"), &name("as.dynd"), "--as", own.trim_end()]);
    assert_eq!(fs::read(name("as.dynd")).unwrap(), fs::read(name("plain.dynd")).unwrap());
}

#[test]
fn an_array_of_numbers_is_a_matrix_for_daphne() {
    let (_folder, name) = folder();
    let data: Vec<u8> = (0..5i64).flat_map(i64::to_le_bytes).collect();
    fs::write(name("x.npy"), npy("<i8", "(5,)", &data)).unwrap();
    good(&["convert", &name("x.npy"), &name("x.dbdf"), "--to", "dbdf:daphne"]);
    let object = json(&good(&["inspect", "--json", &name("x.dbdf")]));
    assert_eq!(
        (&object["shape"], &object["rows"], &object["cols"]),
        (&"matrix".into(), &5.into(), &1.into())
    );
    let meta = json(&fs::read_to_string(name("x.dbdf.meta")).unwrap());
    assert_eq!((&meta["numCols"], &meta["valueType"]), (&1.into(), &"si64".into()));
    assert!(meta.get("schema").is_none(), "{meta}");
}

#[test]
fn structures_are_written_from_ordinary_input() {
    let (_folder, name) = folder();
    fs::write(name("wide.csv"), "item\n18446744073709551615\n0\n1099511627776\n").unwrap();
    good(&["convert", &name("wide.csv"), &name("core.sds"), "--to", "sds:wmcore"]);
    let shown = good(&["cat", &name("core.sds"), "--from", "sds:wmcore"]);
    assert_eq!(shown, "{\"item\":18446744073709551615}\n{\"item\":0}\n{\"item\":1099511627776}\n");
    // Half a million equal values are one run: 4 MB of them would not fit.
    fs::write(name("runs.csv"), format!("item\n{}", "7\n".repeat(500_000))).unwrap();
    let words = ["--to", "sds:rlwm", "--max-alloc", "2M", "-q"];
    good(&[&["convert", &name("runs.csv"), &name("runs.sds")][..], &words].concat());
    assert_eq!(good(&["query", &name("runs.sds"), "rank", "400000", "7"]), "400000\n");
    fs::write(name("u8.npy"), npy("|u1", "(5,)", b"hello")).unwrap();
    fs::write(name("text.csv"), "t\nhello\n").unwrap();
    for (input, kind, expected) in [
        ("u8.npy", "sds:bytes", "aGVsbG8="),
        ("u8.npy", "sds:string", "hello"),
        ("text.csv", "sds:string", "hello"),
        ("text.csv", "sds:bytes", "aGVsbG8="),
    ] {
        good(&["convert", &name(input), &name("x.sds"), "--to", kind, "--force"]);
        assert_eq!(good(&["cat", &name("x.sds"), "--from", kind]), format!("{{\"value\":\"{expected}\"}}\n"));
    }
    fs::write(name("large.csv"), "x\n256\n").unwrap();
    fs::write(name("two.csv"), "t\na\nb\n").unwrap();
    fs::write(name("bad.npy"), npy("|u1", "(1,)", b"\xff")).unwrap();
    for (input, kind, status) in
        [("large.csv", "sds:bytes", 3), ("bad.npy", "sds:string", 3), ("two.csv", "sds:string", 2)]
    {
        let (found, _, said) = run(&["convert", &name(input), &name("no.sds"), "--to", kind]);
        assert_eq!(found, Some(status), "{input}: {said}");
        assert!(!Path::new(&name("no.sds")).exists());
    }
}

#[test]
fn an_array_of_structs_stays_one() {
    let (_folder, name) = folder();
    fs::write(name("x.jsonl"), "{\"a\":1}\n{\"a\":2}\n").unwrap();
    let array = r#"{"type":"array","underlying":{"type":"struct","fields":{"a":"int32"}}}"#;
    for kind in [array, "array[struct{a: int32}]"] {
        good(&["convert", &name("x.jsonl"), &name("x.ds.json"), "--type", kind, "--force"]);
        let expected = format!("{{\"type\":{array},\"value\":[[1],[2]]}}");
        assert_eq!(fs::read_to_string(name("x.ds.json")).unwrap(), expected);
    }
    let (status, _, said) = run(&["type", r#"{"type":"tensor","componentType":"float32","shape":[]}"#]);
    assert_eq!(status, Some(1));
    assert_eq!(said, "shape: expected at least one dimension, found none\n");
}

#[test]
fn files_of_other_programs_are_called_what_they_are() {
    let (_folder, name) = folder();
    fs::write(name("x.parquet"), "\n<!DOCTYPE html>\n<html></html>\n").unwrap();
    fs::write(name("x.csv"), "<html><body>not found</body></html>\n").unwrap();
    for file in ["x.parquet", "x.csv"] {
        let (status, _, said) = run(&["cat", &name(file)]);
        assert_eq!(status, Some(2));
        assert!(said.contains("this is an HTML page") && said.contains("download"), "{said}");
    }
    fs::write(name("x.npy"), b"\x89HDF\r\n\x1a\n and so on").unwrap();
    assert!(run(&["inspect", &name("x.npy")]).2.contains("this is an HDF5 file"));
    let csv = root().join("examples/data/stations.csv");
    good(&["convert", csv.to_str().unwrap(), &name("y.parquet")]);
    fs::rename(name("y.parquet"), name("y.csv.gz")).unwrap();
    let (status, _, said) = run(&["cat", &name("y.csv.gz")]);
    assert_eq!(status, Some(1));
    assert!(said.contains("expected gzip, as the name says, found Apache Parquet"), "{said}");
}

#[test]
fn without_a_verb_the_help_is_printed() {
    let (status, printed, said) = run(&[]);
    assert_eq!((status, printed.as_str()), (Some(2), ""));
    for words in ["Look at a file:\n  inspect ", "Change a file:\n  convert ", "pentaglot help VERB"] {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(run(&["--help"]).0, Some(0));
}

#[test]
fn inspect_of_many_columns_is_a_screen() {
    let (_folder, name) = folder();
    let names: Vec<String> = (0..1000).map(|index| format!("c{index}")).collect();
    fs::write(name("x.csv"), format!("{}\n{}\n", names.join(","), vec!["1"; 1000].join(","))).unwrap();
    good(&["convert", &name("x.csv"), &name("x.parquet")]);
    for file in ["x.csv", "x.parquet"] {
        let text = good(&["inspect", &name(file)]);
        assert!(text.lines().count() < 70, "{text}");
        assert!(text.contains("    c19 ") && text.contains("… 977 more (--json lists all)"), "{text}");
        assert!(text.contains("table, 1 row\n"), "{text}");
        let object = json(&good(&["inspect", "--json", &name(file)]));
        assert_eq!(object["columns"].as_array().unwrap().len(), 1000);
    }
}

/// Small files that declare hundreds of millions of rows.
#[test]
fn rows_that_cost_no_bytes_are_counted_and_shown_but_not_written_by_the_million() {
    let (_folder, name) = folder();
    let numbers =
        |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    // A frame without columns: 34 bytes.
    let frame = [&[1, 3][..], &numbers(&[541_065_216, 0, 0, 0])].concat();
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (2147483648, 0), }";
    let npy = [b"\x93NUMPY\x01\x00\x76\x00", format!("{text:<117}\n").as_bytes()].concat();
    let market = "%%MatrixMarket matrix coordinate real general\n2147483648 7 0\n";
    // A sparse row without entries is not shown.
    let files: [(&str, &[u8], u64, usize); 3] = [
        ("x.dbdf", &frame, 541_065_216, 3),
        ("x.npy", &npy, 2_147_483_648, 3),
        ("x.mtx", market.as_bytes(), 2_147_483_648, 0),
    ];
    for (file, bytes, rows, shown) in files {
        let (file, output) = (name(file), name("out"));
        fs::write(&file, bytes).unwrap();
        assert_eq!(good(&["count", &file]), format!("{rows}  {file}\n"));
        good(&["inspect", &file]);
        let printed = good(&["cat", &file, "--rows", "5..8", "--output", "jsonl"]);
        assert_eq!(printed.lines().count(), shown, "{file}");
        for to in ["csv", "jsonl", "arrow", "parquet"] {
            let (status, printed, said) = run(&["convert", &file, &output, "--to", to]);
            assert_eq!((status, printed.as_str()), (Some(4), ""), "{file} {to}: {said}");
            assert!(said.contains("max-free-rows is "), "{said}");
            assert!(!Path::new(&output).exists());
        }
        let (status, printed, said) = run(&["cat", &file]);
        assert_eq!((status, printed.as_str()), (Some(4), ""), "{file}: {said}");
    }
}
