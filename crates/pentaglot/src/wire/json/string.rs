//! Strings: unescaped, strict UTF-8, no lone surrogates.

use std::io::Read;

use super::Scanner;
use crate::error::{Error, Result};

/// Where a run of plain bytes ends.
struct Run {
    len: usize,
    ascii: bool,
}

/// The bytes up to the first `"`, `\` or control character.
///
/// Plainly: the first byte of these. Eight at a time: in `word ^ pattern` the byte that is sought is zero; subtracting
/// one from each byte sets the top bit of a zero byte first (borrows only reach higher bytes, after the first hit).
#[inline]
fn plain_run(bytes: &[u8]) -> Run {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let mut len = 0;
    let mut all = 0u64;
    let (words, _) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ (ONES * b'"' as u64);
        let slash = word ^ (ONES * b'\\' as u64);
        let stops = (quote.wrapping_sub(ONES) & !quote)
            | (slash.wrapping_sub(ONES) & !slash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let stops = stops & TOPS;
        if stops != 0 {
            let bits = stops.trailing_zeros() & !7;
            let before = word & !(u64::MAX << bits);
            return Run { len: len + bits as usize / 8, ascii: (all | before) & TOPS == 0 };
        }
        all |= word;
        len += 8;
    }
    let mut ascii = all & TOPS == 0;
    for byte in bytes.get(len..).unwrap_or_default() {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        ascii &= byte.is_ascii();
        len += 1;
    }
    Run { len, ascii }
}

#[cold]
fn not_utf8(offset: u64) -> Error {
    Error::malformed("UTF-8", "other bytes").at(offset).rule("utf8")
}

impl<R: Read> Scanner<R> {
    /// The text of the string that stands next.
    #[inline]
    pub(crate) fn str(&mut self) -> Result<&str> {
        let offset = self.offset();
        let bytes = self.str_bytes()?;
        std::str::from_utf8(bytes).map_err(|_| not_utf8(offset))
    }

    /// The text of the string that stands next as bytes, which are UTF-8 (checked only where they are not ASCII).
    #[inline]
    pub(crate) fn str_bytes(&mut self) -> Result<&[u8]> {
        if self.skip_space()? != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        let start = self.position + 1;
        let rest = self.window.get(start..self.end).unwrap_or_default();
        let Run { len, ascii } = plain_run(rest);
        if rest.get(len) != Some(&b'"') {
            return self.long_string();
        }
        let text = rest.get(..len).unwrap_or_default();
        if !ascii && simdutf8::basic::from_utf8(text).is_err() {
            let sound = simdutf8::compat::from_utf8(text).map_or_else(|error| error.valid_up_to(), str::len);
            return Err(not_utf8(self.base + (start + sound) as u64));
        }
        self.position = start + len + 1;
        Ok(self.window.get(start..start + len).unwrap_or_default())
    }

    /// The text of a string that should be base64, as bytes. Only its end is looked for: whoever decodes it checks it.
    #[inline]
    pub(crate) fn base64_text(&mut self) -> Result<&[u8]> {
        if self.skip_space()? != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        let start = self.position + 1;
        let rest = self.window.get(start..self.end).unwrap_or_default();
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(len) if rest.get(len) == Some(&b'"') => {
                self.position = start + len + 1;
                Ok(self.window.get(start..start + len).unwrap_or_default())
            }
            _ => self.str_bytes(),
        }
    }

    /// Passes over the string that stands next whatever it holds: for whoever goes on after having refused it.
    pub(crate) fn skip_broken_string(&mut self) -> Result<()> {
        if self.skip_space()? != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        self.bump();
        loop {
            let run = memchr::memchr2(b'"', b'\\', self.rest());
            self.position += run.unwrap_or(self.rest().len());
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

    /// A string with escapes, or one that straddles the window: its text is put together in the scratch memory.
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
            let Run { len, .. } = plain_run(rest);
            let stop = rest.get(len).copied();
            text.extend_from_slice(rest.get(..len).unwrap_or_default());
            self.position += len;
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

    /// The key that stands next and the colon after it.
    pub(super) fn key_text(&mut self) -> Result<&str> {
        let offset = self.offset();
        let start = self.position + 1;
        let rest = self.window.get(start..self.end).unwrap_or_default();
        let Run { len, .. } = plain_run(rest);
        let tail = rest.get(len..).and_then(|tail| tail.strip_prefix(b"\""));
        let tail = tail.map(|tail| tail.strip_prefix(b" ").unwrap_or(tail));
        if let Some(after) = tail.and_then(|tail| tail.strip_prefix(b":")) {
            self.position = self.end - after.len();
            let text = self.window.get(start..start + len).unwrap_or_default();
            return std::str::from_utf8(text)
                .map_err(|error| not_utf8(offset + 1 + error.valid_up_to() as u64));
        }
        // What follows may move the window: the key waits in the scratch memory.
        let text = self.str_bytes()?.to_vec();
        self.expect_byte(b':', "`:`")?;
        self.scratch = text;
        std::str::from_utf8(&self.scratch).map_err(|_| not_utf8(offset))
    }
}
