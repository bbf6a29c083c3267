//! Strings: unescaped, strict UTF-8, no lone surrogates.

use std::io::Read;

use super::{PlainRun, Scanner, plain_run};
use crate::error::{Error, Result};

#[cold]
fn not_utf8(offset: u64) -> Error {
    Error::malformed("UTF-8", "other bytes").at(offset).rule("utf8")
}

impl<R: Read> Scanner<R> {
    /// The text of the next string.
    #[inline]
    pub(crate) fn str(&mut self) -> Result<&str> {
        let offset = self.offset();
        let bytes = self.str_bytes()?;
        std::str::from_utf8(bytes).map_err(|_| not_utf8(offset))
    }

    /// The text of the next string as bytes, which are UTF-8 (checked only where they are not ASCII).
    #[inline]
    pub(crate) fn str_bytes(&mut self) -> Result<&[u8]> {
        if self.skip_space()? != Some(b'"') {
            return Err(self.wrong_type("a string"));
        }
        let rest = self.rest().get(1..).unwrap_or_default();
        let PlainRun { len, ascii } = plain_run(rest);
        if rest.get(len) != Some(&b'"') {
            return self.long_string();
        }
        let text = rest.get(..len).unwrap_or_default();
        if !ascii && simdutf8::basic::from_utf8(text).is_err() {
            let sound = simdutf8::compat::from_utf8(text).map_or_else(|error| error.valid_up_to(), str::len);
            return Err(not_utf8(self.offset() + (1 + sound) as u64));
        }
        Ok(self.take_string(len))
    }

    /// Skips a string of `len` bytes and its quotes, which are in the window; returns its bytes.
    #[inline]
    fn take_string(&mut self, len: usize) -> &[u8] {
        self.window.advance(len + 2);
        self.window.before(len + 1).get(..len).unwrap_or_default()
    }

    /// The text of a string that should be base64, as bytes. Only its end is determined: decoding checks the rest.
    #[inline]
    pub(crate) fn base64_text(&mut self) -> Result<&[u8]> {
        if self.skip_space()? != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        let rest = self.rest().get(1..).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(len) if rest.get(len) == Some(&b'"') => Ok(self.take_string(len)),
            _ => self.str_bytes(),
        }
    }

    /// Skips the next string without checking its text, for callers that continue after an error in it.
    pub(crate) fn skip_broken_string(&mut self) -> Result<()> {
        if self.skip_space()? != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        self.bump();
        loop {
            let run = memchr::memchr2(b'"', b'\\', self.rest());
            let run = run.unwrap_or(self.rest().len());
            self.window.advance(run);
            match self.peek_byte()? {
                Some(b'"') => {
                    self.bump();
                    return Ok(());
                }
                Some(b'\\') => {
                    self.bump();
                    if self.peek_byte()?.is_some() {
                        self.bump();
                    }
                }
                Some(_) => {}
                None => return Err(self.unexpected("a string with its closing quote")),
            }
        }
    }

    /// A string with escapes, or one that does not fit in the window: its text is assembled in the scratch
    /// memory.
    fn long_string(&mut self) -> Result<&[u8]> {
        let offset = self.offset();
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        let result = self.unescape_into(&mut text);
        self.scratch = text;
        result.map_err(|error| error.at(offset))?;
        if simdutf8::basic::from_utf8(&self.scratch).is_err() {
            return Err(not_utf8(offset));
        }
        Ok(&self.scratch)
    }

    fn unescape_into(&mut self, text: &mut Vec<u8>) -> Result<()> {
        self.bump();
        loop {
            let rest = self.rest();
            let PlainRun { len, .. } = plain_run(rest);
            let stop = rest.get(len).copied();
            text.extend_from_slice(rest.get(..len).unwrap_or_default());
            self.window.advance(len);
            match stop {
                Some(b'"') => {
                    self.bump();
                    return Ok(());
                }
                Some(b'\\') => self.unescape(text)?,
                Some(byte) => {
                    let found = format_args!("control character {byte:#04x}");
                    return Err(Error::malformed("an escape", found).at(self.offset()));
                }
                None => {
                    self.budget.check(text.len() as u64 * 2)?;
                    if !self.more()? {
                        return Err(Error::truncated(
                            "a string with its closing quote",
                            "the end of the input",
                        ));
                    }
                }
            }
        }
    }

    fn unescape(&mut self, text: &mut Vec<u8>) -> Result<()> {
        let offset = self.offset();
        self.bump();
        let plain = match self.peek_byte()? {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.bump();
                let first = self.hex4(offset)?;
                let code = match first {
                    0xd800..0xdc00 => {
                        let second = match self.peek_byte()? {
                            Some(b'\\') => {
                                self.bump();
                                match self.peek_byte()? {
                                    Some(b'u') => {
                                        self.bump();
                                        self.hex4(offset)?
                                    }
                                    _ => 0,
                                }
                            }
                            _ => 0,
                        };
                        match second {
                            0xdc00..0xe000 => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                            _ => first,
                        }
                    }
                    other => other,
                };
                let Some(char) = char::from_u32(code) else {
                    return Err(Error::malformed(
                        "a pair of surrogates",
                        format_args!("a lone `\\u{first:04x}`"),
                    )
                    .at(offset)
                    .rule("utf8"));
                };
                text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            None => return Err(Error::truncated("an escape", "the end of the input").at(offset)),
            Some(byte) => {
                let found = format!("`\\{}`", char::from(byte).escape_default());
                return Err(
                    Error::malformed("an escape (\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u)", found).at(offset)
                );
            }
        };
        text.push(plain);
        self.bump();
        Ok(())
    }

    fn hex4(&mut self, offset: u64) -> Result<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = match self.peek_byte()? {
                None => return Err(Error::truncated("four hex digits", "the end of the input").at(offset)),
                Some(byte) => char::from(byte).to_digit(16),
            };
            let Some(digit) = digit else {
                return Err(Error::malformed("four hex digits after `\\u`", "fewer").at(offset));
            };
            code = code << 4 | digit;
            self.bump();
        }
        Ok(code)
    }

    /// The next key and the colon after it.
    pub(super) fn key_text(&mut self) -> Result<&str> {
        let offset = self.offset();
        let rest = self.rest().get(1..).unwrap_or_default();
        let PlainRun { len, .. } = plain_run(rest);
        let tail = rest.get(len..).and_then(|tail| tail.strip_prefix(b"\""));
        let tail = tail.map(|tail| tail.strip_prefix(b" ").unwrap_or(tail));
        if let Some(after) = tail.and_then(|tail| tail.strip_prefix(b":")) {
            let used = rest.len() - after.len();
            self.window.advance(used + 1);
            let text = self.window.before(used).get(..len).unwrap_or_default();
            return std::str::from_utf8(text)
                .map_err(|error| not_utf8(offset + 1 + error.valid_up_to() as u64));
        }
        // Reading on may move the window, so the key is copied to the scratch memory.
        let text = self.str_bytes()?.to_vec();
        self.expect_byte(b':', "`:`")?;
        self.scratch = text;
        std::str::from_utf8(&self.scratch).map_err(|_| not_utf8(offset))
    }
}
