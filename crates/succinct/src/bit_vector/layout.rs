//! A plain bit vector as elements: ones, bits, and three optional supports.

use std::io;

use super::rank::{pack_block, pair_elements, pairs_of};
use super::select_support::SelectSupport;
use super::{BitVector, Index};
use crate::cpu::dispatch;
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::int_vector::IntVector;
use crate::layout::{Severity, Structure, Supports, Walk, WordSink};
use crate::raw_vector::RawVector;
use crate::storage::{Section, Words};

const SLOT_NAMES: [&str; 3] = ["rank_support", "select_support", "select_zero_support"];

/// Which optional slots are written: rank, select, select0.
pub(crate) type Slots = [bool; 3];

impl<W: Words> BitVector<W> {
    /// Writes the vector; a sparse vector's high part has no rank support in a full file.
    pub(crate) fn write_with(
        &self,
        supports: Supports,
        full: Slots,
        sink: &mut impl WordSink,
    ) -> io::Result<()> {
        sink.put(&[self.ones])?;
        self.bits.write_words(supports, sink)?;
        for (kind, stored) in self.stored_supports().into_iter().enumerate() {
            match supports {
                Supports::AsIs => {
                    let words = stored.unwrap_or_default();
                    sink.put(&[words.len() as u64])?;
                    sink.put(words)?;
                }
                Supports::Full if full[kind] => self.write_support(kind, sink)?,
                Supports::Full | Supports::Lean => sink.put(&[0])?,
            }
        }
        Ok(())
    }

    fn write_support(&self, kind: usize, sink: &mut impl WordSink) -> io::Result<()> {
        let (words, len) = (self.bits.words(), self.bits.len());
        let support = match kind {
            0 => {
                // Always computed from the bits: a file's own support is unverified.
                let pairs = dispatch!(isa => pairs_of(isa, words));
                sink.put(&[1 + pairs.len() as u64, pairs.len() as u64 / 2])?;
                return sink.put(&pairs);
            }
            1 => SelectSupport::build::<true>(words, len),
            _ => SelectSupport::build::<false>(words, len),
        };
        let mut content = Vec::new();
        for vector in [&support.samples, &support.long, &support.short] {
            vector.write_words(Supports::AsIs, &mut content)?;
        }
        sink.put(&[content.len() as u64])?;
        sink.put(&content)
    }

    fn check_rank_support(&self, found: &[u64], walk: &mut Walk) {
        let (name, at) = (SLOT_NAMES[0], walk.offset() - found.len() as u64);
        let needed = pair_elements(self.bits.len());
        let is_pairs = found.first().is_some_and(|&pairs| {
            pairs.checked_mul(2).and_then(|elements| elements.checked_add(1)) == Some(found.len() as u64)
        });
        if !is_pairs {
            return foreign(name, at, found.len(), walk);
        }
        if found[0] != needed / 2 {
            return walk.error("rank support", at, name, format!("{} blocks", needed / 2), found[0]);
        }
        let mut before = 0;
        for (block, (words, pair)) in self.bits.words().chunks(8).zip(found[1..].chunks(2)).enumerate() {
            let (packed, count) = dispatch!(isa => pack_block(isa, words));
            for (item, expected) in [before, packed].into_iter().enumerate() {
                if pair[item] != expected {
                    let place = at + 1 + 2 * block as u64 + item as u64;
                    walk.error("rank support", place, &format!("{name}[{block}]"), expected, pair[item]);
                }
            }
            before += count;
            if !walk.checking() {
                return;
            }
        }
    }

    fn check_select_support<const ONE: bool>(&self, found: &[u64], walk: &mut Walk) {
        let (name, at) = (SLOT_NAMES[if ONE { 1 } else { 2 }], walk.offset() - found.len() as u64);
        let Some(found) = SelectSupport::open(found) else {
            return foreign(name, at, found.len(), walk);
        };
        let expected = SelectSupport::build::<ONE>(self.bits.words(), self.bits.len());
        let vectors = [
            ("samples", &expected.samples, &found.samples),
            ("long", &expected.long, &found.long),
            ("short", &expected.short, &found.short),
        ];
        let mut start = at;
        for (field, expected, found) in vectors {
            compare(&format!("{name}.{field}"), start, expected, found, walk);
            start += found.size_in_elements(Supports::AsIs);
        }
    }
}

fn foreign(name: &str, at: u64, elements: usize, walk: &mut Walk) {
    let expected = "a support as simple-sds writes it".to_owned();
    let found = format!("{elements} elements of another kind, skipped");
    walk.finding(Severity::Warning, "foreign support", at, name, expected, found);
}

/// Reports the first difference between two integer vectors.
fn compare(name: &str, at: u64, expected: &IntVector, found: &IntVector<&[u64]>, walk: &mut Walk) {
    if expected == found {
        return;
    }
    for (offset, field, expected, found) in [
        (0, "len", expected.len(), found.len()),
        (1, "width", u64::from(expected.width()), u64::from(found.width())),
    ] {
        if expected != found {
            return walk.error("select support", at + offset, &format!("{name}.{field}"), expected, found);
        }
    }
    let differ = |(_, (expected, found)): &(usize, (u64, u64))| expected != found;
    match expected.iter().zip(found.iter()).enumerate().find(differ) {
        Some((index, (expected, found_item))) => {
            let place = at + 4 + index as u64 * u64::from(found.width()) / 64;
            walk.error("select support", place, &format!("{name}[{index}]"), expected, found_item);
        }
        None => {
            let place = at + 3 + found.bits().words().len() as u64;
            walk.error("unused bits", place, name, "unused bits that are 0", "other bits");
        }
    }
}

impl<W: Words> Structure<W> for BitVector<W> {
    fn from_words(cursor: &mut WordCursor<W>) -> Result<Self, Error>
    where
        W: Section,
    {
        let at = cursor.position();
        let ones = cursor.element("ones")?;
        let bits = RawVector::from_words(cursor).map_err(|error| error.within("bits"))?;
        if ones > bits.len() {
            return Err(Error::malformed(at, "ones", format!("at most {} set bits", bits.len()), ones));
        }
        let slots =
            [cursor.option(SLOT_NAMES[0])?, cursor.option(SLOT_NAMES[1])?, cursor.option(SLOT_NAMES[2])?];
        let needed = pair_elements(bits.len());
        let pairs = slots[0].as_ref().and_then(|slot| {
            let words = slot.as_ref();
            let fits = words.first() == Some(&(needed / 2)) && words.len() as u64 == needed + 1;
            if fits { slot.section(1..words.len()) } else { None }
        });
        Ok(BitVector { ones, bits, slots, pairs, index: Index::default() })
    }

    fn write_words(&self, supports: Supports, sink: &mut impl WordSink) -> io::Result<()> {
        self.write_with(supports, [true; 3], sink)
    }

    fn walk(&self, walk: &mut Walk) {
        let start = walk.offset();
        walk.part("ones", 1);
        walk.nest("bits", &self.bits);
        if walk.checking() {
            let ones = self.bits.count_ones();
            if ones != self.ones {
                walk.error("count", start, "ones", format!("{ones} set bits"), self.ones);
            }
        }
        for (kind, stored) in self.stored_supports().into_iter().enumerate() {
            walk.part(&format!("{}.len", SLOT_NAMES[kind]), 1);
            let Some(words) = stored else { continue };
            walk.part(SLOT_NAMES[kind], words.len() as u64);
            if walk.checking() {
                match kind {
                    0 => self.check_rank_support(words, walk),
                    1 => self.check_select_support::<true>(words, walk),
                    _ => self.check_select_support::<false>(words, walk),
                }
            }
        }
    }
}
