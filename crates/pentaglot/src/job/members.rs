//! Converts all members of a file at once: into an archive, or into a folder with a file for each. All of them appear,
//! or none.

use std::path::{Component, Path, PathBuf};

use super::conversion::Conversion;
use super::convert_options::ConvertOptions;
use super::names::split_member;
use super::open::{self, Opened, Target};
use super::report::Report;
use crate::error::{Context, Error, Result};
use crate::formats::{ArchivePlan, Side, WriteOptions};
use crate::hub::{LossRecord, Lost, Plan};
use crate::redact::redacted;
use crate::registry::Registry;
use crate::sink::{Sink, SinkGroup};

/// The format of a file in a folder, where none is named: what the members of an archive are.
pub(super) const MEMBER_FORMAT: &str = "npy";

/// A planned conversion of all members of a file.
///
/// ```no_run
/// use pentaglot::Registry;
/// use pentaglot::job::{ConvertOptions, Members};
/// let options = ConvertOptions::default();
/// if let Some(members) = Members::plan(&Registry::default(), &["all.npz"], "folder/", &options)? {
///     members.run(false)?;
/// }
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub struct Members {
    output: PathBuf,
    work: Work,
    options: ConvertOptions,
    /// The effect on each member.
    pub plan: Plan,
}

enum Work {
    /// A file for each.
    Folder(Vec<(PathBuf, Conversion)>),
    /// The members of one file, in the order of the plan.
    Archive { members: Vec<(String, Opened)>, plan: Box<dyn ArchivePlan>, lost: LossRecord },
}

impl Members {
    /// Plans the conversion of all members of the only input, if it has several of which none is named, and the output
    /// is a folder or a format with members. Otherwise `None`.
    pub fn plan(
        registry: &Registry,
        inputs: &[impl AsRef<str>],
        output: &str,
        options: &ConvertOptions,
    ) -> Result<Option<Self>> {
        let [input] = inputs else { return Ok(None) };
        let input = input.as_ref();
        let (path, member) = split_member(input);
        // Only local files can appear together.
        let of_output = |error: Error| error.in_output(redacted(output));
        let is_local = Path::new(path).is_file() && registry.remote(output).map_err(of_output)?.is_none();
        if input == "-" || member.is_some() || !is_local {
            return Ok(None);
        }
        let is_folder = output.ends_with(['/', std::path::MAIN_SEPARATOR]) || Path::new(output).is_dir();
        let target = match (&options.to, is_folder) {
            (Some(text), _) => Some(open::target(registry, text).map_err(of_output)?),
            (None, true) => None,
            (None, false) => registry.by_extension(output).map(|format| Target { format, dialect: None }),
        };
        let mut archive = None;
        let lost = LossRecord::default();
        if let (Some(target), false) = (&target, is_folder) {
            let info = target.format.info();
            let mut write = WriteOptions::default();
            write.options = super::options::of_side(&options.open.options, Side::Write, info);
            write.budget = options.open.budget.clone();
            write.control = options.open.control.clone();
            write.allow_lossy = options.allow_lossy;
            write.lost = lost.clone();
            archive = target.format.archive(&write)?;
        }
        if !is_folder && archive.is_none() {
            return Ok(None);
        }
        // Who reads the members counts their bytes.
        let mut look = options.open.clone();
        look.again = true;
        let opened = match open::open(registry, input, &look) {
            // The plain conversion says what is wrong with its input.
            Err(_) if !is_folder => return Ok(None),
            opened => opened?,
        };
        let summary = opened.document.summary();
        if summary.members.is_empty() || !is_folder && summary.check_member().is_ok() {
            return Ok(None);
        }
        let members = summary.members.clone();
        if is_folder {
            let target = match target {
                Some(target) => target,
                None => open::target(registry, MEMBER_FORMAT)?,
            };
            return Members::into_folder(registry, (input, &members), output, target, options).map(Some);
        }
        let (Some(target), Some(mut archive)) = (target, archive) else { return Ok(None) };
        check_whole(options)?;
        let info = target.format.info();
        super::options::check(&options.open.options, &[opened.format.info()], Some(info))?;
        if same_file(path, output) {
            return Err(Error::usage("the output is the input itself").in_output(output));
        }
        options.open.control.expect_bytes(opened.source.len());
        let (mut plan, mut documents) = (Plan::default(), Vec::new());
        for member in members {
            let opened = open::open(registry, &format!("{input}::{member}"), &look)?;
            let steps = archive.member(&member, &opened.document.summary().schema);
            add_steps(&mut plan, &member, &steps);
            documents.push((member, opened));
        }
        let work = Work::Archive { members: documents, plan: archive, lost };
        Ok(Some(Members { output: output.into(), work, options: options.clone(), plan }))
    }

    fn into_folder(
        registry: &Registry,
        (input, members): (&str, &[String]),
        output: &str,
        target: Target,
        options: &ConvertOptions,
    ) -> Result<Self> {
        let extension = target.format.info().extensions.first().copied().unwrap_or_default();
        let mut options = options.clone();
        let mut conversions = Vec::new();
        let mut plan = Plan::default();
        let named = match target.dialect {
            Some(dialect) => format!("{}:{dialect}", target.format.info().id),
            None => target.format.info().id.to_owned(),
        };
        options.to = Some(named);
        for member in members {
            let path = member_path(Path::new(output), member, extension)?;
            let Some(name) = path.to_str() else {
                return Err(Error::usage(format!("{} is not UTF-8", path.display())));
            };
            let source = format!("{input}::{member}");
            let conversion = Conversion::plan(registry, &[source], name, &options).field(member.clone())?;
            add_steps(&mut plan, member, &conversion.plan);
            conversions.push((path, conversion));
        }
        Ok(Members { output: output.into(), work: Work::Folder(conversions), options, plan })
    }

    /// Writes all members; existing files are replaced only with `force`.
    pub fn run(self, force: bool) -> Result<Report> {
        self.plan.check(self.options.allow_lossy)?;
        match self.work {
            Work::Folder(conversions) => {
                let made = !self.output.is_dir();
                if made {
                    let cannot = |error| Error::io("cannot make the folder", error);
                    std::fs::create_dir(&self.output)
                        .map_err(|error| cannot(error).in_output(self.output.display().to_string()))?;
                }
                let written = write_folder(conversions, force);
                if made && written.is_err() {
                    // The folder is empty.
                    let _ = std::fs::remove_dir(&self.output);
                }
                written
            }
            Work::Archive { members, plan, lost } => {
                let sink = Sink::create(&self.output, force)?;
                let mut archive = plan.create(sink.packed_for(&self.output.to_string_lossy()))?;
                let mut report = Report::default();
                for (member, opened) in members {
                    let rows = opened.charged_rows(&opened.document.selection())?;
                    archive.member(rows).map_err(|error| error.field(member))?;
                    opened.control.check()?;
                }
                let written = archive.finish()?;
                (report.rows, report.bytes, report.notes) = (written.rows, written.bytes, written.notes);
                report.lost = lost.lost();
                Ok(report)
            }
        }
    }
}

/// Adds the steps of a member, under its name.
fn add_steps(plan: &mut Plan, member: &str, steps: &Plan) {
    for step in &steps.steps {
        let mut step = step.clone();
        step.field =
            if step.field.is_empty() { member.to_owned() } else { format!("{member}.{}", step.field) };
        plan.steps.push(step);
    }
}

/// Errs if the conversion is asked to change what it takes over: the members of an archive are taken as they are.
fn check_whole(options: &ConvertOptions) -> Result<()> {
    let changes = &options.changes;
    let asked = options.as_type.is_some()
        || options.columns.is_some()
        || options.rows.is_some()
        || options.filter.is_some()
        || !changes.exclude.is_empty()
        || !changes.cast.is_empty()
        || !changes.rename.is_empty();
    match (asked, super::options::of_conversion(&options.open.options)) {
        (false, None) => Ok(()),
        (true, _) => Err(Error::usage("rows, columns and types are chosen in one member, and none is named")),
        (false, Some(key)) => {
            Err(Error::usage(format!("option {key}: it is for one member, and none is named")))
        }
    }
}

fn write_folder(conversions: Vec<(PathBuf, Conversion)>, force: bool) -> Result<Report> {
    let group = SinkGroup::new(force);
    let mut report = Report::default();
    for (path, conversion) in conversions {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let own = conversion.run_into(group.create(&path)?).map_err(|error| error.field(name.clone()))?;
        report.rows += own.rows;
        report.bytes += own.bytes;
        let told = |note: String| format!("{name}: {note}");
        report.input_notes.extend(own.input_notes.into_iter().map(told));
        report.notes.extend(own.notes.into_iter().map(told));
        let column = |lost: &Lost| match lost.column.as_str() {
            "" => name.clone(),
            column => format!("{name}.{column}"),
        };
        report.lost.extend(own.lost.into_iter().map(|lost| Lost { column: column(&lost), ..lost }));
    }
    group.commit()?;
    Ok(report)
}

/// Where a member is written in a folder.
pub(super) fn member_path(folder: &Path, member: &str, extension: &str) -> Result<PathBuf> {
    let mut parts = Path::new(member).components();
    let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    if !plain || member.contains(['/', '\\', '\0']) {
        return Err(Error::usage(format!("member {member:?}: its name is no name of a file")));
    }
    Ok(folder.join(format!("{member}.{extension}")))
}

fn same_file(one: &str, other: &str) -> bool {
    match (Path::new(one).canonicalize(), Path::new(other).canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
