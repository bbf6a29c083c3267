//! Our nodes and functions as bytes, for the processes of a cluster.
//!
//! ```text
//! magic   version of the writer   schema of the node's rows   what the node is (JSON)   further schema
//! ```
//!
//! The first three have the same layout in every version, so that a process can say which version it met, and a node can
//! be refused when it runs rather than when it is decoded: only then does the reason reach the client.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use datafusion::common::Result as TheirResult;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};
use pentaglot::formats::OptionMap;
use pentaglot::{Error, Result};
use serde_json::{Value, json};

use crate::place::Place;
use crate::reader::Reader;
use crate::scan::Scan;
use crate::table::TableOptions;
use crate::writer::{Copy, CopySpec};
use crate::{fault, functions};

const MAGIC: &[u8] = b"pentaglot-plan\0";

/// What both sides must have in common.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " plan 1");

/// Whether bytes are one of our nodes.
pub fn is_ours(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// A node of ours as bytes; `None` if it is not ours. Its inputs are not part of them.
pub fn encode(node: &dyn ExecutionPlan) -> Result<Option<Vec<u8>>> {
    let mut bytes = MAGIC.to_vec();
    put(&mut bytes, VERSION.as_bytes());
    if let Some(scan) = node.downcast_ref::<Scan>() {
        let (reader, options) = (scan.reader(), &scan.reader().options);
        let all = reader.file_schema.fields().iter().chain(&reader.keys).cloned().collect::<Vec<_>>();
        put(&mut bytes, &schema_bytes(&reader.schema)?);
        let body = json!({
            "node": "scan",
            "from": options.open.from,
            "type": options.open.type_text,
            "options": pairs(&options.open.options),
            "as": options.form,
            "own": reader.file_schema.fields().len(),
            "projection": reader.projection,
            "limit": scan.limit(),
            "batch_rows": reader.batch_rows,
            "rows": scan.known_rows(None),
        });
        put(&mut bytes, body.to_string().as_bytes());
        put(&mut bytes, &schema_bytes(&Schema::new(all))?);
        return Ok(Some(bytes));
    }
    if let Some(copy) = node.downcast_ref::<Copy>() {
        put(&mut bytes, &schema_bytes(&node.schema())?);
        let spec = copy.spec();
        let body = json!({
            "node": "copy",
            "folder": spec.folder,
            "to": spec.to,
            "partitioned_by": spec.partitioned_by,
            "allow_lossy": spec.allow_lossy.to_string(),
            "options": pairs(&spec.options),
        });
        put(&mut bytes, body.to_string().as_bytes());
        return Ok(Some(bytes));
    }
    Ok(None)
}

/// The node that bytes of [`encode`] mean.
pub fn decode(
    bytes: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
    place: &Arc<Place>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut rest = check(bytes)?;
    let schema = read_schema(take(&mut rest)?)?;
    let body: Value = serde_json::from_slice(take(&mut rest)?).map_err(|error| broken(&error))?;
    match (body["node"].as_str(), inputs) {
        (Some("scan"), [input]) => {
            let all = read_schema(take(&mut rest)?)?;
            scan(&body, schema, &all, Arc::clone(input), place)
        }
        (Some("copy"), [input, numbers]) => {
            let spec = CopySpec {
                folder: text(&body["folder"])?,
                to: text(&body["to"])?,
                partitioned_by: texts(&body["partitioned_by"])?,
                allow_lossy: match text(&body["allow_lossy"])?.as_str() {
                    "" => pentaglot::hub::LossKinds::NONE,
                    kinds => kinds.parse()?,
                },
                options: read_pairs(&body["options"])?,
            };
            let copy = Copy::new(Arc::clone(place), spec, Arc::clone(input), Arc::clone(numbers));
            Ok(Arc::new(copy?))
        }
        (node, inputs) => Err(broken(&format!("a node {node:?} with {} inputs", inputs.len()))),
    }
}

/// A node that ends every query with this error when it runs.
pub fn refuse(
    bytes: &[u8],
    inputs: &[Arc<dyn ExecutionPlan>],
    error: &Error,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| broken(&"no node of ours"))?;
    take(&mut rest)?;
    let schema = read_schema(take(&mut rest)?)?;
    Ok(Arc::new(Refused::new(schema, inputs.to_vec(), error.to_string())))
}

/// What an executor needs to know of a function of ours; `None` if it is not ours.
pub fn encode_function(function: &ScalarUDF) -> Result<Option<Vec<u8>>> {
    let Some(folder) = functions::folder(function) else { return Ok(None) };
    let mut bytes = MAGIC.to_vec();
    put(&mut bytes, VERSION.as_bytes());
    // Names of files are relative to it. A scheduler passes on what the client said.
    let folder = match folder {
        Some(folder) => folder.into(),
        None => std::env::current_dir().map_err(|error| Error::io("cannot tell the folder", error))?,
    };
    let folder = folder.to_str().ok_or_else(|| Error::usage("a name that is not UTF-8"))?;
    put(&mut bytes, folder.as_bytes());
    Ok(Some(bytes))
}

/// The function that bytes of [`encode_function`] mean.
pub fn decode_function(name: &str, bytes: &[u8], place: &Arc<Place>) -> Result<ScalarUDF> {
    let mut rest = check(bytes)?;
    let folder = String::from_utf8_lossy(take(&mut rest)?).into_owned();
    functions::function(name, place, Some(folder)).ok_or_else(|| broken(&format!("a function {name}")))
}

/// An error as text that survives what wraps it on the way to the client.
pub fn travelling(error: &Error) -> DataFusionError {
    fault::travelling(error)
}

/// The error of ours that a text from another process has in it.
pub fn travelled(text: &str) -> Option<Error> {
    fault::travelled(text)
}

fn scan(
    body: &Value,
    schema: SchemaRef,
    all: &Schema,
    input: Arc<dyn ExecutionPlan>,
    place: &Arc<Place>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let own = number(&body["own"])?;
    if own > all.fields().len() {
        return Err(broken(&"more columns of files than columns"));
    }
    let numbers = body["projection"].as_array().ok_or_else(|| broken(&"no projection"))?;
    let projection = numbers.iter().map(number).collect::<Result<Vec<_>>>()?;
    if all.project(&projection)?.fields() != schema.fields() {
        return Err(broken(&"another schema than that of its columns"));
    }
    let optional = |value: &Value| match value {
        Value::Null => Ok(None),
        value => text(value).map(Some),
    };
    let mut options = TableOptions { open: place.open.clone(), ..TableOptions::default() };
    options.open.from = optional(&body["from"])?;
    options.open.type_text = optional(&body["type"])?;
    options.open.options = read_pairs(&body["options"])?;
    options.form = optional(&body["as"])?;
    let reader = Reader {
        place: Arc::clone(place),
        options: Arc::new(options),
        file_schema: Arc::new(Schema::new(all.fields()[..own].to_vec())),
        keys: all.fields()[own..].into(),
        projection,
        schema,
        batch_rows: number(&body["batch_rows"])?.max(1),
    };
    let limit = if body["limit"].is_null() { None } else { Some(number(&body["limit"])?) };
    Ok(Arc::new(Scan::named(reader, input, limit, body["rows"].as_u64())))
}

/// What follows the version, if it is ours.
fn check(bytes: &[u8]) -> Result<&[u8]> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| broken(&"no node of ours"))?;
    let version = String::from_utf8_lossy(take(&mut rest)?).into_owned();
    if version != VERSION {
        return Err(Error::usage(format!(
            "the versions differ: a plan of pentaglot {version} reached pentaglot {VERSION}; \
             client, scheduler and executors must be of one version"
        )));
    }
    Ok(rest)
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u64).to_le_bytes());
    bytes.extend(part);
}

fn take<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8]> {
    let cut = || broken(&"it ends too early");
    let (len, after) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
    let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| cut())?;
    let (part, after) = after.split_at_checked(len).ok_or_else(cut)?;
    *rest = after;
    Ok(part)
}

fn schema_bytes(schema: &Schema) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    arrow_ipc::writer::StreamWriter::try_new(&mut bytes, schema)?.finish()?;
    Ok(bytes)
}

fn read_schema(bytes: &[u8]) -> Result<SchemaRef> {
    Ok(arrow_ipc::reader::StreamReader::try_new(bytes, None)?.schema())
}

fn pairs(options: &OptionMap) -> Vec<(&str, &str)> {
    options.keys().map(|key| (key, options.get(key).unwrap_or_default())).collect()
}

fn read_pairs(value: &Value) -> Result<OptionMap> {
    let mut options = OptionMap::default();
    for pair in value.as_array().ok_or_else(|| broken(&"no options"))? {
        options.set(text(&pair[0])?, text(&pair[1])?);
    }
    Ok(options)
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| broken(&"a text is missing"))
}

fn texts(value: &Value) -> Result<Vec<String>> {
    value.as_array().ok_or_else(|| broken(&"a list is missing"))?.iter().map(text).collect()
}

fn number(value: &Value) -> Result<usize> {
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| broken(&"a number is missing"))
}

fn broken(what: &dyn fmt::Display) -> Error {
    Error::usage(format!("cannot read a plan: {what}"))
}

/// What came instead of a node that cannot be run here.
#[derive(Debug)]
struct Refused {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    reason: String,
    properties: Arc<PlanProperties>,
}

impl Refused {
    fn new(schema: SchemaRef, inputs: Vec<Arc<dyn ExecutionPlan>>, reason: String) -> Self {
        let count = inputs.first().map_or(1, |input| input.properties().partitioning.partition_count());
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(count),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Refused { inputs, reason, properties }
    }
}

impl DisplayAs for Refused {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PentaglotRefused: {}", self.reason)
    }
}

impl ExecutionPlan for Refused {
    fn name(&self) -> &str {
        "PentaglotRefused"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> TheirResult<TreeNodeRecursion>,
    ) -> TheirResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> TheirResult<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Refused::new(self.schema(), children, self.reason.clone())))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> TheirResult<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> TheirResult<SendableRecordBatchStream> {
        Err(fault::travelling(&Error::usage(self.reason.clone())))
    }
}
