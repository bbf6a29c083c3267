//! `merkle[T]`: a link to data, as `(type, bytes)`. The type is that of the data and matches `T`; the bytes are a multihash of
//! the data's serialization. Reading and writing do not follow links: a store does.

use super::walk::hex;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::wire::varint;

/// The multihash code of BLAKE3.
pub const BLAKE3_CODE: u64 = 0x1e;

/// The multihash of a BLAKE3 digest: varint code, varint length, the digest.
///
/// ```
/// use pentaglot::formats::dynd::{Value, blake3_multihash, write_value};
/// let digest = [7; 32];
/// let link = Value::merkle("3 * int32".parse()?, blake3_multihash(&digest));
/// let bytes = write_value(&"merkle[3 * int32]".parse()?, &link)?;
/// assert_eq!(bytes.len(), 1 + "3 * int32".len() + 1 + 2 + 32);
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn blake3_multihash(digest: &[u8; 32]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::write(BLAKE3_CODE, &mut out);
    varint::write(digest.len() as u64, &mut out);
    out.extend_from_slice(digest);
    out
}

/// The digest of a multihash, if it is one of BLAKE3 with 32 bytes.
pub fn blake3_digest(multihash: &[u8]) -> Option<[u8; 32]> {
    let [0x1e, 32, digest @ ..] = multihash else { return None };
    digest.try_into().ok()
}

/// Errs unless the bytes are one multihash. The error has no offset.
pub(super) fn check_multihash(bytes: &[u8]) -> Result<()> {
    let mut cursor = Cursor::new(bytes);
    let length = varint::read(&mut cursor).and_then(|_| varint::read(&mut cursor));
    match length {
        Ok(length) if length == cursor.remaining() as u64 => Ok(()),
        _ => {
            let shown = hex(bytes.get(..bytes.len().min(8)).unwrap_or(bytes));
            let expected = "a multihash (varint code, varint length, a digest of that length)";
            let found = format_args!("{} bytes that begin with {shown}", bytes.len());
            Err(Error::malformed(expected, found).rule("multihash"))
        }
    }
}
