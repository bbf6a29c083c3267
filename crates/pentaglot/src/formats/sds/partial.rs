//! A large vector of bits, integers or elements: only the elements of the selected rows are read.
//!
//! For the outline and for validation the whole file is read into memory, as for any other structure.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pentaglot_succinct::{SharedWords, WordCursor};

use super::ID;
use super::columns::{BATCH_ROWS, Reader};
use super::layout::{Object, own_words};
use super::schema::{Native, kind_schema, supports_text};
use super::skeleton::{self, Items};
use super::type_text::{PREFIX, SdsKind};
use crate::error::Result;
use crate::formats::{ReadOptions, Summary};
use crate::hub::Selection;
use crate::hub::native;
use crate::hub::rows::{self, Rows};
use crate::limits::Budget;
use crate::source::Source;

/// A file up to this size is read as a whole, so that its kind is detected by its content.
const WHOLE_BYTES: u64 = 1 << 20;
/// Items per group, which fill whole elements for any width.
const GROUP: u64 = 64;

pub(super) struct PartialDocument {
    pub(super) source: Source,
    items: Items,
    pub(super) summary: Summary,
    pub(super) options: ReadOptions,
}

impl PartialDocument {
    /// The document, if it is a large vector of bits, integers or elements that need not be mapped.
    pub(super) fn open(source: &Source, options: &ReadOptions) -> Result<Option<Self>> {
        let has_type = options.type_text.as_deref().is_some_and(|text| text.trim().starts_with(PREFIX));
        if !source.is_seekable()
            || source.len().is_none_or(|len| len <= WHOLE_BYTES)
            || options.in_place.is_some()
            || options.member.is_some()
            || has_type
        {
            return Ok(None);
        }
        let kind = match options.dialect.as_deref() {
            Some(name) => Some(SdsKind::parse(name)?),
            None => skeleton::first_kind(source),
        };
        let Some(items) = kind.and_then(|kind| skeleton::items(source, kind)) else { return Ok(None) };
        let summary = summary(source, &items, options)?;
        Ok(Some(PartialDocument { source: source.clone(), items, summary, options: options.clone() }))
    }

    /// The document of a vector of a given kind that a damaged file may lack the last items of.
    pub(super) fn of_damaged(source: &Source, options: &ReadOptions) -> Result<Option<Self>> {
        let kind = options.dialect.as_deref().map(SdsKind::parse).transpose()?;
        let source = source.seekable()?;
        let Some(items) = kind.and_then(|kind| skeleton::items_of_damaged(&source, kind)) else {
            return Ok(None);
        };
        let summary = summary(&source, &items, options)?;
        Ok(Some(PartialDocument { source, items, summary, options: options.clone() }))
    }

    /// The selected rows, batch by batch.
    pub(super) fn batches(&self, selection: &Selection) -> Rows {
        let range = selection.range(self.items.count);
        let size = selection.batch_rows_or(BATCH_ROWS) as u64;
        let schema = Arc::clone(selection.row_schema());
        let (source, items, budget) = (self.source.clone(), self.items, self.options.budget.clone());
        let (mut next, inner) = (range.start, Arc::clone(&schema));
        let batches = std::iter::from_fn(move || {
            let wanted = next..range.end.min(next.saturating_add(size));
            next = wanted.end;
            let batch = || batch(&source, &items, wanted.clone(), &inner, &budget);
            (!wanted.is_empty()).then(batch).map(|batch| batch.map_err(|error| error.in_format(ID)))
        });
        rows::from_batches(schema, batches)
    }
}

fn summary(source: &Source, items: &Items, options: &ReadOptions) -> Result<Summary> {
    let kind = items.kind;
    let mut own = Native::new(kind);
    own.width = (kind == SdsKind::Int).then_some(items.width);
    own.supports = (kind == SdsKind::Bit).then_some(items.supports);
    let schema = native::with(kind_schema(kind, 1)?, ID, own.to_json());
    let mut summary = Summary::new(ID, Arc::new(schema));
    summary.dialect = Some(kind.name());
    let given = options.dialect.is_some();
    let reason = if given { "named by the user" } else { "the first kind that uses all elements" };
    summary.dialect_reason = Some(reason.to_owned());
    if !given {
        let others =
            SdsKind::ALL.into_iter().filter(|other| *other != kind && skeleton::fits(source, *other));
        summary.also_fits = others.map(|other| other.name().to_owned()).collect();
    }
    summary.bytes = source.len();
    summary.rows = Some(items.count);
    let elements = (items.count * u64::from(items.width)).div_ceil(64);
    summary.part("header", 0, items.start * 8);
    summary.part("items", items.start * 8, elements * 8);
    let mut fact = |key: &str, value: String| summary.metadata.push((key.to_owned(), value));
    fact("kind", kind.to_string());
    match kind {
        SdsKind::Bit => {
            fact("ones", items.ones.to_string());
            fact("supports", supports_text(items.supports));
        }
        SdsKind::Int => fact("width", items.width.to_string()),
        SdsKind::Option => fact("present", true.to_string()),
        _ => {}
    }
    Ok(summary)
}

/// A vector of the first `count` items in `words`. Bits come without their supports.
fn object(items: &Items, count: u64, words: SharedWords) -> Result<Object> {
    let bits = count * u64::from(items.width);
    let mut all = match items.kind {
        SdsKind::Int => vec![count, u64::from(items.width), bits, bits.div_ceil(64)],
        SdsKind::Vec | SdsKind::Option => vec![count],
        _ => vec![count, count.div_ceil(64)],
    };
    all.extend_from_slice(words.as_ref());
    let kind = if items.kind == SdsKind::Bit { SdsKind::Raw } else { items.kind };
    Object::read(kind, &mut WordCursor::new(SharedWords::new(all)))
}

/// Reads the items of `rows`, and returns them as columns.
fn batch(
    source: &Source,
    items: &Items,
    rows: std::ops::Range<u64>,
    schema: &SchemaRef,
    budget: &Budget,
) -> Result<arrow_array::RecordBatch> {
    let first = rows.start / GROUP * GROUP;
    let width = u64::from(items.width);
    let (from, to) = (first * width / 64, (rows.end * width).div_ceil(64));
    let bytes = source.read_range((items.start + from) * 8, (to - from) * 8, budget)?;
    let object = object(items, rows.end - first, own_words(bytes))?;
    let reader = Reader { object: Arc::new(object), budget: budget.clone() };
    let columns = reader.columns(&(rows.start - first..rows.end - first), None)?;
    let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
    rows::batch(Arc::clone(schema), columns, count)
}
