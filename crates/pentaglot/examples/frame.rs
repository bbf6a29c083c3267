//! Writes a BSON DataFrame with the format's own types, checks it, and reads it back.
//!
//! `cargo run --example frame`

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::sync::Arc;

use pentaglot::Source;
use pentaglot::arrow::array::{Int32Array, StringArray};
use pentaglot::formats::bsondf::{BsonColumn, Bsondf, Type, read_document, write_document};
use pentaglot::formats::{Findings, Format, ReadOptions, WriteOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kind = Type::parse("struct<city: utf8, people: int32>")?;
    println!("{kind} is {:?}", kind.to_schema()?);
    let columns = [
        BsonColumn::new("city", Type::Utf8, Arc::new(StringArray::from(vec!["Bern", "Graz"])))?,
        BsonColumn::new("people", Type::Int32, Arc::new(Int32Array::from(vec![Some(134_000), None])))?,
    ];
    let document = write_document(&columns, &WriteOptions::default().with_option("level", "9"))?;

    let open = Bsondf.open(Source::from_bytes("cities.bson", document.clone()), &ReadOptions::default())?;
    let mut findings = Findings::new(true);
    open.validate(&mut findings)?;
    println!("{} rows in {} bytes", open.summary().rows.unwrap_or(0), document.len());

    let read = read_document(document, &ReadOptions::default())?;
    assert_eq!(read, columns);
    Ok(())
}
