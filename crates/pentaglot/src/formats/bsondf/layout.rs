//! Where everything in a document is: a walk over its lengths, which reads types and no values.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::documents::is_column;
use super::schema::Type;
use crate::error::{Context, Error, Result};
use crate::formats::MissingPart;
use crate::limits::Limits;
use crate::source::Source;
use crate::wire::bson::{BsonKind, Document, Element, Reader};

/// A compressed buffer: an int32 length and an LZ4 block.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// The offset of the length.
    pub offset: u64,
    /// How many bytes the length and the block take.
    pub bytes: u64,
    /// How many bytes the block claims to become.
    pub length: u64,
}

/// An array: one column, or a part of one.
#[derive(Debug)]
pub(super) struct Array {
    pub offset: u64,
    pub kind: Type,
    pub data: Data,
    pub mask: Block,
}

/// The field `d` of an array, by its type.
#[derive(Debug)]
pub(super) enum Data {
    /// Values of fixed width.
    Values(Block),
    /// The length of a null array.
    Nothing { rows: u64 },
    /// Bytes and the length of each.
    Bytes { values: Block, counts: Block },
    /// Indices and dictionary.
    Factor { index: Box<Array>, dictionary: Box<Array> },
    /// Items and the length of each list.
    List { items: Box<Array>, counts: Block },
    /// Fields, in the order of the type.
    Struct { rows: u64, fields: Vec<(String, Array)> },
}

impl Array {
    /// How many rows the lengths claim.
    pub(super) fn rows(&self) -> u64 {
        match &self.data {
            Data::Values(values) => values.length / self.kind.width().unwrap_or(1).max(1),
            Data::Nothing { rows } | Data::Struct { rows, .. } => *rows,
            Data::Bytes { counts, .. } | Data::List { counts, .. } => (counts.length / 4).saturating_sub(1),
            Data::Factor { index, .. } => index.rows(),
        }
    }

    /// How many bytes the buffers claim to become.
    pub(super) fn decoded_bytes(&self) -> u64 {
        let own = match &self.data {
            Data::Nothing { .. } => 0,
            Data::Values(values) => values.length,
            Data::Bytes { values, counts } => values.length.saturating_add(counts.length),
            Data::Factor { index, .. } => index.decoded_bytes(),
            Data::List { items, counts } => items.decoded_bytes().saturating_add(counts.length),
            Data::Struct { fields, .. } => {
                fields.iter().fold(0, |sum: u64, (_, field)| sum.saturating_add(field.decoded_bytes()))
            }
        };
        own.saturating_add(self.mask.length)
    }

    /// Changes text to bytes where `is_text` says no.
    pub(super) fn demote_text(&mut self, is_text: &mut dyn FnMut(&Array) -> Result<bool>) -> Result<()> {
        let retyped = |array: &Array| Box::new(array.kind.clone());
        match &mut self.data {
            Data::Bytes { .. } if self.kind == Type::Utf8 => {
                if !is_text(self)? {
                    self.kind = Type::Bytes;
                }
            }
            Data::Factor { index: _, dictionary } => {
                dictionary.demote_text(is_text).field("d").field("d")?;
                if let Type::Factor { dictionary: kind, .. } = &mut self.kind {
                    *kind = retyped(dictionary);
                }
            }
            Data::List { items, .. } => {
                items.demote_text(is_text).field("d")?;
                self.kind = Type::List(retyped(items));
            }
            Data::Struct { fields, .. } => {
                for (name, field) in fields.iter_mut() {
                    field.demote_text(is_text).field(name.clone()).field("f").field("d")?;
                }
                self.kind = Type::Struct(
                    fields.iter().map(|(name, field)| (name.clone(), field.kind.clone())).collect(),
                );
            }
            Data::Values(_) | Data::Nothing { .. } | Data::Bytes { .. } => {}
        }
        Ok(())
    }
}

/// A column of the document.
#[derive(Debug)]
pub(super) struct ColumnLayout {
    pub name: String,
    /// Where its element begins, and how many bytes that takes.
    pub offset: u64,
    pub bytes: u64,
    pub array: Array,
}

/// A whole frame.
#[derive(Debug)]
pub(super) struct BsondfLayout {
    pub columns: Vec<ColumnLayout>,
    /// Fields that are not columns.
    pub others: Vec<Element>,
    /// What the last text of the spec forbids and the programs read.
    pub warnings: Vec<Error>,
    /// Of a damaged frame, the first column that is not sound: it and those after it are not kept.
    pub missing: Option<MissingPart>,
}

impl BsondfLayout {
    /// Walks over a frame: a document of a source of `total` bytes.
    ///
    /// Of a damaged frame, the columns before the fault are kept.
    pub(super) fn read(
        source: &Source,
        frame: Document,
        total: u64,
        limits: &Limits,
        damaged: bool,
    ) -> Result<Self> {
        let mut walk = Walk { reader: Reader::new(source), limits, warnings: Vec::new() };
        let mut columns: Vec<ColumnLayout> = Vec::new();
        let mut others = Vec::new();
        let mut names = HashSet::new();
        let mut elements = walk.reader.elements(frame);
        let mut missing = None;
        let lost = |name: &str, offset: u64, error: &Error| {
            let bytes = offset.min(total)..total;
            let reason = format!("{error}; columns after it are lost too");
            Some(MissingPart { name: name.to_owned(), bytes, reason })
        };
        while let Some(element) = match walk.reader.next(&mut elements).field("columns") {
            Err(error) if damaged => {
                missing = lost("", error.offset().unwrap_or(total), &error);
                None
            }
            element => element?,
        } {
            let end = element.value_offset.saturating_add(element.value_bytes);
            if damaged && end > total {
                let error = Error::truncated(
                    format_args!("{} bytes", end.saturating_sub(element.offset)),
                    total.saturating_sub(element.offset),
                );
                missing = lost(&element.key, element.offset, &error.at(element.offset));
                break;
            }
            if !is_column(&mut walk.reader, &element) {
                others.push(element);
                continue;
            }
            let array = walk.within("columns", |walk| {
                walk.within(element.key.clone(), |walk| {
                    if !names.insert(element.key.clone()) {
                        return Err(Error::malformed("columns of different names", "the name a second time")
                            .at(element.offset)
                            .rule("duplicate-column"));
                    }
                    element.expect(BsonKind::DOCUMENT)?;
                    walk.array(element.document(), None, 1)
                })
            });
            let array = match array {
                Err(error) if damaged => {
                    missing = lost(&element.key, element.offset, &error);
                    break;
                }
                array => array?,
            };
            let bytes = element.value_offset + element.value_bytes - element.offset;
            columns.push(ColumnLayout { name: element.key, offset: element.offset, bytes, array });
        }
        Ok(BsondfLayout { columns, others, warnings: walk.warnings, missing })
    }

    /// The number of rows that all columns agree on; 0 if there are no columns.
    pub(super) fn rows(&self) -> Result<u64> {
        let Some(first) = self.columns.first() else { return Ok(0) };
        let rows = first.array.rows();
        match self.columns.iter().find(|column| column.array.rows() != rows) {
            None => Ok(rows),
            Some(other) => Err(Error::malformed(
                format_args!("{rows} rows, as in column {:?}", first.name),
                other.array.rows(),
            )
            .at(other.offset)
            .field(other.name.clone())
            .field("columns")
            .rule("row-count")),
        }
    }
}

/// The fields of an array or type document, each at most once.
#[derive(Default)]
struct Parts {
    offset: u64,
    found: Vec<Element>,
}

impl Parts {
    fn get(&self, key: &str) -> Option<&Element> {
        self.found.iter().find(|element| element.key == key)
    }

    fn require(&self, key: &'static str) -> Result<&Element> {
        self.get(key).ok_or_else(|| {
            Error::malformed(format_args!("a field {key:?}"), "none")
                .at(self.offset)
                .rule("missing-field")
                .field(key)
        })
    }
}

struct Walk<'s> {
    reader: Reader,
    limits: &'s Limits,
    warnings: Vec<Error>,
}

impl Walk<'_> {
    /// Does something inside a named part: its error and its warnings get the name in front of their path.
    fn within<T>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let name = name.into();
        self.at_place(|error| error.field(name.clone()), work)
    }

    /// Does something, and gives its error and its warnings a place.
    fn at_place<T>(
        &mut self,
        place: impl Fn(Error) -> Error,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let outer = std::mem::take(&mut self.warnings);
        let result = work(self);
        let inner = std::mem::replace(&mut self.warnings, outer);
        self.warnings.extend(inner.into_iter().map(&place));
        result.map_err(place)
    }

    fn warn(&mut self, element: &Element, expected: &str, found: &str, rule: &'static str) {
        let warning = Error::malformed(expected, found).at(element.offset).rule(rule);
        self.warnings.push(warning.field(element.key.clone()));
    }

    fn warn_integer(&mut self, element: &Element, expected: BsonKind) {
        let warning = Error::malformed(expected.name(), element.kind.name()).at(element.offset);
        self.warnings.push(warning.rule("integer-type"));
    }

    /// The fields `known` of a document; others are skipped with a warning.
    fn parts(&mut self, document: Document, known: &[&str]) -> Result<Parts> {
        let mut parts = Parts { offset: document.offset, ..Parts::default() };
        let mut elements = self.reader.elements(document);
        while let Some(element) = self.reader.next(&mut elements)? {
            if parts.get(&element.key).is_some() {
                return Err(Error::malformed("each field once", "a second one")
                    .at(element.offset)
                    .rule("duplicate-field")
                    .field(element.key));
            }
            if known.contains(&element.key.as_str()) {
                parts.found.push(element);
            } else {
                let expected = format!("no field but {}", known.join(", "));
                self.warn(&element, &expected, "another one", "extra-field");
            }
        }
        Ok(parts)
    }

    /// The array document at `document`. With `want` its type must be that.
    fn array(&mut self, document: Document, want: Option<&Type>, depth: u32) -> Result<Array> {
        self.limits.check_depth(depth).at(document.offset)?;
        let parts = self.parts(document, &["d", "m", "t", "p", "o"])?;
        let kind = self.type_of(&parts, depth)?;
        if let Some(want) = want.filter(|want| **want != kind) {
            return Err(Error::malformed(format_args!("{want}, as the type outside says"), &kind)
                .at(document.offset)
                .rule("type-mismatch"));
        }
        let data = parts.require("d")?;
        let mask = parts.require("m")?;
        let mask = self.within("m", |walk| walk.block(mask))?;
        let counts = match &kind {
            Type::Bytes | Type::Utf8 | Type::List(_) => {
                let counts = parts.require("o")?;
                Some(self.within("o", |walk| walk.block(counts))?)
            }
            _ => {
                if let Some(extra) = parts.get("o") {
                    self.warn(extra, "no lengths", "some", "extra-field");
                }
                None
            }
        };
        let data = self.within("d", |walk| walk.data(&kind, data, counts, depth))?;
        Ok(Array { offset: document.offset, kind, data, mask })
    }

    fn data(&mut self, kind: &Type, data: &Element, counts: Option<Block>, depth: u32) -> Result<Data> {
        match (kind, counts) {
            (Type::Null, _) => Ok(Data::Nothing { rows: self.row_count(data)? }),
            (Type::Bytes | Type::Utf8, Some(counts)) => Ok(Data::Bytes { values: self.block(data)?, counts }),
            (Type::List(item), Some(counts)) => {
                data.expect(BsonKind::DOCUMENT)?;
                let items = Box::new(self.array(data.document(), Some(item), depth + 1)?);
                Ok(Data::List { items, counts })
            }
            (Type::Factor { index, dictionary, .. }, _) => {
                data.expect(BsonKind::DOCUMENT)?;
                let parts = self.parts(data.document(), &["i", "d"])?;
                let mut part = |key: &'static str, want: &Type| {
                    let element = parts.require(key)?;
                    self.within(key, |walk| {
                        element.expect(BsonKind::DOCUMENT)?;
                        walk.array(element.document(), Some(want), depth + 1)
                    })
                    .map(Box::new)
                };
                Ok(Data::Factor { index: part("i", index)?, dictionary: part("d", dictionary)? })
            }
            (Type::Struct(kinds), _) => {
                data.expect(BsonKind::DOCUMENT)?;
                let parts = self.parts(data.document(), &["l", "f"])?;
                let length = parts.require("l")?;
                let rows = self.within("l", |walk| walk.row_count(length))?;
                let fields = parts.require("f")?;
                let fields = self.within("f", |walk| walk.fields(kinds, fields, depth))?;
                Ok(Data::Struct { rows, fields })
            }
            _ => Ok(Data::Values(self.block(data)?)),
        }
    }

    /// The fields of a struct, in the order of its type.
    fn fields(
        &mut self,
        kinds: &[(String, Type)],
        fields: &Element,
        depth: u32,
    ) -> Result<Vec<(String, Array)>> {
        fields.expect(BsonKind::DOCUMENT)?;
        let mut slots: HashMap<&str, (&Type, Option<Array>)> =
            kinds.iter().map(|(name, kind)| (name.as_str(), (kind, None))).collect();
        let mut elements = self.reader.elements(fields.document());
        while let Some(element) = self.reader.next(&mut elements)? {
            let place = slots.get_mut(element.key.as_str());
            self.within(element.key.clone(), |walk| match place {
                Some((kind, slot @ None)) => {
                    element.expect(BsonKind::DOCUMENT)?;
                    *slot = Some(walk.array(element.document(), Some(kind), depth + 1)?);
                    Ok(())
                }
                Some((_, Some(_))) => Err(Error::malformed("each field once", "a second one")
                    .at(element.offset)
                    .rule("duplicate-field")),
                // What no type declares would be lost without a word.
                None => Err(Error::malformed("a field that the type in p names", "another one")
                    .at(element.offset)
                    .rule("undeclared-field")),
            })?;
        }
        let filled = kinds.iter().map(|(name, _)| {
            let slot = slots.get_mut(name.as_str()).and_then(|(_, slot)| slot.take());
            slot.map(|array| (name.clone(), array)).ok_or_else(|| {
                Error::malformed("data for each field of the type", "none")
                    .at(fields.offset)
                    .rule("missing-field")
                    .field(name.clone())
            })
        });
        filled.collect()
    }

    /// The type that the fields `t` and `p` give.
    fn type_of(&mut self, parts: &Parts, depth: u32) -> Result<Type> {
        let element = parts.require("t")?;
        let name = self.within("t", |walk| walk.reader.string(element))?;
        let parameter = parts.get("p");
        let required = || parts.require("p");
        match name.as_str() {
            "opaque" => {
                let parameter = required()?;
                self.within("p", |walk| walk.opaque_width(parameter)).map(Type::Opaque)
            }
            "factor" | "ordered" => {
                let ordered = name == "ordered";
                // The last text makes p optional here.
                let Some(parameter) = parameter else {
                    let (index, dictionary) = (Box::new(Type::Int32), Box::new(Type::Utf8));
                    return Ok(Type::Factor { ordered, index, dictionary });
                };
                self.within("p", |walk| walk.factor_type(ordered, parameter, depth))
            }
            "list" => {
                let parameter = required()?;
                let item = self.within("p", |walk| walk.type_document(parameter, &["t", "p"], depth + 1))?;
                Ok(Type::List(Box::new(item.0)))
            }
            "struct" => {
                let parameter = required()?;
                self.within("p", |walk| walk.struct_type(parameter, depth))
            }
            name => match (Type::plain(name), parameter) {
                (Some(Type::Timestamp(unit, _)), Some(parameter)) => {
                    let zone = self.within("p", |walk| walk.reader.string(parameter))?;
                    Ok(Type::Timestamp(
                        unit,
                        Some(zone.into()).filter(|zone: &std::sync::Arc<str>| !zone.is_empty()),
                    ))
                }
                (Some(plain), parameter) => {
                    if let Some(extra) = parameter {
                        self.warn(extra, &format!("no parameter of {plain}"), "one", "extra-field");
                    }
                    Ok(plain)
                }
                (None, _) => Err(Error::malformed("a type of the format", format_args!("{name:?}"))
                    .at(element.offset)
                    .rule("unknown-type")
                    .field("t")),
            },
        }
    }

    /// The type document of an element, and its parts.
    fn type_document(&mut self, element: &Element, known: &[&str], depth: u32) -> Result<(Type, Parts)> {
        self.limits.check_depth(depth).at(element.offset)?;
        element.expect(BsonKind::DOCUMENT)?;
        let parts = self.parts(element.document(), known)?;
        Ok((self.type_of(&parts, depth)?, parts))
    }

    fn factor_type(&mut self, ordered: bool, parameter: &Element, depth: u32) -> Result<Type> {
        parameter.expect(BsonKind::DOCUMENT)?;
        let parts = self.parts(parameter.document(), &["i", "d"])?;
        let mut part = |key: &'static str| {
            let element = parts.require(key)?;
            let kind = self.within(key, |walk| walk.type_document(element, &["t", "p"], depth + 1))?.0;
            Ok::<_, Error>((element, kind))
        };
        let (index_element, index) = part("i")?;
        let (_, dictionary) = part("d")?;
        if !index.is_integer() {
            return Err(Error::malformed("an integer type", index)
                .at(index_element.offset)
                .rule("index-type")
                .field("i"));
        }
        Ok(Type::Factor { ordered, index: Box::new(index), dictionary: Box::new(dictionary) })
    }

    fn struct_type(&mut self, parameter: &Element, depth: u32) -> Result<Type> {
        parameter.expect(BsonKind::ARRAY)?;
        let mut fields: Vec<(String, Type)> = Vec::new();
        let mut names = HashSet::new();
        let mut elements = self.reader.elements(parameter.document());
        while let Some(element) = self.reader.next(&mut elements)? {
            let index = fields.len() as u64;
            let field = self.at_place(
                |error| error.index(index),
                |walk| {
                    let (kind, parts) = walk.type_document(&element, &["n", "t", "p"], depth + 1)?;
                    let name = parts.require("n")?;
                    let name = walk.within("n", |walk| walk.reader.string(name))?;
                    let found = match name.as_str() {
                        "" => "an empty one".to_owned(),
                        _ if names.insert(name.clone()) => return Ok((name, kind)),
                        _ => format!("{name:?} again"),
                    };
                    Err(Error::malformed("a field name of its own", found)
                        .at(element.offset)
                        .rule("field-name")
                        .field("n"))
                },
            );
            fields.push(field?);
        }
        Ok(Type::Struct(fields))
    }

    fn opaque_width(&mut self, parameter: &Element) -> Result<i32> {
        let width = self.reader.integer(parameter)?;
        if parameter.kind != BsonKind::INT32 {
            self.warn_integer(parameter, BsonKind::INT32);
        }
        i32::try_from(width).ok().filter(|width| *width > 0).ok_or_else(|| {
            Error::malformed("a width of 1 to 2147483647 bytes", width)
                .at(parameter.offset)
                .rule("opaque-width")
        })
    }

    /// A number of rows: an int64; one text of the spec wrote an int32.
    fn row_count(&mut self, element: &Element) -> Result<u64> {
        let rows = self.reader.integer(element)?;
        if element.kind != BsonKind::INT64 {
            self.warn_integer(element, BsonKind::INT64);
        }
        u64::try_from(rows)
            .map_err(|_| Error::malformed("a length of 0 or more", rows).at(element.offset).rule("length"))
    }

    fn block(&mut self, element: &Element) -> Result<Block> {
        let (offset, bytes) = self.reader.binary(element)?;
        if bytes < 4 {
            return Err(Error::malformed("a buffer of at least 4 bytes", bytes)
                .at(offset)
                .rule("buffer-length"));
        }
        let length = i32::from_le_bytes(self.reader.array(offset)?);
        let length = u64::try_from(length).map_err(|_| {
            Error::malformed("a buffer length of 0 or more", length).at(offset).rule("buffer-length")
        })?;
        Ok(Block { offset, bytes, length })
    }
}
