//! Common parts of the side indexes (`FILE.idx`) of all formats.

use std::fs::File;
use std::io::Read;

use crate::error::Result;
use crate::sink::Sink;

/// The suffix of the side file's name.
pub(crate) const SUFFIX: &str = ".idx";

/// The first bytes of an index of `ds`.
pub(crate) const DS_MAGIC: &[u8; 8] = b"PGDSIDX1";

/// The first bytes of an index of `sds`.
pub(crate) const SDS_MAGIC: &[u8; 8] = b"PENTAIDX";

/// Prepares a sink for data that may have an index: an existing index is removed with the data that is
/// replaced.
///
/// Returns an error if there is an index without data and nothing may be replaced: it would be taken for one
/// of the new file.
pub(crate) fn prepare(sink: &mut Sink) -> Result<()> {
    sink.check_sibling(SUFFIX)?;
    let Some(path) = sink.sibling_path(SUFFIX) else { return Ok(()) };
    let mut magic = [0; 8];
    let ours = File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && [DS_MAGIC, SDS_MAGIC].contains(&&magic);
    if ours { sink.remove_sibling(SUFFIX) } else { Ok(()) }
}
