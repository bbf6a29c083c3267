use std::io::Read;

use proptest::prelude::*;

use super::{JsonKind, Scanner};
use crate::error::{ErrorKind, Result};
use crate::limits::{Budget, Limits};

fn scanner(text: &[u8]) -> Scanner<&[u8]> {
    Scanner::new(text, Budget::default())
}

/// Returns one byte at a time, so that every token crosses the end of the window.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.take(1).read(buffer).inspect(|count| self.0 = &self.0[*count..])
    }
}

/// A value as a serde_json value, read by our scanner.
fn read<R: Read>(scanner: &mut Scanner<R>) -> Result<serde_json::Value> {
    use serde_json::Value;
    Ok(match scanner.peek()? {
        JsonKind::Null => {
            scanner.null()?;
            Value::Null
        }
        JsonKind::Bool => Value::Bool(scanner.bool()?),
        JsonKind::Number => {
            let text = scanner.number()?.to_owned();
            serde_json::from_str(&text).unwrap()
        }
        JsonKind::String => Value::String(scanner.str()?.to_owned()),
        JsonKind::Array => {
            let mut items = Vec::new();
            scanner.begin_array()?;
            while scanner.next_element()? {
                items.push(read(scanner)?);
            }
            Value::Array(items)
        }
        JsonKind::Object => {
            let mut fields = serde_json::Map::new();
            scanner.begin_object()?;
            while let Some(key) = scanner.next_key()? {
                let key = key.to_owned();
                fields.insert(key, read(scanner)?);
            }
            Value::Object(fields)
        }
    })
}

fn read_all(text: &[u8]) -> Result<serde_json::Value> {
    let mut scanner = scanner(text);
    let value = read(&mut scanner)?;
    scanner.end()?;
    Ok(value)
}

const SAMPLE: &str = r#" { "a" : [1, -2.5e-3, 0, -0.0, 123456789012345678901234567890] ,
    "b\u00e9\n":"x\"\\\/\b\f\n\r\t\u20ac\ud83d\ude00", "ключ": {}, "n":null,"t":true ,"f":false,"e":[ ],"o":[[],[{}]]}
"#;

#[test]
fn whole_documents_agree_with_serde_json_even_byte_by_byte() {
    let expected: serde_json::Value = serde_json::from_str(SAMPLE).unwrap();
    assert_eq!(read_all(SAMPLE.as_bytes()).unwrap(), expected);
    let mut scanner = Scanner::new(Drip(SAMPLE.as_bytes()), Budget::default());
    assert_eq!(read(&mut scanner).unwrap(), expected);
    scanner.end().unwrap();
}

#[test]
fn truncation_at_every_byte_is_an_error() {
    let text = SAMPLE.trim_end().as_bytes();
    for end in 0..text.len() {
        let error = read_all(&text[..end]).unwrap_err();
        assert!(error.offset().is_some(), "{end}: {error}");
        let mut skipper = scanner(&text[..end]);
        assert!(skipper.skip_value().is_err());
    }
}

#[test]
fn every_single_byte_change_agrees_with_serde_json() {
    let text = br#"{"a": [1, -2.5e-3, "x\u00e9\n", true], "b": null}"#;
    for place in 0..text.len() {
        for byte in *b"\"\\/,:[]{} \n\r\t\x0b\x0c\x00\x1f\x7f\x80\xc3\xa9\xff01-+.eEunft" {
            let mut changed = text.to_vec();
            changed[place] = byte;
            let ours = read_all(&changed);
            let theirs = serde_json::from_slice::<serde_json::Value>(&changed);
            assert_eq!(
                ours.as_ref().ok(),
                theirs.as_ref().ok(),
                "{:?}: {ours:?} {theirs:?}",
                changed.escape_ascii().to_string()
            );
            let mut drip = Scanner::new(Drip(&changed), Budget::default());
            assert_eq!(read(&mut drip).and_then(|_| drip.end()).is_ok(), theirs.is_ok());
            let mut skipper = scanner(&changed);
            assert_eq!(skipper.skip_value().and_then(|()| skipper.end()).is_ok(), theirs.is_ok());
        }
    }
}

#[test]
fn errors_say_what_and_where() {
    let cases: &[(&[u8], &str)] = &[
        (b"", "at byte 0: expected a value, found the end of the input"),
        (b"[1,]", "at byte 3: expected a value, found `]`"),
        (b"[1 2]", "at byte 3: expected `,` or `]`, found a number"),
        (b"{\"a\" 1}", "at byte 5: expected `:`, found a number"),
        (b"{1:2}", "at byte 1: expected a key, found a number"),
        (b"{\"a\":1,}", "at byte 7: expected a key, found `}`"),
        (b"[01]", "at byte 1: expected a number, found `01`"),
        (b"-", "at byte 0: expected a number, found `-`"),
        (b"1.", "at byte 0: expected a number, found `1.`"),
        (b"nul", "at byte 0: expected null, found `n`"),
        (b"\"a\nb\"", "at byte 2: expected an escape, found control character 0x0a"),
        (b"\"\\ud800\"", "at byte 1: expected a pair of surrogates, found a lone `\\ud800`"),
        (b"\"\\udc00\"", "at byte 1: expected a pair of surrogates, found a lone `\\udc00`"),
        (b"\"\\ud800\\n\"", "at byte 1: expected a pair of surrogates, found a lone `\\ud800`"),
        (b"\"\\q\"", "at byte 1: expected an escape (\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u), found `\\q`"),
        (b"\"ab\xff\"", "at byte 3: expected UTF-8, found other bytes"),
        (b"\"abc", "at byte 0: expected a string with its closing quote, found the end of the input"),
        (b"1 2", "at byte 2: expected the end of the input, found a number"),
        (b"\x00", "at byte 0: expected a value, found byte 0x00"),
    ];
    for (text, expected) in cases {
        assert_eq!(read_all(text).unwrap_err().to_string(), *expected);
    }
}

#[test]
fn depth_is_limited_without_recursion() {
    let mut limits = Limits::default();
    limits.max_depth = 3;
    let mut deep = Scanner::new(&b"[[[[]]]]"[..], limits.budget());
    let error = deep.skip_value().unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Limit, Some(3)));
    limits.max_depth = u32::MAX;
    let text = vec![b'['; 1 << 20];
    let mut deep = Scanner::new(&text[..], limits.budget());
    assert_eq!(deep.skip_value().unwrap_err().kind(), ErrorKind::Truncated);
}

#[test]
fn integers_keep_all_digits() {
    assert_eq!(scanner(b"18446744073709551615").u64().unwrap(), u64::MAX);
    assert!(scanner(b"18446744073709551616").u64().is_err());
    assert!(scanner(b"-1").u64().is_err());
    assert_eq!(scanner(b"-9223372036854775808").i64().unwrap(), i64::MIN);
    assert!(scanner(b"9223372036854775808").i64().is_err());
    assert_eq!(scanner(b"-170141183460469231731687303715884105728").i128().unwrap(), i128::MIN);
    assert_eq!(scanner(b"340282366920938463463374607431768211455").u128().unwrap(), u128::MAX);
    assert!(scanner(b"340282366920938463463374607431768211456").u128().is_err());
    for text in ["1.0", "1e3", "00", "-", "\"1\"", "1x"] {
        assert!(scanner(text.as_bytes()).i64().is_err(), "{text}");
    }
    assert_eq!(scanner(b"-0").i64().unwrap(), 0);
}

#[test]
fn floats_are_rounded_correctly_at_their_own_width() {
    for text in [
        "0.1",
        "1e23",
        "9007199254740993",
        "5e-324",
        "2.2250738585072011e-308",
        "1.7976931348623157e308",
        "-0.0",
        "123456789.125",
        "3e22",
        "0.000001",
        "1E+2",
        "89255.0e-22",
    ] {
        assert_eq!(scanner(text.as_bytes()).f64().unwrap().to_bits(), text.parse::<f64>().unwrap().to_bits());
    }
    // Rounded to float64 first, this becomes 16777216.
    assert_eq!(scanner(b"16777217.0000001").f32().unwrap(), 16777218.0);
    assert!(scanner(b"1e400").f64().is_err());
    assert!(scanner(b"1e39").f32().is_err());
}

#[test]
fn known_keys_are_passed_over_in_one_step() {
    let mut scanner = scanner(br#"{"a":1, "b": 2,"c":3}"#);
    scanner.begin_object().unwrap();
    scanner.peek_byte().unwrap();
    assert!(scanner.skip_key(b"\"a\""));
    assert_eq!(scanner.u64().unwrap(), 1);
    assert!(!scanner.skip_key(b"\"c\""));
    assert!(scanner.skip_key(b"\"b\""));
    assert_eq!(scanner.u64().unwrap(), 2);
    assert_eq!(scanner.next_key().unwrap(), Some("c"));
    assert_eq!(scanner.u64().unwrap(), 3);
    assert!(!scanner.skip_key(b"\"d\""));
    assert_eq!(scanner.next_key().unwrap(), None);
}

#[test]
fn a_value_is_captured_with_its_digits_and_repeated_keys() {
    let mut text = Vec::new();
    let mut scanner = scanner(br#" {"a": 1.50, "a" : [ ], "b":[1 ,{"x":"\u0041\n"}, [] ] } 7"#);
    scanner.capture_value(&mut text).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), r#"{"a":1.50,"a":[],"b":[1,{"x":"A\n"},[]]}"#);
    assert_eq!(scanner.u64().unwrap(), 7);
}

#[test]
fn memory_stays_bounded_whatever_the_document_is() {
    let mut limits = Limits::default();
    limits.max_alloc = 200 << 10;
    let mut long = vec![b'['];
    long.extend(b"1,\"abc\",".repeat(200_000));
    long.extend(b"0]");
    Scanner::new(&long[..], limits.budget()).skip_value().unwrap();
    let mut string = vec![b'"'; 1 << 20];
    string[1..].fill(b'a');
    string.push(b'"');
    let error = Scanner::new(&string[..], limits.budget()).str().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    let number = vec![b'1'; 1 << 20];
    let error = Scanner::new(&number[..], limits.budget()).number().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn most_numbers_of_text_files_are_short_decimals() {
    for text in ["0", "12.5", "-0.0", "-17", "100.0001", "00.5", "9007199254740991"] {
        assert_eq!(super::short_decimal(text.as_bytes()), text.parse().ok(), "{text}");
    }
    for text in ["", "-", ".5", "5.", "1e3", "+1", "1.2.3", "9007199254740993", "0.00000000000000000001"] {
        assert_eq!(super::short_decimal(text.as_bytes()), None, "{text}");
    }
}

proptest! {
    #[test]
    fn short_decimals_are_those_of_the_standard_parser(
        text in prop_oneof!["-?[0-9]{0,12}[.]?[0-9]{0,12}", "[-0-9.e+]{0,8}", "-?0*[0-9]{1,3}[.]0*[0-9]{1,3}"],
    ) {
        if let Some(value) = super::short_decimal(text.as_bytes()) {
            prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{}", text);
        }
    }

    #[test]
    fn strings_come_back(text in any::<String>()) {
        let json = serde_json::to_string(&text).unwrap();
        let mut whole = scanner(json.as_bytes());
        prop_assert_eq!(whole.str().unwrap(), &text);
        let mut drip = Scanner::new(Drip(json.as_bytes()), Budget::default());
        prop_assert_eq!(drip.str().unwrap(), &text);
        let mut ours = Vec::new();
        super::write_string(&mut ours, &text);
        prop_assert_eq!(String::from_utf8(ours).unwrap(), json);
    }

    #[test]
    fn floats_come_back(value in any::<f64>()) {
        prop_assume!(value.is_finite());
        let json = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(scanner(json.as_bytes()).f64().unwrap().to_bits(), value.to_bits());
    }

    #[test]
    fn integers_come_back(value in any::<i64>()) {
        prop_assert_eq!(scanner(value.to_string().as_bytes()).i64().unwrap(), value);
    }
}
