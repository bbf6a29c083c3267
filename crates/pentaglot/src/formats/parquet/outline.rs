//! Row groups, column chunks, pages and the footer as named byte ranges. Pages are walked when a chunk is opened.

use std::ops::Range;
use std::sync::Arc;

use parquet::file::metadata::ColumnChunkMetaData;

use super::footer::TAIL_BYTES;
use super::layout::Page;
use super::read::Store;
use super::thrift;
use crate::cursor::Cursor;
use crate::error::{Result, count};
use crate::formats::{Expand, Node, Outline};

pub(super) fn store(store: &Arc<Store>) -> Outline {
    let total = store.chunks.source.len().unwrap_or(0);
    let mut parts = vec![Node::new("magic", 0, 4).value("PAR1")];
    for (index, group) in store.footer.metadata.row_groups().iter().enumerate() {
        let Some(range) = hull(group.columns().iter().map(|column| column.byte_range())) else { continue };
        let node = Node::new(format!("row_group[{index}]"), range.start, range.end - range.start);
        let node = node.value(count(u64::try_from(group.num_rows()).unwrap_or(0), "row"));
        parts.push(node.expand(Columns { store: Arc::clone(store), group: index }));
    }
    let columns = || store.footer.metadata.row_groups().iter().flat_map(|group| group.columns());
    let ranges = [
        ("column_index", hull(columns().filter_map(column_index))),
        ("offset_index", hull(columns().filter_map(offset_index))),
    ];
    for (name, range) in ranges {
        let range = range.filter(|range| range.start >= 4 && range.end <= store.footer.offset);
        parts.extend(range.map(|range| Node::new(name, range.start, range.end - range.start)));
    }
    let footer = Node::new("footer", store.footer.offset, store.footer.bytes);
    parts.push(footer.expand(FooterFields { store: Arc::clone(store) }));
    let tail = total.saturating_sub(TAIL_BYTES);
    parts.push(Node::new("footer_length", tail, 4).value(store.footer.bytes));
    parts.push(Node::new("magic", tail + 4, 4).value("PAR1"));
    parts.sort_by_key(|part| part.offset);
    Node::new("parquet", 0, total).parts(parts)
}

fn column_index(column: &ColumnChunkMetaData) -> Option<(u64, u64)> {
    let (offset, length) = (column.column_index_offset()?, column.column_index_length()?);
    Some((u64::try_from(offset).ok()?, u64::try_from(length).ok()?))
}

fn offset_index(column: &ColumnChunkMetaData) -> Option<(u64, u64)> {
    let (offset, length) = (column.offset_index_offset()?, column.offset_index_length()?);
    Some((u64::try_from(offset).ok()?, u64::try_from(length).ok()?))
}

/// The range from the first to the last of some ranges, given as offset and length.
fn hull(ranges: impl Iterator<Item = (u64, u64)>) -> Option<Range<u64>> {
    ranges
        .map(|(start, len)| start..start.saturating_add(len))
        .reduce(|one, other| one.start.min(other.start)..one.end.max(other.end))
}

struct Columns {
    store: Arc<Store>,
    group: usize,
}

impl Expand for Columns {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let group = self.store.footer.metadata.row_groups().get(self.group);
        let columns = group.map(|group| group.columns()).unwrap_or_default();
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Box::new(columns.iter().enumerate().skip(from).map(|(leaf, column)| {
            let (start, len) = column.byte_range();
            let value = format!(
                "{}, {}, {} values, {} bytes unpacked",
                column.column_type(),
                column.compression(),
                column.num_values(),
                column.uncompressed_size()
            );
            let node = Node::new(column.column_path().string(), start, len).value(value);
            Ok(node.expand(Chunk { store: Arc::clone(&self.store), group: self.group, leaf }))
        }))
    }

    fn count(&self) -> Option<u64> {
        let group = self.store.footer.metadata.row_groups().get(self.group)?;
        Some(group.num_columns() as u64)
    }
}

struct Chunk {
    store: Arc<Store>,
    group: usize,
    leaf: usize,
}

impl Expand for Chunk {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let pages = match self.store.footer.pages(&self.store.chunks, self.group, self.leaf) {
            Ok(pages) => pages.enumerate(),
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Box::new(pages.skip(from).map(|(index, page)| page.map(|page| page_node(index, &page))))
    }
}

fn page_node(index: usize, page: &Page) -> Node {
    let header = &page.header;
    let value = format!(
        "{}, {} values, encoding {}, {} bytes unpacked",
        header.kind_name(),
        header.value_count,
        header.encoding,
        header.unpacked_bytes
    );
    let mut parts = vec![Node::new("header", page.offset, header.header_bytes)];
    if header.level_bytes > 0 {
        parts.push(Node::new("levels", page.body_offset(), header.level_bytes));
    }
    let values = page.body_offset() + header.level_bytes;
    parts.push(Node::new("values", values, header.packed_bytes - header.level_bytes));
    Node::new(format!("page[{index}]"), page.offset, page.end() - page.offset).value(value).parts(parts)
}

struct FooterFields {
    store: Arc<Store>,
}

impl FooterFields {
    fn make(&self) -> Result<Vec<Node>> {
        let (footer, chunks) = (&self.store.footer, &self.store.chunks);
        let bytes = chunks.source.read_range(footer.offset, footer.bytes, &chunks.budget)?;
        let file = footer.metadata.file_metadata();
        let mut nodes = Vec::new();
        let mut cursor = Cursor::at(&bytes, footer.offset);
        let mut start = cursor.offset();
        thrift::fields(&mut cursor, |id, code, cursor| {
            thrift::skip(code, cursor)?;
            let (name, value) = match id {
                1 => ("version", Some(file.version().to_string())),
                2 => ("schema", Some(format!("{} columns", file.schema_descr().num_columns()))),
                3 => ("num_rows", Some(file.num_rows().to_string())),
                4 => ("row_groups", Some(footer.metadata.num_row_groups().to_string())),
                5 => ("key_value_metadata", file.key_value_metadata().map(|pairs| pairs.len().to_string())),
                6 => ("created_by", file.created_by().map(str::to_owned)),
                7 => ("column_orders", None),
                8 => ("encryption_algorithm", None),
                9 => ("footer_signing_key_metadata", None),
                _ => ("unknown", Some(format!("field {id}"))),
            };
            let mut node = Node::new(name, start, cursor.offset() - start);
            node.value = value;
            nodes.push(node);
            start = cursor.offset();
            Ok(())
        })?;
        Ok(nodes)
    }
}

impl Expand for FooterFields {
    fn nodes(&self, from: u64) -> Box<dyn Iterator<Item = Result<Node>> + '_> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        match self.make() {
            Ok(parts) => Box::new(parts.into_iter().skip(from).map(Ok)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }
}
