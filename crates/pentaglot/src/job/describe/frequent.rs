//! Distinct values and their counts: all of them up to [`EXACT`] distinct values, then the frequent ones.
//!
//! Past the bound, rare values are removed when the table is full. A removed value occurred at most `floor` times, and a
//! value that is added later may have been removed before: it carries `floor` as its possible undercount. So a count is
//! exact if its undercount is 0, and the first ten are the true ones if each count is exact and no removed value can have
//! reached them.
//!
//! Once values have been removed, a value enters the table when it is seen for the second time within some ten thousand
//! others ([`Sieve`]), so that values that occur once do not fill it. The time before may have been missed: `floor` counts it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::distinct::HyperLogLog;

/// Up to this many distinct values, all are counted.
pub(super) const EXACT: usize = 10_000;
/// Entries after which rare values are removed.
const MOST: usize = 2 * EXACT;
/// Bytes of values after which rare values are removed.
const MOST_BYTES: u64 = 16 << 20;
/// A value that takes more bytes is not kept.
const LONG: u64 = 1 << 20;
/// How many of the most frequent values are reported.
const TOP: usize = 10;

/// What identifies a value: equal values have equal keys.
pub(super) trait Key: Ord + Clone {
    /// Bytes on the heap.
    fn bytes(&self) -> u64;

    /// The hash of the value.
    fn hash(&self) -> u64;
}

impl Key for u64 {
    fn bytes(&self) -> u64 {
        0
    }

    #[inline]
    fn hash(&self) -> u64 {
        hash_word(*self)
    }
}

impl Key for Box<[u8]> {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn hash(&self) -> u64 {
        hash_bytes(self)
    }
}

#[derive(Debug, Clone)]
struct Entry<K> {
    key: K,
    count: u64,
    /// The maximum number of missed occurrences.
    undercount: u64,
}

/// The keys of the table are well mixed hashes already, so they are not hashed again.
#[derive(Debug, Clone, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        debug_assert!(false, "keys are u64");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A set of values by some bits of their hashes: it may seem to have others too.
#[derive(Debug, Clone)]
struct Marks(Vec<u64>);

impl Marks {
    /// Bits of a hash.
    const BITS: u32 = 18;

    fn new() -> Self {
        Marks(vec![0; 1 << (Self::BITS - 6)])
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    #[inline]
    fn has(&self, hash: u64) -> bool {
        let place = (hash >> 16) as usize & ((1 << Self::BITS) - 1);
        self.0[place / 64] & (1 << (place % 64)) != 0
    }

    #[inline]
    fn insert(&mut self, hash: u64) {
        let place = (hash >> 16) as usize & ((1 << Self::BITS) - 1);
        self.0[place / 64] |= 1 << (place % 64);
    }
}

/// What most values that occur once do not get through.
#[derive(Debug, Clone)]
struct Sieve {
    /// The values of the table: of others, which are most, the table need not be asked.
    kept: Marks,
    /// The values that were seen recently, and how many there are.
    recent: Marks,
    recent_count: usize,
}

impl Sieve {
    /// After so many values all recent ones are forgotten.
    const MOST: usize = 1 << 14;
    /// Its bytes.
    const BYTES: u64 = 2 << (Marks::BITS - 3);
}

/// Counts of values.
#[derive(Debug, Clone)]
pub(super) struct Frequent<K> {
    table: HashMap<u64, Entry<K>, BuildHasherDefault<Mixed>>,
    /// Bytes of the keys.
    key_bytes: u64,
    floor: u64,
    /// Present once values have been removed.
    sieve: Option<Sieve>,
    /// Present once there are more than [`EXACT`] distinct values, or a value was not kept.
    estimate: Option<Box<HyperLogLog>>,
    /// A value that is too long to be kept has occurred.
    has_long: bool,
}

/// The most frequent values.
pub(super) struct Top<K> {
    pub(super) values: Vec<(K, u64)>,
    pub(super) is_exact: bool,
}

impl<K: Key> Frequent<K> {
    pub(super) fn new() -> Self {
        Frequent {
            table: HashMap::default(),
            key_bytes: 0,
            floor: 0,
            sieve: None,
            estimate: None,
            has_long: false,
        }
    }

    /// Counts a value, given by its hash, a test for equality with a key, its length, and its key.
    #[inline]
    pub(super) fn push(&mut self, hash: u64, is: impl Fn(&K) -> bool, bytes: u64, key: impl FnOnce() -> K) {
        if let Some(estimate) = &mut self.estimate {
            estimate.insert(hash);
        }
        if self.count_kept(hash, is) || self.is_new(hash) {
            return;
        }
        if bytes > LONG {
            self.has_long = true;
            self.start_estimate().insert(hash);
            return;
        }
        let mut place = hash;
        // Another value may have the same hash, so this one is stored elsewhere.
        while self.table.contains_key(&place) {
            place = next_place(place);
        }
        self.add(place, Entry { key: key(), count: 1, undercount: self.floor });
        self.shrink();
    }

    /// Counts a value that is in the table; whether it is.
    #[inline]
    fn count_kept(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> bool {
        if self.sieve.as_ref().is_some_and(|sieve| !sieve.kept.has(hash)) {
            return false;
        }
        let mut place = hash;
        loop {
            match self.table.get_mut(&place) {
                Some(entry) if is(&entry.key) => {
                    entry.count += 1;
                    return true;
                }
                Some(_) => place = next_place(place),
                None => return false,
            }
        }
    }

    /// Whether values are removed, and this one was not seen recently.
    #[inline]
    fn is_new(&mut self, hash: u64) -> bool {
        let Some(sieve) = &mut self.sieve else { return false };
        if sieve.recent.has(hash) {
            return false;
        }
        if sieve.recent_count >= Sieve::MOST {
            sieve.recent.clear();
            sieve.recent_count = 0;
            self.floor += 1;
        }
        sieve.recent.insert(hash);
        sieve.recent_count += 1;
        true
    }

    fn add(&mut self, place: u64, entry: Entry<K>) {
        self.key_bytes += entry.key.bytes();
        if let Some(sieve) = &mut self.sieve {
            sieve.kept.insert(entry.key.hash());
        }
        self.table.insert(place, entry);
    }

    /// Switches to estimates, and removes rare values, if there are too many values.
    fn shrink(&mut self) {
        if self.table.len() > EXACT {
            self.start_estimate();
        }
        if self.table.len() > MOST || self.key_bytes > MOST_BYTES {
            self.start_estimate();
            self.remove_rare();
        }
    }

    fn start_estimate(&mut self) -> &mut HyperLogLog {
        let table = &self.table;
        self.estimate.get_or_insert_with(|| {
            let mut estimate = Box::new(HyperLogLog::new());
            table.keys().for_each(|hash| estimate.insert(*hash));
            estimate
        })
    }

    /// Removes the rarer half, and all that are as rare as the last of it.
    fn remove_rare(&mut self) {
        let mut counts: Vec<u64> = self.table.values().map(|entry| entry.count + entry.undercount).collect();
        let middle = counts.len() / 2;
        let (_, floor, _) = counts.select_nth_unstable(middle);
        let floor = *floor;
        self.table.retain(|_, entry| entry.count + entry.undercount > floor);
        self.key_bytes = self.table.values().map(|entry| entry.key.bytes()).sum();
        self.floor = self.floor.max(floor);
        let floor = &mut self.floor;
        let sieve = self.sieve.get_or_insert_with(|| {
            // One occurrence of a value may be missed from now on.
            *floor += 1;
            Sieve { kept: Marks::new(), recent: Marks::new(), recent_count: 0 }
        });
        sieve.kept.clear();
        self.table.values().for_each(|entry| sieve.kept.insert(entry.key.hash()));
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.has_long |= other.has_long;
        match (&mut self.estimate, &other.estimate) {
            (Some(own), Some(other)) => own.merge(other),
            (None, Some(_)) => {
                let theirs = other.estimate.as_deref().cloned();
                let own = self.start_estimate();
                theirs.iter().for_each(|theirs| own.merge(theirs));
            }
            (Some(own), None) => other.table.keys().for_each(|hash| own.insert(*hash)),
            (None, None) => {}
        }
        let (own_floor, their_floor) = (self.floor, other.floor);
        if their_floor > 0 {
            for (place, entry) in &mut self.table {
                if other.table.get(place).is_none_or(|theirs| theirs.key != entry.key) {
                    entry.undercount += their_floor;
                }
            }
        }
        self.floor = own_floor + their_floor;
        for (hash, entry) in other.table {
            let mut place = hash;
            loop {
                match self.table.get_mut(&place) {
                    Some(own) if own.key == entry.key => {
                        own.count += entry.count;
                        own.undercount += entry.undercount;
                        break;
                    }
                    Some(_) => place = next_place(place),
                    None => {
                        let undercount = entry.undercount + own_floor;
                        self.add(place, Entry { undercount, ..entry });
                        break;
                    }
                }
            }
        }
        // Only after all counts are added: a value removed before its other count is added would have a
        // larger undercount than `floor`.
        self.shrink();
    }

    /// The number of distinct values, and whether it is exact.
    pub(super) fn distinct(&self) -> (u64, bool) {
        match &self.estimate {
            None => (self.table.len() as u64, true),
            Some(estimate) => (estimate.estimate(), false),
        }
    }

    /// The most frequent values, the smaller of equally frequent ones first.
    pub(super) fn top(&self) -> Top<K> {
        let mut entries: Vec<&Entry<K>> = self.table.values().collect();
        entries.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
        let last = entries.get(TOP - 1).map_or(0, |entry| entry.count);
        let no_other = entries.iter().skip(TOP).all(|entry| entry.count + entry.undercount <= last);
        entries.truncate(TOP);
        let exact_counts = entries.iter().all(|entry| entry.undercount == 0);
        let removed = if self.floor == 0 { true } else { entries.len() == TOP && self.floor < last };
        let is_exact = !self.has_long && exact_counts && no_other && removed;
        Top { values: entries.into_iter().map(|entry| (entry.key.clone(), entry.count)).collect(), is_exact }
    }

    /// All values with their counts, if all were counted.
    pub(super) fn all_counts(&self) -> Option<impl Iterator<Item = u64> + '_> {
        (self.floor == 0 && !self.has_long).then(|| self.table.values().map(|entry| entry.count))
    }

    pub(super) fn bytes(&self) -> u64 {
        let entry = size_of::<Entry<K>>() as u64 + 10;
        let registers = if self.estimate.is_some() { 1 << 15 } else { 0 };
        let sieve = if self.sieve.is_some() { Sieve::BYTES } else { 0 };
        self.table.capacity() as u64 * entry + self.key_bytes + registers + sieve
    }
}

/// The next slot for a value if another value has the same hash.
fn next_place(place: u64) -> u64 {
    place.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1)
}

/// A well mixed hash of a word; different words have different ones.
#[inline]
pub(super) fn hash_word(word: u64) -> u64 {
    let mut x = word ^ 0x2545_f491_4f6c_dd1d;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A well mixed hash of bytes.
#[inline]
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(FACTOR);
        (product as u64) ^ ((product >> 64) as u64)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut state = FACTOR.rotate_left(17) ^ bytes.len() as u64;
    for word in words {
        state = fold(state, u64::from_le_bytes(*word)).wrapping_add(FACTOR);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash_word(fold(state, u64::from_le_bytes(last)))
}
