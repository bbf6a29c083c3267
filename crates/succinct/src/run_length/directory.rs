//! Finds the block of a value in one step and a short search.

use std::io;

use crate::bits::bit_len;
use crate::cpu::prefetch;
use crate::cursor::WordCursor;
use crate::error::Error;
use crate::layout::WordSink;
use crate::storage::SharedWords;

/// For every 2^`shift` values the last block that starts at or before them.
///
/// Space: 8 to 16 bits per block. Cache misses: 1.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    shift: u32,
    // Two to a word; none if there are more blocks than 32 bits can number.
    blocks: SharedWords,
}

/// Target number of blocks per entry.
const BLOCKS_PER_ENTRY: u64 = 4;

impl Directory {
    /// For `count` blocks over `total` values; `sample` returns the number of values before a block.
    pub(crate) fn build(count: u64, total: u64, sample: impl Fn(u64) -> u64) -> Self {
        let shift = bit_len(total / (count / BLOCKS_PER_ENTRY + 1)) - 1;
        let entries = if count > u64::from(u32::MAX) { 0 } else { (total >> shift) + 2 };
        let mut blocks = vec![0; entries.div_ceil(2) as usize];
        let mut block = 0;
        for entry in 0..entries {
            let value = u128::from(entry) << shift;
            while block + 1 < count && u128::from(sample(block + 1)) <= value {
                block += 1;
            }
            blocks[(entry / 2) as usize] |= block << (entry % 2 * 32);
        }
        Directory { shift, blocks: SharedWords::new(blocks) }
    }

    /// The blocks among which the one with `value` is: first and last.
    #[inline(always)]
    pub(crate) fn range(&self, value: u64) -> (u64, u64) {
        let (blocks, entry) = (self.blocks.as_ref(), value >> self.shift);
        match (blocks.get((entry / 2) as usize), blocks.get((entry.wrapping_add(1) / 2) as usize)) {
            (Some(first), Some(last)) => {
                let half = entry % 2 * 32;
                ((first >> half) & 0xFFFF_FFFF, (last >> (32 - half)) & 0xFFFF_FFFF)
            }
            _ => (0, u64::MAX),
        }
    }

    #[inline(always)]
    pub(crate) fn prefetch(&self, value: u64) {
        prefetch(self.blocks.as_ref(), ((value >> self.shift) / 2) as usize);
    }

    pub(crate) fn write(&self, sink: &mut impl WordSink) -> io::Result<()> {
        let blocks = self.blocks.as_ref();
        sink.put(&[u64::from(self.shift), blocks.len() as u64])?;
        sink.put(blocks)
    }

    pub(crate) fn read(cursor: &mut WordCursor<SharedWords>) -> Result<Self, Error> {
        let at = cursor.position();
        let shift = cursor.element("shift")?;
        if shift > 63 {
            return Err(Error::malformed(at, "shift", "0 to 63", shift));
        }
        Ok(Directory { shift: shift as u32, blocks: cursor.vector(1, "blocks")? })
    }
}
