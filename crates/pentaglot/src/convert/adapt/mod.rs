//! Adapters: convert data from the type that it has to a requested type, by matching the two.
//!
//! | from, to | what happens | verdict |
//! |---|---|---|
//! | table, table | columns by name; a missing nullable one is filled with nulls; if one column is left over on each side, the two are matched | the worst of the columns |
//! | a column that the target table does not have | dropped | lossy |
//! | number, wider number | widened | widened |
//! | number, narrower number | a value that does not fit is an error, or is changed as `fit` describes | checked |
//! | time, time in a coarser unit | as numbers | checked |
//! | anything, text | its text | widened |
//! | text, anything | parsed; text that does not parse is an error | checked |
//! | nullable, not nullable | a null is an error | checked |
//! | tensor, tensor | reshaped if the element counts agree | as the elements |
//! | single element, tensor or struct of one | wrapped, or unwrapped | as the element |
//! | plain image with components of one type, tensor (components last) | unpacked, or packed | as the elements |
//! | list, struct | element by element; a struct by name, else by position | the worst of the elements |
//! | anything, void | dropped | lossy |
//!
//! A cast is safe if it preserves every value. Casts work on Arrow types, so they are available for every
//! format.

mod apply;
mod decimal;
mod fit;
mod image;
mod scalar;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, SchemaRef};

use self::image::Image;
use self::scalar::ScalarCast;
use crate::error::{Error, Result};
use crate::hub::rows::{self, Rows};
use crate::hub::type_text::print_field;
use crate::hub::{Effect, LossKind, LossKinds, LossRecord, Plan, Shape, Verdict, extension, relax};

/// A planned adaptation: `plan` describes it, [`Adapter::adapt`] carries it out.
#[derive(Debug, Clone)]
pub struct Adapter {
    columns: Vec<ColumnCast>,
    /// Columns that are dropped.
    dropped: Vec<usize>,
    /// The schema of the result.
    pub schema: SchemaRef,
    /// The effect on each column.
    pub plan: Plan,
}

#[derive(Debug, Clone)]
enum ColumnCast {
    From(usize, Cast),
    Nulls,
}

/// How one array becomes another.
#[derive(Debug, Clone)]
enum Cast {
    Same,
    Scalar(ScalarCast),
    /// Elements of a list (of any kind of list to any kind).
    Items(Box<Cast>),
    /// Fields of a struct: for each target field, the source field and its cast.
    Fields(Vec<(usize, Cast)>),
    /// One value into a list or tensor of one, or a struct of one.
    Wrap(Box<Cast>),
    /// One value out of a list, tensor or struct of one.
    Unwrap(Box<Cast>),
    FromImage(Image, Box<Cast>),
    ToImage(Box<Cast>, Image),
    Drop,
}

/// Computes the adapter from one schema to another. A conversion that does not exist is an `Impossible` step
/// of its plan.
pub fn adapter(from: &SchemaRef, to: &SchemaRef) -> Adapter {
    let mut plan = Plan::default();
    let mut dropped = Vec::new();
    let columns = match (Shape::of(from), Shape::of(to)) {
        (Shape::Table, Shape::Table) => table(from.fields(), to.fields(), &mut plan, &mut dropped),
        (a, b) if a == b && from.fields().len() == 1 && to.fields().len() == 1 => {
            let (cast, effect) = field_cast(from.field(0), to.field(0));
            plan.step(from.field(0).name(), kind(from.field(0)), kind(to.field(0)), effect);
            vec![ColumnCast::From(0, cast)]
        }
        (a, b) => {
            let effect = Effect::impossible(format!("expected the shape {b}, found {a}"));
            plan.step("", format!("{a} of {}", words(from.fields())), b.name(), effect);
            Vec::new()
        }
    };
    Adapter { columns, dropped, schema: Arc::clone(to), plan }
}

impl Adapter {
    /// Adapts a stream. Called only if the plan has no `Impossible` step. Values that do not fit are changed if
    /// the kind of loss is `allowed`, and each loss is added to `lost`.
    pub fn adapt(self, stream: Rows, allowed: LossKinds, lost: LossRecord) -> Rows {
        let schema = Arc::clone(&self.schema);
        let mut start = 0;
        let batches = stream.map(move |batch| {
            let batch = batch?;
            for index in &self.dropped {
                let (column, rows) = (batch.column(*index), batch.num_rows());
                let first = (0..rows).find(|row| column.is_valid(*row));
                let example = || first.map(|row| scalar::shown(column, row));
                lost.add(LossKind::Dropped, batch.schema().field(*index).name(), rows as u64, example);
            }
            let adapted = self
                .columns
                .iter()
                .zip(self.schema.fields())
                .map(|(column, field)| match column {
                    ColumnCast::Nulls => Ok(arrow_array::new_null_array(field.data_type(), batch.num_rows())),
                    ColumnCast::From(index, cast) => {
                        let place = apply::Place {
                            column: field.name(),
                            row: &|row| start + row as u64,
                            is_live: &|_| true,
                            allowed,
                            lost: &lost,
                        };
                        let array = apply::cast(batch.column(*index), cast, field, &place)?;
                        apply::resolve_nulls(array, field, &place)
                    }
                })
                .collect::<Result<Vec<_>>>()?;
            let rows = batch.num_rows();
            start += rows as u64;
            rows::batch(Arc::clone(&self.schema), adapted, rows)
        });
        rows::from_batches(schema, batches)
    }
}

fn words(fields: &Fields) -> String {
    let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
    names.join(", ")
}

fn kind(field: &Field) -> String {
    match extension::name(field) {
        Some(name) => format!("{name} over {}", print_field(field)),
        None => print_field(field),
    }
}

fn table(from: &Fields, to: &Fields, plan: &mut Plan, dropped: &mut Vec<usize>) -> Vec<ColumnCast> {
    let by_name = |field: &Field| from.iter().position(|source| source.name() == field.name());
    let mut sources: Vec<Option<usize>> = to.iter().map(|field| by_name(field)).collect();
    let left_over: Vec<usize> = (0..from.len()).filter(|index| !sources.contains(&Some(*index))).collect();
    let missing: Vec<usize> = (0..to.len()).filter(|index| sources[*index].is_none()).collect();
    if let ([source], [target]) = (left_over.as_slice(), missing.as_slice()) {
        let (_, Effect { verdict, .. }) = field_cast(&from[*source], &to[*target]);
        // A nullable column could also be filled with nulls, so it is matched only if every value is
        // preserved.
        if !to[*target].is_nullable() || verdict <= Verdict::Widened {
            sources[*target] = Some(*source);
        }
    }
    let mut columns = Vec::new();
    for (field, source) in to.iter().zip(&sources) {
        match source {
            Some(index) => {
                let source = &from[*index];
                let (cast, mut effect) = field_cast(source, field);
                if source.name() != field.name() {
                    let origin = format!("from column {:?}", source.name());
                    effect = effect.and(Effect::widened());
                    effect.note = Some(match effect.note {
                        Some(note) => format!("{origin}; {note}"),
                        None => origin,
                    });
                }
                plan.step(field.name(), kind(source), kind(field), effect);
                columns.push(ColumnCast::From(*index, cast));
            }
            None if field.is_nullable() => {
                let effect = Effect::widened().because("filled with nulls");
                plan.step(field.name(), "missing", kind(field), effect);
                columns.push(ColumnCast::Nulls);
            }
            None => {
                let effect = Effect::impossible("the input has no such column, and it is not nullable");
                plan.step(field.name(), "missing", kind(field), effect);
            }
        }
    }
    for (index, field) in from.iter().enumerate() {
        if !sources.contains(&Some(index)) {
            plan.step(field.name(), kind(field), "dropped", Effect::lossy(LossKind::Dropped));
            dropped.push(index);
        }
    }
    columns
}

type Planned = (Cast, Effect);

fn impossible(note: impl Into<String>) -> Planned {
    (Cast::Drop, Effect::impossible(note))
}

/// The cast from one field to another, and its effect.
fn field_cast(from: &Field, to: &Field) -> Planned {
    let (cast, effect) = value_cast(from, to);
    let nulls = match (from.is_nullable(), to.is_nullable()) {
        (true, false) => relax::no_nulls(to.data_type(), "a null is an error"),
        (false, true) => Effect::widened(),
        _ => Effect::exact(),
    };
    (cast, effect.and(nulls))
}

fn value_cast(from: &Field, to: &Field) -> Planned {
    use DataType::{FixedSizeList, LargeList, List, Null, Struct};
    let same_extension =
        extension::name(from) == extension::name(to) && extension::metadata(from) == extension::metadata(to);
    if from.data_type() == to.data_type() && same_extension {
        return (Cast::Same, Effect::exact());
    }
    match (Image::of(from), Image::of(to)) {
        (Some(a), Some(b)) => return image_to_image(a, b),
        (Some(image), None) => return from_image(image, to),
        (None, Some(image)) => return to_image(from, image),
        (None, None) => {}
    }
    let (cast, effect) = match (from.data_type(), to.data_type()) {
        (Null, _) if to.is_nullable() && from.is_nullable() => {
            (Cast::Scalar(ScalarCast::Nulls), Effect::widened())
        }
        (Null, DataType::Utf8) => (Cast::Scalar(ScalarCast::VoidText), Effect::widened()),
        (Null, _) => impossible("the input has only nulls"),
        (_, Null) => (Cast::Drop, Effect::lossy(LossKind::Dropped).because("every value is dropped")),
        (FixedSizeList(a, count), FixedSizeList(b, wanted)) => {
            // Tensors are reshaped: elements stay in their order.
            if count != wanted {
                return impossible(format!("{count} elements, {wanted} wanted"));
            }
            items(a, b)
        }
        (List(a) | LargeList(a) | FixedSizeList(a, _), List(b) | LargeList(b)) => items(a, b),
        (Struct(a), Struct(b)) if a.len() == b.len() => fields(a, b),
        (_, FixedSizeList(item, 1)) => {
            let (cast, effect) = field_cast(from, item);
            (Cast::Wrap(Box::new(cast)), effect)
        }
        (FixedSizeList(item, 1), _) => {
            let (cast, effect) = field_cast(item, to);
            (Cast::Unwrap(Box::new(cast)), effect)
        }
        (Struct(_), Struct(_)) => return impossible("a different number of fields"),
        (_, Struct(b)) if b.len() == 1 => {
            let (cast, effect) = field_cast(from, &b[0]);
            (Cast::Wrap(Box::new(cast)), effect)
        }
        (Struct(a), _) if a.len() == 1 => {
            let (cast, effect) = field_cast(&a[0], to);
            (Cast::Unwrap(Box::new(cast)), effect)
        }
        (a, b) if a == b => (Cast::Same, Effect::exact()),
        (a, b) => match scalar::plan(a, b) {
            Some((cast, effect)) => (Cast::Scalar(cast), effect),
            None => return impossible("no value of one is a value of the other"),
        },
    };
    // The types differ, at least in their names, so the effect is never exact.
    (cast, effect.and(Effect::widened()))
}

fn items(from: &Field, to: &Field) -> Planned {
    let (cast, effect) = field_cast(from, to);
    (Cast::Items(Box::new(cast)), effect)
}

/// By name if the names are the same, else by position.
fn fields(from: &Fields, to: &Fields) -> Planned {
    let by_name = |field: &Field| from.iter().position(|source| source.name() == field.name());
    let named: Option<Vec<usize>> = to.iter().map(|field| by_name(field)).collect();
    let order = named.unwrap_or_else(|| (0..to.len()).collect());
    let mut worst = Effect::exact();
    let mut casts = Vec::new();
    for (field, index) in to.iter().zip(order) {
        let (cast, effect) = field_cast(&from[index], field);
        worst = worst.and(effect);
        casts.push((index, cast));
    }
    (Cast::Fields(casts), worst)
}

fn image_to_image(from: Image, to: Image) -> Planned {
    if (from.width, from.height) != (to.width, to.height) {
        return impossible("the sizes differ");
    }
    if let Some(note) = from.obstacle().or(to.obstacle()) {
        return impossible(note);
    }
    if !from.has_channels_of(&to) {
        return impossible("the components differ");
    }
    let (cast, effect) = field_cast(&from.item(), &to.item());
    let cast = Cast::ToImage(Box::new(Cast::FromImage(from, Box::new(cast))), to);
    (cast, effect.and(Effect::widened()))
}

fn from_image(image: Image, to: &Field) -> Planned {
    let DataType::FixedSizeList(item, count) = to.data_type() else {
        return impossible("an image becomes a tensor only");
    };
    if let Some(note) = image.obstacle() {
        return impossible(note);
    }
    if let Some(note) = image.mismatch(to, *count) {
        return impossible(note);
    }
    let (cast, effect) = field_cast(&image.item(), item);
    (Cast::FromImage(image, Box::new(cast)), effect.and(Effect::widened()))
}

fn to_image(from: &Field, image: Image) -> Planned {
    let DataType::FixedSizeList(item, count) = from.data_type() else {
        return impossible("a tensor only becomes an image");
    };
    if let Some(note) = image.obstacle() {
        return impossible(note);
    }
    if let Some(note) = image.mismatch(from, *count) {
        return impossible(note);
    }
    let (cast, effect) = field_cast(item, &image.item());
    (Cast::ToImage(Box::new(Cast::Items(Box::new(cast))), image), effect.and(Effect::widened()))
}

fn unplanned() -> Error {
    Error::unsupported("a cast that the plan does not allow")
}
