//! Bins over a range that is not known in advance: if a value is outside, adjacent bins are merged and each becomes
//! twice as wide, until the value fits. So one pass in constant memory is enough.

/// A range of bins that can be extended.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    /// The start of the first bin, in widths of a bin.
    first: f64,
    width: f64,
    count: usize,
    is_empty: bool,
}

/// How bins are joined to take a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Joined {
    /// Bin `i` becomes bin `(i + shift) / 2`.
    pub(crate) shift: usize,
}

impl Scale {
    pub(crate) fn new(count: usize) -> Self {
        Scale { first: 0.0, width: 0.0, count, is_empty: true }
    }

    /// From 0 to at least `end`, in bins of a whole number of units.
    pub(crate) fn whole(end: u64, count: usize) -> Self {
        let width = end.div_ceil(count as u64).max(1);
        Scale { first: 0.0, width: width as f64, count, is_empty: false }
    }

    /// The bin of a finite value. Calls `join` for each time that bins must be joined first.
    pub(crate) fn bin(&mut self, value: f64, mut join: impl FnMut(Joined)) -> usize {
        if self.is_empty {
            // A few times the least difference of values of this size: further values soon widen it.
            self.width = (value.abs() * 1e-12).max(1e-12);
            self.first = (value / self.width).floor() - (self.count / 2) as f64;
            self.is_empty = false;
        }
        loop {
            let bin = (value / self.width).floor() - self.first;
            if (0.0..self.count as f64).contains(&bin) {
                return bin as usize;
            }
            // Bins begin at multiples of the doubled width.
            let shift = usize::from(self.first.rem_euclid(2.0) != 0.0);
            let mut first = (self.first - shift as f64) / 2.0;
            self.width *= 2.0;
            // The merged bins fill one half; the other half is on the side of the value.
            let mut moved = shift;
            if bin < 0.0 {
                let room = (self.count / 2).saturating_sub(1);
                first -= room as f64;
                moved += 2 * room;
            }
            self.first = first;
            join(Joined { shift: moved });
        }
    }

    /// The start of bin `index`.
    pub(crate) fn start(&self, index: usize) -> f64 {
        (self.first + index as f64) * self.width
    }

    pub(crate) fn width(&self) -> f64 {
        self.width
    }
}

/// Joins bins of one row in place.
pub(crate) fn join<T: Default + Clone>(bins: &mut [T], joined: Joined, mut add: impl FnMut(&mut T, T)) {
    let old: Vec<T> = bins.to_vec();
    bins.fill(T::default());
    for (index, value) in old.into_iter().enumerate() {
        if let Some(bin) = bins.get_mut((index + joined.shift) / 2) {
            add(bin, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_value_is_counted_in_its_bin(values in proptest::collection::vec(-1e9f64..1e9, 1..200)) {
            let mut scale = Scale::new(64);
            let mut bins = vec![0u64; 64];
            for value in &values {
                let bin = scale.bin(*value, |joined| join(&mut bins, joined, |bin, more| *bin += more));
                bins[bin] += 1;
            }
            let mut expected = vec![0u64; 64];
            for value in &values {
                let bin = scale.bin(*value, |_| panic!("all values fit"));
                expected[bin] += 1;
                // The ends of bins are rounded as every float is.
                let slack = value.abs() * 1e-12 + 1e-9;
                prop_assert!(scale.start(bin) - slack <= *value && *value < scale.start(bin + 1) + slack);
            }
            prop_assert_eq!(bins, expected);
        }
    }
}
