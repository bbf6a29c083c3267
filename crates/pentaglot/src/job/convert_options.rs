//! The options of a conversion.

use std::ops::Range;

use super::columns::ColumnChanges;
use super::open::OpenOptions;
use super::read::View;
#[cfg(feature = "dynd")]
use super::types::Language;
use crate::hub::LossKinds;

/// The options of a conversion.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// How the input is opened; the options of formats also apply to the target.
    pub open: OpenOptions,
    /// The output's format: an id, with an optional dialect after a colon.
    pub to: Option<String>,
    /// The type that the data is adapted to.
    pub as_type: Option<String>,
    /// The columns, by name; of a matrix also `3`, `7..9`.
    pub columns: Option<Vec<String>>,
    /// Columns that are left out, cast and renamed, before the data is adapted to a type.
    pub changes: ColumnChanges,
    /// The rows, half-open; of those that match, if there is a filter.
    pub rows: Option<Range<u64>>,
    /// Only rows that match; see [`crate::hub::filter`].
    pub filter: Option<String>,
    /// The kinds of loss that are allowed.
    pub allow_lossy: LossKinds,
    /// Whether [`salvage`](super::salvage) replaces an existing output; [`Conversion::run`](super::Conversion::run) takes this as an
    /// argument.
    pub force: bool,
    /// Rows per batch; 0 for the format's default.
    pub batch_rows: usize,
    /// Whether the output is read back before it gets its name, and compared with the data written.
    #[cfg(feature = "dynd")]
    pub verify: bool,
    /// The type of the structure that is written, if the dialect does not determine it.
    pub(super) write_type: Option<String>,
}

impl ConvertOptions {
    setters! {
        texts [
            with_to(to),
            with_as_type(as_type),
            with_filter(filter),
        ]
        values [
            with_open(open: OpenOptions),
            with_changes(changes: ColumnChanges),
            with_rows(rows: Range<u64>),
            with_allow_lossy(allow_lossy: LossKinds),
            with_force(force: bool),
            with_batch_rows(batch_rows: usize),
            #[cfg(feature = "dynd")]
            with_verify(verify: bool),
        ]
    }

    /// Sets [`columns`](Self::columns).
    #[must_use]
    pub fn with_columns(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }
}

impl ConvertOptions {
    /// The rows and columns that are read.
    pub(super) fn view(&self) -> View {
        let mut view = View::default();
        view.columns = self.columns.clone();
        view.changes = self.changes.clone();
        view.rows = self.rows.clone();
        view.batch_rows = self.batch_rows;
        view
    }

    /// How an output is opened again: a type of sds is that of the output.
    #[cfg(feature = "dynd")]
    pub(super) fn verify_options(&self) -> OpenOptions {
        let mut open = self.open.clone();
        let other = open.type_text.take().filter(|text| !Language::is_sds(text));
        open.type_text = self.write_type.clone().or(other);
        open
    }
}
