//! Plans as bytes: our nodes and functions by [`pentaglot_sql::wire`], all others by Ballista and DataFusion.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use pentaglot_sql::{Place, wire};

/// Encodes and decodes plans for one place.
#[derive(Debug)]
pub struct Codec {
    place: Arc<Place>,
    inner: BallistaPhysicalExtensionCodec,
    /// Whether a node that cannot be decoded becomes one that fails when it runs: of tasks that cannot be decoded, a client
    /// learns no reason.
    late: bool,
}

impl Codec {
    /// For a client or a scheduler: what cannot be decoded is an error.
    pub fn new(place: Arc<Place>) -> Self {
        Codec { place, inner: BallistaPhysicalExtensionCodec::default(), late: false }
    }

    /// For an executor: what cannot be decoded is a node that fails when it runs.
    pub fn for_executor(place: Arc<Place>) -> Self {
        Codec { late: true, ..Codec::new(place) }
    }
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !wire::is_ours(bytes) {
            return self.inner.try_decode(bytes, inputs, context, converter);
        }
        let decoded = wire::decode(bytes, inputs, &self.place);
        let decoded = decoded.or_else(|error| match self.late {
            true => wire::refuse(bytes, inputs, &error),
            false => Err(error),
        });
        decoded.map_err(outer)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match wire::encode(node.as_ref()).map_err(outer)? {
            Some(encoded) => {
                bytes.extend(encoded);
                Ok(())
            }
            None => self.inner.try_encode(node, bytes, converter),
        }
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        match wire::is_ours(bytes) {
            true => wire::decode_function(name, bytes, &self.place).map(Arc::new).map_err(outer),
            false => self.inner.try_decode_udf(name, bytes),
        }
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        match wire::encode_function(function).map_err(outer)? {
            Some(encoded) => {
                bytes.extend(encoded);
                Ok(())
            }
            None => self.inner.try_encode_udf(function, bytes),
        }
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.inner.try_decode_udaf(name, bytes)
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udaf(function, bytes)
    }

    fn try_decode_udwf(&self, name: &str, bytes: &[u8]) -> Result<Arc<WindowUDF>> {
        self.inner.try_decode_udwf(name, bytes)
    }

    fn try_encode_udwf(&self, function: &WindowUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udwf(function, bytes)
    }
}

/// Our error as one that reaches the client as it is.
fn outer(error: pentaglot::Error) -> DataFusionError {
    wire::travelling(&error)
}
