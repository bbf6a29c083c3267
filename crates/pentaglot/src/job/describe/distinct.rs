//! How many different values there are, estimated from their hashes (HyperLogLog).

/// Bits of the hash that choose a register: 32,768 registers, a standard error of 0.57 %.
const BITS: u32 = 15;

/// The registers. Equal sets of hashes give equal registers, in any order and however they are divided.
#[derive(Debug, Clone)]
pub(super) struct HyperLogLog(Vec<u8>);

impl HyperLogLog {
    pub(super) fn new() -> Self {
        HyperLogLog(vec![0; 1 << BITS])
    }

    #[inline]
    pub(super) fn insert(&mut self, hash: u64) {
        let register = &mut self.0[(hash >> (64 - BITS)) as usize];
        let rest = (hash << BITS) | (1 << (BITS - 1));
        *register = (*register).max(rest.leading_zeros() as u8 + 1);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*other);
        }
    }

    /// The estimate of Ertl ("New cardinality estimation algorithms for HyperLogLog sketches", 2017, algorithm 6): it
    /// needs no correction for small or large counts.
    pub(super) fn estimate(&self) -> u64 {
        let q = 64 - BITS as usize;
        let mut counts = vec![0u64; q + 2];
        self.0.iter().for_each(|register| counts[usize::from(*register)] += 1);
        let m = self.0.len() as f64;
        let mut z = m * tau(1.0 - counts[q + 1] as f64 / m);
        for count in counts[1..=q].iter().rev() {
            z = 0.5 * (z + *count as f64);
        }
        z += m * sigma(counts[0] as f64 / m);
        (m * m / (2.0 * std::f64::consts::LN_2 * z)).round() as u64
    }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}
