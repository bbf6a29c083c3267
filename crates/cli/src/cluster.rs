//! `cluster scheduler` and `cluster executor`: the processes that `sql --cluster` uses.

use std::sync::Arc;

use pentaglot_cluster::{ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};
use pentaglot_sql::Place;

use crate::args::{Cluster, Global, Open, Role};
use crate::{DONE, Outcome, Session, bus_error, screen};

pub(crate) fn run(session: &Session, args: &Cluster) -> Outcome {
    let global = &session.global;
    let _ = log::set_logger(&ToScreen).map(|()| log::set_max_level(level(global)));
    let say = |text: &str| {
        if !global.quiet {
            screen::say(text);
        }
    };
    match &args.role {
        Role::Scheduler(scheduler) => {
            let options = SchedulerOptions {
                bind_host: scheduler.bind_host.clone(),
                bind_port: scheduler.bind_port,
                external_host: scheduler.external_host.clone(),
                insecure: scheduler.insecure,
            };
            let place = place(session, &[])?;
            run_scheduler(&options, place, &global.control, |address| {
                say(&format!("the scheduler listens on {address}"));
            })?;
        }
        Role::Executor(executor) => {
            let options = ExecutorOptions {
                scheduler_host: executor.scheduler_host.clone(),
                scheduler_port: executor.scheduler_port,
                bind_host: executor.bind_host.clone(),
                external_host: executor.external_host.clone(),
                bind_port: executor.bind_port,
                bind_grpc_port: executor.bind_grpc_port,
                work_dir: executor.work_dir.clone(),
                is_confined: !executor.data_root.is_empty(),
                threads: global.threads,
                max_alloc: global.limits().max_alloc,
                insecure: executor.insecure,
            };
            let place = place(session, &executor.data_root)?;
            run_executor(&options, place, &global.control, |addresses| {
                say(&format!("the executor listens on {addresses}"));
            })?;
        }
    }
    Ok(DONE)
}

/// What an executor may open, and how.
pub(crate) fn place(session: &Session, roots: &[String]) -> pentaglot::Result<Arc<Place>> {
    let none = Open { from: None, type_text: None, options: Vec::new() };
    let mut open = none.options(&session.global);
    open.in_place = bus_error::permit_map("");
    Ok(Arc::new(Place::executor(session.registry.clone(), open, roots)?))
}

fn level(global: &Global) -> log::LevelFilter {
    match (global.quiet, global.verbose) {
        (true, _) => log::LevelFilter::Off,
        (_, true) => log::LevelFilter::Info,
        _ => log::LevelFilter::Error,
    }
}

/// What Ballista reports, as lines on standard error.
struct ToScreen;

impl log::Log for ToScreen {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("ballista")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            screen::say(&screen::escape(&record.args().to_string()));
        }
    }

    fn flush(&self) {}
}
