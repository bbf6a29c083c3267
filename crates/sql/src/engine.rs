//! The engine: a session of DataFusion whose tables are files.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use async_trait::async_trait;
use datafusion::catalog::{
    DynamicFileCatalog, Session, TableProvider, TableProviderFactory, UrlTableFactory,
};
use datafusion::common::Result as TheirResult;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{CreateExternalTable, LogicalPlan};
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart, visit_relations_mut};
use futures::{StreamExt, TryStreamExt};
use pentaglot::hub::{LossKinds, Rows, rows};
use pentaglot::job::{OpenOptions, Opened};
use pentaglot::{Control, Error, Registry, Result, redacted};
use tokio::runtime::Runtime;

use crate::answer::{as_opened, plain, plain_schema};
use crate::fault::{is_of_parquet, ours, theirs};
use crate::place::Place;
use crate::scan::Scan;
use crate::table::{self, TableOptions, table_options};
use crate::their_files::TheirFiles;
use crate::writer::Copy;
use crate::{copy, functions, nested, summarize};

/// Partitions of plans for a cluster, unless a number of threads is given.
const CLUSTER_PARTITIONS: usize = 16;

/// How an engine works.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct EngineOptions {
    /// How files are opened. The limits of its budget are those of the engine: what a query holds past `max_alloc` is
    /// spilled to disk. Its control cancels queries.
    pub open: OpenOptions,
    /// Threads (0: as many as there are cores).
    pub threads: usize,
    /// Rows per batch (0 or 8192: more where rows are short and of fixed width).
    pub batch_rows: usize,
    /// Whether outputs replace what exists.
    pub force: bool,
    /// What outputs may lose.
    pub allow_lossy: LossKinds,
    /// Where queries over files run, if not in this process.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// How long a statement may take.
    pub deadline: Option<Duration>,
}

/// Other processes that run plans.
#[async_trait]
pub trait Cluster: fmt::Debug + Send + Sync {
    /// Makes the settings of a session those that plans for these processes need.
    fn configure(&self, config: SessionConfig) -> SessionConfig;

    /// Runs a plan, whose nodes [`wire`](crate::wire) can encode, and gives its rows.
    async fn execute(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> TheirResult<SendableRecordBatchStream>;

    /// Ends what runs.
    async fn cancel(&self);
}

/// What a statement gives.
pub enum Answer {
    /// Rows, to be read once.
    Rows(Opened),
    /// So many rows were written.
    Written(u64),
    /// Nothing to show.
    Done,
}

/// A session: tables, settings, threads.
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    context: SessionContext,
    runtime: Arc<Runtime>,
    /// Cancels what runs now.
    control: Mutex<Control>,
    /// When the statement that runs now must have ended.
    until: Mutex<Option<Instant>>,
}

/// What tables and functions need.
pub(crate) struct Shared {
    pub(crate) place: Arc<Place>,
    pub(crate) options: EngineOptions,
    /// The session as it was at the beginning, for what DataFusion reads itself.
    state: OnceLock<SessionState>,
    /// From addresses as they are shown to those that were given.
    real: Mutex<HashMap<String, String>>,
    /// What DataFusion reads itself in the plan that runs now.
    theirs: Mutex<TheirFiles>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine over these formats and places.
    pub fn new(registry: Registry, options: EngineOptions) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if options.threads == 0 { cores } else { options.threads };
        let cannot = |error| Error::io("cannot start threads", error);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            // Plans of long statements nest deeply.
            .thread_stack_size(8 << 20)
            .enable_all()
            .build()
            .map_err(cannot)?;
        let mut config = SessionConfig::new().with_target_partitions(threads).with_information_schema(true);
        if options.batch_rows > 0 {
            config = config.with_batch_size(options.batch_rows);
        }
        if let Some(cluster) = &options.cluster {
            // Executors have cores of their own: as many as this process has says nothing.
            let partitions = if options.threads == 0 { CLUSTER_PARTITIONS } else { options.threads };
            config = cluster.configure(config.with_target_partitions(partitions));
        }
        let settings = config.options_mut();
        settings.execution.parquet.schema_force_view_types = false;
        settings.sql_parser.map_string_types_to_utf8view = false;
        let room = usize::try_from(options.open.budget.limits().max_alloc).unwrap_or(usize::MAX);
        let memory = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(room)));
        let mut state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(memory.build_arc().map_err(ours)?)
            .with_default_features()
            .build();
        let place = Arc::new(Place::here(registry, options.open.clone()));
        let shared = Arc::new(Shared {
            place,
            options,
            state: OnceLock::new(),
            real: Mutex::default(),
            theirs: Mutex::default(),
        });
        for format in shared.place.registry.formats() {
            let id = format.info().id;
            let factory = Arc::new(Tables { shared: Arc::clone(&shared), format: id.to_owned() });
            state.table_factories_mut().insert(id.to_uppercase(), factory);
        }
        for (word, id) in [("NDJSON", "jsonl"), ("ARROW_STREAM", "arrow-stream")] {
            let factory = Arc::new(Tables { shared: Arc::clone(&shared), format: id.to_owned() });
            state.table_factories_mut().insert(word.to_owned(), factory);
        }
        let context = SessionContext::new_with_state(state);
        let _ = shared.state.set(context.state());
        let names = Arc::new(Names { shared: Arc::clone(&shared) });
        let inner = Arc::clone(context.state().catalog_list());
        let catalogs = Arc::new(DynamicFileCatalog::new(inner, names));
        let context: SessionContext = context.into_state_builder().with_catalog_list(catalogs).build().into();
        functions::register(&context, &shared.place);
        nested::register(&context).map_err(ours)?;
        let control = Mutex::new(shared.options.open.control.clone());
        Ok(Engine { shared, context, runtime: Arc::new(runtime), control, until: Mutex::default() })
    }

    /// Makes this control cancel the statements that are run from now on.
    pub fn follow(&self, control: Control) {
        *self.control.lock().unwrap_or_else(PoisonError::into_inner) = control;
    }

    fn control(&self) -> Control {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs one statement. The first rows of a query are there when this returns; it goes on while its rows are read.
    pub fn run(&self, statement: &str) -> Result<Answer> {
        self.start_clock();
        let statement = statement.trim().trim_end_matches(';').trim();
        if let Some(what) = summarized(statement) {
            let query = if is_query(what) { what.to_owned() } else { format!("SELECT * FROM {what}") };
            let stream = self.stream(self.frame(&query)?)?;
            let place = &self.shared.place;
            let opened = as_opened(&place.registry, self.reader(stream), &place.open)?;
            let rows = summarize::rows(&opened)?;
            return Ok(Answer::Rows(as_opened(&place.registry, rows, &place.open)?));
        }
        let parsed = self.parse(statement)?;
        if let Statement::CopyTo(copied) = parsed {
            return copy::run(self, copied).map(Answer::Written);
        }
        let (frame, is_shown) = self.wait(async {
            let plan = self.context.state().statement_to_plan(parsed).await?;
            let is_shown = !matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Statement(_));
            Ok((self.context.execute_logical_plan(plan).await?, is_shown))
        })?;
        if is_shown {
            return self.rows(frame);
        }
        self.wait(async { frame.collect().await })?;
        Ok(Answer::Done)
    }

    /// Runs a query and writes its rows to a file of any format; gives their number.
    pub fn write(&self, query: &str, name: &str, to: Option<&str>) -> Result<u64> {
        self.start_clock();
        let frame = self.frame(query)?;
        copy::write(self, frame, &copy::Target::new(self, name, to)?)
    }

    /// Whether a statement is a query, whose rows can be written.
    pub fn is_query(statement: &str) -> bool {
        is_query(statement)
    }

    /// The names of tables that were created, and of their columns.
    pub fn tables(&self) -> Vec<(String, Vec<String>)> {
        let state = self.context.state();
        let mut tables = Vec::new();
        for catalog in state.catalog_list().catalog_names() {
            let Some(catalog) = state.catalog_list().catalog(&catalog) else { continue };
            for schema in catalog.schema_names().iter().filter(|name| *name != "information_schema") {
                let Some(schema) = catalog.schema(schema) else { continue };
                for name in schema.table_names() {
                    let table = self.wait(async { schema.table(&name).await });
                    let Ok(Some(table)) = table else { continue };
                    let columns = table.schema().fields().iter().map(|field| field.name().clone()).collect();
                    tables.push((name, columns));
                }
            }
        }
        tables.sort();
        tables
    }

    /// A query, planned.
    pub(crate) fn frame(&self, query: &str) -> Result<DataFrame> {
        let parsed = self.parse(query)?;
        self.wait(async {
            let plan = self.context.state().statement_to_plan(parsed).await?;
            self.context.execute_logical_plan(plan).await
        })
    }

    /// A statement. Addresses in the place of tables have no secrets any more: plans and names of columns show them.
    fn parse(&self, text: &str) -> Result<Statement> {
        let dialect = self.context.state().config().options().sql_parser.dialect;
        let mut statement = self.context.state().sql_to_statement(text, &dialect).map_err(ours)?;
        self.hide(&mut statement);
        Ok(statement)
    }

    fn hide(&self, statement: &mut Statement) {
        let hide = |name: &mut ObjectName| {
            if let [ObjectNamePart::Identifier(word)] = &mut name.0[..] {
                word.value = self.shared.hidden(&word.value);
            }
            ControlFlow::<()>::Continue(())
        };
        match statement {
            Statement::Statement(statement) => {
                let _ = visit_relations_mut(&mut **statement, hide);
            }
            Statement::Explain(explained) => self.hide(&mut explained.statement),
            Statement::CopyTo(copied) => {
                if let CopyToSource::Query(query) = &mut copied.source {
                    let _ = visit_relations_mut(&mut **query, hide);
                }
            }
            _ => {}
        }
    }

    /// A query whose first rows are there, as a document.
    fn rows(&self, frame: DataFrame) -> Result<Answer> {
        let mut batches = self.reader(self.stream(frame)?);
        let schema = batches.schema();
        let first = batches.next().transpose().map_err(Error::from)?;
        let rest = batches.map(|batch| batch.map_err(Error::from));
        let rows = rows::from_batches(schema, first.into_iter().map(Ok).chain(rest));
        as_opened(&self.shared.place.registry, rows, &self.shared.options.open).map(Answer::Rows)
    }

    /// The batches of a query that has begun.
    pub(crate) fn stream(&self, frame: DataFrame) -> Result<SendableRecordBatchStream> {
        self.wait(async {
            let context = Arc::new(frame.task_ctx());
            self.execute(frame.create_physical_plan().await?, context).await
        })
    }

    /// All batches of a plan.
    pub(crate) fn collect(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>> {
        let context = self.context.task_ctx();
        self.wait(async { self.execute(plan, context).await?.try_collect().await })
    }

    /// Runs a plan: elsewhere if there is a cluster and the plan reads files or writes them.
    async fn execute(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> TheirResult<SendableRecordBatchStream> {
        let shows_a_plan = plan.is::<ExplainExec>() || plan.is::<AnalyzeExec>();
        match &self.shared.options.cluster {
            Some(cluster) if !shows_a_plan && is_for_others(&plan) => {
                cluster.execute(for_others(plan)?, context).await
            }
            _ => {
                let theirs = TheirFiles::of(&plan);
                *self.shared.theirs.lock().unwrap_or_else(PoisonError::into_inner) = theirs;
                execute_stream(plan, context)
            }
        }
    }

    /// From now on the time of a statement counts.
    fn start_clock(&self) {
        let until = self.shared.options.deadline.map(|time| Instant::now() + time);
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    fn watch(&self) -> Watch {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        Watch { control: self.control(), until, shared: Arc::clone(&self.shared) }
    }

    /// The batches of a stream, one after the other.
    pub(crate) fn reader(&self, stream: SendableRecordBatchStream) -> Rows {
        let schema = plain_schema(&stream.schema());
        let (runtime, wanted) = (Arc::clone(&self.runtime), Arc::clone(&schema));
        let watch = self.watch();
        let mut stream = stream;
        let batches = std::iter::from_fn(move || {
            let next = watch.wait(&runtime, async { stream.next().await.transpose() });
            next.and_then(|batch| batch.map(|batch| plain(&batch, &wanted)).transpose()).transpose()
        });
        rows::from_batches(schema, batches)
    }

    /// Waits for a task, until the job is cancelled.
    pub(crate) fn wait<T>(&self, task: impl Future<Output = TheirResult<T>>) -> Result<T> {
        self.watch().wait(&self.runtime, task)
    }
}

/// What may end a statement early.
struct Watch {
    control: Control,
    until: Option<Instant>,
    shared: Arc<Shared>,
}

impl Watch {
    fn wait<T>(&self, runtime: &Runtime, task: impl Future<Output = TheirResult<T>>) -> Result<T> {
        runtime.block_on(async {
            match self.until_done(task).await? {
                Ok(done) => Ok(done),
                Err(error) if is_of_parquet(&error) => Err(self.explain(error).await),
                Err(error) => Err(ours(error)),
            }
        })
    }

    /// What is wrong with a Parquet file that DataFusion reads itself, as our reader says it.
    async fn explain(&self, error: DataFusionError) -> Error {
        let files = self.shared.theirs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (place, control) = (Arc::clone(&self.shared.place), self.control.clone());
        let read = tokio::task::spawn_blocking(move || files.fault(&place, &control));
        match self.until_done(read).await {
            Ok(Ok(Some(fault))) => fault,
            Ok(_) => ours(error),
            Err(ended) => ended,
        }
    }

    /// Waits for a task, until something ends the statement early.
    async fn until_done<F: Future>(&self, task: F) -> Result<F::Output> {
        let mut task = pin!(task);
        loop {
            if let Ok(done) = tokio::time::timeout(Duration::from_millis(50), &mut task).await {
                return Ok(done);
            }
            if let Err(error) = self.check() {
                if let Some(cluster) = &self.shared.options.cluster {
                    let _ = tokio::time::timeout(Duration::from_secs(2), cluster.cancel()).await;
                }
                return Err(error);
            }
        }
    }

    fn check(&self) -> Result<()> {
        self.control.check()?;
        match self.until {
            Some(until) if Instant::now() >= until => {
                let seconds = self.shared.options.deadline.unwrap_or_default().as_secs();
                Err(Error::usage(format!(
                    "the deadline of {seconds} seconds has passed, and the query has not ended"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a plan reads or writes files.
fn is_for_others(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<Scan>() || plan.is::<Copy>() || plan.children().into_iter().any(is_for_others)
}

/// A plan whose scans name their files.
fn for_others(plan: Arc<dyn ExecutionPlan>) -> TheirResult<Arc<dyn ExecutionPlan>> {
    let named = plan.transform_up(|node| {
        Ok(match node.downcast_ref::<Scan>() {
            Some(scan) => Transformed::yes(Arc::new(scan.for_others().map_err(theirs)?)),
            None => Transformed::no(node),
        })
    });
    named.map(|plan| plan.data)
}

/// What `SUMMARIZE` is to describe.
fn summarized(statement: &str) -> Option<&str> {
    let word = statement.get(..10).filter(|word| word.eq_ignore_ascii_case("SUMMARIZE "))?;
    Some(statement[word.len()..].trim())
}

fn is_query(statement: &str) -> bool {
    let first =
        statement.trim_start_matches(['(', ' ', '\n', '\t']).split(|c: char| !c.is_alphabetic()).next();
    let words = ["SELECT", "WITH", "VALUES", "TABLE", "FROM"];
    first.is_some_and(|first| words.iter().any(|word| first.eq_ignore_ascii_case(word)))
}

impl Shared {
    /// An address as it may be shown, which leads back to it.
    fn hidden(&self, name: &str) -> String {
        let shown = redacted(name);
        let mut real = self.real.lock().unwrap_or_else(PoisonError::into_inner);
        if shown == name || real.contains_key(name) {
            return name.to_owned();
        }
        let (mut hidden, mut number) = (shown.to_string(), 2);
        while real.get(&hidden).is_some_and(|known| known != name) {
            hidden = format!("{shown}{number}");
            number += 1;
        }
        real.insert(hidden.clone(), name.to_owned());
        hidden
    }

    async fn table(&self, names: Vec<String>, options: TableOptions) -> TheirResult<Arc<dyn TableProvider>> {
        let state = self.state.get().expect("it is set when the engine is made");
        let is_local = self.options.cluster.is_none();
        table::provider(&self.place, names, options, state, is_local).await
    }
}

/// Quoted names in the place of tables.
#[derive(Debug)]
struct Names {
    shared: Arc<Shared>,
}

#[async_trait]
impl UrlTableFactory for Names {
    async fn try_new(&self, name: &str) -> TheirResult<Option<Arc<dyn TableProvider>>> {
        // A plain word that is no file is a table that is missing.
        if !name.contains(['.', '/', '*', ':']) && !std::path::Path::new(name).exists() {
            return Ok(None);
        }
        let options = TableOptions { open: self.shared.options.open.clone(), ..TableOptions::default() };
        let real = self.shared.real.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        self.shared.table(vec![real.unwrap_or_else(|| name.to_owned())], options).await.map(Some)
    }
}

/// `CREATE EXTERNAL TABLE … STORED AS FORMAT`.
#[derive(Debug)]
struct Tables {
    shared: Arc<Shared>,
    format: String,
}

#[async_trait]
impl TableProviderFactory for Tables {
    async fn create(
        &self,
        _: &dyn Session,
        command: &CreateExternalTable,
    ) -> TheirResult<Arc<dyn TableProvider>> {
        let given = command.options.clone();
        let mut options = table_options(&self.shared.options.open, Some(self.format.clone()), given);
        let declared = command.schema.fields().iter();
        let declared: HashMap<String, DataType> =
            declared.map(|field| (field.name().clone(), field.data_type().clone())).collect();
        options.declared = declared.clone();
        let table = self.shared.table(command.locations.clone(), options).await?;
        let schema = table.schema();
        for name in &command.table_partition_cols {
            if schema.field_with_name(name).is_err() {
                let text = format!("there is no partition column {name}: no folder is named {name}=VALUE");
                return Err(theirs(Error::usage(text)));
            }
        }
        for (name, kind) in &declared {
            match schema.field_with_name(name) {
                Ok(field) if field.data_type() == kind => {}
                Ok(field) => {
                    let text = format!(
                        "column {name} is declared as {kind}, but it is {} in the file",
                        field.data_type()
                    );
                    return Err(theirs(Error::usage(text)));
                }
                Err(_) => {
                    return Err(theirs(Error::usage(format!(
                        "column {name} is declared, but the file has none"
                    ))));
                }
            }
        }
        Ok(table)
    }
}
