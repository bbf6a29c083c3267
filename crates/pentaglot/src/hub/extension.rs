//! Extension types on fields: a type that Arrow lacks has a name, and a storage type that other programs can
//! use.
//!
//! | name | storage | metadata |
//! |---|---|---|
//! | `arrow.fixed_shape_tensor` | `FixedSizeList<T, product of shape>` | `{"shape":[…]}` |
//! | `pentaglot.sparse_row` | `LargeList<Struct<col, value>>` | |
//! | `pentaglot.image` | Binary | `{"width","height","components":[[channel,type]…],"format"}` |
//! | `pentaglot.complex` | `FixedSizeList<float, 2>` | |
//! | `pentaglot.int128`, `uint128`, `float128` | `FixedSizeBinary(16)`, little-endian | |
//! | `pentaglot.char`, `pentaglot.dynd_type`, `pentaglot.json` | Utf8 | |
//! | `pentaglot.tuple` | Struct with fields `_0`, `_1`, … | |
//! | `pentaglot.dynd_array` | `Struct<type: Utf8, data: Binary>` | |
//! | `pentaglot.dynd_merkle` | `Struct<type: Utf8, hash: Binary>` | |

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, FieldRef, Schema};

use super::inner::inner_fields;
use super::loss::LossKind;
use super::plan::{Effect, Plan};
use super::type_text::print_field;

/// A row of a sparse matrix.
pub const SPARSE_ROW: &str = "pentaglot.sparse_row";
/// An encoded or plain image.
pub const IMAGE: &str = "pentaglot.image";
/// A complex number.
pub const COMPLEX: &str = "pentaglot.complex";
/// A signed 128-bit integer.
pub const INT128: &str = "pentaglot.int128";
/// An unsigned 128-bit integer.
pub const UINT128: &str = "pentaglot.uint128";
/// An IEEE 754 binary128 float.
pub const FLOAT128: &str = "pentaglot.float128";
/// A Unicode scalar value.
pub const CHAR: &str = "pentaglot.char";
/// A datashape type as a value.
pub const DYND_TYPE: &str = "pentaglot.dynd_type";
/// JSON text.
pub const JSON: &str = "pentaglot.json";
/// A tuple.
pub const TUPLE: &str = "pentaglot.tuple";
/// A typed array as a value.
pub const DYND_ARRAY: &str = "pentaglot.dynd_array";
/// A link to data: its type and a multihash.
pub const DYND_MERKLE: &str = "pentaglot.dynd_merkle";
/// Arrow's canonical tensor of fixed shape.
pub const FIXED_SHAPE_TENSOR: &str = "arrow.fixed_shape_tensor";

/// The extension name of a field.
pub fn name(field: &Field) -> Option<&str> {
    field.metadata().get(EXTENSION_TYPE_NAME_KEY).map(String::as_str)
}

/// The extension metadata of a field.
pub fn metadata(field: &Field) -> Option<&str> {
    field.metadata().get(EXTENSION_TYPE_METADATA_KEY).map(String::as_str)
}

/// The field with an extension name and metadata.
pub fn with(field: Field, name: &str, metadata: Option<String>) -> Field {
    let mut all: HashMap<String, String> = field.metadata().clone();
    all.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned());
    match metadata {
        Some(metadata) => all.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), metadata),
        None => all.remove(EXTENSION_TYPE_METADATA_KEY),
    };
    field.with_metadata(all)
}

/// The field without any extension.
pub fn without(field: Field) -> Field {
    let mut all = field.metadata().clone();
    all.remove(EXTENSION_TYPE_NAME_KEY);
    all.remove(EXTENSION_TYPE_METADATA_KEY);
    field.with_metadata(all)
}

/// The effect on a field if a target does not keep its extension type. Ours are part of the data, those of other
/// programs are not.
pub fn dropped(field: &Field) -> Effect {
    match name(field) {
        None => Effect::exact(),
        // A fixed-size list describes the same tensor.
        Some(FIXED_SHAPE_TENSOR) if tensor_shape(field).is_some_and(|shape| shape.len() == 1) => {
            Effect::widened().because("comes back as a list of fixed size")
        }
        Some(name) if name.starts_with("pentaglot.") || name == FIXED_SHAPE_TENSOR => {
            Effect::lossy(LossKind::Metadata).because(format!("the meaning of {name} is not kept"))
        }
        Some(name) => Effect::widened().because(format!("the extension type {name} is not kept")),
    }
}

/// [`dropped`] of the field and of all fields inside it.
pub fn all_dropped(field: &Field) -> Effect {
    let inner = inner_fields(field.data_type()).into_iter();
    inner.fold(dropped(field), |effect, field| effect.and(all_dropped(field)))
}

/// Whether an extension type is neither ours nor Arrow's tensor, which plans of formats know.
fn is_foreign(name: &str) -> bool {
    !name.starts_with("pentaglot.") && name != FIXED_SHAPE_TENSOR
}

/// The field without extension types of other programs, on it and inside it.
fn plain(field: &Field) -> Field {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct};
    let inner = |field: &FieldRef| Arc::new(plain(field));
    let kind = match field.data_type() {
        List(item) => List(inner(item)),
        LargeList(item) => LargeList(inner(item)),
        FixedSizeList(item, size) => FixedSizeList(inner(item), *size),
        Map(entries, sorted) => Map(inner(entries), *sorted),
        Struct(fields) => Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    };
    let field = field.clone().with_data_type(kind);
    if name(&field).is_some_and(is_foreign) { without(field) } else { field }
}

/// The schema without extension types of other programs.
pub fn without_foreign(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| plain(field));
    Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
}

/// The extension types of other programs on a field and inside it.
fn foreign(field: &Field, found: &mut Vec<String>) {
    if let Some(name) = name(field).filter(|name| is_foreign(name)) {
        found.push(name.to_owned());
    }
    inner_fields(field.data_type()).into_iter().for_each(|field| foreign(field, found));
}

/// Says in the plan of a target that keeps no extension types of other programs which of them these columns have,
/// unless a step says so.
pub fn say_dropped(schema: &Schema, plan: &mut Plan) {
    for field in schema.fields() {
        let mut names = Vec::new();
        foreign(field, &mut names);
        for name in names {
            let is_said = plan.steps.iter().any(|step| {
                step.field == *field.name() && step.note.as_ref().is_some_and(|note| note.contains(&name))
            });
            if !is_said {
                let effect = Effect::widened().because(format!("the extension type {name} is not kept"));
                plan.step(field.name(), print_field(field), print_field(field), effect);
            }
        }
    }
}

/// A tensor field over `FixedSizeList<item, product of shape>`; `None` if the product does not fit.
pub fn tensor_field(field_name: &str, item: DataType, shape: &[u64], nullable: bool) -> Option<Field> {
    let size = shape.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim))?;
    let list = Field::new_fixed_size_list(
        field_name,
        Field::new_list_field(item, false),
        i32::try_from(size).ok()?,
        nullable,
    );
    let metadata = serde_json::json!({ "shape": shape }).to_string();
    Some(with(list, FIXED_SHAPE_TENSOR, Some(metadata)))
}

/// The shape of a tensor field, if it is one and its shape fits its storage.
pub fn tensor_shape(field: &Field) -> Option<Vec<u64>> {
    let DataType::FixedSizeList(_, size) = field.data_type() else { return None };
    if name(field) != Some(FIXED_SHAPE_TENSOR) {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(metadata(field)?).ok()?;
    let shape: Vec<u64> =
        value.get("shape")?.as_array()?.iter().map(|dim| dim.as_u64()).collect::<Option<_>>()?;
    let product = shape.iter().try_fold(1u64, |product, dim| product.checked_mul(*dim))?;
    (product == u64::try_from(*size).ok()?).then_some(shape)
}
