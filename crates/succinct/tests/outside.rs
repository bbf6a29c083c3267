//! Data outside memory: streamed vectors and side indexes.

mod support;

use std::io::{Cursor, Seek, SeekFrom, Write};

use pentaglot_succinct::*;
use support::{NaiveBits, Random, bytes_of};

#[test]
fn streamed_vectors_are_the_same_bytes() {
    let mut random = Random(23);
    for count in [0_u64, 1, 63, 64, 1000, 100_000] {
        for width in [1, 7, 33, 64] {
            let values: Vec<u64> = (0..count).map(|_| random.next()).collect();
            // Somewhere in a file that already has something.
            let mut output = Cursor::new(Vec::new());
            output.write_all(&[7; 16]).unwrap();
            let mut writer = IntVectorWriter::new(output, width).unwrap();
            values.iter().for_each(|&value| writer.push(value).unwrap());
            let mut output = writer.finish().unwrap();
            let expected = IntVector::from_values(width, values.iter().copied()).unwrap();
            let expected = bytes_of(&expected.to_words(Supports::AsIs));
            assert_eq!(output.stream_position().unwrap(), 16 + expected.len() as u64);
            assert_eq!(output.get_ref()[16..], expected);

            output.seek(SeekFrom::Start(0)).unwrap();
            let mut writer = RawVectorWriter::new(output).unwrap();
            values.iter().for_each(|&value| writer.push_int(value, width).unwrap());
            writer.push(true).unwrap();
            let bytes = writer.finish().unwrap().into_inner();
            let mut expected = RawVector::new();
            values.iter().for_each(|&value| expected.push_int(value, width));
            expected.push(true);
            let raw = bytes_of(&expected.to_words(Supports::AsIs));
            assert_eq!(bytes[..raw.len()], raw);

            let mut output = Cursor::new(Vec::new());
            output.write_all(&[7; 8]).unwrap();
            let mut writer = BitVectorWriter::new(output).unwrap();
            values.iter().for_each(|&value| writer.push_int(value, width).unwrap());
            writer.push(true).unwrap();
            assert_eq!((writer.len(), writer.is_empty()), (expected.len(), false));
            let mut output = writer.finish().unwrap();
            let bits = bytes_of(&BitVector::from(expected).to_words(Supports::Lean));
            assert_eq!(output.stream_position().unwrap(), 8 + bits.len() as u64);
            assert_eq!(output.get_ref()[8..], bits);
        }
    }
}

#[test]
fn streamed_run_length_vectors_are_the_same_bytes() {
    let mut random = Random(37);
    for (count, gap, run) in [
        (0, 1, 1),
        (1, 1, 1),
        (1, 1 << 62, 1 << 61),
        (40, 1 << 40, 1 << 50),
        (5000, 9, 4),
        (20_000, 300, 2000),
    ] {
        let (mut runs, mut at) = (Vec::new(), 0);
        for _ in 0..count {
            // Some runs touch the one before, some are empty.
            let start = at + random.next() % gap;
            let run = random.next() % run;
            runs.push((start, run));
            at = start + run;
        }
        for len in [at, at + 1000] {
            let expected = RunLengthVector::from_runs(len, runs.iter().copied()).unwrap();
            let mut scratch = Cursor::new(vec![9; 100]);
            scratch.seek(SeekFrom::Start(60)).unwrap();
            let mut writer = RunLengthVectorWriter::new(vec![1, 2, 3], scratch).unwrap();
            for &(start, run) in &runs {
                writer.push_run(start, run).unwrap();
                assert_eq!(writer.len(), start + run);
            }
            assert!(at == 0 || writer.push_run(at - 1, 1).is_err(), "overlaps");
            let bytes = writer.finish(len).unwrap();
            assert_eq!(bytes[..3], [1, 2, 3]);
            assert_eq!(bytes[3..], bytes_of(&expected.to_words(Supports::AsIs)));
        }
    }
    let mut writer = RunLengthVectorWriter::new(Vec::new(), Cursor::new(Vec::new())).unwrap();
    writer.push_run(5, 5).unwrap();
    assert!(writer.finish(9).is_err());
}

#[test]
fn streamed_sparse_vectors_are_the_same_bytes() {
    let mut random = Random(29);
    for (universe, count, multiset) in [
        (0, 0, false),
        (10, 0, false),
        (1, 1, false),
        (1 << 40, 5000, false),
        (100, 1000, true),
        (50_000, 40_000, true),
    ] {
        let mut positions: Vec<u64> = (0..count).map(|_| random.next() % universe).collect();
        positions.sort_unstable();
        if !multiset {
            positions.dedup();
        }
        let options = SparseOptions::default().multiset(multiset);
        let expected = SparseVector::from_sorted_with(universe, positions.iter().copied(), options).unwrap();
        let output = Cursor::new(Vec::new());
        let mut writer = SparseVectorWriter::new(output, universe, positions.len() as u64, options).unwrap();
        positions.iter().for_each(|&position| writer.push(position).unwrap());
        assert!(writer.push(0).is_err());
        let bytes = writer.finish().unwrap().into_inner();
        assert_eq!(bytes, bytes_of(&expected.to_words(Supports::Lean)));
    }
    let writer = SparseVectorWriter::new(Cursor::new(Vec::new()), 10, 1, SparseOptions::default()).unwrap();
    assert!(writer.finish().is_err());
}

/// Every element of `elements`, each time it is replayed.
fn replay(elements: &[u64]) -> impl Replay + '_ {
    |take: &mut dyn FnMut(u64) -> std::io::Result<()>| elements.iter().copied().try_for_each(take)
}

#[test]
fn replayed_vectors_are_the_same_words() {
    let mut random = Random(41);
    // Dense, sparse enough for long superblocks, and clustered.
    for (count, one_in) in [(0_u64, 2), (1, 1), (513, 2), (100_000, 3), (1_000_000, 4000), (300_000, 1)] {
        let bits: BitVector =
            (0..count).map(|at| random.next().is_multiple_of(one_in) || at % 90_000 > 88_000).collect();
        let expected = bits.to_words(Supports::Full);
        let mut words = Vec::new();
        write_bits(count, bits.count_ones(), [true; 3], replay(bits.bits().words()), &mut words).unwrap();
        assert!(words == expected, "{count} bits, one in {one_in}");
        words.clear();
        write_bits(count, bits.count_ones(), [false; 3], replay(bits.bits().words()), &mut words).unwrap();
        assert!(words == bits.to_words(Supports::Lean));
        words.clear();
        write_raw(count, replay(bits.bits().words()), &mut words).unwrap();
        assert!(words == bits.bits().to_words(Supports::Lean));

        let positions: Vec<u64> = bits.ones().collect();
        for (universe, width) in
            [(count, None), (count + 12_345, None), (count, Some(1)), (1 << 40, Some(30))]
        {
            let mut options = SparseOptions::default();
            options.width = width;
            let expected =
                SparseVector::from_sorted_with(universe, positions.iter().copied(), options).unwrap();
            words.clear();
            let (ones, full) = (positions.len() as u64, [false, true, true]);
            write_sparse(universe, ones, options, full, replay(&positions), &mut words).unwrap();
            assert!(words == expected.to_words(Supports::Full), "{count} {one_in} {universe} {width:?}");
        }
        words.clear();
        write_ints(positions.len() as u64, 20, replay(&positions), &mut words).unwrap();
        assert!(
            words == IntVector::from_values(20, positions.iter().copied()).unwrap().to_words(Supports::Lean)
        );
    }
    let unsorted = write_sparse(9, 2, SparseOptions::default(), [false; 3], replay(&[5, 5]), &mut Vec::new());
    assert!(unsorted.is_err());
    assert!(write_ints(3, 8, replay(&[1, 2]), &mut Vec::new()).is_err());
}

#[test]
fn indexes_come_back_from_the_side() {
    let mut random = Random(31);
    let raw: RawVector = (0..30_000).map(|index| random.next() % 1000 < index / 40).collect();
    let ones: Vec<u64> = BitVector::from(raw.clone()).ones().collect();
    let naive = NaiveBits::new(raw.len(), ones.clone());
    fn carry(from: &impl Indexed, to: &impl Indexed) {
        let mut side = Vec::new();
        from.write_index(&mut side).unwrap();
        let mut cursor = WordCursor::new(SharedWords::new(side));
        to.attach_index(&mut cursor).unwrap();
        assert_eq!(cursor.left(), 0);
    }
    for supports in [Supports::Lean, Supports::Full] {
        let words = BitVector::from(raw.clone()).to_words(supports);
        let open = || BitVector::from_words(&mut WordCursor::new(&words[..])).unwrap();
        let opened = open();
        carry(&open(), &opened);
        naive.check(&opened);
    }
    let sparse = || SparseVector::from_sorted(raw.len(), &ones).unwrap();
    let words = sparse().to_words(Supports::Lean);
    let opened = SparseVector::from_words(&mut WordCursor::new(&words[..])).unwrap();
    carry(&sparse(), &opened);
    naive.check(&opened);
    let runs = || raw.iter().collect::<RunLengthVector>();
    let opened = runs();
    carry(&runs(), &opened);
    naive.check(&opened);
    let values: Vec<u64> = (0..3000).map(|_| random.next() % 50).collect();
    let matrix = || WaveletMatrix::from_values(&values).unwrap();
    let opened = matrix();
    carry(&matrix(), &opened);
    support::check_wavelet(&values, &opened);
    let other: BitVector = [true].into_iter().collect();
    let mut side = Vec::new();
    BitVector::from(raw).write_index(&mut side).unwrap();
    assert!(other.attach_index(&mut WordCursor::new(SharedWords::new(side))).is_err());
}

#[test]
fn queries_from_many_threads_agree() {
    let bits: BitVector = (0..100_000).map(|index| index % 3 == 1).collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for rank in 0..33_000 {
                    assert_eq!(bits.select(rank), Some(3 * rank + 1));
                    assert_eq!(bits.rank(3 * rank), rank);
                }
            });
        }
    });
}
