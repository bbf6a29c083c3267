//! `dump`: annotated bytes. Touches what it shows.

use std::io::Write;

use pentaglot::formats::Node;
use pentaglot::{Context, Error, Source, job};
use serde_json::json;

use crate::args::Dump;
use crate::screen::{self, escape, faint};
use crate::{About, DONE, Outcome, Session, bus_error};

/// Parts shown of one level before the rest is only counted.
const SHOWN: u64 = 64;
/// Bytes shown of one part.
const HEX_BYTES: usize = 12;
/// Levels that a search by offset goes down.
const MAX_LEVELS: usize = 256;

pub(crate) fn run(session: &Session, args: &Dump) -> Outcome {
    let mut options = args.open.options(&session.global);
    options.spool = true;
    options.in_place = bus_error::permit_map(&args.file);
    let opened = job::open(&session.registry, &args.file, &options).about(&args.file)?;
    opened.check_options(&options.options).about(&args.file)?;
    let id = opened.format.info().id;
    let root = opened.document.outline();
    let (path, node) = match &args.at {
        None => (String::new(), root),
        Some(at) => find(root, at, id).about(&args.file)?,
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

struct Printer<W> {
    out: W,
    source: Source,
    depth: u32,
    json: bool,
    /// The format's.
    id: &'static str,
}

impl<W: Write> Printer<W> {
    /// A node and its parts. What could be read is printed before an error is returned.
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
                    let hint = join(path, &part.name);
                    let blank = " ".repeat(12 + HEX_BYTES * 3);
                    writeln!(self.out, "{blank}{indent}… {more} (--at '{}')", escape(&hint))?;
                }
                break;
            }
            self.node(&join(path, &part.name), &part, level + 1)?;
        }
        Ok(())
    }

    fn line(&mut self, path: &str, node: &Node, level: u32) -> pentaglot::Result<()> {
        let mut bytes = [0; HEX_BYTES];
        let wanted = HEX_BYTES.min(usize::try_from(node.bytes).unwrap_or(HEX_BYTES));
        let count = self.source.read_at(node.offset, &mut bytes[..wanted])?;
        let hex: Vec<String> = bytes[..count].iter().map(|byte| format!("{byte:02x}")).collect();
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
        let value = node.value.as_ref().map_or(String::new(), |value| format!(" = {}", escape(value)));
        let size = if node.parts.is_some() || node.bytes as usize > HEX_BYTES {
            faint(&format!(" ({} bytes)", node.bytes))
        } else {
            String::new()
        };
        let offset = faint(&format!("{:010x}", node.offset));
        let width = HEX_BYTES * 3 - 1;
        writeln!(self.out, "{offset}  {hex:<width$}{more} {indent}{name}{value}{size}")?;
        Ok(())
    }
}

fn join(path: &str, name: &str) -> String {
    match (path.is_empty(), name.starts_with('[')) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{path}{name}"),
        (false, false) => format!("{path}.{name}"),
    }
}

/// The node at a path, or the deepest node that holds a byte offset.
fn find(root: Node, at: &str, id: &'static str) -> pentaglot::Result<(String, Node)> {
    let hex = at.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
    if let Ok(offset) = hex.unwrap_or_else(|| at.parse()) {
        return find_offset(root, offset, id);
    }
    let mut path = String::new();
    let mut node = root;
    'down: while path != at {
        let missing = || Error::usage(format!("there is no part {at:?}"));
        let parts = node.parts.clone().ok_or_else(missing)?;
        let rest = at[path.len()..].trim_start_matches('.');
        // Elements are named by their index: jump there.
        let index = rest
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .and_then(|(index, _)| index.parse().ok());
        for part in parts.nodes(index.unwrap_or(0)) {
            let part = part.in_format(id)?;
            let here = join(&path, &part.name);
            let ends_there = at.len() == here.len() || at[here.len().min(at.len())..].starts_with(['.', '[']);
            if at.starts_with(&here) && ends_there {
                path = here;
                node = part;
                continue 'down;
            }
            if index.is_some() {
                break;
            }
        }
        return Err(missing());
    }
    Ok((path, node))
}

fn find_offset(root: Node, offset: u64, id: &'static str) -> pentaglot::Result<(String, Node)> {
    let holds = |node: &Node| offset >= node.offset && offset - node.offset < node.bytes;
    if !holds(&root) {
        return Err(Error::usage(format!("byte {offset} is past the end")));
    }
    let mut path = String::new();
    let mut node = root;
    for _ in 0..MAX_LEVELS {
        let Some(parts) = node.parts.clone() else { break };
        let mut found = None;
        for part in parts.nodes(parts.index_near(offset)) {
            let part = part.in_format(id)?;
            if holds(&part) {
                found = Some(part);
                break;
            }
            if part.offset > offset {
                break;
            }
        }
        let Some(part) = found else { break };
        path = join(&path, &part.name);
        node = part;
    }
    Ok((path, node))
}
