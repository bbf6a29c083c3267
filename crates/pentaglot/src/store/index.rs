//! Which chunks a store has, and where: the indexes of all packs in one table.
//!
//! A chunk takes about 20 bytes of memory here: the table holds eight bytes of a digest, and the whole digest is compared with
//! the pack's own index.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::bucket::{REUSED_FOR, SPARED_FOR};
use super::files::{Files, Item, PACKS};
use super::pack::{self, Digest, Entry, SUFFIX};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::identity::Cid;
use crate::limits::Budget;
use crate::source::Source;

/// Packs that are open at the same time.
const OPEN_PACKS: usize = 64;
/// Chunks of a pack that are looked up together, since the next one is mostly near.
const NEAR: u32 = 64;
/// How many such groups are kept.
const NEAR_GROUPS: usize = 64;

/// Where a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) pack: u32,
    /// Its number in the pack.
    pub(super) entry: u32,
}

/// A pack of the store.
pub(super) struct Pack {
    /// The file's name.
    pub(super) name: String,
    pub(super) bytes: u64,
    /// How many chunks it has.
    pub(super) chunks: u32,
    /// Whether somebody may rely on it whose root is not written yet.
    pub(super) is_spared: bool,
}

/// The chunks of a store.
pub(super) struct Index {
    files: Arc<dyn Files>,
    pub(super) packs: Vec<Pack>,
    /// By the first eight bytes of a digest.
    places: HashMap<u64, Place>,
    /// Chunks whose first eight bytes are those of another chunk.
    others: HashMap<Digest, Place>,
    open: Mutex<HashMap<u32, Source>>,
    /// Chunks that were looked up, by the first one of each group.
    near: Mutex<HashMap<Place, Arc<[Entry]>>>,
}

fn prefix(digest: &Digest) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| digest[index]))
}

impl Index {
    /// Reads the indexes of all packs. A pack whose index is damaged is left out: what it has is missing.
    pub(super) fn read(files: Arc<dyn Files>, budget: &Budget, control: &Control) -> Result<Self> {
        Index::read_packs(files, |_| true, budget, control)
    }

    /// Reads the indexes of the packs that new data may rely on.
    pub(super) fn read_reusable(files: Arc<dyn Files>, budget: &Budget, control: &Control) -> Result<Self> {
        let is_reusable = |item: &Item| item.age.is_none_or(|age| age < REUSED_FOR);
        Index::read_packs(files, is_reusable, budget, control)
    }

    fn read_packs(
        files: Arc<dyn Files>,
        wanted: impl Fn(&Item) -> bool,
        budget: &Budget,
        control: &Control,
    ) -> Result<Self> {
        let mut index = Index::empty(Arc::clone(&files));
        let mut items = files.list(PACKS)?;
        // Where a chunk is in several packs, the one that will stay longest counts.
        items.sort_by_key(|item| item.age);
        for item in items.iter().filter(|item| wanted(item)) {
            control.check()?;
            if !item.name.ends_with(SUFFIX) {
                continue;
            }
            let source = files.open(&format!("{PACKS}/{}", item.name))?;
            let Ok(entries) = pack::read_entries(&source, budget) else { continue };
            index.add(item, &entries)?;
        }
        Ok(index)
    }

    fn empty(files: Arc<dyn Files>) -> Self {
        Index {
            files,
            packs: Vec::new(),
            places: HashMap::new(),
            others: HashMap::new(),
            open: Mutex::default(),
            near: Mutex::default(),
        }
    }

    /// Adds a pack. A chunk that is in several packs is that of the first.
    pub(super) fn add(&mut self, item: &Item, entries: &[Entry]) -> Result<u32> {
        let pack = self.packs.len() as u32;
        let Item { name, bytes, age } = item.clone();
        let is_spared = age.is_some_and(|age| age < SPARED_FOR);
        self.packs.push(Pack { name, bytes, chunks: entries.len() as u32, is_spared });
        for (number, entry) in entries.iter().enumerate() {
            let place = Place { pack, entry: number as u32 };
            match self.places.get(&prefix(&entry.digest)).copied() {
                None => drop(self.places.insert(prefix(&entry.digest), place)),
                Some(known) if known.pack == pack => {
                    if entries[known.entry as usize].digest != entry.digest {
                        self.others.entry(entry.digest).or_insert(place);
                    }
                }
                Some(known) => {
                    if self.entry(known)?.digest != entry.digest {
                        self.others.entry(entry.digest).or_insert(place);
                    }
                }
            }
        }
        Ok(pack)
    }

    /// Where a chunk is.
    pub(super) fn find(&self, digest: &Digest) -> Result<Option<(Place, Entry)>> {
        for place in [self.places.get(&prefix(digest)), self.others.get(digest)].into_iter().flatten() {
            let entry = self.entry(*place)?;
            if entry.digest == *digest {
                return Ok(Some((*place, entry)));
            }
        }
        Ok(None)
    }

    /// Where a chunk is, which must be there.
    pub(super) fn need(&self, digest: &Digest) -> Result<(Place, Entry)> {
        self.find(digest)?.ok_or_else(|| {
            Error::malformed(format_args!("the chunk {} in a pack", Cid::new(*digest)), "no such chunk")
        })
    }

    /// The file of a pack.
    pub(super) fn source(&self, pack: u32) -> Result<Source> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = open.get(&pack) {
            return Ok(source.clone());
        }
        if open.len() >= OPEN_PACKS {
            open.clear();
        }
        let source = self.files.open(&self.path(pack))?;
        open.insert(pack, source.clone());
        Ok(source)
    }

    /// The name of a pack's file in the store.
    pub(super) fn path(&self, pack: u32) -> String {
        format!("{PACKS}/{}", self.packs[pack as usize].name)
    }

    /// The chunks of a pack.
    pub(super) fn entries(&self, pack: u32, budget: &Budget) -> Result<Vec<Entry>> {
        let entries = pack::read_entries(&self.source(pack)?, budget);
        entries.map_err(|error| error.in_input(self.path(pack)))
    }

    fn entry(&self, place: Place) -> Result<Entry> {
        let first = Place { entry: place.entry / NEAR * NEAR, ..place };
        let lock = || self.near.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&first).cloned();
        let group = match known {
            Some(group) => group,
            None => {
                let Pack { bytes, chunks, .. } = &self.packs[place.pack as usize];
                let source = self.source(place.pack)?;
                let group = pack::read_some_entries(&source, *bytes, *chunks, first.entry, NEAR);
                let group: Arc<[Entry]> =
                    group.map_err(|error| error.in_input(self.path(place.pack)))?.into();
                let mut near = lock();
                if near.len() >= NEAR_GROUPS {
                    // Half of them make room: those of a table with many columns are asked for in turn.
                    let mut is_kept = false;
                    near.retain(|_, _| {
                        is_kept = !is_kept;
                        is_kept
                    });
                }
                near.insert(first, Arc::clone(&group));
                group
            }
        };
        let entry = group.get((place.entry - first.entry) as usize).cloned();
        entry.ok_or_else(|| {
            Error::malformed("a chunk of the pack", place.entry).in_input(self.path(place.pack))
        })
    }

    /// The plain bytes of a chunk, checked.
    pub(super) fn chunk(&self, digest: &Digest, budget: &Budget) -> Result<Vec<u8>> {
        let (place, entry) = self.need(digest)?;
        let source = self.source(place.pack)?;
        pack::read_chunk(&source, &entry, budget).map_err(|error| error.in_input(self.path(place.pack)))
    }
}
