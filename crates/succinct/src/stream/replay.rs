//! Writes vectors from elements that can be read several times, such as a scratch file: the output, including supports,
//! is written sequentially, and memory is constant.

use std::io;

use super::pack::{Packer, put_int_header};
use crate::bit_vector::rank::pack_block;
use crate::bits::{bit_len, low_mask};
use crate::cpu::dispatch;
use crate::error::Error;
use crate::layout::WordSink;
use crate::sparse::{SparseOptions, bucket_count, low_width};

/// Elements that can be read more than once, each time from the first to the last.
///
/// Implemented for closures that pass every element to the given function.
pub trait Replay {
    /// Passes every element to `take`, in order.
    fn replay(&mut self, take: &mut dyn FnMut(u64) -> io::Result<()>) -> io::Result<()>;
}

impl<F> Replay for F
where
    F: FnMut(&mut dyn FnMut(u64) -> io::Result<()>) -> io::Result<()>,
{
    fn replay(&mut self, take: &mut dyn FnMut(u64) -> io::Result<()>) -> io::Result<()> {
        self(take)
    }
}

fn check_count(path: &str, expected: u64, found: u64) -> io::Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(io::Error::other(Error::malformed(0, path, expected, found)))
}

/// Writes an [`IntVector`](crate::IntVector) of `len` items, of which the lowest `width` bits are kept.
///
/// ```
/// use pentaglot_succinct::{IntVector, Structure, Supports, write_ints};
/// let mut words = Vec::new();
/// let values = |take: &mut dyn FnMut(u64) -> std::io::Result<()>| [7, 1, 3].into_iter().try_for_each(take);
/// write_ints(3, 3, values, &mut words).unwrap();
/// assert_eq!(words, IntVector::from_values(3, [7, 1, 3]).unwrap().to_words(Supports::Lean));
/// ```
pub fn write_ints(len: u64, width: u32, mut values: impl Replay, sink: &mut impl WordSink) -> io::Result<()> {
    put_int_header(sink, len, width)?;
    let (mut packer, mut count) = (Packer::default(), 0);
    values.replay(&mut |value| {
        count += 1;
        packer.push(value, width, sink)
    })?;
    check_count("len", len, count)?;
    packer.finish(sink)
}

/// Writes a [`RawVector`](crate::RawVector) of `len` bits from its words.
pub fn write_raw(len: u64, mut words: impl Replay, sink: &mut impl WordSink) -> io::Result<()> {
    sink.put(&[len, len.div_ceil(64)])?;
    let mut count = 0;
    words.replay(&mut |word| {
        count += 1;
        sink.put(&[word])
    })?;
    check_count("bits.words", len.div_ceil(64), count)
}

/// Writes a [`BitVector`](crate::BitVector) of `len` bits, `ones` of them set, from its words, with the supports
/// `rank`, `select` and `select0` as simple-sds writes them, if they are wanted.
///
/// ```
/// use pentaglot_succinct::{BitVector, Structure, Supports, write_bits};
/// let bits: BitVector = (0..1000).map(|bit| bit % 7 == 0).collect();
/// let mut words = Vec::new();
/// let all = |take: &mut dyn FnMut(u64) -> std::io::Result<()>| bits.bits().words().iter().copied().try_for_each(take);
/// write_bits(1000, 143, [true; 3], all, &mut words).unwrap();
/// assert_eq!(words, bits.to_words(Supports::Full));
/// ```
pub fn write_bits(
    len: u64,
    ones: u64,
    supports: [bool; 3],
    mut words: impl Replay,
    sink: &mut impl WordSink,
) -> io::Result<()> {
    sink.put(&[ones])?;
    write_raw(len, |take: &mut dyn FnMut(u64) -> io::Result<()>| words.replay(take), sink)?;
    if supports[0] {
        put_rank(len, &mut words, sink)?;
    } else {
        sink.put(&[0])?;
    }
    for (wanted, one) in [(supports[1], true), (supports[2], false)] {
        if wanted {
            put_select(len, one, &mut words, sink)?;
        } else {
            sink.put(&[0])?;
        }
    }
    Ok(())
}

/// Writes a [`SparseVector`](crate::SparseVector) of `count` positions below `universe`, in ascending order, with the
/// supports of its high part as [`write_bits`] does.
///
/// ```
/// use pentaglot_succinct::{SparseOptions, SparseVector, Structure, Supports, write_sparse};
/// let mut words = Vec::new();
/// let positions = |take: &mut dyn FnMut(u64) -> std::io::Result<()>| [17, 4096].into_iter().try_for_each(take);
/// write_sparse(10_000, 2, SparseOptions::default(), [false, true, true], positions, &mut words).unwrap();
/// assert_eq!(words, SparseVector::from_sorted(10_000, &[17, 4096]).unwrap().to_words(Supports::Full));
/// ```
pub fn write_sparse(
    universe: u64,
    count: u64,
    options: SparseOptions,
    supports: [bool; 3],
    mut positions: impl Replay,
    sink: &mut impl WordSink,
) -> io::Result<()> {
    if count > universe && !options.multiset {
        let expected = format!("at most {universe} distinct positions");
        return Err(io::Error::other(Error::malformed(0, "ones", expected, count)));
    }
    let width = options.width.unwrap_or_else(|| low_width(universe, count));
    let limit = Error::Limit { name: "bits of a sparse vector", limit: u64::MAX, found: u64::MAX };
    let high_bits = count.checked_add(bucket_count(universe, width));
    let (Some(high_bits), Some(_)) = (high_bits, count.checked_mul(u64::from(width))) else {
        return Err(io::Error::other(limit));
    };
    sink.put(&[universe])?;
    let high = |take: &mut dyn FnMut(u64) -> io::Result<()>| {
        let (mut rank, mut next) = (0, 0);
        let (mut word, mut at) = (0_u64, 0_u64);
        positions.replay(&mut |position| {
            if position < next || position >= universe {
                let path = format!("positions[{rank}]");
                let expected = format!("{next} to below {universe}");
                return Err(io::Error::other(Error::malformed(0, path, expected, position)));
            }
            next = if options.multiset { position } else { position + 1 };
            let bit = position.checked_shr(width).unwrap_or(0) + rank;
            while bit / 64 > at {
                take(std::mem::take(&mut word))?;
                at += 1;
            }
            word |= 1 << (bit % 64);
            rank += 1;
            Ok(())
        })?;
        check_count("positions", count, rank)?;
        while at < high_bits.div_ceil(64) {
            take(std::mem::take(&mut word))?;
            at += 1;
        }
        Ok(())
    };
    write_bits(high_bits, count, supports, high, sink)?;
    write_ints(count, width, positions, sink)
}

fn put_rank(len: u64, words: &mut impl Replay, sink: &mut impl WordSink) -> io::Result<()> {
    let blocks = len.div_ceil(512);
    sink.put(&[1 + 2 * blocks, blocks])?;
    let (mut block, mut used, mut before) = ([0; 8], 0, 0);
    let mut put = |block: &[u64]| {
        let (packed, count) = dispatch!(isa => pack_block(isa, block));
        sink.put(&[before, packed])?;
        before += count;
        io::Result::Ok(())
    };
    words.replay(&mut |word| {
        block[used] = word;
        used += 1;
        if used == block.len() {
            used = 0;
            put(&block)?;
        }
        Ok(())
    })?;
    if used > 0 { put(&block[..used]) } else { Ok(()) }
}

/// The three vectors of a select support.
const SAMPLES: usize = 0;
const LONG: usize = 1;
const SHORT: usize = 2;

const SUPERBLOCK: u64 = 4096;

fn put_select(len: u64, one: bool, words: &mut impl Replay, sink: &mut impl WordSink) -> io::Result<()> {
    let (mut counts, mut largest) = ([0_u64; 3], [0_u64; 3]);
    scan(len, one, words, &mut |vector, value| {
        counts[vector] += 1;
        largest[vector] = largest[vector].max(value);
        Ok(())
    })?;
    let width = |vector: usize| if counts[vector] == 0 { 64 } else { bit_len(largest[vector]) };
    let elements = |vector: usize| 4 + (counts[vector] * u64::from(width(vector))).div_ceil(64);
    sink.put(&[elements(SAMPLES) + elements(LONG) + elements(SHORT)])?;
    for vector in [SAMPLES, LONG, SHORT] {
        put_int_header(sink, counts[vector], width(vector))?;
        if counts[vector] == 0 {
            continue;
        }
        let mut packer = Packer::default();
        scan(len, one, words, &mut |of, value| match of == vector {
            true => packer.push(value, width(vector), sink),
            false => Ok(()),
        })?;
        packer.finish(sink)?;
    }
    Ok(())
}

/// Passes the items of a select support to `emit`, with the vector they belong to.
fn scan(
    len: u64,
    one: bool,
    words: &mut impl Replay,
    emit: &mut dyn FnMut(usize, u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut block = Superblock { long_span: u64::from(bit_len(len)).pow(4), ..Superblock::default() };
    let mut at = 0_u64;
    words.replay(&mut |word| {
        let valid = low_mask((len.saturating_sub(at)).min(64) as u32);
        block.take(if one { word } else { !word } & valid, at, emit)?;
        at += 64;
        Ok(())
    })?;
    block.close(len, emit)
}

/// The bits of one superblock: 4096 of the kind, in words that have any.
#[derive(Default)]
struct Superblock {
    words: Vec<(u64, u64)>,
    bits: u64,
    long_span: u64,
    long: u64,
    short: u64,
}

impl Superblock {
    fn take(
        &mut self,
        mut word: u64,
        at: u64,
        emit: &mut dyn FnMut(usize, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        while word != 0 {
            if self.bits == SUPERBLOCK {
                self.close(at + u64::from(word.trailing_zeros()), emit)?;
            }
            let room = SUPERBLOCK - self.bits;
            let mut rest = 0;
            if u64::from(word.count_ones()) > room {
                rest = (0..room).fold(word, |rest, _| rest & (rest - 1));
            }
            let own = word & !rest;
            self.words.push((at, own));
            self.bits += u64::from(own.count_ones());
            word = rest;
        }
        Ok(())
    }

    /// Ends the superblock: the next one, or the vector, starts or ends at `limit`.
    fn close(&mut self, limit: u64, emit: &mut dyn FnMut(usize, u64) -> io::Result<()>) -> io::Result<()> {
        let Some(&(at, first)) = self.words.first() else { return Ok(()) };
        let start = at + u64::from(first.trailing_zeros());
        let is_long = limit - start >= self.long_span;
        let pointer = if is_long { 2 * self.long } else { 2 * self.short + 1 };
        emit(SAMPLES, start)?;
        emit(SAMPLES, pointer)?;
        let mut rank = 0_u64;
        for &(at, word) in &self.words {
            let count = u64::from(word.count_ones());
            if is_long {
                let mut left = word;
                while left != 0 {
                    emit(LONG, at + u64::from(left.trailing_zeros()) - start)?;
                    self.long += 1;
                    left &= left - 1;
                }
            } else if let Some(skipped) = Some((64 - rank % 64) % 64).filter(|skipped| *skipped < count) {
                let left = (0..skipped).fold(word, |left, _| left & (left - 1));
                emit(SHORT, at + u64::from(left.trailing_zeros()) - start)?;
                self.short += 1;
            }
            rank += count;
        }
        self.words.clear();
        self.bits = 0;
        Ok(())
    }
}
