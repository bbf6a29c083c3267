//! [`Summary`]: what an open file says of itself.

use arrow_schema::SchemaRef;

use crate::error::{self, Error, Result};

/// A named part of a file and the bytes it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The part's path.
    pub path: String,
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it takes.
    pub bytes: u64,
}

/// What an open file says of itself, without its values being read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// The format's id.
    pub format: &'static str,
    /// The dialect, where the format has several.
    pub dialect: Option<&'static str>,
    /// Why it is taken for that dialect.
    pub dialect_reason: Option<String>,
    /// What else the same bytes could be.
    pub also_fits: Vec<String>,
    /// The schema of [`rows`](super::Document::rows), with shape and native type in its metadata.
    pub schema: SchemaRef,
    /// How many rows, if known.
    pub rows: Option<u64>,
    /// How many bytes, if known.
    pub bytes: Option<u64>,
    /// The bytes, part by part.
    pub parts: Vec<Part>,
    /// The members of a container.
    pub members: Vec<String>,
    /// What else the file says, in its own words.
    pub metadata: Vec<(String, String)>,
    /// Nulls per column, where they are known without a full read; empty if for none.
    pub null_counts: Vec<Option<u64>>,
    /// Stored entries of a sparse matrix, if known.
    pub nonzeros: Option<u64>,
    /// What the user should know.
    pub notes: Vec<String>,
}

impl Summary {
    /// A summary with a schema and nothing else.
    pub fn new(format: &'static str, schema: SchemaRef) -> Self {
        Summary {
            format,
            dialect: None,
            dialect_reason: None,
            also_fits: Vec::new(),
            schema,
            rows: None,
            bytes: None,
            parts: Vec::new(),
            members: Vec::new(),
            metadata: Vec::new(),
            null_counts: Vec::new(),
            nonzeros: None,
            notes: Vec::new(),
        }
    }

    /// Whether this is a container of which no member was named: it has members, but no rows of its own.
    pub fn is_container(&self) -> bool {
        !self.members.is_empty() && self.schema.fields().is_empty()
    }

    /// Errs where rows are wanted and this is a container of which no member was named; lists the members.
    pub fn check_member(&self) -> Result<()> {
        if !self.is_container() {
            return Ok(());
        }
        let members = error::list(&self.members);
        Err(Error::usage(format!("several members and none named: FILE::MEMBER with one of {members}")))
    }

    /// Adds a part.
    pub fn part(&mut self, path: impl Into<String>, offset: u64, bytes: u64) {
        self.parts.push(Part { path: path.into(), offset, bytes });
    }
}
