//! Writes vectors that are larger than memory: elements are written directly, headers are filled in at the end.
//!
//! | structure | writer | needs |
//! |---|---|---|
//! | raw, int, bit | [`RawVectorWriter`], [`IntVectorWriter`], [`BitVectorWriter`] | an output that can seek |
//! | sparse | [`SparseVectorWriter`] | the same; universe and number of positions at the start |
//! | run-length | [`RunLengthVectorWriter`] | any output; a scratch file for the data after the samples |
//! | raw, int, bit, sparse | [`write_raw`], [`write_ints`], [`write_bits`], [`write_sparse`] | any output; elements that can be read again |

use std::io::{self, Seek, SeekFrom, Write};

mod pack;
mod replay;
mod run_length;

pub use self::replay::{Replay, write_bits, write_ints, write_raw, write_sparse};
pub use self::run_length::RunLengthVectorWriter;

use crate::bits::low_mask;
use crate::error::Error;
use crate::int_vector::IntVector;
use crate::sparse::{SparseOptions, bucket_count, low_width};

/// Words that are buffered before they are written.
const BUFFER_WORDS: usize = 8192;

/// Bits to be written at an offset of the output.
#[derive(Debug)]
struct BitSink {
    // Byte offset of the next word.
    at: u64,
    words: Vec<u8>,
    word: u64,
    len: u64,
}

impl BitSink {
    fn new(at: u64) -> Self {
        BitSink { at, words: Vec::with_capacity(8 * BUFFER_WORDS), word: 0, len: 0 }
    }

    #[inline]
    fn push<O: Write + Seek>(&mut self, value: u64, width: u32, output: &mut O) -> io::Result<()> {
        if width == 0 {
            return Ok(());
        }
        let (value, used) = (value & low_mask(width), (self.len % 64) as u32);
        self.word |= value << used;
        self.len += u64::from(width);
        if used + width >= 64 {
            self.words.extend_from_slice(&self.word.to_le_bytes());
            self.word = if used == 0 { 0 } else { value >> (64 - used) };
            if self.words.len() >= 8 * BUFFER_WORDS {
                self.flush(output)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, output: &mut (impl Write + Seek)) -> io::Result<()> {
        output.seek(SeekFrom::Start(self.at))?;
        output.write_all(&self.words)?;
        self.at += self.words.len() as u64;
        self.words.clear();
        Ok(())
    }

    fn finish(&mut self, output: &mut (impl Write + Seek)) -> io::Result<()> {
        if !self.len.is_multiple_of(64) {
            self.words.extend_from_slice(&self.word.to_le_bytes());
        }
        self.flush(output)
    }
}

fn put_header(output: &mut (impl Write + Seek), at: u64, elements: &[u64]) -> io::Result<()> {
    output.seek(SeekFrom::Start(at))?;
    elements.iter().try_for_each(|element| output.write_all(&element.to_le_bytes()))
}

/// Writes a [`RawVector`](crate::RawVector) bit by bit.
///
/// ```
/// use std::io::Cursor;
/// use pentaglot_succinct::RawVectorWriter;
/// let mut writer = RawVectorWriter::new(Cursor::new(Vec::new())).unwrap();
/// writer.push_int(0b101, 3).unwrap();
/// let bytes = writer.finish().unwrap().into_inner();
/// assert_eq!(bytes, [3_u64, 1, 5].map(u64::to_le_bytes).concat());
/// ```
#[derive(Debug)]
pub struct RawVectorWriter<O> {
    output: O,
    start: u64,
    header: u64,
    bits: BitSink,
}

impl<O: Write + Seek> RawVectorWriter<O> {
    /// Starts a vector at the output's position.
    pub fn new(output: O) -> io::Result<Self> {
        Self::with_header(output, 0)
    }

    /// Reserves `header` elements before the vector.
    fn with_header(mut output: O, header: u64) -> io::Result<Self> {
        let start = output.stream_position()?;
        let bits = BitSink::new(start + 8 * (header + 2));
        Ok(RawVectorWriter { output, start, header, bits })
    }

    /// The number of bits so far.
    pub fn len(&self) -> u64 {
        self.bits.len
    }

    /// Whether there are no bits yet.
    pub fn is_empty(&self) -> bool {
        self.bits.len == 0
    }

    /// Appends a bit.
    #[inline]
    pub fn push(&mut self, bit: bool) -> io::Result<()> {
        self.push_int(u64::from(bit), 1)
    }

    /// Appends the lowest `width` bits of `value`; widths above 64 count as 64.
    #[inline]
    pub fn push_int(&mut self, value: u64, width: u32) -> io::Result<()> {
        self.bits.push(value, width.min(64), &mut self.output)
    }

    /// Completes the vector and leaves the output after it. Without this the header is missing.
    pub fn finish(self) -> io::Result<O> {
        self.finish_with(&[])
    }

    fn finish_with(mut self, header: &[u64]) -> io::Result<O> {
        self.bits.finish(&mut self.output)?;
        put_header(&mut self.output, self.start, header)?;
        let (len, at) = (self.bits.len, self.start + 8 * self.header);
        put_header(&mut self.output, at, &[len, len.div_ceil(64)])?;
        self.output.seek(SeekFrom::Start(self.bits.at))?;
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Writes a [`BitVector`](crate::BitVector) without supports, bit by bit.
///
/// ```
/// use std::io::Cursor;
/// use pentaglot_succinct::BitVectorWriter;
/// let mut writer = BitVectorWriter::new(Cursor::new(Vec::new())).unwrap();
/// for bit in [true, false, true] {
///     writer.push(bit).unwrap();
/// }
/// let bytes = writer.finish().unwrap().into_inner();
/// assert_eq!(bytes, [2_u64, 3, 1, 5, 0, 0, 0].map(u64::to_le_bytes).concat());
/// ```
#[derive(Debug)]
pub struct BitVectorWriter<O> {
    ones: u64,
    bits: RawVectorWriter<O>,
}

impl<O: Write + Seek> BitVectorWriter<O> {
    /// Starts a vector at the output's position.
    pub fn new(output: O) -> io::Result<Self> {
        Ok(BitVectorWriter { ones: 0, bits: RawVectorWriter::with_header(output, 1)? })
    }

    /// The number of bits so far.
    pub fn len(&self) -> u64 {
        self.bits.len()
    }

    /// Whether there are no bits yet.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// Appends a bit.
    #[inline]
    pub fn push(&mut self, bit: bool) -> io::Result<()> {
        self.push_int(u64::from(bit), 1)
    }

    /// Appends the lowest `width` bits of `value`; widths above 64 count as 64.
    #[inline]
    pub fn push_int(&mut self, value: u64, width: u32) -> io::Result<()> {
        self.ones += u64::from((value & low_mask(width)).count_ones());
        self.bits.push_int(value, width)
    }

    /// Completes the vector and leaves the output after it. Without this the header is missing.
    pub fn finish(self) -> io::Result<O> {
        let mut output = self.bits.finish_with(&[self.ones])?;
        // Three supports that are absent.
        output.write_all(&[0; 3 * 8])?;
        output.flush()?;
        Ok(output)
    }
}

/// Writes an [`IntVector`] item by item.
///
/// ```
/// use std::io::Cursor;
/// use pentaglot_succinct::IntVectorWriter;
/// let mut writer = IntVectorWriter::new(Cursor::new(Vec::new()), 8).unwrap();
/// writer.push(3).unwrap();
/// writer.push(5).unwrap();
/// let bytes = writer.finish().unwrap().into_inner();
/// assert_eq!(bytes, [2_u64, 8, 16, 1, 5 << 8 | 3].map(u64::to_le_bytes).concat());
/// ```
#[derive(Debug)]
pub struct IntVectorWriter<O> {
    width: u32,
    len: u64,
    bits: RawVectorWriter<O>,
}

impl<O: Write + Seek> IntVectorWriter<O> {
    /// Starts a vector of items of `width` (1 to 64) bits at the output's position.
    pub fn new(output: O, width: u32) -> io::Result<Self> {
        IntVector::new(width).map_err(io::Error::other)?;
        Ok(IntVectorWriter { width, len: 0, bits: RawVectorWriter::with_header(output, 2)? })
    }

    /// The number of items so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no items yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends the lowest bits of `value`.
    #[inline]
    pub fn push(&mut self, value: u64) -> io::Result<()> {
        self.len += 1;
        self.bits.push_int(value, self.width)
    }

    /// Completes the vector and leaves the output after it. Without this the header is missing.
    pub fn finish(self) -> io::Result<O> {
        self.bits.finish_with(&[self.len, u64::from(self.width)])
    }
}

/// Writes a [`SparseVector`](crate::SparseVector) without supports, position by position.
///
/// Universe and number of positions are known from the start, so the offsets of both parts are known and they are
/// written in parallel.
///
/// ```
/// use std::io::Cursor;
/// use pentaglot_succinct::{SparseOptions, SparseVector, SparseVectorWriter, Structure, Supports};
/// let output = Cursor::new(Vec::new());
/// let mut writer = SparseVectorWriter::new(output, 1_000_000, 2, SparseOptions::default()).unwrap();
/// writer.push(17).unwrap();
/// writer.push(999_999).unwrap();
/// let bytes = writer.finish().unwrap().into_inner();
/// let words = SparseVector::from_sorted(1_000_000, &[17, 999_999]).unwrap().to_words(Supports::Lean);
/// assert_eq!(bytes, words.into_iter().flat_map(u64::to_le_bytes).collect::<Vec<_>>());
/// ```
#[derive(Debug)]
pub struct SparseVectorWriter<O> {
    output: O,
    universe: u64,
    ones: u64,
    count: u64,
    next: u64,
    multiset: bool,
    width: u32,
    start: u64,
    high_bits: u64,
    high: BitSink,
    low: BitSink,
}

impl<O: Write + Seek> SparseVectorWriter<O> {
    /// Starts a vector of `ones` positions below `universe` at the output's position.
    pub fn new(mut output: O, universe: u64, ones: u64, options: SparseOptions) -> io::Result<Self> {
        if ones > universe && !options.multiset {
            let expected = format!("at most {universe} distinct positions");
            return Err(io::Error::other(Error::malformed(0, "ones", expected, ones)));
        }
        let width = options.width.unwrap_or_else(|| low_width(universe, ones));
        IntVector::new(width).map_err(io::Error::other)?;
        let limit = Error::Limit { name: "bits of a sparse vector", limit: u64::MAX, found: u64::MAX };
        let high_bits = ones.checked_add(bucket_count(universe, width));
        let (Some(high_bits), Some(_)) = (high_bits, ones.checked_mul(u64::from(width))) else {
            return Err(io::Error::other(limit));
        };
        let start = output.stream_position()?;
        // Universe; ones, length, words; three absent supports; length, width, length, words of the low part.
        let high = BitSink::new(start + 8 * 4);
        let low = BitSink::new(start + 8 * (4 + high_bits.div_ceil(64) + 3 + 4));
        let multiset = options.multiset;
        let (count, next) = (0, 0);
        Ok(SparseVectorWriter {
            output,
            universe,
            ones,
            count,
            next,
            multiset,
            width,
            start,
            high_bits,
            high,
            low,
        })
    }

    /// Appends a position: not below the last one, distinct unless for a multiset, below the universe.
    pub fn push(&mut self, position: u64) -> io::Result<()> {
        if position < self.next || position >= self.universe || self.count >= self.ones {
            let path = format!("positions[{}]", self.count);
            let expected =
                format!("{} positions, the next from {} to below {}", self.ones, self.next, self.universe);
            return Err(io::Error::other(Error::malformed(0, path, expected, position)));
        }
        let bit = position.checked_shr(self.width).unwrap_or(0) + self.count;
        self.zeros_to(bit)?;
        self.high.push(1, 1, &mut self.output)?;
        self.low.push(position, self.width, &mut self.output)?;
        self.count += 1;
        self.next = if self.multiset { position } else { position + 1 };
        Ok(())
    }

    fn zeros_to(&mut self, bit: u64) -> io::Result<()> {
        while self.high.len < bit {
            let width = (bit - self.high.len).min(64) as u32;
            self.high.push(0, width, &mut self.output)?;
        }
        Ok(())
    }

    /// Completes the vector, if all announced positions were appended, and leaves the output after it.
    pub fn finish(mut self) -> io::Result<O> {
        if self.count != self.ones {
            let expected = format!("{} positions", self.ones);
            return Err(io::Error::other(Error::malformed(0, "positions", expected, self.count)));
        }
        self.zeros_to(self.high_bits)?;
        self.high.finish(&mut self.output)?;
        let high_words = self.high_bits.div_ceil(64);
        put_header(&mut self.output, self.start, &[self.universe, self.ones, self.high_bits, high_words])?;
        let (low_bits, width) = (self.low.len, u64::from(self.width));
        let between = [0, 0, 0, self.ones, width, low_bits, low_bits.div_ceil(64)];
        put_header(&mut self.output, self.start + 8 * (4 + high_words), &between)?;
        self.low.finish(&mut self.output)?;
        self.output.seek(SeekFrom::Start(self.low.at))?;
        self.output.flush()?;
        Ok(self.output)
    }
}
