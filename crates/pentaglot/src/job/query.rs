//! `query` and `index`: formats with a typed door for them.

use std::sync::Arc;

use super::names;
use super::open::split_member;
use super::open::{OpenOptions, packing_of, target};
use crate::error::{Context, Error, Result};
use crate::formats::ReadOptions;
use crate::formats::sds::{self, Answer, Mapped, Queried, Query, SdsKind};
use crate::registry::Registry;
use crate::source::{Packing, Source};

/// A succinct structure open for queries.
pub struct Queries {
    queried: Queried,
    note: Option<String>,
}

impl Queries {
    /// Opens a file: in place if the options permit it, else in memory.
    pub fn open(registry: &Registry, name: &str, options: &OpenOptions) -> Result<Self> {
        let kind = match options.from.as_deref().map(|text| target(registry, text)).transpose()? {
            None => None,
            Some(named) if named.format.info().id == "sds" => {
                named.dialect.map(SdsKind::parse).transpose()?
            }
            Some(named) => {
                return Err(Error::unsupported(format!(
                    "queries on {} (sds has them)",
                    named.format.info().id
                )));
            }
        };
        let (name, member) = split_member(name);
        let source = if name == "-" {
            Source::from_reader("-", std::io::stdin())
        } else {
            names::source(registry, name)?
        };
        source.set_budget(&options.budget);
        let source = match Packing::of_name(name) {
            Some(packing) => source.unpack(packing, options.budget.limits())?,
            None => source,
        };
        let type_text = options.type_text.as_deref();
        let is_typed = type_text.is_some_and(|text| text.trim().starts_with(sds::PREFIX));
        if options.from.is_none() && !is_typed {
            let format = registry.detect(&source)?.info().id;
            if format != "sds" {
                return Err(Error::unsupported(format!("queries on {format} (sds has them)")));
            }
        }
        let mapped = Mapped::open_typed(&source, kind, type_text, options.in_place, &options.budget);
        let mapped = mapped.in_format("sds")?;
        let queried = Queried::new(&Arc::new(mapped.object), member)?;
        Ok(Queries { queried, note: mapped.note })
    }

    /// What the user should know.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The answer to a question such as `rank 17`.
    pub fn answer<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Result<Answer<'_>> {
        let query = Query::from_words(words)?;
        self.queried.answer(&query)
    }

    /// The answers to many questions of one operation, each with one number and answered by one number or none.
    pub fn numbers(&self, operation: &str, arguments: &[u64]) -> Result<Vec<Option<u64>>> {
        self.queried.numbers(operation, arguments)
    }
}

/// The bytes of `FILE.idx` for a file of any format that has side indexes.
pub fn index(registry: &Registry, name: &str, options: &OpenOptions) -> Result<Vec<u8>> {
    let source = names::source(registry, name)?;
    let named = options.from.as_deref().map(|text| target(registry, text)).transpose()?;
    if let Some(packing) = packing_of(&source, named.as_ref())? {
        let name = packing.name();
        return Err(Error::unsupported(format!("an index of a {name} file (unpack it first)")));
    }
    let (format, dialect) = match named {
        Some(named) => (named.format, named.dialect),
        None => (registry.detect(&source)?, None),
    };
    let info = format.info();
    let Some(build) = info.index else {
        let others: Vec<_> =
            registry.formats().map(|format| format.info()).filter(|info| info.index.is_some()).collect();
        let others: Vec<_> = others.iter().map(|info| info.id).collect();
        return Err(Error::unsupported(format!("an index for {} ({} have one)", info.id, others.join(", "))));
    };
    let mut read = ReadOptions::default();
    read.dialect = dialect.map(str::to_owned);
    read.type_text = options.type_text.clone();
    read.options = options.options.clone();
    read.budget = options.budget.clone();
    read.control = options.control.clone();
    build(&source, &read).in_format(info.id)
}
