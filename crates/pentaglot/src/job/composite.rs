//! Writes a file of several structures: each structure of the type is written from its own input, in the order of the
//! file.

use std::io::{Read, Write};

use super::conversion::Conversion;
use super::convert_options::ConvertOptions;
use super::names::split_member;
use super::open::{self, Target};
use super::report::Report;
use super::types::Language;
use crate::error::{Error, Hint, Result, count, list};
use crate::formats::sds::{PREFIX, SdsType, is_gfa};
use crate::hub::Plan;
use crate::registry::Registry;
use crate::sink::Sink;

/// Which types of an sds job describe its inputs, and which its output.
pub(super) struct Types {
    pub(super) input: Option<String>,
    pub(super) output: Option<String>,
}

/// A target type (`as_type`) describes the output. An input type (`type_text`) describes the inputs; but if the output
/// is sds, has no target type, and no input is a member of an sds file, it describes the output.
pub(super) fn types(
    registry: &Registry,
    inputs: &[String],
    target: &Target,
    options: &ConvertOptions,
) -> Result<Types> {
    let is_target = target.format.info().id == "sds";
    let given = options.open.type_text.clone();
    if let Some(text) = options.as_type.as_deref().filter(|text| Language::is_sds(text)) {
        if !is_target {
            let id = target.format.info().id;
            return Err(Error::usage(format!("a type of sds does not describe an output of {id}")));
        }
        return Ok(Types { input: given, output: Some(text.to_owned()) });
    }
    let is_member = |input: &String| {
        let (path, member) = split_member(input);
        let format = registry.by_extension(path);
        member.is_some() && format.is_none_or(|format| format.info().id == "sds")
    };
    let is_output = is_target
        && options.as_type.is_none()
        && given.as_deref().is_some_and(Language::is_sds)
        && !inputs.iter().any(is_member);
    Ok(if is_output { Types { input: None, output: given } } else { Types { input: given, output: None } })
}

/// The member of a GBZ graph with its lines, if the output is GFA.
pub(super) fn member_for(target: &Target, output: &str) -> Option<&'static str> {
    (target.format.info().id == "sds" && is_gfa(target.dialect, Some(output))).then_some("gfa")
}

/// The structures after the first: they are written one after the other.
pub(super) struct Composite {
    kind: SdsType,
    /// The optional structures that are absent.
    absent: Vec<String>,
    others: Vec<Conversion>,
}

/// Plans a file of this type from inputs, one per structure, in order.
pub(super) fn plan(
    registry: &Registry,
    inputs: &[String],
    target: &Target,
    types: Types,
    options: &ConvertOptions,
) -> Result<Conversion> {
    let text = types.output.unwrap_or_default();
    let limits = options.open.budget.limits();
    let kind = SdsType::parse_within(text.trim_start().strip_prefix(PREFIX).unwrap_or(&text), limits);
    let kind = kind.map_err(|error| super::types::as_usage("the wanted type", error))?;
    if let Some(dialect) = target.dialect {
        return Err(Error::usage(format!("both a kind (sds:{dialect}) and a type are given")));
    }
    let absent = absent(options, &kind)?;
    let leaves: Vec<(String, &SdsType)> =
        kind.leaves().into_iter().filter(|(path, _)| !is_within(path, &absent)).collect();
    if leaves.len() != inputs.len() {
        return Err(wrong_count(&kind, &absent, &leaves, inputs.len()));
    }
    if leaves.len() > 1 && (options.columns.is_some() || options.rows.is_some() || options.filter.is_some()) {
        return Err(Error::usage("columns and rows of several structures cannot be chosen"));
    }
    let mut fields = Vec::new();
    for ((path, leaf), input) in leaves.iter().zip(inputs) {
        let mut own = options.clone();
        own.as_type = None;
        own.open.type_text = types.input.clone();
        // A single element is read back as a value, which cannot be compared with the rows written.
        #[cfg(feature = "dynd")]
        {
            own.verify &= !matches!(leaf, SdsType::Element);
        }
        own.open.options.remove("absent");
        own.open.options.remove("out.absent");
        let opened = open::open(registry, input, &own.open).map_err(|error| error.in_input(input))?;
        let target = leaf_target(target, leaf)?;
        own.write_type = target.dialect.is_none().then(|| format!("{PREFIX}{leaf}"));
        let mut conversion = Conversion::plan_opened(opened, target, None, &own);
        if let Ok(conversion) = &mut conversion {
            prefix(&mut conversion.plan, path);
        }
        fields.push(conversion.map_err(|error| error.in_input(input))?);
    }
    let mut others = fields.split_off(1.min(fields.len()));
    let mut first = fields.pop().ok_or_else(|| Error::usage("a type without a structure that is present"))?;
    others.iter_mut().for_each(|other| first.plan.steps.extend(other.plan.steps.iter().cloned()));
    first.composite = Some(Composite { kind, absent, others });
    Ok(first)
}

/// Most kinds are dialects; a single element and items of several parts need their type.
fn leaf_target(target: &Target, leaf: &SdsType) -> Result<Target> {
    let name = match leaf {
        SdsType::Items(1) => Some("vec".to_owned()),
        SdsType::Items(2) => Some("pairs".to_owned()),
        SdsType::Structure(kind) => Some(kind.name().to_owned()),
        _ => None,
    };
    let dialects = target.format.info().dialects;
    let dialect = dialects.iter().find(|dialect| Some(dialect.name) == name.as_deref());
    Ok(Target { format: target.format.clone(), dialect: dialect.map(|dialect| dialect.name) })
}

/// Names the structure in front of the fields of its plan.
fn prefix(plan: &mut Plan, path: &str) {
    for step in plan.steps.iter_mut().filter(|_| !path.is_empty()) {
        step.field = if step.field.is_empty() { path.to_owned() } else { format!("{path}.{}", step.field) };
    }
}

fn wrong_count(kind: &SdsType, absent: &[String], leaves: &[(String, &SdsType)], inputs: usize) -> Error {
    let names = list(leaves.iter().map(|(path, leaf)| format!("{path}: {leaf}")));
    let expected = count(leaves.len() as u64, "input");
    let error = Error::usage(format!("expected {expected} ({names}), found {inputs}"));
    let mut options = Vec::new();
    option_paths(kind, "", &mut options);
    if leaves.len() > inputs && options.iter().any(|option| !is_within(option, absent)) {
        return error.hint(Hint::Option("absent=NAME,…".into()));
    }
    error
}

/// The optional structures that the user declares absent.
fn absent(options: &ConvertOptions, kind: &SdsType) -> Result<Vec<String>> {
    let given = &options.open.options;
    let names = given.get("out.absent").or_else(|| given.get("absent")).unwrap_or_default();
    let names: Vec<String> =
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let mut known = Vec::new();
    option_paths(kind, "", &mut known);
    match names.iter().find(|name| !known.contains(name)) {
        None => Ok(names),
        Some(name) => {
            let known = if known.is_empty() { "none".to_owned() } else { list(&known) };
            Err(Error::usage(format!("option absent: the type has no option {name:?} (there is {known})")))
        }
    }
}

fn option_paths(kind: &SdsType, path: &str, paths: &mut Vec<String>) {
    match kind {
        SdsType::Struct(fields) => {
            for (name, kind) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                option_paths(kind, &path, paths);
            }
        }
        SdsType::Option(inner) => {
            paths.push(path.to_owned());
            option_paths(inner, path, paths);
        }
        _ => {}
    }
}

fn is_within(path: &str, absent: &[String]) -> bool {
    absent
        .iter()
        .any(|name| path == name || path.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// Runs the conversions of a composite, and joins their files.
pub(super) fn run(first: Conversion, composite: Composite, mut sink: Sink) -> Result<Report> {
    let scratch = |error| Error::io("cannot spool to a temporary file", error);
    let folder = tempfile::tempdir().map_err(scratch)?;
    let mut files = Vec::new();
    let mut report: Option<Report> = None;
    for (index, conversion) in std::iter::once(first).chain(composite.others).enumerate() {
        let path = folder.path().join(index.to_string());
        let own = conversion.run_into(Sink::create(&path, false)?.named(format!("structure {index}")))?;
        files.push((path, own.bytes));
        match &mut report {
            None => report = Some(own),
            Some(report) => report.add(own),
        }
    }
    let mut report = report.ok_or_else(|| Error::usage("no input"))?;
    let mut bytes = Vec::new();
    head(&composite.kind, "", &composite.absent, &mut files.iter().map(|(_, bytes)| *bytes), &mut bytes)?;
    let mut files = files.iter();
    for piece in bytes {
        match piece {
            Piece::Element(element) => sink.write_all(&element.to_le_bytes())?,
            Piece::File => {
                let Some((path, _)) = files.next() else { break };
                let mut file = std::fs::File::open(path).map_err(scratch)?;
                let mut buffer = [0; 64 << 10];
                loop {
                    let count = file.read(&mut buffer).map_err(scratch)?;
                    if count == 0 {
                        break;
                    }
                    sink.write_all(&buffer[..count])?;
                }
            }
        }
    }
    report.bytes = sink.finish()?;
    Ok(report)
}

/// A piece of the file.
enum Piece {
    /// The size of an option.
    Element(u64),
    /// The next structure.
    File,
}

/// The pieces of a file of this type; `sizes` are the bytes of its structures. Returns the bytes of all
/// pieces.
fn head(
    kind: &SdsType,
    path: &str,
    absent: &[String],
    sizes: &mut dyn Iterator<Item = u64>,
    pieces: &mut Vec<Piece>,
) -> Result<u64> {
    match kind {
        SdsType::Struct(fields) => {
            let mut sum = 0;
            for (name, kind) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                sum += head(kind, &path, absent, sizes, pieces)?;
            }
            Ok(sum)
        }
        SdsType::Option(_) if absent.iter().any(|name| name == path) => {
            pieces.push(Piece::Element(0));
            Ok(8)
        }
        SdsType::Option(inner) => {
            let mut content = Vec::new();
            let bytes = head(inner, path, absent, sizes, &mut content)?;
            pieces.push(Piece::Element(bytes / 8));
            pieces.append(&mut content);
            Ok(8 + bytes)
        }
        _ => {
            pieces.push(Piece::File);
            sizes.next().ok_or_else(|| Error::usage("fewer inputs than structures"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, RecordBatch, UInt64Array};

    use super::*;
    use crate::job::View;

    const TYPE: &str = "sds:{n: u64, index: ?int, a: ?{pos: sparse, bits: ?wm}, rest: [pair], rows: [u64*3]}";

    /// A table of these columns as an Arrow file.
    fn table(folder: &Path, name: &str, columns: &[&[u64]]) -> String {
        let names = ["x", "y", "z"];
        let array = |values: &[u64]| -> ArrayRef { Arc::new(UInt64Array::from(values.to_vec())) };
        let columns = names.into_iter().zip(columns).map(|(name, values)| (name, array(values)));
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let path = folder.join(name).to_str().unwrap().to_owned();
        let mut writer =
            arrow_ipc::writer::FileWriter::try_new(std::fs::File::create(&path).unwrap(), &rows.schema())
                .unwrap();
        writer.write(&rows).unwrap();
        writer.finish().unwrap();
        path
    }

    fn convert(inputs: &[String], output: &str, options: &ConvertOptions) -> Result<Report> {
        Conversion::plan(&Registry::default(), inputs, output, options)?.run(output, true)
    }

    fn read(name: &str, kind: &str) -> Vec<String> {
        let mut options = open::OpenOptions::default();
        options.type_text = Some(kind.to_owned());
        let opened = open::open(&Registry::default(), name, &options).unwrap();
        let mut rows = Vec::new();
        for batch in opened.rows(&View::default()).unwrap() {
            let batch = batch.unwrap();
            let cell = |row| arrow_cast::display::array_value_to_string(batch.column(0), row).unwrap();
            rows.extend((0..batch.num_rows()).map(cell));
        }
        rows
    }

    #[test]
    fn inputs_are_given_to_structures_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let n = table(folder, "n.arrow", &[&[42]]);
        let index = table(folder, "index.arrow", &[&[7, 1, 3]]);
        let pos = table(folder, "pos.arrow", &[&[3, 17, 40]]);
        let pairs = table(folder, "pairs.arrow", &[&[1, 3], &[2, 4]]);
        let items = table(folder, "items.arrow", &[&[1, 4], &[2, 5], &[3, 6]]);
        let output = folder.join("out.sds").to_str().unwrap().to_owned();
        let mut options = ConvertOptions::default();
        options.as_type = Some(TYPE.to_owned());
        let all = [&n, &index, &pos, &index, &pairs, &items].map(String::clone);
        let report = convert(&all, &output, &options).unwrap();
        assert_eq!(report.bytes, std::fs::metadata(&output).unwrap().len());
        let member = |name: &str| read(&format!("{output}::{name}"), TYPE);
        assert_eq!(member("n"), ["42"]);
        assert_eq!(member("index"), ["7", "1", "3"]);
        assert_eq!(member("a.pos"), ["3", "17", "40"]);
        assert_eq!(member("a.bits"), ["7", "1", "3"]);
        assert_eq!(member("rest"), ["{_0: 1, _1: 2}", "{_0: 3, _1: 4}"]);
        assert_eq!(member("rows"), ["[1, 2, 3]", "[4, 5, 6]"]);

        // A member is written with its own type, given as that of the input.
        let copy = folder.join("copy.sds").to_str().unwrap().to_owned();
        let mut single = ConvertOptions::default();
        single.open.type_text = Some(TYPE.to_owned());
        convert(&[format!("{output}::a.pos")], &copy, &single).unwrap();
        assert_eq!(read(&copy, "sds:sparse"), ["3", "17", "40"]);

        // Optional structures are declared absent by name; the type may also be given as that of the input.
        let mut options = ConvertOptions::default();
        options.open.type_text = Some(TYPE.to_owned());
        options.open.options.set("absent", "index,a");
        convert(&[&n, &pairs, &items].map(String::clone), &output, &options).unwrap();
        assert_eq!(member("index"), [""; 0]);
        assert_eq!(member("a.bits"), [""; 0]);
        assert_eq!(member("rest").len(), 2);
        let refused = |inputs: &[&String], options: &ConvertOptions| {
            let inputs: Vec<String> = inputs.iter().map(|input| (*input).clone()).collect();
            convert(&inputs, &output, options).unwrap_err().to_string()
        };
        assert!(
            refused(&[&n, &pairs], &options)
                .contains("expected 3 inputs (n: u64, rest: [pair], rows: [u64*3]), found 2")
        );
        assert!(refused(&[&index, &pairs, &items], &options).contains("sds:u64 holds one integer"));
        assert!(refused(&[&n, &items, &items], &options).contains(" holds two columns of integers"));
        options.open.options.set("absent", "n");
        assert!(
            refused(&[&n], &options).contains("the type has no option \"n\" (there is index, a, a.bits)")
        );
        options.to = Some("csv".to_owned());
        options.as_type = Some(TYPE.to_owned());
        assert!(refused(&[&n], &options).contains("does not describe an output of csv"));
    }
}
