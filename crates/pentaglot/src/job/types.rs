//! Type languages: Arrow type text, DS types, datashape. Types are parsed, printed canonically and
//! translated.

use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};

#[cfg(any(feature = "ds", feature = "dynd"))]
use crate::convert::target_form;
use crate::error::{Error, ErrorKind, Hint, Result};
#[cfg(any(feature = "ds", feature = "dynd"))]
use crate::formats::Format;
use crate::formats::Summary;
#[cfg(feature = "ds")]
use crate::formats::ds;
#[cfg(feature = "dynd")]
use crate::formats::dynd;
#[cfg(feature = "sds")]
use crate::formats::sds;
use crate::hub::json::JsonOptions;
use crate::hub::type_text;
use crate::hub::{Form, LossKinds};
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
    /// Structures of simple-sds.
    Sds,
}

impl FromStr for Language {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "arrow" => Ok(Language::Arrow),
            "ds" => Ok(Language::Ds),
            "dynd" => Ok(Language::Dynd),
            "sds" => Ok(Language::Sds),
            other => Err(Error::usage(format!("expected arrow, ds, dynd or sds, found {other:?}"))),
        }
    }
}

/// The prefixes that name a language.
const PREFIXES: [(&str, Language); 4] =
    [("arrow:", Language::Arrow), ("ds:", Language::Ds), ("dynd:", Language::Dynd), ("sds:", Language::Sds)];

impl Language {
    /// The language that a prefix names, and the text after it.
    pub(super) fn prefixed(text: &str) -> Option<(Self, &str)> {
        let text = text.trim_start();
        PREFIXES.into_iter().find_map(|(prefix, language)| Some((language, text.strip_prefix(prefix)?)))
    }

    /// Whether a text is a type of sds: its prefix says so.
    pub(super) fn is_sds(text: &str) -> bool {
        matches!(Language::prefixed(text), Some((Language::Sds, _)))
    }

    /// The language of a text and the text without its prefix: a prefix `dynd:`, `ds:`, `arrow:` or `sds:` decides; else text
    /// that begins with `{"` or `"` is ds, text that begins as Arrow type text does is that, other text is dynd.
    pub fn of(text: &str) -> (Self, &str) {
        if let Some(prefixed) = Language::prefixed(text) {
            return prefixed;
        }
        let start = text.trim_start();
        let ds = start.starts_with('"')
            || start.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"'));
        let arrow = ARROW_STARTS.iter().any(|word| start.starts_with(word));
        let language = match (ds, arrow) {
            (true, _) => Language::Ds,
            (_, true) => Language::Arrow,
            _ => Language::Dynd,
        };
        (language, text)
    }
}

/// The first words of Arrow type text that are not a datashape, so that printed types can be parsed without a
/// prefix.
const ARROW_STARTS: &[&str] = &[
    "struct{",
    "list[",
    "fixed_list[",
    "large_list[",
    "dict[",
    "ordered_dict[",
    "map[",
    "matrix[",
    "sparse_matrix[",
    "array[",
    "value[",
];

/// A type in some language.
#[derive(Debug, Clone)]
pub struct TypeText {
    kind: Parsed,
}

#[derive(Debug, Clone)]
enum Parsed {
    Arrow(Schema),
    #[cfg(feature = "ds")]
    Ds(ds::Type),
    #[cfg(feature = "dynd")]
    Dynd(dynd::Type),
    #[cfg(feature = "sds")]
    Sds(sds::SdsType),
}

impl TypeText {
    /// The language it was written in.
    pub fn language(&self) -> Language {
        match self.kind {
            Parsed::Arrow(_) => Language::Arrow,
            #[cfg(feature = "ds")]
            Parsed::Ds(_) => Language::Ds,
            #[cfg(feature = "dynd")]
            Parsed::Dynd(_) => Language::Dynd,
            #[cfg(feature = "sds")]
            Parsed::Sds(_) => Language::Sds,
        }
    }

    /// Its canonical text in that language.
    pub fn canonical(&self) -> String {
        match &self.kind {
            Parsed::Arrow(schema) => type_text::print_schema(schema),
            #[cfg(feature = "ds")]
            Parsed::Ds(kind) => kind.to_string(),
            #[cfg(feature = "dynd")]
            Parsed::Dynd(kind) => kind.to_string(),
            #[cfg(feature = "sds")]
            Parsed::Sds(kind) => kind.to_string(),
        }
    }

    /// The hub schema of data of this type. A pattern, which no data has as its type, has none.
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(Arc::new(match &self.kind {
            Parsed::Arrow(schema) => schema.clone(),
            #[cfg(feature = "ds")]
            Parsed::Ds(kind) => kind.to_schema()?,
            #[cfg(feature = "dynd")]
            Parsed::Dynd(kind) => kind.to_schema()?,
            #[cfg(feature = "sds")]
            Parsed::Sds(kind) => kind.to_schema()?,
        }))
    }
}

/// Checks a type text. `language` overrides the detection from the text.
///
/// ```
/// use pentaglot::{Limits, job};
/// let text = job::parse_type("var * {x: int32, y: ?string}", None, &Limits::default())?;
/// let arrow = job::print_type(text.schema()?.as_ref(), job::Language::Arrow)?;
/// assert_eq!(arrow, "struct{x: int32, y: ?utf8}");
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn parse_type(text: &str, language: Option<Language>, limits: &Limits) -> Result<TypeText> {
    let (own, rest) = Language::of(text);
    match language {
        Some(given) if given == own => return parse_in(given, rest, limits),
        Some(given) => return parse_in(given, text, limits),
        None => {}
    }
    let parsed = parse_in(own, rest, limits);
    let other = match own {
        // With a prefix no other language is tried.
        _ if rest.len() < text.len() => return parsed,
        Language::Ds | Language::Sds => return parsed,
        Language::Arrow => Language::Dynd,
        Language::Dynd => Language::Arrow,
    };
    // The language in which more of the text is a type is the one that was meant.
    parsed.or_else(|error| {
        parse_in(other, text, limits).map_err(|second| match second.offset() > error.offset() {
            true => with_names(text, second),
            false => with_names(text, error),
        })
    })
}

/// Names of types, and what they are called here.
const NAMES: &[(&str, &[&str])] = &[
    ("bool", &["boolean", "logical", "bit"]),
    ("int8", &["i8", "si8", "byte"]),
    ("int16", &["i16", "si16", "short", "smallint"]),
    ("int32", &["i32", "si32"]),
    ("int64", &["i64", "si64", "integer", "long", "bigint"]),
    ("uint8", &["u8", "ui8"]),
    ("uint16", &["u16", "ui16"]),
    ("uint32", &["u32", "ui32"]),
    ("uint64", &["u64", "ui64"]),
    ("float16", &["f16", "half"]),
    ("float32", &["f32", "single"]),
    ("float64", &["f64", "float", "double", "real", "number"]),
    ("utf8", &["text", "str", "string", "varchar", "char", "object"]),
    ("binary", &["blob", "bytes", "bytea", "varbinary"]),
    ("date32", &["date"]),
    ("time[us]", &["time"]),
    ("timestamp[us]", &["datetime", "timestamp", "datetime64"]),
    ("duration[us]", &["timedelta", "interval"]),
    ("decimal128[10, 2]", &["decimal", "numeric"]),
    ("list[T]", &["list", "array"]),
    ("struct{name: T, …}", &["struct", "record", "row"]),
];

/// An error at a word that is not a type, with the name that may be meant.
fn with_names(text: &str, error: Error) -> Error {
    let expects =
        |what: &str| error.message().strip_prefix("expected ").is_some_and(|rest| rest.starts_with(what));
    let rest = error.offset().and_then(|at| text.get(usize::try_from(at).ok()?..));
    let (true, Some(rest)) = (expects("a type, found") || expects("an Arrow type, found"), rest) else {
        return error;
    };
    let rest = rest.trim_start();
    let end = rest.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(rest.len());
    let word = rest[..end].to_lowercase();
    let found = error.message().split_once("found ").map_or("", |(_, found)| found);
    let offset = error.offset().unwrap_or(0);
    let clear = Error::malformed("a type such as int64, float64, utf8 (docs/types.md)", found).at(offset);
    let distance = |name: &&str| strsim::damerau_levenshtein(name, &word);
    let near = || NAMES.iter().map(|(name, _)| *name).min_by_key(distance).filter(|name| distance(name) <= 2);
    let known = NAMES.iter().find(|(_, others)| others.contains(&word.as_str())).map(|(name, _)| *name);
    match known.or_else(|| near().filter(|_| word.len() > 3)) {
        // `decimal(12, 4)`, as SQL writes it.
        Some(name) if name.starts_with("decimal") => {
            let digits = rest[end..].trim_start().strip_prefix(['(', '[']);
            let digits = digits.and_then(|digits| digits.split_once([')', ']'])).map(|(digits, _)| digits);
            let parse = |digits: &str| {
                let (precision, scale) = digits.split_once(',').unwrap_or((digits, "0"));
                Some((precision.trim().parse::<u8>().ok()?, scale.trim().parse::<i8>().ok()?))
            };
            let (precision, scale) = digits.and_then(parse).unwrap_or((10, 2));
            let name = match precision {
                _ if u8::try_from(scale).is_ok_and(|scale| scale > precision) => return clear,
                1..=38 => "decimal128",
                39..=76 => "decimal256",
                _ => return clear,
            };
            clear.hint(Hint::Advice(format!("did you mean {name}[{precision}, {scale}]?").into()))
        }
        Some(name) => clear.hint(Hint::Advice(format!("did you mean {name}?").into())),
        None => clear,
    }
}

fn parse_in(language: Language, text: &str, limits: &Limits) -> Result<TypeText> {
    let kind = match language {
        Language::Arrow => Parsed::Arrow(type_text::parse_schema(text, limits)?),
        #[cfg(feature = "ds")]
        Language::Ds => Parsed::Ds(ds::Type::parse_within(text, limits)?),
        #[cfg(feature = "dynd")]
        Language::Dynd => Parsed::Dynd(dynd::Type::parse_within(text, limits)?),
        #[cfg(feature = "sds")]
        Language::Sds => Parsed::Sds(sds::SdsType::parse_within(text, limits)?),
        #[cfg(not(all(feature = "ds", feature = "dynd", feature = "sds")))]
        _ => return Err(Error::unsupported("this build does not have that type language")),
    };
    Ok(TypeText { kind })
}

/// An error in a type argument is a usage error, not one of the file.
pub(super) fn as_usage(argument: &str, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Limit => error,
        _ => {
            let usage = Error::usage(format!("{argument}: {error}"));
            match error.advice() {
                Some(hint) => usage.hint(hint.clone()),
                None => usage,
            }
        }
    }
}

/// A type of any language as exact Arrow type text. Text without a prefix that is not a type of the detected language
/// is also tried as Arrow type text.
pub(super) fn arrow_type_text(text: &str, limits: &Limits) -> Result<String> {
    let schema = match parse_type(text, None, limits).and_then(|kind| kind.schema()) {
        Ok(schema) => schema,
        Err(error) => match type_text::parse_schema(text, limits) {
            Ok(schema) => Arc::new(schema),
            Err(_) => return Err(error),
        },
    };
    // A single struct is accepted as the type of a row.
    let schema = match (Form::of(&schema), schema.fields().first().map(|field| field.data_type())) {
        (Form::Value, Some(DataType::Struct(fields))) => Arc::new(Schema::new(fields.clone())),
        _ => schema,
    };
    Ok(format!("arrow:{}", type_text::print_exact_schema(&schema)))
}

/// The type of data with this schema, in a language: the one that a conversion to that format writes.
///
/// ```
/// use pentaglot::Limits;
/// use pentaglot::job::{Language, parse_type, print_type};
/// let schema = parse_type("struct{x: int32, y: ?utf8}", None, &Limits::default())?.schema()?;
/// assert_eq!(print_type(&schema, Language::Dynd)?, "var * {x: int32, y: ?string}");
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn print_type(schema: &Schema, language: Language) -> Result<String> {
    match language {
        Language::Arrow => Ok(type_text::print_schema(schema)),
        #[cfg(feature = "ds")]
        Language::Ds => Ok(ds::Type::from_schema(target_schema(schema, &ds::Ds)?.as_ref())?.to_string()),
        #[cfg(feature = "dynd")]
        Language::Dynd => {
            Ok(dynd::Type::from_schema(target_schema(schema, &dynd::Dynd)?.as_ref())?.to_string())
        }
        Language::Sds => {
            Err(Error::unsupported("a schema as a type of sds (it is chosen by kind: sds:KIND)"))
        }
        #[cfg(not(all(feature = "ds", feature = "dynd")))]
        _ => Err(Error::unsupported("this build does not have that type language")),
    }
}

/// The type of a document, in a language: the one that a conversion of all its rows to that format writes.
pub fn document_type(summary: &Summary, language: Language) -> Result<String> {
    match language {
        #[cfg(feature = "dynd")]
        Language::Dynd => {
            let schema = target_schema(&summary.schema, &dynd::Dynd)?;
            Ok(dynd::Type::of_rows(&schema, summary.rows)?.to_string())
        }
        other => print_type(&summary.schema, other),
    }
}

/// The schema that data is written with.
#[cfg(any(feature = "ds", feature = "dynd"))]
fn target_schema(schema: &Schema, target: &dyn Format) -> Result<SchemaRef> {
    let shaped = target_form::plan(&Arc::new(schema.clone()), target.info().forms, "auto")?;
    shaped.plan.check(LossKinds::ALL)?;
    Ok(shaped.schema)
}

/// The text of the `.meta` file that DAPHNE needs for a file of this content.
#[cfg(feature = "dbdf")]
pub fn daphne_meta(summary: &Summary) -> Result<String> {
    crate::formats::dbdf::meta_text(summary)
}

/// How JSON values are written: arrays of dynd are decoded by their own format.
pub fn json_options() -> JsonOptions {
    #[allow(unused_mut, reason = "without dynd there is nothing to set")]
    let mut options = JsonOptions::default();
    #[cfg(feature = "dynd")]
    {
        options.dynd_value = Some(dynd::write_value_json);
    }
    options
}
