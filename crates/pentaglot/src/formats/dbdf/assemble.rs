//! Assembles one batch from the blocks of its rows: dense rows, sparse rows, or columns of a table.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, make_array};
use arrow_buffer::{Buffer, MutableBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::SchemaRef;

use crate::cursor::{allocate, allocate_zeroed};
use crate::error::{Context, Error, Result};
use crate::hub::Columns;
use crate::hub::Form;
use crate::hub::{matrix, rows};
use crate::limits::Budget;

use super::cast::{self, Number};
use super::layout::{Block, Encoding};
use super::locate;
use super::open::File;
use super::sparse::Piece;
use super::types::ValueType;

/// Rows of a block are copied through a buffer of about this size.
const SLAB_BYTES: u64 = 256 << 10;

/// Rows of a batch, and the blocks under them.
pub(super) struct Chunk {
    pub(super) rows: Range<u64>,
    pub(super) blocks: Vec<usize>,
}

/// The selected part of an object.
pub(super) struct Projection {
    form: Form,
    pub(super) schema: SchemaRef,
    pub(super) columns: Columns,
    width: u64,
    /// The offsets of rows without entries, shared by all batches of such rows.
    no_entries: OnceLock<OffsetBuffer<i64>>,
}

impl Projection {
    pub(super) fn new(form: Form, schema: SchemaRef, columns: Columns) -> Self {
        let width = columns.count();
        Projection { form, schema, columns, width, no_entries: OnceLock::new() }
    }

    /// The offsets of `rows` rows without entries.
    pub(super) fn no_entries(&self, rows: u64, budget: &Budget) -> Result<OffsetBuffer<i64>> {
        let shared = match self.no_entries.get() {
            Some(shared) if shared.len() as u64 > rows => shared.clone(),
            _ => {
                let bytes = rows.saturating_add(1).saturating_mul(8);
                let zeros = Buffer::from(allocate_zeroed(bytes, budget)?);
                let zeros = OffsetBuffer::new(ScalarBuffer::from(zeros));
                // Only the last batches are smaller, so all can share the offsets of the first.
                self.no_entries.get_or_init(|| zeros.clone());
                zeros
            }
        };
        Ok(shared.slice(0, index(rows)))
    }

    /// Whether rows become those of a sparse matrix.
    pub(super) fn is_sparse(&self) -> bool {
        self.form == Form::Sparse
    }

    /// The selected runs of a block's columns: (column in the block, position in the output, length).
    pub(super) fn spans(&self, block: &Block) -> Vec<Span> {
        let mut place = 0;
        let mut spans = Vec::new();
        for cols in self.columns.ranges() {
            let (from, to) = (cols.start.max(block.col), cols.end.min(block.col_end()));
            if from < to {
                let (from, to_place) = (from - block.col, place + (from - cols.start));
                spans.push(Span {
                    from: index(from),
                    to: index(to_place),
                    count: index(to - block.col - from),
                });
            }
            place += cols.end - cols.start;
        }
        spans
    }
}

pub(super) struct Span {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) count: usize,
}

pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Builds the batch of a chunk. `pieces` are the decoded rows of its sparse blocks.
pub(super) fn batch(
    file: &File,
    selection: &Projection,
    chunk: &Chunk,
    pieces: Vec<Piece>,
) -> Result<RecordBatch> {
    let count = index(chunk.rows.end - chunk.rows.start);
    let build = Build { file, selection, chunk };
    let columns = match selection.form {
        Form::Sparse => build.sparse(pieces).map(|column| vec![column]),
        Form::Table => build.table(&pieces),
        Form::Value => build.dense_values(&pieces).map(|column| vec![column]),
        _ => build.dense(&pieces).map(|column| vec![column]),
    };
    let columns = columns?;
    rows::batch(Arc::clone(&selection.schema), columns, count)
}

pub(super) struct Build<'a> {
    pub(super) file: &'a File,
    pub(super) selection: &'a Projection,
    pub(super) chunk: &'a Chunk,
}

impl Build<'_> {
    pub(super) fn row_count(&self) -> u64 {
        self.chunk.rows.end - self.chunk.rows.start
    }

    /// Adds the file offset of a cell's value to an error.
    pub(super) fn place(&self, row: u64, col: u64, error: Error) -> Error {
        let layout = &self.file.layout;
        for number in &self.chunk.blocks {
            let Some(block) = layout.blocks.get(*number) else { continue };
            if !(block.row..block.row_end()).contains(&row) || !(block.col..block.col_end()).contains(&col) {
                continue;
            }
            let (row, col) = (row - block.row, col - block.col);
            let offset = locate::value_offset(self.file, block, row, col);
            let error = error.index(col).field("col").index(row).field("row");
            let error = error.index(*number as u64).field("block");
            // If the block cannot be read again, the error gets no offset.
            return match offset {
                Ok(Some(offset)) => error.at(offset),
                _ => error,
            };
        }
        error
    }

    /// Calls `each` for the blocks of this chunk that store plain cells, with their selected rows.
    pub(super) fn plain_blocks(
        &self,
        mut each: impl FnMut(u64, &Block, Range<u64>) -> Result<()>,
    ) -> Result<()> {
        let layout = &self.file.layout;
        for number in &self.chunk.blocks {
            let Some(block) = layout.blocks.get(*number) else { continue };
            if matches!(layout.encoding(block), Encoding::Dense | Encoding::FrameRows) {
                let rows = self.chunk.rows.start.max(block.row)..self.chunk.rows.end.min(block.row_end());
                each(*number as u64, block, rows).index(*number as u64).field("block")?;
            }
        }
        Ok(())
    }

    /// Calls `each` with slabs of whole rows of a block: the first row of the slab and its bytes.
    pub(super) fn slabs(
        &self,
        block: &Block,
        rows: Range<u64>,
        row_bytes: u64,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let step = (SLAB_BYTES / row_bytes.max(1)).max(1);
        let mut memory = allocate::<u8>(row_bytes * step.min(rows.end - rows.start), &self.file.budget)?;
        let mut row = rows.start;
        while row < rows.end {
            let count = step.min(rows.end - row);
            memory.resize(index(row_bytes * count), 0);
            let offset = block.data_offset + (row - block.row) * row_bytes;
            self.file.source.read_exact_at(offset, &mut memory)?;
            each(row, &memory)?;
            row += count;
        }
        Ok(())
    }

    fn dense(&self, pieces: &[Piece]) -> Result<ArrayRef> {
        let values = self.dense_values(pieces)?;
        matrix::dense_rows(&self.selection.schema, values, index(self.row_count()))
    }

    /// All cells of a dense matrix, row by row.
    fn dense_values(&self, pieces: &[Piece]) -> Result<ArrayRef> {
        let Some(value_type) = self.file.layout.header.value_type(0) else {
            return Err(Error::unsupported("a matrix without a value type"));
        };
        let size = value_type.size();
        let width = index(self.selection.width);
        let cells = self.row_count().checked_mul(self.selection.width);
        let bytes = cells.and_then(|cells| cells.checked_mul(size as u64)).unwrap_or(u64::MAX);
        let mut memory = allocate_zeroed(bytes, &self.file.budget)?;
        let out = memory.as_slice_mut();
        self.plain_blocks(|_, block, rows| self.copy_cells(block, rows, value_type, out))?;
        for piece in pieces {
            self.scatter(piece, value_type, width, out)?;
        }
        array_of(value_type, memory.into(), index(cells.unwrap_or(0)), &|cell, error| {
            let (row, place) = (cell / width.max(1), cell % width.max(1));
            let col = self.selection.columns.indices().nth(place).unwrap_or(0);
            self.place(self.chunk.rows.start + row as u64, col, error)
        })
    }

    fn copy_cells(&self, block: &Block, rows: Range<u64>, to: ValueType, out: &mut [u8]) -> Result<()> {
        let Some(from) = block.value_type else { return Ok(()) };
        let spans = self.selection.spans(block);
        let (size, width) = (to.size(), index(self.selection.width));
        let first = index(rows.start - self.chunk.rows.start);
        let row_bytes = block.cols * from.size() as u64;
        if let [span] = spans.as_slice()
            && (span.from, span.to, span.count) == (0, 0, width)
            && block.cols == width as u64
            && from == to
        {
            // The usual case: the file's bytes are the array's bytes.
            let count = index(rows.end - rows.start);
            let place =
                out.get_mut(first * width * size..).and_then(|out| out.get_mut(..count * width * size));
            let offset = block.data_offset + (rows.start - block.row) * row_bytes;
            return self.file.source.read_exact_at(offset, place.unwrap_or_default());
        }
        self.slabs(block, rows, row_bytes, |row, slab| {
            let start = index(row - self.chunk.rows.start);
            for (number, cells) in slab.chunks_exact(index(row_bytes).max(1)).enumerate() {
                for span in &spans {
                    let cells = cells.get(span.from * from.size()..).unwrap_or_default();
                    let cells = cells.get(..span.count * from.size()).unwrap_or_default();
                    let at = ((start + number) * width + span.to) * size;
                    let place = out.get_mut(at..).and_then(|out| out.get_mut(..span.count * size));
                    let place = place.unwrap_or_default();
                    if from == to {
                        place.copy_from_slice(cells);
                    } else {
                        cast::cast(cells, from, to, place).map_err(|cell| {
                            let cell = index(cell);
                            let bytes = cells.get(cell * from.size()..).unwrap_or_default();
                            let row = row - block.row + number as u64;
                            let col = (span.from + cell) as u64;
                            let offset = block.data_offset + row * row_bytes + col * from.size() as u64;
                            does_not_survive(bytes, from, to)
                                .at(offset)
                                .index(col)
                                .field("col")
                                .index(row)
                                .field("row")
                        })?;
                    }
                }
            }
            Ok(())
        })
    }

    fn scatter(&self, piece: &Piece, to: ValueType, width: usize, out: &mut [u8]) -> Result<()> {
        let (from, size) = (piece.value_type, to.size());
        let values = piece.values.as_slice();
        let spans = self.selection.columns.ranges();
        let first = index(piece.rows.start - self.chunk.rows.start);
        for (number, ends) in piece.ends.windows(2).enumerate() {
            let &[start, end] = ends else { continue };
            for entry in index(start.cast_unsigned())..index(end.cast_unsigned()) {
                let col = piece.col + u64::from(piece.cols.get(entry).copied().unwrap_or(0));
                let value = values.get(entry * from.size()..).and_then(|rest| rest.get(..from.size()));
                let value = value.unwrap_or_default();
                let mut base = 0;
                for cols in spans {
                    if cols.contains(&col) {
                        let at = ((first + number) * width + index(base + col - cols.start)) * size;
                        let place = out.get_mut(at..).and_then(|out| out.get_mut(..size)).unwrap_or_default();
                        put(value, from, to, place)
                            .map_err(|error| self.place(piece.rows.start + number as u64, col, error))?;
                    }
                    base += cols.end - cols.start;
                }
            }
        }
        Ok(())
    }

    fn table(&self, pieces: &[Piece]) -> Result<Vec<ArrayRef>> {
        let header = &self.file.layout.header;
        let types: Vec<ValueType> =
            self.selection.columns.indices().filter_map(|col| header.value_type(col)).collect();
        let rows = self.row_count();
        let column = |value_type: &ValueType| {
            allocate_zeroed(rows.saturating_mul(value_type.size() as u64), &self.file.budget)
        };
        let mut columns: Vec<MutableBuffer> = types.iter().map(column).collect::<Result<_>>()?;
        self.plain_blocks(|_, block, rows| self.copy_columns(block, rows, &types, &mut columns))?;
        for piece in pieces {
            for (place, (col, to)) in self.selection.columns.indices().zip(&types).enumerate() {
                if let Some(column) = columns.get_mut(place) {
                    self.scatter_column(piece, col, *to, column.as_slice_mut())?;
                }
            }
        }
        let columns = self.selection.columns.indices().zip(types.iter().zip(columns));
        columns
            .map(|(col, (value_type, memory))| {
                array_of(*value_type, memory.into(), index(rows), &|row, error| {
                    self.place(self.chunk.rows.start + row as u64, col, error)
                })
            })
            .collect()
    }

    fn copy_columns(
        &self,
        block: &Block,
        rows: Range<u64>,
        types: &[ValueType],
        columns: &mut [MutableBuffer],
    ) -> Result<()> {
        let header = &self.file.layout.header;
        let spans = self.selection.spans(block);
        let first = index(rows.start - self.chunk.rows.start);
        if let (Some(from), 1, [span]) = (block.value_type, block.cols, spans.as_slice())
            && types.get(span.to) == Some(&from)
            && let Some(column) = columns.get_mut(span.to)
        {
            let size = from.size();
            let count = index(rows.end - rows.start);
            let place =
                column.as_slice_mut().get_mut(first * size..).and_then(|out| out.get_mut(..count * size));
            let offset = block.data_offset + (rows.start - block.row) * size as u64;
            return self.file.source.read_exact_at(offset, place.unwrap_or_default());
        }
        // The offset of each column of the block in a row of cells.
        let mut places: Vec<usize> = vec![0];
        for col in block.col..block.col_end() {
            let size = block.value_type.or(header.value_type(col)).map_or(0, ValueType::size);
            places.push(places.last().copied().unwrap_or(0) + size);
        }
        let row_bytes = places.last().copied().unwrap_or(0);
        self.slabs(block, rows, row_bytes as u64, |row, slab| {
            let start = index(row - self.chunk.rows.start);
            for span in &spans {
                for step in 0..span.count {
                    let (Some(place), Some(to)) = (places.get(span.from + step), types.get(span.to + step))
                    else {
                        continue;
                    };
                    let from = block.value_type.unwrap_or(*to);
                    let Some(column) = columns.get_mut(span.to + step) else { continue };
                    let out = column.as_slice_mut().get_mut(start * to.size()..).unwrap_or_default();
                    let cells =
                        slab.chunks_exact(row_bytes).filter_map(|row| row.get(*place..)?.get(..from.size()));
                    copy_column(cells, from, *to, out).map_err(|(number, error)| {
                        let row = row - block.row + number;
                        let offset = block.data_offset + row * row_bytes as u64 + *place as u64;
                        let col = (span.from + step) as u64;
                        error.at(offset).index(col).field("col").index(row).field("row")
                    })?;
                }
            }
            Ok(())
        })
    }

    fn scatter_column(&self, piece: &Piece, col: u64, to: ValueType, out: &mut [u8]) -> Result<()> {
        let Some(local) = col.checked_sub(piece.col) else { return Ok(()) };
        let (from, size) = (piece.value_type, to.size());
        let first = index(piece.rows.start - self.chunk.rows.start);
        for (number, ends) in piece.ends.windows(2).enumerate() {
            let &[start, end] = ends else { continue };
            for entry in index(start.cast_unsigned())..index(end.cast_unsigned()) {
                if piece.cols.get(entry).is_some_and(|col| u64::from(*col) == local) {
                    let values = piece.values.as_slice();
                    let value = values.get(entry * from.size()..).and_then(|rest| rest.get(..from.size()));
                    let place = out.get_mut((first + number) * size..).and_then(|out| out.get_mut(..size));
                    put(value.unwrap_or_default(), from, to, place.unwrap_or_default())
                        .map_err(|error| self.place(piece.rows.start + number as u64, col, error))?;
                }
            }
        }
        Ok(())
    }
}

fn copy_column<'a>(
    cells: impl Iterator<Item = &'a [u8]>,
    from: ValueType,
    to: ValueType,
    out: &mut [u8],
) -> Result<(), (u64, Error)> {
    // Dispatches on the size once, so that the loops copy words and not slices.
    fn words<'a, const N: usize>(cells: impl Iterator<Item = &'a [u8]>, out: &mut [u8]) {
        let (out, _) = out.as_chunks_mut::<N>();
        for (cell, out) in cells.zip(out) {
            if let Some(cell) = cell.first_chunk::<N>() {
                *out = *cell;
            }
        }
    }
    if from == to {
        match from.size() {
            1 => words::<1>(cells, out),
            2 => words::<2>(cells, out),
            4 => words::<4>(cells, out),
            8 => words::<8>(cells, out),
            _ => words::<16>(cells, out),
        }
        return Ok(());
    }
    for (number, (cell, out)) in (0u64..).zip(cells.zip(out.chunks_exact_mut(to.size()))) {
        put(cell, from, to, out).map_err(|error| (number, error))?;
    }
    Ok(())
}

/// Writes one value, cast if that is exact.
fn put(value: &[u8], from: ValueType, to: ValueType, out: &mut [u8]) -> Result<()> {
    if from == to {
        out.copy_from_slice(value);
        return Ok(());
    }
    let cast = Number::read(from, value).and_then(|number| number.write(to, out));
    cast.ok_or_else(|| does_not_survive(value, from, to))
}

pub(super) fn does_not_survive(value: &[u8], from: ValueType, to: ValueType) -> Error {
    let found = Number::read(from, value).map_or_else(|| from.to_string(), |number| number.to_string());
    Error::malformed(format_args!("a value that {to} holds"), found).rule("value-range")
}

/// An array of values from their bytes; `place` adds the place of the value with an index to an error.
pub(super) fn array_of(
    value_type: ValueType,
    memory: Buffer,
    count: usize,
    place: &dyn Fn(usize, Error) -> Error,
) -> Result<ArrayRef> {
    if value_type == ValueType::FixedStr16 {
        return strings(&memory, place);
    }
    let data = ArrayData::try_new(value_type.arrow(), count, None, 0, vec![memory], Vec::new())?;
    Ok(make_array(data))
}

/// 16-byte strings: text up to the first NUL, NULs to the end.
fn strings(memory: &[u8], place: &dyn Fn(usize, Error) -> Error) -> Result<ArrayRef> {
    let cells = memory.chunks_exact(16).enumerate();
    let texts: Vec<&str> = cells
        .map(|(index, cell)| fixed_text(cell).map_err(|found| place(index, not_fixed_text(found))))
        .collect::<Result<_>>()?;
    let array = StringArray::from(texts);
    debug_assert_eq!(array.len() * 16, memory.len());
    Ok(Arc::new(array))
}

pub(super) fn not_fixed_text(found: &str) -> Error {
    Error::malformed("UTF-8 text padded with NUL", found).rule("fixed-string")
}

/// The text of a 16-byte string, or what is wrong with it.
pub(super) fn fixed_text(cell: &[u8]) -> Result<&str, &'static str> {
    let end = cell.iter().position(|byte| *byte == 0).ok_or("no NUL at the end")?;
    let (text, rest) = cell.split_at(end);
    if rest.iter().any(|byte| *byte != 0) {
        return Err("bytes after the NUL");
    }
    std::str::from_utf8(text).map_err(|_| "bytes that are not UTF-8")
}
