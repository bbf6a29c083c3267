//! The typed door: documents in memory as columns with the format's own types, without the hub.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;

use super::decode::Decoder;
use super::encode::Encoder;
use super::read::BsondfDocument;
use super::schema::{Type, check_name, is_same_field};
use super::{ID, rows, write};
use crate::error::{Context, Error, Result};
use crate::formats::{ReadOptions, WriteOptions};
use crate::hub::type_text::print_type;
use crate::source::Source;

/// A column: its name, its type in the format's words, its values as an Arrow array.
///
/// ```
/// use std::sync::Arc;
/// use pentaglot::arrow::array::{Int64Array, StringArray};
/// use pentaglot::formats::bsondf::{BsonColumn, Type, read_document, write_document};
///
/// // The example that the spec begins with.
/// let x = BsonColumn::new("x", Type::Int64, Arc::new(Int64Array::from(vec![1, 2, 3])))?;
/// let y = BsonColumn::new("y", Type::Utf8, Arc::new(StringArray::from(vec!["a", "b", "c"])))?;
/// let document = write_document(&[x.clone(), y], &Default::default())?;
/// assert_eq!(document.len(), 151);
///
/// let columns = read_document(document, &Default::default())?;
/// assert_eq!(columns[0], x);
/// # Ok::<(), pentaglot::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BsonColumn {
    /// The name, which has no zero byte.
    pub name: String,
    /// The type.
    pub kind: Type,
    /// The values, of the Arrow type that [`Type::to_arrow`] gives.
    pub values: ArrayRef,
}

impl PartialEq for BsonColumn {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.kind == other.kind && *self.values == *other.values
    }
}

impl BsonColumn {
    /// A column whose values have the Arrow type that belongs to `kind`.
    ///
    /// # Errors
    ///
    /// `Usage` if they have another one, or the name holds a zero byte.
    pub fn new(name: impl Into<String>, kind: Type, values: ArrayRef) -> Result<Self> {
        let name = name.into();
        check_name(&name).map_err(Error::usage)?;
        let want = kind.to_field(&name);
        // An array does not know whether its dictionary is ordered; its type does.
        let have = want.clone().with_data_type(values.data_type().clone());
        if !is_same_field(&want, &have) {
            let found = print_type(values.data_type());
            return Err(Error::usage(format!(
                "expected values of type {}, found {found}",
                print_type(want.data_type())
            )));
        }
        Ok(BsonColumn { name, kind, values })
    }
}

/// The columns of a document. `options` give limits and threads.
///
/// # Errors
///
/// What is wrong with the document, and where.
pub fn read_document(document: impl Into<Buffer>, options: &ReadOptions) -> Result<Vec<BsonColumn>> {
    let source = Source::from_bytes("document", document);
    let document = BsondfDocument::open(&source, options).in_format(ID)?;
    let [piece] = &document.frames.pieces[..] else {
        return Err(Error::malformed("one document", "several").in_format(ID));
    };
    let layout = document.frames.layout(&source, piece, &options.budget).in_format(ID)?;
    layout.rows().in_format(ID)?;
    let decoder = Decoder { source, budget: options.budget.clone() };
    let decoded = rows::columns(&decoder, &layout.columns, &options.control).in_format(ID)?;
    let columns = layout.columns.iter().zip(decoded).map(|(layout, values)| BsonColumn {
        name: layout.name.clone(),
        kind: layout.array.kind.clone(),
        values,
    });
    Ok(columns.collect())
}

/// The document of some columns. `options` give the format's own options, limits and threads.
///
/// # Errors
///
/// `Usage` if two columns have one name or differ in length, `Limit` if a buffer or the document would be too long.
pub fn write_document(columns: &[BsonColumn], options: &WriteOptions) -> Result<Vec<u8>> {
    let mut names = std::collections::HashSet::new();
    for column in columns {
        if !names.insert(column.name.as_str()) {
            return Err(Error::usage(format!("two columns are named {:?}", column.name)));
        }
        if let Some(first) = columns.first()
            && first.values.len() != column.values.len()
        {
            let (rows, found) = (first.values.len(), column.values.len());
            return Err(Error::usage(format!(
                "column {:?}: expected {rows} rows, found {found}",
                column.name
            )));
        }
    }
    let encoder = Encoder::new(&options.options, options.budget.clone())?;
    let types: Vec<(String, Type)> =
        columns.iter().map(|column| (column.name.clone(), column.kind.clone())).collect();
    let values = columns.iter().map(|column| Arc::clone(&column.values)).collect();
    let array = |values, kind: &Type| encoder.whole(kind, &[values]);
    let pieces = write::encode(&encoder, &types, values, &options.control, array);
    Ok(pieces.in_format(ID)?.0.concat())
}
