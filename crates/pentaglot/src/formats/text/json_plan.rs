//! What writing as JSON values does to fields.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait, RecordBatch};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use crate::error::{Error, Result};
use crate::hub::extension;
use crate::hub::json::decode::check_type;
use crate::hub::type_text::print_field;
use crate::hub::{Effect, LossKind, Plan, inner_fields};

/// Exact: what is read back without a type is equal. Types that are not inferred again from the text are widened where the
/// text says every value in full, and lossy where it does not say what it is.
pub(super) fn plan_fields(schema: &Schema, plan: &mut Plan) {
    let mut names = HashSet::new();
    for field in schema.fields() {
        let repeated = !names.insert(field.name());
        let effect = if repeated || repeats(field) {
            Effect::impossible("an object cannot hold two keys of one name")
        } else if check_type(field).is_err() {
            Effect::lossy(LossKind::Metadata).because("no type reads it back")
        } else {
            effect(field)
        };
        plan.step(field.name(), print_field(field), form(field), effect);
    }
}

fn effect(field: &Field) -> Effect {
    use DataType::*;
    let back = |kind: &str| Effect::widened().because(format!("comes back as {kind} without a type"));
    if matches!(extension::name(field), Some(extension::INT128 | extension::UINT128)) {
        return back("an integer or a decimal as wide as its values need, or text");
    }
    let own = match field.data_type() {
        Boolean | Int64 | Float64 | Date32 | Time64(TimeUnit::Microsecond) => Effect::exact(),
        Timestamp(TimeUnit::Microsecond, None) => Effect::exact(),
        Timestamp(TimeUnit::Microsecond, Some(zone)) if zone.as_ref() == "UTC" => Effect::exact(),
        Utf8 => Effect::widened().because("texts that all look like dates or times come back as such"),
        Time32(_) | Time64(_) | Timestamp(_, None) => back("microseconds or nanoseconds"),
        List(item) => effect(item),
        Struct(fields) => fields.iter().map(|field| effect(field)).fold(Effect::exact(), Effect::and),
        LargeList(item) | ListView(item) | LargeListView(item) | FixedSizeList(item, _) => {
            effect(item).and(back("a list"))
        }
        Map(entries, _) => {
            let note = "an object or a list of pairs, with each key once";
            effect(entries).and(Effect::checked(LossKind::Range).because(note))
        }
        Timestamp(_, Some(zone)) if zone.as_ref() == "UTC" => back("microseconds or nanoseconds"),
        Timestamp(_, Some(_)) => {
            let note = "written with the zone's offset, comes back as text: the zone's name is lost";
            Effect::lossy(LossKind::Timezone).because(note)
        }
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 | UInt64 => back("int64"),
        Float16 | Float32 => back("float64"),
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Effect::widened()
            .because("base64, which comes back as text: only a type tells it from other text"),
        Duration(_) => Effect::widened().because("a number, whose unit is not written"),
        Interval(_) => Effect::widened().because("numbers that do not say what they count"),
        Dictionary(_, values) => effect(&Field::new(field.name(), values.as_ref().clone(), true))
            .and(Effect::widened().because("comes back as its values")),
        RunEndEncoded(_, values) => effect(values).and(Effect::widened().because("comes back as its values")),
        _ => back("text"),
    };
    let order = match field.dict_is_ordered() {
        Some(true) => {
            Effect::lossy(LossKind::Order).because("the order of the dictionary's values is not written")
        }
        _ => Effect::exact(),
    };
    let meaning = match extension::tensor_shape(field) {
        Some(_) => back("nested lists"),
        None => extension::dropped(field),
    };
    own.and(order).and(meaning)
}

/// Errs if a map has one key twice, which no object holds; `row` is the number of the first row.
pub(super) fn check_keys(rows: &RecordBatch, row: u64) -> Result<()> {
    for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
        if let Some(found) = first_repeated_key(column) {
            let (row, name) = (row + found as u64, field.name());
            return Err(Error::lossy(format!("row {row}, column {name:?}: a map has one key twice")));
        }
    }
    Ok(())
}

/// The first value in which a map has one key twice.
fn first_repeated_key(array: &ArrayRef) -> Option<usize> {
    fn lists<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> Option<usize> {
        let item = first_repeated_key(list.values())?;
        list.offsets().windows(2).position(|ends| matches!(ends, [_, end] if item < end.as_usize()))
    }
    match array.data_type() {
        DataType::List(_) => lists(array.as_list::<i32>()),
        DataType::LargeList(_) => lists(array.as_list::<i64>()),
        DataType::FixedSizeList(_, size) => {
            let item = first_repeated_key(array.as_fixed_size_list().values())?;
            Some(item / usize::try_from(*size).unwrap_or(1).max(1))
        }
        DataType::Struct(_) => array.as_struct().columns().iter().filter_map(first_repeated_key).min(),
        DataType::Map(_, _) => {
            let map = array.as_map();
            let keys = map.keys().as_string_opt::<i32>()?;
            let mut seen = HashSet::new();
            (0..map.len()).find(|row| {
                seen.clear();
                let ends = (map.offsets().get(*row), map.offsets().get(*row + 1));
                let (Some(start), Some(end)) = ends else { return false };
                let mut entries = start.as_usize()..end.as_usize();
                map.is_valid(*row) && entries.any(|entry| !seen.insert(keys.value(entry)))
            })
        }
        _ => None,
    }
}

/// Whether a struct inside has two fields of one name.
fn repeats(field: &Field) -> bool {
    let fields = inner_fields(field.data_type());
    let mut names = HashSet::new();
    fields.into_iter().any(|field| !names.insert(field.name()) || repeats(field))
}

/// The JSON form in a word.
fn form(field: &Field) -> &'static str {
    match field.data_type() {
        DataType::Null => "null",
        DataType::Boolean => "bool",
        DataType::Dictionary(_, value) => form(&Field::new("", value.as_ref().clone(), true)),
        DataType::RunEndEncoded(_, value) => form(value),
        DataType::FixedSizeBinary(16) if matches!(crate::hub::extension::name(field), Some(name) if name.ends_with("int128")) => {
            "number"
        }
        DataType::Struct(_) if crate::hub::extension::name(field) == Some(crate::hub::extension::TUPLE) => {
            "array"
        }
        DataType::Duration(_) => "number",
        data_type if data_type.is_integer() || data_type.is_floating() => "number",
        DataType::Struct(_) | DataType::Map(_, _) | DataType::Union(_, _) | DataType::Interval(_) => "object",
        data_type if data_type.is_nested() => "array",
        _ => "string",
    }
}
