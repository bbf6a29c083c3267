//! `dump`: annotated bytes. Reads only what it shows.

use std::io::Write;

use pentaglot::formats::Node;
use pentaglot::job::OpenOptions;
use pentaglot::{Context, Error, ErrorKind, Source, job};
use serde_json::json;

use crate::args::Dump;
use crate::screen::{self, count, escape, faint};
use crate::{About, DONE, Outcome, Session, bus_error};

/// Parts shown per level; the rest is counted.
const SHOWN: u64 = 64;
/// Bytes shown of one part.
const HEX_BYTES: usize = 12;

pub(crate) fn run(session: &Session, args: &Dump) -> Outcome {
    let mut options = args.open.options(&session.global);
    options.spool = true;
    options.in_place = bus_error::permit_map(&args.file);
    let opened = match job::open(&session.registry, &args.file, &options) {
        // A stream cannot be read again.
        Err(fault)
            if args.file != "-" && matches!(fault.kind(), ErrorKind::Truncated | ErrorKind::Malformed) =>
        {
            return broken(session, args, &options, fault);
        }
        opened => opened.about(&args.file)?,
    };
    opened.check_options(&options.options).about(&args.file)?;
    opened.check_type(&options).about(&args.file)?;
    session.say_notes(&args.file, &opened.document.summary().ignored);
    let id = opened.format.info().id;
    let (path, node) = match &args.at {
        None => (String::new(), opened.document.outline()),
        Some(at) => opened.part(at).about(&args.file)?,
    };
    let mut printer = Printer {
        out: screen::lines(),
        source: opened.content.clone(),
        depth: args.depth,
        json: args.json,
        id,
    };
    let shown = printer.node(&path, &node, 0);
    printer.out.flush()?;
    shown.about(&args.file)?;
    Ok(DONE)
}

/// Shows the parts of a file that does not open, as far as they are sound, then what is wrong.
fn broken(session: &Session, args: &Dump, options: &OpenOptions, fault: Error) -> Outcome {
    let found = job::open_broken(&session.registry, &args.file, options).about(&args.file)?;
    let id = fault.format().unwrap_or_default();
    let (path, node) = match (&args.at, &found.opened) {
        (None, _) => (String::new(), found.outline.clone()),
        (Some(at), Some(opened)) => opened.part(at).about(&args.file)?,
        (Some(_), None) => return Err(fault).about(&args.file),
    };
    let (depth, json) = (args.depth, args.json);
    let mut printer = Printer { out: screen::lines(), source: found.content, depth, json, id };
    // The error is printed once, after the parts.
    let _ = printer.node(&path, &node, 0);
    printer.out.flush()?;
    Err(fault).about(&args.file)
}

struct Printer<W> {
    out: W,
    source: Source,
    depth: u32,
    json: bool,
    /// The format's id.
    id: &'static str,
}

impl<W: Write> Printer<W> {
    /// Prints a node and its parts. Everything before an error is printed.
    fn node(&mut self, path: &str, node: &Node, level: u32) -> pentaglot::Result<()> {
        self.line(path, node, level)?;
        let Some(parts) = &node.parts else { return Ok(()) };
        if level >= self.depth {
            return Ok(());
        }
        for (part, shown) in parts.nodes(0).zip(0..) {
            let part = part.in_format(self.id)?;
            if shown == SHOWN {
                if !self.json {
                    let more =
                        parts.count().map_or("more".to_owned(), |count| format!("{} more", count - SHOWN));
                    let indent = "  ".repeat(level as usize + 1);
                    let hint = Node::join(path, &part.name);
                    let blank = " ".repeat(12 + HEX_BYTES * 3);
                    writeln!(self.out, "{blank}{indent}… {more} (--at '{}')", escape(&hint))?;
                }
                break;
            }
            self.node(&Node::join(path, &part.name), &part, level + 1)?;
        }
        Ok(())
    }

    fn line(&mut self, path: &str, node: &Node, level: u32) -> pentaglot::Result<()> {
        let mut bytes = [0; HEX_BYTES];
        let wanted = HEX_BYTES.min(usize::try_from(node.bytes).unwrap_or(HEX_BYTES));
        let found = self.source.read_at(node.offset, &mut bytes[..wanted])?;
        let hex: Vec<String> = bytes[..found].iter().map(|byte| format!("{byte:02x}")).collect();
        let hex = hex.join(" ");
        if self.json {
            let object = json!({
                "path": path, "offset": node.offset, "bytes": node.bytes, "hex": hex, "value": node.value,
            });
            writeln!(self.out, "{object}")?;
            return Ok(());
        }
        let more = if node.bytes as usize > HEX_BYTES { "…" } else { " " };
        let indent = "  ".repeat(level as usize);
        let name = escape(&node.name);
        let value = node
            .value
            .as_ref()
            .map_or(String::new(), |value| format!(" = {}", screen::cut(&escape(value), 200)));
        let size = if node.parts.is_some() || node.bytes as usize > HEX_BYTES {
            faint(&format!(" ({})", count(node.bytes, "byte")))
        } else {
            String::new()
        };
        let offset = faint(&format!("{:010x}", node.offset));
        let width = HEX_BYTES * 3 - 1;
        writeln!(self.out, "{offset}  {hex:<width$}{more} {indent}{name}{value}{size}")?;
        Ok(())
    }
}
