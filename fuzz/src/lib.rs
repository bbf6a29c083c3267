//! What every fuzz target does with its bytes: open them as a format, look at everything, never panic.

use pentaglot::formats::{Findings, Node, Selection};
use pentaglot::job::{self, OpenOptions};
use pentaglot::{Registry, Source};

/// Parts looked at of one level of an outline.
const PARTS: usize = 8;

/// Opens `data` as `format` and reads, checks and outlines it. Errors are fine; panics and hangs are not.
pub fn read(format: &str, data: &[u8]) {
    let registry = Registry::default();
    let mut options = OpenOptions::default();
    options.from = Some(format.to_owned());
    let mut limits = pentaglot::Limits::default();
    limits.max_alloc = 64 << 20;
    limits.max_free_rows = 1 << 16;
    options.budget = limits.budget();
    let source = Source::from_bytes("fuzz", data.to_vec());
    let Ok(opened) = job::open_source(&registry, source, None, &options) else { return };
    look(&opened.document.outline(), 4);
    let mut findings = Findings::new(true);
    let _ = opened.document.validate(&mut findings);
    if let Ok(rows) = opened.document.all_rows() {
        let _ = rows.take_while(|batch| batch.is_ok()).take(1000).count();
    }
}

fn look(node: &Node, depth: u32) {
    let Some(parts) = &node.parts else { return };
    if depth == 0 {
        return;
    }
    for part in parts.nodes(0).take(PARTS).flatten() {
        look(&part, depth - 1);
    }
}
