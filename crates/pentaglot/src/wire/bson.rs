//! The part of BSON needed to walk documents by their lengths: with positioned reads, and without reading
//! values that are not needed.
//!
//! ```text
//! document := length:i32 element* 00        (the length counts itself and the 00)
//! element  := type:u8 key 00 value
//! string   := length:i32 bytes 00           (the length counts the 00)
//! binary   := length:i32 sub-type:u8 bytes
//! ```

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::source::{Source, Window};

/// The type byte of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BsonKind(pub u8);

impl BsonKind {
    pub(crate) const STRING: BsonKind = BsonKind(0x02);
    pub(crate) const DOCUMENT: BsonKind = BsonKind(0x03);
    pub(crate) const ARRAY: BsonKind = BsonKind(0x04);
    pub(crate) const BINARY: BsonKind = BsonKind(0x05);
    pub(crate) const INT32: BsonKind = BsonKind(0x10);
    pub(crate) const INT64: BsonKind = BsonKind(0x12);

    /// Its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            0x01 => "a double",
            0x02 => "a string",
            0x03 => "a document",
            0x04 => "an array",
            0x05 => "binary",
            0x06 => "undefined",
            0x07 => "an object id",
            0x08 => "a boolean",
            0x09 => "a UTC datetime",
            0x0a => "null",
            0x0b => "a regular expression",
            0x0c => "a pointer",
            0x0d => "JavaScript code",
            0x0e => "a symbol",
            0x0f => "JavaScript code with scope",
            0x10 => "an int32",
            0x11 => "a timestamp",
            0x12 => "an int64",
            0x13 => "a decimal128",
            0x7f => "the maximum key",
            0xff => "the minimum key",
            _ => "an unknown type",
        }
    }
}

/// A document: where its elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Document {
    /// The offset of its length.
    pub offset: u64,
    /// How many bytes it takes, its length and its end included.
    pub bytes: u64,
}

/// One element; its value has been checked against the document's end, but not read.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub kind: BsonKind,
    pub key: String,
    /// The offset of the type byte.
    pub offset: u64,
    /// The offset of the value.
    pub value_offset: u64,
    pub value_bytes: u64,
}

impl Element {
    /// Returns an error unless the element has this type.
    pub(crate) fn expect(&self, kind: BsonKind) -> Result<()> {
        if self.kind == kind {
            return Ok(());
        }
        Err(self.mistyped(kind.name()))
    }

    /// The error for an element of another type.
    #[cold]
    pub(crate) fn mistyped(&self, expected: &str) -> Error {
        Error::malformed(expected, self.kind.name()).at(self.offset).rule("field-type")
    }

    /// The element's value as a document, whose length has been checked.
    pub(crate) fn document(&self) -> Document {
        Document { offset: self.value_offset, bytes: self.value_bytes }
    }
}

/// How much is read ahead: enough for a few small elements, and little if they are skipped.
const WINDOW_BYTES: usize = 512;

/// Reads the BSON of a source element by element.
pub(crate) struct Reader {
    window: Window,
}

impl Reader {
    /// A reader of a source that can be read at any offset.
    pub(crate) fn new(source: &Source) -> Self {
        Reader { window: Window::anywhere(source, u64::MAX, WINDOW_BYTES, Budget::default()) }
    }

    /// The document at `offset`, which must end at or before `end`.
    pub(crate) fn document_at(&mut self, offset: u64, end: u64) -> Result<Document> {
        let left = end.saturating_sub(offset);
        if left < 5 {
            return Err(
                Error::truncated("a document of at least 5 bytes", format_args!("{left} bytes")).at(offset)
            );
        }
        let length = i32::from_le_bytes(self.array(offset)?);
        let bytes = match u64::try_from(length) {
            Ok(bytes) if bytes >= 5 => bytes,
            _ => {
                return Err(Error::malformed("a document length of at least 5", length)
                    .at(offset)
                    .rule("bson-length"));
            }
        };
        if bytes > left {
            let expected = format!("a document of {bytes} bytes");
            return Err(Error::truncated(expected, format_args!("{left} bytes")).at(offset));
        }
        Ok(Document { offset, bytes })
    }

    /// The elements of a document, one by one.
    pub(crate) fn elements(&self, document: Document) -> Elements {
        Elements { position: document.offset + 4, end: document.offset + document.bytes - 1 }
    }

    /// The next element, or `None` at the end of the document.
    pub(crate) fn next(&mut self, elements: &mut Elements) -> Result<Option<Element>> {
        let (offset, end) = (elements.position, elements.end);
        if offset >= end {
            let [terminator] = self.array(end)?;
            if terminator != 0 {
                let found = format!("{terminator:#04x}");
                return Err(Error::malformed("0x00 at the end of the document", found)
                    .at(end)
                    .rule("bson-terminator"));
            }
            return Ok(None);
        }
        let [kind] = self.array(offset)?;
        let key = self.key(offset + 1, end)?;
        let value_offset = offset + 2 + key.len() as u64;
        let value_bytes = match self.value_bytes(BsonKind(kind), offset, value_offset, end) {
            Ok(bytes) => bytes,
            Err(error) => return Err(error.field(key)),
        };
        elements.position = value_offset + value_bytes;
        Ok(Some(Element { kind: BsonKind(kind), key, offset, value_offset, value_bytes }))
    }

    /// The text of a string element.
    pub(crate) fn string(&mut self, element: &Element) -> Result<String> {
        element.expect(BsonKind::STRING)?;
        self.text_at(element.value_offset, element.value_bytes)
    }

    /// The text at `offset`, which takes `bytes` bytes with its length and its zero byte.
    pub(crate) fn text_at(&mut self, offset: u64, bytes: u64) -> Result<String> {
        // A string has at least a length and a zero byte: `value_bytes` has checked it.
        let bytes = bytes.saturating_sub(5);
        let mut text = self.bytes(offset + 4, bytes)?;
        let end = offset + 4 + bytes;
        if self.array(end)? != [0] {
            return Err(Error::malformed("0x00 at the end of the string", "another byte")
                .at(end)
                .rule("bson-terminator"));
        }
        text.truncate(usize::try_from(bytes).unwrap_or(usize::MAX));
        String::from_utf8(text).map_err(|error| {
            let place = error.utf8_error().valid_up_to() as u64;
            Error::malformed("UTF-8 text", "other bytes").at(offset + 4 + place).rule("utf8")
        })
    }

    /// The pattern and the options of a regular expression.
    pub(crate) fn pattern(&mut self, element: &Element) -> Result<(String, String)> {
        let end = element.value_offset + element.value_bytes;
        let pattern = self.key(element.value_offset, end)?;
        let options = self.key(element.value_offset + pattern.len() as u64 + 1, end)?;
        Ok((pattern, options))
    }

    /// The text and the scope of JavaScript code with scope.
    pub(crate) fn scoped_code(&mut self, element: &Element) -> Result<(String, Document)> {
        let end = element.value_offset + element.value_bytes;
        let text_offset = element.value_offset + 4;
        let length = match u64::try_from(i32::from_le_bytes(self.array(text_offset)?)) {
            Ok(length) if length >= 1 && text_offset + 4 + length <= end => length,
            _ => return Err(element.mistyped("code and its scope")),
        };
        let text = self.text_at(text_offset, length + 4)?;
        Ok((text, self.document_at(text_offset + 4 + length, end)?))
    }

    /// The number of an int32 or int64 element.
    pub(crate) fn integer(&mut self, element: &Element) -> Result<i64> {
        match element.kind {
            BsonKind::INT32 => Ok(i64::from(i32::from_le_bytes(self.array(element.value_offset)?))),
            BsonKind::INT64 => Ok(i64::from_le_bytes(self.array(element.value_offset)?)),
            _ => Err(element.mistyped("an integer")),
        }
    }

    /// The offset of the content of a binary element of sub-type 0, and its length.
    pub(crate) fn binary(&mut self, element: &Element) -> Result<(u64, u64)> {
        element.expect(BsonKind::BINARY)?;
        let [sub_type] = self.array(element.value_offset + 4)?;
        if sub_type != 0 {
            return Err(Error::malformed("binary of sub-type 0", format_args!("sub-type {sub_type}"))
                .at(element.value_offset + 4)
                .rule("binary-sub-type"));
        }
        Ok((element.value_offset + 5, element.value_bytes - 5))
    }

    /// `N` bytes at `offset`.
    pub(crate) fn array<const N: usize>(&mut self, offset: u64) -> Result<[u8; N]> {
        Cursor::at(self.window.at(offset, N)?, offset).array()
    }

    /// The size of the value at `offset`, which must end at or before `end`.
    fn value_bytes(&mut self, kind: BsonKind, element: u64, offset: u64, end: u64) -> Result<u64> {
        let left = end.saturating_sub(offset);
        let past = |bytes: u64| {
            Error::malformed(
                format_args!("{} of at most {left} bytes", kind.name()),
                format_args!("{bytes} bytes, past the end of its document"),
            )
            .at(offset)
            .rule("bson-length")
        };
        let fixed = |bytes: u64| if bytes <= left { Ok(bytes) } else { Err(past(bytes)) };
        // Reads a length of at least `least`, which is followed by that many and `extra` bytes.
        let mut counted = |least: i32, extra: u64| {
            fixed(4)?;
            let length = i32::from_le_bytes(self.array(offset)?);
            if length < least {
                return Err(Error::malformed(format_args!("a length of at least {least}"), length)
                    .at(offset)
                    .rule("bson-length"));
            }
            fixed(u64::from(length.unsigned_abs()) + extra)
        };
        match kind.0 {
            0x06 | 0x0a | 0x7f | 0xff => Ok(0),
            0x08 => fixed(1),
            0x10 => fixed(4),
            0x01 | 0x09 | 0x11 | 0x12 => fixed(8),
            0x07 => fixed(12),
            0x13 => fixed(16),
            0x02 | 0x0d | 0x0e => counted(1, 4),
            0x03 | 0x04 | 0x0f => counted(5, 0),
            0x05 => counted(0, 5),
            0x0c => counted(1, 16),
            0x0b => {
                let pattern = self.key(offset, end)?.len() as u64 + 1;
                Ok(pattern + self.key(offset + pattern, end)?.len() as u64 + 1)
            }
            other => Err(Error::malformed("a BSON element type", format_args!("{other:#04x}"))
                .at(element)
                .rule("bson-type")),
        }
    }

    /// The zero-ended text at `offset`, which must end before `end`.
    fn key(&mut self, offset: u64, end: u64) -> Result<String> {
        let mut key = Vec::new();
        loop {
            let position = offset + key.len() as u64;
            let left = usize::try_from(end.saturating_sub(position)).unwrap_or(usize::MAX);
            if left == 0 {
                let message = "0x00 at the end of the key";
                return Err(Error::malformed(message, "the end of the document").at(offset).rule("bson-key"));
            }
            let rest = self.window.at(position, 1)?;
            let rest = rest.get(..left).unwrap_or(rest);
            match rest.iter().position(|byte| *byte == 0) {
                Some(length) => {
                    key.extend(rest.iter().take(length));
                    break;
                }
                None => key.extend(rest),
            }
        }
        String::from_utf8(key).map_err(|error| {
            let place = error.utf8_error().valid_up_to() as u64;
            Error::malformed("a UTF-8 key", "other bytes").at(offset + place).rule("utf8")
        })
    }

    /// `count` bytes at `offset`, which are within the file; memory grows with the bytes read, so a wrong count
    /// allocates nothing.
    pub(crate) fn bytes(&mut self, offset: u64, count: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < count {
            let position = offset + bytes.len() as u64;
            let left = usize::try_from(count - bytes.len() as u64).unwrap_or(usize::MAX);
            bytes.extend(self.window.at(position, 1)?.iter().take(left));
        }
        Ok(bytes)
    }
}

/// The position of a walk through a document.
#[derive(Debug, Clone)]
pub(crate) struct Elements {
    position: u64,
    end: u64,
}

/// BSON being written: a list of pieces, so that a large block is never copied.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Finished pieces, then the one that small elements are appended to.
    pieces: Vec<Vec<u8>>,
    bytes: u64,
}

/// A document whose length is written when it ends.
#[derive(Debug)]
#[must_use]
pub(crate) struct Open {
    piece: usize,
    at: usize,
    start: u64,
}

/// The maximum length of a document and of a binary.
pub(crate) const MAX_BYTES: u64 = i32::MAX as u64;

/// The length of a document of so many bytes, as it is written.
pub(crate) fn document_length(bytes: u64) -> Result<i32> {
    i32::try_from(bytes)
        .map_err(|_| Error::limit("the limit", MAX_BYTES, format!("{bytes} bytes for a BSON document")))
}

impl Writer {
    /// How many bytes have been written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The pieces, in order.
    pub(crate) fn into_pieces(self) -> Vec<Vec<u8>> {
        self.pieces
    }

    /// The pieces so far.
    pub(crate) fn pieces(&self) -> &[Vec<u8>] {
        &self.pieces
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.pieces.is_empty() {
            self.pieces.push(Vec::new());
        }
        if let Some(last) = self.pieces.last_mut() {
            last.extend_from_slice(bytes);
        }
        self.bytes += bytes.len() as u64;
    }

    /// Begins an element. The key has no zero byte.
    fn head(&mut self, kind: BsonKind, key: &str) {
        self.put(&[kind.0]);
        self.put(key.as_bytes());
        self.put(&[0]);
    }

    /// Begins a document, or with a key an element that holds one.
    pub(crate) fn begin(&mut self, element: Option<(BsonKind, &str)>) -> Open {
        if let Some((kind, key)) = element {
            self.head(kind, key);
        }
        let start = self.bytes;
        self.put(&[0; 4]);
        let piece = self.pieces.len() - 1;
        let at = self.pieces.last().map_or(0, Vec::len) - 4;
        Open { piece, at, start }
    }

    /// Ends a document.
    pub(crate) fn end(&mut self, open: Open) -> Result<()> {
        self.put(&[0]);
        self.end_counted(open)
    }

    /// Ends an element that has a length as a document has, but no zero byte at its end: code with scope.
    pub(crate) fn end_counted(&mut self, open: Open) -> Result<()> {
        let length = document_length(self.bytes - open.start)?;
        let place = self.pieces.get_mut(open.piece).and_then(|piece| piece.get_mut(open.at..));
        if let Some(place) = place.and_then(|place| place.first_chunk_mut()) {
            *place = length.to_le_bytes();
        }
        Ok(())
    }

    pub(crate) fn string(&mut self, key: &str, text: &str) -> Result<()> {
        self.text(BsonKind::STRING, key, text)
    }

    /// An element of another kind that is text: code, a symbol.
    pub(crate) fn text(&mut self, kind: BsonKind, key: &str, text: &str) -> Result<()> {
        self.head(kind, key);
        self.bare_text(text)
    }

    /// Text without a key, as parts of some elements have it.
    pub(crate) fn bare_text(&mut self, text: &str) -> Result<()> {
        let length = i32::try_from(text.len() + 1).map_err(|_| {
            Error::limit("the limit", MAX_BYTES, format!("{} bytes for a BSON string", text.len()))
        })?;
        self.put(&length.to_le_bytes());
        self.put(text.as_bytes());
        self.put(&[0]);
        Ok(())
    }

    pub(crate) fn int32(&mut self, key: &str, number: i32) {
        self.head(BsonKind::INT32, key);
        self.put(&number.to_le_bytes());
    }

    pub(crate) fn double(&mut self, key: &str, number: f64) {
        self.element(BsonKind(0x01), key, &number.to_le_bytes());
    }

    pub(crate) fn int64(&mut self, key: &str, number: i64) {
        self.head(BsonKind::INT64, key);
        self.put(&number.to_le_bytes());
    }

    /// A pointer: the name of a collection and an object id.
    pub(crate) fn pointer(&mut self, key: &str, place: &str, id: &[u8; 12]) -> Result<()> {
        self.text(BsonKind(0x0c), key, place)?;
        self.put(id);
        Ok(())
    }

    /// An element whose value has a fixed length or ends itself.
    pub(crate) fn element(&mut self, kind: BsonKind, key: &str, value: &[u8]) {
        self.head(kind, key);
        self.put(value);
    }

    /// Binary of sub-type 0. A long one becomes a piece of its own.
    pub(crate) fn binary(&mut self, key: &str, content: Vec<u8>) -> Result<()> {
        self.binary_of(key, 0, content)
    }

    /// Binary of any sub-type.
    pub(crate) fn binary_of(&mut self, key: &str, sub_type: u8, mut content: Vec<u8>) -> Result<()> {
        // Sub-type 2 has a second length in front of its bytes.
        if sub_type == 2 {
            let inner = i32::try_from(content.len()).unwrap_or(i32::MAX).to_le_bytes();
            content.splice(0..0, inner);
        }
        self.begin_binary(key, sub_type, content.len())?;
        if content.len() < WINDOW_BYTES {
            self.put(&content);
        } else {
            self.bytes += content.len() as u64;
            self.pieces.push(content);
            self.pieces.push(Vec::new());
        }
        Ok(())
    }

    /// As [`binary`](Self::binary), of content in pieces.
    pub(crate) fn binary_in_pieces(&mut self, key: &str, content: Vec<Vec<u8>>) -> Result<()> {
        let bytes: usize = content.iter().map(Vec::len).sum();
        if bytes < WINDOW_BYTES {
            return self.binary(key, content.concat());
        }
        self.begin_binary(key, 0, bytes)?;
        self.bytes += bytes as u64;
        self.pieces.extend(content);
        self.pieces.push(Vec::new());
        Ok(())
    }

    fn begin_binary(&mut self, key: &str, sub_type: u8, bytes: usize) -> Result<()> {
        let length = i32::try_from(bytes)
            .map_err(|_| Error::limit("the limit", MAX_BYTES, format!("{bytes} bytes for a BSON binary")))?;
        self.head(BsonKind::BINARY, key);
        self.put(&length.to_le_bytes());
        self.put(&[sub_type]);
        Ok(())
    }

    /// Appends the bytes of another writer.
    pub(crate) fn append(&mut self, other: Writer) {
        self.bytes += other.bytes;
        self.pieces.extend(other.pieces);
        self.pieces.push(Vec::new());
    }
}
