//! The client: sends a plan to the scheduler, waits for the job, and fetches its rows from the executors.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ballista_core::client::BallistaClient;
use ballista_core::config::BALLISTA_CLIENT_IO_RETRY_WAIT_TIME_MS;
use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, ExecuteQueryParams, GetJobStatusParams, KeyValuePair, PartitionLocation,
    execute_query_failure_result, execute_query_result, job_status,
};
use ballista_core::utils::{GrpcClientConfig, create_grpc_client_endpoint};
use ballista_core::{BALLISTA_VERSION, version};
use datafusion::common::Result as TheirResult;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionConfig;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use futures::{StreamExt, TryStreamExt, stream};
use pentaglot::{Error, Result};
use pentaglot_sql::{Cluster, Place, wire};
use tonic::transport::Channel;
use url::Url;

use crate::MESSAGE_BYTES;
use crate::codec::Codec;

/// How long a scheduler that does not know a job is asked again.
const UNKNOWN: Duration = Duration::from_secs(10);

/// Attempts to fetch rows, and the time between them.
const ATTEMPTS: u8 = 3;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(500);

/// How often a query is run, if executors are lost.
const RUNS: u8 = 5;

/// What the scheduler says of a job whose output between stages was lost, and of one that it cancelled because an executor was.
const LOST: [&str; 2] = ["has failed 1 times", "the query failed on the cluster: Cancelled"];

/// How long a client waits before it runs a query again: the scheduler learns meanwhile which executors are lost.
const BEFORE_NEXT_RUN: Duration = Duration::from_secs(1);

/// A cluster that can be reached through its scheduler.
#[derive(Debug)]
pub struct Client {
    /// As the user names it.
    name: String,
    url: String,
    codec: Codec,
    session: String,
    /// The jobs that have not ended.
    jobs: Arc<Mutex<Vec<String>>>,
}

impl Client {
    /// The cluster whose scheduler is at `df://HOST:PORT`.
    pub fn new(address: &str, place: Arc<Place>) -> Result<Self> {
        let wrong = || {
            let shown = pentaglot::redacted(address);
            Error::usage(format!("expected the address of a scheduler, df://HOST:PORT, found {shown:?}"))
        };
        let url = Url::parse(address).map_err(|_| wrong())?;
        if url.scheme() != "df" || !matches!(url.path(), "" | "/") || !url.username().is_empty() {
            return Err(wrong());
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let port = url.port().unwrap_or(50050);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Ok(Client {
            name: format!("df://{host}:{port}"),
            url: format!("http://{host}:{port}"),
            codec: Codec::new(place),
            session: format!("pentaglot-{}-{:x}", std::process::id(), now.as_nanos()),
            jobs: Arc::default(),
        })
    }

    async fn connect(&self) -> TheirResult<SchedulerGrpcClient<Channel>> {
        let cannot = |text: String| fault(format!("cannot reach the scheduler at {}: {text}", self.name));
        let config = GrpcClientConfig {
            connect_timeout_seconds: 5,
            http2_keepalive_interval_seconds: 10,
            ..GrpcClientConfig::default()
        };
        let endpoint = create_grpc_client_endpoint(self.url.clone(), Some(&config));
        let endpoint = endpoint.map_err(|error| cannot(causes(&error)))?;
        let channel = endpoint.connect().await.map_err(|error| cannot(causes(&error)))?;
        let size = MESSAGE_BYTES as usize;
        Ok(SchedulerGrpcClient::new(channel).max_encoding_message_size(size).max_decoding_message_size(size))
    }

    /// Submits a plan; gives the id of the job.
    async fn submit(
        &self,
        scheduler: &mut SchedulerGrpcClient<Channel>,
        plan: Arc<dyn ExecutionPlan>,
        config: &SessionConfig,
    ) -> TheirResult<String> {
        let encoded = PhysicalPlanNode::try_from_physical_plan(plan, &self.codec);
        let mut bytes = Vec::new();
        encoded.and_then(|plan| plan.try_encode(&mut bytes)).map_err(|error| {
            fault(format!("this statement cannot be run on a cluster: {}", error.strip_backtrace()))
        })?;
        let settings = scheduler_config(config).options().entries().into_iter();
        let settings = settings.map(|entry| KeyValuePair { key: entry.key, value: entry.value });
        let mut request = tonic::Request::new(ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(bytes)),
            settings: settings.collect(),
            session_id: self.session.clone(),
            operation_id: String::new(),
        });
        version::insert_version_header(request.metadata_mut());
        let refused = |text: &str| fault(format!("the scheduler at {} refused the query: {text}", self.name));
        let answer = scheduler.execute_query(request).await.map_err(|status| refused(status.message()))?;
        let theirs = version::version_from_metadata(answer.metadata()).map(str::to_owned);
        version::check_compatibility(Some(BALLISTA_VERSION), theirs.as_deref())
            .map_err(|text| refused(&text))?;
        match answer.into_inner().result {
            Some(execute_query_result::Result::Success(success)) => Ok(success.job_id),
            Some(execute_query_result::Result::Failure(failure)) => Err(refused(&match failure.failure {
                Some(
                    execute_query_failure_result::Failure::PlanParsingFailure(text)
                    | execute_query_failure_result::Failure::SessionNotFound(text)
                    | execute_query_failure_result::Failure::SqlParsingFailure(text),
                ) => text,
                None => "no reason is given".to_owned(),
            })),
            None => Err(refused("no answer")),
        }
    }

    /// Waits for the end of a job; gives where its rows are.
    async fn wait(
        &self,
        scheduler: &mut SchedulerGrpcClient<Channel>,
        job: &str,
    ) -> TheirResult<Vec<PartitionLocation>> {
        let mut unknown_since = Instant::now();
        let mut pause = Duration::from_millis(10);
        loop {
            let asked = scheduler.get_job_status(GetJobStatusParams { job_id: job.to_owned() }).await;
            let lost = |text: &str| fault(format!("the scheduler at {} was lost: {text}", self.name));
            let answer = asked.map_err(|status| lost(status.message()))?.into_inner();
            match answer.status.and_then(|status| status.status) {
                Some(job_status::Status::Successful(done)) => return Ok(done.partition_location),
                Some(job_status::Status::Failed(failed)) => {
                    return Err(fault(format!("the query failed on the cluster: {}", failed.error)));
                }
                Some(_) => unknown_since = Instant::now(),
                None if unknown_since.elapsed() > UNKNOWN => return Err(lost("it does not know the query")),
                None => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }
}

#[async_trait]
impl Cluster for Client {
    fn configure(&self, config: SessionConfig) -> SessionConfig {
        // With the adaptive planner a query hangs when an executor is lost that held finished output.
        config
            .upgrade_for_ballista()
            .with_ballista_adaptive_query_planner(false)
            .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES as usize)
            .set_u64(BALLISTA_CLIENT_IO_RETRY_WAIT_TIME_MS, BETWEEN_ATTEMPTS.as_millis() as u64)
    }

    async fn execute(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> TheirResult<SendableRecordBatchStream> {
        let schema = plan.schema();
        let mut scheduler = self.connect().await?;
        let jobs = || self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut attempt = 1;
        let done = loop {
            let job = self.submit(&mut scheduler, Arc::clone(&plan), context.session_config()).await?;
            jobs().push(job.clone());
            let done = self.wait(&mut scheduler, &job).await;
            jobs().retain(|known| *known != job);
            match done {
                Err(error) if LOST.iter().any(|text| error.to_string().contains(text)) => {
                    if attempt == RUNS {
                        let text = format!("executors of {} were lost in each of {RUNS} runs", self.name);
                        break Err(fault(text));
                    }
                    attempt += 1;
                    tokio::time::sleep(BEFORE_NEXT_RUN).await;
                }
                done => break done,
            }
        };
        let fetched = stream::iter(done?).then(fetch).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, fetched)))
    }

    async fn cancel(&self) {
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        if jobs.is_empty() {
            return;
        }
        if let Ok(mut scheduler) = self.connect().await {
            for job_id in jobs {
                if let Err(status) = scheduler.cancel_job(CancelJobParams { job_id }).await {
                    log::warn!("cannot cancel a query: {}", status.message());
                }
            }
        }
    }
}

/// The settings that the scheduler gets with a plan.
///
/// The plan is divided into partitions already. The scheduler checks each stage once more with the optimizer, which
/// would divide the inputs of joins again, within the stage: every task would then read all rows.
pub(crate) fn scheduler_config(config: &SessionConfig) -> SessionConfig {
    config.clone().with_target_partitions(1)
}

/// The rows of one partition.
async fn fetch(location: PartitionLocation) -> TheirResult<SendableRecordBatchStream> {
    let layout = location.layout();
    let (Some(executor), Some(partition)) = (location.executor_meta, location.partition_id) else {
        return Err(fault("the scheduler does not say where rows are".to_owned()));
    };
    let (host, port) = (executor.host.as_str(), executor.port as u16);
    let cannot = |error: &dyn std::fmt::Display| {
        fault(format!("cannot fetch rows from the executor at {host}:{port}: {error}"))
    };
    let wait = BETWEEN_ATTEMPTS.as_millis() as u64;
    let client =
        BallistaClient::try_new(host, port, MESSAGE_BYTES as usize, false, None, ATTEMPTS, wait, 0, 0).await;
    let mut client = client.map_err(|error| cannot(&error))?;
    let rows = client
        .fetch_partition_proxied(&executor.id, &partition.into(), location.file_id, layout, host, port, true)
        .await;
    rows.map_err(|error| cannot(&error))
}

/// An error in one line; what a node of ours said comes out of it again.
fn fault(text: String) -> DataFusionError {
    let error = wire::travelled(&text)
        .unwrap_or_else(|| Error::usage(text.split_whitespace().collect::<Vec<_>>().join(" ")));
    DataFusionError::External(Box::new(error))
}

/// An error with its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pentaglot::Registry;
    use pentaglot::job::OpenOptions;

    #[test]
    fn addresses_of_schedulers() {
        let place = Arc::new(Place::executor(Registry::default(), OpenOptions::default(), &[]).unwrap());
        let client = |text: &str| Client::new(text, Arc::clone(&place));
        assert_eq!(client("df://host:7000").unwrap().url, "http://host:7000");
        assert_eq!(client("df://127.0.0.1/").unwrap().url, "http://127.0.0.1:50050");
        for bad in
            ["host:7000", "http://host:7000", "df://", "df://me:secret@host", "df://host:7000/path", ""]
        {
            let error = client(bad).unwrap_err().to_string();
            assert!(error.contains("df://HOST:PORT") && !error.contains("secret"), "{error}");
        }
    }
}
