//! Opens a file: its dialect, its headers, its `.meta`, and the summary.

use std::sync::Arc;

use crate::control::Control;
use crate::error::{Error, Result};
use crate::formats::{ReadOptions, Summary};
use crate::hub::Form;
use crate::limits::{Budget, Reservation};
use crate::source::Source;

use super::beside::Beside;
use super::layout::DbdfLayout;
use super::types::{BlockType, DataType, Dialect, ValueType};
use super::{ID, dialect, header_may_be, schema, tiling};

/// An open file.
pub(super) struct File {
    pub(super) source: Source,
    pub(super) layout: DbdfLayout,
    pub(super) summary: Summary,
    /// Why the `.meta` file beside it is ignored, if it is.
    pub(super) ignored_meta: Option<String>,
    pub(super) budget: Budget,
    pub(super) control: Control,
    /// Whether cells may be missing: that is an error of the rows that they are in, not of the file.
    pub(super) damaged: bool,
    /// The memory of the list of blocks.
    _held: Reservation,
}

/// Opens a file: detects its dialect, walks its headers, reads its `.meta`.
pub(super) fn open(source: Source, options: &ReadOptions) -> Result<File> {
    let forced = match &options.dialect {
        None => None,
        Some(name) => Some(Dialect::from_name(name).ok_or_else(|| {
            Error::usage(format!("expected a dialect (spec, daphne, daphne01), found {name:?}"))
        })?),
    };
    // The dialect depends on the exact length, so a stream is read to its end first.
    let source = source.seekable_if(header_may_be)?;
    let budget = options.budget.clone();
    let beside = match options.options.bool("meta")? {
        Some(false) => Beside::default(),
        _ => Beside::read(&source)?,
    };
    let chosen = dialect::choose(&source, forced, beside.candidate(), (&budget, options.damaged))?;
    let layout = chosen.layout;
    let held = budget.reserve(size_of_val(layout.blocks.as_slice()) as u64)?;
    check_decodable(&layout)?;
    let header = &layout.header;
    let (meta, ignored_meta) = beside.settle(header)?;
    let names = schema::column_names(header, meta.as_ref());
    let schema = schema::of(header, &names, options.budget.limits())?;
    let mut summary = Summary::new(ID, Arc::new(schema));
    summary.dialect = Some(header.dialect.name());
    summary.dialect_reason = Some(chosen.reason);
    summary.also_fits = chosen.also_fits.iter().map(|dialect| format!("{ID}:{dialect}")).collect();
    summary.notes.extend(chosen.note);
    summary.note_ignored(ignored_meta.clone());
    summary.rows = Some(header.rows);
    summary.bytes = Some(layout.bytes);
    summary.nonzeros = if header.data_type == DataType::CsrMatrix { layout.stored_entries() } else { None };
    summary.null_counts = summary.schema.fields().iter().map(|_| Some(0)).collect();
    describe(&mut summary, &layout, meta.is_some() || ignored_meta.is_some());
    let (control, damaged) = (options.control.clone(), options.damaged);
    Ok(File { source, layout, summary, ignored_meta, budget, control, damaged, _held: held })
}

/// The summary lists this many blocks; the others are one part.
const MOST_PARTS: usize = 1000;

fn describe(summary: &mut Summary, layout: &DbdfLayout, has_meta: bool) {
    let header = &layout.header;
    summary.part("header", 0, header.bytes);
    let (shown, rest) = layout.blocks.split_at(layout.blocks.len().min(MOST_PARTS));
    for (index, block) in shown.iter().enumerate() {
        let end = block.data_offset + block.data_bytes;
        summary.part(format!("block[{index}]"), block.offset, end - block.offset);
    }
    if let Some(first) = rest.first() {
        summary.part(format!("block[{MOST_PARTS}..]"), first.offset, layout.bytes - first.offset);
    }
    let mut say = |key: &str, value: String| summary.metadata.push((key.to_owned(), value));
    say("data_type", header.data_type.name().to_owned());
    say("blocks", layout.blocks.len().to_string());
    for block_type in [BlockType::Empty, BlockType::Dense, BlockType::Sparse, BlockType::UltraSparse] {
        let count = layout.blocks.iter().filter(|block| block.block_type == block_type).count();
        if count > 0 && header.dialect == Dialect::Spec {
            say(&format!("blocks.{block_type}"), count.to_string());
        }
    }
    if header.data_type == DataType::Frame && header.dialect != Dialect::Spec && !has_meta && header.cols > 0
    {
        let note =
            "DAPHNE writes no readable labels and there is no .meta file: columns are named col_0, col_1, …";
        summary.notes.push(note.to_owned());
    }
    if header.data_type == DataType::DenseMatrix && Form::of(&summary.schema) == Form::Sparse {
        summary.notes.push("its rows are too wide for dense rows and are read as sparse rows".to_owned());
    }
    let mut fault = None;
    tiling::check(layout, |error| {
        fault = Some(error);
        false
    });
    summary.notes.extend(fault.map(|error| error.to_string()));
}

/// Whether an object holds cells that this library cannot decode.
pub(super) fn check_decodable(layout: &DbdfLayout) -> Result<()> {
    let header = &layout.header;
    if !header.value_types.contains(&ValueType::Str) {
        return Ok(());
    }
    let what = if header.data_type == DataType::Frame { "a string column" } else { "a string matrix" };
    Err(Error::unsupported(format!(
        "{what} of DAPHNE: it holds the memory of std::string objects, not their text"
    ))
    .at(18)
    .field("value_type")
    .field("header"))
}
