//! A chunk of a column: where its encoded bytes go, and its digest.

use std::io::{self, Write};

use arrow_array::ArrayRef;

use super::column::HashedColumn;
use super::encoder::Encoder;
use super::matrix::MatrixRows;
use crate::error::Result;
use crate::limits::Budget;
use crate::source::Spool;

/// How the rows of a column are encoded.
#[derive(Clone, Copy)]
pub(super) enum ChunkKind {
    /// By the encoding of their type.
    Values,
    /// As rows of a matrix, by their non-zero entries.
    Matrix,
}

/// Rows of a chunk that are ready to be encoded.
enum Piece {
    Values(HashedColumn),
    Matrix(MatrixRows),
}

impl Piece {
    fn new(array: &ArrayRef, kind: ChunkKind) -> Result<Self> {
        Ok(match kind {
            ChunkKind::Values => Piece::Values(HashedColumn::new(array)?),
            ChunkKind::Matrix => Piece::Matrix(MatrixRows::new(array)?),
        })
    }

    fn has_missing(&self) -> bool {
        matches!(self, Piece::Values(column) if column.has_missing())
    }

    fn len(&self) -> usize {
        match self {
            Piece::Values(column) => column.len(),
            Piece::Matrix(rows) => rows.len(),
        }
    }

    fn is_missing(&self, index: usize) -> bool {
        matches!(self, Piece::Values(column) if column.is_missing(index))
    }

    fn encode(&self, out: &mut Encoder<'_>) -> Result<()> {
        match self {
            Piece::Values(column) => column.encode_present(out)?,
            Piece::Matrix(rows) => rows.encode(out)?,
        }
        out.flush()
    }
}

/// One bit a row, least significant first.
#[derive(Default)]
struct Validity {
    bytes: Vec<u8>,
    rows: usize,
    has_missing: bool,
}

impl Validity {
    fn push(&mut self, piece: &Piece) {
        let has_missing = piece.has_missing();
        self.has_missing |= has_missing;
        for index in 0..piece.len() {
            if self.rows.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let present = !has_missing || !piece.is_missing(index);
            if let Some(last) = self.bytes.last_mut() {
                *last |= u8::from(present) << (self.rows % 8);
            }
            self.rows += 1;
        }
    }

    fn hash(&self, hasher: &mut blake3::Hasher) {
        if self.has_missing {
            hasher.update(&[1]).update(&self.bytes);
        } else {
            hasher.update(&[0]);
        }
    }
}

/// The digest of a chunk whose rows are all in memory.
pub(super) fn digest(pieces: &[ArrayRef], kind: ChunkKind) -> Result<[u8; 32]> {
    let pieces: Vec<Piece> = pieces.iter().map(|array| Piece::new(array, kind)).collect::<Result<_>>()?;
    let mut validity = Validity::default();
    if pieces.iter().any(Piece::has_missing) {
        pieces.iter().for_each(|piece| validity.push(piece));
    }
    let mut hasher = blake3::Hasher::new();
    validity.hash(&mut hasher);
    let mut take = |bytes: &[u8]| {
        hasher.update(bytes);
        Ok(())
    };
    let mut out = Encoder::new(&mut take);
    pieces.iter().try_for_each(|piece| piece.encode(&mut out))?;
    Ok(*hasher.finalize().as_bytes())
}

/// The first rows of a chunk that is too large to be kept in memory. The validity is hashed first but complete last, so
/// the encoded values are spooled.
pub(super) struct Unfinished {
    kind: ChunkKind,
    validity: Validity,
    spool: Spool,
}

impl Unfinished {
    pub(super) fn new(kind: ChunkKind, budget: &Budget) -> Self {
        Unfinished { kind, validity: Validity::default(), spool: Spool::new(budget).limited() }
    }

    pub(super) fn push(&mut self, array: &ArrayRef) -> Result<()> {
        let piece = Piece::new(array, self.kind)?;
        self.validity.push(&piece);
        let spool = &mut self.spool;
        let mut take = |bytes: &[u8]| Ok(spool.write_all(bytes)?);
        piece.encode(&mut Encoder::new(&mut take))
    }

    pub(super) fn digest(mut self) -> Result<[u8; 32]> {
        let mut hasher = blake3::Hasher::new();
        self.validity.hash(&mut hasher);
        self.spool.copy_to(&mut Hashing(&mut hasher))?;
        Ok(*hasher.finalize().as_bytes())
    }
}

/// Implements `Write` for a hasher.
struct Hashing<'h>(&'h mut blake3::Hasher);

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
