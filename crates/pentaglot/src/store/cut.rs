//! Where a column is cut: FastCDC with a gear hash, at borders of values.
//!
//! The hash of the last 64 bytes decides, not the position, so that an insertion moves the cuts only near it. Two masks
//! bring the lengths closer to the mean: a strict one before [`MEAN_BYTES`], a lax one after it.

use std::sync::LazyLock;

/// No chunk is cut before so many bytes.
pub(super) const MIN_BYTES: usize = 4 << 10;
/// The length of most chunks.
pub(super) const MEAN_BYTES: usize = 16 << 10;
/// No chunk has more bytes, unless it is a single value.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// The highest bits of the hash depend on the most bytes.
const STRICT: u64 = !0 << (64 - 16);
const LAX: u64 = !0 << (64 - 12);

/// `GEAR[b]` is the first eight bytes of the BLAKE3 digest of the byte `b`, little endian: numbers without a pattern that
/// anybody can compute.
static GEAR: LazyLock<[u64; 256]> = LazyLock::new(|| {
    std::array::from_fn(|byte| {
        let digest = blake3::hash(&[byte as u8]);
        u64::from_le_bytes(std::array::from_fn(|index| digest.as_bytes()[index]))
    })
});

/// How many of the first bytes are to be a chunk, before values are looked at; `None` if more bytes decide.
pub(super) fn point(bytes: &[u8]) -> Option<usize> {
    let gear: &[u64; 256] = &GEAR;
    let bytes = &bytes[..bytes.len().min(MAX_BYTES)];
    let mut hash = 0u64;
    let mut first = |range: std::ops::Range<usize>, mask: u64| {
        let at = range.start;
        let found = bytes.get(range.start..range.end.min(bytes.len()))?.iter().position(|byte| {
            hash = (hash << 1).wrapping_add(gear[usize::from(*byte)]);
            hash & mask == 0
        });
        found.map(|index| at + index + 1)
    };
    first(MIN_BYTES..MEAN_BYTES, STRICT)
        .or_else(|| first(MEAN_BYTES..MAX_BYTES, LAX))
        .or((bytes.len() == MAX_BYTES).then_some(MAX_BYTES))
}

/// Where values end.
pub(super) trait Borders {
    /// The first border at or after a place, which is at most the last border.
    fn at_or_after(&self, place: usize) -> usize;
    /// The last border before a place, if it is after `start`.
    fn before(&self, place: usize, start: usize) -> Option<usize>;
}

/// Where the chunk that begins at `start` ends; `None` if more bytes decide. All of `bytes` is whole values; `is_all` says
/// that no more follow.
pub(super) fn end(bytes: &[u8], start: usize, borders: &impl Borders, is_all: bool) -> Option<usize> {
    let rest = &bytes[start..];
    if rest.is_empty() {
        return None;
    }
    let point = point(rest).or(is_all.then_some(rest.len()))?;
    let end = borders.at_or_after(start + point);
    // A value that makes the chunk too long begins one of its own.
    Some(match end - start > MAX_BYTES {
        true => borders.before(end, start).unwrap_or(end),
        false => end,
    })
}

/// Values of one width.
pub(super) struct Width(pub(super) usize);

impl Borders for Width {
    fn at_or_after(&self, place: usize) -> usize {
        place.next_multiple_of(self.0)
    }

    fn before(&self, place: usize, start: usize) -> Option<usize> {
        place.checked_sub(self.0).filter(|border| *border > start)
    }
}

/// Values that end at these places.
pub(super) struct Ends<'e>(pub(super) &'e [usize]);

impl Borders for Ends<'_> {
    fn at_or_after(&self, place: usize) -> usize {
        let index = self.0.partition_point(|end| *end < place);
        self.0.get(index).copied().unwrap_or(place)
    }

    fn before(&self, place: usize, start: usize) -> Option<usize> {
        let index = self.0.partition_point(|end| *end < place);
        index.checked_sub(1).map(|index| self.0[index]).filter(|border| *border > start)
    }
}
