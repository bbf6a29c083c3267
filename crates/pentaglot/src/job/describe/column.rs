//! The statistics of one column, updated batch by batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};

use super::figures::{Texts, histogram, numeric_quantiles, one_column, set_frequent};
use super::frequent::{Frequent, hash_bytes, hash_word};
use super::moments::Moments;
use super::quantiles::Quantiles;
use super::wide::Wide;
use super::words::Lane;
use super::{ColumnDescription, Lengths, QUANTILES, number_text};
use crate::error::Result;
use crate::hub::json::Columns;
use crate::hub::{extension, type_text};
use crate::job::json_options;

/// Values processed in one step, which fit in a cache.
const STEP: usize = 8192;

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
    infinities: u64,
    sum: i128,
    /// Of integers, less the first of them: doubles hold differences of large ones exactly, but not the numbers.
    moments: Moments,
    /// The key of the first integer.
    first: Option<u64>,
    range: Option<(u64, u64)>,
    quantiles: Quantiles,
    frequent: Frequent<u64>,
    /// Buffers for the keys and numbers of one step.
    room: (Vec<u64>, Vec<f64>),
}

/// The least or the greatest value.
type Bound = Box<[u8]>;

struct Bytes {
    is_text: bool,
    lengths: Option<Lengths>,
    range: Option<(Bound, Bound)>,
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
                    infinities: 0,
                    sum: 0,
                    moments: Moments::default(),
                    first: None,
                    range: None,
                    quantiles: Quantiles::default(),
                    frequent: Frequent::new(),
                    room: Default::default(),
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
                own.infinities += other.infinities;
                own.sum += other.sum;
                own.merge_moments(other.first, other.moments);
                own.range = joined(own.range.take(), other.range);
                own.quantiles.merge(other.quantiles);
                own.frequent.merge(other.frequent);
            }
            (Values::Wide(own), Values::Wide(other)) => own.merge(*other),
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
                top.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
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
                set_frequent(&frequent, &mut column, |keys| {
                    Ok(keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect())
                })?;
            }
        }
        Ok(column)
    }
}

impl Values {
    fn wide(scale: i32) -> Self {
        Values::Wide(Box::new(Wide::new(scale)))
    }

    fn bytes(is_text: bool) -> Self {
        Values::Bytes(Box::new(Bytes { is_text, lengths: None, range: None, frequent: Frequent::new() }))
    }
}

/// The range of both.
pub(super) fn joined<T: Ord>(own: Option<(T, T)>, other: Option<(T, T)>) -> Option<(T, T)> {
    match (own, other) {
        (Some((low, high)), Some((other_low, other_high))) => {
            Some((low.min(other_low), high.max(other_high)))
        }
        (own, other) => own.or(other),
    }
}

pub(super) fn push_bytes(frequent: &mut Frequent<Box<[u8]>>, bytes: &[u8]) {
    frequent.push(hash_bytes(bytes), |key| **key == *bytes, bytes.len() as u64, || bytes.into());
}

/// The difference of the integers of two keys.
fn difference(key: u64, other: u64) -> f64 {
    if key >= other { (key - other) as f64 } else { -((other - key) as f64) }
}

/// The integer nearest to `sum / count`, ties to even.
fn nearest(sum: i128, count: i128) -> i128 {
    let (below, rest) = (sum.div_euclid(count), sum.rem_euclid(count));
    let is_up = rest > count - rest || rest == count - rest && below % 2 != 0;
    below + i128::from(is_up)
}

impl Words {
    fn push(&mut self, array: &dyn Array) {
        let (mut keys, mut numbers) = std::mem::take(&mut self.room);
        keys.clear();
        numbers.clear();
        self.nans += self.lane.read(array, &mut keys, &mut numbers);
        if let (false, Some(first)) = (self.is_float(), keys.first()) {
            let first = *self.first.get_or_insert(*first);
            numbers.clear();
            numbers.extend(keys.iter().map(|key| difference(*key, first)));
        }
        self.count(&keys, &numbers);
        self.room = (keys, numbers);
    }

    fn is_float(&self) -> bool {
        matches!(self.lane, Lane::Float(_))
    }

    /// Adds the moments of other values, less `first`.
    fn merge_moments(&mut self, first: Option<u64>, moments: Moments) {
        match (self.first, first) {
            (Some(own), Some(other)) => self.moments.merge(moments.shifted(difference(other, own))),
            (own, other) => {
                self.first = own.or(other);
                self.moments.merge(moments);
            }
        }
    }

    fn count(&mut self, keys: &[u64], numbers: &[f64]) {
        if keys.is_empty() {
            return;
        }
        let low = keys.iter().copied().min().unwrap_or(u64::MAX);
        let high = keys.iter().copied().max().unwrap_or(0);
        self.range = joined(self.range, Some((low, high)));
        let is_infinite = |key: u64| self.lane.number(key).is_infinite();
        if self.is_float() && (is_infinite(low) || is_infinite(high)) {
            self.infinities += keys.iter().filter(|key| is_infinite(**key)).count() as u64;
        }
        if !self.is_float() {
            self.sum += keys.iter().map(|key| self.lane.whole(*key)).sum::<i128>();
        }
        self.moments.merge(Moments::of(numbers));
        self.quantiles.extend(keys);
        for key in keys {
            self.frequent.push(hash_word(*key), |other| other == key, 0, || *key);
        }
    }

    fn finish(self, texts: &Texts<'_>, column: &mut ColumnDescription) -> Result<()> {
        (column.nans, column.infinities) = (self.nans, self.infinities);
        column.count -= self.nans;
        let lane = self.lane;
        if let Some((low, high)) = self.range {
            let mut range = texts.of_words(lane, &[low, high])?.into_iter();
            (column.min, column.max) = (range.next(), range.next());
        }
        let sorted = self.quantiles.sorted();
        // Quantiles and mean of dates and times have the same type, rounded to its unit.
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
            let mut keys = vec![key(nearest(self.sum, count))];
            for quantile in QUANTILES {
                let (low, high, part) = sorted.at(quantile).expect("there are values");
                let (low, high) = (lane.whole(low), lane.whole(high));
                keys.push(key(low + ((high - low) as f64 * part).round_ties_even() as i128));
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
            // Counts the bytes that are not continuation bytes: one per character.
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
        // The byte order of images and float128 is not a meaningful order.
        let is_ordered =
            !matches!(extension::name(texts.field), Some(extension::IMAGE | extension::FLOAT128));
        if let Some((low, high)) = self.range.filter(|_| is_ordered) {
            let mut range = texts.of_bytes(&[low, high])?.into_iter();
            (column.min, column.max) = (range.next(), range.next());
        }
        set_frequent(&self.frequent, column, |keys| texts.of_bytes(keys))
    }
}
