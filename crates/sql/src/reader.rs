//! Reads rows of files as rows of a table: the wanted columns, in the types of the table, with partition columns.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_schema::{Fields, Schema, SchemaRef};
use datafusion::arrow::array::MutableArrayData;
use pentaglot::convert::{adapt, reshape};
use pentaglot::hub::{Form, LossKinds, LossRecord, Rows, rows};
use pentaglot::{Error, Result};

use crate::parts;
use crate::place::Place;
use crate::table::{self, TableFile, TableOptions};

/// How files are opened and which of their columns are read.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) place: Arc<Place>,
    pub(crate) options: Arc<TableOptions>,
    /// The columns that the files have, all together.
    pub(crate) file_schema: SchemaRef,
    /// The partition columns.
    pub(crate) keys: Fields,
    /// The wanted columns of the table.
    pub(crate) projection: Vec<usize>,
    pub(crate) schema: SchemaRef,
    pub(crate) batch_rows: usize,
}

/// A column of so few bytes is not copied.
const SMALL_BYTES: usize = 4096;

pub(crate) type Batches = Box<dyn Iterator<Item = Result<RecordBatch>>>;

impl Reader {
    /// Opens a file that another process has described.
    pub(crate) fn open(&self, part: &parts::NamedPart) -> Result<TableFile> {
        let name = self.place.input(&part.name)?;
        let file = table::open_file(&self.place, &name, &part.values, &self.keys, &self.options)?;
        let found = file.opened.source.len();
        if found != part.bytes {
            let text =
                |bytes: Option<u64>| bytes.map_or("an unknown number of".to_owned(), |b| b.to_string());
            return Err(Error::usage(format!(
                "the file changed after the query was planned: expected {} bytes, found {}",
                text(part.bytes),
                text(found)
            )));
        }
        Ok(file)
    }

    /// The wanted columns of some rows, in the types of the table.
    pub(crate) fn read(&self, file: &TableFile, part: &Range<u64>) -> Result<Batches> {
        let own_count = self.file_schema.fields().len();
        let wanted: Vec<usize> = self.projection.iter().copied().filter(|index| *index < own_count).collect();
        if let (true, Some(total)) = (wanted.is_empty(), file.rows()) {
            let count = part.end.min(total).saturating_sub(part.start);
            return Ok(self.counted(file, count));
        }
        let wanted = Arc::new(self.file_schema.project(&wanted)?);
        let rows = self.rows(file, part, &wanted)?;
        let values = self
            .projection
            .iter()
            .map(|index| index.checked_sub(own_count).map(|key| file.values[key].clone()));
        let values: Vec<_> = values.collect();
        let schema = Arc::clone(&self.schema);
        let counted_only = wanted.fields().is_empty();
        Ok(Box::new(rows.map(move |batch| {
            let batch = batch.map_err(Error::from)?;
            let mut own = if counted_only { [].iter() } else { batch.columns().iter() };
            let count = batch.num_rows();
            let columns = values.iter().map(|value| match value {
                None => {
                    own.next().cloned().ok_or_else(|| Error::unsupported("a reader gave too few columns"))
                }
                Some(value) => value.to_array_of_size(count).map_err(crate::fault::ours),
            });
            assemble(&schema, columns.collect::<Result<_>>()?, count)
        })))
    }

    /// Rows that are counted, not read.
    fn counted(&self, file: &TableFile, count: u64) -> Batches {
        let own_count = self.file_schema.fields().len();
        let values: Vec<_> = self
            .projection
            .iter()
            .filter_map(|index| file.values.get(index.checked_sub(own_count)?).cloned())
            .collect();
        let schema = Arc::clone(&self.schema);
        let each = (self.batch_rows as u64).max(1);
        Box::new((0..count).step_by(each as usize).map(move |start| {
            let rows = each.min(count - start) as usize;
            let columns = values.iter().map(|value| value.to_array_of_size(rows).map_err(crate::fault::ours));
            assemble(&schema, columns.collect::<Result<_>>()?, rows)
        }))
    }

    /// The columns of a file, as they are in the table.
    fn rows(&self, file: &TableFile, part: &Range<u64>, wanted: &SchemaRef) -> Result<Rows> {
        let document = &file.opened.document;
        let mut selection = document.selection().with_batch_rows(self.batch_rows);
        if file.keeps_rows() {
            selection = selection.with_rows(part.clone());
        }
        let own = &document.summary().schema;
        // The columns of a matrix whose rows are lists are not fields.
        let has_columns = matches!(Form::of(own), Form::Table | Form::Columns | Form::Coo);
        if has_columns && own.fields() == file.reshape.schema.fields() && !own.fields().is_empty() {
            let names = |schema: &Schema| {
                let found = wanted.fields().iter().filter_map(|field| schema.index_of(field.name()).ok());
                found.map(|index| index as u64..index as u64 + 1).collect::<Vec<_>>()
            };
            let mut columns = names(own);
            if columns.is_empty() {
                // Something must be read to count rows.
                columns.push(0..1);
            }
            let rows = document.rows(&selection.with_column_ranges(columns)?)?;
            return Ok(self.adapted(rows, wanted));
        }
        let rows = document.rows(&selection)?;
        let budget = pentaglot::Limits::default().budget();
        let plan = if selection.is_sliced() {
            reshape::plan(selection.schema(), Form::of(&file.reshape.schema))?
        } else {
            file.reshape.clone()
        };
        let rows = reshape::reshape(rows, &plan, &budget, LossKinds::NONE, &LossRecord::default())?;
        if wanted.fields().is_empty() {
            return Ok(rows);
        }
        let indices: Vec<Option<usize>> =
            wanted.fields().iter().map(|field| rows.schema().index_of(field.name()).ok()).collect();
        let indices: Vec<usize> = indices.into_iter().flatten().collect();
        let chosen = Arc::new(rows.schema().project(&indices)?);
        let projected = rows.map(move |batch| Ok(batch.map_err(Error::from)?.project(&indices)?));
        Ok(self.adapted(rows::from_batches(chosen, projected), wanted))
    }

    fn adapted(&self, rows: Rows, wanted: &SchemaRef) -> Rows {
        if rows.schema().fields() == wanted.fields() || wanted.fields().is_empty() {
            return rows;
        }
        adapt::adapter(&rows.schema(), wanted).adapt(rows, LossKinds::NONE, LossRecord::default())
    }
}

fn assemble(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let columns = columns.iter().map(own_memory).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(Error::from)
}

/// A column that shares no memory with others. The engine counts all of a shared buffer for each part of it, as a document whose
/// columns are decoded whole gives them: it would soon spill what takes no memory at all.
fn own_memory(column: &ArrayRef) -> Result<ArrayRef> {
    let data = column.to_data();
    let own = data.get_slice_memory_size().unwrap_or(usize::MAX);
    if column.get_array_memory_size() / 4 <= own.max(SMALL_BYTES) {
        return Ok(Arc::clone(column));
    }
    let mut copy = MutableArrayData::new(vec![&data], false, column.len());
    copy.try_extend(0, 0, column.len())?;
    Ok(make_array(copy.freeze()))
}
