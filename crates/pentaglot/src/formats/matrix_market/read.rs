//! Sorts coordinate entries into sparse rows; transposes array values, which are stored column by column, to
//! dense rows.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use super::cell::Cell;
use super::damaged::{self, EntriesDocument, Found};
use super::layout::{Header, MarketField, MarketLayout, Symmetry};
use super::parse::Body;
use super::schema::schema;
use super::spill::Spill;
use super::{INFO, has_banner, outline, validate};
use crate::control::Spare;
use crate::cursor::allocate;
use crate::error::{Context, Error, Result};
use crate::formats::column_major::ColumnMajor;
use crate::formats::{Document, Findings, Outline, ReadOptions, Summary};
use crate::hub::Selection;
use crate::hub::matrix::build::{self as csr, Entries, Index};
use crate::hub::matrix::gather::Gathered;
use crate::hub::{Rows, matrix, rows};
use crate::limits::Reservation;
use crate::source::{Source, Spool};

/// An open file.
pub(super) struct MarketDocument {
    body: Body,
    summary: Summary,
}

impl MarketDocument {
    pub(super) fn open(source: Source, options: &ReadOptions) -> Result<MarketDocument> {
        let source = source.seekable_if(has_banner)?;
        let mut header = Header::read(&source)?;
        if options.options.word("integers", &["int64", "uint64"])? == Some("uint64")
            && header.kind == MarketField::Integer
        {
            header.kind = MarketField::Unsigned;
        }
        let mut summary = Summary::new(INFO.id, schema(&header)?);
        summary.rows = Some(header.rows);
        summary.bytes = source.len();
        summary.part("header", 0, header.body_offset);
        summary.part(
            "entries",
            header.body_offset,
            source.len().unwrap_or(0).saturating_sub(header.body_offset),
        );
        summary.metadata = vec![
            ("format".to_owned(), header.layout.word().to_owned()),
            ("field".to_owned(), header.kind.word().to_owned()),
            ("symmetry".to_owned(), header.symmetry.word().to_owned()),
        ];
        if header.layout == MarketLayout::Coordinate {
            // The entries of a symmetric matrix that are not on the diagonal are mirrored; their number is not
            // known yet.
            summary.nonzeros = (header.symmetry == Symmetry::General).then_some(header.entries);
            summary.metadata.push(("entries".to_owned(), header.entries.to_string()));
            summary.metadata.push(("repeats".to_owned(), "summed, as SciPy does".to_owned()));
        }
        let comments =
            header.comments.iter().map(|comment| ("comment".to_owned(), comment.trim().to_owned()));
        summary.metadata.extend(comments.filter(|(_, comment)| !comment.is_empty()));
        let end = source.len().unwrap_or(0);
        let (budget, control) = (options.budget.clone(), options.control.clone());
        let body = Body { source, header, budget, control, end };
        Ok(MarketDocument { body, summary })
    }

    /// The document of what is sound in a damaged file.
    pub(super) fn of_damaged(self) -> Result<Arc<dyn Document>> {
        let MarketDocument { body, mut summary } = self;
        Ok(match damaged::look(body, &summary)? {
            Found::Entries(document) => Arc::new(*document),
            Found::Matrix(body, missing) => {
                summary.schema = schema(&body.header)?;
                summary.missing_columns.extend(missing);
                Arc::new(MarketDocument { body, summary })
            }
        })
    }
}

impl Document for EntriesDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        outline::outline(&self.body.source, &self.body.header)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        let whole = Body { end: self.end, ..self.body.clone() };
        validate::validate(&whole, findings).in_format(INFO.id)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        request.project(self.entries(request))
    }
}

impl Document for MarketDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        outline::outline(&self.body.source, &self.body.header)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(&self.body, findings).in_format(INFO.id)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        let rows = read(&self.body, request).in_format(INFO.id)?;
        let schema = rows.schema();
        Ok(rows::from_batches(schema, rows.map(|batch| batch.in_format(INFO.id))))
    }
}

/// The selected rows.
fn read(body: &Body, request: &Selection) -> Result<Rows> {
    let range = request.range(body.header.rows);
    let schema = Arc::clone(request.row_schema());
    let all = match body.header.kind {
        MarketField::Real => typed::<f64>(body, schema, range, request),
        MarketField::Integer => typed::<i64>(body, schema, range, request),
        MarketField::Unsigned => typed::<u64>(body, schema, range, request),
        MarketField::Complex => typed::<[f64; 2]>(body, schema, range, request),
        MarketField::Pattern => typed::<i8>(body, schema, range, request),
    }?;
    request.project(all)
}

fn typed<T: Cell>(body: &Body, schema: SchemaRef, range: Range<u64>, request: &Selection) -> Result<Rows> {
    let small = body.header.rows <= 1 << 32 && body.header.cols <= 1 << 32;
    match (body.header.layout, small) {
        (MarketLayout::Coordinate, true) => sparse::<u32, T>(body, schema, range, request),
        // Only schemas of more than 2^32 columns have 64-bit column numbers.
        (MarketLayout::Coordinate, false) if body.header.cols > 1 << 32 => {
            sparse::<u64, T>(body, schema, range, request)
        }
        (MarketLayout::Coordinate, false) => {
            Err(Error::limit("the limit", 1u64 << 32, format!("{} rows", body.header.rows)))
        }
        (MarketLayout::Array, _) => dense::<T>(body, schema, range, request),
    }
}

fn sparse<I: Index, T: Cell>(
    body: &Body,
    schema: SchemaRef,
    range: Range<u64>,
    request: &Selection,
) -> Result<Rows> {
    let batch_rows = request.batch_rows_or(csr::BATCH_ROWS);
    body.budget.limits().check_free_rows((range.end - range.start).saturating_sub(body.header.entries))?;
    let mirrored = if body.header.symmetry == Symmetry::General { 1 } else { 2 };
    // While a band is sorted its entries are in memory twice, the second time without their rows. A quarter of the
    // budget is for the pieces being parsed and for the batches.
    let entry_bytes = (3 * size_of::<I>() + 2 * size_of::<T>()) as u64 * mirrored;
    let held = body.budget.left() / 4 * 3;
    let (spill, bands) = if body.header.entries.saturating_mul(entry_bytes) <= held || range.is_empty() {
        (None, vec![range])
    } else {
        let (spill, bands) = Spill::<I, T>::fill(body, range, (entry_bytes, held))?;
        (Some(spill), bands)
    };
    let (body, inner, mut bands) = (body.clone(), Arc::clone(&schema), bands.into_iter());
    let read = move |band: Range<u64>| match &spill {
        Some(spill) => spill.read(&body, &band),
        None => read_all::<I, T>(&body, band),
    };
    let mut current: Option<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> = None;
    let batches = std::iter::from_fn(move || {
        loop {
            if let Some(batch) = current.as_mut().and_then(Iterator::next) {
                return Some(batch);
            }
            let band = bands.next()?;
            match read(band).and_then(|csr| csr.batches(Arc::clone(&inner), batch_rows)) {
                Ok(batches) => current = Some(Box::new(batches)),
                Err(error) => return Some(Err(error)),
            }
        }
    });
    Ok(rows::from_batches(schema, batches))
}

/// The rows of a file whose entries fit in memory.
fn read_all<I: Index, T: Cell>(body: &Body, band: Range<u64>) -> Result<csr::Csr<I, T>> {
    // Of some rows it is not known how many entries they have.
    let is_whole = band == (0..body.header.rows) && body.header.symmetry == Symmetry::General;
    let room = if is_whole { body.most_entries() } else { 0 };
    let mut gathered = Gathered::new(band.start, band.end - band.start, room, &body.budget)?;
    let (texts, parts) = (Spare::default(), Spare::<Option<(Entries<I, T>, Reservation)>>::default());
    let mut count = 0;
    for group in body.pieces().chunks(body.group()) {
        let parse = |piece: &Range<u64>| {
            let mut text = texts.take();
            let (lines, offset) = body.lines(piece, &mut text)?;
            let (mut part, mut held) =
                parts.take().unwrap_or_else(|| (Entries::default(), body.budget.reservation()));
            let lines = body.entries(lines, offset, &band, &mut part, None)?;
            texts.keep(text);
            held.grow_to(part.bytes())?;
            let order = part.order();
            Ok((part, held, order, lines))
        };
        let take = |(mut part, mut held, order, lines): (Entries<I, T>, Reservation, _, _)| {
            // What is not taken from the part is used again.
            held.clear();
            gathered.add(&mut part, order)?;
            held.grow_to(part.bytes())?;
            part.clear();
            parts.keep(Some((part, held)));
            count += lines;
            Ok(())
        };
        body.control.each_in_order(group.iter().collect(), parse, take)?;
    }
    body.check_count(count)?;
    gathered.finish()
}

fn dense<T: Cell>(body: &Body, schema: SchemaRef, range: Range<u64>, request: &Selection) -> Result<Rows> {
    let header = &body.header;
    if header.cols == 0 {
        body.budget.limits().check_free_rows(range.end - range.start)?;
    }
    if header.rows == 0 {
        // No row asks for the values, of which there must be none.
        Store::fill::<T>(body)?;
    }
    let (body, inner) = (body.clone(), Arc::clone(&schema));
    let batch_rows = request.batch_rows();
    let mut store: Option<Store> = None;
    let mut next = range.start;
    let batches = std::iter::from_fn(move || {
        if next >= range.end {
            return None;
        }
        let mut batch = || -> Result<RecordBatch> {
            let store = match &mut store {
                Some(store) => store,
                None => store.insert(Store::fill::<T>(&body)?),
            };
            let own = store.matrix.band_rows(&body.budget);
            let count =
                if batch_rows == 0 { own.min(1 << 20) } else { batch_rows as u64 }.min(range.end - next);
            let bytes = store.rows::<T>(&body, next..next + count)?;
            next += count;
            let count = usize::try_from(count).unwrap_or(0);
            let cols = usize::try_from(body.header.cols).unwrap_or(0);
            let values: ArrayRef = T::array(cells(&bytes, count * cols));
            let list = matrix::dense_rows(&inner, values, count)?;
            rows::batch(Arc::clone(&inner), vec![list], count)
        };
        Some(batch())
    });
    Ok(rows::from_batches(schema, batches))
}

/// Values from their bytes.
fn cells<T: Cell>(bytes: &[u8], count: usize) -> Vec<T> {
    let size = size_of::<T>();
    (0..count).map(|index| T::get(bytes.get(index * size..).unwrap_or_default())).collect()
}

/// The stored values of an array, column by column, in memory or in a temporary file.
struct Store {
    matrix: ColumnMajor,
    symmetry: Symmetry,
}

impl Store {
    fn fill<T: Cell>(body: &Body) -> Result<Store> {
        let mut spool = Spool::new(&body.budget);
        let mut count = 0;
        for group in body.pieces().chunks(body.group()) {
            for (values, lines) in body.each(group, |text, offset| body.values::<T>(text, offset, None))? {
                count += lines;
                let mut bytes = Vec::new();
                values.into_iter().for_each(|value| value.put(&mut bytes));
                spool.write_all(&bytes)?;
            }
        }
        body.check_count(count)?;
        let source = spool.into_source("spool")?;
        let (rows, cols) = (body.header.rows, body.header.cols);
        let item_bytes = size_of::<T>() as u64;
        let matrix = ColumnMajor { source, offset: 0, rows, cols, item_bytes, order: None };
        Ok(Store { matrix, symmetry: body.header.symmetry })
    }

    /// The bytes of some rows.
    fn rows<T: Cell>(&self, body: &Body, range: Range<u64>) -> Result<Vec<u8>> {
        if self.symmetry == Symmetry::General {
            return Ok(self.matrix.read(range, &body.budget)?.to_vec());
        }
        let n = self.matrix.rows;
        let count = range.end - range.start;
        let mut values: Vec<T> = allocate(count.saturating_mul(n), &body.budget)?;
        values.resize(usize::try_from(count * n).unwrap_or(0), T::default());
        let mut set = |row: u64, col: u64, value: T| {
            let slot = usize::try_from((row - range.start) * n + col).ok();
            slot.and_then(|slot| values.get_mut(slot)).into_iter().for_each(|slot| *slot = value);
        };
        // Below the diagonal and on it: the part of each column that lies in the band.
        for col in 0..range.end {
            let first = range.start.max(self.first_row(col));
            for (row, value) in (first..).zip(self.part::<T>(col, first..range.end, body)?) {
                set(row, col, value);
            }
        }
        // Above it: the rest of the columns that have the numbers of the rows.
        for row in range.clone() {
            for (col, value) in (row + 1..).zip(self.part::<T>(row, row + 1..n, body)?) {
                let twin = value.mirror(self.symmetry);
                let place = (row + 1, col + 1);
                set(
                    row,
                    col,
                    twin.ok_or_else(|| {
                        Error::malformed(
                            "a value whose negative fits its type",
                            format_args!("another at {place:?}"),
                        )
                        .rule("value")
                    })?,
                );
            }
        }
        let mut bytes: Vec<u8> = allocate((values.len() * size_of::<T>()) as u64, &body.budget)?;
        values.into_iter().for_each(|value| value.put(&mut bytes));
        Ok(bytes)
    }

    /// The first stored row of a column.
    fn first_row(&self, col: u64) -> u64 {
        if self.symmetry == Symmetry::Skew { col + 1 } else { col }
    }

    /// The values of a column in some of its stored rows.
    fn part<T: Cell>(&self, col: u64, rows: Range<u64>, body: &Body) -> Result<Vec<T>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        // Each column has one value less than the one before; their total fits, since the values were
        // counted.
        let n =
            u128::from(if self.symmetry == Symmetry::Skew { self.matrix.rows - 1 } else { self.matrix.rows });
        let col128 = u128::from(col);
        let before = col128 * n - col128 * col128.saturating_sub(1) / 2;
        let index =
            u64::try_from(before).unwrap_or(u64::MAX).saturating_add(rows.start - self.first_row(col));
        let count = rows.end - rows.start;
        let bytes = self.matrix.source.read_range(
            index.saturating_mul(self.matrix.item_bytes),
            count.saturating_mul(self.matrix.item_bytes),
            &body.budget,
        )?;
        Ok(cells(&bytes, usize::try_from(count).unwrap_or(0)))
    }
}
