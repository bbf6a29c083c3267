use lz4::block::{compress, compress_to_buffer, decompress_to_buffer};
use proptest::prelude::*;

use super::*;
use crate::error::Result;
use crate::limits::Limits;
use crate::source::Source;

/// The block of `plain`, which comes in parts of these sizes, over and over, after its length.
fn compress_in_parts(plain: &[u8], level: i32, sizes: &[usize]) -> Vec<u8> {
    let budget = Limits::default().budget();
    let mut block = BlockWriter::new(level, &budget);
    let mut rest = plain;
    let sizes = sizes.iter().filter(|size| **size > 0).chain(&[1 << 30]).cycle();
    for size in sizes {
        let (part, later) = rest.split_at(rest.len().min(*size));
        block.append(part).unwrap();
        if later.is_empty() {
            break;
        }
        rest = later;
    }
    assert_eq!(block.bytes(), plain.len() as u64);
    let (pieces, held) = block.finish().unwrap();
    drop(held);
    assert_eq!(budget.used(), 0);
    pieces.concat()
}

fn compress_with_length(plain: &[u8], level: i32) -> Result<Vec<u8>> {
    Ok(compress_in_parts(plain, level, &[]))
}

/// The bytes of the library, and of parts of several sizes.
fn check_parts(plain: &[u8]) {
    let expected = compress(plain, None, true).unwrap();
    for sizes in [&[][..], &[1000, 7], &[300_000], &[192 << 10], &[70_000, 500_000, 3]] {
        // Not compared by `assert_eq`, which would print megabytes.
        assert!(
            compress_in_parts(plain, 0, sizes) == expected,
            "{} bytes in parts of {sizes:?}",
            plain.len()
        );
    }
}

fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn blocks_of_any_length_are_those_of_the_library() {
    let numbers: Vec<u8> = (0..60_000u64).flat_map(|row| (row * row % 1009).to_le_bytes()).collect();
    // Where the library changes its tables, and where bytes are no longer gathered.
    for around in [0, 13, 65_535, 65_547, 192 << 10, 256 << 10] {
        for length in (around.max(3) - 3)..around + 14 {
            check_parts(&numbers[..length]);
        }
    }
}

#[test]
fn long_runs_of_literals_and_long_matches_are_those_of_the_library() {
    let some = noise(700_000, 3);
    let (far, near) = (&some[..66_000], &some[..60_000]);
    let zeros = vec![0; 700_000];
    // Nothing matches; a match follows a long run; matches begin far before the place where they are found.
    check_parts(&some);
    check_parts(&[&some, &some[640_000..], &zeros[..300]].concat());
    check_parts(&near.repeat(30));
    check_parts(&far.repeat(12));
    check_parts(&zeros);
    check_parts(&[&zeros, &some[..], &zeros, near, near, &zeros[..9]].concat());
    for cut in 0..30 {
        check_parts(&[&zeros[..262_144 - 15 + cut], &some[..100_000], &zeros[..cut]].concat());
    }
    for period in [64_999, 65_535, 65_536, 30_011, 4099] {
        check_parts(&some[..period].repeat(3_000_000 / period));
    }
}

#[test]
fn matches_that_begin_before_what_is_in_memory_are_those_of_the_library() {
    // A match of the greatest distance, found at the first place that is looked up again, that begins a few bytes before.
    let mut far = noise(900_000, 3);
    for place in 274_998..275_403 {
        far[place] = far[place - 65_535];
    }
    let expected = compress(&far, None, true).unwrap();
    for first in 274_950..275_100 {
        assert!(compress_in_parts(&far, 0, &[first, 900_000]) == expected, "{first}");
    }
    // A period that is found late, after a long run of literals.
    for (length, repeated) in [(1_500_000, 400_000), (3_000_000, 200_000)] {
        let mut late = noise(length, 1);
        let period: Vec<u8> = late[length - 60_000..].to_vec();
        late.extend(period.iter().cycle().take(repeated));
        for size in [65_536, 262_144, 196_608, 300_000] {
            let expected = compress(&late, None, true).unwrap();
            assert!(compress_in_parts(&late, 0, &[size]) == expected, "{length} in parts of {size}");
        }
    }
}

/// The budget that a finished block takes, and the most that it took before.
fn held_by(plain: &[u8], size: usize) -> (u64, u64, usize) {
    let budget = Limits::default().budget();
    let (mut block, mut most) = (BlockWriter::new(0, &budget), 0);
    for part in plain.chunks(size) {
        block.append(part).unwrap();
        most = most.max(budget.used());
    }
    let (pieces, held) = block.finish().unwrap();
    assert_eq!(held.bytes(), budget.used());
    (held.bytes(), most, pieces.iter().map(Vec::len).sum())
}

#[test]
fn a_finished_block_takes_what_it_has() {
    let some = noise(8_000_000, 5);
    let gaps: Vec<u8> = some.chunks(62_000).flat_map(|part| [part, &[0; 70_000]].concat()).collect();
    for (plain, size) in
        [(&some[..], 8_000_000), (&some, 50_000), (&gaps, 1 << 30), (&gaps, 9_000), (&[0; 400_000], 8_000)]
    {
        let (held, most, bytes) = held_by(plain, size);
        assert!(held as usize <= bytes + 4096, "{held} for {bytes} bytes");
        assert!(most as usize <= bytes + (2 << 20), "{most} for {bytes} bytes");
    }
    // Many short columns are held at a time.
    assert!(held_by(&[0; 400_000], 8_000).1 <= 600_000);
}

#[test]
fn after_an_error_a_block_cannot_be_used() {
    let budget = Limits::default().with_max_alloc(1 << 20).budget();
    let mut block = BlockWriter::new(0, &budget);
    assert!(block.append(&noise(4 << 20, 1)).is_err());
    assert!(block.append(&[1]).is_err());
    assert!(block.finish().is_err());
    assert_eq!(budget.used(), 0);
}

#[test]
fn what_is_kept_of_a_block_is_its_end_and_its_output() {
    let budget = Limits::default().budget();
    let numbers: Vec<u8> = (0..1_000_000u64).flat_map(|row| (row % 3 * 1000).to_le_bytes()).collect();
    let mut block = BlockWriter::new(0, &budget);
    for part in numbers.chunks(50_000) {
        block.append(part).unwrap();
        assert!(budget.used() < 6 << 20, "{}", budget.used());
    }
    drop(block);
    let small = Limits::default().with_max_alloc(1 << 20).budget();
    let mut block = BlockWriter::new(0, &small);
    let error = block.append(&noise(4 << 20, 1)).unwrap_err();
    assert!(error.to_string().contains("max-alloc"), "{error}");
    drop(block);
    assert_eq!((budget.used(), small.used()), (0, 0));
}

/// The block in pieces of these sizes, over and over.
fn pieces(source: &Source, packed: u64, length: u64, sizes: &[u64]) -> Result<Vec<u8>> {
    let budget = Limits::default().budget();
    let mut reader = BlockReader::new(source, 0, packed, length, &budget)?;
    let mut plain = Vec::new();
    for (turn, size) in sizes.iter().chain(&[1000]).cycle().enumerate() {
        match turn % 2 {
            0 => plain.extend_from_slice(&reader.take(*size)?),
            _ => plain.extend_from_slice(&reader.take_mut(*size)?),
        }
        if reader.left() == 0 {
            break;
        }
    }
    drop(reader);
    assert_eq!(budget.used(), 0);
    Ok(plain)
}

fn in_memory(block: &[u8], length: usize, sizes: &[u64]) -> Result<Vec<u8>> {
    let source = Source::from_bytes("block", block.to_vec());
    pieces(&source, block.len() as u64, length as u64, sizes)
}

#[test]
fn the_empty_and_the_short_come_back_on_all_levels() {
    for level in 0..=12 {
        assert_eq!(compress_with_length(&[], level).unwrap(), [0; 5], "level {level}");
        for length in 1..40u8 {
            let plain: Vec<u8> = (0..length).map(|byte| byte % 3).collect();
            let packed = compress_with_length(&plain, level).unwrap();
            assert_eq!(packed[..4], u32::from(length).to_le_bytes(), "level {level}");
            assert_eq!(in_memory(&packed[4..], plain.len(), &[1000]).unwrap(), plain, "level {level}");
            assert_eq!(in_memory(&packed[4..], plain.len(), &[1, 3]).unwrap(), plain, "level {level}");
        }
    }
    // The library's own block of an empty input, where it supports one.
    let mut block = [9; 16];
    assert_eq!(compress_to_buffer(&[], None, true, &mut block).unwrap(), 5);
    assert_eq!(block[..5], [0; 5]);
}

/// Noise, repeats near and far, and long runs of one byte.
fn mixed(parts: &[(u8, u16, u16)]) -> Vec<u8> {
    let mut plain: Vec<u8> = Vec::new();
    let mut state = 1u32;
    for (kind, count, distance) in parts {
        for _ in 0..*count {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let back = plain.len().checked_sub(usize::from(*distance) + 1);
            let byte = match (kind % 3, back) {
                (0, _) | (_, None) => (state >> 24) as u8,
                (1, Some(place)) => plain[place],
                _ => 7,
            };
            plain.push(byte);
        }
    }
    plain
}

proptest! {
    #[test]
    fn parts_of_any_size_become_the_block_of_the_library(
        parts in prop::collection::vec((any::<u8>(), 1u16.., any::<u16>()), 1..40),
        sizes in prop::collection::vec(prop_oneof![1usize..100, 1usize..70_000, 1usize..700_000], 0..5),
    ) {
        let plain = mixed(&parts);
        let expected = compress(&plain, None, true).unwrap();
        prop_assert!(compress_in_parts(&plain, 0, &sizes) == expected);
    }

    #[test]
    fn pieces_are_the_block(
        parts in prop::collection::vec((any::<u8>(), 1u16.., any::<u16>()), 1..12),
        sizes in prop::collection::vec(prop_oneof![Just(0u64), 1u64..200_000], 1..5),
    ) {
        let plain = mixed(&parts);
        let block = &compress_with_length(&plain, 0).unwrap()[4..];
        prop_assert_eq!(&in_memory(block, plain.len(), &sizes).unwrap(), &plain);
        // From a file, the packed bytes too come in pieces.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("block");
        std::fs::write(&path, block).unwrap();
        let file = Source::open(&path).unwrap();
        prop_assert_eq!(pieces(&file, block.len() as u64, plain.len() as u64, &sizes).unwrap(), plain);
    }

    #[test]
    fn damaged_blocks_are_refused_as_by_the_library(
        plain in prop::collection::vec(0u8..4, 1..400),
        cut in 0usize..20,
        flip in prop::option::of((any::<prop::sample::Index>(), 1u8..)),
        longer in -2i64..3,
        size in 1u64..500,
    ) {
        let mut block = compress_with_length(&plain, 0).unwrap().split_off(4);
        block.truncate(block.len().saturating_sub(if flip.is_some() { 0 } else { cut }));
        if let Some((place, bits)) = flip {
            let place = place.index(block.len());
            block[place] ^= bits;
        }
        let length = usize::try_from(plain.len() as i64 + longer).unwrap_or(0).max(1);
        let mut twin = vec![0; length];
        let written = decompress_to_buffer(&block, Some(length as i32), &mut twin);
        let expected = written.is_ok_and(|written| written == length).then_some(twin);
        let found = in_memory(&block, length, &[size]);
        // The library takes the distance 0, for which the format has no meaning.
        if found.is_ok() || !has_distance_zero(&block) {
            prop_assert_eq!(found.ok(), expected);
        }
    }
}

fn has_distance_zero(block: &[u8]) -> bool {
    block.windows(2).any(|pair| pair == [0, 0])
}
