//! Rows as a table for people: columns aligned, cells cut at forty characters, nothing that a terminal could obey.

use std::io::Write;

use pentaglot::Error;
use pentaglot::arrow::array::RecordBatch;
use pentaglot::arrow::schema::{DataType, Schema};
use pentaglot::hub::Rows;
use pentaglot::hub::json::Columns;

use crate::screen::{bold, cut, escape};

/// Characters of a cell.
const CELL: usize = 40;
/// Rows that are laid out together.
const PAGE: usize = 1000;

pub(crate) fn print(out: &mut impl Write, rows: Rows) -> pentaglot::Result<()> {
    let schema = rows.schema();
    let mut widths: Option<Vec<usize>> = None;
    for batch in rows {
        let batch = batch.map_err(Error::from)?;
        for start in (0..batch.num_rows()).step_by(PAGE) {
            let page = batch.slice(start, PAGE.min(batch.num_rows() - start));
            let cells = cells(&page)?;
            let widths = match &mut widths {
                // Later pages keep the first page's columns, as far as they fit.
                Some(widths) => widths,
                None => {
                    let first = layout(&schema, &cells);
                    heading(out, &schema, &first)?;
                    widths.insert(first)
                }
            };
            for row in &cells {
                line(out, &schema, row, widths)?;
            }
        }
    }
    if widths.is_none() {
        let widths = layout(&schema, &[]);
        heading(out, &schema, &widths)?;
    }
    out.flush()?;
    Ok(())
}

fn cells(page: &RecordBatch) -> pentaglot::Result<Vec<Vec<String>>> {
    let options = pentaglot::job::json_options();
    let columns = Columns::new(page, &options)?;
    let mut bytes = Vec::new();
    (0..page.num_rows())
        .map(|row| {
            (0..page.num_columns())
                .map(|column| {
                    bytes.clear();
                    columns.write_cell(column, row, &mut bytes)?;
                    let text = String::from_utf8_lossy(&bytes);
                    let text = match serde_json::from_str::<String>(&text) {
                        Ok(string) => string,
                        Err(_) => text.into_owned(),
                    };
                    Ok(cut(&escape(&text), CELL))
                })
                .collect()
        })
        .collect()
}

fn layout(schema: &Schema, cells: &[Vec<String>]) -> Vec<usize> {
    let name = |field: &str| cut(&escape(field), CELL).chars().count();
    let mut widths: Vec<usize> = schema.fields().iter().map(|field| name(field.name())).collect();
    for row in cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

fn heading(out: &mut impl Write, schema: &Schema, widths: &[usize]) -> std::io::Result<()> {
    let names: Vec<String> = schema.fields().iter().map(|field| cut(&escape(field.name()), CELL)).collect();
    let text: Vec<String> = schema
        .fields()
        .iter()
        .zip(&names)
        .zip(widths)
        .map(|((field, name), width)| pad(name, *width, is_number(field.data_type())))
        .collect();
    writeln!(out, "{}", bold(text.join("  ").trim_end()))?;
    let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    writeln!(out, "{}", rule.join("  "))
}

fn line(out: &mut impl Write, schema: &Schema, row: &[String], widths: &[usize]) -> std::io::Result<()> {
    let fields = schema.fields().iter();
    let cells = fields.zip(row).zip(widths);
    let text: Vec<String> =
        cells.map(|((field, cell), width)| pad(cell, *width, is_number(field.data_type()))).collect();
    writeln!(out, "{}", text.join("  ").trim_end())
}

fn pad(text: &str, width: usize, right: bool) -> String {
    let space = " ".repeat(width.saturating_sub(text.chars().count()));
    if right { format!("{space}{text}") } else { format!("{text}{space}") }
}

fn is_number(kind: &DataType) -> bool {
    kind.is_numeric()
}
