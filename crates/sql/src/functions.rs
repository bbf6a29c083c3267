//! Functions on succinct structures: `sds_get(file, i)`, `sds_rank`, `sds_select`, `sds_pred`, `sds_succ`.
//!
//! A file is opened once per session, mapped where that is permitted, and never loaded.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::UInt64Builder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion::common::{Result as TheirResult, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;
use pentaglot::Result;
use pentaglot::job::Queries;

use crate::engine::Shared;
use crate::fault::theirs;

const OPERATIONS: &[&str] = &["get", "rank", "select", "pred", "succ"];

type Open = Arc<Mutex<HashMap<String, Arc<Queries>>>>;

pub(crate) fn register(context: &SessionContext, shared: &Arc<Shared>) {
    let open = Open::default();
    for operation in OPERATIONS {
        let function = SdsFunction {
            operation,
            name: format!("sds_{operation}"),
            signature: Signature::user_defined(Volatility::Stable),
            shared: Arc::clone(shared),
            open: Arc::clone(&open),
        };
        context.register_udf(ScalarUDF::from(function));
    }
}

struct SdsFunction {
    operation: &'static str,
    name: String,
    signature: Signature,
    shared: Arc<Shared>,
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
    fn queries(&self, file: &str) -> Result<Arc<Queries>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queries) = open.get(file) {
            return Ok(Arc::clone(queries));
        }
        let queries = Queries::open(&self.shared.registry, file, &self.shared.options.open);
        let queries = Arc::new(queries.map_err(|error| error.in_input(file))?);
        open.insert(file.to_owned(), Arc::clone(&queries));
        Ok(queries)
    }

    fn answer(&self, queries: &Queries, file: &str, number: u64) -> Result<Option<u64>> {
        let mut digits = [0; 20];
        let text = queries.answer([self.operation, decimal(number, &mut digits)]);
        let text = text.map_err(|error| error.in_input(file))?;
        Ok(text.into_text().and_then(|text| text.parse().ok()))
    }
}

/// A number as text, without an allocation.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &str {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[start..]).unwrap_or("0")
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
        let (files, mut answers) = (files.as_string::<i32>(), UInt64Builder::with_capacity(count));
        let mut current: Option<(&str, Arc<Queries>)> = None;
        for row in 0..count {
            let Some(number) = number(&numbers, row).filter(|_| files.is_valid(row)) else {
                answers.append_null();
                continue;
            };
            let file = files.value(row);
            if current.as_ref().is_none_or(|(known, _)| *known != file) {
                current = Some((file, self.queries(file).map_err(theirs)?));
            }
            let Some((file, queries)) = &current else { continue };
            answers.append_option(self.answer(queries, file, number).map_err(theirs)?);
        }
        let answers: ArrayRef = Arc::new(answers.finish());
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
