//! Parts of an object as messages between workers: one block, one single value, one chunk of DAPHNE's own transfer.
//!
//! ```text
//! block    row u64 | col u64 | rows u32 | cols u32 | block type u8 | …      as in the body of a file: in any order
//! scalar   1 | 4 | 16 bytes that mean nothing | value type u8 | value      DAPHNE only
//! chunk    the 45 or 53 bytes before an object's values | start u64 | bytes of the object from there on   DAPHNE only
//! ```
//!
//! An object is a header and blocks in any order. So a [`Joiner`] stores blocks in order of arrival, and its result is
//! read like a file.

use arrow_array::{Array, ArrayRef};

use crate::cursor::Cursor;
use crate::error::{Context, Error, Result};
use crate::formats::{ReadOptions, WriteOptions};
use crate::limits::Budget;
use crate::sink::Sink;
use crate::source::Source;

use super::ID;
use super::assemble::array_of;
use super::layout::{Block, DbdfLayout};
use super::matrix::{Matrix, read_matrix, write_matrix};
use super::types::{BlockType, DataType, Dialect, ValueType};

/// Bytes of a matrix's header.
const HEADER_BYTES: usize = 19;

/// A block and its position in the object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlacedBlock {
    /// First row in the object.
    pub row: u64,
    /// First column in the object.
    pub col: u64,
    /// The cells: dense for empty and dense blocks, else sparse.
    pub cells: Matrix,
}

/// Encodes one block of an object in the document's layout, preceded by its position. The options `blocks` and
/// `narrow` determine how its cells are stored, as for a file.
///
/// ```
/// use std::sync::Arc;
/// use pentaglot::arrow::array::UInt8Array;
/// use pentaglot::formats::dbdf::{Matrix, read_block, write_block};
/// use pentaglot::formats::{ReadOptions, WriteOptions};
/// let cells = Matrix::Dense { rows: 1, cols: 2, values: Arc::new(UInt8Array::from(vec![40, 2])) };
/// let message = write_block(7, 0, &cells, &WriteOptions::default())?;
/// assert_eq!(message.len(), 16 + 10 + 2);
/// let block = read_block(&message, &ReadOptions::default())?;
/// assert_eq!((block.row, block.col, block.cells.size()), (7, 0, (1, 2)));
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn write_block(row: u64, col: u64, cells: &Matrix, options: &WriteOptions) -> Result<Vec<u8>> {
    let (rows, cols) = cells.size();
    if u32::try_from(rows).is_err() || u32::try_from(cols).is_err() {
        let found = format!("a block of {rows} x {cols} cells (at most 4294967295 x 4294967295 fit)");
        return Err(Error::unsupported(found).in_format(ID));
    }
    let mut options = options.clone();
    options.dialect = Some(Dialect::Spec.name().to_owned());
    options.options.set("block-rows", rows.max(1).to_string());
    options.options.set("block-cols", cols.max(1).to_string());
    options.options.set("meta", "false");
    let (sink, memory) = Sink::memory();
    write_matrix(sink, cells, &options)?;
    let mut message = memory.take().split_off(HEADER_BYTES);
    if let Some(place) = message.first_chunk_mut::<16>() {
        *place = [row.to_le_bytes(), col.to_le_bytes()].concat().try_into().unwrap_or_default();
    }
    Ok(message)
}

/// Decodes one block that [`write_block`] or another program has encoded.
pub fn read_block(message: &[u8], options: &ReadOptions) -> Result<PlacedBlock> {
    let (row, col, file) = alone(message).in_format(ID)?;
    let mut options = options.clone();
    options.dialect = Some(Dialect::Spec.name().to_owned());
    let cells = read_matrix(&Source::from_bytes("block", file), &options)?;
    Ok(PlacedBlock { row, col, cells })
}

/// The position of a block, and the bytes of a file that holds only this block.
fn alone(message: &[u8]) -> Result<(u64, u64, Vec<u8>)> {
    let mut cursor = Cursor::new(message);
    let row = cursor.u64_le().field("row")?;
    let col = cursor.u64_le().field("col")?;
    let block = cursor.rest();
    let rows = cursor.u32_le().field("rows")?;
    let cols = cursor.u32_le().field("cols")?;
    let block_type = cursor.u8().field("block_type")?;
    let sparse =
        BlockType::from_code(block_type).is_some_and(|found| found.code() >= BlockType::Sparse.code());
    let data_type = if sparse { DataType::CsrMatrix } else { DataType::DenseMatrix };
    // An empty block has no value type: the smallest is used.
    let value_type = match block_type {
        0 => ValueType::UInt8.code(Dialect::Spec).unwrap_or(1),
        _ => cursor.u8().field("value_type")?,
    };
    let mut file = vec![1, data_type.code()];
    file.extend(u64::from(rows).to_le_bytes());
    file.extend(u64::from(cols).to_le_bytes());
    file.push(value_type);
    file.extend([0; 16]);
    file.extend(block);
    Ok((row, col, file))
}

/// Joins blocks that arrive in any order to a matrix.
///
/// ```
/// use std::sync::Arc;
/// use pentaglot::arrow::array::Int32Array;
/// use pentaglot::formats::dbdf::{DataType, Joiner, Matrix, ValueType, write_block};
/// use pentaglot::formats::{ReadOptions, WriteOptions};
/// let part = |value| Matrix::Dense { rows: 1, cols: 1, values: Arc::new(Int32Array::from(vec![value])) };
/// let mut joiner = Joiner::new(DataType::DenseMatrix, ValueType::Int32, 2, 1)?;
/// for row in [1, 0] {
///     joiner.push(&write_block(row, 0, &part(10 + row as i32), &WriteOptions::default())?)?;
/// }
/// assert!(joiner.is_complete());
/// let Matrix::Dense { values, .. } = joiner.finish(&ReadOptions::default())? else { panic!() };
/// assert_eq!(format!("{values:?}"), format!("{:?}", Int32Array::from(vec![10, 11])));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Joiner {
    rows: u64,
    cols: u64,
    /// Header and blocks.
    bytes: Vec<u8>,
    blocks: usize,
    covered: u128,
}

impl Joiner {
    /// A matrix of this type and size, without blocks. A frame or a single value is an error.
    pub fn new(data_type: DataType, value_type: ValueType, rows: u64, cols: u64) -> Result<Self> {
        let matrix = matches!(data_type, DataType::DenseMatrix | DataType::CsrMatrix);
        let (true, Some(code)) = (matrix, value_type.code(Dialect::Spec)) else {
            let found = format!("blocks of a {data_type} of {value_type} (matrices of numbers are joined)");
            return Err(Error::unsupported(found).in_format(ID));
        };
        let mut bytes = vec![1, data_type.code()];
        bytes.extend(rows.to_le_bytes());
        bytes.extend(cols.to_le_bytes());
        bytes.push(code);
        Ok(Joiner { rows, cols, bytes, blocks: 0, covered: 0 })
    }

    /// Adds a block. A block that is malformed, or extends outside the matrix, is an error and is not added.
    pub fn push(&mut self, message: &[u8]) -> Result<()> {
        let (_, _, file) = alone(message).in_format(ID)?;
        let source = Source::from_bytes("block", file);
        let layout = DbdfLayout::read(&source, Dialect::Spec, &Budget::default()).in_format(ID)?;
        let mut cursor = Cursor::new(message);
        let (row, col) = (cursor.u64_le()?, cursor.u64_le()?);
        let Some(block) = layout.blocks.first().filter(|_| layout.blocks.len() == 1) else {
            return Err(Error::malformed("one block", layout.blocks.len()).in_format(ID));
        };
        let placed = Block { row, col, offset: 0, ..block.clone() };
        if let Some(error) = placed.outside(self.blocks, self.rows, self.cols) {
            return Err(error.in_format(ID));
        }
        self.blocks += 1;
        self.covered += u128::from(block.rows) * u128::from(block.cols);
        self.bytes.extend(message);
        Ok(())
    }

    /// Whether the blocks so far have as many cells as the matrix. [`finish`](Self::finish) finds overlaps.
    pub fn is_complete(&self) -> bool {
        self.covered >= u128::from(self.rows) * u128::from(self.cols)
    }

    /// The header and the blocks so far, as a file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The matrix. A cell that is in no block or in two is an error, and so is a value that its type cannot hold.
    pub fn finish(self, options: &ReadOptions) -> Result<Matrix> {
        let mut options = options.clone();
        options.dialect = Some(Dialect::Spec.name().to_owned());
        read_matrix(&Source::from_bytes("blocks", self.bytes), &options)
    }
}

/// One value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Scalar {
    /// Its type.
    pub value_type: ValueType,
    /// An array of one value.
    pub value: ArrayRef,
}

/// Encodes one value as DAPHNE's workers send it. The bytes that DAPHNE leaves uninitialised are zero.
///
/// ```
/// use std::sync::Arc;
/// use pentaglot::arrow::array::{ArrayRef, Float64Array};
/// use pentaglot::formats::dbdf::{ValueType, read_scalar, write_scalar};
/// let value: ArrayRef = Arc::new(Float64Array::from(vec![3.25]));
/// let message = write_scalar(&value)?;
/// assert_eq!((message.len(), message[18]), (27, 7));
/// assert_eq!(read_scalar(&message)?.value_type, ValueType::Float64);
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn write_scalar(value: &ArrayRef) -> Result<Vec<u8>> {
    let refused = |what: String| Err(Error::unsupported(what).in_format(ID));
    if value.len() != 1 || value.null_count() > 0 {
        return refused(format!("{} values with {} nulls as one value", value.len(), value.null_count()));
    }
    let Some(value_type) = ValueType::from_arrow(value.data_type()) else {
        return refused(format!("a value of type {}", value.data_type()));
    };
    let Some(code) = value_type.code(Dialect::Daphne) else {
        return refused(format!("{value_type}, which DAPHNE's messages do not have"));
    };
    let data = value.to_data();
    let size = value_type.size();
    let bytes = data.buffers().first().and_then(|buffer| buffer.get(data.offset() * size..)?.get(..size));
    let mut message = vec![1, DataType::Scalar.code()];
    message.extend([0; 16]);
    message.push(code);
    message.extend(bytes.unwrap_or_default());
    Ok(message)
}

/// Decodes one value that a worker of DAPHNE has sent.
pub fn read_scalar(message: &[u8]) -> Result<Scalar> {
    scalar(message).in_format(ID)
}

fn scalar(message: &[u8]) -> Result<Scalar> {
    let source = Source::from_bytes("scalar", message.to_vec());
    let layout = DbdfLayout::read(&source, Dialect::Daphne, &Budget::default())?;
    let (Some(block), Some(value_type), DataType::Scalar) =
        (layout.blocks.first(), layout.header.value_type(0), layout.header.data_type)
    else {
        let found = layout.header.data_type;
        return Err(Error::malformed("data type 4, a single value", found).at(1).field("data_type"));
    };
    super::open::check_decodable(&layout)?;
    let mut memory = crate::cursor::allocate_zeroed(value_type.size() as u64, &crate::Budget::default())?;
    source.read_exact_at(block.data_offset, memory.as_slice_mut())?;
    Ok(Scalar {
        value_type,
        value: array_of(value_type, memory.into(), 1, &|_, error| {
            error.at(block.data_offset).field("value")
        })?,
    })
}

/// Joins the chunks of DAPHNE's out-of-order transfer, in any order: each has the bytes before the object's values, the
/// offset of its own bytes in the object, and those bytes.
pub fn join_chunks(chunks: &[impl AsRef<[u8]>], options: &ReadOptions) -> Result<Matrix> {
    let mut pieces = Vec::new();
    for (index, chunk) in (0u64..).zip(chunks.iter().map(AsRef::as_ref)) {
        pieces.push(chunk_bytes(chunk).index(index).field("chunk").in_format(ID)?);
    }
    pieces.sort_by_key(|(start, _)| *start);
    let mut bytes: Vec<u8> = Vec::new();
    for (start, piece) in pieces {
        if start != bytes.len() as u64 {
            let expected = format!("a chunk that begins at byte {} of the object", bytes.len());
            return Err(Error::malformed(expected, start).field("chunk").rule("chunk-start").in_format(ID));
        }
        bytes.extend(piece);
    }
    let mut options = options.clone();
    options.dialect = Some(Dialect::Daphne.name().to_owned());
    read_matrix(&Source::from_bytes("chunks", bytes), &options)
}

fn chunk_bytes(chunk: &[u8]) -> Result<(u64, &[u8])> {
    let mut cursor = Cursor::new(chunk);
    let _version = cursor.u8().field("version")?;
    let code = cursor.u8().field("data_type")?;
    let before = match DataType::from_code(code) {
        Some(DataType::DenseMatrix) => 45,
        Some(DataType::CsrMatrix) => 53,
        _ => return Err(Error::malformed("a data type code 1..=2", code).at(1).field("data_type")),
    };
    cursor.skip(before - 2).field("header")?;
    let start = cursor.u64_le().field("start")?;
    Ok((start, cursor.rest()))
}
