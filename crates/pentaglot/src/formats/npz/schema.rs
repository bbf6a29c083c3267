//! The Arrow schema of SciPy's sparse matrices, and back.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};

use crate::formats::npy::schema::derive;
use crate::formats::npy::types::{Dtype, DtypeKind, Scalar};
use crate::hub::matrix::sparse_entry;
use crate::hub::{Effect, extension, native, shape};

/// How SciPy laid the entries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SparseLayout {
    Csr,
    Csc,
    Coo,
    Bsr,
    Dia,
}

impl SparseLayout {
    /// Those that are written.
    pub(super) const WRITTEN: [SparseLayout; 3] = [SparseLayout::Csr, SparseLayout::Csc, SparseLayout::Coo];

    pub(super) fn name(self) -> &'static str {
        match self {
            SparseLayout::Csr => "csr",
            SparseLayout::Csc => "csc",
            SparseLayout::Coo => "coo",
            SparseLayout::Bsr => "bsr",
            SparseLayout::Dia => "dia",
        }
    }
}

/// What a sparse matrix will be written as.
#[derive(Debug, Clone, Copy)]
pub(super) struct SparseTarget {
    pub(super) scalar: Scalar,
    pub(super) layout: SparseLayout,
    /// Whether indices have 64 bits though 32 would do.
    pub(super) wide: bool,
}

impl SparseTarget {
    /// The layout that the options or the native type name, else CSR, and what that does to the values.
    pub(super) fn of(schema: &Schema, layout: Option<&str>) -> Result<(SparseTarget, Effect), String> {
        let (scalar, effect) = sparse_value(schema)?;
        if !index_limit(schema) {
            return Err("SciPy counts rows and columns up to 2^63-1".to_owned());
        }
        let native = native::of_sliced(schema, "npz");
        let native = native.as_ref();
        let named = layout.or_else(|| native?.get("layout")?.as_str());
        let written = SparseLayout::WRITTEN.into_iter().find(|layout| Some(layout.name()) == named);
        let wide = native.and_then(|native| native.get("index_bytes")?.as_u64()) == Some(8);
        Ok((SparseTarget { scalar, layout: written.unwrap_or(SparseLayout::Csr), wide }, effect))
    }
}

/// Whether SciPy can count the columns.
fn index_limit(schema: &Schema) -> bool {
    shape::matrix_cols(schema).is_some_and(|cols| i64::try_from(cols).is_ok())
}

/// The dtype of a sparse matrix's values, and what that does to them.
fn sparse_value(schema: &Schema) -> Result<(Scalar, Effect), String> {
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
