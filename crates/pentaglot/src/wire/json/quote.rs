//! The text of a JSON string: where it needs escapes, and how to write them.

/// A run of bytes that a JSON string holds unescaped.
pub(crate) struct PlainRun {
    /// How many bytes.
    pub(crate) len: usize,
    /// Whether all of them are ASCII.
    pub(crate) ascii: bool,
}

/// The bytes up to the first `"`, `\` or control character.
///
/// The plain version: a search for the first of these bytes. Eight at a time: in `word ^ pattern` the byte searched
/// for is zero; subtracting one from each byte sets the top bit of a zero byte first (borrows only reach higher bytes,
/// after the first hit).
#[inline]
pub(crate) fn plain_run(bytes: &[u8]) -> PlainRun {
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
            return PlainRun { len: len + bits as usize / 8, ascii: (all | before) & TOPS == 0 };
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
    PlainRun { len, ascii }
}

/// Appends a JSON string with its quotes and the fewest escapes.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, tail) = rest.split_at(plain_run(rest).len);
        out.extend_from_slice(plain);
        let Some((byte, tail)) = tail.split_first() else { break };
        rest = tail;
        write_escape(out, *byte);
    }
    out.push(b'"');
}

#[cold]
fn write_escape(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        control => {
            out.extend_from_slice(format!("\\u{control:04x}").as_bytes());
        }
    }
}
