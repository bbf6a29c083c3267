//! Room for a batch as large as the one before it.
//!
//! It is made when the next batch begins, not when the last one ends: by then whoever took that batch is mostly done with
//! it, and its memory is used again.

use super::columns::Column;
use crate::cursor::allocate;
use crate::limits::Budget;

/// Something done to each vector of a column, in order.
trait Visit {
    fn visit<T: Copy>(&mut self, vector: &mut Vec<T>);
}

/// How long the vectors of columns were.
#[derive(Debug, Default)]
pub(super) struct Lengths(Vec<usize>);

impl Lengths {
    /// Notes how long the vectors of `columns` are.
    pub(super) fn measure<'c>(columns: impl Iterator<Item = &'c mut Column>) -> Self {
        let mut lengths = Lengths::default();
        columns.for_each(|column| column.each_vector(&mut lengths));
        lengths
    }

    /// Makes room in the same columns for as much again, and some more, since batches differ a little. Without effect
    /// where the budget does not allow it.
    pub(super) fn make_room<'c>(self, columns: impl Iterator<Item = &'c mut Column>, budget: &Budget) {
        let mut rooms = Rooms { lengths: self.0.into_iter(), budget };
        columns.for_each(|column| column.each_vector(&mut rooms));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Visit for Lengths {
    fn visit<T: Copy>(&mut self, vector: &mut Vec<T>) {
        self.0.push(vector.len());
    }
}

struct Rooms<'b> {
    lengths: std::vec::IntoIter<usize>,
    budget: &'b Budget,
}

impl Visit for Rooms<'_> {
    fn visit<T: Copy>(&mut self, vector: &mut Vec<T>) {
        let len = self.lengths.next().unwrap_or(0) as u64;
        let wanted = len + len / 8;
        if wanted > vector.capacity() as u64
            && let Ok(mut room) = allocate(wanted, self.budget)
        {
            room.extend_from_slice(vector);
            *vector = room;
        }
    }
}

impl Column {
    fn each_vector(&mut self, visit: &mut impl Visit) {
        match self {
            Column::Void(_) => {}
            Column::Bool(values) => visit.visit(values),
            Column::UInt8(values) => visit.visit(values),
            Column::Int8(values) => visit.visit(values),
            Column::UInt32(values) => visit.visit(values),
            Column::Int32(values) => visit.visit(values),
            Column::UInt64(values) => visit.visit(values),
            Column::Int64(values) => visit.visit(values),
            Column::Float32(values) => visit.visit(values),
            Column::Float64(values) => visit.visit(values),
            Column::Text(blob) | Column::Image(blob, _) => {
                visit.visit(&mut blob.offsets);
                visit.visit(&mut blob.bytes);
            }
            Column::Tensor { item, .. } => item.each_vector(visit),
            Column::List { offsets, item, .. } => {
                visit.visit(offsets);
                item.each_vector(visit);
            }
            Column::Struct { fields, .. } => fields.iter_mut().for_each(|field| field.each_vector(visit)),
            Column::Nullable { valid, inner } => {
                visit.visit(valid);
                inner.each_vector(visit);
            }
        }
    }
}
