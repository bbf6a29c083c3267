//! The values of entries: how each type is read and mirrored.

use super::layout::Symmetry;
use super::number_text::Scanner;
use super::quick;
use crate::hub::matrix::build::Value;

/// The type of a value in a file.
pub(super) trait Cell: Value {
    /// The name of a value in messages.
    const EXPECTED: &'static str;

    /// Whether files have a value in each entry.
    const IS_STORED: bool = true;

    /// Reads one.
    fn scan(scanner: &mut Scanner<'_>) -> Option<Self>;

    /// Reads one as it is usually written; also returns where it ends. `None` if [`scan`](Self::scan) must read it.
    fn quick(text: &[u8], at: usize) -> Option<(Self, usize)>;

    /// The value on the other side of the diagonal; `None` if it does not fit.
    fn mirror(self, symmetry: Symmetry) -> Option<Self>;

    /// Its bytes, least significant first.
    fn put(self, bytes: &mut Vec<u8>);

    /// The value of the first bytes; zero if there are too few.
    fn get(bytes: &[u8]) -> Self;
}

impl Cell for f64 {
    const EXPECTED: &'static str = "a real number";

    #[inline]
    fn scan(scanner: &mut Scanner<'_>) -> Option<Self> {
        scanner.float()
    }

    #[inline(always)]
    fn quick(text: &[u8], at: usize) -> Option<(Self, usize)> {
        quick::float(text, at)
    }

    #[inline]
    fn mirror(self, symmetry: Symmetry) -> Option<Self> {
        Some(if symmetry == Symmetry::Skew { -self } else { self })
    }

    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        bytes.first_chunk().copied().map(f64::from_le_bytes).unwrap_or_default()
    }
}

impl Cell for i64 {
    const EXPECTED: &'static str =
        "a whole number of 64 bits (the option integers=uint64 reads them without a sign)";

    #[inline]
    fn scan(scanner: &mut Scanner<'_>) -> Option<Self> {
        scanner.signed()
    }

    #[inline(always)]
    fn quick(text: &[u8], at: usize) -> Option<(Self, usize)> {
        quick::signed(text, at)
    }

    #[inline]
    fn mirror(self, symmetry: Symmetry) -> Option<Self> {
        if symmetry == Symmetry::Skew { self.checked_neg() } else { Some(self) }
    }

    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        bytes.first_chunk().copied().map(i64::from_le_bytes).unwrap_or_default()
    }
}

impl Cell for u64 {
    const EXPECTED: &'static str = "a whole number of 64 bits without a sign";

    #[inline]
    fn scan(scanner: &mut Scanner<'_>) -> Option<Self> {
        scanner.unsigned()
    }

    #[inline(always)]
    fn quick(text: &[u8], at: usize) -> Option<(Self, usize)> {
        quick::unsigned(text, at)
    }

    fn mirror(self, symmetry: Symmetry) -> Option<Self> {
        (symmetry != Symmetry::Skew || self == 0).then_some(self)
    }

    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        bytes.first_chunk().copied().map(u64::from_le_bytes).unwrap_or_default()
    }
}

impl Cell for [f64; 2] {
    const EXPECTED: &'static str = "a complex number (two real numbers)";

    #[inline]
    fn scan(scanner: &mut Scanner<'_>) -> Option<Self> {
        Some([scanner.float()?, scanner.float()?])
    }

    #[inline(always)]
    fn quick(text: &[u8], at: usize) -> Option<(Self, usize)> {
        let (real, at) = quick::float(text, at)?;
        let (imaginary, at) = quick::float(text, quick::blank(text, at)?)?;
        Some(([real, imaginary], at))
    }

    #[inline]
    fn mirror(self, symmetry: Symmetry) -> Option<Self> {
        let [real, imaginary] = self;
        Some(match symmetry {
            Symmetry::Skew => [-real, -imaginary],
            Symmetry::Hermitian => [real, -imaginary],
            _ => self,
        })
    }

    fn put(self, bytes: &mut Vec<u8>) {
        self.into_iter().for_each(|part| part.put(bytes));
    }

    fn get(bytes: &[u8]) -> Self {
        [f64::get(bytes), f64::get(bytes.get(8..).unwrap_or_default())]
    }
}

/// An entry of a pattern, which has no value in the file.
impl Cell for i8 {
    const EXPECTED: &'static str = "nothing";
    const IS_STORED: bool = false;

    #[inline]
    fn scan(_: &mut Scanner<'_>) -> Option<Self> {
        Some(1)
    }

    #[inline(always)]
    fn quick(_: &[u8], at: usize) -> Option<(Self, usize)> {
        Some((1, at))
    }

    #[inline]
    fn mirror(self, _: Symmetry) -> Option<Self> {
        Some(self)
    }

    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        bytes.first_chunk().copied().map(i8::from_le_bytes).unwrap_or_default()
    }
}
