//! Columns that are chosen by position, left out, cast and renamed; the last rows, and random ones.

use crate::ErrorKind;
use crate::hub::LossKinds;
use crate::hub::type_text::print_schema;
use crate::job::*;
use crate::registry::Registry;
use crate::sink::Sink;
use crate::source::Source;
use crate::testing::conformance::collect;

const TABLE: &str = "id,price,day,note\n1,2.50,2024-01-05,a\n2,,2024-01-06,b\n300,9.25,2024-01-07,c\n";

fn opened(name: &str, text: &str) -> Opened {
    let source = Source::from_bytes(name, text.as_bytes().to_vec());
    open_source(&Registry::default(), source, None, &OpenOptions::default()).unwrap()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn changes(exclude: &[&str], cast: &[(&str, &str)], rename: &[(&str, &str)]) -> ColumnChanges {
    let exclude = exclude.iter().map(ToString::to_string).collect();
    ColumnChanges { exclude, cast: pairs(cast), rename: pairs(rename) }
}

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(ToString::to_string).collect())
}

/// The table as CSV, with its type.
fn converted(options: ConvertOptions) -> crate::Result<(String, String)> {
    let target = target(&Registry::default(), "csv").unwrap();
    let conversion = Conversion::plan_opened(opened("x.csv", TABLE), target, None, &options)?;
    let schema = print_schema(conversion.schema());
    let (sink, memory) = Sink::memory();
    conversion.run_into(sink)?;
    Ok((schema, String::from_utf8(memory.take()).unwrap()))
}

fn with(columns: Option<Vec<String>>, changes: ColumnChanges) -> crate::Result<(String, String)> {
    let mut options = ConvertOptions::default();
    options.columns = columns;
    options.changes = changes;
    converted(options)
}

#[test]
fn columns_are_chosen_by_place_where_no_column_has_that_name() {
    let found = |columns: &[&str]| with(names(columns), ColumnChanges::default()).unwrap().0;
    assert_eq!(found(&["2", "id"]), "struct{day: ?date32, id: ?int64}");
    assert_eq!(found(&["0..2", "3.."]), "struct{id: ?int64, price: ?float64, note: ?utf8}");
    let error = with(names(&["4"]), ColumnChanges::default()).unwrap_err();
    assert!(error.to_string().starts_with("there is no column \"4\" (there is id, "), "{error}");
    // A name takes precedence over a position.
    let numbers = opened("x.csv", "1,0\na,b\n");
    let mut view = View::default();
    view.columns = names(&["0", "1"]);
    assert_eq!(print_schema(&numbers.rows(&view).unwrap().schema()), "struct{'0': ?utf8, '1': ?utf8}");
}

#[test]
fn columns_are_left_out_cast_and_renamed() {
    let (schema, text) =
        with(None, changes(&["note", "2"], &[("price", "decimal128[10, 2]")], &[("id", "key")])).unwrap();
    assert_eq!(schema, "struct{key: ?int64, price: ?decimal128[10, 2]}");
    assert_eq!(text, "key,price\n1,2.50\n2,\n300,9.25\n");
    // Names are those of the file; a new name may be an old one.
    let swapped = changes(&[], &[("id", "dynd:string")], &[("id", "note"), ("note", "id")]);
    let (schema, text) = with(names(&["id", "note"]), swapped).unwrap();
    assert_eq!(schema, "struct{note: ?utf8, id: ?utf8}");
    assert_eq!(text, "note,id\n1,a\n2,b\n300,c\n");
    for (bad, expected) in [
        (changes(&["x"], &[], &[]), "there is no column \"x\" (there is id, price, day, note)"),
        (changes(&["0.."], &[], &[]), "no column is left"),
        (changes(&["id"], &[("id", "utf8")], &[]), "there is no column \"id\" among those that are chosen"),
        (changes(&[], &[], &[("id", "note")]), "two columns would have the name \"note\""),
        (changes(&[], &[("id", "int33")], &[]), "the type \"int33\" of column \"id\""),
        (
            changes(&[], &[("id", "var * int8")], &[]),
            "expected the type of a value, found that of data of the shape array",
        ),
    ] {
        let error = with(None, bad).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(expected), "{error}");
    }
    let matrix = opened("x.json", "[[1,2],[3,4]]");
    let error = matrix.changed(None, &changes(&[], &[("col_0", "int8")], &[])).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    let mut view = View::default();
    view.changes = changes(&["0"], &[], &[]);
    assert_eq!(print_schema(&matrix.rows(&view).unwrap().schema()), "matrix[2, 1, int64]");
}

#[test]
fn a_cast_is_planned_checked_and_allowed_like_any_other_step() {
    let error = with(None, changes(&[], &[("id", "int8")], &[("id", "key")])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lossy);
    assert!(error.to_string().starts_with("csv: row 2, column \"key\": "), "{error}");
    let mut options = ConvertOptions::default();
    options.columns = names(&["id"]);
    options.changes = changes(&[], &[("id", "int8")], &[]);
    options.allow_lossy = LossKinds::ALL;
    let conversion = Conversion::plan_opened(
        opened("x.csv", TABLE),
        target(&Registry::default(), "csv").unwrap(),
        None,
        &options,
    )
    .unwrap();
    assert_eq!(conversion.plan.steps[0].to_string(), "id: ?int64 -> ?int8: checked, range");
    let report = conversion.run_into(Sink::memory().0).unwrap();
    assert_eq!(report.lost.len(), 1);
    assert_eq!(converted(options).unwrap().1, "id\n1\n2\n\"\"\n".replace("\"\"", ""));
    // A view allows no loss.
    let mut view = View::default();
    view.changes = changes(&[], &[("day", "null")], &[]);
    assert_eq!(opened("x.csv", TABLE).rows(&view).err().unwrap().kind(), ErrorKind::Lossy);
}

#[test]
fn rows_of_changed_columns_are_read_where_they_are() {
    let mut view = View::default();
    view.changes = changes(&["note"], &[("id", "utf8")], &[("day", "date")]);
    view.filter = Some("id > 1".to_owned());
    view.rows = Some(1..9);
    let batch = collect(opened("x.csv", TABLE).rows(&view).unwrap()).unwrap();
    assert_eq!(
        (batch.num_rows(), print_schema(&batch.schema())),
        (1, "struct{id: ?utf8, price: ?float64, date: ?date32}".to_owned())
    );
    assert_eq!(opened("x.csv", TABLE).changed(None, &view.changes).unwrap().count(None).unwrap(), 3);
}

#[test]
fn the_last_rows_and_random_rows_keep_their_order() {
    let rows = 1000;
    let text: String = (0..rows).fold("n\n".to_owned(), |text, row| text + &format!("{row}\n"));
    let all = opened("x.csv", &text);
    assert_eq!(all.last_rows(3).unwrap(), 997..1000);
    assert_eq!(all.last_rows(5000).unwrap(), 0..1000);
    let numbers = |opened: &Opened, view: &View| -> Vec<i64> {
        let batch = collect(opened.rows(view).unwrap()).unwrap();
        use arrow_array::cast::AsArray;
        batch.column(0).as_primitive::<arrow_array::types::Int64Type>().values().to_vec()
    };
    for batch_rows in [0, 1, 7] {
        let mut view = View::default();
        view.batch_rows = batch_rows;
        let sample = all.sampled(20, 7).unwrap();
        let found = numbers(&sample, &view);
        assert_eq!((found.len(), sample.count(None).unwrap()), (20, 20));
        assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
        assert_eq!(found, numbers(&all.sampled(20, 7).unwrap(), &View::default()));
        view.rows = Some(5..8);
        assert_eq!(numbers(&sample, &view), found[5..8]);
    }
    assert_eq!(numbers(&all.sampled(5000, 1).unwrap(), &View::default()).len(), 1000);
    assert_eq!(all.sampled(0, 1).unwrap().rows(&View::default()).unwrap().count(), 0);
    let filtered = all.filtered("n < 10").unwrap();
    assert_eq!(filtered.last_rows(2).unwrap(), 8..10);
    assert!(numbers(&filtered.sampled(3, 1).unwrap(), &View::default()).iter().all(|number| *number < 10));
    let matrix = opened("x.json", "[[1,2],[3,4],[5,6]]").sampled(2, 0).unwrap();
    assert_eq!(collect(matrix.rows(&View::default()).unwrap()).unwrap().num_rows(), 2);
}

#[test]
fn pairs_are_split_outside_of_brackets_and_quotes() {
    let cast = "a=timestamp[us, 'Europe/Zurich'],b\\=c=struct{x: int8, 'y,z': utf8}";
    let expected = [("a", "timestamp[us, 'Europe/Zurich']"), ("b=c", "struct{x: int8, 'y,z': utf8}")];
    assert_eq!(parse_casts(cast).unwrap(), pairs(&expected));
    assert_eq!(parse_renames("a=b,c\\,d=e").unwrap(), pairs(&[("a", "b"), ("c,d", "e")]));
    for bad in ["a", "a=", "a=b,", "a=b,c"] {
        assert_eq!(parse_renames(bad).unwrap_err().kind(), ErrorKind::Usage, "{bad}");
    }
}
