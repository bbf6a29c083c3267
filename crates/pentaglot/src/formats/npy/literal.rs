//! The subset of Python's literals that a `.npy` header uses: strings, integers, booleans, `None`, tuples, lists and
//! dictionaries. Reading is strict about structure and lenient about white space; writing is Python's `repr`.

use std::fmt;

use crate::cursor::Cursor;
use crate::error::{Context, Error, Result};
use crate::limits::Limits;

/// A Python value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::formats) enum Literal {
    Text(String),
    Whole(i128),
    Bool(bool),
    None,
    Tuple(Vec<Literal>),
    List(Vec<Literal>),
    Dict(Vec<(Literal, Literal)>),
}

impl Literal {
    /// Parses `text`, which begins at `base` in the file, to its end (apart from white space).
    pub(in crate::formats) fn parse(text: &[u8], base: u64, limits: &Limits) -> Result<Literal> {
        let mut parser = Parser { cursor: Cursor::at(text, base), limits };
        let value = parser.value(0)?;
        parser.space();
        match parser.cursor.peek() {
            None => Ok(value),
            Some(byte) => Err(parser.unexpected("the end of the header", byte)),
        }
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    limits: &'a Limits,
}

impl Parser<'_> {
    fn space(&mut self) {
        while matches!(self.cursor.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.bump();
        }
    }

    fn bump(&mut self) {
        // The byte was peeked above.
        let _ = self.cursor.u8();
    }

    fn unexpected(&self, expected: &str, byte: u8) -> Error {
        Error::malformed(expected, format_args!("{:?}", char::from(byte)))
            .at(self.cursor.offset())
            .rule("header")
    }

    fn peek(&self, expected: &str) -> Result<u8> {
        self.cursor.peek().ok_or_else(|| {
            Error::malformed(expected, "the end of the header").at(self.cursor.offset()).rule("header")
        })
    }

    fn value(&mut self, depth: u32) -> Result<Literal> {
        self.limits.check_depth(depth).at(self.cursor.offset())?;
        self.space();
        match self.peek("a Python value")? {
            b'\'' | b'"' => self.text(),
            b'(' => self.items(b')', depth).map(|(items, comma)| match (items.len(), comma) {
                // Parentheses around one value without a comma are only grouping.
                (1, false) => items.into_iter().next().unwrap_or(Literal::None),
                _ => Literal::Tuple(items),
            }),
            b'[' => self.items(b']', depth).map(|(items, _)| Literal::List(items)),
            b'{' => self.dict(depth),
            b'-' | b'+' | b'0'..=b'9' => self.whole(),
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => self.word(),
            other => Err(self.unexpected("a Python value", other)),
        }
    }

    /// Items up to `close`, and whether a comma followed the last.
    fn items(&mut self, close: u8, depth: u32) -> Result<(Vec<Literal>, bool)> {
        self.bump();
        let mut items = Vec::new();
        let mut comma = false;
        loop {
            self.space();
            if self.peek("an item or a closing bracket")? == close {
                self.bump();
                return Ok((items, comma));
            }
            items.push(self.value(depth + 1)?);
            comma = self.comma(close)?;
        }
    }

    fn dict(&mut self, depth: u32) -> Result<Literal> {
        self.bump();
        let mut items = Vec::new();
        loop {
            self.space();
            if self.peek("a key or `}`")? == b'}' {
                self.bump();
                return Ok(Literal::Dict(items));
            }
            let key = self.value(depth + 1)?;
            self.space();
            match self.peek("`:`")? {
                b':' => self.bump(),
                other => return Err(self.unexpected("`:`", other)),
            }
            let value = self.value(depth + 1)?;
            items.push((key, value));
            self.comma(b'}')?;
        }
    }

    /// Reads a comma if there is one; otherwise the closing bracket must follow.
    fn comma(&mut self, close: u8) -> Result<bool> {
        self.space();
        match self.peek("`,` or a closing bracket")? {
            b',' => {
                self.bump();
                Ok(true)
            }
            byte if byte == close => Ok(false),
            other => Err(self.unexpected("`,` or a closing bracket", other)),
        }
    }

    fn whole(&mut self) -> Result<Literal> {
        let start = self.cursor.offset();
        let mut text = String::new();
        while let Some(byte @ (b'-' | b'+' | b'0'..=b'9' | b'_')) = self.cursor.peek() {
            self.bump();
            if byte != b'_' {
                text.push(char::from(byte));
            }
        }
        // Python 2 wrote long integers as `3L`.
        if self.cursor.peek() == Some(b'L') {
            self.bump();
        }
        let value = text.parse();
        value.map(Literal::Whole).map_err(|_| {
            Error::malformed("a whole number", format_args!("{text:?}")).at(start).rule("header")
        })
    }

    fn word(&mut self) -> Result<Literal> {
        let start = self.cursor.offset();
        let mut word = String::new();
        while let Some(byte @ (b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_')) = self.cursor.peek() {
            self.bump();
            word.push(char::from(byte));
        }
        match word.as_str() {
            "True" => Ok(Literal::Bool(true)),
            "False" => Ok(Literal::Bool(false)),
            "None" => Ok(Literal::None),
            // Python 2 marked Unicode and byte strings with a letter.
            "u" | "b" if matches!(self.cursor.peek(), Some(b'\'' | b'"')) => self.text(),
            _ => {
                let expected = "True, False or None";
                Err(Error::malformed(expected, format_args!("{word:?}")).at(start).rule("header"))
            }
        }
    }

    fn text(&mut self) -> Result<Literal> {
        let quote = self.cursor.u8()?;
        let start = self.cursor.offset();
        let mut bytes = Vec::new();
        loop {
            let byte = self.peek("a closing quote")?;
            self.bump();
            match byte {
                b'\\' => {
                    let escape = self.peek("an escape")?;
                    self.bump();
                    let digits = match escape {
                        b'x' => 2,
                        b'u' => 4,
                        b'U' => 8,
                        _ => 0,
                    };
                    let simple = match escape {
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'\\' | b'\'' | b'"' => char::from(escape),
                        _ if digits > 0 => self.hex(digits)?,
                        other => return Err(self.unexpected("an escape that Python's repr writes", other)),
                    };
                    bytes.extend_from_slice(simple.encode_utf8(&mut [0; 4]).as_bytes());
                }
                byte if byte == quote => break,
                byte => bytes.push(byte),
            }
        }
        String::from_utf8(bytes)
            .map(Literal::Text)
            .map_err(|_| Error::malformed("UTF-8 text", "other bytes").at(start).rule("header"))
    }

    fn hex(&mut self, digits: u64) -> Result<char> {
        let at = self.cursor.offset();
        let text = String::from_utf8_lossy(self.cursor.take(digits)?).into_owned();
        let value = u32::from_str_radix(&text, 16).ok().and_then(char::from_u32);
        value.ok_or_else(|| {
            Error::malformed("a character's code", format_args!("{text:?}")).at(at).rule("header")
        })
    }
}

/// Python's `repr`.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list(f: &mut fmt::Formatter<'_>, items: &[Literal]) -> fmt::Result {
            for (index, item) in items.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                write!(f, "{comma}{item}")?;
            }
            Ok(())
        }
        match self {
            Literal::Text(text) => {
                let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
                write!(f, "{quote}")?;
                for character in text.chars() {
                    match character {
                        '\\' => f.write_str("\\\\")?,
                        '\n' => f.write_str("\\n")?,
                        '\r' => f.write_str("\\r")?,
                        '\t' => f.write_str("\\t")?,
                        c if c == quote => write!(f, "\\{c}")?,
                        c if (c as u32) < 0x20 || (0x7f..0xa1).contains(&(c as u32)) => {
                            write!(f, "\\x{:02x}", c as u32)?;
                        }
                        c => write!(f, "{c}")?,
                    }
                }
                write!(f, "{quote}")
            }
            Literal::Whole(value) => write!(f, "{value}"),
            Literal::Bool(true) => f.write_str("True"),
            Literal::Bool(false) => f.write_str("False"),
            Literal::None => f.write_str("None"),
            Literal::Tuple(items) => {
                f.write_str("(")?;
                list(f, items)?;
                f.write_str(if items.len() == 1 { ",)" } else { ")" })
            }
            Literal::List(items) => {
                f.write_str("[")?;
                list(f, items)?;
                f.write_str("]")
            }
            Literal::Dict(items) => {
                f.write_str("{")?;
                for (key, value) in items {
                    write!(f, "{key}: {value}, ")?;
                }
                f.write_str("}")
            }
        }
    }
}
