//! The named byte ranges of a file: header, labels, every block header and, on demand, rows and entries.

use std::sync::Arc;

use crate::error::{Context, Error, Result};
use crate::formats::{Expand, Node, Outline, Strided};

use super::assemble::fixed_text;
use super::cast::Number;
use super::layout::{Block, Encoding};
use super::open::File;
use super::sparse::{BlockWindow, coordinate_bytes};
use super::types::{BlockType, DataType, Dialect, ValueType};

/// The root.
pub(super) fn of(file: &Arc<File>) -> Outline {
    let header = &file.layout.header;
    let blocks = Blocks { file: Arc::clone(file) };
    let body = Node::new("block", header.bytes, file.layout.bytes - header.bytes)
        .value(format!("{} blocks", file.layout.blocks.len()))
        .expand(blocks);
    let summary = format!("{} {} x {} ({})", header.data_type, header.rows, header.cols, header.dialect);
    Node::new("file", 0, file.layout.bytes).value(summary).parts(vec![header_node(file), body])
}

fn header_node(file: &Arc<File>) -> Node {
    let header = &file.layout.header;
    let unpacked = header.dialect == Dialect::Daphne01;
    let data_type = format!("{} ({})", header.data_type.code(), header.data_type);
    let mut parts = vec![Node::new("version", 0, 1).value(1), Node::new("data_type", 1, 1).value(data_type)];
    let mut at = 2;
    if unpacked {
        parts.push(Node::new("padding", 2, 6));
        at = 8;
    }
    let shape = |value: u64| match header.data_type {
        DataType::Scalar => "not set".to_owned(),
        _ => value.to_string(),
    };
    parts.push(Node::new("rows", at, 8).value(shape(header.rows)));
    parts.push(Node::new("cols", at + 8, 8).value(shape(header.cols)));
    at += 16;
    if header.data_type != DataType::Frame {
        parts.extend(header.value_type(0).map(|found| value_type("value_type", at, found, header.dialect)));
    } else {
        let types = Arc::clone(file);
        parts.push(Node::new("value_types", at, header.cols).expand(Strided {
            offset: at,
            stride: 1,
            count: header.cols,
            make: move |index, offset| {
                let header = &types.layout.header;
                let found = header.value_type(index).ok_or_else(|| Error::usage("no such column"))?;
                Ok(value_type(&format!("[{index}]"), offset, found, header.dialect))
            },
        }));
        at += header.cols;
        let labels = Labels { file: Arc::clone(file), offset: at };
        parts.push(Node::new("labels", at, header.bytes - at).expand(labels));
    }
    Node::new("header", 0, header.bytes).parts(parts)
}

fn value_type(name: &str, offset: u64, found: ValueType, dialect: Dialect) -> Node {
    let code = found.code(dialect).map_or_else(String::new, |code| format!("{code} "));
    Node::new(name, offset, 1).value(format!("{code}({found})"))
}

struct Labels {
    file: Arc<File>,
    offset: u64,
}

impl Expand for Labels {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let mut offset = self.offset;
        let labels = (0u64..).zip(&self.file.layout.header.labels).map(move |(index, label)| {
            let bytes = 2 + label.len() as u64;
            let text = match std::str::from_utf8(label) {
                Ok(text) => format!("{text:?}"),
                Err(_) => "not text".to_owned(),
            };
            let node = Node::new(format!("[{index}]"), offset, bytes).parts(vec![
                Node::new("length", offset, 2).value(label.len()),
                Node::new("text", offset + 2, label.len() as u64).value(text),
            ]);
            offset += bytes;
            Ok(node)
        });
        Box::new(labels.skip(usize::try_from(from).unwrap_or(usize::MAX)))
    }

    fn count(&self) -> Option<u64> {
        Some(self.file.layout.header.labels.len() as u64)
    }
}

struct Blocks {
    file: Arc<File>,
}

impl Expand for Blocks {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let count = self.file.layout.blocks.len();
        let first = usize::try_from(from).unwrap_or(usize::MAX).min(count);
        Box::new((first..count).map(|index| block_node(&self.file, index)))
    }

    fn count(&self) -> Option<u64> {
        Some(self.file.layout.blocks.len() as u64)
    }

    fn index_near(&self, offset: u64) -> u64 {
        let before = self.file.layout.blocks.partition_point(|block| block.offset <= offset);
        before.saturating_sub(1) as u64
    }
}

fn block_node(file: &Arc<File>, index: usize) -> Result<Node> {
    let layout = &file.layout;
    let block = layout.blocks.get(index).ok_or_else(|| Error::usage("no such block"))?;
    let header = &layout.header;
    let encoding = layout.encoding(block);
    let mut parts = Vec::new();
    let mut at = block.offset;
    if header.data_type != DataType::Scalar {
        parts.push(Node::new("row", at, 8).value(block.row));
        parts.push(Node::new("col", at + 8, 8).value(block.col));
        at += 16;
        if encoding != Encoding::FrameRows {
            parts.push(Node::new("rows", at, 4).value(block.rows));
            parts.push(Node::new("cols", at + 4, 4).value(block.cols));
            let code = format!("{} ({})", block.block_type.code(), block.block_type);
            parts.push(Node::new("block_type", at + 8, 1).value(code));
            at += 9;
            if header.dialect == Dialect::Daphne01 {
                parts.push(Node::new("padding", at, 3));
                at += 3;
            }
            if let Some(found) = block.value_type {
                parts.push(value_type("value_type", at, found, header.dialect));
                at += 1;
            }
            if matches!(block.block_type, BlockType::Sparse | BlockType::UltraSparse) {
                parts.push(Node::new("entries", at, block.data_offset - at).value(block.entries));
            }
        }
    }
    parts.extend(body(file, block, encoding));
    let bytes = block.data_offset + block.data_bytes - block.offset;
    let size = format!("{} x {} {}", block.rows, block.cols, block.block_type);
    Ok(Node::new(format!("[{index}]"), block.offset, bytes).value(size).parts(parts))
}

fn body(file: &Arc<File>, block: &Block, encoding: Encoding) -> Vec<Node> {
    let header = &file.layout.header;
    let value_type = block.value_type.or(header.value_type(0)).unwrap_or(ValueType::Float64);
    let size = value_type.size() as u64;
    let whole = |name: &str| Node::new(name, block.data_offset, block.data_bytes);
    match encoding {
        Encoding::Empty => Vec::new(),
        Encoding::Dense | Encoding::FrameRows => {
            // Columns of a frame differ in width.
            let types: Arc<[ValueType]> = match block.value_type {
                Some(_) => Arc::from([]),
                None => header.value_types.clone().into(),
            };
            let row_bytes = match block.value_type {
                Some(_) => block.cols * size,
                None => header.row_bytes().unwrap_or(0),
            };
            if row_bytes == 0 {
                return vec![whole("rows")];
            }
            let (source, cols) = (Arc::clone(file), block.cols);
            vec![whole("row").expand(Strided {
                offset: block.data_offset,
                stride: row_bytes,
                count: block.rows,
                make: move |row, offset| {
                    let node = Node::new(format!("[{row}]"), offset, row_bytes);
                    Ok(match types.is_empty() {
                        true => node.expand(values(&source, value_type, offset, cols)),
                        false => node.parts(frame_row(&source, &types, offset)?),
                    })
                },
            })]
        }
        Encoding::Sparse => {
            vec![whole("row").expand(SparseRows { file: Arc::clone(file), block: block.clone(), word: 4 })]
        }
        Encoding::WideSparse => {
            vec![whole("row").expand(SparseRows { file: Arc::clone(file), block: block.clone(), word: 8 })]
        }
        Encoding::UltraSparse => {
            let (source, step, index_bytes) =
                (Arc::clone(file), coordinate_bytes(block), coordinate_bytes(block) - size);
            vec![whole("entry").expand(Strided {
                offset: block.data_offset,
                stride: step,
                count: block.entries,
                make: move |index, offset| {
                    let mut parts = vec![word_node(&source, "row", offset, 4)?];
                    if index_bytes == 8 {
                        parts.push(word_node(&source, "col", offset + 4, 4)?);
                    }
                    parts.push(value(&source, "value", value_type, offset + index_bytes)?);
                    Ok(Node::new(format!("[{index}]"), offset, step).parts(parts))
                },
            })]
        }
        Encoding::CsrArrays => {
            let cols_at = block.data_offset + (block.rows + 1) * 8;
            let values_at = cols_at + block.entries * 8;
            let words = |name: &str, offset: u64, count: u64| {
                let source = Arc::clone(file);
                Node::new(name, offset, count * 8).expand(Strided {
                    offset,
                    stride: 8,
                    count,
                    make: move |index, offset| word_node(&source, &format!("[{index}]"), offset, 8),
                })
            };
            vec![
                words("row_offsets", block.data_offset, block.rows + 1),
                words("column_indices", cols_at, block.entries),
                Node::new("values", values_at, block.entries * size).expand(values(
                    file,
                    value_type,
                    values_at,
                    block.entries,
                )),
            ]
        }
    }
}

/// Values of one type, one after the other.
fn values(file: &Arc<File>, value_type: ValueType, offset: u64, count: u64) -> impl Expand + 'static {
    let source = Arc::clone(file);
    Strided {
        offset,
        stride: value_type.size() as u64,
        count,
        make: move |index, offset| value(&source, &format!("[{index}]"), value_type, offset),
    }
}

fn frame_row(file: &File, types: &[ValueType], mut offset: u64) -> Result<Vec<Node>> {
    let mut parts = Vec::new();
    for (index, value_type) in types.iter().enumerate() {
        parts.push(value(file, &format!("[{index}]"), *value_type, offset)?);
        offset += value_type.size() as u64;
    }
    Ok(parts)
}

fn value(file: &File, name: &str, value_type: ValueType, offset: u64) -> Result<Node> {
    let mut cell = [0; 32];
    let cell = cell.get_mut(..value_type.size()).unwrap_or_default();
    file.source.read_exact_at(offset, cell)?;
    let text = match value_type {
        ValueType::FixedStr16 => fixed_text(cell).map_or_else(str::to_owned, |text| format!("{text:?}")),
        // Shortest text at its own width.
        ValueType::Float32 => {
            cell.first_chunk().map_or_else(String::new, |bytes| format!("{:?}", f32::from_le_bytes(*bytes)))
        }
        _ => Number::read(value_type, cell).map_or_else(String::new, |number| number.to_string()),
    };
    Ok(Node::new(name, offset, value_type.size() as u64).value(text))
}

fn word_node(file: &File, name: &str, offset: u64, bytes: u64) -> Result<Node> {
    Ok(Node::new(name, offset, bytes).value(word(file, offset, bytes)?))
}

fn word(file: &File, offset: u64, bytes: u64) -> Result<u64> {
    let mut word = [0; 8];
    let place = word.get_mut(..usize::try_from(bytes).unwrap_or(0)).unwrap_or_default();
    file.source.read_exact_at(offset, place)?;
    Ok(u64::from_le_bytes(word))
}

/// Rows of a count and pairs: a row can be found only by walking those before it.
struct SparseRows {
    file: Arc<File>,
    block: Block,
    word: u64,
}

impl Expand for SparseRows {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let value_type = self.block.value_type.unwrap_or(ValueType::Float64);
        let pair = self.word + value_type.size() as u64;
        let mut window = BlockWindow::new(&self.file.source, &self.block, &self.file.budget);
        let mut offset = self.block.data_offset;
        let mut row = 0;
        let mut failed = false;
        let walk = move || {
            if row == self.block.rows || failed {
                return None;
            }
            let mut next = || {
                let count = window.at(offset, self.word)?;
                let count = count.iter().take(usize::try_from(self.word).unwrap_or(0)).rev();
                let count = count.fold(0, |count: u64, byte| count << 8 | u64::from(*byte));
                let bytes = count.checked_mul(pair).and_then(|bytes| bytes.checked_add(self.word));
                let end = self.block.data_offset + self.block.data_bytes;
                let bytes = bytes.filter(|bytes| *bytes <= end - offset).ok_or_else(|| {
                    Error::malformed("a row within the block", format_args!("{count} entries")).at(offset)
                })?;
                Ok::<_, Error>((count, bytes))
            };
            match next().index(row).field("row") {
                Ok((count, bytes)) => {
                    let found = (row, offset, count, bytes);
                    row += 1;
                    offset += bytes;
                    Some(Ok(found))
                }
                Err(error) => {
                    failed = true;
                    Some(Err(error))
                }
            }
        };
        let rows = std::iter::from_fn(walk).skip(usize::try_from(from).unwrap_or(usize::MAX));
        Box::new(rows.map(move |found| {
            let (row, offset, count, bytes) = found?;
            let (source, word) = (Arc::clone(&self.file), self.word);
            let entries = Strided {
                offset: offset + word,
                stride: pair,
                count,
                make: move |index, offset| {
                    let col = word_node(&source, "col", offset, word)?;
                    let value = value(&source, "value", value_type, offset + word)?;
                    Ok(Node::new(format!("[{index}]"), offset, pair).parts(vec![col, value]))
                },
            };
            let parts = vec![
                Node::new("count", offset, word).value(count),
                Node::new("entry", offset + word, bytes - word).expand(entries),
            ];
            Ok(Node::new(format!("[{row}]"), offset, bytes).parts(parts))
        }))
    }

    fn count(&self) -> Option<u64> {
        Some(self.block.rows)
    }
}
