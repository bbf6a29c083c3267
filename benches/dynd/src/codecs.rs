//! What the codecs that DyND is compared with decode: rows as structs, and the columns made of them.

use borsh::{BorshDeserialize, BorshSerialize};
use rkyv::rancor::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, BorshSerialize, BorshDeserialize, rkyv::Archive, rkyv::Serialize)]
pub struct Fixed {
    pub a: i32,
    pub b: f64,
    pub c: i16,
    pub d: i64,
    pub e: u8,
}

#[derive(Serialize, Deserialize, BorshSerialize, BorshDeserialize, rkyv::Archive, rkyv::Serialize)]
pub struct Text {
    pub id: i64,
    pub name: String,
    pub score: f64,
}

/// [`Fixed`] in Protocol Buffers, whose smallest integers have 32 bits.
#[derive(Clone, PartialEq, prost::Message)]
struct FixedMessage {
    #[prost(int32, tag = "1")]
    a: i32,
    #[prost(double, tag = "2")]
    b: f64,
    #[prost(int32, tag = "3")]
    c: i32,
    #[prost(int64, tag = "4")]
    d: i64,
    #[prost(uint32, tag = "5")]
    e: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FixedMessages {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<FixedMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TextMessage {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(double, tag = "3")]
    score: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct TextMessages {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<TextMessage>,
}

/// The columns of [`Fixed`].
pub type FixedColumns = (Vec<i32>, Vec<f64>, Vec<i16>, Vec<i64>, Vec<u8>);

/// The columns of [`Text`]: identifiers, names one after the other, where each begins, scores.
pub type TextColumns = (Vec<i64>, String, Vec<i32>, Vec<f64>);

/// The columns of rows that are structs of any kind.
pub fn fixed_columns<'a, R>(
    rows: &'a [R],
    row: impl Fn(&'a R) -> (i32, f64, i16, i64, u8) + Copy,
) -> FixedColumns {
    let rows = rows.iter().map(row);
    let a = rows.clone().map(|row| row.0).collect();
    let b = rows.clone().map(|row| row.1).collect();
    let c = rows.clone().map(|row| row.2).collect();
    let d = rows.clone().map(|row| row.3).collect();
    (a, b, c, d, rows.map(|row| row.4).collect())
}

pub fn text_columns<'a, R>(rows: &'a [R], row: impl Fn(&'a R) -> (i64, &'a str, f64) + Copy) -> TextColumns {
    let rows = rows.iter().map(row);
    let ids = rows.clone().map(|row| row.0).collect();
    let scores = rows.clone().map(|row| row.2).collect();
    let (mut names, mut offsets) = (String::new(), vec![0]);
    for (_, name, _) in rows {
        names.push_str(name);
        offsets.push(names.len() as i32);
    }
    (ids, names, offsets, scores)
}

/// A codec and how it makes columns of the rows that it encoded.
pub type Codec<C> = (&'static str, Box<dyn Fn() -> C>);

/// The codecs that decode to the rows themselves.
fn row_codecs<R, C: 'static>(rows: &Vec<R>, columns: fn(Vec<R>) -> C) -> Vec<Codec<C>>
where
    R: Serialize + DeserializeOwned + BorshSerialize + BorshDeserialize + 'static,
{
    let bincoded = bincode::serialize(rows).unwrap();
    let postcarded = postcard::to_stdvec(rows).unwrap();
    let borshed = borsh::to_vec(rows).unwrap();
    vec![
        ("bincode", Box::new(move || columns(bincode::deserialize(&bincoded).unwrap()))),
        ("postcard", Box::new(move || columns(postcard::from_bytes(&postcarded).unwrap()))),
        ("borsh", Box::new(move || columns(borsh::from_slice(&borshed).unwrap()))),
    ]
}

pub fn fixed_codecs(rows: &Vec<Fixed>) -> Vec<Codec<FixedColumns>> {
    let columns = |rows: Vec<Fixed>| fixed_columns(&rows, |row| (row.a, row.b, row.c, row.d, row.e));
    let archived = rkyv::to_bytes::<Error>(rows).unwrap();
    let message =
        |row: &Fixed| FixedMessage { a: row.a, b: row.b, c: row.c.into(), d: row.d, e: row.e.into() };
    let messages = prost::Message::encode_to_vec(&FixedMessages { rows: rows.iter().map(message).collect() });
    let mut codecs = row_codecs(rows, columns);
    codecs.extend::<[Codec<_>; 2]>([
        (
            "rkyv, verified and read in place",
            Box::new(move || {
                let rows = rkyv::access::<rkyv::Archived<Vec<Fixed>>, Error>(&archived).unwrap();
                fixed_columns(rows, |row| {
                    (row.a.to_native(), row.b.to_native(), row.c.to_native(), row.d.to_native(), row.e)
                })
            }),
        ),
        (
            "prost",
            Box::new(move || {
                let rows = <FixedMessages as prost::Message>::decode(messages.as_slice()).unwrap().rows;
                fixed_columns(&rows, |row| (row.a, row.b, row.c as i16, row.d, row.e as u8))
            }),
        ),
    ]);
    codecs
}

pub fn text_codecs(rows: &Vec<Text>) -> Vec<Codec<TextColumns>> {
    let columns = |rows: Vec<Text>| text_columns(&rows, |row| (row.id, &row.name, row.score));
    let archived = rkyv::to_bytes::<Error>(rows).unwrap();
    let message = |row: &Text| TextMessage { id: row.id, name: row.name.clone(), score: row.score };
    let messages = prost::Message::encode_to_vec(&TextMessages { rows: rows.iter().map(message).collect() });
    let mut codecs = row_codecs(rows, columns);
    codecs.extend::<[Codec<_>; 2]>([
        (
            "rkyv, verified and read in place",
            Box::new(move || {
                let rows = rkyv::access::<rkyv::Archived<Vec<Text>>, Error>(&archived).unwrap();
                text_columns(rows, |row| (row.id.to_native(), row.name.as_str(), row.score.to_native()))
            }),
        ),
        (
            "prost",
            Box::new(move || {
                let rows = <TextMessages as prost::Message>::decode(messages.as_slice()).unwrap().rows;
                text_columns(&rows, |row| (row.id, &row.name, row.score))
            }),
        ),
    ]);
    codecs
}
