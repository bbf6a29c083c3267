//! Large memory in large pages.

#![allow(unsafe_code, reason = "advice to the system about memory")]

/// The size of a large page; smaller memory is left as it is.
const LARGE_PAGE: usize = 2 << 20;

/// Asks the system to back memory that is about to be filled with large pages: to fault in pages of 4 KiB costs as much as
/// to fill them. It is a hint, which changes no byte.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_large<T>(memory: *mut T, bytes: usize) {
    let start = (memory as usize).next_multiple_of(LARGE_PAGE);
    let Some(bytes) = (memory as usize + bytes).checked_sub(start).filter(|left| *left >= LARGE_PAGE) else {
        return;
    };
    let bytes = bytes - bytes % LARGE_PAGE;
    let start = memory.cast::<u8>().wrapping_add(start - memory as usize);
    // SAFETY: the advice concerns whole pages within the memory that was passed, and only how they are backed: content and
    // access stay the same whatever the caller does with them.
    let _ = unsafe { rustix::mm::madvise(start.cast(), bytes, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_large<T>(_memory: *mut T, _bytes: usize) {
    let _ = LARGE_PAGE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stays_as_it_is() {
        for bytes in [0, 1, LARGE_PAGE, 5 * LARGE_PAGE + 3] {
            let mut memory: Vec<u8> = (0..bytes).map(|byte| byte as u8).collect();
            prefer_large(memory.as_mut_ptr(), memory.len());
            assert!(memory.iter().enumerate().all(|(place, byte)| *byte == place as u8));
        }
    }
}
