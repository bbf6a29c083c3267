//! [`Summary`]: what is known of an open file.

use arrow_schema::SchemaRef;
use serde_json::{Map, Value, json};

use crate::error::{self, Error, Result};
use crate::hub::shape::{self, Form, Shape};
use crate::hub::type_text::print_type;

/// A named part of a file and its byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The part's path.
    pub path: String,
    /// The offset of its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A column or a member that a damaged file lacks, or of which a part is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPart {
    /// Its name, or those of the first and the last of several; empty where that is not known.
    pub name: String,
    /// The bytes of the file in which it is, or where it should be, as far as that is known.
    pub bytes: std::ops::Range<u64>,
    /// Why it is missing.
    pub reason: String,
}

/// What is known of an open file without reading its values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Summary {
    /// The format's id.
    pub format: &'static str,
    /// The dialect, where the format has several.
    pub dialect: Option<&'static str>,
    /// The reason for that dialect.
    pub dialect_reason: Option<String>,
    /// Other formats or dialects that the bytes fit.
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
    /// Other metadata of the file, with its own names.
    pub metadata: Vec<(String, String)>,
    /// The number of nulls per column, if known without a full read; empty if known for none.
    pub null_counts: Vec<Option<u64>>,
    /// Stored entries of a sparse matrix, if known.
    pub nonzeros: Option<u64>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Those of the notes that say what is ignored, in the file or beside it: the values or their types are other ones
    /// than a user may expect, whatever the file is read for.
    pub ignored: Vec<String>,
    /// The columns that a damaged file lacks; the schema is without them.
    pub missing_columns: Vec<MissingPart>,
    /// The members that a damaged container lacks.
    pub missing_members: Vec<MissingPart>,
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
            ignored: Vec::new(),
            missing_columns: Vec::new(),
            missing_members: Vec::new(),
        }
    }

    /// Adds a note on what is ignored.
    pub(crate) fn note_ignored(&mut self, note: Option<String>) {
        self.notes.extend(note.clone());
        self.ignored.extend(note);
    }

    /// Whether this is a container of which no member was named: it has members, but no rows.
    pub fn is_container(&self) -> bool {
        !self.members.is_empty() && self.schema.fields().is_empty()
    }

    /// Returns an error that lists the members, if this is a container of which no member was named.
    pub fn check_member(&self) -> Result<()> {
        if !self.is_container() {
            return Ok(());
        }
        let members = error::list(&self.members);
        Err(Error::usage(format!("several members and none named: FILE::MEMBER with one of {members}")))
    }

    /// Rows of the shape, if known: those of the matrix if the file stores `row, col, value`.
    pub fn shape_rows(&self) -> Option<u64> {
        match Form::of(&self.schema) {
            Form::Coo => shape::matrix_rows(&self.schema),
            _ => self.rows.or_else(|| shape::matrix_rows(&self.schema)),
        }
    }

    /// Stored entries of a sparse matrix in any form, if known.
    pub fn entries(&self) -> Option<u64> {
        match Form::of(&self.schema) {
            Form::Coo => self.nonzeros.or(self.rows),
            _ => self.nonzeros,
        }
    }

    /// The stable JSON form, an object, for a file of this name.
    ///
    /// ```
    /// use pentaglot::{Registry, Source, job};
    /// let source = Source::from_bytes("x.csv", b"a\n1\n".to_vec());
    /// let opened = job::open_source(&Registry::default(), source, None, &job::OpenOptions::default())?;
    /// assert!(opened.document.summary().to_json("x.csv").starts_with(r#"{"file":"x.csv","format":"csv""#));
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    pub fn to_json(&self, file: &str) -> String {
        let schema = &self.schema;
        let column = |(index, field): (usize, &arrow_schema::FieldRef)| {
            json!({
                "name": field.name(),
                "type": print_type(field.data_type()),
                "nullable": field.is_nullable(),
                "null_count": self.null_counts.get(index).copied().flatten(),
            })
        };
        let columns: Vec<Value> = schema.fields().iter().enumerate().map(column).collect();
        let part = |part: &Part| json!({ "path": part.path, "offset": part.offset, "bytes": part.bytes });
        let parts: Vec<Value> = self.parts.iter().map(part).collect();
        let metadata = self.metadata.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str())));
        let mut object = json!({
            "file": file,
            "format": self.format,
            "dialect": self.dialect,
            "dialect_reason": self.dialect_reason,
            "also_fits": self.also_fits,
            "shape": Shape::of(schema).name(),
            "rows": self.shape_rows(),
            "columns": columns,
            "bytes": self.bytes,
            "parts": parts,
            "members": self.members,
            "metadata": metadata.collect::<Map<String, Value>>(),
        });
        if Shape::of(schema) == Shape::Matrix
            && let Some(object) = object.as_object_mut()
        {
            let value_type = shape::matrix_value_type(schema).map(|kind| print_type(&kind));
            object.insert("cols".to_owned(), json!(shape::matrix_cols(schema)));
            object.insert("value_type".to_owned(), json!(value_type));
            object.insert("nonzeros".to_owned(), json!(self.entries()));
        }
        object.to_string()
    }

    /// Adds a part.
    pub fn part(&mut self, path: impl Into<String>, offset: u64, bytes: u64) {
        self.parts.push(Part { path: path.into(), offset, bytes });
    }
}
