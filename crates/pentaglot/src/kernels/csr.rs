//! Rows of interleaved (column, value) pairs to columns and values, and back.
//!
//! The plain version in words: a row is a u32 count and that many pairs of a u32 column and a value of `V` bytes. Reading
//! appends the columns to one vector and the values to another; writing does the reverse.

/// The bits of a value: only its size matters.
pub(crate) trait Raw: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Bytes of it.
    const SIZE: usize;
    /// From the first bytes of a slice; zero where there are too few.
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

/// Appends the pairs of whole rows that stand in `bytes`, and the end of each row to `ends`.
pub(crate) fn split_rows<V: Raw>(
    bytes: &[u8],
    ends: &mut Vec<i64>,
    cols: &mut Vec<u32>,
    values: &mut Vec<V>,
) {
    let mut rest = bytes;
    while let Some((count, tail)) = rest.split_first_chunk() {
        let count = u32::from_le_bytes(*count) as usize;
        let (row, tail) = tail.split_at((count * (4 + V::SIZE)).min(tail.len()));
        for pair in row.chunks_exact(4 + V::SIZE) {
            cols.push(u32::get(pair));
            values.push(V::get(pair.get(4..).unwrap_or_default()));
        }
        ends.push(cols.len() as i64);
        rest = tail;
    }
}

/// Appends rows of pairs, each with its count in front. `ends` are positions in `cols` and in the values, whose bytes
/// are `values`; the start of the first row comes first.
pub(crate) fn join_rows<V: Raw>(ends: &[i64], cols: &[u32], values: &[u8], out: &mut Vec<u8>) {
    for pair in ends.windows(2) {
        let &[start, end] = pair else { continue };
        let (start, end) = (start as usize, end as usize);
        let cols = cols.get(start..end).unwrap_or_default();
        let values = values.get(start * V::SIZE..end * V::SIZE).unwrap_or_default();
        out.extend_from_slice(&(cols.len() as u32).to_le_bytes());
        for (col, value) in cols.iter().zip(values.chunks_exact(V::SIZE)) {
            out.extend_from_slice(&col.to_le_bytes());
            out.extend_from_slice(value);
        }
    }
}
