//! An open file, and its rows: batch by batch, several batches in parallel, from only the blocks that the
//! selection needs.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::{Context, Error, Result};
use crate::formats::{Document, Findings, Outline, Split, Summary};
use crate::hub::Columns;
use crate::hub::Selection;
use crate::hub::rows;
use crate::hub::{Form, Rows};

use super::assemble::{self, Build, Chunk, Projection};
use super::layout::{Block, Encoding};
use super::open::File;
use super::sparse::{self, Piece, State};
use super::types::ValueType;
use super::{ID, outline, splits, tiling, validate};

/// Default size of a batch.
const BATCH_BYTES: u64 = 4 << 20;

/// Maximum number of rows in a batch of rows without any stored entries; such batches share their offsets.
pub(super) const EMPTY_ROWS: u64 = 1 << 22;

/// The [`Document`] of an open file.
pub(super) struct Open(pub(super) Arc<File>);

impl Document for Open {
    fn summary(&self) -> &Summary {
        &self.0.summary
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        splits::of(&self.0, wanted)
    }

    fn has_columns_apart(&self) -> bool {
        Form::of(&self.0.summary.schema) == Form::Sparse && !self.0.source.is_costly()
    }

    fn outline(&self) -> Outline {
        outline::of(&self.0)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::run(&self.0, findings).in_format(ID)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        read(&self.0, request).in_format(ID)
    }
}

/// The selected rows.
pub(super) fn read(file: &Arc<File>, request: &Selection) -> Result<Rows> {
    let header = &file.layout.header;
    let mut range = request.range(header.rows);
    let mut fault = None;
    tiling::check(&file.layout, |error| {
        fault = Some(error);
        false
    });
    if let Some(error) = fault.take() {
        if !file.damaged {
            return Err(error);
        }
        // The rows before the first that is not covered are whole.
        let uncovered = tiling::uncovered(&file.layout, request.columns());
        if let Some(row) = tiling::first_within(&uncovered, &range) {
            range.end = row;
            fault = Some(error);
        }
    }
    if !request.is_sliced() && !file.damaged {
        check_void_blocks(file)?;
    }
    let form = Form::of(&file.summary.schema);
    // Columns of sparse rows are selected after decoding, all others during decoding.
    let schema = if form == Form::Sparse { request.row_schema() } else { request.schema() };
    let columns = request.columns().cloned().unwrap_or_else(|| Columns::first(header.cols));
    check_free(file, form, &range, columns.count())?;
    let batch_rows = request.batch_rows_or(own_batch_rows(file, form, &columns)) as u64;
    let empty_rows = match request.batch_rows() {
        0 if form == Form::Sparse => EMPTY_ROWS.min(file.budget.limits().max_alloc / 16).max(batch_rows),
        _ => batch_rows,
    };
    let selection = Projection::new(form, Arc::clone(schema), columns);
    let mut rows = Reader::new(Arc::clone(file), selection, range, (batch_rows, empty_rows)).into_rows();
    if let Some(fault) = fault {
        let before = rows.map(|batch| batch.map_err(Error::from));
        rows =
            rows::from_batches(Arc::clone(schema), before.chain(std::iter::once(Err(fault.in_format(ID)))));
    }
    if form == Form::Sparse { request.project(rows) } else { Ok(rows) }
}

/// A sparse block without cells has no rows, but its stored counts must be consistent with that.
fn check_void_blocks(file: &File) -> Result<()> {
    for (index, block) in file.layout.blocks.iter().enumerate().filter(|(_, block)| block.is_void()) {
        let encoding = file.layout.encoding(block);
        if !matches!(encoding, Encoding::Empty | Encoding::Dense | Encoding::FrameRows) {
            let rows = block.row..block.row_end();
            sparse::decode(&file.source, &file.budget, (block, encoding), rows, &mut State::default())
                .index(index as u64)
                .field("block")?;
        }
    }
    Ok(())
}

/// Rows or cells that take no bytes in the file are limited: their number is at least the number of missing bytes.
fn check_free(file: &File, form: Form, range: &Range<u64>, width: u64) -> Result<()> {
    let rows = range.end - range.start;
    let cells = if form == Form::Sparse { rows } else { rows.saturating_mul(width.max(1)) };
    file.budget.limits().check_free_rows(cells.saturating_sub(file.layout.bytes))
}

fn own_batch_rows(file: &File, form: Form, columns: &Columns) -> usize {
    let header = &file.layout.header;
    let row_bytes = match form {
        Form::Sparse => {
            let pair = 4 + header.value_type(0).map_or(8, ValueType::size) as u64;
            let rows = header.rows.max(1);
            // Cells that blocks store count like bytes in the file.
            8 + (file.layout.bytes / rows).min(header.cols.saturating_mul(pair))
        }
        Form::Table => columns
            .indices()
            .filter_map(|col| header.value_type(col))
            .map(|value_type| value_type.size() as u64)
            .sum(),
        _ => columns.count().saturating_mul(header.value_type(0).map_or(8, ValueType::size) as u64),
    };
    let rows = (file.budget.batch_bytes(BATCH_BYTES) / row_bytes.max(1)).clamp(1, 1 << 18);
    usize::try_from(rows).unwrap_or(1)
}

struct Reader {
    file: Arc<File>,
    selection: Arc<Projection>,
    rows: Range<u64>,
    batch_rows: u64,
    /// The number of rows in a batch without stored entries.
    empty_rows: u64,
    /// Blocks that the selection needs and that store something, by their first row; those before `next` have been
    /// reached.
    order: Vec<usize>,
    next: usize,
    /// Blocks under the current rows.
    active: Vec<usize>,
    states: BTreeMap<usize, State>,
    ready: VecDeque<Result<RecordBatch>>,
    lanes: usize,
}

/// Rows of one sparse block for several chunks, decoded one after the other.
struct Task {
    block: usize,
    state: State,
    parts: Vec<(usize, Range<u64>)>,
}

impl Reader {
    fn new(
        file: Arc<File>,
        selection: Projection,
        rows: Range<u64>,
        (batch_rows, empty_rows): (u64, u64),
    ) -> Self {
        let needed = |block: &Block| {
            !block.is_void()
                && file.layout.encoding(block) != Encoding::Empty
                && block.row < rows.end
                && block.row_end() > rows.start
                && selection
                    .columns
                    .ranges()
                    .iter()
                    .any(|cols| cols.start < block.col_end() && block.col < cols.end)
        };
        let blocks = &file.layout.blocks;
        let mut order: Vec<usize> =
            (0..blocks.len()).filter(|index| blocks.get(*index).is_some_and(needed)).collect();
        order.sort_by_key(|index| blocks.get(*index).map(|block| block.row));
        // Each batch that is being decoded takes memory.
        let room = file.budget.limits().max_alloc / (4 * BATCH_BYTES);
        let lanes = file.control.threads().min(usize::try_from(room).unwrap_or(usize::MAX)).max(1);
        Reader {
            selection: Arc::new(selection),
            rows,
            batch_rows: batch_rows.max(1),
            empty_rows: empty_rows.max(1),
            order,
            next: 0,
            active: Vec::new(),
            states: BTreeMap::new(),
            ready: VecDeque::new(),
            lanes,
            file,
        }
    }

    fn into_rows(mut self) -> Rows {
        let schema: SchemaRef = Arc::clone(&self.selection.schema);
        let batches = std::iter::from_fn(move || {
            if self.ready.is_empty() {
                self.fill();
            }
            Some(self.ready.pop_front()?.in_format(ID))
        });
        rows::from_batches(schema, batches)
    }

    /// The next chunk of rows and the blocks under it.
    fn chunk(&mut self) -> Option<Chunk> {
        if self.rows.is_empty() {
            return None;
        }
        let start = self.rows.start;
        let blocks = &self.file.layout.blocks;
        self.active.retain(|index| blocks.get(*index).is_some_and(|block| block.row_end() > start));
        let next = self.order.get(self.next).and_then(|index| blocks.get(*index));
        let next = next.map_or(self.rows.end, |block| block.row.clamp(start, self.rows.end));
        let count = if self.active.is_empty() && next - start > self.batch_rows {
            self.empty_rows.min(next - start)
        } else {
            self.batch_rows
        };
        let mut end = start.saturating_add(count).min(self.rows.end);
        // The batch ends with the first block that ends, so that rows of two blocks need not be merged.
        let seams = self.active.iter().filter_map(|index| blocks.get(*index)).map(Block::row_end);
        let near = start.saturating_add(count / 8)..end;
        end = seams.filter(|seam| near.contains(seam)).max().unwrap_or(end);
        let rows = start..end;
        self.rows.start = end;
        while let Some(index) = self.order.get(self.next)
            && blocks.get(*index).is_some_and(|block| block.row < rows.end)
        {
            self.active.push(*index);
            self.next += 1;
        }
        Some(Chunk { rows, blocks: self.active.clone() })
    }

    /// Decodes the next few chunks: first the sparse blocks, each as a task, then the batches.
    fn fill(&mut self) {
        let mut chunks: Vec<Chunk> = Vec::new();
        while chunks.len() < self.lanes
            && let Some(chunk) = self.chunk()
        {
            chunks.push(chunk);
        }
        let tasks = self.tasks(&chunks);
        if let [chunk] = &chunks[..]
            && let Some(entries) = self.stacked_entries(chunk, &tasks)
        {
            let batch = self.stacked(chunk, tasks, entries);
            self.ready.push_back(batch);
            return;
        }
        match self.decode(chunks, tasks) {
            Ok(batches) => self.ready.extend(batches),
            Err(error) => self.ready.push_back(Err(error)),
        }
    }

    /// How many entries there are in the blocks of a chunk, if it is made of several whole sparse blocks, one below the other.
    fn stacked_entries(&self, chunk: &Chunk, tasks: &[Task]) -> Option<u64> {
        let is_stacked = self.selection.is_sparse()
            && tasks.len() > self.file.control.threads()
            && tasks.len() == chunk.blocks.len();
        let blocks = &self.file.layout.blocks;
        let (mut entries, mut row) = (0u64, chunk.rows.start);
        for block in tasks.iter().map(|task| blocks.get(task.block)) {
            let block = block.filter(|block| row <= block.row && block.row_end() <= chunk.rows.end)?;
            row = block.row_end();
            entries = entries.saturating_add(block.entries);
        }
        is_stacked.then_some(entries)
    }

    /// Decodes a chunk of many blocks, a few at a time, so that their memory is reused.
    fn stacked(&mut self, chunk: &Chunk, tasks: Vec<Task>, entries: u64) -> Result<RecordBatch> {
        let file = Arc::clone(&self.file);
        let build = Build { file: &file, selection: &self.selection, chunk };
        let Some(value_type) = file.layout.header.value_type(0) else {
            return Err(Error::unsupported("a matrix without a value type"));
        };
        let mut stack = build.stack(entries, value_type)?;
        let (mut tasks, at_a_time) = (tasks.into_iter(), 2 * file.control.threads());
        loop {
            let few: Vec<Task> = tasks.by_ref().take(at_a_time).collect();
            if few.is_empty() {
                break;
            }
            for decoded in file.control.map(few, |task| Ok(decode_task(&file, task)))? {
                decoded?.done.into_iter().try_for_each(|(_, piece)| stack.push(&piece?))?;
            }
        }
        let rows = usize::try_from(chunk.rows.end - chunk.rows.start).unwrap_or(usize::MAX);
        rows::batch(Arc::clone(&self.selection.schema), vec![build.stacked(stack)?], rows)
    }

    fn decode(&mut self, chunks: Vec<Chunk>, tasks: Vec<Task>) -> Result<Vec<Result<RecordBatch>>> {
        let (file, selection) = (Arc::clone(&self.file), Arc::clone(&self.selection));
        let mut pieces: Vec<Vec<Piece>> = chunks.iter().map(|_| Vec::new()).collect();
        let mut failed: Vec<Option<Error>> = chunks.iter().map(|_| None).collect();
        let mut states = Vec::new();
        for decoded in file.control.map(tasks, |task| Ok(decode_task(&file, task)))? {
            let Decoded { block, state, done } = decoded?;
            for (chunk, piece) in done {
                match (piece, pieces.get_mut(chunk), failed.get_mut(chunk)) {
                    (Ok(piece), Some(all), _) => all.push(piece),
                    (Err(error), _, Some(slot)) => {
                        slot.get_or_insert(error);
                    }
                    _ => {}
                }
            }
            states.push((block, state));
        }
        let all: Vec<_> = chunks.into_iter().zip(pieces).zip(failed).collect();
        let build = |((chunk, pieces), failed): ((Chunk, Vec<Piece>), Option<Error>)| match failed {
            Some(error) => Err(error),
            None => assemble::batch(&file, &selection, &chunk, pieces),
        };
        let batches = file.control.map(all, build)?;
        let start = self.rows.start;
        let blocks = &file.layout.blocks;
        let alive = |block: usize| blocks.get(block).is_some_and(|block| block.row_end() > start);
        self.states = states.into_iter().filter(|(block, _)| alive(*block)).collect();
        Ok(batches)
    }

    fn tasks(&mut self, chunks: &[Chunk]) -> Vec<Task> {
        let mut in_order: BTreeMap<usize, Vec<(usize, Range<u64>)>> = BTreeMap::new();
        let mut tasks = Vec::new();
        let layout = &self.file.layout;
        for (number, chunk) in chunks.iter().enumerate() {
            for index in &chunk.blocks {
                let Some(block) = layout.blocks.get(*index) else { continue };
                let rows = chunk.rows.start.max(block.row)..chunk.rows.end.min(block.row_end());
                match layout.encoding(block) {
                    Encoding::Empty | Encoding::Dense | Encoding::FrameRows => {}
                    // Any rows can be read separately.
                    Encoding::CsrArrays => {
                        tasks.push(Task {
                            block: *index,
                            state: State::default(),
                            parts: vec![(number, rows)],
                        });
                    }
                    Encoding::Sparse | Encoding::WideSparse | Encoding::UltraSparse => {
                        in_order.entry(*index).or_default().push((number, rows));
                    }
                }
            }
        }
        for (block, parts) in in_order {
            let state = self.states.remove(&block).unwrap_or_default();
            tasks.push(Task { block, state, parts });
        }
        tasks
    }
}

struct Decoded {
    block: usize,
    state: State,
    done: Vec<(usize, Result<Piece>)>,
}

fn decode_task(file: &File, task: Task) -> Decoded {
    let Task { block: index, mut state, parts } = task;
    let mut done = Vec::new();
    if let Some(block) = file.layout.blocks.get(index) {
        let kind = (block, file.layout.encoding(block));
        for (chunk, rows) in parts {
            let piece = sparse::decode(&file.source, &file.budget, kind, rows, &mut state);
            let failed = piece.is_err();
            done.push((chunk, piece.index(index as u64).field("block")));
            if failed {
                break;
            }
        }
    }
    Decoded { block: index, state, done }
}
