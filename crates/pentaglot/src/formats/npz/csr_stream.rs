//! The rows of a CSR matrix, read batch by batch from its arrays.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;

use super::scipy::Sparse;
use crate::cursor::allocate;
use crate::error::{Context, Error, Result};
use crate::formats::npy::decode;
use crate::formats::npy::read::{ArrayFile, Bands};
use crate::formats::npy::types::{Dtype, DtypeKind};
use crate::hub::matrix::build::{self as csr, Csr, Index, Value};
use crate::hub::matrix::sparse_rows;
use crate::hub::rows;
use crate::hub::type_text::print_type;
use crate::limits::Budget;

/// A stream of integers of any width.
pub(super) struct Numbers {
    bands: Bands,
    array: ArrayFile,
    position: u64,
}

impl Numbers {
    pub(super) fn open(array: ArrayFile, range: Range<u64>) -> Result<Numbers> {
        let position = range.start;
        Ok(Numbers { bands: array.bands(range)?, array, position })
    }

    fn place(&self, index: u64) -> u64 {
        self.array.element_offset(index)
    }

    /// The next number, which may be negative; `None` at the end.
    pub(super) fn next_signed(&mut self) -> Result<Option<i64>> {
        if self.position >= self.array.header.rows() {
            return Ok(None);
        }
        let number = self.read(1)?.first().map(|number| number.cast_signed());
        self.position += 1;
        Ok(number)
    }

    /// Reads numbers; a negative one is its two's complement.
    fn read(&mut self, count: u64) -> Result<Vec<u64>> {
        let bytes = self.bands.next(count)?;
        self.widened(bytes, count)
    }

    /// Whether numbers are stored as this program has unsigned ones of 32 bits, unless they are negative.
    fn is_native(&self) -> bool {
        matches!(&self.array.header.dtype, Dtype::Scalar(scalar)
            if cfg!(target_endian = "little") && !scalar.big_endian
                && matches!((scalar.kind, scalar.bytes), (DtypeKind::Int | DtypeKind::Uint, 4)))
    }

    fn widened(&self, bytes: Buffer, count: u64) -> Result<Vec<u64>> {
        let Dtype::Scalar(scalar) = self.array.header.dtype else {
            return Err(Error::malformed("whole numbers", "structs").at(self.array.extent.base));
        };
        let bytes: Buffer =
            if scalar.big_endian { decode::swap(&bytes, scalar.bytes, &self.array.budget)? } else { bytes };
        let mut numbers: Vec<u64> = allocate(count, &self.array.budget)?;
        match (scalar.kind, scalar.bytes) {
            (DtypeKind::Int, 4) => {
                widen::<4>(&bytes, &mut numbers, |bytes| i64::from(i32::from_le_bytes(bytes)).cast_unsigned())
            }
            (DtypeKind::Int, 8) => widen::<8>(&bytes, &mut numbers, u64::from_le_bytes),
            (DtypeKind::Int, 2) => {
                widen::<2>(&bytes, &mut numbers, |bytes| i64::from(i16::from_le_bytes(bytes)).cast_unsigned())
            }
            (DtypeKind::Int, _) => {
                widen::<1>(&bytes, &mut numbers, |bytes| i64::from(i8::from_le_bytes(bytes)).cast_unsigned())
            }
            (DtypeKind::Uint, 4) => {
                widen::<4>(&bytes, &mut numbers, |bytes| u64::from(u32::from_le_bytes(bytes)))
            }
            (DtypeKind::Uint, 8) => widen::<8>(&bytes, &mut numbers, u64::from_le_bytes),
            (DtypeKind::Uint, 2) => {
                widen::<2>(&bytes, &mut numbers, |bytes| u64::from(u16::from_le_bytes(bytes)))
            }
            (DtypeKind::Uint, _) => {
                widen::<1>(&bytes, &mut numbers, |bytes| u64::from(u8::from_le_bytes(bytes)))
            }
            _ => return Err(Error::malformed("whole numbers", scalar.text()).at(self.array.extent.base)),
        }
        Ok(numbers)
    }

    pub(super) fn next(&mut self, count: u64) -> Result<Vec<u64>> {
        let numbers = self.read(count)?;
        self.checked(numbers)
    }

    fn checked(&mut self, numbers: Vec<u64>) -> Result<Vec<u64>> {
        // A negative number is past 2^63 now.
        if let Some(bad) = numbers.iter().position(|number| i64::try_from(*number).is_err()) {
            let value = numbers.get(bad).copied().unwrap_or(0).cast_signed();
            let index = self.position + bad as u64;
            return Err(Error::malformed("a number from 0 on", value)
                .at(self.place(index))
                .index(index)
                .rule("sparse-index"));
        }
        self.position += numbers.len() as u64;
        Ok(numbers)
    }
}

impl Numbers {
    /// Reads the rest, such as entries that SciPy would prune, so that the checksum can be compared.
    pub(super) fn end(&mut self) -> Result<()> {
        self.bands.drain()
    }
}

fn widen<const N: usize>(bytes: &[u8], numbers: &mut Vec<u64>, number: impl Fn([u8; N]) -> u64) {
    numbers.extend(bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)));
}

/// Row or column numbers, checked against the matrix.
pub(super) struct Indices {
    pub(super) numbers: Numbers,
    pub(super) bound: u64,
    pub(super) name: &'static str,
}

impl Indices {
    pub(super) fn next(&mut self, count: u64) -> Result<Vec<u64>> {
        let numbers = self.numbers.read(count).field(self.name)?;
        self.checked(numbers)
    }

    /// The next numbers of 32 bits, which the bound fits. Where they are stored so, they stay where they were read.
    fn next_narrow(&mut self, count: u64) -> Result<ScalarBuffer<u32>> {
        let bytes = self.numbers.bands.next(count).field(self.name)?;
        // A negative number is one past 2^31 here.
        if self.numbers.is_native() && self.bound <= 1 << 31 && bytes.as_ptr().cast::<u32>().is_aligned() {
            let numbers = ScalarBuffer::<u32>::from(bytes.clone());
            if u64::from(numbers.iter().copied().max().unwrap_or(0)) < self.bound {
                self.numbers.position += count;
                return Ok(numbers);
            }
        }
        let wide = self.numbers.widened(bytes, count).field(self.name)?;
        let wide = self.checked(wide)?;
        Ok(wide.iter().map(|number| u32::try_from(*number).unwrap_or(u32::MAX)).collect())
    }

    fn checked(&mut self, numbers: Vec<u64>) -> Result<Vec<u64>> {
        let first = self.numbers.position;
        let numbers = self.numbers.checked(numbers).field(self.name)?;
        if let Some(bad) = numbers.iter().position(|number| *number >= self.bound) {
            let index = first + bad as u64;
            let found = numbers.get(bad).copied().unwrap_or(0);
            return Err(Error::malformed(format_args!("an index below {}", self.bound), found)
                .at(self.numbers.place(index))
                .index(index)
                .field(self.name)
                .rule("sparse-index"));
        }
        Ok(numbers)
    }

    pub(super) fn end(&mut self) -> Result<()> {
        self.numbers.end().field(self.name)
    }
}

/// The row pointers, as lengths.
pub(super) struct Pointers {
    numbers: Numbers,
    last: u64,
    entries: u64,
}

impl Pointers {
    /// The lengths of `runs` runs from `first` on.
    pub(super) fn open(sparse: &Sparse, first: u64, end: u64) -> Result<Pointers> {
        let array = sparse.array("indptr")?;
        let per_block = sparse.block.0.saturating_mul(sparse.block.1).max(1);
        let mut numbers = Numbers::open(array, first..end.saturating_add(1))?;
        let last = numbers.next(1).field("indptr")?.first().copied().unwrap_or(0);
        let entries = sparse.entries / per_block;
        if first == 0 && last != 0 || last > entries {
            let expected = if first == 0 { "0".to_owned() } else { format!("at most {entries}") };
            return Err(Error::malformed(expected, last)
                .at(numbers.place(first))
                .index(first)
                .field("indptr")
                .rule("sparse-indptr"));
        }
        Ok(Pointers { numbers, last, entries })
    }

    pub(super) fn next(&mut self, count: u64) -> Result<Vec<u64>> {
        let first = self.numbers.position;
        let mut numbers = self.numbers.next(count).field("indptr")?;
        for (index, number) in numbers.iter_mut().enumerate() {
            let end = *number;
            if end < self.last || end > self.entries {
                let index = first + index as u64;
                let expected = format_args!("a pointer in {}..={}", self.last, self.entries);
                return Err(Error::malformed(expected, end)
                    .at(self.numbers.place(index))
                    .index(index)
                    .field("indptr")
                    .rule("sparse-indptr"));
            }
            *number = end - self.last;
            self.last = end;
        }
        Ok(numbers)
    }

    pub(super) fn end(&mut self) -> Result<()> {
        self.numbers.bands.end().field("indptr")
    }
}

/// CSR rows, streamed.
pub(super) struct CsrStream {
    sparse: Sparse,
    schema: SchemaRef,
    pointers: Pointers,
    indices: Indices,
    data: ArrayFile,
    values: Bands,
    next: u64,
    end: u64,
    /// Lengths of rows that were read ahead, the next one last.
    lengths: Vec<u64>,
    batch_rows: usize,
    /// Whether all rows are read, so that checksums can be compared at the end.
    whole: bool,
    ended: bool,
}

impl CsrStream {
    pub(super) fn open(
        sparse: Sparse,
        schema: SchemaRef,
        range: Range<u64>,
        batch_rows: usize,
    ) -> Result<CsrStream> {
        let pointers = Pointers::open(&sparse, range.start, range.end)?;
        let stored = pointers.last..sparse.entries;
        let numbers = Numbers::open(sparse.array("indices")?, stored.clone())?;
        let indices = Indices { numbers, bound: sparse.cols, name: "indices" };
        let data = sparse.array("data")?;
        let values = data.bands(stored)?;
        let (next, end) = (range.start, range.end);
        let whole = range == (0..sparse.rows);
        let lengths = Vec::new();
        Ok(CsrStream {
            sparse,
            schema,
            pointers,
            indices,
            data,
            values,
            next,
            end,
            lengths,
            batch_rows,
            whole,
            ended: false,
        })
    }

    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.next >= self.end {
            return if std::mem::replace(&mut self.ended, true) {
                Ok(None)
            } else {
                self.finish().map(|()| None)
            };
        }
        let first_entry = self.pointers.last - self.lengths.iter().sum::<u64>();
        if self.lengths.is_empty() {
            let count = (csr::BATCH_ROWS as u64).min(self.end - self.next);
            self.lengths = self.pointers.next(count)?;
            self.lengths.reverse();
        }
        let mut offsets: Vec<i64> = vec![0];
        let mut total = 0i64;
        while let Some(length) = self.lengths.last().copied() {
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            let after = total.saturating_add(length);
            let rows = offsets.len() - 1;
            if rows > 0 && after > csr::BATCH_ENTRIES || rows >= self.batch_rows {
                break;
            }
            total = after;
            offsets.push(total);
            self.lengths.pop();
        }
        let count = u64::try_from(total).unwrap_or(0);
        let is_wide = self.sparse.cols > 1 << 32;
        let (indices, values) = (&mut self.indices, &mut self.values);
        let cols = || -> Result<(ScalarBuffer<u32>, Vec<u64>)> {
            Ok(match is_wide {
                true => (ScalarBuffer::default(), indices.next(count)?),
                false => (indices.next_narrow(count)?, Vec::new()),
            })
        };
        // Deflated members take long.
        let (cols, bytes) = self.sparse.control.both(cols, || values.next(count))?;
        let ((narrow, wide), bytes) = (cols?, bytes.field("data")?);
        let place = |index: u64| self.data.element_offset(first_entry + index);
        let len = usize::try_from(count).unwrap_or(0);
        let values = decode::decode(&self.data.header.dtype, &bytes, len, &place, &self.sparse.budget)
            .field("data")?;
        let first_row = self.next;
        self.next += offsets.len() as u64 - 1;
        let batch = if is_wide {
            let array: ArrayRef = Arc::new(UInt64Array::from(wide.clone()));
            self.batch(offsets, (&wide, array), values, first_row)
        } else {
            let array: ArrayRef = Arc::new(UInt32Array::new(narrow.clone(), None));
            self.batch(offsets, (&narrow, array), values, first_row)
        };
        batch.map(Some)
    }

    fn batch<I: Index>(
        &self,
        offsets: Vec<i64>,
        (cols, col_array): (&[I], ArrayRef),
        values: ArrayRef,
        first_row: u64,
    ) -> Result<RecordBatch> {
        let count = offsets.len() - 1;
        let ascending = offsets.array_windows::<2>().all(|[start, end]| {
            let row = usize::try_from(*start).ok().zip(usize::try_from(*end).ok());
            row.and_then(|(start, end)| cols.get(start..end))
                .is_some_and(|row| row.is_sorted_by(|one, two| one < two))
        });
        let (offsets, cols, values) = if ascending {
            (offsets, col_array, values)
        } else {
            summed(offsets, cols.to_vec(), values, first_row)?
        };
        let list = sparse_rows(&self.schema, OffsetBuffer::new(offsets.into()), cols, values)?;
        rows::batch(Arc::clone(&self.schema), vec![Arc::new(list)], count)
    }

    fn finish(&mut self) -> Result<()> {
        self.pointers.end()?;
        // Where all bytes have a price, those of some rows are not compared with a checksum.
        if !self.whole && self.data.extent.source.is_costly() {
            return Ok(());
        }
        self.indices.end()?;
        self.values.drain().field("data")
    }
}

/// Sums repeated entries, for any type of values.
fn summed<I: Index>(
    offsets: Vec<i64>,
    cols: Vec<I>,
    values: ArrayRef,
    first_row: u64,
) -> Result<(Vec<i64>, ArrayRef, ArrayRef)> {
    fn typed<I: Index, T: Value>(
        offsets: Vec<i64>,
        cols: Vec<I>,
        values: Vec<T>,
        first_row: u64,
    ) -> Result<(Vec<i64>, ArrayRef, ArrayRef)> {
        let reserved = Budget::default().reservation();
        let mut csr = Csr { offsets, cols, values, reserved };
        csr::sum_repeats(&mut csr, first_row)?;
        Ok((csr.offsets, I::array(csr.cols), T::array(csr.values)))
    }
    macro_rules! dispatch {
        ($($native:ty),*) => {
            $(if let Some(values) = <$native as Value>::values(&values) {
                return typed(offsets, cols, values, first_row);
            })*
        };
    }
    dispatch!(f64, f32, i64, i32, u64, u32, i16, u16, i8, u8, bool, half::f16, [f32; 2], [f64; 2]);
    Err(Error::unsupported(format!("a sparse matrix of {}", print_type(values.data_type()))))
}
