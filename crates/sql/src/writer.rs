//! The node that writes: one file per partition of its input, named by the partition's number, so that a task that is run
//! again replaces what its first run wrote.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as TheirResult, ScalarValue};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use futures::StreamExt;
use pentaglot::formats::{OptionMap, WriteOptions, Writer};
use pentaglot::hub::{LossKinds, Rows, rows};
use pentaglot::job::{self, Conversion, ConvertOptions, OpenOptions};
use pentaglot::{Context, Error, Result};
use tokio::runtime::Handle;

use crate::answer::{as_opened, plain, plain_schema};
use crate::fault::ours;
use crate::place::Place;

/// What is written and where.
#[derive(Debug, Clone)]
pub(crate) struct CopySpec {
    /// The folder, which exists.
    pub(crate) folder: String,
    /// The format, with an optional dialect.
    pub(crate) to: String,
    /// The columns whose values are folders; the rows of a partition are sorted by them.
    pub(crate) partitioned_by: Vec<String>,
    pub(crate) allow_lossy: LossKinds,
    pub(crate) options: OptionMap,
}

impl CopySpec {
    /// How a conversion of these rows works.
    pub(crate) fn convert_options(&self, open: &OpenOptions) -> ConvertOptions {
        let mut options = ConvertOptions::default();
        options.open = open.clone();
        options.open.options = self.options.clone();
        options.allow_lossy = self.allow_lossy;
        options
    }

    /// A file of the folder.
    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.folder.trim_end_matches('/'))
    }
}

/// Writes its first input. The second has a row in each partition, the number of the partition: a task of a cluster gets
/// some partitions of both, and knows its numbers by no other way.
pub(crate) struct Copy {
    place: Arc<Place>,
    spec: CopySpec,
    input: Arc<dyn ExecutionPlan>,
    numbers: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for Copy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copy").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Numbers, one in each of so many partitions.
pub(crate) fn numbers(count: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = Arc::new(Schema::new(vec![Field::new("number", DataType::UInt64, false)]));
    let partitions = (0..count as u64).map(|number| {
        let column = Arc::new(UInt64Array::from(vec![number]));
        Ok(vec![RecordBatch::try_new(Arc::clone(&schema), vec![column])?])
    });
    let partitions = partitions.collect::<Result<Vec<_>>>()?;
    Ok(MemorySourceConfig::try_new_exec(&partitions, schema, None).map_err(ours)?)
}

/// What the node gives: the files that it wrote, relative to the folder.
fn written_schema() -> SchemaRef {
    let fields = vec![Field::new("file", DataType::Utf8, false), Field::new("rows", DataType::UInt64, false)];
    Arc::new(Schema::new(fields))
}

impl Copy {
    pub(crate) fn new(
        place: Arc<Place>,
        spec: CopySpec,
        input: Arc<dyn ExecutionPlan>,
        numbers: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        // Errs early if the format is not known here.
        job::target(&place.registry, &spec.to)?;
        let count = input.properties().partitioning.partition_count();
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(written_schema()),
            Partitioning::UnknownPartitioning(count),
            EmissionType::Final,
            Boundedness::Bounded,
        ));
        Ok(Copy { place, spec, input, numbers, properties })
    }

    pub(crate) fn spec(&self) -> &CopySpec {
        &self.spec
    }
}

impl DisplayAs for Copy {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PentaglotCopy: format={}", self.spec.to)
    }
}

impl ExecutionPlan for Copy {
    fn name(&self) -> &str {
        "PentaglotCopy"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input, &self.numbers]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
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
        let (Some(numbers), Some(input)) = (children.pop(), children.pop()) else { return Ok(self) };
        let copy = Copy::new(Arc::clone(&self.place), self.spec.clone(), input, numbers);
        Ok(Arc::new(copy.map_err(|error| self.place.fault(error))?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> TheirResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> TheirResult<SendableRecordBatchStream> {
        let mut numbers = self.numbers.execute(partition, Arc::clone(&context))?;
        let input = self.input.execute(partition, context)?;
        let mut builder = RecordBatchReceiverStreamBuilder::new(written_schema(), 1);
        let (sender, handle) = (builder.tx(), Handle::current());
        let (place, spec) = (Arc::clone(&self.place), self.spec.clone());
        builder.spawn_blocking(move || {
            let number = handle.block_on(numbers.next()).transpose()?;
            let number = number.and_then(|batch| number_of(&batch));
            let missing = || place.fault(Error::unsupported("a partition without a number"));
            let number = number.ok_or_else(missing)?;
            let closed = sender.clone();
            let rows = reader(input, handle, move || closed.is_closed());
            let task = Task { place: &place, spec: &spec, number };
            let written = task.write(rows).and_then(|written| batch(&written));
            let _ = sender.blocking_send(Ok(written.map_err(|error| place.fault(error))?));
            Ok(())
        });
        Ok(builder.build())
    }
}

fn number_of(batch: &RecordBatch) -> Option<u64> {
    let numbers = batch.columns().first()?.as_any().downcast_ref::<UInt64Array>()?;
    (!numbers.is_empty()).then(|| numbers.value(0))
}

fn batch(written: &[(String, u64)]) -> Result<RecordBatch> {
    let files: StringArray = written.iter().map(|(file, _)| Some(file.as_str())).collect();
    let rows: UInt64Array = written.iter().map(|(_, rows)| Some(*rows)).collect();
    Ok(RecordBatch::try_new(written_schema(), vec![Arc::new(files), Arc::new(rows)])?)
}

/// The batches of a stream on a thread that may block, until the receiver is dropped.
fn reader(
    mut stream: SendableRecordBatchStream,
    handle: Handle,
    is_abandoned: impl Fn() -> bool + Send + 'static,
) -> Rows {
    let schema = plain_schema(&stream.schema());
    let wanted = Arc::clone(&schema);
    let batches = std::iter::from_fn(move || {
        if is_abandoned() {
            return Some(Err(Error::cancelled()));
        }
        let next = handle.block_on(stream.next())?;
        Some(next.map_err(ours).and_then(|batch| plain(&batch, &wanted)))
    });
    rows::from_batches(schema, batches)
}

/// What one partition writes.
struct Task<'c> {
    place: &'c Place,
    spec: &'c CopySpec,
    number: u64,
}

impl Task<'_> {
    /// Writes the rows; gives the files and how many rows each has.
    fn write(&self, rows: Rows) -> Result<Vec<(String, u64)>> {
        self.place.output(&self.spec.folder)?;
        let target = job::target(&self.place.registry, &self.spec.to)?;
        let extension = target.format.info().extensions.first().copied().unwrap_or("data");
        let name = format!("part-{}.{extension}", self.number);
        if !self.spec.partitioned_by.is_empty() {
            return self.partitioned(rows, &target, &name);
        }
        let file = self.spec.file(&name);
        let options = self.spec.convert_options(&self.place.open);
        let opened = as_opened(&self.place.registry, rows, &self.place.open)?;
        let conversion = Conversion::plan_opened(opened, target, Some(&file), &options)?;
        conversion.check()?;
        let report = conversion.run_to(&self.place.registry, &file, true)?;
        Ok(vec![(name, report.rows)])
    }

    /// Each run of equal values of the partition columns is a file in a folder of its own.
    fn partitioned(&self, rows: Rows, target: &job::Target, name: &str) -> Result<Vec<(String, u64)>> {
        let schema = rows.schema();
        let keys = &self.spec.partitioned_by;
        let key_indices = keys.iter().map(|key| schema.index_of(key)).collect::<Result<Vec<_>, _>>()?;
        let own: Vec<usize> =
            (0..schema.fields().len()).filter(|index| !key_indices.contains(index)).collect();
        let mut written: Vec<(String, u64)> = Vec::new();
        let mut current: Option<Box<dyn Writer>> = None;
        let id = target.format.info().id;
        for batch in rows {
            let batch = batch.map_err(Error::from)?;
            let columns: Vec<_> = key_indices.iter().map(|index| Arc::clone(batch.column(*index))).collect();
            let runs = datafusion::arrow::compute::partition(&columns).map_err(Error::from)?;
            for run in runs.ranges() {
                let folders = folders(keys, &columns, run.start)?;
                let file = format!("{}/{name}", folders.join("/"));
                let slice = batch.slice(run.start, run.end - run.start).project(&own).map_err(Error::from)?;
                if written.last().is_none_or(|(known, _)| *known != file) {
                    if let Some(writer) = current.take() {
                        writer.finish().in_format(id)?;
                    }
                    self.make_folders(&folders)?;
                    current = Some(self.start(target, &self.spec.file(&file), &slice)?);
                    written.push((file, 0));
                }
                if let (Some(writer), Some((_, rows))) = (&mut current, written.last_mut()) {
                    writer.write(&slice).in_format(id)?;
                    *rows += slice.num_rows() as u64;
                }
            }
        }
        if let Some(writer) = current {
            writer.finish().in_format(id)?;
        }
        Ok(written)
    }

    /// Makes folders below the target's, which itself is never made here: when it is gone, the query has ended.
    fn make_folders(&self, folders: &[String]) -> Result<()> {
        if self.place.registry.remote(&self.spec.folder)?.is_some() {
            return Ok(());
        }
        let mut path = Path::new(&self.spec.folder).to_path_buf();
        for folder in folders {
            path.push(folder);
            match std::fs::create_dir(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    let name = path.display().to_string();
                    return Err(Error::io("cannot make a folder", error).in_output(name));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The writer of one file.
    fn start(&self, target: &job::Target, name: &str, rows: &RecordBatch) -> Result<Box<dyn Writer>> {
        let mut options = WriteOptions::default();
        options.name = Some(name.to_owned());
        options.dialect = target.dialect.map(str::to_owned);
        options.options = self.spec.options.clone();
        options.budget = self.place.open.budget.clone();
        options.control = self.place.open.control.clone();
        options.allow_lossy = self.spec.allow_lossy;
        options.json = job::json_options();
        let id = target.format.info().id;
        let plan = target.format.plan(&rows.schema(), &options).in_format(id)?;
        plan.plan().check(self.spec.allow_lossy).in_format(id)?;
        plan.create(job::create(&self.place.registry, name, true)?).in_format(id)
    }
}

/// `key=value` of each partition column of one row.
fn folders(keys: &[String], columns: &[arrow_array::ArrayRef], row: usize) -> Result<Vec<String>> {
    let folders = keys.iter().zip(columns).map(|(key, column)| {
        let value = ScalarValue::try_from_array(column, row).map_err(ours)?;
        let text = if value.is_null() {
            "__HIVE_DEFAULT_PARTITION__".to_owned()
        } else {
            encoded(&value.to_string())
        };
        Ok(format!("{}={text}", encoded(key)))
    });
    folders.collect()
}

/// Text as the name of a folder.
fn encoded(text: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet =
        &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b' ').remove(b':');
    match text {
        "" | "." | ".." => text.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        _ => percent_encoding::utf8_percent_encode(text, KEPT).to_string(),
    }
}
