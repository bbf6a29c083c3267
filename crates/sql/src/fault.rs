//! Our errors through DataFusion and back: one line, with the file's own error and byte.

use arrow_schema::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;
use pentaglot::{Error, ErrorKind, Hint, redacted};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// Our error as one of DataFusion.
pub(crate) fn theirs(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Our error as text that survives a cluster: what wraps it there is taken off again by [`ours`].
pub(crate) fn travelling(error: &Error) -> DataFusionError {
    let text = match error.output().or(error.input()) {
        Some(name) => format!("{}: {error}", redacted(name)),
        None => error.to_string(),
    };
    DataFusionError::Execution(format!("{BEGIN}{}{END}", utf8_percent_encode(&text, HIDDEN)))
}

/// What a text of another process says of our own errors.
pub(crate) fn travelled(text: &str) -> Option<Error> {
    let (_, rest) = text.split_once(BEGIN)?;
    let (text, _) = rest.split_once(END)?;
    let text = percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some(Error::usage(text))
}

/// Marks of an error's text; what is between them has none of the characters that are escaped on the way.
const BEGIN: &str = "<pentaglot ";
const END: char = '>';
const HIDDEN: &AsciiSet =
    &CONTROLS.add(b'"').add(b'\\').add(b'\'').add(b'<').add(b'>').add(b'%').add(b'`').add(b'{').add(b'}');

/// An error of DataFusion as ours; what we put in comes out again.
pub(crate) fn ours(error: DataFusionError) -> Error {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => other_error(&other.to_string()),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => ours(*inner),
        DataFusionError::ArrowError(inner, _) => Error::from(*inner),
        DataFusionError::IoError(inner) => Error::from(inner),
        DataFusionError::SQL(parser, _) => other_error(&parser.to_string()),
        DataFusionError::Plan(text) => plan_error(&text),
        DataFusionError::ResourcesExhausted(text) => Error::new(ErrorKind::Limit, one_line(&text)),
        DataFusionError::Shared(shared) => match std::sync::Arc::try_unwrap(shared) {
            Ok(error) => ours(error),
            Err(shared) => match find(&shared) {
                Some(error) => copy(error),
                None => other_error(&shared.strip_backtrace()),
            },
        },
        DataFusionError::Collection(mut errors) if !errors.is_empty() => ours(errors.swap_remove(0)),
        other => match find(&other) {
            Some(error) => copy(error),
            None => other_error(&other.strip_backtrace()),
        },
    }
}

/// Whether a reader of Parquet, other than ours, has failed.
pub(crate) fn is_of_parquet(error: &DataFusionError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let is_arrow = matches!(error.downcast_ref(), Some(ArrowError::ParquetError(_)));
        if is_arrow || error.is::<ParquetError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Our error somewhere among the causes.
fn find<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<Error>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

fn copy(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.to_string());
    match error.input() {
        Some(input) => copy.in_input(input),
        None => copy,
    }
}

fn other_error(text: &str) -> Error {
    travelled(text).unwrap_or_else(|| Error::usage(one_line(text)))
}

/// An error in what a statement means. A file whose name is not quoted is taken for a table.
fn plan_error(text: &str) -> Error {
    let error = other_error(text);
    let table =
        text.strip_prefix("table '").and_then(|rest| rest.split_once("' not found")).map(|(name, _)| name);
    match table {
        Some(name) => {
            let name = name.strip_prefix("datafusion.").unwrap_or(name);
            let name = name.strip_prefix("public.").unwrap_or(name);
            error.hint(Hint::Advice(format!("a file is a quoted name: FROM '{name}'").into()))
        }
        None => error,
    }
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    pentaglot::redacted_text(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_quoted_is_explained() {
        let error = ours(DataFusionError::Plan("table 'datafusion.ticks.bson' not found".to_owned()));
        assert_eq!(error.to_string(), "table 'datafusion.ticks.bson' not found");
        let Some(Hint::Advice(advice)) = error.advice() else { panic!("{error:?}") };
        assert_eq!(advice, "a file is a quoted name: FROM 'ticks.bson'");
    }

    #[test]
    fn errors_survive_what_wraps_them() {
        let error =
            Error::malformed("\"a\\ <b>", "100 % {'é'}").at(7).in_format("csv").in_input("/data/x y.csv");
        let wrapped = format!("Job 7 failed: {:?}", Some(travelling(&error).to_string()));
        let found = ours(DataFusionError::Execution(wrapped));
        assert_eq!(found.to_string(), format!("/data/x y.csv: {error}"));
    }
}
