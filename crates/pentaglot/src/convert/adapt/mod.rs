//! Adapters: from the type that data has to the type that somebody wants, by pattern matching on the two.
//!
//! | from, to | what happens | verdict |
//! |---|---|---|
//! | table, table | columns by name; others dropped (reported); a missing nullable one is filled with nulls; one left over on each side is paired | the worst of the columns |
//! | number, wider number | widened | widened |
//! | number, narrower number | integers wrap, floats are cut and saturate, NaN becomes 0 | lossy |
//! | anything, text | its text | widened |
//! | text, anything | parsed; text that does not parse ends the run | checked |
//! | nullable, not nullable | a null ends the run | checked |
//! | tensor, tensor | reshaped if the element counts agree | as the elements |
//! | single element, tensor or struct of one | wrapped, or unwrapped | as the element |
//! | plain image of one component, tensor | unpacked, or packed | as the elements |
//! | list, struct | element by element; a struct by name, else by position | the worst of the elements |
//! | anything, void | forgotten | lossy |
//!
//! A cast is safe if it preserves every value. All of it works on Arrow types, so every format has it.

mod apply;
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
use crate::hub::{Plan, Shape, Verdict, extension};

/// A planned adaptation: `plan` can be shown, [`Adapter::adapt`] obeys it.
#[derive(Debug, Clone)]
pub struct Adapter {
    columns: Vec<ColumnCast>,
    /// What comes out.
    pub schema: SchemaRef,
    /// What that does, column by column.
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
    Forget,
}

/// Computes the adapter from one schema to another. What cannot be is `Impossible` in its plan.
pub fn adapter(from: &SchemaRef, to: &SchemaRef) -> Adapter {
    let mut plan = Plan::default();
    let columns = match (Shape::of(from), Shape::of(to)) {
        (Shape::Table, Shape::Table) => table(from.fields(), to.fields(), &mut plan),
        (a, b) if a == b && from.fields().len() == 1 && to.fields().len() == 1 => {
            let (cast, verdict, note) = field_cast(from.field(0), to.field(0));
            step(&mut plan, from.field(0).name(), from.field(0), to.field(0), verdict, note);
            vec![ColumnCast::From(0, cast)]
        }
        (a, b) => {
            plan.push("", format!("{a} of {}", words(from.fields())), format!("{b}"), Verdict::Impossible);
            Vec::new()
        }
    };
    Adapter { columns, schema: Arc::clone(to), plan }
}

impl Adapter {
    /// Adapts a stream. Called only if the plan has no `Impossible` step.
    pub fn adapt(self, stream: Rows) -> Rows {
        let schema = Arc::clone(&self.schema);
        let mut start = 0;
        let batches = stream.map(move |batch| {
            let batch = batch?;
            let adapted = self
                .columns
                .iter()
                .zip(self.schema.fields())
                .map(|(column, field)| match column {
                    ColumnCast::Nulls => Ok(arrow_array::new_null_array(field.data_type(), batch.num_rows())),
                    ColumnCast::From(index, cast) => {
                        let place = apply::Place { column: field.name(), row: &|row| start + row as u64 };
                        let array = apply::cast(batch.column(*index), cast, field, &place)?;
                        apply::check_nulls(&array, field, &place)?;
                        Ok(array)
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

fn step(plan: &mut Plan, name: &str, from: &Field, to: &Field, verdict: Verdict, note: Option<String>) {
    match note {
        Some(note) => plan.push_with(name, kind(from), kind(to), verdict, note),
        None => plan.push(name, kind(from), kind(to), verdict),
    }
}

fn table(from: &Fields, to: &Fields, plan: &mut Plan) -> Vec<ColumnCast> {
    let by_name = |field: &Field| from.iter().position(|source| source.name() == field.name());
    let mut sources: Vec<Option<usize>> = to.iter().map(|field| by_name(field)).collect();
    let left_over: Vec<usize> = (0..from.len()).filter(|index| !sources.contains(&Some(*index))).collect();
    let missing: Vec<usize> = (0..to.len()).filter(|index| sources[*index].is_none()).collect();
    if let ([source], [target]) = (left_over.as_slice(), missing.as_slice()) {
        let (_, verdict, _) = field_cast(&from[*source], &to[*target]);
        // A nullable column can also be filled with nulls: pair it only if nothing can go wrong.
        if !to[*target].is_nullable() || verdict <= Verdict::Widened {
            sources[*target] = Some(*source);
        }
    }
    let mut columns = Vec::new();
    for (field, source) in to.iter().zip(&sources) {
        match source {
            Some(index) => {
                let source = &from[*index];
                let (cast, verdict, note) = field_cast(source, field);
                let renamed =
                    (source.name() != field.name()).then(|| format!("from column {:?}", source.name()));
                step(plan, field.name(), source, field, verdict, note.or(renamed));
                columns.push(ColumnCast::From(*index, cast));
            }
            None if field.is_nullable() => {
                plan.push_with(field.name(), "missing", kind(field), Verdict::Widened, "filled with nulls");
                columns.push(ColumnCast::Nulls);
            }
            None => plan.push(field.name(), "missing", kind(field), Verdict::Impossible),
        }
    }
    for (index, field) in from.iter().enumerate() {
        if !sources.contains(&Some(index)) {
            plan.push(field.name(), kind(field), "dropped", Verdict::Exact);
        }
    }
    columns
}

type Planned = (Cast, Verdict, Option<String>);

fn impossible() -> Planned {
    (Cast::Forget, Verdict::Impossible, None)
}

/// How a field becomes another, and what that does.
fn field_cast(from: &Field, to: &Field) -> Planned {
    let (cast, verdict, note) = value_cast(from, to);
    if verdict == Verdict::Impossible
        || !from.is_nullable() && from.data_type() != &DataType::Null
        || to.is_nullable()
    {
        let verdict = if verdict == Verdict::Exact && from.is_nullable() != to.is_nullable() {
            Verdict::Widened
        } else {
            verdict
        };
        return (cast, verdict, note);
    }
    if !from.is_nullable() {
        return (cast, verdict, note);
    }
    (cast, verdict.max(Verdict::Checked), note.or(Some("a null ends the run".to_owned())))
}

fn value_cast(from: &Field, to: &Field) -> Planned {
    use DataType::{FixedSizeList, LargeList, List, Null, Struct};
    let same_extension =
        extension::name(from) == extension::name(to) && extension::metadata(from) == extension::metadata(to);
    if from.data_type() == to.data_type() && same_extension {
        return (Cast::Same, Verdict::Exact, None);
    }
    match (Image::of(from), Image::of(to)) {
        (Some(a), Some(b)) => return image_to_image(a, b),
        (Some(image), None) => return from_image(image, to),
        (None, Some(image)) => return to_image(from, image),
        (None, None) => {}
    }
    match (from.data_type(), to.data_type()) {
        (Null, _) if to.is_nullable() && from.is_nullable() => {
            (Cast::Scalar(ScalarCast::Nulls), Verdict::Widened, None)
        }
        (Null, DataType::Utf8) => (Cast::Scalar(ScalarCast::VoidText), Verdict::Widened, None),
        (Null, _) => impossible(),
        (_, Null) => (Cast::Forget, Verdict::Lossy, Some("every value is forgotten".to_owned())),
        (FixedSizeList(a, count), FixedSizeList(b, wanted)) => {
            // Tensors are reshaped: elements stay in their order.
            if count != wanted {
                return (
                    Cast::Forget,
                    Verdict::Impossible,
                    Some(format!("{count} elements, {wanted} wanted")),
                );
            }
            items(a, b, same_extension)
        }
        (List(a) | LargeList(a) | FixedSizeList(a, _), List(b) | LargeList(b)) => items(a, b, false),
        (Struct(a), Struct(b)) if a.len() == b.len() => fields(a, b),
        (_, FixedSizeList(item, 1)) => wrap(field_cast(from, item)),
        (FixedSizeList(item, 1), _) => unwrap(field_cast(item, to)),
        (Struct(_), Struct(_)) => {
            (Cast::Forget, Verdict::Impossible, Some("a different number of fields".to_owned()))
        }
        (_, Struct(b)) if b.len() == 1 => wrap(field_cast(from, &b[0])),
        (Struct(a), _) if a.len() == 1 => unwrap(field_cast(&a[0], to)),
        (a, b) => match scalar::plan(a, b) {
            Some((cast, verdict)) => (Cast::Scalar(cast), verdict, None),
            None => impossible(),
        },
    }
}

fn wrap((cast, verdict, note): Planned) -> Planned {
    (Cast::Wrap(Box::new(cast)), verdict.max(Verdict::Widened), note)
}

fn unwrap((cast, verdict, note): Planned) -> Planned {
    (Cast::Unwrap(Box::new(cast)), verdict.max(Verdict::Widened), note)
}

fn items(from: &Field, to: &Field, same_extension: bool) -> Planned {
    let (cast, verdict, note) = field_cast(from, to);
    let verdict = if same_extension { verdict } else { verdict.max(Verdict::Widened) };
    (Cast::Items(Box::new(cast)), verdict, note)
}

/// By name if the names are the same, else by position.
fn fields(from: &Fields, to: &Fields) -> Planned {
    let by_name = |field: &Field| from.iter().position(|source| source.name() == field.name());
    let named: Option<Vec<usize>> = to.iter().map(|field| by_name(field)).collect();
    let order = named.unwrap_or_else(|| (0..to.len()).collect());
    let mut worst = Verdict::Exact;
    let mut notes = None;
    let mut casts = Vec::new();
    for (field, index) in to.iter().zip(order) {
        let (cast, verdict, note) = field_cast(&from[index], field);
        let moved = from[index].name() != field.name();
        worst = worst.max(verdict).max(if moved { Verdict::Widened } else { Verdict::Exact });
        notes = notes.or(note);
        casts.push((index, cast));
    }
    (Cast::Fields(casts), worst, notes)
}

fn image_to_image(from: Image, to: Image) -> Planned {
    if (from.width, from.height) != (to.width, to.height) {
        return (Cast::Forget, Verdict::Impossible, Some("the sizes differ".to_owned()));
    }
    match (from.is_plain_single(), to.is_plain_single()) {
        (true, true) => {
            let (cast, verdict, note) = field_cast(&from.item(), &to.item());
            let cast = Cast::ToImage(Box::new(Cast::FromImage(from, Box::new(cast))), to);
            (cast, verdict.max(Verdict::Widened), note)
        }
        _ => (
            Cast::Forget,
            Verdict::Impossible,
            Some("only plain images of one component are recast".to_owned()),
        ),
    }
}

fn from_image(image: Image, to: &Field) -> Planned {
    let DataType::FixedSizeList(item, count) = to.data_type() else { return impossible() };
    if !image.is_plain_single() {
        return (
            Cast::Forget,
            Verdict::Impossible,
            Some("only plain images of one component become tensors".to_owned()),
        );
    }
    if image.pixels() != u64::try_from(*count).unwrap_or(0) {
        return (
            Cast::Forget,
            Verdict::Impossible,
            Some(format!("{} pixels, {count} elements", image.pixels())),
        );
    }
    let (cast, verdict, note) = field_cast(&image.item(), item);
    (Cast::FromImage(image, Box::new(cast)), verdict.max(Verdict::Widened), note)
}

fn to_image(from: &Field, image: Image) -> Planned {
    let DataType::FixedSizeList(item, count) = from.data_type() else { return impossible() };
    if !image.is_plain_single() || image.pixels() != u64::try_from(*count).unwrap_or(0) {
        let note = format!("{count} elements become a plain image of one component and as many pixels only");
        return (Cast::Forget, Verdict::Impossible, Some(note));
    }
    let (cast, verdict, note) = field_cast(item, &image.item());
    (Cast::ToImage(Box::new(Cast::Items(Box::new(cast))), image), verdict.max(Verdict::Widened), note)
}

fn unplanned() -> Error {
    Error::unsupported("a cast that the plan refuses")
}
