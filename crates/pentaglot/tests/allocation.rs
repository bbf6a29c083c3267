//! Allocations stay in proportion to the file: opens and reads malicious files with a counting allocator.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use pentaglot::formats::Findings;
use pentaglot::{Limits, Registry, Source, job};

/// Counts the allocated bytes and their maximum.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller guarantees what the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The memory of readers for any file: buffers, tables of kinds, threads.
const BASE: usize = 48 << 20;
/// The limit of the test. It is on data; copies of batches come in addition.
const LIMIT: u64 = 16 << 20;

/// Opens, reads and validates bytes; returns the maximum of additional memory.
fn cost(name: &str, bytes: &[u8], from: Option<&str>) -> usize {
    let registry = Registry::default();
    let mut options = job::OpenOptions::default();
    let mut limits = Limits::default();
    limits.max_alloc = LIMIT;
    limits.max_free_rows = 1 << 16;
    options.budget = limits.budget();
    options.control = pentaglot::Control::new(1);
    options.from = from.map(str::to_owned);
    let before = NOW.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let source = Source::from_bytes(name, bytes.to_vec());
    if let Ok(opened) = job::open_source(&registry, source, None, &options) {
        if let Ok(rows) = opened.rows(&job::View::default()) {
            rows.take_while(|batch| batch.is_ok()).for_each(drop);
        }
        // A stream source is read once; memory is not one.
        let _ = opened.document.validate(&mut Findings::new(false));
    }
    MOST.load(Ordering::Relaxed).saturating_sub(before)
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// Files of a folder and of all folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// One test: the counts are of the whole process.
#[test]
fn hostile_headers_do_not_make_large_allocations() {
    let most = BASE + 4 * LIMIT as usize;
    let mut wrong = Vec::new();
    let mut seen = 0;
    for path in files(&testdata()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        let format = path.strip_prefix(testdata()).unwrap().components().next().unwrap();
        let format = format.as_os_str().to_string_lossy().into_owned();
        let from = Registry::default().get(&format).is_ok().then_some(format.as_str());
        if bytes.len() > 1 << 20 || from.is_none() {
            continue;
        }
        let mut cases = vec![("as it is".to_owned(), bytes.clone())];
        // Every eight bytes of the header claim as much as they can; so do its four-byte halves.
        for at in (0..bytes.len().min(128)).step_by(4) {
            for (width, claim) in [(8, u64::MAX >> 2), (8, 1 << 40), (4, 0x7fff_ffff)] {
                let mut hostile = bytes.clone();
                let claim: [u8; 8] = claim.to_le_bytes();
                let end = (at + width).min(hostile.len());
                hostile[at..end].copy_from_slice(&claim[..end - at]);
                cases.push((format!("{claim:?} at byte {at}"), hostile));
            }
        }
        for (what, hostile) in cases {
            seen += 1;
            let Ok(cost) = std::panic::catch_unwind(|| cost(&name, &hostile, from)) else {
                wrong.push(format!("{}: {what}: a panic", path.display()));
                continue;
            };
            if cost > most + 4 * hostile.len() {
                wrong.push(format!("{}: {what}: {cost} bytes", path.display()));
            }
        }
    }
    assert!(seen > 1000, "{seen} cases");
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
}
