//! `formats`: what is supported.

use std::io::Write;

use pentaglot::formats::{Format, FormatInfo, Side};
use pentaglot::job;
use serde_json::{Value, json};

use crate::args::Formats;
use crate::screen::{self, bold};
use crate::{DONE, Outcome, Session};

pub(crate) fn run(session: &Session, args: &Formats) -> Outcome {
    let mut out = screen::lines();
    for format in session.registry.formats() {
        if args.json {
            writeln!(out, "{}", object(format.as_ref()))?;
        } else {
            print(&mut out, format.info())?;
        }
    }
    if !args.json {
        writeln!(out, "{}", bold("any target"))?;
        for option in job::CONVERSION_OPTIONS {
            writeln!(
                out,
                "  -O {}={}  {} (default {})",
                option.key, option.values, option.help, option.default
            )?;
        }
    }
    out.flush()?;
    Ok(DONE)
}

fn object(format: &dyn Format) -> Value {
    let info = format.info();
    let dialects: Vec<Value> = info
        .dialects
        .iter()
        .map(|dialect| json!({ "name": dialect.name, "title": dialect.title, "read": dialect.read, "write": dialect.write, "media_type": format.media_type(Some(dialect.name)) }))
        .collect();
    let options: Vec<Value> = info
        .options
        .iter()
        .map(|option| {
            json!({
                "key": option.key, "side": side(option.side), "values": option.values, "default": option.default,
                "help": option.help,
            })
        })
        .collect();
    json!({
        "id": info.id, "title": info.title, "extensions": info.extensions, "media_types": info.media_types,
        "read": true, "write": !info.forms.is_empty(), "dialects": dialects, "options": options, "spec": info.spec,
    })
}

fn print(out: &mut impl Write, info: &FormatInfo) -> std::io::Result<()> {
    let way = if info.forms.is_empty() { "read" } else { "read, write" };
    writeln!(out, "{} — {} ({way}; .{})", bold(info.id), info.title, info.extensions.join(", ."))?;
    for dialect in info.dialects {
        let way = if dialect.write { "" } else { " (read only)" };
        writeln!(out, "  {}:{}  {}{way}", info.id, dialect.name, dialect.title)?;
    }
    for option in info.options {
        let (key, values, side) = (option.key, option.values, option.side.name());
        writeln!(out, "  -O {key}={values}  {} ({side}; default {})", option.help, option.default)?;
    }
    Ok(())
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Read => "read",
        Side::Write => "write",
        Side::Both => "both",
    }
}
