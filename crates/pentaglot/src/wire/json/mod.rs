//! A JSON scanner (RFC 8259) over a bounded window of a stream.
//!
//! The caller requests the values that it expects: there are no token objects and nothing is allocated per token. A
//! document of any length is read in constant memory; only a single key, string or number must fit the budget. Errors
//! carry their byte offset.
//!
//! ```text
//! value  := null | bool | number | string | array | object        null(), bool(), u64() …, str(), skip_value() …
//! array  := begin_array  (next_element = true  value)*  next_element = false
//! object := begin_object (next_key = Some(name) value)*  next_key = None
//! ```
//!
//! Repeated keys are returned as often as they occur; the caller decides what they mean.

mod number;
mod quote;
mod string;
#[cfg(test)]
mod tests;
mod value;

use std::io::Read;

pub(crate) use self::number::short_decimal;
pub(crate) use self::quote::{PlainRun, plain_run, write_string};
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::source::{Source, SourceReader, Window};

/// How much is read at a time.
pub(crate) const WINDOW_BYTES: usize = 64 << 10;

/// The kind of the next value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl JsonKind {
    /// The kind in words, for messages.
    #[cfg(feature = "ds")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            JsonKind::Null => "null",
            JsonKind::Bool => "a bool",
            JsonKind::Number => "a number",
            JsonKind::String => "a string",
            JsonKind::Array => "an array",
            JsonKind::Object => "an object",
        }
    }
}

/// Reads JSON from a stream, as much as its caller requests.
///
/// ```text
/// let mut scanner = Scanner::new(&b"[1, 2]"[..], Budget::default());
/// scanner.begin_array()?;
/// while scanner.next_element()? {
///     sum += scanner.u64()?;
/// }
/// scanner.end()?;
/// ```
pub(crate) struct Scanner<R> {
    window: Window<R>,
    /// Whether an array or object has just begun, so that no comma comes before its next element.
    fresh: bool,
    depth: u32,
    budget: Budget,
    /// The text of a string that has escapes or does not fit in the window.
    scratch: Vec<u8>,
}

impl Scanner<SourceReader> {
    /// A scanner of a source's bytes from `offset`.
    #[cfg(feature = "ds")]
    pub(crate) fn over(source: &Source, offset: u64, budget: Budget) -> Result<Self> {
        let window = Window::over(source, offset, None, WINDOW_BYTES, budget.clone())?;
        Ok(Scanner::of(window, budget))
    }
}

impl<R: Read> Scanner<R> {
    /// A scanner at the start of `input`.
    pub(crate) fn new(input: R, budget: Budget) -> Self {
        Scanner::at(input, 0, budget)
    }

    /// A scanner at the start of `input`, which begins at `offset` in the file.
    pub(crate) fn at(input: R, offset: u64, budget: Budget) -> Self {
        let window = Window::new(input, offset, WINDOW_BYTES, budget.clone());
        Scanner::of(window, budget)
    }

    /// A scanner that begins at the position of a window.
    pub(crate) fn of(window: Window<R>, budget: Budget) -> Self {
        Scanner { window: window.count_lines(), fresh: false, depth: 0, budget, scratch: Vec::new() }
    }

    /// The same scanner of text that is part of so many open arrays and objects.
    pub(crate) fn at_depth(mut self, depth: u32) -> Self {
        self.depth = depth;
        self
    }

    /// The bytes that are read next. Only between two values may they be moved.
    pub(crate) fn window(&mut self) -> &mut Window<R> {
        &mut self.window
    }

    /// The budget for keys and values in memory.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Starts again with other input that begins at `offset`, keeping the memory.
    pub(crate) fn reset(&mut self, input: R, offset: u64) {
        self.window.reset(input, offset);
        (self.fresh, self.depth) = (false, 0);
    }

    /// The offset in the file of the next byte. After [`peek`](Self::peek) that is the start of the next token.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// The unused bytes in the window.
    #[inline]
    fn rest(&self) -> &[u8] {
        self.window.rest()
    }

    /// The error with the line of its offset, if that is still in the window.
    #[cold]
    pub(crate) fn with_line(&self, error: Error) -> Error {
        self.window.with_line(error)
    }

    /// Reads more into the window; `false` if the input has ended.
    #[cold]
    fn more(&mut self) -> Result<bool> {
        self.window.more()
    }

    /// The next byte; `None` at the end of the input.
    #[inline]
    pub(crate) fn peek_byte(&mut self) -> Result<Option<u8>> {
        match self.window.first() {
            None if self.more()? => Ok(self.window.first()),
            byte => Ok(byte),
        }
    }

    /// Skips the byte that [`peek_byte`](Self::peek_byte) returned.
    #[inline]
    pub(crate) fn bump(&mut self) {
        self.window.advance(1);
    }

    /// Skips white space; returns the byte after it, `None` at the end of the input.
    #[inline]
    pub(crate) fn skip_space(&mut self) -> Result<Option<u8>> {
        match self.window.first() {
            Some(byte) if byte > b' ' => Ok(Some(byte)),
            _ => self.skip_space_slowly(),
        }
    }

    fn skip_space_slowly(&mut self) -> Result<Option<u8>> {
        loop {
            match self.peek_byte()? {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.bump(),
                other => return Ok(other),
            }
        }
    }

    /// Skips a byte order mark at the start; returns whether there was one.
    pub(crate) fn skip_byte_order_mark(&mut self) -> Result<bool> {
        self.window.fill(3)?;
        let marked = self.rest().starts_with(b"\xef\xbb\xbf");
        self.window.advance(if marked { 3 } else { 0 });
        Ok(marked)
    }

    /// The kind of the next value; the offset is then that of its first byte.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<JsonKind> {
        match self.skip_space()? {
            Some(b'"') => Ok(JsonKind::String),
            Some(b'-' | b'0'..=b'9') => Ok(JsonKind::Number),
            Some(b'{') => Ok(JsonKind::Object),
            Some(b'[') => Ok(JsonKind::Array),
            Some(b'n') => Ok(JsonKind::Null),
            Some(b't' | b'f') => Ok(JsonKind::Bool),
            _ => Err(self.unexpected("a value")),
        }
    }

    /// The error that `expected` is missing; names what was found.
    #[cold]
    pub(crate) fn unexpected(&mut self, expected: &str) -> Error {
        let found = match self.skip_space() {
            Err(error) => return error,
            Ok(found) => found,
        };
        let offset = self.offset();
        let Some(byte) = found else {
            return Error::truncated(expected, "the end of the input").at(offset);
        };
        let words = match byte {
            b'"' => "a string".to_owned(),
            b'-' | b'0'..=b'9' => "a number".to_owned(),
            b'{' => "an object".to_owned(),
            b'[' => "an array".to_owned(),
            _ if self.starts_with(b"null") => "null".to_owned(),
            _ if self.starts_with(b"true") || self.starts_with(b"false") => "a bool".to_owned(),
            0x21..=0x7e => format!("`{}`", char::from(byte)),
            _ => format!("byte {byte:#04x}"),
        };
        Error::malformed(expected, words).at(offset)
    }

    /// The error for a value of another kind.
    #[cold]
    pub(crate) fn wrong_type(&mut self, expected: &str) -> Error {
        let value = match self.peek() {
            Ok(JsonKind::Null) => self.starts_with(b"null"),
            Ok(JsonKind::Bool) => self.starts_with(b"true") || self.starts_with(b"false"),
            Ok(_) => true,
            Err(_) => false,
        };
        let error = self.unexpected(expected);
        if value { error.rule("type") } else { error }
    }

    fn starts_with(&mut self, word: &[u8]) -> bool {
        while self.rest().len() < word.len() && self.more().unwrap_or(false) {}
        self.rest().starts_with(word)
    }

    #[inline]
    fn expect_byte(&mut self, byte: u8, expected: &str) -> Result<()> {
        if self.skip_space()? != Some(byte) {
            return Err(self.unexpected(expected));
        }
        self.bump();
        Ok(())
    }

    #[inline]
    fn expect_word(&mut self, word: &[u8], expected: &str) -> Result<()> {
        self.skip_space()?;
        if !self.starts_with(word) {
            return Err(self.wrong_type(expected));
        }
        self.window.advance(word.len());
        Ok(())
    }

    #[inline]
    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        self.fresh = true;
        if self.depth > self.budget.limits().max_depth {
            let offset = self.offset();
            return self.budget.limits().check_depth(self.depth).map_err(|error| error.at(offset));
        }
        self.bump();
        Ok(())
    }

    #[inline]
    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.fresh = false;
        self.bump();
    }

    /// Reads `[`.
    #[inline]
    pub(crate) fn begin_array(&mut self) -> Result<()> {
        if self.skip_space()? != Some(b'[') {
            return Err(self.wrong_type("an array"));
        }
        self.enter()
    }

    /// Whether another element follows; reads the comma before it, or the `]`.
    #[inline]
    pub(crate) fn next_element(&mut self) -> Result<bool> {
        match self.skip_space()? {
            Some(b']') => {
                self.leave();
                return Ok(false);
            }
            Some(_) if self.fresh => {}
            Some(b',') => {
                self.bump();
                self.element_after_comma()?;
            }
            _ => return Err(self.unexpected("`,` or `]`")),
        }
        self.fresh = false;
        Ok(true)
    }

    /// Goes to the element that follows a comma, which the caller has read.
    #[inline]
    pub(crate) fn element_after_comma(&mut self) -> Result<()> {
        if self.skip_space()? == Some(b']') {
            return Err(self.unexpected("a value"));
        }
        Ok(())
    }

    /// The bytes in the window, for a caller that reads elements of an array without the scanner, and whether the first
    /// has no comma before it; `None` if the elements are nested too deep.
    #[cfg(feature = "ds")]
    pub(crate) fn elements(&self) -> Option<(&[u8], bool)> {
        (self.depth < self.budget.limits().max_depth).then(|| (self.rest(), self.fresh))
    }

    /// Skips complete elements, with the comma before them, that were read in the window without the scanner.
    #[cfg(feature = "ds")]
    pub(crate) fn skip_elements(&mut self, bytes: usize) {
        self.fresh &= bytes == 0;
        self.window.advance(bytes);
    }

    /// Reads `{`.
    #[inline]
    pub(crate) fn begin_object(&mut self) -> Result<()> {
        if self.skip_space()? != Some(b'{') {
            return Err(self.wrong_type("an object"));
        }
        self.enter()
    }

    /// The next key, with the comma before and the colon after it; `None` at the `}`, which is read.
    pub(crate) fn next_key(&mut self) -> Result<Option<&str>> {
        match self.skip_space()? {
            Some(b'}') => {
                self.leave();
                return Ok(None);
            }
            Some(_) if self.fresh => {}
            Some(b',') => {
                self.bump();
                self.skip_space()?;
            }
            _ => return Err(self.unexpected("`,` or `}`")),
        }
        self.fresh = false;
        if self.skip_space()? != Some(b'"') {
            return Err(self.unexpected("a key"));
        }
        self.key_text().map(Some)
    }

    /// Skips the comma, the key `quoted` (with its quotes) and the colon, if exactly these bytes come next in
    /// the window, with at most one space before and after; otherwise does nothing. A shortcut: after `false`,
    /// [`next_key`](Self::next_key) decides.
    #[inline]
    pub(crate) fn skip_key(&mut self, quoted: &[u8]) -> bool {
        let mut rest = self.rest();
        let all = rest.len();
        if !self.fresh {
            let Some(after) = rest.strip_prefix(b",") else { return false };
            rest = after.strip_prefix(b" ").unwrap_or(after);
        }
        let Some(after) = rest.strip_prefix(quoted).and_then(|rest| rest.strip_prefix(b":")) else {
            return false;
        };
        let after = after.strip_prefix(b" ").unwrap_or(after);
        let used = all - after.len();
        self.window.advance(used);
        self.fresh = false;
        true
    }

    /// Reads `null`.
    #[inline]
    pub(crate) fn null(&mut self) -> Result<()> {
        self.expect_word(b"null", "null")
    }

    /// Reads `null` if it comes next; returns whether it did.
    #[inline]
    pub(crate) fn skip_null(&mut self) -> Result<bool> {
        if self.skip_space()? != Some(b'n') {
            return Ok(false);
        }
        self.null().map(|()| true)
    }

    /// Reads `true` or `false`.
    #[inline]
    pub(crate) fn bool(&mut self) -> Result<bool> {
        match self.skip_space()? {
            Some(b't') => self.expect_word(b"true", "a bool").map(|()| true),
            Some(b'f') => self.expect_word(b"false", "a bool").map(|()| false),
            _ => Err(self.wrong_type("a bool")),
        }
    }

    /// Returns an error unless the line or the input ends here; skips the end of the line.
    pub(crate) fn end_line(&mut self) -> Result<()> {
        loop {
            match self.peek_byte()? {
                Some(b' ' | b'\t' | b'\r') => self.bump(),
                Some(b'\n') => {
                    self.bump();
                    return Ok(());
                }
                None => return Ok(()),
                Some(_) => return Err(self.unexpected("the end of the line")),
            }
        }
    }

    /// Skips the rest of the line without checking it.
    pub(crate) fn skip_line(&mut self) -> Result<()> {
        (self.depth, self.fresh) = (0, false);
        loop {
            match self.rest().iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    self.window.advance(end + 1);
                    return Ok(());
                }
                None => {
                    self.window.advance(self.rest().len());
                    if !self.more()? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Returns an error unless only white space is left.
    pub(crate) fn end(&mut self) -> Result<()> {
        match self.skip_space()? {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the input").rule("trailing")),
        }
    }
}
