//! `inspect`: what a file is.

use std::io::Write;

use pentaglot::formats::Summary;
use pentaglot::hub::shape::{self, Form, Shape};
use pentaglot::job;
use serde_json::{Map, Value, json};

use crate::args::Inspect;
use crate::screen::{self, bold, escape};
use crate::types::{data_type_text, field_text};
use crate::{About, DONE, Outcome, Session, for_each};

pub(crate) fn run(session: &Session, args: &Inspect) -> Outcome {
    let options = args.open.options(&session.global);
    for_each(&args.files, |file| {
        let opened = job::open(&session.registry, file, &options).about(file)?;
        opened.check_options(&options.options).about(file)?;
        let summary = opened.document.summary();
        if args.json {
            screen::print(format!("{}\n", object(file, summary)).as_bytes())?;
        } else {
            let mut out = screen::lines();
            print(&mut out, file, summary)?;
            out.flush()?;
        }
        Ok(DONE)
    })
}

/// The stable JSON form.
fn object(file: &str, summary: &Summary) -> Value {
    let schema = &summary.schema;
    let null_count = |index: usize| summary.null_counts.get(index).copied().flatten();
    let columns: Vec<Value> = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| {
            json!({
                "name": field.name(),
                "type": data_type_text(field),
                "nullable": field.is_nullable(),
                "null_count": null_count(index),
            })
        })
        .collect();
    let parts: Vec<Value> = summary
        .parts
        .iter()
        .map(|part| json!({ "path": part.path, "offset": part.offset, "bytes": part.bytes }))
        .collect();
    let metadata: Map<String, Value> =
        summary.metadata.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
    let mut object = json!({
        "file": file,
        "format": summary.format,
        "dialect": summary.dialect,
        "dialect_reason": summary.dialect_reason,
        "also_fits": summary.also_fits,
        "shape": Shape::of(schema).name(),
        "rows": summary.rows,
        "columns": columns,
        "bytes": summary.bytes,
        "parts": parts,
        "members": summary.members,
        "metadata": metadata,
    });
    if Shape::of(schema) == Shape::Matrix
        && let Some(object) = object.as_object_mut()
    {
        let value_type = shape::matrix_value_type(schema).map(|kind| crate::types::arrow_text(&kind));
        object.insert("cols".to_owned(), json!(shape::matrix_cols(schema)));
        object.insert("value_type".to_owned(), json!(value_type));
        object.insert("nonzeros".to_owned(), json!(summary.nonzeros));
    }
    object
}

fn print(out: &mut impl Write, file: &str, summary: &Summary) -> std::io::Result<()> {
    let schema = &summary.schema;
    writeln!(out, "{}", bold(&escape(file)))?;
    let mut line = |key: &str, value: &str| writeln!(out, "  {key:<9} {}", escape(value));
    match (summary.dialect, &summary.dialect_reason) {
        (Some(dialect), Some(reason)) => line("format", &format!("{}:{dialect} ({reason})", summary.format))?,
        (Some(dialect), None) => line("format", &format!("{}:{dialect}", summary.format))?,
        _ => line("format", summary.format)?,
    }
    if !summary.also_fits.is_empty() {
        line("also fits", &summary.also_fits.join(", "))?;
    }
    let rows = summary.rows.map_or("unknown".to_owned(), |rows| rows.to_string());
    match Form::of(schema) {
        Form::Dense | Form::Sparse | Form::Columns | Form::Coo => {
            let cols = shape::matrix_cols(schema).map_or("unknown".to_owned(), |cols| cols.to_string());
            let kind = shape::matrix_value_type(schema)
                .map_or(String::new(), |kind| format!(" of {}", crate::types::arrow_text(&kind)));
            let form =
                if matches!(Form::of(schema), Form::Dense | Form::Columns) { "dense" } else { "sparse" };
            line("shape", &format!("{form} matrix, {rows} x {cols}{kind}"))?;
            if let Some(nonzeros) = summary.nonzeros {
                line("entries", &nonzeros.to_string())?;
            }
        }
        _ => line("shape", &format!("{}, {rows} rows", Shape::of(schema)))?,
    }
    if let Some(bytes) = summary.bytes {
        line("bytes", &format!("{bytes} ({})", screen::size(bytes)))?;
    }
    for (key, value) in &summary.metadata {
        line(key, &screen::cut(value, 200))?;
    }
    for note in &summary.notes {
        line("note", note)?;
    }
    if !matches!(Form::of(schema), Form::Dense | Form::Sparse) {
        writeln!(out, "  columns")?;
        let width =
            schema.fields().iter().map(|field| escape(field.name()).chars().count()).max().unwrap_or(0);
        for (index, field) in schema.fields().iter().enumerate() {
            let nulls = match summary.null_counts.get(index).copied().flatten() {
                Some(nulls) => format!("  {nulls} nulls"),
                None => String::new(),
            };
            let (name, kind) = (escape(field.name()), escape(&field_text(field)));
            writeln!(out, "    {name:<width$}  {kind}{nulls}")?;
        }
    }
    list(out, "members", &summary.members, |member| escape(member))?;
    let width = summary.parts.iter().map(|part| part.path.chars().count()).max().unwrap_or(0);
    list(out, "parts", &summary.parts, |part| {
        format!("{:<width$}  at {}, {} bytes", escape(&part.path), part.offset, part.bytes)
    })
}

/// At most forty entries under a heading.
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
    for item in items.iter().take(40) {
        writeln!(out, "    {}", text(item))?;
    }
    match items.len().saturating_sub(40) {
        0 => Ok(()),
        more => writeln!(out, "    … {more} more"),
    }
}
