//! The option `nulls=nan` of formats that have floats but no nulls: nulls are written as NaN, and NaN is read as null.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::{Document, Findings, OptionInfo, OptionMap, Outline, ReadOptions, Side, Split, Summary};
use crate::error::Result;
use crate::hub::{Form, Rows, Selection, extension, native, relax, rows};

/// The option.
pub(crate) const NULLS: OptionInfo = OptionInfo {
    key: "nulls",
    side: Side::Both,
    values: "nan",
    default: "refused",
    help: "nan: nulls of floats are written as NaN; reading: NaN is null in columns, arrays and dense matrices",
};

/// Whether the option is set; invalid values are reported elsewhere.
pub(super) fn nulls_as_nan(options: &OptionMap) -> bool {
    options.get(NULLS.key) == Some("nan")
}

/// The document with nulls in place of NaN, if the option is set. The entries of a sparse matrix are unchanged.
pub(crate) fn null_for_nan(document: Arc<dyn Document>, options: &ReadOptions) -> Result<Arc<dyn Document>> {
    options.options.word(NULLS.key, &["nan"])?;
    if !nulls_as_nan(&options.options) || Form::of(&document.summary().schema) == Form::Sparse {
        return Ok(document);
    }
    let mut summary = document.summary().clone();
    summary.schema = nullable(&summary.schema);
    summary.null_counts.clear();
    Ok(Arc::new(NullForNan { inner: document, summary }))
}

fn nullable(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &FieldRef| -> FieldRef {
        match field.data_type() {
            kind if kind.is_floating() => Arc::new(field.as_ref().clone().with_nullable(true)),
            DataType::FixedSizeList(item, size) if is_float(item) => {
                let item = item.as_ref().clone().with_nullable(true);
                let list = DataType::FixedSizeList(Arc::new(item), *size);
                Arc::new(field.as_ref().clone().with_data_type(list))
            }
            _ => Arc::clone(field),
        }
    };
    let plain = native::without(schema);
    let fields: Vec<FieldRef> = plain.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, plain.metadata().clone()))
}

fn is_float(field: &Field) -> bool {
    field.data_type().is_floating() && extension::name(field).is_none()
}

struct NullForNan {
    inner: Arc<dyn Document>,
    summary: Summary,
}

impl Document for NullForNan {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn splits(&self, wanted: usize) -> Vec<Split> {
        self.inner.splits(wanted)
    }

    fn outline(&self) -> Outline {
        self.inner.outline()
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        self.inner.validate(findings)
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        let mut own = self.inner.selection().with_batch_rows(selection.batch_rows());
        if selection.is_sliced() {
            own = own.with_rows(selection.range(u64::MAX));
        }
        if let Some(columns) = selection.columns() {
            own = own.with_column_ranges(columns.ranges().to_vec())?;
        }
        let schema = Arc::clone(selection.schema());
        let inner = Arc::clone(&schema);
        let batches = self.inner.rows(&own)?.map(move |batch| {
            let batch = batch?;
            let columns = batch.columns().iter().zip(inner.fields());
            let columns = columns.map(|(column, field)| relax::null_for_nan_in(column, field)).collect();
            rows::batch(Arc::clone(&inner), columns, batch.num_rows())
        });
        Ok(rows::from_batches(schema, batches))
    }
}
