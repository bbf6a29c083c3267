//! Documents into a store and out of it.

use std::io;
use std::sync::Arc;

use super::conversion::{Conversion, output_target};
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
        let dialect = self.document.summary().dialect;
        put.format = Some(dialect.map_or_else(|| id.to_owned(), |dialect| format!("{id}:{dialect}")));
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
        let (mut target, options) = output_target(registry, output, options)?;
        let info = target.format.info();
        let opened = Opened::from_store(store, id, Some(info.id), &options.open)?;
        // The dialect that the data was put in from.
        let mut known = opened.document.summary().metadata.iter();
        if let Some((_, dialect)) = known.find(|(key, _)| key == "dialect") {
            let written = info.dialects.iter().find(|known| known.name == dialect && known.write);
            target.dialect = target.dialect.or(written.map(|dialect| dialect.name));
        }
        Conversion::plan_opened(opened, target, Some(output), &options)
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
