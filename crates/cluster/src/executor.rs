//! An executor: runs tasks, and keeps in its work folder what tasks of later stages and the client fetch from it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::execution::session_state::SessionStateBuilder;
use pentaglot::{Control, Error, Hint, Result};
use pentaglot_sql::Place;
use tokio::net::{TcpListener, TcpStream};

use crate::codec::Codec;
use crate::no_stores::runtime_env;
use crate::{HEARTBEAT, MESSAGE_BYTES, address, cancelled, runtime};

/// How long an executor waits for its scheduler to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// How an executor is started.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// Where the scheduler is.
    pub scheduler_host: String,
    /// The port of the scheduler.
    pub scheduler_port: u16,
    /// The address to listen on.
    pub bind_host: String,
    /// The name by which clients and other executors reach it, if that is not the address.
    pub external_host: Option<String>,
    /// The port from which results are fetched.
    pub bind_port: u16,
    /// The port to which tasks come.
    pub bind_grpc_port: u16,
    /// The folder for what tasks give (`None`: a temporary one).
    pub work_dir: Option<String>,
    /// Whether files are confined to data roots.
    pub is_confined: bool,
    /// Tasks at a time (0: as many as there are cores).
    pub threads: usize,
    /// The memory of all tasks together.
    pub max_alloc: u64,
    /// Whether it may be reached from other machines, although nothing authenticates.
    pub insecure: bool,
}

/// Runs an executor until it is cancelled; `ready` is told where it listens.
pub fn run_executor(
    options: &ExecutorOptions,
    place: Arc<Place>,
    control: &Control,
    ready: impl FnOnce(&str),
) -> Result<()> {
    let host = address(&options.bind_host, options.insecure)?;
    if options.insecure && !options.is_confined {
        let error =
            Error::usage("anyone who reaches this executor could read and write every file of its user");
        return Err(error.hint(Hint::Advice("--data-root DIR confines it".into())));
    }
    let temporary = match &options.work_dir {
        Some(_) => None,
        None => {
            let made = tempfile::Builder::new().prefix("pentaglot-executor-").tempdir();
            Some(made.map_err(|error| Error::io("cannot make a work folder", error))?)
        }
    };
    let folder = match (&options.work_dir, &temporary) {
        (Some(folder), _) => {
            let made = std::fs::create_dir_all(folder).and_then(|()| std::fs::canonicalize(folder));
            made.map_err(|error| Error::io("cannot use the work folder", error).in_output(folder.clone()))?
        }
        (None, Some(made)) => made.path().to_owned(),
        (None, None) => std::env::temp_dir(),
    };
    let folder =
        folder.to_str().ok_or_else(|| Error::usage("a work folder whose name is not UTF-8"))?.to_owned();
    runtime()?.block_on(async {
        for port in [options.bind_port, options.bind_grpc_port] {
            // Ballista says only that its services ended.
            let bound = TcpListener::bind((host, port)).await;
            bound.map_err(|error| Error::io(format!("cannot listen on {host}:{port}"), error))?;
        }
        wait_for_scheduler(options, control).await?;
        let spill = folder.clone();
        let config = ExecutorProcessConfig {
            bind_host: host.to_string(),
            // Without a name, the scheduler uses the address from which the executor connects.
            external_host: options
                .external_host
                .clone()
                .or_else(|| (!host.is_unspecified()).then(|| host.to_string())),
            port: options.bind_port,
            grpc_port: options.bind_grpc_port,
            scheduler_host: options.scheduler_host.clone(),
            scheduler_port: options.scheduler_port,
            vcores: options.threads,
            work_dir: Some(folder),
            executor_heartbeat_interval_seconds: HEARTBEAT.as_secs(),
            job_data_clean_up_interval_seconds: 600,
            job_data_ttl_seconds: 24 * 3600,
            grpc_max_decoding_message_size: MESSAGE_BYTES,
            grpc_max_encoding_message_size: MESSAGE_BYTES,
            memory_pool_size: Some(options.max_alloc),
            override_runtime_producer: Some(Arc::new(move |_| runtime_env(Some(&spill)))),
            override_physical_codec: Some(Arc::new(Codec::for_executor(place))),
            // Those of a client: Ballista's own set has no functions on lists and maps.
            override_function_registry: Some(Arc::new(BallistaFunctionRegistry::from(
                &SessionStateBuilder::new().with_default_features().build(),
            ))),
            ..ExecutorProcessConfig::default()
        };
        ready(&format!("{host}:{} and {host}:{}", options.bind_port, options.bind_grpc_port));
        tokio::select! {
            ended = start_executor_process(Arc::new(config)) => {
                control.check()?;
                ended.map_err(|error| Error::unsupported(format!("the executor cannot run: {error}")))
            }
            error = cancelled(control) => Err(error),
        }
    })
}

async fn wait_for_scheduler(options: &ExecutorOptions, control: &Control) -> Result<()> {
    let (host, port) = (options.scheduler_host.as_str(), options.scheduler_port);
    let start = Instant::now();
    loop {
        match TcpStream::connect((host, port)).await {
            Ok(_) => return Ok(()),
            Err(error) if start.elapsed() > PATIENCE => {
                return Err(Error::io(format!("cannot reach the scheduler at {host}:{port}"), error));
            }
            Err(_) => control.check()?,
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
