//! Structures, opened in place over the elements of a file.

use arrow_schema::Schema;
use pentaglot_succinct::{
    BitQueries, BitVector, IntVector, RawVector, RunLengthVector, RunLengthWaveletMatrix, SharedWords,
    SparseVector, Structure, WaveletCore, WaveletMatrix, WordCursor,
};

use super::containers::Container;
use super::schema::{Native, kind_schema};
use super::type_text::{SdsKind, SdsType};
use crate::error::{Error, Result};
use crate::hub::native;
use crate::limits::Budget;
use crate::map::{InPlace, Map, Words};
use crate::source::Source;

/// A structure, open in place.
///
/// ```
/// use pentaglot::Source;
/// use pentaglot::formats::sds::{SdsKind, Object};
/// // An integer vector of 7, 1, 3 in three bits each.
/// let elements: [u64; 5] = [3, 3, 9, 1, 0b011_001_111];
/// let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
/// let object = Object::open(&Source::from_bytes("x.sds", bytes), Some(SdsKind::Int), None)?;
/// let Object::Int(vector) = object else { panic!() };
/// assert_eq!(vector.get(2), Some(3));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[non_exhaustive]
pub enum Object {
    /// A pangenome container or a part of one.
    Container(Container),
    /// A run-length wavelet matrix.
    RunLengthWavelet(RunLengthWaveletMatrix<SharedWords>),
    /// A wavelet matrix.
    Wavelet(WaveletMatrix<SharedWords>),
    /// The core of a wavelet matrix.
    WaveletCore(WaveletCore<BitVector<SharedWords>>),
    /// A run-length bit vector.
    RunLength(RunLengthVector<SharedWords>),
    /// A sparse bit vector.
    Sparse(SparseVector<SharedWords>),
    /// A bit vector.
    Bit(BitVector<SharedWords>),
    /// An integer vector.
    Int(IntVector<SharedWords>),
    /// A raw bit vector.
    Raw(RawVector<SharedWords>),
    /// The elements of an optional structure.
    Option(Option<SharedWords>),
    /// Elements, two for each pair.
    Pairs(SharedWords),
    /// UTF-8 text: its bytes, and the elements that hold them.
    String(u64, SharedWords),
    /// Bytes: how many, and the elements that hold them.
    Bytes(u64, SharedWords),
    /// Elements.
    Vec(SharedWords),
    /// A single element.
    Element(u64),
    /// Items of several elements: how many each has, and the elements of all.
    Items(u64, SharedWords),
}

impl Object {
    /// Opens elements as a structure of this kind, which must use all of them.
    pub(super) fn from_words(kind: SdsKind, words: SharedWords) -> Result<Self> {
        let mut cursor = WordCursor::new(words);
        let object = Object::read(kind, &mut cursor)?;
        match cursor.left() {
            0 => Ok(object),
            left => Err(Error::malformed(
                format_args!("the end of the {kind}"),
                format_args!("{left} more elements"),
            )
            .at(cursor.position() * 8)
            .rule("trailing")),
        }
    }

    pub(super) fn read(kind: SdsKind, cursor: &mut WordCursor<SharedWords>) -> Result<Self> {
        Ok(match kind {
            SdsKind::Gbz | SdsKind::Gbwt | SdsKind::Gg | SdsKind::GbwtMeta | SdsKind::Chains => {
                Object::Container(Container::read(kind, cursor)?)
            }
            SdsKind::RunLengthWavelet => Object::RunLengthWavelet(Structure::from_words(cursor)?),
            SdsKind::Wavelet => Object::Wavelet(Structure::from_words(cursor)?),
            SdsKind::WaveletCore => Object::WaveletCore(Structure::from_words(cursor)?),
            SdsKind::RunLength => Object::RunLength(Structure::from_words(cursor)?),
            SdsKind::Sparse => Object::Sparse(Structure::from_words(cursor)?),
            SdsKind::Bit => Object::Bit(Structure::from_words(cursor)?),
            SdsKind::Int => Object::Int(Structure::from_words(cursor)?),
            SdsKind::Raw => Object::Raw(Structure::from_words(cursor)?),
            SdsKind::Option => Object::Option(cursor.option("option")?),
            SdsKind::Pairs => Object::Pairs(cursor.vector(2, "pairs")?),
            SdsKind::String => {
                let at = cursor.position() * 8 + 8;
                let (bytes, words) = cursor.bytes("string")?;
                let text = byte_vector(bytes, &words);
                if let Err(error) = simdutf8::compat::from_utf8(&text) {
                    let found = format!("other bytes after {} bytes", error.valid_up_to());
                    return Err(Error::malformed("UTF-8", found).at(at).field("string"));
                }
                Object::String(bytes, words)
            }
            SdsKind::Bytes => {
                let (bytes, words) = cursor.bytes("bytes")?;
                Object::Bytes(bytes, words)
            }
            SdsKind::Vec => Object::Vec(cursor.vector(1, "vec")?),
            SdsKind::Element => Object::Element(cursor.element("u64")?),
            SdsKind::Items | SdsKind::Composite => {
                return Err(Error::usage(format!("a {kind} needs a type that says what is in it")));
            }
        })
    }

    /// Reads a single structure of this type.
    pub(super) fn read_typed(kind: &SdsType, cursor: &mut WordCursor<SharedWords>) -> Result<Self> {
        match kind.structure() {
            Some((SdsKind::Items, elements)) => {
                Ok(Object::Items(elements, cursor.vector(elements, "items")?))
            }
            Some((kind, _)) => Object::read(kind, cursor),
            None => Err(Error::unsupported(format!("one structure of the type {kind}"))),
        }
    }

    /// The kind of this structure.
    pub fn kind(&self) -> SdsKind {
        match self {
            Object::Container(container) => container.kind(),
            Object::RunLengthWavelet(_) => SdsKind::RunLengthWavelet,
            Object::Wavelet(_) => SdsKind::Wavelet,
            Object::WaveletCore(_) => SdsKind::WaveletCore,
            Object::RunLength(_) => SdsKind::RunLength,
            Object::Sparse(_) => SdsKind::Sparse,
            Object::Bit(_) => SdsKind::Bit,
            Object::Int(_) => SdsKind::Int,
            Object::Raw(_) => SdsKind::Raw,
            Object::Option(_) => SdsKind::Option,
            Object::Pairs(_) => SdsKind::Pairs,
            Object::String(..) => SdsKind::String,
            Object::Bytes(..) => SdsKind::Bytes,
            Object::Vec(_) => SdsKind::Vec,
            Object::Element(_) => SdsKind::Element,
            Object::Items(..) => SdsKind::Items,
        }
    }

    /// The properties that are not part of the values.
    pub(super) fn native(&self) -> Native {
        let mut native = Native::new(self.kind());
        match self {
            Object::Sparse(vector) => {
                native.universe = Some(vector.len());
                native.width = Some(vector.low().width());
                // Whether positions repeat is known only after reading all of them.
                native.multiset = true;
                native.supports = Some(vector.high().stored_supports().map(|support| support.is_some()));
            }
            Object::RunLength(vector) => native.universe = Some(vector.len()),
            Object::Int(vector) => native.width = Some(vector.width()),
            Object::Bit(vector) => {
                native.supports = Some(vector.stored_supports().map(|support| support.is_some()));
            }
            Object::Wavelet(matrix) => native.supports = level_supports(matrix.core()),
            Object::WaveletCore(core) => native.supports = level_supports(core),
            Object::Option(content) => native.present = content.is_some(),
            _ => {}
        }
        native
    }

    /// The schema of its rows, with its native type.
    pub(super) fn schema(&self) -> Result<Schema> {
        let elements = if let Object::Items(elements, _) = self { *elements } else { 1 };
        let schema = kind_schema(self.kind(), elements)?;
        Ok(native::with(schema, super::ID, self.native().to_json()))
    }
}

/// The supports of the levels, if all levels have the same.
fn level_supports(core: &WaveletCore<BitVector<SharedWords>>) -> Option<[bool; 3]> {
    let mut all = core.levels().iter().map(|level| level.stored_supports().map(|support| support.is_some()));
    let first = all.next()?;
    all.all(|supports| supports == first).then_some(first)
}

/// Bytes that are stored in elements.
pub(super) fn byte_vector(bytes: u64, words: &SharedWords) -> Vec<u8> {
    let all = words.as_ref().iter().flat_map(|word| word.to_le_bytes());
    all.take(usize::try_from(bytes).unwrap_or(usize::MAX)).collect()
}

/// An error of `pentaglot_succinct`, with offsets in bytes instead of elements.
impl From<pentaglot_succinct::Error> for Error {
    fn from(error: pentaglot_succinct::Error) -> Self {
        use pentaglot_succinct::Error as Inner;
        match error {
            Inner::Truncated { at, path, needed, left } => {
                Error::truncated(format_args!("{needed} elements"), left).at(at.saturating_mul(8)).field(path)
            }
            Inner::Malformed { at, path, expected, found } => {
                Error::malformed(expected, found).at(at.saturating_mul(8)).field(path)
            }
            Inner::Limit { name, limit, found } => {
                Error::limit("the limit", limit, format_args!("{found} ({name})"))
            }
            other => Error::malformed("a valid structure", other),
        }
    }
}

/// The elements of a source.
pub(super) fn read_words(source: &Source, in_place: Option<InPlace>, budget: &Budget) -> Result<SharedWords> {
    let source = source.seekable()?;
    let len = source.len().unwrap_or(0);
    if !len.is_multiple_of(8) {
        return Err(
            Error::truncated("whole elements of 8 bytes", format_args!("{len} bytes")).at(len / 8 * 8)
        );
    }
    if let Some(in_place) = in_place
        && cfg!(target_endian = "little")
        && let Some(path) = source.path()
        && std::fs::metadata(path).is_ok_and(|meta| meta.len() == len)
    {
        return Ok(SharedWords::new(Words::Map(Map::with_permit(path, in_place)?)));
    }
    let bytes = source.read_range(0, len, budget)?;
    Ok(own_words(bytes))
}

/// The whole elements of a source that may end within one.
pub(super) fn read_whole_words(source: &Source, budget: &Budget) -> Result<SharedWords> {
    let source = source.seekable()?;
    let len = source.len().unwrap_or(0) / 8 * 8;
    Ok(own_words(source.read_range(0, len, budget)?))
}

/// Words in memory, aligned and in native byte order.
pub(super) fn own_words(bytes: arrow_buffer::Buffer) -> SharedWords {
    let words = Words::Memory(bytes.clone());
    if words.is_aligned() && cfg!(target_endian = "little") {
        return SharedWords::new(words);
    }
    let elements = bytes.as_chunks::<8>().0.iter().map(|element| u64::from_le_bytes(*element));
    SharedWords::new(elements.collect::<Vec<u64>>())
}
