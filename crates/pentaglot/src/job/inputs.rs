//! Several inputs that are read one after the other as one document.
//!
//! Each input is converted to the common form and types ([`union`]) while it is read. Files are opened once for their
//! schema and again when their rows are reached, so that any number of them can be joined.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::chain::{Chain, Input};
use super::open::{self, OpenOptions, Opened};
use crate::convert::adapt;
use crate::convert::reshape;
use crate::convert::union;
use crate::error::{Error, Result};
use crate::formats::{Document, Findings, Node, Outline, Split, Summary};
use crate::hub::{Form, Plan, Rows, Selection, Verdict, rows, shape};
use crate::limits::Budget;
use crate::registry::Registry;

/// Opens several inputs as one. Names are those of single inputs: [`expand`](super::expand) replaces patterns.
///
/// Tables are joined by the names of their columns, matrices are stacked, arrays are concatenated; single values are
/// an error. The metadata is that of the first input.
///
/// ```
/// use pentaglot::{Registry, job};
/// let folder = tempfile::tempdir()?;
/// let name = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
/// std::fs::write(name("a.csv"), "x\n1\n")?;
/// std::fs::write(name("b.csv"), "x,y\n2,3\n")?;
/// let names = [name("a.csv"), name("b.csv")];
/// let opened = job::open_all(&Registry::default(), &names, &job::OpenOptions::default())?;
/// assert_eq!(opened.document.summary().schema.fields().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_all(registry: &Registry, names: &[impl AsRef<str>], options: &OpenOptions) -> Result<Opened> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    if let [name] = names[..] {
        return open::open(registry, name, options);
    }
    if names.iter().filter(|name| **name == "-").count() > 1 {
        return Err(Error::usage("standard input is named twice"));
    }
    let mut inputs = Vec::new();
    let mut first = None;
    for name in names {
        let opened = open::open(registry, name, options).map_err(|error| error.in_input(name))?;
        let shared = (name == "-").then(|| opened.clone());
        let (registry, mut options) = (registry.clone(), options.clone());
        options.again = true;
        let path = name.to_owned();
        let open = move || match &shared {
            Some(opened) => Ok(opened.clone()),
            None => open::open(&registry, &path, &options),
        };
        inputs.push(Input::new(name, &opened, open)?);
        first.get_or_insert(opened);
    }
    joined(first, inputs)
}

/// Joins documents that are open already; the names are for messages. See [`open_all`].
pub fn join(documents: Vec<(String, Opened)>) -> Result<Opened> {
    let first = documents.first().map(|(_, opened)| opened.clone());
    let inputs = documents.into_iter().map(|(name, opened)| {
        let shared = opened.clone();
        Input::new(&name, &opened, move || Ok(shared.clone()))
    });
    joined(first, inputs.collect::<Result<_>>()?)
}

fn joined(first: Option<Opened>, mut inputs: Vec<Input>) -> Result<Opened> {
    let first = first.ok_or_else(|| Error::usage("no input"))?;
    if let Some(form) = matrix_form(&inputs) {
        check_columns(&inputs)?;
        for input in &mut inputs {
            input.reshape = reshape::plan(&input.summary.schema, form)?;
            input
                .reshape
                .plan
                .check(crate::hub::LossKinds::NONE)
                .map_err(|error| error.in_input(&input.name))?;
        }
    }
    let schemas: Vec<union::Named<'_>> =
        inputs.iter().map(|input| (input.name.as_str(), Arc::clone(&input.reshape.schema))).collect();
    let schema = union::schema(&schemas)?;
    let mut plan = Plan::default();
    for input in &inputs {
        merge_steps(&mut plan, &adapt::adapter(&input.reshape.schema, &schema).plan, &input.name);
    }
    plan.steps.retain(|step| step.verdict > Verdict::Exact);
    let summary = summary(&inputs, schema);
    let formats = inputs.iter().map(|input| input.info).collect();
    let document = Joined { inputs: inputs.into(), summary, budget: first.budget.clone() };
    Ok(Opened { document: Arc::new(document), plan, formats, ..first })
}

/// The common form of matrices: dense, unless one of them is sparse. `None` if not all are matrices.
fn matrix_form(inputs: &[Input]) -> Option<Form> {
    let mut forms = inputs.iter().map(|input| Form::of(&input.summary.schema));
    forms.try_fold(Form::Dense, |form, own| match own {
        Form::Dense | Form::Columns => Some(form),
        Form::Sparse | Form::Coo => Some(Form::Sparse),
        _ => None,
    })
}

fn check_columns(inputs: &[Input]) -> Result<()> {
    let cols = |input: &Input| shape::matrix_cols(&input.summary.schema);
    for pair in inputs.windows(2) {
        if cols(&pair[0]) != cols(&pair[1]) {
            let text = |input: &Input| format!("{} has {} columns", input.name, cols(input).unwrap_or(0));
            return Err(Error::usage(format!(
                "{}, {}: matrices of different width cannot be stacked",
                text(&pair[0]),
                text(&pair[1])
            )));
        }
    }
    Ok(())
}

/// Keeps for each column the step with the worst effect of all inputs.
fn merge_steps(plan: &mut Plan, own: &Plan, name: &str) {
    for step in &own.steps {
        let mut step = step.clone();
        step.note = Some(match step.note {
            Some(note) => format!("in {name}: {note}"),
            None => format!("in {name}"),
        });
        match plan.steps.iter_mut().find(|known| known.field == step.field) {
            Some(known) if known.verdict < step.verdict => *known = step,
            Some(_) => {}
            None => plan.steps.push(step),
        }
    }
}

fn summary(inputs: &[Input], schema: SchemaRef) -> Summary {
    let first = &inputs[0].summary;
    let sum = |count: &dyn Fn(&Input) -> Option<u64>| inputs.iter().map(count).sum::<Option<u64>>();
    let rows = sum(&Input::rows);
    let mut metadata = schema.metadata().clone();
    if metadata.remove(shape::ROWS_KEY).is_some()
        && let Some(rows) = rows
    {
        metadata.insert(shape::ROWS_KEY.to_owned(), rows.to_string());
    }
    let mut summary =
        Summary::new(first.format, Arc::new(Schema::new_with_metadata(schema.fields().clone(), metadata)));
    summary.rows = rows;
    summary.bytes = sum(&|input| input.summary.bytes);
    summary.nonzeros = sum(&|input| input.summary.nonzeros);
    summary.metadata = first.metadata.clone();
    let mut offset = 0;
    for input in inputs {
        let bytes = input.summary.bytes.unwrap_or(0);
        summary.part(&input.name, offset, bytes);
        offset += bytes;
    }
    summary.notes = notes(inputs);
    summary
}

/// Notes about each input; the same note on several inputs is given once.
fn notes(inputs: &[Input]) -> Vec<String> {
    let mut found: Vec<(&str, &str, usize)> = Vec::new();
    for input in inputs {
        for note in &input.summary.notes {
            match found.iter_mut().find(|(_, known, _)| known == note) {
                Some((_, _, count)) => *count += 1,
                None => found.push((&input.name, note, 1)),
            }
        }
    }
    let line = |(name, note, count): (&str, &str, usize)| match count {
        1 => format!("{name}: {note}"),
        _ => format!("{name} and {} more: {note}", count - 1),
    };
    found.into_iter().map(line).collect()
}

/// Several inputs as one document.
struct Joined {
    inputs: Arc<[Input]>,
    summary: Summary,
    budget: Budget,
}

impl Document for Joined {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    /// An input is a split if the number of rows is known for it and for all before it. Bytes are counted over all
    /// inputs.
    fn splits(&self, wanted: usize) -> Vec<Split> {
        if self.summary.rows.is_none() {
            return Split::whole(&self.summary);
        }
        let mut start = 0;
        let pieces = self.inputs.iter().zip(&self.summary.parts).map(|(input, part)| {
            let end = start + input.rows().unwrap_or(0);
            let rows = std::mem::replace(&mut start, end)..end;
            Split { rows, bytes: part.offset..part.offset + part.bytes }
        });
        Split::joined(pieces, wanted)
    }

    fn outline(&self) -> Outline {
        let parts = self.summary.parts.iter().map(|part| Node::new(&part.path, part.offset, part.bytes));
        Node::new("inputs", 0, self.summary.bytes.unwrap_or(0)).parts(parts.collect())
    }

    fn validate(&self, findings: &mut Findings) -> Result<()> {
        self.inputs.iter().try_for_each(|input| {
            let opened = (input.open)().map_err(|error| error.in_input(&input.name))?;
            opened.document.validate(findings).map_err(|error| error.in_input(&input.name))
        })
    }

    fn rows(&self, selection: &Selection) -> Result<Rows> {
        let whole = Arc::clone(&self.summary.schema);
        let chain = Chain::new(Arc::clone(&self.inputs), whole, selection, self.budget.clone());
        Ok(rows::from_batches(Arc::clone(selection.schema()), chain))
    }
}
