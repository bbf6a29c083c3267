//! Our own fast index in a side file (`FILE.idx`), bound to its data by length and hash. It is never stored in the
//! format's slots.
//!
//! ```text
//! magic "PENTAIDX" | version 3 | kind | elements of the data | hash of the data (4 elements) | index… | hash of all before (4)
//! ```

use pentaglot_succinct::{Indexed, SharedWords, WordCursor};

use super::detect::{Wanted, open_object};
use super::layout::{Object, read_words};
use super::type_text::SdsKind;
use crate::error::{Error, Result};
use crate::formats::ReadOptions;
use crate::formats::side_index::{SDS_MAGIC, SUFFIX};
use crate::limits::Budget;
use crate::map::InPlace;
use crate::source::Source;

/// `PENTAIDX`, as a little-endian element.
const MAGIC: u64 = u64::from_le_bytes(*SDS_MAGIC);
const VERSION: u64 = 3;

/// A structure open for queries, with its side index if there is one that matches.
///
/// ```
/// use pentaglot::formats::sds::{Mapped, SdsKind, answer};
/// use pentaglot::{Budget, Source};
/// // An integer vector of 7, 1, 3 in three bits each.
/// let elements: [u64; 5] = [3, 3, 9, 1, 0b011_001_111];
/// let bytes: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
/// let source = Source::from_bytes("x.sds", bytes);
/// let mapped = Mapped::open(&source, Some(SdsKind::Int), None, &Budget::default())?;
/// assert_eq!(answer(&mapped.object, &"get 2".parse()?)?.into_text().as_deref(), Some("3"));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[non_exhaustive]
pub struct Mapped {
    /// The structure.
    pub object: Object,
    /// Its elements.
    pub words: SharedWords,
    /// Other kinds that the same elements could be.
    pub also_fits: Vec<String>,
    /// A note for the user: an index that was ignored.
    pub note: Option<String>,
}

impl Mapped {
    /// Maps a file if that is permitted; otherwise reads the source into memory.
    pub fn open(
        source: &Source,
        kind: Option<SdsKind>,
        in_place: Option<InPlace>,
        budget: &Budget,
    ) -> Result<Self> {
        Mapped::open_as(
            source,
            Wanted { dialect: kind.map(SdsKind::name), type_text: None },
            in_place,
            budget,
        )
    }

    /// Like [`open`](Self::open), with an optional type text.
    pub fn open_typed(
        source: &Source,
        kind: Option<SdsKind>,
        type_text: Option<&str>,
        in_place: Option<InPlace>,
        budget: &Budget,
    ) -> Result<Self> {
        Mapped::open_as(source, Wanted { dialect: kind.map(SdsKind::name), type_text }, in_place, budget)
    }

    fn open_as(
        source: &Source,
        wanted: Wanted<'_>,
        in_place: Option<InPlace>,
        budget: &Budget,
    ) -> Result<Self> {
        let words = read_words(source, in_place, budget)?;
        let (object, also_fits) = open_object(&words, wanted, budget.limits())?;
        let attached = match source.sibling(SUFFIX)? {
            Some(side) => {
                read_words(&side, in_place, budget).and_then(|index| attach_index(&object, &words, index))
            }
            None => Ok(()),
        };
        let note =
            attached.err().map(|error| format!("the index {}{SUFFIX} is ignored: {error}", source.name()));
        Ok(Mapped { object, words, also_fits, note })
    }
}

/// The bytes of the side index of a file.
pub(super) fn side_index(source: &Source, options: &ReadOptions) -> Result<Vec<u8>> {
    let mapped = Mapped::open_as(source, Wanted::new(options), options.in_place, &options.budget)?;
    build_index(&mapped.object, &mapped.words)
}

/// The bytes of the side file for a structure over these elements.
pub fn build_index(object: &Object, words: &SharedWords) -> Result<Vec<u8>> {
    let mut elements: Vec<u64> = vec![MAGIC, VERSION, kind_code(object.kind()), words.as_ref().len() as u64];
    elements.extend(hash(words.as_ref()));
    match object {
        Object::Bit(structure) => structure.write_index(&mut elements)?,
        Object::Sparse(structure) => structure.write_index(&mut elements)?,
        Object::RunLength(structure) => structure.write_index(&mut elements)?,
        Object::Wavelet(structure) => structure.write_index(&mut elements)?,
        Object::RunLengthWavelet(structure) => structure.write_index(&mut elements)?,
        other => {
            let kind = other.kind();
            return Err(Error::unsupported(format!(
                "an index for sds:{kind} (sds:bit, sparse, rl, wm and rlwm have one)"
            )));
        }
    }
    elements.extend(hash(&elements));
    Ok(elements.iter().flat_map(|element| element.to_le_bytes()).collect())
}

/// Attaches an index made by [`build_index`]; one of other data is an error.
fn attach_index(object: &Object, words: &SharedWords, index: SharedWords) -> Result<()> {
    let (body, own) = index.as_ref().split_last_chunk::<4>().unwrap_or((&[], &[0; 4]));
    if hash(body) != *own {
        return Err(Error::malformed("an index whose hash is right", "another").field("hash"));
    }
    let mut cursor = WordCursor::new(index);
    let mut check = |name: &'static str, expected: u64| -> Result<()> {
        let at = cursor.position() * 8;
        let found = cursor.element(name)?;
        if found == expected { Ok(()) } else { Err(Error::malformed(expected, found).at(at).field(name)) }
    };
    check("magic", MAGIC)?;
    check("version", VERSION)?;
    check("kind", kind_code(object.kind()))?;
    check("data_elements", words.as_ref().len() as u64)?;
    for part in hash(words.as_ref()) {
        check("data_hash", part)?;
    }
    let attached = match object {
        Object::Bit(structure) => structure.attach_index(&mut cursor),
        Object::Sparse(structure) => structure.attach_index(&mut cursor),
        Object::RunLength(structure) => structure.attach_index(&mut cursor),
        Object::Wavelet(structure) => structure.attach_index(&mut cursor),
        Object::RunLengthWavelet(structure) => structure.attach_index(&mut cursor),
        _ => Ok(()),
    };
    Ok(attached?)
}

fn kind_code(kind: SdsKind) -> u64 {
    SdsKind::ALL.iter().zip(0..).find(|(known, _)| **known == kind).map_or(u64::MAX, |(_, code)| code)
}

/// BLAKE3 of the elements.
fn hash(words: &[u64]) -> [u64; 4] {
    let mut hasher = blake3::Hasher::new();
    // Hashes in large pieces: small ones are several times slower.
    let mut bytes = Vec::new();
    for chunk in words.chunks(1 << 15) {
        bytes.clear();
        bytes.extend(chunk.iter().flat_map(|word| word.to_le_bytes()));
        hasher.update(&bytes);
    }
    let hash = *hasher.finalize().as_bytes();
    let (parts, _) = hash.as_chunks::<8>();
    let mut out = [0; 4];
    out.iter_mut().zip(parts).for_each(|(out, part)| *out = u64::from_le_bytes(*part));
    out
}
