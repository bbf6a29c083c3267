//! Documents into a store and out of it.

use std::io;
use std::sync::Arc;

use super::conversion::{Conversion, target_of};
use super::convert_options::ConvertOptions;
use super::open::{OpenOptions, Opened};
use super::read::View;
use crate::error::{Context, Result};
use crate::registry::Registry;
use crate::source::{ReadAt, Source};
use crate::store::{PutOptions, Store, Stored, StoredFormat};

impl Opened {
    /// Stores all rows under their identity, with a name that a listing shows.
    pub fn put(&self, store: &Store, name: Option<&str>, options: &OpenOptions) -> Result<Stored> {
        let id = self.format.info().id;
        let mut put = PutOptions::default();
        put.name = name.map(str::to_owned);
        put.format = Some(id.to_owned());
        put.budget = options.budget.clone();
        put.control = options.control.clone();
        let rows = self.rows(&View::default())?;
        store.put(rows, &put).in_format(id)
    }

    /// Data of a store, opened as any document; see [`Store::find`] for what names it. `format` is the one whose types it is
    /// to have, if it was put in from that format.
    pub fn from_store(store: &Store, id: &str, format: Option<&str>, options: &OpenOptions) -> Result<Self> {
        let document = store.document(id, format, &options.budget, &options.control)?;
        let bytes = Arc::new(Elsewhere(document.summary().bytes.unwrap_or(0)));
        let source = Source::from_read_at(id, bytes);
        Ok(Opened::new(Arc::new(StoredFormat), document, source, options))
    }
}

impl Conversion {
    /// Plans how data of a store is written to a file.
    pub fn plan_stored(
        registry: &Registry,
        store: &Store,
        id: &str,
        output: &str,
        options: &ConvertOptions,
    ) -> Result<Self> {
        let target = target_of(registry, options.to.as_deref(), output)?;
        let opened = Opened::from_store(store, id, Some(target.format.info().id), &options.open)?;
        Conversion::plan_opened(opened, target, Some(output), options)
    }
}

/// So many bytes that are not in one file.
struct Elsewhere(u64);

impl ReadAt for Elsewhere {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn is_costly(&self) -> bool {
        false
    }
}
