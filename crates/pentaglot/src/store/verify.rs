//! Checking a store: every byte of its packs, and every root.

use serde_json::json;

use super::Store;
use super::files::PACKS;
use super::index::Index;
use super::pack::{self, SUFFIX};
use crate::control::Control;
use crate::error::{Error, ErrorKind, Result};
use crate::identity::Cid;
use crate::limits::Budget;

/// What is wrong with a file of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreFinding {
    /// The file: `packs/ID.pack` or `roots/IDENTITY`.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// What checking a store found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// Packs.
    pub packs: u64,
    /// Bytes of the packs.
    pub bytes: u64,
    /// Roots.
    pub roots: u64,
    /// What is wrong; empty if the store is sound.
    pub findings: Vec<StoreFinding>,
}

impl Verification {
    /// One object: `{valid, packs, bytes, roots, findings: [{path, message}]}`.
    pub fn to_json(&self) -> String {
        let findings =
            self.findings.iter().map(|found| json!({ "path": found.path, "message": found.message }));
        let findings: Vec<serde_json::Value> = findings.collect();
        let Verification { packs, bytes, roots, .. } = self;
        json!({ "valid": findings.is_empty(), "packs": packs, "bytes": bytes, "roots": roots, "findings": findings })
            .to_string()
    }

    fn found(&mut self, path: String, message: impl Into<String>) {
        self.findings.push(StoreFinding { path, message: message.into() });
    }
}

pub(super) fn verify(store: &Store, budget: &Budget, control: &Control) -> Result<Verification> {
    let files = store.files.as_ref();
    let mut verification = Verification::default();
    let mut packs = Vec::new();
    for item in files.list(PACKS)?.into_iter().filter(|item| item.name.ends_with(SUFFIX)) {
        verification.packs += 1;
        verification.bytes += item.bytes;
        packs.push(item.name);
    }
    control.expect_bytes(Some(verification.bytes));
    let check = |name: String| Ok((verify_pack(store, &name, budget, control)?, name));
    for done in control.map(packs, check)? {
        let (messages, name) = done?;
        messages.into_iter().for_each(|message| verification.found(format!("{PACKS}/{name}"), message));
    }
    let index = Index::read(std::sync::Arc::clone(&store.files), budget, control)?;
    for id in store.identities()? {
        control.check()?;
        verification.roots += 1;
        let path = format!("{}/{id}", super::ROOTS);
        let root = match store.root(&id, budget) {
            Ok(root) => root,
            Err(error) => {
                if is_ours(&error) {
                    return Err(error);
                }
                verification.found(path, error.message());
                continue;
            }
        };
        let mut missing = Vec::new();
        for chunk in root.all_chunks() {
            match index.find(&chunk.digest)? {
                Some((_, entry)) if entry.plain == chunk.bytes => {}
                _ => missing.push(chunk.digest),
            }
        }
        if let Some(first) = missing.first() {
            let first = Cid::new(*first);
            let message = match missing.len() {
                1 => format!("the chunk {first} is missing"),
                count => format!("{count} chunks are missing, the first is {first}"),
            };
            verification.found(path, message);
        }
    }
    Ok(verification)
}

/// Whether an error is not about the file: the run ends.
fn is_ours(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Limit | ErrorKind::Cancelled)
}

/// What is wrong with a pack. Only where its digest is not its name are its chunks looked at one by one.
fn verify_pack(store: &Store, name: &str, budget: &Budget, control: &Control) -> Result<Vec<String>> {
    let source = store.files.open(&format!("{PACKS}/{name}"))?;
    let digest = match pack::digest(&source, |bytes| control.count_bytes(bytes)) {
        Ok(digest) => digest,
        Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
        Err(error) => return Ok(vec![error.message().to_owned()]),
    };
    if name.strip_suffix(SUFFIX) == Some(digest.to_string().as_str()) {
        return Ok(match pack::read_entries(&source, budget) {
            Ok(_) => Vec::new(),
            Err(error) if is_ours(&error) => return Err(error),
            Err(error) => vec![error.message().to_owned()],
        });
    }
    let mut messages = vec![format!("expected the content that its name says, found {digest}")];
    match pack::read_entries(&source, budget) {
        Ok(entries) => {
            for entry in &entries {
                control.check()?;
                if let Err(error) = pack::read_chunk(&source, entry, budget) {
                    messages.push(error.to_string());
                }
            }
        }
        Err(error) => messages.push(error.to_string()),
    }
    Ok(messages)
}
