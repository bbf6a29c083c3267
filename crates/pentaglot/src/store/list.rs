//! What a store has.

use std::collections::HashMap;

use serde_json::json;

use super::Store;
use super::files::ROOTS;
use super::index::{Index, Place};
use crate::control::Control;
use crate::error::Result;
use crate::limits::Budget;

/// Data in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listed {
    /// Its identity.
    pub identity: String,
    /// `table`, `matrix`, `array` or `value`.
    pub shape: &'static str,
    /// Rows.
    pub rows: u64,
    /// Columns of a table or matrix; 1 for other shapes.
    pub columns: u64,
    /// Bytes that its chunks and its root take in the store.
    pub bytes: u64,
    /// How many of them other data needs too.
    pub shared_bytes: u64,
    /// When it was put in last, in ticks of 100 ns since 1970.
    pub time: i64,
    /// The name that it was given last; empty if none.
    pub name: String,
}

impl Listed {
    /// When it was put in last: `2026-01-31T12:00:00Z`.
    pub fn time_text(&self) -> String {
        let seconds = self.time.div_euclid(10_000_000);
        arrow_array::temporal_conversions::timestamp_s_to_datetime(seconds)
            .map_or_else(|| self.time.to_string(), |time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string())
    }

    /// One object: `{identity, shape, rows, columns, bytes, shared_bytes, time, name}`.
    pub fn to_json(&self) -> String {
        let Listed { identity, shape, rows, columns, bytes, shared_bytes, name, .. } = self;
        let time = self.time_text();
        json!({ "identity": identity, "shape": shape, "rows": rows, "columns": columns, "bytes": bytes,
            "shared_bytes": shared_bytes, "time": time, "name": name })
        .to_string()
    }
}

/// How many roots need a chunk, and the bytes that it takes.
struct Use {
    roots: u32,
    /// The last root that was seen to need it.
    last: u32,
    bytes: u32,
}

pub(super) fn list(store: &Store, budget: &Budget, control: &Control) -> Result<Vec<Listed>> {
    let index = Index::read(std::sync::Arc::clone(&store.files), budget, control)?;
    let ids = store.identities()?;
    let mut uses: HashMap<Place, Use> = HashMap::new();
    let mut each = |number: usize, id: &str, visit: &mut dyn FnMut(&mut Use)| -> Result<super::Root> {
        control.check()?;
        let root = store.root(id, budget)?;
        let last = number as u32 + 1;
        for chunk in root.all_chunks() {
            let (place, entry) = index.need(&chunk.digest)?;
            let used = uses.entry(place).or_insert(Use { roots: 0, last: 0, bytes: entry.stored });
            if std::mem::replace(&mut used.last, last) != last {
                visit(used);
            }
        }
        Ok(root)
    };
    for (number, id) in ids.iter().enumerate() {
        each(number, id, &mut |used| used.roots += 1)?;
    }
    let files: HashMap<String, u64> =
        store.files.list(ROOTS)?.into_iter().map(|item| (item.name, item.bytes)).collect();
    let mut listed = Vec::new();
    for (number, id) in ids.iter().enumerate() {
        let (mut bytes, mut shared_bytes) = (files.get(id).copied().unwrap_or(0), 0);
        let root = each(ids.len() + number, id, &mut |used| {
            bytes += u64::from(used.bytes);
            shared_bytes += if used.roots > 1 { u64::from(used.bytes) } else { 0 };
        })?;
        let latest = root.origins.iter().max_by_key(|origin| origin.time);
        let named = root.origins.iter().rev().find(|origin| !origin.name.is_empty());
        let identity = &root.identity;
        listed.push(Listed {
            identity: id.clone(),
            shape: identity.shape,
            rows: identity.rows,
            columns: if identity.shape == "matrix" { identity.cols } else { identity.columns.len() as u64 },
            bytes,
            shared_bytes,
            time: latest.map_or(0, |origin| origin.time),
            name: named.map_or_else(String::new, |origin| origin.name.clone()),
        });
    }
    listed.sort_by(|one, other| (one.time, &one.identity).cmp(&(other.time, &other.identity)));
    Ok(listed)
}
