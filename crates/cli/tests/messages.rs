//! What the command says when something is wrong: one line with the place, what is expected and what is found.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

struct Said {
    status: i32,
    errors: String,
}

fn run_with(folder: &Path, args: &[&str], input: &[u8]) -> Said {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pentaglot"))
        .args(args)
        .current_dir(folder)
        .env_remove("PENTAGLOT_STORE")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that ends early closes its input.
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap().trim_end().to_owned();
    Said { status: output.status.code().unwrap(), errors }
}

fn run(folder: &Path, args: &[&str]) -> Said {
    run_with(folder, args, b"")
}

/// A folder with a table in several formats.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.csv"), "id,name\n1,a\n2,b\n").unwrap();
    fs::write(folder.path().join("n.csv"), "a,b\n1,2\n3,4\n").unwrap();
    for args in [
        ["convert", "t.csv", "t.parquet", "-q"],
        ["convert", "t.csv", "t.arrow", "-q"],
        ["convert", "t.csv", "t.jsonl", "-q"],
        ["convert", "n.csv", "m.dbdf", "-q"],
        ["convert", "t.csv", "t.csv.gz", "-q"],
    ] {
        assert_eq!(run(folder.path(), &args).status, 0, "{args:?}");
    }
    folder
}

fn check(cases: &[(&[&str], i32, &str)]) {
    let folder = folder();
    for (args, status, expected) in cases {
        let said = run(folder.path(), args);
        assert_eq!((said.status, said.errors.as_str()), (*status, *expected), "{args:?}");
    }
}

#[test]
fn faults_of_the_output_name_the_output_once() {
    let no_folder = "there is no folder no (mkdir -p 'no' makes it)";
    check(&[
        (&["convert", "t.csv", "t.csv"], 2, "t.csv: the output is the input itself"),
        (&["convert", "*.csv", "n.csv", "--force"], 2, "n.csv: the output is one of the inputs"),
        (
            &["convert", "t.csv", "o.csv", "--to", "csv:x"],
            2,
            "o.csv: csv has no dialects, so none is named \"x\"",
        ),
        (
            &["convert", "t.csv", "o", "--to", "dbdf:x"],
            2,
            "o: dbdf has no dialect \"x\" (there are spec, daphne, daphne01)",
        ),
        (
            &["convert", "t.csv", "o", "--to", "dbdf:daphne01"],
            2,
            "o: not supported: writing dbdf:daphne01, which is only read",
        ),
        (&["convert", "t.csv", "no/o.csv"], 2, &format!("no/o.csv: {no_folder}")),
        (&["plot", "n.csv", "-o", "no/o.svg"], 2, &format!("no/o.svg: {no_folder}")),
        (&["diff", "t.csv", "n.csv", "-o", "no/o.csv"], 2, &format!("no/o.csv: {no_folder}")),
        (&["salvage", "t.csv", "no/o.csv"], 2, &format!("no/o.csv: {no_folder}")),
    ]);
}

#[test]
fn a_store_is_named_once() {
    check(&[
        (&["store", "ls", "--store", "no"], 2, "no: this is not a store: it has no folder packs"),
        (&["store", "put", "t.csv", "--store", "n.csv"], 2, "n.csv: expected a folder, found a file"),
        (&["store", "put", "t.csv", "--store", "s"], 0, ""),
        (&["store", "get", "zzz", "o.csv", "--store", "s"], 2, "s: nothing in this store is named \"zzz\""),
        (&["store", "rm", "zzz", "--store", "s"], 2, "s: nothing in this store is named \"zzz\""),
        (
            &["store", "ls", "--store", ""],
            2,
            "no store is given (--store STORE or $PENTAGLOT_STORE names a folder or a place in a bucket)",
        ),
    ]);
}

#[test]
fn a_type_for_files_that_store_theirs_is_refused() {
    let folder = folder();
    let expected = "t.parquet: a type is given, but parquet files store their types (a cast or a conversion changes types)";
    for verb in
        ["inspect", "schema", "cat", "head", "tail", "validate", "dump", "count", "describe", "plot", "hash"]
    {
        let said = run(folder.path(), &[verb, "t.parquet", "--type", "int32"]);
        assert_eq!((said.status, said.errors.as_str()), (2, expected), "{verb}");
    }
    let table = "struct{id: ?int64, name: ?utf8}";
    for (args, status, errors) in [
        (&["convert", "t.parquet", "o.csv", "--type", "int32"][..], 2, expected),
        (&["salvage", "t.parquet", "o.csv", "--type", "int32"], 2, expected),
        (&["diff", "t.arrow", "t.parquet", "--type", "int32"], 2, expected),
        // It is for the other input.
        (&["diff", "t.csv", "t.parquet", "--type", table], 0, ""),
        (&["convert", "t.csv", "t.parquet", "both.arrow", "--type", table], 0, ""),
    ] {
        let said = run(folder.path(), args);
        assert_eq!((said.status, said.errors.as_str()), (status, errors), "{args:?}");
    }
}

#[test]
fn every_verb_says_that_a_meta_file_is_ignored() {
    let folder = folder();
    fs::write(folder.path().join("m.dbdf.meta"), "{\"numRows\": 9, \"numCols\": 2, \"valueType\": \"si64\"}")
        .unwrap();
    let note = "m.dbdf: note: the .meta file beside it is ignored: .meta.numRows: expected 2 as in the header, found 9";
    for args in [
        &["schema", "m.dbdf"][..],
        &["cat", "m.dbdf"],
        &["head", "m.dbdf"],
        &["tail", "m.dbdf"],
        &["sample", "m.dbdf", "-n", "1"],
        &["dump", "m.dbdf"],
        &["count", "m.dbdf"],
        &["describe", "m.dbdf"],
        &["plot", "m.dbdf"],
        &["hash", "m.dbdf"],
        &["diff", "m.dbdf", "n.csv"],
        &["convert", "m.dbdf", "o.csv"],
        &["salvage", "m.dbdf", "s.csv"],
        &["store", "put", "m.dbdf", "--store", "store"],
    ] {
        let said = run(folder.path(), args);
        assert_eq!(said.errors.lines().filter(|line| *line == note).count(), 1, "{args:?}: {}", said.errors);
        let quiet = run(folder.path(), &[args, &["-q"]].concat());
        assert!(!quiet.errors.contains("note:"), "{args:?}: {}", quiet.errors);
    }
}

#[test]
fn a_dry_run_says_that_the_output_exists() {
    let note = "t.arrow: note: the file exists already; --force replaces it";
    check(&[
        (&["convert", "t.parquet", "t.arrow", "--dry-run"], 0, note),
        (&["convert", "t.parquet", "t.arrow", "--dry-run", "--json"], 0, note),
        (&["convert", "t.parquet", "t.arrow", "--dry-run", "--force"], 0, ""),
        (&["convert", "t.parquet", "t.arrow", "--dry-run", "-q"], 0, ""),
        (&["convert", "t.parquet", "o.arrow", "--dry-run"], 0, ""),
        (
            &["convert", "t.parquet", ".", "--to", "csv", "--dry-run"],
            2,
            ".: expected a file to write, found a directory",
        ),
    ]);
}

#[test]
fn decoders_of_other_crates_speak_in_our_words() {
    let folder = folder();
    let damage = |name: &str, at: usize, byte: u8| {
        let mut bytes = fs::read(folder.path().join(name)).unwrap();
        let at = if at == usize::MAX { bytes.len() - 7 } else { at };
        bytes[at] = byte;
        fs::write(folder.path().join(format!("bad-{name}")), bytes).unwrap();
        let said = run(folder.path(), &["cat", &format!("bad-{name}")]);
        assert_eq!(said.status, 1, "{}", said.errors);
        said.errors
    };
    assert_eq!(
        damage("t.parquet", 1, b'B'),
        "bad-t.parquet: parquet: at byte 0: expected the magic PAR1, found 50 42 52 31"
    );
    let gzip = damage("t.csv.gz", usize::MAX, 0xff);
    assert!(gzip.ends_with("expected gzip data whose checksum matches, found one that differs"), "{gzip}");
    fs::write(folder.path().join("list"), b"\xff\n").unwrap();
    let said = run(folder.path(), &["hash", "--check", "list"]);
    assert_eq!(
        (said.status, said.errors.as_str()),
        (2, "list: cannot read: expected UTF-8, found other bytes")
    );
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_read() {
    check(&[
        (
            &["diff", "t.csv", "t.csv", "--key", "no"],
            2,
            "t.csv and t.csv: the key \"no\" is not a column of both (there is id, name)",
        ),
        (
            &["cat", "t.csv", "--cast", "id=int8,id=int16"],
            2,
            "--cast: expected each column once, found \"id\" twice (see pentaglot help cat)",
        ),
        (
            &["cat", "t.csv", "--cast", "id=timestamp[x]"],
            2,
            "t.csv: csv: the type \"timestamp[x]\" of column \"id\": at byte 10: expected a unit (s, ms, us, ns), found `x`",
        ),
        (
            &["dump", "t.parquet", "--at", "no"],
            2,
            "t.parquet: there is no part \"no\" (the first parts are magic, row_group[0], column_index, offset_index, \
             footer, footer_length, magic)",
        ),
        (&["index", "-"], 2, "-: an index is beside its file, and standard input is none"),
        (
            &["convert", "[.csv", "o.csv"],
            2,
            "[.csv: at character 0 of the pattern: expected a closing ], found none",
        ),
    ]);
}

#[test]
fn a_stream_that_does_not_open_is_reported_as_it_is() {
    let folder = folder();
    let said = run_with(folder.path(), &["dump", "-"], b"\x93NUMPY\x01");
    assert_eq!(
        (said.status, said.errors.as_str()),
        (1, "-: npy: at byte 0, magic: expected 8 bytes, found 7")
    );
}

#[test]
fn too_little_memory_for_a_guess_is_a_limit() {
    check(&[(
        &["cat", "t.jsonl", "--max-alloc", "1K"],
        4,
        "t.jsonl: jsonl: at byte 0: needs 65536 bytes, max-alloc is 1024 (--max-alloc raises the limit)",
    )]);
}

#[test]
fn options_may_be_between_the_names_of_a_conversion() {
    let folder = folder();
    for args in [
        &["convert", "n.csv", "--to", "jsonl", "one", "-q"][..],
        &["convert", "-q", "n.csv", "--rows", "1..", "n.csv", "--force", "two.jsonl"],
    ] {
        assert_eq!(run(folder.path(), args).errors, "", "{args:?}");
    }
    let content = |name| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(content("one"), "{\"a\":1,\"b\":2}\n{\"a\":3,\"b\":4}\n");
    assert_eq!(content("two.jsonl").lines().count(), 3);
    let said = run(folder.path(), &["convert", "n.csv", "--force"]);
    assert_eq!(said.status, 2);
    assert!(said.errors.starts_with("missing <OUT>; usage: pentaglot convert"), "{}", said.errors);
}

#[test]
fn a_value_that_was_written_after_a_space_is_explained() {
    check(&[
        (
            &["convert", "t.csv", "o.parquet", "--allow-lossy", "precision"],
            2,
            "\"precision\" is taken for a file: write --allow-lossy=precision",
        ),
        (
            &["convert", "t.csv", "--allow-lossy", "range,nulls", "o.parquet"],
            2,
            "\"range,nulls\" is taken for a file: write --allow-lossy=range,nulls",
        ),
        (&["convert", "t.csv", "range", "--to", "csv", "--allow-lossy=precision", "-q"], 0, ""),
        (
            &["head", "t.csv", "-n", "1", "--progress", "always"],
            2,
            "--progress: write --progress=always (see pentaglot help head)",
        ),
    ]);
}

#[test]
fn notes_say_what_a_plan_does_that_may_not_be_meant() {
    let folder = folder();
    fs::write(folder.path().join("ur.csv"), "user,item,rating\n0,1,5\n2,0,3\n").unwrap();
    let rows = "note: each row is a row of the matrix; for entries rename user=row,item=col,rating=value, or give the \
                option shape=ROWSxCOLS";
    let both = "note: delimiter applies to input and output; out.delimiter is for the output alone";
    for (args, note) in [
        (&["convert", "ur.csv", "ur.npz", "-O", "as=sparse"][..], Some(format!("ur.npz: {rows}"))),
        (&["convert", "ur.csv", "re.npz", "-O", "as=sparse", "--rename", "user=i,item=j,rating=v"], None),
        (&["convert", "ur.csv", "as.npz", "-O", "as=sparse", "-O", "shape=3x3"], None),
        (&["convert", "ur.csv", "two.npz", "-O", "as=sparse", "--columns", "user,rating"], None),
        (&["convert", "ur.csv", "dense.npz", "-O", "as=matrix"], None),
        (&["convert", "n.csv", "o.csv", "-O", "delimiter=,"], Some(format!("o.csv: {both}"))),
        (&["convert", "n.csv", "out.csv", "-O", "out.delimiter=;"], None),
        (&["convert", "n.csv", "p.csv", "-O", "in.delimiter=,"], None),
        (&["convert", "n.csv", "o.jsonl", "-O", "delimiter=,"], None),
    ] {
        for more in [&["--dry-run"][..], &["--dry-run", "--json"], &[]] {
            let said = run(folder.path(), &[args, more].concat());
            assert_eq!(said.status, 0, "{args:?}: {}", said.errors);
            let found = said.errors.lines().find(|line| line.ends_with(rows) || line.ends_with(both));
            assert_eq!(found, note.as_deref(), "{args:?} {more:?}");
        }
    }
}

#[test]
fn hints_name_the_argument_that_helps() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("note.csv", "a,b,note\n1,2.5,\n2,,x\n");
    write("four.csv", "row,col,value,w\n0,0,1,2\n");
    write("empty", "");
    let words = [1u64, 3, 0, 7, 1, 2];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(folder.path().join("several.sds"), bytes).unwrap();
    fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/broken.dbdf"),
        folder.path().join("broken.dbdf"),
    )
    .unwrap();
    for (args, status, hint) in [
        (&["convert", "t.csv", "o.dbdf"][..], 2, "(try --exclude name)"),
        (&["convert", "t.csv", "o.dbdf", "--dry-run"], 2, "(try --exclude name)"),
        (&["convert", "t.csv", "o.dbdf", "--columns", "name"], 2, "(dbdf cannot hold strings)"),
        (&["convert", "t.csv", "o.sds"], 2, "(try --columns NAME)"),
        (&["convert", "note.csv", "o.npy", "--exclude", "b"], 3, "(try --where '\"note\" is not null')"),
        (&["convert", "note.csv", "o.npz", "--exclude", "note"], 3, "(try -O nulls=nan)"),
        (&["convert", "note.csv", "o.npz", "--exclude", "b"], 3, "(try --where '\"note\" is not null')"),
        (&["convert", "four.csv", "o.npz", "-O", "as=sparse"], 2, "(try --columns row,col,value)"),
        (&["convert", "t.csv", "o.parquet", "--as", "parquet"], 2, "(--to parquet names a format)"),
        (&["cat", "t.csv", "--cast", "id=float"], 2, "found `float` (did you mean float64?)"),
        (&["cat", "t.csv", "--cast", "id=decimal(12,3)"], 2, "(did you mean decimal128[12, 3]?)"),
        (&["cat", "t.csv", "--cast", "id=list[strign]"], 2, "found `strign`"),
        (
            &["cat", "t.csv", "--cast", "name=int32"],
            3,
            "does not become int32 (such texts become null if losses of range are allowed)",
        ),
        (&["inspect", "empty"], 2, "(the file is empty)"),
        (&["salvage", "broken.dbdf", "s.csv"], 2, "(try --from dbdf:daphne or dbdf:spec)"),
        (&["inspect", "several.sds"], 1, "(several structures need a type such as sds:{…}: docs/sds.md)"),
        (
            &["head", "*.csv"],
            2,
            "(a name is one file here; convert, count, inspect and others take patterns)",
        ),
    ] {
        let said = run(folder.path(), args);
        assert_eq!(said.status, status, "{args:?}: {}", said.errors);
        assert!(said.errors.ends_with(hint), "{args:?}: {}", said.errors);
    }
}

#[test]
fn a_hint_names_allow_lossy_where_the_verb_has_it() {
    let folder = folder();
    let type_text = "struct{t: timestamp[s, 'UTC']}";
    fs::write(folder.path().join("z.csv"), "t\n2024-01-01T00:00:00Z\n").unwrap();
    for args in [
        &["convert", "z.csv", "z.parquet", "--type", type_text, "-q"][..],
        &["store", "put", "z.parquet", "--name", "z", "--store", "s"],
    ] {
        assert_eq!(run(folder.path(), args).errors, "", "{args:?}");
    }
    let said = run(folder.path(), &["store", "get", "z", "z.npy", "--store", "s"]);
    assert!(said.errors.ends_with("(--allow-lossy=timezone permits it)"), "{}", said.errors);
    let said = run(folder.path(), &["cat", "n.csv", "--cast", "a=bool"]);
    assert!(said.errors.ends_with("(convert with --allow-lossy=range permits it)"), "{}", said.errors);
}
