//! The layout of a file: the header and the list of blocks, found by a walk that reads no values.
//!
//! A walk assumes one dialect and succeeds only if the file is consumed to its last byte.

use crate::cursor::allocate;
use crate::error::{Context, Error, Result};
use crate::limits::Budget;
use crate::source::Source;

use super::types::{BlockType, DataType, Dialect, ValueType};

/// The part of a file before the body.
///
/// ```
/// use pentaglot::formats::dbdf::{Dialect, DbdfLayout, ValueType};
/// use pentaglot::{Limits, Source};
/// // A 1 x 1 matrix of the double 7.0, as DAPHNE writes it.
/// let mut file = vec![1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7];
/// file.extend([0; 16]);
/// file.extend([1, 0, 0, 0, 1, 0, 0, 0, 1, 7]);
/// file.extend(7f64.to_le_bytes());
/// let layout = DbdfLayout::read(&Source::from_bytes("seven", file), Dialect::Daphne, &Limits::default().budget())?;
/// assert_eq!((layout.header.rows, layout.header.cols), (1, 1));
/// assert_eq!(layout.header.value_types, [ValueType::Float64]);
/// assert_eq!(layout.blocks[0].data_offset, 45);
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The dialect, which determines the meaning of codes and the layout.
    pub dialect: Dialect,
    /// The kind of object in the file.
    pub data_type: DataType,
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// One for a matrix, one per column for a frame.
    pub value_types: Vec<ValueType>,
    /// The label bytes of a frame's columns. DAPHNE writes raw memory there, not text.
    pub labels: Vec<Vec<u8>>,
    /// The length of the header in bytes.
    pub bytes: u64,
}

/// A rectangle of cells and the location of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// First row in the object.
    pub row: u64,
    /// First column in the object.
    pub col: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
    /// How the cells are stored.
    pub block_type: BlockType,
    /// The type of the stored values; `None` for an empty block and for the cells of a DAPHNE frame.
    pub value_type: Option<ValueType>,
    /// How many entries a sparse or ultra-sparse block stores.
    pub entries: u64,
    /// The offset of the block, which begins with its row and column index.
    pub offset: u64,
    /// The offset of its values (after the count of entries, if there is one).
    pub data_offset: u64,
    /// The length of its values in bytes.
    pub data_bytes: u64,
}

impl Block {
    /// The row after the last.
    pub fn row_end(&self) -> u64 {
        self.row.saturating_add(self.rows)
    }

    /// The column after the last.
    pub fn col_end(&self) -> u64 {
        self.col.saturating_add(self.cols)
    }

    /// Whether it has no cells.
    pub fn is_void(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    /// The error if block `index` is not inside an object of this size.
    pub(super) fn outside(&self, index: usize, rows: u64, cols: u64) -> Option<Error> {
        let rule = |error: Error| error.index(index as u64).field("block").rule("block-outside");
        if self.row.checked_add(self.rows).is_none_or(|end| end > rows) {
            let found = format!("rows {} to {}", self.row, u128::from(self.row) + u128::from(self.rows));
            let error = Error::malformed(format_args!("a block within {rows} rows"), found);
            return Some(rule(error.at(self.offset)));
        }
        if self.col.checked_add(self.cols).is_none_or(|end| end > cols) {
            let found = format!("columns {} to {}", self.col, u128::from(self.col) + u128::from(self.cols));
            let error = Error::malformed(format_args!("a block within {cols} columns"), found);
            return Some(rule(error.at(self.offset + 8)));
        }
        None
    }
}

/// How the bytes of a block are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Empty,
    /// Cells of one type, row by row.
    Dense,
    /// Per row a u32 count, then (u32 column, value) pairs.
    Sparse,
    /// (u32 row, u32 column, value) triples, without the column if there is only one.
    UltraSparse,
    /// DAPHNE: u64 row offsets, u64 columns, values.
    CsrArrays,
    /// DAPHNE 0.1: like `Sparse`, with u64 counts and columns.
    WideSparse,
    /// DAPHNE: cells of a frame, row by row, each of its column's type.
    FrameRows,
}

/// A header and its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DbdfLayout {
    /// The part of a file before the body.
    pub header: Header,
    /// The blocks, in file order.
    pub blocks: Vec<Block>,
    /// How long the file is.
    pub bytes: u64,
}

impl DbdfLayout {
    /// Walks a file of the given dialect; returns an error unless it fits to the last byte. Reads only
    /// headers. Does not check that blocks cover the object without overlap.
    pub fn read(source: &Source, dialect: Dialect, budget: &Budget) -> Result<DbdfLayout> {
        DbdfLayout::walk(source, dialect, budget, false).map_err(|fault| fault.error)
    }

    /// As [`DbdfLayout::read`]; a fault also says how far the file made sense.
    ///
    /// Of a damaged file, the blocks before the fault are kept, the last of which may be longer than the file.
    pub(super) fn walk(
        source: &Source,
        dialect: Dialect,
        budget: &Budget,
        damaged: bool,
    ) -> Result<DbdfLayout, Fault> {
        let mut walk = Walk::new(source, damaged).map_err(Fault::from)?;
        let header = read_header(&mut walk, dialect, budget).field("header")?;
        let blocks = match (header.data_type, dialect) {
            (DataType::Scalar, _) => vec![scalar(&mut walk, &header)?],
            (_, Dialect::Spec) => spec_blocks(&mut walk, &header, budget)?,
            (DataType::Frame, _) => vec![frame_body(&mut walk, &header).index(0).field("block")?],
            _ => vec![daphne_block(&mut walk, &header).index(0).field("block")?],
        };
        match walk.left() {
            0 => Ok(DbdfLayout { header, blocks, bytes: walk.len }),
            more => Err(Error::malformed("the end", format_args!("{more} more bytes"))
                .at(walk.offset)
                .rule("trailing")
                .into()),
        }
    }

    /// How the bytes of a block are laid out.
    pub(super) fn encoding(&self, block: &Block) -> Encoding {
        match (block.block_type, self.header.dialect, self.header.data_type) {
            (BlockType::Empty, _, _) => Encoding::Empty,
            (BlockType::Dense, Dialect::Daphne | Dialect::Daphne01, DataType::Frame) => Encoding::FrameRows,
            (BlockType::Dense, _, _) => Encoding::Dense,
            (BlockType::Sparse, Dialect::Spec, _) => Encoding::Sparse,
            (BlockType::Sparse, Dialect::Daphne, _) => Encoding::CsrArrays,
            (BlockType::Sparse, Dialect::Daphne01, _) => Encoding::WideSparse,
            (BlockType::UltraSparse, _, _) => Encoding::UltraSparse,
        }
    }

    /// How many entries the sparse and ultra-sparse blocks store; `None` if a block stores plain cells.
    pub(super) fn stored_entries(&self) -> Option<u64> {
        let plain = |block: &Block| block.block_type == BlockType::Dense && !block.is_void();
        let sparse = !self.blocks.iter().any(plain);
        sparse.then(|| self.blocks.iter().map(|block| block.entries).fold(0, u64::saturating_add))
    }
}

/// Why a walk failed.
pub(super) struct Fault {
    pub(super) error: Error,
    /// How many bytes before the fault are valid.
    pub(super) valid_bytes: u64,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let valid_bytes = error.offset().unwrap_or(0);
        Fault { error, valid_bytes }
    }
}

impl Header {
    /// The type of column `col`.
    pub fn value_type(&self, col: u64) -> Option<ValueType> {
        match self.data_type {
            DataType::Frame => self.value_types.get(usize::try_from(col).ok()?).copied(),
            _ => self.value_types.first().copied(),
        }
    }

    /// Bytes of one row of cells, each of its column's type.
    pub(super) fn row_bytes(&self) -> Option<u64> {
        match self.data_type {
            DataType::Frame => self
                .value_types
                .iter()
                .try_fold(0u64, |sum, value_type| sum.checked_add(value_type.size() as u64)),
            _ => self.cols.checked_mul(self.value_types.first()?.size() as u64),
        }
    }
}

/// A position in the file that reads headers and skips values.
struct Walk<'a> {
    source: &'a Source,
    len: u64,
    offset: u64,
    window: Vec<u8>,
    window_at: u64,
    /// How much to read next: grows while headers are close to each other.
    reach: usize,
    /// Whether values may be missing at the end of the file.
    damaged: bool,
}

const LEAST_REACH: usize = 64;
const MOST_REACH: usize = 64 << 10;

impl<'a> Walk<'a> {
    fn new(source: &'a Source, damaged: bool) -> Result<Self> {
        let len = source.len().ok_or_else(|| Error::usage("a stream cannot be read at an offset"))?;
        Ok(Walk { source, len, offset: 0, window: Vec::new(), window_at: 0, reach: LEAST_REACH, damaged })
    }

    fn left(&self) -> u64 {
        self.len - self.offset
    }

    /// Returns an error unless `count` bytes are left.
    fn check(&self, count: Option<u64>) -> Result<u64> {
        match count {
            Some(count) if count <= self.left() => Ok(count),
            Some(count) => Err(Error::truncated(format_args!("{count} bytes"), self.left()).at(self.offset)),
            None => Err(Error::truncated("more bytes than 64 bits can count", self.left()).at(self.offset)),
        }
    }

    fn skip(&mut self, count: Option<u64>) -> Result<u64> {
        let count = self.check(count)?;
        self.offset += count;
        Ok(count)
    }

    /// Goes past the values of a block.
    fn skip_values(&mut self, count: Option<u64>) -> Result<u64> {
        let end = count.and_then(|count| count.checked_add(self.offset)).filter(|end| *end < 1 << 63);
        match (count, end) {
            (Some(count), Some(_)) if self.damaged && count > self.left() => {
                self.offset = self.len;
                Ok(count)
            }
            _ => self.skip(count),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.check(Some(N as u64))?;
        let inside = |walk: &Self| {
            let start = usize::try_from(walk.offset.checked_sub(walk.window_at)?).ok()?;
            walk.window.get(start..)?.first_chunk::<N>().copied()
        };
        if let Some(bytes) = inside(self) {
            self.offset += N as u64;
            return Ok(bytes);
        }
        let close = self.offset.saturating_sub(self.window_at) <= 2 * self.window.len() as u64;
        self.reach = if close { (self.reach * 4).min(MOST_REACH) } else { LEAST_REACH };
        self.window.clear();
        self.window.resize(self.reach.max(N), 0);
        let count = self.source.read_at(self.offset, &mut self.window)?;
        self.window.truncate(count);
        self.window_at = self.offset;
        let bytes = inside(self)
            .ok_or_else(|| Error::truncated(format_args!("{N} bytes"), self.window.len()).at(self.offset))?;
        self.offset += N as u64;
        Ok(bytes)
    }

    fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u64> {
        self.array().map(|bytes| u64::from(u32::from_le_bytes(bytes)))
    }

    fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn bytes(&mut self, count: u64, budget: &Budget) -> Result<Vec<u8>> {
        let count = self.check(Some(count))?;
        let mut bytes = allocate::<u8>(count, budget)?;
        bytes.resize(usize::try_from(count).unwrap_or(usize::MAX), 0);
        self.source.read_exact_at(self.offset, &mut bytes)?;
        self.offset += count;
        Ok(bytes)
    }

    fn value_type(&mut self, dialect: Dialect) -> Result<ValueType> {
        let at = self.offset;
        let code = self.u8()?;
        value_type(dialect, code, at)
    }
}

fn value_type(dialect: Dialect, code: u8, at: u64) -> Result<ValueType> {
    ValueType::from_code(dialect, code)
        .ok_or_else(|| Error::malformed(ValueType::codes(dialect), code).at(at).rule("value-type"))
}

/// The approximate memory of each column of a frame (its field, its label).
const COLUMN_COST: u64 = 1536;

fn read_header(walk: &mut Walk<'_>, dialect: Dialect, budget: &Budget) -> Result<Header> {
    let version = walk.u8().field("version")?;
    if version != 1 {
        return Err(Error::unsupported(format!("version {version} (1 is read)")).at(0).field("version"));
    }
    let code = walk.u8().field("data_type")?;
    let data_type = DataType::from_code(code)
        // Only DAPHNE's dialect has single values.
        .filter(|data_type| *data_type != DataType::Scalar || dialect == Dialect::Daphne)
        .ok_or_else(|| {
            let known = if dialect == Dialect::Daphne { "1..=4" } else { "1..=3" };
            let expected = format!("a data type code {known}");
            Error::malformed(expected, code).at(1).field("data_type").rule("data-type")
        })?;
    if dialect == Dialect::Daphne01 {
        // The compiler aligned the row count; the padding is uninitialised memory.
        walk.skip(Some(6))?;
    }
    let mut rows = walk.u64().field("rows")?;
    let mut cols = walk.u64().field("cols")?;
    let (mut value_types, mut labels) = (Vec::new(), Vec::new());
    match data_type {
        DataType::Frame => {
            let least = cols.checked_mul(3);
            walk.check(least).field("value_types")?;
            budget.check(cols.saturating_mul(COLUMN_COST)).field("cols")?;
            let at = walk.offset;
            for (index, code) in (0u64..).zip(walk.bytes(cols, budget).field("value_types")?) {
                let found = value_type(dialect, code, at + index).index(index).field("value_types")?;
                value_types.push(found);
            }
            for index in 0..cols {
                let read = |walk: &mut Walk<'_>| {
                    let bytes = walk.u16()?;
                    walk.bytes(u64::from(bytes), budget)
                };
                labels.push(read(walk).index(index).field("labels")?);
            }
        }
        DataType::Scalar => {
            // DAPHNE never sets these two.
            (rows, cols) = (1, 1);
            value_types.push(walk.value_type(dialect).field("value_type")?);
        }
        _ => value_types.push(walk.value_type(dialect).field("value_type")?),
    }
    Ok(Header { dialect, data_type, rows, cols, value_types, labels, bytes: walk.offset })
}

fn scalar(walk: &mut Walk<'_>, header: &Header) -> Result<Block> {
    let value_type = header.value_type(0);
    let (offset, size) = (walk.offset, value_type.map_or(0, ValueType::size) as u64);
    let data_bytes = walk.skip(Some(size)).field("value")?;
    Ok(Block {
        row: 0,
        col: 0,
        rows: 1,
        cols: 1,
        block_type: BlockType::Dense,
        value_type,
        entries: 0,
        offset,
        data_offset: offset,
        data_bytes,
    })
}

/// DAPHNE writes zero for both indices and ignores them on reading; other values mean another dialect.
fn check_origin(walk: &mut Walk<'_>) -> Result<()> {
    for name in ["row", "col"] {
        let at = walk.offset;
        let index = walk.u64().field(name)?;
        if index != 0 {
            return Err(Error::malformed(0, index).at(at).field(name).rule("block-position"));
        }
    }
    Ok(())
}

/// The single block of a matrix that DAPHNE wrote.
fn daphne_block(walk: &mut Walk<'_>, header: &Header) -> Result<Block> {
    let offset = walk.offset;
    check_origin(walk)?;
    for (name, expected) in [("rows", header.rows), ("cols", header.cols)] {
        let at = walk.offset;
        let found = walk.u32().field(name)?;
        if found != expected {
            let expected = format!("{expected} as in the header");
            return Err(Error::malformed(expected, found).at(at).field(name).rule("block-shape"));
        }
    }
    let at = walk.offset;
    let code = walk.u8().field("block_type")?;
    let block_type = match header.data_type {
        DataType::CsrMatrix => BlockType::Sparse,
        _ => BlockType::Dense,
    };
    if code != block_type.code() {
        let expected = format!("block type {} ({block_type}) in a {}", block_type.code(), header.data_type);
        return Err(Error::malformed(expected, code).at(at).field("block_type").rule("block-type"));
    }
    if header.dialect == Dialect::Daphne01 {
        walk.skip(Some(3))?;
    }
    let at = walk.offset;
    let value_type = walk.value_type(header.dialect).field("value_type")?;
    if Some(value_type) != header.value_type(0) {
        let expected = match header.value_type(0) {
            Some(expected) => format!("{expected} as in the header"),
            None => "the header's type".to_owned(),
        };
        return Err(Error::malformed(expected, value_type)
            .at(at)
            .field("value_type")
            .rule("block-value-type"));
    }
    let size = value_type.size() as u64;
    let mut entries = 0;
    let data_bytes = if block_type == BlockType::Sparse {
        entries = walk.u64().field("entries")?;
        let offsets = match header.dialect {
            Dialect::Daphne => header.rows.checked_add(1),
            _ => Some(header.rows),
        };
        let offsets = offsets.and_then(|count| count.checked_mul(8));
        entries.checked_mul(8 + size).and_then(|values| values.checked_add(offsets?))
    } else {
        header.rows.checked_mul(header.cols).and_then(|cells| cells.checked_mul(size))
    };
    let data_offset = walk.offset;
    let data_bytes = walk.skip_values(data_bytes).field("values")?;
    Ok(Block {
        row: 0,
        col: 0,
        rows: header.rows,
        cols: header.cols,
        block_type,
        value_type: Some(value_type),
        entries,
        offset,
        data_offset,
        data_bytes,
    })
}

/// The cells of a frame that DAPHNE wrote: no block header.
fn frame_body(walk: &mut Walk<'_>, header: &Header) -> Result<Block> {
    let offset = walk.offset;
    check_origin(walk)?;
    let data_offset = walk.offset;
    let data_bytes = header.row_bytes().and_then(|row| row.checked_mul(header.rows));
    let data_bytes = walk.skip_values(data_bytes).field("values")?;
    Ok(Block {
        row: 0,
        col: 0,
        rows: header.rows,
        cols: header.cols,
        block_type: BlockType::Dense,
        value_type: None,
        entries: 0,
        offset,
        data_offset,
        data_bytes,
    })
}

fn spec_blocks(walk: &mut Walk<'_>, header: &Header, budget: &Budget) -> Result<Vec<Block>, Fault> {
    let mut blocks: Vec<Block> = Vec::new();
    let cells = u128::from(header.rows) * u128::from(header.cols);
    let mut covered = 0u128;
    // Garbage after a block is parsed as a block outside the object; if the walk fails later, that block is the actual
    // fault.
    let mut outside: Option<Fault> = None;
    while walk.left() > 0 {
        let index = blocks.len() as u64;
        let (start, left) = (walk.offset, walk.left());
        let room = (index + 1).saturating_mul(size_of::<Block>() as u64);
        let block = budget.check(room).and_then(|()| spec_block(walk, header).index(index).field("block"));
        let fault = match &block {
            Ok(block) => block.outside(blocks.len(), header.rows, header.cols),
            Err(_) => None,
        };
        let complete = !blocks.is_empty() && covered == cells;
        match (block, fault) {
            (Ok(block), None) => {
                covered += u128::from(block.rows) * u128::from(block.cols);
                blocks.push(block);
            }
            // What follows the first fault is not known to be where it should be.
            (Ok(_), Some(_)) | (Err(_), _) if walk.damaged => {
                walk.offset = walk.len;
                break;
            }
            (Ok(block), Some(error)) => {
                outside.get_or_insert(if complete {
                    trailing(start, left)
                } else {
                    Fault { error, valid_bytes: start }
                });
                blocks.push(block);
            }
            (Err(error), _) => {
                let here =
                    || if complete { trailing(start, left) } else { Fault { error, valid_bytes: start } };
                return Err(outside.unwrap_or_else(here));
            }
        }
    }
    Ok(blocks)
}

/// Bytes after the last cell may mean another dialect as well as damage.
fn trailing(offset: u64, bytes: u64) -> Fault {
    let error = Error::malformed("the end", format_args!("{bytes} more bytes")).at(offset).rule("trailing");
    Fault { error, valid_bytes: 19 }
}

fn spec_block(walk: &mut Walk<'_>, header: &Header) -> Result<Block> {
    let offset = walk.offset;
    let row = walk.u64().field("row")?;
    let col = walk.u64().field("col")?;
    let rows = walk.u32().field("rows")?;
    let cols = walk.u32().field("cols")?;
    let at = walk.offset;
    let code = walk.u8().field("block_type")?;
    let block_type = BlockType::from_code(code).ok_or_else(|| {
        Error::malformed("a block type code 0..=3", code).at(at).field("block_type").rule("block-type")
    })?;
    let value_type = match block_type {
        BlockType::Empty => None,
        _ => Some(walk.value_type(header.dialect).field("value_type")?),
    };
    let size = value_type.map_or(0, ValueType::size) as u64;
    let entries = match block_type {
        BlockType::Empty | BlockType::Dense => 0,
        BlockType::Sparse => walk.u64().field("entries")?,
        BlockType::UltraSparse => walk.u32().field("entries")?,
    };
    let data_bytes = match block_type {
        BlockType::Empty => Some(0),
        BlockType::Dense => rows.checked_mul(cols).and_then(|cells| cells.checked_mul(size)),
        BlockType::Sparse => entries.checked_mul(4 + size).and_then(|bytes| bytes.checked_add(4 * rows)),
        // Spec, "Blocks with a single column": its index is not stored.
        BlockType::UltraSparse if cols == 1 => entries.checked_mul(4 + size),
        BlockType::UltraSparse => entries.checked_mul(8 + size),
    };
    let data_offset = walk.offset;
    let data_bytes = walk.skip_values(data_bytes).field("values")?;
    Ok(Block { row, col, rows, cols, block_type, value_type, entries, offset, data_offset, data_bytes })
}
