//! Values as JSON text, in the forms that the command prints.

use super::types::{FloatWidth, Type, Zone};
use super::value::{Value, read_value};
use crate::error::Result;
use crate::hub::json::{Float, special_float};
use crate::limits::Limits;
use crate::wire::json::write_string;

/// The JSON of an `array[T]` value, from its type's text and its data (the fields `type` and `data` of the extension
/// `pentaglot.dynd_array`): `{"type": …, "value": …}`.
///
/// ```
/// use pentaglot::{Limits, formats::dynd::array_json};
/// let json = array_json("2 * int16", &[1, 0, 2, 0], &Limits::default())?;
/// assert_eq!(json, r#"{"type":"2 * int16","value":[1,2]}"#);
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub fn array_json(ty: &str, data: &[u8], limits: &Limits) -> Result<String> {
    let ty = Type::parse_within(ty, limits)?;
    let value = read_value(data, &ty, limits)?;
    let mut out = String::new();
    write_array(&ty, &value, &mut out);
    Ok(out)
}

/// Appends the JSON of an `array[T]` value's data alone: the function for the hub's JSON writer
/// ([`JsonOptions::dynd_value`](crate::hub::json::JsonOptions)).
pub fn write_value_json(ty: &str, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let limits = Limits::default();
    let ty = Type::parse_within(ty, &limits)?;
    let value = read_value(data, &ty, &limits)?;
    out.extend_from_slice(value_json(&ty, &value).as_bytes());
    Ok(())
}

/// The JSON of a value.
pub(super) fn value_json(ty: &Type, value: &Value) -> String {
    let mut out = String::new();
    write(ty, value, &mut out);
    out
}

fn write_array(ty: &Type, value: &Value, out: &mut String) {
    out.push_str("{\"type\":");
    push_text(&ty.to_string(), out);
    out.push_str(",\"value\":");
    write(ty, value, out);
    out.push('}');
}

fn push_text(text: &str, out: &mut String) {
    let mut bytes = Vec::new();
    write_string(&mut bytes, text);
    out.push_str(&String::from_utf8_lossy(&bytes));
}

fn write_list<'v>(items: impl Iterator<Item = (&'v Type, &'v Value)>, out: &mut String) {
    out.push('[');
    for (index, (ty, item)) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(ty, item, out);
    }
    out.push(']');
}

fn write(ty: &Type, value: &Value, out: &mut String) {
    match (ty, value) {
        (Type::Pointer(of) | Type::Storage { of, .. }, value) => write(of, value, out),
        (Type::Option(of), Value::Some(value)) => write(of, value, out),
        (_, Value::Missing | Value::Void) => out.push_str("null"),
        (_, Value::Bool(value)) => out.push_str(if *value { "true" } else { "false" }),
        (Type::Date, Value::Int(days)) => match date(*days) {
            Some(text) => push_text(&text, out),
            None => out.push_str(&days.to_string()),
        },
        (Type::Time(_), Value::Int(ticks)) => match time(*ticks) {
            Some(text) => push_text(&text, out),
            None => out.push_str(&ticks.to_string()),
        },
        (Type::Datetime(zone), Value::Int(ticks)) => {
            let (days, rest) = (ticks.div_euclid(TICKS_PER_DAY), ticks.rem_euclid(TICKS_PER_DAY));
            match (date(days), time(rest)) {
                (Some(date), Some(time)) => {
                    let zone = if *zone == Zone::Utc { "Z" } else { "" };
                    push_text(&format!("{date}T{time}{zone}"), out);
                }
                _ => out.push_str(&ticks.to_string()),
            }
        }
        (_, Value::Int(value)) => out.push_str(&value.to_string()),
        (_, Value::Uint(value)) => out.push_str(&value.to_string()),
        (Type::Float(width), Value::Float(bits)) => out.push_str(&float(*width, *bits)),
        (Type::Complex(width), Value::Complex(parts)) => {
            let [re, im] = parts.as_ref();
            out.push_str(&format!("[{},{}]", float(*width, *re), float(*width, *im)));
        }
        (_, Value::Char(c)) => push_text(c.encode_utf8(&mut [0; 4]), out),
        (_, Value::String(text)) => push_text(text, out),
        (_, Value::Type(ty)) => push_text(&ty.to_string(), out),
        (_, Value::Bytes(bytes)) => {
            out.push('"');
            out.push_str(&base64_simd::STANDARD.encode_to_string(bytes));
            out.push('"');
        }
        (Type::Fixed(_, of) | Type::Var(of), Value::List(items)) => {
            write_list(items.iter().map(|item| (of.as_ref(), item)), out);
        }
        (Type::Tuple(types), Value::List(items)) => write_list(types.iter().zip(items), out),
        (Type::Struct(fields), Value::List(items)) => {
            out.push('{');
            for (index, ((name, ty), item)) in fields.iter().zip(items).enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_text(name, out);
                out.push(':');
                write(ty, item, out);
            }
            out.push('}');
        }
        (_, Value::Array(array)) => {
            let (stored, value) = array.as_ref();
            write_array(stored, value, out);
        }
        (_, Value::Merkle(link)) => {
            let (stored, hash) = link.as_ref();
            out.push_str("{\"type\":");
            push_text(&stored.to_string(), out);
            out.push_str(",\"hash\":\"");
            out.push_str(&base64_simd::STANDARD.encode_to_string(hash));
            out.push_str("\"}");
        }
        // A value that is not of its type, which `read_value` never returns.
        _ => out.push_str("null"),
    }
}

/// The text of a float of any width; a float128 is printed as its bits.
fn float(width: FloatWidth, bits: u128) -> String {
    fn text(value: impl Float) -> String {
        if let Some(special) = special_float(value.widen()) {
            return format!("\"{special}\"");
        }
        let mut out = Vec::new();
        value.write_finite(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }
    match width {
        FloatWidth::W16 => text(half::f16::from_bits(u16::try_from(bits).unwrap_or(0))),
        FloatWidth::W32 => text(f32::from_bits(u32::try_from(bits).unwrap_or(0))),
        FloatWidth::W64 => text(f64::from_bits(u64::try_from(bits).unwrap_or(0))),
        FloatWidth::W128 => format!("\"0x{bits:032x}\""),
    }
}

const TICKS_PER_SECOND: i128 = 10_000_000;
const TICKS_PER_DAY: i128 = 86_400 * TICKS_PER_SECOND;

/// A day of the years 0000 to 9999 (proleptic Gregorian), by the civil-from-days algorithm.
fn date(days: i128) -> Option<String> {
    let shifted = i64::try_from(days).ok()?.checked_add(719_468)?;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (0..=9999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}

fn time(ticks: i128) -> Option<String> {
    if !(0..TICKS_PER_DAY).contains(&ticks) {
        return None;
    }
    let (seconds, fraction) = (ticks / TICKS_PER_SECOND, ticks % TICKS_PER_SECOND);
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction > 0 {
        text.push_str(format!(".{fraction:07}").trim_end_matches('0'));
    }
    Some(text)
}
