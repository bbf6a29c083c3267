//! Parts of batches: a few rows of a large one, of which only their part of each buffer is read; and smaller batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, make_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Schema, SchemaRef};

use super::body::{Extent, extents, slots};
use super::layout::Message;
use crate::error::{Context, Error, Result};
use crate::hub::{Rows, rows};
use crate::limits::Budget;
use crate::source::Source;

/// The rows `rows` of the columns `chosen` (all: `None`) of the batch of a message. `None` if they are most of the
/// batch, or if a column cannot be read in part: it is packed, or not of values of one width.
pub(super) fn decode(
    message: &Message,
    source: &Source,
    schema: &SchemaRef,
    chosen: Option<&[usize]>,
    rows: Range<u64>,
    budget: &Budget,
) -> Result<Option<RecordBatch>> {
    let limits = budget.limits();
    let batch = message.record_batch(limits)?;
    let total = u64::try_from(batch.length()).unwrap_or(0);
    if batch.compression().is_some() || (rows.end - rows.start).saturating_mul(2) > total {
        return Ok(None);
    }
    let all: Vec<usize> = (0..schema.fields().len()).collect();
    let chosen = chosen.unwrap_or(&all);
    let fields: Vec<_> = chosen.iter().filter_map(|index| schema.fields().get(*index)).cloned().collect();
    if !fields
        .iter()
        .all(|field| *field.data_type() == DataType::Boolean || field.data_type().primitive_width().is_some())
    {
        return Ok(None);
    }
    let extents = extents(batch, message)?;
    let slots = slots(schema.fields(), batch, message.version, limits, None).at(message.metadata_offset())?;
    let nodes: Vec<_> = batch.nodes().into_iter().flatten().collect();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (index, field) in chosen.iter().zip(&fields) {
        let parts = slots.get(*index).and_then(|slots| {
            let [validity, values] = extents.get(slots.buffers.clone())? else { return None };
            Some((nodes.get(slots.nodes.start)?.null_count() > 0, validity, values))
        });
        let Some((has_nulls, validity, values)) = parts else { return Ok(None) };
        let bits = |extent: &Extent| -> Result<Option<BooleanBuffer>> {
            let (start, end) = (rows.start / 8, rows.end.div_ceil(8));
            if end > extent.end - extent.start {
                return Ok(None);
            }
            let bytes =
                source.read_range(message.body_offset() + extent.start + start, end - start, budget)?;
            let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
            Ok(Some(BooleanBuffer::new(bytes, usize::try_from(rows.start % 8).unwrap_or(0), count)))
        };
        let nulls = if has_nulls {
            let Some(bits) = bits(validity)? else { return Ok(None) };
            Some(NullBuffer::new(bits))
        } else {
            None
        };
        if *field.data_type() == DataType::Boolean {
            let Some(bits) = bits(values)? else { return Ok(None) };
            columns.push(Arc::new(BooleanArray::new(bits, nulls)));
            continue;
        }
        let width = field.data_type().primitive_width().unwrap_or(1) as u64;
        let (start, end) = (rows.start.saturating_mul(width), rows.end.saturating_mul(width));
        // A buffer that is too short is reported when the whole batch is read.
        if end > values.end - values.start {
            return Ok(None);
        }
        let bytes = source.read_range(message.body_offset() + values.start + start, end - start, budget)?;
        let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
        let data = ArrayData::builder(field.data_type().clone()).len(count).add_buffer(bytes).nulls(nulls);
        columns.push(make_array(data.align_buffers(true).build()?));
    }
    let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
    rows::batch(Arc::new(Schema::new(fields)), columns, count).map(Some)
}

/// The same rows in batches of at most `most` rows; 0: as they come.
pub(super) fn split(rows: Rows, most: usize) -> Rows {
    if most == 0 {
        return rows;
    }
    let schema = rows.schema();
    let batches = rows.flat_map(move |batch| {
        let (whole, error) = match batch {
            Ok(batch) => (Some(batch), None),
            Err(error) => (None, Some(Err(Error::from(error)))),
        };
        let pieces = whole.into_iter().flat_map(move |batch| {
            let count = batch.num_rows();
            // A batch without rows stays, for the values of its dictionaries.
            (0..count.max(1)).step_by(most).map(move |start| Ok(batch.slice(start, most.min(count - start))))
        });
        pieces.chain(error)
    });
    rows::from_batches(schema, batches)
}
