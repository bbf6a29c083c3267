//! Encoders of the compressions around a file.

use std::io::{self, Write};

use bzip2::write::BzEncoder;

use super::deflate::{Deflated, Deflater};
use crate::control::Control;
use crate::source::Packing;

/// The header of a gzip member (RFC 1952): no name, no time, an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Compresses the bytes written.
pub(super) enum Encoder<W: Write> {
    Gzip(Deflater<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Bzip2(BzEncoder<W>),
}

impl<W: Write> Encoder<W> {
    /// An encoder that uses the threads of a job.
    pub(super) fn new(packing: Packing, mut target: W, control: &Control) -> io::Result<Self> {
        Ok(match packing {
            Packing::Gzip => {
                target.write_all(&GZIP_HEADER)?;
                Encoder::Gzip(Deflater::new(target, control))
            }
            Packing::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(target, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(encoder)
            }
            Packing::Bzip2 => Encoder::Bzip2(BzEncoder::new(target, bzip2::Compression::default())),
        })
    }

    pub(super) fn get_mut(&mut self) -> &mut W {
        match self {
            Encoder::Gzip(encoder) => encoder.get_mut(),
            Encoder::Zstd(encoder) => encoder.get_mut(),
            Encoder::Bzip2(encoder) => encoder.get_mut(),
        }
    }

    /// Completes the compressed stream and returns the target.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Encoder::Gzip(encoder) => {
                let Deflated { mut target, crc, bytes } = encoder.finish()?;
                target.write_all(&crc.to_le_bytes())?;
                // The length modulo 2^32.
                let [low @ .., _, _, _, _] = bytes.to_le_bytes();
                target.write_all(&low)?;
                Ok(target)
            }
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Bzip2(encoder) => encoder.finish(),
        }
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Encoder::Gzip(encoder) => encoder.write(bytes),
            Encoder::Zstd(encoder) => encoder.write(bytes),
            Encoder::Bzip2(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoder::Gzip(encoder) => encoder.flush(),
            Encoder::Zstd(encoder) => encoder.flush(),
            Encoder::Bzip2(encoder) => encoder.flush(),
        }
    }
}
