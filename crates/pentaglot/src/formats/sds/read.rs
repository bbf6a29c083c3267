//! An open file as rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use pentaglot_succinct::{BitQueries, SharedWords};

use super::columns::{BATCH_ROWS, Reader, member_columns, run_bounds, sparse_bounds};
use super::containers::{Container, Content};
use super::detect::{Wanted, open_object};
use super::layout::{self, Object};
use super::partial::PartialDocument;
use super::schema::supports_text;
use super::type_text::{SdsKind, SdsType};
use super::{ID, outline, validate};
use crate::control::Control;
use crate::error::{self, Error, Hint, Result};
use crate::formats::{ColumnStatistics, Document, Findings, Outline, ReadOptions, Statistics, Summary};
use crate::hub::rows::{self, Rows};
use crate::hub::{Selection, shape};
use crate::limits::Budget;
use crate::source::Source;

pub(super) struct SdsDocument {
    summary: Summary,
    object: Arc<Object>,
    /// The content that is read: the structure, or a member of a container; `None` if none is named.
    content: Option<Content>,
    words: SharedWords,
    /// Whether lines of GFA have the ids of nodes.
    by_nodes: bool,
    budget: Budget,
    control: Control,
}

impl SdsDocument {
    pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Self> {
        let wanted = Wanted::new(options);
        let limits = options.budget.limits();
        let damaged = if options.damaged { wanted.given_type(limits)? } else { None };
        let mut missing = Vec::new();
        let (words, (object, also_fits)) = match damaged {
            // The structures before the fault are members of their own.
            Some(kind) if !matches!(kind, SdsType::Structure(_)) => {
                let words = layout::read_whole_words(&source, &options.budget)?;
                let (container, lost) = Container::read_damaged(&kind, &words)?;
                missing = lost;
                (words, (Object::Container(container), Vec::new()))
            }
            _ => {
                let words = layout::read_words(&source, options.in_place, &options.budget)?;
                let object = open_object(&words, wanted, limits)?;
                (words, object)
            }
        };
        let object = Arc::new(object);
        let content = content_of(&object, options.member.as_deref())?;
        let schema = content.as_ref().map_or_else(|| Ok(Schema::empty()), content_schema)?;
        let kind = object.kind();
        let mut summary = Summary::new(ID, Arc::new(schema));
        summary.dialect = Some(kind.name());
        summary.dialect_reason = Some(match (&options.dialect, kind, object.as_ref()) {
            (Some(_), ..) => "named by the user".to_owned(),
            (None, SdsKind::Composite, _) => "its type is given".to_owned(),
            (None, _, Object::Container(_)) if kind != SdsKind::Chains => "its tag says so".to_owned(),
            _ if wanted.given_type(options.budget.limits())?.is_some() => "its type is given".to_owned(),
            _ => "the first kind that uses all elements".to_owned(),
        });
        summary.also_fits = also_fits;
        summary.missing_members = missing;
        summary.bytes = Some(words.as_ref().len() as u64 * 8);
        for part in outline::parts(&object) {
            summary.part(part.path, part.start * 8, part.len * 8);
        }
        summary.metadata = facts(&object, content.as_ref());
        if let Object::Container(container) = object.as_ref() {
            let names = container.members().map(|(name, _)| name.to_owned());
            summary.members = names.filter(|name| !name.is_empty()).collect();
            summary.rows =
                content.as_ref().map_or(Ok(None), |content| row_count(content, Some(container)))?;
        } else {
            summary.rows = content.as_ref().map_or(Ok(None), |content| row_count(content, None))?;
        }
        let names = options.options.word("names", &["segments", "nodes"])?;
        let by_nodes = names == Some("nodes");
        let (budget, control) = (options.budget.clone(), options.control.clone());
        Ok(SdsDocument { summary, object, content, words, by_nodes, budget, control })
    }
}

/// The content whose rows are read: the structure itself, or the member of this name.
pub(super) fn content_of(object: &Arc<Object>, member: Option<&str>) -> Result<Option<Content>> {
    let no_graph =
        |kind: SdsKind| Error::unsupported(format!("GFA is written from a GBZ graph, and this is a {kind}"));
    let Object::Container(container) = object.as_ref() else {
        return match member {
            None => Ok(Some(Content::Object(Arc::clone(object)))),
            Some("gfa") => Err(no_graph(object.kind())),
            Some(name) => {
                let kind = object.kind();
                Err(Error::usage(format!("sds:{kind} has no members, so none is named {name:?}")))
            }
        };
    };
    match (container.member(member), member) {
        (Some(content), _) => Ok(Some(content.clone())),
        (None, None) => Ok(None),
        (None, Some("gfa")) if container.kind() != SdsKind::Composite => Err(no_graph(container.kind())),
        (None, Some(name)) => {
            let names = error::list(container.members().map(|(name, _)| name));
            let error = Error::usage(format!("there is no member {name:?} (there is {names})"));
            let inner = container.members().any(|(known, _)| known.starts_with(&format!("{name}.")));
            let advice = || Hint::Advice(format!("its parts are named {name}.PART").into());
            Err(if inner { error.hint(advice()) } else { error })
        }
    }
}

fn content_schema(content: &Content) -> Result<Schema> {
    Ok(match content {
        Content::Object(object) => object.schema()?,
        Content::Absent(kind) => kind.to_schema()?,
        Content::Tags(_) => Schema::new(vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", DataType::Utf8, false),
        ]),
        Content::Strings(_) => shape::array_schema(Field::new("item", DataType::Utf8, false)),
        Content::Paths(_) => {
            let names = ["sample", "contig", "phase", "fragment"];
            Schema::new(names.map(|name| Field::new(name, DataType::UInt32, false)).to_vec())
        }
        Content::Table(table) => table.schema(),
        Content::Field(_) => Schema::empty(),
    })
}

fn row_count(content: &Content, container: Option<&Container>) -> Result<Option<u64>> {
    Ok(match content {
        Content::Object(object) => object.row_count(),
        Content::Absent(_) | Content::Field(_) => Some(0),
        Content::Tags(strings) => Some(strings.len() / 2),
        Content::Strings(strings) => Some(strings.len()),
        Content::Paths(words) => Some(words.as_ref().len() as u64 / 2),
        Content::Table(table) => container.map_or(Ok(None), |container| table.row_count(container))?,
    })
}

impl Object {
    /// The number of rows, if known without reading them.
    fn row_count(&self) -> Option<u64> {
        Some(match self {
            // Runs are counted by reading them.
            Object::Container(_) | Object::RunLength(_) => return None,
            Object::RunLengthWavelet(matrix) => matrix.len(),
            Object::Wavelet(matrix) => matrix.len(),
            Object::WaveletCore(core) => core.len(),
            Object::Sparse(vector) => vector.count_ones(),
            Object::Bit(vector) => vector.len(),
            Object::Int(vector) => vector.len(),
            Object::Raw(vector) => vector.len(),
            Object::Option(content) => content.as_ref().map_or(0, |words| words.as_ref().len() as u64),
            Object::Pairs(words) => words.as_ref().len() as u64 / 2,
            Object::String(..) | Object::Bytes(..) | Object::Element(_) => 1,
            Object::Vec(words) => words.as_ref().len() as u64,
            Object::Items(elements, words) => words.as_ref().len() as u64 / elements.max(&1),
        })
    }
}

impl Document for SdsDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Positions are increasing, so the first and the last are the bounds.
    fn statistics(&self) -> Statistics {
        let bounds = match &self.content {
            Some(Content::Object(object)) => match object.as_ref() {
                Object::RunLength(vector) => run_bounds(vector),
                Object::Sparse(vector) => sparse_bounds(vector),
                _ => None,
            },
            _ => None,
        };
        let mut statistics = Statistics::of(&self.summary);
        let column = |field: &Arc<Field>| ColumnStatistics {
            nulls: (!field.is_nullable()).then_some(0),
            ..ColumnStatistics::default()
        };
        statistics.columns = self.summary.schema.fields().iter().map(column).collect();
        if let (Some((min, max)), Some(column)) = (bounds, statistics.columns.first_mut()) {
            let one = |value: u64| -> Option<ArrayRef> { Some(Arc::new(UInt64Array::from(vec![value]))) };
            (column.min, column.max) = (one(min), one(max));
        }
        statistics
    }

    fn outline(&self) -> Outline {
        outline::outline(&self.object, self.words.clone())
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        validate::validate(&self.object, &self.budget, &self.control, findings)
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        self.summary.check_member()?;
        let Some(content) = &self.content else {
            return Err(Error::unsupported("rows of a file without members"));
        };
        let range = request.range(self.summary.rows.unwrap_or(u64::MAX));
        let size = request.batch_rows_or(BATCH_ROWS) as u64;
        let schema = Arc::clone(request.row_schema());
        let batches: Box<dyn Iterator<Item = Result<_>> + Send> = match (content, self.object.as_ref()) {
            (Content::Object(object), _) => {
                if let Object::RunLengthWavelet(_) = object.as_ref() {
                    validate::check_runs(object)?;
                    let bytes = self.words.as_ref().len() as u64 * 8;
                    self.budget.limits().check_free_rows((range.end - range.start).saturating_sub(bytes))?;
                }
                let reader = Reader { object: Arc::clone(object), budget: self.budget.clone() };
                reader.batches(range, size, Arc::clone(&schema))?
            }
            (Content::Table(table), Object::Container(container)) => table
                .open(container, &self.budget, self.by_nodes)?
                .batches(range, size, Arc::clone(&schema))?,
            (Content::Absent(_), _) => Box::new(std::iter::empty()),
            (content, _) => {
                let (content, schema, mut next) = (content.clone(), Arc::clone(&schema), range.start);
                Box::new(std::iter::from_fn(move || {
                    let rows = next..range.end.min(next.saturating_add(size));
                    next = rows.end;
                    let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
                    let batch = || rows::batch(Arc::clone(&schema), member_columns(&content, &rows)?, count);
                    (count > 0).then(batch)
                }))
            }
        };
        request.project(rows::from_batches(schema, batches))
    }
}

/// Only the selected rows are read; all other operations need the whole file.
impl Document for PartialDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn outline(&self) -> Outline {
        let bytes = self.summary.bytes.unwrap_or(0);
        whole(self).map_or_else(|_| Outline::new("file", 0, bytes), |document| document.outline())
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        whole(self)?.validate(findings)
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        selection.project(self.batches(selection))
    }
}

/// The document in memory.
fn whole(partial: &PartialDocument) -> Result<SdsDocument> {
    SdsDocument::open(partial.source.clone(), &partial.options)
}

/// The metadata of a file, or of the member that is read.
fn facts(whole: &Object, content: Option<&Content>) -> Vec<(String, String)> {
    let mut facts = vec![("kind".to_owned(), whole.kind().to_string())];
    let mut fact = |key: &str, value: String| facts.push((key.to_owned(), value));
    if let Object::Container(container) = whole {
        container.facts().iter().for_each(|(key, value)| fact(key, value.clone()));
    }
    let object = match content {
        Some(Content::Object(object)) => object.as_ref(),
        Some(Content::Absent(kind)) => {
            fact("member", kind.to_string());
            fact("present", false.to_string());
            return facts;
        }
        _ => return facts,
    };
    if object.kind() != whole.kind() {
        fact("member", object.kind().to_string());
    }
    match object {
        Object::RunLengthWavelet(matrix) => fact("width", matrix.width().to_string()),
        Object::Wavelet(matrix) => fact("width", matrix.width().to_string()),
        Object::WaveletCore(core) => fact("width", core.width().to_string()),
        Object::RunLength(vector) => {
            fact("length", vector.len().to_string());
            fact("ones", vector.count_ones().to_string());
        }
        Object::Sparse(vector) => {
            fact("length", vector.len().to_string());
            fact("ones", vector.count_ones().to_string());
            fact("width", vector.low().width().to_string());
        }
        Object::Bit(vector) => fact("ones", vector.count_ones().to_string()),
        Object::Int(vector) => fact("width", vector.width().to_string()),
        Object::Option(content) => fact("present", content.is_some().to_string()),
        Object::String(bytes, _) | Object::Bytes(bytes, _) => fact("length", bytes.to_string()),
        _ => {}
    }
    if let Some(supports) = object.native().supports {
        facts.push(("supports".to_owned(), supports_text(supports)));
    }
    facts
}
