//! Arrays from their compressed buffers.
//!
//! Each buffer is unpacked into memory of its own, worked on in place and handed to Arrow as it is; its compressed
//! bytes are dropped before the next one is read.

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
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

use super::layout::{Array, Block, Data};
use super::schema::{Type, arrow_fields};
use super::values;
use crate::error::{Context, Error, Result};
use crate::kernels::{arrays, scan};
use crate::limits::Budget;
use crate::source::Source;
use crate::wire::lz4;

/// Decodes the arrays of one source.
#[derive(Clone)]
pub(super) struct Decoder {
    pub source: Source,
    pub budget: Budget,
    /// How many rows from the first on are wanted of columns of fixed width, where reading all of a column is costly.
    pub first_rows: Option<u64>,
}

/// How much of a buffer is read to decode its first rows.
const START_BYTES: u64 = 32 << 10;

impl Decoder {
    /// The array, with the parts that it is made of.
    pub(super) fn array(&self, array: &Array) -> Result<ArrayRef> {
        // The parts of an array must be whole.
        let whole = Decoder { first_rows: None, ..self.clone() };
        let parts = match &array.data {
            Data::Values(_) | Data::Nothing { .. } | Data::Bytes { .. } => Vec::new(),
            Data::Factor { index, dictionary } => {
                vec![
                    whole.array(index).field("i").field("d")?,
                    whole.array(dictionary).field("d").field("d")?,
                ]
            }
            Data::List { items, .. } => vec![whole.array(items).field("d")?],
            Data::Struct { fields, .. } => {
                let parts = fields
                    .iter()
                    .map(|(name, field)| whole.array(field).field(name.clone()).field("f").field("d"));
                parts.collect::<Result<_>>()?
            }
        };
        self.assemble(array, parts)
    }

    /// The array from its decoded parts: index and dictionary, items, or fields.
    pub(super) fn assemble(&self, array: &Array, mut parts: Vec<ArrayRef>) -> Result<ArrayRef> {
        match (&array.data, &array.kind) {
            (Data::Nothing { rows }, _) => {
                let nulls = self.mask(array, *rows)?.map_or(0, |mask| mask.null_count());
                if (nulls as u64) < *rows {
                    return Err(Error::malformed("a mask of zeros", "ones")
                        .at(array.mask.offset)
                        .rule("null-mask")
                        .field("m"));
                }
                Ok(Arc::new(NullArray::new(row_count(*rows)?)))
            }
            (Data::Values(values), kind) => self.values(array, values, kind),
            (Data::Bytes { values, counts }, kind) => {
                let offsets = self.offsets(counts, values.length)?;
                let mask = self.mask(array, offsets.len() as u64 - 1)?;
                let bytes: Buffer = self.block(values).field("d")?.into();
                match kind {
                    Type::Utf8 => strings(offsets, bytes, mask).at(values.offset).field("d"),
                    _ => Ok(Arc::new(BinaryArray::try_new(offsets, bytes, mask)?)),
                }
            }
            (Data::Factor { .. }, kind) => {
                let (Some(dictionary), Some(index)) = (parts.pop(), parts.pop()) else {
                    return Err(Error::malformed("an index and a dictionary", "less"));
                };
                let mask = self.mask(array, index.len() as u64)?;
                // Some writers mark nulls in the outer mask, others in both: a value that either masks is null.
                let mask = NullBuffer::union(mask.as_ref(), index.nulls());
                let index_type = match kind {
                    Type::Factor { index, .. } => index.to_arrow(),
                    other => other.to_arrow(),
                };
                factor(&index_type, &index, mask, dictionary).at(array.offset).field("i").field("d")
            }
            (Data::List { counts, .. }, kind) => {
                let (Some(items), Type::List(item)) = (parts.pop(), kind) else {
                    return Err(Error::malformed("list items", "none"));
                };
                let offsets = self.offsets(counts, items.len() as u64)?;
                let mask = self.mask(array, offsets.len() as u64 - 1)?;
                let field = Arc::new(item.to_field(Field::LIST_FIELD_DEFAULT_NAME));
                Ok(Arc::new(ListArray::try_new(field, offsets, items, mask)?))
            }
            (Data::Struct { rows, fields }, kind) => {
                for ((name, field), part) in fields.iter().zip(&parts) {
                    if part.len() as u64 != *rows {
                        return Err(Error::malformed(format_args!("{rows} rows, as l says"), part.len())
                            .at(field.offset)
                            .rule("row-count")
                            .field(name.clone())
                            .field("f")
                            .field("d"));
                    }
                }
                let mask = self.mask(array, *rows)?;
                let fields = match kind {
                    Type::Struct(fields) => arrow_fields(fields),
                    _ => arrow_schema::Fields::empty(),
                };
                Ok(Arc::new(StructArray::try_new_with_length(fields, parts, mask, row_count(*rows)?)?))
            }
        }
    }

    /// An array of values of fixed width.
    fn values(&self, array: &Array, block: &Block, kind: &Type) -> Result<ArrayRef> {
        let width = kind.width().unwrap_or(1).max(1);
        let rows = block.length / width;
        if !block.length.is_multiple_of(width) {
            return Err(Error::malformed(format_args!("a multiple of {width} bytes"), block.length)
                .at(block.offset)
                .rule("values-length")
                .field("d"));
        }
        if let Some(first) = self.first_rows.filter(|first| *first < rows)
            && let Some((values, mask)) = self.start(array, block, first, width)?
        {
            return fixed_width(values, mask, first, kind);
        }
        let mask = self.mask(array, rows)?;
        let values = self.block(block).field("d")?;
        fixed_width(values, mask, rows, kind)
    }

    /// The first values of an array and their validity, if the first bytes of both buffers tell them.
    fn start(
        &self,
        array: &Array,
        block: &Block,
        rows: u64,
        width: u64,
    ) -> Result<Option<(MutableBuffer, Option<NullBuffer>)>> {
        let start = |block: &Block, length: u64| -> Result<Option<MutableBuffer>> {
            let packed_bytes = block.bytes.saturating_sub(4).min(START_BYTES);
            let packed = self.source.read_range(block.offset + 4, packed_bytes, &self.budget)?;
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let Some(plain) = lz4::decompress_start(&packed, length) else { return Ok(None) };
            let mut memory = crate::cursor::allocate_zeroed(plain.len() as u64, &self.budget)?;
            memory.as_slice_mut().copy_from_slice(&plain);
            Ok(Some(memory))
        };
        let (Some(values), Some(mut bits)) =
            (start(block, rows.saturating_mul(width))?, start(&array.mask, rows.div_ceil(8))?)
        else {
            return Ok(None);
        };
        scan::reverse_bits(bits.as_slice_mut());
        let nulls = NullBuffer::new(BooleanBuffer::new(bits.into(), 0, row_count(rows)?));
        Ok(Some((values, (nulls.null_count() > 0).then_some(nulls))))
    }

    /// The buffer, unpacked.
    pub(super) fn block(&self, block: &Block) -> Result<MutableBuffer> {
        self.unpack(block, block.bytes.saturating_sub(4)).at(block.offset)
    }

    fn unpack(&self, block: &Block, packed_bytes: u64) -> Result<MutableBuffer> {
        let packed = self.source.read_range(block.offset + 4, packed_bytes, &self.budget)?;
        if block.length > 0 {
            return lz4::decompress(&packed, block.length, &self.budget);
        }
        // C++ writes nothing after the length 0, Python an empty block.
        if !matches!(packed.as_slice(), [] | [0]) {
            return Err(Error::malformed("nothing after the length 0", format_args!("{packed_bytes} bytes"))
                .rule("lz4-length"));
        }
        crate::cursor::allocate_zeroed(0, &self.budget)
    }

    /// The validity of `rows` rows; `None` if nothing is missing.
    fn mask(&self, array: &Array, rows: u64) -> Result<Option<NullBuffer>> {
        let block = &array.mask;
        if block.length != rows.div_ceil(8) {
            return Err(Error::malformed(
                format_args!("a mask of {} bytes for {rows} rows", rows.div_ceil(8)),
                block.length,
            )
            .at(block.offset)
            .rule("mask-length")
            .field("m"));
        }
        let mut bits = self.block(block).field("m")?;
        scan::reverse_bits(bits.as_slice_mut());
        let nulls = NullBuffer::new(BooleanBuffer::new(bits.into(), 0, row_count(rows)?));
        Ok((nulls.null_count() > 0).then_some(nulls))
    }

    /// Offsets from the lengths in a buffer `o`, which must add up to `total`.
    fn offsets(&self, counts: &Block, total: u64) -> Result<OffsetBuffer<i32>> {
        let fault = |expected: String, found: String| {
            Error::malformed(expected, found).at(counts.offset).rule("offsets")
        };
        if counts.length < 4 || !counts.length.is_multiple_of(4) {
            let expected = "4 bytes for each row and 4 more".to_owned();
            return Err(fault(expected, counts.length.to_string()).field("o"));
        }
        let mut buffer = self.block(counts).field("o")?;
        let lengths: &mut [u32] = buffer.typed_data_mut();
        let first = lengths.first().copied().unwrap_or(0).cast_signed();
        if first != 0 {
            return Err(fault("0 as the first element".to_owned(), first.to_string()).index(0).field("o"));
        }
        let fits = scan::prefix_sums_u32(lengths);
        if !fits || lengths.last().is_some_and(|last| u64::from(*last) != total) {
            values::differences_u32(buffer.as_slice_mut().as_chunks_mut().0, 0);
            let lengths: &[u32] = buffer.typed_data();
            let negative = lengths.iter().position(|length| length.cast_signed() < 0);
            return Err(match negative {
                Some(index) => {
                    let length = lengths.get(index).map_or(0, |length| length.cast_signed());
                    fault("a length of 0 or more".to_owned(), length.to_string()).index(index as u64)
                }
                None => {
                    let sum: u64 = lengths.iter().map(|length| u64::from(*length)).sum();
                    fault(format!("lengths that add up to {total}"), sum.to_string())
                }
            }
            .field("o"));
        }
        let count = buffer.len() / 4;
        Ok(OffsetBuffer::new(ScalarBuffer::new(buffer.into(), 0, count)))
    }
}

/// An array of `rows` values of fixed width.
fn fixed_width(
    mut values: MutableBuffer,
    mask: Option<NullBuffer>,
    rows: u64,
    kind: &Type,
) -> Result<ArrayRef> {
    let rows = row_count(rows)?;
    if *kind == Type::Bool {
        let bits = Buffer::from(values::pack_bools(&values));
        return Ok(Arc::new(BooleanArray::new(BooleanBuffer::new(bits, 0, rows), mask)));
    }
    if kind.is_difference_encoded() {
        match kind.width() {
            Some(4) => drop(scan::prefix_sums_u32(values.typed_data_mut())),
            _ => values::prefix_sums_u64(values.typed_data_mut()),
        }
    }
    let data = ArrayData::builder(kind.to_arrow()).len(rows).add_buffer(values.into()).nulls(mask);
    Ok(make_array(data.build()?))
}

/// The number of rows as Arrow counts them. All of them have a bit in a mask that was read or will be.
fn row_count(rows: u64) -> Result<usize> {
    usize::try_from(rows).map_err(|_| Error::limit("the address space", usize::MAX, format!("{rows} rows")))
}

/// Strings. Bytes under a missing one may be anything, and are dropped where they are no text.
fn strings(offsets: OffsetBuffer<i32>, bytes: Buffer, mask: Option<NullBuffer>) -> Result<ArrayRef> {
    let (offsets, bytes, mask) = match arrays::strings(offsets, bytes, mask) {
        Ok(strings) => return Ok(Arc::new(strings)),
        Err(parts) => parts,
    };
    let binary = BinaryArray::try_new(offsets, bytes, mask)?;
    let mut texts: Vec<Option<&str>> = Vec::new();
    for (index, value) in binary.iter().enumerate() {
        let text = value.map(std::str::from_utf8).transpose().map_err(|_| {
            Error::malformed("UTF-8 text", "bytes that are none (the option utf8=bytes reads them as binary)")
                .index(index as u64)
                .rule("utf8")
        });
        texts.push(text?);
    }
    Ok(Arc::new(StringArray::from(texts)))
}

fn factor(
    index_type: &DataType,
    index: &ArrayRef,
    mask: Option<NullBuffer>,
    dictionary: ArrayRef,
) -> Result<ArrayRef> {
    match index_type {
        DataType::Int8 => factor_of::<Int8Type>(index, mask, dictionary),
        DataType::Int16 => factor_of::<Int16Type>(index, mask, dictionary),
        DataType::Int32 => factor_of::<Int32Type>(index, mask, dictionary),
        DataType::Int64 => factor_of::<Int64Type>(index, mask, dictionary),
        DataType::UInt8 => factor_of::<UInt8Type>(index, mask, dictionary),
        DataType::UInt16 => factor_of::<UInt16Type>(index, mask, dictionary),
        DataType::UInt32 => factor_of::<UInt32Type>(index, mask, dictionary),
        DataType::UInt64 => factor_of::<UInt64Type>(index, mask, dictionary),
        other => Err(Error::malformed("an integer index", other)),
    }
}

/// A dictionary array. Indices under missing values may be anything; those past the dictionary become 0.
fn factor_of<K: ArrowDictionaryKeyType>(
    index: &ArrayRef,
    mask: Option<NullBuffer>,
    dictionary: ArrayRef,
) -> Result<ArrayRef> {
    let keys = PrimitiveArray::<K>::new(index.as_primitive::<K>().values().clone(), mask);
    let (keys, dictionary) = match arrays::dictionary(keys, dictionary) {
        Ok(factor) => return Ok(Arc::new(factor)),
        Err(parts) => parts,
    };
    use arrow_buffer::ArrowNativeType;
    let count = dictionary.len();
    let zero = K::Native::default();
    let is_within = |key: K::Native| key >= zero && key.to_usize().is_some_and(|key| key < count);
    if let Some(row) = keys.iter().position(|key| key.is_some_and(|key| !is_within(key))) {
        let key = keys.value(row);
        return Err(Error::malformed(format_args!("an index below {count}"), format_args!("{key:?}"))
            .index(row as u64)
            .rule("index-range"));
    }
    let nulls = keys.nulls().cloned();
    let within = keys.values().iter().map(|key| if is_within(*key) { *key } else { zero });
    let keys = PrimitiveArray::<K>::new(within.collect(), nulls);
    Ok(Arc::new(arrow_array::DictionaryArray::<K>::try_new(keys, dictionary)?))
}
