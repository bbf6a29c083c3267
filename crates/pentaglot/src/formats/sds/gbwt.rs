//! The records of a GBWT: for each node the edges that leave it, and which of them every visit takes.
//!
//! ```text
//! record := sigma | (node delta, offset) for each edge | run…      (numbers as byte codes: 7 bits a byte, low first)
//! run    := value + sigma * (length - 1)                            (one byte; the longest length is followed by the rest)
//!         | value, length - 1                                       (sigma of 255 or more)
//! ```

use std::sync::Arc;

use pentaglot_succinct::{BitQueries, SharedWords, SparseVector};

use super::layout::{Object, byte_vector};
use crate::error::{Error, Result};
use crate::limits::{Budget, Reservation};

/// From this number of edges on, runs are two byte codes.
const LARGE: u64 = 255;

/// The decompressed records.
pub(super) struct Records {
    index: Arc<Object>,
    data: Vec<u8>,
    #[expect(dead_code, reason = "it gives the bytes back when it is dropped")]
    held: Reservation,
}

/// The edges of a node, and the runs of its visits.
pub(super) struct Record<'r> {
    /// Successors with the number of visits that reach them from smaller nodes, ascending.
    pub(super) edges: Vec<(u64, u64)>,
    runs: ByteCodes<'r>,
}

impl Records {
    /// `data` is compressed with zstd if `is_packed`; the index has the number of decompressed bytes.
    pub(super) fn new(
        index: &Arc<Object>,
        data: (u64, &SharedWords),
        is_packed: bool,
        budget: &Budget,
    ) -> Result<Self> {
        let len = sparse(index).map_or(0, |index| index.len());
        let (data, held) = match is_packed {
            true => unpack(data, len, budget)?,
            false => {
                let held = budget.reserve(data.0)?;
                (byte_vector(data.0, data.1), held)
            }
        };
        Ok(Records { index: Arc::clone(index), data, held })
    }

    /// How many records there are.
    pub(super) fn len(&self) -> u64 {
        sparse(&self.index).map_or(0, |index| index.count_ones())
    }

    fn bytes(&self, record: u64) -> Result<&[u8]> {
        let outside = || Error::malformed("a record within the data", "one that is not").index(record);
        let mut starts = sparse(&self.index).ok_or_else(outside)?.iter_from(record);
        let start = starts.next().ok_or_else(outside)?;
        let end =
            if record + 1 < self.len() { starts.next().ok_or_else(outside)? } else { self.data.len() as u64 };
        let range = usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
        self.data.get(range).ok_or_else(outside)
    }

    /// Record `record`; one of a node that does not exist has no edges.
    pub(super) fn record(&self, record: u64) -> Result<Record<'_>> {
        let broken = || Error::malformed("edges as byte codes", "others").index(record).field("bwt.data");
        let mut codes = ByteCodes { bytes: self.bytes(record)? };
        let sigma = codes.number().ok_or_else(broken)?;
        // An edge takes at least two bytes, so the loop ends soon for a wrong count.
        let (mut edges, mut node) = (Vec::new(), 0_u64);
        for _ in 0..sigma {
            let delta = codes.number().ok_or_else(broken)?;
            node = node.checked_add(delta).ok_or_else(broken)?;
            edges.push((node, codes.number().ok_or_else(broken)?));
        }
        Ok(Record { edges, runs: codes })
    }

    /// Whether the node of this record exists.
    pub(super) fn has_edges(&self, record: u64) -> Result<bool> {
        Ok(self.bytes(record)?.first().is_some_and(|sigma| *sigma != 0))
    }
}

impl Record<'_> {
    /// The runs of visits: which edge they take, and how many they are.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut codes, sigma) = (self.runs, self.edges.len() as u64);
        std::iter::from_fn(move || codes.run(sigma))
    }

    /// How many visits there are.
    pub(super) fn visits(&self) -> u64 {
        self.runs().fold(0, |sum, (_, length)| sum.saturating_add(length))
    }

    /// The successor of visit `visit`: a node, and the number of the visit there.
    pub(super) fn next(&self, visit: u64) -> Option<(u64, u64)> {
        let (mut seen, mut before) = (0_u64, vec![0_u64; self.edges.len()]);
        for (edge, length) in self.runs() {
            let edge = usize::try_from(edge).ok()?;
            let passed = before.get_mut(edge)?;
            if visit < seen.saturating_add(length) {
                let (node, offset) = self.edges.get(edge)?;
                return Some((*node, offset.checked_add(*passed)?.checked_add(visit - seen)?));
            }
            seen = seen.saturating_add(length);
            *passed = passed.saturating_add(length);
        }
        None
    }

    /// The successor of every visit, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = Option<(u64, u64)>> + '_ {
        let mut next = self.edges.clone();
        self.runs().flat_map(move |(edge, length)| {
            let edge = usize::try_from(edge).ok().and_then(|edge| next.get_mut(edge));
            let from = edge.map(|(node, offset)| {
                let first = *offset;
                *offset = offset.saturating_add(length);
                (*node, first)
            });
            (0..length).map(move |visit| from.map(|(node, offset)| (node, offset.saturating_add(visit))))
        })
    }
}

#[derive(Clone, Copy)]
struct ByteCodes<'b> {
    bytes: &'b [u8],
}

impl ByteCodes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn run(&mut self, sigma: u64) -> Option<(u64, u64)> {
        if sigma == 0 {
            return None;
        }
        if sigma >= LARGE {
            return Some((self.number()?, self.number()?.checked_add(1)?));
        }
        let byte = u64::from(self.byte()?);
        let (edge, length) = (byte % sigma, byte / sigma + 1);
        let longest = 256 / sigma;
        let more = if length == longest { self.number()? } else { 0 };
        Some((edge, length.checked_add(more)?))
    }
}

pub(super) fn sparse(object: &Object) -> Option<&SparseVector<SharedWords>> {
    if let Object::Sparse(vector) = object { Some(vector) } else { None }
}

/// Decompresses a zstd frame of `len` bytes.
pub(super) fn unpack(
    packed: (u64, &SharedWords),
    len: u64,
    budget: &Budget,
) -> Result<(Vec<u8>, Reservation)> {
    use std::io::Read;
    budget.limits().check_ratio(packed.0, len)?;
    let (mut bytes, held) = crate::cursor::reserve::<u8>(len, budget)?.into_parts();
    let frame = byte_vector(packed.0, packed.1);
    let broken = |error: std::io::Error| Error::malformed("a zstd frame", error).field("zstd");
    let decoder = zstd::stream::read::Decoder::with_buffer(frame.as_slice()).map_err(broken)?;
    // One byte more than declared detects a frame that is too long.
    decoder.take(len.saturating_add(1)).read_to_end(&mut bytes).map_err(broken)?;
    if bytes.len() as u64 != len {
        let found = if bytes.len() as u64 > len { "more".to_owned() } else { bytes.len().to_string() };
        return Err(Error::malformed(format_args!("{len} bytes in the zstd frame"), found).field("zstd"));
    }
    Ok((bytes, held))
}
