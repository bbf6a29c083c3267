//! Which kind may fit a file, from the lengths in its headers: a few positioned reads, whatever the file's size.

use super::containers;
use super::layout::{fitting, own_words};
use super::types::Kind;
use crate::formats::{Confidence, Head};

/// Vectors of `chains` that are looked at.
const MAX_CHAINS: u64 = 64;

pub(super) fn detect(head: &Head<'_>) -> Confidence {
    let Some(len) = head.len().filter(|len| *len > 0 && len.is_multiple_of(8)) else { return Confidence::No };
    let tagged = head.bytes().first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    if [Kind::Gbz, Kind::Gbwt, Kind::Gg, Kind::GbwtMeta].iter().any(|kind| containers::tag(*kind) == tagged) {
        return Confidence::Certain;
    }
    if head.bytes().len() as u64 == len {
        // All bytes are at hand: the rules of the kinds decide too.
        let words = own_words(arrow_buffer::Buffer::from(head.bytes()));
        return fitting(&words).map_or(Confidence::No, |(object, _)| confidence(object.kind()));
    }
    Kind::ALL.into_iter().find(|kind| fits(head, *kind)).map_or(Confidence::No, confidence)
}

/// Whether the lengths of a kind without a tag add up to the file's.
pub(super) fn fits(head: &Head<'_>, kind: Kind) -> bool {
    let Some(len) = head.len() else { return false };
    let mut walk = Walk { head, at: 0, len: len / 8 };
    walk.kind(kind).is_some() && walk.at == walk.len
}

/// A plain vector fits many files by chance, a structure of several parts does not.
fn confidence(kind: Kind) -> Confidence {
    match kind {
        Kind::Option | Kind::Pairs | Kind::String | Kind::Bytes | Kind::Vec | Kind::Chains => {
            Confidence::Possible
        }
        _ => Confidence::Likely,
    }
}

/// Goes from header to header. `None`: the lengths contradict each other or the file.
struct Walk<'h> {
    head: &'h Head<'h>,
    /// The next element.
    at: u64,
    /// All elements.
    len: u64,
}

impl Walk<'_> {
    fn element(&mut self) -> Option<u64> {
        let bytes = self.head.read_at(self.at.checked_mul(8)?, 8);
        self.at += 1;
        Some(u64::from_le_bytes(*bytes.first_chunk()?))
    }

    fn skip(&mut self, elements: u64) -> Option<()> {
        self.at = self.at.checked_add(elements).filter(|at| *at <= self.len)?;
        Some(())
    }

    fn kind(&mut self, kind: Kind) -> Option<()> {
        match kind {
            Kind::Gbz | Kind::Gbwt | Kind::Gg | Kind::GbwtMeta => None,
            Kind::RunLengthWavelet => self.matrix(Self::run_length),
            Kind::Wavelet => self.matrix(Self::bit),
            Kind::WaveletCore => self.levels(None, Self::bit),
            Kind::RunLength => self.run_length().map(drop),
            Kind::Sparse => {
                self.element()?;
                let ones = self.bit()?.ones;
                (self.int()? == ones).then_some(())
            }
            Kind::Bit => self.bit().map(drop),
            Kind::Int => self.int().map(drop),
            Kind::Raw => self.raw().map(drop),
            Kind::Option | Kind::Vec => self.vector(Some),
            Kind::Pairs => self.vector(|items| items.checked_mul(2)),
            Kind::String | Kind::Bytes => self.vector(|items| Some(items.div_ceil(8))),
            Kind::Chains => {
                let count = self.element()?;
                (0..count.min(MAX_CHAINS)).try_for_each(|_| self.int().map(drop))?;
                if count > MAX_CHAINS {
                    self.at = self.len;
                }
                Some(())
            }
        }
    }

    fn vector(&mut self, elements: impl Fn(u64) -> Option<u64>) -> Option<()> {
        let items = self.element()?;
        self.skip(elements(items)?)
    }

    /// Gives the number of bits.
    fn raw(&mut self) -> Option<u64> {
        let (bits, words) = (self.element()?, self.element()?);
        if words != bits.div_ceil(64) {
            return None;
        }
        self.skip(words)?;
        Some(bits)
    }

    /// Gives the number of items.
    fn int(&mut self) -> Option<u64> {
        let (items, width) = (self.element()?, self.element()?);
        if !(1..=64).contains(&width) {
            return None;
        }
        (self.raw()? == items.checked_mul(width)?).then_some(items)
    }

    fn bit(&mut self) -> Option<Bits> {
        let ones = self.element()?;
        let len = self.raw()?;
        for _ in 0..3 {
            let support = self.element()?;
            self.skip(support)?;
        }
        (ones <= len).then_some(Bits { len, ones })
    }

    fn run_length(&mut self) -> Option<Bits> {
        let (len, ones) = (self.element()?, self.element()?);
        self.int()?;
        self.int()?;
        (ones <= len).then_some(Bits { len, ones })
    }

    fn levels(&mut self, len: Option<u64>, level: fn(&mut Self) -> Option<Bits>) -> Option<()> {
        let width = self.element().filter(|width| (1..=64).contains(width))?;
        let first = level(self)?.len;
        if len.is_some_and(|len| len != first) {
            return None;
        }
        (1..width).try_for_each(|_| (level(self)?.len == first).then_some(()))
    }

    fn matrix(&mut self, level: fn(&mut Self) -> Option<Bits>) -> Option<()> {
        let len = self.element()?;
        self.levels(Some(len), level)?;
        self.int().map(drop)
    }
}

/// What the header of a bit vector says.
struct Bits {
    len: u64,
    ones: u64,
}
