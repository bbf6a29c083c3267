//! An object that is read by ranges.
//!
//! The first request asks for the first bytes: it also tells the length and the version (ETag, or time of modification).
//! Every later request is made on the condition that the version is the same, and its answer is compared with it, too:
//! some servers ignore conditions. So bytes of two versions never come together.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{Buffer, MutableBuffer};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use object_store::{Error as Stored, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStoreExt};
use pentaglot::{Error, HEAD_BYTES, ReadAt, Result, Source};

use crate::Place;
use crate::fault::{Fault, changed};

/// Larger reads are made of pieces of this size.
const PIECE: u64 = 4 << 20;
/// How many requests are under way at a time.
const AT_A_TIME: usize = 8;

struct Object {
    place: Place,
    meta: ObjectMeta,
    /// The first bytes, as the first request gave them.
    head: Bytes,
}

/// Opens the object at a place. A server that knows no ranges gives a stream.
pub(crate) fn open(place: Place) -> Result<Source> {
    let name = place.address.shown().to_owned();
    match Object::open(&place) {
        Ok(object) => Ok(Source::from_read_at(name, Arc::new(object))),
        Err(fault) if fault.is_unknown() => stream(&place, name),
        Err(fault) => Err(fault.doing("cannot open").into()),
    }
}

impl Object {
    fn open(place: &Place) -> Result<Self, Fault> {
        let fault = |error| Fault::new(&place.address, error);
        let options =
            GetOptions { range: Some(GetRange::Bounded(0..HEAD_BYTES as u64)), ..GetOptions::default() };
        let first = place.stores.wait(async {
            let result = place.store()?.get_opts(&place.path, options).await?;
            let meta = result.meta.clone();
            Ok((meta, result.bytes().await?))
        });
        let (meta, head) = match first {
            Ok(first) => first,
            Err(
                error @ (Stored::NotFound { .. }
                | Stored::PermissionDenied { .. }
                | Stored::NotSupported { .. }),
            ) => {
                return Err(fault(error));
            }
            // An object without bytes has no range.
            Err(error) => match place.look()? {
                Some(meta) if meta.size == 0 => (meta, Bytes::new()),
                _ => return Err(fault(error)),
            },
        };
        Ok(Object { place: place.clone(), meta, head })
    }

    /// The options of a request for a range of this very version.
    fn options(&self, range: Range<u64>) -> GetOptions {
        let mut options = GetOptions { range: Some(GetRange::Bounded(range)), ..GetOptions::default() };
        match &self.meta.e_tag {
            Some(tag) if !is_weak(tag) => options.if_match = Some(tag.clone()),
            // A weak tag never matches; the answer's is compared.
            Some(_) => {}
            None if self.meta.last_modified.timestamp() > 0 => {
                options.if_unmodified_since = Some(self.meta.last_modified);
            }
            None => {}
        }
        options
    }

    /// Whether an answer is about this version.
    fn is_same(&self, meta: &ObjectMeta) -> bool {
        meta.size == self.meta.size
            && match (&self.meta.e_tag, &meta.e_tag) {
                (Some(opened), Some(now)) => opened == now,
                (None, None) => meta.last_modified == self.meta.last_modified,
                _ => false,
            }
    }

    /// The bytes of a range that one request asks for.
    async fn piece(&self, range: Range<u64>) -> io::Result<Bytes> {
        if range.end <= self.head.len() as u64 {
            return Ok(self.head.slice(range.start as usize..range.end as usize));
        }
        let fault = |error| io::Error::from(Fault::new(&self.place.address, error));
        let expected = range.end - range.start;
        let store = self.place.store().map_err(fault)?;
        let result: GetResult =
            store.get_opts(&self.place.path, self.options(range.clone())).await.map_err(fault)?;
        if !self.is_same(&result.meta) {
            return Err(changed().into());
        }
        let bytes = result.bytes().await.map_err(fault)?;
        if bytes.len() as u64 != expected {
            let error = Error::truncated(format_args!("{expected} bytes"), bytes.len());
            return Err(error.at(range.start).into());
        }
        Ok(bytes)
    }

    /// The bytes of several ranges, the pieces of all of them side by side.
    fn fetch(&self, ranges: &[Range<u64>]) -> io::Result<Vec<(usize, Range<u64>, Bytes)>> {
        let pieces = ranges.iter().enumerate().flat_map(|(index, range)| {
            let starts = (range.start..range.end).step_by(PIECE as usize);
            let end = range.end;
            starts.map(move |start| (index, start..end.min(start + PIECE)))
        });
        let requests = futures::stream::iter(pieces)
            .map(|(index, range)| async move { Ok((index, range.clone(), self.piece(range).await?)) });
        self.place.stores.wait(requests.buffer_unordered(AT_A_TIME).try_collect())
    }
}

impl ReadAt for Object {
    fn len(&self) -> u64 {
        self.meta.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let end = self.meta.size.min(offset.saturating_add(buffer.len() as u64));
        if offset >= end {
            return Ok(0);
        }
        for (_, range, bytes) in self.fetch(std::slice::from_ref(&(offset..end)))? {
            buffer[(range.start - offset) as usize..(range.end - offset) as usize].copy_from_slice(&bytes);
        }
        Ok((end - offset) as usize)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the caller has compared the ranges with the length and its budget"
    )]
    fn read_ranges(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Buffer>> {
        let is_outside = |range: &&Range<u64>| range.end > self.meta.size || range.start > range.end;
        if let Some(range) = ranges.iter().find(is_outside) {
            let left = self.meta.size.saturating_sub(range.start);
            let expected = range.end.saturating_sub(range.start);
            return Err(Error::truncated(format_args!("{expected} bytes"), left).at(range.start).into());
        }
        let length = |range: &Range<u64>| (range.end - range.start) as usize;
        let mut buffers: Vec<_> =
            ranges.iter().map(|range| MutableBuffer::from_len_zeroed(length(range))).collect();
        for (index, range, bytes) in self.fetch(ranges)? {
            let start = ranges[index].start;
            let slice = (range.start - start) as usize..(range.end - start) as usize;
            buffers[index].as_slice_mut()[slice].copy_from_slice(&bytes);
        }
        Ok(buffers.into_iter().map(Buffer::from).collect())
    }

    fn is_costly(&self) -> bool {
        true
    }

    /// Asks as every other read does: addresses that are signed for reading allow no other request.
    fn unchanged(&self) -> io::Result<bool> {
        let place = &self.place;
        let options = match self.meta.size {
            // An object without bytes has no range.
            0 => GetOptions { head: true, ..GetOptions::default() },
            _ => self.options(0..1),
        };
        let now = place.stores.wait(async { place.store()?.get_opts(&place.path, options).await });
        match now {
            Ok(result) => Ok(self.is_same(&result.meta)),
            Err(Stored::Precondition { .. } | Stored::NotFound { .. }) => Ok(false),
            Err(error) => Err(Fault::new(&place.address, error).into()),
        }
    }

    fn sibling(&self, suffix: &str) -> io::Result<Option<Arc<dyn ReadAt>>> {
        match Object::open(&self.place.sibling(suffix)) {
            Ok(object) => Ok(Some(Arc::new(object))),
            Err(fault) if fault.is_absent() => Ok(None),
            Err(fault) => Err(fault.into()),
        }
    }
}

/// Whether a tag says only that two versions are alike.
fn is_weak(tag: &str) -> bool {
    tag.starts_with("W/")
}

/// All bytes in one answer.
fn stream(place: &Place, name: String) -> Result<Source> {
    let fault = |error| Error::from(Fault::new(&place.address, error).doing("cannot open"));
    let result = place.stores.wait(async { place.store()?.get(&place.path).await }).map_err(fault)?;
    let (stores, address) = (place.stores.clone(), place.address.clone());
    let mut chunks = result.into_stream();
    let next = move || {
        let chunk = stores.wait(chunks.next())?;
        Some(chunk.map_err(|error| io::Error::from(Fault::new(&address, error))))
    };
    Ok(Source::from_reader(name, Chunks { next, chunk: Bytes::new() }))
}

/// Chunks as they arrive.
struct Chunks<F> {
    next: F,
    chunk: Bytes,
}

impl<F: FnMut() -> Option<io::Result<Bytes>>> io::Read for Chunks<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match (self.next)() {
                Some(chunk) => self.chunk = chunk?,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.chunk.len());
        buffer[..count].copy_from_slice(&self.chunk.split_to(count));
        Ok(count)
    }
}
