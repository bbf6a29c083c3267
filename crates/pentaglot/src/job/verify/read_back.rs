//! Reads an output back: with the format and the dialect of the plan, in the form and the types of the rows
//! written.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::{Written, bits, forms, kept};
use crate::convert::{adapt, reshape};
use crate::error::{Error, Result};
use crate::formats::{FormatInfo, OptionMap, Side, TypeLanguage, dynd};
use crate::hub::type_text::print_exact_schema;
use crate::hub::{Form, LossKinds, LossRecord, Plan, Rows, extension, shape};
use crate::identity::{Cid, ColumnIdentity, Identity, RowHasher};
use crate::job::open::{self, OpenOptions, Opened, Target};
use crate::job::options::of_side;
use crate::job::read::View;
use crate::job::types::{self, Language};
use crate::registry::Registry;
use crate::source::{ReadAt, Source};

/// How the output is opened again.
pub(super) struct ReadBack {
    target: Target,
    schema: SchemaRef,
    row_count: Option<u64>,
    plan: Plan,
    options: OpenOptions,
    name: String,
}

impl ReadBack {
    pub(super) fn new(options: &OpenOptions, written: &Written<'_>, name: String) -> Self {
        ReadBack {
            target: written.target.clone(),
            schema: Arc::clone(written.schema),
            row_count: written.row_count,
            plan: written.plan.clone(),
            options: options.clone(),
            name,
        }
    }

    /// The identities of the rows written and of those read back, both under the types that the file keeps.
    pub(super) fn compare(&self, bytes: &Arc<dyn ReadAt>, mut written: Identity) -> Result<(Cid, Cid)> {
        let opened = self.open(bytes, None)?;
        let summary = opened.document.summary();
        let read = match summary.is_container() {
            true => self.members(bytes, &summary.members)?,
            false => {
                let stream = opened.rows(&View::default())?;
                self.hashed(self.shaped(stream, written.rows)?, &self.schema)?
            }
        };
        for (written, read) in written.columns.iter_mut().zip(&read.columns) {
            written.data_type.clone_from(&read.data_type);
        }
        Ok((written.cid()?, read.cid()?))
    }

    fn open(&self, bytes: &Arc<dyn ReadAt>, member: Option<&str>) -> Result<Opened> {
        let info = self.target.format.info();
        let mut options = OpenOptions::default();
        options.from = Some(match self.target.dialect {
            Some(dialect) => format!("{}:{dialect}", info.id),
            None => info.id.to_owned(),
        });
        options.budget = self.options.budget.clone();
        options.control = self.options.control.clone();
        options.options = read_options(&self.options.options, info);
        options.type_text = self.type_text()?;
        let registry = Registry::new(vec![Arc::clone(&self.target.format)]);
        let source = Source::from_read_at(self.name.clone(), Arc::clone(bytes));
        open::open_source(&registry, source, member, &options)
    }

    /// The type of the output, if its format does not store one.
    fn type_text(&self) -> Result<Option<String>> {
        let info = self.target.format.info();
        // A type would put back what text does not keep.
        let exact = |schema: &Schema| match self.target.format.keeps_extensions() {
            true => print_exact_schema(schema),
            false => print_exact_schema(&extension::without_foreign(schema)),
        };
        Ok(match (info.id, self.target.dialect) {
            // Matrices and arrays are written as such.
            ("json", _) if matches!(Form::of(&self.schema), Form::Dense | Form::Array) => {
                Some(exact(&self.schema))
            }
            _ if matches!(info.type_language, TypeLanguage::Arrow) => {
                Some(exact(&Schema::new(self.schema.fields().clone())))
            }
            ("dynd", Some("raw")) => Some(dynd::Type::of_rows(&self.schema, self.row_count)?.to_string()),
            ("sds", None) => self.options.type_text.clone().filter(|text| Language::is_sds(text)),
            ("ds", Some("rows" | "rows-json")) => Some(types::print_type(&self.schema, Language::Ds)?),
            _ => None,
        })
    }

    /// A table of which each column is a member.
    fn members(&self, bytes: &Arc<dyn ReadAt>, members: &[String]) -> Result<Identity> {
        let fields = self.schema.fields();
        if members.len() != fields.len() {
            let (expected, found) = (fields.len(), members.len());
            return Err(Error::malformed(format!("{expected} members, one per column"), found));
        }
        let (mut rows, mut columns) = (0, Vec::<ColumnIdentity>::new());
        for (field, member) in fields.iter().zip(members) {
            let column: SchemaRef = Arc::new(Schema::new(vec![Arc::clone(field)]));
            let stream = self.open(bytes, Some(member))?.rows(&View::default())?;
            let stream = reshaped(forms::as_struct(stream, &column), Form::Table, &self.options)?;
            let stream = forms::named(stream, &column);
            let one = self.hashed(stream, &column)?;
            rows = one.rows;
            columns.extend(one.columns);
        }
        Ok(Identity::new("table", rows, 0, columns))
    }

    /// The rows read back, in the form of those written, of which there were `row_count`.
    fn shaped(&self, stream: Rows, row_count: u64) -> Result<Rows> {
        let stream = match self.target.format.info().id {
            "sds" => bits::as_written(stream, &self.schema, row_count),
            _ => stream,
        };
        let wanted = form(&self.schema);
        let stream = forms::as_struct(forms::as_value(stream, &self.schema), &self.schema);
        let is_named = form(&stream.schema()) == Form::Table && !self.loses_names();
        let stream = reshaped(stream, wanted, &self.options)?;
        // Only tables have column names.
        Ok(if wanted == Form::Table && !is_named { forms::named(stream, &self.schema) } else { stream })
    }

    /// Whether the plan says that names of columns are not kept.
    fn loses_names(&self) -> bool {
        let notes = self.plan.steps.iter().filter_map(|step| step.note.as_deref());
        notes.into_iter().any(|note| note.contains(shape::NAMES_NOT_KEPT))
    }

    /// The identity of rows that become those of the schema `written`, as far as the file keeps its types.
    fn hashed(&self, stream: Rows, written: &SchemaRef) -> Result<Identity> {
        let own = self.options.identity();
        let stream = kept::as_times(stream, written);
        let kept = kept::schema(written, &stream.schema(), &self.plan);
        let stream = adapted(stream, &kept)?;
        let mut hasher = RowHasher::new(&stream.schema(), &own)?;
        own.overlapped(stream)?.try_for_each(|batch| hasher.push(&batch?))?;
        hasher.finish()
    }
}

/// The form as which rows are hashed: a matrix in a table form is a table.
fn form(schema: &SchemaRef) -> Form {
    match Form::of(schema) {
        Form::Columns | Form::Coo => Form::Table,
        form => form,
    }
}

fn reshaped(stream: Rows, wanted: Form, options: &OpenOptions) -> Result<Rows> {
    if form(&stream.schema()) == wanted {
        return Ok(stream);
    }
    let plan = reshape::plan(&stream.schema(), wanted)?;
    plan.plan.check(LossKinds::NONE)?;
    reshape::reshape(stream, &plan, &options.budget, LossKinds::NONE, &LossRecord::default())
}

/// Rows in the types of this schema, in which they must all fit.
fn adapted(stream: Rows, wanted: &SchemaRef) -> Result<Rows> {
    let found = stream.schema();
    let value = shape::matrix_value_type;
    // The numbers of columns have no type in an identity.
    let is_same = found.fields() == wanted.fields()
        || Form::of(wanted) == Form::Sparse && value(&found) == value(wanted);
    if is_same {
        return Ok(stream);
    }
    // A matrix in a table form is adapted as a table.
    let plain = |schema: &SchemaRef| match form(schema) {
        Form::Table => Arc::new(Schema::new(schema.fields().clone())),
        _ => Arc::clone(schema),
    };
    let adapter = adapt::adapter(&plain(&found), &plain(wanted));
    adapter.plan.check(LossKinds::NONE)?;
    Ok(adapter.adapt(stream, LossKinds::NONE, LossRecord::default()))
}

/// The options of the writer that its reader has, too.
fn read_options(given: &OptionMap, info: &FormatInfo) -> OptionMap {
    let written = of_side(given, Side::Write, info);
    let mut own = OptionMap::default();
    for option in info.options.iter().filter(|option| option.side.includes(Side::Read)) {
        if let Some(value) = written.get(option.key) {
            own.set(option.key, value);
        }
    }
    own
}
