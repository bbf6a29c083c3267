//! Wavelet matrices as elements: length, width, levels, first.

use std::io;

use super::{Level, Wavelet, WaveletCore};
use crate::bits::bit_len;
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::int_vector::IntVector;
use crate::layout::{Severity, Structure, Supports, Walk, WordSink};
use crate::storage::{Section, Words};

impl<W, L: Level + Structure<W>> Structure<W> for WaveletCore<L> {
    fn from_words(cursor: &mut WordCursor<W>) -> Result<Self, Error>
    where
        W: Section,
    {
        let at = cursor.position();
        let width = cursor.element("width")?;
        if !(1..=64).contains(&width) {
            return Err(Error::malformed(at, "width", "1 to 64", width));
        }
        let mut levels: Vec<L> = Vec::with_capacity(width as usize);
        for index in 0..width {
            let at = cursor.position();
            let level = L::from_words(cursor).map_err(|error| error.within(&format!("levels[{index}]")))?;
            if let Some(first) = levels.first()
                && first.len() != level.len()
            {
                let expected = format!("{} bits, as in the first level", first.len());
                return Err(Error::malformed(at, format!("levels[{index}]"), expected, level.len()));
            }
            levels.push(level);
        }
        Ok(WaveletCore { levels })
    }

    fn write_words(&self, supports: Supports, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[u64::from(self.width())])?;
        self.levels.iter().try_for_each(|level| level.write_words(supports, sink))
    }

    fn walk(&self, walk: &mut Walk) {
        walk.part("width", 1);
        for (index, level) in self.levels.iter().enumerate() {
            walk.nest(&format!("levels[{index}]"), level);
        }
    }
}

impl<W: Words, L: Level + Structure<W>> Structure<W> for Wavelet<L, W> {
    fn from_words(cursor: &mut WordCursor<W>) -> Result<Self, Error>
    where
        W: Section,
    {
        let at = cursor.position();
        let len = cursor.element("len")?;
        let core = WaveletCore::from_words(cursor).map_err(|error| error.within("data"))?;
        let first_at = cursor.position();
        let first = IntVector::from_words(cursor).map_err(|error| error.within("first"))?;
        Self::check_parts(len, core, first, at, first_at)
    }

    fn write_words(&self, supports: Supports, sink: &mut impl WordSink) -> io::Result<()> {
        sink.put(&[self.len()])?;
        self.core.write_words(supports, sink)?;
        self.first.write_words(supports, sink)
    }

    fn walk(&self, walk: &mut Walk) {
        walk.part("len", 1);
        walk.nest("data", &self.core);
        let start = walk.offset();
        walk.nest("first", &self.first);
        if walk.checking() {
            self.check_first(walk, start);
        }
    }
}

impl<W: Words, L: Level> Wavelet<L, W> {
    /// Follows the whole sequence down, one group of equal high bits at a time, and compares the start of
    /// each value; nothing is read twice, so the cost depends on the number of distinct values.
    fn check_first(&self, walk: &mut Walk, start: u64) {
        let place = |value: u64| start + 4 + value * u64::from(self.first.width()) / 64;
        // Groups of the reordered sequence: (high bits of the value, first position, last position).
        let mut groups = if self.is_empty() { Vec::new() } else { vec![(0_u64, 0_u64, self.len())] };
        for level in &self.core.levels {
            let (zeros, mut ones_groups) = (level.count_zeros(), Vec::new());
            let mut zero_groups = Vec::new();
            for (value, from, to) in groups {
                let (before, until) = (level.rank(from), level.rank(to));
                let zero = (from.wrapping_sub(before), to.wrapping_sub(until));
                if zero.0 < zero.1 {
                    zero_groups.push((value << 1, zero.0, zero.1));
                }
                if before < until {
                    ones_groups.push((value << 1 | 1, zeros.wrapping_add(before), zeros.wrapping_add(until)));
                }
            }
            zero_groups.extend(ones_groups);
            groups = zero_groups;
            if groups.len() as u64 > self.len() {
                // Only with wrong supports, which have been reported.
                return;
            }
        }
        let max = groups.iter().map(|group| group.0).max().unwrap_or(0);
        if self.first.len() != max.saturating_add(1) {
            walk.error("alphabet", start, "first.len", max.saturating_add(1), self.first.len());
            return;
        }
        groups.sort_unstable();
        let mut groups = groups.into_iter().peekable();
        for (value, found) in (0_u64..).zip(self.first.iter()) {
            let expected = match groups.peek() {
                Some(&(occurring, from, _)) if occurring == value => {
                    groups.next();
                    from
                }
                _ => self.len(),
            };
            if found != expected {
                walk.error("first", place(value), &format!("first[{value}]"), expected, found);
                if !walk.checking() {
                    return;
                }
            }
        }
        let width = self.first.minimal_width();
        if self.first.width() != width {
            let (expected, found) = (width.to_string(), self.first.width().to_string());
            walk.finding(Severity::Warning, "minimal width", start + 1, "first.width", expected, found);
        }
        if bit_len(max) != self.width() {
            let (expected, found) = (bit_len(max).to_string(), self.width().to_string());
            walk.finding(Severity::Warning, "minimal width", 1, "data.width", expected, found);
        }
    }
}
