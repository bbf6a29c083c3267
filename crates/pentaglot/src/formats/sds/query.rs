//! `pentaglot query`: rank, select and the like on an open structure.

use pentaglot_succinct::{BitQueries, SharedWords};

use super::containers::Content;
use super::layout::Object;
use super::read::member_content;
use crate::error::{Error, Result, count};

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
}

const OPERATIONS: [(&str, Operation); 10] = [
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
];

impl Query {
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
                word.parse()
                    .map_err(|_| Error::usage(format!("{name}: expected a whole number, found {word:?}")))
            })
            .collect::<Result<Vec<u64>>>()?;
        let counts = match operation {
            Operation::Count | Operation::Len => 0..=0,
            Operation::Rank | Operation::Select | Operation::Pred | Operation::Succ => 1..=2,
            _ => 1..=1,
        };
        if !counts.contains(&arguments.len()) {
            let wanted = match counts.start() == counts.end() {
                true => count(*counts.start() as u64, "number"),
                false => "1 or 2 numbers".to_owned(),
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

/// The answer as text; `None` where there is none. Any argument is allowed.
pub fn answer(object: &Object, query: &Query) -> Result<Option<String>> {
    match object {
        Object::Bit(vector) => on_bits(vector, query),
        Object::Sparse(vector) => on_bits(vector, query),
        Object::RunLength(vector) => on_bits(vector, query),
        Object::Int(vector) => on_items(query, vector.len(), |index| vector.get(index)),
        Object::Vec(words) => on_words(words, query),
        Object::Wavelet(matrix) => on_wavelet(matrix, query),
        Object::RunLengthWavelet(matrix) => on_wavelet(matrix, query),
        other => Err(Error::unsupported(format!(
            "sds:{} has no queries (bit, sparse, rl, int, wm, rlwm, vec have them)",
            other.kind()
        ))),
    }
}

/// The answer of a member of a container.
pub fn answer_member(object: &Object, member: &str, query: &Query) -> Result<Option<String>> {
    match member_content(object, member)? {
        Content::Sparse(vector) => on_bits(vector.as_ref(), query),
        Content::Int(vector) => on_items(query, vector.len(), |index| vector.get(index)),
        Content::Elements(words) => on_words(words, query),
        _ => Err(Error::unsupported(format!(
            "there are no queries on the member {member:?} (sparse and integer vectors have them)"
        ))),
    }
}

fn on_words(words: &SharedWords, query: &Query) -> Result<Option<String>> {
    let words = words.as_ref();
    let get = |index: u64| usize::try_from(index).ok().and_then(|index| words.get(index).copied());
    on_items(query, words.len() as u64, get)
}

fn text(answer: Option<u64>) -> Result<Option<String>> {
    Ok(answer.map(|number| number.to_string()))
}

fn pair(answer: Option<(u64, u64)>) -> Result<Option<String>> {
    Ok(answer.map(|(rank, value)| format!("{rank} {value}")))
}

fn unfit(query: &Query, what: &str) -> Error {
    Error::usage(format!("{what} do not answer {:?}", query.to_string()))
}

fn on_bits(bits: &impl BitQueries, query: &Query) -> Result<Option<String>> {
    match (query.operation, query.arguments.as_slice()) {
        (Operation::Get, [index]) => text(bits.get(*index).map(u64::from)),
        (Operation::Rank, [index]) => text(Some(bits.rank(*index))),
        (Operation::Rank0, [index]) => text(bits.rank0(*index)),
        (Operation::Select, [rank]) => text(bits.select(*rank)),
        (Operation::Select0, [rank]) => text(bits.select0(*rank)),
        (Operation::Pred, [index]) => text(bits.predecessor(*index)),
        (Operation::Succ, [index]) => text(bits.successor(*index)),
        (Operation::InverseSelect, [index]) => {
            pair(bits.inverse_select(*index).map(|(rank, bit)| (rank, u64::from(bit))))
        }
        (Operation::Count, []) => text(Some(bits.count_ones())),
        (Operation::Len, []) => text(Some(bits.len())),
        _ => Err(unfit(query, "bit vectors")),
    }
}

fn on_items(query: &Query, len: u64, get: impl Fn(u64) -> Option<u64>) -> Result<Option<String>> {
    match (query.operation, query.arguments.as_slice()) {
        (Operation::Get, [index]) => text(get(*index)),
        (Operation::Len, []) => text(Some(len)),
        _ => Err(unfit(query, "integer vectors")),
    }
}

fn on_wavelet<L, W>(matrix: &pentaglot_succinct::Wavelet<L, W>, query: &Query) -> Result<Option<String>>
where
    L: pentaglot_succinct::Level,
    W: pentaglot_succinct::Words,
{
    match (query.operation, query.arguments.as_slice()) {
        (Operation::Get, [index]) => text(matrix.access(*index)),
        (Operation::Rank, [index, value]) => text(Some(matrix.rank(*index, *value))),
        (Operation::Select, [rank, value]) => text(matrix.select(*rank, *value)),
        (Operation::InverseSelect, [index]) => pair(matrix.inverse_select(*index)),
        (Operation::Pred, [index, value]) => {
            text(matrix.predecessor(*index, *value).map(|(_, position)| position))
        }
        (Operation::Succ, [index, value]) => {
            text(matrix.successor(*index, *value).map(|(_, position)| position))
        }
        (Operation::Len, []) => text(Some(matrix.len())),
        _ => Err(unfit(query, "wavelet matrices")),
    }
}
