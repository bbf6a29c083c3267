//! Encoders of the compressions around a file.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;

use crate::source::Packing;

/// Compresses the bytes written.
pub(super) enum Encoder<W: Write> {
    Gzip(GzEncoder<W>),
    Zstd(zstd::stream::write::Encoder<'static, W>),
    Bzip2(BzEncoder<W>),
}

impl<W: Write> Encoder<W> {
    pub(super) fn new(packing: Packing, target: W) -> io::Result<Self> {
        Ok(match packing {
            Packing::Gzip => Encoder::Gzip(GzEncoder::new(target, flate2::Compression::default())),
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
            Encoder::Gzip(encoder) => encoder.finish(),
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
