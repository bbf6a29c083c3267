//! Columns that are left out, cast and renamed.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, FieldRef, Schema, SchemaRef};

use super::open::Opened;
use super::types;
use crate::convert::adapt;
use crate::error::{Error, Result};
use crate::formats::{Document, Findings, Outline, Split, Summary};
use crate::hub::rows::from_batches;
use crate::hub::type_text::parse_field;
use crate::hub::{Form, LossKinds, LossRecord, Plan, Rows, Selection, Shape, Verdict, native, shape};
use crate::limits::Limits;

/// Changes of columns. All names are those of the input; renaming is the last step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnChanges {
    /// Columns that are left out; of a matrix also `3`, `7..9`.
    pub exclude: Vec<String>,
    /// Columns of a table with the types that they get: Arrow type text, or another language with its prefix. Without a
    /// `?` in the type, a column is nullable if it is nullable in the input.
    pub cast: Vec<(String, String)>,
    /// Columns of a table with their new names.
    pub rename: Vec<(String, String)>,
}

impl ColumnChanges {
    /// Whether columns get other types or names.
    pub(super) fn changes_schema(&self) -> bool {
        !self.cast.is_empty() || !self.rename.is_empty()
    }
}

impl Opened {
    /// The same document with some of its columns (all by default), changed. A step that loses something is an error.
    pub fn changed(&self, columns: Option<&[String]>, changes: &ColumnChanges) -> Result<Opened> {
        let changed = self.changed_within(columns, changes, LossKinds::NONE, LossRecord::default())?;
        changed.plan.check(LossKinds::NONE)?;
        Ok(changed)
    }

    /// Like [`changed`](Self::changed); values that do not fit are changed if the loss is `allowed`, which is added to
    /// `lost`. The steps are those of the plan.
    pub(super) fn changed_within(
        &self,
        columns: Option<&[String]>,
        changes: &ColumnChanges,
        allowed: LossKinds,
        lost: LossRecord,
    ) -> Result<Opened> {
        let inner = Arc::clone(&self.document);
        inner.summary().check_member()?;
        let form = Form::of(&inner.summary().schema);
        if !matches!(form, Form::Table | Form::Columns | Form::Coo) {
            let shape = Shape::of(&inner.summary().schema);
            return Err(Error::usage(format!(
                "the columns of a table are cast and renamed, and this is of the shape {shape}"
            )));
        }
        let chosen = chosen(&inner.selection(), columns, changes)?;
        let full = &inner.summary().schema;
        let mut casts = Vec::new();
        for (name, text) in &changes.cast {
            casts.push((position(full, &chosen, name)?, column_type(name, text, self.budget.limits())?));
        }
        let mut renames = Vec::new();
        for (name, new) in &changes.rename {
            renames.push((position(full, &chosen, name)?, new));
        }
        let mut fields: Vec<FieldRef> = Vec::new();
        for index in &chosen {
            let own = full.field(*index);
            let cast = casts.iter().rev().find(|(at, _)| at == index).map(|(_, wanted)| wanted);
            let nullable = own.is_nullable() || cast.is_some_and(Field::is_nullable);
            let field = cast.unwrap_or(own).clone().with_nullable(nullable);
            let renamed = renames.iter().rev().find(|(at, _)| at == index).map(|(_, new)| new.as_str());
            fields.push(Arc::new(field.with_name(renamed.unwrap_or(own.name()))));
        }
        let twice = |new: &&&String| fields.iter().filter(|field| field.name() == **new).count() > 1;
        if let Some(new) = renames.iter().map(|(_, new)| new).find(twice) {
            return Err(Error::usage(format!("two columns would have the name {new:?}")));
        }
        let mut metadata = native::without(full).metadata().clone();
        for key in [shape::SHAPE_KEY, shape::ROWS_KEY, shape::COLS_KEY, shape::ORDER_KEY] {
            metadata.remove(key);
        }
        let mut summary = inner.summary().clone();
        summary.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        summary.null_counts.clear();
        let document = Changed { inner, sources: chosen, summary, allowed, lost };
        let mut plan = self.plan.clone();
        plan.steps.extend(document.plan()?.steps);
        Ok(Opened { document: Arc::new(document), plan, ..self.clone() })
    }
}

/// The indices of the columns that are wanted and not excluded.
fn chosen(all: &Selection, columns: Option<&[String]>, changes: &ColumnChanges) -> Result<Vec<usize>> {
    let mut selection = all.clone();
    if let Some(columns) = columns {
        selection = selection.with_columns(columns)?;
    }
    Ok(selection.without_columns(&changes.exclude)?.fields())
}

fn position(schema: &SchemaRef, chosen: &[usize], name: &str) -> Result<usize> {
    let found = Selection::new(schema, None).with_columns(&[name])?.fields();
    match found.as_slice() {
        [index] if chosen.contains(index) => Ok(*index),
        _ => Err(Error::usage(format!("there is no column {name:?} among those that are chosen"))),
    }
}

/// The field of a type given as text.
fn column_type(name: &str, text: &str, limits: &Limits) -> Result<Field> {
    if types::Language::prefixed(text).is_none()
        && let Ok(field) = parse_field(name, text, limits)
    {
        return Ok(field);
    }
    let schema = types::parse_type(text, None, limits).and_then(|parsed| parsed.schema());
    let schema =
        schema.map_err(|error| types::as_usage(&format!("the type {text:?} of column {name:?}"), error))?;
    match (Shape::of(&schema), schema.fields().as_ref()) {
        (Shape::Value, [value]) => Ok(value.as_ref().clone().with_name(name)),
        (shape, _) => Err(Error::usage(format!(
            "the type {text:?} of column {name:?}: expected the type of a value, found that of data of the shape {shape}"
        ))),
    }
}

/// A document with columns that are chosen and changed.
struct Changed {
    inner: Arc<dyn Document>,
    /// The source column of each column.
    sources: Vec<usize>,
    summary: Summary,
    allowed: LossKinds,
    lost: LossRecord,
}

impl Changed {
    /// The steps that change something.
    fn plan(&self) -> Result<Plan> {
        let full = &self.inner.summary().schema;
        let mut plan = Plan::default();
        for (field, source) in self.summary.schema.fields().iter().zip(&self.sources) {
            let own = full.field(*source);
            let one = |field: &Field| Arc::new(Schema::new(vec![field.clone().with_name(own.name())]));
            let mut steps = adapt::adapter(&one(own), &one(field)).plan.steps;
            for step in &mut steps {
                if field.name() != own.name() {
                    step.worsen(
                        crate::hub::Effect::widened().because(format!("renamed to {:?}", field.name())),
                    );
                }
            }
            plan.steps.extend(steps.into_iter().filter(|step| step.verdict != Verdict::Exact));
        }
        Ok(plan)
    }
}

impl Document for Changed {
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
        let fields = selection.fields();
        let sources: Vec<u64> =
            fields.iter().filter_map(|field| self.sources.get(*field)).map(|at| *at as u64).collect();
        let mut inner = self.inner.selection().with_batch_rows(selection.batch_rows());
        if selection.is_sliced() {
            inner = inner.with_rows(selection.range(u64::MAX));
        }
        let inner = inner.with_column_ranges(sources.into_iter().map(|at| at..at + 1).collect())?;
        let rows = self.inner.rows(&inner)?;
        // The file may repeat names; columns have unique names while they are cast.
        let fields = selection.schema().fields();
        let known: HashSet<&String> = fields.iter().map(|field| field.name()).collect();
        let unique = known.len() == fields.len();
        let named = |schema: &SchemaRef| {
            let names = fields.iter().enumerate().map(|(index, field)| match unique {
                true => field.name().clone(),
                false => format!("{}#{index}", field.name()),
            });
            let fields = schema.fields().iter().zip(names);
            let fields = fields.map(|(field, name)| field.as_ref().clone().with_name(name));
            Arc::new(Schema::new(fields.collect::<Vec<_>>()))
        };
        let (from, to) = (named(&rows.schema()), named(selection.schema()));
        let rows = renamed(rows, Arc::clone(&from));
        let rows = adapt::adapter(&from, &to).adapt(rows, self.allowed, self.lost.clone());
        Ok(renamed(rows, Arc::clone(selection.schema())))
    }
}

/// The same rows under another schema of the same types.
fn renamed(rows: Rows, schema: SchemaRef) -> Rows {
    let out = Arc::clone(&schema);
    let batches = rows.map(move |batch| -> Result<RecordBatch> {
        let batch = batch?;
        let rows = batch.num_rows();
        crate::hub::rows::batch(Arc::clone(&out), batch.columns().to_vec(), rows)
    });
    from_batches(schema, batches)
}
