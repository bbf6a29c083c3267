//! 128-bit integers and floats in 16 bytes.

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeBinaryArray};
use arrow_buffer::{Buffer, NullBuffer};

use super::{Decode, Input};
use crate::error::{Error, Result};
use crate::wire::json::Scanner;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKind {
    Signed,
    Unsigned,
    Float,
}

pub(super) struct Words {
    kind: WordKind,
    values: Vec<u128>,
}

impl Words {
    pub(super) fn new(kind: WordKind) -> Self {
        Words { kind, values: Vec::new() }
    }

    fn parse(&self, text: &[u8]) -> Result<u128> {
        let plain = std::str::from_utf8(text).ok();
        let (value, expected) = match self.kind {
            WordKind::Signed => {
                (plain.and_then(|text| text.parse::<i128>().ok()).map(i128::cast_unsigned), "int128")
            }
            WordKind::Unsigned => (plain.and_then(|text| text.parse().ok()), "uint128"),
            WordKind::Float => {
                let digits = plain.and_then(|text| text.strip_prefix("0x"));
                let digits = digits.filter(|digits| {
                    digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                });
                let bits = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
                (bits, "float128 as 0x and 32 hex digits")
            }
        };
        value.ok_or_else(|| super::unfit(expected, text))
    }
}

impl<R: Input> Decode<R> for Words {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        let value = match self.kind {
            WordKind::Signed => scanner.i128()?.cast_unsigned(),
            WordKind::Unsigned => scanner.u128()?,
            WordKind::Float => {
                scanner.peek()?;
                let offset = scanner.offset();
                let text = scanner.str_bytes()?;
                self.parse(text).map_err(|error| error.at(offset))?
            }
        };
        self.values.push(value);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        let value = self.parse(text)?;
        self.values.push(value);
        Ok(())
    }

    fn null(&mut self) {
        self.values.push(0);
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let count = self.values.len();
        let bytes: Vec<u8> =
            std::mem::take(&mut self.values).iter().flat_map(|word| word.to_le_bytes()).collect();
        let array = FixedSizeBinaryArray::try_new_with_len(16, Buffer::from(bytes), nulls, count);
        array.map(|array| Arc::new(array) as ArrayRef).map_err(Error::from)
    }
}
