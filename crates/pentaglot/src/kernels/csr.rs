//! Rows of interleaved (column, value) pairs to columns and values, and back.
//!
//! The plain version in words: a row is a u32 count and that many pairs of a u32 column and a value. Reading appends
//! the columns to one vector and the values to another; writing does the reverse. The fast versions move 16 pairs at a
//! time with AVX-512 permutes, for values of 4 and 8 bytes. They load and store whole vectors also at the end of a row:
//! surplus elements that are read are not kept, and surplus elements that are written are overwritten by the next row.

#![allow(unsafe_code, reason = "vector intrinsics, and vectors that are filled before their length is set")]

/// The bits of a value: only its size matters.
pub(crate) trait Raw: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Its size in bytes.
    const SIZE: usize;
    /// From the first bytes of a slice; zero if there are too few.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! raw {
    ($($type:ty)*) => {$(
        impl Raw for $type {
            const SIZE: usize = size_of::<$type>();
            #[inline(always)]
            fn get(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(0, |bytes| <$type>::from_le_bytes(*bytes))
            }
        }
    )*};
}
raw!(u8 u16 u32 u64 i128);

/// How many rows to split, and what they may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Maximum number of rows.
    pub(crate) rows: usize,
    /// Maximum number of entries of all rows together.
    pub(crate) entries: usize,
    /// Maximum number of entries of one row.
    pub(crate) of_row: usize,
}

/// Appends the pairs of the rows in `bytes`, and the end of each row to `ends`. Stops when the wanted number is
/// reached, before an incomplete row, and before a row with more entries than wanted; returns the bytes of the rows
/// read.
pub(crate) fn split_rows<V: Raw>(
    bytes: &[u8],
    wanted: Wanted,
    ends: &mut Vec<i64>,
    cols: &mut Vec<u32>,
    values: &mut Vec<V>,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if matches!(V::SIZE, 4 | 8) && std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has AVX-512F.
        return unsafe { avx512::split_rows(bytes, wanted, ends, cols, values) };
    }
    split_rows_plain(bytes, wanted, ends, cols, values)
}

fn split_rows_plain<V: Raw>(
    bytes: &[u8],
    wanted: Wanted,
    ends: &mut Vec<i64>,
    cols: &mut Vec<u32>,
    values: &mut Vec<V>,
) -> usize {
    let most = cols.len() + wanted.entries;
    let mut used = 0;
    for row in (Rows { rest: bytes, pair: 4 + V::SIZE }).take(wanted.rows) {
        let count = row.len() / (4 + V::SIZE);
        if count > wanted.of_row || cols.len() + count > most {
            break;
        }
        let pairs = row.chunks_exact(4 + V::SIZE);
        cols.extend(pairs.clone().map(u32::get));
        values.extend(pairs.map(|pair| V::get(&pair[4..])));
        ends.push(cols.len() as i64);
        used += 4 + row.len();
    }
    used
}

/// Iterates over the pairs of each complete row.
struct Rows<'a> {
    rest: &'a [u8],
    pair: usize,
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (count, tail) = self.rest.split_first_chunk()?;
        let bytes = (u32::from_le_bytes(*count) as usize).checked_mul(self.pair)?;
        let (row, rest) = tail.split_at_checked(bytes)?;
        self.rest = rest;
        Some(row)
    }
}

/// Appends rows of pairs, each with its count in front. `ends` are positions in `cols` and in the values, whose bytes
/// are `values`; the start of the first row comes first. Stops at a row that is out of bounds. Returns the order of the
/// columns.
pub(crate) fn join_rows<V: Raw>(ends: &[i64], cols: &[u32], values: &[u8], out: &mut Vec<u8>) -> Order {
    #[cfg(target_arch = "x86_64")]
    if matches!(V::SIZE, 4 | 8) && std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has AVX-512F.
        let order = unsafe { avx512::join_rows::<V>(ends, cols, values, out) };
        return order.unwrap_or_else(|| order_plain(ends, cols));
    }
    join_rows_plain::<V>(ends, cols, values, out);
    order(ends, cols)
}

fn join_rows_plain<V: Raw>(ends: &[i64], cols: &[u32], values: &[u8], out: &mut Vec<u8>) {
    for pair in ends.windows(2) {
        let span = pair[0] as usize..pair[1] as usize;
        let Some(cols) = cols.get(span.clone()) else { return };
        let Some(values) = values.get(span.start * V::SIZE..span.end * V::SIZE) else { return };
        out.extend_from_slice(&(cols.len() as u32).to_le_bytes());
        for (col, value) in cols.iter().zip(values.chunks_exact(V::SIZE)) {
            out.extend_from_slice(&col.to_le_bytes());
            out.extend_from_slice(value);
        }
    }
}

/// Properties of the columns of some rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// The largest column; 0 if there are none.
    pub(crate) most: u32,
    /// Whether the columns of every row are strictly increasing.
    pub(crate) rising: bool,
}

/// Computes the order of the columns of rows; `ends` are positions in `cols`, the start of the first row
/// comes first.
pub(crate) fn order(ends: &[i64], cols: &[u32]) -> Order {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        // SAFETY: the CPU has AVX-512F.
        return unsafe { avx512::order(ends, cols) }.unwrap_or_else(|| order_plain(ends, cols));
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(ends: &[i64], cols: &[u32]) -> Order {
            order_plain(ends, cols)
        }
        // SAFETY: the CPU has AVX2.
        return unsafe { wide(ends, cols) };
    }
    order_plain(ends, cols)
}

/// Rows are in order if the only columns that are not greater than their predecessor are the first of a row. Comparing
/// two counts avoids a branch per entry.
#[inline(always)]
fn order_plain(ends: &[i64], cols: &[u32]) -> Order {
    let (Some(first), Some(last)) = (ends.first(), ends.last()) else {
        return Order { most: 0, rising: true };
    };
    let all = cols.get(*first as usize..*last as usize).unwrap_or_default();
    let most = all.iter().fold(0, |most, col| most.max(*col));
    let falls = |(one, next): (&u32, &u32)| u32::from(one >= next);
    let mut falling = 0u64;
    for piece in 0..all.len().div_ceil(1 << 16) {
        let from = &all[piece << 16..all.len().min(((piece + 1) << 16) + 1)];
        let to = from.get(1..).unwrap_or_default();
        falling += u64::from(from.iter().zip(to).map(falls).sum::<u32>());
    }
    let mut at_starts = 0u64;
    let mut before = *first;
    for end in ends.get(1..).unwrap_or_default() {
        // The common start of several empty rows counts once.
        if before > *first && before < *end {
            let start = (before - *first) as usize;
            at_starts += u64::from(all.get(start.wrapping_sub(1)) >= all.get(start));
        }
        before = *end;
    }
    Order { most, rising: falling == at_starts }
}

#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<V: Raw + std::fmt::Debug>(rows: &[Vec<(u32, u64)>], make: impl Fn(u64) -> V) {
        let mut cols = Vec::new();
        let mut values: Vec<u8> = Vec::new();
        let mut wanted: Vec<V> = Vec::new();
        let mut ends = vec![0];
        for row in rows {
            for (col, value) in row {
                cols.push(*col);
                values.extend(&value.to_le_bytes()[..V::SIZE]);
                wanted.push(make(*value));
            }
            ends.push(cols.len() as i64);
        }
        let (mut plain, mut fast) = (vec![9u8], vec![9u8]);
        join_rows_plain::<V>(&ends, &cols, &values, &mut plain);
        let joined = join_rows::<V>(&ends, &cols, &values, &mut fast);
        assert_eq!(fast, plain);
        for split in [split_rows_plain::<V>, split_rows::<V>] {
            let bytes = &plain[1..];
            let (mut got_ends, mut got_cols, mut got) = (vec![0], Vec::new(), Vec::new());
            let all = Wanted { rows: rows.len(), entries: cols.len(), of_row: cols.len() };
            let used = split(bytes, all, &mut got_ends, &mut got_cols, &mut got);
            assert_eq!((used, &got_ends, &got_cols, &got), (bytes.len(), &ends, &cols, &wanted));
            // Limits below what is available: only complete rows are read, and the bytes used end with the last
            // one.
            for short in [0, cols.len() / 2, cols.len().saturating_sub(1)] {
                let few = [
                    (bytes, Wanted { entries: short, ..all }),
                    (bytes, Wanted { of_row: short, ..all }),
                    (bytes, Wanted { rows: short, ..all }),
                    (&bytes[..bytes.len().saturating_sub(short)], Wanted { entries: usize::MAX >> 8, ..all }),
                ];
                for (bytes, few) in few {
                    let (mut some_ends, mut some_cols, mut some) = (vec![0], Vec::new(), Vec::new());
                    let used = split(bytes, few, &mut some_ends, &mut some_cols, &mut some);
                    let count = some_ends.len() - 1;
                    assert!(
                        count <= few.rows && some_cols.len() <= few.entries && some.len() == some_cols.len()
                    );
                    assert_eq!((&some_ends[..], &some_cols[..]), (&ends[..=count], &cols[..some_cols.len()]));
                    assert_eq!(used, count * 4 + some.len() * (4 + V::SIZE));
                    // It must not stop too early.
                    let next = rows.get(count).map(Vec::len);
                    assert!(next.is_none_or(|next| {
                        count == few.rows
                            || next > few.of_row
                            || some.len() + next > few.entries
                            || used + 4 + next * (4 + V::SIZE) > bytes.len()
                    }));
                }
            }
        }
        let naive = Order {
            most: cols.iter().copied().max().unwrap_or(0),
            rising: rows.iter().all(|row| row.is_sorted_by(|one, next| one.0 < next.0)),
        };
        assert_eq!((order(&ends, &cols), joined), (naive, naive));
        assert_eq!(order_plain(&ends, &cols), naive);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_fast_ways_are_the_plain_ways(
            rows in proptest::collection::vec(proptest::collection::vec((0u32..500, any::<u64>()), 0..60), 0..20),
            sorted: bool,
        ) {
            let mut rows = rows;
            if sorted {
                rows.iter_mut().for_each(|row| {
                    row.sort_unstable_by_key(|entry| entry.0);
                    row.dedup_by_key(|entry| entry.0);
                });
            }
            check::<u8>(&rows, |value| value as u8);
            check::<u16>(&rows, |value| value as u16);
            check::<u32>(&rows, |value| value as u32);
            check::<u64>(&rows, |value| value);
        }
    }

    #[test]
    fn wrong_ends_are_harmless() {
        for ends in [&[0, 5, 3][..], &[3, 1], &[-1, 2], &[0, i64::MAX], &[i64::MIN, i64::MAX], &[]] {
            let mut out = Vec::new();
            join_rows::<u64>(ends, &[1, 2, 3], &[0; 24], &mut out);
            join_rows_plain::<u64>(ends, &[1, 2, 3], &[0; 24], &mut out);
            assert!(out.len() < 200);
            order(ends, &[1, 2, 3]);
        }
    }
}
