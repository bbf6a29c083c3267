//! Opens elements as structures in place, and detects which kind fits.

use pentaglot_succinct::{
    BitQueries, BitVector, IntVector, RawVector, RunLengthVector, RunLengthWaveletMatrix, SharedWords,
    SparseVector, Structure, WaveletCore, WaveletMatrix, WordCursor,
};

use super::containers::Container;
use super::schema::{Native, SdsKind};
use super::type_text::{PREFIX, SdsType};
use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::formats::{Findings, ReadOptions};
use crate::limits::{Budget, Limits};
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
    /// Opens a source: mapped if that is permitted and it is a file, otherwise read into memory. Without a kind,
    /// the first that fits is used.
    pub fn open(source: &Source, kind: Option<SdsKind>, in_place: Option<InPlace>) -> Result<Self> {
        let words = read_words(source, in_place, &Budget::default())?;
        match kind {
            Some(kind) => Object::from_words(kind, words),
            None => Ok(fitting(&words)?.0),
        }
    }

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

    /// Adds the properties that are not part of the values.
    pub(super) fn describe(&self, native: &mut Native) {
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

/// Up to this many elements, a structure must also be valid for its kind to fit.
const SMALL: usize = 1 << 17;

/// The first kind that fits, and the names of the others that fit too. A small file fits a kind if it uses all elements
/// and breaks none of its rules; a large one, or one that breaks the rules of all kinds, if it uses all elements.
pub(super) fn fitting(words: &SharedWords) -> Result<(Object, Vec<String>)> {
    let mut fits = Vec::new();
    for kind in SdsKind::ALL {
        match Object::from_words(kind, words.clone()) {
            Ok(object) => fits.push(object),
            // A file with a tag cannot be another kind, and the error of that kind is more helpful.
            Err(error) if has_tag(kind, words) => return Err(error.field(kind.name())),
            Err(_) => {}
        }
    }
    let is_sound = |object: &Object| {
        let mut findings = Findings::new(false);
        match object {
            Object::Container(container) => super::validate::check_container(container, &mut findings),
            object => super::validate::check_structure(object, "", 0, &mut findings),
        }
        findings.is_valid()
    };
    if words.as_ref().len() <= SMALL && fits.len() > 1 && fits.iter().any(is_sound) {
        fits.retain(is_sound);
    }
    let mut fits = fits.into_iter();
    let first = fits.next().ok_or_else(|| {
        Error::malformed("a structure that uses all elements", "none").at(0).hint(Hint::From)
    })?;
    Ok((first, fits.map(|other| other.kind().name().to_owned()).collect()))
}

fn has_tag(kind: SdsKind, words: &SharedWords) -> bool {
    let first = words.as_ref().first().copied().unwrap_or(0);
    super::containers::tag(kind).is_some_and(|tag| first & 0xffff_ffff == u64::from(tag))
}

/// The requested kind or type of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted<'o> {
    /// The kind that the user names.
    pub(super) dialect: Option<&'o str>,
    /// The type text that the user gives; it is for this format if it begins with `sds:`.
    pub(super) type_text: Option<&'o str>,
}

impl<'o> Wanted<'o> {
    pub(super) fn new(options: &'o ReadOptions) -> Self {
        Wanted { dialect: options.dialect.as_deref(), type_text: options.type_text.as_deref() }
    }

    /// The type that the user gives for this format.
    pub(super) fn given_type(self, limits: &Limits) -> Result<Option<SdsType>> {
        let Some(text) = self.type_text.and_then(|text| text.trim().strip_prefix(PREFIX)) else {
            return Ok(None);
        };
        if let Some(dialect) = self.dialect {
            return Err(Error::usage(format!("both a kind (sds:{dialect}) and a type are given")));
        }
        let kind = SdsType::parse(text, limits).map_err(|error| match error.kind() {
            ErrorKind::Limit => error,
            _ => Error::usage(format!("the given type: {error}")),
        })?;
        Ok(Some(kind))
    }
}

/// Opens elements as the requested kind or type. If none is requested, also returns the names of other kinds
/// that fit.
pub(super) fn open_object(
    words: &SharedWords,
    wanted: Wanted<'_>,
    limits: &Limits,
) -> Result<(Object, Vec<String>)> {
    if let Some(kind) = wanted.given_type(limits)? {
        let object = match &kind {
            SdsType::Structure(kind) => Object::from_words(*kind, words.clone())?,
            _ => Object::Container(Container::read_typed(&kind, words)?),
        };
        return Ok((object, Vec::new()));
    }
    match wanted.dialect {
        Some(name) => {
            Ok((Object::from_words(SdsKind::parse(name)?, words.clone()).field(name.to_owned())?, Vec::new()))
        }
        None => fitting(words).map_err(|error| match wanted.type_text {
            Some(_) if error.path().is_empty() => {
                let error = Error::malformed("a structure that uses all elements", "none").at(0);
                error.hint(Hint::Advice("a type for sds begins with sds:".into()))
            }
            _ => error,
        }),
    }
}
