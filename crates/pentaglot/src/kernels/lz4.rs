//! LZ4 blocks into uninitialised memory. The plain version: the functions of the `lz4` crate, which write into
//! a slice.

#![allow(unsafe_code, reason = "the C library writes into memory that was reserved and not zeroed")]

use std::ffi::c_int;

use arrow_buffer::MutableBuffer;
use lz4::liblz4::{LZ4_compress_default, LZ4_compressBound, LZ4_decompress_safe};

/// Decompresses a block into the spare capacity of the empty `memory`; `None` unless the result has exactly
/// `length` bytes.
pub(crate) fn decompress(block: &[u8], length: usize, mut memory: MutableBuffer) -> Option<MutableBuffer> {
    let (from, to) = (c_int::try_from(block.len()).ok()?, c_int::try_from(length).ok()?);
    if !memory.is_empty() || memory.capacity() < length {
        return None;
    }
    // SAFETY: the library reads `from` bytes at most and writes `to` bytes at most, whatever the block contains; both
    // slices have that size. It returns how many bytes it has written from the start on, so these are initialised.
    unsafe {
        let written = LZ4_decompress_safe(block.as_ptr().cast(), memory.as_mut_ptr().cast(), from, to);
        if written != to {
            return None;
        }
        memory.set_len(length);
    }
    Some(memory)
}

/// Appends `plain` as a block, compressed by `LZ4_compress_default`; `None` if `plain` is too large for it.
pub(crate) fn compress(plain: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let from = c_int::try_from(plain.len()).ok()?;
    // SAFETY: a pure function of a number; it returns 0 if the number is too large.
    let bound = unsafe { LZ4_compressBound(from) };
    let room = usize::try_from(bound).ok().filter(|room| *room > 0)?;
    #[expect(clippy::disallowed_methods, reason = "the size is that of bytes in memory")]
    out.reserve_exact(room);
    let start = out.len();
    // SAFETY: the library reads `from` bytes and writes at most `bound`; both are available. It returns how many
    // bytes it has written, 0 for failure.
    unsafe {
        let to = out.as_mut_ptr().add(start).cast();
        let written = LZ4_compress_default(plain.as_ptr().cast(), to, from, bound);
        let written = usize::try_from(written).ok().filter(|written| *written > 0 && *written <= room)?;
        out.set_len(start + written);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "sizes of this test")]
    fn room(length: usize) -> MutableBuffer {
        MutableBuffer::with_capacity(length)
    }

    proptest! {
        #[test]
        fn blocks_are_those_of_the_slices(plain in prop::collection::vec(0u8..4, 1..2000), cut in 0usize..20, flip: u8) {
            let mut packed = vec![9];
            compress(&plain, &mut packed).unwrap();
            prop_assert_eq!(&packed[1..], &lz4::block::compress(&plain, None, false).unwrap()[..]);
            let block = &packed[1..];
            let back = decompress(block, plain.len(), room(plain.len())).unwrap();
            prop_assert_eq!(back.as_slice(), &plain[..]);
            // For another length, a truncated block or other bytes: `None`, or the result of the plain
            // version.
            prop_assert!(decompress(block, plain.len() + 1, room(plain.len() + 1)).is_none());
            prop_assert!(decompress(block, plain.len() - 1, room(plain.len())).is_none());
            let mut broken = block[..block.len().saturating_sub(cut)].to_vec();
            if let Some(byte) = broken.first_mut() {
                *byte ^= flip;
            }
            let mut twin = vec![0; plain.len()];
            let written = lz4::block::decompress_to_buffer(&broken, Some(plain.len() as i32), &mut twin);
            let expected = written.is_ok_and(|written| written == plain.len()).then_some(twin);
            let found = decompress(&broken, plain.len(), room(plain.len()));
            prop_assert_eq!(found.as_ref().map(|memory| memory.as_slice()), expected.as_deref());
        }
    }

    #[test]
    fn memory_that_is_used_or_short_is_refused() {
        let mut packed = Vec::new();
        compress(b"aaaaaaaaaaaaaaaaaaaaaaaaaaaa", &mut packed).unwrap();
        assert!(decompress(&packed, 28, room(0)).is_none());
        let mut used = room(64);
        used.push(1u8);
        assert!(decompress(&packed, 28, used).is_none());
    }
}
