//! SQL of [`pentaglot_sql`] on several processes and machines, by Apache DataFusion Ballista.
//!
//! ```text
//! client     plans with its own engine, sends the physical plan, fetches rows         client
//! scheduler  divides plans into stages and tasks, watches over executors              scheduler
//! executor   runs tasks, keeps what they give to each other in its work folder        executor
//! ```
//!
//! All three are one program. Plans travel through [`codec`]; what the nodes of a plan are is the business of
//! [`pentaglot_sql::wire`]. Executors open files through our own nodes only, so that [`pentaglot_sql::Place`] can confine them:
//! they have no object stores (`no_stores`) that the readers of DataFusion could use.

mod client;
pub mod codec;
mod executor;
mod no_stores;
mod scheduler;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

use pentaglot::{Control, Error, Hint, Result};
use tokio::runtime::Runtime;

pub use client::Client;
pub use executor::{ExecutorOptions, run_executor};
pub use scheduler::{SchedulerOptions, run_scheduler};

/// How often an executor says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// How long an executor may be silent before its tasks are given to others.
const SILENCE: Duration = Duration::from_secs(10);

/// The longest message: a plan that names some hundred thousand files fits.
const MESSAGE_BYTES: u32 = 256 << 20;

/// The address to listen on: one of this machine alone, unless anyone may come.
fn address(host: &str, insecure: bool) -> Result<IpAddr> {
    let found = match host.parse() {
        Ok(address) => Some(address),
        Err(_) => (host, 0).to_socket_addrs().ok().and_then(|mut found| found.next()).map(|found| found.ip()),
    };
    let address: IpAddr =
        found.ok_or_else(|| Error::usage(format!("expected an address to listen on, found {host:?}")))?;
    if !address.is_loopback() && !insecure {
        let error = Error::usage(format!(
            "{address} can be reached from other machines, and nothing authenticates those who connect"
        ));
        return Err(error.hint(Hint::Advice("--insecure allows it".into())));
    }
    Ok(address)
}

/// The threads of a scheduler or an executor. Plans nest deeply.
fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(32 << 20)
        .enable_all()
        .build()
        .map_err(|error| Error::io("cannot start threads", error))
}

/// Ends when the job is cancelled.
async fn cancelled(control: &Control) -> Error {
    loop {
        if let Err(error) = control.check() {
            return error;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
