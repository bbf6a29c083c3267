//! The first and the last bytes of an output, for a checksum of them.

/// How many bytes of each end are kept.
pub(crate) const END_BYTES: usize = 64 << 10;

/// The first and the last [`END_BYTES`] bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    first: Vec<u8>,
    /// Up to twice `END_BYTES`, so that not every small write has to move the bytes.
    last: Vec<u8>,
    len: u64,
}

impl Ends {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        let missing = END_BYTES - self.first.len();
        self.first.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        let kept = &bytes[bytes.len().saturating_sub(END_BYTES)..];
        if self.last.len() + kept.len() > 2 * END_BYTES {
            let surplus = (self.last.len() + kept.len() - END_BYTES).min(self.last.len());
            self.last.drain(..surplus);
        }
        self.last.extend_from_slice(kept);
    }

    pub(super) fn patch(&mut self, offset: u64, bytes: &[u8]) {
        let last_start = self.len - self.last.len() as u64;
        for (start, part) in [(0, &mut self.first), (last_start, &mut self.last)] {
            for (at, byte) in (offset..).zip(bytes) {
                let place = at.checked_sub(start).and_then(|index| usize::try_from(index).ok());
                if let Some(place) = place.and_then(|index| part.get_mut(index)) {
                    *place = *byte;
                }
            }
        }
    }

    /// The length of the stream, its first and its last bytes.
    pub(crate) fn parts(&self) -> (u64, &[u8], &[u8]) {
        (self.len, &self.first, &self.last[self.last.len().saturating_sub(END_BYTES)..])
    }
}
