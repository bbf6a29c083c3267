//! Rows as a table for a terminal: aligned columns, cells of at most forty characters, control characters escaped.
//!
//! A column is as wide as its widest cell among the rows that are laid out together. If later rows need more, the
//! heading is printed again with wider columns, so that every row is aligned with the heading above it and no number is
//! truncated. On a terminal long texts are truncated first, then columns are left out at the right, and counted.

use std::io::Write;

use pentaglot::Error;
use pentaglot::arrow::array::RecordBatch;
use pentaglot::arrow::schema::Schema;
use pentaglot::hub::Rows;
use pentaglot::hub::json::Columns;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::screen::{bold, count, escape, faint};
use crate::types::field_text;

/// Characters of a cell.
const CELL: usize = 40;
/// Characters available for a type; more only if the cells are wider.
const TYPE: usize = 20;
/// A text column is not narrowed below this many characters to make room for others.
const NARROW: usize = 16;
/// Rows that are laid out together.
const PAGE: usize = 1000;
/// Between two columns.
const GAP: &str = "  ";

/// Prints the rows; `width` is how many characters a line has, where that is limited.
pub(crate) fn print(out: &mut impl Write, rows: Rows, width: Option<usize>) -> pentaglot::Result<()> {
    let mut table = Table::new(&rows.schema(), width);
    for batch in rows {
        let batch = batch.map_err(Error::from)?;
        for start in (0..batch.num_rows()).step_by(PAGE) {
            table.page(out, &batch.slice(start, PAGE.min(batch.num_rows() - start)))?;
        }
    }
    table.end(out)?;
    out.flush()?;
    Ok(())
}

/// A function that adds colour to a text.
type Style = fn(&str) -> String;

struct Table {
    columns: Vec<TableColumn>,
    /// Characters of a line.
    width: Option<usize>,
    /// How many columns are shown; `None` before the first heading.
    shown: Option<usize>,
}

struct TableColumn {
    name: String,
    kind: String,
    /// Numbers are right-aligned and never truncated.
    number: bool,
    /// The width that the cells need.
    needed: usize,
    /// The width that they get.
    width: usize,
}

struct Cell {
    text: String,
    missing: bool,
}

impl Table {
    fn new(schema: &Schema, width: Option<usize>) -> Self {
        let column = |field: &pentaglot::arrow::schema::FieldRef| {
            let name = cut(&escape(field.name()), CELL);
            let kind = cut(&escape(&field_text(field)), CELL);
            let needed = name.width().max(kind.width().min(TYPE));
            TableColumn { name, kind, number: field.data_type().is_numeric(), needed, width: needed }
        };
        Table { columns: schema.fields().iter().map(column).collect(), width, shown: None }
    }

    fn page(&mut self, out: &mut impl Write, rows: &RecordBatch) -> pentaglot::Result<()> {
        // Columns that certainly do not fit are not formatted.
        let most = self.width.map_or(usize::MAX, |width| width / (GAP.len() + 1) + 1);
        let cells = cells(rows, most)?;
        let mut wider = self.shown.is_none();
        for row in &cells {
            for (column, cell) in self.columns.iter_mut().zip(row) {
                let needed = cell.text.width();
                wider |= needed > column.width && needed > column.needed;
                column.needed = column.needed.max(needed);
            }
        }
        if wider {
            if self.shown.is_some() {
                writeln!(out)?;
            }
            self.heading(out)?;
        }
        let shown = self.shown.unwrap_or(0);
        for row in &cells {
            let style = |cell: &Cell| -> Style { if cell.missing { faint } else { str::to_owned } };
            let cells = row.iter().take(shown).map(|cell| (cell.text.as_str(), style(cell)));
            self.line(out, cells)?;
        }
        Ok(())
    }

    /// Lays the columns out again and prints names and types.
    fn heading(&mut self, out: &mut impl Write) -> std::io::Result<()> {
        let shown = fit(&mut self.columns, self.width);
        self.shown = Some(shown);
        let columns = || self.columns.iter().take(shown);
        self.line(out, columns().map(|column| (column.name.as_str(), bold as Style)))?;
        self.line(out, columns().map(|column| (column.kind.as_str(), faint as Style)))?;
        let rules: Vec<String> = columns().map(|column| "─".repeat(column.width)).collect();
        self.line(out, rules.iter().map(|rule| (rule.as_str(), str::to_owned as Style)))
    }

    /// A line of the columns that are shown; spaces are outside of colours and never at the end.
    fn line<'t>(
        &self,
        out: &mut impl Write,
        texts: impl Iterator<Item = (&'t str, Style)>,
    ) -> std::io::Result<()> {
        let mut line = String::new();
        let mut space = 0;
        for (column, (text, style)) in self.columns.iter().zip(texts) {
            let text = cut(text, column.width);
            let free = column.width.saturating_sub(text.width());
            let (before, after) = if column.number { (free, 0) } else { (0, free) };
            if !text.is_empty() {
                line.push_str(&" ".repeat(space + before));
                line.push_str(&style(&text));
                space = 0;
            } else {
                space += before;
            }
            space += after + GAP.len();
        }
        if self.shown.is_some_and(|shown| shown < self.columns.len()) {
            line.push_str(&" ".repeat(space));
            line.push('…');
        }
        writeln!(out, "{line}")
    }

    fn end(&mut self, out: &mut impl Write) -> std::io::Result<()> {
        if self.shown.is_none() {
            self.heading(out)?;
        }
        match self.columns.len() - self.shown.unwrap_or(0) {
            0 => Ok(()),
            more => {
                let more = count(more as u64, "more column");
                writeln!(out, "{}", faint(&format!("… {more} (--columns chooses, --output jsonl has all)")))
            }
        }
    }
}

/// Sets the widths and returns how many columns are shown: the widest texts are truncated first, then columns are
/// left out.
fn fit(columns: &mut [TableColumn], width: Option<usize>) -> usize {
    columns.iter_mut().for_each(|column| column.width = column.needed);
    let Some(width) = width else { return columns.len() };
    let total = |columns: &[TableColumn]| {
        columns.iter().map(|column| column.width + GAP.len()).sum::<usize>().saturating_sub(GAP.len())
    };
    // Only columns that can be shown at their minimum width share the line.
    let least = |column: &TableColumn| if column.number { column.needed } else { column.needed.min(NARROW) };
    let mut shown = 0;
    let mut used = 0;
    for (index, column) in columns.iter().enumerate() {
        let mark = if index + 1 < columns.len() { GAP.len() + 1 } else { 0 };
        used += least(column) + if index > 0 { GAP.len() } else { 0 };
        if used + mark > width {
            break;
        }
        shown = index + 1;
    }
    // At least one column is shown, truncated if it is too wide.
    shown = shown.max(1).min(columns.len());
    let room = if shown < columns.len() { width.saturating_sub(GAP.len() + 1) } else { width };
    let columns = &mut columns[..shown];
    while total(columns) > room {
        let texts = columns.iter_mut().filter(|column| !column.number && column.width > NARROW);
        match texts.max_by_key(|column| column.width) {
            Some(widest) => widest.width -= 1,
            None => break,
        }
    }
    if let [only] = columns {
        only.width = only.width.min(room);
    }
    shown
}

/// The first characters with a display width of at most `width`, with an ellipsis if the text is longer.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut places = 0;
    let fits = |character: &char| {
        places += character.width().unwrap_or(0);
        places < width
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

fn cells(page: &RecordBatch, most: usize) -> pentaglot::Result<Vec<Vec<Cell>>> {
    let options = pentaglot::job::json_options();
    let columns = Columns::new(page, &options)?;
    let mut bytes = Vec::new();
    (0..page.num_rows())
        .map(|row| {
            (0..page.num_columns().min(most))
                .map(|column| {
                    bytes.clear();
                    columns.write_cell(column, row, &mut bytes)?;
                    Ok(cell(&String::from_utf8_lossy(&bytes)))
                })
                .collect()
        })
        .collect()
}

/// A cell from its JSON text. Text that looks like a missing value keeps its quotes.
fn cell(json: &str) -> Cell {
    let text = match serde_json::from_str::<String>(json) {
        Ok(text) if text != "null" && !text.starts_with('"') => text,
        _ => json.to_owned(),
    };
    Cell { text: cut(&escape(&text), CELL), missing: json == "null" }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pentaglot::arrow::array::{ArrayRef, Int64Array, RecordBatchIterator, StringArray};

    use super::*;

    fn shown(columns: Vec<(&str, ArrayRef)>, width: Option<usize>, page: usize) -> String {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        let pages = (0..batch.num_rows()).step_by(page);
        let pages: Vec<_> =
            pages.map(|start| Ok(batch.slice(start, page.min(batch.num_rows() - start)))).collect();
        let mut out = Vec::new();
        let rows = RecordBatchIterator::new(pages, batch.schema());
        print(&mut anstream::StripStream::new(&mut out as &mut dyn Write), Box::new(rows), width).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn texts(values: Vec<Option<&str>>) -> ArrayRef {
        Arc::new(StringArray::from(values))
    }

    #[test]
    fn missing_values_differ_from_the_text_null() {
        let text = shown(vec![("t", texts(vec![None, Some("null"), Some("\"null\""), Some("")]))], None, 9);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, ["t", "?utf8", &"─".repeat(10), "null", r#""null""#, r#""\"null\"""#, ""]);
    }

    #[test]
    fn rows_that_need_more_get_a_new_heading() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 1_234_567_890, 2]));
        let text = shown(vec![("n", numbers)], None, 1);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[3], "     1");
        assert_eq!(lines[4..], ["", "         n", "    ?int64", &"─".repeat(10), "1234567890", "         2"]);
    }

    #[test]
    fn a_narrow_terminal_cuts_texts_and_then_leaves_columns_out() {
        let long = "x".repeat(50);
        let columns =
            |count: usize| (0..count).map(|_| ("name", texts(vec![Some(long.as_str())]))).collect::<Vec<_>>();
        for (count, width) in [(1, 20), (2, 60), (2, 30), (3, 50), (9, 80), (1000, 80)] {
            let text = shown(columns(count), Some(width), 9);
            for line in text.lines().filter(|line| !line.contains("--columns")) {
                assert!(line.width() <= width, "{count} in {width}: {line}");
            }
        }
        let text = shown(columns(1000), Some(80), 9);
        assert!(text.ends_with("… 996 more columns (--columns chooses, --output jsonl has all)\n"), "{text}");
    }

    #[test]
    fn wide_characters_take_two_places() {
        let text = shown(
            vec![("a", texts(vec![Some("日本"), Some("ab")])), ("b", texts(vec![Some("x"); 2]))],
            None,
            9,
        );
        assert!(text.contains("日本   x\nab     x\n"), "{text}");
    }
}
