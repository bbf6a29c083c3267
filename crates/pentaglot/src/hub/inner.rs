//! The fields inside a type, and whether two lists of fields are the same.

use arrow_schema::{DataType, Field, FieldRef, Fields};

/// The fields of which values of this type are made: items, entries, members. The values of a dictionary have no field.
pub(crate) fn inner_fields(kind: &DataType) -> Vec<&FieldRef> {
    match kind {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![item],
        DataType::RunEndEncoded(ends, values) => vec![ends, values],
        DataType::Struct(fields) => fields.iter().collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field).collect(),
        _ => Vec::new(),
    }
}

/// Whether two lists of fields have the same names, types and nullability, and `same` holds for every pair of fields.
///
/// Metadata is ignored, and so are the names of list items, which say nothing about the values.
pub(crate) fn same_fields(one: &Fields, other: &Fields, same: fn(&Field, &Field) -> bool) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| one.name() == other.name() && same_values(one, other, same))
}

fn same_values(one: &Field, other: &Field, same: fn(&Field, &Field) -> bool) -> bool {
    one.is_nullable() == other.is_nullable()
        && same(one, other)
        && match (one.data_type(), other.data_type()) {
            (DataType::List(one), DataType::List(other)) => same_values(one, other, same),
            (DataType::FixedSizeList(one, size), DataType::FixedSizeList(other, same_size)) => {
                size == same_size && same_values(one, other, same)
            }
            (DataType::Struct(one), DataType::Struct(other)) => same_fields(one, other, same),
            (one, other) => one == other,
        }
}
