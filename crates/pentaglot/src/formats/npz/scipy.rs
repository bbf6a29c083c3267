//! SciPy's sparse matrices in an archive: `format`, `shape`, `data`, and `indices` with `indptr`, `row` with `col`, or
//! `offsets`.
//!
//! CSR streams row by row; CSC, COO, BSR and DIA are sorted into rows in memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema, SchemaRef};
use serde_json::json;

use super::csr_stream::{CsrStream, Indices, Numbers, Pointers};
use super::layout::{Directory, Entry};
use super::schema::{SparseLayout, with_complex};
use crate::control::Control;
use crate::error::{Context, Error, Result};
use crate::formats::ReadOptions;
use crate::formats::npy::decode;
use crate::formats::npy::layout::Extent;
use crate::formats::npy::read::ArrayFile;
use crate::formats::npy::types::{Dtype, DtypeKind, complex};
use crate::hub::Selection;
use crate::hub::matrix::build::{self as csr, Entries, Index, Value};
use crate::hub::type_text::print_type;
use crate::hub::{Rows, native, rows, shape};
use crate::limits::Budget;
use crate::source::Source;

/// A sparse matrix in an archive, its small members read.
#[derive(Debug, Clone)]
pub(super) struct Sparse {
    source: Source,
    directory: Directory,
    pub(super) budget: Budget,
    pub(super) control: Control,
    pub(super) layout: SparseLayout,
    pub(super) rows: u64,
    pub(super) cols: u64,
    /// Stored entries.
    pub(super) entries: u64,
    /// Rows and columns of a block; 1 and 1 except for BSR.
    pub(super) block: (u64, u64),
    pub(super) schema: SchemaRef,
}

/// The member by which SciPy tells its sparse arrays from its sparse matrices.
pub(super) const IS_ARRAY: &str = "_is_array";

/// Whether the members are those of a sparse matrix.
pub(super) fn is_sparse(directory: &Directory) -> bool {
    let has = |name: &str| directory.entries.iter().any(|entry| entry.name() == name);
    has("format")
        && has("shape")
        && has("data")
        && (has("indices") && has("indptr") || has("row") && has("col") || has("offsets") || has("coords"))
}

impl Sparse {
    pub(super) fn open(source: Source, directory: Directory, options: &ReadOptions) -> Result<Sparse> {
        let mut this = Sparse {
            source,
            directory,
            budget: options.budget.clone(),
            control: options.control.clone(),
            layout: SparseLayout::Csr,
            rows: 0,
            cols: 0,
            entries: 0,
            block: (1, 1),
            schema: Arc::new(Schema::empty()),
        };
        this.layout = this.read_layout()?;
        let shape = this.numbers("shape", 8)?;
        let [rows, cols] = shape.as_slice() else {
            return Err(Error::malformed("2 dimensions", shape.len()).field("shape").rule("sparse-shape"));
        };
        (this.rows, this.cols) = (*rows, *cols);
        let data = this.array("data")?;
        let scalar = match &data.header.dtype {
            Dtype::Scalar(scalar) => *scalar,
            Dtype::Struct(_) => return Err(Error::unsupported("a sparse matrix of structs").field("data")),
        };
        if !matches!(
            scalar.kind,
            DtypeKind::Bool | DtypeKind::Int | DtypeKind::Uint | DtypeKind::Float | DtypeKind::Complex
        ) {
            let message = format!("a sparse matrix of {}", scalar.text());
            return Err(Error::unsupported(message).field("data"));
        }
        match (this.layout, data.header.shape.as_slice()) {
            (SparseLayout::Bsr, [blocks, rows, cols]) => {
                let entries = blocks.checked_mul(*rows).and_then(|count| count.checked_mul(*cols));
                this.entries = entries.ok_or_else(|| Error::limit("the limit", u64::MAX, "more entries"))?;
                this.block = (*rows, *cols);
                let even = |total: u64, block: u64| block > 0 && total.is_multiple_of(block);
                if !even(this.rows, *rows) || !even(this.cols, *cols) {
                    let expected = format_args!("blocks that tile {} x {}", this.rows, this.cols);
                    return Err(Error::malformed(expected, format_args!("{rows} x {cols}"))
                        .field("data")
                        .rule("sparse-shape"));
                }
            }
            // Spec of SciPy: `data[k, j]` is the cell in column j of the diagonal k; cells outside the matrix are
            // ignored.
            (SparseLayout::Dia, [diagonals, width]) => {
                let entries = diagonals.checked_mul(*width);
                this.entries = entries.ok_or_else(|| Error::limit("the limit", u64::MAX, "more entries"))?;
            }
            (SparseLayout::Dia, other) => {
                return Err(Error::malformed("2 dimensions", other.len()).field("data").rule("sparse-shape"));
            }
            (SparseLayout::Bsr, other) => {
                return Err(Error::malformed("3 dimensions", other.len()).field("data").rule("sparse-shape"));
            }
            (_, [count]) => this.entries = *count,
            (_, other) => {
                return Err(Error::malformed("1 dimension", other.len()).field("data").rule("sparse-shape"));
            }
        }
        let stored = if this.layout == SparseLayout::Bsr { data.header.rows() } else { this.entries };
        match this.layout {
            SparseLayout::Dia => this.check_len("offsets", data.header.rows())?,
            SparseLayout::Coo => {
                this.check_len("row", stored)?;
                this.check_len("col", stored)?;
            }
            SparseLayout::Csr | SparseLayout::Csc | SparseLayout::Bsr => {
                let runs = match this.layout {
                    SparseLayout::Csc => this.cols,
                    _ => this.rows / this.block.0.max(1),
                };
                this.check_len("indptr", runs.saturating_add(1))?;
                this.check_len("indices", stored)?;
            }
        }
        let item = data.header.dtype.field("value")?;
        let plain = shape::sparse_schema(item.data_type().clone(), Some(this.rows), this.cols);
        let (layout, dtype, index_bytes) = (this.layout.name(), scalar.text(), this.index_bytes()?);
        let block = (this.layout == SparseLayout::Bsr).then(|| json!([this.block.0, this.block.1]));
        let is_array = this.entry(IS_ARRAY).is_ok().then(|| json!(true));
        let known = [("layout", json!(layout)), ("dtype", json!(dtype)), ("index_bytes", json!(index_bytes))];
        let more = [("block", block), ("is_array", is_array)];
        let more = more.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let native: serde_json::Value =
            known.into_iter().chain(more).map(|(name, value)| (name.to_owned(), value)).collect();
        let schema = if scalar.kind == DtypeKind::Complex { with_complex(plain) } else { plain };
        this.schema = Arc::new(native::with(schema, "npz", native));
        Ok(this)
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        let mut entries = self.directory.entries.iter();
        entries.find(|entry| entry.name() == name).ok_or_else(|| {
            Error::malformed(format_args!("a member {name:?}"), "none")
                .at(self.directory.offset)
                .rule("sparse-members")
        })
    }

    pub(super) fn array(&self, name: &'static str) -> Result<ArrayFile> {
        let entry = self.entry(name)?;
        let extent: Extent = entry.extent(&self.source, self.budget.limits())?;
        ArrayFile::open(extent, "npz", &self.budget, entry.is_cut).field(name)
    }

    /// The bytes of a number of a row, a column or a diagonal.
    fn index_bytes(&self) -> Result<u64> {
        let name = match self.layout {
            SparseLayout::Coo => "row",
            SparseLayout::Dia => "offsets",
            _ => "indices",
        };
        Ok(self.array(name)?.header.dtype.bytes().unwrap_or(0))
    }

    fn check_len(&self, name: &'static str, expected: u64) -> Result<()> {
        let array = self.array(name)?;
        let whole = matches!(&array.header.dtype, Dtype::Scalar(scalar) if matches!(scalar.kind, DtypeKind::Int | DtypeKind::Uint));
        if !whole {
            let found = array.header.dtype.descr();
            return Err(Error::malformed("whole numbers", found)
                .at(array.extent.base)
                .field(name)
                .rule("sparse-index"));
        }
        if array.header.shape != [expected] {
            let found = format_args!("shape {:?}", array.header.shape);
            return Err(Error::malformed(format_args!("{expected} numbers"), found)
                .at(array.extent.base)
                .field(name)
                .rule("sparse-index"));
        }
        Ok(())
    }

    fn read_layout(&self) -> Result<SparseLayout> {
        let array = self.array("format")?;
        let at = array.data_offset();
        let expected = "csr, csc, coo, bsr or dia";
        let text = match (&array.header.dtype, array.header.data_bytes()) {
            (Dtype::Scalar(scalar), Some(bytes))
                if matches!(scalar.kind, DtypeKind::Bytes | DtypeKind::Text) && bytes <= 64 =>
            {
                let mut bands = array.bands(0..1)?;
                let bytes = bands.next(1)?;
                bands.end()?;
                let bytes = if scalar.big_endian { decode::swap(&bytes, 4, &self.budget)? } else { bytes };
                bytes.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect::<String>()
            }
            (other, _) => return Err(Error::malformed(expected, other.descr()).at(at).rule("sparse-format")),
        };
        match text.as_str() {
            "csr" => Ok(SparseLayout::Csr),
            "csc" => Ok(SparseLayout::Csc),
            "coo" if self.entry("row").is_ok() => Ok(SparseLayout::Coo),
            "bsr" => Ok(SparseLayout::Bsr),
            "dia" => Ok(SparseLayout::Dia),
            "coo" => Err(Error::unsupported(format!("SciPy's sparse format {text:?} of this shape"))),
            other => Err(Error::malformed(expected, format_args!("{other:?}")).at(at).rule("sparse-format")),
        }
    }

    /// A short member of integers.
    fn numbers(&self, name: &'static str, most: u64) -> Result<Vec<u64>> {
        let array = self.array(name)?;
        let count = array.header.rows();
        if array.header.shape.len() != 1 || count > most {
            return Err(Error::malformed("a short array", format_args!("shape {:?}", array.header.shape))
                .at(array.extent.base)
                .rule("sparse-shape"));
        }
        let mut numbers = Numbers::open(array, 0..count)?;
        let all = numbers.next(count)?;
        numbers.end()?;
        Ok(all)
    }

    /// The selected rows.
    pub(super) fn rows(&self, selection: &Selection) -> Result<Rows> {
        let range = selection.range(self.rows);
        let schema = Arc::clone(selection.row_schema());
        let batch_rows = selection.batch_rows_or(csr::BATCH_ROWS);
        let all = match (self.layout, self.cols > 1 << 32 || self.rows > 1 << 32) {
            (SparseLayout::Csr, _) => {
                let mut stream = CsrStream::open(self.clone(), schema.clone(), range, batch_rows)?;
                rows::from_batches(schema, std::iter::from_fn(move || stream.next().transpose()))
            }
            (_, false) => self.sorted::<u32>(schema, range, batch_rows)?,
            (_, true) => self.sorted::<u64>(schema, range, batch_rows)?,
        };
        selection.project(all)
    }

    /// All entries, sorted into rows.
    fn sorted<I: Index>(&self, schema: SchemaRef, range: Range<u64>, batch_rows: usize) -> Result<Rows> {
        let value = shape::matrix_value_type(&self.schema).unwrap_or(DataType::Null);
        macro_rules! dispatch {
            ($($pattern:pat $(if $guard:expr)? => $native:ty,)*) => {
                match &value {
                    $($pattern $(if $guard)? => self.sorted_values::<I, $native>(schema, range, batch_rows),)*
                    other => Err(Error::unsupported(format!("a sparse matrix of {}", print_type(other)))),
                }
            };
        }
        use DataType::*;
        dispatch! {
            Boolean => bool,
            Int8 => i8,
            Int16 => i16,
            Int32 => i32,
            Int64 => i64,
            UInt8 => u8,
            UInt16 => u16,
            UInt32 => u32,
            UInt64 => u64,
            Float16 => half::f16,
            Float32 => f32,
            Float64 => f64,
            FixedSizeList(_, 2) if value == complex(Float32) => [f32; 2],
            FixedSizeList(_, 2) if value == complex(Float64) => [f64; 2],
        }
    }

    fn sorted_values<I: Index, T: Value>(
        &self,
        schema: SchemaRef,
        range: Range<u64>,
        batch_rows: usize,
    ) -> Result<Rows> {
        let copied = self.budget.reserve(self.entries.saturating_mul(size_of::<T>() as u64))?;
        let values = self.values()?;
        let values: Vec<T> = T::values(&values).ok_or_else(|| {
            Error::unsupported(format!("values of type {}", print_type(values.data_type())))
        })?;
        let (mut kept, reserved) = Entries::<I, T>::with_room(self.entries, &self.budget)?;
        let mut keep = |row: u64, col: u64, value: &T| -> Result<()> {
            if range.contains(&row) {
                let small = |number: u64| {
                    I::from_u64(number)
                        .ok_or_else(|| Error::limit("the limit", u32::MAX, format!("the index {number}")))
                };
                kept.push(small(row)?, small(col)?, *value);
            }
            Ok(())
        };
        if self.layout == SparseLayout::Dia {
            self.each_diagonal(&values, &mut keep)?;
        } else if self.layout == SparseLayout::Coo {
            let mut row = self.indices("row", self.rows)?;
            let mut col = self.indices("col", self.cols)?;
            for values in values.chunks(1 << 16) {
                let count = values.len() as u64;
                for ((row, col), value) in row.next(count)?.iter().zip(col.next(count)?).zip(values) {
                    keep(*row, col, value)?;
                }
            }
            row.end()?;
            col.end()?;
        } else {
            let (height, width) = self.block;
            let by_column = self.layout == SparseLayout::Csc;
            let (runs, bound) =
                if by_column { (self.cols, self.rows) } else { (self.rows / height, self.cols / width) };
            let mut pointers = Pointers::open(self, 0, runs)?;
            let mut indices = self.indices("indices", bound)?;
            let per_block = usize::try_from(height * width).unwrap_or(usize::MAX);
            let mut blocks = values.chunks(per_block.max(1));
            let mut run = 0;
            while run < runs {
                let lengths = pointers.next((1 << 16).min(runs - run))?;
                for length in lengths {
                    for index in indices.next(length)? {
                        let block = blocks.next().unwrap_or_default();
                        for (within, value) in block.iter().enumerate() {
                            let (i, j) = (within as u64 / width.max(1), within as u64 % width.max(1));
                            let (row, col) =
                                if by_column { (index, run) } else { (run * height + i, index * width + j) };
                            keep(row, col, value)?;
                        }
                    }
                    run += 1;
                }
            }
            pointers.end()?;
            indices.end()?;
        }
        drop((values, copied));
        let csr = csr::build(&[kept], range.start, range.end - range.start, &self.budget)?;
        drop(reserved);
        Ok(rows::from_batches(Arc::clone(&schema), csr.batches(schema, batch_rows)?))
    }

    /// The non-zero cells of diagonals that are inside the matrix, as in SciPy.
    fn each_diagonal<T: Value>(
        &self,
        values: &[T],
        keep: &mut impl FnMut(u64, u64, &T) -> Result<()>,
    ) -> Result<()> {
        let array = self.array("offsets")?;
        let count = array.header.rows();
        let mut offsets = Numbers::open(array, 0..count)?;
        let width = usize::try_from(self.entries.checked_div(count).unwrap_or(0)).unwrap_or(usize::MAX);
        // Sorted by offset, so that the columns of a row are increasing.
        let mut diagonals = BTreeMap::new();
        for (index, diagonal) in (0u64..).zip(values.chunks(width.max(1))) {
            let Some(offset) = offsets.next_signed().field("offsets")? else { break };
            if diagonals.insert(offset, diagonal).is_some() {
                let found = format_args!("{offset} twice");
                return Err(Error::malformed("offsets that do not repeat", found)
                    .index(index)
                    .field("offsets")
                    .rule("sparse-index"));
            }
        }
        for (offset, diagonal) in diagonals {
            for (col, value) in (0..self.cols).zip(diagonal) {
                let row = u64::try_from(i128::from(col) - i128::from(offset));
                if let Ok(row) = row
                    && row < self.rows
                    && *value != T::default()
                {
                    keep(row, col, value)?;
                }
            }
        }
        offsets.end().field("offsets")
    }

    /// All values of `data`, flat.
    fn values(&self) -> Result<ArrayRef> {
        let array = self.array("data")?;
        let total = array.header.rows();
        let mut bands = array.bands(0..total)?;
        let bytes = bands.next(total).field("data")?;
        bands.end().field("data")?;
        let count = usize::try_from(self.entries).map_err(|_| {
            Error::limit("the address space", usize::MAX, format!("{} entries", self.entries))
        })?;
        decode::decode(&array.header.dtype, &bytes, count, &|index| array.element_offset(index), &self.budget)
            .field("data")
    }

    fn indices(&self, name: &'static str, bound: u64) -> Result<Indices> {
        let array = self.array(name)?;
        let count = array.header.rows();
        Ok(Indices { numbers: Numbers::open(array, 0..count)?, bound, name })
    }
}
