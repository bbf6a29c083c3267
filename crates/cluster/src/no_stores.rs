//! A runtime without object stores: the readers and writers of DataFusion, which anyone could ask for in a plan, find nothing.

use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use object_store::ObjectStore;
use url::Url;

#[derive(Debug)]
struct NoStores;

impl ObjectStoreRegistry for NoStores {
    fn register_store(&self, _: &Url, _: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, _: &Url) -> Result<Arc<dyn ObjectStore>> {
        Err(DataFusionError::Execution("files are read and written by nodes of pentaglot only".to_owned()))
    }
}

/// A runtime that spills to this folder, or to that of the system.
pub(crate) fn runtime_env(spill: Option<&str>) -> Result<Arc<RuntimeEnv>> {
    let builder = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(NoStores));
    match spill {
        Some(folder) => builder.with_temp_file_path(folder),
        None => builder,
    }
    .build_arc()
}
