//! Documents as charts: what suits the data, read once.

use arrow_cast::cast;
use pentaglot::arrow::array::cast::AsArray;
use pentaglot::arrow::array::types::{Float64Type, UInt32Type, UInt64Type};
use pentaglot::arrow::array::{Array, ArrayRef, RecordBatch};
use pentaglot::arrow::schema::{DataType, Field, Schema, TimeUnit};
use pentaglot::formats::Summary;
use pentaglot::hub::{Form, extension, shape};
use pentaglot::job::{Description, Opened, View};
use pentaglot::{Error, Result};

use crate::bins::{Scale, join};
use crate::chart::{Axis, Chart, Kind, Part};
use crate::{PlotOptions, sheet};

/// Points that are drawn one by one; more are drawn in bins.
const MOST_POINTS: usize = 2000;
/// Places of a line with more points.
const LINE_BINS: usize = 512;
/// Cells of a grid in each direction at the most.
const GRID: usize = 256;
/// Cells of a run map at the most.
const RUN_CELLS: u64 = 8192;

pub(crate) fn chart(opened: &Opened, options: &PlotOptions) -> Result<Chart> {
    let summary = opened.document.summary();
    let kind = match options.kind {
        Some(kind) => kind,
        None => suited(summary, &options.view),
    };
    if kind != Kind::Treemap {
        summary.check_member()?;
    }
    match kind {
        Kind::Treemap => Ok(treemap(opened)),
        Kind::Histogram => histogram(opened, options),
        Kind::Bar => bar(opened, options),
        Kind::Line => points(opened, options, true),
        Kind::Scatter => points(opened, options, false),
        Kind::Spy => spy(opened, options),
        Kind::Runs => runs(opened, options),
        Kind::Sheet => sheet::chart(opened, options),
    }
}

fn name_of(opened: &Opened) -> String {
    let name = opened.content.name();
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

fn is_bits(summary: &Summary) -> bool {
    let is_vector = matches!(summary.dialect, Some("bit" | "raw" | "sparse" | "rl"));
    summary.format == "sds" && summary.members.is_empty() && is_vector
}

/// The kind of picture that suits a document.
fn suited(summary: &Summary, view: &View) -> Kind {
    let schema = &summary.schema;
    if let Some(columns) = &view.columns
        && !matches!(Form::of(schema), Form::Dense | Form::Sparse)
    {
        let fields = columns.iter().filter_map(|name| schema.field_with_name(name).ok());
        return match fields.collect::<Vec<_>>().as_slice() {
            [field] if sheet::is_picture(field) => Kind::Sheet,
            [field] if is_number(field) || time_unit(field).is_some() => Kind::Histogram,
            [x, _] if time_unit(x).is_some() => Kind::Line,
            [_, _] => Kind::Scatter,
            _ => Kind::Bar,
        };
    }
    if summary.is_container() || schema.fields().is_empty() {
        return Kind::Treemap;
    }
    if is_bits(summary) {
        return Kind::Runs;
    }
    match Form::of(schema) {
        Form::Dense | Form::Sparse | Form::Columns | Form::Coo => return Kind::Spy,
        _ => {}
    }
    let fields = schema.fields();
    let has_number = fields.iter().any(|field| is_number(field));
    match () {
        () if fields.iter().any(|field| sheet::is_picture(field)) => Kind::Sheet,
        () if has_number && fields.iter().any(|field| time_unit(field).is_some()) => Kind::Line,
        () if has_number => Kind::Histogram,
        () if fields.iter().any(|field| is_countable(field)) => Kind::Bar,
        () => Kind::Treemap,
    }
}

fn plain_type(field: &Field) -> &DataType {
    match field.data_type() {
        DataType::Dictionary(_, value) => value,
        other => other,
    }
}

fn is_number(field: &Field) -> bool {
    let data_type = plain_type(field);
    data_type.is_numeric() && extension::name(field).is_none()
}

fn is_countable(field: &Field) -> bool {
    !plain_type(field).is_nested() && extension::name(field) != Some(extension::IMAGE)
}

/// Seconds of one unit of a date or a timestamp.
fn time_unit(field: &Field) -> Option<f64> {
    let of = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e-3,
        TimeUnit::Microsecond => 1e-6,
        TimeUnit::Nanosecond => 1e-9,
    };
    Some(match plain_type(field) {
        DataType::Date32 => 86_400.0,
        DataType::Date64 => 1e-3,
        DataType::Timestamp(unit, _) => of(unit),
        _ => return None,
    })
}

fn named<'a>(schema: &'a Schema, name: &str) -> Result<&'a Field> {
    schema.field_with_name(name).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        Error::usage(format!("there is no column {name:?} (there is {})", names.join(", ")))
    })
}

/// The column that the view names, or the first that fits.
fn one_column(opened: &Opened, view: &View, what: &str, fits: impl Fn(&Field) -> bool) -> Result<Field> {
    let schema = &opened.document.summary().schema;
    match view.columns.as_deref() {
        Some([name]) => {
            let field = named(schema, name)?;
            match fits(field) {
                true => Ok(field.clone()),
                false => Err(Error::usage(format!("column {name:?} is not {what}"))),
            }
        }
        Some(names) => Err(Error::usage(format!("expected one column, found {}", names.len()))),
        None => {
            let found = schema.fields().iter().find(|field| fits(field));
            let found = found.ok_or_else(|| Error::usage(format!("there is no column that is {what}")))?;
            Ok(found.as_ref().clone())
        }
    }
}

fn of_column(options: &PlotOptions, names: &[&str]) -> View {
    let mut view = options.view.clone();
    view.columns = Some(names.iter().map(|name| (*name).to_owned()).collect());
    view
}

fn described(opened: &Opened, view: &View) -> Result<pentaglot::job::ColumnDescription> {
    // As a table, also where the document is a succinct structure.
    match opened.describe(view)? {
        Description::Table(mut table) if !table.columns.is_empty() => Ok(table.columns.remove(0)),
        _ => Err(Error::usage("there is no column to count")),
    }
}

fn histogram(opened: &Opened, options: &PlotOptions) -> Result<Chart> {
    let fits = |field: &Field| is_number(field) || time_unit(field).is_some();
    let field = one_column(opened, &options.view, "a number or a time", fits)?;
    let column = described(opened, &of_column(options, &[field.name()]))?;
    let (mut axis, mut counts) = (Axis { label: field.name().clone(), ..Axis::default() }, Vec::new());
    if let Some(histogram) = column.histogram {
        let unit = time_unit(&field);
        let scale = unit.unwrap_or(1.0);
        let end = histogram.min + histogram.width * histogram.counts.len() as f64;
        // A bar for each whole number has the number in its middle.
        let whole = if histogram.width == 1.0 && unit.is_none() { 0.5 } else { 0.0 };
        (axis.min, axis.max) = ((histogram.min - whole) * scale, (end.max(histogram.min) - whole) * scale);
        axis.is_time = unit.is_some();
        counts = histogram.counts;
    }
    let missing = column.nulls + column.nans;
    let note = if missing > 0 { format!(", {missing} missing") } else { String::new() };
    let title = format!("{}: {} ({} values{note})", name_of(opened), field.name(), column.count);
    Ok(Chart::Histogram { title, axis, counts })
}

fn bar(opened: &Opened, options: &PlotOptions) -> Result<Chart> {
    let field = one_column(opened, &options.view, "a plain value", is_countable)?;
    let column = described(opened, &of_column(options, &[field.name()]))?;
    let plain = |text: &str| match serde_json::from_str(text) {
        Ok(serde_json::Value::String(string)) => string,
        _ => text.to_owned(),
    };
    let mut bars: Vec<(String, u64)> = column.top.iter().map(|(text, count)| (plain(text), *count)).collect();
    let others = column.count.saturating_sub(bars.iter().map(|(_, count)| count).sum());
    if others > 0 {
        bars.push((format!("{} others", column.distinct.saturating_sub(10)), others));
    }
    if column.nulls > 0 {
        bars.push(("missing".to_owned(), column.nulls));
    }
    let title = format!("{}: {} ({} values)", name_of(opened), field.name(), column.count);
    Ok(Chart::Bar { title, bars })
}

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
            Ok(std::sync::Arc::new(seconds))
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

fn points(opened: &Opened, options: &PlotOptions, is_line: bool) -> Result<Chart> {
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

/// Values as parts of the greatest.
fn scaled(values: &[f64]) -> Vec<f32> {
    let most = values.iter().copied().fold(0.0, f64::max);
    values.iter().map(|value| if most > 0.0 { (value / most) as f32 } else { 0.0 }).collect()
}

fn spy(opened: &Opened, options: &PlotOptions) -> Result<Chart> {
    let summary = opened.document.summary();
    let schema = &summary.schema;
    let mut view = options.view.clone();
    match Form::of(schema) {
        Form::Dense | Form::Sparse => {}
        Form::Columns => view.forms = vec![Form::Dense],
        Form::Coo => view.forms = vec![Form::Sparse],
        _ => return Err(Error::usage("this is not a matrix")),
    }
    let rows_stream = opened.rows(&view)?;
    let schema = rows_stream.schema();
    let cols = shape::matrix_cols(&schema).unwrap_or(0);
    let declared = shape::matrix_rows(&schema).or(summary.rows);
    let width = cols.clamp(1, GRID as u64) as usize;
    let mut height = declared.unwrap_or(GRID as u64).clamp(1, GRID as u64) as usize;
    let mut scale = match declared {
        Some(_) => None,
        None => Some(Scale::whole(GRID as u64, GRID)),
    };
    let mut cells = vec![0u64; width * height];
    let column_factor = width as f64 / cols.max(1) as f64;
    let row_factor = height as f64 / declared.unwrap_or(1).max(1) as f64;
    let (mut row, mut entries) = (0u64, 0u64);
    for batch in rows_stream {
        let batch = batch.map_err(Error::from)?;
        let array = batch.column(0);
        let mut line = |row: u64, cells: &mut Vec<u64>, columns: &mut dyn FnMut(&mut dyn FnMut(u64))| {
            let to = match &mut scale {
                None => ((row as f64 * row_factor) as usize).min(height - 1),
                Some(scale) => scale.bin(row as f64, |joined| {
                    let old = std::mem::replace(cells, vec![0; width * height]);
                    for (index, row) in old.chunks(width).enumerate() {
                        let to = (index + joined.shift) / 2 * width;
                        cells[to..to + width].iter_mut().zip(row).for_each(|(own, more)| *own += more);
                    }
                }),
            };
            let own = &mut cells[to * width..(to + 1) * width];
            columns(&mut |col| {
                own[((col as f64 * column_factor) as usize).min(width - 1)] += 1;
                entries += 1;
            });
        };
        match array.data_type() {
            DataType::FixedSizeList(_, size) => {
                let values = cast(array.as_fixed_size_list().values(), &DataType::Float64)?;
                let values = values.as_primitive::<Float64Type>();
                let size = *size as usize;
                for index in 0..batch.num_rows() {
                    line(row + index as u64, &mut cells, &mut |mark| {
                        let places = values.values()[index * size..(index + 1) * size].iter().enumerate();
                        places.filter(|(_, value)| **value != 0.0).for_each(|(col, _)| mark(col as u64));
                    });
                }
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let entries = list.values().as_struct();
                let columns = entries.column(0);
                let (narrow, wide) =
                    (columns.as_primitive_opt::<UInt32Type>(), columns.as_primitive_opt::<UInt64Type>());
                for (index, ends) in list.value_offsets().windows(2).enumerate() {
                    let range = ends[0] as usize..ends[1] as usize;
                    line(row + index as u64, &mut cells, &mut |mark| {
                        if let Some(narrow) = narrow {
                            narrow.values()[range.clone()].iter().for_each(|col| mark(u64::from(*col)));
                        } else if let Some(wide) = wide {
                            wide.values()[range.clone()].iter().for_each(|col| mark(*col));
                        }
                    });
                }
            }
            _ => return Err(Error::usage("this is not a matrix")),
        }
        row += batch.num_rows() as u64;
    }
    let rows = declared.unwrap_or(row);
    if let Some(scale) = &scale {
        height = (rows as f64 / scale.width()).ceil().clamp(1.0, GRID as f64) as usize;
        cells.truncate(width * height);
    }
    let title = format!("{}: {rows} x {cols}, {entries} entries", name_of(opened));
    let x = Axis { label: "column".to_owned(), min: 0.0, max: cols as f64, is_time: false };
    let y = Axis { label: "row".to_owned(), min: 0.0, max: rows as f64, is_time: false };
    let cells = scaled(&cells.iter().map(|count| *count as f64).collect::<Vec<_>>());
    Ok(Chart::Grid { title, x, y, is_upward: false, width, cells })
}

fn runs(opened: &Opened, options: &PlotOptions) -> Result<Chart> {
    let summary = opened.document.summary();
    let fact = summary.metadata.iter().find(|(key, _)| key == "length");
    let is_listed = matches!(summary.dialect, Some("sparse" | "rl")) && is_bits(summary);
    let len = match is_listed {
        true => fact.and_then(|(_, value)| value.parse::<u64>().ok()),
        false => summary.rows,
    };
    let len = len.ok_or_else(|| Error::usage("the length of this bit vector is not known"))?;
    // Each cell is so many bits; rows of cells follow each other as lines of text do.
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
    for batch in opened.rows(&view)? {
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

fn treemap(opened: &Opened) -> Chart {
    let summary = opened.document.summary();
    let mut parts: Vec<Part> =
        summary.parts.iter().map(|part| Part { path: part.path.clone(), bytes: part.bytes }).collect();
    let bytes = summary.bytes.unwrap_or_else(|| parts.iter().map(|part| part.bytes).sum());
    let named: u64 = parts.iter().map(|part| part.bytes).sum();
    if named < bytes {
        let path = if parts.is_empty() { "file" } else { "other bytes" };
        parts.push(Part { path: path.to_owned(), bytes: bytes - named });
    }
    let title = format!("{}: {} by part", name_of(opened), crate::draw::size_text(bytes));
    Chart::Treemap { title, parts }
}
