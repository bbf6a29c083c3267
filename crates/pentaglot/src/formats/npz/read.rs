//! An open archive: the document is one member, or SciPy's sparse matrix, which consists of all members.

use std::sync::Arc;

use arrow_schema::Schema;

use super::layout::{Directory, Entry};
use super::schema::SparseLayout;
use super::scipy::{self, Sparse};
use super::{INFO, damaged, outline, validate};
use crate::error::{self, Context, Error, Result};
use crate::formats::npy::read::{ArrayFile, named, summary};
use crate::formats::{Document, Findings, Outline, ReadOptions, Split, Summary};
use crate::hub::{Rows, Selection};
use crate::limits::Budget;
use crate::source::Source;

pub(super) struct NpzDocument {
    pub(super) source: Source,
    pub(super) directory: Directory,
    pub(super) content: Content,
    pub(super) summary: Summary,
    pub(super) budget: Budget,
}

pub(super) enum Content {
    Array(Entry),
    Sparse(Box<Sparse>),
    /// Several arrays, of which none was named.
    Several,
}

impl NpzDocument {
    pub(super) fn open(source: Source, options: &ReadOptions) -> Result<NpzDocument> {
        let budget = options.budget.clone();
        let source = source.seekable_if(|head| head.starts_with(b"PK"))?;
        let (directory, missing) = match options.damaged {
            true => damaged::read(&source, &budget)?,
            false => (Directory::read(&source, &budget)?, Vec::new()),
        };
        let members: Vec<String> = directory.entries.iter().map(|entry| entry.name().to_owned()).collect();
        let list = || error::list(&members);
        let (content, mut summary) = match (&options.member, directory.entries.as_slice()) {
            (Some(wanted), entries) => {
                let fits = |entry: &&Entry| entry.file_name == *wanted || entry.name() == wanted;
                let entry = entries.iter().find(fits).ok_or_else(|| {
                    Error::usage(format!("there is no member {wanted:?}; the members are {}", list()))
                })?;
                NpzDocument::array(&source, entry, &budget)?
            }
            (None, _) if scipy::is_sparse(&directory) => {
                match NpzDocument::sparse(&source, &directory, options) {
                    // Its arrays may be sound.
                    Err(_) if options.damaged => NpzDocument::several(),
                    sparse => sparse?,
                }
            }
            (None, [entry]) => NpzDocument::array(&source, entry, &budget)?,
            (None, []) => {
                return Err(no_members());
            }
            (None, _) => NpzDocument::several(),
        };
        summary.members = members;
        summary.missing_members = missing;
        summary.bytes = source.len();
        summary.parts.clear();
        for entry in &directory.entries {
            summary.part(entry.name(), entry.offset, entry.data_offset + entry.packed_bytes - entry.offset);
        }
        summary.part("directory", directory.offset, directory.bytes);
        let end = directory.offset + directory.bytes;
        summary.part("end", end, source.len().unwrap_or(0).saturating_sub(end));
        Ok(NpzDocument { source, directory, content, summary, budget })
    }

    fn several() -> (Content, Summary) {
        (Content::Several, Summary::new(INFO.id, Arc::new(Schema::empty())))
    }

    fn array(source: &Source, entry: &Entry, budget: &Budget) -> Result<(Content, Summary)> {
        let array = open_member(source, entry, budget)?;
        Ok((Content::Array(entry.clone()), summary(&array, INFO.id)))
    }

    fn sparse(source: &Source, directory: &Directory, options: &ReadOptions) -> Result<(Content, Summary)> {
        let sparse = Sparse::open(source.clone(), directory.clone(), options)?;
        let mut summary = Summary::new(INFO.id, Arc::clone(&sparse.schema));
        summary.rows = Some(sparse.rows);
        // Diagonals also store zeros and cells outside the matrix.
        summary.nonzeros = (sparse.layout != SparseLayout::Dia).then_some(sparse.entries);
        summary.metadata = vec![
            ("layout".to_owned(), sparse.layout.name().to_owned()),
            ("repeats".to_owned(), "summed, as SciPy does".to_owned()),
        ];
        Ok((Content::Sparse(Box::new(sparse)), summary))
    }
}

fn no_members() -> Error {
    Error::malformed("at least one member", "none").at(0).rule("zip-members")
}

pub(super) fn open_member(source: &Source, entry: &Entry, budget: &Budget) -> Result<ArrayFile> {
    let extent = entry.extent(source, budget.limits())?;
    ArrayFile::open(extent, INFO.id, budget, entry.is_cut).field(entry.name().to_owned())
}

impl Document for NpzDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        let array = match &self.content {
            Content::Sparse(_) | Content::Several => None,
            Content::Array(entry) => open_member(&self.source, entry, &self.budget).ok(),
        };
        array.and_then(|array| array.splits(wanted)).unwrap_or_else(|| Split::whole(&self.summary))
    }

    fn outline(&self) -> Outline {
        outline::outline(self)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(self, findings)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        let rows = match &self.content {
            Content::Sparse(sparse) => sparse.rows(request),
            Content::Several => return Err(self.summary.check_member().err().unwrap_or_else(no_members)),
            Content::Array(entry) => {
                open_member(&self.source, entry, &self.budget).and_then(|array| array.rows(request))
            }
        };
        named(INFO.id, rows)
    }
}
