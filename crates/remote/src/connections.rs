//! The connections of one process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use object_store::ObjectStore;
use pentaglot::Result;
use tokio::runtime::Runtime;

/// Stores by their keys, and the runtime that their requests run on. A child made by `fork` has a copy of it, but none of
/// its threads, so it makes connections of its own.
pub(crate) struct Connections {
    process: u32,
    runtime: OnceLock<Runtime>,
    open: Mutex<HashMap<String, Arc<dyn ObjectStore>>>,
    of_child: OnceLock<Box<Connections>>,
}

impl Default for Connections {
    fn default() -> Self {
        Connections {
            process: std::process::id(),
            runtime: OnceLock::new(),
            open: Mutex::default(),
            of_child: OnceLock::new(),
        }
    }
}

impl Connections {
    /// Those of the process that calls.
    pub(crate) fn here(&self) -> &Self {
        let mut found = self;
        while found.process != std::process::id() {
            found = found.of_child.get_or_init(Box::default);
        }
        found
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        self.runtime.get_or_init(|| {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .thread_name("pentaglot-remote")
                .enable_all()
                .build()
                .expect("a runtime needs two threads")
        })
    }

    /// The store with this key, connected on first use.
    pub(crate) fn store(
        &self,
        key: &str,
        connect: impl FnOnce() -> Result<Arc<dyn ObjectStore>>,
    ) -> Result<Arc<dyn ObjectStore>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = open.get(key) {
            return Ok(Arc::clone(store));
        }
        let store = connect()?;
        open.insert(key.to_owned(), Arc::clone(&store));
        Ok(store)
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        // The threads of another process cannot be joined here.
        if self.process != std::process::id() {
            std::mem::forget(self.runtime.take());
        }
    }
}
