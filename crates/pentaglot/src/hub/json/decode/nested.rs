//! Lists, structs, tuples, maps, dictionaries, and the rows of a table.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray, OffsetSizeTrait,
    StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::{Decode, Decoder, Input, JsonColumn, fields_without_mixed, without_mixed};
use crate::error::{self, Context, Error, Result};
use crate::hub::type_text::print_type;
use crate::limits::Budget;
use crate::wire::json::Scanner;
use crate::wire::json::write_string;

pub(super) fn decoder<R: Input>(field: &FieldRef, budget: &Budget) -> Result<Decoder<R>> {
    let unsupported = || Error::unsupported(format!("values of {} as text", print_type(field.data_type())));
    Ok(match field.data_type() {
        DataType::List(item) => Box::new(List::<R, i32>::new(item, false, budget)?),
        DataType::LargeList(item) => Box::new(List::<R, i64>::new(item, false, budget)?),
        DataType::ListView(item) => Box::new(List::<R, i32>::new(item, true, budget)?),
        DataType::LargeListView(item) => Box::new(List::<R, i64>::new(item, true, budget)?),
        DataType::FixedSizeList(item, size) => {
            let shape = vec![u64::try_from(*size).unwrap_or(0)];
            Box::new(FixedList::new(item, field.data_type(), shape, budget)?)
        }
        DataType::Struct(fields) => Box::new(Struct::new(fields, budget)?),
        DataType::Map(entries, sorted) => Box::new(Map::new(entries, *sorted, budget)?),
        // The values are read unencoded and encoded at the end of a batch.
        DataType::Dictionary(_, value) => {
            let values = Arc::new(Field::new("", value.as_ref().clone(), true));
            Box::new(Packed::new(&values, field.data_type(), budget).ok_or_else(unsupported)??)
        }
        DataType::RunEndEncoded(_, values) => {
            Box::new(Packed::new(values, field.data_type(), budget).ok_or_else(unsupported)??)
        }
        _ => return Err(unsupported()),
    })
}

fn no_cell(text: &[u8]) -> Error {
    super::unfit("JSON text", text)
}

/// Elements take at least two bytes of input each; their memory is checked against the budget at intervals.
fn check_count(count: usize, budget: &Budget) -> Result<()> {
    if count.is_multiple_of(1 << 16) {
        budget.check(count as u64 * 16)?;
    }
    Ok(())
}

struct List<R, O> {
    items: JsonColumn<R>,
    item: FieldRef,
    ends: Vec<O>,
    view: bool,
    count: usize,
    budget: Budget,
}

impl<R: Input, O: OffsetSizeTrait> List<R, O> {
    fn new(item: &FieldRef, view: bool, budget: &Budget) -> Result<Self> {
        Ok(List {
            items: JsonColumn::new(item, budget)?,
            item: Arc::new(without_mixed(item)),
            ends: Vec::new(),
            view,
            count: 0,
            budget: budget.clone(),
        })
    }

    fn end(&mut self) -> Result<()> {
        let Some(end) = O::from_usize(self.count) else {
            let needed = format!("{} elements in a batch (large_list holds more)", self.count);
            return Err(Error::limit("the limit of lists", i32::MAX, needed));
        };
        self.ends.push(end);
        Ok(())
    }
}

impl<R: Input, O: OffsetSizeTrait> Decode<R> for List<R, O> {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        let first = self.count;
        scanner.begin_array()?;
        while scanner.next_element()? {
            self.items.read(scanner).index((self.count - first) as u64)?;
            self.count += 1;
            check_count(self.count, &self.budget)?;
        }
        self.end()
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        Err(no_cell(text))
    }

    fn null(&mut self) {
        self.ends.push(O::usize_as(self.count));
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let values = self.items.finish_child()?;
        let ends = std::mem::take(&mut self.ends);
        self.count = 0;
        let item = Arc::clone(&self.item);
        let starts: ScalarBuffer<O> = std::iter::once(O::zero()).chain(ends.iter().copied()).collect();
        if !self.view {
            let offsets = OffsetBuffer::new(starts);
            return Ok(Arc::new(GenericListArray::<O>::try_new(item, offsets, values, nulls)?));
        }
        let sizes: ScalarBuffer<O> =
            ends.iter().zip(starts.iter()).map(|(end, start)| *end - *start).collect();
        let starts = starts.slice(0, ends.len());
        Ok(Arc::new(GenericListViewArray::<O>::try_new(item, starts, sizes, values, nulls)?))
    }
}

/// Lists of one size, and tensors as nested arrays.
pub(super) struct FixedList<R> {
    items: JsonColumn<R>,
    item: FieldRef,
    size: i32,
    shape: Vec<u64>,
    rows: usize,
    budget: Budget,
}

impl<R: Input> FixedList<R> {
    pub(super) fn new(
        item: &FieldRef,
        data_type: &DataType,
        shape: Vec<u64>,
        budget: &Budget,
    ) -> Result<Self> {
        let DataType::FixedSizeList(_, size) = data_type else {
            return Err(Error::unsupported("a tensor over another type than a fixed list"));
        };
        budget.limits().check_depth(u32::try_from(shape.len()).unwrap_or(u32::MAX))?;
        Ok(FixedList {
            items: JsonColumn::new(item, budget)?,
            item: Arc::clone(item),
            size: *size,
            shape,
            rows: 0,
            budget: budget.clone(),
        })
    }

    /// Recursive; the depth is the number of dimensions, which was checked against the limits.
    fn level(
        items: &mut JsonColumn<R>,
        shape: &[u64],
        scanner: &mut Scanner<R>,
        budget: &Budget,
    ) -> Result<()> {
        let Some((count, inner)) = shape.split_first() else { return items.read(scanner) };
        scanner.skip_space()?;
        let offset = scanner.offset();
        scanner.begin_array()?;
        let mut found = 0;
        while scanner.next_element()? {
            if found < *count {
                Self::level(items, inner, scanner, budget).index(found)?;
            } else {
                scanner.skip_value()?;
            }
            found += 1;
            check_count(usize::try_from(found).unwrap_or(usize::MAX), budget)?;
        }
        if found != *count {
            return Err(Error::malformed(format_args!("{count} elements"), found).at(offset));
        }
        Ok(())
    }
}

impl<R: Input> Decode<R> for FixedList<R> {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        Self::level(&mut self.items, &self.shape, scanner, &self.budget)?;
        self.rows += 1;
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        Err(no_cell(text))
    }

    fn null(&mut self) {
        (0..self.size).for_each(|_| self.items.pad());
        self.rows += 1;
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let rows = std::mem::take(&mut self.rows);
        let values = self.items.finish_child()?;
        let item = Arc::clone(&self.item);
        Ok(Arc::new(FixedSizeListArray::try_new_with_length(item, self.size, values, nulls, rows)?))
    }
}

/// The columns of an object, which may come in any order.
///
/// A column whose key is missing gets its nulls with its next value or at the end, many at a time, so the cost of an
/// object depends on its keys, not on the number of columns.
pub(crate) struct Record<R> {
    /// `None` for a column that is not selected.
    columns: Vec<Option<JsonColumn<R>>>,
    names: Vec<String>,
    /// The quoted keys, with the escapes that most programs write.
    quoted: Vec<Vec<u8>>,
    by_name: HashMap<String, usize>,
    /// The object in which a column was last seen.
    seen: Vec<u64>,
    /// The columns whose key is required.
    required: Vec<usize>,
    objects: u64,
    rows: usize,
}

impl<R: Input> Record<R> {
    /// The columns of `fields`; those for which `wanted` returns `false` are skipped.
    pub(crate) fn new(fields: &Fields, wanted: impl Fn(usize) -> bool, budget: &Budget) -> Result<Self> {
        let columns = fields.iter().enumerate().map(|(index, field)| {
            let column = || JsonColumn::new(field, budget).field(field.name().clone());
            wanted(index).then(column).transpose()
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Record::of(columns, fields.iter().map(|field| field.name().clone()).collect()))
    }

    fn of(columns: Vec<Option<JsonColumn<R>>>, names: Vec<String>) -> Self {
        let quoted = names.iter().map(|name| {
            let mut quoted = Vec::new();
            write_string(&mut quoted, name);
            quoted
        });
        let by_name = names.iter().cloned().enumerate().map(|(index, name)| (name, index));
        let required = columns.iter().enumerate().filter_map(|(index, column)| {
            column.as_ref().is_some_and(JsonColumn::is_required).then_some(index)
        });
        Record {
            quoted: quoted.collect(),
            by_name: by_name.collect(),
            seen: vec![0; columns.len()],
            required: required.collect(),
            columns,
            names,
            objects: 0,
            rows: 0,
        }
    }

    /// How many values each wanted column holds.
    #[cfg(test)]
    pub(super) fn held(&self) -> Vec<usize> {
        self.columns.iter().flatten().map(JsonColumn::held).collect()
    }

    /// How many rows are held.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the next object.
    pub(crate) fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.skip_space()?;
        let offset = scanner.offset();
        scanner.begin_object()?;
        self.objects += 1;
        let mut count = 0;
        // Most objects have all keys in the same order.
        for index in 0..self.columns.len() {
            if !self.quoted.get(index).is_some_and(|quoted| scanner.skip_key(quoted)) {
                break;
            }
            self.value(index, scanner)?;
            count += 1;
        }
        loop {
            scanner.skip_space()?;
            let Some(key) = scanner.next_key()? else { break };
            let Some(index) = self.by_name.get(key).copied() else {
                let found = format!("key {key:?}");
                let at = scanner.offset();
                let expected = match self.names.as_slice() {
                    [] => "an object without keys".to_owned(),
                    names => format!("a known key ({})", error::list(names)),
                };
                return Err(Error::malformed(expected, found).at(at).rule("unknown-key"));
            };
            if self.seen.get(index) == Some(&self.objects) {
                let found = format!("{key:?} twice");
                let at = scanner.offset();
                return Err(Error::malformed("each key once", found).at(at).rule("repeated-key"));
            }
            self.value(index, scanner)?;
            count += 1;
        }
        if count < self.columns.len() {
            self.check_required(offset)?;
        }
        self.rows += 1;
        Ok(())
    }

    #[inline]
    fn value(&mut self, index: usize, scanner: &mut Scanner<R>) -> Result<()> {
        if let Some(seen) = self.seen.get_mut(index) {
            *seen = self.objects;
        }
        let result = match self.columns.get_mut(index) {
            Some(Some(column)) => {
                column.pad_to(self.rows);
                column.read(scanner)
            }
            _ => scanner.skip_value(),
        };
        result.map_err(|error| error.field(self.name(index)))
    }

    fn name(&self, index: usize) -> String {
        self.names.get(index).cloned().unwrap_or_default()
    }

    /// A missing key is null, if the column is nullable.
    fn check_required(&self, offset: u64) -> Result<()> {
        match self.required.iter().find(|index| self.seen.get(**index) != Some(&self.objects)) {
            None => Ok(()),
            Some(index) => {
                let expected = format!("key {:?}", self.name(*index));
                Err(Error::malformed(expected, "an object without it").at(offset).rule("missing-key"))
            }
        }
    }

    fn pad(&mut self) {
        self.rows += 1;
    }

    /// Pads each column to the number of rows, and resets that number.
    fn take_rows(&mut self) -> usize {
        let rows = std::mem::take(&mut self.rows);
        self.columns.iter_mut().flatten().for_each(|column| column.pad_to(rows));
        rows
    }

    /// Returns the selected columns, in order.
    pub(crate) fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        self.take_rows();
        self.columns.iter_mut().flatten().map(JsonColumn::finish).collect()
    }

    fn finish_children(&mut self) -> Result<(Vec<ArrayRef>, usize)> {
        let rows = self.take_rows();
        let columns =
            self.columns.iter_mut().flatten().map(JsonColumn::finish_child).collect::<Result<_>>()?;
        Ok((columns, rows))
    }
}

pub(super) struct Struct<R> {
    record: Record<R>,
    fields: Fields,
}

impl<R: Input> Struct<R> {
    fn new(fields: &Fields, budget: &Budget) -> Result<Self> {
        Ok(Struct { record: Record::new(fields, |_| true, budget)?, fields: fields_without_mixed(fields) })
    }

    /// A struct whose keys have other names than its fields.
    pub(super) fn renamed(fields: &Fields, names: &[&str], budget: &Budget) -> Result<Self> {
        let columns = fields.iter().map(|field| JsonColumn::new(field, budget).map(Some));
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(Struct { record: Record::of(columns.collect::<Result<_>>()?, names), fields: fields.clone() })
    }
}

fn struct_array(
    record: (Vec<ArrayRef>, usize),
    fields: &Fields,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let (columns, rows) = record;
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, rows)?))
}

impl<R: Input> Decode<R> for Struct<R> {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        self.record.read(scanner)
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        Err(no_cell(text))
    }

    fn null(&mut self) {
        self.record.pad();
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        struct_array(self.record.finish_children()?, &self.fields, nulls)
    }
}

/// A struct as an array of its values.
pub(super) struct Tuple<R>(Struct<R>);

impl<R: Input> Tuple<R> {
    pub(super) fn new(fields: &Fields, budget: &Budget) -> Result<Self> {
        Struct::new(fields, budget).map(Tuple)
    }
}

impl<R: Input> Decode<R> for Tuple<R> {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        scanner.skip_space()?;
        let offset = scanner.offset();
        let record = &mut self.0.record;
        let short =
            |found| Error::malformed(format_args!("{} elements", self.0.fields.len()), found).at(offset);
        scanner.begin_array()?;
        for (index, column) in record.columns.iter_mut().flatten().enumerate() {
            if !scanner.next_element()? {
                return Err(short(index.to_string()));
            }
            column.pad_to(record.rows);
            column.read(scanner).index(index as u64)?;
        }
        if scanner.next_element()? {
            return Err(short("more".to_owned()));
        }
        record.rows += 1;
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        Err(no_cell(text))
    }

    fn null(&mut self) {
        self.0.record.pad();
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        struct_array(self.0.record.finish_children()?, &self.0.fields, nulls)
    }
}

/// An object if keys are strings, else an array of `[key, value]`.
struct Map<R> {
    keys: JsonColumn<R>,
    values: JsonColumn<R>,
    entries: FieldRef,
    fields: Fields,
    object: bool,
    sorted: bool,
    ends: Vec<i32>,
    count: usize,
    budget: Budget,
}

impl<R: Input> Map<R> {
    fn new(entries: &FieldRef, sorted: bool, budget: &Budget) -> Result<Self> {
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(Error::unsupported("a map whose entries are not structs"));
        };
        let [key, value] = fields.as_ref() else {
            return Err(Error::unsupported("a map whose entries do not have two fields"));
        };
        Ok(Map {
            keys: JsonColumn::new(key, budget)?,
            values: JsonColumn::new(value, budget)?,
            entries: Arc::clone(entries),
            fields: fields.clone(),
            object: crate::hub::json::is_text(key.data_type()),
            sorted,
            ends: Vec::new(),
            count: 0,
            budget: budget.clone(),
        })
    }

    fn entry(&mut self) -> Result<()> {
        self.count += 1;
        check_count(self.count, &self.budget)
    }
}

impl<R: Input> Decode<R> for Map<R> {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        if self.object {
            scanner.begin_object()?;
            while let Some(key) = scanner.next_key()? {
                self.keys.text(key.as_bytes())?;
                self.values.read(scanner)?;
                self.entry()?;
            }
        } else {
            scanner.begin_array()?;
            while scanner.next_element()? {
                scanner.skip_space()?;
                let offset = scanner.offset();
                let pair = || Error::malformed("[key, value]", "another array").at(offset);
                scanner.begin_array()?;
                if !scanner.next_element()? {
                    return Err(pair());
                }
                self.keys.read(scanner)?;
                if !scanner.next_element()? {
                    return Err(pair());
                }
                self.values.read(scanner)?;
                if scanner.next_element()? {
                    return Err(pair());
                }
                self.entry()?;
            }
        }
        let end = i32::try_from(self.count).map_err(|_| {
            Error::limit("the limit of maps", i32::MAX, format!("{} entries in a batch", self.count))
        })?;
        self.ends.push(end);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        Err(no_cell(text))
    }

    fn null(&mut self) {
        let end = self.ends.last().copied().unwrap_or(0);
        self.ends.push(end);
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let columns = vec![self.keys.finish_child()?, self.values.finish_child()?];
        let count = std::mem::take(&mut self.count);
        let entries = StructArray::try_new_with_length(self.fields.clone(), columns, None, count)?;
        let starts = std::iter::once(0).chain(std::mem::take(&mut self.ends));
        let offsets = OffsetBuffer::new(starts.collect());
        let entry = Arc::clone(&self.entries);
        Ok(Arc::new(MapArray::try_new(entry, offsets, entries, nulls, self.sorted)?))
    }
}

/// Values that Arrow encodes: dictionaries and runs.
struct Packed<R> {
    values: JsonColumn<R>,
    data_type: DataType,
}

impl<R: Input> Packed<R> {
    /// `None` if Arrow cannot encode values of this type.
    fn new(values: &FieldRef, data_type: &DataType, budget: &Budget) -> Option<Result<Self>> {
        let packs = arrow_cast::can_cast_types(values.data_type(), data_type);
        packs.then(|| {
            // Any value may be null, whether or not the inner field is nullable.
            let values = Arc::new(values.as_ref().clone().with_nullable(true));
            Ok(Packed { values: JsonColumn::new(&values, budget)?, data_type: data_type.clone() })
        })
    }
}

impl<R: Input> Decode<R> for Packed<R> {
    fn read(&mut self, scanner: &mut Scanner<R>) -> Result<()> {
        self.values.read(scanner)
    }

    fn text(&mut self, text: &[u8]) -> Result<()> {
        self.values.text(text)
    }

    fn null(&mut self) {
        self.values.pad();
    }

    fn finish(&mut self, _: Option<NullBuffer>) -> Result<ArrayRef> {
        let values = self.values.finish()?;
        let packed = arrow_cast::cast(&values, &self.data_type).map_err(|_| {
            let needed = format!("keys for up to {} distinct values", values.len());
            Error::limit("the dictionary type", print_type(&self.data_type), needed)
        })?;
        debug_assert_eq!(packed.len(), values.len());
        Ok(packed)
    }
}
