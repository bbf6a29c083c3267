//! [`RowBuilder`]: elements of a stream, decoded one after another into a batch; and what may follow the last one.
//!
//! At the root a table has rows, each an array of cells; an array has elements; any other type is one element. Errors
//! get their place here: `row 17, column "x"`, `value[3]`, `value`.

use std::io::Read;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use super::columns::{ColumnBuilder, Lengths, Reading};
use super::decode::{begin_cells, wrong_arity, wrong_row_count};
use super::layout::DsLayout;
use super::schema::{root_columns, root_shape};
use super::types::Type;
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::hub::{Columns, Shape, rows};
use crate::kernels::rows::{self as kernels, Json, MsgPack, Values, Wire};
use crate::source::Window;
use crate::wire::json::Scanner;
use crate::wire::msgpack;

/// A batch ends when it has taken this many bytes.
pub(super) const BATCH_BYTES: u64 = 4 << 20;
/// How much of a stream is read at a time.
pub(super) const WINDOW_BYTES: usize = 1 << 20;

/// The remaining capacity of a batch.
pub(super) struct BatchLimits {
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

struct Slot {
    name: String,
    /// `None` if it is not selected.
    column: Option<ColumnBuilder>,
}

/// Decodes elements into batches.
pub(super) struct RowBuilder {
    shape: Shape,
    slots: Vec<Slot>,
    /// For each field of the schema, its slot.
    order: Vec<usize>,
    schema: SchemaRef,
    reading: Reading,
    /// Elements in the batch.
    pub(super) len: usize,
    /// The number of the next element in the file.
    pub(super) row: u64,
    plain: PlainRows,
    /// The lengths of the last batch, until the next one begins.
    last_batch: Lengths,
}

/// When to try the fast loop.
#[derive(Debug, Default)]
struct PlainRows {
    /// Rows to read one by one before the next attempt …
    wait: u32,
    /// … and after an attempt that read few rows; grows each time.
    patience: u32,
}

impl PlainRows {
    /// Whether to try now.
    fn due(&mut self) -> bool {
        let due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        due
    }

    fn tried(&mut self, paid: bool) {
        self.patience = if paid { 0 } else { (2 * self.patience + 1).min(255) };
        self.wait = self.patience;
    }
}

impl RowBuilder {
    /// A builder for `columns` of the elements of `kind`; `schema` is that of the result.
    pub(super) fn new(
        kind: &Type,
        columns: Option<&Columns>,
        schema: SchemaRef,
        reading: Reading,
        row: u64,
    ) -> Result<Self> {
        let all = root_columns(kind);
        let order: Vec<usize> = match columns {
            None => (0..all.len()).collect(),
            Some(columns) => {
                let known = |index| usize::try_from(index).ok().filter(|index| *index < all.len());
                let order = columns.indices().map(known).collect::<Option<_>>();
                order.ok_or_else(|| Error::usage(format!("there are {} columns", all.len())))?
            }
        };
        let slots = all.iter().enumerate().map(|(index, (name, kind))| Slot {
            name: (*name).to_owned(),
            column: order.contains(&index).then(|| ColumnBuilder::new(kind, &reading)),
        });
        let slots = slots.collect();
        let (shape, plain) = (root_shape(kind), PlainRows::default());
        let last_batch = Lengths::default();
        Ok(RowBuilder { shape, slots, order, schema, reading, len: 0, row, plain, last_batch })
    }

    /// Returns a function that creates builders like [`new`](Self::new), one for each thread.
    pub(super) fn maker(
        kind: &Type,
        columns: Option<Columns>,
        schema: &SchemaRef,
        reading: &Reading,
    ) -> impl Fn(u64) -> Result<Self> + Send + Sync + use<> {
        let (kind, schema, reading) = (kind.clone(), Arc::clone(schema), reading.clone());
        move |row| RowBuilder::new(&kind, columns.as_ref(), Arc::clone(&schema), reading.clone(), row)
    }

    /// Skips one element.
    pub(super) fn skip_msgpack(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let (shape, row) = (self.shape, self.row);
        msgpack::skip(cursor).map_err(|error| place(error, shape, row))?;
        self.row += 1;
        Ok(())
    }

    /// The memory of the batch beyond its bytes in the file.
    pub(super) fn placeholder_bytes(&self) -> u64 {
        self.reading.placeholder_bytes
    }

    fn columns(&mut self) -> impl Iterator<Item = &mut ColumnBuilder> {
        self.slots.iter_mut().filter_map(|slot| slot.column.as_mut())
    }

    /// Before the first element of a batch: room for as many as the last one had.
    #[inline]
    fn begin(&mut self) {
        if self.len == 0 && !self.last_batch.is_empty() {
            let budget = self.reading.budget.clone();
            std::mem::take(&mut self.last_batch).make_room(self.columns(), &budget);
        }
    }

    /// Reads rows with the fast loop while they are simple and within `limits`.
    fn read_plain(&mut self, wire: &mut impl Wire, limits: &BatchLimits) -> Result<usize> {
        self.begin();
        let columns = self.slots.iter_mut().map(|slot| match &mut slot.column {
            Some(column) => column.plain(),
            None => Some(kernels::RowColumn { values: Values::Skipped, valid: None }),
        });
        let Some(mut columns) = columns.collect::<Option<Vec<_>>>() else {
            self.plain.wait = u32::MAX;
            return Ok(0);
        };
        let rows = usize::try_from(limits.rows).unwrap_or(usize::MAX);
        let until = usize::try_from(limits.bytes).unwrap_or(usize::MAX);
        let taken = kernels::read_rows(wire, &mut columns, rows, until);
        self.plain.tried(taken.rows >= 32 || taken.rows == rows || wire.position() >= 4096);
        self.len += taken.rows;
        self.row += taken.rows as u64;
        self.reading.count_placeholders(taken.placeholder_bytes)?;
        Ok(taken.rows)
    }

    /// Reads one element, or many simple rows.
    pub(super) fn read_some_msgpack(&mut self, cursor: &mut Cursor<'_>, limits: &BatchLimits) -> Result<()> {
        if self.shape == Shape::Table && self.plain.due() {
            let mut wire = MsgPack::new(cursor.rest(), self.reading.lenient);
            if self.read_plain(&mut wire, limits)? > 0 {
                return cursor.skip(wire.position() as u64);
            }
        }
        self.read_msgpack(cursor)
    }

    /// Reads simple rows of JSON, if they come next in the scanner; `memory` is its whole input, if in memory.
    /// Returns the number of rows.
    pub(super) fn read_plain_json<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        limits: &BatchLimits,
    ) -> Result<usize> {
        if self.shape != Shape::Table || !self.plain.due() {
            return Ok(0);
        }
        let Some((window, fresh)) = scanner.elements() else { return Ok(0) };
        let mut wire = Json::new(window, fresh);
        let rows = self.read_plain(&mut wire, limits)?;
        if rows > 0 {
            scanner.skip_elements(wire.position());
        }
        Ok(rows)
    }

    /// Reads one element.
    #[inline]
    pub(super) fn read_msgpack(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        self.begin();
        let (shape, row) = (self.shape, self.row);
        if shape == Shape::Table {
            read_row_header(cursor, self.slots.len()).map_err(|error| place(error, shape, row))?;
        }
        for slot in &mut self.slots {
            let read = match &mut slot.column {
                Some(column) => column.read_msgpack(cursor, &mut self.reading),
                None => msgpack::skip(cursor),
            };
            if let Err(error) = read {
                return Err(place_cell(error, shape, row, &slot.name));
            }
        }
        self.len += 1;
        self.row += 1;
        Ok(())
    }

    /// Reads one element.
    pub(super) fn read_json<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        self.begin();
        let (shape, row) = (self.shape, self.row);
        if shape != Shape::Table {
            if let Some(Slot { column: Some(column), .. }) = self.slots.first_mut() {
                let read = column.read_json(scanner, &mut self.reading);
                read.map_err(|error| place(error, shape, row))?;
            }
        } else {
            let expected = self.slots.len();
            let start = begin_cells(scanner).map_err(|error| place(error, shape, row))?;
            let arity = |found: &dyn std::fmt::Display| {
                place(wrong_arity("a row", expected, found, start), shape, row)
            };
            for (index, slot) in self.slots.iter_mut().enumerate() {
                if !scanner.next_element().map_err(|error| place(error, shape, row))? {
                    return Err(arity(&index));
                }
                let read = match &mut slot.column {
                    Some(column) => column.read_json(scanner, &mut self.reading),
                    None => scanner.skip_value(),
                };
                if let Err(error) = read {
                    return Err(place_cell(error, shape, row, &slot.name));
                }
            }
            if scanner.next_element().map_err(|error| place(error, shape, row))? {
                return Err(arity(&"more"));
            }
        }
        self.len += 1;
        self.row += 1;
        Ok(())
    }

    /// How many cells an element has.
    pub(super) fn width(&self) -> usize {
        self.slots.len()
    }

    /// Reads what comes before the cells of an element.
    pub(super) fn begin_msgpack(&self, cursor: &mut Cursor<'_>) -> Result<()> {
        if self.shape != Shape::Table {
            return Ok(());
        }
        read_row_header(cursor, self.slots.len()).map_err(|error| place(error, self.shape, self.row))
    }

    /// Reads one cell of an element.
    pub(super) fn cell_msgpack(&mut self, index: usize, cursor: &mut Cursor<'_>) -> Result<()> {
        let (shape, row) = (self.shape, self.row);
        let Some(Slot { name, column: Some(column) }) = self.slots.get_mut(index) else { return Ok(()) };
        column.read_msgpack(cursor, &mut self.reading).map_err(|error| place_cell(error, shape, row, name))
    }

    /// Reads one cell of an element.
    pub(super) fn cell_json<R: Read>(&mut self, index: usize, scanner: &mut Scanner<R>) -> Result<()> {
        let (shape, row) = (self.shape, self.row);
        let Some(Slot { name, column: Some(column) }) = self.slots.get_mut(index) else { return Ok(()) };
        column.read_json(scanner, &mut self.reading).map_err(|error| place_cell(error, shape, row, name))
    }

    /// Removes the incomplete next element.
    pub(super) fn undo(&mut self) {
        let len = self.len;
        self.columns().for_each(|column| column.truncate(len));
    }

    /// Removes all elements of the batch.
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.reading.placeholder_bytes = 0;
        self.undo();
    }

    /// Returns the batch and clears the builder.
    pub(super) fn finish(&mut self) -> Result<RecordBatch> {
        self.last_batch = Lengths::measure(self.columns());
        let mut arrays: Vec<Option<ArrayRef>> = vec![None; self.slots.len()];
        let mut columns = Vec::new();
        for (index, field) in self.order.iter().zip(self.schema.fields()) {
            let (Some(slot), Some(array)) = (self.slots.get_mut(*index), arrays.get_mut(*index)) else {
                continue;
            };
            if array.is_none()
                && let Some(column) = &mut slot.column
            {
                *array = Some(column.finish(field, None)?);
            }
            columns.extend(array.clone());
        }
        let len = std::mem::take(&mut self.len);
        self.reading.placeholder_bytes = 0;
        rows::batch(Arc::clone(&self.schema), columns, len)
    }
}

/// Reads the header of a row of `count` cells.
#[inline]
pub(super) fn read_row_header(cursor: &mut Cursor<'_>, count: usize) -> Result<()> {
    let offset = cursor.offset();
    let found = msgpack::read_array(cursor)?;
    if found != count { Err(wrong_arity("a row", count, found, offset)) } else { Ok(()) }
}

/// Adds the place of a cell: `row 17, column "x"` in a table.
#[cold]
pub(super) fn place_cell(error: Error, shape: Shape, row: u64, name: &str) -> Error {
    if shape == Shape::Table {
        return error.field(format!("row {row}, column {name:?}"));
    }
    place(error, shape, row)
}

/// Adds the number of the element: `row 17`, `value[3]` or `value`.
#[cold]
pub(super) fn place(error: Error, shape: Shape, row: u64) -> Error {
    match shape {
        Shape::Table => error.field(format!("row {row}")),
        Shape::Array => error.index(row).field("value"),
        _ => error.field("value"),
    }
}

/// The error for bytes after the last element.
#[cold]
pub(super) fn too_many(shape: Shape, declared: u64, offset: u64, bytes: usize) -> Error {
    if shape == Shape::Table {
        return wrong_row_count(declared, "more", offset);
    }
    Error::malformed("the end", format_args!("{bytes} or more bytes")).at(offset).rule("trailing")
}

/// Reads the header of an array at the root.
pub(super) fn read_root_count(window: &mut Window) -> Result<u32> {
    loop {
        let mut cursor = window.cursor();
        match msgpack::read_array_count(&mut cursor) {
            Ok(count) => {
                let reached = cursor.offset();
                window.advance_to(reached);
                return Ok(count);
            }
            Err(error) if error.kind() == ErrorKind::Truncated && window.grow()? => {}
            Err(error) => return Err(error.field("value")),
        }
    }
}

/// The bytes that may follow the value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    /// Whether the value is a part of a bundle.
    bundle: bool,
    /// Whether the type came before it.
    typed: bool,
}

impl Tail {
    pub(super) fn of(layout: &DsLayout) -> Tail {
        let typed = layout.type_place.is_some_and(|(offset, _)| offset < layout.body);
        Tail { bundle: layout.described, typed }
    }

    /// Reads the bytes after the value; returns an error if they are not allowed.
    pub(super) fn check<R: Read>(self, scanner: &mut Scanner<R>) -> Result<()> {
        let mut typed = self.typed;
        if self.bundle {
            while let Some(key) = scanner.next_key()? {
                let twice = match key {
                    "value" => true,
                    "type" => std::mem::replace(&mut typed, true),
                    _ => false,
                };
                if twice {
                    let found = format!("{key:?} twice");
                    let error = Error::malformed("every key once", found).rule("duplicate");
                    return Err(error.at(scanner.offset()));
                }
                scanner.skip_value()?;
            }
        }
        match scanner.skip_space()? {
            None => Ok(()),
            Some(_) => Err(scanner.unexpected("the end of the input").rule("json")),
        }
    }
}
