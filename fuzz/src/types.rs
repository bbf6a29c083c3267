//! Parses text as a type in each language, and as a condition.

use pentaglot::Limits;
use pentaglot::hub::filter::Filter;
use pentaglot::job::{self, Language};

/// The canonical text of a type is a type with the same canonical text.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let limits = Limits::default();
    for language in [Language::Arrow, Language::Ds, Language::Dynd] {
        let Ok(parsed) = job::parse_type(text, Some(language), &limits) else { continue };
        let canonical = parsed.canonical();
        let again = job::parse_type(&canonical, Some(language), &limits);
        let again =
            again.unwrap_or_else(|error| panic!("{canonical:?} is canonical text of {text:?}: {error}"));
        assert_eq!(again.canonical(), canonical, "of {text:?}");
        if let Ok(schema) = parsed.schema() {
            for target in [Language::Arrow, Language::Ds, Language::Dynd] {
                let _ = job::print_type(&schema, target);
            }
            let _ = Filter::parse(text, &schema);
        }
    }
}
