//! The matches of an LZ4 block that is compressed while its bytes come: those that `LZ4_compress_default` of the C library finds
//! in a block of more than 64 KiB, so that the block has the same bytes. The plain version is the library; what one call
//! cannot decide `wire::lz4::write` does in small steps.

#![allow(unsafe_code, reason = "words are read and written at places that have been compared with the ends")]

use std::ptr::copy_nonoverlapping;

/// The maximum distance of a match.
pub(crate) const MOST_DISTANCE: usize = 65_535;

/// The minimum length of a match.
pub(crate) const LEAST_MATCH: usize = 4;

/// A match begins so many bytes before the end of the block, or more, and ends so many before it.
const BEFORE_MATCH: usize = 11;
const AFTER_MATCH: usize = 5;

/// As many places as the table has bits are looked up before the steps between them grow.
const TRIES: u32 = 1 << STEP_BITS;
const STEP_BITS: u32 = 6;

const TABLE_BITS: u32 = 12;
const TABLE_LENGTH: usize = 1 << TABLE_BITS;

/// A block that is being compressed. Places count from its start.
pub(crate) struct Search {
    /// The last place that was looked up, for each hash of five bytes.
    table: Box<[u32; TABLE_LENGTH]>,
    /// What comes before this place is in the output.
    pub anchor: usize,
    /// Whether literals after the anchor are kept elsewhere, so that the match that follows them is only found.
    pub is_apart: bool,
    pub next: Next,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A place to look up, how far the one after it is, and how many have been looked up since the last match.
    Probe { place: usize, step: usize, tries: u32 },
    /// The four bytes here also stand `distance` bytes before. Nothing of it has been written.
    Found { place: usize, distance: usize },
    /// A match of which the bytes before `anchor` are known to be the same. Its token, at this place of the output that was passed,
    /// does not have its length yet.
    Match { place: usize, distance: usize, token: usize },
    /// A match ended at `anchor`.
    Ended,
}

impl Search {
    /// A block of which nothing has come.
    pub(crate) fn new() -> Self {
        Search { table: Box::new([0; TABLE_LENGTH]), anchor: 0, is_apart: false, next: Next::probe(1) }
    }

    /// The bytes that the output of [`sequences`](Self::sequences) may take, if the bytes before `end` are there.
    pub(crate) fn room(&self, end: usize) -> usize {
        // A sequence without a long run takes no more than its bytes; wide copies write past their end.
        let plain = if self.is_apart { 0 } else { end.saturating_sub(self.anchor) };
        plain + plain / 255 + 64
    }

    /// The last place where a match may begin, and the end of the last one, if the block ends at `end`. While more bytes may come,
    /// what lies before these is the same for any later end.
    pub(crate) fn limits(end: usize) -> (usize, usize) {
        (end.saturating_sub(BEFORE_MATCH), end.saturating_sub(AFTER_MATCH))
    }

    /// The last place before `place` with the same hash as these bytes, which is replaced by it.
    pub(crate) fn look_up(&mut self, bytes: [u8; 8], place: usize) -> usize {
        let slot = self.table.get_mut(key(u64::from_le_bytes(bytes)));
        slot.map_or(0, |slot| std::mem::replace(slot, place as u32) as usize)
    }

    /// Appends sequences (literals and a match) to `out`, from a place to look up or a match that has been found: until the end of `plain`, whose
    /// first byte has the place `start`, is near, or a match is found whose literals are kept elsewhere.
    ///
    /// `plain` reaches back as far as a match may from the place, or to the start of the block, and `out` has room.
    pub(crate) fn sequences(&mut self, plain: &[u8], start: usize, out: &mut Vec<u8>) {
        let (mut here, mut step, mut tries, mut found) = match self.next {
            Next::Probe { place, step, tries } => (place, step, tries, None),
            Next::Found { place, distance } if !self.is_apart => (place, 1, TRIES, Some(place - distance)),
            _ => return,
        };
        let end = start.saturating_add(plain.len());
        let (last_place, last_match) = Search::limits(end);
        let (mut anchor, is_apart) = (self.anchor, self.is_apart);
        let is_place = |place: usize| i32::try_from(place).is_ok();
        assert!(
            is_place(end) && is_place(here) && is_place(step),
            "places fit the table, and their sums a `usize`"
        );
        assert!(i32::try_from(tries).is_ok(), "no more places are looked up than there are");
        assert!(start <= anchor || is_apart, "these bytes have the literals");
        assert!(start == 0 || start + MOST_DISTANCE <= here, "a match may begin before these bytes");
        assert!(anchor <= here, "the places are in order");
        assert!(found.is_none_or(|found| start <= found && found < here), "what is found is in these bytes");
        assert!(out.capacity() - out.len() >= self.room(end), "there is room for what the bytes become");
        if here + step > last_place {
            return;
        }
        let (base, table) = (plain.as_ptr().wrapping_sub(start), self.table.as_mut_ptr());
        let begin = out.as_mut_ptr();
        // SAFETY: `base + place` is the byte of that place, for places from `start` to before `end`.
        // * A place that is looked up, and the one after it, is at most `last_place`, 11 bytes before `end`: 8 bytes are read there.
        //   So are those at `anchor - 2`, after a match of four bytes or more.
        // * The table may hold any number: `candidate` is used where it is at most `MOST_DISTANCE` before `here`, so not before
        //   `start`; `here - candidate` wraps to more where it is not before `here`. Four bytes are read there, and what follows
        //   lies before what follows `here`.
        // * `same_before` reads no byte before `start`, nor before `anchor`, `same_after` none from `last_match` on, 5 bytes before `end`.
        // * Literals begin at `anchor`, not before `start`. Up to 14 are copied as 8, which end at most at `here + 8`, or as twice 8, of
        //   which the second end at most at `here + 7`.
        // * Keys of the table have 12 bits.
        // * A sequence takes at most its own bytes, and one more for each 255, so that `Search::room` bytes hold all, and the few
        //   that copies and distances write past their end.
        unsafe {
            let mut to = begin.add(out.len());
            let next = 'all: loop {
                let mut key = key_at(base, here);
                let mut candidate = match found.take() {
                    Some(found) => found,
                    None => loop {
                        let ahead = here + step;
                        if ahead > last_place {
                            break 'all Next::Probe { place: here, step, tries };
                        }
                        let slot = table.add(key);
                        let candidate = *slot as usize;
                        *slot = here as u32;
                        key = key_at(base, ahead);
                        if here.wrapping_sub(candidate) <= MOST_DISTANCE
                            && four(base, candidate) == four(base, here)
                        {
                            break candidate;
                        }
                        step = (tries >> STEP_BITS) as usize;
                        tries += 1;
                        here = ahead;
                    },
                };
                if is_apart {
                    break 'all Next::Found { place: here, distance: here - candidate };
                }
                if candidate > start && *base.wrapping_add(here - 1) == *base.wrapping_add(candidate - 1) {
                    let back = same_before(base, here, candidate, (here - anchor).min(candidate - start));
                    here -= back;
                    candidate -= back;
                }
                let mut token = to;
                let literals = here - anchor;
                let mut head;
                if literals < 15 {
                    head = (literals as u8) << 4;
                    copy(base.wrapping_add(anchor), to.add(1));
                    if literals > 8 {
                        copy(base.wrapping_add(anchor + 8), to.add(9));
                    }
                    to = to.add(1 + literals);
                } else {
                    head = 15 << 4;
                    to = long_literals(base.wrapping_add(anchor), to.add(1), literals);
                }
                // This match, and those that follow it without literals.
                loop {
                    to.cast::<[u8; 2]>().write(((here - candidate) as u16).to_le_bytes());
                    to = to.add(2);
                    anchor = here + LEAST_MATCH;
                    'same: {
                        if anchor + 8 <= last_match {
                            let differ = word(base, anchor) ^ word(base, candidate + LEAST_MATCH);
                            if differ != 0 {
                                anchor += (differ.trailing_zeros() / 8) as usize;
                                break 'same;
                            }
                            anchor += 8;
                        }
                        let earlier = base.wrapping_sub(here - candidate);
                        while anchor + 8 <= last_match {
                            let differ = word(base, anchor) ^ word(earlier, anchor);
                            if differ != 0 {
                                anchor += (differ.trailing_zeros() / 8) as usize;
                                break 'same;
                            }
                            anchor += 8;
                        }
                        anchor = same_after(base, earlier, anchor, last_match);
                        if anchor >= last_match {
                            *token = head;
                            let token = token.offset_from_unsigned(begin);
                            break 'all Next::Match { place: here, distance: here - candidate, token };
                        }
                    }
                    let longer = anchor - here - LEAST_MATCH;
                    if longer < 15 {
                        *token = head | longer as u8;
                    } else {
                        *token = head | 15;
                        to = long(to, longer - 15);
                    }
                    if anchor >= last_place {
                        break 'all Next::Ended;
                    }
                    *table.add(key_at(base, anchor - 2)) = (anchor - 2) as u32;
                    let slot = table.add(key_at(base, anchor));
                    candidate = *slot as usize;
                    *slot = anchor as u32;
                    here = anchor;
                    if here.wrapping_sub(candidate) > MOST_DISTANCE
                        || four(base, candidate) != four(base, here)
                    {
                        break;
                    }
                    token = to;
                    head = 0;
                    to = to.add(1);
                }
                here += 1;
                (step, tries) = (1, TRIES);
            };
            out.set_len(to.offset_from_unsigned(begin));
            self.next = next;
        }
        self.anchor = anchor;
    }
}

impl Next {
    /// The first place to look up after a match.
    pub(crate) fn probe(place: usize) -> Self {
        Next::Probe { place, step: 1, tries: TRIES }
    }
}

/// The hash of the first five of eight bytes.
#[inline(always)]
fn key(word: u64) -> usize {
    ((word << 24).wrapping_mul(889_523_592_379) >> (64 - TABLE_BITS)) as usize
}

/// # Safety
///
/// Eight bytes can be read at the place.
#[inline(always)]
unsafe fn key_at(base: *const u8, place: usize) -> usize {
    // SAFETY: the caller's promise.
    key(unsafe { word(base, place) })
}

/// # Safety
///
/// Eight bytes can be read at the place.
#[inline(always)]
unsafe fn word(base: *const u8, place: usize) -> u64 {
    // SAFETY: the caller's promise.
    u64::from_le_bytes(unsafe { base.wrapping_add(place).cast::<[u8; 8]>().read() })
}

/// # Safety
///
/// Four bytes can be read at the place.
#[inline(always)]
unsafe fn four(base: *const u8, place: usize) -> u32 {
    // SAFETY: the caller's promise.
    u32::from_le_bytes(unsafe { base.wrapping_add(place).cast::<[u8; 4]>().read() })
}

/// # Safety
///
/// Eight bytes can be read and written.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()) }
}

/// How many bytes before two places are the same, at the most `most`. The functions that are not inlined leave the registers to the
/// loop above.
///
/// # Safety
///
/// `most` bytes can be read before both.
#[inline(never)]
unsafe fn same_before(base: *const u8, here: usize, candidate: usize, most: usize) -> usize {
    // SAFETY: the caller's promise.
    let is_same = |back: &usize| unsafe {
        *base.wrapping_add(here - back - 1) == *base.wrapping_add(candidate - back - 1)
    };
    (0..most).take_while(is_same).count()
}

/// The end of the bytes that are the same at a place and earlier.
///
/// # Safety
///
/// Bytes from `place` to `end` can be read in both.
#[inline(never)]
unsafe fn same_after(base: *const u8, earlier: *const u8, mut place: usize, end: usize) -> usize {
    // SAFETY: the caller's promise.
    while place < end && unsafe { *base.wrapping_add(place) == *earlier.wrapping_add(place) } {
        place += 1;
    }
    place
}

/// Writes what remains of a length; returns the end.
///
/// # Safety
///
/// There is room for a byte, and one more for each 255.
#[inline(never)]
unsafe fn long(mut to: *mut u8, mut more: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        while more >= 255 {
            *to = 255;
            to = to.add(1);
            more -= 255;
        }
        *to = more as u8;
        to.add(1)
    }
}

/// Writes what remains of the number of literals, and the literals.
///
/// # Safety
///
/// There is room, and so many bytes can be read.
#[inline(never)]
unsafe fn long_literals(from: *const u8, to: *mut u8, literals: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let to = long(to, literals - 15);
        copy_nonoverlapping(from, to, literals);
        to.add(literals)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernels::lz4::compress;

    proptest! {
        #[test]
        fn sequences_are_the_first_of_the_library(
            pattern in prop::collection::vec(any::<u8>(), 1..3000),
            noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3000),
            length in 65_547usize..80_000,
        ) {
            let mut plain: Box<[u8]> = pattern.iter().copied().cycle().take(length).collect();
            noise.into_iter().for_each(|(place, byte)| plain[place.index(length)] = byte);
            let mut expected = Vec::new();
            compress(&plain, &mut expected).unwrap();
            // Memory of exactly the size that may be written, so that tools see a write past it.
            let mut search = Search::new();
            let mut out = vec![0; search.room(length)];
            out.clear();
            search.sequences(&plain, 0, &mut out);
            // The token of a match that goes on has no length yet.
            let whole = match search.next {
                Next::Match { token, .. } => token,
                _ => out.len(),
            };
            prop_assert!(out[..whole] == expected[..whole]);
            // What is not decided is near the end, or a match or literals up to it.
            match search.next {
                Next::Probe { place, step, .. } => prop_assert!(place + step > length - BEFORE_MATCH),
                _ => prop_assert!(search.anchor >= length - BEFORE_MATCH),
            }
        }
    }
}
