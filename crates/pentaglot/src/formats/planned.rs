//! [`planned`]: a [`WritePlan`] from its steps and a function that creates the writer.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;

use super::nan::nulls_as_nan;
use super::{WriteOptions, WritePlan, Writer, Written};
use crate::error::Result;
use crate::hub::relax::Rules;
use crate::hub::{LossKind, LossKinds, LossRecord, Plan};
use crate::sink::Sink;

/// A plan whose writer is created by `create`. Results of planning are moved into `create`, so that nothing is
/// computed twice. A plan with an impossible step is never started.
pub(crate) fn planned(
    plan: Plan,
    create: impl FnOnce(Sink) -> Result<Box<dyn Writer>> + Send + 'static,
) -> Box<dyn WritePlan> {
    planned_as(None, plan, create)
}

/// As [`planned`], of a dialect that the name of the output decides.
pub(crate) fn planned_as(
    dialect: Option<&'static str>,
    plan: Plan,
    create: impl FnOnce(Sink) -> Result<Box<dyn Writer>> + Send + 'static,
) -> Box<dyn WritePlan> {
    Box::new(Planned { plan, dialect, create })
}

/// The rows of the last call of [`Writer::write`] as its rules changed them, for who compares them with what is read
/// back. Clones share one place; by default nothing is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangedRows(Option<Arc<Mutex<Option<RecordBatch>>>>);

impl ChangedRows {
    /// A place that keeps rows.
    #[cfg(feature = "dynd")]
    pub(crate) fn kept() -> Self {
        ChangedRows(Some(Arc::default()))
    }

    fn put(&self, rows: &RecordBatch) {
        if let Some(place) = &self.0 {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(rows.clone());
        }
    }

    /// The rows, if the last ones were changed.
    #[cfg(feature = "dynd")]
    pub(crate) fn take(&self) -> Option<RecordBatch> {
        self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A writer that first applies `rules` to values that do not fit, as far as the options allow it.
pub(crate) fn relaxed(writer: Box<dyn Writer>, rules: Rules, options: &WriteOptions) -> Box<dyn Writer> {
    match allowed(rules, options) {
        Some(rules) => {
            let (lost, changed) = (options.lost.clone(), options.changed.clone());
            Box::new(Relaxed { writer, rules, lost, changed })
        }
        None => writer,
    }
}

/// The rules that the options allow, if there are any.
pub(crate) fn allowed(rules: Rules, options: &WriteOptions) -> Option<Rules> {
    let nulls = if nulls_as_nan(&options.options) { LossKind::Nulls.into() } else { LossKinds::NONE };
    rules.allowed(options.allow_lossy | nulls)
}

struct Relaxed {
    writer: Box<dyn Writer>,
    rules: Rules,
    lost: LossRecord,
    changed: ChangedRows,
}

impl Writer for Relaxed {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        let rows = self.rules.apply(rows, &self.lost)?;
        self.changed.put(&rows);
        self.writer.write(&rows)
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        self.writer.finish()
    }
}

struct Planned<C> {
    plan: Plan,
    dialect: Option<&'static str>,
    create: C,
}

impl<C: FnOnce(Sink) -> Result<Box<dyn Writer>> + Send> WritePlan for Planned<C> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn dialect(&self) -> Option<&'static str> {
        self.dialect
    }

    fn create(self: Box<Self>, sink: Sink) -> Result<Box<dyn Writer>> {
        self.plan.check(LossKinds::ALL)?;
        (self.create)(sink)
    }
}
