//! From a file to the first answers.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;

use pentaglot_succinct::{
    BitQueries, BitVector, ByteSink, Indexed, SharedWords, StableWords, Structure, Supports, WordCursor,
};
use simple_sds::ops::{Rank as _, Select as _, SelectZero as _};
use simple_sds::serialize::Serialize;

use crate::lanes::{Field, or_zero, random_words};

/// A file mapped for reading.
struct Mapped {
    start: *const u64,
    len: usize,
}

// SAFETY: the words are only read.
unsafe impl Send for Mapped {}
// SAFETY: the words are only read.
unsafe impl Sync for Mapped {}

// SAFETY: the mapping stays in place until it is dropped, and nobody writes to the bench's own file.
unsafe impl StableWords for Mapped {
    fn stable_words(&self) -> &[u64] {
        // SAFETY: the mapping has this many words.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Mapped {
    fn new(path: &str) -> Self {
        let file = File::open(path).unwrap();
        let bytes = file.metadata().unwrap().len() as usize;
        // SAFETY: a new mapping of an open file.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        Mapped { start: start.cast(), len: bytes / 8 }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, no longer used.
        unsafe { libc::munmap(self.start.cast_mut().cast(), 8 * self.len) };
    }
}

pub fn enter(field: &mut Field, n: u64, density: f64) {
    let words = random_words(n, density, 1);
    let folder = std::env::temp_dir();
    let path = |kind: &str| -> &'static str {
        let name = format!("pentaglot-bench-{}-{kind}.sds", std::process::id());
        Box::leak(folder.join(name).to_string_lossy().into_owned().into_boxed_str())
    };
    let (lean, full) = (path("lean"), path("full"));
    let ours = crate::bits::ours_of(&words, n);
    for (path, supports) in [(lean, Supports::Lean), (full, Supports::Full)] {
        let mut output = std::io::BufWriter::new(File::create(path).unwrap());
        ours.write_words(supports, &mut ByteSink(&mut output)).unwrap();
    }
    let (one, zero) = (ours.count_ones() / 2, ours.count_zeros() / 2);
    field.add("load lean, all supports", "ours", 1, move || {
        let mut file = File::open(lean).unwrap();
        let mut words = vec![0_u64; file.metadata().unwrap().len() as usize / 8];
        // SAFETY: the bytes of the words are ours to write, and any bytes are words.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), 8 * words.len()) };
        file.read_exact(bytes).unwrap();
        let bits = BitVector::from_words(&mut WordCursor::new(SharedWords::new(words))).unwrap();
        bits.build_index();
        bits.rank(n / 2) + bits.select(one).unwrap_or(0) + bits.select0(zero).unwrap_or(0)
    });
    field.add("load lean, all supports", "ours mapped", 1, move || {
        let mapped = Mapped::new(lean);
        let bits = BitVector::from_words(&mut WordCursor::new(SharedWords::new(mapped))).unwrap();
        bits.build_index();
        bits.rank(n / 2) + bits.select(one).unwrap_or(0) + bits.select0(zero).unwrap_or(0)
    });
    field.add("load lean, all supports", "sds", 1, move || {
        let mut file = std::io::BufReader::with_capacity(1 << 20, File::open(lean).unwrap());
        let mut bits = simple_sds::bit_vector::BitVector::load(&mut file).unwrap();
        bits.enable_rank();
        bits.enable_select();
        bits.enable_select_zero();
        bits.rank(n as usize / 2) as u64
            + or_zero(bits.select(one as usize))
            + or_zero(bits.select_zero(zero as usize))
    });
    field.add("open mapped full, first queries", "ours", 1, move || {
        let mapped = Mapped::new(full);
        let bits = BitVector::from_words(&mut WordCursor::new(SharedWords::new(mapped))).unwrap();
        bits.rank(n / 2) + bits.select(one).unwrap_or(0) + bits.select0(zero).unwrap_or(0)
    });
    field.add("open mapped full, first queries", "sds", 1, move || {
        let mut file = std::io::BufReader::with_capacity(1 << 20, File::open(full).unwrap());
        let bits = simple_sds::bit_vector::BitVector::load(&mut file).unwrap();
        bits.rank(n as usize / 2) as u64
            + or_zero(bits.select(one as usize))
            + or_zero(bits.select_zero(zero as usize))
    });
}
