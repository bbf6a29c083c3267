//! Strings and bytes.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray,
    StringArray, StringViewArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::DataType;

use super::{Decode, Input, unfit};
use crate::error::{Error, Result};
use crate::wire::json::{JsonKind, Scanner};

/// Values of any length, one after the other.
pub(super) struct Texts {
    values: Vec<u8>,
    ends: Vec<usize>,
    data_type: DataType,
}

impl Texts {
    pub(super) fn new(data_type: &DataType) -> Self {
        Texts { values: Vec::new(), ends: Vec::new(), data_type: data_type.clone() }
    }

    #[inline]
    fn end(&mut self) -> Result<()> {
        let len = self.values.len();
        if len > i32::MAX as usize && matches!(self.data_type, DataType::Utf8 | DataType::Binary) {
            let needed = format!("{len} bytes in a batch (large_utf8 and large_binary hold more)");
            return Err(Error::limit("the limit of utf8 and binary", i32::MAX, needed));
        }
        self.ends.push(len);
        Ok(())
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        fn offsets<O: arrow_buffer::ArrowNativeType>(ends: &[usize]) -> OffsetBuffer<O> {
            let starts = std::iter::once(0).chain(ends.iter().copied());
            OffsetBuffer::new(starts.map(|end| O::from_usize(end).unwrap_or_default()).collect())
        }
        let ends = std::mem::take(&mut self.ends);
        let values = Buffer::from(std::mem::take(&mut self.values));
        Ok(match self.data_type {
            DataType::Utf8 => Arc::new(StringArray::try_new(offsets(&ends), values, nulls)?),
            DataType::LargeUtf8 => Arc::new(LargeStringArray::try_new(offsets(&ends), values, nulls)?),
            DataType::Binary => Arc::new(BinaryArray::try_new(offsets(&ends), values, nulls)?),
            DataType::LargeBinary => Arc::new(LargeBinaryArray::try_new(offsets(&ends), values, nulls)?),
            DataType::Utf8View => {
                let array = LargeStringArray::try_new(offsets(&ends), values, nulls)?;
                Arc::new(StringViewArray::from(&array))
            }
            DataType::FixedSizeBinary(size) => {
                Arc::new(FixedSizeBinaryArray::try_new_with_len(size, values, nulls, ends.len())?)
            }
            _ => {
                let array = LargeBinaryArray::try_new(offsets(&ends), values, nulls)?;
                Arc::new(BinaryViewArray::from(&array))
            }
        })
    }
}

pub(super) struct Strings {
    values: Texts,
    /// Whether values of other kinds are read as their text.
    mixed: bool,
}

impl Strings {
    pub(super) fn new(data_type: &DataType, mixed: bool) -> Self {
        Strings { values: Texts::new(data_type), mixed }
    }
}

impl<R: Input> Decode<R> for Strings {
    #[inline]
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        if self.mixed && scanner.peek()? != JsonKind::String {
            scanner.capture_value(&mut self.values.values)?;
        } else {
            self.values.values.extend_from_slice(scanner.str_bytes()?);
        }
        self.values.end()
    }

    #[inline]
    fn text(&mut self, text: &[u8]) -> Result<()> {
        // Most texts are ASCII, which is told faster.
        if !text.is_ascii() && simdutf8::basic::from_utf8(text).is_err() {
            return Err(Error::malformed("UTF-8", "other bytes").rule("utf8"));
        }
        self.values.values.extend_from_slice(text);
        self.values.end()
    }

    fn null(&mut self) {
        self.values.ends.push(self.values.values.len());
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.values.finish(nulls)
    }
}

pub(super) struct Bytes {
    pub(super) values: Texts,
    pub(super) size: Option<usize>,
}

impl Bytes {
    fn push(&mut self, text: &[u8]) -> Result<()> {
        let before = self.values.values.len();
        let values = &mut self.values.values;
        if base64_simd::STANDARD.decode_append(text, values).is_err() {
            return Err(unfit("base64", text));
        }
        let len = values.len() - before;
        if self.size.is_some_and(|size| size != len) {
            return Err(Error::malformed(format_args!("{} bytes", self.size.unwrap_or(0)), len));
        }
        self.values.end()
    }
}

impl<R: Input> Decode<R> for Bytes {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.skip_space()?;
        let offset = scanner.offset();
        let text = scanner.str_bytes()?;
        self.push(text).map_err(|error| error.at(offset))
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        self.push(text)
    }

    fn null(&mut self) {
        let len = self.values.values.len() + self.size.unwrap_or(0);
        self.values.values.resize(len, 0);
        self.values.ends.push(len);
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        self.values.finish(nulls)
    }
}
