//! An error of a store as one of ours: one line, without secrets.

use std::io;

use object_store::Error as Stored;
use pentaglot::{Error, ErrorKind};

use crate::Address;

/// What a store said, about which address.
#[derive(Debug)]
pub(crate) struct Fault {
    doing: &'static str,
    text: String,
    error: Stored,
}

impl Fault {
    pub(crate) fn new(address: &Address, error: Stored) -> Self {
        let text = shown(&error, address.secrets());
        Fault { doing: "cannot read", text, error }
    }

    /// Says what was being done.
    pub(crate) fn doing(self, doing: &'static str) -> Self {
        Fault { doing, ..self }
    }

    /// Whether there is nothing, or nothing that may be seen.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.error, Stored::NotFound { .. } | Stored::PermissionDenied { .. })
    }

    /// Whether the object is another one than the request asked for.
    pub(crate) fn is_changed(&self) -> bool {
        matches!(self.error, Stored::Precondition { .. } | Stored::NotModified { .. })
    }

    /// Whether the server does not know such a request.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.error, Stored::NotImplemented { .. } | Stored::NotSupported { .. })
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        let said = match &fault.error {
            Stored::NotFound { .. } => "there is no such object".to_owned(),
            Stored::PermissionDenied { .. } => format!("permission denied ({})", fault.text),
            Stored::Unauthenticated { .. } => format!("credentials are missing or wrong ({})", fault.text),
            _ if fault.is_changed() => return changed(),
            _ => fault.text,
        };
        Error::new(ErrorKind::Io, format!("{}: {said}", fault.doing))
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> io::Error {
        Error::from(fault).into()
    }
}

/// Two reads would be of two versions.
pub(crate) fn changed() -> Error {
    Error::new(ErrorKind::Io, "the object changed while it was read")
}

/// The last cause is the clearest; what leads up to it repeats it in most libraries.
fn shown(error: &dyn std::error::Error, secrets: &[String]) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = next.source();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = pentaglot::redacted_text(&line).into_owned();
    secrets.iter().fold(line, |line, secret| line.replace(secret.as_str(), "…"))
}
