//! Which kind of structure a file is: the requested one, or the first that fits; and whether it is one at all: its tag,
//! or lengths that add up to the file's.

use pentaglot_succinct::SharedWords;

use super::containers::{self, Container};
use super::layout::{Object, own_words, read_words};
use super::skeleton;
use super::type_text::{PREFIX, SdsKind, SdsType};
use super::validate::{check_container, check_structure};
use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::formats::{Confidence, Findings, Head, ReadOptions};
use crate::limits::{Budget, Limits};
use crate::map::InPlace;
use crate::source::Source;

pub(super) fn detect(head: &Head<'_>) -> Confidence {
    let Some(len) = head.len().filter(|len| *len > 0 && len.is_multiple_of(8)) else { return Confidence::No };
    let tagged = head.bytes().first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    if [SdsKind::Gbz, SdsKind::Gbwt, SdsKind::Gg, SdsKind::GbwtMeta]
        .iter()
        .any(|kind| containers::tag(*kind) == tagged)
    {
        return Confidence::Certain;
    }
    // A file that is in memory as a whole must be valid; of a larger one, only the lengths are checked.
    let kind = if head.bytes().len() as u64 == len {
        fitting(&own_words(arrow_buffer::Buffer::from(head.bytes()))).ok().map(|(object, _)| object.kind())
    } else {
        skeleton::first_kind(head.source())
    };
    match kind {
        Some(
            SdsKind::Option
            | SdsKind::Pairs
            | SdsKind::String
            | SdsKind::Bytes
            | SdsKind::Vec
            | SdsKind::Chains,
        ) => Confidence::Possible,
        Some(_) => Confidence::Likely,
        None => Confidence::No,
    }
}

impl Object {
    /// Opens a source: mapped if that is permitted and it is a file, otherwise read into memory. Without a kind,
    /// the first that fits is used.
    pub fn open(source: &Source, kind: Option<SdsKind>, in_place: Option<InPlace>) -> Result<Self> {
        let words = read_words(source, in_place, &Budget::default())?;
        match kind {
            Some(kind) => Object::from_words(kind, words),
            None => Ok(fitting(&words)?.0),
        }
    }
}

/// Up to this many elements, a structure must also be valid for its kind to fit.
const SMALL: usize = 1 << 17;

/// The first kind that fits, and the names of the others that fit too. A small file fits a kind if it uses all elements
/// and breaks none of its rules; a large one, or one that breaks the rules of all kinds, if it uses all elements.
fn fitting(words: &SharedWords) -> Result<(Object, Vec<String>)> {
    let mut fits = Vec::new();
    for kind in SdsKind::ALL {
        match Object::from_words(kind, words.clone()) {
            Ok(object) => fits.push(object),
            // A file with a tag cannot be another kind, and the error of that kind is more helpful.
            Err(error) if has_tag(kind, words) => return Err(error.field(kind.name())),
            Err(_) => {}
        }
    }
    let is_sound = |object: &Object| {
        let mut findings = Findings::new(false);
        match object {
            Object::Container(container) => check_container(container, &mut findings),
            object => check_structure(object, "", 0, &mut findings),
        }
        findings.is_valid()
    };
    if words.as_ref().len() <= SMALL && fits.len() > 1 && fits.iter().any(is_sound) {
        fits.retain(is_sound);
    }
    let mut fits = fits.into_iter();
    let first = fits.next().ok_or_else(|| {
        let advice = "several structures need a type such as sds:{…}: docs/sds.md";
        Error::malformed("a structure that uses all elements", "none").at(0).hint(Hint::Advice(advice.into()))
    })?;
    Ok((first, fits.map(|other| other.kind().name().to_owned()).collect()))
}

fn has_tag(kind: SdsKind, words: &SharedWords) -> bool {
    let first = words.as_ref().first().copied().unwrap_or(0);
    containers::tag(kind).is_some_and(|tag| first & 0xffff_ffff == u64::from(tag))
}

/// The requested kind or type of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted<'o> {
    /// The kind that the user names.
    pub(super) dialect: Option<&'o str>,
    /// The type text that the user gives; it is for this format if it begins with `sds:`.
    pub(super) type_text: Option<&'o str>,
}

impl<'o> Wanted<'o> {
    pub(super) fn new(options: &'o ReadOptions) -> Self {
        Wanted { dialect: options.dialect.as_deref(), type_text: options.type_text.as_deref() }
    }

    /// The type that the user gives for this format.
    pub(super) fn given_type(self, limits: &Limits) -> Result<Option<SdsType>> {
        let Some(text) = self.type_text.and_then(|text| text.trim().strip_prefix(PREFIX)) else {
            return Ok(None);
        };
        if let Some(dialect) = self.dialect {
            return Err(Error::usage(format!("both a kind (sds:{dialect}) and a type are given")));
        }
        let kind = SdsType::parse_within(text, limits).map_err(|error| match error.kind() {
            ErrorKind::Limit => error,
            _ => Error::usage(format!("the given type: {error}")),
        })?;
        Ok(Some(kind))
    }
}

/// Opens elements as the requested kind or type. If none is requested, also returns the names of other kinds
/// that fit.
pub(super) fn open_object(
    words: &SharedWords,
    wanted: Wanted<'_>,
    limits: &Limits,
) -> Result<(Object, Vec<String>)> {
    if let Some(kind) = wanted.given_type(limits)? {
        let object = match &kind {
            SdsType::Structure(kind) => Object::from_words(*kind, words.clone())?,
            _ => Object::Container(Container::read_typed(&kind, words)?),
        };
        return Ok((object, Vec::new()));
    }
    match wanted.dialect {
        Some(name) => {
            Ok((Object::from_words(SdsKind::parse(name)?, words.clone()).field(name.to_owned())?, Vec::new()))
        }
        None => fitting(words).map_err(|error| match wanted.type_text {
            Some(_) if error.path().is_empty() => {
                let error = Error::malformed("a structure that uses all elements", "none").at(0);
                error.hint(Hint::Advice("a type for sds begins with sds:".into()))
            }
            _ => error,
        }),
    }
}
