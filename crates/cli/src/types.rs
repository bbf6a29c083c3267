//! `type`: checks a type, prints its canonical text or its translation.

use pentaglot::Error;
use pentaglot::arrow::schema::{DataType, Field};
use pentaglot::hub::type_text;
use pentaglot::job::{self, Language};

use crate::args::{Type, TypeLanguage};
use crate::screen;
use crate::{DONE, Failure, Outcome, Session};

pub(crate) fn run(session: &Session, args: &Type) -> Outcome {
    let limits = session.global.limits();
    let parsed = match job::parse_type(&args.text, args.from.map(language), &limits) {
        Ok(parsed) => parsed,
        Err(error) => {
            show_place(&args.text, &error);
            // The text is the input here: an invalid one has status 1, like a malformed file.
            let usage = matches!(error.kind(), pentaglot::ErrorKind::Usage);
            let error = if usage { Error::malformed("a type", error.message().to_owned()) } else { error };
            return Err(error.into());
        }
    };
    let text = match args.language.map(language) {
        Some(wanted) if wanted != parsed.language() => {
            let schema = parsed.schema().map_err(Failure::from)?;
            job::print_type(&schema, wanted).map_err(Failure::from)?
        }
        _ => parsed.canonical(),
    };
    screen::print(format!("{text}\n").as_bytes())?;
    Ok(DONE)
}

/// The text with a caret under the faulty place.
fn show_place(text: &str, error: &Error) {
    let text = Language::of(text).1;
    if error.offset().is_some() && text.len() < 200 && !text.contains('\n') {
        type_text::caret(text, error).lines().for_each(|line| screen::say(&screen::escape(line)));
    }
}

pub(crate) fn language(language: TypeLanguage) -> Language {
    match language {
        TypeLanguage::Dynd => Language::Dynd,
        TypeLanguage::Ds => Language::Ds,
        TypeLanguage::Arrow => Language::Arrow,
        TypeLanguage::Sds => Language::Sds,
    }
}

/// A field's type with `?` if it is nullable.
pub(crate) fn field_text(field: &Field) -> String {
    type_text::print_field(field)
}

/// A field's type without `?`.
pub(crate) fn data_type_text(field: &Field) -> String {
    type_text::print_type(field.data_type())
}

/// A type's text.
pub(crate) fn arrow_text(kind: &DataType) -> String {
    type_text::print_type(kind)
}
