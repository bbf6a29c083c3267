//! The fast versions, 16 pairs at a time; [`super`] has the plain version of each.

use std::arch::x86_64::*;

use super::{Order, Raw, Rows, Wanted};

/// Pairs that are moved at a time, and the maximum number of surplus pairs written.
const LANES: usize = 16;

/// The positions of the columns and values of 16 pairs of `WORDS` dwords in the loaded dwords.
const fn every(words: u32, from: u32) -> [u32; LANES] {
    let mut places = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        places[lane] = lane as u32 * words + from;
        lane += 1;
    }
    places
}

fn places(places: [u32; LANES]) -> __m512i {
    // SAFETY: both are 64 bytes of plain data.
    unsafe { std::mem::transmute(places) }
}

/// The dwords of values of 8 bytes in 48 loaded ones: value `first` and the seven after it, less `less`.
const fn halves(first: u32, less: u32) -> [u32; LANES] {
    let mut places = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        places[lane] = (first + lane as u32 / 2) * 3 + 1 + lane as u32 % 2 - less;
        lane += 1;
    }
    places
}

/// The dwords of columns in 48 loaded ones: first of those in the first 32, then of the rest next to these.
const fn columns(rest: bool) -> [u32; LANES] {
    let mut places = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        let dword = lane as u32 * 3;
        places[lane] = match (rest, dword < 32) {
            (false, true) => dword,
            (false, false) => 0,
            (true, true) => lane as u32,
            (true, false) => dword - 32 + 16,
        };
        lane += 1;
    }
    places
}

/// The sources of the dwords of a third of 48: values in the first 16 positions and columns in the next (in the
/// middle third: values in all 32, and zero for a column).
const fn joined(third: usize) -> [u32; LANES] {
    let mut places = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        let (pair, part) = ((third * 16 + lane) / 3, (third * 16 + lane) % 3);
        places[lane] = match (third, part) {
            (1, 0) => 0,
            (_, 0) => pair as u32 + 16,
            (2, _) => (pair * 2 + part - 1) as u32 - 16,
            _ => (pair * 2 + part - 1) as u32,
        };
        lane += 1;
    }
    places
}

/// The columns of the middle third, and which lanes they are in.
const fn middle_columns() -> ([u32; LANES], u16) {
    let (mut places, mut lanes) = ([0; LANES], 0);
    let mut lane = 0;
    while lane < LANES {
        if (16 + lane) % 3 == 0 {
            places[lane] = (16 + lane as u32) / 3;
            lanes |= 1 << lane;
        }
        lane += 1;
    }
    (places, lanes)
}

/// Columns from the first 16 places and values of 4 bytes from the next, from pair `first` on.
const fn zipped(first: u32) -> [u32; LANES] {
    let mut places = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        places[lane] = first + lane as u32 / 2 + 16 * (lane as u32 % 2);
        lane += 1;
    }
    places
}

/// Splits 16 pairs.
///
/// # Safety
/// `from` has 16 pairs to read, `cols` and `values` room for 16; `SIZE` is 4 or 8.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn split<const SIZE: usize>(from: *const u8, cols: *mut u32, values: *mut u8) {
    // SAFETY: guaranteed by the caller; loads and stores need no alignment.
    unsafe {
        let load = |at: usize| _mm512_loadu_si512(from.add(at).cast());
        let (a, b) = (load(0), load(64));
        if SIZE == 4 {
            let c = _mm512_permutex2var_epi32(a, places(const { every(2, 0) }), b);
            let v = _mm512_permutex2var_epi32(a, places(const { every(2, 1) }), b);
            _mm512_storeu_si512(cols.cast(), c);
            _mm512_storeu_si512(values.cast(), v);
        } else {
            let c = load(128);
            // Columns 0 to 10 are in the first two loads, 11 to 15 in the third.
            let some = _mm512_permutex2var_epi32(a, places(const { columns(false) }), b);
            let all = _mm512_permutex2var_epi32(some, places(const { columns(true) }), c);
            let v0 = _mm512_permutex2var_epi32(a, places(const { halves(0, 0) }), b);
            let v1 = _mm512_permutex2var_epi32(b, places(const { halves(8, 16) }), c);
            _mm512_storeu_si512(cols.cast(), all);
            _mm512_storeu_si512(values.cast(), v0);
            _mm512_storeu_si512(values.add(64).cast(), v1);
        }
    }
}

/// Joins 16 pairs, of which at least the first `wanted` are kept.
///
/// # Safety
/// `cols` and `values` have 16 to read, `to` has room for 16 pairs; `SIZE` is 4 or 8.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn join<const SIZE: usize>(cols: *const u32, values: *const u8, to: *mut u8, wanted: usize) {
    // SAFETY: guaranteed by the caller; loads and stores need no alignment.
    unsafe {
        let c = _mm512_loadu_si512(cols.cast());
        let v0 = _mm512_loadu_si512(values.cast());
        if SIZE == 4 {
            let (low, high) = (places(const { zipped(0) }), places(const { zipped(8) }));
            _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi32(c, low, v0));
            _mm512_storeu_si512(to.add(64).cast(), _mm512_permutex2var_epi32(c, high, v0));
        } else {
            let v1 = _mm512_loadu_si512(values.add(64).cast());
            let (columns, lanes) = const { middle_columns() };
            let first = _mm512_permutex2var_epi32(v0, places(const { joined(0) }), c);
            let middle = _mm512_permutex2var_epi32(v0, places(const { joined(1) }), v1);
            let middle = _mm512_mask_permutexvar_epi32(middle, lanes, places(columns), c);
            let last = _mm512_permutex2var_epi32(v1, places(const { joined(2) }), c);
            _mm512_storeu_si512(to.cast(), first);
            _mm512_storeu_si512(to.add(64).cast(), middle);
            // Ten pairs are within the first two thirds.
            if wanted > 10 {
                _mm512_storeu_si512(to.add(128).cast(), last);
            }
        }
    }
}

/// See [`super::split_rows`].
#[target_feature(enable = "avx512f")]
#[expect(clippy::disallowed_methods, reason = "the size is that of pairs in memory")]
pub(super) fn split_rows<V: Raw>(
    bytes: &[u8],
    wanted: Wanted,
    ends: &mut Vec<i64>,
    cols: &mut Vec<u32>,
    values: &mut Vec<V>,
) -> usize {
    let pair = 4 + V::SIZE;
    let entries = wanted.entries.min(bytes.len() / pair);
    let (base, value_base) = (cols.len(), values.len());
    let (mut done, mut used, mut room) = (0, 0, 0);
    for row in (Rows { rest: bytes, pair }).take(wanted.rows) {
        let count = row.len() / pair;
        if count > wanted.of_row || done + count > entries {
            break;
        }
        if done + count > room {
            // SAFETY: every place up to `done` has been written.
            unsafe {
                cols.set_len(base + done);
                values.set_len(value_base + done);
            }
            cols.reserve(count + LANES);
            values.reserve(count + LANES);
            room = (cols.capacity() - base).min(values.capacity() - value_base) - LANES;
        }
        let mut at = 0;
        while at < count {
            // Rows follow each other: the entries of this one begin after its count, which is 4 bytes.
            let from = used + 4 + at * pair;
            let place = base + done + at;
            if bytes.len() - from >= LANES * pair {
                // SAFETY: `bytes` has 16 pairs from `from` on, and the pointer is derived from all of `bytes`, since
                // the pairs may belong to the next rows; the columns have `room` for this row, and for 16 pairs more.
                unsafe {
                    let from = bytes.as_ptr().add(from);
                    let cols = cols.as_mut_ptr().add(place);
                    let values = values.as_mut_ptr().add(value_base + done + at).cast();
                    match V::SIZE {
                        4 => split::<4>(from, cols, values),
                        _ => split::<8>(from, cols, values),
                    }
                }
                at += LANES;
            } else {
                let entry = &row[at * pair..];
                // SAFETY: the row has `room`.
                unsafe {
                    cols.as_mut_ptr().add(place).write(u32::get(entry));
                    values.as_mut_ptr().add(value_base + done + at).write(V::get(&entry[4..]));
                }
                at += 1;
            }
        }
        done += count;
        used += 4 + row.len();
        ends.push((base + done) as i64);
    }
    // SAFETY: every place up to `done` has been written, within what was reserved.
    unsafe {
        cols.set_len(base + done);
        values.set_len(value_base + done);
    }
    used
}

/// See [`super::order`]: 16 columns of a row and their neighbours at a time. `None` if a row is out of
/// bounds.
#[target_feature(enable = "avx512f")]
pub(super) fn order(ends: &[i64], cols: &[u32]) -> Option<Order> {
    let lanes = |count: usize| ((1u32 << count.min(LANES)) - 1) as u16;
    let (mut most, mut falls) = (_mm512_setzero_si512(), 0);
    for pair in ends.windows(2) {
        let (start, end) = (pair[0] as usize, pair[1] as usize);
        if start > end || end > cols.len() {
            return None;
        }
        let mut at = start;
        while at < end {
            let (here, pairs) = (lanes(end - at), lanes(end - at - 1));
            // SAFETY: the lanes of the masks are columns before `end`; the others are not touched.
            let (one, next) = unsafe {
                let from = cols.as_ptr().add(at).cast::<i32>();
                (_mm512_maskz_loadu_epi32(here, from), _mm512_maskz_loadu_epi32(pairs, from.wrapping_add(1)))
            };
            most = _mm512_max_epu32(most, one);
            falls |= _mm512_mask_cmpge_epu32_mask(pairs, one, next);
            at += LANES;
        }
    }
    Some(Order { most: _mm512_reduce_max_epu32(most), rising: falls == 0 })
}

/// See [`super::join_rows`].
#[target_feature(enable = "avx512f")]
#[expect(clippy::disallowed_methods, reason = "the size is that of pairs in memory")]
pub(super) fn join_rows<V: Raw>(
    ends: &[i64],
    cols: &[u32],
    values: &[u8],
    out: &mut Vec<u8>,
) -> Option<Order> {
    let pair = 4 + V::SIZE;
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else { return None };
    let most = (last.saturating_sub(*first).max(0) as usize).min(cols.len());
    out.reserve(ends.len() * 4 + most * pair + LANES * pair);
    let room = out.capacity() - LANES * pair;
    let readable = cols.len().min(values.len() / V::SIZE);
    let mut len = out.len();
    let lanes = |count: usize| ((1u32 << count.min(LANES)) - 1) as u16;
    let (mut most, mut falls, mut whole) = (_mm512_setzero_si512(), 0, true);
    for span in ends.windows(2) {
        let (start, end) = (span[0] as usize, span[1] as usize);
        // Decreasing ends, or ends out of bounds.
        if start > end || end > readable || len + 4 + (end - start) * pair > room {
            whole = false;
            break;
        }
        let count = end - start;
        // SAFETY: the row and 16 pairs more have room, as was just checked.
        let to = unsafe {
            let to = out.as_mut_ptr().add(len);
            to.cast::<[u8; 4]>().write((count as u32).to_le_bytes());
            to.add(4)
        };
        let mut at = 0;
        while at < count {
            let entry = start + at;
            let (here, pairs) = (lanes(count - at), lanes(count - at - 1));
            // SAFETY: the lanes of the masks are columns of this row; the others are not touched.
            let (one, next) = unsafe {
                let from = cols.as_ptr().add(entry).cast::<i32>();
                (_mm512_maskz_loadu_epi32(here, from), _mm512_maskz_loadu_epi32(pairs, from.wrapping_add(1)))
            };
            most = _mm512_max_epu32(most, one);
            falls |= _mm512_mask_cmpge_epu32_mask(pairs, one, next);
            if readable - entry >= LANES {
                // SAFETY: 16 entries are there to read from `entry` on; room as above.
                unsafe {
                    let (cols, values) = (cols.as_ptr().add(entry), values.as_ptr().add(entry * V::SIZE));
                    match V::SIZE {
                        4 => join::<4>(cols, values, to.add(at * pair), count - at),
                        _ => join::<8>(cols, values, to.add(at * pair), count - at),
                    }
                }
                at += LANES;
            } else {
                let value = &values[entry * V::SIZE..][..V::SIZE];
                // SAFETY: room as above.
                unsafe {
                    let to = to.add(at * pair);
                    to.cast::<[u8; 4]>().write(cols[entry].to_le_bytes());
                    std::ptr::copy_nonoverlapping(value.as_ptr(), to.add(4), V::SIZE);
                }
                at += 1;
            }
        }
        len += 4 + count * pair;
    }
    // SAFETY: every byte up to `len` has been written, within the capacity.
    unsafe { out.set_len(len) };
    whole.then(|| Order { most: _mm512_reduce_max_epu32(most), rising: falls == 0 })
}
