//! `.npz`: arrays in a zip archive. One member is the document; SciPy's sparse matrices are one document together.

use crate::hub::Selection;
use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::encode::{self, Origin};
use super::layout::Header;
use super::read::ArrayFile;
use super::scipy::{self, Sparse};
use super::types::{Dtype, Kind, Scalar};
use super::validate::{self, is_files_fault};
use super::write::{self, Collector, Target};
use super::zip::{self, Directory, Entry, ZipWriter};
use super::{named, outline, summary};
use crate::error::{self, Context, Error, Result};
use crate::formats::{
    Confidence, Document, Findings, Format, FormatInfo, Head, Node, OptionInfo, Outline, ReadOptions, Split,
    Summary, TypeLanguage, WriteOptions, WritePlan, Writer, Written, planned, relaxed,
};
use crate::hub::relax::Rules;
use crate::hub::type_text::print_field;
use crate::hub::{Effect, Form, Plan, Rows, shape};
use crate::limits::Budget;
use crate::source::{Source, Spool};

/// The format `.npz`.
///
/// ```
/// use pentaglot::formats::{Format, ReadOptions, npy::Npz};
/// let source = pentaglot::Source::from_bytes("not.npz", b"PK".to_vec());
/// let error = Npz.open(source, &ReadOptions::default()).err().unwrap();
/// assert_eq!(error.to_string(), "npz: at byte 2, end: expected a zip end record, found none");
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Npz;

static INFO: FormatInfo = FormatInfo {
    id: "npz",
    title: "NumPy archive, also SciPy sparse matrix",
    dialects: &[],
    extensions: &["npz"],
    media_types: &["application/x-npz"],
    forms: &[Form::Sparse, Form::Dense, Form::Array, Form::Value, Form::Table],
    options: &[OptionInfo {
        key: "compressed",
        side: crate::formats::Side::Write,
        values: "true|false",
        default: "false",
        help: "deflate the members on writing",
    }],
    type_language: TypeLanguage::None,
    has_members: true,
    index: None,
    gzip_by_magic: true,
    spec: "https://numpy.org/doc/stable/reference/generated/numpy.savez.html",
};

impl Format for Npz {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn detect(&self, head: &Head<'_>) -> Confidence {
        let bytes = head.bytes();
        let by_name = head.has_extension(INFO.extensions);
        if bytes.starts_with(&zip::LOCAL_MAGIC) {
            let size = |at: usize| {
                bytes.get(at..at + 2).map_or(0, |size| {
                    size.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte))
                })
            };
            let name = bytes.get(30..30 + size(26)).unwrap_or_default();
            return match name.ends_with(b".npy") {
                true => Confidence::Certain,
                false if by_name => Confidence::Likely,
                false => Confidence::No,
            };
        }
        if bytes.starts_with(&zip::END_MAGIC) && by_name { Confidence::Likely } else { Confidence::No }
    }

    fn open(&self, source: Source, options: &ReadOptions) -> Result<Arc<dyn Document>> {
        let document = NpzDocument::open(source, options).in_format(INFO.id)?;
        Ok(Arc::new(document))
    }

    fn plan(&self, schema: &SchemaRef, options: &WriteOptions) -> Result<Box<dyn WritePlan>> {
        let compressed = options.options.bool("compressed").in_format(INFO.id)?.unwrap_or(false);
        let (body, options) = (body(schema, &options.budget).in_format(INFO.id), options.clone());
        Ok(planned(steps(schema), move |sink| {
            let zip = ZipWriter::new(sink, compressed).in_format(INFO.id)?;
            let writer = Box::new(NpzWriter { zip, body: body?, budget: options.budget.clone(), rows: 0 });
            Ok(relaxed(writer, Rules { nan_for_null: true, ..Rules::default() }, &options))
        }))
    }
}

fn steps(schema: &Schema) -> Plan {
    if Form::of(schema) != Form::Sparse {
        let mut plan = write::plan(schema, INFO.id);
        if Form::of(schema) == Form::Table {
            let effect = Effect::widened().because("each column comes back as an array of its own");
            plan.step("", "table", "a member per column", effect);
        }
        return plan;
    }
    let mut plan = Plan::default();
    let from = print_field(schema.field(0));
    match sparse_value(schema) {
        Ok((_, effect)) if index_limit(schema) => plan.step(shape::ROW_FIELD, from, "csr", effect),
        Ok(_) => {
            let effect = Effect::impossible("SciPy counts rows and columns up to 2^63-1");
            plan.step(shape::ROW_FIELD, from, "csr", effect);
        }
        Err(why) => plan.step(shape::ROW_FIELD, from, "csr", Effect::impossible(why)),
    }
    plan
}

/// What the rows become, if NPZ can hold them.
fn body(schema: &SchemaRef, budget: &Budget) -> Result<Body> {
    Ok(match Form::of(schema) {
        Form::Sparse => {
            let (scalar, _) = sparse_value(schema).map_err(Error::unsupported)?;
            Body::Sparse(Box::new(SparseBody::new(scalar, schema)))
        }
        Form::Table => Body::Members(
            schema
                .fields()
                .iter()
                .map(|field| {
                    let schema = Arc::new(shape::array_schema(field.as_ref().clone()));
                    let target = Target::of(&schema, INFO.id)?;
                    Ok((field.name().clone(), Collector::new(target, schema, budget.clone())))
                })
                .collect::<Result<_>>()?,
        ),
        _ => {
            let target = Target::of(schema, INFO.id)?;
            Body::Single(Box::new(Collector::new(target, Arc::clone(schema), budget.clone())))
        }
    })
}

fn index_limit(schema: &Schema) -> bool {
    shape::matrix_cols(schema).is_some_and(|cols| i64::try_from(cols).is_ok())
}

/// The dtype of a sparse matrix's values, and what that does to them.
fn sparse_value(schema: &Schema) -> Result<(Scalar, Effect), String> {
    let none = || "rows that are no sparse rows".to_owned();
    let DataType::LargeList(entry) = schema.field(0).data_type() else { return Err(none()) };
    let DataType::Struct(fields) = entry.data_type() else { return Err(none()) };
    let [_, value] = fields.as_ref() else { return Err(none()) };
    let derived = encode::derive(value, true)?;
    match derived.dtype {
        Dtype::Scalar(scalar)
            if derived.shape.is_empty()
                && matches!(
                    scalar.kind,
                    Kind::Bool | Kind::Int | Kind::Uint | Kind::Float | Kind::Complex
                ) =>
        {
            Ok((scalar, derived.effect))
        }
        _ => Err("SciPy's sparse matrices hold numbers only".to_owned()),
    }
}

struct NpzDocument {
    source: Source,
    directory: Directory,
    content: Content,
    summary: Summary,
    budget: Budget,
}

enum Content {
    Array(Entry),
    Sparse(Box<Sparse>),
    /// Several arrays, of which none was named.
    Several,
}

impl NpzDocument {
    fn open(source: Source, options: &ReadOptions) -> Result<NpzDocument> {
        let budget = options.budget.clone();
        let source = source.seekable_if(|head| head.starts_with(b"PK"))?;
        let directory = Directory::read(&source, &budget)?;
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
            (None, _) if scipy::is_sparse(&directory) => NpzDocument::sparse(&source, &directory, &budget)?,
            (None, [entry]) => NpzDocument::array(&source, entry, &budget)?,
            (None, []) => {
                return Err(no_members());
            }
            (None, _) => (Content::Several, Summary::new(INFO.id, Arc::new(Schema::empty()))),
        };
        summary.members = members;
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

    fn array(source: &Source, entry: &Entry, budget: &Budget) -> Result<(Content, Summary)> {
        let array = open_member(source, entry, budget)?;
        Ok((Content::Array(entry.clone()), summary(&array, INFO.id)))
    }

    fn sparse(source: &Source, directory: &Directory, budget: &Budget) -> Result<(Content, Summary)> {
        let sparse = Sparse::open(source.clone(), directory.clone(), budget)?;
        let mut summary = Summary::new(INFO.id, Arc::clone(&sparse.schema));
        summary.rows = Some(sparse.rows);
        summary.nonzeros = Some(sparse.entries);
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

fn open_member(source: &Source, entry: &Entry, budget: &Budget) -> Result<ArrayFile> {
    let extent = entry.extent(source, budget.limits())?;
    ArrayFile::open(extent, INFO.id, budget).field(entry.name().to_owned())
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
        let total = self.source.len().unwrap_or(0);
        let mut parts: Vec<Node> = self
            .directory
            .entries
            .iter()
            .map(|entry| {
                let header = entry.data_offset - entry.offset;
                let node = Node::new(entry.name(), entry.offset, header + entry.packed_bytes);
                let local = Node::new("local_header", entry.offset, header).value(&entry.file_name);
                let packed = entry.packed_bytes != entry.bytes || entry.method != 0;
                let body = Node::new("npy", entry.data_offset, entry.packed_bytes);
                let body = match open_member(&self.source, entry, &self.budget) {
                    Ok(array) if !packed => body.parts(outline::parts(&array)),
                    Ok(array) => body.value(format_args!(
                        "deflated, {} bytes: {}",
                        entry.bytes,
                        array.header.text.trim_end()
                    )),
                    Err(error) => body.value(format_args!("({error})")),
                };
                node.parts(vec![local, body])
            })
            .collect();
        parts.sort_by_key(|part| part.offset);
        parts.push(Node::new("directory", self.directory.offset, self.directory.bytes));
        let end = self.directory.offset + self.directory.bytes;
        parts.push(Node::new("end", end, total.saturating_sub(end)));
        Outline::new("npz", 0, total).parts(parts)
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        for entry in &self.directory.entries {
            let checked = match open_member(&self.source, entry, &self.budget) {
                // A member that is no array of ours is no fault of the archive.
                Err(error) if error.kind() == crate::ErrorKind::Unsupported => {
                    findings.note(&error);
                    continue;
                }
                Err(error) => Err(error),
                Ok(array) => validate::validate(&array, findings).field(entry.name().to_owned()),
            };
            match checked {
                Err(error) if is_files_fault(&error) => findings.error(&error),
                other => other.in_format(INFO.id)?,
            }
        }
        if let Content::Sparse(sparse) = &self.content {
            let rows = sparse.rows(&Selection::new(&self.summary.schema, self.summary.rows));
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

struct NpzWriter {
    zip: ZipWriter,
    body: Body,
    budget: Budget,
    rows: u64,
}

enum Body {
    Single(Box<Collector>),
    Members(Vec<(String, Collector)>),
    Sparse(Box<SparseBody>),
}

/// A sparse matrix on its way: values, column numbers and row pointers wait for their counts.
struct SparseBody {
    scalar: Scalar,
    declared_rows: Option<u64>,
    cols: u64,
    values: Spool,
    indices: Spool,
    pointers: Spool,
    /// Rows without entries whose pointers are still to be written.
    empty: u64,
    entries: u64,
    rows: u64,
}

impl SparseBody {
    fn new(scalar: Scalar, schema: &Schema) -> SparseBody {
        let mut pointers = Spool::default();
        // Memory takes the first eight bytes whatever happens.
        let _ = pointers.write_all(&0u64.to_le_bytes());
        SparseBody {
            scalar,
            declared_rows: shape::matrix_rows(schema),
            cols: shape::matrix_cols(schema).unwrap_or(0),
            values: Spool::default(),
            indices: Spool::default(),
            pointers,
            empty: 0,
            entries: 0,
            rows: 0,
        }
    }

    fn write(&mut self, rows: &RecordBatch, budget: &Budget) -> Result<()> {
        let no_matrix = || Error::usage("expected sparse rows");
        let list = rows.column(0).as_list_opt::<i64>().ok_or_else(no_matrix)?;
        if list.null_count() > 0 {
            return Err(Error::lossy(format!("row {}, column \"row\": SciPy has no null rows", self.rows)));
        }
        let offsets = list.value_offsets();
        let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else { return Err(no_matrix()) };
        if first == last {
            return self.skip(rows.num_rows() as u64, budget);
        }
        self.fill()?;
        let (start, end) = (usize::try_from(*first).unwrap_or(0), usize::try_from(*last).unwrap_or(0));
        let entries = list.values().slice(start, end - start);
        let entries = entries.as_struct_opt().ok_or_else(no_matrix)?;
        let [cols, values] = entries.columns() else { return Err(no_matrix()) };
        let origin = Origin { first_row: self.rows, column: shape::ROW_FIELD.to_owned(), per_row: 1 };
        self.values.write_all(&encode::encode(&Dtype::Scalar(self.scalar), &[], values, &origin, budget)?)?;
        let wide = arrow_cast::cast(cols, &DataType::UInt64)?;
        let wide = wide.as_primitive_opt::<arrow_array::types::UInt64Type>().ok_or_else(no_matrix)?;
        if let Some(bad) = wide.values().iter().find(|col| **col >= self.cols) {
            return Err(Error::usage(format!("column {bad} of a matrix of {} columns", self.cols)));
        }
        let bytes = encode::encode(
            &Dtype::Scalar(Scalar::new(Kind::Uint, 8)),
            &[],
            &(Arc::new(wide.clone()) as _),
            &origin,
            budget,
        )?;
        if self.is_narrow() {
            self.indices.write_all(&narrow(&bytes))?;
        } else {
            self.indices.write_all(&bytes)?;
        }
        for offset in offsets.iter().skip(1) {
            let pointer = self.entries + u64::try_from(offset - first).unwrap_or(0);
            self.pointers.write_all(&pointer.to_le_bytes())?;
        }
        self.entries += (end - start) as u64;
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    /// Takes rows without entries. A run of them costs no input, so the limits say how many bytes it may become.
    fn skip(&mut self, rows: u64, budget: &Budget) -> Result<()> {
        self.empty += rows;
        self.rows += rows;
        budget.check(self.empty.saturating_mul(8))
    }

    /// Writes the pointers of the rows that were skipped.
    fn fill(&mut self) -> Result<()> {
        const PIECE: u64 = 8192;
        let count = usize::try_from(self.empty.min(PIECE)).unwrap_or(0);
        let piece = self.entries.to_le_bytes().repeat(count);
        while self.empty > 0 {
            let count = self.empty.min(PIECE);
            let bytes = usize::try_from(count * 8).unwrap_or(0);
            self.pointers.write_all(piece.get(..bytes).unwrap_or_default())?;
            self.empty -= count;
        }
        Ok(())
    }

    /// Whether column numbers fit 32 bits.
    fn is_narrow(&self) -> bool {
        i32::try_from(self.cols).is_ok()
    }

    fn finish(mut self, zip: &mut ZipWriter, budget: &Budget) -> Result<()> {
        // Trailing rows that are empty may not come as rows.
        let missing = self.declared_rows.unwrap_or(0).saturating_sub(self.rows);
        self.skip(missing, budget)?;
        self.fill()?;
        let narrow_indices = self.is_narrow();
        // SciPy wants both index arrays of one type: 32 bits if every number fits.
        let narrow_both = narrow_indices && i32::try_from(self.entries.max(self.rows)).is_ok();
        let dtype = Dtype::Scalar(Scalar::new(Kind::Int, if narrow_both { 4 } else { 8 }));
        let header =
            |dtype: &Dtype, shape: Vec<u64>| Header::canonical(dtype.clone(), false, shape).to_bytes();
        let mut indices = self.indices;
        zip.member("indices", |out| {
            out.write_all(&header(&dtype, vec![self.entries]))?;
            match (narrow_indices, narrow_both) {
                (true, false) => indices.copy_to(&mut Widening(out)),
                _ => indices.copy_to(out),
            }
        })?;
        let mut pointers = self.pointers;
        zip.member("indptr", |out| {
            out.write_all(&header(&dtype, vec![self.rows.saturating_add(1)]))?;
            if narrow_both { pointers.copy_to(&mut Narrowing(out)) } else { pointers.copy_to(out) }
        })?;
        zip.member("format", |out| {
            out.write_all(&header(&Dtype::Scalar(Scalar::new(Kind::Bytes, 3)), vec![]))?;
            Ok(out.write_all(b"csr")?)
        })?;
        zip.member("shape", |out| {
            out.write_all(&header(&Dtype::Scalar(Scalar::new(Kind::Int, 8)), vec![2]))?;
            out.write_all(&self.rows.to_le_bytes())?;
            Ok(out.write_all(&self.cols.to_le_bytes())?)
        })?;
        let (scalar, entries, mut values) = (self.scalar, self.entries, self.values);
        zip.member("data", |out| {
            out.write_all(&header(&Dtype::Scalar(scalar), vec![entries]))?;
            values.copy_to(out)
        })
    }
}

/// The low halves of 64-bit numbers.
fn narrow(bytes: &[u8]) -> Vec<u8> {
    bytes.as_chunks::<8>().0.iter().flat_map(|[a, b, c, d, ..]| [*a, *b, *c, *d]).collect()
}

/// Writes the low halves of 64-bit numbers, which come whole.
struct Narrowing<'a>(&'a mut dyn Write);

impl Write for Narrowing<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write_all(&narrow(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Writes 32-bit numbers, which come whole, as 64-bit ones.
struct Widening<'a>(&'a mut dyn Write);

impl Write for Widening<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let wide: Vec<u8> =
            bytes.as_chunks::<4>().0.iter().flat_map(|[a, b, c, d]| [*a, *b, *c, *d, 0, 0, 0, 0]).collect();
        self.0.write_all(&wide)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Writer for NpzWriter {
    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        match &mut self.body {
            Body::Single(collector) => collector.write(rows)?,
            Body::Sparse(body) => body.write(rows, &self.budget)?,
            Body::Members(members) => {
                for ((name, collector), column) in members.iter_mut().zip(rows.columns()) {
                    let field = Field::new(shape::ITEM_FIELD, column.data_type().clone(), true);
                    let schema = Arc::new(shape::array_schema(field));
                    let item = RecordBatch::try_new(schema, vec![Arc::clone(column)])?;
                    collector.write(&item).map_err(|error| rename(error, name))?;
                }
            }
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Written> {
        let NpzWriter { mut zip, body, rows, budget } = *self;
        match body {
            Body::Single(collector) => zip.member("arr_0", |out| collector.finish(out).map(drop))?,
            Body::Sparse(body) => body.finish(&mut zip, &budget)?,
            Body::Members(members) => {
                for (name, collector) in members {
                    zip.member(&name, |out| {
                        collector.finish(out).map(drop).map_err(|error| rename(error, &name))
                    })?;
                }
            }
        }
        Ok(Written::new(rows, zip.finish()?))
    }
}

/// A value that does not fit is a column's, not the `item` of the array that the column became.
fn rename(error: Error, column: &str) -> Error {
    if error.kind() != crate::ErrorKind::Lossy {
        return error;
    }
    Error::lossy(error.message().replace("column \"item\"", &format!("column {column:?}")))
}
