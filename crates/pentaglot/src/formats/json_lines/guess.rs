//! What the first rows tell: whether this is JSON lines, and of what types.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};

use crate::error::{ErrorKind, Result};
use crate::formats::{Confidence, Head};
use crate::hub::extension;
use crate::hub::json::decode::{MIXED_KEY, is_special_float};
use crate::limits::{Budget, Reservation};
use crate::wire::json::{JsonKind as Kind, Scanner};
use crate::wire::sample::SAMPLE_ROWS;

/// A first line that is one whole object is likely ours; a document `{"type":…,"value":…}` belongs to others first.
pub(super) fn detect(head: &Head<'_>) -> Confidence {
    let bytes = head.bytes();
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if text.first() != Some(&b'{') {
        return Confidence::No;
    }
    let end = text.iter().position(|byte| *byte == b'\n');
    let line = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    let mut scanner = Scanner::new(line, Budget::default());
    let mut keys = Vec::new();
    let parsed = object_keys(&mut scanner, &mut keys).and_then(|()| scanner.end());
    match parsed {
        Ok(())
            if keys.len() == 2 && keys.contains(&"type".to_owned()) && keys.contains(&"value".to_owned()) =>
        {
            Confidence::Possible
        }
        Ok(()) => Confidence::Likely,
        // A first row that is longer than what detection sees.
        Err(error)
            if error.kind() == ErrorKind::Truncated
                && end.is_none()
                && head.len() != Some(bytes.len() as u64) =>
        {
            Confidence::Possible
        }
        Err(_) => Confidence::No,
    }
}

fn object_keys<R: Read>(scanner: &mut Scanner<R>, keys: &mut Vec<String>) -> Result<()> {
    scanner.begin_object()?;
    while let Some(key) = scanner.next_key()? {
        keys.push(key.to_owned());
        scanner.skip_value()?;
    }
    Ok(())
}

/// What was seen of the values in one place.
#[derive(Default)]
struct Seen {
    bool: bool,
    /// Whole numbers: the least and the most.
    whole: Option<(i128, u128)>,
    /// Whole numbers past 128 bits.
    huge: bool,
    fraction: bool,
    /// `"NaN"`, `"Infinity"`, `"-Infinity"`.
    special: bool,
    string: bool,
    items: Option<Box<Seen>>,
    keys: Option<Keys>,
}

/// What a key costs beside its text: what was seen of its values, its place in the index, its field.
const KEY_BYTES: u64 = 512;

#[derive(Default)]
struct Keys {
    names: Vec<String>,
    values: Vec<Seen>,
    index: HashMap<String, usize>,
    /// Pays for the keys.
    held: Option<Reservation>,
}

impl Keys {
    fn read<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.begin_object()?;
        while let Some(key) = scanner.next_key()? {
            let index = match self.index.get(key) {
                Some(index) => *index,
                None => {
                    let (key, index) = (key.to_owned(), self.names.len());
                    let held = self.held.get_or_insert_with(|| scanner.budget().reservation());
                    held.grow(KEY_BYTES + 2 * key.len() as u64)?;
                    self.names.push(key.clone());
                    self.values.push(Seen::default());
                    self.index.insert(key, index);
                    index
                }
            };
            match self.values.get_mut(index) {
                Some(seen) => seen.read(scanner)?,
                None => scanner.skip_value()?,
            }
        }
        Ok(())
    }

    fn fields(&self) -> Fields {
        self.names.iter().zip(&self.values).map(|(name, seen)| seen.field(name)).collect()
    }
}

impl Seen {
    fn read<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        match scanner.peek()? {
            Kind::Null => scanner.null()?,
            Kind::Bool => {
                scanner.bool()?;
                self.bool = true;
            }
            Kind::Number => {
                let text = scanner.number()?;
                if text.contains(['.', 'e', 'E']) {
                    self.fraction = true;
                } else if let Ok(value) = text.parse::<i128>() {
                    let most = u128::try_from(value).unwrap_or(0);
                    self.include(value, most);
                } else if let Ok(value) = text.parse::<u128>() {
                    self.include(i128::MAX, value);
                } else {
                    self.huge = true;
                }
            }
            Kind::String => {
                let special = is_special_float(scanner.str_bytes()?);
                self.special |= special;
                self.string |= !special;
            }
            Kind::Array => {
                let items = self.items.get_or_insert_default();
                scanner.begin_array()?;
                while scanner.next_element()? {
                    items.read(scanner)?;
                }
            }
            Kind::Object => self.keys.get_or_insert_default().read(scanner)?,
        }
        Ok(())
    }

    fn include(&mut self, least: i128, most: u128) {
        let (old_least, old_most) = self.whole.unwrap_or((least, most));
        self.whole = Some((old_least.min(least), old_most.max(most)));
    }

    fn field(&self, name: &str) -> Field {
        let plain = |data_type| Field::new(name, data_type, true);
        let wide = |extension| extension::with(plain(DataType::FixedSizeBinary(16)), extension, None);
        let mixed = || {
            let metadata = HashMap::from([(MIXED_KEY.to_owned(), String::new())]);
            plain(DataType::Utf8).with_metadata(metadata)
        };
        let numbers = self.whole.is_some() || self.fraction || self.huge;
        let kinds = [self.bool, numbers, self.string, self.items.is_some(), self.keys.is_some()];
        let kinds = kinds.iter().filter(|kind| **kind).count();
        match (kinds, &self.items, &self.keys) {
            (0, _, _) if self.special => plain(DataType::Utf8),
            (0, _, _) => plain(DataType::Null),
            (1, Some(items), _) if !self.special => {
                plain(DataType::List(Arc::new(items.field(Field::LIST_FIELD_DEFAULT_NAME))))
            }
            (1, _, Some(keys)) if !self.special => plain(DataType::Struct(keys.fields())),
            (1, _, _) if self.string => plain(DataType::Utf8),
            (1, _, _) if self.bool && !self.special => plain(DataType::Boolean),
            (1, _, _) if numbers && !self.huge => match self.whole {
                None => plain(DataType::Float64),
                Some((least, most)) if self.fraction || self.special => {
                    let exact = 1 << 53;
                    if least >= -exact && most <= exact.unsigned_abs() {
                        plain(DataType::Float64)
                    } else {
                        mixed()
                    }
                }
                Some((least, most))
                    if i64::try_from(least).is_ok() && most <= i64::MAX.unsigned_abs().into() =>
                {
                    plain(DataType::Int64)
                }
                Some((0.., most)) if most <= u64::MAX.into() => plain(DataType::UInt64),
                Some((_, most)) if most <= i128::MAX.unsigned_abs() => wide(extension::INT128),
                Some((0.., _)) => wide(extension::UINT128),
                Some(_) => mixed(),
            },
            _ => mixed(),
        }
    }
}

/// The fields of the rows in a sample, with how many rows it has if it is `whole` and sound.
/// Rows that are no objects are left for the reader to complain about.
pub(super) fn fields(sample: &[u8], whole: bool, budget: &Budget) -> Result<(Fields, Option<u64>)> {
    let mut scanner = Scanner::new(sample, budget.clone());
    let mut keys = Keys::default();
    let mut rows = 0;
    let mut sound = scanner.skip_byte_order_mark().is_ok();
    while let Ok(Some(_)) = scanner.skip_space() {
        // Sizes are guessed from so many rows; the rest is only counted.
        let row = if rows < SAMPLE_ROWS as u64 { keys.read(&mut scanner) } else { scanner.skip_value() };
        if let Err(error) = &row
            && error.kind() == ErrorKind::Limit
            && error.rule_name() != "depth"
        {
            return row.map(|()| Default::default());
        }
        if row.is_ok() && scanner.end_line().is_ok() {
            rows += 1;
        } else {
            sound = false;
            if scanner.skip_line().is_err() {
                break;
            }
        }
        if rows >= SAMPLE_ROWS as u64 && !whole {
            break;
        }
    }
    Ok((keys.fields(), (whole && sound).then_some(rows)))
}
