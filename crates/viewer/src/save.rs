//! The plan of a conversion, and the conversion: into the folder where the server was started; existing files are never
//! replaced.

use std::path::Path;

use pentaglot::hub::LossKinds;
use pentaglot::job::{Conversion, ConvertOptions};
use pentaglot::{Error, Result};
use serde_json::{Value, json};

use crate::State;
use crate::files::File;

fn options(state: &State, file: &File, request: &Value) -> ConvertOptions {
    let mut options = ConvertOptions::default();
    options.open = file.open_options(state);
    options.to = request["to"].as_str().map(str::to_owned);
    options.filter = request["filter"].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    if request["allow_lossy"] == true {
        options.allow_lossy = LossKinds::ALL;
    }
    options
}

/// The plan of saving, field by field, as in a dry run.
pub(crate) fn plan(state: &State, file: &File, request: &Value) -> Result<Value> {
    let mut options = options(state, file, request);
    options.allow_lossy = LossKinds::ALL;
    let name = state.options.folder.join("unnamed");
    let plan = Conversion::plan(&state.registry, &[&file.name], &name.to_string_lossy(), &options)?.plan;
    let steps: Vec<Value> = plan
        .steps
        .iter()
        .map(|step| {
            let kind = (!step.kinds.is_empty()).then(|| step.kinds.to_string());
            json!({
                "field": step.field, "from": step.from, "to": step.to,
                "verdict": step.verdict.name(), "kind": kind, "note": step.note,
            })
        })
        .collect();
    Ok(json!({ "verdict": plan.verdict().name(), "steps": steps }))
}

/// Converts the file.
pub(crate) fn save(state: &State, file: &File, request: &Value) -> Result<Value> {
    if state.options.read_only {
        return Err(Error::usage("this server was started to read only"));
    }
    let name = request["name"].as_str().unwrap_or_default();
    check_name(name)?;
    let path = state.options.folder.join(name);
    // A dangling link counts as existing.
    if path.symlink_metadata().is_ok() {
        return Err(Error::usage(format!("{name} exists already")));
    }
    let output = path.to_string_lossy().into_owned();
    let options = options(state, file, request);
    let report = Conversion::plan(&state.registry, &[&file.name], &output, &options)?.run(&output, false)?;
    Ok(json!({ "name": name, "rows": report.rows, "bytes": report.bytes, "notes": report.notes }))
}

/// Returns an error unless the name is a plain file name without a folder.
fn check_name(name: &str) -> Result<()> {
    let is_bare = Path::new(name).file_name().is_some_and(|file| file == name)
        && !name.contains(['/', '\\', ':', '\0']);
    let is_plain = name.len() <= 200 && !name.chars().any(char::is_control) && name != "-";
    match is_bare && is_plain && name != "." && name != ".." {
        true => Ok(()),
        false => Err(Error::usage("expected the name of a file without a folder")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_names_are_taken() {
        for name in ["x.parquet", "ä b.csv", ".hidden", "a..b"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "/x", "a/b", "../x", "a\\b", "C:x", "x\0", "x\n", "-", "a::b", "x/"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
