//! The location of an array ([`Extent`]) and its header ([`Header`]): read strictly, written as NumPy writes
//! it.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_buffer::Buffer;

use super::literal::Literal;
use super::read::wrong_crc;
use super::types::Dtype;
use crate::error::{Context, Error, Result};
use crate::limits::Budget;
use crate::source::Source;

/// The first bytes of every `.npy` file.
pub(in crate::formats) const MAGIC: [u8; 6] = *b"\x93NUMPY";
/// NumPy pads a header so that the values start at a multiple of this.
const ALIGN: usize = 64;
/// NumPy reserves room for this many digits of the dimension that may grow.
const GROWTH_DIGITS: usize = 21;

/// A range of bytes of a source: a whole file, or a member of an archive.
#[derive(Debug, Clone)]
pub(in crate::formats) struct Extent {
    pub(in crate::formats) source: Source,
    pub(in crate::formats) base: u64,
    /// The length of the range, if known.
    pub(in crate::formats) len: Option<u64>,
    /// The expected CRC-32 of the bytes, if an archive stores one and no decoder checks it.
    pub(in crate::formats) crc: Option<u32>,
    /// Whether the checksum has been compared, or is skipped because only a part of the bytes is read.
    pub(in crate::formats) checked: Arc<AtomicBool>,
}

impl Extent {
    pub(in crate::formats) fn whole(source: Source) -> Extent {
        Extent { base: 0, len: source.len(), source, crc: None, checked: Arc::default() }
    }

    /// `len` bytes at `offset`, counted from the start of the range, without consuming a stream.
    pub(in crate::formats) fn peek(&self, offset: u64, len: u64, budget: &Budget) -> Result<Buffer> {
        let at = self.base.saturating_add(offset);
        if let Some(total) = self.len
            && offset.checked_add(len).is_none_or(|end| end > total)
        {
            let left = total.saturating_sub(offset);
            return Err(Error::truncated(format_args!("{len} bytes"), left).at(at));
        }
        if self.source.is_seekable() {
            return self.source.read_range(at, len, budget);
        }
        let head = self.source.head()?;
        let start = usize::try_from(at).unwrap_or(usize::MAX).min(head.len());
        let rest = head.get(start..).unwrap_or_default();
        let wanted = usize::try_from(len).unwrap_or(usize::MAX);
        match rest.get(..wanted) {
            Some(bytes) => Ok(Buffer::from(bytes)),
            None if head.len() < crate::source::HEAD_BYTES => {
                Err(Error::truncated(format_args!("{len} bytes"), rest.len()).at(at))
            }
            None => Err(Error::limit(
                "the limit of a stream",
                crate::source::HEAD_BYTES,
                format!("{len} header bytes"),
            )),
        }
    }
}

impl Extent {
    /// Compares the CRC-32 of all bytes, if an archive has one.
    pub(in crate::formats) fn check_crc(&self) -> Result<()> {
        let (Some(expected), Some(len)) = (self.crc, self.len) else { return Ok(()) };
        let mut reader = BufReader::with_capacity(1 << 16, self.source.reader_at(self.base)?.take(len));
        let mut sum = flate2::Crc::new();
        loop {
            let bytes = reader.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            sum.update(bytes);
            let count = bytes.len();
            reader.consume(count);
        }
        if sum.sum() == expected { Ok(()) } else { Err(wrong_crc(expected, sum.sum()).at(self.base)) }
    }

    /// Reads all bytes, so that whatever checks them does so.
    pub(in crate::formats) fn check_all(&self) -> Result<()> {
        if self.source.is_seekable() {
            return self.check_crc();
        }
        std::io::copy(&mut self.source.reader_at(self.base)?, &mut std::io::sink())?;
        Ok(())
    }

    /// Like [`check_crc`](Self::check_crc), for readers of a part: only once, and not if reads are costly.
    pub(super) fn check_crc_once(&self) -> Result<()> {
        if self.crc.is_some() && !self.source.is_costly() && !self.checked.load(Ordering::Relaxed) {
            self.check_crc()?;
            self.checked.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The header of a `.npy` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::formats) struct Header {
    pub(in crate::formats) version: u8,
    pub(in crate::formats) dtype: Dtype,
    pub(in crate::formats) fortran_order: bool,
    pub(in crate::formats) shape: Vec<u64>,
    /// All bytes before the values.
    pub(in crate::formats) bytes: u64,
    /// The dictionary's text with its padding.
    pub(in crate::formats) text: String,
}

impl Header {
    /// Reads the header at the start of `extent`.
    pub(in crate::formats) fn read(extent: &Extent, budget: &Budget) -> Result<Header> {
        let base = extent.base;
        let magic = extent.peek(0, 8, budget).field("magic")?;
        let (Some(found), Some(version)) = (magic.get(..6), magic.get(6..8)) else {
            return Err(Error::truncated("8 bytes", magic.len()).at(base).field("magic"));
        };
        if found != MAGIC {
            return Err(Error::malformed("the bytes \\x93NUMPY", format_args!("{}", found.escape_ascii()))
                .at(base)
                .field("magic")
                .rule("magic"));
        }
        let (version, size_bytes) = match version {
            [1, 0] => (1, 2),
            [2, 0] => (2, 4),
            [3, 0] => (3, 4),
            other => {
                let found = format!("{}.{}", other.first().unwrap_or(&0), other.get(1).unwrap_or(&0));
                let error = Error::unsupported(format!("version {found} (1.0, 2.0 and 3.0 are read)"));
                return Err(error.at(base + 6).field("version"));
            }
        };
        let size = extent.peek(8, size_bytes, budget).field("header_len")?;
        let size = size.iter().rev().fold(0u64, |size, byte| size << 8 | u64::from(*byte));
        let start = 8 + size_bytes;
        let bytes = extent.peek(start, size, budget).field("header")?;
        let text = match version {
            // Versions 1 and 2 are Latin-1: every byte is the character of that number.
            1 | 2 => bytes.iter().map(|byte| char::from(*byte)).collect(),
            _ => match std::str::from_utf8(&bytes) {
                Ok(text) => text.to_owned(),
                Err(error) => {
                    return Err(Error::malformed("UTF-8 text", "other bytes")
                        .at(base + start + error.valid_up_to() as u64)
                        .field("header")
                        .rule("header"));
                }
            },
        };
        let (dtype, fortran_order, shape) =
            parse_text(&text, base + start, budget).field("header").at(base + start)?;
        Ok(Header { version, dtype, fortran_order, shape, bytes: start + size, text })
    }

    /// The header that NumPy would write.
    pub(in crate::formats) fn canonical(dtype: Dtype, fortran_order: bool, shape: Vec<u64>) -> Header {
        let dimensions =
            Literal::Tuple(shape.iter().map(|count| Literal::Whole(i128::from(*count))).collect());
        let key = |name: &str| Literal::Text(name.to_owned());
        let mut text = Literal::Dict(vec![
            (key("descr"), dtype.descr()),
            (key("fortran_order"), Literal::Bool(fortran_order)),
            (key("shape"), dimensions),
        ])
        .to_string();
        let growing = if fortran_order { shape.last() } else { shape.first() };
        if let Some(count) = growing {
            let spare = GROWTH_DIGITS.saturating_sub(count.to_string().len());
            text.extend(std::iter::repeat_n(' ', spare));
        }
        let latin = text.chars().all(|character| (character as u32) < 256);
        let len = if latin { text.chars().count() } else { text.len() } + 1;
        // Like NumPy, adds `ALIGN` bytes of padding to a header that is aligned already.
        let padding = |prefix: usize| ALIGN - (prefix + len) % ALIGN;
        let fits_short = u16::try_from(len + padding(10)).is_ok();
        let (version, prefix) = match (latin, fits_short) {
            (true, true) => (1, 10),
            (true, false) => (2, 12),
            (false, _) => (3, 12),
        };
        text.extend(std::iter::repeat_n(' ', padding(prefix)));
        text.push('\n');
        let bytes = (prefix + len + padding(prefix)) as u64;
        Header { version, dtype, fortran_order, shape, bytes, text }
    }

    /// The bytes of the header.
    pub(in crate::formats) fn to_bytes(&self) -> Vec<u8> {
        let body: Vec<u8> = if self.version == 3 {
            self.text.clone().into_bytes()
        } else {
            self.text.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect()
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend([self.version, 0]);
        let size = body.len() as u64;
        bytes.extend(size.to_le_bytes().into_iter().take(if self.version == 1 { 2 } else { 4 }));
        bytes.extend(body);
        bytes
    }

    /// Whether NumPy would write the same bytes.
    pub(in crate::formats) fn is_canonical(&self) -> bool {
        *self == Header::canonical(self.dtype.clone(), self.fortran_order, self.shape.clone())
    }

    /// Bytes of the values; `None` if they overflow.
    pub(in crate::formats) fn data_bytes(&self) -> Option<u64> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let elements = self.shape.iter().try_fold(1u64, |product, count| product.checked_mul(*count));
        elements?.checked_mul(self.dtype.bytes()?).filter(|bytes| i64::try_from(*bytes).is_ok())
    }

    /// The outermost dimension, or 1.
    pub(in crate::formats) fn rows(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Elements per row; `None` if they overflow.
    pub(in crate::formats) fn row_elements(&self) -> Option<u64> {
        let inner = self.shape.get(1..).unwrap_or_default();
        if inner.contains(&0) {
            return Some(0);
        }
        inner.iter().try_fold(1u64, |product, count| product.checked_mul(*count))
    }

    /// Bytes per row; `None` if they overflow.
    pub(in crate::formats) fn row_bytes(&self) -> Option<u64> {
        self.row_elements()?.checked_mul(self.dtype.bytes()?)
    }

    /// Whether the values of a row are not adjacent.
    pub(in crate::formats) fn is_column_major(&self) -> bool {
        self.fortran_order && self.shape.iter().filter(|count| **count != 1).count() > 1
    }
}

/// The three keys of a header's dictionary.
pub(in crate::formats) fn parse_text(
    text: &str,
    base: u64,
    budget: &Budget,
) -> Result<(Dtype, bool, Vec<u64>)> {
    let literal = Literal::parse(text.as_bytes(), base, budget.limits())?;
    let Literal::Dict(items) = literal else {
        return Err(Error::malformed("a dictionary", literal).rule("header"));
    };
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    for (key, value) in &items {
        let slot = match key {
            Literal::Text(key) if key == "descr" => &mut descr,
            Literal::Text(key) if key == "fortran_order" => &mut fortran_order,
            Literal::Text(key) if key == "shape" => &mut shape,
            other => {
                return Err(Error::malformed("the keys descr, fortran_order and shape", other).rule("header"));
            }
        };
        if slot.replace(value).is_some() {
            return Err(Error::malformed("each key once", format_args!("{key} twice")).rule("header"));
        }
    }
    let missing = |key: &str| Error::malformed(format_args!("the key {key:?}"), "none").rule("header");
    let dtype = Dtype::parse(descr.ok_or_else(|| missing("descr"))?).field("descr")?;
    let fortran_order = match fortran_order.ok_or_else(|| missing("fortran_order"))? {
        Literal::Bool(order) => *order,
        other => return Err(Error::malformed("True or False", other).field("fortran_order").rule("header")),
    };
    let dimension = |(index, value): (usize, &Literal)| {
        let count = match value {
            Literal::Whole(count) => i64::try_from(*count).ok().and_then(|count| u64::try_from(count).ok()),
            _ => None,
        };
        count.ok_or_else(|| {
            Error::malformed("a dimension 0..=2^63-1", value).index(index as u64).field("shape").rule("shape")
        })
    };
    let shape = match shape.ok_or_else(|| missing("shape"))? {
        Literal::Tuple(items) => items.iter().enumerate().map(dimension).collect::<Result<Vec<_>>>()?,
        other => return Err(Error::malformed("a tuple", other).field("shape").rule("shape")),
    };
    // NumPy holds at most 64 dimensions.
    if shape.len() > 64 {
        return Err(Error::malformed("at most 64 dimensions", shape.len()).field("shape").rule("shape"));
    }
    dtype.bytes().ok_or_else(|| Error::malformed("bytes per element below 2^63", "more").rule("descr"))?;
    Ok((dtype, fortran_order, shape))
}
