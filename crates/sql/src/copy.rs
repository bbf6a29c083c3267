//! `COPY … TO`: rows of a query become files, through the plan of a conversion.
//!
//! A folder is written beside its name and renamed when all its files are there. In a bucket, where nothing can be renamed,
//! its files are written in place and removed after a failure.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::prelude::{DataFrame, col};
use datafusion::sql::parser::{CopyToSource, CopyToStatement};
use datafusion::sql::sqlparser::ast::Value;
use pentaglot::formats::{OptionMap, WriteOptions, Writer};
use pentaglot::hub::{LossKinds, Rows};
use pentaglot::job::{self, Conversion, ConvertOptions};
use pentaglot::{Context, Error, Hint, Result, redacted};

use crate::engine::Engine;

/// Where rows go.
pub(crate) struct Target {
    name: String,
    format: job::Target,
    /// The extension of the files in a folder.
    extension: String,
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
        let format = match to {
            Some(text) => job::target(&shared.registry, text)?,
            None => match shared.registry.by_extension(name) {
                Some(format) => job::Target { format, dialect: None },
                None => {
                    let error =
                        Error::usage(format!("cannot tell a format from the name {:?}", redacted(name)));
                    return Err(error.hint(Hint::To));
                }
            },
        };
        let extension = format.format.info().extensions.first().copied().unwrap_or("data").to_owned();
        Ok(Target {
            name: name.to_owned(),
            is_folder: name.ends_with('/') || Path::new(name).is_dir(),
            format,
            extension,
            partitioned_by: Vec::new(),
            force: shared.options.force,
            allow_lossy: shared.options.allow_lossy,
            options: OptionMap::new(Vec::new()),
        })
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
    let mut rest = Vec::new();
    for (key, value) in given {
        match key.as_str() {
            "to" => {}
            "overwrite" => target.force |= parse_bool(&key, &value)?,
            "allow_lossy" if value == "true" => target.allow_lossy = LossKinds::ALL,
            "allow_lossy" if value == "false" => {}
            "allow_lossy" => target.allow_lossy = value.parse()?,
            _ => rest.push((key, value)),
        }
    }
    target.options = OptionMap::new(rest);
    target.is_folder |= !statement.partitioned_by.is_empty()
        || (statement.stored_as.is_some() && Path::new(&target.name).extension().is_none());
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
        let stream = engine.wait(async { frame.execute_stream().await })?;
        return file(engine, engine.reader(stream), target, &target.name, target.force);
    }
    let folder = Folder::create(engine, target)?;
    let written = match target.partitioned_by.is_empty() {
        true => parts(engine, frame, target, &folder),
        false => partitioned(engine, frame, target, &folder),
    };
    match written {
        Ok(rows) => folder.commit(target.force).map(|()| rows),
        Err(error) => {
            folder.remove(engine);
            Err(error)
        }
    }
}

/// One file, as a conversion writes it.
fn file(engine: &Engine, rows: Rows, target: &Target, name: &str, force: bool) -> Result<u64> {
    let mut options = ConvertOptions::default();
    options.open = engine.shared.options.open.clone();
    options.open.options = target.options.clone();
    options.allow_lossy = target.allow_lossy;
    let conversion =
        Conversion::plan_opened(engine.opened(rows)?, target.format.clone(), Some(name), &options)?;
    conversion.check()?;
    let report = conversion.run_to(&engine.shared.registry, name, force)?;
    Ok(report.rows)
}

/// A file for each partition of the plan, named by its number.
fn parts(engine: &Engine, frame: DataFrame, target: &Target, folder: &Folder) -> Result<u64> {
    let streams = engine.wait(async { frame.execute_stream_partitioned().await })?;
    let rows: Vec<Rows> = streams.into_iter().map(|stream| engine.reader(stream)).collect();
    std::thread::scope(|scope| {
        let threads = rows.into_iter().enumerate().map(|(number, rows)| {
            let name = folder.file(&format!("part-{number}.{}", target.extension));
            scope.spawn(move || file(engine, rows, target, &name, true))
        });
        let threads: Vec<_> = threads.collect();
        let mut total = 0;
        let mut failed = None;
        for thread in threads {
            match thread.join() {
                Ok(Ok(rows)) => total += rows,
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(_) => failed = failed.or_else(|| Some(Error::unsupported("a writer ended by a panic"))),
            }
        }
        failed.map_or(Ok(total), Err)
    })
}

/// Rows sorted by the partition columns: each run of equal values is a file in a folder of its own.
fn partitioned(engine: &Engine, frame: DataFrame, target: &Target, folder: &Folder) -> Result<u64> {
    let keys = &target.partitioned_by;
    let schema = frame.schema().as_arrow().clone();
    for key in keys {
        if schema.index_of(key).is_err() {
            return Err(Error::usage(format!("there is no column {key} to partition by")));
        }
    }
    if schema.fields().len() == keys.len() {
        return Err(Error::usage("every column is a partition column: no column is left for the files"));
    }
    let order =
        keys.iter().map(|key| col(datafusion::common::Column::new_unqualified(key)).sort(true, false));
    let sorted = frame.sort(order.collect()).map_err(crate::fault::ours)?;
    let stream = engine.wait(async { sorted.execute_stream().await })?;
    let rows = engine.reader(stream);
    let schema = rows.schema();
    let key_indices: Vec<usize> = keys.iter().filter_map(|key| schema.index_of(key).ok()).collect();
    let own: Vec<usize> = (0..schema.fields().len()).filter(|index| !key_indices.contains(index)).collect();
    let mut total = 0u64;
    let mut current: Option<(String, Box<dyn Writer>)> = None;
    let id = target.format.format.info().id;
    for batch in rows {
        let batch = batch.map_err(Error::from)?;
        let columns: Vec<_> = key_indices.iter().map(|index| Arc::clone(batch.column(*index))).collect();
        let runs = datafusion::arrow::compute::partition(&columns).map_err(Error::from)?;
        for run in runs.ranges() {
            let path = run_path(keys, &columns, run.start)?;
            let slice: RecordBatch =
                batch.slice(run.start, run.end - run.start).project(&own).map_err(Error::from)?;
            if current.as_ref().is_none_or(|(known, _)| *known != path) {
                if let Some((_, writer)) = current.take() {
                    writer.finish().in_format(id)?;
                }
                let name = folder.file(&format!("{path}/part-0.{}", target.extension));
                current = Some((path, start(engine, target, &name, &slice)?));
            }
            if let Some((_, writer)) = &mut current {
                writer.write(&slice).in_format(id)?;
            }
            total += slice.num_rows() as u64;
        }
    }
    if let Some((_, writer)) = current {
        writer.finish().in_format(id)?;
    }
    Ok(total)
}

/// The writer of one file of a partitioned folder.
fn start(engine: &Engine, target: &Target, name: &str, rows: &RecordBatch) -> Result<Box<dyn Writer>> {
    if let (None, Some(parent)) = (engine.shared.registry.remote(name)?, Path::new(name).parent()) {
        std::fs::create_dir_all(parent).map_err(|error| Error::io("cannot make a folder", error))?;
    }
    let mut options = WriteOptions::default();
    options.name = Some(name.to_owned());
    options.dialect = target.format.dialect.map(str::to_owned);
    options.options = target.options.clone();
    options.budget = engine.shared.options.open.budget.clone();
    options.control = engine.shared.options.open.control.clone();
    options.allow_lossy = target.allow_lossy;
    options.json = job::json_options();
    let id = target.format.format.info().id;
    let plan = target.format.format.plan(&rows.schema(), &options).in_format(id)?;
    plan.plan().check(target.allow_lossy).in_format(id)?;
    plan.create(job::create(&engine.shared.registry, name, true)?).in_format(id)
}

/// `key=value/…` of one row.
fn run_path(keys: &[String], columns: &[arrow_array::ArrayRef], row: usize) -> Result<String> {
    let folders = keys.iter().zip(columns).map(|(key, column)| {
        let value = ScalarValue::try_from_array(column, row).map_err(crate::fault::ours)?;
        let text = if value.is_null() {
            "__HIVE_DEFAULT_PARTITION__".to_owned()
        } else {
            encoded(&value.to_string())
        };
        Ok(format!("{}={text}", encoded(key)))
    });
    Ok(folders.collect::<Result<Vec<_>>>()?.join("/"))
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

/// A folder that is being written.
struct Folder {
    /// Where files go.
    place: String,
    /// What it becomes; `None` in a bucket.
    becomes: Option<PathBuf>,
}

impl Folder {
    fn create(engine: &Engine, target: &Target) -> Result<Self> {
        let name = target.name.trim_end_matches('/');
        if let Some(remote) = engine.shared.registry.remote(name)? {
            let there = remote.list(&format!("{name}/**/*"))?.unwrap_or_default();
            if !there.is_empty() && !target.force {
                return Err(exists(&target.name));
            }
            return Ok(Folder { place: name.to_owned(), becomes: None });
        }
        let path = PathBuf::from(name);
        if path.exists() && !target.force {
            return Err(exists(&target.name));
        }
        let place = format!("{name}.pentaglot-{}", std::process::id());
        std::fs::create_dir_all(&place)
            .map_err(|error| Error::io("cannot make a folder", error).in_output(&place))?;
        Ok(Folder { place, becomes: Some(path) })
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.place)
    }

    /// Gives the folder its name.
    fn commit(self, force: bool) -> Result<()> {
        let Some(path) = &self.becomes else { return Ok(()) };
        let cannot = |error| Error::io("cannot write", error).in_output(path.display().to_string());
        if force && path.exists() {
            let old = PathBuf::from(format!("{}-old", self.place));
            std::fs::rename(path, &old).map_err(cannot)?;
            std::fs::rename(&self.place, path).map_err(cannot)?;
            let removed =
                if old.is_dir() { std::fs::remove_dir_all(&old) } else { std::fs::remove_file(&old) };
            return removed.map_err(cannot);
        }
        std::fs::rename(&self.place, path).map_err(cannot)
    }

    /// Removes what a failed run wrote.
    fn remove(self, engine: &Engine) {
        match self.becomes {
            Some(_) => drop(std::fs::remove_dir_all(&self.place)),
            None => {
                if let Ok(Some(remote)) = engine.shared.registry.remote(&self.place) {
                    let listed = remote.list(&format!("{}/**/part-*", self.place));
                    for name in listed.ok().flatten().unwrap_or_default() {
                        let _ = remote.remove(&name);
                    }
                }
            }
        }
    }
}

fn exists(name: &str) -> Error {
    Error::usage("the folder exists already").in_output(name).hint(Hint::Force)
}
