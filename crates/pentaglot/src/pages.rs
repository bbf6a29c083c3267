//! Large pages for large fresh memory.
//!
//! A buffer of many megabytes that is filled once costs a page fault for each 4 KiB, which can take longer than filling
//! it. Linux gives pages of 2 MiB to those who ask. The advice changes no byte and no result.

#![allow(unsafe_code, reason = "a system call on memory that the caller holds")]

/// Below this size the advice costs more than it brings.
const LEAST_BYTES: usize = 4 << 20;

/// What a large page holds, and what it is aligned to.
#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 2 << 20;

/// Asks for large pages under memory that will be filled to (nearly) its end.
#[inline]
pub(crate) fn advise_large<T>(memory: &mut [T]) {
    let bytes = std::mem::size_of_val(memory);
    if bytes >= LEAST_BYTES {
        advise(memory.as_mut_ptr().cast(), bytes);
    }
}

#[cfg(target_os = "linux")]
#[cold]
fn advise(start: *mut u8, bytes: usize) {
    let skip = start.align_offset(PAGE_BYTES);
    let whole = bytes.saturating_sub(skip) / PAGE_BYTES * PAGE_BYTES;
    if whole > 0 {
        // SAFETY: the range is within memory that the caller holds exclusively, and MADV_HUGEPAGE changes none of it.
        // A system that refuses the advice leaves all as it was, so the answer does not matter.
        unsafe { libc::madvise(start.add(skip).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_start: *mut u8, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_leaves_memory_as_it_is() {
        for bytes in [0, 1, LEAST_BYTES - 1, LEAST_BYTES, 3 * LEAST_BYTES + 17] {
            let mut memory = vec![7u8; bytes];
            advise_large(&mut memory);
            assert!(memory.iter().all(|byte| *byte == 7));
        }
    }
}
