//! What is looked at before the `parquet` crate decodes a row group: the headers of the pages, and how long the values of
//! dictionaries are.

use std::ops::Range;

use parquet::arrow::ProjectionMask;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::offset_index::PageLocation;

use super::dictionary::longest_value;
use super::group_rows::MOST_BATCH_ROWS;
use super::layout::{Chunks, Page, check_value_count};
use super::page_header::PageHeader;
use super::read::Store;
use crate::error::{Error, Result};

/// Dictionaries of so many bytes are not read to learn how long their values are.
const SMALL_DICTIONARY: u64 = 256;

impl Store {
    /// Looks at the header of every page that will be decoded; gives, for each column that is stored, the most bytes of a value in
    /// its dictionary.
    pub(super) fn check_pages(
        &self,
        metadata: &ParquetMetaData,
        group: usize,
        mask: &ProjectionMask,
        range: &Range<u64>,
    ) -> Result<Vec<(usize, u64)>> {
        let chunks = self.chunks.apart();
        let columns = metadata.row_groups().get(group).map_or(0, |group| group.num_columns());
        let wanted = (0..columns).filter(|leaf| mask.leaf_included(*leaf));
        let check = |leaf| match self.check_column(&chunks, metadata, group, leaf, range) {
            Ok(longest) => Ok((leaf, longest)),
            Err(error) => {
                let column =
                    self.footer.metadata.row_groups().get(group).and_then(|group| group.columns().get(leaf));
                let name = column.map_or_else(String::new, |column| column.column_path().string());
                let error = error.field(name).index(leaf as u64).field("columns");
                Err(error.index(group as u64).field("row_group"))
            }
        };
        wanted.map(check).collect()
    }

    fn check_column(
        &self,
        chunks: &Chunks,
        metadata: &ParquetMetaData,
        group: usize,
        leaf: usize,
        range: &Range<u64>,
    ) -> Result<u64> {
        let mut pages = self.footer.pages(chunks, group, leaf)?;
        let column = pages.column();
        // Where reads are costly nothing is decoded ahead, and a rough bound will do.
        let enough = chunks.budget.limits().max_alloc / 4 / MOST_BATCH_ROWS;
        let enough = if chunks.source.is_costly() { enough } else { enough.min(SMALL_DICTIONARY) };
        let mut empty = EmptyPages::default();
        let locations = metadata.offset_index().and_then(|index| index.get(group)?.get(leaf));
        let Some(locations) = locations.map(|index| index.page_locations().as_slice()) else {
            // A page whose kind is wrong is skipped by the decoder, which then gives too few values.
            let (mut values, mut longest) = (0u64, 0);
            for page in &mut pages {
                let page = page?;
                empty.check(&page)?;
                if page.header.kind == PageHeader::DICTIONARY {
                    longest = longest.max(longest_value(chunks, column, &page, enough)?);
                } else if page.header.is_data() {
                    values = values.saturating_add(page.header.value_count);
                }
            }
            check_value_count(column, values)?;
            if empty.run > 0 && values > 0 && column.column_descr().max_rep_level() > 0 {
                let what = "a page without values at the end of a column with lists";
                return Err(Error::unsupported(what).at(column.byte_range().0));
            }
            return Ok(longest);
        };
        let total = metadata.row_groups().get(group).map_or(0, |group| group.num_rows());
        let row = |index: usize| first_row(locations, index, total);
        let (start, len) = column.byte_range();
        // The dictionary and the pages up to the last that is wanted, if they begin the chunk.
        if let Some(next) = (0..locations.len()).find(|index| row(*index + 1) >= range.end)
            && range.start < row(1)
        {
            let end = locations.get(next + 1).and_then(|page| u64::try_from(page.offset).ok());
            chunks.source.prefetch(start..end.unwrap_or(start + len))?;
        }
        let first = locations.first().and_then(|page| u64::try_from(page.offset).ok());
        let has_dictionary = len > 0 && first != Some(start);
        let longest = match has_dictionary {
            true => longest_value(chunks, column, &pages.page(start)?, enough)?,
            false => 0,
        };
        for (index, location) in locations.iter().enumerate() {
            if row(index) < range.end && row(index + 1) > range.start {
                empty.check(&pages.page(u64::try_from(location.offset).unwrap_or(u64::MAX))?)?;
            }
        }
        Ok(longest)
    }
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
