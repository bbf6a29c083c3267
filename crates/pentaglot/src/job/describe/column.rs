//! What is counted of one column while its values go by.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Schema};

use super::frequent::{Frequent, Key, Top, hash_bytes, hash_word};
use super::moments::Moments;
use super::quantiles::{Quantiles, Sorted};
use super::words::{Lane, raw_array};
use super::{ColumnDescription, Histogram, Lengths, QUANTILES, number_text};
use crate::error::{Error, Result};
use crate::hub::json::Columns;
use crate::hub::{extension, type_text};
use crate::job::json_options;

/// Values that are looked at in one step: they stay in a near cache.
const STEP: usize = 8192;
/// Bars of a histogram.
const BARS: usize = 40;

/// The state of one column.
pub(super) struct ColumnState {
    field: Arc<Field>,
    /// The type of the values: that of the dictionary or the runs, where there is one.
    data_type: DataType,
    rows: u64,
    nulls: u64,
    values: Values,
}

/// The state of the values, by how they are compared.
enum Values {
    /// There are none.
    Nothing,
    Bits {
        trues: u64,
        falses: u64,
    },
    Words(Box<Words>),
    /// Whole numbers of more than eight bytes, and decimals.
    Wide(Box<Wide>),
    Bytes(Box<Bytes>),
    /// Everything else by its JSON text.
    Texts(Frequent<Box<[u8]>>),
}

struct Words {
    lane: Lane,
    nans: u64,
    sum: i128,
    moments: Moments,
    range: Option<(u64, u64)>,
    quantiles: Quantiles,
    frequent: Frequent<u64>,
}

struct Wide {
    scale: i32,
    moments: Moments,
    range: Option<(i256, i256)>,
    quantiles: Quantiles,
    frequent: Frequent<Box<[u8]>>,
}

struct Bytes {
    is_text: bool,
    lengths: Option<Lengths>,
    range: Option<(Box<[u8]>, Box<[u8]>)>,
    frequent: Frequent<Box<[u8]>>,
}

/// The type of the values inside a dictionary or runs.
fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, value) => plain_type(value),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        other => other.clone(),
    }
}

impl ColumnState {
    pub(super) fn new(field: &Arc<Field>) -> Self {
        use DataType::*;
        let data_type = plain_type(field.data_type());
        let extension = extension::name(field);
        let is_wide = matches!(extension, Some(extension::INT128 | extension::UINT128));
        let values = match &data_type {
            Null => Values::Nothing,
            Boolean => Values::Bits { trues: 0, falses: 0 },
            Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => {
                Values::wide(i32::from(*scale))
            }
            FixedSizeBinary(16) if is_wide => Values::wide(0),
            Utf8 | LargeUtf8 | Utf8View => Values::bytes(true),
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Values::bytes(false),
            other => match Lane::of(other) {
                Some(lane) => Values::Words(Box::new(Words {
                    lane,
                    nans: 0,
                    sum: 0,
                    moments: Moments::default(),
                    range: None,
                    quantiles: Quantiles::default(),
                    frequent: Frequent::new(),
                })),
                None => Values::Texts(Frequent::new()),
            },
        };
        ColumnState { field: Arc::clone(field), data_type, rows: 0, nulls: 0, values }
    }

    pub(super) fn push(&mut self, array: &ArrayRef) -> Result<()> {
        let plain = match self.field.data_type() == &self.data_type {
            true => Arc::clone(array),
            false => arrow_cast::cast(array, &self.data_type)?,
        };
        self.rows += plain.len() as u64;
        self.nulls += plain.logical_null_count() as u64;
        match &mut self.values {
            Values::Nothing => {}
            Values::Bits { trues, falses } => {
                let bits = plain.as_boolean();
                let ones = bits.true_count() as u64;
                *trues += ones;
                *falses += (bits.len() - bits.null_count()) as u64 - ones;
            }
            Values::Words(words) => {
                for start in (0..plain.len()).step_by(STEP) {
                    words.push(plain.slice(start, STEP.min(plain.len() - start)).as_ref());
                }
            }
            Values::Wide(wide) => wide.push(&self.field, &plain)?,
            Values::Bytes(bytes) => bytes.push(&plain),
            Values::Texts(frequent) => {
                let field = self.field.as_ref().clone().with_data_type(self.data_type.clone());
                let batch = one_column(field, Arc::clone(&plain))?;
                let columns = Columns::new(&batch, &json_options())?;
                let nulls = plain.logical_nulls();
                let mut text = Vec::new();
                for row in 0..plain.len() {
                    if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                        text.clear();
                        columns.write_cell(0, row, &mut text)?;
                        push_bytes(frequent, &text);
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.nulls += other.nulls;
        match (&mut self.values, other.values) {
            (Values::Bits { trues, falses }, Values::Bits { trues: more_trues, falses: more_falses }) => {
                *trues += more_trues;
                *falses += more_falses;
            }
            (Values::Words(own), Values::Words(other)) => {
                own.nans += other.nans;
                own.sum += other.sum;
                own.moments.merge(other.moments);
                own.range = joined(own.range.take(), other.range);
                own.quantiles.merge(other.quantiles);
                own.frequent.merge(other.frequent);
            }
            (Values::Wide(own), Values::Wide(other)) => {
                own.moments.merge(other.moments);
                own.range = joined(own.range.take(), other.range);
                own.quantiles.merge(other.quantiles);
                own.frequent.merge(other.frequent);
            }
            (Values::Bytes(own), Values::Bytes(other)) => {
                own.lengths = match (own.lengths, other.lengths) {
                    (Some(own), Some(other)) => Some(own.merged(other)),
                    (own, other) => own.or(other),
                };
                own.range = joined(own.range.take(), other.range);
                own.frequent.merge(other.frequent);
            }
            (Values::Texts(own), Values::Texts(other)) => own.merge(other),
            (_, _) => {}
        }
    }

    /// The memory that the state takes.
    pub(super) fn bytes(&self) -> u64 {
        match &self.values {
            Values::Nothing | Values::Bits { .. } => 0,
            Values::Words(words) => words.quantiles.bytes() + words.frequent.bytes(),
            Values::Wide(wide) => wide.quantiles.bytes() + wide.frequent.bytes(),
            Values::Bytes(bytes) => bytes.frequent.bytes(),
            Values::Texts(frequent) => frequent.bytes(),
        }
    }

    pub(super) fn finish(self) -> Result<ColumnDescription> {
        let mut column = ColumnDescription {
            name: self.field.name().clone(),
            data_type: type_text::print_type(self.field.data_type()),
            count: self.rows - self.nulls,
            nulls: self.nulls,
            ..ColumnDescription::default()
        };
        let texts = Texts { field: &self.field, data_type: &self.data_type };
        match self.values {
            Values::Nothing => (column.distinct_exact, column.top_exact) = (true, true),
            Values::Bits { trues, falses } => {
                column.truths = Some((trues, falses));
                let mut top: Vec<_> = [(false, falses), (true, trues)].into();
                top.retain(|(_, count)| *count > 0);
                top.sort_by(|a, b| b.1.cmp(&a.1));
                (column.distinct, column.distinct_exact) = (top.len() as u64, true);
                let text = |value: bool| Some(value.to_string());
                column.min = if falses > 0 { text(false) } else { text(true).filter(|_| trues > 0) };
                column.max = if trues > 0 { text(true) } else { text(false).filter(|_| falses > 0) };
                column.top = top.into_iter().map(|(value, count)| (value.to_string(), count)).collect();
                column.top_exact = true;
            }
            Values::Words(words) => words.finish(&texts, &mut column)?,
            Values::Wide(wide) => wide.finish(&texts, &mut column)?,
            Values::Bytes(bytes) => bytes.finish(&texts, &mut column)?,
            Values::Texts(frequent) => {
                let text = |key: &Box<[u8]>| String::from_utf8_lossy(key).into_owned();
                set_frequent(&frequent, &mut column, |keys| Ok(keys.iter().map(text).collect()))?;
            }
        }
        Ok(column)
    }
}

impl Values {
    fn wide(scale: i32) -> Self {
        Values::Wide(Box::new(Wide {
            scale,
            moments: Moments::default(),
            range: None,
            quantiles: Quantiles::default(),
            frequent: Frequent::new(),
        }))
    }

    fn bytes(is_text: bool) -> Self {
        Values::Bytes(Box::new(Bytes { is_text, lengths: None, range: None, frequent: Frequent::new() }))
    }
}

fn joined<T: Ord>(own: Option<(T, T)>, other: Option<(T, T)>) -> Option<(T, T)> {
    match (own, other) {
        (Some((low, high)), Some((other_low, other_high))) => {
            Some((low.min(other_low), high.max(other_high)))
        }
        (own, other) => own.or(other),
    }
}

fn push_bytes(frequent: &mut Frequent<Box<[u8]>>, bytes: &[u8]) {
    frequent.push(hash_bytes(bytes), |key| **key == *bytes, bytes.len() as u64, || bytes.into());
}

fn one_column(field: Field, array: ArrayRef) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(Arc::new(Schema::new(vec![field.with_nullable(true)])), vec![array])?)
}

/// How values of a column are written.
struct Texts<'a> {
    field: &'a Field,
    data_type: &'a DataType,
}

impl Texts<'_> {
    /// The JSON texts of the values of an array of the column's type.
    fn of(&self, array: ArrayRef) -> Result<Vec<String>> {
        let field = self.field.clone().with_data_type(array.data_type().clone());
        let batch = one_column(field, array)?;
        let columns = Columns::new(&batch, &json_options())?;
        let text = |row| {
            let mut out = Vec::new();
            columns.write_cell(0, row, &mut out)?;
            Ok(String::from_utf8_lossy(&out).into_owned())
        };
        (0..batch.num_rows()).map(text).collect()
    }

    fn of_words(&self, lane: Lane, keys: &[u64]) -> Result<Vec<String>> {
        self.of(lane.array(self.data_type, keys)?)
    }

    fn of_bytes(&self, keys: &[Box<[u8]>]) -> Result<Vec<String>> {
        let values = keys.iter().map(|key| key.as_ref());
        self.of(match self.data_type {
            DataType::FixedSizeBinary(_) => {
                raw_array(self.data_type, keys.len(), values.flatten().copied().collect())?
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
                Arc::new(BinaryArray::from_iter_values(values))
            }
            _ => Arc::new(StringArray::from_iter_values(values.map(String::from_utf8_lossy))),
        })
    }

    /// Of decimals and long whole numbers: the low bytes of what they are kept as.
    fn of_wide(&self, keys: &[i256]) -> Result<Vec<String>> {
        let width = match self.data_type {
            DataType::Decimal32(_, _) => 4,
            DataType::Decimal64(_, _) => 8,
            DataType::Decimal256(_, _) => 32,
            _ => 16,
        };
        let bytes = keys.iter().flat_map(|key| key.to_le_bytes().into_iter().take(width)).collect();
        self.of(raw_array(self.data_type, keys.len(), bytes)?)
    }
}

fn set_frequent<K: Key>(
    frequent: &Frequent<K>,
    column: &mut ColumnDescription,
    texts: impl FnOnce(&[K]) -> Result<Vec<String>>,
) -> Result<()> {
    (column.distinct, column.distinct_exact) = frequent.distinct();
    let Top { values, is_exact } = frequent.top();
    let (keys, counts): (Vec<K>, Vec<u64>) = values.into_iter().unzip();
    column.top = texts(&keys)?.into_iter().zip(counts).collect();
    column.top_exact = is_exact;
    Ok(())
}

impl Words {
    fn push(&mut self, array: &dyn Array) {
        let (mut keys, mut numbers) = (Vec::with_capacity(array.len()), Vec::with_capacity(array.len()));
        self.nans += self.lane.read(array, &mut keys, &mut numbers);
        if keys.is_empty() {
            return;
        }
        let low = keys.iter().copied().min().unwrap_or(u64::MAX);
        let high = keys.iter().copied().max().unwrap_or(0);
        self.range = joined(self.range, Some((low, high)));
        if !matches!(self.lane, Lane::Float(_)) {
            self.sum += keys.iter().map(|key| self.lane.whole(*key)).sum::<i128>();
        }
        self.moments.merge(Moments::of(&numbers));
        self.quantiles.extend(&keys);
        for key in keys {
            self.frequent.push(hash_word(key), |other| *other == key, 0, || key);
        }
    }

    fn finish(self, texts: &Texts<'_>, column: &mut ColumnDescription) -> Result<()> {
        column.nans = self.nans;
        column.count -= self.nans;
        let lane = self.lane;
        if let Some((low, high)) = self.range {
            let mut range = texts.of_words(lane, &[low, high])?.into_iter();
            (column.min, column.max) = (range.next(), range.next());
        }
        let sorted = self.quantiles.sorted();
        // Dates and times have quantiles and a mean of their own type, rounded to its unit.
        let is_time = matches!(
            texts.data_type,
            DataType::Date32
                | DataType::Date64
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(_, _)
        );
        let count = i128::from(self.moments.count);
        if is_time && count > 0 {
            let key = |whole: i128| (whole as i64 as u64) ^ (1 << 63);
            let mut keys = vec![key(self.sum.div_euclid(count))];
            for quantile in QUANTILES {
                let (low, high, part) = sorted.at(quantile).expect("there are values");
                let (low, high) = (lane.whole(low), lane.whole(high));
                keys.push(key(low + ((high - low) as f64 * part).round() as i128));
            }
            let mut all = texts.of_words(lane, &keys)?;
            column.mean = Some(all.remove(0));
            column.quantiles = all.try_into().ok();
        } else if count > 0 {
            let mean = match lane {
                Lane::Float(_) => self.moments.mean,
                _ => self.sum as f64 / count as f64,
            };
            column.mean = Some(number_text(mean));
            column.std = self.moments.deviation().map(number_text);
            column.quantiles = numeric_quantiles(&sorted, |key| lane.number(key));
        }
        column.histogram = histogram(&sorted, !matches!(lane, Lane::Float(_)), |key| lane.number(key));
        set_frequent(&self.frequent, column, |keys| texts.of_words(lane, keys))
    }
}

impl Wide {
    fn push(&mut self, field: &Field, array: &ArrayRef) -> Result<()> {
        let nulls = array.nulls();
        let mut numbers = Vec::with_capacity(array.len());
        for row in (0..array.len()).filter(|row| nulls.is_none_or(|nulls| nulls.is_valid(*row))) {
            let value = match array.data_type() {
                DataType::Decimal32(_, _) => i256::from(array.as_primitive::<Decimal32Type>().value(row)),
                DataType::Decimal64(_, _) => i256::from(array.as_primitive::<Decimal64Type>().value(row)),
                DataType::Decimal128(_, _) => {
                    i256::from_i128(array.as_primitive::<Decimal128Type>().value(row))
                }
                DataType::Decimal256(_, _) => array.as_primitive::<Decimal256Type>().value(row),
                _ => {
                    let bytes = array.as_fixed_size_binary().value(row);
                    let bytes: [u8; 16] = bytes
                        .try_into()
                        .map_err(|_| Error::unsupported("a whole number of other than 16 bytes"))?;
                    match extension::name(field) {
                        Some(extension::UINT128) => i256::from_parts(u128::from_le_bytes(bytes), 0),
                        _ => i256::from_i128(i128::from_le_bytes(bytes)),
                    }
                }
            };
            self.range = joined(self.range, Some((value, value)));
            push_bytes(&mut self.frequent, &value.to_le_bytes());
            numbers.push(wide_number(value, self.scale));
        }
        self.moments.merge(Moments::of(&numbers));
        let keys: Vec<u64> = numbers.iter().map(|number| float_key(*number)).collect();
        self.quantiles.extend(&keys);
        Ok(())
    }

    fn finish(self, texts: &Texts<'_>, column: &mut ColumnDescription) -> Result<()> {
        if let Some((low, high)) = self.range {
            let mut range = texts.of_wide(&[low, high])?.into_iter();
            (column.min, column.max) = (range.next(), range.next());
            column.mean = Some(number_text(self.moments.mean));
        }
        column.std = self.moments.deviation().map(number_text);
        let sorted = self.quantiles.sorted();
        let number = |key| Lane::Float(8).number(key);
        column.quantiles = numeric_quantiles(&sorted, number);
        column.histogram = histogram(&sorted, false, number);
        set_frequent(&self.frequent, column, |keys| {
            let wide = |key: &Box<[u8]>| {
                let bytes: [u8; 32] = key.as_ref().try_into().expect("keys have 32 bytes");
                i256::from_le_bytes(bytes)
            };
            texts.of_wide(&keys.iter().map(wide).collect::<Vec<_>>())
        })
    }
}

fn float_key(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits }
}

fn wide_number(value: i256, scale: i32) -> f64 {
    let (low, high) = value.to_parts();
    let whole = (high as f64) * 2f64.powi(128) + low as f64;
    match value.to_i128() {
        // One division of two exact numbers rounds once.
        Some(value) => value as f64 / 10f64.powi(scale),
        None => whole / 10f64.powi(scale),
    }
}

impl Bytes {
    fn push(&mut self, array: &ArrayRef) {
        let nulls = array.nulls();
        let rows = (0..array.len()).filter(|row| nulls.is_none_or(|nulls| nulls.is_valid(*row)));
        match array.data_type() {
            DataType::Utf8 => rows.for_each(|row| self.one(array.as_string::<i32>().value(row).as_bytes())),
            DataType::LargeUtf8 => {
                rows.for_each(|row| self.one(array.as_string::<i64>().value(row).as_bytes()))
            }
            DataType::Utf8View => rows.for_each(|row| self.one(array.as_string_view().value(row).as_bytes())),
            DataType::Binary => rows.for_each(|row| self.one(array.as_binary::<i32>().value(row))),
            DataType::LargeBinary => rows.for_each(|row| self.one(array.as_binary::<i64>().value(row))),
            DataType::BinaryView => rows.for_each(|row| self.one(array.as_binary_view().value(row))),
            _ => rows.for_each(|row| self.one(array.as_fixed_size_binary().value(row))),
        }
    }

    fn one(&mut self, value: &[u8]) {
        let length = match self.is_text {
            // Every byte but those that continue a character begins one.
            true => value.iter().filter(|byte| (**byte as i8) >= -0x40).count() as u64,
            false => value.len() as u64,
        };
        let own = Lengths { min: length, max: length, sum: u128::from(length), count: 1 };
        self.lengths = Some(self.lengths.map_or(own, |lengths| lengths.merged(own)));
        match &mut self.range {
            Some((low, high)) => {
                if *value < **low {
                    *low = value.into();
                } else if *value > **high {
                    *high = value.into();
                }
            }
            None => self.range = Some((value.into(), value.into())),
        }
        push_bytes(&mut self.frequent, value);
    }

    fn finish(self, texts: &Texts<'_>, column: &mut ColumnDescription) -> Result<()> {
        column.lengths = self.lengths;
        // The order of the bytes of an image or of a float means nothing.
        let is_ordered =
            !matches!(extension::name(texts.field), Some(extension::IMAGE | extension::FLOAT128));
        if let Some((low, high)) = self.range.filter(|_| is_ordered) {
            let mut range = texts.of_bytes(&[low, high])?.into_iter();
            (column.min, column.max) = (range.next(), range.next());
        }
        set_frequent(&self.frequent, column, |keys| texts.of_bytes(keys))
    }
}

fn numeric_quantiles(sorted: &Sorted, number: impl Fn(u64) -> f64) -> Option<[String; 5]> {
    let at = |quantile: f64| {
        let (low, high, part) = sorted.at(quantile)?;
        Some(between(number(low), number(high), part))
    };
    let all: Option<Vec<String>> = QUANTILES.iter().map(|quantile| at(*quantile).map(number_text)).collect();
    all?.try_into().ok()
}

/// The value that is `part` of the way from `low` to `high`.
pub(super) fn between(low: f64, high: f64, part: f64) -> f64 {
    if part == 0.0 || low == high { low } else { low + (high - low) * part }
}

/// Equal bars from the least to the greatest finite value; one for each whole number where there are few.
fn histogram(sorted: &Sorted, is_whole: bool, number: impl Fn(u64) -> f64) -> Option<Histogram> {
    let finite =
        || sorted.items.iter().map(|(key, weight)| (number(*key), *weight)).filter(|(x, _)| x.is_finite());
    let (min, max) = (finite().next()?.0, finite().next_back()?.0);
    let bars = match max - min {
        0.0 => 1,
        width if is_whole && width < BARS as f64 => width as usize + 1,
        _ => BARS,
    };
    let width = if is_whole && bars < BARS { 1.0 } else { (max - min) / bars as f64 };
    let mut counts = vec![0; bars];
    for (value, weight) in finite() {
        let bar = if width > 0.0 { ((value - min) / width) as usize } else { 0 };
        counts[bar.min(bars - 1)] += weight;
    }
    Some(Histogram { min, max, width, counts })
}
