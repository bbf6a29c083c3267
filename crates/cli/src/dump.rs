//! `dump`: annotated bytes. Touches what it shows.

use std::io::Write;

use pentaglot::formats::{Node, Part};
use pentaglot::{Context, Error, Hint, Source, job};
use serde_json::json;

use crate::args::Dump;
use crate::screen::{self, count, escape, faint};
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
        Some(at) => find(root, at, &opened.document.summary().parts, id).about(&args.file)?,
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

fn join(path: &str, name: &str) -> String {
    match (path.is_empty(), name.starts_with('[')) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{path}{name}"),
        (false, false) => format!("{path}.{name}"),
    }
}

/// The node at a path, or the deepest node that holds a byte offset.
fn find(root: Node, at: &str, listed: &[Part], id: &'static str) -> pentaglot::Result<(String, Node)> {
    let hex = at.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
    if let Ok(offset) = hex.unwrap_or_else(|| at.parse()) {
        return find_offset(root, offset, id);
    }
    match find_path(&root, "", at, id, MAX_LEVELS)? {
        Some(found) => Ok(found),
        // A part that `inspect` lists, though the outline names its bytes otherwise.
        None => match listed.iter().find(|part| part.path == at) {
            Some(part) => {
                let (_, node) = find_offset(root, part.offset, id)?;
                let same = node.offset == part.offset && node.bytes == part.bytes;
                let node = if same { node } else { Node::new(at, part.offset, part.bytes) };
                Ok((at.to_owned(), node))
            }
            None => Err(Error::usage(format!("there is no part {at:?}"))
                .hint(Hint::Advice("dump without --at, and inspect, list the parts".into()))),
        },
    }
}

/// The node at a path below `node`, whose own path is `path`. A name may hold dots, so the first part whose name fits
/// need not be the one: the search comes back and goes on.
fn find_path(
    node: &Node,
    path: &str,
    at: &str,
    id: &'static str,
    levels: usize,
) -> pentaglot::Result<Option<(String, Node)>> {
    let (Some(parts), true) = (&node.parts, levels > 0) else { return Ok(None) };
    let rest = at[path.len()..].trim_start_matches('.');
    // Elements are named by their index: jump there.
    let index = rest
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .and_then(|(index, _)| index.parse().ok());
    for part in parts.nodes(index.unwrap_or(0)) {
        let part = part.in_format(id)?;
        let here = join(path, &part.name);
        if here == at {
            return Ok(Some((here, part)));
        }
        if at.strip_prefix(&here).is_some_and(|rest| rest.starts_with(['.', '[']))
            && let Some(found) = find_path(&part, &here, at, id, levels - 1)?
        {
            return Ok(Some(found));
        }
        if index.is_some() {
            break;
        }
    }
    Ok(None)
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
