//! The types of JSON values, inferred from what is seen of them.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};

use super::json_layout::{Framing, RowLayout};
use super::kinds::{Stamps, WholeRange, nullable};
use crate::error::{Error, ErrorKind, Result};
use crate::hub::json::decode::{MIXED_KEY, is_special_float, text_only};
use crate::hub::shape::{column_name, dense_schema};
use crate::limits::Reservation;
use crate::wire::json::{JsonKind, Scanner};

/// What was seen of the values in one place.
#[derive(Default)]
pub(super) struct SeenValues {
    null: bool,
    bool: bool,
    whole: Option<WholeRange>,
    /// Whole numbers past 128 bits.
    huge: bool,
    fraction: bool,
    /// `"NaN"`, `"Infinity"`, `"-Infinity"`.
    special: bool,
    string: bool,
    stamps: Stamps,
    items: Option<Box<SeenValues>>,
    keys: Option<SeenKeys>,
}

/// What a key costs beside its text: what was seen of its values, its place in the index, its field.
const KEY_BYTES: u64 = 512;

#[derive(Default)]
pub(super) struct SeenKeys {
    names: Vec<String>,
    values: Vec<SeenValues>,
    index: HashMap<String, usize>,
    /// Pays for the keys.
    held: Option<Reservation>,
}

impl SeenKeys {
    fn read<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.begin_object()?;
        while let Some(key) = scanner.next_key()? {
            let index = match self.index.get(key) {
                Some(index) => *index,
                None => {
                    let key = key.to_owned();
                    let held = self.held.get_or_insert_with(|| scanner.budget().reservation());
                    held.grow(KEY_BYTES + 2 * key.len() as u64)?;
                    self.add(key)
                }
            };
            match self.values.get_mut(index) {
                Some(seen) => seen.read(scanner)?,
                None => scanner.skip_value()?,
            }
        }
        Ok(())
    }

    fn add(&mut self, key: String) -> usize {
        let index = self.names.len();
        self.names.push(key.clone());
        self.values.push(SeenValues::default());
        self.index.insert(key, index);
        index
    }

    fn fields(&self) -> Fields {
        self.names.iter().zip(&self.values).map(|(name, seen)| seen.field(name)).collect()
    }

    fn merge(&mut self, other: SeenKeys) {
        for (name, values) in other.names.into_iter().zip(other.values) {
            let index = self.index.get(&name).copied().unwrap_or_else(|| self.add(name));
            if let Some(own) = self.values.get_mut(index) {
                own.merge(values);
            }
        }
    }
}

impl SeenValues {
    /// Looks at the value that comes next.
    pub(super) fn read<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        match scanner.peek()? {
            JsonKind::Null => {
                scanner.null()?;
                self.null = true;
            }
            JsonKind::Bool => {
                scanner.bool()?;
                self.bool = true;
            }
            JsonKind::Number => {
                let text = scanner.number()?;
                if text.contains(['.', 'e', 'E']) {
                    self.fraction = true;
                } else if let Some(range) = WholeRange::parse(text) {
                    self.whole = Some(range.and(self.whole));
                } else {
                    self.huge = true;
                }
            }
            JsonKind::String => {
                // A text that is not sound is one all the same: the reader says what is wrong with it.
                let text = scanner.str_bytes().inspect_err(|_| self.string = true)?;
                if is_special_float(text) {
                    self.special = true;
                } else {
                    self.string = true;
                    self.stamps.include(text);
                }
            }
            JsonKind::Array => {
                let items = self.items.get_or_insert_default();
                scanner.begin_array()?;
                while scanner.next_element()? {
                    items.read(scanner)?;
                }
            }
            JsonKind::Object => self.keys.get_or_insert_default().read(scanner)?,
        }
        Ok(())
    }

    fn merge(&mut self, other: SeenValues) {
        self.null |= other.null;
        self.bool |= other.bool;
        self.whole = other.whole.map(|range| range.and(self.whole)).or(self.whole);
        self.huge |= other.huge;
        self.fraction |= other.fraction;
        self.special |= other.special;
        self.string |= other.string;
        self.stamps.merge(other.stamps);
        if let Some(items) = other.items {
            self.items.get_or_insert_default().merge(*items);
        }
        if let Some(keys) = other.keys {
            self.keys.get_or_insert_default().merge(keys);
        }
    }

    fn is_number(&self) -> bool {
        let numbers = self.whole.is_some() || self.fraction;
        let others = self.null || self.bool || self.huge || self.string;
        numbers && !others && self.items.is_none() && self.keys.is_none()
    }

    /// The type of values that are all numbers; `None` where no number type holds them.
    fn number_type(&self) -> Option<DataType> {
        match self.whole {
            None => Some(DataType::Float64),
            Some(range) if self.fraction || self.special => range.fits_float().then_some(DataType::Float64),
            Some(range) => range.data_type(),
        }
    }

    pub(super) fn field(&self, name: &str) -> Field {
        let plain = |data_type| nullable(name, data_type);
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
            (1, _, _) if self.string => {
                let stamps = self.stamps.data_type().filter(|_| !self.special);
                text_only(plain(stamps.unwrap_or(DataType::Utf8)))
            }
            (1, _, _) if self.bool && !self.special => plain(DataType::Boolean),
            (1, _, _) if numbers && !self.huge => self.number_type().map_or_else(mixed, plain),
            _ => mixed(),
        }
    }
}

/// What was seen of rows.
#[derive(Default)]
pub(super) struct SeenRows {
    objects: Option<SeenKeys>,
    /// The values of rows that are arrays, by position.
    positions: Vec<SeenValues>,
    /// The fewest and the most values of such a row.
    lengths: Option<(usize, usize)>,
    /// Rows that are neither.
    others: Option<SeenValues>,
    /// Pays for the positions.
    held: Option<Reservation>,
}

impl SeenRows {
    /// Looks at up to `most` rows. Gives how many rows there are if the input is `whole` and sound; a row that is not sound
    /// is reported by the reader.
    pub(super) fn infer<R: Read>(
        scanner: &mut Scanner<R>,
        framing: Framing,
        most: u64,
        whole: bool,
    ) -> Result<(Self, Option<u64>)> {
        let mut seen = SeenRows::default();
        let mut rows = 0;
        let is_limit = |error: &Error| error.kind() == ErrorKind::Limit && error.rule_name() != "depth";
        let mut sound = match scanner.skip_byte_order_mark() {
            Err(error) if is_limit(&error) => return Err(error),
            skipped => skipped.is_ok(),
        };
        let mut frame = framing.begin();
        loop {
            match frame.next(scanner) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if is_limit(&error) => return Err(error),
                Err(_) => {
                    sound = false;
                    break;
                }
            }
            // Types are inferred from so many rows; the others are only counted.
            let row = if rows < most { seen.read(scanner) } else { scanner.skip_value() };
            if row.as_ref().is_err_and(is_limit) {
                return row.map(|()| Default::default());
            }
            if row.and_then(|()| frame.end_row(scanner)).is_ok() {
                rows += 1;
            } else {
                sound = false;
                if framing == Framing::Array || scanner.skip_line().is_err() {
                    break;
                }
            }
            if rows >= most && !whole {
                break;
            }
        }
        Ok((seen, (whole && sound).then_some(rows)))
    }

    fn read<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        match scanner.peek()? {
            JsonKind::Object => self.objects.get_or_insert_default().read(scanner),
            JsonKind::Array => {
                scanner.begin_array()?;
                let mut count = 0;
                while scanner.next_element()? {
                    if count == self.positions.len() {
                        let held = self.held.get_or_insert_with(|| scanner.budget().reservation());
                        held.grow(KEY_BYTES)?;
                        self.positions.push(SeenValues::default());
                    }
                    match self.positions.get_mut(count) {
                        Some(seen) => seen.read(scanner)?,
                        None => scanner.skip_value()?,
                    }
                    count += 1;
                }
                let (fewest, most) = self.lengths.unwrap_or((count, count));
                self.lengths = Some((fewest.min(count), most.max(count)));
                Ok(())
            }
            _ => self.others.get_or_insert_default().read(scanner),
        }
    }

    /// Whether rows are arrays and nothing else.
    pub(super) fn only_arrays(&self) -> bool {
        self.lengths.is_some() && self.objects.is_none() && self.others.is_none()
    }

    /// How the rows are to be read.
    pub(super) fn layout(self, framing: Framing) -> Result<RowLayout> {
        let only_arrays = self.only_arrays();
        let even = self.lengths.filter(|(fewest, most)| only_arrays && fewest == most && *most > 0);
        let is_matrix = even.is_some() && self.positions.iter().all(SeenValues::is_number);
        match (self.objects, self.others) {
            (Some(keys), None) if self.lengths.is_none() => Ok(RowLayout::Objects(keys.fields())),
            (None, None) if self.lengths.is_none() => Ok(RowLayout::Objects(Fields::empty())),
            // The reader says which row is wrong.
            (objects, _) if framing == Framing::Lines && !only_arrays => {
                Ok(RowLayout::Objects(objects.map_or_else(Fields::empty, |keys| keys.fields())))
            }
            (objects, others) => {
                let columns: Fields = self.positions.iter().zip(0..).map(position_field).collect();
                let mut item = SeenValues::default();
                self.positions.into_iter().for_each(|values| item.merge(values));
                let number = item.number_type().filter(|kind| is_matrix && kind.is_primitive());
                let number = number.filter(|kind| !matches!(kind, DataType::Decimal128(..)));
                if let (Some(number), Some((_, cols))) = (number, even) {
                    let schema = dense_schema(number, None, cols as u64)?;
                    return Ok(RowLayout::Items(Arc::new(schema)));
                }
                if even.is_some() || framing == Framing::Lines {
                    return Ok(RowLayout::Positions(columns));
                }
                let mut all = others.unwrap_or_default();
                all.merge(SeenValues {
                    items: self.lengths.map(|_| Box::new(item)),
                    keys: objects,
                    ..SeenValues::default()
                });
                Ok(RowLayout::items(&all.field("")))
            }
        }
    }
}

fn position_field((seen, index): (&SeenValues, u64)) -> Field {
    seen.field(&column_name(index))
}
