//! Mean and deviation of numbers, block by block.

/// Squares of numbers near the end of the range of float64 exceed it: they are also summed in this unit, 2^-600.
const UNIT: f64 = f64::from_bits((1023 - 600) << 52);

/// Count, mean and sum of squared differences from the mean.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    pub(super) count: u64,
    pub(super) mean: f64,
    squares: f64,
    /// The squares of the differences times [`UNIT`].
    small_squares: f64,
}

impl Moments {
    /// The moments of a block: the mean first, then the differences from it.
    pub(super) fn of(numbers: &[f64]) -> Self {
        let count = numbers.len() as f64;
        if numbers.is_empty() {
            return Moments::default();
        }
        let mean = match sum(numbers, |number| number) / count {
            mean if mean.is_finite() => mean,
            // The sum of finite numbers may not be finite.
            _ => sum(numbers, |number| number / count),
        };
        let squares = sum(numbers, |number| (number - mean) * (number - mean));
        let small_squares = match squares.is_finite() {
            true => squares * UNIT * UNIT,
            false => sum(numbers, |number| square(number * UNIT - mean * UNIT)),
        };
        Moments { count: numbers.len() as u64, mean, squares, small_squares }
    }

    /// The moments of the same numbers, each plus `shift`.
    pub(super) fn shifted(self, shift: f64) -> Self {
        Moments { mean: self.mean + shift, ..self }
    }

    /// Combines two blocks (Chan, Golub, LeVeque 1979).
    pub(super) fn merge(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other;
            return;
        }
        let (own, theirs) = (self.count as f64, other.count as f64);
        let total = own + theirs;
        let difference = other.mean - self.mean;
        let small_difference = other.mean * UNIT - self.mean * UNIT;
        self.mean = match difference.is_finite() {
            true => self.mean + difference * (theirs / total),
            // With infinities the mean is their sum: infinite, or NaN for different signs.
            false => self.mean * (own / total) + other.mean * (theirs / total),
        };
        let weight = own * (theirs / total);
        self.squares += other.squares + square(difference) * weight;
        self.small_squares += other.small_squares + square(small_difference) * weight;
        self.count += other.count;
    }

    /// The standard deviation of a sample: over `n - 1`. `None` for fewer than two values.
    pub(super) fn deviation(&self) -> Option<f64> {
        let least = (self.count > 1).then(|| (self.count - 1) as f64)?;
        Some(match self.squares.is_finite() {
            true => (self.squares / least).sqrt(),
            false => (self.small_squares / least).sqrt() / UNIT,
        })
    }
}

fn square(number: f64) -> f64 {
    number * number
}

/// Eight partial sums: faster than one, and more accurate.
fn sum(numbers: &[f64], term: impl Fn(f64) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    let (blocks, rest) = numbers.as_chunks::<8>();
    for block in blocks {
        for (sum, number) in sums.iter_mut().zip(block) {
            *sum += term(*number);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|number| term(*number)).sum::<f64>()
}
