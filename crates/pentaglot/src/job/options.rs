//! Distributes `key=value` options to the reader and the writer.
//!
//! A key applies to each side whose format has that option; `in.KEY` and `out.KEY` apply to one side only and take
//! precedence there.

use crate::error::{Error, Result};
use crate::formats::{FormatInfo, OptionInfo, OptionMap, Side};

const FORM: &str = "as";
const SIZE: &str = "shape";
const SPLIT: &str = "split-rows";
#[cfg(feature = "ds")]
const IMAGE_FILES: &str = "image-files";
/// The option of formats without nulls.
const NULLS: &str = "nulls";

/// The options of conversions, whatever the formats are.
pub const CONVERSION_OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        key: FORM,
        side: Side::Write,
        values: "auto|table|matrix|sparse|columns|rows|coo",
        default: "auto",
        help: "the form that the data gets: a matrix, its rows or columns as a table, its entries as a table",
    },
    OptionInfo {
        key: SIZE,
        side: Side::Write,
        values: "ROWSxCOLS",
        default: "the largest numbers",
        help: "the size of the sparse matrix that a table of entries becomes",
    },
    OptionInfo {
        key: SPLIT,
        side: Side::Write,
        values: "N",
        default: "one file",
        help: "files of N rows each: NAME-00000.EXT and so on",
    },
    #[cfg(feature = "ds")]
    OptionInfo {
        key: IMAGE_FILES,
        side: Side::Write,
        values: "DIR",
        default: "none",
        help: "images become files of a folder and their names, or names become images",
    },
];

fn prefix(side: Side) -> &'static str {
    if side == Side::Read { "in." } else { "out." }
}

/// The value of this key for this side.
fn given<'o>(options: &'o OptionMap, side: Side, key: &str) -> Option<&'o str> {
    options.get(&format!("{}{key}", prefix(side))).or_else(|| options.get(key))
}

/// The options of a format for one side.
pub(super) fn of_side(options: &OptionMap, side: Side, info: &FormatInfo) -> OptionMap {
    let mut own = OptionMap::default();
    for option in info.options.iter().filter(|option| option.side.includes(side)) {
        if let Some(value) = given(options, side, option.key) {
            own.set(option.key, value);
        }
    }
    own
}

/// The requested form of the output.
pub(super) fn form(options: &OptionMap) -> &str {
    given(options, Side::Write, FORM).unwrap_or("auto")
}

/// The size of the matrix that a table of entries becomes: `shape=ROWSxCOLS`.
pub(super) fn size(options: &OptionMap) -> Result<Option<(u64, u64)>> {
    let Some(text) = given(options, Side::Write, SIZE) else { return Ok(None) };
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| i64::try_from(*number).is_ok());
    let size = text.split_once(['x', 'X']).and_then(|(rows, cols)| Some((number(rows)?, number(cols)?)));
    match size {
        Some(size) => Ok(Some(size)),
        None => Err(Error::usage(format!("option {SIZE}: expected ROWSxCOLS such as 3x4, found {text:?}"))),
    }
}

/// How many rows go to one file, if the output is split.
pub(super) fn split_rows(options: &OptionMap) -> Result<Option<u64>> {
    let Some(text) = given(options, Side::Write, SPLIT) else { return Ok(None) };
    match text.parse::<u64>() {
        Ok(rows) if rows > 0 => Ok(Some(rows)),
        _ => Err(Error::usage(format!("option {SPLIT}: expected a whole number from 1 on, found {text:?}"))),
    }
}

/// Whether nulls become NaN in this target.
pub(super) fn nan_for_nulls(options: &OptionMap) -> bool {
    options.get(NULLS) == Some("nan")
}

/// The folder of image files.
#[cfg(feature = "ds")]
pub(super) fn image_files(options: &OptionMap) -> Option<&str> {
    given(options, Side::Write, IMAGE_FILES)
}

/// The first of the given options that belong to a conversion, not to a format.
pub(super) fn of_conversion(options: &OptionMap) -> Option<&'static str> {
    let mut keys = CONVERSION_OPTIONS.iter().map(|option| option.key);
    keys.find(|key| given(options, Side::Write, key).is_some())
}

/// Notes on keys without `in.` or `out.` that reach both sides.
pub(super) fn notes(options: &OptionMap, inputs: &[&FormatInfo], output: &FormatInfo) -> Vec<String> {
    let has = |info: &FormatInfo, side, key: &str| {
        info.options.iter().any(|option| option.key == key && option.side.includes(side))
    };
    let is_for = |side: Side, key: &str| options.get(&format!("{}{key}", prefix(side))).is_none();
    let mut found: Vec<String> = Vec::new();
    for key in options.keys() {
        let is_read = is_for(Side::Read, key) && inputs.iter().any(|info| has(info, Side::Read, key));
        if is_read && is_for(Side::Write, key) && has(output, Side::Write, key) {
            let note = format!("{key} applies to input and output; out.{key} is for the output alone");
            if !found.contains(&note) {
                found.push(note);
            }
        }
    }
    found
}

/// Errs if a key reaches no side of these formats.
pub(super) fn check(options: &OptionMap, inputs: &[&FormatInfo], output: Option<&FormatInfo>) -> Result<()> {
    for key in options.keys() {
        check_key(key, inputs, output)?;
    }
    Ok(())
}

fn check_key(key: &str, inputs: &[&FormatInfo], output: Option<&FormatInfo>) -> Result<()> {
    let (side, name) = match (key.strip_prefix("in."), key.strip_prefix("out.")) {
        (Some(name), _) => (Side::Read, name),
        (_, Some(name)) => (Side::Write, name),
        _ => (Side::Both, key),
    };
    let reads = inputs.iter().copied().filter(|_| side != Side::Write).map(|info| (info, Side::Read));
    let writes = output.into_iter().filter(|_| side != Side::Read).map(|info| (info, Side::Write));
    let sides: Vec<(&FormatInfo, Side)> = reads.chain(writes).collect();
    if sides.is_empty() {
        return Err(Error::usage(format!("option {key:?}: nothing is written here")));
    }
    let mut known: Vec<&str> = Vec::new();
    if sides.iter().any(|(_, side)| *side == Side::Write) {
        known.extend(CONVERSION_OPTIONS.iter().map(|option| option.key));
    }
    for (info, side) in &sides {
        known.extend(
            info.options.iter().filter(|option| option.side.includes(*side)).map(|option| option.key),
        );
    }
    if known.contains(&name) {
        return Ok(());
    }
    for (info, side) in &sides {
        if let Some(option) = info.options.iter().find(|option| option.key == name) {
            let here = if *side == Side::Read { "read" } else { "written" };
            let (id, use_of) = (info.id, option.side.name());
            return Err(Error::usage(format!("option {key:?} is for {use_of} {id}, which is {here} here")));
        }
    }
    known.sort_unstable();
    known.dedup();
    let near = known.iter().map(|known| (strsim::damerau_levenshtein(known, name), *known)).min();
    Err(Error::usage(match near {
        Some((distance, near)) if distance <= 1 + name.len() / 4 => {
            let prefix = key.strip_suffix(name).unwrap_or_default();
            format!("unknown option {key:?}: did you mean {:?}?", format!("{prefix}{near}"))
        }
        _ if known.is_empty() => format!("unknown option {key:?} (known: none here)"),
        _ => format!("unknown option {key:?} (known: {})", known.join(", ")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn map(pairs: &[(&str, &str)]) -> OptionMap {
        OptionMap::new(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_key_reaches_the_side_that_has_it() {
        let registry = Registry::default();
        let info = |id: &str| registry.get(id).unwrap().info();
        let both = map(&[("delimiter", ";"), ("out.delimiter", ","), ("utf8", "bytes"), ("level", "3")]);
        assert_eq!(of_side(&both, Side::Read, info("csv")), map(&[("delimiter", ";")]));
        assert_eq!(of_side(&both, Side::Write, info("csv")), map(&[("delimiter", ",")]));
        assert_eq!(of_side(&both, Side::Read, info("bsondf")), map(&[("utf8", "bytes")]));
        assert_eq!(of_side(&both, Side::Write, info("bsondf")), map(&[("level", "3")]));
        // The last of a key wins, and a side's own key wins over both.
        let order = map(&[("in.delimiter", "a"), ("delimiter", "b"), ("in.delimiter", "c")]);
        assert_eq!(of_side(&order, Side::Read, info("csv")), map(&[("delimiter", "c")]));
        assert_eq!(form(&map(&[("out.as", "coo"), ("as", "table")])), "coo");
        check(&both, &[info("csv"), info("bsondf")], Some(info("bsondf"))).unwrap_err();
        check(&map(&[("as", "coo"), ("in.utf8", "text")]), &[info("bsondf")], Some(info("csv"))).unwrap();
    }

    #[test]
    fn a_key_that_reaches_both_sides_is_noted_once() {
        let registry = Registry::default();
        let info = |id: &str| registry.get(id).unwrap().info();
        let of = |pairs: &[(&str, &str)], input, output| notes(&map(pairs), &[info(input)], info(output));
        let expected = ["delimiter applies to input and output; out.delimiter is for the output alone"];
        assert_eq!(of(&[("delimiter", ";")], "csv", "csv"), expected);
        assert_eq!(of(&[("delimiter", ";"), ("delimiter", "|")], "csv", "csv"), expected);
        for (pairs, input, output) in [
            (&[("delimiter", ";")][..], "csv", "parquet"),
            (&[("delimiter", ";"), ("out.delimiter", "tab")], "csv", "csv"),
            (&[("in.delimiter", ";")], "csv", "csv"),
            // It is for reading only.
            (&[("skip", "1")], "csv", "csv"),
        ] {
            assert_eq!(of(pairs, input, output), [""; 0], "{pairs:?}");
        }
    }

    #[test]
    fn keys_that_reach_nothing_are_refused_with_what_helps() {
        let registry = Registry::default();
        let info = |id: &str| registry.get(id).unwrap().info();
        let cases = [
            (
                "colour",
                "bsondf",
                Some("parquet"),
                "unknown option \"colour\" (known: as, cdc, compression, fields, image-files, shape, split-rows, utf8)",
            ),
            (
                "compresion",
                "csv",
                Some("parquet"),
                "unknown option \"compresion\": did you mean \"compression\"?",
            ),
            (
                "in.delimeter",
                "csv",
                Some("csv"),
                "unknown option \"in.delimeter\": did you mean \"in.delimiter\"?",
            ),
            ("colour", "jsonl", None, "unknown option \"colour\" (known: sample)"),
            ("nulls", "bsondf", Some("csv"), "option \"nulls\" is for writing bsondf, which is read here"),
            ("times", "csv", Some("dynd"), "option \"times\" is for reading dynd, which is written here"),
            (
                "in.level",
                "bsondf",
                Some("bsondf"),
                "option \"in.level\" is for writing bsondf, which is read here",
            ),
            (
                "out.utf8",
                "bsondf",
                Some("bsondf"),
                "option \"out.utf8\" is for reading bsondf, which is written here",
            ),
            ("out.header", "csv", None, "option \"out.header\": nothing is written here"),
            (
                "as",
                "csv",
                None,
                "unknown option \"as\" (known: comment, delimiter, encoding, header, null, quote, sample, skip, trim)",
            ),
        ];
        for (key, input, output, expected) in cases {
            let error = check(&map(&[(key, "x")]), &[info(input)], output.map(info)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
