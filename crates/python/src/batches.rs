//! Rows in memory ([`Batches`]), rows that are still to come ([`Stream`]) and their [`Schema`].

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, new_empty_array};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use pentaglot::hub::json::Columns;
use pentaglot::hub::shape::{self, Form, Shape};
use pentaglot::hub::{Rows, rows, type_text};
use pentaglot::job::{OpenOptions, View, json_options};
use pentaglot::{Budget, Error, Limits, Registry};
use pyo3::exceptions::{PyIndexError, PyNotImplementedError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3_arrow::PyRecordBatchReader;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use pyo3_arrow::input::{AnyArray, AnyRecordBatch};

use crate::arrays::{Values, primitive_buffer, type_string};
use crate::error::{Failure, Outcome};
use crate::given::Given;
use crate::masked::masked;
use crate::watch::Teller;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Schema>()?;
    module.add_class::<Batches>()?;
    module.add_class::<Stream>()?;
    module.add_class::<Values>()
}

/// The word for a form.
pub(crate) fn form_name(form: Form) -> &'static str {
    match form {
        Form::Table => "table",
        Form::Dense => "dense",
        Form::Sparse => "sparse",
        Form::Columns => "columns",
        Form::Coo => "coo",
        Form::Array => "array",
        Form::Value => "value",
    }
}

/// The form of this name.
pub(crate) fn form(name: &str) -> PyResult<Form> {
    let all = [Form::Table, Form::Dense, Form::Sparse, Form::Columns, Form::Coo, Form::Array, Form::Value];
    all.into_iter()
        .find(|form| form_name(*form) == name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no form {name:?}")))
}

/// The names and types of columns, and what the data is.
#[pyclass(frozen, module = "pentaglot._native")]
pub(crate) struct Schema(pub(crate) SchemaRef);

#[pymethods]
impl Schema {
    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The types of the columns, as text.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| type_text::print_field(field)).collect()
    }

    /// The metadata.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metadata = PyDict::new(py);
        for (key, value) in self.0.metadata() {
            metadata.set_item(key, value)?;
        }
        Ok(metadata)
    }

    /// What the rows are: table, matrix, array or value.
    #[getter]
    fn kind(&self) -> &'static str {
        Shape::of(&self.0).name()
    }

    /// How the rows carry it: table, dense, sparse, columns, coo, array or value.
    #[getter]
    fn form(&self) -> &'static str {
        form_name(Form::of(&self.0))
    }

    /// The number of columns of a matrix.
    #[getter]
    fn matrix_cols(&self) -> Option<u64> {
        match Shape::of(&self.0) {
            Shape::Matrix => shape::matrix_cols(&self.0),
            _ => None,
        }
    }

    /// The number of rows that the schema of a matrix declares.
    #[getter]
    fn matrix_rows(&self) -> Option<u64> {
        shape::matrix_rows(&self.0)
    }

    /// Whether a matrix was stored column by column.
    #[getter]
    fn is_column_major(&self) -> bool {
        shape::is_column_major(&self.0)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.as_ref())?)
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    fn __repr__(&self) -> String {
        type_text::print_schema(&self.0)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Schema>().is_ok_and(|other| other.get().0 == self.0)
    }
}

/// Rows in memory.
#[pyclass(frozen, module = "pentaglot._native")]
pub(crate) struct Batches {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Batches {
    /// All rows of a stream.
    pub(crate) fn collect(rows: Rows) -> Result<Self, Error> {
        let schema = rows.schema();
        let batches = rows.collect::<Result<_, ArrowError>>()?;
        Ok(Batches { schema, batches })
    }

    /// All rows in one batch: a copy where there are several.
    fn single(&self) -> Result<RecordBatch, Error> {
        match self.batches.as_slice() {
            [batch] => Ok(batch.clone()),
            batches => Ok(concat_batches(&self.schema, batches)?),
        }
    }

    /// One column in one array: a copy where there are several batches.
    fn column(&self, index: usize) -> Outcome<ArrayRef> {
        let field = self.schema.fields().get(index);
        let field = field.ok_or_else(|| PyIndexError::new_err(format!("there is no column {index}")))?;
        let parts: Vec<&dyn Array> = self.batches.iter().map(|batch| batch.column(index).as_ref()).collect();
        match (parts.as_slice(), self.batches.as_slice()) {
            ([], _) => Ok(new_empty_array(field.data_type())),
            (_, [batch]) => Ok(Arc::clone(batch.column(index))),
            (parts, _) => Ok(concat(parts)?),
        }
    }
}

/// The entries of sparse rows: row pointers, column numbers, values and the shape.
type Csr = (Values, Values, Values, (u64, u64));

#[pymethods]
impl Batches {
    /// All rows of anything with `__arrow_c_stream__` or `__arrow_c_array__`.
    #[staticmethod]
    fn from_arrow(data: &Bound<'_, PyAny>) -> Outcome<Self> {
        let rows = arrow_rows(data)?;
        Ok(data.py().detach(|| Batches::collect(rows))?)
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema(Arc::clone(&self.schema))
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Bytes of the buffers.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyCapsule>> {
        self.schema().__arrow_c_schema__(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> Outcome<Bound<'py, PyCapsule>> {
        export(py, &self.schema, self.batches.clone().into_iter().map(Ok), requested_schema)
    }

    /// The rows `start..stop`; nothing is copied.
    fn slice(&self, start: usize, stop: usize) -> Batches {
        let (mut batches, mut first) = (Vec::new(), 0);
        for batch in &self.batches {
            let end = first + batch.num_rows();
            let (from, to) = (start.clamp(first, end), stop.clamp(first, end));
            if from < to {
                batches.push(batch.slice(from - first, to - from));
            }
            first = end;
        }
        Batches { schema: Arc::clone(&self.schema), batches }
    }

    /// The same data in another form.
    fn reshape(&self, py: Python<'_>, wanted: &str) -> Outcome<Batches> {
        let mut view = View::default();
        view.forms = vec![form(wanted)?];
        Ok(py.detach(|| {
            let given = Given::Batches(Arc::clone(&self.schema), self.batches.clone());
            let mut options = OpenOptions::default();
            options.budget = unlimited();
            let opened = given.open(&Registry::default(), &options)?;
            Batches::collect(opened.rows(&view)?)
        })?)
    }

    /// The values of a column, if NumPy can hold them: several dimensions where they are lists of fixed size.
    fn column_values(&self, index: usize) -> Outcome<Option<Values>> {
        let column = self.column(index)?;
        let values = Values::of(&column, is_complex(self.schema.field(index)));
        Ok(values.map(|values| values.copied(self.batches.len() > 1)))
    }

    /// The values of a column in which some are missing, and which: a truth value for each.
    fn column_with_missing(&self, index: usize) -> Outcome<Option<(Values, Values)>> {
        let column = self.column(index)?;
        let found = Values::with_missing(&column, is_complex(self.schema.field(index)));
        Ok(found.and_then(|(values, missing)| Some((values.copied(true), missing?))))
    }

    /// The fields of a column of structs as columns of their own, unless structs are missing.
    fn fields(&self, index: usize) -> Outcome<Option<Batches>> {
        let column = self.column(index)?;
        let Some(structs) = column.as_struct_opt().filter(|structs| structs.null_count() == 0) else {
            return Ok(None);
        };
        let schema = Arc::new(arrow_schema::Schema::new(structs.fields().clone()));
        let batch = rows::batch(Arc::clone(&schema), structs.columns().to_vec(), structs.len())?;
        Ok(Some(Batches { schema, batches: vec![batch] }))
    }

    /// The same rows of one column, with values missing where the mask, a byte for each, is not zero.
    fn masked(&self, mask: &[u8]) -> Outcome<Batches> {
        let batch = masked(&self.single()?, mask)?;
        Ok(Batches { schema: batch.schema(), batches: vec![batch] })
    }

    /// The name and metadata of a column's extension type.
    fn extension(&self, index: usize) -> PyResult<Option<(String, Option<String>)>> {
        let field = self.schema.fields().get(index);
        let field = field.ok_or_else(|| PyIndexError::new_err(format!("there is no column {index}")))?;
        let metadata = field.extension_type_metadata().map(str::to_owned);
        Ok(field.extension_type_name().map(|name| (name.to_owned(), metadata)))
    }

    /// The entries of a sparse matrix, as SciPy's CSR holds them.
    fn csr(&self) -> Outcome<Csr> {
        let no = || Error::unsupported("only a sparse matrix has entries");
        if Form::of(&self.schema) != Form::Sparse {
            return Err(no().into());
        }
        let rows = self.column(0)?;
        let cols = shape::matrix_cols(&self.schema).unwrap_or(0);
        let list = rows.as_list_opt::<i64>().ok_or_else(no)?;
        let offsets = list.offsets();
        let (first, last) = ends(offsets);
        let entries = list.values().as_struct_opt().ok_or_else(no)?.slice(first, last - first);
        let pointers = match first {
            0 => offsets.inner().inner().clone(),
            first => Buffer::from_vec(offsets.iter().map(|end| end - first as i64).collect::<Vec<_>>()),
        };
        let (indices, values) = (entry(&entries, 0)?, entry(&entries, 1)?);
        let pointers = Values::new(pointers, vec![offsets.len()], "<i8");
        Ok((pointers, indices, values, (rows.len() as u64, cols)))
    }

    /// The first rows as text: a list of cells each.
    fn cells(&self, rows: usize) -> Outcome<Vec<Vec<String>>> {
        let mut cells = Vec::new();
        for batch in self.slice(0, rows).batches {
            let columns = Columns::new(&batch, &json_options())?;
            for row in 0..batch.num_rows() {
                let mut line = Vec::new();
                for column in 0..batch.num_columns() {
                    let mut text = Vec::new();
                    columns.write_cell(column, row, &mut text)?;
                    line.push(String::from_utf8_lossy(&text).into_owned());
                }
                cells.push(line);
            }
        }
        Ok(cells)
    }
}

/// For data that the caller holds in memory already.
fn unlimited() -> Budget {
    let mut limits = Limits::default();
    limits.max_alloc = u64::MAX;
    limits.budget()
}

fn ends(offsets: &OffsetBuffer<i64>) -> (usize, usize) {
    let end = |offset: Option<&i64>| offset.map_or(0, |offset| *offset as usize);
    (end(offsets.first()), end(offsets.last()))
}

fn entry(entries: &StructArray, index: usize) -> Outcome<Values> {
    let column = entries.column(index);
    let values = match (type_string(column.data_type()), column.data_type()) {
        (_, DataType::Boolean) => Values::of(column, false),
        (Some(kind), _) => {
            primitive_buffer(column).map(|buffer| Values::new(buffer, vec![column.len()], kind))
        }
        (None, DataType::FixedSizeList(..)) => Values::of(column, true),
        (None, _) => None,
    };
    let kind = column.data_type();
    Ok(values.ok_or_else(|| Error::unsupported(format!("SciPy has no matrix of {kind}")))?)
}

/// Whether the values of a column are complex numbers.
pub(crate) fn is_complex(field: &Field) -> bool {
    let is = |field: &Field| field.extension_type_name() == Some("pentaglot.complex");
    match field.data_type() {
        DataType::FixedSizeList(item, _) => is(field) || is_complex(item),
        _ => false,
    }
}

/// Rows as a capsule with an Arrow stream.
fn export<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> Outcome<Bound<'py, PyCapsule>> {
    let field =
        Field::new_struct("", schema.fields().clone(), false).with_metadata(schema.metadata().clone());
    let arrays = batches.map(|batch| Ok(Arc::new(StructArray::from(batch?)) as ArrayRef));
    let reader = ArrayIterator::new(arrays, Arc::new(field));
    Ok(to_stream_pycapsule(py, Box::new(reader), requested_schema)?)
}

/// Rows that are still to come: read once.
#[pyclass(frozen, module = "pentaglot._native")]
pub(crate) struct Stream {
    schema: SchemaRef,
    rows: Mutex<Option<Rows>>,
    teller: Arc<Teller>,
}

impl Stream {
    pub(crate) fn new(rows: Rows, teller: Teller) -> Self {
        Stream { schema: rows.schema(), rows: Mutex::new(Some(rows)), teller: Arc::new(teller) }
    }

    fn take(&self) -> Outcome<Rows> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(rows.ok_or_else(|| Error::usage("the stream has been read already"))?)
    }
}

#[pymethods]
impl Stream {
    #[getter]
    fn schema(&self) -> Schema {
        Schema(Arc::clone(&self.schema))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyCapsule>> {
        self.schema().__arrow_c_schema__(py)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> Outcome<Bound<'py, PyCapsule>> {
        let (rows, teller) = (self.take()?, Arc::clone(&self.teller));
        let told = rows.map(move |batch| {
            Python::attach(|py| teller.tell(py))
                .map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
            batch
        });
        export(py, &self.schema, told, requested_schema)
    }

    /// The next batch, or `None` at the end.
    fn next(&self, py: Python<'_>) -> Outcome<Option<Batches>> {
        let batch = py.detach(|| {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            let next = rows.as_mut().and_then(Iterator::next);
            if !matches!(next, Some(Ok(_))) {
                *rows = None;
            }
            next.transpose()
        });
        self.teller.tell(py)?;
        let schema = Arc::clone(&self.schema);
        Ok(batch.map_err(Error::from)?.map(|batch| Batches { schema, batches: vec![batch] }))
    }
}

/// Rows of anything with an Arrow stream or array: in memory if `whole`, so that their number is known.
pub(crate) fn given(data: &Bound<'_, PyAny>, whole: bool) -> Outcome<Given> {
    if let Ok(batches) = data.cast::<Batches>() {
        let batches = batches.get();
        return Ok(Given::Batches(Arc::clone(&batches.schema), batches.batches.clone()));
    }
    let rows = arrow_rows(data)?;
    if !whole {
        return Ok(Given::stream(rows));
    }
    let all = data.py().detach(|| Batches::collect(rows))?;
    Ok(Given::Batches(all.schema, all.batches))
}

/// Rows of anything with an Arrow stream or array. Data without columns is one column.
fn arrow_rows(data: &Bound<'_, PyAny>) -> Outcome<Rows> {
    if let Ok(stream) = data.extract::<PyRecordBatchReader>() {
        return Ok(stream.into_reader()?);
    }
    if let Ok(rows) = data.extract::<AnyRecordBatch>() {
        return Ok(rows.into_reader()?);
    }
    let column = data.extract::<AnyArray>().map_err(|error| not_arrow(data, error))?.into_reader()?;
    let own = match data.getattr("name") {
        Ok(name) if !name.is_none() => name.str()?.to_string(),
        _ => column.field().name().clone(),
    };
    let field = column.field().as_ref().clone();
    // Values without a name are an array, as NumPy's are.
    let schema = match own.as_str() {
        "" => shape::array_schema(field),
        name => arrow_schema::Schema::new(vec![field.with_name(name)]),
    };
    let schema = Arc::new(schema);
    let batch = {
        let schema = Arc::clone(&schema);
        move |array: Result<ArrayRef, ArrowError>| {
            let array = array?;
            let count = array.len();
            rows::batch(Arc::clone(&schema), vec![array], count)
        }
    };
    Ok(rows::from_batches(schema, column.map(batch)))
}

/// What a library says of data that it cannot give as Arrow data, as an error of ours.
fn not_arrow(data: &Bound<'_, PyAny>, error: PyErr) -> Failure {
    let py = data.py();
    if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyNotImplementedError>(py) {
        let found = data.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
        return Error::unsupported(format!("a {found} as Arrow data: {}", error.value(py))).into();
    }
    error.into()
}
