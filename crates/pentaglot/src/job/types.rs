//! Type languages: Arrow type text, DS types, datashape; checked, printed canonically, translated.

use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::hub::type_text;
use crate::limits::Limits;

/// A language of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Arrow type text.
    Arrow,
    /// Mantik DS, as JSON (or YAML).
    Ds,
    /// Datashape.
    Dynd,
}

impl FromStr for Language {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "arrow" => Ok(Language::Arrow),
            "ds" => Ok(Language::Ds),
            "dynd" => Ok(Language::Dynd),
            other => Err(Error::usage(format!("expected arrow, ds or dynd, found {other:?}"))),
        }
    }
}

impl Language {
    /// The language of a text and the text without its prefix: a prefix `dynd:`, `ds:` or `arrow:` decides; else text
    /// that begins with `{"` or `"` is ds, other text is dynd.
    pub fn of(text: &str) -> (Self, &str) {
        let prefixes = [("arrow:", Language::Arrow), ("ds:", Language::Ds), ("dynd:", Language::Dynd)];
        for (prefix, language) in prefixes {
            if let Some(rest) = text.strip_prefix(prefix) {
                return (language, rest);
            }
        }
        let start = text.trim_start();
        let ds = start.starts_with('"')
            || start.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"'));
        (if ds { Language::Ds } else { Language::Dynd }, text)
    }
}

/// A type in some language.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TypeText {
    /// The language it was written in.
    pub language: Language,
    /// Its canonical text in that language.
    pub canonical: String,
    /// The hub schema of data of this type.
    pub schema: SchemaRef,
}

/// Checks a type text. `language` overrides what the text itself says.
pub fn parse_type(text: &str, language: Option<Language>, limits: &Limits) -> Result<TypeText> {
    let (language, text) = match (language, Language::of(text)) {
        (Some(given), (own, rest)) if given == own => (given, rest),
        (Some(given), _) => (given, text),
        (None, found) => found,
    };
    match language {
        Language::Arrow => {
            let schema = type_text::parse_schema(text, limits)?;
            Ok(TypeText { language, canonical: type_text::print_schema(&schema), schema: Arc::new(schema) })
        }
        Language::Ds | Language::Dynd => Err(Error::unsupported("this build has Arrow types only")),
    }
}

/// The type of data with this schema, in a language.
pub fn print_type(schema: &Schema, language: Language) -> Result<String> {
    match language {
        Language::Arrow => Ok(type_text::print_schema(schema)),
        Language::Ds | Language::Dynd => Err(Error::unsupported("this build has Arrow types only")),
    }
}

/// The `.meta` text that DAPHNE wants beside a file of this content.
pub fn daphne_meta(summary: &crate::formats::Summary) -> Result<String> {
    let _ = summary;
    Err(Error::unsupported("this build has no dbdf"))
}
