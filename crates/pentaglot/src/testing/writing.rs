//! Planning and writing in one call each, for tests.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::error::Result;
use crate::formats::{Format, WriteOptions, Writer};
use crate::hub::{Effect, Plan};
use crate::sink::Sink;

/// Shortcuts for tests of formats that write.
pub(crate) trait Writing {
    /// The steps of a plan; a plan that cannot be made is one impossible step.
    fn steps(&self, schema: &Schema, options: &WriteOptions) -> Plan;

    /// Plans and starts a file.
    fn create(&self, sink: Sink, schema: SchemaRef, options: &WriteOptions) -> Result<Box<dyn Writer>>;
}

impl<F: Format + ?Sized> Writing for F {
    fn steps(&self, schema: &Schema, options: &WriteOptions) -> Plan {
        match self.plan(&Arc::new(schema.clone()), options) {
            Ok(planned) => planned.plan().clone(),
            Err(error) => {
                let mut plan = Plan::default();
                plan.step("", "rows", self.info().id, Effect::impossible(error.message()));
                plan
            }
        }
    }

    fn create(&self, sink: Sink, schema: SchemaRef, options: &WriteOptions) -> Result<Box<dyn Writer>> {
        self.plan(&schema, options)?.create(sink)
    }
}
