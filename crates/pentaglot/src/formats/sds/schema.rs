//! The Arrow schemas of structures, the native type, with which the same bytes can be written again, and the structure
//! that is written for a schema.

use arrow_schema::{DataType, Field, Fields, Schema};
use pentaglot_succinct::Supports;
use serde_json::{Value, json};

use super::type_text::{SdsKind, SdsType};
use crate::error::{Error, Result};
use crate::hub::{extension, shape};

/// Properties of a structure that are not part of its values, but needed to write the same bytes again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Native {
    pub(super) kind: SdsKind,
    /// Length of the bits (sparse, rl).
    pub(super) universe: Option<u64>,
    /// Bits per item (int), of the low parts (sparse).
    pub(super) width: Option<u32>,
    /// Whether positions repeat.
    pub(super) multiset: bool,
    /// Which optional parts are present: `rank`, `select`, `select0`; `None` for structures without such
    /// parts.
    pub(super) supports: Option<[bool; 3]>,
    /// Whether an option is present.
    pub(super) present: bool,
}

impl Native {
    pub(super) fn new(kind: SdsKind) -> Self {
        Native { kind, universe: None, width: None, multiset: false, supports: None, present: true }
    }

    pub(super) fn to_json(&self) -> Value {
        let supports = self.supports.map(|supports| {
            let words = ["rank", "select", "select0"].iter().zip(supports);
            words.filter(|(_, there)| *there).map(|(word, _)| *word).collect::<Vec<_>>()
        });
        json!({
            "kind": self.kind.name(), "universe": self.universe, "width": self.width, "multiset": self.multiset,
            "supports": supports, "present": self.present,
        })
    }

    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let supports = value.get("supports").and_then(Value::as_array).map(|words| {
            ["rank", "select", "select0"].map(|word| words.iter().any(|given| given.as_str() == Some(word)))
        });
        Some(Native {
            kind: SdsKind::named(value.get("kind")?.as_str()?)?,
            universe: value.get("universe").and_then(Value::as_u64),
            width: value.get("width").and_then(Value::as_u64).and_then(|width| u32::try_from(width).ok()),
            multiset: value.get("multiset").and_then(Value::as_bool).unwrap_or(false),
            supports,
            present: value.get("present").and_then(Value::as_bool).unwrap_or(true),
        })
    }
}

/// The optional parts that are present, in words.
pub(super) fn supports_text(supports: [bool; 3]) -> String {
    let words = ["rank", "select", "select0"].iter().zip(supports);
    let there: Vec<&str> = words.filter(|(_, there)| *there).map(|(word, _)| *word).collect();
    if there.is_empty() { "none".to_owned() } else { there.join(", ") }
}

fn number(name: &str) -> Field {
    Field::new(name, DataType::UInt64, false)
}

pub(super) fn pair_fields() -> Fields {
    Fields::from(vec![number("_0"), number("_1")])
}

/// The schema of the rows of a structure of this kind; for a vector, with items of `item_elements` elements.
pub(super) fn kind_schema(kind: SdsKind, item_elements: u64) -> Result<Schema> {
    Ok(match kind {
        SdsKind::RunLength => Schema::new(vec![number("start"), number("length")]),
        SdsKind::Bit | SdsKind::Raw => shape::array_schema(Field::new("item", DataType::Boolean, false)),
        SdsKind::String => shape::value_schema(Field::new("value", DataType::Utf8, false)),
        SdsKind::Bytes => shape::value_schema(Field::new("value", DataType::Binary, false)),
        SdsKind::Element => shape::value_schema(number("value")),
        SdsKind::Pairs => {
            let tuple = Field::new("item", DataType::Struct(pair_fields()), false);
            shape::array_schema(extension::with(tuple, extension::TUPLE, None))
        }
        // Items of several elements are the rows of a matrix.
        SdsKind::Items => shape::dense_schema(DataType::UInt64, None, item_elements)?,
        _ => shape::array_schema(number("item")),
    })
}

impl SdsType {
    /// The kind of a single structure of this type, and for a vector the number of elements per item.
    pub(super) fn structure(&self) -> Option<(SdsKind, u64)> {
        match self {
            SdsType::Struct(_) | SdsType::Option(_) => None,
            SdsType::Items(1) => Some((SdsKind::Vec, 1)),
            SdsType::Items(2) => Some((SdsKind::Pairs, 2)),
            SdsType::Items(elements) => Some((SdsKind::Items, *elements)),
            SdsType::Element => Some((SdsKind::Element, 1)),
            SdsType::Structure(kind) => Some((*kind, 1)),
        }
    }

    /// The Arrow schema of data of this type; several structures have one each.
    pub fn to_schema(&self) -> Result<Schema> {
        match self {
            SdsType::Option(kind) => kind.to_schema(),
            _ => {
                let several = || Error::unsupported("one Arrow type for several structures");
                let (kind, elements) = self.structure().ok_or_else(several)?;
                kind_schema(kind, elements)
            }
        }
    }
}

/// The form of the rows for a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Bits,
    Numbers,
    /// `start`, `length`.
    Runs,
    Pairs,
    /// Several columns of numbers.
    Items,
    Text,
    Bytes,
}

/// The structure that will be written.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) native: Native,
    pub(super) input: Input,
    pub(super) supports: Option<Supports>,
}

/// The form of the rows of a schema, if structures can be made of them.
pub(super) fn input_of(schema: &Schema) -> Option<Input> {
    let fields = schema.fields();
    match fields.as_ref() {
        [only] => match only.data_type() {
            DataType::Boolean => Some(Input::Bits),
            kind if kind.is_integer() => Some(Input::Numbers),
            DataType::Struct(pair)
                if pair.len() == 2 && pair.iter().all(|field| field.data_type().is_integer()) =>
            {
                let runs = pair.iter().map(|field| field.name().as_str()).eq(["start", "length"]);
                Some(if runs { Input::Runs } else { Input::Pairs })
            }
            DataType::Utf8 | DataType::LargeUtf8 => Some(Input::Text),
            DataType::Binary | DataType::LargeBinary => Some(Input::Bytes),
            _ => None,
        },
        [first, second] if first.data_type().is_integer() && second.data_type().is_integer() => {
            let runs = (first.name().as_str(), second.name().as_str()) == ("start", "length");
            Some(if runs { Input::Runs } else { Input::Pairs })
        }
        [_, _, ..] if fields.iter().all(|field| field.data_type().is_integer()) => Some(Input::Items),
        _ => None,
    }
}
