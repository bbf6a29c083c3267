//! Lines of numbers, written into memory that is there already: by stores of a fixed number of bytes, of which the next ones
//! overwrite what is too much.

/// No line is longer: two positions and two floats, of at most 25 bytes each, and what a store writes past its end.
const LINE_BYTES: usize = 160;
/// The text grows by this much.
const MORE_BYTES: usize = 64 << 10;

/// Text that grows line by line. Its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Longer than the text.
    bytes: Vec<u8>,
    end: usize,
}

impl Lines {
    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    /// All lines.
    pub(super) fn text(&self) -> &[u8] {
        self.bytes.get(..self.end).unwrap_or_default()
    }

    /// Appends what `write` puts at the start of the room for a line.
    #[inline(always)]
    pub(super) fn add<E>(&mut self, write: impl FnOnce(&mut Line<'_>) -> Result<(), E>) -> Result<(), E> {
        if self.bytes.len() - self.end < LINE_BYTES {
            self.bytes.resize(self.end + MORE_BYTES, 0);
        }
        let room = self.bytes.get_mut(self.end..).and_then(|room| room.first_chunk_mut());
        if let Some(bytes) = room {
            let mut line = Line { bytes, end: 0 };
            write(&mut line)?;
            self.end += line.end;
        }
        Ok(())
    }
}

/// The room for one line. What does not fit is left out; nothing that is written here is so long.
pub(super) struct Line<'t> {
    bytes: &'t mut [u8; LINE_BYTES],
    end: usize,
}

impl Line<'_> {
    #[inline(always)]
    fn store<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        // An array of a known length, so that no function is called to copy it.
        if let Some(place) = self.bytes.get_mut(at..).and_then(|room| room.first_chunk_mut()) {
            *place = bytes;
        }
    }

    #[inline(always)]
    pub(super) fn byte(&mut self, byte: u8) {
        self.store(self.end, [byte]);
        self.end += 1;
    }

    /// Appends the first bytes of an array.
    #[inline(always)]
    pub(super) fn first<const N: usize>(&mut self, bytes: [u8; N], count: usize) {
        self.store(self.end, bytes);
        self.end += count;
    }

    /// Appends a text: two stores, which overlap unless it has just twice their length.
    #[inline(always)]
    pub(super) fn text(&mut self, text: &[u8]) {
        let end = self.end + text.len();
        if let (Some(first), Some(last)) = (text.first_chunk::<16>(), text.last_chunk::<16>())
            && text.len() <= 32
        {
            self.store(self.end, *first);
            self.store(end - 16, *last);
        } else if let (Some(first), Some(last), ..16) =
            (text.first_chunk::<8>(), text.last_chunk::<8>(), text.len())
        {
            self.store(self.end, *first);
            self.store(end - 8, *last);
        } else if let Some(place) = self.bytes.get_mut(self.end..end) {
            place.copy_from_slice(text);
        }
        self.end = end;
    }

    /// Appends a number.
    #[inline(always)]
    pub(super) fn unsigned(&mut self, value: u64) {
        match u32::try_from(value) {
            Ok(value @ ..100_000_000) => {
                let digits = eight_digits(value);
                // Zeros in front are in the lowest bytes; one digit stays.
                let zeros = (digits | 1 << 56).trailing_zeros() / 8;
                let text = (digits | 0x3030_3030_3030_3030) >> (8 * zeros);
                self.first(text.to_le_bytes(), 8 - zeros as usize);
            }
            _ => self.text(itoa::Buffer::new().format(value).as_bytes()),
        }
    }

    /// Appends a number.
    #[inline(always)]
    pub(super) fn signed(&mut self, value: i64) {
        if value < 0 {
            self.byte(b'-');
        }
        self.unsigned(value.unsigned_abs());
    }

    /// Appends the shortest text that parses back to the same float; a whole number has no point.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "compared with the value")]
    pub(super) fn float(&mut self, value: f64) {
        // Where no exponent is written, `zmij` has the layout of the standard library, and is faster.
        if !(1e-4..1e15).contains(&value.abs()) {
            return self.rare_float(value);
        }
        let whole = value as i64;
        if whole as f64 == value {
            self.signed(whole);
        } else {
            self.text(zmij::Buffer::new().format_finite(value).as_bytes());
        }
    }

    #[cold]
    fn rare_float(&mut self, value: f64) {
        let text = if value.is_nan() { "nan".to_owned() } else { format!("{value:?}") };
        self.text(text.strip_suffix(".0").unwrap_or(&text).as_bytes());
    }
}

/// The digits of a number below 10^8, the first in the lowest byte: it is split into two of four digits, those into pairs, and
/// those into digits, with all parts side by side in one word. Divisions are multiplications by a rounded reciprocal.
#[inline(always)]
fn eight_digits(value: u32) -> u64 {
    let fours = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let pairs = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (pairs - 10 * tens) << 8
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(write: impl FnOnce(&mut Line<'_>)) -> String {
        let mut lines = Lines::default();
        let Ok::<(), ()>(()) = lines.add(|line| {
            write(line);
            Ok(())
        }) else {
            unreachable!()
        };
        String::from_utf8(lines.text().to_vec()).unwrap()
    }

    /// Where no exponent is written, of two shortest texts that are equally near, the one with an even last digit.
    fn plain(value: f64) -> String {
        let text = match value.abs() {
            1e-4..1e15 => ryu::Buffer::new().format_finite(value).to_owned(),
            _ if value.is_nan() => "nan".to_owned(),
            _ => format!("{value:?}"),
        };
        text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
    }

    #[test]
    fn numbers_of_every_length_are_printed() {
        for power in 0..=19 {
            let ten = 10u64.pow(power);
            for value in [ten - 1, ten, ten + 1, ten / 2, ten / 3, u64::MAX / ten] {
                assert_eq!(line(|line| line.unsigned(value)), value.to_string());
                let value = value as i64;
                assert_eq!(line(|line| line.signed(value)), value.to_string());
                let value = value.wrapping_neg();
                assert_eq!(line(|line| line.signed(value)), value.to_string());
            }
        }
        assert_eq!(line(|line| line.signed(i64::MIN)), i64::MIN.to_string());
        for value in
            [0.0, -0.0, f64::NAN, f64::INFINITY, f64::MIN, f64::MIN_POSITIVE, -5e-324, 1e-4, 1e15, 1e16]
        {
            assert_eq!(line(|line| line.float(value)), plain(value));
        }
    }

    #[test]
    fn texts_of_every_length_are_appended() {
        let text: String = ('a'..='z').chain('A'..='Z').collect();
        for end in 0..=text.len() {
            let text = text.get(..end).unwrap();
            let twice = line(|line| {
                line.text(text.as_bytes());
                line.byte(b' ');
                line.text(text.as_bytes());
            });
            assert_eq!(twice, format!("{text} {text}"));
        }
    }

    #[test]
    fn the_memory_of_lines_is_used_again() {
        let mut lines = Lines::default();
        for round in 0..3 {
            let mut expected = String::new();
            for number in 0..50_000 {
                let written = lines.add(|line| {
                    line.unsigned(number * 7 + round);
                    line.byte(b'\n');
                    Ok::<(), ()>(())
                });
                written.unwrap();
                expected.push_str(&format!("{}\n", number * 7 + round));
            }
            assert_eq!(lines.text(), expected.as_bytes());
            lines.clear();
            assert!(lines.text().is_empty());
        }
    }

    #[test]
    fn the_longest_line_fits() {
        let text = line(|line| {
            (0..2).for_each(|_| {
                line.unsigned(u64::MAX);
                line.byte(b' ');
            });
            (0..2).for_each(|_| {
                line.float(-2.2250738585072014e-308);
                line.byte(b' ');
            });
            line.byte(b'\n');
        });
        assert!(text.len() + 32 <= LINE_BYTES && text.ends_with("e-308 \n"), "{text}");
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_other_printers(value: u64, less in 0..64, bits: u64) {
            let value = value >> less;
            prop_assert_eq!(line(|line| line.unsigned(value)), value.to_string());
            prop_assert_eq!(line(|line| line.signed(value as i64)), (value as i64).to_string());
            for value in [f64::from_bits(bits), value as f64 / 1000.0] {
                prop_assert_eq!(line(|line| line.float(value)), plain(value));
            }
        }
    }
}
