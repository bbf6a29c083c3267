//! Errors of the driver in one line, without secrets.

use std::time::Duration;

use mongodb::error::{ErrorKind as Driver, WriteFailure};
use pentaglot::{Error, ErrorKind, redacted_text};

use crate::Address;

/// An error of the driver.
pub(crate) fn error(address: &Address, error: &mongodb::error::Error) -> Error {
    let text = match error.kind.as_ref() {
        Driver::ServerSelection { .. } => "no server can be reached".to_owned(),
        Driver::Authentication { message, .. } => format!("the server refuses the credentials: {message}"),
        Driver::Io(inner) => format!("the connection failed: {inner}"),
        Driver::DnsResolve { message, .. } => format!("the host is unknown: {message}"),
        Driver::InvalidArgument { message, .. } => message.clone(),
        Driver::Command(command) if matches!(command.code, 13 | 18) => {
            format!("the server refuses the credentials: {}", command.message)
        }
        Driver::Command(command) => format!("the server refuses the command: {}", command.message),
        Driver::Write(WriteFailure::WriteError(write)) => {
            format!("the server refuses the write: {}", write.message)
        }
        other => other.to_string(),
    };
    // The driver may quote the connection string.
    let text = redacted_text(&text).replace(address.uri(), address.shown());
    let line = text.lines().next().unwrap_or_default().trim();
    Error::new(ErrorKind::Io, format!("mongodb: {line}"))
}

pub(crate) fn timeout(_address: &Address, timeout: Duration) -> Error {
    Error::new(ErrorKind::Io, format!("mongodb: no answer within {} seconds", timeout.as_secs()))
}

/// Whether a document of this `_id` is there already.
pub(crate) fn is_duplicate(error: &mongodb::error::Error) -> bool {
    match error.kind.as_ref() {
        Driver::Write(WriteFailure::WriteError(write)) => write.code == 11000,
        Driver::Command(command) => command.code == 11000,
        _ => false,
    }
}
