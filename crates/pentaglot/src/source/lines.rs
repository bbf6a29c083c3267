//! [`Lines`]: the line ends before a window, so that errors have the numbers of their lines.

/// The most line ends of a record that are kept.
const MOST_ENDS: usize = 1 << 16;

/// The line ends before the bytes that a window has in memory.
#[derive(Debug, Default)]
pub(super) struct Lines {
    count: u64,
    /// Where the current record begins, and the line ends in it that are not in memory any more.
    record: Option<u64>,
    ends: Vec<u64>,
}

impl Lines {
    /// A record begins at `offset`: numbers of its lines are known also when it is not in memory any more.
    #[inline]
    pub(super) fn begin_record(&mut self, offset: u64) {
        self.record = Some(offset);
        self.ends.clear();
    }

    /// Counts the line ends of bytes that leave the memory; the first one has this offset.
    pub(super) fn leave(&mut self, bytes: &[u8], offset: u64) {
        self.count += line_ends(bytes);
        let Some(record) = self.record else { return };
        let before = usize::try_from(record.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
        let first = offset + before as u64;
        let ends = memchr::memchr_iter(b'\n', &bytes[before..]).map(|end| first + end as u64);
        self.ends.extend(ends.take(MOST_ENDS + 1));
        if self.ends.len() > MOST_ENDS {
            (self.record, self.ends) = (None, Vec::new());
        }
    }

    /// The bytes are in memory again.
    pub(super) fn come_back(&mut self, bytes: &[u8]) {
        self.count = self.count.saturating_sub(line_ends(bytes));
        (self.record, self.ends) = (None, Vec::new());
    }

    /// The number of the line in which the last of these bytes ends, which are the first in memory.
    pub(super) fn after(&self, bytes: &[u8]) -> u64 {
        self.count + line_ends(bytes) + 1
    }

    /// The number of the line of an offset that is not in memory any more; `None` if it is not in the current record.
    pub(super) fn before(&self, offset: u64) -> Option<u64> {
        let later = self.ends.len() - self.ends.partition_point(|end| *end < offset);
        self.record.filter(|record| *record <= offset).map(|_| self.count - later as u64 + 1)
    }
}

fn line_ends(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
