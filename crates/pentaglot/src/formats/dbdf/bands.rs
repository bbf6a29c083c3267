//! Writes rows as blocks of the document: rows are collected until a band is full, which is then divided into
//! blocks by columns.

use std::collections::BTreeMap;

use arrow_buffer::Buffer;

use crate::error::{Error, Result};
use crate::hub::Form;
use crate::hub::matrix::ColumnNumbers;
use crate::sink::Sink;

use super::cast::SparseRows;
use super::encode::{self, BlockOptions, Entries, Place};
use super::schema::Object;
use super::types::{DataType, ValueType};

/// Default size of a band.
const BAND_BYTES: u64 = 16 << 20;

/// Default maximum number of rows of a sparse band.
const SPARSE_BAND_ROWS: u64 = 1 << 20;

/// The band that is being filled. Arrays are kept without copying.
pub(super) struct Bands {
    options: BlockOptions,
    /// Rows before this band.
    row: u64,
    /// Rows in it.
    rows: u64,
    /// Its maximum number of rows.
    height: u64,
    cells: Vec<Vec<Buffer>>,
    sparse: Vec<SparseRows>,
    sparse_entries: u64,
    /// Entries written so far.
    pub(super) entries: u64,
    blocks: u64,
}

impl Bands {
    pub(super) fn new(object: &Object, options: BlockOptions) -> Self {
        let row_bytes: u64 = match object.form {
            Form::Table => object.value_types.iter().map(|value_type| value_type.size() as u64).sum(),
            _ => object.cols.saturating_mul(object.value_type().size() as u64),
        };
        let most = u64::from(u32::MAX);
        let height = match (options.rows, object.form) {
            (Some(rows), _) => rows,
            (None, Form::Sparse) => SPARSE_BAND_ROWS,
            (None, _) => (BAND_BYTES / row_bytes.max(1)).clamp(1, most),
        };
        Bands {
            options,
            row: 0,
            rows: 0,
            height,
            cells: Vec::new(),
            sparse: Vec::new(),
            sparse_entries: 0,
            entries: 0,
            blocks: 0,
        }
    }

    /// Adds `rows` rows of plain columns (one buffer per column of a table, one for a matrix).
    pub(super) fn push_cells(
        &mut self,
        sink: &mut Sink,
        object: &Object,
        columns: Vec<Buffer>,
        rows: u64,
    ) -> Result<()> {
        let mut done = 0;
        while done < rows {
            let count = (self.height - self.rows).min(rows - done);
            let cut = |(column, value_type): (&Buffer, &ValueType)| {
                let width = if object.form == Form::Table { 1 } else { index(object.cols) };
                let row_bytes = width * value_type.size();
                column.slice_with_length(index(done) * row_bytes, index(count) * row_bytes)
            };
            self.cells.push(columns.iter().zip(&object.value_types).map(cut).collect());
            self.rows += count;
            done += count;
            if self.rows == self.height {
                self.flush(sink, object)?;
            }
        }
        Ok(())
    }

    /// Adds rows of a sparse matrix.
    pub(super) fn push_entries(&mut self, sink: &mut Sink, object: &Object, rows: SparseRows) -> Result<()> {
        let most = BAND_BYTES / (4 + object.value_type().size() as u64);
        let mut from = 0;
        let total = rows.ends.len().saturating_sub(1);
        let free = self.options.rows.is_none() && self.options.forced.is_none();
        if free && self.sparse_entries == 0 && rows.ends.first() == rows.ends.last() {
            return self.push_empty(sink, object, total as u64);
        }
        // A band of empty rows may be higher than one with entries.
        if self.rows >= self.height {
            self.flush(sink, object)?;
        }
        self.add_empty_offsets();
        while from < total {
            let ends = rows.ends.get(from..).unwrap_or_default();
            let start = ends.first().copied().unwrap_or(0);
            // Rows until the band is full; if its height is not set by the user, it is also full when it has
            // enough entries.
            let by_entries = if self.options.rows.is_some() {
                usize::MAX
            } else {
                let room = most.saturating_sub(self.sparse_entries);
                ends.partition_point(|end| (end - start).cast_unsigned() < room).max(1)
            };
            let count = index(self.height - self.rows).min(total - from).min(by_entries);
            let ends = rows.ends.slice(from, count + 1);
            let taken = ends.last().copied().unwrap_or(start) - start;
            self.sparse.push(SparseRows { ends, cols: rows.cols.clone(), values: rows.values.clone() });
            self.rows += count as u64;
            self.sparse_entries += taken.cast_unsigned();
            self.entries += taken.cast_unsigned();
            from += count;
            let full = self.options.rows.is_none() && self.sparse_entries >= most;
            if self.rows == self.height || full {
                self.flush(sink, object)?;
            }
        }
        Ok(())
    }

    /// Adds rows without entries to a band without entries: one block holds as many as its row count allows.
    fn push_empty(&mut self, sink: &mut Sink, object: &Object, mut rows: u64) -> Result<()> {
        while rows > 0 {
            let count = (u64::from(u32::MAX) - self.rows).min(rows);
            self.rows += count;
            rows -= count;
            if self.rows == u64::from(u32::MAX) {
                self.flush(sink, object)?;
            }
        }
        Ok(())
    }

    /// Adds the offsets of empty rows that were only counted, since entries follow them in the band.
    fn add_empty_offsets(&mut self) {
        if self.sparse.is_empty() && self.rows > 0 {
            let ends = vec![0; index(self.rows) + 1].into();
            self.sparse.push(SparseRows {
                ends,
                cols: ColumnNumbers::Narrow(Vec::new().into()),
                values: Buffer::default(),
            });
        }
    }

    /// Writes the remaining rows; an object without cells becomes one empty block.
    pub(super) fn finish(&mut self, sink: &mut Sink, object: &Object, rows: u64) -> Result<()> {
        self.flush(sink, object)?;
        let void = rows == 0 || object.cols == 0;
        if let (true, 0, Ok(rows), Ok(cols)) =
            (void, self.blocks, u32::try_from(rows), u32::try_from(object.cols))
        {
            encode::write_void(sink, Place { row: 0, col: 0, rows, cols })?;
        }
        Ok(())
    }

    fn flush(&mut self, sink: &mut Sink, object: &Object) -> Result<()> {
        let (cells, sparse) = (std::mem::take(&mut self.cells), std::mem::take(&mut self.sparse));
        let rows = u32::try_from(std::mem::take(&mut self.rows)).unwrap_or(u32::MAX);
        let row = self.row;
        self.row += u64::from(rows);
        self.sparse_entries = 0;
        if rows == 0 || object.cols == 0 {
            return Ok(());
        }
        match object.form {
            Form::Table => self.flush_table(sink, object, &cells, row, rows),
            Form::Sparse => self.flush_sparse(sink, object, &sparse, row, rows),
            _ => self.flush_matrix(sink, object, &cells, row, rows),
        }
    }

    /// The column ranges of blocks.
    fn tiles(&self, cols: u64) -> Result<impl Iterator<Item = (u64, u32)> + use<>> {
        let width = self.options.cols.unwrap_or(u64::from(u32::MAX)).min(cols).max(1);
        let count = cols.div_ceil(width);
        if count > 1 << 24 {
            return Err(Error::limit("the limit", 1 << 24, format!("{count} blocks in a row band")));
        }
        Ok((0..count).map(move |tile| {
            let col = tile * width;
            (col, u32::try_from(width.min(cols - col)).unwrap_or(u32::MAX))
        }))
    }

    fn flush_matrix(
        &mut self,
        sink: &mut Sink,
        object: &Object,
        cells: &[Vec<Buffer>],
        row: u64,
        rows: u32,
    ) -> Result<()> {
        let parts: Vec<&[u8]> =
            cells.iter().filter_map(|columns| columns.first()).map(Buffer::as_slice).collect();
        let size = object.value_type().size();
        for (col, cols) in self.tiles(object.cols)? {
            let place = Place { row, col, rows, cols };
            self.blocks += 1;
            if u64::from(cols) == object.cols {
                encode::write_cells(sink, place, object.value_type(), &parts, &self.options)?;
                continue;
            }
            let (from, to) = (index(col) * size, (index(col) + index(u64::from(cols))) * size);
            let mut tile = Vec::new();
            for line in parts.iter().flat_map(|part| part.chunks_exact(index(object.cols) * size)) {
                tile.extend_from_slice(line.get(from..to).unwrap_or_default());
            }
            encode::write_cells(sink, place, object.value_type(), &[&tile], &self.options)?;
        }
        Ok(())
    }

    fn flush_table(
        &mut self,
        sink: &mut Sink,
        object: &Object,
        cells: &[Vec<Buffer>],
        row: u64,
        rows: u32,
    ) -> Result<()> {
        // A block has one value type, so a run of columns ends where the type changes.
        let most = index(self.options.cols.unwrap_or(1));
        let mut first = 0;
        while let Some(value_type) = object.value_types.get(first).copied() {
            let same =
                object.value_types.iter().skip(first).take(most).take_while(|other| **other == value_type);
            let run = first..first + same.count();
            first = run.end;
            let cols = u32::try_from(run.len()).unwrap_or(u32::MAX);
            let place = Place { row, col: run.start as u64, rows, cols };
            self.blocks += 1;
            if run.len() == 1 {
                let parts: Vec<&[u8]> =
                    cells.iter().filter_map(|columns| columns.get(run.start)).map(Buffer::as_slice).collect();
                encode::write_cells(sink, place, value_type, &parts, &self.options)?;
                continue;
            }
            let mut tile = Vec::new();
            for columns in cells {
                let mut lines: Vec<_> = columns
                    .get(run.clone())
                    .unwrap_or_default()
                    .iter()
                    .map(|column| column.chunks_exact(value_type.size()))
                    .collect();
                while lines.iter().all(|line| line.len() > 0) {
                    lines.iter_mut().filter_map(Iterator::next).for_each(|cell| tile.extend_from_slice(cell));
                }
            }
            encode::write_cells(sink, place, value_type, &[&tile], &self.options)?;
        }
        Ok(())
    }

    fn flush_sparse(
        &mut self,
        sink: &mut Sink,
        object: &Object,
        parts: &[SparseRows],
        row: u64,
        rows: u32,
    ) -> Result<()> {
        let value_type = object.value_type();
        if parts.is_empty() {
            for (col, cols) in self.tiles(object.cols)? {
                self.blocks += 1;
                encode::write_void(sink, Place { row, col, rows, cols })?;
            }
            return Ok(());
        }
        // A dense matrix that is read as sparse rows has no explicit zeros.
        debug_assert!(matches!(object.data_type, DataType::CsrMatrix | DataType::DenseMatrix));
        let mut tiles = self.tiles(object.cols)?.peekable();
        let narrow: Option<Vec<Entries<'_>>> = parts
            .iter()
            .map(|part| match &part.cols {
                ColumnNumbers::Narrow(cols) => Some(Entries { ends: &part.ends, cols, values: &part.values }),
                ColumnNumbers::Wide(_) => None,
            })
            .collect();
        if let (Some(parts), Some((0, cols))) = (narrow, tiles.peek().copied())
            && u64::from(cols) == object.cols
        {
            self.blocks += 1;
            return encode::write_entries(
                sink,
                Place { row, col: 0, rows, cols },
                value_type,
                &parts,
                &self.options,
            );
        }
        let width = self.options.cols.unwrap_or(u64::from(u32::MAX)).min(object.cols).max(1);
        let by_tile = split(parts, row, rows, width, object)?;
        for (number, (col, cols)) in (0u64..).zip(tiles) {
            let place = Place { row, col, rows, cols };
            self.blocks += 1;
            match by_tile.get(&number) {
                None if self.options.forced.is_none() => encode::write_void(sink, place)?,
                None => {
                    let ends = vec![0; index(u64::from(rows)) + 1];
                    let none = Entries { ends: &ends, cols: &[], values: &[] };
                    encode::write_entries(sink, place, value_type, &[none], &self.options)?;
                }
                Some(tile) => {
                    let entries = Entries { ends: &tile.ends, cols: &tile.cols, values: &tile.values };
                    encode::write_entries(sink, place, value_type, &[entries], &self.options)?;
                }
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Tile {
    ends: Vec<i64>,
    cols: Vec<u32>,
    values: Vec<u8>,
}

/// The entries of a band by the tile that their column is in; tiles without entries are left out.
fn split(
    parts: &[SparseRows],
    first: u64,
    rows: u32,
    width: u64,
    object: &Object,
) -> Result<BTreeMap<u64, Tile>> {
    let size = object.value_type().size();
    let mut tiles: BTreeMap<u64, Tile> = BTreeMap::new();
    let mut row = 0usize;
    for part in parts {
        for pair in part.ends.windows(2) {
            let &[start, end] = pair else { continue };
            for entry in index(start.cast_unsigned())..index(end.cast_unsigned()) {
                let col = match &part.cols {
                    ColumnNumbers::Narrow(cols) => cols.get(entry).map(|col| u64::from(*col)),
                    ColumnNumbers::Wide(cols) => cols.get(entry).copied(),
                };
                let col = col.filter(|col| *col < object.cols).ok_or_else(|| {
                    let number = first + row as u64;
                    Error::lossy(format!("row {number}: a column is not below {}", object.cols))
                })?;
                let tile = tiles.entry(col / width).or_default();
                // Rows since this tile's last entry end where it does.
                tile.ends.resize(row + 1, tile.cols.len() as i64);
                tile.cols.push(u32::try_from(col % width).unwrap_or(u32::MAX));
                tile.values
                    .extend_from_slice(part.values.get(entry * size..(entry + 1) * size).unwrap_or_default());
            }
            row += 1;
        }
    }
    for tile in tiles.values_mut() {
        let count = tile.cols.len() as i64;
        tile.ends.resize(index(u64::from(rows)) + 1, count);
    }
    Ok(tiles)
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
