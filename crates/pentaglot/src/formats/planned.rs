//! [`planned`]: a [`WritePlan`] from its steps and from what starts the writer.

use super::{WritePlan, Writer};
use crate::error::Result;
use crate::hub::Plan;
use crate::sink::Sink;

/// A plan whose writer is started by `create`. What planning found out is moved into `create`, so that nothing is
/// derived twice. A plan with an impossible step is never started.
pub(crate) fn planned(
    plan: Plan,
    create: impl FnOnce(Sink) -> Result<Box<dyn Writer>> + Send + 'static,
) -> Box<dyn WritePlan> {
    Box::new(Planned { plan, create })
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
        self.plan.check(true)?;
        (self.create)(sink)
    }
}
