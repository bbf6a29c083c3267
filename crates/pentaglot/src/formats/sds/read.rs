//! An open file as rows.

use crate::hub::Selection;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, RecordBatch, StringArray, StructArray, UInt32Array, UInt64Array,
};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use pentaglot_succinct::{
    BitQueries, BitVector, IntVector, RawVector, RunLengthVector, SharedWords, SparseVector, WaveletCore,
};

use super::containers::{Container, Content, StringArray as PackedStrings};
use super::layout::{self, Object, byte_vector};
use super::types::Native;
use super::{ID, outline, validate};
use crate::error::{self, Error, ErrorKind, Result};
use crate::formats::{
    ColumnStatistics, Document, Findings, Outline, ReadOptions, Severity, Statistics, Summary,
};
use crate::hub::rows::{self, Rows};
use crate::hub::{extension, native, shape};
use crate::limits::{Budget, Reservation};
use crate::source::Source;

/// Rows per batch.
pub(super) const BATCH_ROWS: usize = 1 << 16;

pub(super) struct SdsDocument {
    summary: Summary,
    object: Arc<Object>,
    member: Option<String>,
    words: SharedWords,
    /// Whether the file is mapped: then nothing is read that is not asked for.
    in_place: bool,
    budget: Budget,
}

impl SdsDocument {
    pub(super) fn open(source: Source, options: &ReadOptions) -> Result<Self> {
        let words = layout::read_words(&source, options.in_place, &options.budget)?;
        let (object, also_fits) = layout::open_object(&words, options.dialect.as_deref())?;
        let kind = object.kind();
        let schema = match (&object, &options.member) {
            (Object::Container(container), Some(member)) => {
                member_schema(member_of(container, member)?, member)
            }
            (_, Some(member)) => {
                return Err(Error::usage(format!("a {kind} has no members, so none is named {member:?}")));
            }
            (Object::Container(_), None) => Schema::empty(),
            _ => native::with(schema(&object), ID, Native::of(&object).to_json()),
        };
        let mut summary = Summary::new(ID, Arc::new(schema));
        summary.dialect = Some(kind.name());
        summary.dialect_reason = Some(match (&options.dialect, &object) {
            (Some(_), _) => "named by the user".to_owned(),
            (None, Object::Container(_)) if kind != super::Kind::Chains => "its tag says so".to_owned(),
            (None, _) => "the first kind that takes all elements".to_owned(),
        });
        summary.also_fits = also_fits;
        summary.bytes = Some(words.as_ref().len() as u64 * 8);
        for part in outline::parts(&object) {
            summary.part(part.path, part.start * 8, part.len * 8);
        }
        summary.metadata = facts(&object);
        if let Object::Container(container) = &object {
            summary.members = members(container);
        }
        let mut document = SdsDocument {
            summary,
            object: Arc::new(object),
            member: options.member.clone(),
            words,
            in_place: options.in_place.is_some(),
            budget: options.budget.clone(),
        };
        document.summary.rows = document.row_count()?;
        Ok(document)
    }

    /// Errs with the first rule that the structure breaks.
    fn check_sound(&self) -> Result<()> {
        let mut findings = Findings::new(false);
        validate::validate(&self.object, &mut findings);
        let broken = findings.list().iter().find(|finding| finding.severity == Severity::Error);
        match broken {
            None => Ok(()),
            Some(finding) => Err(Error::new(ErrorKind::Malformed, finding.message.clone())
                .at(finding.offset.unwrap_or(0))
                .field(finding.path.clone())),
        }
    }

    fn row_count(&self) -> Result<Option<u64>> {
        Ok(Some(match (self.object.as_ref(), &self.member) {
            (Object::Container(container), Some(member)) => match member_of(container, member)? {
                Member::Tags(strings) => strings.len() / 2,
                Member::Part(content) => match content {
                    Content::Field(_) => 0,
                    Content::Sparse(vector) => vector.count_ones(),
                    Content::Int(vector) => vector.len(),
                    Content::Bytes(..) => 1,
                    Content::Elements(words) => words.as_ref().len() as u64,
                    Content::Paths(words) => words.as_ref().len() as u64 / 2,
                    Content::Strings(strings) => strings.len(),
                },
            },
            (Object::Container(_), None) => return Ok(None),
            (Object::RunLengthWavelet(matrix), _) => matrix.len(),
            (Object::Wavelet(matrix), _) => matrix.len(),
            (Object::WaveletCore(core), _) => core.len(),
            // Runs are counted by reading them.
            (Object::RunLength(_), _) => return Ok(None),
            (Object::Sparse(vector), _) => vector.count_ones(),
            (Object::Bit(vector), _) => vector.len(),
            (Object::Int(vector), _) => vector.len(),
            (Object::Raw(vector), _) => vector.len(),
            (Object::Option(content), _) => content.as_ref().map_or(0, |words| words.as_ref().len() as u64),
            (Object::Pairs(words), _) => words.as_ref().len() as u64 / 2,
            (Object::String(..) | Object::Bytes(..), _) => 1,
            (Object::Vec(words), _) => words.as_ref().len() as u64,
        }))
    }
}

impl Document for SdsDocument {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Positions rise, so the first and the last are the bounds.
    fn statistics(&self) -> Statistics {
        let bounds = match (self.object.as_ref(), &self.member) {
            (Object::RunLength(vector), _) => run_bounds(vector),
            (Object::Sparse(vector), _) => sparse_bounds(vector),
            (Object::Container(container), Some(member)) => match member_of(container, member) {
                Ok(Member::Part(Content::Sparse(vector))) => sparse_bounds(vector),
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
        validate::validate(&self.object, findings);
        Ok(())
    }

    fn rows(&self, request: &Selection) -> Result<Rows> {
        self.summary.check_member()?;
        if !self.in_place {
            self.check_sound()?;
        }
        let reader = Reader {
            object: Arc::clone(&self.object),
            member: self.member.clone(),
            schema: Arc::clone(&self.summary.schema),
            budget: self.budget.clone(),
        };
        let range = request.range(self.summary.rows.unwrap_or(u64::MAX));
        if let Object::RunLengthWavelet(_) = self.object.as_ref() {
            let bytes = self.words.as_ref().len() as u64 * 8;
            self.budget.limits().check_free_rows((range.end - range.start).saturating_sub(bytes))?;
        }
        let size = request.batch_rows_or(BATCH_ROWS) as u64;
        let schema = Arc::clone(request.row_schema());
        let all = reader.batches(range, size, Arc::clone(&schema))?;
        request.project(rows::from_batches(schema, all))
    }
}

/// What a member's name means.
enum Member<'a> {
    /// Keys and values.
    Tags(&'a Arc<PackedStrings>),
    Part(&'a Content),
}

fn members(container: &Container) -> Vec<String> {
    container.members().map(|(name, _)| name.to_owned()).collect()
}

/// The member of this name.
pub(super) fn member_content<'a>(object: &'a Object, name: &str) -> Result<&'a Content> {
    let Object::Container(container) = object else {
        return Err(Error::usage(format!("a {} has no members, so none is named {name:?}", object.kind())));
    };
    content_of(container, name)
}

fn content_of<'a>(container: &'a Container, name: &str) -> Result<&'a Content> {
    let found = container.members().find(|(path, _)| *path == name);
    let (_, content) = found.ok_or_else(|| {
        let names = error::list(members(container));
        Error::usage(format!("there is no member {name:?} (there is {names})"))
    })?;
    Ok(content)
}

fn member_of<'a>(container: &'a Container, name: &str) -> Result<Member<'a>> {
    Ok(match content_of(container, name)? {
        Content::Strings(strings) if name == "tags" || name.ends_with(".tags") => Member::Tags(strings),
        other => Member::Part(other),
    })
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::UInt64, false)
}

fn member_schema(member: Member<'_>, _name: &str) -> Schema {
    match member {
        Member::Tags(_) => Schema::new(vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", DataType::Utf8, false),
        ]),
        Member::Part(Content::Strings(_)) => shape::array_schema(Field::new("item", DataType::Utf8, false)),
        Member::Part(Content::Bytes(..)) => shape::value_schema(Field::new("value", DataType::Binary, false)),
        Member::Part(Content::Paths(_)) => {
            let names = ["sample", "contig", "phase", "fragment"];
            Schema::new(names.map(|name| Field::new(name, DataType::UInt32, false)).to_vec())
        }
        Member::Part(_) => shape::array_schema(number("item")),
    }
}

fn pair_fields() -> Fields {
    Fields::from(vec![number("_0"), number("_1")])
}

pub(super) fn schema(object: &Object) -> Schema {
    match object {
        Object::RunLength(_) => Schema::new(vec![number("start"), number("length")]),
        Object::Bit(_) | Object::Raw(_) => shape::array_schema(Field::new("item", DataType::Boolean, false)),
        Object::String(..) => shape::value_schema(Field::new("value", DataType::Utf8, false)),
        Object::Bytes(..) => shape::value_schema(Field::new("value", DataType::Binary, false)),
        Object::Pairs(_) => {
            let tuple = Field::new("item", DataType::Struct(pair_fields()), false);
            shape::array_schema(extension::with(tuple, extension::TUPLE, None))
        }
        _ => shape::array_schema(number("item")),
    }
}

pub(super) fn supports_text(supports: [bool; 3]) -> String {
    let words = ["rank", "select", "select0"].iter().zip(supports);
    let there: Vec<&str> = words.filter(|(_, there)| *there).map(|(word, _)| *word).collect();
    if there.is_empty() { "none".to_owned() } else { there.join(", ") }
}

fn facts(object: &Object) -> Vec<(String, String)> {
    let mut facts = vec![("kind".to_owned(), object.kind().to_string())];
    let mut fact = |key: &str, value: String| facts.push((key.to_owned(), value));
    match object {
        Object::Container(container) => {
            container.facts().iter().for_each(|(key, value)| fact(key, value.clone()))
        }
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
        Object::Raw(_) | Object::Pairs(_) | Object::Vec(_) => {}
    }
    let mut native = Native::new(object.kind());
    if !matches!(object, Object::Sparse(_)) {
        object.describe(&mut native);
    } else if let Object::Sparse(vector) = object {
        native.supports = Some(vector.high().stored_supports().map(|support| support.is_some()));
    }
    if let Some(supports) = native.supports {
        facts.push(("supports".to_owned(), supports_text(supports)));
    }
    facts
}

/// Makes batches of an open structure, one range of rows at a time.
pub(super) struct Reader {
    pub(super) object: Arc<Object>,
    pub(super) member: Option<String>,
    pub(super) schema: SchemaRef,
    pub(super) budget: Budget,
}

impl Reader {
    fn batches(
        self,
        range: Range<u64>,
        size: u64,
        schema: SchemaRef,
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        if let Object::RunLength(_) = self.object.as_ref() {
            return Ok(Box::new(RunBatches {
                object: self.object,
                skip: range.start,
                left: range.end - range.start,
                from: 0,
                size,
                schema,
            }));
        }
        let mut next = range.start;
        let decoded = self.decode_wavelet(&range);
        Ok(Box::new(std::iter::from_fn(move || {
            if next >= range.end {
                return None;
            }
            let rows = next..range.end.min(next.saturating_add(size));
            next = rows.end;
            Some(self.columns(&rows, decoded.as_ref().map(|(values, _)| values.as_slice())).and_then(
                |columns| {
                    let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
                    rows::batch(Arc::clone(&schema), columns, count)
                },
            ))
        })))
    }

    /// All values of a wavelet matrix, where most of them are wanted and memory allows it: one pass over the levels
    /// beats a walk for each.
    fn decode_wavelet(&self, range: &Range<u64>) -> Option<(Vec<u64>, Reservation)> {
        match self.object.as_ref() {
            Object::Wavelet(matrix) if range.end - range.start > matrix.len() / 4 => {
                let narrow = u64::from(matrix.width().max(1).div_ceil(8).next_power_of_two());
                // Two copies in the narrowest type while it works, then the values.
                let mut held = self.budget.reserve(matrix.len().saturating_mul(2 * narrow + 8)).ok()?;
                let values: Vec<u64> = matrix.values().collect();
                held.shrink_to(values.len() as u64 * 8);
                Some((values, held))
            }
            _ => None,
        }
    }

    pub(super) fn columns(&self, rows: &Range<u64>, decoded: Option<&[u64]>) -> Result<Vec<ArrayRef>> {
        let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
        let start = rows.start;
        let numbers = |values: &mut dyn Iterator<Item = u64>| -> Vec<ArrayRef> {
            vec![Arc::new(values.take(count).collect::<UInt64Array>())]
        };
        Ok(match self.object.as_ref() {
            Object::Container(container) => {
                let name = self.member.as_deref().unwrap_or_default();
                return member_columns(member_of(container, name)?, rows);
            }
            Object::RunLengthWavelet(matrix) => numbers(&mut matrix.iter_from(start)),
            Object::Wavelet(matrix) => match decoded {
                Some(values) => {
                    numbers(&mut values.iter().copied().skip(usize::try_from(start).unwrap_or(usize::MAX)))
                }
                None => numbers(&mut matrix.iter_from(start)),
            },
            Object::WaveletCore(core) => {
                numbers(&mut rows.clone().filter_map(|index| core_value(core, index)))
            }
            Object::Sparse(vector) => sparse(vector, start, count),
            Object::Bit(vector) => vec![bools(vector.bits(), rows)],
            Object::Raw(vector) => vec![bools(vector, rows)],
            Object::Int(vector) => ints(vector, start, count),
            Object::Option(content) => {
                let words = content.as_ref().map_or(&[][..], |words| words.as_ref());
                numbers(&mut elements(words, rows))
            }
            Object::Vec(words) => numbers(&mut elements(words.as_ref(), rows)),
            Object::Pairs(words) => {
                let pairs: Vec<u64> = elements(words.as_ref(), &(rows.start * 2..rows.end * 2)).collect();
                let (pairs, _) = pairs.as_chunks::<2>();
                let first: ArrayRef = Arc::new(pairs.iter().map(|pair| pair[0]).collect::<UInt64Array>());
                let second: ArrayRef = Arc::new(pairs.iter().map(|pair| pair[1]).collect::<UInt64Array>());
                vec![Arc::new(StructArray::try_new(pair_fields(), vec![first, second], None)?)]
            }
            Object::String(bytes, words) => {
                let text = String::from_utf8(byte_vector(*bytes, words));
                let text = text.map_err(|error| Error::malformed("UTF-8", error).field("string"))?;
                vec![Arc::new(StringArray::from(vec![text]))]
            }
            Object::Bytes(bytes, words) => {
                vec![Arc::new(BinaryArray::from_vec(vec![&byte_vector(*bytes, words)]))]
            }
            Object::RunLength(_) => return Err(Error::unsupported(format!("rows of {}", self.schema))),
        })
    }
}

fn elements<'a>(words: &'a [u64], rows: &Range<u64>) -> impl Iterator<Item = u64> + 'a {
    let start = usize::try_from(rows.start).unwrap_or(usize::MAX);
    let end = usize::try_from(rows.end).unwrap_or(usize::MAX).min(words.len());
    words.get(start..end).unwrap_or_default().iter().copied()
}

fn sparse(vector: &SparseVector<SharedWords>, start: u64, count: usize) -> Vec<ArrayRef> {
    vec![Arc::new(vector.iter_from(start).take(count).collect::<UInt64Array>())]
}

/// The first and the last position.
fn sparse_bounds(vector: &SparseVector<SharedWords>) -> Option<(u64, u64)> {
    let last = vector.count_ones().checked_sub(1)?;
    Some((vector.iter_from(0).next()?, vector.iter_from(last).next()?))
}

/// Where the first and the last run start.
fn run_bounds(vector: &RunLengthVector<SharedWords>) -> Option<(u64, u64)> {
    let last = vector.select(vector.count_ones().checked_sub(1)?)?;
    // The last run starts after the last unset bit before its end.
    let start = match vector.rank0(last)?.checked_sub(1) {
        Some(unset) => vector.select0(unset)?.saturating_add(1),
        None => 0,
    };
    Some((vector.runs().next()?.0, start))
}

fn ints(vector: &IntVector<SharedWords>, start: u64, count: usize) -> Vec<ArrayRef> {
    vec![Arc::new(vector.iter_from(start).take(count).collect::<UInt64Array>())]
}

fn bools(vector: &RawVector<SharedWords>, rows: &Range<u64>) -> ArrayRef {
    let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
    Arc::new(BooleanArray::new(vector.iter_from(rows.start).take(count).collect::<BooleanBuffer>(), None))
}

/// The item at `index`: followed down through the levels.
fn core_value(core: &WaveletCore<BitVector<SharedWords>>, mut index: u64) -> Option<u64> {
    let mut value = 0u64;
    for level in core.levels() {
        let bit = level.get(index)?;
        index = if bit { level.count_zeros().wrapping_add(level.rank(index)) } else { level.rank0(index)? };
        value = value << 1 | u64::from(bit);
    }
    Some(value)
}

fn text_at(strings: &PackedStrings, index: u64) -> Result<String> {
    let bytes = strings.get(index);
    let bytes =
        bytes.ok_or_else(|| Error::malformed("starts and characters that agree", "others").index(index))?;
    String::from_utf8(bytes).map_err(|error| Error::malformed("UTF-8", error).index(index))
}

fn member_columns(member: Member<'_>, rows: &Range<u64>) -> Result<Vec<ArrayRef>> {
    let count = usize::try_from(rows.end - rows.start).unwrap_or(0);
    Ok(match member {
        Member::Tags(strings) => {
            let (mut keys, mut values) = (StringBuilder::new(), StringBuilder::new());
            for row in rows.clone() {
                keys.append_value(text_at(strings, row * 2)?);
                values.append_value(text_at(strings, row * 2 + 1)?);
            }
            vec![Arc::new(keys.finish()), Arc::new(values.finish())]
        }
        Member::Part(Content::Strings(strings)) => {
            let mut texts = StringBuilder::new();
            rows.clone().try_for_each(|row| text_at(strings, row).map(|text| texts.append_value(text)))?;
            vec![Arc::new(texts.finish())]
        }
        Member::Part(Content::Sparse(vector)) => sparse(vector, rows.start, count),
        Member::Part(Content::Int(vector)) => ints(vector, rows.start, count),
        Member::Part(Content::Bytes(bytes, words)) => {
            vec![Arc::new(BinaryArray::from_vec(vec![&byte_vector(*bytes, words)]))]
        }
        Member::Part(Content::Elements(words)) => {
            vec![Arc::new(elements(words.as_ref(), rows).collect::<UInt64Array>())]
        }
        Member::Part(Content::Paths(words)) => {
            let pairs: Vec<u64> = elements(words.as_ref(), &(rows.start * 2..rows.end * 2)).collect();
            let (paths, _) = pairs.as_chunks::<2>();
            #[expect(clippy::cast_possible_truncation, reason = "the two halves of an element")]
            let halves = |word: u64| (word as u32, (word >> 32) as u32);
            let column = |pick: &dyn Fn(&[u64; 2]) -> u32| -> ArrayRef {
                Arc::new(paths.iter().map(pick).collect::<UInt32Array>())
            };
            vec![
                column(&|path| halves(path[0]).0),
                column(&|path| halves(path[0]).1),
                column(&|path| halves(path[1]).0),
                column(&|path| halves(path[1]).1),
            ]
        }
        Member::Part(Content::Field(value)) => vec![Arc::new(UInt64Array::from(vec![*value; count]))],
    })
}

/// Runs have no index: each batch goes on where the last run ended.
struct RunBatches {
    object: Arc<Object>,
    skip: u64,
    left: u64,
    from: u64,
    size: u64,
    schema: SchemaRef,
}

impl Iterator for RunBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let Object::RunLength(vector) = self.object.as_ref() else { return None };
        let skip = usize::try_from(std::mem::take(&mut self.skip)).unwrap_or(usize::MAX);
        let count = usize::try_from(self.size.min(self.left)).unwrap_or(usize::MAX);
        let runs: Vec<(u64, u64)> = vector.runs_from(self.from).skip(skip).take(count).collect();
        let last = runs.last()?;
        self.from = last.0.saturating_add(last.1);
        self.left -= runs.len() as u64;
        let starts: ArrayRef = Arc::new(runs.iter().map(|run| run.0).collect::<UInt64Array>());
        let lengths: ArrayRef = Arc::new(runs.iter().map(|run| run.1).collect::<UInt64Array>());
        Some(rows::batch(Arc::clone(&self.schema), vec![starts, lengths], runs.len()))
    }
}
