//! [`planned`]: a [`WritePlan`] from its steps and a function that creates the writer.

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
    Box::new(Planned { plan, create })
}

/// A writer that first applies `rules` to values that do not fit, as far as the options allow it.
pub(crate) fn relaxed(writer: Box<dyn Writer>, rules: Rules, options: &WriteOptions) -> Box<dyn Writer> {
    match allowed(rules, options) {
        Some(rules) => Box::new(Relaxed { writer, rules, lost: options.lost.clone() }),
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
}

impl Writer for Relaxed {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.writer.write(&self.rules.apply(rows, &self.lost)?)
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        self.writer.finish()
    }
}

struct Planned<C> {
    plan: Plan,
    create: C,
}

impl<C: FnOnce(Sink) -> Result<Box<dyn Writer>> + Send> WritePlan for Planned<C> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn create(self: Box<Self>, sink: Sink) -> Result<Box<dyn Writer>> {
        self.plan.check(LossKinds::ALL)?;
        (self.create)(sink)
    }
}
