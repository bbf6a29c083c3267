//! `COPY … TO`: rows of a query become files, through the plan of a conversion.
//!
//! A folder is written beside its name, in a plan of which each partition writes one file (`writer`), and renamed when all
//! its files are there. In a bucket, where nothing can be renamed, its files are written in place and removed after a failure.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::{DataType, Schema, SortOptions};
use datafusion::common::Result as TheirResult;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PhysicalExpr};
use datafusion::prelude::DataFrame;
use datafusion::sql::parser::{CopyToSource, CopyToStatement};
use datafusion::sql::sqlparser::ast::Value;
use pentaglot::formats::OptionMap;
use pentaglot::hub::{LossKinds, Rows, rows};
use pentaglot::job::{self, Conversion, ConvertOptions};
use pentaglot::{Error, ErrorKind, Hint, Result, redacted};

use crate::answer::{as_opened, plain_schema};
use crate::engine::Engine;
use crate::fault::ours;
use crate::place::absolute;
use crate::writer::{self, Copy, CopySpec};

/// Where rows go.
pub(crate) struct Target {
    name: String,
    format: job::Target,
    /// The extension of the files in a folder.
    extension: String,
    /// Whether it is neither a file nor a folder, but a table such as a collection.
    is_table: bool,
    is_folder: bool,
    partitioned_by: Vec<String>,
    force: bool,
    allow_lossy: LossKinds,
    options: OptionMap,
}

impl Target {
    /// A file, or a folder if the name ends with `/`; the format is named, or the extension says it.
    pub(crate) fn new(engine: &Engine, name: &str, to: Option<&str>) -> Result<Self> {
        let shared = &engine.shared;
        let mut options = ConvertOptions::default();
        options.to = to.map(ToOwned::to_owned);
        let (format, options) = job::output_target(&shared.place.registry, name, &options)?;
        let remote = shared.place.registry.remote(name)?;
        let is_table = remote.map(|remote| remote.table_format(name)).transpose()?.flatten().is_some();
        let extension = format.format.info().extensions.first().copied().unwrap_or("data").to_owned();
        Ok(Target {
            name: name.to_owned(),
            is_table,
            is_folder: !is_table && (name.ends_with('/') || Path::new(name).is_dir()),
            format,
            extension,
            partitioned_by: Vec::new(),
            force: shared.options.force,
            allow_lossy: shared.options.allow_lossy,
            options: options.open.options,
        })
    }

    /// What a node writes; the folder is not known yet.
    fn spec(&self) -> CopySpec {
        let id = self.format.format.info().id;
        CopySpec {
            folder: String::new(),
            to: self.format.dialect.map_or_else(|| id.to_owned(), |dialect| format!("{id}:{dialect}")),
            partitioned_by: self.partitioned_by.clone(),
            allow_lossy: self.allow_lossy,
            options: self.options.clone(),
        }
    }
}

/// Runs a `COPY` statement; gives the number of rows.
pub(crate) fn run(engine: &Engine, statement: CopyToStatement) -> Result<u64> {
    let stored_as = statement.stored_as.as_deref().map(|word| match word.to_lowercase().as_str() {
        "ndjson" => "jsonl".to_owned(),
        "arrow_stream" => "arrow-stream".to_owned(),
        other => other.to_owned(),
    });
    let given: Vec<(String, String)> = statement
        .options
        .iter()
        .map(|(key, value)| (key.strip_prefix("format.").unwrap_or(key).to_owned(), text(value)))
        .collect();
    let to = given.iter().find(|(key, _)| key == "to").map(|(_, value)| value.clone()).or(stored_as);
    let mut target = Target::new(engine, &statement.target, to.as_deref())?;
    for (key, value) in given {
        match key.as_str() {
            "to" => {}
            "overwrite" => target.force |= parse_bool(&key, &value)?,
            "allow_lossy" if value == "true" => target.allow_lossy = LossKinds::ALL,
            "allow_lossy" if value == "false" => {}
            "allow_lossy" => target.allow_lossy = value.parse()?,
            _ => {
                target.options.remove(&format!("out.{key}"));
                target.options.set(key, value);
            }
        }
    }
    let is_partitioned = !statement.partitioned_by.is_empty();
    if target.is_table && is_partitioned {
        return Err(
            Error::unsupported("a collection whose rows are partitioned").in_output(redacted(&target.name))
        );
    }
    let has_extension = Path::new(&target.name).extension().is_some();
    target.is_folder |=
        is_partitioned || (statement.stored_as.is_some() && !has_extension && !target.is_table);
    target.partitioned_by = statement.partitioned_by;
    let query = match statement.source {
        CopyToSource::Relation(name) => format!("SELECT * FROM {name}"),
        CopyToSource::Query(query) => query.to_string(),
    };
    write(engine, engine.frame(&query)?, &target)
}

fn text(value: &Value) -> String {
    match value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
        other => other.to_string(),
    }
}

fn parse_bool(key: &str, value: &str) -> Result<bool> {
    value
        .to_lowercase()
        .parse()
        .map_err(|_| Error::usage(format!("{key}: expected true or false, found {value}")))
}

/// Writes the rows of a query; gives their number.
pub(crate) fn write(engine: &Engine, frame: DataFrame, target: &Target) -> Result<u64> {
    if !target.is_folder {
        let stream = engine.stream(frame)?;
        return file(engine, engine.reader(stream), target);
    }
    let plan = engine.wait(async { frame.create_physical_plan().await })?;
    let mut spec = target.spec();
    check(engine, &plan.schema(), target, &spec)?;
    let folder = Folder::create(engine, target)?;
    spec.folder.clone_from(&folder.place);
    let written = plan_writing(engine, plan, spec).and_then(|plan| engine.collect(plan));
    let written = written.and_then(|batches| files(&batches));
    match written.and_then(|files| folder.commit(engine, &files, target.force).map(|()| files)) {
        Ok(files) => Ok(files.iter().map(|(_, rows)| rows).sum()),
        Err(error) => {
            folder.remove(engine);
            Err(error)
        }
    }
}

/// One file, as a conversion writes it.
fn file(engine: &Engine, rows: Rows, target: &Target) -> Result<u64> {
    let place = &engine.shared.place;
    let options = target.spec().convert_options(&place.open);
    let opened = as_opened(&place.registry, rows, &place.open)?;
    let conversion = Conversion::plan_opened(opened, target.format.clone(), Some(&target.name), &options)?;
    // The query has no name by which an error could say what cannot be written.
    let of_output = |error: Error| match error.kind() {
        ErrorKind::Lossy | ErrorKind::Unsupported => error.in_output(redacted(&target.name)),
        _ => error,
    };
    conversion.check().map_err(of_output)?;
    let report = conversion.run_to(&place.registry, &target.name, target.force).map_err(of_output)?;
    Ok(report.rows)
}

/// Errs if rows of this schema cannot be written, before anything is.
fn check(engine: &Engine, schema: &Schema, target: &Target, spec: &CopySpec) -> Result<()> {
    let keys = &spec.partitioned_by;
    for key in keys {
        if schema.index_of(key).is_err() {
            return Err(Error::usage(format!("there is no column {key} to partition by")));
        }
    }
    for field in schema.fields().iter().filter(|field| keys.contains(field.name())) {
        if !is_key(field.data_type()) {
            let (name, kind) = (field.name(), field.data_type());
            return Err(Error::lossy(format!(
                "column {name} cannot be the name of a folder: {kind} would come back as another type"
            ))
            .hint(Hint::Advice("cast it to a text, a whole number or a date".into())));
        }
    }
    if spec.options.get("split-rows").is_some() {
        return Err(Error::usage(
            "option split-rows is for one file: each partition of a query writes its own",
        ));
    }
    let own = schema.fields().iter().filter(|field| !keys.contains(field.name())).cloned();
    let own: Vec<_> = own.collect();
    if own.is_empty() && !keys.is_empty() {
        return Err(Error::usage("every column is a partition column: no column is left for the files"));
    }
    let rows = rows::from_batches(plain_schema(&Schema::new(own)), std::iter::empty());
    let place = &engine.shared.place;
    let options = spec.convert_options(&place.open);
    let opened = as_opened(&place.registry, rows, &place.open)?;
    let name = format!("{}part-0.{}", target.name, target.extension);
    Conversion::plan_opened(opened, target.format.clone(), Some(&name), &options)?.check()
}

/// Whether values of a type are the same when they are read from the name of a folder.
fn is_key(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => is_key(value),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => true,
        DataType::Date32 | DataType::Null => true,
        other => other.is_integer(),
    }
}

/// The plan that writes what another plan gives.
fn plan_writing(
    engine: &Engine,
    mut plan: Arc<dyn ExecutionPlan>,
    spec: CopySpec,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let keys = spec.partitioned_by.iter().map(|key| col(key, &schema));
    let keys: Vec<Arc<dyn PhysicalExpr>> = keys.collect::<TheirResult<_>>().map_err(ours)?;
    let count = plan.properties().partitioning.partition_count();
    if count > 1 && !keys.is_empty() {
        // Each combination of values is in one partition, and so in one file.
        let partitioning = Partitioning::Hash(keys.clone(), count);
        plan = Arc::new(RepartitionExec::try_new(plan, partitioning).map_err(ours)?);
    }
    let order = keys.into_iter().map(|key| {
        let options = SortOptions { descending: false, nulls_first: false };
        PhysicalSortExpr::new(key, options)
    });
    if let Some(order) = LexOrdering::new(order) {
        plan = Arc::new(SortExec::new(order, plan).with_preserve_partitioning(true));
    }
    let numbers = writer::numbers(count)?;
    Ok(Arc::new(Copy::new(Arc::clone(&engine.shared.place), spec, plan, numbers)?))
}

/// The files that were written, and how many rows each has.
fn files(batches: &[RecordBatch]) -> Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    for batch in batches {
        let names = batch.column(0).as_string_opt::<i32>();
        let rows = batch.column(1).as_primitive_opt::<UInt64Type>();
        let (Some(names), Some(rows)) = (names, rows) else {
            return Err(Error::unsupported("an answer that does not name files"));
        };
        files.extend(
            names
                .iter()
                .zip(rows)
                .map(|(name, rows)| (name.unwrap_or_default().to_owned(), rows.unwrap_or_default())),
        );
    }
    Ok(files)
}

/// A folder that is being written.
struct Folder {
    /// Where files go.
    place: String,
    target: Becomes,
}

enum Becomes {
    /// A folder beside, which gets this name in the end.
    Path(PathBuf),
    /// Objects in their final place; those that were there before.
    Objects(Vec<String>),
}

impl Folder {
    fn create(engine: &Engine, target: &Target) -> Result<Self> {
        let name = target.name.trim_end_matches('/');
        if let Some(remote) = engine.shared.place.registry.remote(name)? {
            let there = remote.list(&format!("{name}/**/*"))?.unwrap_or_default();
            if !there.is_empty() && !target.force {
                return Err(exists(&target.name));
            }
            return Ok(Folder { place: name.to_owned(), target: Becomes::Objects(there) });
        }
        let name = absolute(name)?;
        let path = PathBuf::from(&name);
        if path.exists() && !target.force {
            return Err(exists(&target.name));
        }
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let job = now.map_or(0, |now| now.as_nanos()) ^ (u128::from(std::process::id()) << 64);
        let place = format!("{name}.pentaglot-{job:x}");
        let made = match Path::new(&place).parent() {
            Some(parent) => std::fs::create_dir_all(parent).and_then(|()| std::fs::create_dir(&place)),
            None => std::fs::create_dir(&place),
        };
        made.map_err(|error| Error::io("cannot make a folder", error).in_output(&place))?;
        Ok(Folder { place, target: Becomes::Path(path) })
    }

    /// Gives the folder its name, with these files and no others.
    fn commit(&self, engine: &Engine, files: &[(String, u64)], force: bool) -> Result<()> {
        let path = match &self.target {
            Becomes::Path(path) => path,
            Becomes::Objects(before) => {
                let written: HashSet<String> =
                    files.iter().map(|(file, _)| format!("{}/{file}", self.place)).collect();
                let old = before.iter().filter(|name| !written.contains(*name));
                return remove_objects(engine, old);
            }
        };
        let cannot = |error| Error::io("cannot write", error).in_output(path.display().to_string());
        // A task that was run again may have left files of its first run.
        let mut there = Vec::new();
        walk(Path::new(&self.place), &mut there).map_err(cannot)?;
        let written: HashSet<PathBuf> =
            files.iter().map(|(file, _)| Path::new(&self.place).join(file)).collect();
        for file in there.iter().filter(|file| !written.contains(*file) && !is_beside(file, &written)) {
            std::fs::remove_file(file).map_err(cannot)?;
        }
        if let Some(missing) = written.iter().find(|file| !there.contains(file)) {
            let text =
                format!("{} was written, but it is not there: is the storage shared?", missing.display());
            return Err(Error::usage(text));
        }
        if !path.exists() {
            return std::fs::rename(&self.place, path).map_err(cannot);
        }
        if !force {
            return Err(exists(&path.display().to_string()));
        }
        let old = PathBuf::from(format!("{}-old", self.place));
        std::fs::rename(path, &old).map_err(cannot)?;
        std::fs::rename(&self.place, path).map_err(cannot)?;
        let removed = if old.is_dir() { std::fs::remove_dir_all(&old) } else { std::fs::remove_file(&old) };
        removed.map_err(cannot)
    }

    /// Removes what a failed run wrote. The folder loses its name first: a task that still runs cannot add to it then.
    fn remove(&self, engine: &Engine) {
        match &self.target {
            Becomes::Path(_) => {
                let gone = format!("{}-failed", self.place);
                if std::fs::rename(&self.place, &gone).is_ok() {
                    drop(std::fs::remove_dir_all(&gone));
                }
            }
            Becomes::Objects(before) => {
                if let Ok(Some(remote)) = engine.shared.place.registry.remote(&self.place) {
                    let listed = remote.list(&format!("{}/**/part-*", self.place)).ok().flatten();
                    let listed = listed.unwrap_or_default();
                    drop(remove_objects(engine, listed.iter().filter(|name| !before.contains(name))));
                }
            }
        }
    }
}

fn remove_objects<'n>(engine: &Engine, names: impl Iterator<Item = &'n String>) -> Result<()> {
    for name in names {
        if let Some(remote) = engine.shared.place.registry.remote(name)? {
            remote.remove(name)?;
        }
    }
    Ok(())
}

/// All files below a folder.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a file belongs to one of these, such as `x.dbdf.meta` to `x.dbdf`.
fn is_beside(file: &Path, files: &HashSet<PathBuf>) -> bool {
    let is_side = file.extension().is_some_and(|extension| extension == "meta" || extension == "idx");
    is_side && files.contains(&file.with_extension(""))
}

fn exists(name: &str) -> Error {
    Error::usage("the folder exists already").in_output(name).hint(Hint::Force)
}
