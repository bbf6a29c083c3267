//! Named element ranges, for `inspect` and `dump`.

use std::sync::Arc;

use pentaglot_succinct::{Part, SharedWords, Structure};

use super::containers::{ContainerPart, Content};
use super::layout::Object;
use crate::formats::{Node, Outline, Strided};

/// The parts of a structure, in order.
pub(super) fn parts(object: &Object) -> Vec<Part> {
    let whole = |words: &SharedWords, name: &str, head: &str| {
        let len = words.as_ref().len() as u64;
        vec![Part { path: head.to_owned(), start: 0, len: 1 }, Part { path: name.to_owned(), start: 1, len }]
    };
    match object {
        Object::Container(container) => container.parts().iter().flat_map(container_parts).collect(),
        Object::RunLengthWavelet(structure) => structure.parts(),
        Object::Wavelet(structure) => structure.parts(),
        Object::WaveletCore(structure) => structure.parts(),
        Object::RunLength(structure) => structure.parts(),
        Object::Sparse(structure) => structure.parts(),
        Object::Bit(structure) => structure.parts(),
        Object::Int(structure) => structure.parts(),
        Object::Raw(structure) => structure.parts(),
        Object::Option(Some(words)) => whole(words, "content", "size"),
        Object::Option(None) => vec![Part { path: "size".to_owned(), start: 0, len: 1 }],
        Object::Element(_) => vec![Part { path: "value".to_owned(), start: 0, len: 1 }],
        Object::Pairs(words) | Object::Items(_, words) => whole(words, "items", "len"),
        Object::String(_, words) | Object::Bytes(_, words) => whole(words, "bytes", "len"),
        Object::Vec(words) => whole(words, "items", "len"),
    }
}

fn container_parts(part: &ContainerPart) -> Vec<Part> {
    let inner = match &part.content {
        Content::Object(object) if !matches!(object.as_ref(), Object::Element(_)) => parts(object),
        Content::Object(_) | Content::Field(_) | Content::Paths(_) => {
            vec![Part { path: String::new(), start: 0, len: part.len }]
        }
        // Derived from the parts before it, or absent.
        Content::Strings(_) | Content::Tags(_) | Content::Table(_) | Content::Absent(_) => return Vec::new(),
    };
    let path = |name: &str| match (part.path.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => part.path.clone(),
        _ => format!("{}.{name}", part.path),
    };
    inner
        .into_iter()
        .map(|inner| Part { path: path(&inner.path), start: part.start + inner.start, len: inner.len })
        .collect()
}

pub(super) fn outline(object: &Arc<Object>, words: SharedWords) -> Outline {
    let total = words.as_ref().len() as u64;
    let nodes = parts(object).into_iter().map(|part| node(part, &words)).collect();
    Node::new("sds", 0, total * 8).value(object.kind()).parts(nodes)
}

/// One element shows its value; more are listed on demand.
fn node(part: Part, words: &SharedWords) -> Node {
    let node = Node::new(part.path, part.start * 8, part.len * 8);
    let value = |index: u64| usize::try_from(index).ok().and_then(|index| words.as_ref().get(index).copied());
    match (part.len, value(part.start)) {
        (1, Some(value)) => node.value(value),
        (0, _) => node,
        (count, _) => {
            let words = words.clone();
            node.value(format!("{count} elements")).expand(Strided {
                offset: part.start * 8,
                stride: 8,
                count,
                make: move |index: u64, offset: u64| {
                    let element =
                        usize::try_from(offset / 8).ok().and_then(|at| words.as_ref().get(at).copied());
                    Ok(Node::new(format!("[{index}]"), offset, 8).value(element.unwrap_or(0)))
                },
            })
        }
    }
}
