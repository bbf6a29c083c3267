//! LZ4 blocks, with the C library: only it produces the same bytes as programs that use the C library.

use lz4::block::{CompressionMode, compress_bound, compress_to_buffer, decompress_to_buffer};

use arrow_buffer::MutableBuffer;

use crate::cursor::{Reserved, allocate_zeroed, reserve};
use crate::error::{Error, Result};
use crate::kernels::lz4 as kernel;
use crate::limits::Budget;

/// `LZ4_MAX_INPUT_SIZE`: the library neither compresses nor decompresses more.
pub(crate) const MAX_BYTES: u64 = 0x7e00_0000;

/// The maximum number of bytes that one byte of a block can produce: each further byte of a match length adds
/// up to 255.
const MAX_RATIO: u64 = 255;

/// Decompresses a block of exactly `length` bytes into new memory. Nothing is allocated for a length that no block of
/// this size can have.
pub(crate) fn decompress(block: &[u8], length: u64, budget: &Budget) -> Result<MutableBuffer> {
    if length > MAX_RATIO.saturating_mul(block.len() as u64) {
        let found = format!("{length}, which {} bytes of LZ4 cannot become", block.len());
        return Err(Error::malformed("the length of what the LZ4 block holds", found).rule("lz4-length"));
    }
    if length > MAX_BYTES {
        return Err(Error::malformed(format_args!("at most {MAX_BYTES} bytes in an LZ4 block"), length)
            .rule("lz4-length"));
    }
    budget.limits().check_ratio(block.len() as u64, length)?;
    let words: Reserved<i128> = reserve(length.div_ceil(16), budget)?;
    let size = usize::try_from(length).unwrap_or(usize::MAX);
    let (words, reservation) = words.into_parts();
    let memory = kernel::decompress(block, size, words.into()).ok_or_else(|| fault(block, length, budget))?;
    reservation.attach(&memory);
    Ok(memory)
}

/// The first `length` decompressed bytes of a block, from the first bytes of that block; `None` if these are too few
/// or damaged.
pub(crate) fn decompress_start(block: &[u8], length: usize) -> Option<Vec<u8>> {
    /// A length of four bits, which continues in further bytes while they have their maximum value.
    fn long(rest: &mut &[u8], nibble: u8) -> Option<usize> {
        let mut length = usize::from(nibble);
        let mut more = nibble == 15;
        while more {
            let (byte, tail) = rest.split_first()?;
            *rest = tail;
            length = length.checked_add(usize::from(*byte))?;
            more = *byte == 255;
        }
        Some(length)
    }
    let mut rest = block;
    let mut out: Vec<u8> = Vec::new();
    loop {
        let (token, tail) = rest.split_first()?;
        rest = tail;
        let literals = long(&mut rest, token >> 4)?;
        out.extend(rest.iter().take(literals.min(length - out.len())));
        if out.len() == length {
            return Some(out);
        }
        rest = rest.get(literals..)?;
        let (distance, tail) = rest.split_first_chunk()?;
        rest = tail;
        let matched = long(&mut rest, token & 15)? + 4;
        let start = out.len().checked_sub(usize::from(u16::from_le_bytes(*distance)))?;
        // A match may overlap the bytes that it writes.
        for index in start..start + matched.min(length - out.len()) {
            out.push(*out.get(index)?);
        }
        if out.len() == length {
            return Some(out);
        }
    }
}

/// The error for a block that did not decompress to `length` bytes.
#[cold]
fn fault(block: &[u8], length: u64, budget: &Budget) -> Error {
    let mut memory = match allocate_zeroed(length, budget) {
        Ok(memory) => memory,
        Err(error) => return error,
    };
    let size = i32::try_from(length).unwrap_or(i32::MAX);
    match decompress_to_buffer(block, Some(size), memory.as_slice_mut()) {
        Ok(written) => {
            Error::malformed(format_args!("{length} bytes in the LZ4 block"), written).rule("lz4-length")
        }
        Err(_) => {
            let expected = format!("an LZ4 block of {length} bytes");
            Error::malformed(expected, "one that is damaged or longer").rule("lz4-block")
        }
    }
}

/// Compresses `plain`, preceded by its length as an int32. Level 0 is `LZ4_compress_default`, higher ones are
/// `LZ4_compress_HC`.
pub(crate) fn compress_with_length(plain: &[u8], level: i32) -> Result<Vec<u8>> {
    // The same block on all levels: a token without literals. The optimal parser (levels 10 to 12) reads before the
    // start of an empty input, so the library is not called.
    if plain.is_empty() {
        return Ok(vec![0; 5]);
    }
    let too_long = || Error::limit("the limit", MAX_BYTES, format!("{} bytes for an LZ4 block", plain.len()));
    let bound = match u32::try_from(plain.len()) {
        Ok(length) if u64::from(length) <= MAX_BYTES => compress_bound(plain.len()),
        _ => return Err(too_long()),
    };
    if level == 0 {
        let mut packed = u32::try_from(plain.len()).map_err(|_| too_long())?.to_le_bytes().to_vec();
        return kernel::compress(plain, &mut packed).map(|()| packed).ok_or_else(too_long);
    }
    let mode = Some(CompressionMode::HIGHCOMPRESSION(level));
    let mut packed = vec![0; 4 + bound.map_err(|_| too_long())?];
    let written = compress_to_buffer(plain, mode, true, &mut packed)
        .map_err(|error| Error::io("LZ4 compression", error))?;
    packed.truncate(written);
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn the_empty_and_the_short_come_back_on_all_levels() {
        for level in 0..=12 {
            assert_eq!(compress_with_length(&[], level).unwrap(), [0; 5], "level {level}");
            for length in 1..40u8 {
                let plain: Vec<u8> = (0..length).map(|byte| byte % 3).collect();
                let packed = compress_with_length(&plain, level).unwrap();
                assert_eq!(packed[..4], u32::from(length).to_le_bytes(), "level {level}");
                let budget = Limits::default().budget();
                let back = decompress(&packed[4..], u64::from(length), &budget).unwrap();
                assert_eq!(back.as_slice(), plain, "level {level}");
            }
        }
        // The library's own block of an empty input, where it supports one.
        let mut block = [9; 16];
        assert_eq!(compress_to_buffer(&[], None, true, &mut block).unwrap(), 5);
        assert_eq!(block[..5], [0; 5]);
    }
}
