//! LZ4 blocks into uninitialised memory. The plain versions: the functions of the `lz4` crate, which write into
//! a slice, and `wire::lz4`, which copies one run of bytes after the other.

#![allow(
    unsafe_code,
    reason = "copies of fixed size and the C library write into memory that was reserved and not zeroed"
)]

use std::ffi::c_int;
use std::ptr::copy_nonoverlapping;

use arrow_buffer::MutableBuffer;
use lz4::liblz4::{LZ4_compress_default, LZ4_compressBound};

use crate::pages::prefer_large;

/// The minimum number of packed bytes after a token: the longest short sequence takes 17, and copies read 16 at a time.
const SPARE_PACKED: usize = 32;

/// The minimum room after what has been written: copies write up to 32 bytes at a time.
const SPARE_ROOM: usize = 64;

/// Decompresses sequences (literals and a match) from the start of `packed`, appending to `memory`, of which no more than `end`
/// bytes are written. Returns how many packed bytes have been used.
///
/// It stops before a sequence that is damaged, not whole, or close to the end of either side: `wire::lz4` decompresses that
/// one.
pub(crate) fn sequences(packed: &[u8], memory: &mut MutableBuffer, end: usize) -> usize {
    let end = end.min(memory.capacity());
    let Some(last_token) = packed.len().checked_sub(SPARE_PACKED + 1) else { return 0 };
    let Some(last_place) = end.checked_sub(SPARE_ROOM) else { return 0 };
    let (mut used, mut written) = (0, memory.len());
    let (from, to) = (packed.as_ptr(), memory.as_mut_ptr());
    // SAFETY: `to` points to `capacity` bytes, of which the first `written` are initialised; `from` to `packed.len()` bytes.
    // What is left on both sides is compared before every copy, with what the copies take beyond the lengths:
    // * Literals: at most 14, copied as 16. `SPARE_PACKED` bytes follow the token, `SPARE_ROOM` follow `written`. A longer run
    //   is copied exactly, and leaves the same spare bytes on both sides.
    // * A short match: 18 bytes at most, for which there is room after 14 literals. A longer one: `matched + 32` bytes at
    //   most. Each copy of 16 (8) bytes begins at least 16 (8) bytes behind its place, so that it reads initialised bytes.
    unsafe {
        while used <= last_token && written <= last_place {
            let token = *from.add(used);
            let (mut next, mut place) = (used + 1, written);
            let mut literals = usize::from(token >> 4);
            if literals < 15 {
                copy::<u128>(from.add(next), to.add(place));
            } else {
                let Some(more) = long(packed, &mut next) else { break };
                literals = literals.saturating_add(more);
                let is_near = |end: usize, place: usize, spare| end - place < literals.saturating_add(spare);
                if is_near(packed.len(), next, SPARE_PACKED) || is_near(end, place, SPARE_ROOM) {
                    break;
                }
                copy_nonoverlapping(from.add(next), to.add(place), literals);
            }
            next += literals;
            place += literals;
            let distance = usize::from(u16::from_le(from.add(next).cast::<u16>().read_unaligned()));
            next += 2;
            let mut matched = usize::from(token & 15) + 4;
            if matched < 19 && distance == 8 && place >= 8 {
                (used, written) = near_repeats(from, to, next, place, matched, last_token, last_place);
                continue;
            }
            if matched < 19 && distance >= 8 && distance <= place {
                // Most matches: 18 bytes are copied, without a look at how many are needed.
                let to = to.add(place);
                let behind = to.sub(distance);
                copy::<u64>(behind, to);
                copy::<u64>(behind.add(8), to.add(8));
                copy::<u16>(behind.add(16), to.add(16));
                (used, written) = (next, place + matched);
                continue;
            }
            if matched == 19 {
                let Some(more) = long(packed, &mut next) else { break };
                matched = matched.saturating_add(more);
            }
            if distance == 0 || distance > place || matched.saturating_add(32) > end - place {
                break;
            }
            repeat(to.add(place), distance, matched);
            (used, written) = (next, place + matched);
        }
        memory.set_len(written);
    }
    used
}

/// Decompresses a match of `matched` bytes at the distance 8, and the sequences after it that are like it: at most 7 literals
/// and a short match at the same distance. Returns the packed bytes that have been used and the bytes that have been written.
///
/// Numbers of 8 bytes that change little are such sequences. Each match begins with bytes that were stored just before, in parts:
/// to load them again would have to wait for the stores. So the last 8 bytes are kept in a register, too.
///
/// # Safety
///
/// As in [`sequences`], whose packed bytes and memory these are: the match is at `place`, the next sequence at `next`.
#[inline]
unsafe fn near_repeats(
    from: *const u8,
    to: *mut u8,
    mut next: usize,
    mut place: usize,
    mut matched: usize,
    last_token: usize,
    last_place: usize,
) -> (usize, usize) {
    // SAFETY: as in `sequences`: 8 literals are read where 14 may be, at most 7 and 18 bytes are written.
    unsafe {
        let mut recent = u64::from_le(to.add(place - 8).cast::<u64>().read_unaligned());
        loop {
            let match_place = to.add(place);
            let bytes = recent.to_le_bytes();
            match_place.cast::<[u8; 8]>().write_unaligned(bytes);
            match_place.add(8).cast::<[u8; 8]>().write_unaligned(bytes);
            match_place.add(16).cast::<[u8; 2]>().write_unaligned([bytes[0], bytes[1]]);
            place += matched;
            recent = recent.rotate_right(8 * (matched as u32 % 8));
            let (used, written) = (next, place);
            if used > last_token || written > last_place {
                return (used, written);
            }
            let token = *from.add(used);
            let literals = usize::from(token >> 4);
            matched = usize::from(token & 15) + 4;
            next = used + 1 + literals + 2;
            let distance = from.add(next - 2).cast::<[u8; 2]>().read_unaligned();
            if literals > 7 || matched == 19 || distance != [8, 0] {
                return (used, written);
            }
            let bytes = from.add(used + 1).cast::<[u8; 8]>().read_unaligned();
            to.add(place).cast::<[u8; 8]>().write_unaligned(bytes);
            place += literals;
            // The literals come after the bytes that stay. Two shifts: one of 64 bits is not defined.
            let bits = 8 * literals as u32;
            recent = recent >> bits | u64::from_le_bytes(bytes) << 1 << (63 - bits);
        }
    }
}

/// The further bytes of a length, added up; `None` if they do not end in `packed`, some bytes before its end.
#[inline]
fn long(packed: &[u8], next: &mut usize) -> Option<usize> {
    let mut sum = 0;
    loop {
        let byte = *packed.get(*next)?;
        *next += 1;
        sum = usize::saturating_add(sum, usize::from(byte));
        if byte != 255 {
            return (*next + SPARE_PACKED <= packed.len()).then_some(sum);
        }
    }
}

/// Copies a word, never by a call of `memcpy`.
///
/// # Safety
///
/// As many bytes as a `T` has can be read and written.
#[inline(always)]
unsafe fn copy<T>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<T>().write_unaligned(from.cast::<T>().read_unaligned()) }
}

/// Repeats the `distance` bytes before `place` until there are `count` bytes.
///
/// # Safety
///
/// `distance` is not 0, as many bytes before `place` are initialised, and `count + 32` bytes from it on may be written.
#[inline]
unsafe fn repeat(place: *mut u8, distance: usize, count: usize) {
    // SAFETY: the caller's promise; see `sequences`.
    unsafe {
        if distance >= 16 {
            let mut done = 0;
            while done < count {
                let to = place.add(done);
                copy::<u128>(to.sub(distance), to);
                let to = to.add(16);
                copy::<u128>(to.sub(distance), to);
                done += 32;
            }
            return;
        }
        let (mut done, mut distance) = (0, distance);
        if distance < 8 {
            for index in 0..8 {
                *place.add(index) = *place.sub(distance).add(index);
            }
            // What repeats after `distance` bytes also repeats after a multiple of it.
            (done, distance) = (8, distance * [0, 8, 4, 3, 2, 2, 2, 2][distance]);
        }
        while done < count {
            let to = place.add(done);
            copy::<u64>(to.sub(distance), to);
            done += 8;
        }
    }
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
    prefer_large(out.as_mut_ptr(), out.capacity());
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

    proptest! {
        #[test]
        fn blocks_are_those_of_the_slices(plain in prop::collection::vec(0u8..4, 1..2000)) {
            let mut packed = vec![9];
            compress(&plain, &mut packed).unwrap();
            prop_assert_eq!(&packed[1..], &lz4::block::compress(&plain, None, false).unwrap()[..]);
        }

        #[test]
        fn sequences_are_the_start_of_what_the_library_gives(
            pattern in prop::collection::vec(any::<u8>(), 1..40),
            noise in prop::collection::vec((0usize..4000, any::<u8>()), 0..60),
            end in 0usize..5000,
        ) {
            let mut plain: Vec<u8> = pattern.iter().copied().cycle().take(4000).collect();
            noise.into_iter().for_each(|(place, byte)| plain[place] = byte);
            let mut packed = Vec::new();
            compress(&plain, &mut packed).unwrap();
            // Memory of exactly the size that may be written, so that tools see a write past it.
            let mut memory = MutableBuffer::from(vec![0u8; end]);
            memory.truncate(0);
            let used = sequences(&packed, &mut memory, end);
            prop_assert!(memory.len() <= end && used <= packed.len());
            prop_assert_eq!(memory.as_slice(), &plain[..memory.len()]);
            // It stops only near an end, or before a long sequence.
            let again = sequences(&packed[used..], &mut memory, end);
            prop_assert_eq!(again, 0);
        }

        #[test]
        fn numbers_that_change_little_are_those_of_the_library(
            start in 0u64..1 << 53,
            steps in prop::collection::vec(prop_oneof![Just(1u64), 0u64..300, any::<u64>()], 8..600),
            is_float: bool,
        ) {
            let mut value = start;
            let plain: Vec<u8> = steps.iter().flat_map(|step| {
                value = value.wrapping_add(*step);
                if is_float { (value as f64 * 0.5).to_le_bytes() } else { value.to_le_bytes() }
            }).collect();
            let mut packed = Vec::new();
            compress(&plain, &mut packed).unwrap();
            let mut memory = MutableBuffer::from(vec![0u8; plain.len()]);
            memory.truncate(0);
            sequences(&packed, &mut memory, plain.len());
            prop_assert_eq!(memory.as_slice(), &plain[..memory.len()]);
        }

        #[test]
        fn any_bytes_are_decompressed_or_left(packed: Vec<u8>, before in 0usize..20) {
            let mut memory = MutableBuffer::from(vec![7u8; 4096]);
            memory.truncate(before);
            let used = sequences(&packed, &mut memory, 4096);
            prop_assert!(used <= packed.len() && memory.len() >= before);
        }
    }
}
