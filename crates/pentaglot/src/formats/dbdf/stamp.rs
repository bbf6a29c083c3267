//! The stamp in our `.meta` files, which identifies the data that they belong to.
//!
//! Two files cannot be renamed in one step, so data and `.meta` may be of different versions. Length and checksums of
//! the data detect this.

use serde_json::{Value, json};

use crate::error::Result;
use crate::sink::{END_BYTES, Ends};
use crate::source::Source;

/// The key of the stamp in a `.meta` file; DAPHNE ignores unknown keys.
pub(super) const KEY: &str = "pentaglotData";

/// The length of the data, and the CRC-32 of its first and its last 64 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    bytes: u64,
    first: u32,
    last: u32,
}

impl Stamp {
    /// The stamp of the data written.
    pub(super) fn of_written(ends: &Ends) -> Stamp {
        let (bytes, first, last) = ends.parts();
        Stamp { bytes, first: crc(first), last: crc(last) }
    }

    /// The stamp of a file; `None` for a stream, whose end is not known.
    pub(super) fn of(source: &Source) -> Result<Option<Stamp>> {
        let Some(bytes) = source.len() else { return Ok(None) };
        let mut room = vec![0; END_BYTES];
        let mut end = |offset: u64| -> Result<u32> {
            let count = source.read_at(offset, &mut room)?;
            Ok(crc(room.get(..count).unwrap_or_default()))
        };
        let first = end(0)?;
        let last = if bytes > END_BYTES as u64 { end(bytes - END_BYTES as u64)? } else { first };
        Ok(Some(Stamp { bytes, first, last }))
    }

    /// Reads the value of [`KEY`]. An unknown form matches no data.
    pub(super) fn parse(value: &Value) -> Stamp {
        let number = |key: &str| value.get(key).and_then(Value::as_u64);
        let sum = |key: &str| number(key).and_then(|sum| u32::try_from(sum).ok());
        match (number("bytes"), sum("crc32First"), sum("crc32Last")) {
            (Some(bytes), Some(first), Some(last)) => Stamp { bytes, first, last },
            _ => Stamp { bytes: u64::MAX, first: 0, last: 0 },
        }
    }

    pub(super) fn to_json(self) -> Value {
        json!({ "bytes": self.bytes, "crc32First": self.first, "crc32Last": self.last })
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}
