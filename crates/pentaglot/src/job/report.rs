//! The report of a conversion: what it wrote and what it lost.

use super::open::Opened;
use crate::formats::Written;
use crate::hub::{FieldPlan, LossKind, LossRecord, Lost, Plan, Verdict, shape};

/// The report of a conversion.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// Rows written.
    pub rows: u64,
    /// Bytes written, before compression.
    pub bytes: u64,
    /// Notes about the input.
    pub input_notes: Vec<String>,
    /// Notes about the output.
    pub notes: Vec<String>,
    /// The losses, by kind and column.
    pub lost: Vec<Lost>,
    /// The identities, if the conversion was verified.
    #[cfg(feature = "dynd")]
    pub verified: Option<super::Verified>,
}

impl Report {
    /// Adds the report of another conversion into the same file.
    #[cfg(feature = "sds")]
    pub(super) fn add(&mut self, other: Report) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        // The same note is given once.
        for (own, others) in [(&mut self.input_notes, other.input_notes), (&mut self.notes, other.notes)] {
            for note in others {
                if !own.contains(&note) {
                    own.push(note);
                }
            }
        }
        self.lost.extend(other.lost);
    }
}

/// Creates the report of a run.
pub(super) fn report(opened: &Opened, plan: &Plan, lost: &LossRecord, mut written: Written) -> Report {
    for note in [shape::NAMES_NOT_KEPT, shape::SIZE_NOT_KEPT] {
        let of = |step: &FieldPlan| step.note.as_deref().is_some_and(|said| said.contains(note));
        if plan.steps.iter().any(of) {
            written.notes.push(note.to_owned());
        }
    }
    record_steps(plan, written.rows, lost);
    Report {
        rows: written.rows,
        bytes: written.bytes,
        input_notes: opened.document.summary().notes.clone(),
        notes: written.notes,
        lost: lost.lost(),
        #[cfg(feature = "dynd")]
        verified: None,
    }
}

/// Adds the losses of lossy steps, which do not depend on values. Names and what is not of a column are lost once, others
/// in every row.
fn record_steps(plan: &Plan, rows: u64, lost: &LossRecord) {
    for step in plan.steps.iter().filter(|step| step.verdict == Verdict::Lossy) {
        for kind in step.kinds.iter().filter(|kind| !lost.contains(*kind, &step.field)) {
            let (values, example) = match kind {
                LossKind::Names => (1, Some(&step.field)),
                LossKind::Metadata if step.field.is_empty() => (1, Some(&step.from)),
                // The values stay: what they mean is lost.
                LossKind::Metadata => (rows, None),
                _ => (rows, Some(&step.from)),
            };
            lost.add(kind, &step.field, values, || example.cloned());
        }
    }
}
