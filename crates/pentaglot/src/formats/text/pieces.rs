//! Text in pieces that end at line ends, which several threads read side by side.
//!
//! Pieces are read without any message: where one is not plain (a record goes on past its end, a value does not fit), the
//! careful reader reads it again, from the same place to the same end, and says what is wrong. So messages come from one place,
//! and batches end at the same rows whatever the number of threads.

use std::io::Read;
use std::ops::Range;

use crate::control::Control;
use crate::error::Result;
use crate::limits::Budget;
use crate::source::Window;

/// How much text a batch is made from where the default budget is used.
const BATCH_TEXT_BYTES: u64 = 1 << 20;
/// How many bytes a cell may take in memory; a batch has no more cells than fit a batch of the budget.
const CELL_BYTES: u64 = 16;
/// The most pieces that the careful reader reads in a row after one was not plain.
const MOST_CAREFUL: u32 = 16;

/// The bytes of text after which a batch ends with its line.
pub(super) fn batch_text_bytes(budget: &Budget) -> u64 {
    budget.batch_bytes(16 * BATCH_TEXT_BYTES) / 16
}

/// The most rows of a batch of so many columns.
pub(super) fn batch_rows(columns: usize, budget: &Budget) -> usize {
    let cells = budget.batch_bytes(16 * BATCH_TEXT_BYTES) / CELL_BYTES;
    usize::try_from(cells / (columns as u64).max(1)).unwrap_or(usize::MAX).max(1)
}

/// When text is read in pieces, and how many at a time.
pub(super) struct Pieces {
    control: Control,
    /// How many pieces are read side by side; 0: the careful reader reads everything.
    lanes: usize,
    bytes: usize,
    /// How many batches the careful reader is still to read, and how many the next time.
    careful: u32,
    next_careful: u32,
}

impl Pieces {
    /// Text that is cut into pieces if `allowed` and if the job has several threads.
    pub(super) fn new(allowed: bool, control: &Control, budget: &Budget) -> Self {
        let bytes = batch_text_bytes(budget);
        let room = usize::try_from(budget.limits().max_alloc / 64 / bytes).unwrap_or(usize::MAX);
        let lanes = if allowed && control.threads() > 1 { control.threads().min(room) } else { 0 };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Pieces { control: control.clone(), lanes, bytes, careful: 0, next_careful: 1 }
    }

    /// The next pieces of a window, as ranges of what it has in memory. None: the careful reader reads the next batch.
    pub(super) fn cut<R: Read>(&mut self, window: &mut Window<R>) -> Result<Vec<Range<usize>>> {
        if self.lanes < 2 {
            return Ok(Vec::new());
        }
        if self.careful > 0 {
            self.careful -= 1;
            return Ok(Vec::new());
        }
        // The last line of each piece goes past its nominal end.
        window.fill(self.lanes.saturating_mul(self.bytes.saturating_add(self.bytes / 8)))?;
        Ok(cuts(window.rest(), self.bytes, self.lanes, window.is_last()))
    }

    /// Does `read` for each piece; results are those of the first pieces, up to one that is not plain.
    pub(super) fn each<I: Send, T: Send>(
        &mut self,
        pieces: Vec<I>,
        read: impl Fn(I) -> Result<T> + Send + Sync,
    ) -> Result<Vec<T>> {
        let count = pieces.len();
        let results = self.control.map(pieces, read)?;
        let plain: Vec<T> = results.into_iter().map_while(Result::ok).collect();
        if plain.len() < count {
            self.careful = self.next_careful;
            self.next_careful = (2 * self.next_careful).min(MOST_CAREFUL);
        } else {
            self.next_careful = 1;
        }
        Ok(plain)
    }
}

/// Cuts text into at most `most` pieces: each ends with the first line that ends at `least` bytes or later; at the end of
/// the input, with the last line.
fn cuts(text: &[u8], least: usize, most: usize, is_last: bool) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let mut start = 0;
    while cuts.len() < most && start < text.len() {
        let from = start.saturating_add(least.max(1)) - 1;
        let line_end = text.get(from..).and_then(|rest| memchr::memchr(b'\n', rest));
        let end = match line_end {
            Some(line_end) => from + line_end + 1,
            None if is_last => text.len(),
            None => break,
        };
        cuts.push(start..end);
        start = end;
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_with_the_first_line_that_is_long_enough() {
        let text = b"aaa\nbb\n\ncccccccc\nd";
        assert_eq!(cuts(text, 4, 9, true), [0..4, 4..8, 8..17, 17..18]);
        assert_eq!(cuts(text, 4, 9, false), [0..4, 4..8, 8..17], "the last line may go on");
        assert_eq!(cuts(text, 4, 2, true), [0..4, 4..8]);
        assert_eq!(cuts(text, 5, 9, true), [0..7, 7..17, 17..18]);
        assert_eq!(cuts(text, 100, 9, false), []);
        let whole = cuts(text, 100, 9, true);
        assert_eq!(whole.iter().map(|piece| (piece.start, piece.end)).collect::<Vec<_>>(), [(0, 18)]);
        assert_eq!(cuts(b"", 1, 1, true), []);
    }
}
