//! Stable partition by a bit, and its inverse: used to build and to decode a whole wavelet matrix.

use crate::cpu::{Bmi2, Isa, Level, level};

/// A value in as many bytes as the alphabet needs.
pub(super) trait Lane: Copy + Default {
    fn from_u64(value: u64) -> Self;
    fn to_u64(self) -> u64;

    /// Inverts one partition: `to[i]` is the next of `from[..zeros]` or `from[zeros..]` by bit i of `words`, with
    /// that bit inserted at `bit`.
    fn merge(words: &[u64], zeros: usize, from: &[Self], to: &mut [Self], bit: u32) {
        merge_from(words, zeros, 0, from, to, bit);
    }
}

/// One by one, from index `start` with `zeros` and `ones` the next of each kind.
fn merge_from<T: Lane>(words: &[u64], zeros: usize, start: usize, from: &[T], to: &mut [T], bit: u32) {
    let ones_before = if start == 0 { 0 } else { crate::bits::count_ones(&words[..start / 64]) as usize };
    let mut next = [start - ones_before, zeros + ones_before];
    for (chunk, &word) in to[start..].chunks_mut(64).zip(&words[start / 64..]) {
        let mut word = word;
        for place in chunk {
            let set = word & 1;
            word >>= 1;
            let index = &mut next[set as usize];
            let low = from.get(*index).copied().unwrap_or_default().to_u64();
            *index += 1;
            *place = T::from_u64(low | set << bit);
        }
    }
}

/// Lanes that fill eight bytes, `LANES` of them.
trait Packed<const LANES: usize>: Lane {
    fn load(lanes: &[Self; LANES]) -> u64;
    fn store(lanes: u64) -> [Self; LANES];
}

impl Packed<8> for u8 {
    #[inline(always)]
    fn load(lanes: &[u8; 8]) -> u64 {
        u64::from_le_bytes(*lanes)
    }

    #[inline(always)]
    fn store(lanes: u64) -> [u8; 8] {
        lanes.to_le_bytes()
    }
}

impl Packed<4> for u16 {
    #[inline(always)]
    fn load(lanes: &[u16; 4]) -> u64 {
        lanes.iter().rev().fold(0, |lanes, &lane| lanes << 16 | u64::from(lane))
    }

    #[inline(always)]
    fn store(lanes: u64) -> [u16; 4] {
        [0, 16, 32, 48].map(|shift| (lanes >> shift) as u16)
    }
}

/// Values of one or two bytes, eight bytes at a time: the bits of the level become a mask of whole lanes, and
/// PDEP distributes the next zeros and ones to their lanes.
fn merge_lanes<T: Packed<LANES>, const LANES: usize>(
    isa: Bmi2,
    words: &[u64],
    zeros: usize,
    from: &[T],
    to: &mut [T],
    bit: u32,
) {
    let lane = crate::bits::low_mask(64 / LANES as u32);
    let lows = u64::MAX / lane;
    let (mut zero, mut one) = (0, zeros);
    for (index, (chunk, &word)) in to.chunks_exact_mut(64).zip(words).enumerate() {
        let enough = zero + 64 + LANES <= from.len() && one + 64 + LANES <= from.len();
        if !enough {
            return merge_from(words, zeros, index * 64, from, to, bit);
        }
        let mut word = word;
        for group in chunk.chunks_exact_mut(LANES) {
            let (set, ones) = (isa.deposit(word, lows), isa.popcount(word & ((1 << LANES) - 1)) as usize);
            let mask = set.wrapping_mul(lane);
            let window = |at: usize| from[at..].first_chunk().map_or(0, T::load);
            let lanes = isa.deposit(window(zero), !mask) | isa.deposit(window(one), mask) | set << bit;
            group.copy_from_slice(&T::store(lanes));
            (zero, one, word) = (zero + LANES - ones, one + ones, word >> LANES);
        }
    }
    let done = to.len() / 64 * 64;
    merge_from(words, zeros, done, from, to, bit);
}

impl Lane for u8 {
    fn from_u64(value: u64) -> Self {
        value as u8
    }

    fn to_u64(self) -> u64 {
        u64::from(self)
    }

    fn merge(words: &[u64], zeros: usize, from: &[Self], to: &mut [Self], bit: u32) {
        match level() {
            Level::Bmi2(isa) => merge_lanes(isa, words, zeros, from, to, bit),
            _ => merge_from(words, zeros, 0, from, to, bit),
        }
    }
}

impl Lane for u16 {
    fn from_u64(value: u64) -> Self {
        value as u16
    }

    fn to_u64(self) -> u64 {
        u64::from(self)
    }

    fn merge(words: &[u64], zeros: usize, from: &[Self], to: &mut [Self], bit: u32) {
        match level() {
            Level::Bmi2(isa) => merge_lanes(isa, words, zeros, from, to, bit),
            _ => merge_from(words, zeros, 0, from, to, bit),
        }
    }
}

impl Lane for u32 {
    fn from_u64(value: u64) -> Self {
        value as u32
    }

    fn to_u64(self) -> u64 {
        u64::from(self)
    }
}

impl Lane for u64 {
    fn from_u64(value: u64) -> Self {
        value
    }

    fn to_u64(self) -> u64 {
        self
    }
}

/// Partitions `values` by bit `bit`, zeros first, each kind in its order; returns the bits as words.
///
/// Without branches: every value is written to both the zeros, which are packed in place, and the ones in `spare`;
/// only one of the two positions advances.
pub(super) fn partition<T: Lane>(values: &mut [T], spare: &mut [T], bit: u32) -> Vec<u64> {
    let mut words = Vec::with_capacity(values.len().div_ceil(64));
    let (mut zeros, mut ones) = (0, 0);
    let mut start = 0;
    while start < values.len() {
        let end = values.len().min(start + 64);
        let mut word = 0;
        for index in start..end {
            let value = values[index];
            let set = value.to_u64() >> bit & 1;
            word |= set << (index - start);
            values[zeros] = value;
            spare[ones] = value;
            zeros += 1 - set as usize;
            ones += set as usize;
        }
        words.push(word);
        start = end;
    }
    values[zeros..].copy_from_slice(&spare[..ones]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Lane + PartialEq + std::fmt::Debug>(len: usize, bits: u32, density: u64) {
        let mut state = 9_u64;
        let values: Vec<T> = (0..len)
            .map(|_| {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                let random = state >> 20;
                T::from_u64(if random % 100 < density { random >> 7 | 1 } else { (random >> 7) & !1 })
            })
            .collect();
        for bit in 0..bits {
            let (mut parted, mut spare) = (values.clone(), vec![T::default(); len]);
            let words = partition(&mut parted, &mut spare, bit);
            let set = |value: &&T| value.to_u64() >> bit & 1 == 1;
            let mut naive: Vec<T> = values.iter().filter(|value| !set(value)).copied().collect();
            let zeros = naive.len();
            naive.extend(values.iter().filter(set));
            assert_eq!(parted, naive);
            let lower: Vec<T> =
                parted.iter().map(|value| T::from_u64(value.to_u64() & crate::bits::low_mask(bit))).collect();
            let mut back = vec![T::default(); len];
            T::merge(&words, zeros, &lower, &mut back, bit);
            let expected = values.iter().map(|value| value.to_u64() & crate::bits::low_mask(bit + 1));
            assert!(back.iter().map(|value| value.to_u64()).eq(expected));
        }
    }

    #[test]
    fn merging_undoes_partitioning_in_every_width() {
        for len in [0, 1, 63, 64, 65, 200, 1000, 4096] {
            for density in [0, 3, 50, 100] {
                round_trip::<u8>(len, 8, density);
                round_trip::<u16>(len, 16, density);
                round_trip::<u32>(len, 32, density);
                round_trip::<u64>(len, 40, density);
            }
        }
    }
}
