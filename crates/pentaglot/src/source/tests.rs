use std::io::Write;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::testing::costly::Costly;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + index / 251) as u8).collect()
}

/// A reader that gives at most a few bytes at a time.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.0.len()).min(7);
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

#[test]
fn a_file_that_got_shorter_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pattern(100_000)).unwrap();
    let (source, budget) = (Source::open(file.path()).unwrap(), Budget::default());
    file.as_file().set_len(50_000).unwrap();
    assert_eq!(source.read_range(40_000, 10_000, &budget).unwrap().as_slice(), &pattern(50_000)[40_000..]);
    assert!(source.read_range(40_000, 20_000, &budget).is_err());
    assert_eq!(budget.used(), 0);
}

#[test]
fn every_kind_of_source_gives_the_same_bytes() {
    let bytes = pattern(3 << 20);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let slow: Vec<u8> = bytes.clone();
    let sources = [
        Source::from_bytes("memory", bytes.clone()),
        Source::open(file.path()).unwrap(),
        Source::from_read_at("costly", Costly::new(bytes.clone())),
        Source::from_reader("stream", io::Cursor::new(slow)).seekable().unwrap(),
    ];
    let ranges: [Range<u64>; 5] =
        [0..10, 100_000..1_400_000, 1_400_000..1_400_001, 3 << 20..3 << 20, 5..70_000];
    for source in &sources {
        for range in &ranges {
            let (start, end) = (range.start as usize, range.end as usize);
            let read = source.read_range(range.start, range.end - range.start, &Budget::default()).unwrap();
            assert_eq!(read.as_slice(), &bytes[start..end], "{source:?} {range:?}");
        }
        for (part, range) in source.read_ranges(&ranges, &Budget::default()).unwrap().iter().zip(&ranges) {
            assert_eq!(
                part.as_slice(),
                &bytes[range.start as usize..range.end as usize],
                "{source:?} {range:?}"
            );
        }
        let mut all = Vec::new();
        source.reader().unwrap().read_to_end(&mut all).unwrap();
        assert_eq!(all, bytes, "{source:?}");
        let error = source.read_range(1, 3 << 20, &Budget::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{source:?}");
    }
}

#[test]
fn a_costly_source_is_read_in_few_requests() {
    let bytes = pattern(20 << 20);
    let costly = Costly::new(bytes.clone());
    let source = Source::from_read_at("x", Arc::clone(&costly) as _);
    assert!(source.is_costly());
    // Many small reads in one place are one request.
    for offset in 0..1000 {
        source.read_exact_at(offset * 8, &mut [0; 8]).unwrap();
    }
    assert_eq!(costly.requests.load(Relaxed), 1);
    // For sequential reads, the size of requests doubles up to 2 MiB.
    costly.reset();
    io::copy(&mut source.reader().unwrap(), &mut io::sink()).unwrap();
    assert!(costly.requests.load(Relaxed) <= 16, "{}", costly.requests.load(Relaxed));
    assert!(costly.bytes.load(Relaxed) <= 20 << 20);
    // A large read elsewhere fetches exactly its range.
    costly.reset();
    source.read_range(1_000_003, 1 << 20, &Budget::default()).unwrap();
    assert_eq!((costly.requests.load(Relaxed), costly.bytes.load(Relaxed)), (1, 1 << 20));
    // The end comes with 64 KiB before it.
    let source = Source::from_read_at("x", Arc::clone(&costly) as _);
    costly.reset();
    source.read_exact_at((20 << 20) - 8, &mut [0; 8]).unwrap();
    source.read_exact_at((20 << 20) - (60 << 10), &mut [0; 1000]).unwrap();
    assert_eq!(costly.requests.load(Relaxed), 1);
    // Ranges with small gaps are one request.
    costly.reset();
    let ranges: Vec<Range<u64>> = (0..10).map(|index| index * 50_000..index * 50_000 + 40_000).collect();
    source.read_ranges(&ranges, &Budget::default()).unwrap();
    assert_eq!(costly.requests.load(Relaxed), 1);
}

#[test]
fn sequences_that_are_read_by_turns_are_each_read_ahead() {
    let costly = Costly::new(pattern(16 << 20));
    let source = Source::from_read_at("x", Arc::clone(&costly) as _);
    for step in 0..1024u64 {
        for start in [0, 5 << 20, 10 << 20] {
            source.read_exact_at(start + step * 4096, &mut [0; 4096]).unwrap();
        }
    }
    assert!(costly.requests.load(Relaxed) <= 40, "{}", costly.requests.load(Relaxed));
}

#[test]
fn the_cache_is_bounded() {
    let costly = Costly::new(pattern(64 << 20));
    let source = Source::from_read_at("x", Arc::clone(&costly) as _);
    for _ in 0..2 {
        for offset in (0..64u64 << 20).step_by(64 << 10) {
            source.read_exact_at(offset, &mut [0; 8]).unwrap();
        }
    }
    // The second pass finds no block of the start of the first pass.
    assert_eq!(costly.requests.load(Relaxed), 2048);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for change in ["cut", "grown", "rewritten"] {
        std::fs::write(file.path(), pattern(200_000)).unwrap();
        let source = Source::open(file.path()).unwrap();
        let mut reader = source.reader().unwrap();
        reader.read_exact(&mut [0; 1000]).unwrap();
        let time = |seconds| std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let open = std::fs::File::options().write(true).open(file.path()).unwrap();
        match change {
            "cut" => open.set_len(100_000).unwrap(),
            "grown" => open.set_len(300_000).unwrap(),
            _ => open.set_modified(time(1_000_000_000)).unwrap(),
        }
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "the file changed while it was read", "{change}");
        assert!(!source.unchanged().unwrap(), "{change}");
    }
    // Decompressed bytes are checked in the same way.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&pattern(1 << 20)).unwrap();
    std::fs::write(file.path(), packed.finish().unwrap()).unwrap();
    let unpacked = Source::open(file.path()).unwrap().unpack(Packing::Gzip, &Limits::default()).unwrap();
    let open = std::fs::File::options().write(true).open(file.path()).unwrap();
    open.set_modified(std::time::UNIX_EPOCH).unwrap();
    let error = io::copy(&mut unpacked.reader().unwrap(), &mut io::sink()).unwrap_err();
    assert_eq!(error.to_string(), "the file changed while it was read");
}

#[test]
fn spooling_ends_at_its_limit() {
    let stream = || Source::from_reader("x", io::Cursor::new(pattern(100_000)));
    assert_eq!(stream().seekable().unwrap().len(), Some(100_000));
    let limited = stream();
    limited.set_budget(&Limits { max_spool: 99_999, ..Limits::default() }.budget());
    let error = limited.seekable().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().starts_with("needs at least "), "{error}");
    // An implausible stream is not spooled at all.
    let endless = Source::from_reader("zeros", io::repeat(0));
    let head = endless.seekable_if(|head| head.starts_with(b"MAGIC")).unwrap();
    assert_eq!(head.len(), Some(HEAD_BYTES as u64));
}

#[test]
fn a_spool_past_its_memory_is_read_from_a_file() {
    let bytes = pattern(100_000);
    let mut spool = Spool::with_memory(1000, &Budget::default());
    bytes.chunks(333).for_each(|chunk| spool.write_all(chunk).unwrap());
    assert_eq!(spool.len(), 100_000);
    spool.patch(500, b"patched").unwrap();
    spool.patch(500, &bytes[500..507]).unwrap();
    let mut copy = Vec::new();
    spool.copy_to(&mut copy).unwrap();
    assert_eq!(copy, bytes);
    let source = spool.into_source("x").unwrap();
    assert!(source.memory().is_none() && source.unchanged().unwrap());
    let mut all = Vec::new();
    source.reader().unwrap().read_to_end(&mut all).unwrap();
    assert_eq!(all, bytes);
}

#[test]
fn the_memory_of_a_spool_is_paid_for_until_its_source_is_dropped() {
    let budget = Limits { max_alloc: 1 << 20, ..Limits::default() }.budget();
    let mut spool = Spool::new(&budget);
    spool.write_all(&pattern(100_000)).unwrap();
    let used = budget.used();
    assert!((100_000..1 << 20).contains(&used), "{used}");
    let source = spool.into_source("x").unwrap();
    assert!(source.memory().is_some() && budget.used() >= 100_000);
    // Bytes that exceed the budget move to a file.
    let mut large = Spool::new(&budget);
    (0..20).for_each(|_| large.write_all(&pattern(100_000)).unwrap());
    assert_eq!(large.len(), 2_000_000);
    assert!(large.into_source("x").unwrap().memory().is_none());
    drop(source);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_window_moves_over_any_source() {
    let bytes = pattern(10_000);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    for source in [Source::from_bytes("memory", bytes.clone()), Source::open(file.path()).unwrap()] {
        let mut window = Window::over(&source, 10, Some(9_000), 64, Budget::default()).unwrap();
        let mut seen = Vec::new();
        while window.fill(100).unwrap() {
            assert_eq!(window.offset(), 10 + seen.len() as u64);
            seen.extend_from_slice(&window.rest()[..33]);
            window.advance(33);
            assert_eq!(window.before(33), &seen[seen.len() - 33..]);
        }
        seen.extend_from_slice(window.rest());
        assert_eq!(seen, &bytes[10..9_000]);
        assert!(window.is_last());
        assert_eq!(window.at(500, 20).unwrap()[..20], bytes[500..520]);
        assert_eq!(window.at(8_990, 10).unwrap(), &bytes[8_990..9_000]);
        let error = window.at(8_990, 11).unwrap_err();
        assert_eq!(error.to_string(), "at byte 8990: expected 11 bytes, found 10");
    }
}

#[test]
fn a_window_grows_for_what_does_not_fit_and_says_when_nothing_follows() {
    let bytes = pattern(300);
    let mut window = Window::new(Slow(&bytes), 0, 64, Budget::default());
    let mut sizes = Vec::new();
    while window.grow().unwrap() {
        sizes.push(window.rest().len());
    }
    assert_eq!((sizes.first(), sizes.last()), (Some(&64), Some(&300)), "{sizes:?}");
    assert!(window.is_last());
    // At the end `grow` succeeds once more, so that the reader sees `is_last`.
    let mut window = Window::new(&bytes[..64], 0, 64, Budget::default());
    assert!(window.grow().unwrap() && !window.is_last());
    assert!(window.grow().unwrap() && window.is_last());
    assert!(!window.grow().unwrap());
    let tight = Limits { max_alloc: 100, ..Limits::default() };
    let mut window = Window::new(Slow(&bytes), 0, 64, tight.budget());
    assert_eq!(window.fill(200).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn a_window_knows_the_lines_of_its_memory_and_of_the_current_record() {
    let text = "a\n\nbc\n".repeat(200);
    let mut window = Window::new(Slow(text.as_bytes()), 0, 64, Budget::default()).count_lines();
    let line =
        |window: &Window<_>, offset: u64| window.with_line(Error::malformed("", "").at(offset)).line_number();
    let expected = |offset: usize| Some(text[..offset].matches('\n').count() as u64 + 1);
    for record in [0, 100, 300, 1100] {
        while window.offset() < record {
            window.fill(1).unwrap();
            window.advance(1);
        }
        window.begin_record();
        for offset in record..record + 100 {
            window.fill(1).unwrap();
            window.advance(1);
            for place in record..=offset {
                assert_eq!(line(&window, place), expected(place as usize));
            }
        }
    }
    assert_eq!(line(&window, 300), None);
}

#[test]
fn a_window_takes_no_more_memory_than_the_file_has_bytes() {
    let bytes = pattern(300);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let source = Source::open(file.path()).unwrap();
    let tight = Limits { max_alloc: 301, ..Limits::default() };
    let mut window = Window::over(&source, 0, None, 64 << 10, tight.budget()).unwrap();
    assert!(!window.fill(1 << 20).unwrap() && window.is_last());
    assert_eq!(window.rest(), bytes);
}

/// Bytes that are more than was known, and how often they are read.
struct Grown<'b>(&'b [u8], usize);

impl Read for Grown<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 += 1;
        self.0.read(buffer)
    }
}

#[test]
fn a_file_that_grows_is_not_read_byte_by_byte_while_pieces_are_in_use() {
    let bytes = pattern(200_000);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes[..10_000]).unwrap();
    let source = Source::open(file.path()).unwrap();
    let mut input = Grown(&bytes, 0);
    let mut window = Window::with_input(&source, &mut input, 0, None, 1000, Budget::default());
    let (mut pieces, mut seen, mut rounds) = (Vec::new(), 0, 0);
    while window.fill(2000).unwrap() {
        pieces.push(window.piece(0..1500));
        assert_eq!(pieces[pieces.len() - 1].rest(), &bytes[seen..seen + 1500]);
        window.advance(1500);
        (seen, rounds) = (seen + 1500, rounds + 1);
        if pieces.len() == 4 {
            // Now and then they are used again.
            if rounds % 3 == 0 {
                window.go_back(&pieces).unwrap();
                seen -= 6000;
                assert_eq!((window.offset(), window.rest()[0]), (seen as u64, bytes[seen]));
            }
            pieces.clear();
        }
    }
    assert_eq!(window.rest(), &bytes[seen..]);
    drop(window);
    assert!(input.1 < 400, "{} reads", input.1);
}

#[test]
fn siblings_are_found_beside_files_packed_files_and_foreign_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bin");
    std::fs::write(&path, b"data").unwrap();
    let source = Source::open(&path).unwrap();
    assert!(source.sibling(".meta").unwrap().is_none());
    std::fs::write(folder.path().join("x.bin.meta"), b"side").unwrap();
    let side = source.sibling(".meta").unwrap().unwrap();
    assert_eq!((side.len(), side.path()), (Some(4), Some(folder.path().join("x.bin.meta").as_path())));
    let spooled = source.unpack(Packing::Gzip, &Limits::default()).unwrap();
    assert!(spooled.sibling(".meta").unwrap().is_some());
    let costly = Source::from_read_at("x", Costly::with_sibling(vec![1], ".idx", vec![2, 3]));
    assert_eq!(costly.sibling(".idx").unwrap().unwrap().len(), Some(2));
    assert!(costly.sibling(".meta").unwrap().is_none());
}
