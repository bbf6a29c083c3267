//! The fields inside a type.

use arrow_schema::{DataType, FieldRef};

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
