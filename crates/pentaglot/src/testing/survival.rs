//! Arrow IPC and Parquet preserve everything that the hub can represent.

#![cfg(all(feature = "arrow_ipc", feature = "parquet"))]

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use super::arbitrary::Random;
use super::conformance::Suite;
use crate::formats::Format;
use crate::formats::arrow_ipc::{ArrowFile, ArrowStream};
use crate::formats::parquet::Parquet;
use crate::hub::{extension, native, shape};

fn survives(schema: Schema, rows: &[usize]) {
    let schema: SchemaRef = Arc::new(schema);
    let mut random = Random::new(7);
    let batches: Vec<_> = rows.iter().map(|rows| random.batch(&schema, *rows)).collect();
    for format in [&ArrowFile as &dyn Format, &ArrowStream, &Parquet] {
        let id = format.info().id;
        assert!(Suite::new(format).keeping_metadata().check(&schema, &batches), "{id} refuses {schema:#?}");
    }
}

#[test]
fn matrices_keep_their_shape() {
    for cols in [0, 1, 5] {
        survives(shape::dense_schema(DataType::Float32, Some(7), cols).unwrap(), &[3, 4]);
        survives(shape::dense_schema(DataType::Int8, Some(0), cols).unwrap(), &[]);
    }
    survives(shape::sparse_schema(DataType::Float64, Some(9), 10), &[5, 4]);
    survives(shape::sparse_schema(DataType::Int16, Some(2), 1 << 33), &[2]);
}

#[test]
fn arrays_and_values_keep_their_shape_and_native_type() {
    let item = Field::new("x", DataType::Int16, true);
    survives(native::with(shape::array_schema(item.clone()), "dynd", "5 * ?int16"), &[5]);
    survives(native::with(shape::value_schema(item), "dynd", "?int16"), &[1]);
}

#[test]
fn void_and_options_of_void_stay_apart() {
    survives(
        Schema::new(vec![
            Field::new("void", DataType::Null, false),
            Field::new("maybe", DataType::Null, true),
        ]),
        &[3],
    );
    let some = Field::new("some", DataType::Int32, true);
    survives(
        Schema::new(vec![Field::new("o", DataType::Struct(Fields::from(vec![some])), true)]),
        &[6, 0, 5],
    );
}

#[test]
fn every_extension_type_survives() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let field = random.extension_field("x");
        let parts = field.metadata().len();
        assert!(parts > 0 && extension::name(&field).is_some());
        let unsupported = |field: &Field| matches!(field.data_type(), DataType::Union(..));
        if !unsupported(&field) {
            survives(Schema::new(vec![field]), &[4, 9]);
        }
    }
}

#[test]
fn zones_and_ordered_dictionaries_survive() {
    let dictionary = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8));
    let zone = |zone: &str| DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, Some(zone.into()));
    survives(
        Schema::new(vec![
            Field::new("d", dictionary, true).with_dict_is_ordered(true),
            Field::new("p", zone("Europe/Paris"), true),
            Field::new("o", zone("+07:30"), false),
        ]),
        &[20],
    );
}
