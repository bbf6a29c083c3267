//! Collecting: chunks that no root needs are dropped, and small packs joined.
//!
//! What is kept of a pack is copied to a new one before the old one is removed, so that every chunk is in the store at every
//! moment. Chunks are checked on the way: damage is reported, and not copied.

use std::collections::HashSet;
use std::sync::Arc;

use super::Store;
use super::bucket::SPARED_FOR;
use super::files::PACKS;
use super::index::{Index, Place};
use super::pack::{self, PACK_BYTES, PackWriter, SUFFIX};
use crate::control::Control;
use crate::error::Result;
use crate::limits::Budget;

/// Packs below this size are joined if there are several.
const SMALL_PACK: u64 = PACK_BYTES / 4;

/// What a collection did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Chunks that were dropped.
    pub chunks: u64,
    /// Bytes of packs before.
    pub bytes_before: u64,
    /// Bytes of packs after.
    pub bytes_after: u64,
}

impl Collected {
    /// One object: `{chunks, bytes_before, bytes_after}`.
    pub fn to_json(&self) -> String {
        let Collected { chunks, bytes_before, bytes_after } = self;
        serde_json::json!({ "chunks": chunks, "bytes_before": bytes_before, "bytes_after": bytes_after })
            .to_string()
    }
}

pub(super) fn collect(store: &Store, budget: &Budget, control: &Control) -> Result<Collected> {
    let files = store.files.as_ref();
    files.remove_temporary()?;
    let index = Index::read(Arc::clone(&store.files), budget, control)?;
    let mut live: HashSet<Place> = HashSet::new();
    for id in store.identities()? {
        control.check()?;
        for chunk in store.root(&id, budget)?.all_chunks() {
            live.insert(index.need(&chunk.digest)?.0);
        }
    }
    let mut live_counts = vec![0u32; index.packs.len()];
    live.iter().for_each(|place| live_counts[place.pack as usize] += 1);
    let has_dead = |pack: usize| live_counts[pack] < index.packs[pack].chunks;
    let is_small = |pack: usize| index.packs[pack].bytes < SMALL_PACK;
    let free: Vec<usize> = (0..index.packs.len()).filter(|pack| !index.packs[*pack].is_spared).collect();
    let joins_small = free.iter().filter(|pack| is_small(**pack)).count() > 1;
    let is_rewritten = |pack: &usize| has_dead(*pack) || joins_small && is_small(*pack);
    let rewritten: Vec<usize> = free.into_iter().filter(is_rewritten).collect();
    let mut collected = Collected::default();
    collected.bytes_before = index.packs.iter().map(|pack| pack.bytes).sum();
    collected.bytes_after = collected.bytes_before;
    let mut copier = Copier { store, pack: None, names: HashSet::new(), bytes: 0 };
    for pack in &rewritten {
        collected.bytes_after -= index.packs[*pack].bytes;
        collected.chunks += u64::from(index.packs[*pack].chunks - live_counts[*pack]);
        if live_counts[*pack] == 0 {
            continue;
        }
        let source = index.source(*pack as u32)?;
        for (number, entry) in index.entries(*pack as u32, budget)?.iter().enumerate() {
            if !live.contains(&Place { pack: *pack as u32, entry: number as u32 }) {
                continue;
            }
            control.check()?;
            let checked = pack::read_chunk(&source, entry, budget);
            checked.map_err(|error| error.in_input(index.path(*pack as u32)))?;
            let frame = source.read_range(entry.offset, entry.stored.into(), budget)?;
            copier.push(entry, &frame)?;
        }
    }
    copier.end_pack()?;
    collected.bytes_after += copier.bytes;
    files.sync(PACKS)?;
    for pack in rewritten.iter().map(|pack| &index.packs[*pack].name) {
        // A pack that is written again as it was has the same name.
        if !copier.names.contains(pack) {
            files.remove(&format!("{PACKS}/{pack}"))?;
        }
    }
    // A pack whose index cannot be read has no chunk that a root could use: every root's chunks were found above.
    let known: HashSet<&str> = index.packs.iter().map(|pack| pack.name.as_str()).collect();
    for item in files.list(PACKS)? {
        let is_known = known.contains(item.name.as_str()) || copier.names.contains(&item.name);
        let is_spared = item.age.is_some_and(|age| age < SPARED_FOR);
        if item.name.ends_with(SUFFIX) && !is_known && !is_spared {
            files.remove(&format!("{PACKS}/{}", item.name))?;
        }
    }
    files.sync(PACKS)?;
    Ok(collected)
}

/// Chunks on their way to new packs.
struct Copier<'s> {
    store: &'s Store,
    pack: Option<PackWriter>,
    names: HashSet<String>,
    bytes: u64,
}

impl Copier<'_> {
    fn push(&mut self, entry: &pack::Entry, frame: &[u8]) -> Result<()> {
        if self.pack.as_ref().is_some_and(|pack| !pack.fits(frame.len())) {
            self.end_pack()?;
        }
        let pack = match self.pack.take() {
            Some(pack) => self.pack.insert(pack),
            None => self.pack.insert(PackWriter::new(self.store.files.as_ref())?),
        };
        pack.push(entry.digest, entry.plain, frame).map(drop)
    }

    fn end_pack(&mut self) -> Result<()> {
        if let Some(pack) = self.pack.take() {
            let (name, bytes) = pack.finish(self.store.files.as_ref())?;
            self.bytes += bytes;
            self.names.insert(name);
        }
        Ok(())
    }
}
