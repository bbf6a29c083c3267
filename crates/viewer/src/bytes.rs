//! The outline of a file, its bytes at an offset, and the part that contains an offset.

use pentaglot::Result;
use pentaglot::formats::{Expand, Node};
use serde_json::{Value, json};

use crate::State;
use crate::files::File;

/// Maximum number of parts in one response.
const MOST_PARTS: usize = 200;
/// Maximum number of bytes in one response.
const MOST_BYTES: u64 = 64 << 10;
/// Maximum depth of a search by offset.
const MAX_LEVELS: usize = 64;
/// Maximum number of parts that a search examines on one level.
const SEARCHED: usize = 100_000;

fn node_json(index: u64, node: &Node) -> Value {
    let value = node.value.as_ref().map(|value| value.chars().take(200).collect::<String>());
    json!({
        "index": index, "name": node.name, "offset": node.offset, "bytes": node.bytes, "value": value,
        "parts": node.parts.is_some(),
    })
}

/// The node at a path of indices such as `0.3`.
fn find(root: Node, path: &str) -> Result<Node> {
    let mut node = root;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let missing = || pentaglot::Error::usage("there is no such part");
        let index: u64 = step.parse().map_err(|_| missing())?;
        let parts = node.parts.clone().ok_or_else(missing)?;
        let part = parts.nodes(index).next().ok_or_else(missing)??;
        node = part;
    }
    Ok(node)
}

/// The parts of the part at `path`, from number `from` on. Includes the parts before an error, and the error.
pub(crate) fn outline(state: &State, file: &File, path: &str, from: u64) -> Result<Value> {
    let node = find(file.outline(state)?, path)?;
    let mut parts = Vec::new();
    let mut fault = None;
    let mut more = false;
    if let Some(expand) = &node.parts {
        for (part, index) in expand.nodes(from).zip(from..) {
            if parts.len() == MOST_PARTS {
                more = true;
                break;
            }
            match part {
                Ok(part) => parts.push(node_json(index, &part)),
                Err(error) => {
                    fault = Some(error.to_string());
                    break;
                }
            }
        }
    }
    let count = node.parts.as_ref().and_then(|parts| parts.count());
    Ok(json!({ "node": node_json(0, &node), "parts": parts, "count": count, "more": more, "error": fault }))
}

/// The path of the deepest part that contains an offset, with its range.
pub(crate) fn locate(state: &State, file: &File, offset: u64) -> Result<Value> {
    let mut node = file.outline(state)?;
    let (mut path, mut names) = (Vec::new(), Vec::new());
    for _ in 0..MAX_LEVELS {
        let Some(parts) = node.parts.clone() else { break };
        let Some((index, part)) = holding(parts.as_ref(), offset) else { break };
        path.push(index.to_string());
        names.push(part.name.clone());
        node = part;
    }
    Ok(json!({ "path": path.join("."), "names": names, "node": node_json(0, &node) }))
}

fn holding(parts: &dyn Expand, offset: u64) -> Option<(u64, Node)> {
    let first = parts.index_near(offset);
    let mut found = None;
    for (part, index) in parts.nodes(first).zip(first..).take(SEARCHED) {
        let Ok(part) = part else { break };
        if part.offset <= offset && offset < part.offset.saturating_add(part.bytes) {
            found = Some((index, part));
            break;
        }
    }
    found
}

/// Bytes from an offset on.
pub(crate) fn at(state: &State, file: &File, offset: u64, length: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length.min(MOST_BYTES) as usize];
    let source = file.source(state)?;
    let mut filled = 0;
    while filled < bytes.len() {
        match source.read_at(offset + filled as u64, &mut bytes[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
