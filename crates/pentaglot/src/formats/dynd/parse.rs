//! The datashape parser: recursive descent over bytes, every error with its place.
//!
//! ```text
//! datashape := '?' nooption | nooption               # '?' takes everything to its right
//! nooption  := dim '*' datashape | base '**' (INTEGER | NAME) '*' datashape | dtype
//! dim       := INTEGER | 'fixed' '[' INTEGER ']' | 'var' | 'Fixed' | 'Dim' | NAME | NAME? '...'
//! ```
//!
//! There are no grouping parentheses: `(int32)` is a tuple of one field.

use std::collections::HashSet;

use super::tokens::{Parser, excerpt};
use super::types::{Base, Callable, Encoding, FloatWidth, Pattern, Type, TypeKind, Width, Zone};
use crate::error::{Error, Result};
use crate::limits::Limits;

/// Types are never nested deeper, even if the limits allow it: the parser and later code are recursive.
const DEEPEST: u32 = 512;

/// Reads a type's text, which is at `base` in the file.
pub(super) fn parse(text: &str, base: u64, limits: &Limits) -> Result<Type> {
    let mut parser = Parser { text, position: 0, base, depth: 0, limits };
    let ty = parser.datashape()?;
    parser.skip_space();
    if parser.position < text.len() {
        return Err(parser.expected("the end of the type"));
    }
    Ok(ty)
}

/// Reads a type's text that must be the canonical one, since every value has exactly one serialization.
pub(super) fn parse_canonical(text: &str, base: u64, limits: &Limits) -> Result<Type> {
    let ty = parse(text, base, limits)?;
    let canonical = ty.to_string();
    if canonical != text {
        let same = canonical.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count() as u64;
        let error =
            Error::malformed(format_args!("the canonical type text {}", excerpt(&canonical)), excerpt(text));
        return Err(error.at(base + same).rule("type-noncanonical"));
    }
    Ok(ty)
}

impl Parser<'_> {
    fn deepen(&mut self, levels: u32) -> Result<()> {
        self.depth = self.depth.saturating_add(levels);
        let check = if self.depth > DEEPEST {
            Err(Error::limit("the limit", DEEPEST, "more levels of types"))
        } else {
            self.limits.check_depth(self.depth)
        };
        check.map_err(|error| error.at(self.base + self.position as u64).rule("depth"))
    }

    fn datashape(&mut self) -> Result<Type> {
        self.deepen(1)?;
        self.skip_space();
        let start = self.position;
        let ty = if self.take("?") {
            let of = self.no_option()?;
            self.option(of, start)?
        } else {
            self.no_option()?
        };
        self.depth -= 1;
        Ok(ty)
    }

    fn boxed(&mut self) -> Result<Box<Type>> {
        self.datashape().map(Box::new)
    }

    fn option(&self, of: Type, start: usize) -> Result<Type> {
        if matches!(of, Type::Option(_)) {
            return Err(self.error_at(start, "no option directly inside an option"));
        }
        Ok(Type::Option(Box::new(of)))
    }

    fn bracketed(&mut self) -> Result<Box<Type>> {
        self.need("[")?;
        let ty = self.boxed()?;
        self.need("]")?;
        Ok(ty)
    }

    fn no_option(&mut self) -> Result<Type> {
        self.skip_space();
        let start = self.position;
        if let Some(size) = self.number()? {
            if self.take("**") {
                return self.power(Base::Size(size));
            }
            self.need_star()?;
            return Ok(Type::Fixed(size, self.boxed()?));
        }
        if self.take("...") {
            self.need_star()?;
            return Ok(Pattern::Ellipsis(None, self.datashape()?).into());
        }
        let Some(name) = self.name() else {
            return match self.peek() {
                Some(b'{') => self.structure(),
                Some(b'(') => self.tuple(),
                _ => Err(self.expected("a type")),
            };
        };
        let is_variable = name.starts_with(|c: char| c.is_ascii_uppercase())
            && TypeKind::from_name(name).is_none()
            && !matches!(name, "Fixed" | "Dim" | "State");
        if self.take("**") {
            return match name {
                "var" => self.power(Base::Var),
                "Fixed" => self.power(Base::Fixed),
                _ if is_variable => self.power(Base::Variable(name.to_owned())),
                _ => Err(self.error_at(start, "a dimension before `**`")),
            };
        }
        if self.take_star() {
            return match name {
                "var" => Ok(Type::Var(self.boxed()?)),
                "Fixed" => Ok(Pattern::Fixed(self.datashape()?).into()),
                "Dim" => Ok(Pattern::Dim(self.datashape()?).into()),
                _ if is_variable => Ok(Pattern::DimVariable(name.to_owned(), self.datashape()?).into()),
                _ => Err(self.error_at(start, "a dimension before `*`")),
            };
        }
        if is_variable {
            if self.take("...") {
                self.need_star()?;
                return Ok(Pattern::Ellipsis(Some(name.to_owned()), self.datashape()?).into());
            }
            self.skip_space();
            if self.peek() == Some(b'[') {
                return Ok(Pattern::Apply(name.to_owned(), *self.bracketed()?).into());
            }
            return Ok(Pattern::Variable(name.to_owned()).into());
        }
        self.dtype(name, start)
    }

    fn dtype(&mut self, name: &str, start: usize) -> Result<Type> {
        if let Some(ty) = simple(name) {
            return Ok(ty);
        }
        Ok(match name {
            "complex" => {
                if !self.take("[") {
                    return Ok(Type::Complex(FloatWidth::W64));
                }
                self.skip_space();
                let place = self.position;
                let Type::Float(width) = self.datashape()? else {
                    return Err(self.error_at(place, "a float type"));
                };
                self.need("]")?;
                Type::Complex(width)
            }
            "option" => {
                let of = self.bracketed()?;
                self.option(*of, start)?
            }
            "pointer" => Type::Pointer(self.bracketed()?),
            "array" => {
                self.skip_space();
                match self.peek() {
                    Some(b'[') => Type::Array(self.bracketed()?),
                    _ => Type::Array(Box::new(Pattern::Kind(TypeKind::Any).into())),
                }
            }
            "merkle" => Type::Merkle(self.bracketed()?),
            "fixed" => {
                self.need("[")?;
                let size = self.need_number("a size")?;
                self.need("]")?;
                self.need_star()?;
                Type::Fixed(size, self.boxed()?)
            }
            "char" => {
                if !self.take("[") {
                    return Ok(Type::Char(Encoding::Utf32));
                }
                let place = self.position;
                let encoding = self.encoding()?;
                if !matches!(encoding, Encoding::Ascii | Encoding::Ucs2 | Encoding::Utf32) {
                    return Err(self.error_at(place, "an encoding of fixed size (ascii, ucs2, utf32)"));
                }
                self.need("]")?;
                Type::Char(encoding)
            }
            "fixed_string" => {
                self.need("[")?;
                let place = self.position;
                let units = self.need_number("a size")?;
                if units == 0 {
                    return Err(self.error_at(place, "a size of 1 or more"));
                }
                let encoding = if self.take(",") { self.encoding()? } else { Encoding::Utf8 };
                self.need("]")?;
                Type::FixedString { units, encoding }
            }
            "bytes" | "fixed_bytes" => self.bytes(name)?,
            "time" => Type::Time(self.zone()?),
            "datetime" => Type::Datetime(self.zone()?),
            "storage" => self.storage()?,
            _ => return Err(self.error_at(start, "a type")),
        })
    }

    fn bytes(&mut self, name: &str) -> Result<Type> {
        if name == "fixed_bytes" {
            self.need("[")?;
        } else if !self.take("[") {
            return Ok(Type::Bytes { align: 1 });
        }
        let place = self.position;
        let size = if name == "fixed_bytes" { Some(self.need_number("a size")?) } else { self.number()? };
        let align = match size {
            Some(_) if !self.take(",") => 1,
            _ => {
                self.need("align")?;
                self.need("=")?;
                let place = self.position;
                match self.need_number("an alignment")? {
                    1 => 1,
                    2 => 2,
                    4 => 4,
                    8 => 8,
                    16 => 16,
                    _ => return Err(self.error_at(place, "an alignment of 1, 2, 4, 8 or 16")),
                }
            }
        };
        self.need("]")?;
        match size {
            None => Ok(Type::Bytes { align }),
            Some(size) if size > 0 && size.is_multiple_of(align.into()) => {
                Ok(Type::FixedBytes { size, align })
            }
            Some(_) => {
                Err(self.error_at(place, format_args!("a size that is a positive multiple of {align}")))
            }
        }
    }

    fn encoding(&mut self) -> Result<Encoding> {
        self.skip_space();
        let place = self.position;
        let name = self.string()?;
        let encoding = match name.as_deref().unwrap_or_default() {
            "A" | "us-ascii" => Some(Encoding::Ascii),
            "U8" | "utf-8" | "utf_8" => Some(Encoding::Utf8),
            "U16" | "utf-16" | "utf_16" => Some(Encoding::Utf16),
            "U32" | "utf-32" | "utf_32" => Some(Encoding::Utf32),
            "ucs-2" | "ucs_2" => Some(Encoding::Ucs2),
            name => Encoding::from_name(name),
        };
        let expected = "an encoding ('ascii', 'ucs2', 'utf8', 'utf16', 'utf32')";
        encoding.ok_or_else(|| self.error_at(place, expected))
    }

    fn zone(&mut self) -> Result<Zone> {
        if !self.take("[") {
            return Ok(Zone::Abstract);
        }
        self.need("tz")?;
        self.need("=")?;
        self.skip_space();
        let place = self.position;
        let zone = self.string()?.and_then(|name| Zone::from_name(&name));
        let zone = zone.ok_or_else(|| self.error_at(place, "a time zone ('UTC' or 'abstract')"))?;
        self.need("]")?;
        Ok(zone)
    }

    /// `storage[T, axis=[…]]` or `storage[T, order='F']`, which is the axes in reverse.
    fn storage(&mut self) -> Result<Type> {
        self.need("[")?;
        self.skip_space();
        let place = self.position;
        let of = self.boxed()?;
        let (dims, element) = of.fixed_dims();
        if dims.is_empty() || element.fixed_size().is_none() {
            return Err(self.error_at(place, "fixed dimensions over a type of fixed size"));
        }
        self.need(",")?;
        self.skip_space();
        let place = self.position;
        let axis: Vec<usize> = if self.take("order") {
            self.need("=")?;
            match self.string()?.as_deref() {
                Some("F") => (0..dims.len()).rev().collect(),
                Some("C") => (0..dims.len()).collect(),
                _ => return Err(self.error_at(place, "order='F'")),
            }
        } else if self.take("axis") {
            self.need("=")?;
            self.need("[")?;
            let mut axis = Vec::new();
            while axis.len() < dims.len() {
                if !axis.is_empty() {
                    self.need(",")?;
                }
                let number = self.need_number("a dimension")?;
                axis.push(usize::try_from(number).unwrap_or(usize::MAX));
            }
            self.need("]")?;
            axis
        } else {
            return Err(self.expected("`axis` or `order`"));
        };
        let mut sorted = axis.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..dims.len()) {
            return Err(self.error_at(place, format_args!("each of the {} dimensions once", dims.len())));
        }
        if sorted == axis {
            return Err(self.error_at(place, "an order other than the plain one"));
        }
        self.need("]")?;
        Ok(Type::Storage { of, axis })
    }

    fn power(&mut self, base: Base) -> Result<Type> {
        self.skip_space();
        let place = self.position;
        if let Some(exponent) = self.number()? {
            if exponent == 0 {
                return Err(self.error_at(place, "an exponent of 1 or more"));
            }
            self.need_star()?;
            // The canonical text has that many dimensions: they count as levels.
            let levels = u32::try_from(exponent - 1).unwrap_or(u32::MAX);
            self.deepen(levels)?;
            let mut ty = self.datashape()?;
            self.depth -= levels;
            for _ in 0..exponent {
                ty = match &base {
                    Base::Size(size) => Type::Fixed(*size, Box::new(ty)),
                    Base::Var => Type::Var(Box::new(ty)),
                    Base::Fixed => Pattern::Fixed(ty).into(),
                    Base::Variable(name) => Pattern::DimVariable(name.clone(), ty).into(),
                };
            }
            return Ok(ty);
        }
        match self.name() {
            Some(exponent) if exponent.starts_with(|c: char| c.is_ascii_uppercase()) => {
                self.need_star()?;
                Ok(Pattern::Power(base, exponent.to_owned(), self.datashape()?).into())
            }
            _ => Err(self.error_at(place, "a number or a type variable")),
        }
    }

    fn field_name(&mut self) -> Result<Option<String>> {
        match self.name() {
            Some(name) => Ok(Some(name.to_owned())),
            None => self.string(),
        }
    }

    fn structure(&mut self) -> Result<Type> {
        self.need("{")?;
        let mut fields: Vec<(String, Type)> = Vec::new();
        let mut names = HashSet::new();
        loop {
            if self.take("}") {
                return Ok(Type::Struct(fields));
            }
            if self.take("...") {
                self.need("}")?;
                return Ok(Pattern::OpenStruct(fields).into());
            }
            self.skip_space();
            let place = self.position;
            let name = self.field_name()?.ok_or_else(|| self.expected("a field name"))?;
            if !names.insert(name.clone()) {
                return Err(self.error_at(place, "a field name that is not there yet"));
            }
            self.need(":")?;
            fields.push((name, self.datashape()?));
            if !self.take(",") {
                self.need("}")?;
                return Ok(Type::Struct(fields));
            }
        }
    }

    fn tuple(&mut self) -> Result<Type> {
        self.need("(")?;
        let (mut positional, mut open_positional) = (Vec::new(), false);
        let (mut keywords, mut open_keywords) = (Vec::new(), false);
        loop {
            if self.take(")") {
                break;
            }
            let place = self.position;
            if self.take("...") {
                if self.take(")") {
                    match keywords.is_empty() {
                        false => open_keywords = true,
                        true if !open_positional => open_positional = true,
                        true => return Err(self.error_at(place, "one `...` only")),
                    }
                    break;
                }
                if !open_positional && keywords.is_empty() && self.take(",") {
                    open_positional = true;
                    continue;
                }
                // Dots that do not end a list begin a type: `... * T`.
                self.position = place;
            }
            self.skip_space();
            let place = self.position;
            match self.field_name()? {
                Some(name) if self.take(":") => keywords.push((name, self.datashape()?)),
                _ => {
                    self.position = place;
                    if open_positional || !keywords.is_empty() {
                        return Err(self.expected("a keyword argument"));
                    }
                    positional.push(self.datashape()?);
                }
            }
            if !self.take(",") {
                self.need(")")?;
                break;
            }
        }
        if self.take("->") {
            let result = self.datashape()?;
            let callable = Callable { positional, open_positional, keywords, open_keywords, result };
            return Ok(Pattern::Callable(callable).into());
        }
        if !keywords.is_empty() {
            return Err(self.expected("`->`"));
        }
        Ok(if open_positional { Pattern::OpenTuple(positional).into() } else { Type::Tuple(positional) })
    }
}

/// Types and aliases that are one word.
fn simple(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "string" => Type::String,
        "json" => Type::Json,
        "void" => Type::Void,
        "type" => Type::Type,
        "date" => Type::Date,
        "State" => Pattern::State.into(),
        "int" => Type::Int(Width::W32),
        "intptr" => Type::Int(Width::W64),
        "uintptr" | "size" => Type::Uint(Width::W64),
        "real" => Type::Float(FloatWidth::W64),
        "complex64" => Type::Complex(FloatWidth::W32),
        "complex128" => Type::Complex(FloatWidth::W64),
        _ => {
            if let Some(kind) = TypeKind::from_name(name) {
                return Some(Pattern::Kind(kind).into());
            }
            if let Some(width) = name.strip_prefix("int") {
                return Width::from_name(width).map(Type::Int);
            }
            if let Some(width) = name.strip_prefix("uint") {
                return Width::from_name(width).map(Type::Uint);
            }
            return name.strip_prefix("float").and_then(FloatWidth::from_name).map(Type::Float);
        }
    })
}
