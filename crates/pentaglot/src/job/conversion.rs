//! A conversion: planned first, then run from the same plan.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::as_type::adapter_to;
#[cfg(feature = "ds")]
use super::as_type::wanted_type;
use super::choice;
#[cfg(feature = "sds")]
use super::composite::{self, Composite};
use super::convert_options::ConvertOptions;
use super::dense;
#[cfg(feature = "ds")]
use super::image_files::ImageFiles;
use super::inputs::open_all;
use super::names::{self, expand, split_member};
use super::open::{self, OpenOptions, Opened, Target};
use super::report::{Report, report};
use super::split::{Parts, Split};
use super::target::plan_target;
use super::types;
#[cfg(feature = "dynd")]
use super::verify::{Complete, Verification, Written as Handed};
use crate::convert::adapt::Adapter;
use crate::convert::triplets::{self, Triplets};
use crate::convert::{reshape, target_form};
use crate::error::{Context, Error, Hint, Result};
#[cfg(feature = "dynd")]
use crate::formats::ChangedRows;
use crate::formats::{ColumnReader, OptionMap, Side, TypeLanguage, WriteOptions, WritePlan};
use crate::hub::rows::check_columns;
use crate::hub::{Form, LossKind, LossKinds, LossRecord, Plan, Rows, Selection, Verdict, extension, shape};
use crate::redact::redacted;
use crate::registry::Registry;
use crate::sink::Sink;
use crate::source::Source;

/// A planned conversion: `plan` can be shown, `run` obeys it.
///
/// ```
/// use pentaglot::{Registry, job};
/// let folder = tempfile::tempdir()?;
/// let name = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
/// std::fs::write(name("cities.csv"), "city,people\nBern,134000\n")?;
/// let (registry, options) = (Registry::default(), job::ConvertOptions::default());
/// let conversion = job::Conversion::plan(&registry, &[name("cities.csv")], &name("cities.parquet"), &options)?;
/// assert_eq!(conversion.plan.steps[0].field, "city");
/// let report = conversion.run(&name("cities.parquet"), options.force)?;
/// assert_eq!(report.rows, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// Replaces dictionaries by their values, for a target without dictionaries.
    values: Option<Adapter>,
    /// Starts the writer; `None` where an earlier step is impossible already.
    write: Option<Box<dyn WritePlan>>,
    /// How many rows are written, where it is known in advance.
    #[cfg(feature = "dynd")]
    row_count: Option<u64>,
    /// How large a sparse matrix becomes that is written as a dense one.
    dense_bytes: Option<u64>,
    /// How an output that is split into several files is written.
    split: Option<Split>,
    allow_lossy: LossKinds,
    /// What reshaping may lose: nulls become NaN where an option of the target says so.
    reshape_allowed: LossKinds,
    lost: LossRecord,
    /// How the output is opened again to verify it.
    #[cfg(feature = "dynd")]
    verify: Option<OpenOptions>,
    /// The rows as the writer changed them, if the output is verified.
    #[cfg(feature = "dynd")]
    changed_rows: ChangedRows,
    /// The structures that follow in the same file.
    #[cfg(feature = "sds")]
    pub(super) composite: Option<Composite>,
    /// What a user may not expect of the plan.
    notes: Vec<String>,
    /// What will happen, field by field.
    pub plan: Plan,
}

/// The target of an output, and the options for it: the format that `to` names, or that the output's extension means; the
/// format and the options of its own of an output that is a table and not a file, such as a collection.
pub fn output_target(
    registry: &Registry,
    output: &str,
    options: &ConvertOptions,
) -> Result<(Target, ConvertOptions)> {
    target_of(registry, output, options).map_err(|error| error.in_output(redacted(output)))
}

fn target_of(
    registry: &Registry,
    output: &str,
    options: &ConvertOptions,
) -> Result<(Target, ConvertOptions)> {
    let mut options = options.clone();
    let table = registry.remote(output)?.map(|remote| remote.table_format(output)).transpose()?;
    let Some((id, own)) = table.flatten() else {
        let named = options.to.as_deref().map(|text| open::target(registry, text)).transpose()?;
        let by_extension = || Some(Target { format: registry.by_extension(output)?, dialect: None });
        let target = named
            .or_else(by_extension)
            .ok_or_else(|| Error::usage("cannot tell a format from the name of the output").hint(Hint::To))?;
        return Ok((target, options));
    };
    if let Some(to) = &options.to
        && open::target(registry, to)?.format.info().id != id
    {
        return Err(Error::usage(format!("expected {id}, the format of this output, found {to}")));
    }
    for key in own.keys() {
        let name = format!("out.{key}");
        if options.open.options.get(&name).or(options.open.options.get(key)).is_none() {
            options.open.options.set(name, own.get(key).unwrap_or_default());
        }
    }
    Ok((open::target(registry, id)?, options))
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
        let (target, options) = output_target(registry, output, options)?;
        let options = &options;
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
        // A type in the target's own language describes the output.
        if target.format.info().type_language != TypeLanguage::Own {
            opened.check_type(&open)?;
        }
        let mut conversion = Conversion::plan_opened(opened, target, Some(output), options)?;
        if let Some(split) = &mut conversion.split {
            split.inputs = inputs.iter().map(|input| split_member(input).0.into()).collect();
        }
        conversion.dense_bytes.map_or(Ok(()), |bytes| dense::check_room(bytes, output))?;
        Ok(conversion)
    }

    /// Plans the conversion of what is open already. The output's name, where it has one, may decide a dialect.
    /// The budget and the control of the job are those that the input was opened with.
    pub fn plan_opened(
        opened: Opened,
        mut target: Target,
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
            let error = Error::unsupported(format!("writing {id}:{dialect}, which is only read"));
            return Err(match output {
                Some(output) => error.in_output(redacted(output)),
                None => error,
            });
        }
        let lost = LossRecord::default();
        let mut view = options.view();
        let opened = if options.changes.changes_schema() {
            let (columns, changes) = (view.columns.take(), std::mem::take(&mut view.changes));
            opened.changed_within(columns.as_deref(), &changes, options.allow_lossy, lost.clone())?
        } else {
            opened
        };
        let selection = view.selection(&opened)?;
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
        let mut notes = super::options::notes(given, &opened.formats, info);
        let mut reshape = match entries(&opened, &selection, adapt.as_ref(), &schema, given)? {
            Some((triplets, size)) => target_form::plan_triplets(&schema, info.forms, triplets, size)?,
            None => {
                let wanted = super::options::form(given);
                notes.extend(target_form::note_on_rows(&schema, wanted));
                if let Ok(form) = target_form::choose(&schema, info.forms, wanted) {
                    check_columns(&schema, form, &opened.budget)?;
                }
                target_form::plan(&schema, info.forms, wanted)?
            }
        };
        let mut write = WriteOptions::default();
        write.name = output.filter(|name| *name != "-").map(str::to_owned);
        write.dialect = target.dialect.map(str::to_owned);
        // A type may say how many rows there are: of all, not of those that match.
        write.type_text = options.open.type_text.clone().filter(|_| options.filter.is_none());
        #[cfg(feature = "sds")]
        {
            // A type of sds that is given for an input is not that of the output.
            let other = write.type_text.take().filter(|text| !super::types::Language::is_sds(text));
            write.type_text = options.write_type.clone().or(other);
        }
        write.options = super::options::of_side(given, Side::Write, info);
        write.budget = opened.budget.clone();
        write.control = opened.control.clone();
        let adapted = match &adapt {
            Some((shaped, _)) => shaped.row_count(selection.row_count()),
            None => selection.row_count(),
        };
        write.row_count = reshape.row_count(adapted);
        write.allow_lossy = options.allow_lossy;
        write.json = types::json_options();
        let rows = opened.document.summary().rows;
        // A type that is given asks for what it says.
        let mut dense_bytes = adapt
            .as_ref()
            .and_then(|(shaped, _)| dense::dense_bytes(selection.schema(), shaped, rows))
            .inspect(|bytes| dense::say(*bytes, &mut plan));
        if let Some(bytes) = dense::dense_bytes(&schema, &reshape, rows) {
            if super::options::form(given) == "auto" {
                dense::check_asked(bytes, opened.input_bytes(), reshape.forms().1)?;
            }
            dense::say(bytes, &mut reshape.plan);
            dense_bytes = Some(bytes);
        }
        plan.steps.extend(reshape.plan.steps.iter().cloned());
        write.lost = lost.clone();
        #[cfg(feature = "dynd")]
        let changed_rows = {
            write.changed = if options.verify { ChangedRows::kept() } else { ChangedRows::default() };
            write.changed.clone()
        };
        let allow_lossy = options.allow_lossy;
        #[cfg(feature = "dynd")]
        let row_count = write.row_count;
        let is_nan = super::options::nan_for_nulls(&write.options);
        let reshape_allowed = match is_nan {
            true => allow_lossy | LossKind::Nulls,
            false => allow_lossy,
        };
        let split = match super::options::split_rows(given)? {
            #[cfg(feature = "dynd")]
            Some(_) if options.verify => {
                return Err(Error::usage("an output that is split into several files cannot be verified"));
            }
            Some(rows) => Some(Split { rows, write: write.clone(), inputs: Vec::new() }),
            None => None,
        };
        let (write, values) = match plan.verdict() {
            Verdict::Impossible => (None, None),
            _ => {
                let (write, values) = plan_target(&target, &reshape.schema, &write)?;
                (Some(write), values)
            }
        };
        plan.steps.extend(values.iter().flat_map(|values| &values.plan.steps).cloned());
        plan.steps.extend(write.iter().flat_map(|write| &write.plan().steps).cloned());
        if let Some(write) = &write {
            target.dialect = target.dialect.or(write.dialect());
            if !target.format.keeps_extensions() {
                extension::say_dropped(&reshape.schema, &mut plan);
            }
        }
        if is_nan {
            plan.say_nan();
        }
        Ok(Conversion {
            opened,
            target,
            selection,
            #[cfg(feature = "ds")]
            image_files,
            adapt,
            reshape,
            values,
            write,
            #[cfg(feature = "dynd")]
            row_count,
            dense_bytes,
            split,
            allow_lossy,
            reshape_allowed,
            lost,
            #[cfg(feature = "dynd")]
            verify: options.verify.then(|| options.verify_options()),
            #[cfg(feature = "dynd")]
            changed_rows,
            #[cfg(feature = "sds")]
            composite: None,
            notes,
            plan,
        })
    }

    /// What a user may not expect of the plan; also among the notes of the report.
    pub fn notes(&self) -> &[String] {
        &self.notes
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
        self.values.as_ref().map_or(&self.reshape.schema, |values| &values.schema)
    }

    /// Errs if the plan cannot run as it is.
    pub fn check(&self) -> Result<()> {
        let hint = || match self.adapt {
            Some(_) => None,
            None => choice::hint(self.selection.schema(), &self.plan, self.target.format.info().id),
        };
        self.plan.check(self.allow_lossy).map_err(|error| match hint() {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }

    /// Creates the output, a file (`-` is standard output), and runs.
    pub fn run(self, output: &str, force: bool) -> Result<Report> {
        self.run_to(&Registry::new(Vec::new()), output, force)
    }

    /// As [`run`](Self::run), for an output anywhere that the registry leads to.
    pub fn run_to(self, registry: &Registry, output: &str, force: bool) -> Result<Report> {
        self.check()?;
        if self.split.is_some() {
            if registry.remote(output)?.is_some() {
                return Err(
                    Error::unsupported("several files at once beyond the file system").in_output(output)
                );
            }
            return self.run_split(output, force);
        }
        let sink = if output == "-" {
            Sink::pipe(std::io::stdout())
        } else {
            #[cfg(feature = "dynd")]
            let is_reread = self.verify.is_some();
            #[cfg(not(feature = "dynd"))]
            let is_reread = false;
            let sink = names::create_kept(registry, output, force, is_reread)?;
            sink.overlapped(&self.opened.control, &self.opened.budget)
        };
        self.run_into(sink)
    }

    /// Runs into any sink.
    pub fn run_into(self, sink: Sink) -> Result<Report> {
        self.check()?;
        if self.split.is_some() {
            return Err(Error::usage("what is split into several files needs a name for them"));
        }
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

    fn run_one(mut self, sink: Sink) -> Result<Report> {
        let (from, to) = (self.opened.format.info().id, self.target.format.info().id);
        let budget = self.opened.budget.clone();
        let columns_apart = self.columns_apart();
        let rows = self.opened.charged_rows(&self.selection)?;
        #[cfg(feature = "dynd")]
        let (mut verification, sink, rows) = match &self.verify {
            Some(options) => {
                let (target, schema, row_count) = (&self.target, self.schema(), self.row_count);
                let written = Handed { target, schema, row_count, plan: &self.plan };
                let (verification, sink) = Verification::start(options, &rows.schema(), &written, sink)?;
                let rows = verification.source(rows);
                (Some(verification), sink, rows)
            }
            None => (None, sink, rows),
        };
        #[cfg(feature = "ds")]
        let (rows, staging) = match self.image_files.take() {
            Some(step) => step.run(rows, &budget)?,
            None => (rows, None),
        };
        let lost = self.lost.clone();
        let write = self.write.take().expect("a plan without an impossible step has a writer");
        let mut writer = write.create(sink).in_format(to)?;
        let (opened, selection) = (&self.opened, &self.selection);
        let read = |place| opened.charged_column(selection, place);
        let most_entries = opened.document.summary().nonzeros;
        match columns_apart.map(|rows| ColumnReader { rows, most_entries, read: &read }) {
            Some(columns) if writer.write_columns(&columns).in_format(to)? => {
                opened.control.count_rows(columns.rows)?;
            }
            _ => {
                for batch in self.changed(rows)? {
                    let batch = batch.map_err(Error::from).in_format(from)?;
                    opened.control.check()?;
                    budget.charge(&batch)?;
                    writer.write(&batch).in_format(to)?;
                    #[cfg(feature = "dynd")]
                    if let Some(verification) = &mut verification {
                        verification.push(&self.changed_rows.take().unwrap_or(batch))?;
                    }
                }
            }
        }
        opened.control.check()?;
        #[cfg(feature = "dynd")]
        let complete = verification.map(Verification::complete).transpose()?;
        let finish = || writer.finish().in_format(to);
        #[cfg(feature = "ds")]
        let written = match staging {
            Some(staging) => staging.commit(finish)?,
            None => finish()?,
        };
        #[cfg(not(feature = "ds"))]
        let written = finish()?;
        let mut report = report(&self.opened, &self.plan, &lost, written);
        report.notes.append(&mut self.notes);
        #[cfg(feature = "dynd")]
        {
            report.verified = complete.map(Complete::verified).transpose()?;
        }
        Ok(report)
    }

    /// The number of rows, if the columns may be converted one by one: each is read for itself, and nothing is done to the rows
    /// on their way. All columns together are read faster where there are many, since each reads the headers of all.
    fn columns_apart(&self) -> Option<u64> {
        const MOST_COLUMNS: usize = 64;
        #[cfg(feature = "dynd")]
        let is_verified = self.verify.is_some();
        #[cfg(not(feature = "dynd"))]
        let is_verified = false;
        #[cfg(feature = "ds")]
        let has_files = self.image_files.is_some();
        #[cfg(not(feature = "ds"))]
        let has_files = false;
        let may = self.opened.document.has_columns_apart()
            && matches!(Form::of(self.selection.schema()), Form::Table | Form::Sparse)
            && self.selection.schema().fields().len() <= MOST_COLUMNS
            && !(is_verified || has_files || self.is_changed());
        if may { self.selection.row_count() } else { None }
    }

    /// Whether the rows that are written are other than those that are read.
    fn is_changed(&self) -> bool {
        self.adapt.is_some() || self.values.is_some() || !self.reshape.is_identity()
    }

    /// The rows of the input as the target gets them, in a pipeline: each stage has a thread, unless the job has only one.
    fn changed(&self, rows: Rows) -> Result<Rows> {
        let (budget, allowed) = (&self.opened.budget, self.allow_lossy);
        // Reading and decoding overlap with what follows; so does a change of the rows with encoding and writing.
        let mut rows = self.opened.overlapped(rows)?;
        if let Some((shaped, adapter)) = &self.adapt {
            let shaped = reshape::reshape(rows, shaped, budget, allowed, &self.lost)?;
            rows = adapter.clone().adapt(shaped, allowed, self.lost.clone());
        }
        rows = reshape::reshape(rows, &self.reshape, budget, self.reshape_allowed, &self.lost)?;
        if let Some(values) = &self.values {
            rows = values.clone().adapt(rows, allowed, self.lost.clone());
        }
        if self.is_changed() { self.opened.overlapped(rows) } else { Ok(rows) }
    }

    /// Runs into several files, `NAME-00000.EXT` and so on: all of them appear, or none.
    fn run_split(self, output: &str, force: bool) -> Result<Report> {
        let Some(split) = &self.split else { return Err(Error::usage("nothing is split here")) };
        #[cfg(feature = "ds")]
        if self.image_files.is_some() {
            return Err(Error::usage("files of images and an output that is split exclude each other"));
        }
        let rows = self.changed(self.opened.charged_rows(&self.selection)?)?;
        let from = self.opened.format.info().id;
        let mut parts = Parts::new(&self.target, self.schema(), split, output, force)?;
        for batch in rows {
            let batch = batch.map_err(Error::from).in_format(from)?;
            self.opened.control.check()?;
            self.opened.budget.charge(&batch)?;
            parts.write(&batch)?;
        }
        self.opened.control.check()?;
        let written = parts.finish()?;
        let mut report = report(&self.opened, &self.plan, &self.lost, written);
        report.notes.extend(self.notes);
        Ok(report)
    }
}

/// The columns and the size of the matrix that a table of entries becomes, if it is to become one. Where the size is not
/// given, all entries are read for it.
fn entries(
    opened: &Opened,
    selection: &Selection,
    adapt: Option<&(reshape::Reshape, Adapter)>,
    schema: &SchemaRef,
    given: &OptionMap,
) -> Result<Option<(Triplets, (u64, u64))>> {
    let size = super::options::size(given)?;
    let Some(triplets) = target_form::triplets(schema, super::options::form(given), size.is_some())? else {
        let own = shape::matrix_rows(schema).zip(shape::matrix_cols(schema));
        return match size {
            Some(size) if own == Some(size) => Ok(None),
            Some(_) => {
                let found = reshape::describe(schema);
                Err(Error::usage(format!(
                    "option shape: expected a table of row, col and value, found {found}"
                )))
            }
            None => Ok(None),
        };
    };
    if let Some(size) = size {
        return Ok(Some((triplets, size)));
    }
    if !opened.source.is_seekable() {
        let message = "the size of the matrix is in its last entry, and a stream is read only once";
        return Err(Error::usage(message).hint(Hint::Option("shape=ROWSxCOLS".into())));
    }
    let mut rows = opened.charged_rows(selection)?;
    if let Some((shaped, adapter)) = adapt {
        let lost = LossRecord::default();
        let shaped = reshape::reshape(rows, shaped, &opened.budget, LossKinds::ALL, &lost)?;
        rows = adapter.clone().adapt(shaped, LossKinds::ALL, lost);
    }
    Ok(Some((triplets, triplets::size(rows, triplets).in_format(opened.format.info().id)?)))
}

/// Errs if both names are the same file.
fn check_apart(input: &str, output: &str, inputs: usize) -> Result<()> {
    let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    let (path, _) = split_member(input);
    if input != "-" && output != "-" && same(Path::new(path), Path::new(output)) && Path::new(path).is_file()
    {
        let which = if inputs == 1 { "the input itself" } else { "one of the inputs" };
        return Err(Error::usage(format!("the output is {which}")).in_output(output));
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
