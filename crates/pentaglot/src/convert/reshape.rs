//! Reshape: converts a stream from one form to another, and describes the effect on its values.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};

use super::matrix;
use super::tensor::{self, Tensor};
use super::triplets::{self, Triplets};
use crate::error::{Error, Result};
use crate::hub::matrix::{value_field, widen};
use crate::hub::rows::{self, Rows};
use crate::hub::shape::{self, Form};
use crate::hub::type_text::{print_field, print_type};
use crate::hub::{Effect, LossKind, LossKinds, LossRecord, Plan, native, relax};
use crate::limits::Budget;

/// How a stream changes its form. Made by [`plan`], carried out by [`reshape`].
#[derive(Debug, Clone)]
pub struct Reshape {
    from: Form,
    to: Form,
    route: Route,
    /// The schema of the result.
    pub schema: SchemaRef,
    /// The effect, step by step.
    pub plan: Plan,
}

/// How one form becomes another, where there is more than one way.
#[derive(Debug, Clone, PartialEq)]
enum Route {
    /// The two forms determine it.
    Forms,
    /// Each row of a table is an entry.
    Triplets(Triplets),
    /// Each row is a tensor, which is a row of the matrix.
    Flatten,
    /// The one value is a tensor, whose outermost dimension gives the rows.
    Unpack(Tensor),
    /// All rows, this many, become one value.
    Pack(u64),
}

impl Reshape {
    fn new(from: Form, to: Form, schema: Schema) -> Self {
        Reshape { from, to, route: Route::Forms, schema: Arc::new(schema), plan: Plan::default() }
    }

    /// An impossible change: the stream stays as it is.
    fn none(form: Form, schema: &SchemaRef, plan: Plan) -> Self {
        Reshape { from: form, to: form, route: Route::Forms, schema: Arc::clone(schema), plan }
    }

    /// The form that goes in, and the one that comes out, even if its schema no longer says so.
    pub fn forms(&self) -> (Form, Form) {
        (self.from, self.to)
    }

    /// Whether rows come out as they are.
    pub fn is_identity(&self) -> bool {
        self.from == self.to && self.route == Route::Forms
    }

    /// The number of rows of the result for an input of `rows` rows, if known.
    pub fn row_count(&self, rows: Option<u64>) -> Option<u64> {
        match (&self.route, self.from, self.to) {
            (Route::Triplets(_), _, _) => shape::matrix_rows(&self.schema),
            (Route::Pack(_), _, _) => Some(1),
            (Route::Unpack(tensor), _, _) => tensor.shape.first().copied(),
            (_, from, to) if from == to => rows,
            (_, _, Form::Coo) => None,
            (_, Form::Coo, Form::Dense | Form::Sparse | Form::Columns) => shape::matrix_rows(&self.schema),
            _ => rows,
        }
    }

    /// Makes the result a plain table, without the metadata of a matrix.
    pub fn forget_shape(&mut self) {
        shape::plan_plain_table(&self.schema, &mut self.plan);
        self.schema = Arc::new(plain_table(&self.schema));
    }
}

const NO_NULLS: &str = "a matrix holds no nulls";

fn plain_table(schema: &Schema) -> Schema {
    let mut metadata = schema.metadata().clone();
    for key in [shape::SHAPE_KEY, shape::ROWS_KEY, shape::COLS_KEY, shape::ORDER_KEY, native::NATIVE_KEY] {
        metadata.remove(key);
    }
    Schema::new_with_metadata(schema.fields().clone(), metadata)
}

/// Plans the change of form. A change that does not exist is an `Impossible` step of the plan.
pub fn plan(schema: &SchemaRef, to: Form) -> Result<Reshape> {
    let from = Form::of(schema);
    let mut plan = Plan::default();
    if from == to {
        return Ok(Reshape::none(from, schema, plan));
    }
    if let Some(reshape) = plan_tensor(schema, from, to) {
        return Ok(reshape);
    }
    let out = match (from, to) {
        (_, Form::Table) => {
            let effect = match from {
                Form::Sparse | Form::Coo => Effect::widened().because(shape::SIZE_NOT_KEPT),
                _ => Effect::widened().because("comes back as a table"),
            };
            plan.step("", describe(schema), word(to), effect);
            plain_table(schema)
        }
        (Form::Table, Form::Array) if schema.fields().len() == 1 => {
            let field = schema.field(0);
            let effect = match field.name().as_str() {
                shape::ITEM_FIELD => Effect::widened().because("comes back as an array"),
                _ => Effect::widened().because(shape::NAMES_NOT_KEPT),
            };
            plan.step(field.name(), print_field(field), word(to), effect);
            shape::array_schema(field.clone())
        }
        // A dense matrix is an array of lists of one size.
        (Form::Dense, Form::Array) => shape::array_schema(schema.field(0).clone()),
        (Form::Table | Form::Array | Form::Columns, Form::Dense | Form::Sparse)
            if from != Form::Columns || shape::matrix_value_type(schema).is_none() =>
        {
            match matrix_of_columns(schema, to, &mut plan)? {
                Some(out) => out,
                None => return Ok(Reshape::none(from, schema, plan)),
            }
        }
        (Form::Dense | Form::Sparse | Form::Coo | Form::Columns, _) => {
            match matrix_forms(schema, from, to, &mut plan)? {
                Some(out) => out,
                None => return Ok(Reshape::none(from, schema, plan)),
            }
        }
        (from, to) => {
            plan.step("", describe(schema), word(to), Effect::impossible("it has no such form"));
            return Ok(Reshape::none(from, schema, plan));
        }
    };
    if plan.steps.is_empty() {
        plan.step("", describe(schema), word(to), Effect::exact());
    }
    let order = schema.metadata().get_key_value(shape::ORDER_KEY);
    let order = order.filter(|_| !matches!(to, Form::Table | Form::Array));
    // Entries as rows of a table are the same entries: the native type goes with them through Arrow and Parquet.
    let native = schema.metadata().get_key_value(native::NATIVE_KEY);
    let native =
        native.filter(|_| matches!((from, to), (Form::Sparse, Form::Coo) | (Form::Coo, Form::Sparse)));
    let mut metadata = out.metadata().clone();
    metadata.extend(order.into_iter().chain(native).map(|(key, value)| (key.clone(), value.clone())));
    let out = out.with_metadata(metadata);
    Ok(Reshape { plan, ..Reshape::new(from, to, out) })
}

/// Plans a change between tensors and matrices; `None` if it is not one.
fn plan_tensor(schema: &SchemaRef, from: Form, to: Form) -> Option<Reshape> {
    let [field] = schema.fields().as_ref() else { return None };
    let tensor = Tensor::of(field)?;
    let is_sparse = to == Form::Sparse;
    let (route, tensor, rows) = match (from, to) {
        // Plain numbers are a matrix of one column, as for any table.
        (Form::Table | Form::Array, Form::Dense | Form::Sparse) if !tensor.shape.is_empty() => {
            (Route::Flatten, tensor, None)
        }
        (Form::Value, Form::Dense | Form::Sparse | Form::Array) => {
            let (rows, inner) = tensor.clone().outer()?;
            (Route::Unpack(tensor), inner, Some(rows))
        }
        _ => return None,
    };
    let out = match to {
        Form::Array => shape::array_schema(tensor.field(shape::ITEM_FIELD)?),
        _ if is_sparse => shape::sparse_schema(tensor.item.data_type().clone(), rows, tensor.len()?),
        _ => tensor::dense_schema(&tensor, rows)?,
    };
    let mut plan = Plan::default();
    let mut effect = match tensor.shape.len() {
        0 | 1 => Effect::widened().because(format!("comes back as {}", word(to))),
        _ if to == Form::Array => Effect::widened().because("comes back as an array"),
        _ => {
            let shape: Vec<String> = tensor.shape.iter().map(u64::to_string).collect();
            Effect::widened().because(format!("each row holds {} numbers", shape.join(" x ")))
        }
    };
    if field.is_nullable() {
        effect = effect.and(Effect::strict().because(NO_NULLS));
    } else if tensor.item.is_nullable() {
        effect = effect.and(relax::no_nulls(tensor.item.data_type(), NO_NULLS));
    }
    plan.step(field.name(), print_field(field), word(to), effect);
    if from == Form::Table {
        plan.step(field.name(), "name", "none", Effect::widened().because(shape::NAMES_NOT_KEPT));
    }
    Some(Reshape { route, plan, ..Reshape::new(from, to, out) })
}

/// How many rows of this schema form one value of this field, if that is possible.
pub fn rows_of_value(schema: &Schema, value: &Field) -> Option<u64> {
    let [field] = schema.fields().as_ref() else { return None };
    let (row, all) = (Tensor::of(field)?, Tensor::of(value)?);
    let (row, all) = (row.len()?, all.len()?);
    all.checked_div(row).filter(|count| count * row == all)
}

/// Plans the change of all `count` rows to one tensor.
pub fn plan_value(schema: &SchemaRef, count: u64) -> Result<Reshape> {
    let from = Form::of(schema);
    let tensor = match (from, schema.fields().as_ref()) {
        (Form::Dense | Form::Array, [field]) => Tensor::of(field),
        _ => None,
    };
    let whole = tensor.and_then(|mut tensor| {
        tensor.shape.insert(0, count);
        tensor.field(shape::VALUE_FIELD)
    });
    let mut plan = Plan::default();
    let Some(whole) = whole else {
        plan.step(
            "",
            describe(schema),
            word(Form::Value),
            Effect::impossible("its rows are not tensors of numbers"),
        );
        return Ok(Reshape::none(from, schema, plan));
    };
    plan.step(
        "",
        describe(schema),
        print_field(&whole),
        Effect::widened().because("comes back as a single value"),
    );
    Ok(Reshape {
        route: Route::Pack(count),
        plan,
        ..Reshape::new(from, Form::Value, shape::value_schema(whole))
    })
}

/// Plans the change of a table of row, column and value to a sparse matrix of a known size.
pub fn plan_triplets(schema: &SchemaRef, triplets: Triplets, (rows, cols): (u64, u64)) -> Reshape {
    let value = triplets.value_type(schema);
    let mut plan = Plan::default();
    for index in [triplets.row, triplets.col, triplets.value] {
        let field = schema.field(index);
        let mut effect = Effect::checked(LossKind::Range).because("each cell of the matrix once");
        if field.is_nullable() {
            effect = Effect::checked(LossKind::Range | LossKind::Nulls).because(NO_NULLS);
        }
        let to =
            if index == triplets.value { print_type(&value) } else { "a row or column number".to_owned() };
        plan.step(field.name(), print_field(field), to, effect);
    }
    let out = shape::sparse_schema(value, Some(rows), cols);
    let note = format!("{rows} x {cols}");
    plan.step("", describe(schema), word(Form::Sparse), Effect::widened().because(note));
    Reshape { route: Route::Triplets(triplets), plan, ..Reshape::new(Form::Table, Form::Sparse, out) }
}

/// Converts a stream to its new form. A null becomes NaN if that is `allowed`, and is added to `lost`.
pub fn reshape(
    rows: Rows,
    reshape: &Reshape,
    budget: &Budget,
    allowed: LossKinds,
    lost: &LossRecord,
) -> Result<Rows> {
    use Form::{Array, Columns, Coo, Dense, Sparse, Table, Value};
    let schema = Arc::clone(&reshape.schema);
    let from = rows.schema();
    match &reshape.route {
        Route::Forms => {}
        Route::Triplets(triplets) => {
            return triplets::to_sparse(rows, *triplets, schema, budget, allowed, lost);
        }
        Route::Pack(count) => return tensor::pack(rows, schema, *count, budget),
        Route::Flatten | Route::Unpack(_) => {
            let route = reshape.route.clone();
            let dense =
                if reshape.to == Sparse { Arc::new(dense_equivalent(&schema)?) } else { Arc::clone(&schema) };
            let between = each(rows, dense, {
                let mut start = 0;
                move |batch, out| {
                    let changed = match &route {
                        Route::Unpack(tensor) => tensor::unpack(batch, out, tensor)?,
                        _ => tensor::to_dense(batch, out, start)?,
                    };
                    start += batch.num_rows() as u64;
                    Ok(vec![changed])
                }
            });
            if reshape.to != Sparse {
                return Ok(between);
            }
            let step = Reshape { schema, ..Reshape::new(Dense, Sparse, Schema::empty()) };
            return self::reshape(between, &step, budget, allowed, lost);
        }
    }
    Ok(match (reshape.from, reshape.to) {
        (from, to) if from == to && rows.schema() == schema => rows,
        (from, to) if from == to => relabelled(rows, schema),
        (_, Table) | (Table | Dense, Array) => relabelled(rows, schema),
        (Table | Array | Columns, Dense) => each(rows, schema, {
            let mut start = 0;
            let lost = lost.clone();
            move |batch, out| {
                let dense = matrix::columns_to_dense(batch, out, start, allowed, &lost)?;
                start += batch.num_rows() as u64;
                Ok(vec![dense])
            }
        }),
        (Table | Array | Columns, Sparse) => {
            let dense = Arc::new(dense_equivalent(&schema)?);
            each(rows, schema, {
                let mut start = 0;
                let lost = lost.clone();
                move |batch, out| {
                    let rows = matrix::columns_to_dense(batch, &dense, start, allowed, &lost)?;
                    let sparse = matrix::dense_to_sparse(rows.column(0), out, start)?;
                    start += batch.num_rows() as u64;
                    Ok(vec![rows::batch(Arc::clone(out), vec![sparse], batch.num_rows())?])
                }
            })
        }
        (Dense, Columns) => each(rows, schema, |batch, out| Ok(vec![matrix::dense_to_columns(batch, out)?])),
        (Dense, Sparse) => each(rows, schema, {
            let mut start = 0;
            move |batch, out| {
                let sparse = matrix::dense_to_sparse(batch.column(0), out, start)?;
                start += batch.num_rows() as u64;
                Ok(vec![rows::batch(Arc::clone(out), vec![sparse], batch.num_rows())?])
            }
        }),
        (Sparse, Coo) => each(rows, schema, {
            let mut start = 0;
            move |batch, out| {
                let coo = matrix::sparse_to_coo(batch, out, start)?;
                start += batch.num_rows() as u64;
                Ok(vec![coo])
            }
        }),
        (Dense, Coo) => {
            let value = shape::matrix_value_type(&from).unwrap_or(DataType::Null);
            let cols = shape::matrix_cols(&from).unwrap_or(0);
            let sparse = Arc::new(shape::sparse_schema(value, None, cols));
            each(rows, schema, {
                let mut start = 0;
                move |batch, out| {
                    let entries = matrix::dense_to_sparse(batch.column(0), &sparse, start)?;
                    let entries = rows::batch(Arc::clone(&sparse), vec![entries], batch.num_rows())?;
                    let coo = matrix::sparse_to_coo(&entries, out, start)?;
                    start += batch.num_rows() as u64;
                    Ok(vec![coo])
                }
            })
        }
        (Sparse, Dense) => {
            let budget = budget.clone();
            each(rows, schema, move |batch, out| matrix::sparse_to_dense(batch, out, &budget))
        }
        (Sparse, Columns) => {
            let dense = Arc::new(dense_equivalent(&from)?);
            let budget = budget.clone();
            each(rows, schema, move |batch, out| {
                let dense = matrix::sparse_to_dense(batch, &dense, &budget)?;
                dense.iter().map(|batch| matrix::dense_to_columns(batch, out)).collect()
            })
        }
        (Coo, Sparse) => triplets::to_sparse(rows, COO, schema, budget, allowed, lost)?,
        (Coo, Dense | Columns) => {
            let sparse = Arc::new(sparse_equivalent(&from)?);
            let between = triplets::to_sparse(rows, COO, sparse, budget, allowed, lost)?;
            let step = Reshape { schema, ..Reshape::new(Sparse, reshape.to, Schema::empty()) };
            return self::reshape(between, &step, budget, allowed, lost);
        }
        (Columns, Coo) => {
            let dense = Arc::new(dense_equivalent(&from)?);
            let step = Reshape { schema: dense, ..Reshape::new(Columns, Dense, Schema::empty()) };
            let between = self::reshape(rows, &step, budget, allowed, lost)?;
            let step = Reshape { schema, ..Reshape::new(Dense, Coo, Schema::empty()) };
            return self::reshape(between, &step, budget, allowed, lost);
        }
        (Table, Columns | Coo | Value) | (Array | Value, _) | (Dense | Sparse | Columns | Coo, _) => {
            return Err(Error::unsupported("a change of shape that the plan does not allow"));
        }
    })
}

/// The columns of a matrix as `row, col, value`.
const COO: Triplets = Triplets { row: 0, col: 1, value: 2 };

/// The same columns under another schema.
fn relabelled(rows: Rows, schema: SchemaRef) -> Rows {
    let out = Arc::clone(&schema);
    let batches = rows.map(move |batch| {
        let batch = batch?;
        rows::batch(Arc::clone(&out), batch.columns().to_vec(), batch.num_rows())
    });
    rows::from_batches(schema, batches)
}

fn each<F>(rows: Rows, schema: SchemaRef, mut change: F) -> Rows
where
    F: FnMut(&RecordBatch, &SchemaRef) -> Result<Vec<RecordBatch>> + Send + 'static,
{
    let out = Arc::clone(&schema);
    let batches = rows.flat_map(move |batch| {
        let changed = batch.map_err(Error::from).and_then(|batch| change(&batch, &out));
        match changed {
            Ok(batches) => batches.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        }
    });
    rows::from_batches(schema, batches)
}

fn dense_equivalent(schema: &Schema) -> Result<Schema> {
    let value = shape::matrix_value_type(schema).unwrap_or(DataType::Float64);
    shape::dense_schema(value, shape::matrix_rows(schema), shape::matrix_cols(schema).unwrap_or(0))
}

fn sparse_equivalent(schema: &Schema) -> Result<Schema> {
    let value = shape::matrix_value_type(schema).unwrap_or(DataType::Float64);
    Ok(shape::sparse_schema(value, shape::matrix_rows(schema), shape::matrix_cols(schema).unwrap_or(0)))
}

/// A table, an array or a matrix in columns as a matrix: one type that holds every column exactly, no nulls.
fn matrix_of_columns(schema: &SchemaRef, to: Form, plan: &mut Plan) -> Result<Option<Schema>> {
    let fields = schema.fields();
    // Without a common type, numbers become float64; each value is checked.
    let rounded = widen::are_numbers(fields).then_some(DataType::Float64);
    let Some(common) = widen::common_type(fields).or(rounded) else {
        for field in fields {
            if !widen::is_matrix_value(widen::value_type(field.data_type())) {
                let effect = Effect::impossible("a matrix holds numbers and truth values");
                plan.step(field.name(), print_field(field), "a matrix column", effect);
            }
        }
        if plan.steps.is_empty() {
            let note = "the columns share no type that holds all of them exactly";
            plan.step("", describe(schema), word(to), Effect::impossible(note));
        }
        return Ok(None);
    };
    // A matrix in columns has generated column names, which are not lost.
    let has_names = Form::of(schema) == Form::Table;
    let mut loses_names = false;
    for (index, field) in fields.iter().enumerate() {
        let mut effect = Effect::exact();
        if *field.data_type() != common {
            effect = effect.and(Effect::widened());
        }
        if !widen::holds(&common, widen::value_type(field.data_type())) {
            let why = format!("no type holds all columns, and {} must hold its values", print_type(&common));
            effect = effect.and(Effect::checked(LossKind::Precision).because(why));
        }
        if field.is_nullable() {
            effect = effect.and(relax::no_nulls(&common, NO_NULLS));
        }
        loses_names |= has_names && *field.name() != shape::column_name(index as u64);
        if effect != Effect::exact() {
            plan.step(field.name(), print_field(field), print_type(&common), effect);
        }
    }
    if matches!(Form::of(schema), Form::Table | Form::Array) {
        let note = if loses_names { shape::NAMES_NOT_KEPT } else { "comes back as a matrix" };
        plan.step("", describe(schema), word(to), Effect::widened().because(note));
    }
    let cols = fields.len() as u64;
    let rows = shape::matrix_rows(schema);
    Ok(Some(match to {
        Form::Dense => shape::dense_schema(common, rows, cols)?,
        _ => shape::sparse_schema(common, rows, cols),
    }))
}

fn matrix_forms(schema: &SchemaRef, from: Form, to: Form, plan: &mut Plan) -> Result<Option<Schema>> {
    let value = shape::matrix_value_type(schema);
    let (Some(value), Some(cols)) = (value, shape::matrix_cols(schema)) else {
        let effect = Effect::impossible("its values have no common type, or their number is not known");
        plan.step("", describe(schema), word(to), effect);
        return Ok(None);
    };
    let rows = shape::matrix_rows(schema);
    let item = value_field(schema).cloned().unwrap_or_else(|| Field::new("", value.clone(), false));
    if item.is_nullable() && !matches!(to, Form::Columns) {
        let nulls = relax::no_nulls(&value, NO_NULLS);
        plan.step("", describe(schema), word(to), nulls);
    }
    if matches!((from, to), (Form::Sparse | Form::Coo, Form::Dense | Form::Columns)) {
        let effect = Effect::widened().because("the zeros are written out");
        plan.step("", describe(schema), word(to), effect);
    }
    Ok(Some(match to {
        Form::Dense if i32::try_from(cols).is_err() => {
            plan.step("", describe(schema), word(to), Effect::impossible("more than 2147483647 columns"));
            return Ok(None);
        }
        Form::Dense => shape::dense_schema(value, rows, cols)?,
        Form::Sparse => shape::sparse_schema(value, rows, cols),
        Form::Columns if cols > 1 << 20 => {
            plan.step("", describe(schema), word(to), Effect::impossible("more than 1048576 columns"));
            return Ok(None);
        }
        Form::Columns => {
            let field = |index| item.clone().with_name(shape::column_name(index));
            let fields: Fields = (0..cols).map(field).collect();
            Schema::new_with_metadata(fields, shape::matrix_metadata(rows, cols))
        }
        Form::Coo => {
            let entry = shape::entry_fields(value, cols);
            let mut fields = vec![Arc::new(Field::new("row", DataType::UInt64, false))];
            fields.extend(entry.iter().cloned());
            Schema::new_with_metadata(fields, shape::matrix_metadata(rows, cols))
        }
        Form::Table | Form::Array | Form::Value => {
            plan.step("", describe(schema), word(to), Effect::impossible("it has no such form"));
            return Ok(None);
        }
    }))
}

/// A description of a stream: `a 3 x 4 dense matrix of float64`.
pub fn describe(schema: &Schema) -> String {
    let form = Form::of(schema);
    let size = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
    let extent = format!("{} x {}", size(shape::matrix_rows(schema)), size(shape::matrix_cols(schema)));
    let value =
        shape::matrix_value_type(schema).map_or(String::new(), |value| format!(" of {}", print_type(&value)));
    match form {
        Form::Table if schema.fields().len() == 1 => "a table of 1 column".to_owned(),
        Form::Table => format!("a table of {} columns", schema.fields().len()),
        Form::Dense => format!("a {extent} dense matrix{value}"),
        Form::Sparse => format!("a {extent} sparse matrix{value}"),
        Form::Columns => format!("a {extent} matrix{value} in columns"),
        Form::Coo => format!("a {extent} sparse matrix{value} as row, col, value"),
        Form::Array => "an array".to_owned(),
        Form::Value => "a single value".to_owned(),
    }
}

fn word(form: Form) -> &'static str {
    match form {
        Form::Table => "a table",
        Form::Dense => "a dense matrix",
        Form::Sparse => "a sparse matrix",
        Form::Columns => "a column per matrix column",
        Form::Coo => "row, col, value",
        Form::Array => "an array",
        Form::Value => "a single value",
    }
}
