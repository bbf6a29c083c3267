//! Reading a table: each partition of the plan reads parts of files, one after the other, on a thread that may block.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as TheirResult, Statistics};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};
use pentaglot::convert::{adapt, reshape};
use pentaglot::hub::{Form, LossKinds, LossRecord, Rows, rows};
use pentaglot::{Error, Result, redacted};

use crate::fault::theirs;
use crate::table::{FilesTable, TableFile};

/// Rows of a file that are read together.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) file: usize,
    pub(crate) rows: Range<u64>,
}

/// A scan of files.
pub(crate) struct Scan {
    files: Arc<[TableFile]>,
    file_schema: SchemaRef,
    /// What each partition reads.
    groups: Vec<Vec<Part>>,
    /// The wanted columns of the table.
    projection: Vec<usize>,
    limit: Option<usize>,
    batch_rows: usize,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl Scan {
    pub(crate) fn new(
        table: &FilesTable,
        groups: Vec<Vec<Part>>,
        projection: Vec<usize>,
        limit: Option<usize>,
        batch_rows: usize,
    ) -> TheirResult<Self> {
        let schema = Arc::new(table.schema.project(&projection)?);
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(groups.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(Scan {
            files: Arc::clone(&table.files),
            file_schema: Arc::clone(&table.file_schema),
            groups,
            projection,
            limit,
            batch_rows,
            schema,
            properties,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// How many rows a part has, if that is known.
    fn rows(&self, part: &Part) -> Option<u64> {
        let total = self.files[part.file].rows()?;
        Some(part.rows.end.min(total).saturating_sub(part.rows.start))
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("groups", &self.groups).field("schema", &self.schema).finish()
    }
}

impl DisplayAs for Scan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format = self.files.first().map_or("", |file| file.opened.format.info().id);
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let files: std::collections::BTreeSet<usize> =
            self.groups.iter().flatten().map(|part| part.file).collect();
        let names: Vec<_> = files.iter().take(5).map(|index| redacted(&self.files[*index].name)).collect();
        let more = if files.len() > names.len() {
            format!(" and {} more", files.len() - names.len())
        } else {
            String::new()
        };
        write!(
            f,
            "PentaglotScan: format={format}, files=[{}{more}], partitions={}, projection=[{}]",
            names.join(", "),
            self.groups.len(),
            columns.join(", ")
        )?;
        self.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
    }
}

impl ExecutionPlan for Scan {
    fn name(&self) -> &str {
        "PentaglotScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> TheirResult<TreeNodeRecursion>,
    ) -> TheirResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
    ) -> TheirResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> TheirResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> TheirResult<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), 2);
        let sender = builder.tx();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (files, parts) = (Arc::clone(&self.files), self.groups[partition].clone());
        let reader = Reader {
            file_schema: Arc::clone(&self.file_schema),
            projection: self.projection.clone(),
            schema: Arc::clone(&self.schema),
            batch_rows: self.batch_rows,
        };
        let mut left = self.limit.map_or(u64::MAX, |limit| limit as u64);
        builder.spawn_blocking(move || {
            for part in parts {
                let file = &files[part.file];
                let named = |error: Error| {
                    theirs(error.in_format(file.opened.format.info().id).in_input(file.name.clone()))
                };
                for batch in reader.read(file, &part).map_err(named)? {
                    let batch = batch.map_err(named)?;
                    let batch =
                        batch.slice(0, batch.num_rows().min(usize::try_from(left).unwrap_or(usize::MAX)));
                    left -= batch.num_rows() as u64;
                    metrics.record_output(batch.num_rows());
                    // Nobody listens any longer: the query has ended.
                    if sender.blocking_send(Ok(batch)).is_err() || left == 0 {
                        return Ok(());
                    }
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, partition: Option<usize>) -> TheirResult<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        let parts: Vec<&Part> = match partition {
            Some(partition) => self.groups[partition].iter().collect(),
            None => self.groups.iter().flatten().collect(),
        };
        let rows: Option<Vec<u64>> = parts.into_iter().map(|part| self.rows(part)).collect();
        if let Some(rows) = rows {
            let rows = usize::try_from(rows.iter().sum::<u64>()).unwrap_or(usize::MAX);
            statistics.num_rows = match self.limit {
                Some(limit) if rows > limit => Precision::Inexact(limit),
                _ => Precision::Exact(rows),
            };
        }
        Ok(Arc::new(statistics))
    }
}

/// What all parts of a partition have in common.
struct Reader {
    file_schema: SchemaRef,
    projection: Vec<usize>,
    schema: SchemaRef,
    batch_rows: usize,
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch>>>;

impl Reader {
    /// The wanted columns of a part, in the types of the table.
    fn read(&self, file: &TableFile, part: &Part) -> Result<Batches> {
        let own_count = self.file_schema.fields().len();
        let wanted: Vec<usize> = self.projection.iter().copied().filter(|index| *index < own_count).collect();
        if let (true, Some(total)) = (wanted.is_empty(), file.rows()) {
            let count = part.rows.end.min(total).saturating_sub(part.rows.start);
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
    fn rows(&self, file: &TableFile, part: &Part, wanted: &SchemaRef) -> Result<Rows> {
        let document = &file.opened.document;
        let mut selection = document.selection().with_batch_rows(self.batch_rows);
        if file.keeps_rows() {
            selection = selection.with_rows(part.rows.clone());
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
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(Error::from)
}
