//! From a name to an open document: member, gzip, format, dialect, options.

use std::path::Path;
use std::sync::Arc;

use super::types;
use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::formats::{Document, Findings, Format, OptionMap, ReadOptions, TypeLanguage, foreign};
use crate::limits::Limits;
use crate::map::InPlace;
use crate::registry::Registry;
use crate::source::Source;

/// How files are opened: what every verb that opens a file takes.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// `--from`: a format id, with an optional dialect after a colon.
    pub from: Option<String>,
    /// `--type`: the type of data that does not carry its own.
    pub type_text: Option<String>,
    /// `-O key=value`.
    pub options: OptionMap,
    /// What a file may cost.
    pub limits: Limits,
    /// Threads; 0: as many as there are cores.
    pub threads: usize,
    /// Whether a stream is spooled first, so that it can be read at any offset and more than once.
    pub spool: bool,
    /// Permission to map a file into memory instead of reading it; see [`crate::map`] for the hazard.
    pub in_place: Option<InPlace>,
}

/// An open document and what it was opened as.
#[derive(Clone)]
pub struct Opened {
    /// Its format.
    pub format: Arc<dyn Format>,
    /// The document.
    pub document: Arc<dyn Document>,
    /// Where its bytes come from: its counter tells how far a long read has come.
    pub source: Source,
    /// The document's own bytes: the source, unpacked if it is packed.
    pub content: Source,
}

/// A format that a user named, with a dialect.
#[derive(Clone)]
pub struct Target {
    /// The format.
    pub format: Arc<dyn Format>,
    /// The dialect named after the colon.
    pub dialect: Option<&'static str>,
}

/// Opens `FILE`, `FILE::MEMBER` or `-` (standard input).
pub fn open(registry: &Registry, name: &str, options: &OpenOptions) -> Result<Opened> {
    if name == "-" {
        return open_source(registry, Source::from_reader("-", std::io::stdin()), None, options);
    }
    let (path, member) = split_member(name);
    open_source(registry, Source::open(path)?, member, options)
}

/// The file and the member that a name means: a file of the literal name comes first.
pub(super) fn split_member(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once("::") {
        Some((path, member)) if !Path::new(name).exists() => (path, Some(member)),
        _ => (name, None),
    }
}

/// Opens a source, or a member of it.
pub fn open_source(
    registry: &Registry,
    source: Source,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Opened> {
    let named = options.from.as_deref().map(|text| target(registry, text)).transpose()?;
    let gzip = is_gzip(&source, named.as_ref())?;
    if gzip {
        check_gzip(registry, &source)?;
    }
    let counted = source.clone();
    source.set_max_spool(options.limits.max_spool);
    let source = if gzip { source.gunzip(&options.limits)? } else { source };
    // The first bytes tell the format: what nobody can read is not spooled.
    let format = match &named {
        Some(named) => Arc::clone(&named.format),
        None => registry.detect(&source)?,
    };
    let source = if options.spool { source.seekable()? } else { source };
    let mut read = ReadOptions::default();
    read.dialect = named.and_then(|named| named.dialect).map(str::to_owned);
    read.member = member.map(str::to_owned);
    let info = format.info();
    let id = info.id;
    read.type_text = match &options.type_text {
        // These know Arrow types only; a user may write any language.
        Some(text) if info.type_language == TypeLanguage::Arrow => {
            let arrow = types::arrow_type_text(text, &options.limits);
            Some(arrow.map_err(|error| types::as_usage("--type", error))?)
        }
        text => text.clone(),
    };
    read.options = options.options.clone();
    read.limits = options.limits.clone();
    read.threads = options.threads;
    read.in_place = options.in_place;
    if let (Some(member), false) = (member, info.has_members) {
        return Err(Error::usage(format!("{id} has no members, so none is named {member:?}")));
    }
    let document = format.open(source.clone(), &read).in_format(id)?;
    Ok(Opened { format, document, source: counted, content: source })
}

/// `.gz` on a name, or a gzip magic, means gzip around it; for some formats only the name decides.
pub(super) fn is_gzip(source: &Source, named: Option<&Target>) -> Result<bool> {
    if source.name().to_lowercase().ends_with(".gz") {
        return Ok(true);
    }
    let by_magic = named.is_none_or(|named| named.format.info().is_packed_by_magic(named.dialect));
    Ok(by_magic && source.head()?.starts_with(&[0x1f, 0x8b, 8]))
}

/// Errs if a file that is named `.gz` is not gzip; says what it looks like.
fn check_gzip(registry: &Registry, source: &Source) -> Result<()> {
    let head = source.head()?;
    if head.is_empty() || head.starts_with(&[0x1f, 0x8b]) {
        return Ok(());
    }
    let found = match (registry.detect_certain(source, &head), foreign(&head)) {
        (Some(format), _) => format.info().title,
        (None, Some(foreign)) => foreign,
        (None, None) => "something else",
    };
    let advice = Hint::Advice("a name without .gz opens it as what it is".into());
    Err(Error::malformed("gzip, as the name says", found).at(0).hint(advice))
}

/// The format and dialect that `text` names: `dbdf`, `dbdf:daphne`.
pub fn target(registry: &Registry, text: &str) -> Result<Target> {
    let (id, dialect) = match text.split_once(':') {
        Some((id, dialect)) => (id, Some(dialect)),
        None => (text, None),
    };
    let format = registry.get(id)?;
    let dialect = dialect
        .map(|name| {
            let dialects = format.info().dialects;
            dialects.iter().find(|known| known.name == name).map(|known| known.name).ok_or_else(|| {
                let known: Vec<_> = dialects.iter().map(|known| known.name).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Error::usage(format!("{id} has no dialect {name:?} (there is {known})"))
            })
        })
        .transpose()?;
    Ok(Target { format, dialect })
}

/// Holds a file against every rule of its format. Gives the format's id if it could be told.
/// A file that is broken is a finding; `Err` is for what is not the file's fault.
pub fn validate(
    registry: &Registry,
    name: &str,
    options: &OpenOptions,
    findings: &mut Findings,
) -> Result<Option<&'static str>> {
    let opened = match open(registry, name, options) {
        Ok(opened) => opened,
        Err(error) if matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed) => {
            findings.error(&error);
            return Ok(error.format());
        }
        Err(error) => return Err(error),
    };
    check_keys(&options.options, &[&opened.format])?;
    let id = opened.format.info().id;
    match opened.document.validate(findings).in_format(id) {
        Err(error) if matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed) => {
            findings.error(&error)
        }
        other => other?,
    }
    Ok(Some(id))
}

/// Errs if a `-O` key belongs to none of the formats at hand.
pub(super) fn check_keys(options: &OptionMap, formats: &[&Arc<dyn Format>]) -> Result<()> {
    for key in options.keys() {
        let known = || formats.iter().flat_map(|format| format.info().options).map(|option| option.key);
        if !known().any(|known| known == key) {
            let mut known: Vec<_> = known().collect();
            known.sort_unstable();
            known.dedup();
            let known = if known.is_empty() { "none here".to_owned() } else { known.join(", ") };
            return Err(Error::usage(format!("unknown option {key:?} (known: {known})")));
        }
    }
    Ok(())
}

impl Opened {
    /// Errs if the user gave a `-O` key that this format does not know. For verbs that only read.
    pub fn check_options(&self, options: &OptionMap) -> Result<()> {
        check_keys(options, &[&self.format])
    }
}
