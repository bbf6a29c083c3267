//! Arrow schemas as flatbuffers (Arrow IPC messages and footers, Parquet's `ARROW:schema`): checked before
//! `arrow-ipc` converts them, since it panics on unknown values.

use arrow_ipc::{Field as FbField, Precision, Schema as FbSchema, Type};
use arrow_schema::{Schema, UnionFields};
use flatbuffers::{InvalidFlatbuffer, VerifierOptions};

use crate::error::{Context, Error, Result};
use crate::limits::Limits;

/// Limits of the flatbuffer verifier for so many bytes: types as deep as `max_depth` allows (a field and its type per level), and
/// parts that are shared, each of which is copied, a few times at the most.
pub(crate) fn verifier_options(bytes: usize, limits: &Limits) -> VerifierOptions {
    let max_depth =
        usize::try_from(limits.max_depth).unwrap_or(usize::MAX).saturating_mul(2).saturating_add(16);
    let max_apparent_size = bytes.saturating_mul(16);
    VerifierOptions { max_depth, max_apparent_size, max_tables: 4_000_000, ..VerifierOptions::default() }
}

/// The message in `bytes`, verified.
pub(crate) fn message<'a>(bytes: &'a [u8], limits: &Limits) -> Result<arrow_ipc::Message<'a>> {
    arrow_ipc::root_as_message_with_opts(&verifier_options(bytes.len(), limits), bytes)
        .map_err(|error| damaged("a message", &error))
}

/// The error for bytes that are not a sound flatbuffer of `what`.
pub(crate) fn damaged(what: &str, error: &InvalidFlatbuffer) -> Error {
    let found = match error {
        InvalidFlatbuffer::MissingRequiredField { required, .. } => format!("one without {required}"),
        InvalidFlatbuffer::Utf8Error { .. } => "text that is not UTF-8".to_owned(),
        InvalidFlatbuffer::RangeOutOfBounds { .. } | InvalidFlatbuffer::SignedOffsetOutOfBounds { .. } => {
            "an offset past its end".to_owned()
        }
        InvalidFlatbuffer::Unaligned { .. } => "an offset that is not aligned".to_owned(),
        InvalidFlatbuffer::DepthLimitReached => "one that nests deeper than its types may".to_owned(),
        _ => "damaged bytes".to_owned(),
    };
    Error::malformed(format_args!("{what} as a flatbuffer"), found).rule("flatbuffer")
}

/// The Arrow schema of a flatbuffer, after a check that Arrow has all of its types.
pub(crate) fn schema(from: FbSchema<'_>, limits: &Limits) -> Result<Schema> {
    if from.endianness() != arrow_ipc::Endianness::Little {
        return Err(Error::unsupported("big-endian Arrow data"));
    }
    let fields = from.fields().ok_or_else(|| Error::malformed("fields", "none").field("schema"))?;
    for (index, field) in fields.iter().enumerate() {
        check_field(field, limits, 1).index(index as u64).field("schema.fields")?;
    }
    Ok(arrow_ipc::convert::fb_to_schema(from))
}

fn check_field(field: FbField<'_>, limits: &Limits, depth: u32) -> Result<()> {
    limits.check_depth(depth)?;
    if let Some(dictionary) = field.dictionary() {
        let index = dictionary.indexType().ok_or_else(|| bad("a dictionary index type", "none"))?;
        check_width(index.bitWidth())?;
    }
    check_type(field)?;
    let children = field.children();
    let count = children.map_or(0, |children| children.len());
    let expected = match field.type_type() {
        Type::List | Type::LargeList | Type::ListView | Type::LargeListView => Some(1),
        Type::FixedSizeList | Type::Map => Some(1),
        Type::RunEndEncoded => Some(2),
        Type::Struct_ | Type::Union => None,
        _ => Some(count),
    };
    if let Some(expected) = expected.filter(|expected| *expected != count) {
        return Err(bad(format!("{expected} child fields"), count));
    }
    for (index, child) in children.into_iter().flatten().enumerate() {
        check_field(child, limits, depth + 1).index(index as u64).field("children")?;
    }
    check_shape(field)
}

/// Checks the children of a type, each of which is already valid by itself.
fn check_shape(field: FbField<'_>) -> Result<()> {
    let children = field.children();
    let child =
        |index: usize| children.filter(|children| children.len() > index).map(|children| children.get(index));
    match field.type_type() {
        Type::Map => {
            let entries = child(0).ok_or_else(|| bad("map entries", "none"))?;
            let count = entries.children().map_or(0, |parts| parts.len());
            if entries.type_type() != Type::Struct_ || count != 2 || entries.dictionary().is_some() {
                return Err(bad("map entries that are a struct of key and value", format!("{count} fields")));
            }
        }
        Type::RunEndEncoded => {
            let ends = child(0).ok_or_else(|| bad("run ends", "none"))?;
            let width = ends.type_as_int().filter(|int| int.is_signed()).map(|int| int.bitWidth());
            if !matches!(width, Some(16 | 32 | 64)) || ends.dictionary().is_some() {
                return Err(bad("run ends that are int16, int32 or int64", "another type"));
            }
        }
        Type::Union => {
            let union = field.type_as_union().ok_or_else(|| bad("a union type", "none"))?;
            let count = children.map_or(0, |children| children.len());
            let ids: Vec<i32> = match union.typeIds() {
                Some(ids) => ids.iter().collect(),
                None => (0..).take(count).collect(),
            };
            let narrow: Option<Vec<i8>> =
                ids.iter().map(|id| i8::try_from(*id).ok().filter(|id| *id >= 0)).collect();
            let Some(narrow) = narrow.filter(|narrow| narrow.len() == count) else {
                return Err(bad(format!("{count} type ids from 0 to 127"), format!("{ids:?}")));
            };
            let parts = children.into_iter().flatten().map(arrow_schema::Field::from);
            UnionFields::try_new(narrow, parts.collect::<Vec<_>>())
                .map_err(|error| bad("distinct union type ids", error))?;
        }
        _ => {}
    }
    Ok(())
}

fn check_width(bits: i32) -> Result<()> {
    match bits {
        8 | 16 | 32 | 64 => Ok(()),
        other => Err(bad("8, 16, 32 or 64 bits", other)),
    }
}

/// Checks that Arrow supports the parameters of a type.
fn check_type(field: FbField<'_>) -> Result<()> {
    let missing = || bad("the parameters of its type", "none");
    match field.type_type() {
        Type::Int => check_width(field.type_as_int().ok_or_else(missing)?.bitWidth()),
        Type::FloatingPoint => {
            let precision = field.type_as_floating_point().ok_or_else(missing)?.precision();
            let known = [Precision::HALF, Precision::SINGLE, Precision::DOUBLE].contains(&precision);
            if known { Ok(()) } else { Err(bad("a float precision 0..=2", precision.0)) }
        }
        Type::FixedSizeBinary => {
            let width = field.type_as_fixed_size_binary().ok_or_else(missing)?.byteWidth();
            if width >= 0 { Ok(()) } else { Err(bad("a byte width of 0 or more", width)) }
        }
        Type::FixedSizeList => {
            let size = field.type_as_fixed_size_list().ok_or_else(missing)?.listSize();
            if size >= 0 { Ok(()) } else { Err(bad("a list size of 0 or more", size)) }
        }
        Type::Date => known_unit(field.type_as_date().ok_or_else(missing)?.unit().0, 1),
        Type::Time => {
            let time = field.type_as_time().ok_or_else(missing)?;
            match (time.bitWidth(), time.unit().0) {
                (32, 0 | 1) | (64, 2 | 3) => Ok(()),
                (bits, unit) => {
                    Err(bad("32 bits of s or ms, or 64 of us or ns", format!("{bits} bits of unit {unit}")))
                }
            }
        }
        Type::Timestamp => known_unit(field.type_as_timestamp().ok_or_else(missing)?.unit().0, 3),
        Type::Duration => known_unit(field.type_as_duration().ok_or_else(missing)?.unit().0, 3),
        Type::Interval => known_unit(field.type_as_interval().ok_or_else(missing)?.unit().0, 2),
        Type::Union => known_unit(field.type_as_union().ok_or_else(missing)?.mode().0, 1),
        Type::Map => field.type_as_map().ok_or_else(missing).map(drop),
        Type::Decimal => {
            let decimal = field.type_as_decimal().ok_or_else(missing)?;
            let most = match decimal.bitWidth() {
                32 => 9,
                64 => 18,
                128 => 38,
                256 => 76,
                other => return Err(bad("32, 64, 128 or 256 bits", other)),
            };
            let (precision, scale) = (decimal.precision(), decimal.scale());
            if !(1..=most).contains(&precision) {
                return Err(bad(format!("a precision 1..={most}"), precision));
            }
            if !(-most..=most).contains(&scale) || scale > precision {
                return Err(bad(format!("a scale -{most}..={precision}"), scale));
            }
            Ok(())
        }
        Type::Null
        | Type::Bool
        | Type::Binary
        | Type::BinaryView
        | Type::LargeBinary
        | Type::Utf8
        | Type::Utf8View
        | Type::LargeUtf8
        | Type::List
        | Type::LargeList
        | Type::ListView
        | Type::LargeListView
        | Type::Struct_
        | Type::RunEndEncoded => Ok(()),
        other => Err(bad("a type that Arrow has", format!("code {}", other.0))),
    }
}

fn known_unit(code: i16, last: i16) -> Result<()> {
    if (0..=last).contains(&code) { Ok(()) } else { Err(bad(format!("a code 0..={last}"), code)) }
}

fn bad(expected: impl std::fmt::Display, found: impl std::fmt::Display) -> Error {
    Error::malformed(expected, found).field("type").rule("schema")
}
