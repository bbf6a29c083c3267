//! Arrays from their compressed buffers, some rows at a time.
//!
//! Each buffer is decompressed as far as its rows are asked for. Values are handed to Arrow as they are; what is stored in
//! another way (masks, lengths, differences, booleans) is copied.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, BooleanArray, ListArray, NullArray, StructArray, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{Field, Fields};

use super::checked::{factor, strings};
use super::layout::{Array, Block, Data};
use super::schema::{Type, arrow_fields};
use super::values;
use crate::error::{Context, Error, Result};
use crate::kernels::scan;
use crate::limits::Budget;
use crate::source::Source;
use crate::wire::lz4::BlockReader;

/// The most rows and bytes that are decoded at a time where they are not kept.
const CHUNK_ROWS: u64 = 64 << 10;
const CHUNK_BYTES: u64 = 4 << 20;

/// The bytes that arrays are decoded from, and the budget for what they become.
#[derive(Clone)]
pub(super) struct Decoder {
    pub source: Source,
    pub budget: Budget,
}

impl Decoder {
    /// All rows of an array.
    pub(super) fn array(&self, array: &Array) -> Result<ArrayRef> {
        self.reader(array)?.take(array.rows())
    }

    /// Reads a buffer.
    pub(super) fn block(&self, block: &Block) -> Result<BlockReader> {
        let packed_bytes = block.bytes.saturating_sub(4);
        BlockReader::new(&self.source, block.offset + 4, packed_bytes, block.length, &self.budget)
            .at(block.offset)
    }

    /// Reads the rows of an array. All lengths are compared here.
    pub(super) fn reader(&self, array: &Array) -> Result<ArrayReader> {
        let rows = array.rows();
        let values = match &array.data {
            Data::Nothing { .. } => Values::Nothing,
            Data::Values(block) => {
                let width = array.kind.width().unwrap_or(1).max(1);
                if !block.length.is_multiple_of(width) {
                    return Err(Error::malformed(format_args!("a multiple of {width} bytes"), block.length)
                        .at(block.offset)
                        .rule("values-length")
                        .field("d"));
                }
                let sum = if width == 4 { Sum::Of32(0) } else { Sum::Of64(0) };
                Values::Fixed {
                    values: self.block(block).field("d")?,
                    at: block.offset,
                    width,
                    sum: array.kind.is_difference_encoded().then_some(sum),
                }
            }
            Data::Bytes { values, counts } => Values::Bytes {
                lengths: self.lengths(counts, values.length)?,
                values: self.block(values).field("d")?,
                at: values.offset,
            },
            Data::Factor { index, dictionary } => Values::Factor {
                index: Box::new(self.reader(index).field("i").field("d")?),
                dictionary: self.array(dictionary).field("d").field("d")?,
            },
            Data::List { items, counts } => Values::List {
                lengths: self.lengths(counts, items.rows())?,
                items: Box::new(self.reader(items).field("d")?),
            },
            Data::Struct { fields, .. } => {
                let reader = |(name, field): &(String, Array)| {
                    let reader = self.reader(field).and_then(|reader| {
                        let expected = format_args!("{rows} rows, as l says");
                        let fault =
                            || Error::malformed(expected, field.rows()).at(field.offset).rule("row-count");
                        if field.rows() == rows { Ok(reader) } else { Err(fault()) }
                    });
                    Ok((name.clone(), reader.field(name.clone()).field("f").field("d")?))
                };
                Values::Struct(fields.iter().map(reader).collect::<Result<_>>()?)
            }
        };
        let mask = &array.mask;
        if mask.length != rows.div_ceil(8) {
            let expected = format_args!("a mask of {} bytes for {rows} rows", rows.div_ceil(8));
            return Err(Error::malformed(expected, mask.length)
                .at(mask.offset)
                .rule("mask-length")
                .field("m"));
        }
        let row_bytes = array.decoded_bytes().div_ceil(rows.max(1)).max(1);
        Ok(ArrayReader {
            chunk_rows: (self.budget.batch_bytes(CHUNK_BYTES) / row_bytes).clamp(1, CHUNK_ROWS),
            kind: array.kind.clone(),
            at: array.offset,
            values,
            mask: self.block(mask).field("m")?,
            mask_at: mask.offset,
            last_mask: 0,
            rows,
            row: 0,
        })
    }

    /// Reads the lengths in a buffer `o`, which must add up to `total`.
    fn lengths(&self, block: &Block, total: u64) -> Result<Box<Lengths>> {
        if block.length < 4 || !block.length.is_multiple_of(4) {
            let error = Error::malformed("4 bytes for each row and 4 more", block.length);
            return Err(error.at(block.offset).rule("offsets").field("o"));
        }
        let reader = self.block(block).field("o")?;
        Ok(Box::new(Lengths { decoder: self.clone(), block: block.clone(), reader, total, sum: 0 }))
    }
}

/// An array whose rows are decoded from the first to the last.
pub(super) struct ArrayReader {
    kind: Type,
    /// Where the array begins.
    at: u64,
    values: Values,
    mask: BlockReader,
    mask_at: u64,
    /// The last byte of the mask that was taken: some of its bits may be those of the next rows.
    last_mask: u8,
    rows: u64,
    /// The next row.
    row: u64,
    /// How many rows are decoded at a time where they are not kept.
    chunk_rows: u64,
}

/// The last of the values so far.
enum Sum {
    Of32(u32),
    Of64(u64),
}

enum Values {
    Nothing,
    /// `sum` is there if the values are stored as differences.
    Fixed {
        values: BlockReader,
        at: u64,
        width: u64,
        sum: Option<Sum>,
    },
    Bytes {
        values: BlockReader,
        at: u64,
        lengths: Box<Lengths>,
    },
    Factor {
        index: Box<ArrayReader>,
        dictionary: ArrayRef,
    },
    List {
        items: Box<ArrayReader>,
        lengths: Box<Lengths>,
    },
    Struct(Vec<(String, ArrayReader)>),
}

impl ArrayReader {
    /// How many rows have not been taken.
    pub(super) fn left(&self) -> u64 {
        self.rows - self.row
    }

    /// Drops the rows before `row`.
    pub(super) fn skip_to(&mut self, row: u64) -> Result<()> {
        while self.row < row.min(self.rows) {
            self.take(self.chunk_rows.min(row - self.row))?;
        }
        Ok(())
    }

    /// Decodes all rows that are left, and drops them.
    pub(super) fn drain(&mut self) -> Result<()> {
        // Without rows, too, there are lengths to look at.
        self.take(self.chunk_rows)?;
        self.skip_to(self.rows)
    }

    /// The next `count` rows, or as many as are left.
    pub(super) fn take(&mut self, count: u64) -> Result<ArrayRef> {
        let count = count.min(self.left());
        let rows = row_count(count)?;
        let mask = self.mask(rows)?;
        let first = self.row;
        let array: ArrayRef = match &mut self.values {
            Values::Nothing => {
                if mask.map_or(0, |mask| mask.null_count()) < rows {
                    return Err(Error::malformed("a mask of zeros", "ones")
                        .at(self.mask_at)
                        .rule("null-mask")
                        .field("m"));
                }
                Arc::new(NullArray::new(rows))
            }
            Values::Fixed { values, at, width, sum } => {
                let bytes = count.saturating_mul(*width);
                let values = match sum {
                    None => values.take(bytes).at(*at).field("d")?,
                    Some(sum) => {
                        let mut values = values.take_mut(bytes).at(*at).field("d")?;
                        match sum {
                            Sum::Of32(sum) => values::sums_u32(values.typed_data_mut(), sum),
                            Sum::Of64(sum) => values::sums_u64(values.typed_data_mut(), sum),
                        }
                        values.into()
                    }
                };
                fixed_width(values, mask, rows, &self.kind)?
            }
            Values::Bytes { values, at, lengths } => {
                let (offsets, total) = lengths.take(rows)?;
                let bytes = values.take(total).at(*at).field("d")?;
                match self.kind {
                    Type::Utf8 => strings(offsets, bytes, mask, first).at(*at).field("d")?,
                    _ => Arc::new(BinaryArray::try_new(offsets, bytes, mask)?),
                }
            }
            Values::Factor { index, dictionary } => {
                let index = index.take(count).field("i").field("d")?;
                // Some writers mark nulls in the outer mask, others in both: a value that either masks is null.
                let mask = NullBuffer::union(mask.as_ref(), index.nulls());
                let index_type = match &self.kind {
                    Type::Factor { index, .. } => index.to_arrow(),
                    other => other.to_arrow(),
                };
                factor(&index_type, &index, mask, dictionary, first).at(self.at).field("i").field("d")?
            }
            Values::List { items, lengths } => {
                let (offsets, total) = lengths.take(rows)?;
                let items = items.take(total).field("d")?;
                let Type::List(item) = &self.kind else {
                    return Err(Error::malformed("the type of a list", &self.kind));
                };
                let field = Arc::new(item.to_field(Field::LIST_FIELD_DEFAULT_NAME));
                Arc::new(ListArray::try_new(field, offsets, items, mask)?)
            }
            Values::Struct(fields) => {
                let part = |(name, field): &mut (String, ArrayReader)| {
                    field.take(count).field(name.clone()).field("f").field("d")
                };
                let parts = fields.iter_mut().map(part).collect::<Result<_>>()?;
                let fields = match &self.kind {
                    Type::Struct(fields) => arrow_fields(fields),
                    _ => Fields::empty(),
                };
                Arc::new(StructArray::try_new_with_length(fields, parts, mask, rows)?)
            }
        };
        self.row += count;
        Ok(array)
    }

    /// The validity of the next rows; `None` if nothing is missing.
    fn mask(&mut self, rows: usize) -> Result<Option<NullBuffer>> {
        let skipped = self.row % 8;
        let bytes = (skipped + rows as u64).div_ceil(8) - skipped.div_ceil(8);
        let mut bits = self.mask.take_mut(bytes).at(self.mask_at).field("m")?;
        let last = bits.last().copied().unwrap_or(self.last_mask);
        if skipped > 0 {
            let taken = std::mem::replace(&mut bits, MutableBuffer::from(vec![self.last_mask]));
            bits.extend_from_slice(&taken);
        }
        self.last_mask = last;
        scan::reverse_bits(bits.as_slice_mut());
        let nulls = NullBuffer::new(BooleanBuffer::new(bits.into(), skipped as usize, rows));
        Ok((nulls.null_count() > 0).then_some(nulls))
    }
}

/// The lengths of bytes or lists.
struct Lengths {
    decoder: Decoder,
    block: Block,
    reader: BlockReader,
    /// How much all lengths must add up to, and how much those add up to that have been taken.
    total: u64,
    sum: u64,
}

impl Lengths {
    /// The offsets of the next rows, which begin with 0, and the last one of them.
    fn take(&mut self, rows: usize) -> Result<(OffsetBuffer<i32>, u64)> {
        // The first length is that of nothing: with it, the sums are offsets.
        let is_start = self.reader.left() == self.block.length;
        let count = rows as u64 + u64::from(is_start);
        let mut offsets = self.reader.take_mut(count.saturating_mul(4)).at(self.block.offset).field("o")?;
        if !is_start {
            let lengths = std::mem::replace(&mut offsets, MutableBuffer::from(vec![0u32]));
            offsets.extend_from_slice(lengths.as_slice());
        }
        if offsets.get(..4) != Some(&[0; 4]) {
            return Err(self.fault());
        }
        let fits = scan::prefix_sums_u32(offsets.typed_data_mut());
        let offsets = Buffer::from(offsets);
        let last = offsets.typed_data::<u32>().last().map_or(0, |last| u64::from(*last));
        self.sum = self.sum.saturating_add(last);
        if !fits || self.sum > self.total || (self.reader.left() == 0 && self.sum < self.total) {
            return Err(self.fault());
        }
        Ok((OffsetBuffer::new(ScalarBuffer::new(offsets, 0, rows + 1)), last))
    }

    /// What is wrong with the lengths, all of them.
    #[cold]
    fn fault(&self) -> Error {
        let read = |decoder: &Decoder| decoder.block(&self.block)?.take(self.block.length);
        let bytes = match read(&self.decoder) {
            Ok(bytes) => bytes,
            Err(error) => return error.at(self.block.offset).field("o"),
        };
        let lengths = || bytes.typed_data::<i32>().iter().copied();
        let first = lengths().next().filter(|first| *first != 0);
        let negative = lengths().enumerate().find(|(_, length)| *length < 0);
        let error = match (first, negative) {
            (Some(first), _) => Error::malformed("0 as the first element", first).index(0),
            (_, Some((index, length))) => {
                Error::malformed("a length of 0 or more", length).index(index as u64)
            }
            _ => {
                let sum: i64 = lengths().map(i64::from).sum();
                Error::malformed(format_args!("lengths that add up to {}", self.total), sum)
            }
        };
        error.at(self.block.offset).rule("offsets").field("o")
    }
}

/// An array of `rows` values of fixed width.
fn fixed_width(values: Buffer, mask: Option<NullBuffer>, rows: usize, kind: &Type) -> Result<ArrayRef> {
    if *kind == Type::Bool {
        let bits = Buffer::from(values::pack_bools(&values));
        return Ok(Arc::new(BooleanArray::new(BooleanBuffer::new(bits, 0, rows), mask)));
    }
    let data = ArrayData::builder(kind.to_arrow()).len(rows).add_buffer(values).nulls(mask);
    Ok(make_array(data.build()?))
}

/// The number of rows as Arrow counts them.
fn row_count(rows: u64) -> Result<usize> {
    usize::try_from(rows).map_err(|_| Error::limit("the address space", usize::MAX, format!("{rows} rows")))
}
