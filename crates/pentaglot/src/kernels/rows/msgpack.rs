//! Cells of MessagePack (its codes: `wire/msgpack.rs`).

use super::{Integer, Wire, append};

/// Rows of MessagePack: each an array of cells.
#[derive(Clone)]
pub(crate) struct MsgPack<'a> {
    rest: &'a [u8],
    len: usize,
    /// Integers are taken as floats.
    lenient: bool,
    /// Whether each row is a cell without a header.
    bare: bool,
}

impl<'a> MsgPack<'a> {
    pub(crate) fn new(bytes: &'a [u8], lenient: bool) -> Self {
        MsgPack { rest: bytes, len: bytes.len(), lenient, bare: false }
    }

    /// The elements of an array, each like a row of one cell.
    pub(crate) fn elements(bytes: &'a [u8], lenient: bool) -> Self {
        MsgPack { bare: true, ..MsgPack::new(bytes, lenient) }
    }

    /// The next 9 bytes: a code and the longest number that can follow it.
    #[inline(always)]
    fn peek(&self) -> Option<&'a [u8; 9]> {
        self.rest.first_chunk()
    }

    #[inline(always)]
    fn advance(&mut self, count: usize) -> Option<()> {
        self.rest = self.rest.get(count..)?;
        Some(())
    }

    /// The length of a string or of bytes, which are interchangeable.
    #[inline(always)]
    fn length(&mut self) -> Option<usize> {
        let [code, a, b, c, d, ..] = *self.peek()?;
        let (len, header) = match code {
            0xa0..=0xbf => (u32::from(code & 0x1f), 1),
            0xc4 | 0xd9 => (u32::from(a), 2),
            0xc5 | 0xda => (u32::from(u16::from_be_bytes([a, b])), 3),
            0xc6 | 0xdb => (u32::from_be_bytes([a, b, c, d]), 5),
            _ => return None,
        };
        self.advance(header)?;
        Some(len as usize)
    }
}

/// How an integer follows its code: which bits to move where.
#[derive(Clone, Copy)]
struct Form {
    /// How many bytes it takes with its code; 0 if the code is not that of an integer.
    len: u8,
    /// How far the first eight bytes after the code must be shifted right.
    shift: u8,
    /// Whether the number is part of the code itself.
    inside: bool,
    unsigned: bool,
}

/// The widths of integers follow no pattern: a branch would often be mispredicted, a table lookup has no branch.
const FORMS: [Form; 256] = {
    let mut forms = [Form { len: 0, shift: 0, inside: false, unsigned: false }; 256];
    let mut code = 0;
    while code < 256 {
        if code < 0x80 || code >= 0xe0 {
            forms[code] = Form { len: 1, shift: 56, inside: true, unsigned: false };
        }
        code += 1;
    }
    let mut width = 0;
    while width < 4 {
        let bytes = 1 << width;
        let form = Form { len: 1 + bytes, shift: 64 - 8 * bytes, inside: false, unsigned: true };
        forms[0xcc + width] = form;
        forms[0xd0 + width] = Form { unsigned: false, ..form };
        width += 1;
    }
    forms
};

impl Wire for MsgPack<'_> {
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    #[inline(always)]
    fn begin(&mut self, cells: usize) -> Option<()> {
        if self.bare {
            return Some(());
        }
        let [code, a, b, c, d, ..] = *self.peek()?;
        let (count, header) = match code {
            0x90..=0x9f => (u32::from(code & 0x0f), 1),
            0xdc => (u32::from(u16::from_be_bytes([a, b])), 3),
            0xdd => (u32::from_be_bytes([a, b, c, d]), 5),
            _ => return None,
        };
        if count as usize != cells {
            return None;
        }
        self.advance(header)
    }

    #[inline(always)]
    fn separator(&mut self, _: bool) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    fn end(&mut self) -> Option<()> {
        Some(())
    }

    #[inline(always)]
    fn null(&mut self) -> bool {
        match self.rest.split_first() {
            Some((0xc0, rest)) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    fn bool(&mut self) -> Option<bool> {
        let (code, rest) = self.rest.split_first()?;
        self.rest = rest;
        (code | 1 == 0xc3).then_some(*code == 0xc3)
    }

    #[inline(always)]
    fn integer<T: Integer>(&mut self) -> Option<T> {
        let [code, a, b, c, d, e, f, g, h] = *self.peek()?;
        let form = FORMS[code as usize];
        if form.len == 0 {
            return None;
        }
        let inside = u64::from(code) << 56;
        let behind = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let word = if form.inside { inside } else { behind };
        let bits = word >> form.shift;
        // Sign extension: the sign bit of the number, if it has one, is flipped and then subtracted.
        let sign = u64::from(!form.unsigned) << (63 - form.shift);
        self.advance(form.len as usize)?;
        T::from_bits((bits ^ sign).wrapping_sub(sign), form.unsigned)
    }

    #[inline(always)]
    fn float64(&mut self) -> Option<f64> {
        let [code, a, b, c, d, e, f, g, h] = *self.peek()?;
        if code == 0xcb {
            self.advance(9)?;
            return Some(f64::from_be_bytes([a, b, c, d, e, f, g, h]));
        }
        if code == 0xca {
            self.advance(5)?;
            return Some(f64::from(f32::from_be_bytes([a, b, c, d])));
        }
        if !self.lenient {
            return None;
        }
        self.integer::<i64>().map(|value| value as f64)
    }

    #[inline(always)]
    fn float32(&mut self) -> Option<f32> {
        let [code, a, b, c, d, e, f, g, h] = *self.peek()?;
        match code {
            0xca => {
                self.advance(5)?;
                Some(f32::from_be_bytes([a, b, c, d]))
            }
            0xcb => {
                self.advance(9)?;
                let double = f64::from_be_bytes([a, b, c, d, e, f, g, h]);
                let single = double as f32;
                (single.is_finite() || !double.is_finite()).then_some(single)
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn text(&mut self, text: &mut Vec<u8>) -> Option<()> {
        let len = self.length()?;
        append(self.rest, len, text)?;
        self.advance(len)
    }

    #[inline(always)]
    fn bytes(&mut self, len: usize, bytes: &mut Vec<u8>) -> Option<()> {
        if self.length()? != len {
            return None;
        }
        let (image, rest) = self.rest.split_at_checked(len)?;
        bytes.extend_from_slice(image);
        self.rest = rest;
        Some(())
    }

    fn skip(&mut self) -> Option<()> {
        let len = match self.rest.first()? {
            0xc2 | 0xc3 | 0xc0 => 1,
            0xca => 5,
            0xcb => 9,
            0xa0..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdb => self.length()?,
            code => match FORMS[*code as usize].len {
                0 => return None,
                len => len as usize,
            },
        };
        self.advance(len)
    }
}
