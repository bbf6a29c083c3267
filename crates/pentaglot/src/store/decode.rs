//! Chunks to Arrow arrays: the reverse of [`column`](super::column).

use arrow_array::{ArrayRef, NullArray, make_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::limits::Budget;
use crate::wire::varint;

/// Values of one type that are read from chunks. Of a nested type, one for each field.
pub(super) struct ValueReader {
    len: usize,
    validity: BooleanBufferBuilder,
    kind: ValueKind,
    budget: Budget,
}

enum ValueKind {
    Null,
    Bool(BooleanBufferBuilder),
    Fixed {
        width: usize,
        bytes: MutableBuffer,
    },
    Bytes {
        offsets: Vec<i64>,
        bytes: Vec<u8>,
    },
    List {
        offsets: Vec<i64>,
        items: Box<ValueReader>,
    },
    FixedList {
        size: usize,
        items: Box<ValueReader>,
    },
    Struct(Vec<ValueReader>),
    /// Rows of a dense matrix: entries, the rest is zero.
    Dense {
        cols: usize,
        width: usize,
        bytes: MutableBuffer,
        is_bool: bool,
    },
    /// Rows of a sparse matrix.
    Sparse {
        offsets: Vec<i64>,
        cols: Vec<u64>,
        values: Box<ValueReader>,
    },
}

impl ValueReader {
    /// For values of a type of [`schema::plain`](super::schema::plain).
    pub(super) fn new(data_type: &DataType, budget: &Budget) -> Result<Self> {
        let inner = |field: &Field| Ok::<_, Error>(Box::new(ValueReader::new(field.data_type(), budget)?));
        let kind = match data_type {
            DataType::Null => ValueKind::Null,
            DataType::Boolean => ValueKind::Bool(BooleanBufferBuilder::new(0)),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
                ValueKind::Bytes { offsets: vec![0], bytes: Vec::new() }
            }
            DataType::FixedSizeBinary(width) => {
                ValueKind::Fixed { width: *width as usize, bytes: MutableBuffer::new(0) }
            }
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
                ValueKind::List { offsets: vec![0], items: inner(item)? }
            }
            DataType::FixedSizeList(item, size) => {
                ValueKind::FixedList { size: *size as usize, items: inner(item)? }
            }
            DataType::Struct(fields) => {
                let fields = fields.iter().map(|field| ValueReader::new(field.data_type(), budget));
                ValueKind::Struct(fields.collect::<Result<_>>()?)
            }
            other => {
                let width = other
                    .primitive_width()
                    .ok_or_else(|| Error::unsupported(format!("stored values of type {other}")))?;
                ValueKind::Fixed { width, bytes: MutableBuffer::new(0) }
            }
        };
        Ok(ValueReader::of(kind, budget))
    }

    /// For the rows of a matrix.
    pub(super) fn matrix(data_type: &DataType, budget: &Budget) -> Result<Self> {
        let other = || Error::unsupported("a stored matrix whose rows are neither dense nor sparse");
        let kind = match data_type {
            DataType::FixedSizeList(item, cols) => {
                let is_bool = *item.data_type() == DataType::Boolean;
                let width = match item.data_type() {
                    DataType::Boolean => 1,
                    DataType::FixedSizeBinary(width) => *width as usize,
                    // Complex numbers: both parts with their slot bytes.
                    plain => match plain.primitive_width() {
                        Some(width) => width,
                        None => return ValueReader::dense_lists(item, *cols as usize, budget),
                    },
                };
                ValueKind::Dense { cols: *cols as usize, width, bytes: MutableBuffer::new(0), is_bool }
            }
            DataType::LargeList(entry) => match entry.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => ValueKind::Sparse {
                    offsets: vec![0],
                    cols: Vec::new(),
                    values: Box::new(ValueReader::new(fields[1].data_type(), budget)?),
                },
                _ => return Err(other()),
            },
            _ => return Err(other()),
        };
        Ok(ValueReader::of(kind, budget))
    }

    fn dense_lists(item: &Field, cols: usize, budget: &Budget) -> Result<Self> {
        let items = Box::new(ValueReader::new(item.data_type(), budget)?);
        Ok(ValueReader::of(ValueKind::FixedList { size: cols, items }, budget))
    }

    fn of(kind: ValueKind, budget: &Budget) -> Self {
        ValueReader { len: 0, validity: BooleanBufferBuilder::new(0), kind, budget: budget.clone() }
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Reads `count` values, of which those are present that `validity` says; all if it is none.
    pub(super) fn read_rows(
        &mut self,
        count: usize,
        validity: Option<BooleanBuffer>,
        is_matrix: bool,
        cursor: &mut Cursor<'_>,
    ) -> Result<()> {
        match (&mut self.kind, &validity) {
            (ValueKind::Null, None) => {
                return Err(Error::malformed("no value of type null", format_args!("{count}")));
            }
            (ValueKind::Fixed { width, bytes }, None) => {
                bytes.extend_from_slice(cursor.take(count as u64 * *width as u64)?);
                self.len += count;
                self.validity.append_n(count, true);
                return Ok(());
            }
            _ => {}
        }
        for row in 0..count {
            match validity.as_ref().is_none_or(|validity| validity.value(row)) {
                true if is_matrix => self.read_matrix_row(cursor)?,
                true => self.read(cursor)?,
                false => self.push_missing()?,
            }
        }
        Ok(())
    }

    fn push_missing(&mut self) -> Result<()> {
        self.push_placeholders(1)?;
        self.len += 1;
        self.validity.append(false);
        Ok(())
    }

    /// Reads a slot: `01` and a value, or `00`.
    fn slot(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let offset = cursor.offset();
        match cursor.u8()? {
            0 => self.push_missing(),
            1 => self.read(cursor),
            other => Err(Error::malformed("a slot 00 or 01", format_args!("{other:02x}")).at(offset)),
        }
    }

    /// Reads a value that is present.
    fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        match &mut self.kind {
            ValueKind::Null => {
                return Err(Error::malformed("no value of type null", "one").at(cursor.offset()));
            }
            ValueKind::Bool(bits) => bits.append(read_bool(cursor)?),
            ValueKind::Fixed { width, bytes } => bytes.extend_from_slice(cursor.take(*width as u64)?),
            ValueKind::Bytes { offsets, bytes } => {
                let length = varint::read(cursor)?;
                bytes.extend_from_slice(cursor.take(length)?);
                offsets.push(bytes.len() as i64);
            }
            ValueKind::List { offsets, items } => {
                let count = varint::read(cursor)?;
                // A slot takes a byte at least.
                cursor.check_count(count, 1)?;
                (0..count).try_for_each(|_| items.slot(cursor))?;
                offsets.push(items.len as i64);
            }
            ValueKind::FixedList { size, items } => (0..*size).try_for_each(|_| items.slot(cursor))?,
            ValueKind::Struct(fields) => fields.iter_mut().try_for_each(|field| field.slot(cursor))?,
            ValueKind::Dense { .. } | ValueKind::Sparse { .. } => return self.read_matrix_row(cursor),
        }
        self.len += 1;
        self.validity.append(true);
        Ok(())
    }

    /// Reads a row of a matrix: a count, then columns and values.
    fn read_matrix_row(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let offset = cursor.offset();
        let count = varint::read(cursor)?;
        cursor.check_count(count, 1)?;
        let beyond =
            |col: u64, cols: usize| Error::malformed(format_args!("a column below {cols}"), col).at(offset);
        match &mut self.kind {
            ValueKind::Dense { cols, width, bytes, is_bool } => {
                let start = bytes.len();
                self.budget.check((*cols as u64).saturating_mul(*width as u64))?;
                bytes.extend_zeros(*cols * *width);
                for _ in 0..count {
                    let col = varint::read(cursor)?;
                    let at = usize::try_from(col).ok().filter(|col| col < cols);
                    let at = start + at.ok_or_else(|| beyond(col, *cols))? * *width;
                    match is_bool {
                        true => bytes[at] = read_bool(cursor)?.into(),
                        false => bytes[at..at + *width].copy_from_slice(cursor.take(*width as u64)?),
                    }
                }
            }
            ValueKind::Sparse { offsets, cols, values } => {
                for _ in 0..count {
                    cols.push(varint::read(cursor)?);
                    values.read(cursor)?;
                }
                offsets.push(cols.len() as i64);
            }
            ValueKind::FixedList { size, items } => {
                let mut next = 0;
                for _ in 0..count {
                    let col = varint::read(cursor)?;
                    let at = usize::try_from(col).ok().filter(|at| (next..*size).contains(at));
                    let at = at.ok_or_else(|| beyond(col, *size))?;
                    items.push_zeros(at - next)?;
                    items.read(cursor)?;
                    next = at + 1;
                }
                items.push_zeros(*size - next)?;
            }
            _ => return Err(Error::malformed("a row of a matrix", "another value").at(offset)),
        }
        self.len += 1;
        self.validity.append(true);
        Ok(())
    }

    /// Adds values whose bits are all zero.
    fn push_zeros(&mut self, count: usize) -> Result<()> {
        self.push_placeholders(count)?;
        self.len += count;
        self.validity.append_n(count, true);
        Ok(())
    }

    /// Adds what is in the place of missing values. It takes memory without bytes in a chunk, so it is checked.
    fn push_placeholders(&mut self, count: usize) -> Result<()> {
        let budget = &self.budget;
        let pay = |width: usize| budget.check((count as u64).saturating_mul(width as u64));
        match &mut self.kind {
            ValueKind::Null => {}
            ValueKind::Bool(bits) => {
                pay(1)?;
                bits.append_n(count, false);
            }
            ValueKind::Fixed { width, bytes } => {
                pay(*width)?;
                bytes.extend_zeros(*width * count);
            }
            ValueKind::Bytes { offsets, .. }
            | ValueKind::List { offsets, .. }
            | ValueKind::Sparse { offsets, .. } => {
                pay(8)?;
                let last = offsets.last().copied().unwrap_or(0);
                offsets.extend(std::iter::repeat_n(last, count));
            }
            ValueKind::FixedList { size, items } => items.push_zeros(size.saturating_mul(count))?,
            ValueKind::Struct(fields) => fields.iter_mut().try_for_each(|field| field.push_zeros(count))?,
            ValueKind::Dense { cols, width, bytes, .. } => {
                pay(cols.saturating_mul(*width))?;
                bytes.extend_zeros(*cols * *width * count);
            }
        }
        Ok(())
    }

    /// The array of all values.
    pub(super) fn finish(mut self, data_type: &DataType) -> Result<ArrayRef> {
        Ok(make_array(self.data(data_type)?))
    }

    fn data(&mut self, data_type: &DataType) -> Result<ArrayData> {
        let len = self.len;
        let nulls = NullBuffer::new(self.validity.finish());
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        let array = ArrayData::builder(data_type.clone()).len(len);
        let mismatch = || Error::malformed("values of the type of their column", "others");
        let array = match (&mut self.kind, data_type) {
            (ValueKind::Null, _) => return Ok(arrow_array::Array::to_data(&NullArray::new(len))),
            (ValueKind::Bool(bits), _) => array.add_buffer(bits.finish().into_inner()),
            (ValueKind::Fixed { bytes, .. }, _) => array.add_buffer(std::mem::take(bytes).into()),
            (ValueKind::Bytes { offsets, bytes }, DataType::LargeUtf8 | DataType::LargeBinary) => array
                .add_buffer(Buffer::from_vec(std::mem::take(offsets)))
                .add_buffer(std::mem::take(bytes).into()),
            (ValueKind::Bytes { offsets, bytes }, _) => {
                array.add_buffer(small(offsets)?).add_buffer(std::mem::take(bytes).into())
            }
            (ValueKind::List { offsets, items }, DataType::LargeList(item)) => array
                .add_buffer(Buffer::from_vec(std::mem::take(offsets)))
                .add_child_data(items.data(item.data_type())?),
            (ValueKind::List { offsets, items }, DataType::List(item) | DataType::Map(item, _)) => {
                array.add_buffer(small(offsets)?).add_child_data(items.data(item.data_type())?)
            }
            (ValueKind::FixedList { items, .. }, DataType::FixedSizeList(item, _)) => {
                array.add_child_data(items.data(item.data_type())?)
            }
            (ValueKind::Struct(fields), DataType::Struct(types)) => {
                let pairs = fields.iter_mut().zip(types);
                let data = pairs.map(|(values, field)| values.data(field.data_type()));
                array.child_data(data.collect::<Result<_>>()?)
            }
            (ValueKind::Dense { cols, bytes, is_bool, .. }, DataType::FixedSizeList(item, _)) => {
                let bytes: Buffer = match is_bool {
                    true => BooleanBuffer::collect_bool(bytes.len(), |index| bytes[index] != 0).into_inner(),
                    false => std::mem::take(bytes).into(),
                };
                let values = ArrayData::builder(item.data_type().clone()).len(len * *cols).add_buffer(bytes);
                array.add_child_data(values.build()?)
            }
            (ValueKind::Sparse { offsets, cols, values }, DataType::LargeList(entry)) => {
                let DataType::Struct(fields) = entry.data_type() else { return Err(mismatch()) };
                let [col, value] = fields.as_ref() else { return Err(mismatch()) };
                let count = cols.len();
                let indices = match col.data_type() {
                    DataType::UInt32 => {
                        let narrow = |col: &u64| {
                            u32::try_from(*col).map_err(|_| Error::malformed("a column below 2^32", col))
                        };
                        Buffer::from_vec(cols.iter().map(narrow).collect::<Result<Vec<u32>>>()?)
                    }
                    _ => Buffer::from_vec(std::mem::take(cols)),
                };
                let indices = ArrayData::builder(col.data_type().clone()).len(count).add_buffer(indices);
                let entries = ArrayData::builder(entry.data_type().clone())
                    .len(count)
                    .child_data(vec![indices.build()?, values.data(value.data_type())?]);
                array.add_buffer(Buffer::from_vec(std::mem::take(offsets))).add_child_data(entries.build()?)
            }
            _ => return Err(mismatch()),
        };
        Ok(array.nulls(nulls).build()?)
    }
}

fn read_bool(cursor: &mut Cursor<'_>) -> Result<bool> {
    let offset = cursor.offset();
    match cursor.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::malformed("a bool 00 or 01", format_args!("{other:02x}")).at(offset)),
    }
}

/// Offsets of 32 bits.
fn small(offsets: &[i64]) -> Result<Buffer> {
    let narrow = |offset: &i64| {
        i32::try_from(*offset)
            .map_err(|_| Error::limit("the limit", i32::MAX, format!("{offset} bytes or items in a batch")))
    };
    Ok(Buffer::from_vec(offsets.iter().map(narrow).collect::<Result<Vec<i32>>>()?))
}

/// Bytes that a row takes in memory at least, whatever its chunk says.
pub(super) fn least_row_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeList(item, size) => {
            (*size as u64).saturating_mul(least_row_bytes(item.data_type())).max(1)
        }
        DataType::Struct(fields) => fields.iter().map(|field| least_row_bytes(field.data_type())).sum(),
        DataType::FixedSizeBinary(width) => *width as u64,
        other => other.primitive_width().unwrap_or(4) as u64,
    }
}

/// The rows of a chunk: which are present, and the bytes of their values.
pub(super) fn open_chunk(plain: &[u8], rows: usize) -> Result<(Option<BooleanBuffer>, &[u8])> {
    match plain.split_first() {
        Some((0, values)) => Ok((None, values)),
        Some((1, rest)) => match rest.split_at_checked(rows.div_ceil(8)) {
            Some((validity, values)) => {
                Ok((Some(BooleanBuffer::new(Buffer::from(validity), 0, rows)), values))
            }
            None => Err(Error::truncated(format_args!("the validity of {rows} rows"), rest.len())),
        },
        other => {
            let found = other.map_or("nothing".to_owned(), |(mark, _)| format!("{mark:02x}"));
            Err(Error::malformed("a chunk that begins with 00 or 01", found))
        }
    }
}
