//! The parts of a file: type text, row count, rows; and how the data of a type is divided into rows.

use std::io::Read;

use arrow_schema::Field;

use super::cbor;
use super::schema::{field_of, plain_number};
use super::types::Type;
use super::walk::{check_array_type, free_elements, read_type, symbolic};
use crate::cursor::Cursor;
use crate::error::{Context, Error, ErrorKind, Hint, Result};
use crate::formats::ReadOptions;
use crate::hub::{Shape, shape};
use crate::limits::{Budget, Limits};
use crate::source::{HEAD_BYTES, Source};
use crate::wire::varint;

/// The three ways to write a value into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `array[Any]`: the type, then the data.
    Array,
    /// The data alone.
    Raw,
    /// CBOR.
    Cbor,
}

impl Dialect {
    pub(super) const ALL: [Dialect; 3] = [Dialect::Array, Dialect::Raw, Dialect::Cbor];

    pub(super) fn name(self) -> &'static str {
        match self {
            Dialect::Array => "array",
            Dialect::Raw => "raw",
            Dialect::Cbor => "cbor",
        }
    }

    /// The dialect that the extension of a name indicates, if any.
    pub(super) fn by_name(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        let packed = [".gz", ".zst", ".bz2"].iter().find_map(|suffix| name.strip_suffix(suffix));
        packed.unwrap_or(&name).ends_with(".cbor").then_some(Dialect::Cbor)
    }

    /// The dialect that a user names; `None` to detect it by content.
    pub(super) fn named(name: Option<&str>) -> Result<Option<Self>> {
        let Some(name) = name else { return Ok(None) };
        let known = Dialect::ALL.into_iter().find(|dialect| dialect.name() == name);
        known.map(Some).ok_or_else(|| {
            Error::usage(format!("expected a dialect of dynd (array, raw, cbor), found {name:?}"))
        })
    }
}

/// How the data of a type is represented as rows.
#[derive(Debug, Clone)]
pub(super) struct RowLayout {
    pub(super) shape: Shape,
    pub(super) rows: RowCount,
    /// The type of one row's data.
    pub(super) row: Type,
    /// The logical type and the axes, if the data is not in the order of rows.
    pub(super) stored: Option<(Type, Vec<usize>)>,
}

/// Where the number of rows comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowCount {
    /// The type.
    Fixed(u64),
    /// A varint before the data.
    Var,
    /// It is a single value.
    One,
}

impl RowLayout {
    pub(super) fn of(ty: &Type) -> Self {
        let (logical, stored) = match ty.pointee() {
            Type::Storage { of, axis } => (of.as_ref(), Some((of.as_ref().clone(), axis.clone()))),
            other => (other, None),
        };
        let (rows, element) = match logical {
            Type::Fixed(count, of) => (RowCount::Fixed(*count), of.as_ref()),
            Type::Var(of) => (RowCount::Var, of.as_ref()),
            other => (RowCount::One, other),
        };
        let shape = match (rows, element.pointee()) {
            (RowCount::One, _) => Shape::Value,
            (_, Type::Struct(_)) => Shape::Table,
            (RowCount::Fixed(_), Type::Fixed(_, of)) if plain_number(of).is_some() => Shape::Matrix,
            _ => Shape::Array,
        };
        let row = if rows == RowCount::One { ty.pointee() } else { element.pointee() };
        RowLayout { shape, rows, row: row.clone(), stored: stored.filter(|_| rows != RowCount::One) }
    }

    /// All data as one row of a single value, for any type.
    pub(super) fn whole(ty: &Type) -> Self {
        RowLayout { shape: Shape::Value, rows: RowCount::One, row: ty.clone(), stored: None }
    }

    /// The fields of the rows, each with the type of its data.
    pub(super) fn fields(&self) -> Result<Vec<Field>> {
        match (self.shape, &self.row) {
            (Shape::Table, Type::Struct(fields)) => {
                fields.iter().map(|(name, ty)| field_of(name, ty)).collect()
            }
            (Shape::Matrix, row) => Ok(vec![field_of(shape::ROW_FIELD, row)?]),
            (Shape::Array, row) => Ok(vec![field_of(shape::ITEM_FIELD, row)?]),
            (_, row) => Ok(vec![field_of(shape::VALUE_FIELD, row)?]),
        }
    }

    /// The columns of a row: their names and types.
    pub(super) fn columns(&self) -> Vec<Type> {
        match (self.shape, &self.row) {
            (Shape::Table, Type::Struct(fields)) => fields.iter().map(|(_, ty)| ty.clone()).collect(),
            (_, row) => vec![row.clone()],
        }
    }
}

/// The header of a file.
#[derive(Clone)]
pub(super) struct Header {
    pub(super) dialect: Dialect,
    pub(super) reason: String,
    pub(super) ty: Type,
    pub(super) layout: RowLayout,
    /// The bytes that offsets refer to: the file, or the data decoded from CBOR.
    pub(super) source: Source,
    /// Offset and length of the type's text, if the file has one.
    pub(super) type_text: Option<(u64, u64)>,
    /// The offset of the data.
    pub(super) data: u64,
    /// The offset of the first row: after the count, if there is one.
    pub(super) first_row: u64,
    pub(super) rows: u64,
    /// The end of the data, if known.
    pub(super) end: Option<u64>,
    /// The length of a CBOR file whose data was converted: offsets do not refer to the file then.
    pub(super) recoded: Option<u64>,
    /// Whether rows may be missing at the end.
    damaged: bool,
}

impl Header {
    pub(super) fn read(source: Source, options: &ReadOptions) -> Result<Self> {
        let given =
            options.type_text.as_deref().map(|text| given_type(text, options.budget.limits())).transpose()?;
        let head = source.head()?;
        let (dialect, reason) = match Dialect::named(options.dialect.as_deref())? {
            Some(dialect) => (dialect, "named by the user".to_owned()),
            None if head.starts_with(&cbor::TAG_HEAD) => {
                (Dialect::Cbor, "it begins with the CBOR tag of dynd".to_owned())
            }
            None => match Header::array(source.clone(), &head, given.as_ref(), &options.budget) {
                Ok(header) => return header.counted("it begins with a type's text", options),
                Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
                Err(_) if cbor::is_marked(&head, source.len()) => {
                    (Dialect::Cbor, "it is a CBOR typed array".to_owned())
                }
                Err(error) => match Dialect::by_name(source.name()) {
                    Some(dialect) => (dialect, "by its name".to_owned()),
                    None => return Err(error),
                },
            },
        };
        let header = match dialect {
            Dialect::Array => Header::array(source, &head, given.as_ref(), &options.budget)?,
            Dialect::Raw => {
                let ty = given.ok_or_else(|| Error::usage("dynd:raw holds no type").hint(Hint::Type))?;
                if !ty.is_concrete() {
                    return Err(Error::usage(format!(
                        "the given type: expected a type that data can have, found `{ty}`"
                    )));
                }
                let end = source.len();
                Header::new(Dialect::Raw, ty, source, None, 0, end)
            }
            Dialect::Cbor => {
                let source = source.seekable()?;
                let item = cbor::read(&source, &options.budget)?;
                check_given(&item.ty, given.as_ref()).at(0)?;
                let end = item.data + item.bytes;
                let header =
                    Header::new(Dialect::Cbor, item.ty, item.source, item.type_text, item.data, Some(end));
                Header { recoded: source.len().filter(|_| item.is_recoded), ..header }
            }
        };
        header.counted(&reason, options)
    }

    fn new(
        dialect: Dialect,
        ty: Type,
        source: Source,
        type_text: Option<(u64, u64)>,
        data: u64,
        end: Option<u64>,
    ) -> Self {
        let layout = RowLayout::of(&ty);
        Header {
            dialect,
            reason: String::new(),
            ty,
            layout,
            source,
            type_text,
            data,
            first_row: data,
            rows: 0,
            end,
            recoded: None,
            damaged: false,
        }
    }

    fn array(source: Source, head: &[u8], given: Option<&Type>, budget: &Budget) -> Result<Self> {
        let mut cursor = Cursor::new(head);
        let len = varint::read(&mut cursor).field("type")?;
        let start = cursor.offset();
        let mut source = source;
        // If the type is longer than the head, the source must be seekable.
        let reach = len.saturating_add(start);
        let text = if reach.saturating_add(varint::MAX_BYTES as u64) > head.len() as u64
            && head.len() >= HEAD_BYTES
        {
            source = source.seekable()?;
            source.read_range(0, reach, budget).field("type")?
        } else {
            head.to_vec().into()
        };
        let mut cursor = Cursor::new(&text);
        let ty = read_type(&mut cursor, budget.limits()).field("type")?;
        if !ty.is_concrete() {
            return Err(symbolic(&ty).at(start).field("type"));
        }
        check_given(&ty, given).at(start).field("type")?;
        let (data, end) = (cursor.offset(), source.len());
        Ok(Header::new(Dialect::Array, ty, source, Some((start, len)), data, end))
    }

    /// Reads the count of a `var` dimension, and holds the rows against what is there.
    fn counted(mut self, reason: &str, options: &ReadOptions) -> Result<Self> {
        let limits = options.budget.limits();
        self.damaged = options.damaged;
        reason.clone_into(&mut self.reason);
        self.rows = match self.layout.rows {
            RowCount::Fixed(rows) => rows,
            RowCount::One => 1,
            RowCount::Var => {
                let bytes = self.peek_at(self.data, varint::MAX_BYTES)?;
                let mut cursor = Cursor::at(&bytes, self.data);
                let rows = varint::read(&mut cursor).field("count")?;
                self.first_row = cursor.offset();
                rows
            }
        };
        let least = self.layout.row.least_size();
        if least == 0 {
            let free = self.rows.saturating_mul(free_elements(&self.layout.row));
            limits.check_free_rows(free).at(self.data)?;
        } else if let Some(end) = self.end {
            let left = end.saturating_sub(self.first_row);
            // Rows that a damaged file lacks are noticed when they are read; only their offsets must be numbers.
            let (least, left) = match self.damaged {
                true => (self.row_bytes().unwrap_or(least), (u64::MAX >> 1) - self.first_row),
                false => (least, left),
            };
            if self.rows.checked_mul(least).is_none_or(|needed| needed > left) {
                let expected = format_args!("{} rows of at least {least} bytes", self.rows);
                return Err(Error::truncated(expected, format_args!("{left} bytes")).at(self.first_row));
            }
        }
        Ok(self)
    }

    /// This header for the first bytes alone; with rows of fixed size, only as many as are complete.
    pub(super) fn beginning(&self) -> Result<Header> {
        let head = self.source.head()?;
        let held = (head.len() as u64).saturating_sub(self.first_row);
        let rows = self.row_bytes().map_or(self.rows, |size| self.rows.min(held / size.max(1)));
        let source = Source::from_bytes(self.source.name(), head);
        Ok(Header { source, rows, end: None, ..self.clone() })
    }

    fn peek_at(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let len = match self.end {
            Some(end) => len.min(usize::try_from(end.saturating_sub(offset)).unwrap_or(len)),
            None => len,
        };
        if self.source.is_seekable() {
            let mut bytes = vec![0; len];
            let count = self.source.read_at(offset, &mut bytes)?;
            bytes.truncate(count);
            return Ok(bytes);
        }
        let head = self.source.head()?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(head.len());
        Ok(head.get(start..).unwrap_or_default().iter().copied().take(len).collect())
    }

    /// The size of each row, if the type determines it.
    pub(super) fn row_bytes(&self) -> Option<u64> {
        self.layout.row.fixed_size()
    }

    /// Returns an error unless rows of fixed size fill the data exactly.
    pub(super) fn check_end(&self) -> Result<()> {
        let (Some(size), Some(end)) = (self.row_bytes(), self.end) else { return Ok(()) };
        let expected = size.checked_mul(self.rows).and_then(|bytes| bytes.checked_add(self.first_row));
        match expected {
            Some(expected) if expected == end => Ok(()),
            Some(expected) if expected < end => Err(trailing(end - expected).at(expected)),
            Some(_) if self.damaged => Ok(()),
            _ => {
                let found = end.saturating_sub(self.first_row);
                let expected = format_args!("{} rows of {size} bytes", self.rows);
                Err(Error::truncated(expected, format_args!("{found} bytes")).at(self.first_row))
            }
        }
    }

    /// All bytes from `offset` to the end of the data.
    pub(super) fn reader(&self, offset: u64) -> Result<Box<dyn Read + Send>> {
        let reader = self.source.reader_at(offset)?;
        Ok(match self.end {
            Some(end) => Box::new(reader.take(end.saturating_sub(offset))),
            None => Box::new(reader),
        })
    }
}

/// The error for bytes after the value.
pub(super) fn trailing(more: u64) -> Error {
    Error::malformed("the end", format_args!("{more} more bytes")).rule("trailing")
}

/// The type given by the user: its errors are usage errors.
pub(super) fn given_type(text: &str, limits: &Limits) -> Result<Type> {
    Type::parse_within(text, limits).map_err(|error| match error.kind() {
        ErrorKind::Limit => error,
        _ => Error::usage(format!("the given type: {error}")),
    })
}

fn check_given(ty: &Type, given: Option<&Type>) -> Result<()> {
    let Some(given) = given else { return Ok(()) };
    check_array_type(ty, given).or_else(|error| match ty.pointee() {
        // A requested type does not restrict the storage order of elements.
        Type::Storage { of, .. } if check_array_type(of, given).is_ok() => Ok(()),
        _ => Err(error),
    })
}
