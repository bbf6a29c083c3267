//! Extended JSON, version 2, canonical, relaxed or mixed (and the older forms of binary and regular expressions), as BSON.
//!
//! One document after the other, or an array of documents: what `mongoexport` writes. The text is translated once, into a
//! spool; the readers of BSON do the rest.

use std::io::{Read, Write as _};

use arrow_schema::TimeUnit;

use super::decimal;
use super::schema::Type;
use crate::error::{Error, Result};
use crate::formats::Confidence;
use crate::hub::json::parse_timestamp;
use crate::limits::{Budget, Reservation};
use crate::source::{Source, Spool};
use crate::wire::bson::{BsonKind, Writer};
use crate::wire::json::{JsonKind, Scanner};

/// Translates the text of a source to BSON documents.
pub(super) fn translate(source: &Source, budget: &Budget) -> Result<Source> {
    let mut spool = Spool::new(budget).limited();
    let mut scanner = Scanner::new(source.reader()?, budget.clone());
    scanner.skip_byte_order_mark()?;
    let mut parser = JsonParser { scanner, held: budget.reservation() };
    if let Err(error) = parser.documents(&mut spool) {
        return Err(parser.scanner.with_line(error));
    }
    spool.into_source(source.name())
}

struct JsonParser<R> {
    scanner: Scanner<R>,
    /// Pays for the document that is being translated.
    held: Reservation,
}

impl<R: Read> JsonParser<R> {
    fn documents(&mut self, spool: &mut Spool) -> Result<()> {
        match self.scanner.skip_space()? {
            Some(b'[') => {
                self.scanner.begin_array()?;
                while self.scanner.next_element()? {
                    self.root(spool)?;
                }
                self.scanner.end()
            }
            None => Err(Error::truncated("a document", "nothing").at(0)),
            _ => {
                while self.scanner.skip_space()?.is_some() {
                    self.root(spool)?;
                }
                Ok(())
            }
        }
    }

    fn root(&mut self, spool: &mut Spool) -> Result<()> {
        let mut out = Writer::default();
        let document = out.begin(None);
        self.scanner.begin_object()?;
        self.members(&mut out, None)?;
        out.end(document)?;
        for piece in out.into_pieces() {
            spool.write_all(&piece)?;
        }
        self.held.shrink_to(0);
        Ok(())
    }

    /// The members of an object, whose first key may have been read already, up to its end.
    fn members(&mut self, out: &mut Writer, first: Option<String>) -> Result<()> {
        let mut key = match first {
            Some(first) => Some(first),
            None => self.key()?,
        };
        while let Some(name) = key {
            if name.contains('\0') {
                return Err(Error::malformed("a key without a zero byte", "one").at(self.scanner.offset()));
            }
            self.value(out, &name)?;
            self.held.grow_to(out.bytes())?;
            key = self.key()?;
        }
        Ok(())
    }

    fn key(&mut self) -> Result<Option<String>> {
        Ok(self.scanner.next_key()?.map(str::to_owned))
    }

    fn value(&mut self, out: &mut Writer, key: &str) -> Result<()> {
        match self.scanner.peek()? {
            JsonKind::Null => {
                self.scanner.null()?;
                out.element(BsonKind(0x0a), key, &[]);
                Ok(())
            }
            JsonKind::Bool => {
                let value = self.scanner.bool()?;
                out.element(BsonKind(0x08), key, &[u8::from(value)]);
                Ok(())
            }
            JsonKind::String => out.string(key, self.scanner.str()?),
            JsonKind::Number => {
                let text = self.scanner.number()?;
                match (text.parse::<i32>(), text.parse::<i64>(), text.parse::<f64>()) {
                    (Ok(number), ..) => out.int32(key, number),
                    (_, Ok(number), _) => out.int64(key, number),
                    (.., number) => {
                        out.element(BsonKind(0x01), key, &number.unwrap_or(f64::NAN).to_le_bytes())
                    }
                }
                Ok(())
            }
            JsonKind::Array => {
                self.scanner.begin_array()?;
                let array = out.begin(Some((BsonKind::ARRAY, key)));
                let mut index = 0u64;
                while self.scanner.next_element()? {
                    self.value(out, &index.to_string())?;
                    index += 1;
                }
                out.end(array)
            }
            JsonKind::Object => {
                self.scanner.begin_object()?;
                let first = self.key()?;
                match first {
                    Some(name) if name.starts_with('$') => self.typed(out, key, name),
                    Some(name) => {
                        let document = out.begin(Some((BsonKind::DOCUMENT, key)));
                        self.members(out, Some(name))?;
                        out.end(document)
                    }
                    None => {
                        let document = out.begin(Some((BsonKind::DOCUMENT, key)));
                        out.end(document)
                    }
                }
            }
        }
    }

    /// A value of the type that the first key of its object names. Objects with other keys, such as `$ref`, are documents.
    fn typed(&mut self, out: &mut Writer, key: &str, name: String) -> Result<()> {
        match name.as_str() {
            "$binary" => self.binary(out, key)?,
            "$uuid" => {
                let text = self.scanner.str()?.replace('-', "");
                let bytes: [u8; 16] = self.hex(&text, "a UUID")?;
                out.binary_of(key, 4, bytes.to_vec())?;
            }
            "$oid" => {
                let id = self.object_id()?;
                out.element(BsonKind(0x07), key, &id);
            }
            "$numberInt" => {
                let number = self.parsed("an int32")?;
                out.int32(key, number);
            }
            "$numberLong" => {
                let number = self.parsed("an int64")?;
                out.int64(key, number);
            }
            "$numberDouble" => {
                let number: f64 = self.parsed("a double")?;
                out.element(BsonKind(0x01), key, &number.to_le_bytes());
            }
            "$numberDecimal" => {
                let text = self.scanner.str()?;
                let bits = decimal::parse(text).ok_or_else(|| {
                    Error::malformed("a decimal of at most 34 digits", format_args!("{text:?}"))
                });
                out.element(BsonKind(0x13), key, &bits?.to_le_bytes());
            }
            "$date" => {
                let milliseconds = self.date()?;
                out.element(BsonKind(0x09), key, &milliseconds.to_le_bytes());
            }
            "$timestamp" => {
                let [time, increment] = self.named_numbers(["t", "i"])?;
                out.element(BsonKind(0x11), key, &[increment.to_le_bytes(), time.to_le_bytes()].concat());
            }
            "$regularExpression" => {
                let [pattern, options] = self.named_texts(["pattern", "options"])?;
                out.element(BsonKind(0x0b), key, format!("{pattern}\0{options}\0").as_bytes());
            }
            "$symbol" => out.text(BsonKind(0x0e), key, self.scanner.str()?)?,
            "$undefined" => {
                self.scanner.bool()?;
                out.element(BsonKind(0x06), key, &[]);
            }
            "$minKey" | "$maxKey" => {
                self.scanner.u64()?;
                out.element(BsonKind(if name == "$minKey" { 0xff } else { 0x7f }), key, &[]);
            }
            "$code" => {
                let text = self.scanner.str()?.to_owned();
                let Some(next) = self.key()? else { return out.text(BsonKind(0x0d), key, &text) };
                self.expect_key(&next, "$scope")?;
                let scoped = out.begin(Some((BsonKind(0x0f), key)));
                out.bare_text(&text)?;
                let scope = out.begin(None);
                self.scanner.begin_object()?;
                self.members(out, None)?;
                out.end(scope)?;
                out.end_counted(scoped)?;
            }
            "$dbPointer" => {
                self.scanner.begin_object()?;
                let (mut place, mut id) = (None, None);
                while let Some(part) = self.key()? {
                    match part.as_str() {
                        "$ref" => place = Some(self.scanner.str()?.to_owned()),
                        _ => {
                            self.scanner.begin_object()?;
                            let oid = self.key()?.unwrap_or_default();
                            self.expect_key(&oid, "$oid")?;
                            id = Some(self.object_id()?);
                            self.end_object()?;
                        }
                    }
                }
                let (Some(place), Some(id)) = (place, id) else {
                    return Err(self.wrong("$ref and $id", "less"));
                };
                out.pointer(key, &place, &id)?;
            }
            _ => {
                let document = out.begin(Some((BsonKind::DOCUMENT, key)));
                self.members(out, Some(name))?;
                return out.end(document);
            }
        }
        self.end_object()
    }

    /// `{"base64": …, "subType": …}`, or in the older form the text and a key `$type`.
    fn binary(&mut self, out: &mut Writer, key: &str) -> Result<()> {
        let (mut content, mut sub_type) = (None, None);
        if self.scanner.peek()? == JsonKind::String {
            content = Some(self.base64()?);
            let next = self.key()?.unwrap_or_default();
            self.expect_key(&next, "$type")?;
            sub_type = Some(self.sub_type()?);
        } else {
            self.scanner.begin_object()?;
            while let Some(part) = self.key()? {
                match part.as_str() {
                    "base64" => content = Some(self.base64()?),
                    "subType" => sub_type = Some(self.sub_type()?),
                    other => return Err(self.wrong("base64 or subType", &format!("{other:?}"))),
                }
            }
        }
        match (content, sub_type) {
            (Some(content), Some(sub_type)) => out.binary_of(key, sub_type, content),
            _ => Err(self.wrong("base64 and subType", "less")),
        }
    }

    fn base64(&mut self) -> Result<Vec<u8>> {
        let offset = self.scanner.offset();
        let room = self.held.budget().clone();
        let text = self.scanner.base64_text()?;
        let _decoded = room.reserve(text.len() as u64)?;
        let mut bytes = Vec::new();
        base64_simd::STANDARD
            .decode_append(text, &mut bytes)
            .map_err(|_| Error::malformed("base64", "other text").at(offset).rule("base64"))?;
        Ok(bytes)
    }

    fn sub_type(&mut self) -> Result<u8> {
        let offset = self.scanner.offset();
        let text = self.scanner.str()?;
        u8::from_str_radix(text, 16).map_err(|_| {
            Error::malformed("a sub-type of two hex digits", format_args!("{text:?}")).at(offset)
        })
    }

    fn object_id(&mut self) -> Result<[u8; 12]> {
        let text = self.scanner.str()?.to_owned();
        self.hex(&text, "an object id of 24 hex digits")
    }

    fn hex<const N: usize>(&mut self, text: &str, expected: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        let fits = text.len() == 2 * N && text.is_ascii();
        let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
        for (byte, pair) in bytes.iter_mut().zip(digits) {
            *byte = u8::from_str_radix(pair, 16).map_err(|_| self.wrong(expected, &format!("{text:?}")))?;
        }
        if fits { Ok(bytes) } else { Err(self.wrong(expected, &format!("{text:?}"))) }
    }

    /// A number in text.
    fn parsed<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T> {
        let text = self.scanner.str()?;
        let parsed = text.parse();
        parsed.map_err(|_| Error::malformed(format_args!("{expected} as text"), format_args!("{text:?}")))
    }

    /// Milliseconds: as text, `{"$numberLong": …}` or a plain number.
    fn date(&mut self) -> Result<i64> {
        match self.scanner.peek()? {
            JsonKind::Number => self.scanner.i64(),
            JsonKind::String => {
                let text = self.scanner.str()?;
                parse_timestamp(text.as_bytes(), TimeUnit::Millisecond, true)
                    .ok_or_else(|| Error::malformed("a date as in ISO 8601", format_args!("{text:?}")))
            }
            _ => {
                self.scanner.begin_object()?;
                let next = self.key()?.unwrap_or_default();
                self.expect_key(&next, "$numberLong")?;
                let milliseconds = self.parsed("an int64")?;
                self.end_object()?;
                Ok(milliseconds)
            }
        }
    }

    fn named_numbers(&mut self, names: [&str; 2]) -> Result<[u32; 2]> {
        let mut found = [0; 2];
        self.scanner.begin_object()?;
        while let Some(part) = self.key()? {
            let number = self.scanner.u64()?;
            for (name, place) in names.iter().zip(&mut found) {
                if *name == part {
                    *place = u32::try_from(number).map_err(|_| self.wrong("32 bits", &number.to_string()))?;
                }
            }
        }
        Ok(found)
    }

    fn named_texts(&mut self, names: [&str; 2]) -> Result<[String; 2]> {
        let mut found = [String::new(), String::new()];
        self.scanner.begin_object()?;
        while let Some(part) = self.key()? {
            let text = self.scanner.str()?;
            if text.contains('\0') {
                return Err(self.wrong("text without a zero byte", "one"));
            }
            for (name, place) in names.iter().zip(&mut found) {
                if *name == part {
                    *place = text.to_owned();
                }
            }
        }
        Ok(found)
    }

    fn expect_key(&mut self, found: &str, expected: &str) -> Result<()> {
        if found == expected {
            Ok(())
        } else {
            Err(self.wrong(&format!("{expected:?}"), &format!("{found:?}")))
        }
    }

    fn end_object(&mut self) -> Result<()> {
        match self.key()? {
            None => Ok(()),
            Some(more) => Err(self.wrong("the end of the value", &format!("{more:?}"))),
        }
    }

    fn wrong(&self, expected: &str, found: &str) -> Error {
        Error::malformed(expected, found).at(self.scanner.offset()).rule("extended-json")
    }
}

/// Whether a source is such text. Of other files that can be read at any offset only one byte is read.
pub(super) fn is_text(source: &Source) -> Result<bool> {
    if source.is_seekable() {
        let mut first = [0];
        source.read_at(0, &mut first)?;
        if !matches!(first, [b'{' | b'[' | b' ' | b'\t' | b'\r' | b'\n' | 0xef]) {
            return Ok(false);
        }
    }
    Ok(detect(&source.head()?) != Confidence::No)
}

/// Whether text begins with documents whose columns are ours, as far as its first bytes show.
pub(super) fn detect(head: &[u8]) -> Confidence {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if !matches!(text.first(), Some(b'{' | b'[')) {
        return Confidence::No;
    }
    let mut scanner = Scanner::new(text, Budget::default());
    let mut seen = Seen::default();
    let end = if text.starts_with(b"[") {
        scanner.begin_array().and_then(|()| scanner.next_element()).and_then(|_| scanner.begin_object())
    } else {
        scanner.begin_object()
    };
    // An error is the end of what can be seen.
    let _ = end.and_then(|()| seen.members(&mut scanner, None));
    match (seen.column, seen.buffer) {
        (true, _) => Confidence::Certain,
        (false, true) => Confidence::Likely,
        (false, false) => Confidence::No,
    }
}

/// What of a column the first bytes show.
#[derive(Default)]
struct Seen {
    /// A whole column: a type of ours beside a buffer.
    column: bool,
    /// A buffer `d` or `m` whose object is cut off.
    buffer: bool,
}

impl Seen {
    fn members(&mut self, scanner: &mut Scanner<&[u8]>, first: Option<String>) -> Result<()> {
        let (mut has_type, mut has_buffer) = (false, false);
        let mut key = match first {
            Some(first) => Some(first),
            None => scanner.next_key()?.map(str::to_owned),
        };
        while let Some(name) = key {
            match (name.as_str(), scanner.peek()?) {
                ("t", JsonKind::String) => has_type |= Type::is_name(scanner.str()?),
                (name, JsonKind::Object) => {
                    let is_buffer = matches!(name, "d" | "m");
                    scanner.begin_object()?;
                    match scanner.next_key()?.map(str::to_owned) {
                        None => {}
                        Some(inner) => {
                            let packed = is_buffer && inner == "$binary";
                            has_buffer |= packed;
                            self.buffer |= packed;
                            self.members(scanner, Some(inner))?;
                        }
                    }
                }
                _ => scanner.skip_value()?,
            }
            if has_type && has_buffer {
                self.column = true;
                return Ok(());
            }
            key = scanner.next_key()?.map(str::to_owned);
            if self.column {
                return Ok(());
            }
        }
        // A whole object that is no column.
        self.buffer &= !has_buffer;
        Ok(())
    }
}
