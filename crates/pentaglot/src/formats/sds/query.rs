//! Queries: rank, select and others on an open structure.

use std::io;
use std::sync::Arc;

use pentaglot_succinct::{
    BitQueries, BitVector, RunLengthWaveletMatrix, SharedWords, WaveletCore, WaveletMatrix,
};

use super::containers::Content;
use super::layout::Object;
use super::read::content_of;
use crate::error::{Error, Hint, Result, count};

/// One question: an operation and its arguments.
///
/// ```
/// use pentaglot::formats::sds::Query;
/// let query: Query = "rank 17".parse()?;
/// assert_eq!(query.to_string(), "rank 17");
/// assert!("rank".parse::<Query>().is_err());
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    operation: Operation,
    arguments: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Get,
    Rank,
    Rank0,
    Select,
    Select0,
    Pred,
    Succ,
    InverseSelect,
    Count,
    Len,
    RangeCount,
    Quantile,
    Positions,
}

const OPERATIONS: [(&str, Operation); 13] = [
    ("get", Operation::Get),
    ("rank", Operation::Rank),
    ("rank0", Operation::Rank0),
    ("select", Operation::Select),
    ("select0", Operation::Select0),
    ("pred", Operation::Pred),
    ("succ", Operation::Succ),
    ("inverse_select", Operation::InverseSelect),
    ("count", Operation::Count),
    ("len", Operation::Len),
    ("range_count", Operation::RangeCount),
    ("quantile", Operation::Quantile),
    ("positions", Operation::Positions),
];

impl Query {
    fn arguments(&self) -> &[u64] {
        &self.arguments
    }

    /// From words: the operation and its arguments.
    pub fn from_words<'w>(words: impl IntoIterator<Item = &'w str>) -> Result<Self> {
        let mut words = words.into_iter();
        let name = words.next().unwrap_or_default();
        let operation = OPERATIONS.iter().find(|(known, _)| *known == name).map(|(_, operation)| *operation);
        let operation = operation.ok_or_else(|| {
            let known: Vec<_> = OPERATIONS.iter().map(|(known, _)| *known).collect();
            Error::usage(format!("expected an operation ({}), found {name:?}", known.join(", ")))
        })?;
        let arguments = words
            .map(|word| {
                word.parse().map_err(|_| {
                    Error::usage(format!("{name}: expected a whole number below 2^64, found {word:?}"))
                })
            })
            .collect::<Result<Vec<u64>>>()?;
        let counts = match operation {
            Operation::Len => 0..=0,
            Operation::Count => 0..=1,
            Operation::RangeCount | Operation::Quantile => 3..=3,
            Operation::Rank | Operation::Select | Operation::Pred | Operation::Succ => 1..=2,
            _ => 1..=1,
        };
        if !counts.contains(&arguments.len()) {
            let wanted = match counts.start() == counts.end() {
                true => count(*counts.start() as u64, "number"),
                // The value is the last one.
                false => {
                    let of_bits = count(*counts.start() as u64, "number");
                    format!("{of_bits}, or {} for a wavelet matrix", counts.end())
                }
            };
            return Err(Error::usage(format!("{name}: expected {wanted}, found {}", arguments.len())));
        }
        Ok(Query { operation, arguments })
    }
}

impl std::str::FromStr for Query {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Query::from_words(text.split_whitespace())
    }
}

impl std::fmt::Display for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = OPERATIONS
            .iter()
            .find(|(_, operation)| *operation == self.operation)
            .map_or("", |(name, _)| name);
        f.write_str(name)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

/// An answer.
#[non_exhaustive]
pub enum Answer<'o> {
    /// There is none.
    None,
    /// A number, or several, as text.
    Text(String),
    /// Positions in ascending order; there may be many.
    Positions(Box<dyn Iterator<Item = u64> + 'o>),
}

impl Answer<'_> {
    /// Writes the answer as one line; `-` if there is none. Positions are written one by one.
    pub fn write_line(self, out: &mut impl io::Write) -> io::Result<()> {
        match self {
            Answer::None => out.write_all(b"-")?,
            Answer::Text(text) => out.write_all(text.as_bytes())?,
            Answer::Positions(positions) => {
                let mut separator = "";
                for position in positions {
                    write!(out, "{separator}{position}")?;
                    separator = " ";
                }
                if separator.is_empty() {
                    out.write_all(b"-")?;
                }
            }
        }
        out.write_all(b"\n")
    }

    /// The answer as text; `None` where there is none.
    pub fn into_text(self) -> Option<String> {
        match self {
            Answer::None => None,
            Answer::Text(text) => Some(text),
            Answer::Positions(positions) => {
                let texts: Vec<String> = positions.map(|position| position.to_string()).collect();
                (!texts.is_empty()).then(|| texts.join(" "))
            }
        }
    }
}

/// The object of queries: a structure, or a member of a file.
pub struct Queried(Content);

impl Queried {
    /// The structure itself, or the member of this name.
    pub fn new(object: &Arc<Object>, member: Option<&str>) -> Result<Self> {
        let content = content_of(object, member)?.ok_or_else(|| {
            Error::unsupported(format!("sds:{} has no queries (its members have them)", object.kind()))
                .hint(Hint::Advice("a member has them: FILE::MEMBER".into()))
        })?;
        Ok(Queried(match &content {
            // Raw bits are turned into a bit vector, which supports all queries.
            Content::Object(object) if matches!(object.as_ref(), Object::Raw(_)) => {
                let Object::Raw(bits) = object.as_ref() else { return Ok(Queried(content)) };
                Content::Object(Arc::new(Object::Bit(BitVector::from(bits.clone()))))
            }
            Content::Table(_) | Content::Paths(_) => {
                let name = member.unwrap_or_default();
                return Err(Error::unsupported(format!("the member {name:?} is a table and has no queries")));
            }
            _ => content,
        }))
    }

    /// The answer to a question. Any argument is allowed.
    pub fn answer(&self, query: &Query) -> Result<Answer<'_>> {
        match &self.0 {
            Content::Object(object) => answer(object, query),
            Content::Strings(strings) | Content::Tags(strings) => {
                match (query.operation, query.arguments()) {
                    (Operation::Get, [index]) => {
                        let text =
                            strings.get(*index).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                        Ok(text.map_or(Answer::None, Answer::Text))
                    }
                    (Operation::Len, []) => number(Some(strings.len())),
                    _ => Err(unfit(query, "strings")),
                }
            }
            // An absent structure has no answers.
            _ => Ok(Answer::None),
        }
    }

    /// The answers to many questions of one operation, each with one number (`get`, `rank`, `select`, `pred`, `succ`) and
    /// answered by one number. What is fetched from memory for neighbouring questions is fetched at the same time.
    pub fn numbers(&self, operation: &str, arguments: &[u64]) -> Result<Vec<Option<u64>>> {
        let query = Query::from_words([operation, "0"])?;
        let mut answers = vec![None; arguments.len()];
        if let Content::Object(object) = &self.0 {
            let done = match (object.as_ref(), query.operation) {
                (Object::Bit(bits), operation) => many_bits(bits, operation, arguments, &mut answers),
                (Object::Sparse(bits), operation) => many_bits(bits, operation, arguments, &mut answers),
                (Object::RunLength(bits), operation) => many_bits(bits, operation, arguments, &mut answers),
                (Object::Int(vector), Operation::Get) => {
                    vector.get_many(arguments, &mut answers);
                    true
                }
                (Object::Wavelet(matrix), Operation::Get) => {
                    matrix.access_many(arguments, &mut answers);
                    true
                }
                (Object::RunLengthWavelet(matrix), Operation::Get) => {
                    matrix.access_many(arguments, &mut answers);
                    true
                }
                _ => false,
            };
            if done {
                return Ok(answers);
            }
        }
        for (answer, argument) in answers.iter_mut().zip(arguments) {
            let query = Query { operation: query.operation, arguments: vec![*argument] };
            *answer = self.answer(&query)?.into_text().and_then(|text| text.parse().ok());
        }
        Ok(answers)
    }
}

/// Answers many questions about bits; gives whether the operation is one that has such answers.
fn many_bits(
    bits: &impl BitQueries,
    operation: Operation,
    arguments: &[u64],
    answers: &mut [Option<u64>],
) -> bool {
    match operation {
        Operation::Get => {
            let mut found = vec![None; arguments.len()];
            bits.get_many(arguments, &mut found);
            answers.iter_mut().zip(found).for_each(|(answer, bit)| *answer = bit.map(u64::from));
        }
        Operation::Rank => {
            let mut found = vec![0; arguments.len()];
            bits.rank_many(arguments, &mut found);
            answers.iter_mut().zip(found).for_each(|(answer, rank)| *answer = Some(rank));
        }
        Operation::Select => bits.select_many(arguments, answers),
        Operation::Pred => bits.predecessor_many(arguments, answers),
        Operation::Succ => bits.successor_many(arguments, answers),
        _ => return false,
    }
    true
}

/// The answer of a structure. Any argument is allowed.
pub fn answer<'o>(object: &'o Object, query: &Query) -> Result<Answer<'o>> {
    match object {
        Object::Bit(vector) => on_bits(vector, query),
        Object::Raw(bits) => on_bits(&BitVector::from(bits.clone()), query),
        Object::Sparse(vector) => on_bits(vector, query),
        Object::RunLength(vector) => on_bits(vector, query),
        Object::Int(vector) => on_items(query, vector.len(), |index| vector.get(index)),
        Object::Vec(words) => on_words(words, 1, query),
        Object::Pairs(words) => on_words(words, 2, query),
        Object::Items(elements, words) => on_words(words, *elements, query),
        Object::Option(Some(words)) => on_words(words, 1, query),
        Object::Option(None) => Ok(Answer::None),
        Object::Element(value) => on_items(query, 1, |index| (index == 0).then_some(*value)),
        Object::String(bytes, words) | Object::Bytes(bytes, words) => on_items(query, *bytes, |index| {
            let word = usize::try_from(index / 8).ok().and_then(|at| words.as_ref().get(at))?;
            (index < *bytes).then_some(word >> (8 * (index % 8)) & 0xff)
        }),
        Object::Wavelet(matrix) => on_values(query, Values::Plain(matrix)),
        Object::RunLengthWavelet(matrix) => on_values(query, Values::Runs(matrix)),
        Object::WaveletCore(core) => on_values(query, Values::Core(core)),
        Object::Container(container) => Err(Error::unsupported(format!(
            "sds:{} has no queries (its members have them)",
            container.kind()
        ))),
    }
}

fn number<'o>(answer: Option<u64>) -> Result<Answer<'o>> {
    Ok(answer.map_or(Answer::None, |number| Answer::Text(number.to_string())))
}

fn pair<'o>(answer: Option<(u64, u64)>) -> Result<Answer<'o>> {
    Ok(answer.map_or(Answer::None, |(rank, value)| Answer::Text(format!("{rank} {value}"))))
}

fn unfit(query: &Query, what: &str) -> Error {
    Error::usage(format!("{what} do not answer {:?}", query.to_string()))
}

fn on_bits<'o>(bits: &impl BitQueries, query: &Query) -> Result<Answer<'o>> {
    match (query.operation, query.arguments()) {
        (Operation::Get, [index]) => number(bits.get(*index).map(u64::from)),
        (Operation::Rank, [index]) => number(Some(bits.rank(*index))),
        (Operation::Rank0, [index]) => number(bits.rank0(*index)),
        (Operation::Select, [rank]) => number(bits.select(*rank)),
        (Operation::Select0, [rank]) => number(bits.select0(*rank)),
        (Operation::Pred, [index]) => number(bits.predecessor(*index)),
        (Operation::Succ, [index]) => number(bits.successor(*index)),
        (Operation::InverseSelect, [index]) => {
            pair(bits.inverse_select(*index).map(|(rank, bit)| (rank, u64::from(bit))))
        }
        (Operation::Count, []) => number(Some(bits.count_ones())),
        (Operation::Len, []) => number(Some(bits.len())),
        _ => Err(unfit(query, "bit vectors")),
    }
}

fn on_items<'o>(query: &Query, len: u64, get: impl Fn(u64) -> Option<u64>) -> Result<Answer<'o>> {
    match (query.operation, query.arguments()) {
        (Operation::Get, [index]) => number(get(*index)),
        (Operation::Len, []) => number(Some(len)),
        _ => Err(unfit(query, "vectors")),
    }
}

/// Items of `elements` elements each, which are separated by spaces.
fn on_words<'o>(words: &SharedWords, elements: u64, query: &Query) -> Result<Answer<'o>> {
    let words = words.as_ref();
    match (query.operation, query.arguments()) {
        (Operation::Get, [index]) => {
            let start = index.checked_mul(elements).and_then(|start| usize::try_from(start).ok());
            let end = start.and_then(|start| start.checked_add(usize::try_from(elements).ok()?));
            let item = start.zip(end).and_then(|(start, end)| words.get(start..end));
            let texts = |item: &[u64]| item.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
            Ok(item.map_or(Answer::None, |item| Answer::Text(texts(item))))
        }
        (Operation::Len, []) => number(Some(words.len() as u64 / elements.max(1))),
        _ => Err(unfit(query, "vectors")),
    }
}

/// The structures that answer questions about values.
enum Values<'o> {
    Plain(&'o WaveletMatrix<SharedWords>),
    Runs(&'o RunLengthWaveletMatrix<SharedWords>),
    Core(&'o WaveletCore<BitVector<SharedWords>>),
}

/// Calls the same method of whichever structure it is.
macro_rules! ask {
    ($values:expr, $matrix:ident => $answer:expr) => {
        match $values {
            Values::Plain($matrix) => $answer,
            Values::Runs($matrix) => $answer,
            Values::Core($matrix) => $answer,
        }
    };
}

fn on_values<'o>(query: &Query, values: Values<'o>) -> Result<Answer<'o>> {
    match (query.operation, query.arguments()) {
        (Operation::Get, [index]) => number(ask!(values, matrix => matrix.access(*index))),
        (Operation::Rank, [index, value]) => {
            number(Some(ask!(values, matrix => matrix.rank(*index, *value))))
        }
        (Operation::Select, [rank, value]) => number(ask!(values, matrix => matrix.select(*rank, *value))),
        (Operation::InverseSelect, [index]) => pair(ask!(values, matrix => matrix.inverse_select(*index))),
        (Operation::Pred, [index, value]) => {
            number(ask!(values, matrix => matrix.predecessor(*index, *value)).map(|(_, position)| position))
        }
        (Operation::Succ, [index, value]) => {
            number(ask!(values, matrix => matrix.successor(*index, *value)).map(|(_, position)| position))
        }
        (Operation::Count, [value]) => number(Some(ask!(values, matrix => matrix.count(*value)))),
        (Operation::RangeCount, [low, high, value]) => {
            number(Some(ask!(values, matrix => matrix.range_rank(*low..*high, *value))))
        }
        (Operation::Quantile, [low, high, rank]) => {
            number(ask!(values, matrix => matrix.quantile(*low..*high, *rank)))
        }
        (Operation::Positions, [value]) => {
            let value = *value;
            Ok(Answer::Positions(ask!(values, matrix => Box::new(matrix.positions_of(value)))))
        }
        (Operation::Len, []) => number(Some(ask!(values, matrix => matrix.len()))),
        _ => Err(unfit(query, "wavelet matrices")),
    }
}
