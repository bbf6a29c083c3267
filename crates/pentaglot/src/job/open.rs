//! Opens a document by its name: member, compression, format, dialect, options.

use std::sync::Arc;

use super::names::split_member;
use super::{names, options, types};
use crate::control::Control;
use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::formats::{
    Confidence, Document, Findings, Format, FormatInfo, Head, Node, OptionMap, ReadOptions, Side,
    TypeLanguage, foreign,
};
use crate::hub::Plan;
use crate::hub::rows::schema_bytes;
use crate::limits::{Budget, Reservation};
use crate::map::InPlace;
use crate::redact::redacted;
use crate::registry::Registry;
use crate::source::{Packing, Source};

/// The options for opening files, shared by all operations.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The input's format: an id, with an optional dialect after a colon.
    pub from: Option<String>,
    /// The type of data that does not carry its own.
    pub type_text: Option<String>,
    /// The formats' own options.
    pub options: OptionMap,
    /// The memory that the job may use, and its other limits. All uses of these options share the budget.
    pub budget: Budget,
    /// The handle on the job: its threads, its progress, and the flag that cancels it.
    pub control: Control,
    /// Whether a stream is spooled first, so that it can be read at any offset and more than once.
    pub spool: bool,
    /// Permission to map a file into memory instead of reading it; see [`crate::map`] for the hazard.
    pub in_place: Option<InPlace>,
    /// Whether the file is known to be damaged.
    pub(super) damaged: bool,
    /// Whether the bytes have been counted as an input of the job already.
    pub(super) again: bool,
    /// The member of an sds file that is opened if the name has none.
    pub(super) default_member: Option<&'static str>,
}

impl OpenOptions {
    setters! {
        texts [
            with_from(from),
            with_type_text(type_text),
        ]
        values [
            with_budget(budget: Budget),
            with_control(control: Control),
            with_spool(spool: bool),
            with_in_place(in_place: InPlace),
        ]
    }

    /// Adds an option of a format.
    ///
    /// ```
    /// use pentaglot::{Registry, Source, job};
    /// let source = Source::from_bytes("x.txt", b"a;b\n1;2\n".to_vec());
    /// let options = job::OpenOptions::default().with_from("csv").with_option("delimiter", ";");
    /// let opened = job::open_source(&Registry::default(), source, None, &options)?;
    /// assert_eq!(opened.document.summary().schema.fields().len(), 2);
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    #[must_use]
    pub fn with_option(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.options.set(key, value);
        self
    }
}

/// An open document and what it was opened as.
#[derive(Clone)]
pub struct Opened {
    /// Its format.
    pub format: Arc<dyn Format>,
    /// The document.
    pub document: Arc<dyn Document>,
    /// The source of its bytes, whose counter shows the progress of a long read.
    pub source: Source,
    /// The document's own bytes: the source, decompressed if it is compressed.
    pub content: Source,
    /// The effect of joining several inputs on their fields; empty for a single one.
    pub plan: Plan,
    /// The formats of its inputs.
    pub(super) formats: Vec<&'static FormatInfo>,
    /// The memory that the job may use.
    pub(super) budget: Budget,
    /// The handle on the job.
    pub(super) control: Control,
    /// The reservation for the schema.
    #[expect(dead_code, reason = "it gives the bytes back when it is dropped")]
    pub(super) held: Arc<Reservation>,
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
///
/// ```
/// use pentaglot::{Registry, job};
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("cities.csv");
/// std::fs::write(&file, "city,people\nBern,134000\nGraz,292000\n")?;
/// let opened = job::open(&Registry::default(), &file.to_string_lossy(), &job::OpenOptions::default())?;
/// assert_eq!(opened.format.info().id, "csv");
/// let batch = opened.rows(&job::View::default().with_rows(1..2))?.next().unwrap()?;
/// assert_eq!(batch.num_rows(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open(registry: &Registry, name: &str, options: &OpenOptions) -> Result<Opened> {
    if name == "-" {
        return open_source(registry, Source::from_reader("-", std::io::stdin()), None, options);
    }
    let (path, member) = split_member(name);
    match open_table(registry, path, member, options)? {
        Some(table) => Ok(table),
        None => open_source(registry, names::source(registry, path)?, member, options),
    }
}

/// Opens a name that means a table and not bytes.
fn open_table(
    registry: &Registry,
    name: &str,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Option<Opened>> {
    let Some(remote) = registry.remote(name)? else { return Ok(None) };
    let mut read = ReadOptions::default();
    read.member = member.map(str::to_owned);
    read.budget = options.budget.clone();
    read.control = options.control.clone();
    let Some(table) = remote.open_table(name, &read)? else { return Ok(None) };
    let format = registry.get(table.format)?;
    let id = format.info().id;
    if let Some(from) = options
        .from
        .as_deref()
        .filter(|from| target(registry, from).is_ok_and(|named| named.format.info().id != id))
    {
        return Err(Error::usage(format!("this is a table of {id} documents, not {from}")));
    }
    let source = Source::from_bytes(redacted(name), Vec::<u8>::new());
    let opened = Opened::new(format, table.document, source, options);
    match &table.filter {
        Some(filter) => opened.filtered(filter).map(Some),
        None => Ok(Some(opened)),
    }
}

/// Opens a source, or a member of it.
///
/// ```
/// use pentaglot::{Registry, Source, job};
/// let source = Source::from_bytes("lines.jsonl", b"{\"a\": 1}\n{\"a\": 2}\n".to_vec());
/// let opened = job::open_source(&Registry::default(), source, None, &job::OpenOptions::default())?;
/// assert_eq!(opened.document.summary().schema.field(0).name(), "a");
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn open_source(
    registry: &Registry,
    source: Source,
    member: Option<&str>,
    options: &OpenOptions,
) -> Result<Opened> {
    let named = match &options.from {
        Some(text) => Some(target(registry, text)?),
        None => typed_target(registry, &source, options)?,
    };
    let packing = packing_of(&source, named.as_ref())?;
    if let Some(packing) = packing {
        check_packing(registry, &source, packing)?;
    }
    let counted = source.clone();
    counted.attach(&options.control);
    if !options.again {
        options.control.expect_bytes(counted.len());
    }
    source.set_budget(&options.budget);
    let source = match packing {
        Some(packing) if options.damaged => source.unpack_damaged(packing, options.budget.limits())?,
        Some(packing) => source.unpack(packing, options.budget.limits())?,
        None => source,
    };
    // The first bytes determine the format, so data of an unknown format is not spooled.
    let format = match &named {
        Some(named) => Arc::clone(&named.format),
        None => registry.detect(&source)?,
    };
    let mut read = ReadOptions::default();
    read.dialect = named.as_ref().and_then(|named| named.dialect).map(str::to_owned);
    let info = format.info();
    let id = info.id;
    let member = member.or(options.default_member.filter(|_| id == "sds"));
    read.member = member.map(str::to_owned);
    read.type_text = match &options.type_text {
        // These formats accept only Arrow types; a user may use any type language.
        Some(text) if info.type_language == TypeLanguage::Arrow => {
            let arrow = types::arrow_type_text(text, options.budget.limits());
            Some(arrow.map_err(|error| types::as_usage("the given type", error))?)
        }
        text => text.clone(),
    };
    read.options = options::of_side(&options.options, Side::Read, info);
    read.budget = options.budget.clone();
    read.control = options.control.clone();
    read.in_place = options.in_place;
    read.damaged = options.damaged;
    if let (Some(member), false) = (member, info.has_members) {
        return Err(Error::usage(format!("{id} has no members, so none is named {member:?}")));
    }
    let source =
        if options.spool { spooled(&source, format.as_ref(), named.is_some(), &read)? } else { source };
    let document = format.open(source.clone(), &read).in_format(id).map_err(|error| match source.len() {
        Some(0) => error.hint(Hint::Advice("the file is empty".into())),
        _ => error,
    })?;
    let (budget, control) = (options.budget.clone(), options.control.clone());
    let schema_held = budget.reserve(schema_bytes(&document.summary().schema)).in_format(id)?;
    Ok(Opened {
        format,
        document,
        source: counted,
        content: source,
        plan: Plan::default(),
        formats: vec![info],
        budget,
        control,
        held: Arc::new(schema_held),
    })
}

/// A type of sds implies that format, unless the first bytes are those of another.
fn typed_target(registry: &Registry, source: &Source, options: &OpenOptions) -> Result<Option<Target>> {
    let is_sds = options.type_text.as_deref().is_some_and(types::Language::is_sds);
    if !is_sds {
        return Ok(None);
    }
    let certain = registry.detect_certain(source, &source.head()?);
    match certain.filter(|format| format.info().id != "sds") {
        Some(_) => Ok(None),
        None => Ok(Some(Target { format: registry.get("sds")?, dialect: None })),
    }
}

/// The source, spooled if it is a stream, unless its first bytes show that the format cannot read it.
fn spooled(source: &Source, format: &dyn Format, is_named: bool, read: &ReadOptions) -> Result<Source> {
    if !source.is_seekable() {
        let bytes = source.head()?;
        if format.detect(&Head::new(source, &bytes)) == Confidence::No
            && let Err(error) = format.open(Source::from_bytes(source.name(), bytes), read)
            // With a named format, other kinds of errors may come only from the truncation to the first
            // bytes.
            && (!is_named || matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Unsupported))
        {
            return Err(error.in_format(format.info().id));
        }
    }
    source.seekable()
}

/// Compression is detected by `.gz`, `.zst` or `.bz2` at the end of the name, or by the magic number; for some formats
/// only by the name.
pub(super) fn packing_of(source: &Source, named: Option<&Target>) -> Result<Option<Packing>> {
    if let Some(packing) = Packing::of_name(source.name()) {
        return Ok(Some(packing));
    }
    let by_magic = named.is_none_or(|named| named.format.info().is_packed_by_magic(named.dialect));
    if by_magic { Ok(Packing::of_magic(&source.head()?)) } else { Ok(None) }
}

/// Returns an error if a file is not compressed as its name says; the error names what it looks like.
fn check_packing(registry: &Registry, source: &Source, packing: Packing) -> Result<()> {
    let head = source.head()?;
    let (name, extension) = (packing.name(), packing.extension());
    let found = match Packing::of_magic(&head) {
        Some(found) if found != packing => found.name(),
        Some(_) => return Ok(()),
        // Truncated, or with an unusual header: the decoder reports what is wrong.
        None if head.is_empty() || head.starts_with(&[0x1f, 0x8b]) || head.starts_with(b"BZh") => {
            return Ok(());
        }
        None => match (registry.detect_certain(source, &head), foreign(&head)) {
            (Some(format), _) => format.info().title,
            (None, Some(foreign)) => foreign,
            (None, None) => "something else",
        },
    };
    let advice = Hint::Advice(format!("a name without {extension} opens it as what it is").into());
    Err(Error::malformed(format!("{name}, as the name says"), found).at(0).hint(advice))
}

/// The format and dialect that `text` names: `dbdf`, `dbdf:daphne`.
///
/// ```
/// use pentaglot::{Registry, job};
/// let target = job::target(&Registry::default(), "dbdf:daphne")?;
/// assert_eq!((target.format.info().id, target.dialect), ("dbdf", Some("daphne")));
/// # Ok::<(), pentaglot::Error>(())
/// ```
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
                match known.is_empty() {
                    true => Error::usage(format!("{id} has no dialects, so none is named {name:?}")),
                    false => {
                        let known = known.join(", ");
                        Error::usage(format!("{id} has no dialect {name:?} (there are {known})"))
                    }
                }
            })
        })
        .transpose()?;
    Ok(Target { format, dialect })
}

/// Checks a file against every rule of its format. Also returns the format's id if it could be determined. A
/// broken file gives findings; `Err` is for other errors, such as I/O.
///
/// ```
/// use pentaglot::formats::Findings;
/// use pentaglot::{Registry, job};
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("cut.npy");
/// std::fs::write(&file, b"\x93NUMPY\x01\x00")?;
/// let mut findings = Findings::new(false);
/// let options = job::OpenOptions::default();
/// let format = job::validate(&Registry::default(), &file.to_string_lossy(), &options, &mut findings)?;
/// assert_eq!((format, findings.is_valid()), (Some("npy"), false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn validate(
    registry: &Registry,
    name: &str,
    options: &OpenOptions,
    findings: &mut Findings,
) -> Result<Option<&'static str>> {
    validate_opened(open(registry, name, options), options, findings)
}

/// What can be shown of a file that does not open.
#[derive(Clone)]
#[non_exhaustive]
pub struct Broken {
    /// The file as far as it is sound, if its format can tell.
    pub opened: Option<Opened>,
    /// Its bytes, decompressed if they are compressed and can be.
    pub content: Source,
    /// Its parts as far as they are sound, or else one part of all bytes.
    pub outline: Node,
}

/// Opens what is there of a file that [`open`] refuses because it is truncated or malformed.
///
/// ```
/// use pentaglot::{Registry, job};
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("broken.npy");
/// std::fs::write(&file, b"\x93NUMPY\x01\x00")?;
/// let name = file.to_string_lossy();
/// assert!(job::open(&Registry::default(), &name, &job::OpenOptions::default()).is_err());
/// let broken = job::open_broken(&Registry::default(), &name, &job::OpenOptions::default())?;
/// assert_eq!((broken.outline.offset, broken.outline.bytes), (0, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_broken(registry: &Registry, name: &str, options: &OpenOptions) -> Result<Broken> {
    let mut options = options.clone();
    (options.damaged, options.again, options.spool) = (true, true, true);
    if let Ok(opened) = open(registry, name, &options) {
        let (content, outline) = (opened.content.clone(), opened.document.outline());
        return Ok(Broken { opened: Some(opened), content, outline });
    }
    let source = names::source(registry, split_member(name).0)?.seekable()?;
    let bytes = source.len().unwrap_or(0);
    Ok(Broken { opened: None, content: source, outline: Node::new("file", 0, bytes) })
}

/// Like [`validate`], for a document that a front end has opened, or failed to open, itself.
pub fn validate_opened(
    opened: Result<Opened>,
    options: &OpenOptions,
    findings: &mut Findings,
) -> Result<Option<&'static str>> {
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) if matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed) => {
            findings.error(&error);
            return Ok(error.format());
        }
        Err(error) => return Err(error),
    };
    opened.check_options(&options.options)?;
    opened.check_type(options)?;
    let id = opened.format.info().id;
    match opened.document.validate(findings).in_format(id) {
        Err(error) if matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Malformed) => {
            findings.error(&error)
        }
        other => other?,
    }
    Ok(Some(id))
}

impl Opened {
    /// A document that has no file, such as data in memory, as one of this format.
    pub fn new(
        format: Arc<dyn Format>,
        document: Arc<dyn Document>,
        source: Source,
        options: &OpenOptions,
    ) -> Self {
        let formats = vec![format.info()];
        let (budget, control) = (options.budget.clone(), options.control.clone());
        let held = Arc::new(budget.reservation());
        let (content, plan) = (source.clone(), Plan::default());
        Opened { format, document, source, content, plan, formats, budget, control, held }
    }

    /// The stored size of all inputs, if known.
    pub(super) fn input_bytes(&self) -> Option<u64> {
        match self.formats.len() {
            1 => self.source.len(),
            _ => self.document.summary().bytes,
        }
    }

    /// Returns an error if an option is given that readers of this format do not have. For jobs that only
    /// read.
    pub fn check_options(&self, given: &OptionMap) -> Result<()> {
        options::check(given, &self.formats, None)
    }

    /// Returns an error if a type is given and no input takes one, since all store their types.
    pub fn check_type(&self, options: &OpenOptions) -> Result<()> {
        let takes_none = |info: &&FormatInfo| info.type_language == TypeLanguage::None;
        match options.type_text {
            Some(_) if self.formats.iter().all(takes_none) => {
                let id = self.format.info().id;
                let advice = "a cast or a conversion changes types";
                Err(Error::usage(format!("a type is given, but {id} files store their types"))
                    .hint(Hint::Advice(advice.into())))
            }
            _ => Ok(()),
        }
    }
}
