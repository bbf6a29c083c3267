//! Intended differences between `validate` and reading. The fuzzer uses this file too.

/// Checks of `validate` that reading does not make: a format, a rule or a part of the place, the reason. There is no
/// exception in the other direction.
pub(crate) const CHECKED_BY_VALIDATE_ONLY: &[(&str, &str, &str)] = &[
    ("arrow", "leading-schema", "the schema is taken from the footer, as by every reader of files"),
    ("ds", "image_size", "images are carried as they are unless they are decoded"),
    ("npz", "_is_array", "that it is there says what SciPy makes of the matrix: its value is not read"),
    ("parquet", "data-page-offset", "pages are found one after the other"),
    ("parquet", "uncompressed-size", "only the sizes of single pages matter"),
    ("parquet", "null-count", "statistics are not read"),
    ("parquet", "column_index", "the page index is used only if it is sound"),
    ("parquet", "offset_index", "the page index is used only if it is sound"),
    ("sds", "count", "bits are read one after the other; their number matters to queries"),
    ("sds", "visits, as the file states", "tables do not walk all paths"),
    ("sds", "sequences[", "tables do not walk all paths"),
    ("sds", "first", "values are read from the levels; where each starts matters to queries"),
    ("sds", "padding", "bytes after the last one are not read"),
    ("sds", "rank-support", "supports are not read"),
    ("sds", "select-support", "supports are not read"),
    ("sds", "samples", "runs are read one after the other"),
    ("sds", "unused-bits", "bits after the last one are not read"),
];
