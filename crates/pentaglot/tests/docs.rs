//! `docs/formats.md` is made from the code: `cargo xtask bless` writes it again.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use pentaglot::formats::OptionInfo;
use pentaglot::job::CONVERSION_OPTIONS;
use pentaglot::{Limits, Registry};

#[test]
fn the_page_of_formats_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let page = page();
    if env::var("TRYCMD").is_ok_and(|mode| mode == "overwrite") {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap_or_default(),
        page,
        "cargo xtask bless writes docs/formats.md"
    );
}

#[test]
fn the_readme_names_every_format() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    for format in Registry::default().formats() {
        let id = format.info().id;
        assert!(readme.contains(&format!("`{id}`")), "{id} is in the README's table");
    }
}

/// The cost of reading if each read is a request; `testing/requests.rs` checks the first two rows.
const REQUESTS: &str = "
## Requests

Where reads are costly (a `ReadAt` that says so) a cache makes few large requests out of many small reads. Opening a file
and reading its first ten rows takes:

| formats | requests | bytes |
|---|---|---|
| `parquet`, `arrow` (one batch, values of fixed width), `npy`, `npz` (stored, csr), `csv`, `jsonl`, `ds`, `dynd`, `sds` (bit, int, raw, vec, option), `dbdf` of one block | at most 8 | at most 4 MB |
| `bsondf`, `dbdf` of several blocks | 8 and 4 per column or block, and for each field of a struct | 64 KiB each; dictionaries are read whole |
| `arrow` of several batches | one per batch to open | 32 KiB each |
| `arrow` with text, lists or structs, or packed | one per buffer | the whole batch |
| `arrow-stream` | one per batch to open | 32 KiB each |
| `parquet` without a page index | one per page of the first row group | the column chunks of that row group |
| `ds:json` | a few | 1 MiB, more if the type follows the value |
| `dynd:cbor`, `mtx`, `npz` (packed, csc, coo), other kinds of `sds` | a few large ones | the whole file |
";

fn list_options(page: &mut String, options: &[OptionInfo]) {
    if !options.is_empty() {
        page.push_str("\n| `-O` | for | values | default | what it does |\n|---|---|---|---|---|\n");
    }
    for option in options {
        let values = option.values.replace('|', "\\|");
        let (key, side) = (option.key, option.side.name());
        let _ = writeln!(page, "| `{key}` | {side} | {values} | {} | {} |", option.default, option.help);
    }
}

fn page() -> String {
    let mut page =
        String::from("# Formats, dialects, options, limits\n\nMade from the code by `cargo xtask bless`.\n");
    for format in Registry::default().formats() {
        let info = format.info();
        let extensions: Vec<String> =
            info.extensions.iter().map(|extension| format!("`.{extension}`")).collect();
        let _ = write!(page, "\n## `{}`: {}\n\n", info.id, info.title);
        let _ = writeln!(page, "Extensions: {}. Described at <{}>.", extensions.join(", "), info.spec);
        if !info.dialects.is_empty() {
            page.push_str("\n| dialect | what | read | written |\n|---|---|---|---|\n");
        }
        for dialect in info.dialects {
            let mark = |yes: bool| if yes { "yes" } else { "no" };
            let (read, write) = (mark(dialect.read), mark(dialect.write));
            let _ =
                writeln!(page, "| `{}:{}` | {} | {read} | {write} |", info.id, dialect.name, dialect.title);
        }
        list_options(&mut page, info.options);
    }
    page.push_str("\n## Any target\n");
    list_options(&mut page, CONVERSION_OPTIONS);
    page.push_str(REQUESTS);
    let limits = Limits::default();
    page.push_str("\n## Limits\n\n| limit | default | what it bounds |\n|---|---|---|\n");
    let _ = writeln!(
        page,
        "| `--max-alloc` | {} bytes | memory that a run may hold at a time |",
        limits.max_alloc
    );
    let _ = writeln!(page, "| `--max-depth` | {} | how deep types and values nest |", limits.max_depth);
    let _ =
        writeln!(page, "| `--max-ratio` | {} | bytes that one compressed byte becomes |", limits.max_ratio);
    let _ = writeln!(
        page,
        "| `--max-spool` | {} bytes | bytes of a stream that are spooled, where it must be read at any offset; never more than the temporary folder has room for |",
        limits.max_spool
    );
    let _ = writeln!(
        page,
        "| `--max-free-rows` | {} | rows that take no bytes in the file |",
        limits.max_free_rows
    );
    page
}
