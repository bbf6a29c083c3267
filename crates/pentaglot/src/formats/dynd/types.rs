//! Datashape types: their kinds, the canonical text, and properties of the type alone (fixed size, sentinel).

use std::fmt::{self, Write};
use std::str::FromStr;

use super::parse;
use crate::error::Result;
use crate::limits::Limits;

/// A datashape type: concrete ones, whose data can be serialized, and [`Pattern`]s, which match many.
///
/// Parsed by [`Type::parse`], which checks all rules of the profile; printed in the canonical form.
///
/// ```
/// use pentaglot::formats::dynd::Type;
/// let ty: Type = "3*{x : int, 'y': option[real]}".parse()?;
/// assert_eq!(ty.to_string(), "3 * {x: int32, y: ?float64}");
/// assert_eq!(ty.fixed_size(), Some(36));
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// `bool`
    Bool,
    /// `int8` … `int128`
    Int(Width),
    /// `uint8` … `uint128`
    Uint(Width),
    /// `float16` … `float128`
    Float(FloatWidth),
    /// `complex[float16]` … `complex[float128]`
    Complex(FloatWidth),
    /// `void`
    Void,
    /// `string`
    String,
    /// `json`: text, as given
    Json,
    /// `type`: a type as a value
    Type,
    /// `date`: days since 1970-01-01
    Date,
    /// `time`: 100 ns ticks since midnight
    Time(Zone),
    /// `datetime`: 100 ns ticks since 1970-01-01
    Datetime(Zone),
    /// `bytes`, `bytes[align=8]`
    Bytes {
        /// The alignment in memory; it changes the type, not the data.
        align: u8,
    },
    /// `bytes[16]`, `bytes[8, align=4]`
    FixedBytes {
        /// How many bytes; not 0.
        size: u64,
        /// The alignment in memory; it changes the type, not the data.
        align: u8,
    },
    /// `char`, `char['ascii']`, `char['ucs2']`
    Char(Encoding),
    /// `fixed_string[10]`, `fixed_string[10, 'utf16']`
    FixedString {
        /// How many code units; not 0.
        units: u64,
        /// The encoding.
        encoding: Encoding,
    },
    /// `N * T`
    Fixed(u64, Box<Type>),
    /// `var * T`
    Var(Box<Type>),
    /// `(T0, T1)`
    Tuple(Vec<Type>),
    /// `{name: T, …}`
    Struct(Vec<(String, Type)>),
    /// `?T`
    Option(Box<Type>),
    /// `pointer[T]`
    Pointer(Box<Type>),
    /// `array[T]`: a value with its own type, which matches `T`
    Array(Box<Type>),
    /// `merkle[T]`: a link to data whose type matches `T`, as that type and a multihash
    Merkle(Box<Type>),
    /// `storage[T, axis=[…]]`: fixed dimensions whose data is in the order of `axis`, slowest first
    Storage {
        /// The logical type: one fixed dimension per axis over a type of fixed size.
        of: Box<Type>,
        /// A permutation of the dimensions; not the identity.
        axis: Vec<usize>,
    },
    /// A type that matches many; a value, but never the type of data.
    Pattern(Box<Pattern>),
}

/// A type that matches many types.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pattern {
    /// `Any`, `Int`, …
    Kind(TypeKind),
    /// `Fixed * T`: any fixed dimension
    Fixed(Type),
    /// `Dim * T`: any dimension
    Dim(Type),
    /// `T`: one type that is not a dimension
    Variable(String),
    /// `N * T`: one dimension
    DimVariable(String, Type),
    /// `... * T`, `Dims... * T`: any number of dimensions
    Ellipsis(Option<String>, Type),
    /// `A**N * T`: as many dimensions as `N` says
    Power(Base, String, Type),
    /// `T[X]`
    Apply(String, Type),
    /// `(T0, ...)`
    OpenTuple(Vec<Type>),
    /// `{name: T, ...}`
    OpenStruct(Vec<(String, Type)>),
    /// `(T0, ..., name: T) -> R`
    Callable(Callable),
    /// `State`
    State,
}

/// The dimension that a [`Pattern::Power`] repeats.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Base {
    /// `3`
    Size(u64),
    /// `var`
    Var,
    /// `Fixed`
    Fixed,
    /// `A`
    Variable(String),
}

/// The signature of a function.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Callable {
    /// Positional arguments.
    pub positional: Vec<Type>,
    /// Whether more positional arguments may follow.
    pub open_positional: bool,
    /// Keyword arguments.
    pub keywords: Vec<(String, Type)>,
    /// Whether more keyword arguments may follow.
    pub open_keywords: bool,
    /// The result.
    pub result: Type,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $(#[doc = concat!("`", $word, "`")] $(#[$item_doc])* $variant,)* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The name in a type's text.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            pub(super) fn from_name(name: &str) -> Option<Self> {
                match name { $($word => Some($name::$variant),)* _ => None }
            }
        }
    };
}

words! {
    /// How many bits an integer has.
    Width { W8 = "8", W16 = "16", W32 = "32", W64 = "64", W128 = "128", }
}

words! {
    /// How many bits a float has (IEEE 754 binary formats).
    FloatWidth { W16 = "16", W32 = "32", W64 = "64", W128 = "128", }
}

words! {
    /// How text of fixed size is encoded.
    Encoding { Ascii = "ascii", Ucs2 = "ucs2", Utf8 = "utf8", Utf16 = "utf16", Utf32 = "utf32", }
}

words! {
    /// The kinds of types.
    TypeKind {
        Any = "Any", Scalar = "Scalar", Bool = "Bool", Int = "Int", Uint = "UInt", Float = "Float",
        Complex = "Complex", Bytes = "Bytes", FixedBytes = "FixedBytes", String = "String",
        FixedString = "FixedString", Categorical = "Categorical",
    }
}

words! {
    /// Whether a time is of no zone or UTC.
    Zone { Abstract = "abstract", Utc = "UTC", }
}

impl Width {
    /// Bytes.
    pub fn bytes(self) -> u8 {
        match self {
            Width::W8 => 1,
            Width::W16 => 2,
            Width::W32 => 4,
            Width::W64 => 8,
            Width::W128 => 16,
        }
    }
}

impl FloatWidth {
    /// Bytes.
    pub fn bytes(self) -> u8 {
        match self {
            FloatWidth::W16 => 2,
            FloatWidth::W32 => 4,
            FloatWidth::W64 => 8,
            FloatWidth::W128 => 16,
        }
    }

    /// The bits that mean "missing".
    pub(super) fn missing(self) -> Option<u128> {
        match self {
            FloatWidth::W16 => Some(0x7e0a),
            FloatWidth::W32 => Some(0x7f80_07a2),
            FloatWidth::W64 => Some(0x7ff0_0000_0000_07a2),
            FloatWidth::W128 => None,
        }
    }
}

impl Encoding {
    /// Bytes of a code unit.
    pub fn unit_bytes(self) -> u8 {
        match self {
            Encoding::Ascii | Encoding::Utf8 => 1,
            Encoding::Ucs2 | Encoding::Utf16 => 2,
            Encoding::Utf32 => 4,
        }
    }
}

/// How `?T` represents a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// `?void`: always missing, no bytes.
    Always,
    /// These bytes, as many as T has.
    Sentinel(Sentinel),
    /// A byte 00 (missing) or 01 (then T).
    Flag,
}

/// The bytes that mean "missing", at most 16 (complex: 32).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sentinel {
    bytes: [u8; 16],
    len: usize,
}

impl Sentinel {
    fn of(bits: u128, len: u8) -> Self {
        Sentinel { bytes: bits.to_le_bytes(), len: usize::from(len) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Type {
    /// Reads a type's text under the default limits; errors have their place in it and the rule `type-syntax` or
    /// `depth`.
    pub fn parse(text: &str) -> Result<Self> {
        Type::parse_within(text, &Limits::default())
    }

    /// Like [`parse`](Self::parse), under these limits.
    pub fn parse_within(text: &str, limits: &Limits) -> Result<Self> {
        parse::parse(text, 0, limits)
    }

    /// Reads a type's text that must be the canonical one.
    pub fn parse_canonical(text: &str, limits: &Limits) -> Result<Self> {
        parse::parse_canonical(text, 0, limits)
    }

    /// Whether data of this type can be serialized (inside `array[T]`, T may be a pattern).
    pub fn is_concrete(&self) -> bool {
        match self {
            Type::Pattern(_) => false,
            Type::Fixed(_, of) | Type::Var(of) | Type::Option(of) | Type::Pointer(of) => of.is_concrete(),
            Type::Tuple(fields) => fields.iter().all(Type::is_concrete),
            Type::Struct(fields) => fields.iter().all(|(_, ty)| ty.is_concrete()),
            _ => true,
        }
    }

    /// The size of every value in bytes, if the type determines it: then element `i` of `N * T` is at
    /// `i * size`. Also `None` if the product exceeds 2^64.
    pub fn fixed_size(&self) -> Option<u64> {
        match self {
            Type::Bool => Some(1),
            Type::Int(width) | Type::Uint(width) => Some(width.bytes().into()),
            Type::Float(width) => Some(width.bytes().into()),
            Type::Complex(width) => Some(2 * u64::from(width.bytes())),
            Type::Void => Some(0),
            Type::Date => Some(4),
            Type::Time(_) | Type::Datetime(_) => Some(8),
            Type::FixedBytes { size, .. } => Some(*size),
            Type::FixedString { units, encoding } => units.checked_mul(encoding.unit_bytes().into()),
            Type::Fixed(count, of) => of.fixed_size()?.checked_mul(*count),
            Type::Tuple(fields) => sum(fields.iter()),
            Type::Struct(fields) => sum(fields.iter().map(|(_, ty)| ty)),
            Type::Option(of) => match (of.missing(), of.fixed_size()?) {
                (Missing::Always | Missing::Sentinel(_), size) => Some(size),
                (Missing::Flag, 0) => Some(1),
                (Missing::Flag, _) => None,
            },
            Type::Pointer(of) | Type::Storage { of, .. } => of.fixed_size(),
            Type::String | Type::Json | Type::Type | Type::Bytes { .. } | Type::Char(_) => None,
            Type::Var(_) | Type::Array(_) | Type::Merkle(_) | Type::Pattern(_) => None,
        }
    }

    /// The minimum size of a value, used to check counts of elements.
    pub(super) fn least_size(&self) -> u64 {
        match self {
            Type::String | Type::Json | Type::Bytes { .. } | Type::Char(_) | Type::Var(_) => 1,
            Type::Type | Type::Array(_) => 1,
            // The length of a type, its first letter, the length of a multihash, its code and its length.
            Type::Merkle(_) => 5,
            Type::Fixed(count, of) => count.saturating_mul(of.least_size()),
            Type::Tuple(fields) => fields.iter().fold(0, |sum, ty| sum.saturating_add(ty.least_size())),
            Type::Struct(fields) => fields.iter().fold(0, |sum, (_, ty)| sum.saturating_add(ty.least_size())),
            Type::Option(of) if of.missing() == Missing::Flag => 1,
            Type::Option(of) | Type::Pointer(of) => of.least_size(),
            other => other.fixed_size().unwrap_or(if other.is_concrete() { u64::MAX } else { 0 }),
        }
    }

    /// The minimum size of a value in Arrow memory, also if it is missing.
    pub(super) fn hub_size(&self) -> u64 {
        match self {
            Type::Fixed(count, of) => count.saturating_mul(of.hub_size()),
            Type::Tuple(fields) => fields.iter().fold(0, |sum, ty| sum.saturating_add(ty.hub_size())),
            Type::Struct(fields) => fields.iter().fold(0, |sum, (_, ty)| sum.saturating_add(ty.hub_size())),
            Type::Option(of) | Type::Pointer(of) => of.hub_size(),
            Type::String | Type::Json | Type::Type | Type::Bytes { .. } | Type::Char(_) | Type::Var(_) => 4,
            Type::Array(_) | Type::Merkle(_) => 8,
            other => other.fixed_size().unwrap_or(u64::MAX),
        }
    }

    /// How `?self` represents a missing value, by the table of the profile.
    pub(super) fn missing(&self) -> Missing {
        let minimum = |bytes: u8| Missing::Sentinel(Sentinel::of(1 << (8 * u32::from(bytes) - 1), bytes));
        match self {
            Type::Void => Missing::Always,
            Type::Bool => Missing::Sentinel(Sentinel::of(2, 1)),
            Type::Int(width) => minimum(width.bytes()),
            Type::Date => minimum(4),
            Type::Time(_) | Type::Datetime(_) => minimum(8),
            Type::Uint(Width::W32) => Missing::Sentinel(Sentinel::of(0xffff_ffff, 4)),
            Type::Float(width) => match width.missing() {
                Some(bits) => Missing::Sentinel(Sentinel::of(bits, width.bytes())),
                None => Missing::Flag,
            },
            Type::Complex(width) => match width.missing() {
                Some(bits) => {
                    let both = bits | bits << (8 * u32::from(width.bytes()));
                    Missing::Sentinel(Sentinel::of(both, 2 * width.bytes()))
                }
                None => Missing::Flag,
            },
            _ => Missing::Flag,
        }
    }

    /// The type without pointers, which have no bytes in the data.
    pub(super) fn pointee(&self) -> &Type {
        let mut ty = self;
        while let Type::Pointer(of) = ty {
            ty = of;
        }
        ty
    }

    /// Leading fixed dimensions, and what they are dimensions of.
    pub(super) fn fixed_dims(&self) -> (Vec<u64>, &Type) {
        let (mut dims, mut ty) = (Vec::new(), self);
        while let Type::Fixed(count, of) = ty {
            dims.push(*count);
            ty = of;
        }
        (dims, ty)
    }
}

fn sum<'a>(mut types: impl Iterator<Item = &'a Type>) -> Option<u64> {
    types.try_fold(0u64, |sum, ty| sum.checked_add(ty.fixed_size()?))
}

impl From<Pattern> for Type {
    fn from(pattern: Pattern) -> Self {
        Type::Pattern(Box::new(pattern))
    }
}

impl FromStr for Type {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        Type::parse(text)
    }
}

/// The canonical text: printable ASCII, one way to write each type.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Int(width) => write!(f, "int{}", width.name()),
            Type::Uint(width) => write!(f, "uint{}", width.name()),
            Type::Float(width) => write!(f, "float{}", width.name()),
            Type::Complex(width) => write!(f, "complex[float{}]", width.name()),
            Type::Void => f.write_str("void"),
            Type::String => f.write_str("string"),
            Type::Json => f.write_str("json"),
            Type::Type => f.write_str("type"),
            Type::Date => f.write_str("date"),
            Type::Time(Zone::Abstract) => f.write_str("time"),
            Type::Time(zone) => write!(f, "time[tz='{}']", zone.name()),
            Type::Datetime(Zone::Abstract) => f.write_str("datetime"),
            Type::Datetime(zone) => write!(f, "datetime[tz='{}']", zone.name()),
            Type::Bytes { align: 1 } => f.write_str("bytes"),
            Type::Bytes { align } => write!(f, "bytes[align={align}]"),
            Type::FixedBytes { size, align: 1 } => write!(f, "bytes[{size}]"),
            Type::FixedBytes { size, align } => write!(f, "bytes[{size}, align={align}]"),
            Type::Char(Encoding::Utf32) => f.write_str("char"),
            Type::Char(encoding) => write!(f, "char['{}']", encoding.name()),
            Type::FixedString { units, encoding: Encoding::Utf8 } => write!(f, "fixed_string[{units}]"),
            Type::FixedString { units, encoding } => {
                write!(f, "fixed_string[{units}, '{}']", encoding.name())
            }
            Type::Fixed(count, of) => write!(f, "{count} * {of}"),
            Type::Var(of) => write!(f, "var * {of}"),
            Type::Tuple(fields) => print_list(f, "(", fields, print_type, false, ")"),
            Type::Struct(fields) => print_list(f, "{", fields, print_field, false, "}"),
            Type::Option(of) => write!(f, "?{of}"),
            Type::Pointer(of) => write!(f, "pointer[{of}]"),
            Type::Array(of) => write!(f, "array[{of}]"),
            Type::Merkle(of) => write!(f, "merkle[{of}]"),
            Type::Storage { of, axis } => {
                write!(f, "storage[{of}, axis=")?;
                print_list(f, "[", axis, |axis, f| write!(f, "{axis}"), false, "]]")
            }
            Type::Pattern(pattern) => pattern.fmt(f),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Kind(kind) => f.write_str(kind.name()),
            Pattern::Fixed(of) => write!(f, "Fixed * {of}"),
            Pattern::Dim(of) => write!(f, "Dim * {of}"),
            Pattern::Variable(name) => f.write_str(name),
            Pattern::DimVariable(name, of) => write!(f, "{name} * {of}"),
            Pattern::Ellipsis(name, of) => write!(f, "{}... * {of}", name.as_deref().unwrap_or_default()),
            Pattern::Power(base, exponent, of) => {
                match base {
                    Base::Size(size) => write!(f, "{size}")?,
                    Base::Var => f.write_str("var")?,
                    Base::Fixed => f.write_str("Fixed")?,
                    Base::Variable(name) => f.write_str(name)?,
                }
                write!(f, "**{exponent} * {of}")
            }
            Pattern::Apply(name, of) => write!(f, "{name}[{of}]"),
            Pattern::OpenTuple(fields) => print_list(f, "(", fields, print_type, true, ")"),
            Pattern::OpenStruct(fields) => print_list(f, "{", fields, print_field, true, "}"),
            Pattern::Callable(callable) => callable.fmt(f),
            Pattern::State => f.write_str("State"),
        }
    }
}

impl fmt::Display for Callable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_list(f, "(", &self.positional, print_type, self.open_positional, "")?;
        if !self.keywords.is_empty() {
            let first = self.positional.is_empty() && !self.open_positional;
            let open = if first { "" } else { ", " };
            print_list(f, open, &self.keywords, print_field, self.open_keywords, "")?;
        }
        write!(f, ") -> {}", self.result)
    }
}

fn print_list<T>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: &[T],
    print: impl Fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
    more: bool,
    close: &str,
) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        print(item, f)?;
    }
    if more {
        f.write_str(if items.is_empty() { "..." } else { ", ..." })?;
    }
    f.write_str(close)
}

fn print_type(ty: &Type, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{ty}")
}

fn print_field((name, ty): &(String, Type), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    print_name(name, f)?;
    write!(f, ": {ty}")
}

/// A field's name: bare if possible, otherwise quoted and escaped so that the text is printable ASCII.
pub(super) fn print_name(name: &str, f: &mut impl Write) -> fmt::Result {
    if is_bare_name(name) {
        return f.write_str(name);
    }
    f.write_char('\'')?;
    for c in name.chars() {
        match c {
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\\' => f.write_str("\\\\")?,
            '\'' => f.write_str("\\'")?,
            ' '..='~' => f.write_char(c)?,
            c if u32::from(c) < 0x1_0000 => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "\\U{:08x}", u32::from(c))?,
        }
    }
    f.write_char('\'')
}

fn is_bare_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
