//! What the footer says of a file.

use std::sync::Arc;

use super::ID;
use super::levels::LEVELS_KEY;
use super::read::Store;
use super::schema;
use super::write::ROW_COUNT_KEY;
use crate::formats::Summary;

/// With more chunks than this the parts are row groups.
const MOST_CHUNK_PARTS: usize = 1000;

impl Store {
    pub(super) fn summary(&self) -> Summary {
        let mut summary = Summary::new(ID, Arc::clone(&self.schema));
        let metadata = &self.footer.metadata;
        let file = metadata.file_metadata();
        summary.rows = Some(self.total_rows);
        summary.bytes = self.chunks.source.len();
        let chunk_count: usize = metadata.row_groups().iter().map(|group| group.num_columns()).sum();
        for (index, group) in metadata.row_groups().iter().enumerate() {
            let ranges = group.columns().iter().map(|column| (column, column.byte_range()));
            if chunk_count <= MOST_CHUNK_PARTS {
                for (column, (start, len)) in ranges {
                    summary.part(format!("row_group[{index}].{}", column.column_path()), start, len);
                }
            } else {
                let start = ranges.clone().map(|(_, (start, _))| start).min().unwrap_or(0);
                let end = ranges.map(|(_, (start, len))| start + len).max().unwrap_or(start);
                summary.part(format!("row_group[{index}]"), start, end - start);
            }
        }
        summary.part("footer", self.footer.offset, self.footer.bytes);
        summary.null_counts = self
            .flat_columns()
            .map(|leaf| {
                let counts = metadata.row_groups().iter();
                let mut counts =
                    counts.map(|group| group.columns().get(leaf?)?.statistics()?.null_count_opt());
                counts.try_fold(0u64, |sum, count| sum.checked_add(count?)).filter(|_| leaf.is_some())
            })
            .collect();
        let mut say = |key: &str, value: String| summary.metadata.push((key.to_owned(), value));
        say("version", file.version().to_string());
        if let Some(program) = file.created_by() {
            say("created_by", program.to_owned());
        }
        say("row_groups", metadata.num_row_groups().to_string());
        let mut codecs: Vec<String> = metadata
            .row_groups()
            .iter()
            .flat_map(|group| group.columns())
            .map(|column| column.compression_codec().to_string())
            .collect();
        codecs.sort();
        codecs.dedup();
        say("compression", codecs.join(", ").to_lowercase());
        for pair in file.key_value_metadata().into_iter().flatten() {
            let value = pair.value.as_deref().unwrap_or_default();
            let blob = ["ARROW:schema", schema::SCHEMA_KEY, LEVELS_KEY].contains(&pair.key.as_str());
            match value.char_indices().nth(200) {
                _ if pair.key == ROW_COUNT_KEY => {}
                _ if blob => say(&pair.key, format!("{} bytes", value.len())),
                Some((end, _)) => {
                    let cut = value.get(..end).unwrap_or_default();
                    say(&pair.key, format!("{cut}… ({} bytes)", value.len()));
                }
                None => say(&pair.key, value.to_owned()),
            }
        }
        summary.note_ignored(self.schema_note.clone());
        summary
    }

    /// For each column its leaf, if it has but one and no lists.
    pub(super) fn flat_columns(&self) -> impl Iterator<Item = Option<usize>> + '_ {
        let schema = self.footer.metadata.file_metadata().schema_descr();
        (0..self.schema.fields().len()).map(move |root| {
            let leaf = (0..schema.num_columns()).find(|leaf| schema.get_column_root_idx(*leaf) == root)?;
            // A column that is null throughout may be declared as one that has no nulls.
            let null = self.schema.fields().get(root)?.data_type().is_null();
            let flat =
                schema.get_column_root(leaf).is_primitive() && schema.column(leaf).max_rep_level() == 0;
            (flat && !null).then_some(leaf)
        })
    }
}
