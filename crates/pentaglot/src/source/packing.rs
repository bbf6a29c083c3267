//! Compression around a file: its name, its detection and decompression.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::SourceReader;
use super::stream::BoxRead;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::redact::without_query;

/// A compression around a whole file of any format.
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

    /// The compression that the extension of a name indicates.
    pub fn of_name(name: &str) -> Option<Self> {
        let name = without_query(name);
        Packing::ALL.into_iter().find(|packing| packing.stem(name).is_some())
    }

    /// The compression whose magic number these bytes begin with.
    pub fn of_magic(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Packing::Gzip),
            // A frame, or one that readers skip: pzstd begins with such.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Packing::Zstd),
            // A text may begin with these letters, so the header of the first block, or of the end, must
            // follow.
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
                if rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90") =>
            {
                Some(Packing::Bzip2)
            }
            _ => None,
        }
    }

    /// The name without the extension of a compression, if it has one.
    pub fn strip(name: &str) -> &str {
        Packing::ALL.into_iter().find_map(|packing| packing.stem(name)).unwrap_or(name)
    }

    fn stem(self, name: &str) -> Option<&str> {
        let at = name.len().checked_sub(self.extension().len())?;
        let (stem, extension) = (name.get(..at)?, name.get(at..)?);
        extension.eq_ignore_ascii_case(self.extension()).then_some(stem)
    }

    /// The decompressed bytes. Several concatenated streams are read as one.
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

/// The state of the compressed bytes.
#[derive(Default)]
struct Input {
    count: AtomicU64,
    /// Whether reading them failed.
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

/// A decoder that checks its output against `max_ratio` and returns our errors.
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
            // The words of the decoders differ.
            _ if error.to_string().contains("checksum") => {
                let expected = format_args!("{name} data whose checksum matches");
                Error::malformed(expected, "one that differs").at(input()).into()
            }
            _ => Error::malformed(format_args!("sound {name} data"), "damaged bytes").at(input()).into(),
        })?;
        self.output += count as u64;
        self.limits.check_ratio(input(), self.output)?;
        Ok(count)
    }
}
