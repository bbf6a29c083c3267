//! Contestants, and the random data they are asked about.

/// Something to time.
pub struct Contestant {
    pub row: &'static str,
    pub name: &'static str,
    /// Operations per lap.
    pub ops: u64,
    pub run: Box<dyn FnMut() -> u64>,
}

/// The contestants of a group; `ours` is left out of native builds.
#[derive(Default)]
pub struct Field {
    pub contestants: Vec<Contestant>,
}

impl Field {
    pub fn add(
        &mut self,
        row: &'static str,
        name: &'static str,
        ops: usize,
        run: impl FnMut() -> u64 + 'static,
    ) {
        if name == "ours" && cfg!(target_feature = "bmi2") {
            return;
        }
        self.contestants.push(Contestant { row, name, ops: ops as u64, run: Box::new(run) });
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// `count` numbers below `limit`.
    pub fn below(&mut self, limit: u64, count: usize) -> &'static [u64] {
        (0..count)
            .map(|_| ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64)
            .collect::<Vec<_>>()
            .leak()
    }
}

/// `n` bits, each set with probability `density`; the words, unused bits zero.
pub fn random_words(n: u64, density: f64, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let limit = (density * 65536.0) as u64;
    let mut words = vec![0_u64; n.div_ceil(64) as usize];
    for (index, word) in words.iter_mut().enumerate() {
        for quarter in 0..16 {
            let value = random.next();
            for lane in 0..4 {
                *word |= u64::from((value >> (16 * lane)) & 0xFFFF < limit) << (4 * quarter + lane);
            }
        }
        let left = n - 64 * index as u64;
        if left < 64 {
            *word &= (1 << left) - 1;
        }
    }
    words
}

/// Sums answers; not inlined, so that a contestant's loop is compiled by itself.
#[inline(never)]
pub fn sum(questions: &[u64], mut ask: impl FnMut(u64) -> u64) -> u64 {
    questions.iter().fold(0, |total: u64, &question| total.wrapping_add(ask(question)))
}

/// A number for an answer that may be missing.
pub fn or_zero(answer: Option<usize>) -> u64 {
    answer.unwrap_or(0) as u64
}
