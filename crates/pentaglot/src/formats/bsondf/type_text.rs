//! The text of a type: `timestamp[ns, 'UTC']`, `opaque[3]`, `factor<int32, utf8>`, `list<int32>`, `struct<x: int32>`.
//!
//! ```text
//! type   := plain | timestamp '[' unit ", '" zone "']" | 'opaque[' bytes ']' | nested
//! nested := 'factor<' type ', ' type '>' | 'ordered<' type ', ' type '>' | 'list<' type '>' | 'struct<' fields '>'
//! fields := (name ': ' type) separated by ', '       a name that is not a plain word is a JSON string
//! ```

use std::fmt;

use super::schema::{Type, check_field_names};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::wire::json::write_string;

impl Type {
    /// The type of a text: what [`Display`](fmt::Display) prints, with or without spaces.
    ///
    /// ```
    /// use pentaglot::formats::bsondf::Type;
    /// let kind = Type::parse("struct<x: list<int32>, at: timestamp[ns, 'UTC']>")?;
    /// assert_eq!(kind.to_string(), "struct<x: list<int32>, at: timestamp[ns, 'UTC']>");
    /// assert_eq!(Type::parse("list<int33>").unwrap_err().to_string(), "at byte 5: expected a type, found `int33`");
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Malformed` with the place of the fault; `Limit` if the type is nested too deeply.
    pub fn parse(text: &str) -> Result<Type> {
        let mut parser = Parser { text, at: 0, depth: 0, limits: Limits::default() };
        let kind = parser.kind()?;
        match parser.rest().is_empty() {
            true => Ok(kind),
            false => Err(parser.unexpected("the end")),
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
    limits: Limits,
}

impl<'t> Parser<'t> {
    /// What is left after spaces.
    fn rest(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    fn unexpected(&mut self, expected: &str) -> Error {
        let (word, rest) = (self.word(), self.rest());
        let found = match (word.is_empty(), rest.chars().next()) {
            (false, _) => format!("`{word}`"),
            (true, Some(first)) => format!("`{first}`"),
            (true, None) => "the end".to_owned(),
        };
        Error::malformed(expected, found).at(self.at as u64)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        match self.take(token) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{token}`"))),
        }
    }

    fn kind(&mut self) -> Result<Type> {
        self.depth += 1;
        self.limits.check_depth(self.depth)?;
        let (word, start) = (self.word(), self.at);
        self.at += word.len();
        let kind = match word {
            "list" => {
                self.expect("<")?;
                let item = self.kind()?;
                self.expect(">")?;
                Type::List(Box::new(item))
            }
            "factor" | "ordered" => {
                self.expect("<")?;
                let index = self.kind()?;
                self.expect(",")?;
                let dictionary = self.kind()?;
                self.expect(">")?;
                if !index.is_integer() {
                    return Err(Error::malformed("an integer type of indices", index).at(start as u64));
                }
                let ordered = word == "ordered";
                Type::Factor { ordered, index: Box::new(index), dictionary: Box::new(dictionary) }
            }
            "struct" => self.fields().and_then(|fields| {
                let checked =
                    check_field_names(fields).map_err(|reason| Error::malformed("a struct", reason));
                Ok(Type::Struct(checked.map_err(|error| error.at(start as u64))?))
            })?,
            "opaque" => {
                self.expect("[")?;
                let digits = self.word();
                let Some(width) = digits.parse().ok().filter(|width: &i32| *width > 0) else {
                    return Err(self.unexpected("a number of bytes from 1 on"));
                };
                self.at += digits.len();
                self.expect("]")?;
                Type::Opaque(width)
            }
            _ => {
                self.at = start;
                self.plain()?
            }
        };
        self.depth -= 1;
        Ok(kind)
    }

    /// A type without parts: a word, perhaps with a unit, and with a zone after the unit of a timestamp.
    fn plain(&mut self) -> Result<Type> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let unit = rest.get(end..).and_then(|rest| rest.strip_prefix('['));
        let Some(unit) = unit.and_then(|unit| unit.find([',', ']'])) else {
            let kind = rest.get(..end).and_then(Type::plain).ok_or_else(|| self.unexpected("a type"))?;
            self.at += end;
            return Ok(kind);
        };
        let end = end + 1 + unit;
        let name = format!("{}]", rest.get(..end).unwrap_or_default());
        let kind = Type::plain(&name).ok_or_else(|| self.unexpected("a type"))?;
        self.at += end;
        if self.take("]") {
            return Ok(kind);
        }
        let Type::Timestamp(unit, _) = kind else { return Err(self.unexpected("`]`")) };
        self.expect(",")?;
        self.expect("'")?;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some((zone, _)) = rest.split_once("']").filter(|(zone, _)| !zone.is_empty()) else {
            return Err(self.unexpected("a time zone and `']`"));
        };
        self.at += zone.len() + 2;
        Ok(Type::Timestamp(unit, Some(zone.into())))
    }

    fn fields(&mut self) -> Result<Vec<(String, Type)>> {
        let mut fields = Vec::new();
        self.expect("<")?;
        if self.take(">") {
            return Ok(fields);
        }
        loop {
            let name = self.name()?;
            self.expect(":")?;
            fields.push((name, self.kind()?));
            if self.take(">") {
                return Ok(fields);
            }
            self.expect(",")?;
        }
    }

    fn name(&mut self) -> Result<String> {
        let rest = self.rest();
        if rest.starts_with('"') {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let Some(Ok(name)) = values.next() else { return Err(self.unexpected("a JSON string")) };
            self.at += values.byte_offset();
            return Ok(name);
        }
        let word = self.word();
        if word.is_empty() {
            return Err(self.unexpected("a name"));
        }
        self.at += word.len();
        Ok(word.to_owned())
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Timestamp(_, Some(zone)) => {
                write!(f, "{}, '{zone}']", self.name().trim_end_matches(']'))
            }
            Type::Opaque(width) => write!(f, "opaque[{width}]"),
            Type::Factor { index, dictionary, .. } => write!(f, "{}<{index}, {dictionary}>", self.name()),
            Type::List(item) => write!(f, "list<{item}>"),
            Type::Struct(fields) => {
                f.write_str("struct<")?;
                for (index, (name, kind)) in fields.iter().enumerate() {
                    f.write_str(if index > 0 { ", " } else { "" })?;
                    let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
                    if is_word {
                        f.write_str(name)?;
                    } else {
                        let mut quoted = Vec::new();
                        write_string(&mut quoted, name);
                        f.write_str(&String::from_utf8_lossy(&quoted))?;
                    }
                    write!(f, ": {kind}")?;
                }
                f.write_str(">")
            }
            plain => f.write_str(plain.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        for text in [
            "bool",
            "date[d]",
            "time[us]",
            "timestamp[s]",
            "timestamp[ns, 'Europe/Berlin']",
            "opaque[16]",
            "factor<int8, utf8>",
            "ordered<uint64, list<date[ms]>>",
            "struct<>",
            r#"struct<x: int32, "a, b: c": struct<"\"": null>, ü: bytes>"#,
        ] {
            assert_eq!(Type::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Type::parse(" list < int8 > ").unwrap(), Type::List(Box::new(Type::Int8)));
    }

    #[test]
    fn faults_have_a_place() {
        for (text, expected) in [
            ("", "at byte 0: expected a type, found the end"),
            ("int", "at byte 0: expected a type, found `int`"),
            ("int8]", "at byte 4: expected the end, found `]`"),
            ("list<int8", "at byte 9: expected `>`, found the end"),
            ("opaque[0]", "at byte 7: expected a number of bytes from 1 on, found `0`"),
            ("time[us, 'UTC']", "at byte 7: expected `]`, found `,`"),
            ("timestamp[us, 'UTC]", "at byte 15: expected a time zone and `']`, found `UTC`"),
            ("factor<utf8, int8>", "at byte 0: expected an integer type of indices, found utf8"),
            (
                "struct<x: int8, x: int8>",
                "at byte 0: expected a struct, found two fields of a struct are named \"x\"",
            ),
            ("struct<\"x: int8>", "at byte 7: expected a JSON string, found `\"`"),
        ] {
            assert_eq!(Type::parse(text).unwrap_err().to_string(), expected, "{text}");
        }
        let deep = format!("{}int8{}", "list<".repeat(10_000), ">".repeat(10_000));
        assert_eq!(Type::parse(&deep).unwrap_err().kind(), crate::ErrorKind::Limit);
    }

    #[test]
    fn a_schema_and_its_type_agree() {
        let table = Type::parse("struct<x: int32, f: ordered<int8, utf8>>").unwrap();
        let schema = table.to_schema().unwrap();
        assert_eq!(schema.fields().len(), 2);
        assert_eq!(Type::from_schema(&schema).unwrap(), table);
        assert!(Type::Int8.to_schema().is_err());
    }
}
