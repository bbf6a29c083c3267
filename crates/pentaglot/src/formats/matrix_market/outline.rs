//! The lines of a file: banner, comments, size, entries. Entries are found by scanning the lines.

use super::layout::{Header, line};
use crate::error::Result;
use crate::formats::{Expand, Node, Outline};
use crate::source::Source;

pub(super) fn outline(source: &Source, header: &Header) -> Outline {
    let total = source.len().unwrap_or(0);
    let banner = Node::new("banner", 0, header.banner_bytes).value(format_args!(
        "{} {} {}",
        header.layout.word(),
        header.kind.word(),
        header.symmetry.word()
    ));
    let comments = header.size_offset - header.banner_bytes;
    let lines = |name: &'static str, from: u64, end: u64| {
        Node::new(name, from, end.saturating_sub(from)).expand(Lines { source: source.clone(), from, end })
    };
    let mut parts = vec![banner];
    if comments > 0 {
        parts.push(lines("comments", header.banner_bytes, header.size_offset));
    }
    let size = Node::new("size", header.size_offset, header.body_offset - header.size_offset);
    parts.push(
        size.value(format_args!("{} rows, {} columns, {} entries", header.rows, header.cols, header.entries)),
    );
    parts.push(lines("entries", header.body_offset, total));
    Outline::new("mtx", 0, total).parts(parts)
}

/// Lines from an offset to another.
struct Lines {
    source: Source,
    from: u64,
    end: u64,
}

impl Expand for Lines {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let mut next = self.from;
        let mut index = 0u64;
        let lines = std::iter::from_fn(move || {
            if next >= self.end {
                return None;
            }
            let start = next;
            let found = match line(&self.source, start) {
                Ok(found) => found?,
                Err(error) => {
                    next = self.end;
                    return Some(Err(error));
                }
            };
            next = found.1;
            let text = String::from_utf8_lossy(found.0.trim_ascii()).into_owned();
            let node = Node::new(format!("[{index}]"), start, next - start).value(text);
            index += 1;
            Some(Ok(node))
        });
        Box::new(lines.skip(usize::try_from(from).unwrap_or(usize::MAX)))
    }
}
