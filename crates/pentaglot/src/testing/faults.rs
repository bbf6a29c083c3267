//! A fault in each single read: recoverable faults are handled, others are I/O errors; the data read is never
//! wrong.

#![cfg(all(feature = "sds", feature = "dynd"))]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;

use super::conformance::{Suite, collect};
use crate::error::{ErrorKind, Result};
use crate::formats::Findings;
use crate::source::{ReadAt, Source};

/// The fault in one read.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Fewer bytes are returned than requested.
    Short,
    /// A signal interrupts it.
    Interrupted,
    /// The device fails.
    Device,
}

/// Bytes of which the read number `at` fails.
struct Faulty {
    content: Vec<u8>,
    costly: bool,
    reads: AtomicU64,
    fault: Option<(u64, Fault)>,
}

impl ReadAt for Faulty {
    fn len(&self) -> u64 {
        self.content.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.content.get(offset as usize..).unwrap_or_default();
        let mut count = rest.len().min(buffer.len());
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Some((at, Fault::Short)) if at == read => count = count.div_ceil(2),
            Some((at, Fault::Interrupted)) if at == read => return Err(io::ErrorKind::Interrupted.into()),
            Some((at, Fault::Device)) if at == read => return Err(io::Error::from_raw_os_error(5)),
            _ => {}
        }
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn is_costly(&self) -> bool {
        self.costly
    }
}

/// Validates and reads a file once per read, with a fault in that read; returns what went wrong.
pub(crate) fn every_read_fails(suite: &Suite<'_>, bytes: &[u8]) -> Vec<String> {
    let mut wrong = Vec::new();
    for costly in [false, true] {
        let run = |fault| {
            let content = bytes.to_vec();
            let faulty = Arc::new(Faulty { content, costly, reads: AtomicU64::new(0), fault });
            let read = read(suite, Arc::clone(&faulty));
            (read, faulty.reads.load(Ordering::Relaxed))
        };
        let (whole, reads) = run(None);
        let whole = whole.unwrap();
        for at in 0..reads {
            for fault in [Fault::Short, Fault::Interrupted, Fault::Device] {
                let said = match (fault, run(Some((at, fault))).0) {
                    (Fault::Device, Err(error)) if error.kind() == ErrorKind::Io => continue,
                    (Fault::Short | Fault::Interrupted, Ok(found)) if found == whole => continue,
                    (Fault::Device, Ok((findings, _))) => format!("found {findings:?}"),
                    (_, Ok(_)) => "other data is read".to_owned(),
                    (_, Err(error)) => error.to_string(),
                };
                wrong.push(format!("{fault:?} in read {at} of {reads}, costly: {costly}: {said}"));
            }
        }
    }
    wrong
}

fn read(suite: &Suite<'_>, bytes: Arc<Faulty>) -> Result<(Vec<String>, RecordBatch)> {
    let source = Source::from_read_at("faulty", bytes);
    let document = suite.format.open(source, &suite.read)?;
    let mut findings = Findings::new(false);
    document.validate(&mut findings)?;
    let findings = findings.list().iter().map(|finding| finding.message.clone()).collect();
    Ok((findings, collect(document.all_rows()?)?))
}
