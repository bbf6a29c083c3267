//! Functions on succinct structures: `sds_get(file, i)`, `sds_rank`, `sds_select`, `sds_pred`, `sds_succ`.
//!
//! A file is opened once per session, mapped where that is permitted, and never loaded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_schema::DataType;
use datafusion::common::{Result as TheirResult, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;
use pentaglot::job::Queries;
use pentaglot::{Error, Result};

use crate::place::{Place, is_address};

const OPERATIONS: &[&str] = &["get", "rank", "select", "pred", "succ"];

type Open = Arc<Mutex<HashMap<String, Arc<Queries>>>>;

pub(crate) fn register(context: &SessionContext, place: &Arc<Place>) {
    let open = Open::default();
    for operation in OPERATIONS {
        let function = SdsFunction::new(operation, place, None, &open);
        context.register_udf(ScalarUDF::from(function));
    }
}

/// The function of this name, for a place where relative names are in this folder.
pub(crate) fn function(name: &str, place: &Arc<Place>, folder: Option<String>) -> Option<ScalarUDF> {
    let operation = OPERATIONS.iter().find(|operation| name.strip_prefix("sds_") == Some(**operation))?;
    Some(ScalarUDF::from(SdsFunction::new(operation, place, folder, &Open::default())))
}

/// The folder of relative names of a function of ours; `None` for other functions.
pub(crate) fn folder(function: &ScalarUDF) -> Option<Option<String>> {
    Some(function.inner().downcast_ref::<SdsFunction>()?.folder.clone())
}

struct SdsFunction {
    operation: &'static str,
    name: String,
    signature: Signature,
    place: Arc<Place>,
    /// Where relative names are, if not in the folder of this process.
    folder: Option<String>,
    open: Open,
}

impl fmt::Debug for SdsFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for SdsFunction {
    fn eq(&self, other: &Self) -> bool {
        self.operation == other.operation
    }
}

impl Eq for SdsFunction {}

impl Hash for SdsFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.operation.hash(state);
    }
}

impl SdsFunction {
    fn new(operation: &'static str, place: &Arc<Place>, folder: Option<String>, open: &Open) -> Self {
        SdsFunction {
            operation,
            name: format!("sds_{operation}"),
            signature: Signature::user_defined(Volatility::Stable),
            place: Arc::clone(place),
            folder,
            open: Arc::clone(open),
        }
    }

    fn queries(&self, file: &str) -> Result<Arc<Queries>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queries) = open.get(file) {
            return Ok(Arc::clone(queries));
        }
        let name = match &self.folder {
            Some(folder) if !is_address(file) => {
                Cow::Owned(Path::new(folder).join(file).display().to_string())
            }
            _ => Cow::Borrowed(file),
        };
        let queries = self.place.input(&name);
        let queries = queries.and_then(|name| Queries::open(&self.place.registry, &name, &self.place.open));
        let queries = Arc::new(queries.map_err(|error| error.in_input(file))?);
        open.insert(file.to_owned(), Arc::clone(&queries));
        Ok(queries)
    }

    /// The answers to these rows, which ask one file.
    fn answer(&self, file: &str, asked: &mut Asked, answers: &mut [Option<u64>]) -> Result<()> {
        if asked.rows.is_empty() {
            return Ok(());
        }
        let ask = || self.queries(file)?.numbers(self.operation, &asked.numbers);
        // What is in a store waits on a runtime of its own, which a thread that drives a query must not.
        let found = match is_address(file) {
            true => std::thread::scope(|scope| scope.spawn(ask).join())
                .unwrap_or_else(|_| Err(Error::unsupported("a query that ends its thread"))),
            false => ask(),
        };
        let found = found.map_err(|error| error.in_input(file))?;
        for (row, answer) in asked.rows.drain(..).zip(found) {
            answers[row] = answer;
        }
        asked.numbers.clear();
        Ok(())
    }
}

/// Questions to one file, and the rows that ask them.
#[derive(Default)]
struct Asked {
    rows: Vec<usize>,
    numbers: Vec<u64>,
}

impl ScalarUDFImpl for SdsFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> TheirResult<DataType> {
        Ok(DataType::UInt64)
    }

    fn coerce_types(&self, given: &[DataType]) -> TheirResult<Vec<DataType>> {
        match given {
            [DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null, number]
                if number.is_integer() || *number == DataType::Null =>
            {
                let number = if number.is_unsigned_integer() { DataType::UInt64 } else { DataType::Int64 };
                Ok(vec![DataType::Utf8, number])
            }
            _ => plan_err!("{} takes a file and an integer", self.name),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> TheirResult<ColumnarValue> {
        let count = args.number_rows;
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let count = if is_scalar { 1 } else { count };
        let files = args.args[0].to_array(count)?;
        let numbers = args.args[1].to_array(count)?;
        let files = files.as_string::<i32>();
        let mut answers = vec![None; count];
        let (mut current, mut asked) = ("", Asked::default());
        for row in 0..count {
            let Some(number) = number(&numbers, row).filter(|_| files.is_valid(row)) else { continue };
            let file = files.value(row);
            if file != current {
                self.answer(current, &mut asked, &mut answers).map_err(|error| self.place.fault(error))?;
                current = file;
            }
            asked.rows.push(row);
            asked.numbers.push(number);
        }
        self.answer(current, &mut asked, &mut answers).map_err(|error| self.place.fault(error))?;
        let answers: ArrayRef = Arc::new(UInt64Array::from(answers));
        match is_scalar {
            true => Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&answers, 0)?)),
            false => Ok(ColumnarValue::Array(answers)),
        }
    }
}

/// The number in a row; `None` for null and for negative ones, which no structure has.
fn number(numbers: &ArrayRef, row: usize) -> Option<u64> {
    if numbers.is_null(row) {
        return None;
    }
    match numbers.data_type() {
        DataType::UInt64 => Some(numbers.as_primitive::<UInt64Type>().value(row)),
        _ => u64::try_from(numbers.as_primitive::<Int64Type>().value(row)).ok(),
    }
}
