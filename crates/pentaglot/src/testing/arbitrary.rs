//! Random schemas and batches from a seed: every Arrow type, nesting, nulls, dictionaries, extension types, shapes.
//!
//! ```text
//! let mut random = Random::new(seed);
//! let schema = random.schema();                  // any types; `schema_of` asks a predicate
//! let batch = random.batch(&schema, 17);
//! ```

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use arrow_schema::{UnionFields, UnionMode};

use crate::hub::{extension, native, rows, shape};

/// A small generator of random numbers (SplitMix64): the same seed gives the same data everywhere.
pub(crate) struct Random(u64);

const UNITS: [TimeUnit; 4] =
    [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];

pub(super) const TEXTS: [&str; 12] = [
    "",
    "a",
    "hello, world",
    "line\nbreak\r\n",
    "\"quoted\"",
    "é日本語",
    "🦀",
    "NaN",
    "null",
    "\u{0}\u{1f}",
    " 12 ",
    "a text of more than twelve bytes, so that a view does not hold it itself",
];

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end` (which is not 0).
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// A number, often a small one or near the limits of its range.
    pub(super) fn edgy(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => self.next() % 100,
            3 => 1 << self.below(64),
            _ => self.next(),
        }
    }

    /// Every type without children.
    pub(crate) fn leaves() -> Vec<DataType> {
        use DataType::*;
        let mut all = vec![
            Null,
            Boolean,
            Int8,
            Int16,
            Int32,
            Int64,
            UInt8,
            UInt16,
            UInt32,
            UInt64,
            Float16,
            Float32,
            Float64,
            Date32,
            Date64,
            Binary,
            LargeBinary,
            BinaryView,
            Utf8,
            LargeUtf8,
            Utf8View,
        ];
        all.extend([0, 1, 5, 16].map(FixedSizeBinary));
        all.extend([Time32(TimeUnit::Second), Time32(TimeUnit::Millisecond)]);
        all.extend([Time64(TimeUnit::Microsecond), Time64(TimeUnit::Nanosecond)]);
        for unit in UNITS {
            all.push(Duration(unit));
            for zone in [None, Some("UTC"), Some("Europe/Paris"), Some("+07:30")] {
                all.push(Timestamp(unit, zone.map(Arc::from)));
            }
        }
        all.extend(
            [IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval),
        );
        all.extend([Decimal32(9, 2), Decimal32(1, 0), Decimal64(18, 5), Decimal64(7, -2)]);
        all.extend([Decimal128(38, 10), Decimal128(5, 5), Decimal128(20, -3)]);
        all.extend([Decimal256(76, 38), Decimal256(3, 1)]);
        all
    }

    /// A random type; `depth` is the maximum depth of nesting.
    pub(crate) fn data_type(&mut self, depth: usize) -> DataType {
        if depth == 0 || self.below(3) > 0 {
            let leaves = Random::leaves();
            return self.pick(&leaves);
        }
        let depth = depth - 1;
        let item = |this: &mut Self| -> FieldRef { Arc::new(this.field("item", depth)) };
        match self.below(12) {
            0 => DataType::List(item(self)),
            1 => DataType::LargeList(item(self)),
            2 => DataType::ListView(item(self)),
            3 => DataType::LargeListView(item(self)),
            4 | 5 => {
                let item = item(self);
                DataType::FixedSizeList(item, self.below(4) as i32)
            }
            6 | 7 => {
                let count = self.below(4);
                DataType::Struct((0..count).map(|index| self.field(&format!("f{index}"), depth)).collect())
            }
            8 => {
                let keys = [DataType::Utf8, DataType::Int32, DataType::LargeUtf8];
                let key = Field::new("key", self.pick(&keys), false);
                let entries = Fields::from(vec![key, self.field("value", depth)]);
                DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
            }
            9 => {
                use DataType::*;
                let key = self.pick(&[Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64]);
                let values = [
                    Utf8,
                    LargeUtf8,
                    Binary,
                    LargeBinary,
                    Int16,
                    Int64,
                    UInt8,
                    Float64,
                    Utf8View,
                    FixedSizeBinary(5),
                    Date32,
                    Decimal128(38, 10),
                    Timestamp(TimeUnit::Second, None),
                ];
                DataType::Dictionary(Box::new(key), Box::new(self.pick(&values)))
            }
            10 => {
                let count = 1 + self.below(3) as i8;
                let fields: UnionFields =
                    (0..count).map(|id| (id * 2, Arc::new(self.field(&format!("u{id}"), depth)))).collect();
                DataType::Union(fields, self.pick(&[UnionMode::Dense, UnionMode::Sparse]))
            }
            _ => {
                let ends = self.pick(&[DataType::Int16, DataType::Int32, DataType::Int64]);
                let values = self.pick(&[DataType::Utf8, DataType::Int32, DataType::Float64]);
                DataType::RunEndEncoded(
                    Arc::new(Field::new("run_ends", ends, false)),
                    Arc::new(Field::new("values", values, true)),
                )
            }
        }
    }

    /// A random field, sometimes of an extension type or with metadata of its own.
    pub(crate) fn field(&mut self, name: &str, depth: usize) -> Field {
        if depth > 0 && self.one_in(6) {
            return self.extension_field(name);
        }
        let data_type = self.data_type(depth);
        // Types without a validity bitmap are always nullable.
        let nullable = match data_type {
            DataType::Null | DataType::Union(..) | DataType::RunEndEncoded(..) => true,
            _ => self.below(3) > 0,
        };
        let mut field = Field::new(name, data_type, nullable);
        if matches!(field.data_type(), DataType::Dictionary(..)) && self.one_in(2) {
            field = field.with_dict_is_ordered(true);
        }
        if self.one_in(5) {
            let note = self.pick(&TEXTS).to_owned();
            field = field.with_metadata([("note".to_owned(), note)].into());
        }
        field
    }

    /// A field of one of the hub's extension types.
    pub(crate) fn extension_field(&mut self, name: &str) -> Field {
        let nullable = self.one_in(2);
        let make = |data_type| Field::new(name, data_type, nullable);
        let with = |data_type, name, meta: Option<&str>| {
            extension::with(make(data_type), name, meta.map(str::to_owned))
        };
        match self.below(12) {
            0 => {
                let item = Field::new_list_field(self.pick(&[DataType::Float32, DataType::Float64]), false);
                with(DataType::FixedSizeList(Arc::new(item), 2), extension::COMPLEX, None)
            }
            1 => with(DataType::FixedSizeBinary(16), extension::INT128, None),
            2 => with(DataType::FixedSizeBinary(16), extension::UINT128, None),
            3 => with(DataType::FixedSizeBinary(16), extension::FLOAT128, None),
            4 => with(DataType::Utf8, extension::CHAR, None),
            5 => with(DataType::Utf8, extension::DYND_TYPE, None),
            6 => with(DataType::Utf8, extension::JSON, None),
            7 => {
                let parts = ["_0", "_1"].map(|part| self.field(part, 0));
                with(DataType::Struct(Fields::from(parts.to_vec())), extension::TUPLE, None)
            }
            8 => {
                let parts = vec![
                    Field::new("type", DataType::Utf8, false),
                    Field::new("data", DataType::Binary, false),
                ];
                with(DataType::Struct(Fields::from(parts)), extension::DYND_ARRAY, None)
            }
            9 => extension::tensor_field(name, DataType::Int32, &[2, self.below(3) as u64], nullable)
                .expect("a small tensor fits"),
            10 => {
                let meta = r#"{"width":2,"height":1,"components":[["red","uint8"]],"format":"plain"}"#;
                with(DataType::Binary, extension::IMAGE, Some(meta))
            }
            _ => {
                let entry = Field::new_list_field(
                    DataType::Struct(shape::entry_fields(DataType::Float64, 10)),
                    false,
                );
                with(DataType::LargeList(Arc::new(entry)), extension::SPARSE_ROW, None)
            }
        }
    }

    /// A random schema of up to six fields; sometimes a matrix, an array or a value.
    pub(crate) fn schema(&mut self) -> SchemaRef {
        self.schema_of(|_| true)
    }

    /// A random schema of fields that satisfy `fits`.
    pub(crate) fn schema_of(&mut self, fits: impl Fn(&Field) -> bool) -> SchemaRef {
        let schema = match self.below(10) {
            0 => shape::array_schema(self.fitting("item", &fits)),
            1 => shape::value_schema(self.fitting("value", &fits)),
            2 => {
                let value = self.pick(&[DataType::Float64, DataType::Int8, DataType::UInt32]);
                let cols = self.below(4) as u64;
                shape::dense_schema(value, None, cols).expect("a narrow matrix has a schema")
            }
            3 => {
                let value = self.pick(&[DataType::Float32, DataType::Int64]);
                shape::sparse_schema(value, None, 10)
            }
            _ => {
                let count = self.below(7);
                let fields: Vec<Field> =
                    (0..count).map(|index| self.fitting(&format!("c{index}"), &fits)).collect();
                Schema::new(fields)
            }
        };
        let fields_fit = schema.fields().iter().all(|field| fits(field));
        let schema = if fields_fit { schema } else { Schema::empty() };
        let schema =
            if self.one_in(3) { native::with(schema, "ds", serde_json::json!({"a": [1]})) } else { schema };
        let mut metadata = schema.metadata().clone();
        if self.one_in(3) {
            metadata.insert("note".to_owned(), self.pick(&TEXTS).to_owned());
        }
        Arc::new(schema.with_metadata(metadata))
    }

    fn fitting(&mut self, name: &str, fits: &impl Fn(&Field) -> bool) -> Field {
        for _ in 0..50 {
            let depth = self.below(4);
            let field = self.field(name, depth);
            if fits(&field) {
                return field;
            }
        }
        Field::new(name, DataType::Int32, true)
    }

    /// A random batch.
    pub(crate) fn batch(&mut self, schema: &SchemaRef, len: usize) -> RecordBatch {
        let columns = schema.fields().iter().map(|field| self.array(field, len)).collect();
        rows::batch(Arc::clone(schema), columns, len).expect("arrays are made for their schema")
    }

    /// Some random batches, which may include an empty one; a single row if the shape is a value.
    pub(crate) fn batches(&mut self, schema: &SchemaRef) -> Vec<RecordBatch> {
        if shape::Shape::of(schema) == shape::Shape::Value {
            return vec![self.batch(schema, 1)];
        }
        let count = self.below(4);
        (0..count)
            .map(|_| {
                let len = if self.one_in(4) { 0 } else { self.below(40) };
                self.batch(schema, len)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_comes_up_and_every_array_is_sound() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let schema = random.schema();
            for batch in random.batches(&schema) {
                for column in batch.columns() {
                    column.to_data().validate_full().unwrap();
                }
            }
            for field in schema.flattened_fields() {
                seen.insert(std::mem::discriminant(field.data_type()));
            }
        }
        assert!(seen.len() >= 38, "{} of the types came up", seen.len());
    }
}
