//! The size of a sparse matrix with its zeros written out, which is checked before anything is written.

use std::path::Path;

use arrow_schema::Schema;

use crate::convert::reshape::Reshape;
use crate::error::{Error, Hint, Result};
use crate::hub::{Effect, Form, Plan, Verdict, shape};

/// A dense output of up to this many bytes is always allowed.
const SMALL: u64 = 1 << 20;
/// The maximum ratio of a dense output to its sparse input, unless the dense form is requested.
const RATIO: u64 = 100;

/// The bytes of the values of a sparse matrix that becomes a dense one; `None` for all other changes.
pub(super) fn dense_bytes(from: &Schema, reshape: &Reshape, rows: Option<u64>) -> Option<u64> {
    let is_dense = match reshape.forms() {
        (Form::Sparse | Form::Coo, to) => matches!(to, Form::Dense | Form::Columns),
        _ => false,
    };
    if !is_dense {
        return None;
    }
    let value = shape::matrix_value_type(from)?;
    let width = value.primitive_width().unwrap_or(1) as u64;
    let cells = shape::matrix_rows(from).or(rows)?.checked_mul(shape::matrix_cols(from)?);
    Some(cells.and_then(|cells| cells.checked_mul(width)).unwrap_or(u64::MAX))
}

/// Errs if a dense output that was not asked for by name is far larger than its input.
pub(super) fn check_asked(bytes: u64, input: Option<u64>, to: Form) -> Result<()> {
    match input {
        Some(input) if bytes > SMALL && bytes / RATIO > input => {
            let word = if to == Form::Columns { "as=columns" } else { "as=matrix" };
            let message = format!(
                "the dense output takes {bytes} bytes, more than {RATIO} times the {input} bytes of the sparse input"
            );
            Err(Error::usage(message).hint(Hint::Option(word.into())))
        }
        _ => Ok(()),
    }
}

/// Says in a plan how large the dense output is.
pub(super) fn say(bytes: u64, plan: &mut Plan) {
    let size = format!("with its zeros {bytes} bytes");
    let widened = plan.steps.iter().position(|step| step.verdict == Verdict::Widened).unwrap_or(0);
    match plan.steps.get_mut(widened) {
        Some(step) => {
            step.note = Some(match step.note.take() {
                Some(note) => format!("{note}; {size}"),
                None => size,
            });
        }
        None => plan.step("", "sparse", "dense", Effect::widened().because(size)),
    }
}

/// Returns an error if the free space in the output's folder is less than `bytes`.
pub(super) fn check_room(bytes: u64, output: &str) -> Result<()> {
    let folder = Path::new(output).parent().filter(|folder| !folder.as_os_str().is_empty());
    let free = free_bytes(folder.unwrap_or(Path::new(".")));
    match free {
        Some(free) if output != "-" && bytes > free => {
            Err(Error::limit("the free space in the folder of the output", free, format!("{bytes} bytes")))
        }
        _ => Ok(()),
    }
}

/// The free space in a folder, if the system reports it.
fn free_bytes(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let folder = rustix::fs::statvfs(folder).ok()?;
        folder.f_bavail.checked_mul(folder.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}
