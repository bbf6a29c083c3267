//! Grids of a matrix and of a bit vector.

use arrow_cast::cast;
use pentaglot::arrow::array::RecordBatch;
use pentaglot::arrow::array::cast::AsArray;
use pentaglot::arrow::array::types::{Float64Type, UInt32Type, UInt64Type};
use pentaglot::arrow::schema::DataType;
use pentaglot::hub::{Form, shape};
use pentaglot::job::{Opened, View};
use pentaglot::{Error, Result};

use crate::PlotOptions;
use crate::bins::Scale;
use crate::chart::{Axis, Chart};
use crate::gather::{is_bits, name_of};

/// Maximum number of cells of a grid in each direction.
const GRID: usize = 256;
/// Maximum number of cells of a run map.
const RUN_CELLS: u64 = 8192;

/// Values as fractions of the greatest.
pub(crate) fn scaled(values: &[f64]) -> Vec<f32> {
    let most = values.iter().copied().fold(0.0, f64::max);
    values.iter().map(|value| if most > 0.0 { (value / most) as f32 } else { 0.0 }).collect()
}

/// Counts of entries in cells of equal size.
struct Cells {
    width: usize,
    height: usize,
    counts: Vec<u64>,
    entries: u64,
    /// Cells for each column of the matrix.
    across: f64,
    rows: RowCells,
}

/// The cell of a row.
enum RowCells {
    /// This many cells for each row.
    Known(f64),
    /// The number of rows is not known: cells are merged as rows are read.
    Growing(Scale),
}

impl Cells {
    fn new(rows: Option<u64>, cols: u64) -> Self {
        let width = cols.clamp(1, GRID as u64) as usize;
        let height = rows.unwrap_or(GRID as u64).clamp(1, GRID as u64) as usize;
        let rows = match rows {
            Some(rows) => RowCells::Known(height as f64 / rows.max(1) as f64),
            None => RowCells::Growing(Scale::whole(GRID as u64, GRID)),
        };
        let across = width as f64 / cols.max(1) as f64;
        Cells { width, height, counts: vec![0; width * height], entries: 0, across, rows }
    }

    /// Counts the entries of one row.
    fn row(&mut self, row: u64, columns: impl Iterator<Item = u64>) {
        let (width, counts) = (self.width, &mut self.counts);
        let line = match &mut self.rows {
            RowCells::Known(each) => ((row as f64 * *each) as usize).min(self.height - 1),
            RowCells::Growing(scale) => scale.bin(row as f64, |joined| {
                let old = counts.clone();
                counts.fill(0);
                for (index, line) in old.chunks(width).enumerate() {
                    let to = (index + joined.shift) / 2 * width;
                    counts[to..to + width].iter_mut().zip(line).for_each(|(own, more)| *own += more);
                }
            }),
        };
        let own = &mut self.counts[line * width..(line + 1) * width];
        for column in columns {
            own[((column as f64 * self.across) as usize).min(width - 1)] += 1;
            self.entries += 1;
        }
    }

    fn push(&mut self, first: u64, batch: &RecordBatch) -> Result<()> {
        let array = batch.column(0);
        match array.data_type() {
            DataType::FixedSizeList(_, size) => {
                let values = cast(array.as_fixed_size_list().values(), &DataType::Float64)?;
                let values = values.as_primitive::<Float64Type>().values();
                let size = *size as usize;
                for index in 0..batch.num_rows() {
                    let places = values[index * size..(index + 1) * size].iter().enumerate();
                    let stored = places.filter(|(_, value)| **value != 0.0);
                    self.row(first + index as u64, stored.map(|(column, _)| column as u64));
                }
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let columns = list.values().as_struct().column(0);
                let narrow = columns.as_primitive_opt::<UInt32Type>();
                let wide = columns.as_primitive_opt::<UInt64Type>();
                for (index, ends) in list.value_offsets().windows(2).enumerate() {
                    let range = ends[0] as usize..ends[1] as usize;
                    let row = first + index as u64;
                    match (narrow, wide) {
                        (Some(narrow), _) => {
                            self.row(row, narrow.values()[range].iter().map(|col| u64::from(*col)))
                        }
                        (_, Some(wide)) => self.row(row, wide.values()[range].iter().copied()),
                        _ => return Err(not_a_matrix()),
                    }
                }
            }
            _ => return Err(not_a_matrix()),
        }
        Ok(())
    }
}

fn not_a_matrix() -> Error {
    Error::usage("expected a matrix for a picture of entries, found none")
}

pub(crate) fn spy(opened: &Opened, options: &PlotOptions) -> Result<Chart> {
    let summary = opened.document.summary();
    let mut view = options.view.clone();
    match Form::of(&summary.schema) {
        Form::Dense | Form::Sparse => {}
        Form::Columns => view.forms = vec![Form::Dense],
        Form::Coo => view.forms = vec![Form::Sparse],
        _ => return Err(not_a_matrix()),
    }
    let stream = opened.overlapped(opened.rows(&view)?)?;
    let schema = stream.schema();
    let cols = shape::matrix_cols(&schema).unwrap_or(0);
    let declared = shape::matrix_rows(&schema).or(summary.rows.filter(|_| view.rows.is_none()));
    let mut cells = Cells::new(declared, cols);
    let mut row = 0u64;
    for batch in stream {
        let batch = batch.map_err(Error::from)?;
        cells.push(row, &batch)?;
        row += batch.num_rows() as u64;
    }
    let rows = declared.unwrap_or(row);
    if let RowCells::Growing(scale) = &cells.rows {
        let height = (rows as f64 / scale.width()).ceil().clamp(1.0, GRID as f64) as usize;
        cells.counts.truncate(cells.width * height);
    }
    let title = format!("{}: {rows} x {cols}, {} entries", name_of(opened), cells.entries);
    let x = Axis { label: "column".to_owned(), min: 0.0, max: cols as f64, is_time: false };
    let y = Axis { label: "row".to_owned(), min: 0.0, max: rows as f64, is_time: false };
    let counts: Vec<f64> = cells.counts.iter().map(|count| *count as f64).collect();
    Ok(Chart::Grid { title, x, y, is_upward: false, width: cells.width, cells: scaled(&counts) })
}

pub(crate) fn runs(opened: &Opened, options: &PlotOptions) -> Result<Chart> {
    let summary = opened.document.summary();
    let fact = summary.metadata.iter().find(|(key, _)| key == "length");
    let is_listed = matches!(summary.dialect, Some("sparse" | "rl")) && is_bits(summary);
    let len = match is_listed {
        true => fact.and_then(|(_, value)| value.parse::<u64>().ok()),
        false => summary.rows,
    };
    let len = len.ok_or_else(|| Error::usage("the length of this bit vector is not known"))?;
    // Each cell is `each` bits; rows of cells follow each other like lines of text.
    let each = len.div_ceil(RUN_CELLS).max(1);
    let count = len.div_ceil(each).max(1);
    let width = ((count as f64 * 1.6).sqrt().ceil() as u64).clamp(1, count);
    let height = count.div_ceil(width);
    let mut cells = vec![0u64; (width * height) as usize];
    let mut ones = 0u64;
    let mut mark = |start: u64, length: u64| {
        let (mut at, end) = (start.min(len), start.saturating_add(length).min(len));
        ones += end - at;
        while at < end {
            let cell = at / each;
            let stop = end.min((cell + 1) * each);
            cells[cell as usize] += stop - at;
            at = stop;
        }
    };
    let mut view = View::default();
    if !is_listed {
        view.columns.clone_from(&options.view.columns);
    }
    let mut row = 0u64;
    for batch in opened.overlapped(opened.rows(&view)?)? {
        let batch = batch.map_err(Error::from)?;
        let first = batch.columns().first().ok_or_else(|| Error::usage("there is no column"))?;
        match first.data_type() {
            DataType::Boolean => {
                let bits = first.as_boolean().values();
                bits.set_slices().for_each(|(start, end)| mark(row + start as u64, (end - start) as u64));
            }
            DataType::UInt64 if is_listed && batch.num_columns() == 2 => {
                let lengths = batch.column(1).as_primitive::<UInt64Type>().values();
                let starts = first.as_primitive::<UInt64Type>().values();
                starts.iter().zip(lengths).for_each(|(start, length)| mark(*start, *length));
            }
            DataType::UInt64 if is_listed => {
                first.as_primitive::<UInt64Type>().values().iter().for_each(|position| mark(*position, 1));
            }
            _ => return Err(Error::usage("this is not a bit vector")),
        }
        row += batch.num_rows() as u64;
    }
    let title = format!("{}: {len} bits, {ones} ones", name_of(opened));
    let line = (width * each) as f64;
    let x = Axis { label: "bit in a line".to_owned(), min: 0.0, max: line, is_time: false };
    let y =
        Axis { label: "first bit of a line".to_owned(), min: 0.0, max: line * height as f64, is_time: false };
    let cells = cells.iter().map(|ones| *ones as f32 / each as f32).collect();
    Ok(Chart::Grid { title, x, y, is_upward: false, width: width as usize, cells })
}
