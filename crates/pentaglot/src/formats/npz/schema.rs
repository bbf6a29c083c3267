//! The Arrow schema of SciPy's sparse matrices, and back.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};
use serde_json::Value;

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
    /// Those that an option may name.
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

/// Blocks or diagonals, if a matrix was in them and still can be; with the rows and columns of a block.
fn dense_parts(native: &Value, schema: &Schema) -> Option<(SparseLayout, (u64, u64))> {
    match native.get("layout")?.as_str()? {
        "dia" => Some((SparseLayout::Dia, (1, 1))),
        "bsr" => {
            let size = |index: usize| native.get("block")?.get(index)?.as_u64().filter(|size| *size > 0);
            let block = (size(0)?, size(1)?);
            let (rows, cols) = (shape::matrix_rows(schema)?, shape::matrix_cols(schema)?);
            let tiles = rows.is_multiple_of(block.0) && cols.is_multiple_of(block.1);
            tiles.then_some((SparseLayout::Bsr, block))
        }
        _ => None,
    }
}

/// What a sparse matrix will be written as.
#[derive(Debug, Clone, Copy)]
pub(super) struct SparseTarget {
    pub(super) scalar: Scalar,
    pub(super) layout: SparseLayout,
    /// Rows and columns of a block, for BSR.
    pub(super) block: (u64, u64),
    /// Whether indices have 64 bits though 32 would do.
    pub(super) wide: bool,
    /// Whether SciPy reads it as a sparse array, and not as a sparse matrix.
    pub(super) is_array: bool,
}

impl SparseTarget {
    /// The layout that the options or the native type name, else CSR, and what that does to the values.
    pub(super) fn of(schema: &Schema, layout: Option<&str>) -> Result<(SparseTarget, Effect), String> {
        let (scalar, effect) = sparse_value(schema)?;
        if !index_limit(schema) {
            return Err("SciPy counts rows and columns up to 2^63-1".to_owned());
        }
        let (native, whole) = (native::of_sliced(schema, "npz"), native::of(schema, "npz"));
        let (native, whole) = (native.as_ref(), whole.as_ref());
        let written = |named: &str| SparseLayout::WRITTEN.into_iter().find(|layout| layout.name() == named);
        let kept = native.and_then(|native| written(native.get("layout")?.as_str()?));
        let dense = whole.and_then(|whole| dense_parts(whole, schema));
        let (layout, block) = match layout.and_then(written) {
            Some(named) => (named, (1, 1)),
            None => dense.unwrap_or((kept.unwrap_or(SparseLayout::Csr), (1, 1))),
        };
        let wide = native.and_then(|native| native.get("index_bytes")?.as_u64()) == Some(8);
        let is_array = native.and_then(|native| native.get("is_array")?.as_bool()) == Some(true);
        Ok((SparseTarget { scalar, layout, block, wide, is_array }, effect))
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
