//! Long tasks, which run in the background; the page polls their progress.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pentaglot::formats::Findings;
use pentaglot::job::{self, View};
use pentaglot::{Control, Result};
use serde_json::{Value, json};

use crate::State;

/// The work on one file, by name.
#[derive(Default)]
pub(crate) struct Work(Mutex<HashMap<String, Arc<Task>>>);

struct Task {
    control: Control,
    result: OnceLock<std::result::Result<String, String>>,
}

impl Work {
    /// The state of the task of this name, which is started if it is new.
    fn ask(
        &self,
        name: &str,
        control: &Control,
        work: impl FnOnce() -> Result<String> + Send + 'static,
    ) -> String {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let task = match tasks.get(name) {
            Some(task) => Arc::clone(task),
            None => {
                let task = Arc::new(Task { control: control.clone(), result: OnceLock::new() });
                tasks.insert(name.to_owned(), Arc::clone(&task));
                let own = Arc::clone(&task);
                let run = move || drop(own.result.set(work().map_err(|error| error.to_string())));
                if std::thread::Builder::new().spawn(run).is_err() {
                    let _ = task.result.set(Err("cannot start a thread".to_owned()));
                }
                task
            }
        };
        drop(tasks);
        match task.result.get() {
            Some(Ok(result)) => format!("{{\"state\":\"done\",\"result\":{result}}}"),
            Some(Err(message)) => json!({ "state": "failed", "error": message }).to_string(),
            None => {
                let progress = task.control.progress();
                json!({ "state": "running", "bytes": progress.bytes, "total": progress.total_bytes, "rows": progress.rows })
                    .to_string()
            }
        }
    }
}

/// Statistics of a column, or of the whole document if no column is named.
pub(crate) fn describe(state: &Arc<State>, index: &str, column: Option<&str>) -> Result<String> {
    let own = state.files.get(index)?;
    let name = format!("describe {}", column.unwrap_or(""));
    let options = own.open_options(state);
    let control = options.control.clone();
    let (shared, path) = (Arc::clone(state), own.name.clone());
    let mut view = View::default();
    view.columns = column.map(|column| vec![column.to_owned()]);
    Ok(own.work.ask(&name, &control, move || {
        let opened = job::open(&shared.registry, &path, &options)?;
        Ok(opened.describe(&view)?.to_json())
    }))
}

/// Every finding.
pub(crate) fn validate(state: &Arc<State>, index: &str) -> Result<String> {
    let own = state.files.get(index)?;
    let options = own.open_options(state);
    let control = options.control.clone();
    let (shared, path) = (Arc::clone(state), own.name.clone());
    Ok(own.work.ask("validate", &control, move || {
        let mut findings = Findings::new(false);
        let format = job::validate(&shared.registry, &path, &options, &mut findings)?;
        let list: Vec<Value> = findings
            .list()
            .iter()
            .map(|finding| {
                json!({
                    "severity": finding.severity.name(), "rule": finding.rule, "offset": finding.offset,
                    "path": finding.path, "message": finding.message,
                })
            })
            .collect();
        let valid = findings.is_valid();
        Ok(json!({ "format": format, "valid": valid, "findings": list, "more": findings.more() }).to_string())
    }))
}

/// The number of rows; for a broken file, of those before the error.
pub(crate) fn count(state: &Arc<State>, index: &str) -> Result<String> {
    let own = state.files.get(index)?;
    let options = own.open_options(state);
    let control = options.control.clone();
    let (shared, path) = (Arc::clone(state), own.name.clone());
    Ok(own.work.ask("count", &control, move || {
        let opened = job::open(&shared.registry, &path, &options)?;
        let mut rows = 0;
        // With no columns selected, batches have only a number of rows.
        let mut view = View::default();
        view.columns = Some(Vec::new());
        for batch in opened.rows(&view)? {
            match batch {
                Ok(batch) => rows += batch.num_rows() as u64,
                Err(error) => {
                    let error = pentaglot::Error::from(error).to_string();
                    return Ok(json!({ "rows": rows, "error": error }).to_string());
                }
            }
        }
        Ok(json!({ "rows": rows }).to_string())
    }))
}
