//! Rows by range, sorted and filtered, as Arrow IPC with the text of each cell.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use arrow_ipc::writer::StreamWriter;
use arrow_ord::ord::make_comparator;
use arrow_ord::sort::{SortOptions, sort_to_indices};
use pentaglot::arrow::array::builder::StringBuilder;
use pentaglot::arrow::array::cast::AsArray;
use pentaglot::arrow::array::types::UInt32Type;
use pentaglot::arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use pentaglot::arrow::schema::{DataType, Field, Schema};
use pentaglot::hub::filter::Filter;
use pentaglot::hub::json::Columns;
use pentaglot::hub::{Form, rows};
use pentaglot::job::{self, Opened, View};
use pentaglot::{Error, Reservation, Result};
use serde_json::{Value, json};

use crate::State;
use crate::files::File;

/// Maximum number of rows in one response.
const MOST_ROWS: u64 = 1000;
/// Maximum number of columns in one response.
const MOST_COLUMNS: usize = 200;
/// Characters of a cell; more are fetched when it is opened.
const CELL: usize = 400;
/// Gaps of up to this many rows between selected rows are read rather than skipped.
const NEAR: u64 = 64;
/// The name of the column of row numbers, which no file uses.
const ROW: &str = "\u{0}row";

/// A choice and order of rows.
pub(crate) struct RowView {
    number: u64,
    pub(crate) filter: Option<String>,
    pub(crate) sort: Option<(String, bool)>,
    rows: Vec<u32>,
    /// The reservation for the rows.
    _held: Reservation,
}

fn is_list_form(opened: &Opened) -> bool {
    matches!(Form::of(&opened.document.summary().schema), Form::Dense | Form::Sparse)
}

/// Creates a view of the filtered and sorted rows. Returns its id and its number of rows.
pub(crate) fn view(state: &State, file: &File, request: &Value) -> Result<Value> {
    let opened = file.opened(state)?;
    let filter = request["filter"].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let sort = request["sort"].as_str().map(|name| (name.to_owned(), request["descending"] == true));
    let mut views = file.views.lock().unwrap_or_else(PoisonError::into_inner);
    let known = views.iter().find(|view| view.filter == filter && view.sort == sort).cloned();
    let found = match known {
        Some(view) => view,
        None => {
            // The previous view is kept with the new one; earlier ones are freed.
            let last = views.last().map_or(0, |view| view.number);
            let earlier = views.len().saturating_sub(1);
            views.drain(..earlier);
            let view = Arc::new(RowView::new(opened, state, last + 1, filter, sort)?);
            views.push(Arc::clone(&view));
            view
        }
    };
    Ok(json!({ "view": found.number, "rows": found.rows.len() }))
}

impl RowView {
    fn new(
        opened: &Opened,
        state: &State,
        number: u64,
        filter: Option<String>,
        sort: Option<(String, bool)>,
    ) -> Result<Self> {
        if is_list_form(opened) {
            return Err(Error::usage("the rows of a matrix are not sorted or filtered here"));
        }
        let schema = &opened.document.summary().schema;
        if let Some(filter) = &filter {
            Filter::parse(filter, schema)?;
        }
        // Columns whose names the filter does not contain are not read.
        let is_named = |field: &Field| {
            filter.as_ref().is_some_and(|filter| filter.contains(field.name().replace('"', "\"\"").as_str()))
                || sort.as_ref().is_some_and(|(name, _)| name == field.name())
        };
        let names: Vec<String> = schema
            .fields()
            .iter()
            .filter(|field| is_named(field))
            .map(|field| field.name().clone())
            .collect();
        let mut wanted = View::default();
        wanted.columns = Some(names);
        let numbered = numbered(opened.rows(&wanted)?)?;
        let numbered = match &filter {
            Some(filter) => Filter::parse(filter, &numbered.schema())?.apply(numbered),
            None => numbered,
        };
        let place = |(name, _): &(String, bool)| {
            let missing = |_| Error::usage(format!("there is no column {name:?} to sort by"));
            numbered.schema().index_of(name).map_err(missing)
        };
        let sorted = sort.as_ref().map(place).transpose()?;
        let mut held = state.options.open.budget.reservation();
        let (mut found, mut keys): (Vec<u32>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for batch in numbered {
            let batch = batch.map_err(Error::from)?;
            let numbers = batch.column(batch.num_columns() - 1).as_primitive::<UInt32Type>();
            held.grow(numbers.len() as u64 * 4)?;
            found.extend_from_slice(numbers.values());
            if let Some(column) = sorted {
                let key = batch.column(column);
                // The keys take twice their size while they are concatenated.
                held.grow(key.get_buffer_memory_size() as u64)?;
                keys.push(Arc::clone(key));
            }
        }
        if let Some((name, descending)) = &sort
            && !keys.is_empty()
        {
            held.grow(found.len() as u64 * 12)?;
            let all: Vec<&dyn Array> = keys.iter().map(|key| key.as_ref()).collect();
            let all = arrow_select::concat::concat(&all)?;
            let options = SortOptions { descending: *descending, nulls_first: false };
            let order = sorted_rows(&all, options)
                .map_err(|_| Error::usage(format!("the values of {name:?} have no order")))?;
            found = order.iter().map(|index| found[*index as usize]).collect();
        }
        held.shrink_to(found.len() as u64 * 4);
        Ok(RowView { number, filter, sort, rows: found, _held: held })
    }
}

/// The order of values; equal ones are in the order of their rows.
fn sorted_rows(values: &ArrayRef, options: SortOptions) -> Result<Vec<u32>> {
    let mut order = sort_to_indices(values, Some(options), None)?.values().to_vec();
    let compare = make_comparator(values, values, options)?;
    let is_same = |a: &u32, b: &u32| compare(*a as usize, *b as usize).is_eq();
    order.chunk_by_mut(is_same).for_each(|equal| equal.sort_unstable());
    Ok(order)
}

/// The rows with a column of their numbers.
fn numbered(stream: pentaglot::hub::Rows) -> Result<pentaglot::hub::Rows> {
    let mut fields: Vec<Arc<Field>> = stream.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(ROW, DataType::UInt32, false)));
    let schema = Arc::new(Schema::new(fields));
    let inner = Arc::clone(&schema);
    let mut next = 0u64;
    let batches = stream.map(move |batch| {
        let batch = batch.map_err(Error::from)?;
        let end = next + batch.num_rows() as u64;
        if end > u64::from(u32::MAX) {
            return Err(Error::limit("rows that are sorted or filtered", u32::MAX, "more are"));
        }
        let numbers: UInt32Array = (next as u32..end as u32).collect();
        next = end;
        let mut columns = batch.columns().to_vec();
        columns.push(Arc::new(numbers));
        rows::batch(Arc::clone(&inner), columns, batch.num_rows())
    });
    Ok(rows::from_batches(schema, batches))
}

/// The cells of a range of rows and columns as an Arrow IPC stream: the number of each row, then text for each column.
pub(crate) fn cells(
    state: &State,
    file: &File,
    query: &std::collections::HashMap<String, String>,
) -> Result<Vec<u8>> {
    let opened = file.opened(state)?;
    let number = |key: &str| query.get(key).and_then(|text| text.parse::<u64>().ok());
    let from = number("from").unwrap_or(0);
    let to = number("to").unwrap_or(from).min(from.saturating_add(MOST_ROWS));
    let columns = number("first").unwrap_or(0)..number("last").unwrap_or(0);
    let view = number("view").and_then(|index| {
        let views = file.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.iter().find(|view| view.number == index).cloned()
    });
    let view = match (query.contains_key("view"), view) {
        (true, None) => return Err(Error::usage("there is no such view")),
        (_, view) => view,
    };
    let selected = selected(opened, columns)?;
    let (numbers, batch) = match &view {
        None => range(opened, &selected, from..to)?,
        Some(view) => {
            let last = view.rows.len() as u64;
            let wanted = &view.rows[from.min(last) as usize..to.min(last) as usize];
            chosen(opened, &selected, wanted)?
        }
    };
    encode(&numbers, &batch)
}

/// The view of these columns.
fn selected(opened: &Opened, columns: Range<u64>) -> Result<View> {
    let schema = &opened.document.summary().schema;
    let mut view = View::default();
    let end = columns.end.min(columns.start.saturating_add(MOST_COLUMNS as u64));
    match Form::of(schema) {
        Form::Dense => {
            view.columns = Some(vec![format!("{}..{end}", columns.start)]);
            view.forms = vec![Form::Columns];
        }
        Form::Sparse => return Err(Error::usage("a sparse matrix has no table")),
        _ => {
            let fields = schema.fields().iter().skip(columns.start as usize);
            let names =
                fields.take(end.saturating_sub(columns.start) as usize).map(|field| field.name().clone());
            view.columns = Some(names.collect());
        }
    }
    Ok(view)
}

fn of_rows(view: &View, rows: Range<u64>) -> View {
    let mut view = view.clone();
    view.rows = Some(rows);
    view
}

fn joined(opened: &Opened, view: &View) -> Result<RecordBatch> {
    let stream = opened.rows(view)?;
    let schema = stream.schema();
    let batches = stream.map(|batch| batch.map_err(Error::from)).collect::<Result<Vec<_>>>()?;
    match batches.as_slice() {
        [one] => Ok(one.clone()),
        several => Ok(arrow_select::concat::concat_batches(&schema, several)?),
    }
}

fn range(opened: &Opened, view: &View, wanted: Range<u64>) -> Result<(Vec<u64>, RecordBatch)> {
    let batch = joined(opened, &of_rows(view, wanted.clone()))?;
    let numbers = (wanted.start..wanted.start + batch.num_rows() as u64).collect();
    Ok((numbers, batch))
}

/// Any rows in any order: reads ranges that contain them, then selects them.
fn chosen(opened: &Opened, view: &View, wanted: &[u32]) -> Result<(Vec<u64>, RecordBatch)> {
    let mut ordered: Vec<u64> = wanted.iter().map(|row| u64::from(*row)).collect();
    ordered.sort_unstable();
    // If the reader cannot seek, one pass over the range is better.
    let has_access = opened.document.splits(2).len() > 1
        || opened.document.summary().rows.is_some_and(|rows| rows < 10_000);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for row in ordered.iter().copied() {
        match ranges.last_mut() {
            Some(last) if row < last.end + NEAR || !has_access => last.end = row + 1,
            _ => ranges.push(row..row + 1),
        }
    }
    let mut places: BTreeMap<u64, u32> = BTreeMap::new();
    let mut pieces: Vec<RecordBatch> = Vec::new();
    let mut count = 0u32;
    for range in &ranges {
        let mut row = range.start;
        for batch in opened.rows(&of_rows(view, range.clone()))? {
            let batch = batch.map_err(Error::from)?;
            let numbers = row..row + batch.num_rows() as u64;
            let kept: UInt32Array = numbers
                .clone()
                .filter(|row| ordered.binary_search(row).is_ok())
                .map(|row| (row - numbers.start) as u32)
                .collect();
            for index in kept.values() {
                places.insert(numbers.start + u64::from(*index), count);
                count += 1;
            }
            if !kept.is_empty() {
                pieces.push(arrow_select::take::take_record_batch(&batch, &kept)?);
            }
            row = numbers.end;
        }
    }
    let schema = match pieces.first() {
        Some(piece) => piece.schema(),
        None => opened.rows(&of_rows(view, 0..0))?.schema(),
    };
    let all = arrow_select::concat::concat_batches(&schema, &pieces)?;
    let order: UInt32Array = wanted.iter().filter_map(|row| places.get(&u64::from(*row)).copied()).collect();
    let batch = match all.num_columns() {
        0 => all,
        _ => arrow_select::take::take_record_batch(&all, &order)?,
    };
    Ok((wanted.iter().map(|row| u64::from(*row)).collect(), batch))
}

/// The text of a cell: a JSON string without its quotes, everything else as JSON.
fn text(columns: &Columns<'_>, column: usize, row: usize) -> Result<String> {
    let mut out = Vec::new();
    columns.write_cell(column, row, &mut out)?;
    let json = String::from_utf8_lossy(&out).into_owned();
    match json.starts_with('"') {
        true => Ok(serde_json::from_str(&json).unwrap_or(json)),
        false => Ok(json),
    }
}

fn encode(numbers: &[u64], batch: &RecordBatch) -> Result<Vec<u8>> {
    let cells = Columns::new(batch, &job::json_options())?;
    let numbers = UInt64Array::from(numbers[..batch.num_rows()].to_vec());
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(numbers)];
    let mut fields = vec![Field::new("row", DataType::UInt64, false)];
    for index in 0..batch.num_columns() {
        let nulls = batch.column(index).logical_nulls();
        let mut builder = StringBuilder::new();
        for row in 0..batch.num_rows() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                builder.append_null();
                continue;
            }
            let text = text(&cells, index, row)?;
            match text.char_indices().nth(CELL) {
                Some((end, _)) => builder.append_value(format!("{}…", &text[..end])),
                None => builder.append_value(text),
            }
        }
        arrays.push(Arc::new(builder.finish()));
        fields.push(Field::new(format!("c{index}"), DataType::Utf8, true));
    }
    let schema = Arc::new(Schema::new(fields));
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &schema)?;
    writer.write(&RecordBatch::try_new(schema, arrays)?)?;
    writer.finish()?;
    drop(writer);
    Ok(bytes)
}

/// One whole value as JSON.
pub(crate) fn cell(state: &State, file: &File, row: u64, column: u64) -> Result<String> {
    let opened = file.opened(state)?;
    let (_, batch) = range(opened, &selected(opened, column..column + 1)?, row..row.saturating_add(1))?;
    if batch.num_rows() == 0 || batch.num_columns() == 0 {
        return Err(Error::usage("there is no such cell"));
    }
    let mut out = Vec::new();
    Columns::new(&batch, &job::json_options())?.write_cell(0, 0, &mut out)?;
    Ok(format!("{{\"value\":{}}}", String::from_utf8_lossy(&out)))
}
