//! Checks every rule of the members, of the archive and of a sparse matrix.
//!
//! | rule | what |
//! |---|---|
//! | `zip-…`, `crc` | the directory and the checksums of members agree with their bytes |
//! | `sparse-members`, `sparse-format`, `sparse-shape`, `sparse-index` | a sparse matrix has all members, and they are consistent |
//! | those of npy | each member is an array |

use arrow_array::Array;
use arrow_array::cast::AsArray;

use super::INFO;
use super::read::{Content, NpzDocument, open_member};
use crate::error::{Context, Result};
use crate::formats::Findings;
use crate::formats::npy::validate::{self, is_files_fault};
use crate::hub::Selection;

pub(super) fn validate(document: &NpzDocument, findings: &mut Findings) -> Result<()> {
    for entry in &document.directory.entries {
        let checked = match open_member(&document.source, entry, &document.budget) {
            // An unsupported member is not an error of the archive.
            Err(error) if error.kind() == crate::ErrorKind::Unsupported => {
                findings.note(&error);
                continue;
            }
            Err(error) => Err(error),
            Ok(array) => validate::validate(&array, Some(entry.name()), findings),
        };
        match checked {
            Err(error) if is_files_fault(&error) => findings.error(&error),
            other => other.in_format(INFO.id)?,
        }
    }
    if let Content::Sparse(sparse) = &document.content {
        let rows = sparse.rows(&Selection::new(&document.summary.schema, document.summary.rows));
        let read = rows.and_then(|mut rows| {
            let mut entries = 0;
            for batch in rows.by_ref() {
                entries += batch?.column(0).as_list::<i64>().values().len() as u64;
            }
            Ok(entries)
        });
        match read {
            Err(error) if is_files_fault(&error) => findings.error(&error),
            other => {
                other.in_format(INFO.id)?;
            }
        }
    }
    Ok(())
}
