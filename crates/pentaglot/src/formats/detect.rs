//! What a format sees of a file to tell whether it is its own.

use crate::source::Source;

/// How sure a format is that a file is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It is not.
    No,
    /// Nothing speaks against it (text that may be CSV).
    Possible,
    /// The structure fits as far as it was looked at.
    Likely,
    /// A magic number or an exact structure says so.
    Certain,
}

/// The beginning of a file, for detection.
pub struct Head<'a> {
    bytes: &'a [u8],
    source: &'a Source,
}

impl<'a> Head<'a> {
    /// Looks at a source whose first bytes are `bytes`.
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

    /// The file's name, in lower case, without a trailing `.gz`.
    pub fn name(&self) -> String {
        let name = self.source.name().to_lowercase();
        name.strip_suffix(".gz").unwrap_or(&name).to_owned()
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
