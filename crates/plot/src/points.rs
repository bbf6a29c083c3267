//! Lines and scatter plots: points, in bins once there are many.

use std::sync::Arc;

use arrow_cast::cast;
use pentaglot::arrow::array::cast::AsArray;
use pentaglot::arrow::array::types::Float64Type;
use pentaglot::arrow::array::{Array, ArrayRef, RecordBatch};
use pentaglot::arrow::schema::{DataType, Field};
use pentaglot::job::Opened;
use pentaglot::{Error, Result};

use crate::PlotOptions;
use crate::bins::{Scale, join};
use crate::chart::{Axis, Chart};
use crate::gather::{is_number, name_of, named, of_column, plain_type, time_unit};
use crate::spy::scaled;

/// Points that are drawn one by one; more are drawn in bins.
const MOST_POINTS: usize = 2000;
/// Places of a line with more points.
const LINE_BINS: usize = 512;
/// Cells of a grid in each direction.
const GRID: usize = 256;

/// Numbers of an array; times in seconds. Missing values are nulls.
fn numbers(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let wrong = |error| Error::from(error);
    match time_unit(field) {
        None => cast(array, &DataType::Float64).map_err(wrong),
        Some(unit) => {
            let plain = cast(array, plain_type(field)).map_err(wrong)?;
            let whole = match plain.data_type() {
                DataType::Date32 => cast(&plain, &DataType::Int32),
                _ => cast(&plain, &DataType::Int64),
            };
            let seconds = cast(&whole.map_err(wrong)?, &DataType::Float64).map_err(wrong)?;
            let seconds = seconds.as_primitive::<Float64Type>().unary::<_, Float64Type>(|value| value * unit);
            Ok(Arc::new(seconds))
        }
    }
}

/// The points of a line or a scatter plot, in bins once there are many.
struct Points {
    exact: Vec<[f64; 2]>,
    x_scale: Scale,
    y_scale: Scale,
    /// Sum, count, least, greatest per place of a line.
    places: Vec<Option<[f64; 4]>>,
    /// Counts of a grid, row by row.
    cells: Vec<u64>,
    is_line: bool,
    is_binned: bool,
    range: [f64; 4],
}

impl Points {
    fn new(is_line: bool) -> Self {
        Points {
            exact: Vec::new(),
            x_scale: Scale::new(if is_line { LINE_BINS } else { GRID }),
            y_scale: Scale::new(GRID),
            places: vec![None; LINE_BINS],
            cells: if is_line { Vec::new() } else { vec![0; GRID * GRID] },
            is_line,
            is_binned: false,
            range: [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY, f64::NEG_INFINITY],
        }
    }

    fn push(&mut self, x: f64, y: f64) {
        if !x.is_finite() || !y.is_finite() {
            return;
        }
        let [left, right, low, high] = self.range;
        self.range = [left.min(x), right.max(x), low.min(y), high.max(y)];
        if !self.is_binned {
            self.exact.push([x, y]);
            if self.exact.len() > MOST_POINTS {
                self.is_binned = true;
                for [x, y] in std::mem::take(&mut self.exact) {
                    self.bin(x, y);
                }
            }
            return;
        }
        self.bin(x, y);
    }

    fn bin(&mut self, x: f64, y: f64) {
        if self.is_line {
            let places = &mut self.places;
            let place = self.x_scale.bin(x, |joined| {
                join(places, joined, |own, more| *own = merged(*own, more));
            });
            self.places[place] = merged(self.places[place], Some([y, 1.0, y, y]));
            return;
        }
        let cells = &mut self.cells;
        let column = self.x_scale.bin(x, |joined| {
            cells.chunks_mut(GRID).for_each(|row| join(row, joined, |own, more| *own += more));
        });
        let row = self.y_scale.bin(y, |joined| {
            let old = std::mem::replace(cells, vec![0; GRID * GRID]);
            for (index, row) in old.chunks(GRID).enumerate() {
                let to = (index + joined.shift) / 2 * GRID;
                if let Some(own) = cells.get_mut(to..to + GRID) {
                    own.iter_mut().zip(row).for_each(|(own, more)| *own += more);
                }
            }
        });
        self.cells[row * GRID + column] += 1;
    }
}

fn merged(own: Option<[f64; 4]>, more: Option<[f64; 4]>) -> Option<[f64; 4]> {
    match (own, more) {
        (Some([sum, count, low, high]), Some([sum2, count2, low2, high2])) => {
            Some([sum + sum2, count + count2, low.min(low2), high.max(high2)])
        }
        (own, more) => own.or(more),
    }
}

pub(crate) fn points(opened: &Opened, options: &PlotOptions, is_line: bool) -> Result<Chart> {
    let schema = &opened.document.summary().schema;
    let number_or_time = |field: &Field| is_number(field) || time_unit(field).is_some();
    let (x, y) = match options.view.columns.as_deref() {
        Some([x, y]) => (Some(named(schema, x)?.clone()), named(schema, y)?.clone()),
        Some([y]) if is_line => (None, named(schema, y)?.clone()),
        Some(names) => return Err(Error::usage(format!("expected two columns, found {}", names.len()))),
        None => {
            let mut numbers = schema.fields().iter().filter(|field| is_number(field));
            let time = schema.fields().iter().find(|field| time_unit(field).is_some());
            let first = numbers.next().ok_or_else(|| Error::usage("there is no column that is a number"))?;
            match (is_line, time, numbers.next()) {
                (true, time, _) => (time.map(|field| field.as_ref().clone()), first.as_ref().clone()),
                (false, _, Some(second)) => (Some(first.as_ref().clone()), second.as_ref().clone()),
                (false, _, None) => return Err(Error::usage("there are no two columns that are numbers")),
            }
        }
    };
    for field in x.iter().chain([&y]) {
        if !number_or_time(field) {
            return Err(Error::usage(format!("column {:?} is neither a number nor a time", field.name())));
        }
    }
    let names: Vec<&str> = x.iter().chain([&y]).map(|field| field.name().as_str()).collect();
    let mut all = Points::new(is_line);
    let mut row = 0u64;
    for batch in opened.rows(&of_column(options, &names))? {
        let batch = batch.map_err(Error::from)?;
        push_points(&mut all, &batch, x.as_ref(), &y, row)?;
        row += batch.num_rows() as u64;
    }
    let [left, right, low, high] = all.range;
    let axis = |field: Option<&Field>, min: f64, max: f64| {
        let label = field.map_or("row".to_owned(), |field| field.name().clone());
        let is_time = field.is_some_and(|field| time_unit(field).is_some());
        let (min, max) = if min <= max { (min, max) } else { (0.0, 1.0) };
        Axis { label, min, max, is_time }
    };
    let (x_axis, mut y_axis) = (axis(x.as_ref(), left, right), axis(Some(&y), low, high));
    let title = format!("{}: {} over {}", name_of(opened), y_axis.label, x_axis.label);
    let room = (y_axis.max - y_axis.min) * 0.04;
    if !all.is_binned || is_line {
        y_axis.min -= room;
        y_axis.max += room;
    }
    if is_line {
        let points = match all.is_binned {
            false => {
                all.exact.sort_by(|a, b| a[0].total_cmp(&b[0]));
                all.exact.iter().map(|[x, y]| [*x, *y, *y, *y]).collect()
            }
            true => {
                let (scale, half) = (&all.x_scale, all.x_scale.width() / 2.0);
                let place = |(index, place): (usize, &Option<[f64; 4]>)| {
                    let [sum, count, low, high] = (*place)?;
                    Some([scale.start(index) + half, sum / count, low, high])
                };
                all.places.iter().enumerate().filter_map(place).collect()
            }
        };
        return Ok(Chart::Line { title, x: x_axis, y: y_axis, points });
    }
    if !all.is_binned {
        return Ok(Chart::Scatter { title, x: x_axis, y: y_axis, points: all.exact });
    }
    Ok(dense_scatter(&all, title, x_axis, y_axis))
}

fn push_points(
    all: &mut Points,
    batch: &RecordBatch,
    x: Option<&Field>,
    y: &Field,
    first: u64,
) -> Result<()> {
    let ys = numbers(batch.column(batch.num_columns() - 1), y)?;
    let ys = ys.as_primitive::<Float64Type>();
    let xs = x.map(|field| numbers(batch.column(0), field)).transpose()?;
    let xs = xs.as_ref().map(|xs| xs.as_primitive::<Float64Type>());
    for row in 0..batch.num_rows() {
        let x = match xs {
            Some(xs) if xs.is_null(row) => continue,
            Some(xs) => xs.value(row),
            None => (first + row as u64) as f64,
        };
        if ys.is_valid(row) {
            all.push(x, ys.value(row));
        }
    }
    Ok(())
}

/// The cells between the least and the greatest values.
fn dense_scatter(all: &Points, title: String, mut x: Axis, mut y: Axis) -> Chart {
    let used = |scale: &Scale, low: f64, high: f64| {
        let at = |value: f64| (((value - scale.start(0)) / scale.width()) as usize).min(GRID - 1);
        (at(low), at(high))
    };
    let (left, right) = used(&all.x_scale, x.min, x.max);
    let (low, high) = used(&all.y_scale, y.min, y.max);
    (x.min, x.max) = (all.x_scale.start(left), all.x_scale.start(right + 1));
    (y.min, y.max) = (all.y_scale.start(low), all.y_scale.start(high + 1));
    let rows = (low..=high).flat_map(|row| &all.cells[row * GRID + left..=row * GRID + right]);
    let cells = scaled(&rows.map(|count| *count as f64).collect::<Vec<_>>());
    Chart::Grid { title, x, y, is_upward: true, width: right - left + 1, cells }
}
