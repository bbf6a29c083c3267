//! The differences of two schemas, and the types in which their columns can be compared.

use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};

use crate::convert::reshape::describe;
use crate::convert::union;
use crate::error::Result;
use crate::hub::{Shape, shape};
use crate::identity::type_text;

/// A difference of two schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaDifference {
    /// The column; `None` if it is about all of them (the shape, the order).
    pub column: Option<String>,
    /// Its type in the first document; `None` if that lacks it.
    pub a: Option<String>,
    /// Its type in the second document; `None` if that lacks it.
    pub b: Option<String>,
}

/// The comparison of two schemas.
pub(super) struct Compared {
    pub(super) differences: Vec<SchemaDifference>,
    /// The columns that can be compared, with their common types.
    pub(super) schema: SchemaRef,
    pub(super) columns_a: Vec<usize>,
    pub(super) columns_b: Vec<usize>,
}

pub(super) fn compare(a: &SchemaRef, b: &SchemaRef) -> Result<Compared> {
    let mut differences = Vec::new();
    let whole = |a: String, b: String| SchemaDifference { column: None, a: Some(a), b: Some(b) };
    let (mut fields, mut columns_a, mut columns_b) = (Vec::new(), Vec::new(), Vec::new());
    let shapes = (Shape::of(a), Shape::of(b));
    if shapes.0 != shapes.1 {
        differences.push(whole(describe(a), describe(b)));
    } else if shapes.0 == Shape::Matrix {
        let same = shape::matrix_cols(a) == shape::matrix_cols(b)
            && shape::matrix_value_type(a) == shape::matrix_value_type(b);
        if !same {
            differences.push(whole(describe(a), describe(b)));
        }
    } else {
        let is_table = shapes.0 == Shape::Table;
        // Columns of the same name are matched in order.
        let mut left: Vec<usize> = (0..b.fields().len()).collect();
        let mut matched = Vec::new();
        for (index, field) in a.fields().iter().enumerate() {
            let found = left.iter().position(|other| !is_table || b.field(*other).name() == field.name());
            let Some(found) = found.map(|found| left.remove(found)) else {
                differences.push(column(field, Some(field), None)?);
                continue;
            };
            matched.push(found);
            let other = b.field(found);
            if type_text(field)? != type_text(other)? {
                differences.push(column(field, Some(field), Some(other))?);
            }
            let both = if field.data_type() == other.data_type() {
                Some(field.as_ref().clone().with_nullable(field.is_nullable() || other.is_nullable()))
            } else {
                union::field(field, other)
            };
            if let Some(both) = both {
                fields.push(both);
                columns_a.push(index);
                columns_b.push(found);
            }
        }
        for index in left {
            let field = b.field(index);
            differences.push(column(field, None, Some(field))?);
        }
        if !matched.is_sorted() {
            let names =
                |schema: &Schema| crate::error::list(schema.fields().iter().map(|field| field.name()));
            differences.push(whole(format!("order {}", names(a)), format!("order {}", names(b))));
        }
    }
    let schema = Arc::new(Schema::new_with_metadata(fields, a.metadata().clone()));
    Ok(Compared { differences, schema, columns_a, columns_b })
}

fn column(named: &Field, a: Option<&Field>, b: Option<&Field>) -> Result<SchemaDifference> {
    Ok(SchemaDifference {
        column: Some(named.name().clone()),
        a: a.map(type_text).transpose()?,
        b: b.map(type_text).transpose()?,
    })
}
