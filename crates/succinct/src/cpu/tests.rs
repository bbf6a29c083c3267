use super::*;

fn words() -> impl Iterator<Item = u64> {
    let mut state = 7_u64;
    let random = std::iter::repeat_with(move || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (state ^ (state >> 29)) & (state.rotate_left(17) | (state >> 63).wrapping_neg())
    });
    [0, 1, u64::MAX, 1 << 63, 0x8000_0000_0000_0001].into_iter().chain(random.take(2000))
}

fn agrees_with_the_plain_loop(isa: impl Isa) {
    for word in words() {
        assert_eq!(isa.popcount(word), (0..64).filter(|&bit| word >> bit & 1 == 1).count() as u64);
        for (rank, bit) in (0..64).filter(|&bit| word >> bit & 1 == 1).enumerate() {
            assert_eq!(isa.select_in_word(word, rank as u64), bit, "{word:#x} {rank}");
            assert_eq!(isa.select_present(word, rank as u64), bit, "{word:#x} {rank}");
        }
        assert!(isa.select_in_word(word, 63) < 64 && isa.select_in_word(word, 64) < 64);
        // SAFETY: the second word is there.
        assert_eq!(unsafe { isa.popcount_at::<8>([0, word].as_ptr()) }, isa.popcount(word));
        let ones = isa.popcount(word);
        for rank in 0..130 {
            let expected = |count: u64| if rank < count { (99, 7) } else { (rank - count, 8) };
            assert_eq!(isa.step::<true, 64>(rank, (99, 7), ones), expected(ones));
            assert_eq!(isa.step::<false, 128>(rank, (99, 7), ones), expected(128 - ones));
        }
        let mask = word.rotate_left(13) ^ 0xF0F0;
        let scattered = (0..64).filter(|bit| mask >> bit & 1 == 1).zip((0..64).map(|bit| word >> bit & 1));
        assert_eq!(isa.deposit(word, mask), scattered.map(|(place, bit)| bit << place).sum());
        let units = (0..16).map(|unit| (word >> (4 * unit) & 7) << (3 * unit));
        assert_eq!(isa.join_octal(word), units.sum());
    }
}

fn finds_as_the_plain_loop<I: Isa>(isa: I) {
    fn check<const ONE: bool, I: Isa>(isa: I, chunk: &[u64]) {
        let is_bit = |bit: &u64| (chunk[(bit / 64) as usize] >> (bit % 64) & 1 == 1) == ONE;
        let bits: Vec<u64> = (0..64 * I::CHUNK as u64).filter(is_bit).collect();
        for rank in (0..600).chain([1 << 8 | 3, 1 << 32, u64::MAX]) {
            // SAFETY: the chunk has that many words.
            let found = unsafe { isa.find_in_chunk::<ONE>(chunk.as_ptr(), rank) };
            let expected = usize::try_from(rank).ok().and_then(|rank| bits.get(rank)).copied();
            assert!(found == expected || rank >= 255 && found.is_none(), "{rank} in {chunk:x?}: {found:?}");
        }
    }
    let words: Vec<u64> = [0; 8].into_iter().chain(words()).chain([u64::MAX; 8]).collect();
    for chunk in words.windows(I::CHUNK).step_by(5).chain([&[0; 8][..I::CHUNK], &[u64::MAX; 8][..I::CHUNK]]) {
        check::<true, I>(isa, chunk);
        check::<false, I>(isa, chunk);
    }
}

#[test]
fn bits_are_found_in_chunks() {
    finds_as_the_plain_loop(Portable);
    dispatch!(isa => finds_as_the_plain_loop(isa));
    if let Some(isa) = wide() {
        finds_as_the_plain_loop(isa);
    }
}

#[test]
fn portable_bit_operations_are_right() {
    agrees_with_the_plain_loop(Portable);
}

#[test]
fn fast_shifts_are_right() {
    let Level::Bmi2(isa) = level() else { return };
    for word in words() {
        for count in 0..=64 {
            assert_eq!(isa.low_bits_to_64(word, count), word & crate::bits::low_mask(count as u32));
        }
        for count in 0..200 {
            assert_eq!(isa.low_bits(word, count), word & !(u64::MAX << (count % 64)));
            assert_eq!(isa.shift_right(word, count), word >> (count % 64));
        }
    }
}

#[test]
fn detected_bit_operations_are_right() {
    dispatch!(isa => agrees_with_the_plain_loop(isa));
    if let Level::Bmi2(_) = level() {
        agrees_with_the_plain_loop(Popcnt(()));
    }
    if let Some(isa) = wide() {
        agrees_with_the_plain_loop(isa);
    }
}
