//! Whole values: skipped, or captured as text.

use std::io::Read;

use super::{JsonKind, Scanner};
use crate::error::{Error, Result};

impl<R: Read> Scanner<R> {
    /// Skips the next value of any kind; its text is checked like any other.
    pub(crate) fn skip_value(&mut self) -> Result<()> {
        let outer = self.depth;
        // Whether each open array or object is an object. Not recursive: a level of depth takes one byte.
        let mut open: Vec<bool> = Vec::new();
        loop {
            match self.peek()? {
                JsonKind::Null => self.null()?,
                JsonKind::Bool => self.bool().map(drop)?,
                JsonKind::Number => self.number().map(drop)?,
                JsonKind::String => self.str_bytes().map(drop)?,
                JsonKind::Array => {
                    self.begin_array()?;
                    open.push(false);
                }
                JsonKind::Object => {
                    self.begin_object()?;
                    open.push(true);
                }
            }
            loop {
                let another = match open.last() {
                    None => {
                        debug_assert_eq!(self.depth, outer);
                        return Ok(());
                    }
                    Some(true) => self.next_key()?.is_some(),
                    Some(false) => self.next_element()?,
                };
                if another {
                    break;
                }
                open.pop();
            }
        }
    }

    /// Appends the text of the next value to `text`: numbers with all of their digits, as written; keys in their order,
    /// repeated ones too; strings with the fewest escapes; no white space. The value is checked like any other.
    pub(crate) fn capture_value(&mut self, text: &mut Vec<u8>) -> Result<()> {
        let mut open: Vec<bool> = Vec::new();
        loop {
            match self.peek()? {
                JsonKind::Null => {
                    self.null()?;
                    text.extend_from_slice(b"null");
                }
                JsonKind::Bool => {
                    let word: &[u8] = if self.bool()? { b"true" } else { b"false" };
                    text.extend_from_slice(word);
                }
                JsonKind::Number => text.extend_from_slice(self.number()?.as_bytes()),
                JsonKind::String => self.capture_string(text)?,
                JsonKind::Array => {
                    self.begin_array()?;
                    text.push(b'[');
                    open.push(false);
                }
                JsonKind::Object => {
                    self.begin_object()?;
                    text.push(b'{');
                    open.push(true);
                }
            }
            self.budget.check(text.len() as u64)?;
            loop {
                let Some(object) = open.last().copied() else { return Ok(()) };
                let first = self.fresh;
                let another = if object { self.capture_key(text, first)? } else { self.next_element()? };
                if another {
                    if !first && !object {
                        text.push(b',');
                    }
                    break;
                }
                text.push(if object { b'}' } else { b']' });
                open.pop();
            }
        }
    }

    fn capture_key(&mut self, text: &mut Vec<u8>, first: bool) -> Result<bool> {
        match self.skip_space()? {
            Some(b'}') => return self.next_key().map(|_| false),
            Some(_) if first => {}
            Some(b',') => {
                self.bump();
                text.push(b',');
            }
            _ => return Err(self.unexpected("`,` or `}`")),
        }
        self.fresh = false;
        if self.skip_space()? != Some(b'"') {
            return Err(self.unexpected("a key"));
        }
        self.capture_string(text)?;
        self.expect_byte(b':', "`:`")?;
        text.push(b':');
        Ok(true)
    }

    fn capture_string(&mut self, text: &mut Vec<u8>) -> Result<()> {
        let bytes = self.str_bytes()?;
        let plain =
            std::str::from_utf8(bytes).map_err(|_| Error::malformed("UTF-8", "other bytes").rule("utf8"))?;
        super::write_string(text, plain);
        Ok(())
    }
}
