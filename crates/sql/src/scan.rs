//! Reading a table: each partition of the plan reads parts of files, one after the other, on a thread that may block.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, mpsc};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as TheirResult, Statistics};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};
use futures::StreamExt;
use pentaglot::{Error, Result, redacted};

use crate::parts;
use crate::reader::Reader;
use crate::table::{FilesTable, TableFile};

/// Rows of a file that are read together.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) file: usize,
    pub(crate) rows: Range<u64>,
}

/// A scan of files.
pub(crate) struct Scan {
    /// What each partition reads.
    work: Work,
    /// What all partitions have in common.
    reader: Reader,
    limit: Option<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// What is read, partition by partition.
#[derive(Clone)]
enum Work {
    /// Parts of files that are open.
    Open { files: Arc<[TableFile]>, groups: Vec<Vec<Part>> },
    /// Rows of the input each name a part of a file (see [`crate::parts`]). A scheduler divides an input that it knows; it
    /// would give all partitions of a leaf that it does not know to every task.
    Named { input: Arc<dyn ExecutionPlan>, rows: Option<u64> },
}

/// The engine's usual number of rows of a batch.
const USUAL_ROWS: usize = 8192;

/// The most rows and bytes of a larger batch. To hand over a batch takes as long as to read some thousand rows.
const LARGE_ROWS: usize = 64 << 10;
const LARGE_BYTES: usize = 2 << 20;

/// How many rows a batch has: the number of the session, or more where that is the usual one and rows are short and of fixed
/// width.
fn larger_batch(rows: usize, schema: &Schema, limit: Option<usize>) -> usize {
    fn bytes(kind: &DataType) -> Option<usize> {
        match kind {
            DataType::Null | DataType::Boolean => Some(1),
            DataType::Dictionary(key, _) => bytes(key),
            DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
            DataType::FixedSizeList(item, count) => {
                bytes(item.data_type())?.checked_mul(usize::try_from(*count).ok()?)
            }
            DataType::Struct(fields) => {
                fields.iter().try_fold(0usize, |sum, field| sum.checked_add(bytes(field.data_type())?))
            }
            other => other.primitive_width(),
        }
    }
    let row =
        schema.fields().iter().try_fold(1usize, |sum, field| sum.checked_add(bytes(field.data_type())?));
    match row {
        Some(row) if rows == USUAL_ROWS => {
            rows.max(LARGE_ROWS.min(LARGE_BYTES / row).min(limit.unwrap_or(usize::MAX)))
        }
        _ => rows,
    }
}

impl Scan {
    pub(crate) fn new(
        table: &FilesTable,
        groups: Vec<Vec<Part>>,
        projection: Vec<usize>,
        limit: Option<usize>,
        batch_rows: usize,
    ) -> TheirResult<Self> {
        let schema = table.schema.project(&projection)?;
        let reader = Reader {
            place: Arc::clone(&table.place),
            options: Arc::clone(&table.options),
            file_schema: Arc::clone(&table.file_schema),
            keys: table.schema.fields()[table.file_schema.fields().len()..].into(),
            batch_rows: larger_batch(batch_rows, &schema, limit),
            schema: Arc::new(schema),
            projection,
        };
        Ok(Scan::over(reader, Work::Open { files: Arc::clone(&table.files), groups }, limit))
    }

    /// A scan whose parts the input names.
    pub(crate) fn named(
        reader: Reader,
        input: Arc<dyn ExecutionPlan>,
        limit: Option<usize>,
        rows: Option<u64>,
    ) -> Self {
        Scan::over(reader, Work::Named { input, rows }, limit)
    }

    fn over(reader: Reader, work: Work, limit: Option<usize>) -> Self {
        let schema = Arc::clone(&reader.schema);
        let count = match &work {
            Work::Open { groups, .. } => groups.len(),
            Work::Named { input, .. } => input.properties().partitioning.partition_count(),
        };
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(count),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Scan { work, reader, limit, schema, properties, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// The same scan for other processes: each partition names its parts.
    pub(crate) fn for_others(&self) -> Result<Self> {
        let Work::Open { files, groups } = &self.work else {
            return Ok(Scan::over(self.reader.clone(), self.work.clone(), self.limit));
        };
        let input = parts::plan(files, groups, &self.reader.keys)?;
        Ok(Scan::over(self.reader.clone(), Work::Named { input, rows: self.known_rows(None) }, self.limit))
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(crate) fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// How many rows a partition, or all, have if no limit ends them.
    pub(crate) fn known_rows(&self, partition: Option<usize>) -> Option<u64> {
        let (files, groups) = match &self.work {
            Work::Open { files, groups } => (files, groups),
            Work::Named { rows, .. } => return rows.filter(|_| partition.is_none()),
        };
        let groups = match partition {
            Some(partition) => &groups[partition..=partition],
            None => &groups[..],
        };
        let rows = |part: &Part| {
            let total = files[part.file].rows()?;
            Some(part.rows.end.min(total).saturating_sub(part.rows.start))
        };
        groups.iter().flatten().map(rows).sum()
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl DisplayAs for Scan {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(kind, DisplayFormatType::TreeRender) {
            // DataFusion cuts this text at any byte.
            let text = format!("{}", DisplayableScan(self));
            return f.write_str(&text.replace('…', "...").replace(|c: char| !c.is_ascii(), "?"));
        }
        write!(f, "{}", DisplayableScan(self))
    }
}

/// What a plan says of a scan.
struct DisplayableScan<'s>(&'s Scan);

impl fmt::Display for DisplayableScan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DisplayableScan(this) = self;
        write!(f, "PentaglotScan: ")?;
        if let Work::Open { files, groups } = &this.work {
            let format = files.first().map_or("", |file| file.opened.format.info().id);
            let used: std::collections::BTreeSet<usize> =
                groups.iter().flatten().map(|part| part.file).collect();
            let names: Vec<_> = used.iter().take(5).map(|index| redacted(&files[*index].name)).collect();
            let more = if used.len() > names.len() {
                format!(" and {} more", used.len() - names.len())
            } else {
                String::new()
            };
            write!(f, "format={format}, files=[{}{more}], ", names.join(", "))?;
        }
        let columns: Vec<&str> = this.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let count = this.properties.partitioning.partition_count();
        write!(f, "partitions={count}, projection=[{}]", columns.join(", "))?;
        this.limit.map_or(Ok(()), |limit| write!(f, ", limit={limit}"))
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
        match &self.work {
            Work::Open { .. } => Vec::new(),
            Work::Named { input, .. } => vec![input],
        }
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> TheirResult<TreeNodeRecursion>,
    ) -> TheirResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> TheirResult<Arc<dyn ExecutionPlan>> {
        match (&self.work, children.pop()) {
            (Work::Named { rows, .. }, Some(input)) => {
                Ok(Arc::new(Scan::named(self.reader.clone(), input, self.limit, *rows)))
            }
            _ => Ok(self),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> TheirResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> TheirResult<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), 2);
        // With one thread, decoding does not overlap with what is done with the rows.
        let is_alone =
            matches!(self.work, Work::Open { .. }) && context.session_config().target_partitions() == 1;
        let (ask, asked) = is_alone.then(mpsc::channel).unzip();
        let mut output = Output {
            sender: builder.tx(),
            asked,
            is_asked: false,
            metrics: BaselineMetrics::new(&self.metrics, partition),
            left: self.limit.map_or(u64::MAX, |limit| limit as u64),
        };
        let reader = self.reader.clone();
        match &self.work {
            Work::Open { files, groups } => {
                let (files, parts) = (Arc::clone(files), groups[partition].clone());
                builder.spawn_blocking(move || {
                    for part in parts {
                        if !output.send(&reader, &files[part.file], &part.rows)? {
                            break;
                        }
                    }
                    Ok(())
                });
            }
            Work::Named { input, .. } => {
                let named = input.execute(partition, context)?;
                builder.spawn(async move {
                    let named = datafusion::physical_plan::common::collect(named).await?;
                    let read = tokio::task::spawn_blocking(move || {
                        let mut last: Option<(String, TableFile)> = None;
                        for part in parts::read(&named, reader.keys.len())? {
                            if last.as_ref().is_none_or(|(name, _)| *name != part.name) {
                                let opened = reader.open(&part);
                                let opened = opened.map_err(|error| {
                                    let name = redacted(&part.name).into_owned();
                                    reader.place.fault(error.in_input(name))
                                });
                                last = Some((part.name.clone(), opened?));
                            }
                            let Some((_, file)) = &last else { continue };
                            if !output.send(&reader, file, &part.rows)? {
                                break;
                            }
                        }
                        Ok(())
                    });
                    read.await.map_err(|error| DataFusionError::Execution(error.to_string()))?
                });
            }
        }
        Ok(match ask {
            Some(ask) => by_request(builder.build(), ask),
            None => builder.build(),
        })
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, partition: Option<usize>) -> TheirResult<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if let Some(rows) = self.known_rows(partition) {
            let rows = usize::try_from(rows).unwrap_or(usize::MAX);
            statistics.num_rows = match (&self.work, self.limit) {
                (_, Some(limit)) if rows > limit => Precision::Inexact(limit),
                (Work::Open { .. }, _) => Precision::Exact(rows),
                // A scheduler may have given only some of the partitions to this task.
                (Work::Named { .. }, _) => Precision::Inexact(rows),
            };
        }
        Ok(Arc::new(statistics))
    }
}

/// Where the batches of a partition go.
struct Output {
    sender: tokio::sync::mpsc::Sender<TheirResult<RecordBatch>>,
    /// Requests for a batch, if it is not decoded before it is asked for.
    asked: Option<mpsc::Receiver<()>>,
    /// Whether a batch was asked for that is not sent yet.
    is_asked: bool,
    metrics: BaselineMetrics,
    /// How many rows are still wanted.
    left: u64,
}

/// A stream that asks for each batch when it is wanted.
fn by_request(mut inner: SendableRecordBatchStream, ask: mpsc::Sender<()>) -> SendableRecordBatchStream {
    let (schema, mut is_asked) = (inner.schema(), false);
    let batches = futures::stream::poll_fn(move |context| {
        if !is_asked {
            // A reader that has ended takes no requests; what it sent is there.
            let _ = ask.send(());
            is_asked = true;
        }
        let next = inner.poll_next_unpin(context);
        is_asked = next.is_pending();
        next
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

impl Output {
    /// Waits until a batch is asked for; gives whether one is still wanted.
    fn wait(&mut self) -> bool {
        let Some(asked) = &self.asked else { return true };
        self.is_asked = self.is_asked || asked.recv().is_ok();
        self.is_asked
    }

    /// Reads rows of a file; gives whether more are wanted.
    fn send(&mut self, reader: &Reader, file: &TableFile, rows: &Range<u64>) -> TheirResult<bool> {
        let named = |error: Error| {
            reader.place.fault(error.in_format(file.opened.format.info().id).in_input(file.name.clone()))
        };
        if !self.wait() {
            return Ok(false);
        }
        let mut batches = reader.read(file, rows).map_err(named)?;
        while self.wait() {
            let Some(batch) = batches.next() else { return Ok(true) };
            let batch = batch.map_err(named)?;
            let batch =
                batch.slice(0, batch.num_rows().min(usize::try_from(self.left).unwrap_or(usize::MAX)));
            self.left -= batch.num_rows() as u64;
            self.metrics.record_output(batch.num_rows());
            // Nobody listens any longer: the query has ended.
            if self.sender.blocking_send(Ok(batch)).is_err() || self.left == 0 {
                return Ok(false);
            }
            self.is_asked = false;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Field;

    #[test]
    fn batches_of_short_rows_are_larger() {
        let rows = |kinds: &[DataType], rows: usize, limit| {
            let fields: Vec<Field> = kinds.iter().map(|kind| Field::new("x", kind.clone(), true)).collect();
            larger_batch(rows, &Schema::new(fields), limit)
        };
        assert_eq!(rows(&[DataType::Int64, DataType::Float64], 8192, None), 64 << 10);
        assert_eq!(rows(&[DataType::Int64], 8192, Some(10)), 8192);
        assert_eq!(rows(&[DataType::Int64], 100, None), 100);
        assert_eq!(rows(&[DataType::Int64, DataType::Utf8], 8192, None), 8192);
        assert_eq!(rows(&vec![DataType::Int64; 8], 8192, None), (2 << 20) / 65);
        assert_eq!(rows(&vec![DataType::Int64; 1000], 8192, None), 8192);
    }
}
