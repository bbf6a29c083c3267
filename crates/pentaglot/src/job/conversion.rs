//! A conversion: planned first, then run from the same plan.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::SchemaRef;

#[cfg(feature = "sds")]
use super::composite::{self, Composite};
use super::dense;
#[cfg(feature = "ds")]
use super::image_files::ImageFiles;
use super::inputs::open_all;
use super::names::{self, expand};
use super::open::{self, OpenOptions, Opened, Target};
use super::read::View;
use super::types;
#[cfg(feature = "dynd")]
use super::verify::{Complete, Verification};
use crate::convert::adapt::{self, Adapter};
use crate::convert::{leaving, reshape};
use crate::error::{Context, Error, Hint, Result};
use crate::formats::{Side, WriteOptions, WritePlan};
use crate::hub::{FieldPlan, Form, LossKind, LossKinds, LossRecord, Lost, Plan, Selection, Verdict, shape};
use crate::registry::Registry;
use crate::sink::Sink;
use crate::source::Source;

/// What `convert` takes besides the two names.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ConvertOptions {
    /// How the input is opened; its formats' options also reach the target.
    pub open: OpenOptions,
    /// The output's format: an id, with an optional dialect after a colon.
    pub to: Option<String>,
    /// The type that the data is adapted to.
    pub as_type: Option<String>,
    /// The columns, by name; of a matrix also `3`, `7..9`.
    pub columns: Option<Vec<String>>,
    /// The rows, half-open; of those that match, if there is a filter.
    pub rows: Option<Range<u64>>,
    /// Only rows that match; see [`crate::hub::filter`].
    pub filter: Option<String>,
    /// What may be lost.
    pub allow_lossy: LossKinds,
    /// Whether an existing output is replaced.
    pub force: bool,
    /// Rows per batch; 0: what suits the format.
    pub batch_rows: usize,
    /// Whether the output is read back before it gets its name, and must be the same data.
    #[cfg(feature = "dynd")]
    pub verify: bool,
    /// The type of the one structure that is written, where only a type says what it is.
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

/// A planned conversion: `plan` can be shown, `run` obeys it.
pub struct Conversion {
    opened: Opened,
    target: Target,
    selection: Selection,
    /// What makes files of images, or images of files.
    #[cfg(feature = "ds")]
    image_files: Option<ImageFiles>,
    /// What adapts the data to a given type: its form, then its types.
    adapt: Option<(reshape::Reshape, Adapter)>,
    reshape: reshape::Reshape,
    /// Starts the writer; `None` where an earlier step is impossible already.
    write: Option<Box<dyn WritePlan>>,
    /// How many rows are written, where it is known in advance.
    #[cfg(feature = "dynd")]
    row_count: Option<u64>,
    /// How large a sparse matrix becomes that is written as a dense one.
    dense_bytes: Option<u64>,
    allow_lossy: LossKinds,
    lost: LossRecord,
    /// How the output is opened again to verify it.
    #[cfg(feature = "dynd")]
    verify: Option<OpenOptions>,
    /// The structures that follow in the same file.
    #[cfg(feature = "sds")]
    pub(super) composite: Option<Composite>,
    /// What will happen, field by field.
    pub plan: Plan,
}

/// What a conversion did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// Rows written.
    pub rows: u64,
    /// Bytes written, before gzip.
    pub bytes: u64,
    /// What the user should know of the input.
    pub input_notes: Vec<String>,
    /// What the user should know of the output.
    pub notes: Vec<String>,
    /// What was lost, by kind and column.
    pub lost: Vec<Lost>,
    /// The identities, if the conversion was verified.
    #[cfg(feature = "dynd")]
    pub verified: Option<super::Verified>,
}

/// The target that `to` names, or the output's extension.
pub(super) fn target_of(registry: &Registry, to: Option<&str>, output: &str) -> Result<Target> {
    match to {
        Some(text) => open::target(registry, text),
        None => match registry.by_extension(output) {
            Some(format) => Ok(Target { format, dialect: None }),
            None => {
                let error = Error::usage("cannot tell a format from the name of the output");
                Err(error.in_output(output).hint(Hint::To))
            }
        },
    }
}

impl ConvertOptions {
    fn view(&self) -> View {
        let mut view = View::default();
        view.columns = self.columns.clone();
        view.rows = self.rows.clone();
        view.batch_rows = self.batch_rows;
        view
    }
}

impl Conversion {
    /// Plans the conversion of the files `inputs`, read as one, for the file `output` (names and patterns as on the command
    /// line).
    pub fn plan(
        registry: &Registry,
        inputs: &[impl AsRef<str>],
        output: &str,
        options: &ConvertOptions,
    ) -> Result<Self> {
        let target = target_of(registry, options.to.as_deref(), output)?;
        let inputs = expand(registry, inputs)?;
        inputs.iter().try_for_each(|input| check_apart(input, output, inputs.len()))?;
        #[cfg(feature = "sds")]
        let (open, options) = {
            let types = composite::types(registry, &inputs, &target, options)?;
            if types.output.is_some() {
                return composite::plan(registry, &inputs, &target, types, options);
            }
            let mut open = options.open.clone();
            open.default_member = composite::member_for(&target, output);
            (open, options)
        };
        #[cfg(not(feature = "sds"))]
        let open = options.open.clone();
        let opened = open_all(registry, &inputs, &open)?;
        let conversion = Conversion::plan_opened(opened, target, Some(output), options)?;
        conversion.dense_bytes.map_or(Ok(()), |bytes| dense::check_room(bytes, output))?;
        Ok(conversion)
    }

    /// Plans the conversion of what is open already. The output's name, where it has one, may decide a dialect.
    pub fn plan_opened(
        opened: Opened,
        target: Target,
        output: Option<&str>,
        options: &ConvertOptions,
    ) -> Result<Self> {
        let info = target.format.info();
        let given = &options.open.options;
        super::options::check(given, &opened.formats, Some(info))?;
        let opened = match &options.filter {
            Some(filter) => opened.filtered(filter)?,
            None => opened,
        };
        if let Some(dialect) = target.dialect
            && !target.format.info().dialects.iter().any(|known| known.name == dialect && known.write)
        {
            let id = target.format.info().id;
            return Err(Error::unsupported(format!("writing {id}:{dialect}, which is only read")));
        }
        let selection = options.view().selection(&opened)?;
        let mut schema = Arc::clone(selection.schema());
        let mut plan = opened.plan.clone();
        #[cfg(feature = "ds")]
        let image_files = match super::options::image_files(given) {
            Some(folder) => {
                let wanted = options.as_type.as_deref().map(|text| wanted_type(text, options)).transpose()?;
                let step = ImageFiles::plan(folder, &opened, &selection, wanted.as_deref())?;
                plan.steps.extend(step.plan.steps.iter().cloned());
                schema = Arc::clone(&step.schema);
                Some(step)
            }
            None => None,
        };
        let adapt = options.as_type.as_deref().map(|text| adapter_to(text, &schema, options)).transpose()?;
        if let Some((shaped, adapter)) = &adapt {
            plan.steps.extend(shaped.plan.steps.iter().chain(&adapter.plan.steps).cloned());
            schema = Arc::clone(&adapter.schema);
        }
        let mut reshape = leaving::leave(&schema, info.forms, super::options::form(given))?;
        let mut write = WriteOptions::default();
        write.name = output.filter(|name| *name != "-").map(str::to_owned);
        write.dialect = target.dialect.map(str::to_owned);
        // A type may say how many rows there are: of all, not of those that match.
        write.type_text = options.open.type_text.clone().filter(|_| options.filter.is_none());
        #[cfg(feature = "sds")]
        {
            // A type of sds that is given for an input is not that of the output.
            let other = write.type_text.take().filter(|text| !composite::is_sds_type(text));
            write.type_text = options.write_type.clone().or(other);
        }
        write.options = super::options::of_side(given, Side::Write, info);
        write.budget = opened.budget.clone();
        write.control = opened.control.clone();
        write.row_count = match Form::of(&reshape.schema) {
            Form::Coo if Form::of(&schema) != Form::Coo => None,
            _ => selection.row_count(),
        };
        write.allow_lossy = options.allow_lossy;
        write.json = types::json_options();
        let dense_bytes = dense::dense_bytes(&schema, &reshape.schema, opened.document.summary().rows);
        if let Some(bytes) = dense_bytes {
            if super::options::form(given) == "auto" {
                dense::check_asked(bytes, opened.input_bytes(), &reshape.schema)?;
            }
            let step = reshape.plan.steps.iter_mut().find(|step| step.verdict == Verdict::Widened);
            step.into_iter().for_each(|step| step.note = Some(format!("with its zeros {bytes} bytes")));
        }
        plan.steps.extend(reshape.plan.steps.iter().cloned());
        let lost = write.lost.clone();
        #[cfg(feature = "dynd")]
        let row_count = write.row_count;
        let write = match plan.verdict() {
            Verdict::Impossible => None,
            _ => Some(target.format.plan(&reshape.schema, &write).in_format(info.id)?),
        };
        plan.steps.extend(write.iter().flat_map(|write| &write.plan().steps).cloned());
        let allow_lossy = options.allow_lossy;
        Ok(Conversion {
            opened,
            target,
            selection,
            #[cfg(feature = "ds")]
            image_files,
            adapt,
            reshape,
            write,
            #[cfg(feature = "dynd")]
            row_count,
            dense_bytes,
            allow_lossy,
            lost,
            #[cfg(feature = "dynd")]
            verify: options.verify.then(|| verify_options(options)),
            #[cfg(feature = "sds")]
            composite: None,
            plan,
        })
    }

    /// What is converted.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// What it becomes.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The schema that is written.
    pub fn schema(&self) -> &SchemaRef {
        &self.reshape.schema
    }

    /// Errs if the plan cannot run as it is.
    pub fn check(&self) -> Result<()> {
        self.plan.check(self.allow_lossy)
    }

    /// Creates the output, a file (`-` is standard output), and runs.
    pub fn run(self, output: &str, force: bool) -> Result<Report> {
        self.run_to(&Registry::new(Vec::new()), output, force)
    }

    /// As [`run`](Self::run), for an output anywhere that the registry leads to.
    pub fn run_to(self, registry: &Registry, output: &str, force: bool) -> Result<Report> {
        self.plan.check(self.allow_lossy)?;
        let sink = if output == "-" {
            Sink::pipe(std::io::stdout())
        } else {
            names::create(registry, output, force)?
        };
        self.run_into(sink)
    }

    /// Runs into any sink.
    pub fn run_into(self, sink: Sink) -> Result<Report> {
        self.plan.check(self.allow_lossy)?;
        #[cfg(feature = "sds")]
        let (this, composite) = self.split_composite();
        #[cfg(feature = "sds")]
        if let Some(composite) = composite {
            return composite::run(this, composite, sink);
        }
        #[cfg(not(feature = "sds"))]
        let this = self;
        this.run_one(sink)
    }

    #[cfg(feature = "sds")]
    fn split_composite(mut self) -> (Self, Option<Composite>) {
        let composite = self.composite.take();
        (self, composite)
    }

    fn run_one(self, sink: Sink) -> Result<Report> {
        let (from, to) = (self.opened.format.info().id, self.target.format.info().id);
        let budget = self.opened.budget.clone();
        let rows = self.opened.charged_rows(&self.selection)?;
        #[cfg(feature = "dynd")]
        let (mut verification, sink, rows) = match &self.verify {
            Some(options) => {
                let schemas = (&rows.schema(), &self.reshape.schema);
                let (verification, sink) =
                    Verification::start(options, &self.target, schemas, self.row_count, sink)?;
                let rows = verification.source(rows);
                (Some(verification), sink, rows)
            }
            None => (None, sink, rows),
        };
        #[cfg(feature = "ds")]
        let (rows, staging) = match self.image_files {
            Some(step) => step.run(rows, &budget)?,
            None => (rows, None),
        };
        let (allowed, lost) = (self.allow_lossy, self.lost.clone());
        let rows = match self.adapt {
            Some((shaped, adapter)) => {
                let rows = reshape::reshape(rows, &shaped, &budget, allowed, &lost)?;
                adapter.adapt(rows, allowed, lost.clone())
            }
            None => rows,
        };
        let rows = reshape::reshape(rows, &self.reshape, &budget, allowed, &lost)?;
        let write = self.write.expect("a plan without an impossible step has a writer");
        let mut writer = write.create(sink).in_format(to)?;
        for batch in rows {
            let batch = batch.map_err(Error::from).in_format(from)?;
            self.opened.control.check()?;
            budget.charge(&batch)?;
            #[cfg(feature = "dynd")]
            verification.as_mut().map_or(Ok(()), |verification| verification.push(&batch))?;
            writer.write(&batch).in_format(to)?;
        }
        self.opened.control.check()?;
        #[cfg(feature = "dynd")]
        let complete = verification.map(Verification::complete).transpose()?;
        let finish = || writer.finish().in_format(to);
        #[cfg(feature = "ds")]
        let mut written = match staging {
            Some(staging) => staging.commit(finish)?,
            None => finish()?,
        };
        #[cfg(not(feature = "ds"))]
        let mut written = finish()?;
        for note in [shape::NAMES_NOT_KEPT, shape::SIZE_NOT_KEPT] {
            let of = |step: &&FieldPlan| step.note.as_deref().is_some_and(|said| said.contains(note));
            if self.plan.steps.iter().find(of).is_some() {
                written.notes.push(note.to_owned());
            }
        }
        let input_notes = self.opened.document.summary().notes.clone();
        record_steps(&self.plan, written.rows, &lost);
        let lost = lost.lost();
        Ok(Report {
            rows: written.rows,
            bytes: written.bytes,
            input_notes,
            notes: written.notes,
            lost,
            #[cfg(feature = "dynd")]
            verified: complete.map(Complete::verified).transpose()?,
        })
    }
}

/// How an output is opened again: a type of sds is that of the output.
#[cfg(feature = "dynd")]
fn verify_options(options: &ConvertOptions) -> OpenOptions {
    let mut open = options.open.clone();
    let other = open.type_text.take().filter(|text| !text.trim_start().starts_with("sds:"));
    open.type_text = options.write_type.clone().or(other);
    open
}

impl Report {
    /// Adds what another conversion into the same file did.
    #[cfg(feature = "sds")]
    pub(super) fn add(&mut self, other: Report) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        // What is the same of several is said once.
        for (own, others) in [(&mut self.input_notes, other.input_notes), (&mut self.notes, other.notes)] {
            for note in others {
                if !own.contains(&note) {
                    own.push(note);
                }
            }
        }
        self.lost.extend(other.lost);
    }
}

/// Adds what lossy steps lose whatever the values are. Names and metadata are lost once, other things in every row.
fn record_steps(plan: &Plan, rows: u64, lost: &LossRecord) {
    for step in plan.steps.iter().filter(|step| step.verdict == Verdict::Lossy) {
        for kind in step.kinds.iter().filter(|kind| !lost.contains(*kind, &step.field)) {
            let (values, example) = match kind {
                LossKind::Names => (1, &step.field),
                LossKind::Metadata => (1, &step.from),
                _ => (rows, &step.from),
            };
            lost.add(kind, &step.field, values, || Some(example.clone()));
        }
    }
}

/// The schema that a user asks for.
fn wanted_type(text: &str, options: &ConvertOptions) -> Result<SchemaRef> {
    let limits = options.open.budget.limits();
    let wanted = types::parse_type(text, None, limits).and_then(|wanted| wanted.schema());
    wanted.map_err(|error| types::as_usage("the wanted type", error))
}

/// What adapts data to a type: a matrix that is to be a table becomes columns first.
fn adapter_to(
    text: &str,
    schema: &SchemaRef,
    options: &ConvertOptions,
) -> Result<(reshape::Reshape, Adapter)> {
    let wanted = wanted_type(text, options)?;
    let form = match (Form::of(schema), Form::of(&wanted)) {
        (Form::Dense | Form::Sparse, Form::Table) => Form::Columns,
        (Form::Array | Form::Value, Form::Table) => Form::Table,
        (from, to) if from != to && matches!(to, Form::Dense | Form::Sparse | Form::Array) => to,
        (from, _) => from,
    };
    let mut shaped = reshape::plan(schema, form)?;
    if form == Form::Columns && Form::of(&wanted) == Form::Table {
        shaped.forget_shape();
    }
    let adapter = adapt::adapter(&shaped.schema, &wanted);
    Ok((shaped, adapter))
}

/// Errs if both names are the same file.
fn check_apart(input: &str, output: &str, inputs: usize) -> Result<()> {
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    let (path, _) = open::split_member(input);
    if input != "-" && output != "-" && same(Path::new(path), Path::new(output)) && Path::new(path).is_file()
    {
        let which = if inputs == 1 { "the input itself" } else { "one of the inputs" };
        return Err(Error::usage(format!("{output} is {which}")));
    }
    Ok(())
}

/// Where the bytes of the input come from, for a progress bar.
impl Conversion {
    /// The input's bytes: how many have been read, of how many.
    pub fn source(&self) -> Source {
        self.opened.source.clone()
    }
}
