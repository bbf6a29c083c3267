//! The named bytes of an array: its header's fields, then rows and elements by stride.

use arrow_buffer::Buffer;

use super::decode;
use super::layout::Header;
use super::read::ArrayFile;
use super::types::Dtype;
use crate::error::Result;
use crate::formats::{Node, Strided};
use crate::limits::Budget;
use crate::source::Source;

/// The parts of an array that is stored uncompressed in a file.
pub(in crate::formats) fn parts(array: &ArrayFile) -> Vec<Node> {
    let header = &array.header;
    let base = array.extent.base;
    let size_bytes = if header.version == 1 { 2 } else { 4 };
    let text_bytes = header.bytes.saturating_sub(8 + size_bytes);
    let shape: Vec<String> = header.shape.iter().map(u64::to_string).collect();
    vec![
        Node::new("header", base, header.bytes).parts(vec![
            Node::new("magic", base, 6).value("\\x93NUMPY"),
            Node::new("version", base + 6, 2).value(format_args!("{}.0", header.version)),
            Node::new("text_len", base + 8, size_bytes).value(text_bytes),
            Node::new("text", base + 8 + size_bytes, text_bytes).value(header.text.trim_end()),
        ]),
        data(array).value(format_args!("{} of shape ({})", header.dtype.descr(), shape.join(", "))),
    ]
}

fn data(array: &ArrayFile) -> Node {
    let header = &array.header;
    let start = array.data_offset();
    let node = Node::new("data", start, header.data_bytes().unwrap_or(0));
    let item = header.dtype.bytes().unwrap_or(0);
    if node.bytes == 0 || item == 0 || !array.extent.source.is_seekable() {
        return node;
    }
    let count = node.bytes / item;
    let elements = Elements {
        source: array.extent.source.clone(),
        dtype: header.dtype.clone(),
        budget: array.budget.clone(),
    };
    match runs(header) {
        None => node.expand(elements.strided(start, count)),
        Some((name, count, each)) => node.expand(Strided {
            offset: start,
            stride: each * item,
            count,
            make: move |index, offset| {
                let run = Node::new(format!("{name}[{index}]"), offset, each * item);
                Ok(run.expand(elements.strided(offset, each)))
            },
        }),
    }
}

/// The runs of adjacent elements: their name, number and length. `None` for a single run.
fn runs(header: &Header) -> Option<(&'static str, u64, u64)> {
    match (header.is_column_major(), header.shape.as_slice()) {
        (_, [] | [_]) => None,
        (false, [rows, ..]) => Some(("", *rows, header.row_elements()?)),
        (true, [.., last]) => {
            let all = header.shape.iter().try_fold(1u64, |product, count| product.checked_mul(*count))?;
            Some(("column", *last, all.checked_div(*last)?))
        }
    }
}

#[derive(Clone)]
struct Elements {
    source: Source,
    dtype: Dtype,
    budget: Budget,
}

impl Elements {
    fn strided(
        &self,
        offset: u64,
        count: u64,
    ) -> Strided<impl Fn(u64, u64) -> Result<Node> + Send + Sync + use<>> {
        let this = self.clone();
        let stride = this.dtype.bytes().unwrap_or(1);
        Strided { offset, stride, count, make: move |index, offset| this.element(index, offset) }
    }

    fn element(&self, index: u64, offset: u64) -> Result<Node> {
        let size = self.dtype.bytes().unwrap_or(0);
        let bytes = self.source.read_range(offset, size, &self.budget)?;
        let node = Node::new(format!("[{index}]"), offset, size);
        Ok(match &self.dtype {
            Dtype::Scalar(_) => node.value(show(&self.dtype, &bytes, &self.budget)),
            Dtype::Struct(members) => {
                let mut start = 0;
                let mut fields = Vec::new();
                for member in members {
                    let own = member.bytes().unwrap_or(0);
                    let field = Node::new(
                        if member.is_padding() { "padding" } else { &member.name },
                        offset + start,
                        own,
                    );
                    let (from, size) =
                        (usize::try_from(start).unwrap_or(0), usize::try_from(own).unwrap_or(0));
                    fields.push(match bytes.get(from..from + size) {
                        Some(own) if member.shape.is_empty() && !member.is_padding() => {
                            field.value(show(&member.dtype, &Buffer::from(own), &self.budget))
                        }
                        _ => field,
                    });
                    start += own;
                }
                node.parts(fields)
            }
        })
    }
}

/// One element as text; what is wrong with it if it cannot be shown.
fn show(dtype: &Dtype, bytes: &Buffer, budget: &Budget) -> String {
    match decode::decode(dtype, bytes, 1, &|_| 0, budget) {
        Ok(array) if arrow_array::Array::is_null(&array, 0) => "NaT".to_owned(),
        Ok(array) => arrow_cast::display::array_value_to_string(&array, 0).unwrap_or_default(),
        Err(error) => format!("({})", error.message()),
    }
}
