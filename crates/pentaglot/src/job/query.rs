//! `query` and `index`: formats with a typed door for them.

use super::names;
use super::open::split_member;
use super::open::{OpenOptions, is_gzip, target};
use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::formats::ReadOptions;
use crate::formats::sds::{self, Kind, Mapped, Query};
use crate::redact::without_query;
use crate::registry::Registry;
use crate::source::Source;

/// A succinct structure open for queries.
pub struct Queries {
    mapped: Mapped,
    member: Option<String>,
}

impl Queries {
    /// Opens a file: in place if the options permit it, else in memory.
    pub fn open(registry: &Registry, name: &str, options: &OpenOptions) -> Result<Self> {
        let kind = match options.from.as_deref().map(|text| target(registry, text)).transpose()? {
            None => None,
            Some(named) if named.format.info().id == "sds" => named.dialect.map(Kind::parse).transpose()?,
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
        let source = if without_query(name).to_lowercase().ends_with(".gz") {
            source.gunzip(options.budget.limits())?
        } else {
            source
        };
        if options.from.is_none() {
            let format = registry.detect(&source)?.info().id;
            if format != "sds" {
                return Err(Error::unsupported(format!("queries on {format} (sds has them)")));
            }
        }
        let mapped = Mapped::open(&source, kind, options.in_place, &options.budget).in_format("sds")?;
        Ok(Queries { mapped, member: member.map(str::to_owned) })
    }

    /// What the user should know.
    pub fn note(&self) -> Option<&str> {
        self.mapped.note.as_deref()
    }

    /// The answer to a question such as `rank 17`; `None` where there is none.
    pub fn answer<'w>(&self, words: impl IntoIterator<Item = &'w str>) -> Result<Option<String>> {
        let query = Query::from_words(words)?;
        if let Some(member) = &self.member {
            return sds::answer_member(&self.mapped.object, member, &query);
        }
        sds::answer(&self.mapped.object, &query).map_err(|error| {
            let queried = ["rlwm", "wm", "rl", "sparse", "bit", "int", "vec"];
            let other = self.mapped.also_fits.iter().find(|other| queried.contains(&other.as_str()));
            let container = matches!(self.mapped.object, sds::Object::Container(_));
            match (error.kind(), other) {
                (ErrorKind::Unsupported, _) if container => {
                    error.hint(Hint::Advice("a member has them: FILE::MEMBER".into()))
                }
                (ErrorKind::Unsupported, Some(other)) => {
                    error.hint(Hint::FromOne(format!("sds:{other}").into()))
                }
                _ => error,
            }
        })
    }
}

/// The bytes of `FILE.idx` for a file of any format that has side indexes.
pub fn index(registry: &Registry, name: &str, options: &OpenOptions) -> Result<Vec<u8>> {
    let source = names::source(registry, name)?;
    let named = options.from.as_deref().map(|text| target(registry, text)).transpose()?;
    if is_gzip(&source, named.as_ref())? {
        return Err(Error::unsupported("a gzip file cannot be indexed (unpack it first)"));
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
