//! `query`: structures that answer questions in place.

use std::sync::Arc;

use super::names;
use super::names::split_member;
use super::open::{OpenOptions, target};
use super::types::Language;
use crate::error::{Context, Error, Result};
use crate::formats::sds::{Answer, Mapped, Queried, Query, SdsKind};
use crate::registry::Registry;
use crate::source::{Packing, Source};

/// A succinct structure open for queries.
pub struct Queries {
    queried: Queried,
    note: Option<String>,
}

impl Queries {
    /// Opens a file: mapped if the options permit it, otherwise read into memory.
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
        let is_typed = type_text.is_some_and(Language::is_sds);
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

    /// A note for the user.
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
