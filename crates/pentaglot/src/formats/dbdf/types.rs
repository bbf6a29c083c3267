//! The terms of the format: dialects, data types, value types, block types and their codes.

use std::fmt;

use arrow_schema::DataType as ArrowType;

/// The dialects: the document and the programs differ, but all have version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The document.
    Spec,
    /// DAPHNE from 0.2 to today.
    Daphne,
    /// DAPHNE 0.1: unpacked structs. Read only.
    Daphne01,
}

impl Dialect {
    /// All of them; if several fit the same bytes, the first one is used.
    pub const ALL: [Dialect; 3] = [Dialect::Daphne, Dialect::Spec, Dialect::Daphne01];

    /// The name after the colon in `dbdf:spec`.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Spec => "spec",
            Dialect::Daphne => "daphne",
            Dialect::Daphne01 => "daphne01",
        }
    }

    /// The dialect of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of object in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DataType {
    /// A dense matrix.
    DenseMatrix,
    /// A sparse matrix.
    CsrMatrix,
    /// A table.
    Frame,
    /// A single value: of DAPHNE's messages; not in the document.
    Scalar,
}

impl DataType {
    /// The data type with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(DataType::DenseMatrix),
            2 => Some(DataType::CsrMatrix),
            3 => Some(DataType::Frame),
            4 => Some(DataType::Scalar),
            _ => None,
        }
    }

    /// The code in byte 1.
    pub fn code(self) -> u8 {
        match self {
            DataType::DenseMatrix => 1,
            DataType::CsrMatrix => 2,
            DataType::Frame => 3,
            DataType::Scalar => 4,
        }
    }

    /// Its name in the document.
    pub fn name(self) -> &'static str {
        match self {
            DataType::DenseMatrix => "DenseMatrix",
            DataType::CsrMatrix => "CSRMatrix",
            DataType::Frame => "Frame",
            DataType::Scalar => "Value",
        }
    }

    /// The data type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        (1..=4).filter_map(DataType::from_code).find(|kind| kind.name() == name)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of a value.
///
/// ```
/// use pentaglot::formats::dbdf::{Dialect, ValueType};
/// // The same byte means different types in the document and in DAPHNE's own files.
/// assert_eq!(ValueType::from_code(Dialect::Spec, 7), Some(ValueType::Int32));
/// assert_eq!(ValueType::from_code(Dialect::Daphne, 7), Some(ValueType::Float64));
/// assert_eq!(ValueType::Float64.code(Dialect::Spec), Some(10));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ValueType {
    /// `uint8_t`
    UInt8,
    /// `uint16_t` (not in DAPHNE's own files)
    UInt16,
    /// `uint32_t`
    UInt32,
    /// `uint64_t`
    UInt64,
    /// `int8_t`
    Int8,
    /// `int16_t` (not in DAPHNE's own files)
    Int16,
    /// `int32_t`
    Int32,
    /// `int64_t`
    Int64,
    /// `float`
    Float32,
    /// `double`
    Float64,
    /// DAPHNE's 16-byte string: at most 15 bytes, padded with NUL.
    FixedStr16,
    /// DAPHNE's `std::string`: 32 bytes of memory that hold no text. Recognised, never decoded.
    Str,
}

impl ValueType {
    /// The numeric types, in the order of the document's codes 1 to 10.
    pub const NUMERIC: [ValueType; 10] = [
        ValueType::UInt8,
        ValueType::UInt16,
        ValueType::UInt32,
        ValueType::UInt64,
        ValueType::Int8,
        ValueType::Int16,
        ValueType::Int32,
        ValueType::Int64,
        ValueType::Float32,
        ValueType::Float64,
    ];

    /// DAPHNE's own types, in the order of its codes 0 to 9.
    const DAPHNE: [ValueType; 10] = [
        ValueType::Int8,
        ValueType::Int32,
        ValueType::Int64,
        ValueType::UInt8,
        ValueType::UInt32,
        ValueType::UInt64,
        ValueType::Float32,
        ValueType::Float64,
        ValueType::Str,
        ValueType::FixedStr16,
    ];

    /// The type that a code means in a dialect.
    pub fn from_code(dialect: Dialect, code: u8) -> Option<Self> {
        match dialect {
            Dialect::Spec => ValueType::NUMERIC.get(usize::from(code.checked_sub(1)?)).copied(),
            Dialect::Daphne => ValueType::DAPHNE.get(usize::from(code)).copied(),
            // Strings came after 0.1.
            Dialect::Daphne01 => ValueType::DAPHNE.get(..8)?.get(usize::from(code)).copied(),
        }
    }

    /// The code of this type in a dialect, if it has one there.
    pub fn code(self, dialect: Dialect) -> Option<u8> {
        (0..=10).find(|code| ValueType::from_code(dialect, *code) == Some(self))
    }

    /// The codes of a dialect, for messages.
    pub(super) fn codes(dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Spec => "a value type code 1..=10",
            Dialect::Daphne => "a value type code 0..=9",
            Dialect::Daphne01 => "a value type code 0..=7",
        }
    }

    /// Bytes per value.
    pub fn size(self) -> usize {
        match self {
            ValueType::UInt8 | ValueType::Int8 => 1,
            ValueType::UInt16 | ValueType::Int16 => 2,
            ValueType::UInt32 | ValueType::Int32 | ValueType::Float32 => 4,
            ValueType::UInt64 | ValueType::Int64 | ValueType::Float64 => 8,
            ValueType::FixedStr16 => 16,
            ValueType::Str => 32,
        }
    }

    /// DAPHNE's name for it, as in a `.meta` file.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::UInt8 => "ui8",
            ValueType::UInt16 => "ui16",
            ValueType::UInt32 => "ui32",
            ValueType::UInt64 => "ui64",
            ValueType::Int8 => "si8",
            ValueType::Int16 => "si16",
            ValueType::Int32 => "si32",
            ValueType::Int64 => "si64",
            ValueType::Float32 => "f32",
            ValueType::Float64 => "f64",
            ValueType::FixedStr16 => "fixedstr16",
            ValueType::Str => "str",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let others = [ValueType::FixedStr16, ValueType::Str];
        ValueType::NUMERIC.into_iter().chain(others).find(|kind| kind.name() == name)
    }

    /// The Arrow type of its values.
    pub fn arrow(self) -> ArrowType {
        match self {
            ValueType::UInt8 => ArrowType::UInt8,
            ValueType::UInt16 => ArrowType::UInt16,
            ValueType::UInt32 => ArrowType::UInt32,
            ValueType::UInt64 => ArrowType::UInt64,
            ValueType::Int8 => ArrowType::Int8,
            ValueType::Int16 => ArrowType::Int16,
            ValueType::Int32 => ArrowType::Int32,
            ValueType::Int64 => ArrowType::Int64,
            ValueType::Float32 => ArrowType::Float32,
            ValueType::Float64 => ArrowType::Float64,
            ValueType::FixedStr16 | ValueType::Str => ArrowType::Utf8,
        }
    }

    /// The numeric type of an Arrow type, if the format has exactly that type.
    pub fn from_arrow(kind: &ArrowType) -> Option<Self> {
        ValueType::NUMERIC.into_iter().find(|value_type| value_type.arrow() == *kind)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a block stores its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockType {
    /// Only zeros: no bytes.
    Empty,
    /// Every cell, row by row.
    Dense,
    /// Entries row by row (CSR).
    Sparse,
    /// Entries with their coordinates (COO).
    UltraSparse,
}

impl BlockType {
    /// The block type with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(BlockType::Empty),
            1 => Some(BlockType::Dense),
            2 => Some(BlockType::Sparse),
            3 => Some(BlockType::UltraSparse),
            _ => None,
        }
    }

    /// The code.
    pub fn code(self) -> u8 {
        match self {
            BlockType::Empty => 0,
            BlockType::Dense => 1,
            BlockType::Sparse => 2,
            BlockType::UltraSparse => 3,
        }
    }

    /// Its name in the document.
    pub fn name(self) -> &'static str {
        match self {
            BlockType::Empty => "empty",
            BlockType::Dense => "dense",
            BlockType::Sparse => "sparse",
            BlockType::UltraSparse => "ultra-sparse",
        }
    }
}

impl fmt::Display for BlockType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
