//! One table of one or several files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result as TheirResult, ScalarValue};
use datafusion::datasource::TableType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use pentaglot::convert::reshape::Reshape;
use pentaglot::convert::{target_form, union};
use pentaglot::formats::OptionMap;
use pentaglot::hub::Form;
use pentaglot::job::{self, OpenOptions, Opened};
use pentaglot::{Error, Registry, Result, redacted};

use crate::fault::theirs;
use crate::place::Place;
use crate::prune;
use crate::resolve::{Found, resolve};
use crate::scan::{Part, Scan};

/// How the files of a table are opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableOptions {
    pub(crate) open: OpenOptions,
    /// How a matrix becomes a table: `as` of a conversion.
    pub(crate) form: Option<String>,
    /// Types that were declared for partition columns.
    pub(crate) declared: HashMap<String, DataType>,
}

/// One file of a table.
pub(crate) struct TableFile {
    pub(crate) name: String,
    pub(crate) opened: Opened,
    /// How its rows become rows of a table.
    pub(crate) reshape: Reshape,
    /// The values of the partition columns, and the texts that they were made from.
    pub(crate) values: Vec<ScalarValue>,
    pub(crate) texts: Vec<Option<String>>,
}

impl TableFile {
    /// Whether its rows are rows of the table one by one.
    pub(crate) fn keeps_rows(&self) -> bool {
        let form = |schema: &Schema| matches!(Form::of(schema), Form::Coo);
        form(&self.reshape.schema) == form(&self.opened.document.summary().schema)
    }

    /// How many rows of the table it has, if that is known.
    pub(crate) fn rows(&self) -> Option<u64> {
        self.opened.document.summary().rows.filter(|_| self.keeps_rows())
    }
}

/// Files of one format as one table.
pub(crate) struct FilesTable {
    pub(crate) files: Arc<[TableFile]>,
    /// The columns that the files have, all together.
    pub(crate) file_schema: SchemaRef,
    /// These and the partition columns.
    pub(crate) schema: SchemaRef,
    pub(crate) place: Arc<Place>,
    pub(crate) options: Arc<TableOptions>,
}

impl std::fmt::Debug for FilesTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FilesTable").field("files", &self.files.len()).field("schema", &self.schema).finish()
    }
}

/// The table that names mean together. Blocks.
pub(crate) fn open(place: &Arc<Place>, names: &[String], options: TableOptions) -> Result<FilesTable> {
    let mut found = Vec::new();
    for name in names {
        found.extend(resolve(&place.registry, name).map_err(|error| error.in_input(name.clone()))?);
    }
    let fields = partition_fields(&found, &options.declared)?;
    let mut files: Vec<TableFile> = Vec::new();
    for Found { name, values } in found {
        let texts: Vec<Option<String>> = values.into_iter().map(|(_, text)| text).collect();
        let file = open_file(place, &name, &texts, &fields, &options)
            .map_err(|error| error.in_input(name.clone()))?;
        if let Some(first) = files.first() {
            let (one, other) = (first.opened.format.info().id, file.opened.format.info().id);
            if one != other {
                let text = format!(
                    "expected files of one format, found {} ({one}) and {} ({other})",
                    redacted(&first.name),
                    redacted(&name)
                );
                return Err(Error::usage(text));
            }
        }
        files.push(file);
    }
    let schemas: Vec<union::Named<'_>> =
        files.iter().map(|file| (file.name.as_str(), Arc::clone(&file.reshape.schema))).collect();
    let united = union::schema(&schemas)?;
    // What the files say of their shape holds no longer for what is selected of them.
    let own = united.fields().iter().map(Arc::clone);
    let own: Vec<FieldRef> =
        own.filter(|field| !fields.iter().any(|key| key.name() == field.name())).collect();
    let file_schema = Arc::new(Schema::new(own.clone()));
    let all: Vec<FieldRef> = own.into_iter().chain(fields).collect();
    Ok(FilesTable {
        files: files.into(),
        file_schema,
        schema: Arc::new(Schema::new(all)),
        place: Arc::clone(place),
        options: Arc::new(options),
    })
}

/// Opens one file; the texts are those of its partition columns.
pub(crate) fn open_file(
    place: &Place,
    name: &str,
    texts: &[Option<String>],
    keys: &[FieldRef],
    options: &TableOptions,
) -> Result<TableFile> {
    let opened = job::open(&place.registry, name, &options.open)?;
    opened.check_options(&options.open.options)?;
    opened.document.summary().check_member()?;
    let schema = Arc::clone(&opened.document.summary().schema);
    let reshape = shape(&place.registry, &schema, options)?;
    let values = texts.iter().zip(keys).map(|(text, field)| scalar(text.as_deref(), field));
    let values = values.collect::<Result<_>>()?;
    Ok(TableFile { name: name.to_owned(), opened, reshape, values, texts: texts.to_vec() })
}

/// How data of this schema becomes a table: matrices as Parquet would hold them, unless something else is asked for.
fn shape(registry: &Registry, schema: &SchemaRef, options: &TableOptions) -> Result<Reshape> {
    let word = options.form.as_deref().unwrap_or("auto");
    let forms = registry
        .get("parquet")
        .map_or(&[Form::Table, Form::Columns, Form::Coo, Form::Array, Form::Value][..], |format| {
            format.info().forms
        });
    let reshape = target_form::plan(schema, forms, word)?;
    reshape.plan.check(pentaglot::hub::LossKinds::NONE)?;
    Ok(reshape)
}

/// The partition columns: integers or dates where all values are such, else text.
fn partition_fields(found: &[Found], declared: &HashMap<String, DataType>) -> Result<Vec<FieldRef>> {
    let Some(first) = found.first() else { return Ok(Vec::new()) };
    let fields = first.values.iter().enumerate().map(|(index, (key, _))| {
        let values = || found.iter().filter_map(|file| file.values.get(index)?.1.as_deref());
        let fits = |kind: &DataType| values().all(|text| is_plain(text, kind));
        let inferred = [DataType::Int64, DataType::Date32]
            .into_iter()
            .find(|kind| values().next().is_some() && fits(kind));
        let kind = declared.get(key).cloned().or(inferred).unwrap_or(DataType::Utf8);
        Arc::new(Field::new(key, kind, true))
    });
    Ok(fields.collect())
}

/// Whether a text is how a value of this type is written.
fn is_plain(text: &str, kind: &DataType) -> bool {
    match kind {
        DataType::Int64 => text.parse::<i64>().is_ok_and(|number| number.to_string() == text),
        _ => {
            let is_date = text.len() == 10 && text.bytes().filter(|byte| *byte == b'-').count() == 2;
            is_date && ScalarValue::try_from_string(text.to_owned(), kind).is_ok_and(|value| !value.is_null())
        }
    }
}

fn scalar(text: Option<&str>, field: &Field) -> Result<ScalarValue> {
    let wrong = |error: datafusion::error::DataFusionError| {
        Error::usage(format!("partition column {}: {}", field.name(), error.strip_backtrace()))
    };
    match text {
        None => ScalarValue::try_from(field.data_type()).map_err(wrong),
        Some(text) => ScalarValue::try_from_string(text.to_owned(), field.data_type()).map_err(wrong),
    }
}

/// The table that names mean together, read by DataFusion itself if it is plain Parquet.
pub(crate) async fn provider(
    place: &Arc<Place>,
    names: Vec<String>,
    options: TableOptions,
    state: &dyn Session,
    is_local: bool,
) -> TheirResult<Arc<dyn TableProvider>> {
    let place = Arc::clone(place);
    // Executors open files through our scan only, which confines them.
    let is_plain = is_local
        && options.form.is_none()
        && options.open.options.keys().next().is_none()
        && options.open.type_text.is_none();
    let opened = tokio::task::spawn_blocking(move || open(&place, &names, options)).await;
    let table = opened.map_err(|error| theirs(Error::unsupported(error.to_string())))?.map_err(theirs)?;
    let same = |file: &TableFile| {
        file.opened.format.info().id == "parquet"
            && file.values.is_empty()
            && std::path::Path::new(&file.name).is_file()
            && file.opened.source.path().is_some()
            && file.opened.source.len() == file.opened.content.len()
            && file.reshape.schema.fields() == table.file_schema.fields()
    };
    if !is_plain || !table.files.iter().all(same) {
        return Ok(Arc::new(table));
    }
    let urls = table.files.iter().map(|file| {
        let path = std::path::absolute(&file.name)?;
        let url = url::Url::from_file_path(&path)
            .map_err(|()| theirs(Error::usage(format!("{}: not a path", file.name))))?;
        ListingTableUrl::try_new(url, None)
    });
    let urls = urls.collect::<TheirResult<Vec<_>>>()?;
    let listing = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("");
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(listing);
    let config = config.infer_schema(state).await?;
    Ok(Arc::new(ListingTable::try_new(config)?))
}

impl FilesTable {
    /// Which files match filters over partition columns alone.
    fn matching(&self, state: &dyn Session, filters: &[Expr]) -> TheirResult<Vec<usize>> {
        let all: Vec<usize> = (0..self.files.len()).collect();
        let keys: Vec<FieldRef> = self.schema.fields()[self.file_schema.fields().len()..].to_vec();
        if keys.is_empty() || filters.is_empty() || all.is_empty() {
            return Ok(all);
        }
        let columns = (0..keys.len()).map(|index| {
            ScalarValue::iter_to_array(self.files.iter().map(|file| file.values[index].clone()))
        });
        let schema = Arc::new(Schema::new(keys));
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect::<TheirResult<_>>()?)?;
        let named = DFSchema::try_from(schema)?;
        let mut kept = vec![true; all.len()];
        for filter in filters.iter().filter(|filter| self.is_of_keys(filter)) {
            let filter = state.create_physical_expr(filter.clone(), &named)?;
            let mask = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
            let mask = datafusion::common::cast::as_boolean_array(&mask)?.clone();
            kept.iter_mut().zip(mask.iter()).for_each(|(kept, matches)| *kept &= matches == Some(true));
        }
        Ok(all.into_iter().filter(|index| kept[*index]).collect())
    }

    /// Whether a filter is about partition columns alone, so that whole files match or do not.
    fn is_of_keys(&self, filter: &Expr) -> bool {
        let is_key =
            |name: &str| self.file_schema.index_of(name).is_err() && self.schema.index_of(name).is_ok();
        let columns = filter.column_refs();
        !columns.is_empty() && columns.iter().all(|column| is_key(&column.name)) && !filter.is_volatile()
    }
}

#[async_trait]
impl TableProvider for FilesTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> TheirResult<Vec<TableProviderFilterPushDown>> {
        let verdict = |filter: &&Expr| match (self.is_of_keys(filter), filter.is_volatile()) {
            (true, _) => TableProviderFilterPushDown::Exact,
            // Bounds of columns leave out files; rows are filtered afterwards.
            (false, false) => TableProviderFilterPushDown::Inexact,
            (false, true) => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(verdict).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> TheirResult<Arc<dyn ExecutionPlan>> {
        let matching = self.matching(state, filters)?;
        let matching = prune::by_values(state, &self.files, matching, &self.schema, filters)?;
        let (files, wanted) = (Arc::clone(&self.files), state.config().target_partitions());
        let parts = tokio::task::spawn_blocking(move || divide(&files, &matching, wanted)).await;
        let parts = parts.map_err(|error| theirs(Error::unsupported(error.to_string())))?;
        let all = || (0..self.schema.fields().len()).collect();
        let projection = projection.cloned().unwrap_or_else(all);
        let batch_rows = state.config().batch_size();
        Ok(Arc::new(Scan::new(self, parts, projection, limit, batch_rows)?))
    }
}

/// Files below this size are not divided.
const SMALL: u64 = 1 << 20;

/// The parts of the files, in as many groups as are wanted: neighbours together, groups of similar size.
fn divide(files: &[TableFile], matching: &[usize], wanted: usize) -> Vec<Vec<Part>> {
    let mut parts: Vec<(Part, u64)> = Vec::new();
    for &index in matching {
        let file = &files[index];
        let bytes = file.opened.document.summary().bytes.or(file.opened.source.len()).unwrap_or(0);
        let splits = match file.keeps_rows() && bytes > SMALL {
            true => file.opened.document.splits(wanted.max(1)),
            false => Vec::new(),
        };
        if splits.len() < 2 {
            parts.push((Part { file: index, rows: 0..u64::MAX }, bytes.max(1)));
            continue;
        }
        let size =
            |split: &pentaglot::formats::Split| split.bytes.end.saturating_sub(split.bytes.start).max(1);
        parts
            .extend(splits.iter().map(|split| (Part { file: index, rows: split.rows.clone() }, size(split))));
    }
    let total: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    let each = total.div_ceil(wanted.max(1) as u64).max(1);
    let (mut groups, mut filled) = (vec![Vec::new()], 0u64);
    for (part, bytes) in parts {
        if filled >= each && groups.len() < wanted.max(1) {
            groups.push(Vec::new());
            filled = 0;
        }
        filled = filled.saturating_add(bytes);
        if let Some(group) = groups.last_mut() {
            group.push(part);
        }
    }
    groups
}

/// Options of SQL (`OPTIONS (…)`) as those of a table.
pub(crate) fn table_options(
    base: &OpenOptions,
    format: Option<String>,
    given: impl IntoIterator<Item = (String, String)>,
) -> TableOptions {
    let mut options = TableOptions { open: base.clone(), ..TableOptions::default() };
    options.open.from = format;
    let mut rest = Vec::new();
    for (key, value) in given {
        let key = key.strip_prefix("format.").unwrap_or(&key).to_owned();
        match key.as_str() {
            "as" => options.form = Some(value),
            "type" => options.open.type_text = Some(value),
            "from" => options.open.from = Some(value),
            _ => rest.push((key, value)),
        }
    }
    options.open.options = OptionMap::new(rest);
    options
}
