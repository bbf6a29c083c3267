//! Columns that are gathered batch by batch: what the format stores of them is in memory, not the batches that they came in.

use arrow_array::{Array, ArrayRef};

use super::buffers::{FixedValues, Lengths, Mask};
use super::encode::{Encoder, plain};
use super::schema::Type;
use crate::cursor::Reserved;
use crate::error::Result;

/// The values of a column of numbers, bits, texts or bytes, as they are stored.
pub(super) struct Gathered {
    pub(super) mask: Mask,
    pub(super) values: Values,
}

pub(super) enum Values {
    Bytes(Lengths, Reserved<u8>),
    Fixed(FixedValues),
}

impl Gathered {
    /// With room for so many rows. `None`: the type is stored as documents in documents, which only all rows together make.
    pub(super) fn new(kind: &Type, rows: usize, encoder: &Encoder) -> Result<Option<Self>> {
        let budget = &encoder.budget;
        let values = match kind {
            Type::Null | Type::List(_) | Type::Factor { .. } | Type::Struct(_) => return Ok(None),
            Type::Bytes | Type::Utf8 => Values::Bytes(Lengths::new(rows, budget)?, Reserved::new(budget)),
            _ => Values::Fixed(FixedValues::new(kind, rows, encoder.repeat, budget)?),
        };
        Ok(Some(Gathered { mask: Mask::new(), values }))
    }

    pub(super) fn append(&mut self, chunk: &ArrayRef) -> Result<()> {
        let chunk = plain(chunk)?;
        self.mask.append(&chunk);
        match &mut self.values {
            Values::Bytes(lengths, bytes) => bytes.extend_from_slice(&lengths.append_bytes(&chunk)?),
            Values::Fixed(values) => values.append(&chunk),
        }
    }
}

/// What has come of a column.
pub(super) enum Held {
    /// As it came: slices of one array, which are not copied, or values that are not gathered.
    Chunks(Vec<ArrayRef>),
    Gathered(Gathered),
}

impl Held {
    pub(super) fn push(&mut self, chunk: &ArrayRef, kind: &Type, encoder: &Encoder) -> Result<()> {
        match self {
            Held::Gathered(gathered) => return gathered.append(chunk),
            Held::Chunks(chunks) => {
                let is_slice = chunks.last().is_none_or(|last| is_same_memory(last, chunk));
                if !is_slice && let Some(mut gathered) = Gathered::new(kind, 0, encoder)? {
                    chunks.iter().try_for_each(|chunk| gathered.append(chunk))?;
                    gathered.append(chunk)?;
                    *self = Held::Gathered(gathered);
                } else {
                    chunks.push(ArrayRef::clone(chunk));
                }
            }
        }
        Ok(())
    }
}

/// Whether the values of both are in one piece of memory.
fn is_same_memory(one: &ArrayRef, other: &ArrayRef) -> bool {
    let (one, other) = (one.to_data(), other.to_data());
    let places = one.buffers().last().zip(other.buffers().last());
    places.is_some_and(|(one, other)| one.data_ptr() == other.data_ptr())
}
