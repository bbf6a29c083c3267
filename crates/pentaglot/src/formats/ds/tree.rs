//! Ordered pairs: the common structure of JSON, YAML and MessagePack, from which types are read and to which
//! they are printed.
//!
//! Not a map: the order of columns is the order of cells, and a repeated name must be detected as an error.

use std::cell::RefCell;
use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::wire::json::write_string;
use crate::wire::json::{JsonKind as Kind, Scanner};
use crate::wire::msgpack::{self, Integer, Output};

/// A value of JSON, with objects as ordered pairs.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// Its description, for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Tree::Null => "null".to_owned(),
            Tree::Bool(value) => value.to_string(),
            Tree::Integer(value) => value.to_string(),
            Tree::Float(value) => value.to_string(),
            Tree::Text(text) => format!("{text:?}"),
            Tree::List(_) => "an array".to_owned(),
            Tree::Map(_) => "an object".to_owned(),
        }
    }

    /// Reads the next value of a JSON text. The scanner limits the depth.
    pub(super) fn read_json<R: Read>(scanner: &mut Scanner<R>) -> Result<Tree> {
        Ok(match scanner.peek()? {
            Kind::Null => {
                scanner.null()?;
                Tree::Null
            }
            Kind::Bool => Tree::Bool(scanner.bool()?),
            Kind::Number => {
                let text = scanner.number()?;
                match text.parse() {
                    Ok(whole) => Tree::Integer(whole),
                    Err(_) => Tree::Float(text.parse().unwrap_or(f64::NAN)),
                }
            }
            Kind::String => Tree::Text(scanner.str()?.to_owned()),
            Kind::Array => {
                scanner.begin_array()?;
                let mut items = Vec::new();
                while scanner.next_element()? {
                    items.push(Tree::read_json(scanner)?);
                }
                Tree::List(items)
            }
            Kind::Object => {
                scanner.begin_object()?;
                let mut pairs = Vec::new();
                while let Some(key) = scanner.next_key()? {
                    let key = key.to_owned();
                    pairs.push((key, Tree::read_json(scanner)?));
                }
                Tree::Map(pairs)
            }
        })
    }

    /// Reads the next value of a MessagePack stream.
    pub(super) fn read_msgpack(cursor: &mut Cursor<'_>, limits: &Limits, depth: u32) -> Result<Tree> {
        let offset = cursor.offset();
        limits.check_depth(depth).map_err(|error| error.at(offset))?;
        Ok(match cursor.peek() {
            None => return Err(Error::truncated("a value", "the end").at(offset)),
            Some(0xc0) => {
                msgpack::read_nil(cursor)?;
                Tree::Null
            }
            Some(0xc2 | 0xc3) => Tree::Bool(msgpack::read_bool(cursor)?),
            Some(0xca | 0xcb) => match msgpack::read_float(cursor)? {
                msgpack::Float::Single(value) => Tree::Float(f64::from(value)),
                msgpack::Float::Double(value) => Tree::Float(value),
            },
            Some(0xa0..=0xbf | 0xd9..=0xdb) => Tree::Text(msgpack::read_str(cursor)?.to_owned()),
            Some(0x90..=0x9f | 0xdc | 0xdd) => {
                let mut items = Vec::new();
                for _ in 0..msgpack::read_array(cursor)? {
                    items.push(Tree::read_msgpack(cursor, limits, depth + 1)?);
                }
                Tree::List(items)
            }
            Some(0x80..=0x8f | 0xde | 0xdf) => {
                let mut pairs = Vec::new();
                for _ in 0..msgpack::read_map(cursor)? {
                    let key = msgpack::read_str(cursor)?.to_owned();
                    pairs.push((key, Tree::read_msgpack(cursor, limits, depth + 1)?));
                }
                Tree::Map(pairs)
            }
            Some(code) if msgpack::is_integer(code) => match msgpack::read_integer(cursor)? {
                Integer::Unsigned(value) => Tree::Integer(i128::from(value)),
                Integer::Negative(value) => Tree::Integer(i128::from(value)),
            },
            Some(code) => {
                let found = msgpack::family(code);
                return Err(Error::malformed("what JSON has", found).at(offset).rule("header"));
            }
        })
    }

    /// Reads the first document of a YAML text.
    pub(super) fn parse_yaml(text: &str, limits: &Limits) -> Result<Tree> {
        let mut options = serde_saphyr::Options::default();
        options.strict_booleans = true;
        options.with_snippet = false;
        // The parser would lose the kind of our own errors, so they are stored here.
        let failure = RefCell::new(None);
        let seed = Level { depth: 0, limits, failure: &failure };
        let mut tree = None;
        let parsed = serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
            tree = Some(seed.deserialize(deserializer)?);
            Ok(())
        });
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        match (parsed, tree) {
            (Ok(()), Some(tree)) => Ok(tree),
            // Only the first document is used; the rest is ignored.
            (Err(error), Some(tree)) if error.to_string().contains("multiple") => Ok(tree),
            (Ok(()), None) => Err(Error::malformed("a type", "an empty text").rule("type")),
            (Err(error), _) => {
                let words = error.to_string();
                let words = words.lines().next().unwrap_or_default();
                let rule = if words.contains("duplicate") { "duplicate" } else { "type" };
                Err(Error::malformed("a type in JSON or YAML", words).rule(rule))
            }
        }
    }

    /// Appends the JSON text, without white space.
    pub(super) fn write_json(&self, text: &mut Vec<u8>) {
        match self {
            Tree::Null => text.extend_from_slice(b"null"),
            Tree::Bool(value) => text.extend_from_slice(value.to_string().as_bytes()),
            Tree::Integer(value) => text.extend_from_slice(value.to_string().as_bytes()),
            Tree::Float(value) => text.extend_from_slice(format!("{value:?}").as_bytes()),
            Tree::Text(value) => write_string(text, value),
            Tree::List(items) => {
                text.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        text.push(b',');
                    }
                    item.write_json(text);
                }
                text.push(b']');
            }
            Tree::Map(pairs) => {
                text.push(b'{');
                for (index, (key, value)) in pairs.iter().enumerate() {
                    if index > 0 {
                        text.push(b',');
                    }
                    write_string(text, key);
                    text.push(b':');
                    value.write_json(text);
                }
                text.push(b'}');
            }
        }
    }

    /// Writes it as MessagePack: integers in the fewest bytes, as every program writes them in headers.
    pub(super) fn write_msgpack(&self, output: &mut Output) -> Result<()> {
        match self {
            Tree::Null => output.nil(),
            Tree::Bool(value) => output.bool(*value),
            Tree::Integer(value) => match (u64::try_from(*value), i64::try_from(*value)) {
                (Ok(value), _) => output.unsigned(value),
                (_, Ok(value)) => output.signed(value),
                _ => return Err(Error::unsupported(format!("the integer {value} in a header"))),
            },
            Tree::Float(value) => output.double(*value),
            Tree::Text(text) => output.str(text.as_bytes())?,
            Tree::List(items) => {
                output.array(items.len())?;
                items.iter().try_for_each(|item| item.write_msgpack(output))?;
            }
            Tree::Map(pairs) => {
                output.map(pairs.len())?;
                for (key, value) in pairs {
                    output.str(key.as_bytes())?;
                    value.write_msgpack(output)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a value at some depth from the events of a YAML parser.
#[derive(Clone, Copy)]
struct Level<'a> {
    depth: u32,
    limits: &'a Limits,
    failure: &'a RefCell<Option<Error>>,
}

impl<'a> Level<'a> {
    fn below(self) -> Self {
        Level { depth: self.depth + 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = Tree;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        if let Err(error) = self.limits.check_depth(self.depth) {
            self.failure.replace(Some(error));
            return Err(D::Error::custom("nested too deeply"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Integer(i128::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Integer(i128::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below())? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Tree, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = entries.next_key_seed(self.below())? {
            let Tree::Text(key) = key else {
                let found = key.describe();
                self.failure.replace(Some(Error::malformed("a text as key", found).rule("type")));
                return Err(A::Error::custom("a key that is not text"));
            };
            pairs.push((key, entries.next_value_seed(self.below())?));
        }
        Ok(Tree::Map(pairs))
    }
}
