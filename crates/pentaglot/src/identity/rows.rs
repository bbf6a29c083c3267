//! The identity of rows that arrive batch by batch.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Field, SchemaRef};
use rayon::prelude::*;

use super::chunk::{self, ChunkKind, Unfinished};
use super::{CHUNK_ROWS, ColumnIdentity, Identity, IdentityOptions, form_of, types};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::hub::{Form, Shape, shape};
use crate::limits::Budget;

/// Bytes of whole chunks that are hashed in one parallel step.
const STEP_BYTES: u64 = 32 << 20;
/// Bytes of an unfinished chunk that are kept in memory before it is spooled.
const WAITING_BYTES: u64 = 64 << 20;

/// Hashes rows batch by batch, in constant memory.
///
/// A matrix in columns or as `row, col, value` is hashed as a plain table; [`of_rows`](super::of_rows)
/// converts it to a matrix first.
pub struct RowHasher {
    budget: Budget,
    control: Control,
    shape: &'static str,
    cols: u64,
    rows: u64,
    columns: Vec<ColumnState>,
    /// Rows and bytes that are not hashed yet.
    waiting_rows: u64,
    waiting_bytes: u64,
}

struct ColumnState {
    name: String,
    data_type: String,
    kind: ChunkKind,
    chunks: Vec<[u8; 32]>,
    /// Slices after the last whole chunk, and what was spooled of the same chunk before them.
    waiting: Vec<ArrayRef>,
    unfinished: Option<Unfinished>,
    /// Rows in `unfinished`.
    spooled_rows: u64,
}

impl RowHasher {
    /// A hasher of rows with this schema.
    pub fn new(schema: &SchemaRef, options: &IdentityOptions) -> Result<Self> {
        let form = form_of(schema);
        let column = |name: &str, field: &Field, kind| {
            Ok::<_, Error>(ColumnState {
                name: name.to_owned(),
                data_type: types::type_text(field)?,
                kind,
                chunks: Vec::new(),
                waiting: Vec::new(),
                unfinished: None,
                spooled_rows: 0,
            })
        };
        let columns = match form {
            Form::Table | Form::Columns | Form::Coo => {
                let fields = schema.fields().iter();
                fields.map(|field| column(field.name(), field, ChunkKind::Values)).collect::<Result<_>>()?
            }
            Form::Dense | Form::Sparse => vec![column("", matrix_value(schema)?, ChunkKind::Matrix)?],
            Form::Array | Form::Value => vec![column("", schema.field(0), ChunkKind::Values)?],
        };
        let shape = match form {
            Form::Dense | Form::Sparse => Shape::Matrix,
            Form::Array => Shape::Array,
            Form::Value => Shape::Value,
            _ => Shape::Table,
        };
        let cols = match shape {
            Shape::Matrix => shape::matrix_cols(schema)
                .ok_or_else(|| Error::unsupported("the identity of a matrix of unknown width"))?,
            _ => 0,
        };
        let (budget, control) = (options.budget.clone(), options.control.clone());
        let shape = shape.name();
        Ok(RowHasher { budget, control, shape, cols, rows: 0, columns, waiting_rows: 0, waiting_bytes: 0 })
    }

    /// Takes the next rows.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows() as u64;
        if rows == 0 {
            return Ok(());
        }
        self.rows += rows;
        self.waiting_rows += rows;
        for (column, array) in self.columns.iter_mut().zip(batch.columns()) {
            self.waiting_bytes += array.to_data().get_slice_memory_size().unwrap_or(0) as u64;
            column.waiting.push(array.clone());
        }
        let whole = self.waiting_rows / CHUNK_ROWS;
        let enough = whole >= self.control.threads() as u64;
        if (whole > 0 && enough) || self.waiting_bytes >= self.most(STEP_BYTES) {
            self.hash_whole()?;
        }
        Ok(())
    }

    /// `bytes`, or less if the budget is small.
    fn most(&self, bytes: u64) -> u64 {
        bytes.min(self.budget.limits().max_alloc / 8)
    }

    /// Hashes the complete chunks; the remaining rows are kept, or spooled if they are large.
    fn hash_whole(&mut self) -> Result<()> {
        let spool = self.waiting_bytes >= self.most(WAITING_BYTES) && self.waiting_rows < CHUNK_ROWS;
        let (columns, budget) = (&mut self.columns, &self.budget);
        self.control
            .install(|| columns.par_iter_mut().try_for_each(|column| column.hash_whole(spool, budget)))??;
        if spool {
            self.waiting_bytes = 0;
            return Ok(());
        }
        if self.waiting_rows >= CHUNK_ROWS {
            self.waiting_rows %= CHUNK_ROWS;
            let waiting = self.columns.iter().flat_map(|column| &column.waiting);
            self.waiting_bytes =
                waiting.map(|array| array.to_data().get_slice_memory_size().unwrap_or(0) as u64).sum();
        }
        Ok(())
    }

    /// The identity of all rows.
    pub fn finish(mut self) -> Result<Identity> {
        self.hash_whole()?;
        let rows = self.rows;
        let columns = std::mem::take(&mut self.columns).into_par_iter();
        let columns: Vec<Result<_>> =
            self.control.install(|| columns.map(|column| column.finish(rows)).collect())?;
        let columns = columns.into_iter().collect::<Result<_>>()?;
        Ok(Identity { shape: self.shape, rows, cols: self.cols, columns })
    }
}

impl ColumnState {
    fn hash_whole(&mut self, spool: bool, budget: &Budget) -> Result<()> {
        let mut chunks: Vec<Vec<ArrayRef>> = vec![Vec::new()];
        let mut room = CHUNK_ROWS - self.spooled_rows;
        for array in std::mem::take(&mut self.waiting) {
            let mut start = 0;
            while start < array.len() {
                let count = room.min((array.len() - start) as u64);
                if let Some(last) = chunks.last_mut() {
                    last.push(array.slice(start, count as usize));
                }
                start += count as usize;
                room -= count;
                if room == 0 {
                    room = CHUNK_ROWS;
                    chunks.push(Vec::new());
                }
            }
        }
        self.waiting = chunks.pop().unwrap_or_default();
        let mut chunks = chunks.into_iter();
        // The first one may continue what was spooled.
        if let Some(mut unfinished) = self.unfinished.take_if(|_| chunks.len() > 0) {
            chunks.next().into_iter().flatten().try_for_each(|array| unfinished.push(&array))?;
            self.chunks.push(unfinished.digest()?);
            self.spooled_rows = 0;
        }
        let rest: Vec<Vec<ArrayRef>> = chunks.collect();
        let kind = self.kind;
        let digests: Vec<Result<_>> = rest.par_iter().map(|pieces| chunk::digest(pieces, kind)).collect();
        for digest in digests {
            self.chunks.push(digest?);
        }
        if spool {
            let unfinished = self.unfinished.get_or_insert_with(|| Unfinished::new(kind, budget));
            for array in std::mem::take(&mut self.waiting) {
                self.spooled_rows += array.len() as u64;
                unfinished.push(&array)?;
            }
        }
        Ok(())
    }

    fn finish(mut self, rows: u64) -> Result<ColumnIdentity> {
        match self.unfinished.take() {
            Some(mut unfinished) => {
                self.waiting.iter().try_for_each(|array| unfinished.push(array))?;
                self.chunks.push(unfinished.digest()?);
            }
            None if self.waiting.is_empty() => {}
            None => self.chunks.push(chunk::digest(&self.waiting, self.kind)?),
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&rows.to_le_bytes());
        for digest in &self.chunks {
            hasher.update(digest);
        }
        let digest = *hasher.finalize().as_bytes();
        Ok(ColumnIdentity { name: self.name, data_type: self.data_type, digest, chunks: self.chunks })
    }
}

/// The field with the type of a matrix's values.
fn matrix_value(schema: &SchemaRef) -> Result<&Field> {
    use arrow_schema::DataType::{FixedSizeList, LargeList, Struct};
    match schema.field(0).data_type() {
        FixedSizeList(item, _) => Ok(item),
        LargeList(entry) => match entry.data_type() {
            Struct(fields) if fields.len() == 2 => Ok(&fields[1]),
            _ => Err(Error::unsupported("a sparse matrix whose entries are not pairs")),
        },
        _ => Err(Error::unsupported("a matrix whose rows are not lists")),
    }
}
