//! Text in other encodings than UTF-8, decoded as it is read.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::error::{Error, Result};
use crate::formats::OptionMap;
use crate::source::{Source, SourceReader};

/// How much is read at a time.
const INPUT_BYTES: usize = 16 << 10;
/// A byte becomes at most three.
const OUTPUT_BYTES: usize = 3 * INPUT_BYTES + 16;

/// The encoding that `-O encoding=` or a byte order mark says; `None` for UTF-8.
pub(super) fn encoding(options: &OptionMap, source: &Source) -> Result<Option<&'static Encoding>> {
    let encoding = match options.get("encoding") {
        Some(label) => Encoding::for_label(label.as_bytes()).ok_or_else(|| {
            let examples = "utf-8, utf-16le, latin1, windows-1250, shift_jis";
            Error::usage(format!("option encoding: expected an encoding such as {examples}, found {label:?}"))
        })?,
        None => marked(&source.head()?).unwrap_or(UTF_8),
    };
    Ok((encoding != UTF_8).then_some(encoding))
}

/// The encoding that a byte order mark of UTF-16 says.
pub(super) fn marked(head: &[u8]) -> Option<&'static Encoding> {
    match head {
        [0xff, 0xfe, ..] => Some(UTF_16LE),
        [0xfe, 0xff, ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// The source as UTF-8.
pub(super) fn decoded(source: &Source, encoding: &'static Encoding) -> Result<Source> {
    source.through(source.name(), move |input| {
        let decoder = encoding.new_decoder_with_bom_removal();
        Ok(Box::new(Decoded {
            input,
            encoding,
            decoder,
            raw: Vec::new(),
            used: 0,
            text: Vec::new(),
            given: 0,
            offset: 0,
            ended: false,
        }))
    })
}

struct Decoded {
    input: SourceReader,
    encoding: &'static Encoding,
    decoder: Decoder,
    /// Bytes that are read, of which the first `used` are decoded.
    raw: Vec<u8>,
    used: usize,
    /// Text that is decoded, of which the first `given` bytes are given on.
    text: Vec<u8>,
    given: usize,
    /// The offset in the file of the first byte of `raw`.
    offset: u64,
    ended: bool,
}

impl Decoded {
    fn fill(&mut self) -> io::Result<()> {
        (self.given, self.offset, self.used) = (0, self.offset + self.used as u64, 0);
        self.raw.resize(INPUT_BYTES, 0);
        let count = self.input.read(&mut self.raw)?;
        self.raw.truncate(count);
        self.ended = count == 0;
        self.text.resize(OUTPUT_BYTES, 0);
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(&self.raw, &mut self.text, self.ended);
        self.text.truncate(written);
        self.used = read;
        match result {
            DecoderResult::InputEmpty => Ok(()),
            DecoderResult::OutputFull => {
                Err(io::Error::other("text that is longer than its encoding allows"))
            }
            DecoderResult::Malformed(bad, after) => {
                let end = self.offset + read as u64;
                let at = end.saturating_sub(u64::from(bad) + u64::from(after));
                let expected = format!("{} text", self.encoding.name());
                Err(Error::malformed(expected, "other bytes").at(at).rule("encoding").into())
            }
        }
    }
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.ended {
            self.fill()?;
        }
        let rest = self.text.get(self.given..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(target), Some(bytes)) = (buffer.get_mut(..count), rest.get(..count)) {
            target.copy_from_slice(bytes);
        }
        self.given += count;
        Ok(count)
    }
}
