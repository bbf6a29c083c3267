//! LZ4 blocks, piece by piece: the C library compresses and decompresses a block only as a whole, and a column of a file may be
//! one block. Compressed bytes are those of the library, which programs expect.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use read::BlockReader;
pub(crate) use write::BlockWriter;

/// `LZ4_MAX_INPUT_SIZE`: the library neither compresses nor decompresses more.
const MAX_BYTES: u64 = 0x7e00_0000;
