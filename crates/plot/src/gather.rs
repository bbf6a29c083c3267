//! Creates charts of documents, with one pass over the data.

use pentaglot::arrow::schema::{DataType, Field, Schema, TimeUnit};
use pentaglot::formats::Summary;
use pentaglot::hub::{Form, extension};
use pentaglot::job::{Description, Opened, View};
use pentaglot::{Error, Result};

use crate::chart::{Axis, Chart, Kind, Part};
use crate::points::points;
use crate::spy::{runs, spy};
use crate::{PlotOptions, sheet};

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

pub(crate) fn name_of(opened: &Opened) -> String {
    let name = opened.content.name();
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

pub(crate) fn is_bits(summary: &Summary) -> bool {
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

pub(crate) fn plain_type(field: &Field) -> &DataType {
    match field.data_type() {
        DataType::Dictionary(_, value) => value,
        other => other,
    }
}

pub(crate) fn is_number(field: &Field) -> bool {
    let data_type = plain_type(field);
    data_type.is_numeric() && extension::name(field).is_none()
}

fn is_countable(field: &Field) -> bool {
    !plain_type(field).is_nested() && extension::name(field) != Some(extension::IMAGE)
}

/// Seconds of one unit of a date or a timestamp.
pub(crate) fn time_unit(field: &Field) -> Option<f64> {
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

pub(crate) fn named<'a>(schema: &'a Schema, name: &str) -> Result<&'a Field> {
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

pub(crate) fn of_column(options: &PlotOptions, names: &[&str]) -> View {
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
        let bars = histogram.counts.len() as f64;
        let end = match histogram.width * bars {
            length if length.is_finite() => histogram.min + length,
            _ => histogram.max,
        };
        // A bar for each whole number has the number in its middle.
        let whole = if histogram.width == 1.0 && unit.is_none() { 0.5 } else { 0.0 };
        (axis.min, axis.max) = ((histogram.min - whole) * scale, (end.max(histogram.min) - whole) * scale);
        axis.is_time = unit.is_some();
        counts = histogram.counts;
    }
    let outside = [(column.nulls, "missing"), (column.nans, "NaN"), (column.infinities, "infinite")];
    let outside = outside.iter().filter(|(count, _)| *count > 0);
    let note: String = outside.map(|(count, what)| format!(", {count} {what}")).collect();
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
