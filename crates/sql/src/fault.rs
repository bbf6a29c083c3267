//! Our errors through DataFusion and back: one line, with the file's own error and byte.

use datafusion::error::DataFusionError;
use pentaglot::{Error, ErrorKind};

/// Our error as one of DataFusion.
pub(crate) fn theirs(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

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
    Error::usage(one_line(text))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    pentaglot::redacted_text(&line).into_owned()
}
