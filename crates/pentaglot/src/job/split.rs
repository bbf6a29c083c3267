//! Writes an output as several files with a given number of rows each: all of them appear, or none.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::open::Target;
use crate::error::{Context, Error, Result};
use crate::formats::{WriteOptions, Writer, Written};
use crate::hub::rows::{self, sliced_schema};
use crate::sink::SinkGroup;

/// How an output is split.
#[derive(Debug, Clone)]
pub(super) struct Split {
    /// Rows of each file; the last may have fewer.
    pub(super) rows: u64,
    /// How each file is written.
    pub(super) write: WriteOptions,
    /// Input files, which must not be overwritten.
    pub(super) inputs: Vec<PathBuf>,
}

/// The files so far.
pub(super) struct Parts<'a> {
    target: &'a Target,
    schema: &'a SchemaRef,
    split: &'a Split,
    /// The name before and after the number.
    name: (String, String),
    group: SinkGroup,
    current: Option<Part>,
    next: u64,
    written: Written,
}

struct Part {
    writer: Box<dyn Writer>,
    schema: SchemaRef,
    rows: u64,
}

impl<'a> Parts<'a> {
    pub(super) fn new(
        target: &'a Target,
        schema: &'a SchemaRef,
        split: &'a Split,
        output: &str,
        force: bool,
    ) -> Result<Self> {
        if output == "-" {
            return Err(Error::usage("what is split into several files needs a name for them"));
        }
        let (name, group) = (split_name(output), SinkGroup::new(force));
        Ok(Parts { target, schema, split, name, group, current: None, next: 0, written: Written::default() })
    }

    fn path(&self, index: u64) -> PathBuf {
        format!("{}-{index:05}{}", self.name.0, self.name.1).into()
    }

    /// The file that takes the next row.
    fn part(&mut self) -> Result<&mut Part> {
        if self.current.is_none() {
            let path = self.path(self.next);
            let is_same = |input: &PathBuf| match (input.canonicalize(), path.canonicalize()) {
                (Ok(one), Ok(other)) => one == other,
                _ => false,
            };
            if self.split.inputs.iter().any(is_same) {
                let error = Error::usage("the output is one of the inputs");
                return Err(error.in_output(path.display().to_string()));
            }
            let start = self.next.saturating_mul(self.split.rows);
            let range = start..start.saturating_add(self.split.rows);
            let schema = sliced_schema(self.schema, &range);
            let mut options = self.split.write.clone();
            options.name = Some(path.display().to_string());
            let left = |total: u64| total.saturating_sub(start).min(self.split.rows);
            options.row_count = options.row_count.map(left);
            let id = self.target.format.info().id;
            let plan = self.target.format.plan(&schema, &options).in_format(id)?;
            let sink = self.group.create(&path)?;
            let writer = plan.create(sink.packed_for(&self.name.1)).in_format(id)?;
            self.next += 1;
            self.current = Some(Part { writer, schema, rows: 0 });
        }
        self.current.as_mut().ok_or_else(|| Error::usage("no file was started"))
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let (id, most) = (self.target.format.info().id, self.split.rows);
        let mut from = 0;
        while from < batch.num_rows() {
            let part = self.part()?;
            let room = usize::try_from(most - part.rows).unwrap_or(usize::MAX);
            let count = room.min(batch.num_rows() - from);
            let columns = batch.slice(from, count).columns().to_vec();
            let rows = rows::batch(Arc::clone(&part.schema), columns, count)?;
            part.writer.write(&rows).in_format(id)?;
            part.rows += count as u64;
            from += count;
            if part.rows == most {
                self.end_part()?;
            }
        }
        Ok(())
    }

    fn end_part(&mut self) -> Result<()> {
        let Some(part) = self.current.take() else { return Ok(()) };
        let own = part.writer.finish().in_format(self.target.format.info().id)?;
        self.written.rows += own.rows;
        self.written.bytes += own.bytes;
        for note in own.notes {
            if !self.written.notes.contains(&note) {
                self.written.notes.push(note);
            }
        }
        Ok(())
    }

    /// Ends the last file and gives all of them their names. Data without rows gives one file.
    pub(super) fn finish(mut self) -> Result<Written> {
        if self.next == 0 {
            self.part()?;
        }
        self.end_part()?;
        let (first, last, after) = (self.path(0), self.path(self.next - 1), self.path(self.next));
        self.group.commit()?;
        let mut written = self.written;
        written.notes.push(match self.next {
            1 => format!("one file, {}", first.display()),
            count => format!("{count} files, {} to {}", first.display(), last.display()),
        });
        if after.exists() {
            written
                .notes
                .push(format!("{} is of an earlier run and does not belong to them", after.display()));
        }
        Ok(written)
    }
}

/// A name split at the position of the number of a part: before the extension, and before that of a
/// compression.
fn split_name(output: &str) -> (String, String) {
    let path = Path::new(output);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let lower = name.to_lowercase();
    let packing = [".gz", ".zst", ".bz2"].into_iter().find(|packing| lower.ends_with(packing));
    let plain = name.len() - packing.map_or(0, str::len);
    let dot = name[..plain].rfind('.').filter(|dot| *dot > 0).unwrap_or(plain);
    let folder = &output[..output.len() - name.len()];
    (format!("{folder}{}", &name[..dot]), name[dot..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_comes_before_the_extensions() {
        let cases = [
            ("a/b.dbdf", "a/b", ".dbdf"),
            ("b.x.dbdf.GZ", "b.x", ".dbdf.GZ"),
            ("name", "name", ""),
            (".hidden", ".hidden", ""),
            ("dir.d/name", "dir.d/name", ""),
        ];
        for (output, before, after) in cases {
            assert_eq!(split_name(output), (before.to_owned(), after.to_owned()));
        }
    }
}
