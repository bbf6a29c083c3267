//! The lengths of a structure without its content: only a few elements are read, for a file of any size.

use super::type_text::SdsKind;
use crate::source::Source;

/// Maximum number of vectors of `chains` that are examined.
const MAX_CHAINS: u64 = 64;

/// Walks over the lengths of a structure.
struct Walk<'s> {
    source: &'s Source,
    /// How many elements there are.
    elements: u64,
    position: u64,
    /// Whether elements may be missing at the end.
    damaged: bool,
}

/// The one array of items that a structure of this kind consists of, apart from its supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Items {
    pub(super) kind: SdsKind,
    pub(super) count: u64,
    /// Bits per item.
    pub(super) width: u32,
    /// The first element of the items.
    pub(super) start: u64,
    /// Set bits, of a bit vector.
    pub(super) ones: u64,
    /// Which optional supports follow, of a bit vector.
    pub(super) supports: [bool; 3],
}

/// The first kind whose lengths use all elements of a source, except for containers.
pub(super) fn first_kind(source: &Source) -> Option<SdsKind> {
    SdsKind::ALL.into_iter().find(|kind| fits(source, *kind))
}

/// Whether the lengths of a structure of this kind use all elements of a source.
pub(super) fn fits(source: &Source, kind: SdsKind) -> bool {
    let Some(mut walk) = Walk::new(source) else { return false };
    walk.structure(kind).is_some() && walk.position == walk.elements
}

/// The items of a vector, if the structure has nothing else.
pub(super) fn items(source: &Source, kind: SdsKind) -> Option<Items> {
    let mut walk = Walk::new(source)?;
    let items = match kind {
        SdsKind::Bit => walk.bit(),
        SdsKind::Int => walk.int(),
        SdsKind::Raw => walk.raw(),
        SdsKind::Vec | SdsKind::Option => {
            walk.vector(1).map(|(start, count)| Items { width: 64, ..Items::new(kind, count, start) })
        }
        _ => None,
    }?;
    (walk.position == walk.elements).then_some(items)
}

/// The items of such a vector that a damaged file may lack the last of.
pub(super) fn items_of_damaged(source: &Source, kind: SdsKind) -> Option<Items> {
    let mut walk = Walk { source, elements: 1 << 56, position: 0, damaged: true };
    let items = match kind {
        SdsKind::Bit => walk.bit(),
        SdsKind::Int => walk.int(),
        SdsKind::Raw => walk.raw(),
        SdsKind::Vec => {
            walk.vector(1).map(|(start, count)| Items { width: 64, ..Items::new(kind, count, start) })
        }
        _ => None,
    }?;
    (items.count.checked_mul(u64::from(items.width))? < 1 << 56).then_some(items)
}

impl Items {
    fn new(kind: SdsKind, count: u64, start: u64) -> Self {
        Items { kind, count, width: 1, start, ones: 0, supports: [false; 3] }
    }
}

impl<'s> Walk<'s> {
    fn new(source: &'s Source) -> Option<Self> {
        let bytes = source.len()?;
        bytes.is_multiple_of(8).then_some(Walk { source, elements: bytes / 8, position: 0, damaged: false })
    }

    fn element(&mut self) -> Option<u64> {
        let mut bytes = [0; 8];
        self.source.read_exact_at(self.position.checked_mul(8)?, &mut bytes).ok()?;
        self.position += 1;
        Some(u64::from_le_bytes(bytes))
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.position = self.position.checked_add(count).filter(|end| *end <= self.elements)?;
        Some(())
    }

    /// The first element and the number of items of a vector.
    fn vector(&mut self, item_elements: u64) -> Option<(u64, u64)> {
        let count = self.element()?;
        let start = self.position;
        self.skip(count.checked_mul(item_elements)?)?;
        Some((start, count))
    }

    fn bytes(&mut self) -> Option<()> {
        let bytes = self.element()?;
        self.skip(bytes.div_ceil(8))
    }

    /// Whether an optional structure is present.
    fn option(&mut self) -> Option<bool> {
        let count = self.element()?;
        self.skip(count)?;
        Some(count > 0)
    }

    fn raw(&mut self) -> Option<Items> {
        let bits = self.element()?;
        let (start, words) = self.vector(1)?;
        (words == bits.div_ceil(64)).then_some(Items::new(SdsKind::Raw, bits, start))
    }

    fn int(&mut self) -> Option<Items> {
        let (count, width) = (self.element()?, self.element()?);
        let width = u32::try_from(width).ok().filter(|width| (1..=64).contains(width))?;
        let raw = self.raw()?;
        let fits = count.checked_mul(u64::from(width)) == Some(raw.count);
        fits.then_some(Items { width, ..Items::new(SdsKind::Int, count, raw.start) })
    }

    fn bit(&mut self) -> Option<Items> {
        let ones = self.element()?;
        let raw = self.raw()?;
        let mut option = || if self.damaged { Some(false) } else { self.option() };
        let supports = [option()?, option()?, option()?];
        (ones <= raw.count).then_some(Items {
            ones,
            supports,
            ..Items::new(SdsKind::Bit, raw.count, raw.start)
        })
    }

    fn run_length(&mut self) -> Option<u64> {
        let (bits, ones) = (self.element()?, self.element()?);
        self.int()?;
        self.int()?;
        (ones <= bits).then_some(bits)
    }

    /// The levels of a wavelet matrix, all of one length.
    fn levels(&mut self, mut level: impl FnMut(&mut Self) -> Option<u64>) -> Option<u64> {
        let width = self.element().filter(|width| (1..=64).contains(width))?;
        let first = level(self)?;
        (1..width).all(|_| level(self) == Some(first)).then_some(first)
    }

    fn structure(&mut self, kind: SdsKind) -> Option<()> {
        match kind {
            SdsKind::RunLengthWavelet => {
                let len = self.element()?;
                let levels = self.levels(Self::run_length)?;
                self.int()?;
                (levels == len).then_some(())
            }
            SdsKind::Wavelet => {
                let len = self.element()?;
                let levels = self.levels(|walk| walk.bit().map(|items| items.count))?;
                self.int()?;
                (levels == len).then_some(())
            }
            SdsKind::WaveletCore => self.levels(|walk| walk.bit().map(|items| items.count)).map(drop),
            SdsKind::RunLength => self.run_length().map(drop),
            SdsKind::Sparse => {
                self.element()?;
                self.bit()?;
                self.int().map(drop)
            }
            SdsKind::Bit => self.bit().map(drop),
            SdsKind::Int => self.int().map(drop),
            SdsKind::Raw => self.raw().map(drop),
            SdsKind::Option => self.option().map(drop),
            SdsKind::Pairs => self.vector(2).map(drop),
            SdsKind::String | SdsKind::Bytes => self.bytes(),
            SdsKind::Vec => self.vector(1).map(drop),
            SdsKind::Chains => {
                let count = self.element()?;
                (0..count.min(MAX_CHAINS)).try_for_each(|_| self.int().map(drop))?;
                // More are not examined, since detection must read little.
                if count > MAX_CHAINS {
                    self.position = self.elements;
                }
                Some(())
            }
            // Containers have tags; the others need a type.
            SdsKind::Gbz | SdsKind::Gbwt | SdsKind::Gg | SdsKind::GbwtMeta => None,
            SdsKind::Element | SdsKind::Items | SdsKind::Composite => None,
        }
    }
}
