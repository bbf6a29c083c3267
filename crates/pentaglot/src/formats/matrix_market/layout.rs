//! The banner, the comments and the size line.

use super::number_text::Scanner;
use crate::error::{Context, Error, Result};
use crate::source::Source;

/// The first word of every file, in upper or lower case.
pub(super) const BANNER: &str = "%%MatrixMarket";
/// A longer line is an error (the spec allows 1024 bytes; comments in practice are longer).
pub(super) const LINE_BYTES: usize = 1 << 20;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $what:literal, $($variant:ident $($word:literal)+;)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $name {
            $($variant,)*
        }

        impl $name {
            /// The word in the banner.
            pub(super) fn word(self) -> &'static str {
                match self {
                    $($name::$variant => [$($word),+][0],)*
                }
            }

            fn parse(word: &str) -> Result<$name> {
                match word.to_ascii_lowercase().as_str() {
                    $($($word)|+ => Ok($name::$variant),)*
                    _ => Err(Error::malformed([$($($word),+),*].join(", "), format_args!("{word:?}"))
                        .field($what)
                        .rule($what)),
                }
            }
        }
    };
}

words! {
    /// Whether entries have row and column numbers.
    MarketLayout: "format",
    Coordinate "coordinate";
    Array "array";
}

words! {
    /// The type of the values.
    MarketField: "field",
    Real "real" "double";
    Integer "integer";
    Unsigned "unsigned-integer";
    Complex "complex";
    Pattern "pattern";
}

words! {
    /// Which entries are mirrored.
    Symmetry: "symmetry",
    General "general";
    Symmetric "symmetric";
    Skew "skew-symmetric";
    Hermitian "hermitian";
}

/// The part of a file before its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) layout: MarketLayout,
    pub(super) kind: MarketField,
    pub(super) symmetry: Symmetry,
    pub(super) rows: u64,
    pub(super) cols: u64,
    /// Stored entries or values.
    pub(super) entries: u64,
    /// Bytes of the banner line.
    pub(super) banner_bytes: u64,
    /// The offset of the size line.
    pub(super) size_offset: u64,
    /// The offset of the first entry.
    pub(super) body_offset: u64,
    /// The comments between banner and size line, up to a limit.
    pub(super) comments: Vec<String>,
}

/// How many bytes of comments are kept.
const COMMENT_BYTES: usize = 64 << 10;

impl Header {
    /// Reads up to the size line of a source that can be read at any offset.
    pub(super) fn read(source: &Source) -> Result<Header> {
        let (banner, mut next) =
            line(source, 0)?.ok_or_else(|| Error::truncated(BANNER, "no bytes").at(0).field("banner"))?;
        let (layout, kind, symmetry) = parse_banner(&banner).field("banner").at(0)?;
        let banner_bytes = next;
        let mut comments = Vec::new();
        let mut kept = 0;
        let (size, size_offset) = loop {
            let start = next;
            let Some((text, after)) = line(source, start)? else {
                return Err(Error::truncated("a size line", "the end of the file").at(start).field("size"));
            };
            next = after;
            match text.trim_ascii().split_first() {
                None => {}
                Some((b'%', comment)) => {
                    kept += comment.len();
                    if kept <= COMMENT_BYTES && !comment.is_empty() {
                        comments.push(String::from_utf8_lossy(comment).into_owned());
                    }
                }
                Some(_) => break (text, start),
            }
        };
        let mut header = Header {
            layout,
            kind,
            symmetry,
            rows: 0,
            cols: 0,
            entries: 0,
            banner_bytes,
            size_offset,
            body_offset: next,
            comments,
        };
        header.parse_size(&size).field("size").at(size_offset)?;
        header.check_length(source)?;
        Ok(header)
    }

    fn parse_size(&mut self, text: &[u8]) -> Result<()> {
        let counted = self.layout == MarketLayout::Coordinate;
        let expected = if counted { "rows, columns and entries" } else { "rows and columns" };
        let bad = || {
            Error::malformed(expected, format_args!("{:?}", String::from_utf8_lossy(text).trim()))
                .rule("size")
        };
        let mut scanner = Scanner::new(text);
        let mut number = || scanner.unsigned().filter(|count| i64::try_from(*count).is_ok()).ok_or_else(bad);
        (self.rows, self.cols) = (number()?, number()?);
        let square = self.rows == self.cols;
        if self.symmetry != Symmetry::General && !square {
            let found = format_args!("{} x {}", self.rows, self.cols);
            return Err(Error::malformed(
                format_args!("a square matrix, as {} is", self.symmetry.word()),
                found,
            )
            .rule("square"));
        }
        let n = u128::from(self.rows);
        let stored = match self.symmetry {
            _ if counted => u128::from(number()?),
            Symmetry::General => n * u128::from(self.cols),
            Symmetry::Symmetric | Symmetry::Hermitian => n * (n + 1) / 2,
            Symmetry::Skew => n * n.saturating_sub(1) / 2,
        };
        self.entries =
            u64::try_from(stored).ok().filter(|count| i64::try_from(*count).is_ok()).ok_or_else(bad)?;
        if !scanner.line_end() {
            return Err(bad());
        }
        Ok(())
    }

    /// Checks the number of entries against the bytes left: each entry takes a line.
    fn check_length(&self, source: &Source) -> Result<()> {
        let value = match self.kind {
            MarketField::Pattern => 0,
            MarketField::Complex => 4,
            _ => 2,
        };
        let line_bytes = if self.layout == MarketLayout::Coordinate { 4 + value } else { value };
        // The last line may lack its newline.
        let left = source.len().unwrap_or(u64::MAX).saturating_sub(self.body_offset);
        if self.entries.checked_mul(line_bytes).is_none_or(|needed| needed > left.saturating_add(1)) {
            let expected = format_args!("{} entries of at least {line_bytes} bytes", self.entries);
            return Err(Error::truncated(expected, format_args!("{left} bytes"))
                .at(self.body_offset)
                .field("entries"));
        }
        Ok(())
    }
}

fn parse_banner(text: &[u8]) -> Result<(MarketLayout, MarketField, Symmetry)> {
    let text = String::from_utf8_lossy(text);
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [banner, object, layout, kind, symmetry] = words.as_slice() else {
        let expected = "the banner, object, format, field and symmetry";
        let found = if words.first().is_some_and(|word| word.eq_ignore_ascii_case(BANNER)) {
            format!("{} words", words.len())
        } else {
            "no banner".to_owned()
        };
        return Err(Error::malformed(expected, found).rule("banner"));
    };
    if !banner.eq_ignore_ascii_case(BANNER) {
        return Err(Error::malformed(BANNER, format_args!("{banner:?}")).rule("banner"));
    }
    if !object.eq_ignore_ascii_case("matrix") {
        return Err(Error::unsupported(format!("Matrix Market object {object:?} (matrix is read)")));
    }
    let (layout, kind, symmetry) =
        (MarketLayout::parse(layout)?, MarketField::parse(kind)?, Symmetry::parse(symmetry)?);
    if layout == MarketLayout::Array && kind == MarketField::Pattern {
        return Err(Error::malformed("a field with values for an array", "pattern").rule("field"));
    }
    if symmetry == Symmetry::Hermitian && kind != MarketField::Complex {
        return Err(Error::malformed("complex values for hermitian", kind.word()).rule("symmetry"));
    }
    if symmetry == Symmetry::Skew && matches!(kind, MarketField::Pattern | MarketField::Unsigned) {
        return Err(Error::malformed("signed values for skew-symmetric", kind.word()).rule("symmetry"));
    }
    Ok((layout, kind, symmetry))
}

/// The line at `offset` without its newline, and the offset of the next.
pub(super) fn line(source: &Source, offset: u64) -> Result<Option<(Vec<u8>, u64)>> {
    let mut text = Vec::new();
    let mut block = [0; 4096];
    while text.len() < LINE_BYTES {
        let count = source.read_at(offset + text.len() as u64, &mut block)?;
        let read = block.get(..count).unwrap_or_default();
        if let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            text.extend(read.iter().take(end));
            let next = offset + text.len() as u64 + 1;
            return Ok(Some((text, next)));
        }
        text.extend(read);
        if count < block.len() {
            let next = offset + text.len() as u64;
            return Ok((!text.is_empty()).then_some((text, next)));
        }
    }
    Err(Error::malformed(format_args!("a line below {LINE_BYTES} bytes"), "a longer one")
        .at(offset)
        .rule("line"))
}
