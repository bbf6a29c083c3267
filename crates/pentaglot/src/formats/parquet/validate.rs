//! Every rule that the bytes can break; a page or row group that is broken does not hide the next.

use arrow_array::Array;
use parquet::file::metadata::ColumnChunkMetaData;

use super::layout::check_value_count;
use super::page_header::PageHeader;
use super::read::Store;
use super::shapes::{COLUMN_INDEX, OFFSET_INDEX};
use super::thrift;
use crate::control::Ahead;
use crate::error::{Context, Error, ErrorKind, Result};
use crate::formats::Findings;

/// A file's fault is a finding; anything else ends the run.
fn report(findings: &mut Findings, result: Result<()>) -> Result<()> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
            findings.error(&error);
            Ok(())
        }
        other => other,
    }
}

pub(super) fn store(store: &Store, findings: &mut Findings) -> Result<()> {
    if let Some(note) = &store.schema_note {
        let error = Error::new(ErrorKind::Malformed, note.clone()).at(store.footer.offset);
        findings.warning(&error.field("footer").rule("arrow-schema"));
    }
    for (index, group) in store.footer.metadata.row_groups().iter().enumerate() {
        let before = findings.list().len();
        for (leaf, column) in group.columns().iter().enumerate() {
            let place =
                |error: Error| error.field(column.column_path().string()).index(leaf as u64).field("columns");
            let place = |error: Error| place(error).index(index as u64).field("row_group");
            report(findings, check_chunk(store, column, index, leaf).map_err(place))?;
            report(findings, check_index(store, column).map_err(place))?;
        }
        // What is known to be broken need not be decoded to say so again.
        if findings.list().len() == before {
            let result = check_values(store, index, findings);
            report(findings, result)?;
        }
        if findings.is_full() {
            break;
        }
    }
    Ok(())
}

/// The pages of a chunk: their order, checksums and counts.
fn check_chunk(store: &Store, column: &ColumnChunkMetaData, group: usize, leaf: usize) -> Result<()> {
    let (mut values, mut unpacked) = (0u64, 0u64);
    let (mut data_seen, mut first_data) = (false, None);
    for (index, page) in store.footer.pages(&store.chunks, group, leaf)?.enumerate() {
        let place = |error: Error| error.index(index as u64).field("page");
        let page = page.map_err(place)?;
        let header = page.header;
        if header.kind == PageHeader::DICTIONARY && index > 0 {
            let error = Error::malformed("a dictionary page first or not at all", "one later");
            return Err(place(error.at(page.offset).rule("page-order")));
        }
        if header.is_data() {
            first_data = first_data.or(Some(page.offset));
            data_seen = true;
            values = values.saturating_add(header.value_count);
        }
        unpacked = unpacked.saturating_add(header.header_bytes).saturating_add(header.unpacked_bytes);
        if let Some(expected) = header.crc {
            let body = store.chunks.source.read_range(
                page.body_offset(),
                header.packed_bytes,
                &store.chunks.budget,
            )?;
            let mut crc = flate2::Crc::new();
            crc.update(&body);
            if crc.sum() != expected {
                let expected = format!("the checksum {expected:08x}");
                let error = Error::malformed(expected, format_args!("{:08x}", crc.sum()));
                return Err(place(error.at(page.body_offset()).rule("crc")));
            }
        }
    }
    check_value_count(column, values)?;
    let (start, _) = column.byte_range();
    if data_seen && first_data != u64::try_from(column.data_page_offset()).ok() {
        return Err(Error::malformed(
            format_args!("the first data page at {}", column.data_page_offset()),
            format_args!("{}", first_data.unwrap_or(0)),
        )
        .at(start)
        .rule("data-page-offset"));
    }
    let declared = u64::try_from(column.uncompressed_size()).unwrap_or(0);
    if unpacked != declared {
        return Err(Error::malformed(format_args!("{declared} unpacked bytes with headers"), unpacked)
            .at(start)
            .rule("uncompressed-size"));
    }
    Ok(())
}

/// The offset index of a chunk names its data pages.
fn check_index(store: &Store, column: &ColumnChunkMetaData) -> Result<()> {
    for (name, shape, offset, length) in [
        ("offset_index", OFFSET_INDEX, column.offset_index_offset(), column.offset_index_length()),
        ("column_index", COLUMN_INDEX, column.column_index_offset(), column.column_index_length()),
    ] {
        let (Some(offset), Some(length)) = (offset, length) else { continue };
        let range = u64::try_from(offset).ok().zip(u64::try_from(length).ok());
        let range = range
            .filter(|(start, len)| start.checked_add(*len).is_some_and(|end| end <= store.footer.offset));
        let Some((start, len)) = range else {
            return Err(Error::malformed(
                format_args!("a range before the footer at {}", store.footer.offset),
                format_args!("{length} bytes at {offset}"),
            )
            .field(name)
            .rule("page-index"));
        };
        let bytes = store.chunks.source.read_range(start, len, &store.chunks.budget)?;
        thrift::check_struct(shape, &bytes, start, &store.chunks.budget).field(name)?;
    }
    Ok(())
}

/// Every value of a row group, decoded; the nulls are as many as the statistics say.
fn check_values(store: &Store, index: usize, findings: &mut Findings) -> Result<()> {
    let Some(group) = store.footer.metadata.row_groups().get(index) else { return Ok(()) };
    let total = u64::try_from(group.num_rows()).unwrap_or(0);
    if store.schema.fields().is_empty() {
        return Ok(());
    }
    let columns: Vec<usize> = (0..store.schema.fields().len()).collect();
    let mut ahead = Ahead::new(&store.control);
    // Its errors say where the column is.
    let reader = store.read_group(index, &columns, 0..total, 0, &mut ahead)?;
    let mut nulls = vec![0u64; store.schema.fields().len()];
    let mut rows = 0u64;
    loop {
        reader.begin_batch(&mut ahead)?;
        let batch = reader.next_batch(&mut ahead).index(index as u64).field("row_group")?;
        let Some(batch) = batch else { break };
        rows += batch.num_rows() as u64;
        for (count, column) in nulls.iter_mut().zip(batch.columns()) {
            *count += column.logical_null_count() as u64;
        }
    }
    if rows != total {
        let error = Error::malformed(format_args!("{total} rows"), rows).rule("row-count");
        return Err(error.index(index as u64).field("row_group"));
    }
    for (root, (leaf, counted)) in store.flat_columns().zip(&nulls).enumerate() {
        let statistics = leaf.and_then(|leaf| group.columns().get(leaf)?.statistics()?.null_count_opt());
        if let Some(declared) = statistics.filter(|declared| declared != counted) {
            let error = Error::malformed(format_args!("{declared} nulls as in the statistics"), counted);
            let name = store.schema.fields().get(root).map_or("", |field| field.name()).to_owned();
            let error = error.field(name).index(root as u64).field("columns");
            findings.error(&error.index(index as u64).field("row_group").rule("null-count"));
        }
    }
    Ok(())
}
