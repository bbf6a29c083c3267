//! Process state that needs system calls: the only unsafe code of the command besides `bus_error`.

#![allow(unsafe_code, reason = "signals, the allocator, and code that runs before `main`")]

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the process was started without a standard output (`>&-`). Rust puts `/dev/null` in its place.
pub(crate) fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// A write past the limit on file sizes (`ulimit -f`) returns an error instead of terminating the process.
pub(crate) fn ignore_file_size_signal() {
    #[cfg(unix)]
    // SAFETY: ignoring a signal installs no handler; the process has one thread so far.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// A budget from which on freed memory is kept.
const KEEPS_MEMORY: u64 = 1 << 30;

/// Memory that was freed is kept for the next batch. By default the GNU allocator gives a large block back at once, and
/// its pages are cleared again for the next one: a third of the time of what only reads. In a small budget freed memory
/// is given back.
///
/// Two threads share one pool of memory. By default each has its own, so that a batch which one makes and the other
/// frees leaves its memory where the next batch cannot take it: more memory, and new pages again.
pub(crate) fn set_up_allocator(max_alloc: u64, threads: usize) {
    let is_small = max_alloc < KEEPS_MEMORY;
    let (kept, mapped) = if is_small { (1 << 20, 1 << 20) } else { (16 << 20, 32 << 20) };
    let pools = (threads / 2).clamp(1, if is_small { 2 } else { 64 }) as i32;
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` takes two numbers and sets them under the allocator's own lock. The command has started no thread yet;
    // in the wheel its process is one of its own too, whose Python has imported this package alone.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, kept);
        libc::mallopt(libc::M_MMAP_THRESHOLD, mapped);
        libc::mallopt(libc::M_ARENA_MAX, pools);
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _: (i32, i32, i32) = (kept, mapped, pools);
}

/// Runs before Rust's own start, which replaces a closed standard output.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[used]
// SAFETY: the section holds pointers to functions of this type, which the loader calls once, before `main`, on the
// only thread. The function calls `fcntl` and stores to an atomic: nothing that needs Rust's runtime.
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static AT_START: extern "C" fn() = {
    extern "C" fn look() {
        // SAFETY: `F_GETFD` takes no argument and only reads the flags of the descriptor, if there is one.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        STDOUT_WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
    }
    look
};
