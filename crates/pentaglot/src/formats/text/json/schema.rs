//! The schema of an object of columns: given, or inferred.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::layout::ColumnPlaces;
use crate::error::{Error, Result};
use crate::formats::ReadOptions;
use crate::formats::text::json_rows::given_schema;
use crate::hub::Shape;

/// The name of the column of row labels.
pub(super) const INDEX: &str = "index";

/// What is read of an object of columns: for each field its column, or `None` for the labels of the rows.
pub(super) fn fields(places: &ColumnPlaces, options: &ReadOptions) -> Result<(Fields, Vec<Option<usize>>)> {
    let labels = places.has_labels && !places.columns.iter().any(|column| column.name == INDEX);
    let known = labels.then_some((INDEX, None)).into_iter();
    let known =
        known.chain(places.columns.iter().enumerate().map(|(at, column)| (column.name.as_str(), Some(at))));
    let Some(text) = &options.type_text else {
        let field = |(name, at): (&str, Option<usize>)| -> FieldRef {
            let seen = at.and_then(|at| places.columns.get(at)).map(|column| column.seen.field(name));
            Arc::new(seen.unwrap_or_else(|| Field::new(name, DataType::Utf8, false)))
        };
        let (fields, sources): (Vec<FieldRef>, Vec<_>) = known.map(|known| (field(known), known.1)).unzip();
        return Ok((fields.into(), sources));
    };
    let schema = given_schema(text, options)?;
    if Shape::of(&schema) != Shape::Table {
        let found = text.strip_prefix("arrow:").unwrap_or(text);
        return Err(Error::usage(format!("the given type: expected struct{{…}}, found {found}")));
    }
    let by_name: HashMap<&str, Option<usize>> = known.collect();
    let source = |field: &FieldRef| {
        by_name
            .get(field.name().as_str())
            .copied()
            .ok_or_else(|| Error::usage(format!("the given type: there is no column {:?}", field.name())))
    };
    let sources = schema.fields().iter().map(source).collect::<Result<Vec<_>>>()?;
    if sources.len() < by_name.len() {
        let missing = by_name.keys().find(|name| schema.field_with_name(name).is_err());
        let missing = missing.copied().unwrap_or_default();
        return Err(Error::usage(format!("the given type: expected a field for the column {missing:?}")));
    }
    Ok((schema.fields().clone(), sources))
}
