//! The Arrow schema of SciPy's sparse matrices, and back.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};

use crate::formats::npy::schema::derive;
use crate::formats::npy::types::{Dtype, DtypeKind, Scalar};
use crate::hub::matrix::sparse_entry;
use crate::hub::{Effect, extension, shape};

/// Whether SciPy can count the columns.
pub(super) fn index_limit(schema: &Schema) -> bool {
    shape::matrix_cols(schema).is_some_and(|cols| i64::try_from(cols).is_ok())
}

/// The dtype of a sparse matrix's values, and the effect on them.
pub(super) fn sparse_value(schema: &Schema) -> Result<(Scalar, Effect), String> {
    let (_, fields) = sparse_entry(schema).map_err(|error| error.to_string())?;
    let Some(value) = fields.get(1) else { return Err("rows that are not sparse rows".to_owned()) };
    let derived = derive(value, true)?;
    match derived.dtype {
        Dtype::Scalar(scalar)
            if derived.shape.is_empty()
                && matches!(
                    scalar.kind,
                    DtypeKind::Bool
                        | DtypeKind::Int
                        | DtypeKind::Uint
                        | DtypeKind::Float
                        | DtypeKind::Complex
                ) =>
        {
            Ok((scalar, derived.effect))
        }
        _ => Err("SciPy's sparse matrices hold numbers only".to_owned()),
    }
}

/// Marks the values of a sparse matrix as complex.
pub(super) fn with_complex(schema: Schema) -> Schema {
    let field = schema.field(0).clone();
    let DataType::LargeList(entry) = field.data_type() else { return schema };
    let DataType::Struct(fields) = entry.data_type() else { return schema };
    let fields: Fields = fields
        .iter()
        .map(|field| match field.name().as_str() {
            "value" => extension::with(field.as_ref().clone(), extension::COMPLEX, None),
            _ => field.as_ref().clone(),
        })
        .collect::<Vec<Field>>()
        .into();
    let entry = entry.as_ref().clone().with_data_type(DataType::Struct(fields));
    let field = field.with_data_type(DataType::LargeList(Arc::new(entry)));
    Schema::new_with_metadata(vec![field], schema.metadata().clone())
}
