//! Every rule that the bytes can break; a batch that is broken does not hide the next.

use super::body::{self, Dictionaries};
use super::layout::{MAGIC, Message, MessageKind, Next, first_message, read_message};
use super::pipe::Pipe;
use super::read::{Entry, Store};
use crate::error::{self, Context, Error, ErrorKind, Result};
use crate::formats::Findings;
use crate::formats::arrow_flatbuffers;

/// A file's fault is a finding; anything else ends the run.
fn report(findings: &mut Findings, result: Result<()>) -> Result<()> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
            findings.error(&error);
            Ok(())
        }
        other => other,
    }
}

pub(super) fn store(store: &Store, findings: &mut Findings) -> Result<()> {
    if store.footer.is_some() {
        check_padding(store, findings)?;
        match check_leading_schema(store) {
            Err(error) if error.kind() != ErrorKind::Io => {
                let finding = Error::malformed("the schema of the footer, repeated at the start", error);
                findings.error(&finding.at(MAGIC.len() as u64 + 2).field("schema").rule("leading-schema"));
            }
            other => other?,
        }
        check_overlaps(store, findings);
    } else {
        check_end(store, findings);
    }
    let mut dictionaries = Dictionaries::new();
    let (mut dictionary, mut batch) = (0, 0);
    for entry in &store.entries {
        let result = check_alignment(store, entry, findings);
        match entry.kind {
            MessageKind::Dictionary { .. } => {
                let result = result.and_then(|()| store.read_dictionary(entry, &mut dictionaries));
                report(findings, result.index(dictionary).field("dictionary"))?;
                dictionary += 1;
            }
            _ => {
                let result = result.and_then(|()| store.read_batch(entry, None, &dictionaries).map(drop));
                report(findings, result.index(batch).field("batch"))?;
                batch += 1;
            }
        }
        if findings.is_full() {
            break;
        }
    }
    Ok(())
}

fn check_padding(store: &Store, findings: &mut Findings) -> Result<()> {
    let mut head = [0; 8];
    store.source.read_exact_at(0, &mut head)?;
    if head.get(MAGIC.len()..) != Some(&[0, 0]) {
        let error = Error::malformed("two zero bytes after the magic", error::hex(&head));
        findings.warning(&error.at(MAGIC.len() as u64).rule("padding"));
    }
    Ok(())
}

/// The schema message at the start, which the footer repeats. Readers of the file do not need it; readers of the same bytes
/// as a stream do.
fn check_leading_schema(store: &Store) -> Result<()> {
    let offset = first_message(&store.source)?;
    let first = match read_message(&store.source, offset, &store.budget)? {
        Next::Message(message) if message.kind == MessageKind::Schema => message,
        _ => {
            return Err(Error::malformed("a schema message", "something else").at(offset));
        }
    };
    let limits = store.budget.limits();
    let schema = first.flatbuffer(limits)?.header_as_schema();
    let schema = schema.ok_or_else(|| Error::malformed("a schema", "none").at(offset))?;
    let schema = arrow_flatbuffers::schema(schema, limits).at(offset)?;
    if schema == *store.schema { Ok(()) } else { Err(Error::malformed("the same", "another").at(offset)) }
}

fn check_overlaps(store: &Store, findings: &mut Findings) {
    let mut ranges: Vec<(u64, u64)> = store
        .entries
        .iter()
        .map(|entry| (entry.block.offset, entry.block.metadata_bytes + entry.block.body_bytes))
        .collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        let [(first, bytes), (second, _)] = pair else { continue };
        if first + bytes > *second {
            let expected = format!("a block at {} or later", first + bytes);
            findings.error(&Error::malformed(expected, second).at(*second).field("footer").rule("overlap"));
        }
    }
}

/// A stream should end with its marker and nothing after it.
fn check_end(store: &Store, findings: &mut Findings) {
    if store.end.is_empty() {
        let error = Error::malformed("an end-of-stream marker", "the end of the bytes").at(store.end.start);
        findings.warning(&error.field("end").rule("end-of-stream"));
    }
    let total = store.source.len().unwrap_or(0);
    if total > store.end.end {
        let more = total - store.end.end;
        let error = Error::malformed("the end", format_args!("{more} more bytes")).at(store.end.end);
        findings.warning(&error.rule("trailing"));
    }
}

/// Messages and buffers start at multiples of eight.
fn check_alignment(store: &Store, entry: &Entry, findings: &mut Findings) -> Result<()> {
    let message = entry.block.read(&store.source, &store.budget)?;
    alignment(&message, findings, store.budget.limits())
}

fn alignment(message: &Message, findings: &mut Findings, limits: &crate::Limits) -> Result<()> {
    let mut check = |what: &'static str, offset: u64| {
        if !offset.is_multiple_of(8) {
            let error = Error::malformed("a multiple of 8", offset).at(message.offset).field(what);
            findings.warning(&error.rule("alignment"));
        }
    };
    check("offset", message.offset);
    check("body", message.body_offset());
    check("end", message.end());
    let batch = message.record_batch(limits)?;
    for extent in body::extents(batch, message)? {
        check("buffer", extent.start);
    }
    Ok(())
}

/// A pipe: its messages once, each decoded.
pub(super) fn pipe(pipe: &Pipe, findings: &mut Findings) -> Result<()> {
    let mut tape = pipe.tape()?;
    let mut dictionaries = Dictionaries::new();
    let limits = pipe.budget.limits();
    let (mut dictionary, mut batch) = (0, 0);
    loop {
        // Past a broken header nothing says where the next message begins.
        let message = match tape.next() {
            Ok(Next::Message(message)) => message,
            Ok(Next::End(0)) => {
                let error = Error::malformed("an end-of-stream marker", "the end of the bytes").field("end");
                findings.warning(&error.rule("end-of-stream"));
                return Ok(());
            }
            Ok(Next::End(_)) => return Ok(()),
            Err(error) => return report(findings, Err(error)),
        };
        let body = match tape.body(&message) {
            Ok(body) => body,
            Err(error) => return report(findings, Err(error)),
        };
        let schema = &pipe.schema;
        match message.kind {
            MessageKind::Dictionary { .. } => {
                let result = alignment(&message, findings, limits).and_then(|()| {
                    body::decode_dictionary(&message, &body, schema, &mut dictionaries, &pipe.budget)
                });
                report(findings, result.index(dictionary).field("dictionary"))?;
                dictionary += 1;
            }
            MessageKind::Batch { .. } => {
                let result = alignment(&message, findings, limits).and_then(|()| {
                    body::decode(&message, &body, schema, &dictionaries, &pipe.budget).map(drop)
                });
                report(findings, result.index(batch).field("batch"))?;
                batch += 1;
            }
            MessageKind::Schema | MessageKind::Other(_) => {
                let found = format!("{:?}", message.kind);
                let error = Error::malformed("a record or dictionary batch", found).at(message.offset);
                findings.error(&error.rule("order"));
            }
        }
    }
}
