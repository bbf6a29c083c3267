//! [`Deflater`]: a DEFLATE stream whose pieces are compressed side by side.
//!
//! A piece starts with the window that the piece before it leaves, so that its matches may reach back into it, and ends at
//! a byte, with an empty stored block. Where a piece ends depends on the bytes alone, not on the number of threads.

use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

use crate::control::Control;

/// The bytes of a piece: an empty block and the start of a compressor are nothing against it.
const PIECE_BYTES: usize = 256 << 10;
/// How many pieces wait at the most, whatever the number of threads.
const MOST_PIECES: usize = 64;
/// The farthest that a match reaches back.
const WINDOW_BYTES: usize = 32 << 10;

/// Compresses the bytes written. [`finish`](Self::finish) completes the stream.
pub(crate) struct Deflater<W> {
    target: W,
    control: Control,
    /// The window of bytes that are compressed, then those that wait.
    bytes: Vec<u8>,
    window_bytes: usize,
    crc: Crc,
    total_bytes: u64,
    /// How many bytes may wait: a piece, or two for each of several threads.
    most_waiting: usize,
}

/// A stream that is complete.
pub(crate) struct Deflated<W> {
    pub(crate) target: W,
    /// Of the bytes before compression.
    pub(crate) crc: u32,
    pub(crate) bytes: u64,
}

impl<W: Write> Deflater<W> {
    pub(crate) fn new(target: W, control: &Control) -> Self {
        let pieces =
            if control.threads() == 1 { 1 } else { control.threads().saturating_mul(2).min(MOST_PIECES) };
        let (control, most_waiting) = (control.clone(), pieces * PIECE_BYTES);
        let (bytes, crc) = (Vec::new(), Crc::new());
        Deflater { target, control, bytes, window_bytes: 0, crc, total_bytes: 0, most_waiting }
    }

    pub(crate) fn get_mut(&mut self) -> &mut W {
        &mut self.target
    }

    /// Completes the stream.
    pub(crate) fn finish(mut self) -> io::Result<Deflated<W>> {
        self.compress(true)?;
        Ok(Deflated { target: self.target, crc: self.crc.sum(), bytes: self.total_bytes })
    }

    /// Compresses what waits.
    fn compress(&mut self, is_end: bool) -> io::Result<()> {
        let (bytes, end) = (&self.bytes, self.bytes.len());
        let mut starts: Vec<usize> = (self.window_bytes..end).step_by(PIECE_BYTES).collect();
        if starts.is_empty() {
            starts.push(end);
        }
        let packed = self.control.map(starts, |start| {
            let (before, rest) = bytes.split_at(start);
            let window = before.get(before.len().saturating_sub(WINDOW_BYTES)..).unwrap_or_default();
            let piece = rest.get(..PIECE_BYTES).unwrap_or(rest);
            let mut crc = Crc::new();
            crc.update(piece);
            Ok((deflate(window, piece, is_end && piece.len() == rest.len())?, crc))
        })?;
        for piece in packed {
            let (packed, crc) = piece?;
            self.crc.combine(&crc);
            self.target.write_all(&packed)?;
        }
        self.bytes.drain(..end.saturating_sub(WINDOW_BYTES));
        self.window_bytes = self.bytes.len();
        Ok(())
    }
}

impl<W: Write> Write for Deflater<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = |this: &Self| this.most_waiting - (this.bytes.len() - this.window_bytes);
        // Not before more bytes come: the last piece of a stream ends it.
        if room(self) == 0 && !bytes.is_empty() {
            self.compress(false)?;
        }
        let taken = bytes.get(..room(self)).unwrap_or(bytes);
        self.bytes.extend_from_slice(taken);
        self.total_bytes += taken.len() as u64;
        Ok(taken.len())
    }

    /// Does nothing: where a piece ends does not depend on the caller.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses a piece that follows `window`. The last one ends the stream.
#[expect(clippy::disallowed_methods, reason = "sized by bytes that are there already")]
fn deflate(window: &[u8], piece: &[u8], is_last: bool) -> io::Result<Vec<u8>> {
    let mut stream = Compress::new(Compression::default(), false);
    if !window.is_empty() {
        stream.set_dictionary(window)?;
    }
    let flush = if is_last { FlushCompress::Finish } else { FlushCompress::Sync };
    let mut packed = Vec::with_capacity(piece.len() / 2 + 64);
    loop {
        let taken = usize::try_from(stream.total_in()).unwrap_or(usize::MAX);
        let status = stream.compress_vec(piece.get(taken..).unwrap_or_default(), &mut packed, flush)?;
        // A flush is complete where it leaves room.
        if status == Status::StreamEnd || !is_last && packed.len() < packed.capacity() {
            return Ok(packed);
        }
        packed.reserve(piece.len() / 2 + 64);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn packed(bytes: &[u8], threads: usize, step: usize) -> Vec<u8> {
        let mut deflater = Deflater::new(Vec::new(), &Control::new(threads));
        bytes.chunks(step).for_each(|chunk| deflater.write_all(chunk).unwrap());
        let done = deflater.finish().unwrap();
        let mut crc = Crc::new();
        crc.update(bytes);
        assert_eq!((done.crc, done.bytes), (crc.sum(), bytes.len() as u64));
        done.target
    }

    fn unpacked(packed: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut decoder = flate2::read::DeflateDecoder::new(packed);
        decoder.read_to_end(&mut bytes).unwrap();
        assert_eq!(decoder.total_in(), packed.len() as u64, "nothing follows the last block");
        bytes
    }

    /// Bytes that do not repeat, without a dependency on a generator of another crate.
    fn noise(count: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn streams_of_any_length_are_read_by_another_decoder_and_do_not_depend_on_threads() {
        let text: Vec<u8> = (0..400_000u32).flat_map(|number| format!("{number},").into_bytes()).collect();
        let lengths = [0, 1, 2, WINDOW_BYTES, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES];
        for bytes in [text, noise(5 * PIECE_BYTES), vec![0; 5 * PIECE_BYTES]] {
            for length in lengths.into_iter().chain([4 * PIECE_BYTES, 4 * PIECE_BYTES + 1, bytes.len()]) {
                let bytes = &bytes[..length];
                let one = packed(bytes, 1, 7001);
                assert!(unpacked(&one) == bytes, "{length} bytes");
                for threads in [2, 3] {
                    assert!(packed(bytes, threads, 1 << 20) == one, "{length} bytes, {threads} threads");
                }
            }
        }
    }

    #[test]
    fn matches_reach_into_the_piece_before() {
        // The same noise every 30,000 bytes: without a window, each piece would have to hold it once.
        let bytes = noise(30_000).repeat(40);
        assert!(packed(&bytes, 2, 1 << 20).len() < 45_000);
    }

    #[test]
    fn a_cancelled_job_compresses_no_more() {
        let control = Control::new(2);
        let mut deflater = Deflater::new(Vec::new(), &control);
        control.cancel();
        assert!(deflater.write_all(&noise(5 * PIECE_BYTES)).is_err());
    }
}
