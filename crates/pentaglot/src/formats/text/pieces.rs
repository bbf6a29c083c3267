//! Text in pieces of whole records, which several threads read side by side.
//!
//! Text is cut where a record seems to end, which is right if a piece that begins with a record turns out to be whole records: then
//! the next piece begins with one too.
//!
//! Pieces are read without any message: where one is not plain (a record goes on past its end, a value does not fit), the
//! careful reader reads it again, from the same place to the same end, and says what is wrong. So messages come from one place,
//! and batches end at the same rows whatever the number of threads.

use std::collections::VecDeque;
use std::io::{Empty, Read};

use memchr::memmem::Finder;

use crate::control::{Ahead, Control};
use crate::error::{ErrorKind, Result};
use crate::limits::Budget;
use crate::source::Window;

/// How much text a batch is made from where the default budget is used.
const BATCH_TEXT_BYTES: u64 = 1 << 20;
/// How many bytes a cell may take in memory; a batch has no more cells than fit a batch of the budget.
const CELL_BYTES: u64 = 16;
/// How many pieces are read ahead, for each thread.
const AHEAD: usize = 2;
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

/// Where text may be cut into pieces.
pub(super) enum Cuts {
    /// After line ends, and at the end of the input.
    AfterLines,
    /// Before the bytes with which records begin. What ends the last record is no part of a piece.
    Before(Box<Finder<'static>>),
}

impl Cuts {
    /// Before these bytes.
    pub(super) fn before(begin: &[u8]) -> Self {
        Cuts::Before(Box::new(Finder::new(begin).into_owned()))
    }

    /// Where a piece of text ends: at the first place for a cut that is `least` bytes or more from its begin. `None` if there is none
    /// in this text, or only far away.
    fn end(&self, text: &[u8], least: usize, is_last: bool) -> Option<usize> {
        let least = least.max(1);
        match self {
            Cuts::AfterLines => {
                let line_end = text.get(least - 1..).and_then(|rest| memchr::memchr(b'\n', rest));
                line_end.map(|end| least + end).or((is_last && !text.is_empty()).then_some(text.len()))
            }
            // All of a text may be in memory, and these bytes nowhere in it.
            Cuts::Before(begin) => {
                let near = text.get(..least.saturating_mul(2)).unwrap_or(text);
                near.get(least..).and_then(|near| begin.find(near)).map(|begin| least + begin)
            }
        }
    }
}

/// Pieces of text that are read ahead, each into a `T`.
pub(super) struct Pieces<T> {
    /// The texts of the pieces that are being read, and their results.
    texts: VecDeque<Window<Empty>>,
    ahead: Ahead<T>,
    cuts: Option<Cuts>,
    /// How many pieces are read ahead; 0: the careful reader reads everything.
    most: usize,
    bytes: usize,
    /// How many batches the careful reader is still to read, and how many the next time.
    careful: u32,
    next_careful: u32,
    /// How many pieces were plain since one was not.
    plain: usize,
}

impl<T: Send + 'static> Pieces<T> {
    /// Text that is cut into pieces if it may be cut and if the job has several threads.
    pub(super) fn new(cuts: Option<Cuts>, control: &Control, budget: &Budget) -> Self {
        let bytes = batch_text_bytes(budget);
        let room = usize::try_from(budget.limits().max_alloc / 64 / bytes).unwrap_or(usize::MAX);
        let most = control.threads().saturating_mul(AHEAD).min(room);
        Pieces {
            texts: VecDeque::new(),
            ahead: Ahead::new(control),
            most: if cuts.is_some() && control.threads() > 1 && room > 1 { most } else { 0 },
            cuts,
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
            careful: 0,
            next_careful: 1,
            plain: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn plain(&self) -> usize {
        self.plain
    }

    /// What the next piece of a window was read into. `None`: the careful reader reads the next batch. `reader` makes what reads a
    /// piece, on one of the job's threads.
    pub(super) fn next<R: Read, W: FnOnce() -> Result<T> + Send + 'static>(
        &mut self,
        window: &mut Window<R>,
        reader: impl Fn(Window<Empty>) -> W,
    ) -> Result<Option<T>> {
        if self.careful > 0 {
            self.careful -= 1;
            return Ok(None);
        }
        self.begin(window, reader)?;
        let Some(read) = self.ahead.next() else { return Ok(None) };
        if let Ok(read) = read {
            self.texts.pop_front();
            self.plain += 1;
            if self.plain >= self.most {
                self.next_careful = 1;
            }
            return Ok(Some(read));
        }
        // The others may begin inside a record.
        self.ahead.clear();
        window.go_back(self.texts.make_contiguous())?;
        self.texts.clear();
        (self.plain, self.careful) = (0, self.next_careful - 1);
        self.next_careful = (2 * self.next_careful).min(MOST_CAREFUL);
        Ok(None)
    }

    /// Cuts text into pieces and begins to read them: no more than the threads can take, so that the first one is not waited for.
    fn begin<R: Read, W: FnOnce() -> Result<T> + Send + 'static>(
        &mut self,
        window: &mut Window<R>,
        reader: impl Fn(Window<Empty>) -> W,
    ) -> Result<()> {
        let most = self.most.min(self.texts.len().saturating_add(self.most.div_ceil(AHEAD)));
        while self.texts.len() < most {
            let Some(end) = self.cut(window) else { break };
            let piece = || window.piece(0..end);
            self.ahead.begin(reader(piece()))?;
            self.texts.push_back(piece());
            window.advance(end);
        }
        Ok(())
    }

    /// Where the next piece of a window ends; `None` if it does not end soon.
    fn cut<R: Read>(&self, window: &mut Window<R>) -> Option<usize> {
        let cuts = self.cuts.as_ref()?;
        // The last record of a piece goes past its nominal end, most often by little.
        [self.bytes / 8, self.bytes].into_iter().find_map(|more| {
            match window.fill(self.bytes.saturating_add(more)) {
                // The careful reader needs less memory.
                Err(error) if error.kind() == ErrorKind::Limit => {}
                // What was read before is given out first.
                Err(error) => window.fail(error),
                Ok(_) => {}
            }
            cuts.end(window.rest(), self.bytes, window.is_last())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_piece_ends_with_the_first_line_that_is_long_enough() {
        let text = b"aaa\nbb\n\ncccccccc\nd";
        let cut = |text: &[u8], least, is_last| Cuts::AfterLines.end(text, least, is_last);
        assert_eq!(cut(text, 4, true), Some(4));
        assert_eq!(cut(text, 5, true), Some(7));
        assert_eq!(cut(text, 8, true), Some(8));
        assert_eq!(cut(text, 9, false), Some(17));
        assert_eq!(cut(text, 18, true), Some(18));
        assert_eq!(cut(text, 18, false), None, "the last line may go on");
        assert_eq!(cut(text, 100, false), None);
        assert_eq!(cut(text, 100, true), Some(18));
        assert_eq!(cut(b"", 1, true), None);
    }

    #[test]
    fn a_piece_ends_before_the_first_record_that_is_far_enough() {
        let text = b"{\"a\":1},{\"a\":2},\n{\"b\":3},{\"a";
        let cut = |least, is_last| Cuts::before(b"{\"a\"").end(text, least, is_last);
        assert_eq!(cut(6, false), Some(8));
        assert_eq!(cut(8, false), Some(8));
        assert_eq!(cut(5, false), None, "it is far away");
        assert_eq!(cut(9, false), None, "it may go on");
        assert_eq!(cut(9, true), None, "what ends the last record is left");
        assert_eq!(cut(100, true), None);
    }

    /// Text that fails after its last byte.
    struct Failing<'t>(&'t [u8]);

    impl Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buffer) {
                Ok(0) => Err(std::io::Error::other("the disk is gone")),
                other => other,
            }
        }
    }

    /// Lines with their numbers, the first bytes of which say whether they are plain.
    fn lines(count: usize, odd: impl Fn(usize) -> bool) -> Vec<u8> {
        let line = |number| {
            format!("{} {number} {}\n", if odd(number) { "odd" } else { "plain" }, "x".repeat(40_000))
        };
        (0..count).map(line).collect::<String>().into_bytes()
    }

    /// Reads all lines: those of pieces which are plain at once, others line by line. Returns the first word of each and where the
    /// careful reader was used.
    fn read_all(text: &[u8], threads: usize) -> (Vec<String>, Vec<usize>, Error) {
        let budget = Budget::default();
        let mut pieces = Pieces::new(Some(Cuts::AfterLines), &Control::new(threads), &budget);
        let mut window = Window::new(Failing(text), 0, 1 << 16, budget).count_lines();
        let words = |text: &[u8]| {
            let text = String::from_utf8(text.to_vec()).unwrap();
            let number = |line: &str| line.split(' ').nth(1).unwrap().to_owned();
            text.lines().map(number).collect::<Vec<_>>()
        };
        let (mut read, mut careful) = (Vec::new(), Vec::new());
        loop {
            let next = pieces.next(&mut window, |piece| {
                move || {
                    let text = piece.rest();
                    let is_odd = memchr::memmem::find(text, b"odd").is_some();
                    if is_odd { Err(Error::malformed("plain", "odd")) } else { Ok(words(text)) }
                }
            });
            match next {
                Ok(Some(lines)) => read.extend(lines),
                Err(error) => return (read, careful, error),
                Ok(None) => {
                    careful.push(read.len());
                    let Some(end) = memchr::memchr(b'\n', window.rest()) else {
                        match window.more() {
                            Err(error) => return (read, careful, error),
                            Ok(more) => assert!(more),
                        }
                        continue;
                    };
                    let error = window.with_line(Error::malformed("", "").at(window.offset()));
                    assert!(error.to_string().contains(&format!("line {}", read.len() + 1)), "{error}");
                    read.extend(words(&window.rest()[..end + 1]));
                    window.advance(end + 1);
                }
            }
        }
    }

    #[test]
    fn pieces_that_are_not_plain_are_read_again_from_their_begin() {
        for threads in [2, 3, 7] {
            for odd in [vec![], vec![0], vec![100], vec![26, 27, 199], vec![60, 61, 62, 63, 120]] {
                let text = lines(200, |number| odd.contains(&number));
                let (read, careful, error) = read_all(&text, threads);
                assert_eq!(read, (0..200).map(|number| number.to_string()).collect::<Vec<_>>());
                // The last lines are less than a piece, and could go on.
                assert_eq!(odd.is_empty(), careful[0] > 170, "{careful:?}");
                assert!(error.to_string().contains("the disk is gone"), "{error}");
            }
        }
    }
}
