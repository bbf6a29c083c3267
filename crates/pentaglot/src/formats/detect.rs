//! Detection: what a format sees of a file, and how confident it is.

use crate::source::{Packing, Source};

/// The name of a file type that is not supported, by its first bytes, for error messages.
pub(crate) fn foreign(bytes: &[u8]) -> Option<&'static str> {
    const MAGICS: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"\x89HDF\r\n", "an HDF5 file"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"Obj\x01", "an Avro file"),
        (b"ORC", "an ORC file"),
        (b"FEA1", "a Feather file of version 1"),
        (b"\xd0\xcf\x11\xe0", "an old Office document"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x7fELF", "an ELF program"),
        (b"7z\xbc\xaf", "a 7-Zip archive"),
        (b"\xfd7zXZ\0", "an xz archive"),
        (b"\x80\x04\x95", "a Python pickle"),
        (b"\x80\x05\x95", "a Python pickle"),
    ];
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let begins =
        |word: &str| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()));
    match text {
        _ if begins("<!doctype html") || begins("<html") => Some("an HTML page"),
        _ if begins("%PDF-") => Some("a PDF document"),
        _ if begins("<?xml") => Some("an XML document"),
        _ => {
            // A text may also begin with a word such as ORC.
            let binary = bytes.contains(&0);
            let fits = |magic: &[u8]| {
                bytes.starts_with(magic) && (binary || !magic.iter().all(u8::is_ascii_graphic))
            };
            MAGICS.iter().find(|(magic, _)| fits(magic)).map(|(_, name)| *name)
        }
    }
}

/// How confident a format is that a file is of this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The file is not of this format.
    No,
    /// No contradiction was found (such as text that may be CSV).
    Possible,
    /// The examined structure fits.
    Likely,
    /// A magic number or an exact structure matches.
    Certain,
}

/// The start of a file, for detection.
pub struct Head<'a> {
    bytes: &'a [u8],
    source: &'a Source,
}

impl<'a> Head<'a> {
    /// The head of a source whose first bytes are `bytes`.
    pub fn new(source: &'a Source, bytes: &'a [u8]) -> Self {
        Head { bytes, source }
    }

    /// The first bytes, at most 64 KiB.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The total length, if known.
    pub fn len(&self) -> Option<u64> {
        self.source
            .len()
            .or((self.bytes.len() < crate::source::HEAD_BYTES).then_some(self.bytes.len() as u64))
    }

    /// Whether the file has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The file's name, in lower case, without the extension of a compression.
    pub fn name(&self) -> String {
        Packing::strip(&self.source.name().to_lowercase()).to_owned()
    }

    /// Whether the name ends in one of these extensions.
    pub fn has_extension(&self, extensions: &[&str]) -> bool {
        let name = self.name();
        extensions
            .iter()
            .any(|extension| name.strip_suffix(extension).is_some_and(|rest| rest.ends_with('.')))
    }

    /// Up to 64 KiB at `offset`; empty where the source cannot be read there.
    pub fn read_at(&self, offset: u64, len: usize) -> Vec<u8> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let len = len.min(crate::source::HEAD_BYTES);
        if let Some(bytes) = start.checked_add(len).and_then(|end| self.bytes.get(start..end)) {
            return bytes.to_vec();
        }
        let mut bytes = vec![0; len];
        let count = self.source.read_at(offset, &mut bytes).unwrap_or(0);
        bytes.truncate(count);
        bytes
    }

    /// The source itself, for side files.
    pub fn source(&self) -> &'a Source {
        self.source
    }
}

#[cfg(test)]
mod tests {
    use super::foreign;

    #[test]
    fn files_of_other_programs_are_told_by_their_first_bytes() {
        assert_eq!(foreign(b"\xef\xbb\xbf \n<!DocType HTML><p>"), Some("an HTML page"));
        assert_eq!(foreign(b"ORC\x00\x01"), Some("an ORC file"));
        assert_eq!(foreign(b"%PDF-1.7"), Some("a PDF document"));
        for text in ["ORC,FEA1\n1,2\n", "FEA1,b\n", "<p>\n", "", "a<html>"] {
            assert_eq!(foreign(text.as_bytes()), None, "{text}");
        }
    }
}
