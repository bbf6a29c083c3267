//! What is looked at before the `parquet` crate decodes a row group: the headers of the pages, and how long the values of
//! dictionaries are.

use std::ops::Range;

use parquet::arrow::ProjectionMask;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::page_index::offset_index::PageLocation;

use super::batch_size::{ChunkSize, MOST_BATCH_ROWS, most_batch_bytes};
use super::delta_lengths::PrefixedValues;
use super::dictionary::longest_value;
use super::layout::{Chunks, Page, check_value_count};
use super::page_header::PageHeader;
use super::read::Store;
use super::row_values::{each_page, most_row_values};
use crate::error::{Error, Result};

/// Dictionaries of so many bytes are not read to learn how long their values are.
const SMALL_DICTIONARY: u64 = 256;

impl Store {
    /// Looks at the header of every page that will be decoded.
    pub(super) fn check_pages(
        &self,
        metadata: &ParquetMetaData,
        group: usize,
        mask: &ProjectionMask,
        range: &Range<u64>,
    ) -> Result<Vec<ChunkSize>> {
        let chunks = self.chunks.apart();
        let columns = metadata.row_groups().get(group).map_or(0, |group| group.num_columns());
        let wanted: Vec<usize> = (0..columns).filter(|leaf| mask.leaf_included(*leaf)).collect();
        // Where reads are costly nothing is decoded ahead, and a rough bound will do.
        let enough = most_batch_bytes(chunks.budget.limits()) / MOST_BATCH_ROWS / (columns as u64).max(1);
        let enough = if chunks.source.is_costly() { enough } else { enough.min(SMALL_DICTIONARY) };
        let check = |leaf: &usize| {
            let size = self.check_column(&chunks, metadata, group, *leaf, range, enough);
            size.map_err(|error| self.in_column(error, group, *leaf))
        };
        wanted.iter().map(check).collect()
    }

    /// Says where an error is.
    fn in_column(&self, error: Error, group: usize, leaf: usize) -> Error {
        let column = self.footer.metadata.row_groups().get(group).and_then(|group| group.columns().get(leaf));
        let name = column.map_or_else(String::new, |column| column.column_path().string());
        let error = error.field(name).index(leaf as u64).field("columns");
        error.index(group as u64).field("row_group")
    }

    fn check_column(
        &self,
        chunks: &Chunks,
        metadata: &ParquetMetaData,
        group: usize,
        leaf: usize,
        range: &Range<u64>,
        enough: u64,
    ) -> Result<ChunkSize> {
        let mut pages = self.footer.pages(chunks, group, leaf)?;
        let column = pages.column();
        let total = metadata.row_groups().get(group).map_or(0, |group| group.num_rows());
        let mut empty = EmptyPages::default();
        let Some(locations) = page_locations(metadata, group, leaf) else {
            let mut size = ChunkSize::new(leaf, column, u64::try_from(total).unwrap_or(0));
            // A page whose kind is wrong is skipped by the decoder, which then gives too few values.
            for page in &mut pages {
                let page = page?;
                empty.check(&page)?;
                if page.header.kind == PageHeader::DICTIONARY {
                    size.add_dictionary(&page, longest_value(chunks, column, &page, enough)?);
                } else if page.header.is_data() {
                    size.add(&page);
                }
            }
            check_value_count(column, size.values)?;
            if empty.run > 0 && size.values > 0 && column.column_descr().max_rep_level() > 0 {
                let what = "a page without values at the end of a column with lists";
                return Err(Error::unsupported(what).at(column.byte_range().0));
            }
            return Ok(size);
        };
        let row = |index: usize| first_row(locations, index, total);
        let (start, len) = column.byte_range();
        // The dictionary and the pages up to the last that is wanted, if they begin the chunk.
        if let Some(next) = (0..locations.len()).find(|index| row(*index + 1) >= range.end)
            && range.start < row(1)
        {
            let end = locations.get(next + 1).and_then(|page| u64::try_from(page.offset).ok());
            chunks.source.prefetch(start..end.unwrap_or(start + len))?;
        }
        let wanted = wanted_pages(locations, range, total);
        let mut size = ChunkSize::new(leaf, column, row(wanted.end).saturating_sub(row(wanted.start)));
        let first = locations.first().and_then(|page| u64::try_from(page.offset).ok());
        let has_dictionary = len > 0 && first != Some(start);
        if has_dictionary {
            let page = pages.page(start)?;
            size.add_dictionary(&page, longest_value(chunks, column, &page, enough)?);
        }
        for location in locations.get(wanted).unwrap_or_default() {
            let page = pages.page(u64::try_from(location.offset).unwrap_or(u64::MAX))?;
            empty.check(&page)?;
            if page.header.is_data() {
                size.add(&page);
            }
        }
        Ok(size)
    }

    /// Counts the values of the rows in a column with lists, whose pages have been checked.
    pub(super) fn count_row_values(
        &self,
        metadata: &ParquetMetaData,
        group: usize,
        range: &Range<u64>,
        size: &mut ChunkSize,
    ) -> Result<()> {
        let found = self.with_pages(metadata, group, range, size.leaf, |chunks, column, pages| {
            // The pages begin before the rows that are wanted, and end after them.
            let rows = if pages.is_some() { u64::MAX } else { range.end };
            most_row_values(chunks, column, pages, rows)
        });
        size.row_values = found?.max(1);
        Ok(())
    }

    /// Looks at the lengths of byte strings, in pages whose headers have been checked.
    pub(super) fn check_lengths(
        &self,
        metadata: &ParquetMetaData,
        group: usize,
        range: &Range<u64>,
        size: &mut ChunkSize,
    ) -> Result<()> {
        let mut values = PrefixedValues::default();
        self.with_pages(metadata, group, range, size.leaf, |chunks, column, pages| {
            each_page(chunks, column, pages, |page| {
                self.control.check()?;
                values.add_page(page, column).map(|()| true)
            })
        })?;
        size.add_prefixed(values);
        Ok(())
    }

    /// What `look` finds in a column, of whose pages it gets those that are wanted; `None`: all, whose places are not known.
    fn with_pages<T>(
        &self,
        metadata: &ParquetMetaData,
        group: usize,
        range: &Range<u64>,
        leaf: usize,
        look: impl FnOnce(&Chunks, &ColumnChunkMetaData, Option<(&[PageLocation], Range<usize>)>) -> Result<T>,
    ) -> Result<T> {
        let chunks = self.chunks.apart();
        let column = self.footer.pages(&chunks, group, leaf)?.column();
        let total = metadata.row_groups().get(group).map_or(0, |group| group.num_rows());
        let pages = page_locations(metadata, group, leaf);
        let pages = pages.map(|all| (all, wanted_pages(all, range, total)));
        look(&chunks, column, pages).map_err(|error| self.in_column(error, group, leaf))
    }
}

fn page_locations(metadata: &ParquetMetaData, group: usize, leaf: usize) -> Option<&[PageLocation]> {
    let index = metadata.offset_index().and_then(|index| index.get(group)?.get(leaf));
    index.map(|index| index.page_locations().as_slice())
}

/// The pages that have rows of `range`.
fn wanted_pages(locations: &[PageLocation], range: &Range<u64>, total: i64) -> Range<usize> {
    let row = |index: usize| first_row(locations, index, total);
    let is_wanted = |index: &usize| row(*index) < range.end && row(*index + 1) > range.start;
    let first = (0..locations.len()).find(is_wanted).unwrap_or(locations.len());
    first..(first..locations.len()).rev().find(is_wanted).map_or(first, |last| last + 1)
}

/// The first row of a page, or the number of rows after the last page.
fn first_row(locations: &[PageLocation], index: usize, total: i64) -> u64 {
    let row = locations.get(index).map_or(total, |page| page.first_row_index);
    u64::try_from(row).unwrap_or(u64::MAX)
}

/// Pages without values. The `parquet` crate passes over one of them and takes two for the end; in a column with lists it loses the last
/// row if one follows.
#[derive(Default)]
struct EmptyPages {
    /// How many came one after the other until now.
    run: u64,
}

impl EmptyPages {
    fn check(&mut self, page: &Page) -> Result<()> {
        if !page.header.is_data() {
            return Ok(());
        }
        if page.header.value_count == 0 {
            self.run += 1;
            return Ok(());
        }
        match std::mem::take(&mut self.run) {
            0 | 1 => Ok(()),
            run => {
                let what = format_args!("{run} pages without values, one after the other");
                Err(Error::unsupported(what).at(page.offset))
            }
        }
    }
}
