//! `hash`: the identity of an open document, and digests of its `dynd:raw` bytes.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::Digest as _;

use super::conversion::Conversion;
use super::convert_options::ConvertOptions;
use super::open::{OpenOptions, Opened, Target};
use super::read::View;
use crate::error::{Context, Error, Result};
use crate::identity::{self, Identity, IdentityOptions};
use crate::sink::{Output, Sink};

/// A hash function of raw bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawDigest {
    /// BLAKE3, 32 bytes.
    Blake3,
    /// SHA-256.
    Sha256,
}

impl OpenOptions {
    /// How rows of documents opened with these options are hashed.
    pub(super) fn identity(&self) -> IdentityOptions {
        let mut options = IdentityOptions::default();
        options.budget = self.budget.clone();
        options.control = self.control.clone();
        options
    }
}

impl Opened {
    /// The content identity of all rows.
    pub fn identity(&self, options: &OpenOptions) -> Result<Identity> {
        let rows = self.rows(&View::default())?;
        identity::of_rows(rows, &options.identity()).in_format(self.format.info().id)
    }

    /// The digest of the `dynd:raw` bytes of a dynd value, in hex.
    pub fn raw_digest(&self, algorithm: RawDigest, options: &OpenOptions) -> Result<String> {
        let id = self.format.info().id;
        if id != "dynd" {
            return Err(Error::usage(format!("raw bytes are those of a dynd value, and this is {id}")));
        }
        let mut convert = ConvertOptions::default();
        convert.open = options.clone();
        let target = Target { format: Arc::clone(&self.format), dialect: Some("raw") };
        let state = match algorithm {
            RawDigest::Blake3 => State::Blake3(Box::default()),
            RawDigest::Sha256 => State::Sha256(Box::default()),
        };
        let state = Arc::new(Mutex::new(state));
        let sink = Sink::from_output(Box::new(Hashed(Arc::clone(&state))));
        Conversion::plan_opened(self.clone(), target, None, &convert)?.run_into(sink)?;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(match &*state {
            State::Blake3(hasher) => hasher.finalize().to_hex().to_string(),
            State::Sha256(hasher) => {
                hasher.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
            }
        })
    }
}

enum State {
    Blake3(Box<blake3::Hasher>),
    Sha256(Box<sha2::Sha256>),
}

/// An output that computes only a digest.
struct Hashed(Arc<Mutex<State>>);

impl Output for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Blake3(hasher) => {
                hasher.update(bytes);
            }
            State::Sha256(hasher) => hasher.update(bytes),
        }
        Ok(())
    }

    fn can_patch(&self) -> bool {
        false
    }

    fn patch(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sibling(&mut self, _: &str) -> io::Result<Option<Box<dyn Output>>> {
        Ok(None)
    }

    fn commit(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}
