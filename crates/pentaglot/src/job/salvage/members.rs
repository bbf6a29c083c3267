//! All members of a damaged container, into another one or into a folder.

use std::path::Path;

use super::{Damaged, LostRows, Salvaged, is_damage};
use crate::error::{Error, ErrorKind, Result};
use crate::formats::{MissingPart, Side, WriteOptions};
use crate::job::conversion::{self, Conversion};
use crate::job::convert_options::ConvertOptions;
use crate::job::open::{self, Opened};
use crate::job::report::Report;
use crate::registry::Registry;
use crate::sink::{Sink, SinkGroup};

/// Writes the sound members, each as far as it is sound.
pub(super) fn salvage(
    registry: &Registry,
    damaged: &Damaged,
    fault: Option<&Error>,
    output: &str,
    options: &ConvertOptions,
) -> Result<Salvaged> {
    let summary = damaged.opened.document.summary();
    let is_folder = output.ends_with(['/', std::path::MAIN_SEPARATOR]) || Path::new(output).is_dir();
    let mut salvaged = Salvaged { lost_members: summary.missing_members.clone(), ..Salvaged::default() };
    let mut sound: Vec<(&str, Opened)> = Vec::new();
    for name in &summary.members {
        let part = summary.parts.iter().find(|part| part.path == *name);
        let bytes = part.map_or(0..0, |part| part.offset..part.offset.saturating_add(part.bytes));
        let lose = |reason: String| MissingPart { name: name.clone(), bytes: bytes.clone(), reason };
        let opened = match open::open_source(registry, damaged.source.clone(), Some(name), &options.open) {
            Ok(opened) => opened,
            Err(error) if is_damage(&error) || error.kind() == ErrorKind::Unsupported => {
                salvaged.lost_members.push(lose(error.to_string()));
                continue;
            }
            Err(error) => return Err(error),
        };
        let (found, saved) = damaged.find(&opened, None)?;
        // What is missing of the container is told once.
        let lost_rows = found.lost_rows;
        if found.rows == 0 && !lost_rows.is_empty() {
            salvaged.lost_members.extend(lost_rows.first().map(|lost| lose(lost.reason.clone())));
            continue;
        }
        salvaged.rows += found.rows;
        let named = |lost: LostRows| LostRows { member: Some(name.clone()), ..lost };
        salvaged.lost_rows.extend(lost_rows.into_iter().map(named));
        let named = |lost: MissingPart| MissingPart { name: format!("{name}.{}", lost.name), ..lost };
        salvaged.lost_columns.extend(found.lost_columns.into_iter().map(named));
        sound.push((name, saved.opened(&opened)?));
    }
    if let (Some(fault), false) = (fault, salvaged.is_lossy()) {
        let len = damaged.opened.content.len().unwrap_or(0);
        let bytes = fault.offset().unwrap_or(len).min(len)..len;
        salvaged.lost_members.push(MissingPart { name: String::new(), bytes, reason: fault.to_string() });
    }
    if salvaged.is_lossy() && sound.is_empty() {
        return Ok(salvaged);
    }
    salvaged.report = Some(match is_folder {
        true => write_folder(registry, &sound, Path::new(output), options)?,
        false => write_archive(registry, &damaged.opened, &sound, output, options)?,
    });
    Ok(salvaged)
}

fn write_archive(
    registry: &Registry,
    container: &Opened,
    members: &[(&str, Opened)],
    output: &str,
    options: &ConvertOptions,
) -> Result<Report> {
    let (target, _) = conversion::output_target(registry, output, options)?;
    let mut write = WriteOptions::default();
    write.options = crate::job::options::of_side(&options.open.options, Side::Write, target.format.info());
    write.budget = options.open.budget.clone();
    write.control = options.open.control.clone();
    let Some(mut plan) = target.format.archive(&write)? else {
        return Err(container
            .document
            .summary()
            .check_member()
            .err()
            .unwrap_or_else(|| Error::usage(format!("{} holds no members", target.format.info().id))));
    };
    let sink = Sink::create(Path::new(output), options.force)?;
    for (name, opened) in members {
        plan.member(name, &opened.document.summary().schema).check(options.allow_lossy)?;
    }
    let mut archive = plan.create(sink.packed_for(output))?;
    for (name, opened) in members {
        let rows = opened.charged_rows(&opened.document.selection())?;
        archive.member(rows).map_err(|error| error.field((*name).to_owned()))?;
    }
    let written = archive.finish()?;
    let mut report = Report::default();
    (report.rows, report.bytes, report.notes) = (written.rows, written.bytes, written.notes);
    Ok(report)
}

fn write_folder(
    registry: &Registry,
    members: &[(&str, Opened)],
    folder: &Path,
    options: &ConvertOptions,
) -> Result<Report> {
    let target = match &options.to {
        Some(text) => open::target(registry, text)?,
        None => open::target(registry, crate::job::members::MEMBER_FORMAT)?,
    };
    let extension = target.format.info().extensions.first().copied().unwrap_or_default();
    let is_new = !folder.is_dir();
    if is_new {
        std::fs::create_dir(folder).map_err(|error| {
            Error::io("cannot make the folder", error).in_output(folder.display().to_string())
        })?;
    }
    let write = || -> Result<Report> {
        let group = SinkGroup::new(options.force);
        let mut report = Report::default();
        for (name, opened) in members {
            let path = crate::job::members::member_path(folder, name, extension)?;
            let conversion = Conversion::plan_opened(opened.clone(), target.clone(), path.to_str(), options)?;
            let own =
                conversion.run_into(group.create(&path)?).map_err(|error| error.field((*name).to_owned()))?;
            report.rows += own.rows;
            report.bytes += own.bytes;
        }
        group.commit()?;
        Ok(report)
    };
    let written = write();
    if is_new && written.is_err() {
        // Nothing is in it.
        let _ = std::fs::remove_dir(folder);
    }
    written
}
