//! The scheduler. Its state is in memory: when it ends, its jobs are gone.

use std::net::SocketAddr;
use std::sync::Arc;

use ballista_core::extension::SessionConfigExt;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
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
        let server = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, config).await;
        let server = server.map_err(failed)?;
        ready(bound);
        tokio::select! {
            ended = start_grpc_service_with_listener(listener, server) => ended.map_err(failed),
            error = cancelled(control) => Err(error),
        }
    })
}
