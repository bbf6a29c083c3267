//! Arrays from their compressed buffers, some rows at a time.
//!
//! Each buffer is decompressed as far as its rows are asked for. Values are handed to Arrow as they are; what is stored in
//! another way (masks, lengths, differences, booleans) is copied.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    Array as _, ArrayRef, BinaryArray, BooleanArray, ListArray, NullArray, PrimitiveArray, StringArray,
    StructArray, make_array,
};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Fields};

use super::layout::{Array, Block, Data};
use super::schema::{Type, arrow_fields};
use super::values;
use crate::cursor::{Reserved, reserve};
use crate::error::{Context, Error, Result};
use crate::kernels::{arrays, scan};
use crate::limits::Budget;
use crate::source::Source;
use crate::wire::lz4::BlockReader;

/// So many rows are decoded at a time where they are dropped.
const SKIPPED_ROWS: u64 = 64 << 10;

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
                Values::Fixed { values: self.block(block).field("d")?, at: block.offset, width, sum: 0 }
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
        Ok(ArrayReader {
            kind: array.kind.clone(),
            at: array.offset,
            budget: self.budget.clone(),
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
    budget: Budget,
    values: Values,
    mask: BlockReader,
    mask_at: u64,
    /// The last byte of the mask that was taken: some of its bits may be those of the next rows.
    last_mask: u8,
    rows: u64,
    /// The next row.
    row: u64,
}

enum Values {
    Nothing,
    /// `sum` is the last value of those that are stored as differences.
    Fixed {
        values: BlockReader,
        at: u64,
        width: u64,
        sum: u64,
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
            self.take(SKIPPED_ROWS.min(row - self.row))?;
        }
        Ok(())
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
                let bytes = values.take(count.saturating_mul(*width)).at(*at).field("d")?;
                let bytes = if self.kind.is_difference_encoded() {
                    sums(&bytes, *width, sum, &self.budget)?
                } else {
                    bytes
                };
                fixed_width(bytes, mask, rows, &self.kind)?
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
        let taken = self.mask.take(bytes).at(self.mask_at).field("m")?;
        let mut bits = Vec::from_iter((skipped > 0).then_some(self.last_mask));
        bits.extend_from_slice(&taken);
        self.last_mask = bits.last().copied().unwrap_or(0);
        scan::reverse_bits(&mut bits);
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
        if self.reader.left() == self.block.length && self.read(1)?.as_slice() != [0; 4] {
            return Err(self.fault());
        }
        let lengths = self.read(rows as u64)?;
        let mut offsets: Reserved<u32> = reserve(rows as u64 + 1, &self.decoder.budget)?;
        offsets.push(0);
        offsets.extend_from_slice(lengths.typed_data())?;
        let fits = scan::prefix_sums_u32(&mut offsets);
        let last = offsets.last().map_or(0, |last| u64::from(*last));
        self.sum = self.sum.saturating_add(last);
        if !fits || self.sum > self.total || (self.reader.left() == 0 && self.sum < self.total) {
            return Err(self.fault());
        }
        Ok((OffsetBuffer::new(ScalarBuffer::new(offsets.into_memory().into(), 0, rows + 1)), last))
    }

    fn read(&mut self, count: u64) -> Result<Buffer> {
        self.reader.take(count.saturating_mul(4)).at(self.block.offset).field("o")
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

/// Values from differences. `sum` is the value before them, and becomes the last of them.
fn sums(bytes: &Buffer, width: u64, sum: &mut u64, budget: &Budget) -> Result<Buffer> {
    fn sums_of<T: ArrowNativeType>(
        bytes: &Buffer,
        budget: &Budget,
        add: impl FnMut(&T) -> T,
    ) -> Result<Buffer> {
        let differences = bytes.typed_data::<T>();
        let mut values: Reserved<T> = reserve(differences.len() as u64, budget)?;
        values.extend(differences.iter().map(add));
        Ok(values.into_memory().into())
    }
    // Sums of 32 bits are the lower halves of sums of 64 bits.
    let mut add = |difference: u64| {
        *sum = sum.wrapping_add(difference);
        *sum
    };
    match width {
        4 => sums_of::<u32>(bytes, budget, |difference| {
            let [a, b, c, d, ..] = add(u64::from(*difference)).to_le_bytes();
            u32::from_le_bytes([a, b, c, d])
        }),
        _ => sums_of::<u64>(bytes, budget, |difference| add(*difference)),
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

/// Strings, from row `first` of a column. Bytes under a missing one may be anything, and are dropped where they are no text.
fn strings(
    offsets: OffsetBuffer<i32>,
    bytes: Buffer,
    mask: Option<NullBuffer>,
    first: u64,
) -> Result<ArrayRef> {
    let (offsets, bytes, mask) = match arrays::strings(offsets, bytes, mask) {
        Ok(strings) => return Ok(Arc::new(strings)),
        Err(parts) => parts,
    };
    let binary = BinaryArray::try_new(offsets, bytes, mask)?;
    let mut texts: Vec<Option<&str>> = Vec::new();
    for (index, value) in binary.iter().enumerate() {
        let text = value.map(std::str::from_utf8).transpose().map_err(|_| {
            Error::malformed("UTF-8 text", "bytes that are none (the option utf8=bytes reads them as binary)")
                .index(first + index as u64)
                .rule("utf8")
        });
        texts.push(text?);
    }
    Ok(Arc::new(StringArray::from(texts)))
}

/// Values of a dictionary, from row `first` of a column.
fn factor(
    index_type: &DataType,
    index: &ArrayRef,
    mask: Option<NullBuffer>,
    dictionary: &ArrayRef,
    first: u64,
) -> Result<ArrayRef> {
    match index_type {
        DataType::Int8 => factor_of::<Int8Type>(index, mask, dictionary, first),
        DataType::Int16 => factor_of::<Int16Type>(index, mask, dictionary, first),
        DataType::Int32 => factor_of::<Int32Type>(index, mask, dictionary, first),
        DataType::Int64 => factor_of::<Int64Type>(index, mask, dictionary, first),
        DataType::UInt8 => factor_of::<UInt8Type>(index, mask, dictionary, first),
        DataType::UInt16 => factor_of::<UInt16Type>(index, mask, dictionary, first),
        DataType::UInt32 => factor_of::<UInt32Type>(index, mask, dictionary, first),
        DataType::UInt64 => factor_of::<UInt64Type>(index, mask, dictionary, first),
        other => Err(Error::malformed("an integer index", other)),
    }
}

/// A dictionary array. Indices under missing values may be anything; those past the dictionary become 0.
fn factor_of<K: ArrowDictionaryKeyType>(
    index: &ArrayRef,
    mask: Option<NullBuffer>,
    dictionary: &ArrayRef,
    first: u64,
) -> Result<ArrayRef> {
    let keys = PrimitiveArray::<K>::new(index.as_primitive::<K>().values().clone(), mask);
    let (keys, dictionary) = match arrays::dictionary(keys, Arc::clone(dictionary)) {
        Ok(factor) => return Ok(Arc::new(factor)),
        Err(parts) => parts,
    };
    let count = dictionary.len();
    let zero = K::Native::default();
    let is_within = |key: K::Native| key >= zero && key.to_usize().is_some_and(|key| key < count);
    if let Some(row) = keys.iter().position(|key| key.is_some_and(|key| !is_within(key))) {
        let key = keys.value(row);
        return Err(Error::malformed(format_args!("an index below {count}"), format_args!("{key:?}"))
            .index(first + row as u64)
            .rule("index-range"));
    }
    let nulls = keys.nulls().cloned();
    let within = keys.values().iter().map(|key| if is_within(*key) { *key } else { zero });
    let keys = PrimitiveArray::<K>::new(within.collect(), nulls);
    Ok(Arc::new(arrow_array::DictionaryArray::<K>::try_new(keys, dictionary)?))
}
