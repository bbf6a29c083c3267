//! [`RowOutput`]: rows are encoded in pieces, side by side if the job has several threads, and written in order.

use std::io::Write;
use std::ops::Range;

use arrow_array::RecordBatch;

use crate::control::{Control, Spare};
use crate::error::Result;
use crate::hub::batch_bytes;
use crate::sink::Sink;
use crate::source::Spool;

/// Rows that one thread encodes at a time: at the most, and at the least unless they are long.
const PIECE_ROWS: (usize, usize) = (4096, 64);
/// The bytes of the values that one thread encodes at a time, unless a single row has more.
const PIECE_BYTES: usize = 256 << 10;
/// A buffer that has grown beyond so many bytes is freed after its use.
const MOST_KEPT: usize = 4 * PIECE_BYTES;
/// Rows that may become so many bytes are encoded one at a time.
const LARGE_ROW: usize = 4 << 20;

/// Where encoded rows go: to the sink, or to a spool if the bytes before them are known only at the end.
pub(crate) struct RowOutput {
    pub(crate) sink: Sink,
    pub(crate) spool: Option<Spool>,
    /// Bytes that are written before the first rows, or at the end if there are none: if these fail, nothing is written.
    pub(crate) begin: Vec<u8>,
    control: Control,
    /// What pieces are encoded into: using a buffer again is faster than new memory.
    buffers: Spare<Vec<u8>>,
}

impl RowOutput {
    pub(crate) fn new(sink: Sink, control: &Control) -> Self {
        RowOutput {
            sink,
            spool: None,
            begin: Vec::new(),
            control: control.clone(),
            buffers: Spare::default(),
        }
    }

    /// Writes the rows of a batch. `encode` appends those of a range; it may be called on several threads. `more_bytes` is what a
    /// row may take in addition to its values.
    pub(crate) fn write_rows(
        &mut self,
        rows: &RecordBatch,
        more_bytes: usize,
        encode: impl Fn(Range<usize>, &mut Vec<u8>) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        let count = rows.num_rows();
        let row_bytes = (batch_bytes(rows) / count.max(1)).saturating_add(more_bytes).max(1);
        let control = self.control.clone();
        let threads = if row_bytes < LARGE_ROW { control.threads() } else { 1 };
        let (most, least) = PIECE_ROWS;
        // Small batches are divided too.
        let share = if threads > 1 { count.div_ceil(threads.saturating_mul(2)).max(least) } else { count };
        let step = (PIECE_BYTES / row_bytes).min(most).min(share).max(1);
        let ranges = |range: Range<usize>| {
            let end = range.end;
            range.step_by(step).map(move |start| start..end.min(start + step))
        };
        let buffers = std::mem::take(&mut self.buffers);
        let piece = |range: Range<usize>| {
            let mut bytes = buffers.take();
            bytes.clear();
            encode(range, &mut bytes).map(|()| bytes)
        };
        let mut write = |bytes: Vec<u8>| {
            self.write(&bytes)?;
            if bytes.capacity() <= MOST_KEPT {
                buffers.keep(bytes);
            }
            Ok(())
        };
        if threads == 1 {
            ranges(0..count).try_for_each(|range| write(piece(range)?))?;
        } else {
            let group = step.saturating_mul(control.pieces());
            for start in (0..count).step_by(group) {
                let some = ranges(start..count.min(start + group)).collect();
                control.each_in_order(some, piece, &mut write)?;
            }
        }
        self.buffers = buffers;
        Ok(())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if !self.begin.is_empty() {
            self.sink.write_all(&std::mem::take(&mut self.begin))?;
        }
        match &mut self.spool {
            Some(spool) => spool.write_all(bytes)?,
            None => self.sink.write_all(bytes)?,
        }
        Ok(())
    }

    /// Ends the output; gives its bytes.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.write(&[])?;
        self.sink.finish()
    }
}
