//! What the command says of data: figures, pictures, identities, plans and the parts of broken files.

mod common;

use std::fs;

use common::{files, folder, good, json, root, run};
use serde_json::Value;

#[test]
fn columns_that_are_none_or_twice_are_refused() {
    let ticks = root().join("examples/data/ticks.bson");
    let ticks = ticks.to_str().unwrap();
    for columns in ["3..1", "2..2", "90..99"] {
        let (status, _, said) = run(&["cat", ticks, "--columns", columns]);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains("there is no column in "), "{said}");
    }
    for output in ["json", "jsonl"] {
        let (status, _, said) = run(&["cat", ticks, "--columns", "price,price", "--output", output]);
        assert_eq!(status, Some(2), "{output}: {said}");
    }
}

#[test]
fn plot_draws_the_rows_that_match() {
    let (_folder, name) = folder();
    let ticks = root().join("examples/data/ticks.bson");
    let ticks = ticks.to_str().unwrap();
    let matching = ["--where", "quantity > 300"];
    good(&["convert", ticks, &name("some.parquet"), matching[0], matching[1]]);
    let picture = |words: &[&str]| good(&[&["plot", "--columns", "price"], words].concat());
    // The first line names the file.
    let body = |text: String| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(body(picture(&[ticks, matching[0], matching[1]])), body(picture(&[&name("some.parquet")])));
    assert_ne!(body(picture(&[ticks])), body(picture(&[ticks, matching[0], matching[1]])));
}

#[test]
fn describe_prints_the_figures_of_the_contract() {
    let data = root().join("examples/data");
    let described = |name: &str| json(&good(&["describe", "--json", data.join(name).to_str().unwrap()]));
    let table = described("ticks.bson");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(table["rows"], 240);
    let column = &table["columns"][2];
    assert_eq!(
        keys(column)[..13],
        [
            "name",
            "type",
            "nulls",
            "nans",
            "distinct",
            "distinct_exact",
            "min",
            "max",
            "mean",
            "std",
            "quantiles",
            "top",
            "top_exact",
        ]
    );
    assert_eq!(keys(&column["quantiles"]), ["0.05", "0.25", "0.5", "0.75", "0.95"]);
    let matrix = described("ratings.mtx");
    assert_eq!(
        keys(&matrix)[..11],
        [
            "rows",
            "cols",
            "nonzeros",
            "density",
            "min",
            "max",
            "mean",
            "symmetric",
            "bandwidth",
            "row_counts",
            "col_counts",
        ]
    );
    assert_eq!(keys(&matrix["row_counts"]), ["0.05", "0.25", "0.5", "0.75", "0.95"]);
    let succinct = described("exons.sds");
    assert_eq!(keys(&succinct), ["kind", "len", "ones", "width", "runs", "bits", "entropy_bits"]);
    assert_eq!(
        (&succinct["len"], &succinct["ones"], &succinct["runs"]),
        (&5000.into(), &117.into(), &3.into())
    );
}

#[test]
fn every_file_is_described_and_plotted_or_refused() {
    let (_folder, name) = folder();
    let picture = name("x.svg");
    let mut done = 0;
    for file in files() {
        let file = file.to_str().unwrap();
        for words in [&["describe", "--json", file][..], &["plot", file, "-o", &picture, "--force"]] {
            let (status, _, said) = run(words);
            assert!(matches!(status, Some(0..=4)), "{words:?}: {status:?} {said}");
            done += u32::from(status == Some(0));
        }
    }
    assert!(done > 60, "{done}");
}

#[test]
fn plot_replaces_nothing_without_being_asked() {
    let (_folder, name) = folder();
    let ticks = root().join("examples/data/ticks.bson");
    let ticks = ticks.to_str().unwrap();
    for picture in ["x.svg", "x.png"] {
        let picture = name(picture);
        good(&["plot", ticks, "-o", &picture, "--size", "300x200"]);
        let before = fs::read(&picture).unwrap();
        assert_eq!(run(&["plot", ticks, "-o", &picture]).0, Some(2));
        assert_eq!(fs::read(&picture).unwrap(), before);
    }
    assert_eq!(run(&["plot", ticks, "-o", &name("x.gif")]).0, Some(2));
    assert_eq!(run(&["plot", ticks, "--size", "1x1"]).0, Some(2));
    assert!(good(&["plot", ticks, "--columns", "symbol"]).contains("MSFT █"));
}

#[cfg(unix)]
#[test]
fn a_list_of_identities_is_checked_whatever_the_names_are() {
    let (_folder, path) = folder();
    let names = ["plain.csv", "new\nline.csv", "back\\slash.csv"].map(&path);
    for name in &names {
        fs::write(name, "a\n1\n").unwrap();
    }
    let words: Vec<&str> = std::iter::once("hash").chain(names.iter().map(String::as_str)).collect();
    let lines = good(&words);
    assert_eq!(lines.lines().filter(|line| line.starts_with('\\')).count(), 2, "{lines}");
    fs::write(path("list"), &lines).unwrap();
    assert_eq!(good(&["hash", "--check", &path("list")]).matches(": OK").count(), 3);
    fs::write(path("list"), "").unwrap();
    let (status, _, said) = run(&["hash", "--check", &path("list")]);
    assert_eq!(status, Some(1));
    assert!(said.contains("expected lines of IDENTITY  FILE, found none"), "{said}");
}

#[test]
fn the_parts_of_a_broken_file_are_dumped_before_its_fault() {
    let (_folder, path) = folder();
    let whole = fs::read(root().join("examples/data/ticks.bson")).unwrap();
    fs::write(path("cut.bson"), &whole[..whole.len() - 20]).unwrap();
    let (status, printed, said) = run(&["dump", &path("cut.bson")]);
    assert_eq!(status, Some(1), "{said}");
    assert!(printed.lines().count() > 3 && said.lines().count() == 1, "{printed}{said}");
    let broken = root().join("examples/data/broken.dbdf");
    let (status, printed, said) = run(&["dump", broken.to_str().unwrap()]);
    assert_eq!((status, printed.lines().count()), (Some(1), 1), "{printed}");
    assert!(printed.contains("file") && said.contains("at byte 53"), "{printed}{said}");
}

#[test]
fn a_plan_does_not_promise_what_it_does_not_keep() {
    let (_folder, path) = folder();
    fs::write(path("x.csv"), "a\n1\n\n3\n").unwrap();
    for target in ["x.dbdf", "x.npy", "x.sds"] {
        let plan = good(&["convert", "--dry-run", &path("x.csv"), &path(target)]);
        assert!(plan.contains("checked") && !plan.contains("nulls,") && !plan.contains(", nulls"), "{plan}");
        let (status, ..) = run(&["convert", "--allow-lossy=nulls", &path("x.csv"), &path(target)]);
        assert_eq!(status, Some(3), "{target}");
    }
    let plan = good(&["convert", "--dry-run", &path("x.csv"), &path("x.npy")]);
    assert!(plan.contains("integers have no NaN"), "{plan}");
}

#[test]
fn a_refusal_names_the_kinds_of_loss_and_a_loss_counts_rows() {
    let (_folder, path) = folder();
    fs::write(path("x.csv"), "t\n10:00:00\n11:00:00\n").unwrap();
    let cast = ["--type", "struct{t: time[s]}", &path("x.csv"), &path("x.npy")];
    let (status, _, said) = run(&[&["convert"], &cast[..]].concat());
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("--allow-lossy=metadata permits it"), "{said}");
    let (status, _, said) = run(&[&["convert", "--allow-lossy=metadata"], &cast[..]].concat());
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("loss (metadata) in column \"t\": 2 values\n"), "{said}");
}

#[test]
fn pictures_that_nobody_can_read_are_refused() {
    let file = root().join("examples/data/stations.csv");
    let (_folder, path) = folder();
    let (status, _, said) = run(&["plot", file.to_str().unwrap(), "-o", &path("x.svg"), "--size", "100x100"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("from 200x150 to 8000x8000"), "{said}");
}

#[cfg(feature = "view")]
#[test]
fn view_checks_its_files_before_it_starts() {
    let (_folder, path) = folder();
    let (status, printed, said) = run(&["view", "--no-open", &path("nothere.csv")]);
    assert_eq!((status, printed.as_str()), (Some(2), ""), "{said}");
    let file = root().join("examples/data/stations.csv");
    let (status, printed, _) = run(&["view", "--no-open", file.to_str().unwrap(), "--where", "nope > 1"]);
    assert_eq!((status, printed.as_str()), (Some(2), ""));
}
