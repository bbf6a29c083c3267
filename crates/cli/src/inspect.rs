//! `inspect`: what a file is.

use std::io::Write;

use pentaglot::formats::Summary;
use pentaglot::hub::shape::{self, Form, Shape};
use pentaglot::hub::type_text::print_schema;
use pentaglot::job;

use crate::args::Inspect;
use crate::screen::{self, bold, count, escape};
use crate::types::field_text;
use crate::{About, DONE, Outcome, Session, for_each};

pub(crate) fn run(session: &Session, args: &Inspect) -> Outcome {
    let options = args.open.options(&session.global);
    for_each(session, &args.files, |file| {
        let opened = job::open(&session.registry, file, &options).about(file)?;
        opened.check_options(&options.options).about(file)?;
        opened.check_type(&options).about(file)?;
        let summary = opened.document.summary();
        if args.json {
            screen::print(format!("{}\n", summary.to_json(file)).as_bytes())?;
        } else {
            let mut out = screen::lines();
            print(&mut out, file, summary)?;
            if summary.is_container() {
                let kind = |member: &String| match job::open(
                    &session.registry,
                    &format!("{file}::{member}"),
                    &options,
                ) {
                    Ok(opened) => print_schema(&opened.document.summary().schema),
                    Err(_) => String::new(),
                };
                let width = width_of(shown(&summary.members).map(|member| escape(member)));
                list(&mut out, "members", &summary.members, |member| {
                    let name = screen::cut(&escape(member), 60);
                    format!("{name:<width$}  {}", screen::cut(&escape(&kind(member)), 100))
                        .trim_end()
                        .to_owned()
                })?;
            }
            print_parts(&mut out, summary)?;
            out.flush()?;
        }
        Ok(DONE)
    })
}

fn print(out: &mut impl Write, file: &str, summary: &Summary) -> std::io::Result<()> {
    let schema = &summary.schema;
    writeln!(out, "{}", bold(&escape(file)))?;
    let keys = summary.metadata.iter().map(|(key, _)| key.chars().count());
    let width = keys.max().unwrap_or(0).clamp(9, 20);
    let mut line = |key: &str, value: &str| writeln!(out, "  {:<width$} {}", escape(key), escape(value));
    match (summary.dialect, &summary.dialect_reason) {
        (Some(dialect), Some(reason)) => line("format", &format!("{}:{dialect} ({reason})", summary.format))?,
        (Some(dialect), None) => line("format", &format!("{}:{dialect}", summary.format))?,
        _ => line("format", summary.format)?,
    }
    if !summary.also_fits.is_empty() {
        line("also fits", &summary.also_fits.join(", "))?;
    }
    let unknown = |count: Option<u64>| count.map_or("unknown".to_owned(), |count| count.to_string());
    match Form::of(schema) {
        Form::Dense | Form::Sparse | Form::Columns | Form::Coo => {
            let (rows, cols) = (unknown(summary.shape_rows()), unknown(shape::matrix_cols(schema)));
            let kind = shape::matrix_value_type(schema)
                .map_or(String::new(), |kind| format!(" of {}", crate::types::arrow_text(&kind)));
            let form =
                if matches!(Form::of(schema), Form::Dense | Form::Columns) { "dense" } else { "sparse" };
            line("shape", &format!("{form} matrix, {rows} x {cols}{kind}"))?;
            if let Some(nonzeros) = summary.entries() {
                line("entries", &nonzeros.to_string())?;
            }
        }
        _ if summary.is_container() => line("shape", &count(summary.members.len() as u64, "member"))?,
        _ => {
            let rows = summary.rows.map_or("unknown rows".to_owned(), |rows| count(rows, "row"));
            line("shape", &format!("{}, {rows}", Shape::of(schema)))?;
        }
    }
    if let Some(bytes) = summary.bytes {
        line("size", &screen::size(bytes))?;
    }
    for (key, value) in &summary.metadata {
        line(key, &screen::cut(value, 200))?;
    }
    for note in &summary.notes {
        line("note", note)?;
    }
    if !matches!(Form::of(schema), Form::Dense | Form::Sparse) && !summary.is_container() {
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let names = |index: &usize| escape(schema.field(*index).name());
        let width = width_of(shown(&columns).map(names));
        list(out, "columns", &columns, |index| {
            let field = schema.field(*index);
            let nulls = match summary.null_counts.get(*index).copied().flatten() {
                Some(nulls) => format!("  {}", count(nulls, "null")),
                None => String::new(),
            };
            let (name, kind) =
                (screen::cut(&names(index), 60), screen::cut(&escape(&field_text(field)), 200));
            format!("{name:<width$}  {kind}{nulls}")
        })?;
    }
    if !summary.is_container() {
        list(out, "members", &summary.members, |member| screen::cut(&escape(member), 60))?;
    }
    Ok(())
}

fn print_parts(out: &mut impl Write, summary: &Summary) -> std::io::Result<()> {
    let width = width_of(shown(&summary.parts).map(|part| escape(&part.path)));
    list(out, "parts", &summary.parts, |part| {
        let path = screen::cut(&escape(&part.path), 60);
        format!("{path:<width$}  at {}, {}", part.offset, count(part.bytes, "byte"))
    })
}

fn width_of(texts: impl Iterator<Item = String>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or(0).min(60)
}

/// The number of entries of a long list that are shown at its start and at its end.
const FIRST: usize = 20;
const LAST: usize = 3;

/// The entries of a list that are shown: all of them, or the first and last ones.
fn shown<T>(items: &[T]) -> impl Iterator<Item = &T> {
    let (first, last) = if items.len() > FIRST + LAST + 1 { (FIRST, LAST) } else { (items.len(), 0) };
    items[..first].iter().chain(&items[items.len() - last..])
}

/// A list under a heading, at most a screenful.
fn list<T>(
    out: &mut impl Write,
    title: &str,
    items: &[T],
    text: impl Fn(&T) -> String,
) -> std::io::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {title}")?;
    for (index, item) in shown(items).enumerate() {
        if index == FIRST && items.len() > FIRST + LAST + 1 {
            let more = items.len() - FIRST - LAST;
            writeln!(out, "    {}", screen::faint(&format!("… {more} more (--json lists all)")))?;
        }
        writeln!(out, "    {}", text(item))?;
    }
    Ok(())
}
