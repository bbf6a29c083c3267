//! What the one value of a file is: detection, and where the columns of an object of columns are.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::error::{Context, Error, ErrorKind, Result};
use crate::formats::text::json_infer::SeenValues;
use crate::formats::{Confidence, FormatInfo, Head};
use crate::limits::{Budget, Reservation};
use crate::source::Source;
use crate::wire::json::{JsonKind, Scanner};

/// A text that is one array is likely ours. Objects are JSON lines, or belong to others.
pub(super) fn detect(head: &Head<'_>, info: &FormatInfo) -> Confidence {
    let bytes = head.bytes();
    let mut scanner = Scanner::new(bytes, Budget::default());
    if !matches!(scanner.skip_byte_order_mark().and_then(|_| scanner.peek()), Ok(JsonKind::Array)) {
        return Confidence::No;
    }
    let whole = head.len() == Some(bytes.len() as u64);
    let named = head.has_extension(info.extensions);
    match scanner.skip_value().map(|()| scanner.end()) {
        Ok(Ok(())) => Confidence::Likely,
        Ok(Err(_)) => Confidence::No,
        // The array goes on past what detection sees, or it is cut.
        Err(error) if error.kind() == ErrorKind::Truncated && (named || !whole) => Confidence::Likely,
        Err(_) if named => Confidence::Possible,
        Err(_) => Confidence::No,
    }
}

/// Whether a file is an object of columns.
pub(super) fn is_object(source: &Source) -> Result<bool> {
    let head = source.head()?;
    let mut scanner = Scanner::new(head.as_slice(), Budget::default());
    Ok(matches!(scanner.skip_byte_order_mark().and_then(|_| scanner.peek()), Ok(JsonKind::Object)))
}

/// A column of an object of columns.
pub(super) struct ColumnPlace {
    pub(super) name: String,
    /// Where its array or object begins.
    pub(super) offset: u64,
    /// How many bytes it takes.
    pub(super) bytes: u64,
    /// Whether it is an object, whose keys are the labels of rows.
    pub(super) is_labelled: bool,
    pub(super) seen: SeenValues,
}

/// Where the columns of an object of columns are.
pub(super) struct ColumnPlaces {
    pub(super) columns: Vec<ColumnPlace>,
    pub(super) rows: u64,
    /// Whether a label of a row is not its number.
    pub(super) has_labels: bool,
    _held: Reservation,
}

/// What a column costs beside its name.
const COLUMN_BYTES: u64 = 512;

impl ColumnPlaces {
    /// Walks through a whole file; types are inferred from the first `most` values of each column.
    pub(super) fn find(source: &Source, most: u64, budget: &Budget) -> Result<Self> {
        let mut scanner = Scanner::at(source.reader()?, 0, budget.clone());
        scanner.skip_byte_order_mark()?;
        scanner.begin_object().map_err(|error| scanner.with_line(error))?;
        let mut found =
            ColumnPlaces { columns: Vec::new(), rows: 0, has_labels: false, _held: budget.reservation() };
        let mut names = HashSet::new();
        let mut labels = None;
        while let Some(name) = scanner.next_key().map(|name| name.map(str::to_owned))? {
            found._held.grow(COLUMN_BYTES + 2 * name.len() as u64)?;
            if !names.insert(name.clone()) {
                let error = Error::malformed("each key once", format!("{name:?} twice"));
                return Err(error.at(scanner.offset()).rule("repeated-key"));
            }
            let kind = scanner.peek()?;
            let offset = scanner.offset();
            let is_labelled = kind == JsonKind::Object;
            let mut seen = SeenValues::default();
            let mut walk = Walk { rows: 0, has_labels: false, hash: DefaultHasher::new() };
            let walked = match kind {
                JsonKind::Array | JsonKind::Object => walk.column(&mut scanner, is_labelled, most, &mut seen),
                _ => Err(scanner.wrong_type("a column: an array, or an object with a key per row")),
            };
            walked.map_err(|error| scanner.with_line(error)).field(name.clone())?;
            let own_labels = is_labelled.then(|| walk.hash.finish());
            if found.columns.is_empty() {
                (found.rows, labels) = (walk.rows, own_labels);
            } else if found.rows != walk.rows {
                let expected = format!("{} values, as the first column has", found.rows);
                return Err(Error::malformed(expected, walk.rows).at(offset).rule("length").field(name));
            } else if labels != own_labels {
                let error = Error::malformed("the row labels of the first column", "others");
                return Err(error.at(offset).rule("labels").field(name));
            }
            found.has_labels |= walk.has_labels;
            let bytes = scanner.offset() - offset;
            found.columns.push(ColumnPlace { name, offset, bytes, is_labelled, seen });
        }
        scanner.end()?;
        Ok(found)
    }
}

struct Walk {
    rows: u64,
    has_labels: bool,
    hash: DefaultHasher,
}

impl Walk {
    fn column<R: std::io::Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        is_labelled: bool,
        most: u64,
        seen: &mut SeenValues,
    ) -> Result<()> {
        if is_labelled {
            scanner.begin_object()?
        } else {
            scanner.begin_array()?
        }
        loop {
            if is_labelled {
                let Some(label) = scanner.next_key()? else { return Ok(()) };
                label.hash(&mut self.hash);
                self.has_labels |= label != itoa::Buffer::new().format(self.rows);
            } else if !scanner.next_element()? {
                return Ok(());
            }
            if self.rows < most {
                seen.read(scanner)?
            } else {
                scanner.skip_value()?
            }
            self.rows += 1;
        }
    }
}
