//! The scheduler. Its state is in memory: when it ends, its jobs are gone.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use ballista_core::extension::SessionConfigExt;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{CancelJobParams, job_status};
use ballista_core::utils::create_grpc_client_endpoint;
use ballista_scheduler::cluster::{BallistaCluster, ClusterStateEvent, ClusterStateEventStream, JobState};
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::StreamExt;
use pentaglot::{Control, Error, Result};
use pentaglot_sql::Place;
use tokio::net::TcpListener;

use crate::codec::Codec;
use crate::no_stores::runtime_env;
use crate::{HEARTBEAT, MESSAGE_BYTES, SILENCE, address, cancelled, runtime};

/// How a scheduler is started.
#[derive(Debug, Clone)]
pub struct SchedulerOptions {
    /// The address to listen on.
    pub bind_host: String,
    /// The port to listen on (0: any that is free).
    pub bind_port: u16,
    /// The name by which executors reach it, if that is not the address.
    pub external_host: Option<String>,
    /// Whether it may be reached from other machines, although nothing authenticates.
    pub insecure: bool,
}

/// Runs a scheduler until it is cancelled; `ready` is told the address on which it listens.
pub fn run_scheduler(
    options: &SchedulerOptions,
    place: Arc<Place>,
    control: &Control,
    ready: impl FnOnce(SocketAddr),
) -> Result<()> {
    let host = address(&options.bind_host, options.insecure)?;
    runtime()?.block_on(async {
        let place_to_listen = SocketAddr::new(host, options.bind_port);
        let cannot = |error| Error::io(format!("cannot listen on {place_to_listen}"), error);
        let listener = TcpListener::bind(place_to_listen).await.map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let config = Arc::new(SchedulerConfig {
            bind_host: host.to_string(),
            bind_port: bound.port(),
            external_host: options.external_host.clone().unwrap_or_else(|| host.to_string()),
            task_distribution: TaskDistributionPolicy::RoundRobin,
            executor_timeout_seconds: SILENCE.as_secs(),
            expire_dead_executor_interval_seconds: HEARTBEAT.as_secs(),
            no_executors_grace_period_seconds: SILENCE.as_secs(),
            // A job whose output between stages cannot be fetched fails, and the client runs it again: see `end_jobs`.
            stage_max_failures: 1,
            // Clients may take long to fetch what a job gave.
            finished_job_data_clean_up_interval_seconds: 3600,
            grpc_server_max_decoding_message_size: MESSAGE_BYTES,
            grpc_server_max_encoding_message_size: MESSAGE_BYTES,
            grpc_client_max_message_size: MESSAGE_BYTES,
            override_config_producer: Some(Arc::new(SessionConfig::new_with_ballista)),
            override_session_builder: Some(Arc::new(|config| {
                let state = SessionStateBuilder::new().with_default_features().with_config(config);
                Ok(state.with_runtime_env(runtime_env(None)?).build())
            })),
            override_physical_codec: Some(Arc::new(Codec::new(place))),
            ..SchedulerConfig::default()
        });
        let failed = |error| Error::unsupported(format!("the scheduler cannot run: {error}"));
        let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
        let (executors, jobs) = (cluster.cluster_state(), cluster.job_state());
        let removed = executors.cluster_state_events().await.map_err(failed)?;
        let server = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await;
        let server = server.map_err(failed)?;
        ready(bound);
        tokio::select! {
            ended = start_grpc_service_with_listener(listener, server) => ended.map_err(failed),
            () = end_jobs(removed, jobs, bound) => Ok(()),
            error = cancelled(control) => Err(error),
        }
    })
}

/// Cancels the jobs that run when an executor is lost; their clients run them again.
///
/// Ballista itself runs only those tasks again whose output is lost. Where a stage reads two others, as a join does, such a job
/// ends with rows twice, or never.
async fn end_jobs(mut executors: ClusterStateEventStream, jobs: Arc<dyn JobState>, bound: SocketAddr) {
    while let Some(event) = executors.next().await {
        let ClusterStateEvent::RemovedExecutor { executor_id } = event else { continue };
        for job in running(jobs.as_ref()).await {
            log::warn!("the executor {executor_id} is lost: job {job} is cancelled");
            if let Err(error) = cancel(bound, job).await {
                log::error!("cannot cancel a job: {error}");
            }
        }
    }
}

/// The jobs that have not ended.
async fn running(jobs: &dyn JobState) -> Vec<String> {
    let mut found = Vec::new();
    for job in jobs.get_all_jobs().await.unwrap_or_default() {
        let status = jobs.get_job_status(&job).await.ok().flatten().and_then(|status| status.status);
        if matches!(status, Some(job_status::Status::Queued(_) | job_status::Status::Running(_))) {
            found.push(job.to_string());
        }
    }
    found
}

/// Cancels a job as a client does.
async fn cancel(bound: SocketAddr, job_id: String) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let host = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    let address = format!("http://{}", SocketAddr::new(host, bound.port()));
    let channel = create_grpc_client_endpoint(address, None)?.connect().await?;
    SchedulerGrpcClient::new(channel).cancel_job(CancelJobParams { job_id }).await?;
    Ok(())
}
