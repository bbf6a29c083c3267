//! Bytes that wait until their header can be written: in memory at first, then in a temporary file.

use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::source::Source;

/// More than this goes to a temporary file.
const MEMORY_BYTES: usize = 8 << 20;

/// Bytes are copied so many at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// Bytes in waiting.
#[derive(Default)]
pub(crate) struct Spool {
    memory: Vec<u8>,
    file: Option<BufWriter<NamedTempFile>>,
}

impl Spool {
    /// Copies all of them, in pieces whose ends fall between numbers.
    pub(crate) fn copy_to(self, out: &mut dyn Write) -> Result<()> {
        out.write_all(&self.memory)?;
        if let Some(file) = self.file {
            let mut file = file.into_inner().map_err(|error| spooling(error.into_error()))?;
            file.seek(SeekFrom::Start(0)).map_err(spooling)?;
            let mut chunk = Vec::new();
            while Read::by_ref(&mut file).take(CHUNK_BYTES).read_to_end(&mut chunk).map_err(spooling)? > 0 {
                out.write_all(&chunk)?;
                chunk.clear();
            }
        }
        Ok(())
    }

    /// As a source that can be read at any offset, for as long as the second part is kept.
    pub(crate) fn into_source(self) -> Result<(Source, Option<NamedTempFile>)> {
        match self.file {
            None => Ok((Source::from_bytes("spool", self.memory), None)),
            Some(file) => {
                let file = file.into_inner().map_err(|error| spooling(error.into_error()))?;
                Ok((Source::open(file.path())?, Some(file)))
            }
        }
    }
}

fn spooling(error: io::Error) -> Error {
    Error::io("cannot spool to a temporary file", error)
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() && self.memory.len() + bytes.len() > MEMORY_BYTES {
            let mut file = BufWriter::new(NamedTempFile::new()?);
            file.write_all(&std::mem::take(&mut self.memory))?;
            self.file = Some(file);
        }
        match &mut self.file {
            Some(file) => file.write_all(bytes)?,
            None => self.memory.extend_from_slice(bytes),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
