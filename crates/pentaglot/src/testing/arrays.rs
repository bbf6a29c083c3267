//! Random arrays of any type.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{
    BooleanBuffer, IntervalDayTime, IntervalMonthDayNano, NullBuffer, OffsetBuffer, ScalarBuffer, i256,
};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, TimeUnit, UnionFields, UnionMode};

use super::arbitrary::{Random, TEXTS};

impl Random {
    fn nulls(&mut self, nullable: bool, len: usize) -> Option<NullBuffer> {
        if !nullable || self.one_in(4) {
            return None;
        }
        let density = 1 + self.below(4);
        let valid: BooleanBuffer = (0..len).map(|_| !self.one_in(density + 1)).collect();
        Some(NullBuffer::new(valid))
    }

    fn text(&mut self) -> &'static str {
        self.pick(&TEXTS)
    }

    /// An integer of absolute value below `limit`.
    fn within(&mut self, limit: i64) -> i64 {
        match self.below(8) {
            0 => 0,
            1 => limit,
            2 => -limit,
            _ => (self.next() % (2 * limit as u64 + 1)) as i64 - limit,
        }
    }

    fn numbers<T: ArrowPrimitiveType>(
        &mut self,
        nulls: Option<NullBuffer>,
        len: usize,
        mut make: impl FnMut(&mut Self) -> T::Native,
    ) -> ArrayRef {
        let values: ScalarBuffer<T::Native> = (0..len).map(|_| make(self)).collect();
        Arc::new(PrimitiveArray::<T>::new(values, nulls))
    }

    /// A random array of a field's type, without nulls if the field allows none.
    pub(crate) fn array(&mut self, field: &Field, len: usize) -> ArrayRef {
        let data_type = field.data_type();
        let nulls = self.nulls(field.is_nullable(), len);
        match data_type {
            DataType::Null => Arc::new(NullArray::new(len)),
            DataType::Boolean => {
                let values: BooleanBuffer = (0..len).map(|_| self.one_in(2)).collect();
                Arc::new(BooleanArray::new(values, nulls))
            }
            DataType::Int8 => self.numbers::<Int8Type>(nulls, len, |this| this.edgy() as i8),
            DataType::Int16 => self.numbers::<Int16Type>(nulls, len, |this| this.edgy() as i16),
            DataType::Int32 => self.numbers::<Int32Type>(nulls, len, |this| this.edgy() as i32),
            DataType::Int64 => self.numbers::<Int64Type>(nulls, len, |this| this.edgy() as i64),
            DataType::UInt8 => self.numbers::<UInt8Type>(nulls, len, |this| this.edgy() as u8),
            DataType::UInt16 => self.numbers::<UInt16Type>(nulls, len, |this| this.edgy() as u16),
            DataType::UInt32 => self.numbers::<UInt32Type>(nulls, len, |this| this.edgy() as u32),
            DataType::UInt64 => self.numbers::<UInt64Type>(nulls, len, Self::edgy),
            DataType::Float16 => {
                self.numbers::<Float16Type>(nulls, len, |this| half::f16::from_f64(this.float()))
            }
            DataType::Float32 => self.numbers::<Float32Type>(nulls, len, |this| this.float() as f32),
            DataType::Float64 => self.numbers::<Float64Type>(nulls, len, Self::float),
            DataType::Date32 => self.numbers::<Date32Type>(nulls, len, |this| this.within(700_000) as i32),
            DataType::Date64 => {
                self.numbers::<Date64Type>(nulls, len, |this| this.within(700_000) * 86_400_000)
            }
            DataType::Utf8 => self.strings::<i32>(nulls, len),
            DataType::LargeUtf8 => self.strings::<i64>(nulls, len),
            DataType::Binary => self.bytes::<i32>(nulls, len),
            DataType::LargeBinary => self.bytes::<i64>(nulls, len),
            DataType::Utf8View => {
                let mut builder = StringViewBuilder::new();
                for row in 0..len {
                    let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                    builder.append_option((!null).then(|| self.text()));
                }
                Arc::new(builder.finish())
            }
            DataType::BinaryView => {
                let mut builder = BinaryViewBuilder::new();
                for row in 0..len {
                    let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                    builder.append_option((!null).then(|| self.blob()));
                }
                Arc::new(builder.finish())
            }
            DataType::FixedSizeBinary(width) => {
                let values: Vec<u8> = (0..len * *width as usize).map(|_| self.next() as u8).collect();
                let array = FixedSizeBinaryArray::try_new_with_len(*width, values.into(), nulls, len);
                Arc::new(array.expect("the values have the width"))
            }
            DataType::List(item) => self.list::<i32>(item, nulls, len),
            DataType::LargeList(item) => self.list::<i64>(item, nulls, len),
            DataType::ListView(item) => self.list_view::<i32>(item, nulls, len),
            DataType::LargeListView(item) => self.list_view::<i64>(item, nulls, len),
            DataType::FixedSizeList(item, size) => {
                let values = self.array(item, len * *size as usize);
                let array =
                    FixedSizeListArray::try_new_with_length(Arc::clone(item), *size, values, nulls, len);
                Arc::new(array.expect("the values have the size"))
            }
            DataType::Struct(fields) => {
                let columns = fields.iter().map(|field| self.array(field, len)).collect();
                Arc::new(
                    StructArray::try_new_with_length(fields.clone(), columns, nulls, len)
                        .expect("arrays are made for their fields"),
                )
            }
            DataType::Map(entries, ordered) => {
                let offsets = self.offsets::<i32>(nulls.as_ref(), len);
                let count = *offsets.last().expect("there is a first offset") as usize;
                let DataType::Struct(fields) = entries.data_type() else { unreachable!("a map has entries") };
                let columns = fields.iter().map(|field| self.array(field, count)).collect();
                let values = StructArray::new(fields.clone(), columns, None);
                Arc::new(MapArray::new(Arc::clone(entries), offsets, values, nulls, *ordered))
            }
            DataType::Dictionary(key, value) => self.dictionary(key, value, nulls, len),
            DataType::Union(fields, mode) => self.union(fields, *mode, len),
            DataType::RunEndEncoded(ends, values) => self.runs(ends, values, len),
            DataType::Decimal32(precision, scale) => {
                let limit = 10i64.pow(u32::from(*precision)) - 1;
                let array = self.numbers::<Decimal32Type>(nulls, len, |this| this.within(limit) as i32);
                let array = array.as_any().downcast_ref::<Decimal32Array>().expect("just made").clone();
                Arc::new(array.with_precision_and_scale(*precision, *scale).expect("it is in range"))
            }
            DataType::Decimal64(precision, scale) => {
                let limit = 10i64.pow(u32::from(*precision)) - 1;
                let array = self.numbers::<Decimal64Type>(nulls, len, |this| this.within(limit));
                let array = array.as_any().downcast_ref::<Decimal64Array>().expect("just made").clone();
                Arc::new(array.with_precision_and_scale(*precision, *scale).expect("it is in range"))
            }
            DataType::Decimal128(precision, scale) => {
                let array = self.numbers::<Decimal128Type>(nulls, len, |this| this.digits(*precision).0);
                let array = array.as_any().downcast_ref::<Decimal128Array>().expect("just made").clone();
                Arc::new(array.with_precision_and_scale(*precision, *scale).expect("it is in range"))
            }
            DataType::Decimal256(precision, scale) => {
                let array = self.numbers::<Decimal256Type>(nulls, len, |this| this.digits(*precision).1);
                let array = array.as_any().downcast_ref::<Decimal256Array>().expect("just made").clone();
                Arc::new(array.with_precision_and_scale(*precision, *scale).expect("it is in range"))
            }
            DataType::Interval(IntervalUnit::YearMonth) => {
                self.numbers::<IntervalYearMonthType>(nulls, len, |this| this.edgy() as i32)
            }
            DataType::Interval(IntervalUnit::DayTime) => {
                self.numbers::<IntervalDayTimeType>(nulls, len, |this| {
                    IntervalDayTime::new(this.edgy() as i32, this.edgy() as i32)
                })
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                self.numbers::<IntervalMonthDayNanoType>(nulls, len, |this| {
                    IntervalMonthDayNano::new(this.edgy() as i32, this.edgy() as i32, this.edgy() as i64)
                })
            }
            DataType::Time32(_) | DataType::Time64(_) | DataType::Timestamp(..) | DataType::Duration(_) => {
                self.moments(data_type, nulls, len)
            }
        }
    }

    fn float(&mut self) -> f64 {
        match self.below(10) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => -0.0,
            4 => 0.1,
            5 => f64::from_bits(1 + self.next() % 1000),
            _ => self.within(1 << 20) as f64 / 64.0,
        }
    }

    /// A decimal of up to `precision` digits, in both widths.
    fn digits(&mut self, precision: u8) -> (i128, i256) {
        let count = 1 + self.below(usize::from(precision));
        let text: String = (0..count).map(|_| char::from(b'0' + self.below(10) as u8)).collect();
        let sign = if self.one_in(2) { "-" } else { "" };
        let wide = i256::from_string(&format!("{sign}{text}")).expect("digits are a number");
        (wide.as_i128(), wide)
    }

    /// Times, timestamps and durations: whole numbers in a sensible range of their unit.
    fn moments(&mut self, data_type: &DataType, nulls: Option<NullBuffer>, len: usize) -> ArrayRef {
        let (unit, seconds, low) = match data_type {
            DataType::Time32(unit) | DataType::Time64(unit) => (unit, 86_399, false),
            DataType::Timestamp(unit, _) => (unit, 4_000_000_000, true),
            DataType::Duration(unit) => (unit, 1_000_000_000, true),
            _ => unreachable!("only moments come here"),
        };
        let factor = match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        let mut values = Vec::new();
        for _ in 0..len {
            let value = self.within(seconds * factor);
            values.push(if low { value } else { value.abs() });
        }
        if let DataType::Time32(_) = data_type {
            let values: ScalarBuffer<i32> = values.into_iter().map(|value| value as i32).collect();
            let array = PrimitiveArray::<Int32Type>::new(values, nulls);
            return make_array(
                array.into_data().into_builder().data_type(data_type.clone()).build().unwrap(),
            );
        }
        let array = PrimitiveArray::<Int64Type>::new(values.into(), nulls);
        make_array(array.into_data().into_builder().data_type(data_type.clone()).build().unwrap())
    }

    fn strings<O: OffsetSizeTrait>(&mut self, nulls: Option<NullBuffer>, len: usize) -> ArrayRef {
        let values: Vec<Option<&str>> = (0..len)
            .map(|row| (!nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))).then(|| self.text()))
            .collect();
        Arc::new(GenericStringArray::<O>::from(values))
    }

    fn blob(&mut self) -> Vec<u8> {
        let len = self.below(20);
        (0..len).map(|_| self.next() as u8).collect()
    }

    fn bytes<O: OffsetSizeTrait>(&mut self, nulls: Option<NullBuffer>, len: usize) -> ArrayRef {
        let values: Vec<Option<Vec<u8>>> = (0..len)
            .map(|row| (!nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))).then(|| self.blob()))
            .collect();
        let values: Vec<Option<&[u8]>> = values.iter().map(|value| value.as_deref()).collect();
        Arc::new(GenericBinaryArray::<O>::from(values))
    }

    fn offsets<O: OffsetSizeTrait>(&mut self, nulls: Option<&NullBuffer>, len: usize) -> OffsetBuffer<O> {
        let lengths: Vec<usize> = (0..len)
            .map(|row| if nulls.is_some_and(|nulls| nulls.is_null(row)) { 0 } else { self.below(4) })
            .collect();
        OffsetBuffer::from_lengths(lengths)
    }

    fn list<O: OffsetSizeTrait>(
        &mut self,
        item: &FieldRef,
        nulls: Option<NullBuffer>,
        len: usize,
    ) -> ArrayRef {
        let offsets = self.offsets::<O>(nulls.as_ref(), len);
        let count = offsets.last().expect("there is a first offset").as_usize();
        let values = self.array(item, count);
        Arc::new(GenericListArray::<O>::new(Arc::clone(item), offsets, values, nulls))
    }

    fn list_view<O: OffsetSizeTrait>(
        &mut self,
        item: &FieldRef,
        nulls: Option<NullBuffer>,
        len: usize,
    ) -> ArrayRef {
        let values = self.array(item, 10);
        let mut offsets: Vec<O> = Vec::new();
        let mut sizes: Vec<O> = Vec::new();
        for _ in 0..len {
            let start = self.below(8);
            offsets.push(O::usize_as(start));
            sizes.push(O::usize_as(self.below(3)));
        }
        Arc::new(GenericListViewArray::<O>::new(
            Arc::clone(item),
            offsets.into(),
            sizes.into(),
            values,
            nulls,
        ))
    }

    fn dictionary(
        &mut self,
        key: &DataType,
        value: &DataType,
        nulls: Option<NullBuffer>,
        len: usize,
    ) -> ArrayRef {
        let size = 1 + self.below(6);
        // Distinct values: a dictionary may repeat a value, but writers need not preserve that.
        let values = self.array(&Field::new("", value.clone(), false), size);
        let keys: Vec<i64> = (0..len).map(|_| self.below(size) as i64).collect();
        let keys: ArrayRef = Arc::new(PrimitiveArray::<Int64Type>::new(keys.into(), nulls));
        let keys = arrow_cast::cast(&keys, key).expect("small keys fit every width");
        let data = keys.into_data().into_builder();
        let data_type = DataType::Dictionary(Box::new(key.clone()), Box::new(value.clone()));
        make_array(data.data_type(data_type).add_child_data(values.into_data()).build().unwrap())
    }

    fn union(&mut self, fields: &UnionFields, mode: UnionMode, len: usize) -> ArrayRef {
        let ids: Vec<i8> = fields.iter().map(|(id, _)| id).collect();
        let mut counts = vec![0i32; ids.len()];
        let mut types: Vec<i8> = Vec::new();
        let mut offsets: Vec<i32> = Vec::new();
        for _ in 0..len {
            let index = self.below(ids.len());
            types.push(ids[index]);
            offsets.push(counts[index]);
            counts[index] += 1;
        }
        let dense = mode == UnionMode::Dense;
        let children = fields
            .iter()
            .zip(&counts)
            .map(|((_, field), count)| self.array(field, if dense { *count as usize } else { len }))
            .collect();
        let offsets = dense.then(|| offsets.into());
        Arc::new(UnionArray::try_new(fields.clone(), types.into(), offsets, children).expect("parts fit"))
    }

    fn runs(&mut self, ends: &FieldRef, values: &FieldRef, len: usize) -> ArrayRef {
        let mut run_ends: Vec<i64> = Vec::new();
        let mut position = 0;
        while position < len {
            position = len.min(position + 1 + self.below(5));
            run_ends.push(position as i64);
        }
        let count = run_ends.len();
        let run_ends: ArrayRef = Arc::new(Int64Array::from(run_ends));
        let run_ends = arrow_cast::cast(&run_ends, ends.data_type()).expect("small ends fit every width");
        let values_array = self.array(values, count);
        let data_type = DataType::RunEndEncoded(Arc::clone(ends), Arc::clone(values));
        let data = arrow_data::ArrayData::builder(data_type)
            .len(len)
            .add_child_data(run_ends.into_data())
            .add_child_data(values_array.into_data());
        make_array(data.build().expect("runs are whole"))
    }
}
