//! [`Type`]: the types of DS, read from JSON, YAML or MessagePack and printed canonically.

use std::fmt;

use super::tree::Tree;
use crate::error::{Context, Error, Result};
use crate::limits::Limits;
use crate::wire::json::Scanner;
use crate::wire::msgpack::Output;

/// A type of DS.
///
/// ```
/// use pentaglot::formats::ds::Type;
/// let table = Type::parse(r#"{"columns": {"x": "int32", "y": {"type": "nullable", "underlying": "string"}}}"#)?;
/// let canonical = r#"{"type":"tabular","columns":{"x":"int32","y":{"type":"nullable","underlying":"string"}}}"#;
/// assert_eq!(table.to_string(), canonical);
/// // YAML says the same; names such as `y` stay names.
/// assert_eq!(Type::parse("columns:\n  x: int32\n  y: {type: nullable, underlying: string}\n")?, table);
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// One of the eleven named types.
    Fundamental(Fundamental),
    /// Rows of named columns.
    Tabular(Tabular),
    /// An image.
    Image(Image),
    /// A tensor of fixed shape.
    Tensor(Tensor),
    /// A value or null.
    Nullable(Box<Type>),
    /// Any number of values of one type.
    Array(Box<Type>),
    /// Named fields, in order.
    Struct(Vec<(String, Type)>),
}

/// The types that consist of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Fundamental {
    UInt8,
    Int8,
    UInt32,
    Int32,
    UInt64,
    Int64,
    Bool,
    Float32,
    Float64,
    String,
    Void,
}

impl Fundamental {
    /// All eleven, in the spec's order.
    pub const ALL: [Fundamental; 11] = [
        Fundamental::UInt8,
        Fundamental::Int8,
        Fundamental::UInt32,
        Fundamental::Int32,
        Fundamental::UInt64,
        Fundamental::Int64,
        Fundamental::Bool,
        Fundamental::Float32,
        Fundamental::Float64,
        Fundamental::String,
        Fundamental::Void,
    ];

    /// The name in a type's text.
    pub fn name(self) -> &'static str {
        match self {
            Fundamental::UInt8 => "uint8",
            Fundamental::Int8 => "int8",
            Fundamental::UInt32 => "uint32",
            Fundamental::Int32 => "int32",
            Fundamental::UInt64 => "uint64",
            Fundamental::Int64 => "int64",
            Fundamental::Bool => "bool",
            Fundamental::Float32 => "float32",
            Fundamental::Float64 => "float64",
            Fundamental::String => "string",
            Fundamental::Void => "void",
        }
    }

    /// The type of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Fundamental::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The bytes of an image component of this type, if it has a fixed byte length.
    pub fn component_bytes(self) -> Option<u64> {
        match self {
            Fundamental::UInt8 | Fundamental::Int8 => Some(1),
            Fundamental::UInt32 | Fundamental::Int32 | Fundamental::Float32 => Some(4),
            Fundamental::UInt64 | Fundamental::Int64 | Fundamental::Float64 => Some(8),
            Fundamental::Bool | Fundamental::String | Fundamental::Void => None,
        }
    }
}

/// A table: its columns in order, and the number of its rows if the type declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tabular {
    /// Names and types; at least one, and no name twice.
    pub columns: Vec<(String, Type)>,
    /// `rowCount`, which must equal the number of rows.
    pub row_count: Option<u64>,
}

/// An image type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Image {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// The components of a pixel, in order.
    pub components: Vec<(Channel, Fundamental)>,
    /// How the bytes are encoded.
    pub format: ImageFormat,
}

impl Image {
    /// How many bytes the plain form takes; `None` if that is past 2^64.
    pub fn plain_bytes(&self) -> Option<u64> {
        let pixel: u64 = self.components.iter().filter_map(|(_, kind)| kind.component_bytes()).sum();
        (u64::from(self.width) * u64::from(self.height)).checked_mul(pixel)
    }
}

/// A component of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Channel {
    Red,
    Green,
    Blue,
    /// Grey; not inverted.
    Black,
}

impl Channel {
    /// The name in a type's text.
    pub fn name(self) -> &'static str {
        match self {
            Channel::Red => "red",
            Channel::Green => "green",
            Channel::Blue => "blue",
            Channel::Black => "black",
        }
    }

    /// The channel of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Channel::Red, Channel::Green, Channel::Blue, Channel::Black]
            .into_iter()
            .find(|one| one.name() == name)
    }
}

/// How the bytes of an image are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageFormat {
    /// Rows from top to bottom, pixels from left to right, components in order, big-endian.
    Plain,
    /// A PNG file.
    Png,
    /// A JPEG file.
    Jpeg,
}

impl ImageFormat {
    /// The name in a type's text.
    pub fn name(self) -> &'static str {
        match self {
            ImageFormat::Plain => "plain",
            ImageFormat::Png => "png",
            ImageFormat::Jpeg => "jpeg",
        }
    }

    /// The format of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        [ImageFormat::Plain, ImageFormat::Png, ImageFormat::Jpeg].into_iter().find(|one| one.name() == name)
    }
}

/// A tensor type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tensor {
    /// The type of each element.
    pub component: Fundamental,
    /// The dimensions, each at least 1; their product is at most 2^31-1.
    pub shape: Vec<u32>,
}

impl Tensor {
    /// How many elements it has.
    pub fn count(&self) -> usize {
        self.shape.iter().map(|dim| *dim as usize).product()
    }
}

impl Type {
    /// Reads a type from JSON or YAML, under the default limits.
    pub fn parse(text: &str) -> Result<Type> {
        Type::parse_within(text, &Limits::default())
    }

    /// Reads a type from JSON or YAML, under these limits.
    pub fn parse_within(text: &str, limits: &Limits) -> Result<Type> {
        let tree = match parse_json(text, limits) {
            Ok(tree) => tree,
            // YAML is a superset of JSON, so a text that it accepts is valid. A limit of depth is an error in
            // both.
            Err(error) if error.kind() == crate::ErrorKind::Limit => return Err(error),
            Err(error) => match Tree::parse_yaml(text, limits) {
                Ok(tree) => tree,
                Err(_) if text.trim_start().starts_with(['{', '"', '[']) => return Err(error.rule("json")),
                Err(error) => return Err(error),
            },
        };
        Type::from_tree(&tree, limits)
    }

    /// Reads a type from ordered pairs.
    pub(super) fn from_tree(tree: &Tree, limits: &Limits) -> Result<Type> {
        read_type(tree, limits, 0)
    }

    /// The canonical ordered pairs, in the order in which they are written.
    pub(super) fn tree(&self) -> Tree {
        let text = |text: &str| Tree::Text(text.to_owned());
        let map = |pairs: Vec<(&str, Tree)>| {
            Tree::Map(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        };
        let named = |pairs: &[(String, Type)]| {
            Tree::Map(pairs.iter().map(|(name, kind)| (name.clone(), kind.tree())).collect())
        };
        match self {
            Type::Fundamental(kind) => text(kind.name()),
            Type::Tabular(table) => {
                let mut pairs = vec![("type", text("tabular")), ("columns", named(&table.columns))];
                pairs.extend(table.row_count.map(|count| ("rowCount", Tree::Integer(i128::from(count)))));
                map(pairs)
            }
            Type::Image(image) => {
                let component = |(channel, kind): &(Channel, Fundamental)| {
                    (channel.name(), map(vec![("componentType", text(kind.name()))]))
                };
                map(vec![
                    ("type", text("image")),
                    ("width", Tree::Integer(i128::from(image.width))),
                    ("height", Tree::Integer(i128::from(image.height))),
                    ("components", map(image.components.iter().map(component).collect())),
                    ("format", text(image.format.name())),
                ])
            }
            Type::Tensor(tensor) => {
                let shape = tensor.shape.iter().map(|dim| Tree::Integer(i128::from(*dim))).collect();
                map(vec![
                    ("type", text("tensor")),
                    ("componentType", text(tensor.component.name())),
                    ("shape", Tree::List(shape)),
                ])
            }
            Type::Nullable(inner) => map(vec![("type", text("nullable")), ("underlying", inner.tree())]),
            Type::Array(inner) => map(vec![("type", text("array")), ("underlying", inner.tree())]),
            Type::Struct(fields) => map(vec![("type", text("struct")), ("fields", named(fields))]),
        }
    }

    /// The header of a MessagePack stream: a map of one pair, `format` and the type.
    pub(super) fn header(&self) -> Result<Vec<u8>> {
        let mut output = Output::default();
        output.map(1)?;
        output.str(b"format")?;
        self.tree().write_msgpack(&mut output)?;
        Ok(output.bytes().to_vec())
    }

    /// Whether null is a value of this type.
    pub fn is_nullable(&self) -> bool {
        matches!(self, Type::Nullable(_))
    }
}

impl fmt::Display for Type {
    /// The canonical JSON text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.tree().write_json(&mut text);
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl std::str::FromStr for Type {
    type Err = Error;

    fn from_str(text: &str) -> Result<Type> {
        Type::parse(text)
    }
}

fn parse_json(text: &str, limits: &Limits) -> Result<Tree> {
    let mut scanner = Scanner::new(text.as_bytes(), limits.budget());
    let tree = Tree::read_json(&mut scanner)?;
    scanner.end()?;
    Ok(tree)
}

#[cold]
fn wrong(expected: impl fmt::Display, found: &Tree) -> Error {
    Error::malformed(expected, found.describe()).rule("type")
}

/// The pairs of an object; a repeated key is an error.
fn pairs<'t>(tree: &'t Tree, expected: &str) -> Result<&'t [(String, Tree)]> {
    let Tree::Map(pairs) = tree else { return Err(wrong(expected, tree)) };
    let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let repeated = names.iter().zip(names.iter().skip(1)).find(|(one, next)| one == next);
    if let Some((name, _)) = repeated {
        let found = format_args!("{name:?} twice");
        return Err(Error::malformed("every name once", found).rule("duplicate"));
    }
    Ok(pairs)
}

fn get<'t>(pairs: &'t [(String, Tree)], key: &str) -> Option<&'t Tree> {
    pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value)
}

fn need<'t>(pairs: &'t [(String, Tree)], key: &'static str, kind: &str) -> Result<&'t Tree> {
    let missing = || Error::malformed(format_args!("{kind} with {key:?}"), "none").rule("type");
    get(pairs, key).ok_or_else(missing)
}

fn read_type(tree: &Tree, limits: &Limits, depth: u32) -> Result<Type> {
    limits.check_depth(depth)?;
    if let Tree::Text(name) = tree {
        let kind = Fundamental::by_name(name);
        return kind.map(Type::Fundamental).ok_or_else(|| wrong(FUNDAMENTAL_NAMES, tree));
    }
    let pairs = pairs(tree, "a type")?;
    let kind = match get(pairs, "type") {
        None => "tabular",
        Some(Tree::Text(kind)) => kind,
        Some(other) => return Err(wrong("the name of a type", other).field("type")),
    };
    Ok(match kind {
        "tabular" => {
            let columns = read_named(need(pairs, "columns", "a table")?, limits, depth).field("columns")?;
            if columns.is_empty() {
                return Err(Error::malformed("a table with columns", "none").rule("type").field("columns"));
            }
            let row_count = match get(pairs, "rowCount") {
                None | Some(Tree::Null) => None,
                Some(Tree::Integer(count)) if (0..1 << 63).contains(count) => u64::try_from(*count).ok(),
                Some(other) => return Err(wrong("a number of rows", other).field("rowCount")),
            };
            Type::Tabular(Tabular { columns, row_count })
        }
        "image" => Type::Image(read_image(pairs)?),
        "tensor" => Type::Tensor(read_tensor(pairs)?),
        "nullable" | "array" => {
            let underlying = need(pairs, "underlying", kind)?;
            let inner = Box::new(read_type(underlying, limits, depth + 1).field("underlying")?);
            if kind == "array" { Type::Array(inner) } else { Type::Nullable(inner) }
        }
        "struct" => {
            Type::Struct(read_named(need(pairs, "fields", "a struct")?, limits, depth).field("fields")?)
        }
        other => {
            let expected = "tabular, image, tensor, nullable, array or struct";
            return Err(Error::malformed(expected, format_args!("{other:?}")).rule("type").field("type"));
        }
    })
}

const FUNDAMENTAL_NAMES: &str =
    "uint8, int8, uint32, int32, uint64, int64, bool, float32, float64, string or void";

fn read_named(tree: &Tree, limits: &Limits, depth: u32) -> Result<Vec<(String, Type)>> {
    let read = |(name, tree): &(String, Tree)| {
        Ok((name.clone(), read_type(tree, limits, depth + 1).field(name.clone())?))
    };
    pairs(tree, "an object of names and types")?.iter().map(read).collect()
}

/// A dimension: 1 to 2^31-1, also as a text of digits, as the spec's own example has it.
fn read_dimension(tree: &Tree) -> Result<u32> {
    let number = match tree {
        Tree::Integer(number) => Some(*number),
        Tree::Text(text)
            if (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            text.parse().ok()
        }
        _ => None,
    };
    let number = number.filter(|number| (1..=0x7fff_ffff).contains(number));
    number.and_then(|number| u32::try_from(number).ok()).ok_or_else(|| wrong("a number 1..=2147483647", tree))
}

fn read_component_type(tree: &Tree) -> Result<Fundamental> {
    let kind = if let Tree::Text(name) = tree { Fundamental::by_name(name) } else { None };
    let kind = kind.filter(|kind| kind.component_bytes().is_some());
    kind.ok_or_else(|| wrong("a type of fixed byte length (no bool, string or void)", tree))
}

fn read_image(pairs: &[(String, Tree)]) -> Result<Image> {
    let width = read_dimension(need(pairs, "width", "an image")?).field("width")?;
    let height = read_dimension(need(pairs, "height", "an image")?).field("height")?;
    let (key, tree) = match (get(pairs, "components"), get(pairs, "componentType")) {
        (Some(tree), _) => ("components", tree),
        // The spec's first example has the components as a map of types under this name.
        (None, Some(tree @ Tree::Map(_))) => ("componentType", tree),
        _ => return Err(Error::malformed("an image with \"components\"", "none").rule("type")),
    };
    let read = |(name, tree): &(String, Tree)| {
        let channel = Channel::by_name(name).ok_or_else(|| {
            Error::malformed("red, green, blue or black", format_args!("{name:?}")).rule("type")
        })?;
        let kind = match key {
            "components" => {
                let inner = self::pairs(tree, "an object with \"componentType\"")?;
                read_component_type(need(inner, "componentType", "a component")?).field("componentType")?
            }
            _ => read_component_type(tree)?,
        };
        Ok::<_, Error>((channel, kind))
    };
    let components = self::pairs(tree, "an object of components").field(key)?.iter();
    let components: Vec<_> =
        components.map(|pair| read(pair).field(pair.0.clone()).field(key)).collect::<Result<_>>()?;
    if components.is_empty() {
        return Err(Error::malformed("an image with components", "none").rule("type").field(key));
    }
    let format = match get(pairs, "format") {
        None | Some(Tree::Null) => ImageFormat::Plain,
        Some(tree) => {
            let format = if let Tree::Text(name) = tree { ImageFormat::by_name(name) } else { None };
            format.ok_or_else(|| wrong("plain, png or jpeg", tree).field("format"))?
        }
    };
    Ok(Image { width, height, components, format })
}

fn read_tensor(pairs: &[(String, Tree)]) -> Result<Tensor> {
    let tree = need(pairs, "componentType", "a tensor")?;
    let component = if let Tree::Text(name) = tree { Fundamental::by_name(name) } else { None };
    let component = component.ok_or_else(|| wrong(FUNDAMENTAL_NAMES, tree).field("componentType"))?;
    let tree = need(pairs, "shape", "a tensor")?;
    let shape: Vec<u32> = match tree {
        Tree::List(dims) if !dims.is_empty() => {
            let dims = dims.iter().enumerate();
            dims.map(|(index, dim)| read_dimension(dim).index(index as u64).field("shape"))
                .collect::<Result<_>>()?
        }
        Tree::List(_) => {
            return Err(Error::malformed("at least one dimension", "none").rule("type").field("shape"));
        }
        _ => return Err(wrong("an array of dimensions", tree).field("shape")),
    };
    let count = shape.iter().try_fold(1u64, |count, dim| count.checked_mul(u64::from(*dim)));
    if count.is_none_or(|count| count > 0x7fff_ffff) {
        return Err(Error::malformed("at most 2147483647 elements", "more").rule("type").field("shape"));
    }
    Ok(Tensor { component, shape })
}
