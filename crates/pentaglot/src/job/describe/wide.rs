//! Integers of more than eight bytes, and decimals.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field};

use super::column::{joined, push_bytes};
use super::figures::{Texts, histogram, numeric_quantiles, set_frequent};
use super::frequent::Frequent;
use super::moments::Moments;
use super::quantiles::Quantiles;
use super::words::Lane;
use super::{ColumnDescription, number_text};
use crate::error::{Error, Result};
use crate::hub::extension;

pub(super) struct Wide {
    scale: i32,
    moments: Moments,
    range: Option<(i256, i256)>,
    pub(super) quantiles: Quantiles,
    pub(super) frequent: Frequent<Box<[u8]>>,
}

impl Wide {
    pub(super) fn new(scale: i32) -> Self {
        Wide {
            scale,
            moments: Moments::default(),
            range: None,
            quantiles: Quantiles::default(),
            frequent: Frequent::new(),
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.moments.merge(other.moments);
        self.range = joined(self.range.take(), other.range);
        self.quantiles.merge(other.quantiles);
        self.frequent.merge(other.frequent);
    }

    pub(super) fn push(&mut self, field: &Field, array: &ArrayRef) -> Result<()> {
        let nulls = array.nulls();
        let mut numbers = Vec::new();
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

    pub(super) fn finish(self, texts: &Texts<'_>, column: &mut ColumnDescription) -> Result<()> {
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
            let wide = keys.iter().map(|key| {
                let bytes: [u8; 32] = key.as_ref().try_into().expect("keys have 32 bytes");
                i256::from_le_bytes(bytes)
            });
            texts.of_wide(&wide.collect::<Vec<_>>())
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
