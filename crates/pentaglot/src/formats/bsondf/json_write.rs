//! BSON as Extended JSON, version 2, as MongoDB defines it: canonical (every type is kept) or relaxed (numbers are
//! JSON's, dates are text).

use std::io::Write;

use arrow_schema::TimeUnit;

use super::decimal;
use crate::error::{Error, Result};
use crate::hub::json::{Zone, write_timestamp};
use crate::limits::Limits;
use crate::wire::bson::{BsonKind, Document, Element, Reader};
use crate::wire::json::write_string;

/// The dates that relaxed JSON writes as text: from 1970 up to the end of 9999.
const TEXT_DATES: std::ops::Range<i64> = 0..253_402_300_800_000;

/// Binary is encoded so many bytes at a time: a multiple of 3.
const PIECE_BYTES: u64 = 48 << 10;

/// Prints BSON as Extended JSON.
pub(super) struct JsonPrinter<'w> {
    pub reader: Reader,
    pub relaxed: bool,
    pub limits: &'w Limits,
    pub out: &'w mut dyn Write,
}

impl JsonPrinter<'_> {
    /// Prints a document, without a line's end.
    pub(super) fn document(&mut self, document: Document) -> Result<()> {
        self.elements(document, false, 0)
    }

    fn elements(&mut self, document: Document, is_array: bool, depth: u32) -> Result<()> {
        self.limits.check_depth(depth)?;
        self.text(if is_array { "[" } else { "{" })?;
        let mut elements = self.reader.elements(document);
        let mut is_first = true;
        while let Some(element) = self.reader.next(&mut elements)? {
            if !std::mem::replace(&mut is_first, false) {
                self.text(",")?;
            }
            if !is_array {
                self.quoted(&element.key)?;
                self.text(":")?;
            }
            self.value(&element, depth)?;
        }
        self.text(if is_array { "]" } else { "}" })
    }

    /// Prints the value of an element.
    pub(super) fn value(&mut self, element: &Element, depth: u32) -> Result<()> {
        let at = element.value_offset;
        match element.kind.0 {
            0x01 => {
                let number = f64::from_le_bytes(self.reader.array(at)?);
                let text = match number {
                    _ if number.is_nan() => "NaN".to_owned(),
                    f64::INFINITY => "Infinity".to_owned(),
                    f64::NEG_INFINITY => "-Infinity".to_owned(),
                    number => format!("{number:?}"),
                };
                self.number("$numberDouble", &text, self.relaxed && number.is_finite())
            }
            0x02 => {
                let text = self.reader.string(element)?;
                self.quoted(&text)
            }
            0x03 => self.elements(element.document(), false, depth + 1),
            0x04 => self.elements(element.document(), true, depth + 1),
            0x05 => self.binary(element),
            0x06 => self.text("{\"$undefined\":true}"),
            0x07 => {
                let id: [u8; 12] = self.reader.array(at)?;
                self.wrapped("$oid", &hex(&id))
            }
            0x08 => {
                let [value] = self.reader.array(at)?;
                self.text(if value == 0 { "false" } else { "true" })
            }
            0x09 => {
                let milliseconds = i64::from_le_bytes(self.reader.array(at)?);
                self.date(milliseconds)
            }
            0x0a => self.text("null"),
            0x0b => {
                let (pattern, options) = self.reader.pattern(element)?;
                self.text("{\"$regularExpression\":{\"pattern\":")?;
                self.quoted(&pattern)?;
                self.text(",\"options\":")?;
                self.quoted(&options)?;
                self.text("}}")
            }
            0x0c => {
                let text = self.reader.text_at(at, element.value_bytes.saturating_sub(12))?;
                let id: [u8; 12] = self.reader.array(at + element.value_bytes.saturating_sub(12))?;
                self.text("{\"$dbPointer\":{\"$ref\":")?;
                self.quoted(&text)?;
                self.text(",\"$id\":")?;
                self.wrapped("$oid", &hex(&id))?;
                self.text("}}")
            }
            0x0d | 0x0e => {
                let text = self.reader.text_at(at, element.value_bytes)?;
                self.wrapped(if element.kind.0 == 0x0d { "$code" } else { "$symbol" }, &text)
            }
            0x0f => {
                let (text, scope) = self.reader.scoped_code(element)?;
                self.text("{\"$code\":")?;
                self.quoted(&text)?;
                self.text(",\"$scope\":")?;
                self.elements(scope, false, depth + 1)?;
                self.text("}")
            }
            0x10 => {
                let number = self.reader.integer(element)?;
                self.number("$numberInt", &number.to_string(), self.relaxed)
            }
            0x11 => {
                let [increment, time]: [u32; 2] = {
                    let bytes: [u8; 8] = self.reader.array(at)?;
                    let (low, high) = bytes.split_at(4);
                    [low, high].map(|half| half.try_into().map_or(0, u32::from_le_bytes))
                };
                self.text(&format!("{{\"$timestamp\":{{\"t\":{time},\"i\":{increment}}}}}"))
            }
            0x12 => {
                let number = self.reader.integer(element)?;
                self.number("$numberLong", &number.to_string(), self.relaxed)
            }
            0x13 => {
                let text = decimal::print(u128::from_le_bytes(self.reader.array(at)?));
                self.wrapped("$numberDecimal", &text)
            }
            0x7f => self.text("{\"$maxKey\":1}"),
            _ => self.text("{\"$minKey\":1}"),
        }
    }

    fn date(&mut self, milliseconds: i64) -> Result<()> {
        let mut text = Vec::new();
        let is_text = self.relaxed
            && TEXT_DATES.contains(&milliseconds)
            && write_timestamp(&mut text, milliseconds, TimeUnit::Millisecond, &Zone::Fixed(0));
        if is_text {
            return self.wrapped("$date", &String::from_utf8_lossy(&text));
        }
        self.text(&format!("{{\"$date\":{{\"$numberLong\":\"{milliseconds}\"}}}}"))
    }

    fn binary(&mut self, element: &Element) -> Result<()> {
        let [sub_type] = self.reader.array(element.value_offset + 4)?;
        let (mut offset, mut left) = (element.value_offset + 5, element.value_bytes - 5);
        // Sub-type 2 has a second length in front of its bytes.
        if sub_type == 2 && left >= 4 {
            (offset, left) = (offset + 4, left - 4);
        }
        self.text("{\"$binary\":{\"base64\":\"")?;
        let mut text = Vec::new();
        while left > 0 {
            let bytes = self.reader.bytes(offset, left.min(PIECE_BYTES))?;
            if bytes.is_empty() {
                return Err(Error::truncated(format_args!("{left} bytes"), "the end").at(offset));
            }
            text.clear();
            base64_simd::STANDARD.encode_append(&bytes, &mut text);
            self.out.write_all(&text)?;
            (offset, left) = (offset + bytes.len() as u64, left - bytes.len() as u64);
        }
        self.text(&format!("\",\"subType\":\"{sub_type:02x}\"}}}}"))
    }

    /// A number as JSON's own, or as text under the name of its type.
    fn number(&mut self, name: &str, text: &str, plain: bool) -> Result<()> {
        if plain { self.text(text) } else { self.wrapped(name, text) }
    }

    fn wrapped(&mut self, name: &str, text: &str) -> Result<()> {
        self.text(&format!("{{\"{name}\":"))?;
        self.quoted(text)?;
        self.text("}")
    }

    fn quoted(&mut self, text: &str) -> Result<()> {
        let mut quoted = Vec::new();
        write_string(&mut quoted, text);
        Ok(self.out.write_all(&quoted)?)
    }

    fn text(&mut self, text: &str) -> Result<()> {
        Ok(self.out.write_all(text.as_bytes())?)
    }
}

/// The value of an element in words that metadata shows: text as it is, anything else as relaxed Extended JSON.
pub(super) fn element_text(reader: Reader, element: &Element, limits: &Limits) -> Result<String> {
    let mut text = Vec::new();
    let mut printer = JsonPrinter { reader, relaxed: true, limits, out: &mut text };
    if element.kind == BsonKind::STRING {
        return printer.reader.string(element);
    }
    printer.value(element, 0)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
