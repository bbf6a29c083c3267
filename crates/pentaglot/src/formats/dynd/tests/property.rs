//! Any type, any value: one byte string, and no other is accepted.

use proptest::prelude::*;

use super::super::types::Missing;
use super::super::*;
use super::hub::{array_any, check_round_trip, open, raw};
use crate::Limits;
use crate::formats::Findings;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z_][a-z0-9]{0,4}", 1 => "\\PC{0,4}", 1 => "[\\x00-\\x1f'\\\\/\"é😀]{0,3}"]
}

fn leaf() -> impl Strategy<Value = Type> {
    let words = [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "int128",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "uint128",
        "float16",
        "float32",
        "float64",
        "float128",
        "complex[float16]",
        "complex[float32]",
        "complex[float64]",
        "complex[float128]",
        "void",
        "string",
        "bytes",
        "type",
        "json",
        "date",
        "time",
        "datetime[tz='UTC']",
        "char",
        "char['ascii']",
        "char['ucs2']",
        "bytes[3]",
        "bytes[8, align=4]",
        "fixed_string[5]",
        "fixed_string[3, 'utf16']",
        "fixed_string[2, 'utf32']",
        "fixed_string[2, 'ucs2']",
        "array[Any]",
        "merkle[Any]",
        "storage[2 * 3 * int16, axis=[1, 0]]",
        "storage[2 * 1 * 3 * ?bool, axis=[2, 0, 1]]",
    ];
    (0..words.len()).prop_map(move |index| words[index].parse().unwrap())
}

fn distinct(fields: Vec<(String, Type)>) -> Type {
    let mut seen = std::collections::HashSet::new();
    Type::Struct(fields.into_iter().filter(|(name, _)| seen.insert(name.clone())).collect())
}

pub(super) fn any_type() -> impl Strategy<Value = Type> {
    leaf().prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            (0..4u64, inner.clone()).prop_map(|(count, of)| Type::Fixed(count, Box::new(of))),
            inner.clone().prop_map(|of| Type::Var(Box::new(of))),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Type::Tuple),
            prop::collection::vec((name(), inner.clone()), 0..4).prop_map(distinct),
            inner.clone().prop_map(|of| Type::Pointer(Box::new(of))),
            inner.prop_map(|of| match of {
                Type::Option(_) => of,
                of => Type::Option(Box::new(of)),
            }),
        ]
    })
}

fn text(max: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(any::<char>(), 0..max).prop_map(|chars| chars.into_iter().collect())
}

fn int(bits: u32) -> BoxedStrategy<Value> {
    let spare = 128 - bits;
    let edge = prop_oneof![Just(i128::MIN >> spare), Just(i128::MAX >> spare), Just(0), Just(-1)];
    prop_oneof![3 => any::<i128>().prop_map(move |value| value << spare >> spare), 1 => edge]
        .prop_map(Value::Int)
        .boxed()
}

fn bits(width: u8) -> BoxedStrategy<u128> {
    let spare = 128 - 8 * u32::from(width);
    prop_oneof![3 => any::<u128>(), 1 => Just(u128::MAX), 1 => Just(0)]
        .prop_map(move |bits| bits >> spare)
        .boxed()
}

/// A value of the type.
pub(super) fn value_for(ty: &Type) -> BoxedStrategy<Value> {
    match ty {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int(width) => int(8 * u32::from(width.bytes())),
        Type::Date => int(32),
        Type::Time(_) | Type::Datetime(_) => int(64),
        Type::Uint(width) => bits(width.bytes()).prop_map(Value::Uint).boxed(),
        Type::Float(width) => bits(width.bytes()).prop_map(Value::Float).boxed(),
        Type::Complex(width) => (bits(width.bytes()), bits(width.bytes()))
            .prop_map(|(re, im)| Value::Complex(Box::new([re, im])))
            .boxed(),
        Type::Void => Just(Value::Void).boxed(),
        Type::Char(Encoding::Ascii) => (0..128u8).prop_map(|c| Value::Char(c.into())).boxed(),
        Type::Char(Encoding::Ucs2) => {
            any::<u16>().prop_map(|c| Value::Char(char::from_u32(c.into()).unwrap_or('x'))).boxed()
        }
        Type::Char(_) => any::<char>().prop_map(Value::Char).boxed(),
        Type::String | Type::Json => text(6).prop_map(Value::String).boxed(),
        Type::FixedString { .. } => {
            prop_oneof!["[a-zé]{0,2}", Just(String::new())].prop_map(Value::String).boxed()
        }
        Type::Bytes { .. } => prop::collection::vec(any::<u8>(), 0..200).prop_map(Value::Bytes).boxed(),
        Type::FixedBytes { size, .. } => {
            prop::collection::vec(any::<u8>(), *size as usize).prop_map(Value::Bytes).boxed()
        }
        Type::Type => any_type().prop_map(|ty| Value::Type(Box::new(ty))).boxed(),
        Type::Fixed(count, of) => {
            prop::collection::vec(value_for(of), *count as usize).prop_map(Value::List).boxed()
        }
        Type::Var(of) => prop::collection::vec(value_for(of), 0..4).prop_map(Value::List).boxed(),
        Type::Tuple(types) => types.iter().map(value_for).collect::<Vec<_>>().prop_map(Value::List).boxed(),
        Type::Struct(fields) => {
            fields.iter().map(|(_, ty)| value_for(ty)).collect::<Vec<_>>().prop_map(Value::List).boxed()
        }
        Type::Option(of) if of.missing() == Missing::Always => Just(Value::Missing).boxed(),
        Type::Option(of) => {
            let ty = ty.clone();
            // An available value that collides with the sentinel has no serialization.
            let some = value_for(of).prop_map(move |value| {
                let value = Value::some(value);
                if write_value(&ty, &value).is_ok() { value } else { Value::Missing }
            });
            prop_oneof![1 => Just(Value::Missing), 3 => some].boxed()
        }
        Type::Pointer(of) | Type::Storage { of, .. } => value_for(of),
        Type::Array(_) => leaf()
            .prop_filter("no array in an array in an array", |ty| !matches!(ty, Type::Array(_)))
            .prop_flat_map(|ty| value_for(&ty).prop_map(move |value| Value::array(ty.clone(), value)))
            .boxed(),
        Type::Merkle(_) => (leaf(), any::<[u8; 32]>())
            .prop_map(|(ty, digest)| Value::merkle(ty, blake3_multihash(&digest)))
            .boxed(),
        Type::Pattern(_) => panic!("no data has this type"),
    }
}

fn typed() -> impl Strategy<Value = (Type, Value)> {
    any_type().prop_flat_map(|ty| value_for(&ty).prop_map(move |value| (ty.clone(), value)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_text_reads_back(ty in any_type()) {
        let text = ty.to_string();
        prop_assert_eq!(text.parse::<Type>().unwrap(), ty.clone());
        prop_assert!(Type::parse_canonical(&text, &Limits::default()).is_ok());
        prop_assert!(ty.matches(&ty) && "Any".parse::<Type>().unwrap().matches(&ty));
    }

    #[test]
    fn values_have_one_serialization((ty, value) in typed()) {
        let bytes = write_value(&ty, &value).unwrap();
        prop_assert_eq!(read_value(&bytes, &ty, &Limits::default()).unwrap(), value.clone());
        let cbor = write_cbor(&ty, &value).unwrap();
        prop_assert_eq!(read_cbor(&cbor, &Limits::default()).unwrap(), (ty.clone(), value));
        if let Some(size) = ty.fixed_size() {
            prop_assert_eq!(size, bytes.len() as u64);
        }
    }

    #[test]
    fn the_hub_keeps_every_byte((ty, value) in typed()) {
        check_round_trip(&ty, &value);
    }

    /// Any accepted bytes are serialized to the same bytes again.
    #[test]
    fn no_other_bytes_are_a_value((ty, value) in typed(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3)) {
        let mut bytes = write_value(&ty, &value).unwrap();
        if !bytes.is_empty() {
            for (at, byte) in flips {
                let at = at.index(bytes.len());
                bytes[at] ^= byte;
            }
        }
        if let Ok(value) = read_value(&bytes, &ty, &Limits::default()) {
            prop_assert_eq!(write_value(&ty, &value).unwrap(), bytes.clone());
        }
        // The hub agrees on which bytes are a value.
        let text = ty.to_string();
        let is_value = read_value(&bytes, &ty, &Limits::default()).is_ok();
        let read = open(&bytes, &raw(&text)).and_then(|document| {
            let mut findings = Findings::new(false);
            document.validate(&mut findings)?;
            assert_eq!(findings.is_valid(), is_value, "{text}: {:?}", findings.list());
            Ok(document.all_rows()?.try_for_each(|batch| batch.map(drop))
                .map_err(crate::Error::from))
        });
        match read {
            Ok(Ok(())) => prop_assert!(is_value, "{}", text),
            Ok(Err(error)) => prop_assert!(!is_value || error.kind() == crate::ErrorKind::Lossy, "{}: {}", text, error),
            Err(error) => prop_assert!(!is_value, "{}: {}", text, error),
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let limits = Limits { max_alloc: 1 << 20, ..Limits::default() };
        for text in ["array[Any]", "var * {a: string, b: ?var * bool}", "var * array[Any]", "?bytes"] {
            let ty: Type = text.parse().unwrap();
            if let Ok(value) = read_value(&bytes, &ty, &limits) {
                prop_assert_eq!(write_value(&ty, &value).unwrap(), bytes.clone());
            }
        }
        if let Ok((ty, value)) = read_cbor(&bytes, &limits) {
            prop_assert_eq!(write_cbor(&ty, &value).unwrap(), bytes);
        }
    }

    #[test]
    fn any_text_is_parsed_without_a_panic(text in "[a-z0-9\\[\\](){}*?:,.' =>#-]{0,40}") {
        if let Ok(ty) = text.parse::<Type>() {
            prop_assert_eq!(ty.to_string().parse::<Type>().unwrap(), ty);
        }
    }
}

#[test]
fn single_bit_flips_of_whole_files_never_panic() {
    let files = [
        (
            "var * {x: ?int32, y: string, z: bool}",
            Value::List(vec![Value::List(vec![
                Value::some(Value::Int(7)),
                Value::String("héllo".into()),
                Value::Bool(true),
            ])]),
        ),
        (
            "(array[Any], 2 * char, ?3 * int8)",
            Value::List(vec![
                Value::array(
                    "2 * type".parse().unwrap(),
                    Value::List(vec![Value::Type(Box::new(Type::Bool)), Value::Type(Box::new(Type::Void))]),
                ),
                Value::List(vec![Value::Char('a'), Value::Char('é')]),
                Value::Missing,
            ]),
        ),
    ];
    let limits = Limits { max_alloc: 16 << 20, ..Limits::default() };
    for (text, value) in files {
        let ty: Type = text.parse().unwrap();
        for (bytes, options) in [
            (array_any(&ty, &value), ReadOptions::default()),
            (write_cbor(&ty, &value).unwrap(), super::hub::dialect("cbor")),
        ] {
            let options = ReadOptions { budget: limits.budget(), ..options };
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let Ok(document) = open(&bytes, &options) else { continue };
                let mut findings = Findings::new(false);
                document.validate(&mut findings).ok();
                if let Ok(rows) = document.all_rows() {
                    let all_good = rows.map(|batch| batch.is_ok()).fold(true, |all, good| all & good);
                    assert_eq!(all_good, findings.is_valid(), "{text}, bit {bit}: {:?}", findings.list());
                }
            }
            for end in 0..bytes.len() {
                let read = open(&bytes[..end], &options)
                    .and_then(|document| super::hub::batches(document.all_rows()?));
                assert!(read.is_err(), "{text} cut at {end}");
            }
        }
    }
}
