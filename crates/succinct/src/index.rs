//! Our own index, built when it is first needed or stored in a side file.

use std::io;

use crate::cursor::WordCursor;
use crate::error::Error;
use crate::layout::WordSink;
use crate::storage::SharedWords;

/// A structure whose fast index can be built ahead of time, kept elsewhere, and attached again.
///
/// Otherwise the index is built on the first query that needs it. The index is never stored in the format's
/// optional slots: simple-sds would read it as its own supports.
///
/// ```
/// use pentaglot_succinct::{BitQueries, BitVector, Indexed, SharedWords, WordCursor};
/// let bits: BitVector = (0..1000).map(|i| i % 3 == 0).collect();
/// let mut side = Vec::new();
/// bits.write_index(&mut side).unwrap();
///
/// let again: BitVector = (0..1000).map(|i| i % 3 == 0).collect();
/// again.attach_index(&mut WordCursor::new(SharedWords::new(side))).unwrap();
/// assert_eq!(again.select(100), Some(300));
/// ```
pub trait Indexed {
    /// Builds what is missing, in one pass over the words.
    fn build_index(&self);

    /// Builds the index if necessary and writes its elements.
    fn write_index(&self, sink: &mut impl WordSink) -> io::Result<()>;

    /// Attaches an index that [`write_index`](Self::write_index) wrote, in place.
    ///
    /// Its shape is checked against the structure. Its content is not: the caller must make sure that it
    /// belongs to the data. An index of other data gives wrong answers, but never undefined behaviour or a
    /// panic.
    fn attach_index(&self, cursor: &mut WordCursor<SharedWords>) -> Result<(), Error>;
}
