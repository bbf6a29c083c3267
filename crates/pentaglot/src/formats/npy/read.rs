//! Reads one array as rows: in C order directly from the file or a stream, in Fortran order band by band.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_schema::SchemaRef;

use super::decode::{self, Place};
use super::layout::{Extent, Header};
use super::schema::{arrow_schema, native_type};
use super::types::Dtype;
use super::{INFO, outline, validate};
use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Context, Error, Result};
use crate::formats::column_major::ColumnMajor;
use crate::formats::{Document, Findings, MissingPart, Outline, ReadOptions, Split, Summary};
use crate::hub::Selection;
use crate::hub::shape::column_name;
use crate::hub::{Rows, native, rows};
use crate::limits::Budget;
use crate::source::{Source, SourceReader, read_until_full};

/// Bytes of values in a batch, unless the user sets the number of rows.
const BATCH_BYTES: u64 = 4 << 20;
/// Maximum number of rows in a batch.
const BATCH_ROWS: u64 = 1 << 22;

/// An array in a file or an archive, whose header has been read.
#[derive(Debug, Clone)]
pub(in crate::formats) struct ArrayFile {
    pub(in crate::formats) extent: Extent,
    pub(in crate::formats) header: Header,
    pub(in crate::formats) schema: SchemaRef,
    pub(in crate::formats) budget: Budget,
    /// The columns that a damaged file lacks.
    missing: Option<MissingPart>,
}

impl ArrayFile {
    /// Reads the header and compares the values that it promises with the bytes that are there.
    ///
    /// A damaged array may end early. In C order its last rows are missing, which is noticed when they are read; in Fortran
    /// order the last columns are, and the array is opened without them.
    pub(in crate::formats) fn open(
        extent: Extent,
        format: &str,
        budget: &Budget,
        damaged: bool,
    ) -> Result<ArrayFile> {
        let (extent, mut header) = match Header::read(&extent, budget) {
            // A header that is longer than what can be peeked at: the stream is spooled.
            Err(error) if error.kind() == crate::ErrorKind::Limit && !extent.source.is_seekable() => {
                let source = extent.source.seekable()?;
                let extent = Extent { len: source.len(), source, ..extent };
                let header = Header::read(&extent, budget)?;
                (extent, header)
            }
            header => (extent, header?),
        };
        let start = extent.base + header.bytes;
        let data_bytes = header.data_bytes().ok_or_else(|| {
            Error::malformed("a shape whose bytes are below 2^63", format_args!("{:?}", header.shape))
                .at(extent.base)
                .field("shape")
                .rule("shape")
        })?;
        let mut missing = None;
        if let Some(len) = extent.len {
            let found = len.saturating_sub(header.bytes);
            if found < data_bytes {
                let error = Error::truncated(format_args!("{data_bytes} bytes of values"), found)
                    .at(start)
                    .field("data")
                    .rule("truncated");
                match damaged {
                    true if header.is_column_major() => {
                        missing = Some(without_last_columns(&mut header, found, start, error)?);
                    }
                    true => {}
                    false => return Err(error),
                }
            }
            if found > data_bytes {
                return Err(trailing(found - data_bytes).at(start + data_bytes));
            }
        }
        let schema = Arc::new(native::with(arrow_schema(&header)?, format, native_type(&header)));
        Ok(ArrayFile { extent, header, schema, budget: budget.clone(), missing })
    }

    /// The offset of the values.
    pub(in crate::formats) fn data_offset(&self) -> u64 {
        self.extent.base + self.header.bytes
    }

    /// The selected rows.
    pub(in crate::formats) fn rows(&self, selection: &Selection) -> Result<Rows> {
        let range = selection.range(self.header.rows());
        let schema = Arc::clone(selection.row_schema());
        let row_bytes = self.header.row_bytes().unwrap_or(0);
        if row_bytes == 0 {
            let elements = self.header.row_elements().unwrap_or(u64::MAX).max(1);
            let free = elements.saturating_mul(range.end - range.start);
            self.budget.limits().check_free_rows(free)?;
        }
        let mut bands = self.bands(range.clone())?;
        let own = match &bands.order {
            Order::Columns(columns) => columns.band_rows(&self.budget),
            Order::Rows(_) | Order::Stream(_) => batch_rows(&self.header),
        };
        let own = usize::try_from(own).unwrap_or(usize::MAX);
        let batch_rows = selection.batch_rows_or(own) as u64;
        let (array, inner) = (self.clone(), Arc::clone(&schema));
        let mut next = range.start;
        let mut ended = false;
        let batches = std::iter::from_fn(move || {
            if next >= range.end {
                return if std::mem::replace(&mut ended, true) { None } else { bands.end().err().map(Err) };
            }
            let count = batch_rows.min(range.end - next);
            let batch = bands.next(count).and_then(|bytes| array.batch(&inner, next, count, &bytes));
            next += count;
            Some(batch)
        });
        selection.project(rows::from_batches(schema, batches))
    }

    /// Rows of constant size can be split anywhere; `None` if they are not contiguous in a seekable file.
    pub(in crate::formats) fn splits(&self, wanted: usize) -> Option<Vec<Split>> {
        if self.header.is_column_major() || !self.extent.source.is_seekable() {
            return None;
        }
        let row_bytes = self.header.row_bytes()?;
        Some(Split::strided(0..self.header.rows(), self.data_offset(), row_bytes, wanted))
    }

    /// The bytes of the rows in `range`, in C order, a band at a time.
    ///
    /// A caller that reads all rows and then calls [`Bands::end`] has compared the member's checksum. For some
    /// rows of a stored member it is compared first, once, unless reads are costly.
    pub(in crate::formats) fn bands(&self, range: Range<u64>) -> Result<Bands> {
        let header = &self.header;
        let row_bytes = header.row_bytes().unwrap_or(0);
        let data = self.data_offset();
        let offset = data.saturating_add(range.start.saturating_mul(row_bytes));
        let whole = range == (0..header.rows());
        if !whole {
            self.extent.check_crc_once()?;
        }
        let mut crc = None;
        let order = if header.is_column_major() && header.data_bytes() != Some(0) {
            if whole {
                self.extent.check_crc()?;
            }
            let source = self.extent.source.seekable()?;
            let inner = header.shape.get(1..).unwrap_or_default();
            Order::Columns(ColumnMajor {
                source,
                offset: data,
                rows: header.rows(),
                cols: header.row_elements().unwrap_or(0),
                item_bytes: header.dtype.bytes().unwrap_or(0),
                order: fortran_order(inner, &self.budget)?,
            })
        } else if self.extent.source.is_seekable() {
            if let Some(expected) = self.extent.crc
                && whole
            {
                let mut sum = flate2::Crc::new();
                sum.update(&self.extent.peek(0, header.bytes, &self.budget)?);
                crc = Some((sum, expected));
            }
            Order::Rows(offset)
        } else {
            Order::Stream(self.extent.source.reader_at(offset)?)
        };
        Ok(Bands { array: self.clone(), order, row_bytes, next: range.start, whole, crc })
    }

    /// A batch of rows from their bytes in C order.
    fn batch(&self, schema: &SchemaRef, first: u64, count: u64, bytes: &Buffer) -> Result<RecordBatch> {
        let rows = usize::try_from(count)
            .map_err(|_| Error::limit("the address space", usize::MAX, format!("{count} rows")))?;
        let row_elements = self.header.row_elements().unwrap_or(0);
        let elements = row_elements.checked_mul(count).and_then(|count| usize::try_from(count).ok());
        let elements =
            elements.ok_or_else(|| Error::limit("the address space", usize::MAX, "more elements"))?;
        let place = |index: u64| self.element_offset(first * row_elements.max(1) + index);
        let place: Place<'_> = &place;
        if let (Dtype::Struct(members), 1) = (&self.header.dtype, self.header.shape.len()) {
            let (_, columns) =
                decode::decode_members(members, bytes, rows, place, &self.budget).field("data")?;
            return rows::batch(Arc::clone(schema), columns, rows);
        }
        let values =
            decode::decode(&self.header.dtype, bytes, elements, place, &self.budget).field("data")?;
        let values: ArrayRef = match self.header.shape.len() {
            0 | 1 => values,
            _ => decode::fold(schema.field(0), values, rows)?,
        };
        rows::batch(Arc::clone(schema), vec![values], rows)
    }

    /// The file offset of an element, counted in C order.
    pub(in crate::formats) fn element_offset(&self, index: u64) -> u64 {
        let item = self.header.dtype.bytes().unwrap_or(0);
        let mut position = index;
        if self.header.is_column_major() {
            // In C order the last index varies fastest, in Fortran order the first.
            let mut rest = index;
            let mut indices: Vec<u64> = Vec::new();
            for count in self.header.shape.iter().rev() {
                indices.push(rest % (*count).max(1));
                rest /= (*count).max(1);
            }
            let dimensions = self.header.shape.iter().rev().zip(&indices);
            position = dimensions.fold(0, |sum, (count, index)| sum * count + index);
        }
        self.data_offset() + position * item
    }
}

/// Cuts the last dimension of an array in Fortran order to what `found` bytes hold; then returns what is missing.
fn without_last_columns(header: &mut Header, found: u64, start: u64, fault: Error) -> Result<MissingPart> {
    let item = header.dtype.bytes().unwrap_or(0);
    let Some((last, others)) = header.shape.split_last_mut() else { return Err(fault) };
    let each = others.iter().product::<u64>().saturating_mul(item);
    let (kept, all) = (found.checked_div(each).unwrap_or(0), *last);
    if kept == 0 {
        return Err(fault);
    }
    *last = kept;
    let name = match (others.len(), all - kept) {
        (1, 1) => column_name(kept),
        (1, _) => format!("{} to {}", column_name(kept), column_name(all - 1)),
        _ => format!("indices {kept}..{all} of the last dimension"),
    };
    let bytes = start + kept * each..start.saturating_add(all.saturating_mul(each));
    Ok(MissingPart { name, bytes, reason: fault.to_string() })
}

/// How the bytes of rows are read.
enum Order {
    /// At this offset next, by positioned reads.
    Rows(u64),
    Stream(SourceReader),
    Columns(ColumnMajor),
}

/// The bytes of successive rows.
pub(in crate::formats) struct Bands {
    array: ArrayFile,
    order: Order,
    row_bytes: u64,
    next: u64,
    whole: bool,
    crc: Option<(flate2::Crc, u32)>,
}

impl Bands {
    /// The next `count` rows.
    pub(in crate::formats) fn next(&mut self, count: u64) -> Result<Buffer> {
        let budget = &self.array.budget;
        let bytes = count.saturating_mul(self.row_bytes);
        let first = self.next;
        self.next += count;
        let band = match &mut self.order {
            Order::Rows(offset) => {
                let band = self.array.extent.source.read_range(*offset, bytes, budget).field("data")?;
                *offset += bytes;
                band
            }
            Order::Stream(reader) => read_stream(reader, bytes, budget).field("data")?,
            Order::Columns(columns) => columns.read(first..first + count, budget).field("data")?,
        };
        if let Some((sum, _)) = &mut self.crc {
            sum.update(&band);
        }
        Ok(band)
    }

    /// As [`end`](Self::end), before the last row: reads the rest where its checksum has not been compared.
    pub(in crate::formats) fn drain(&mut self) -> Result<()> {
        let total = self.array.header.rows();
        let is_checked = self.crc.is_none() && self.array.extent.checked.load(Ordering::Relaxed);
        if self.next < total && is_checked {
            return Ok(());
        }
        while self.next < total {
            self.next((total - self.next).min(batch_rows(&self.array.header)))?;
        }
        self.end()
    }

    /// After the last row: checks that nothing follows, and the checksum of an archive.
    pub(in crate::formats) fn end(&mut self) -> Result<()> {
        if let Some((sum, expected)) = &self.crc
            && sum.sum() != *expected
        {
            return Err(wrong_crc(*expected, sum.sum()).at(self.array.extent.base));
        }
        // The checksum of a deflated member is compared at its end.
        let extent = &self.array.extent;
        let is_checked = extent.len.is_none() || extent.checked.load(Ordering::Relaxed);
        if let Order::Stream(reader) = &mut self.order
            && (self.whole || !is_checked)
        {
            let offset = reader.offset();
            let more = std::io::copy(reader, &mut std::io::sink())?;
            if more > 0 && self.whole {
                return Err(trailing(more).at(offset));
            }
        }
        Ok(())
    }
}

pub(in crate::formats) fn wrong_crc(expected: u32, found: u32) -> Error {
    Error::malformed(format_args!("CRC-32 {expected:08x}"), format_args!("{found:08x}")).rule("crc")
}

fn trailing(more: u64) -> Error {
    Error::malformed("the end", format_args!("{more} more bytes")).rule("trailing")
}

fn read_stream(reader: &mut SourceReader, bytes: u64, budget: &Budget) -> Result<Buffer> {
    let offset = reader.offset();
    let mut memory = allocate_zeroed(bytes, budget)?;
    let found = read_until_full(reader, memory.as_slice_mut())
        .map_err(|error| Error::from(error).at(reader.offset()))?;
    if (found as u64) < bytes {
        return Err(Error::truncated(format_args!("{bytes} bytes"), found).at(offset));
    }
    Ok(memory.into())
}

/// The number of rows in a batch of [`BATCH_BYTES`]; elements without bytes count as four bytes.
pub(in crate::formats) fn batch_rows(header: &Header) -> u64 {
    let item = header.dtype.bytes().unwrap_or(0).max(4);
    let row = header.row_elements().unwrap_or(0).saturating_mul(item).max(1);
    let exact = header.row_bytes().unwrap_or(0);
    (BATCH_BYTES / if exact == 0 { row } else { exact }).clamp(1, BATCH_ROWS)
}

/// The position in C order of each element of a row in Fortran order; `None` if the orders are the same.
fn fortran_order(inner: &[u64], budget: &Budget) -> Result<Option<Vec<u32>>> {
    if inner.len() < 2 {
        return Ok(None);
    }
    let total: u64 = inner.iter().product();
    let mut order: Vec<u32> = allocate(total, budget)?;
    let mut indices = vec![0u64; inner.len()];
    for _ in 0..total {
        let target = indices.iter().zip(inner).fold(0, |sum, (index, count)| sum * count + index);
        order.push(
            u32::try_from(target)
                .map_err(|_| Error::limit("the limit", u32::MAX, format!("{total} elements per row")))?,
        );
        for (index, count) in indices.iter_mut().zip(inner) {
            *index += 1;
            if *index < *count {
                break;
            }
            *index = 0;
        }
    }
    Ok(Some(order))
}

/// The position in Fortran order of each element of a row in C order; `None` if the orders are the same.
pub(in crate::formats) fn reversed_order(outer: &[u64], budget: &Budget) -> Result<Option<Vec<u32>>> {
    let reversed: Vec<u64> = outer.iter().rev().copied().collect();
    fortran_order(&reversed, budget)
}

/// An open file.
pub(super) struct NpyDocument {
    array: ArrayFile,
    summary: Summary,
}

impl NpyDocument {
    pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Self> {
        let array = ArrayFile::open(Extent::whole(source), INFO.id, &options.budget, options.damaged)?;
        let summary = summary(&array, INFO.id);
        Ok(NpyDocument { array, summary })
    }
}

/// The summary of an array.
pub(in crate::formats) fn summary(array: &ArrayFile, format: &'static str) -> Summary {
    let header = &array.header;
    let mut summary = Summary::new(format, SchemaRef::clone(&array.schema));
    summary.rows = Some(header.rows());
    summary.bytes = array.extent.len;
    summary.missing_columns.extend(array.missing.clone());
    summary.part("header", array.extent.base, header.bytes);
    summary.part("data", array.data_offset(), header.data_bytes().unwrap_or(0));
    let shape: Vec<String> = header.shape.iter().map(u64::to_string).collect();
    summary.metadata = vec![
        ("version".to_owned(), format!("{}.0", header.version)),
        ("descr".to_owned(), header.dtype.descr().to_string().trim_matches('\'').to_owned()),
        ("fortran_order".to_owned(), header.fortran_order.to_string()),
        ("shape".to_owned(), format!("({})", shape.join(", "))),
    ];
    summary
}

impl Document for NpyDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        self.array.splits(wanted).unwrap_or_else(|| Split::whole(&self.summary))
    }

    fn outline(&self) -> Outline {
        let bytes = self.array.header.bytes + self.array.header.data_bytes().unwrap_or(0);
        Outline::new("npy", 0, bytes).parts(outline::parts(&self.array))
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(&self.array, None, findings).in_format(INFO.id)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        named(INFO.id, self.array.rows(request))
    }
}

/// Rows whose errors name the format.
pub(in crate::formats) fn named(format: &'static str, rows: Result<Rows>) -> Result<Rows> {
    let rows = rows.in_format(format)?;
    let schema = rows.schema();
    Ok(rows::from_batches(schema, rows.map(move |batch| batch.in_format(format))))
}
