//! Typed columns from JSON values and from text cells: the exact inverse of the writers in `hub::json`.
//!
//! A [`JsonColumn`] is made once for a field; values are appended one by one, from a scanner or from the text of a
//! cell, and returned as an Arrow array.

mod floats;
mod nested;
mod scalar;
mod stamps;
#[cfg(test)]
mod tests;
mod texts;
mod words;

use std::io::Read;
use std::sync::Arc;

use arrow_array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::{NullBuffer, NullBufferBuilder, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};

pub(crate) use floats::{is_special_float, parse_special_cell};
pub(crate) use nested::Record;
pub(crate) use scalar::parse_bool;

use crate::error::{Error, Result};
use crate::hub::extension;
use crate::hub::type_text::print_type;
use crate::limits::{Budget, Reservation};
use crate::wire::json::Scanner;

/// Field metadata: values of any kind are read as text, because inference found several kinds. Never shown to a
/// user.
pub(crate) const MIXED_KEY: &str = "pentaglot.mixed";

/// Field metadata: dates and times are taken from their text alone, because inference met no number. Never shown to a user.
pub(crate) const TEXT_ONLY_KEY: &str = "pentaglot.text_only";

/// The field with [`TEXT_ONLY_KEY`], if it is a date or time.
pub(crate) fn text_only(field: Field) -> Field {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    if !matches!(field.data_type(), Date32 | Date64 | Time32(_) | Time64(_) | Timestamp(_, _)) {
        return field;
    }
    let mut metadata = field.metadata().clone();
    metadata.insert(TEXT_ONLY_KEY.to_owned(), String::new());
    field.with_metadata(metadata)
}

/// The field without [`MIXED_KEY`], recursively: the field that its arrays have.
pub(crate) fn without_mixed(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields_without_mixed(fields)),
        DataType::List(item) => DataType::List(Arc::new(without_mixed(item))),
        // Inference creates no other nested types.
        other => other.clone(),
    };
    let mut metadata = field.metadata().clone();
    metadata.remove(MIXED_KEY);
    metadata.remove(TEXT_ONLY_KEY);
    field.clone().with_data_type(data_type).with_metadata(metadata)
}

/// [`without_mixed`] of each field.
pub(crate) fn fields_without_mixed(fields: &Fields) -> Fields {
    fields.iter().map(|field| without_mixed(field)).collect()
}

/// The input that columns read JSON text from.
pub(crate) trait Input: Read + Send + 'static {}

impl<R: Read + Send + 'static> Input for R {}

/// Appends values of one type.
trait Decode<R: Input>: Send {
    /// Appends the next value, which is not null.
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()>;

    /// Appends the value of a cell.
    fn text(&mut self, text: &[u8]) -> Result<()>;

    /// Appends a placeholder value for a null.
    fn null(&mut self);

    /// Appends placeholder values for `count` nulls.
    fn nulls(&mut self, count: usize) {
        (0..count).for_each(|_| self.null());
    }

    /// Returns the values as an array.
    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef>;
}

type Decoder<R> = Box<dyn Decode<R>>;

/// The memory of a column without values: builders, names, the array of each batch.
const COLUMN_BYTES: u64 = 1 << 10;

/// A column that grows value by value.
pub(crate) struct JsonColumn<R> {
    field: FieldRef,
    nulls: NullBufferBuilder,
    values: Decoder<R>,
    /// Whether a cell of this type is JSON text.
    nested: bool,
    /// The reservation for the column itself: its values are charged as a batch.
    _held: Reservation,
}

impl<R: Input> JsonColumn<R> {
    /// An empty column for a field; `Unsupported` if its type has no JSON form that can be read.
    pub(crate) fn new(field: &FieldRef, budget: &Budget) -> Result<Self> {
        let held = budget.reserve(COLUMN_BYTES)?;
        let values = decoder(field, budget)?;
        let nested = is_nested(field);
        let nulls = NullBufferBuilder::new(0);
        Ok(JsonColumn { field: FieldRef::clone(field), nulls, values, nested, _held: held })
    }

    /// Whether a cell of this column is JSON text (an array or an object).
    pub(crate) fn is_nested(&self) -> bool {
        self.nested
    }

    /// Appends the next value of the scanner.
    #[inline]
    pub(crate) fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        if scanner.skip_null()? {
            return self.null().map_err(|error| error.at(scanner.offset() - 4));
        }
        self.values.read(scanner)?;
        self.nulls.append_non_null();
        Ok(())
    }

    /// Appends the value of a cell.
    #[inline]
    pub(crate) fn text(&mut self, text: &[u8]) -> Result<()> {
        self.values.text(text)?;
        self.nulls.append_non_null();
        Ok(())
    }

    /// Appends a null, if the column is nullable.
    pub(crate) fn null(&mut self) -> Result<()> {
        if self.is_required() {
            return Err(Error::malformed(print_type(self.field.data_type()), "null").rule("type"));
        }
        self.pad();
        Ok(())
    }

    /// Appends a null below another null, or in place of a value that could not be read.
    fn pad(&mut self) {
        self.values.null();
        self.nulls.append_null();
    }

    /// Appends nulls, as [`pad`](Self::pad) does, until the column has `rows` values.
    #[inline]
    fn pad_to(&mut self, rows: usize) {
        let missing = rows.saturating_sub(self.nulls.len());
        if missing > 0 {
            self.values.nulls(missing);
            self.nulls.append_n_nulls(missing);
        }
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.nulls.len()
    }

    /// Whether an object must have this column's key.
    fn is_required(&self) -> bool {
        !self.field.is_nullable() && *self.field.data_type() != DataType::Null
    }

    /// Returns the values as an array and clears the column.
    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        let nulls = self.nulls.finish();
        self.values.finish(nulls)
    }

    /// Returns the values of a child. If it is not nullable, its nulls are only below nulls of its parent.
    fn finish_child(&mut self) -> Result<ArrayRef> {
        let nulls = self.nulls.finish().filter(|_| self.field.is_nullable());
        self.values.finish(nulls)
    }
}

/// The error for a text that is not a value of the type.
#[cold]
fn unfit(expected: &str, text: &[u8]) -> Error {
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    Error::malformed(expected, format_args!("{shown:?}")).rule("type")
}

/// An array of values and nulls.
fn primitive<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let array = PrimitiveArray::<T>::try_new(ScalarBuffer::from(values), nulls)?;
    Ok(Arc::new(array.with_data_type(data_type.clone())))
}

/// Whether the JSON form of a type is an array or an object.
pub(crate) fn is_nested(field: &Field) -> bool {
    fn nested(data_type: &DataType) -> bool {
        match data_type {
            DataType::Dictionary(_, value) => nested(value),
            DataType::RunEndEncoded(_, value) => is_nested(value),
            DataType::Interval(unit) => *unit != arrow_schema::IntervalUnit::YearMonth,
            other => other.is_nested(),
        }
    }
    nested(field.data_type())
}

/// Returns an error if a type has no JSON form that can be read back.
pub(crate) fn check_type(field: &FieldRef) -> Result<()> {
    decoder::<std::io::Empty>(field, &Budget::default()).map(drop)
}

fn decoder<R: Input>(field: &FieldRef, budget: &Budget) -> Result<Decoder<R>> {
    if let Some(name) = extension::name(field)
        && let Some(decoder) = extension_decoder(name, field, budget)?
    {
        return Ok(decoder);
    }
    if field.metadata().contains_key(MIXED_KEY) {
        return Ok(Box::new(texts::Strings::new(field.data_type(), true)));
    }
    match field.data_type() {
        data_type if data_type.is_nested() || matches!(data_type, DataType::RunEndEncoded(_, _)) => {
            nested::decoder(field, budget)
        }
        DataType::Dictionary(_, _) => nested::decoder(field, budget),
        data_type if field.metadata().contains_key(TEXT_ONLY_KEY) => {
            Ok(Box::new(stamps::TextOnly::new(scalar::decoder(data_type)?, data_type)))
        }
        data_type => scalar::decoder(data_type),
    }
}

fn extension_decoder<R: Input>(name: &str, field: &FieldRef, budget: &Budget) -> Result<Option<Decoder<R>>> {
    Ok(Some(match (name, field.data_type()) {
        (extension::INT128, DataType::FixedSizeBinary(16)) => {
            Box::new(words::Words::new(words::WordKind::Signed))
        }
        (extension::UINT128, DataType::FixedSizeBinary(16)) => {
            Box::new(words::Words::new(words::WordKind::Unsigned))
        }
        (extension::FLOAT128, DataType::FixedSizeBinary(16)) => {
            Box::new(words::Words::new(words::WordKind::Float))
        }
        (extension::TUPLE, DataType::Struct(fields)) => Box::new(nested::Tuple::new(fields, budget)?),
        (extension::FIXED_SHAPE_TENSOR, DataType::FixedSizeList(item, _)) => {
            let Some(shape) = extension::tensor_shape(field) else { return Ok(None) };
            Box::new(nested::FixedList::new(item, field.data_type(), shape, budget)?)
        }
        (extension::DYND_ARRAY, DataType::Struct(fields)) => {
            match fields.iter().map(|field| (field.name().as_str(), field.data_type())).collect::<Vec<_>>()[..]
            {
                [("type", DataType::Utf8), ("data", DataType::Binary)] => {}
                _ => return Ok(None),
            }
            Box::new(nested::Struct::renamed(fields, &["type", "value"], budget)?)
        }
        _ => return Ok(None),
    }))
}
