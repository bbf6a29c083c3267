//! The text of a type as tokens, every error with its place.

use std::fmt::Display;

use crate::error::{Error, Result};
use crate::limits::Limits;

/// The text of a type in messages, shortened if it is long.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default().escape_debug()),
        None => format!("`{}`", text.escape_debug()),
    }
}

/// A place in the text of a type.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) position: usize,
    pub(super) base: u64,
    pub(super) depth: u32,
    pub(super) limits: &'a Limits,
}

impl<'a> Parser<'a> {
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.position..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    pub(super) fn skip_space(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c) => self.position += 1,
                Some(b'#') => {
                    let comment = self.rest().iter().take_while(|byte| **byte != b'\n').count();
                    self.position += comment;
                }
                _ => return,
            }
        }
    }

    #[cold]
    pub(super) fn error_at(&self, position: usize, expected: impl Display) -> Error {
        let rest = self.text.get(position..).unwrap_or_default();
        let error = match rest.chars().next() {
            None => Error::malformed(expected, "the end of the type"),
            Some(first) => {
                let word =
                    rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
                let shown =
                    rest.get(..word.clamp(first.len_utf8(), 40.max(first.len_utf8()))).unwrap_or(rest);
                Error::malformed(expected, excerpt(shown))
            }
        };
        error.at(self.base + position as u64).rule("type-syntax")
    }

    #[cold]
    pub(super) fn expected(&self, expected: impl Display) -> Error {
        self.error_at(self.position, expected)
    }

    /// Takes a token if it is next.
    pub(super) fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token.as_bytes());
        if found {
            self.position += token.len();
        }
        found
    }

    /// Takes `*`, but not the start of `**`.
    pub(super) fn take_star(&mut self) -> bool {
        self.skip_space();
        !self.rest().starts_with(b"**") && self.take("*")
    }

    pub(super) fn need(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(self.expected(format_args!("`{token}`"))) }
    }

    pub(super) fn need_star(&mut self) -> Result<()> {
        if self.take_star() { Ok(()) } else { Err(self.expected("`*`")) }
    }

    pub(super) fn name(&mut self) -> Option<&'a str> {
        self.skip_space();
        let rest = self.rest();
        if !rest.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_') {
            return None;
        }
        let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let start = self.position;
        self.position += len;
        self.text.get(start..self.position)
    }

    pub(super) fn number(&mut self) -> Result<Option<u64>> {
        self.skip_space();
        let start = self.position;
        let len = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        if len == 0 {
            return Ok(None);
        }
        let digits = self.text.get(start..start + len).unwrap_or_default();
        if len > 1 && digits.starts_with('0') {
            return Err(self.expected("an integer without leading zeros"));
        }
        match digits.parse::<u64>() {
            Ok(number) if i64::try_from(number).is_ok() => {
                self.position += len;
                Ok(Some(number))
            }
            _ => Err(self.expected("an integer up to 9223372036854775807")),
        }
    }

    pub(super) fn need_number(&mut self, what: &str) -> Result<u64> {
        self.number()?.ok_or_else(|| self.expected(what))
    }

    pub(super) fn string(&mut self) -> Result<Option<String>> {
        self.skip_space();
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => char::from(quote),
            _ => return Ok(None),
        };
        let open = self.position;
        let body = self.text.get(open + 1..).unwrap_or_default();
        let mut chars = body.char_indices();
        let mut out = String::new();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.position = open + 1 + at + 1;
                return Ok(Some(out));
            }
            if c != '\\' {
                out.push(c);
                continue;
            }
            let place = open + 1 + at;
            let hex_digits = match chars.next() {
                Some((_, c @ ('"' | '\'' | '\\' | '/'))) => {
                    out.push(c);
                    continue;
                }
                Some((_, c @ ('b' | 'f' | 'n' | 'r' | 't'))) => {
                    out.push(match c {
                        'b' => '\u{8}',
                        'f' => '\u{c}',
                        'n' => '\n',
                        'r' => '\r',
                        _ => '\t',
                    });
                    continue;
                }
                Some((_, 'u')) => 4,
                Some((_, 'U')) => 8,
                Some(_) => return Err(self.error_at(place, r#"an escape \" \' \\ \/ \b \f \n \r \t \u \U"#)),
                None => break,
            };
            let mut code = 0u32;
            for _ in 0..hex_digits {
                let digit = chars.next().and_then(|(_, c)| c.to_digit(16));
                let digit =
                    digit.ok_or_else(|| self.error_at(place, format_args!("{hex_digits} hex digits")))?;
                code = code.checked_mul(16).map_or(u32::MAX, |code| code | digit);
            }
            // Surrogates are not characters, not even in pairs.
            let c = char::from_u32(code).ok_or_else(|| self.error_at(place, "a Unicode scalar value"))?;
            out.push(c);
        }
        Err(self.error_at(self.text.len(), format_args!("a closing {quote}")))
    }
}
