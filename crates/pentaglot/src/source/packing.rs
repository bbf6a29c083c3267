//! Packing around a file: how it is named and recognised, and the unpacked bytes.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::SourceReader;
use super::stream::BoxRead;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::redact::without_query;

/// A compression around a whole file, whatever the format of the file.
///
/// ```
/// use pentaglot::Packing;
/// assert_eq!(Packing::of_name("x.csv.ZST"), Some(Packing::Zstd));
/// assert_eq!(Packing::strip("x.csv.ZST"), "x.csv");
/// assert_eq!(Packing::of_magic(&[0x1f, 0x8b, 8]), Some(Packing::Gzip));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Packing {
    /// gzip, `.gz`.
    Gzip,
    /// Zstandard, `.zst`.
    Zstd,
    /// bzip2, `.bz2`.
    Bzip2,
}

impl Packing {
    /// All of them.
    pub const ALL: [Packing; 3] = [Packing::Gzip, Packing::Zstd, Packing::Bzip2];

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
            Packing::Bzip2 => "bzip2",
        }
    }

    /// The extension, with its dot.
    pub fn extension(self) -> &'static str {
        match self {
            Packing::Gzip => ".gz",
            Packing::Zstd => ".zst",
            Packing::Bzip2 => ".bz2",
        }
    }

    /// The packing that a file's name says.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = without_query(name);
        Packing::ALL.into_iter().find(|packing| packing.stem(name).is_some())
    }

    /// The packing whose magic number these first bytes begin with.
    pub fn of_magic(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
            // A text may begin with these letters: the first block, or the end, must follow.
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
                if rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90") =>
            {
                Some(Packing::Bzip2)
            }
            _ => None,
        }
    }

    /// The name without the extension of a packing, if it has one.
    pub fn strip(name: &str) -> &str {
        Packing::ALL.into_iter().find_map(|packing| packing.stem(name)).unwrap_or(name)
    }

    fn stem(self, name: &str) -> Option<&str> {
        let at = name.len().checked_sub(self.extension().len())?;
        let (stem, extension) = (name.get(..at)?, name.get(at..)?);
        extension.eq_ignore_ascii_case(self.extension()).then_some(stem)
    }

    /// The unpacked bytes. Several packed streams one after the other are one.
    pub(super) fn unpack(self, packed: SourceReader, limits: Limits) -> Result<BoxRead> {
        let input = Arc::<Input>::default();
        let packed = Counting { inner: packed, input: Arc::clone(&input) };
        let inner: BoxRead = match self {
            Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
            Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(packed)?),
            Packing::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(packed)),
        };
        Ok(Box::new(Unpacked { inner, packing: self, input, output: 0, limits }))
    }
}

/// What is known of the packed bytes.
#[derive(Default)]
struct Input {
    count: AtomicU64,
    /// Whether they could not be read.
    failed: AtomicBool,
}

struct Counting<R> {
    inner: R,
    input: Arc<Input>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer).inspect_err(|error| {
            let is_fault = error.kind() != io::ErrorKind::Interrupted;
            self.input.failed.fetch_or(is_fault, Ordering::Relaxed);
        })?;
        self.input.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// A decoder that compares its output with `max_ratio` and gives our errors.
struct Unpacked {
    inner: BoxRead,
    packing: Packing,
    input: Arc<Input>,
    output: u64,
    limits: Limits,
}

/// Bytes that end where the packed data is cut.
pub(super) struct UntilCut(pub(super) BoxRead);

impl Read for UntilCut {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).or_else(|error| match error.kind() {
            io::ErrorKind::Interrupted => Err(error),
            _ => match Error::from(error) {
                error if error.kind() == ErrorKind::Truncated => Ok(0),
                error => Err(error.into()),
            },
        })
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let input = || self.input.count.load(Ordering::Relaxed);
        let name = self.packing.name();
        let count = self.inner.read(buffer).map_err(|error| match error.kind() {
            _ if self.input.failed.load(Ordering::Relaxed) => error,
            io::ErrorKind::Interrupted => error,
            io::ErrorKind::UnexpectedEof => {
                Error::truncated(format_args!("more {name} data"), "the end of the file").at(input()).into()
            }
            _ => Error::malformed(format_args!("sound {name} data"), error).at(input()).into(),
        })?;
        self.output += count as u64;
        self.limits.check_ratio(input(), self.output)?;
        Ok(count)
    }
}
