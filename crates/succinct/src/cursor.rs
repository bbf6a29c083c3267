//! Reads elements in order; every length is checked against the elements left.

use crate::error::Error;
use crate::storage::Section;

/// A position in a sequence of elements.
///
/// A length that is read here is unverified until [`section`](WordCursor::section) has checked it: nothing is
/// allocated, and nothing overflows.
#[derive(Debug, Clone)]
pub struct WordCursor<S> {
    words: S,
    at: usize,
}

impl<S: Section> WordCursor<S> {
    /// A cursor at the first of `words`.
    pub fn new(words: S) -> Self {
        WordCursor { words, at: 0 }
    }

    /// A cursor at element `at`, or at the end if there are fewer elements.
    pub fn at(words: S, at: u64) -> Self {
        let len = words.as_ref().len();
        WordCursor { words, at: usize::try_from(at).unwrap_or(len).min(len) }
    }

    /// The element offset of the next element.
    pub fn position(&self) -> u64 {
        self.at as u64
    }

    /// How many elements are left.
    pub fn left(&self) -> u64 {
        (self.words.as_ref().len() - self.at) as u64
    }

    /// The next element; `path` names it in errors.
    pub fn element(&mut self, path: &str) -> Result<u64, Error> {
        let word = self.words.as_ref().get(self.at).copied().ok_or_else(|| self.truncated(path, 1))?;
        self.at += 1;
        Ok(word)
    }

    /// The next `count` elements.
    pub fn section(&mut self, count: u64, path: &str) -> Result<S, Error> {
        let end = usize::try_from(count).ok().and_then(|count| self.at.checked_add(count));
        let section = end.and_then(|end| self.words.section(self.at..end));
        match (section, end) {
            (Some(section), Some(end)) => {
                self.at = end;
                Ok(section)
            }
            _ => Err(self.truncated(path, count)),
        }
    }

    /// A vector of serializable items of `item_elements` elements each: its length, then its items.
    pub fn vector(&mut self, item_elements: u64, path: &str) -> Result<S, Error> {
        let at = self.position();
        let items = self.element(path)?;
        let count = items.checked_mul(item_elements).ok_or_else(|| Error::Truncated {
            at,
            path: path.to_owned(),
            needed: u64::MAX,
            left: self.left(),
        })?;
        self.section(count, path)
    }

    /// A vector of bytes: its length in bytes and the elements that hold it, padding included.
    pub fn bytes(&mut self, path: &str) -> Result<(u64, S), Error> {
        let bytes = self.element(path)?;
        Ok((bytes, self.section(bytes.div_ceil(8), path)?))
    }

    /// An optional structure: the elements of its content if it is present.
    ///
    /// The content may be of any kind: a reader that does not know it can ignore it.
    pub fn option(&mut self, path: &str) -> Result<Option<S>, Error> {
        match self.element(path)? {
            0 => Ok(None),
            count => self.section(count, path).map(Some),
        }
    }

    fn truncated(&self, path: &str, needed: u64) -> Error {
        Error::Truncated { at: self.position(), path: path.to_owned(), needed, left: self.left() }
    }
}
