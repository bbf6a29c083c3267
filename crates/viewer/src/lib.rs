//! A local page that shows typed data: rows, statistics, pictures, bytes.
//!
//! ```text
//! http    requests and responses of HTTP/1.1, a thread per connection
//! guard   access control: Host and Origin, the one-time code, the token
//! files   the named files, each opened on the first request
//! routes  the requests of the page, one function each
//! table   rows by range, sorted and filtered
//! work    describe, validate and count in the background
//! bytes   outline, bytes at an offset, the part that contains an offset
//! save    the plan of a conversion, and the conversion
//! page    the built page, from `web/`
//! ```
//!
//! The server listens on 127.0.0.1 only. The page's address has a one-time code in its fragment; the page exchanges it
//! for a token, which it keeps in memory and sends with each request.

mod bytes;
mod files;
mod guard;
mod http;
mod page;
mod routes;
mod save;
mod table;
mod work;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pentaglot::job::OpenOptions;
use pentaglot::{Error, Registry, Result};

use crate::files::Files;
use crate::guard::Guard;

/// Connections that are served at a time; others wait.
const MOST_CONNECTIONS: usize = 64;
/// The interval at which cancellation is checked.
const PAUSE: Duration = Duration::from_millis(20);

/// Options of the viewer.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ViewOptions {
    /// The names of the files.
    pub files: Vec<String>,
    /// How they are opened. Cancelling the control ends the server.
    pub open: OpenOptions,
    /// The port; 0 for any free port.
    pub port: u16,
    /// Whether nothing may be saved.
    pub read_only: bool,
    /// Only rows that match are shown at first; see [`pentaglot::hub::filter`].
    pub filter: Option<String>,
    /// The folder that files are saved in.
    pub folder: PathBuf,
}

/// A server that is bound to its port.
pub struct Viewer {
    listener: TcpListener,
    state: Arc<State>,
    address: String,
}

pub(crate) struct State {
    pub(crate) guard: Guard,
    pub(crate) files: Files,
    pub(crate) options: ViewOptions,
    pub(crate) registry: Registry,
}

impl Viewer {
    /// Binds the port. Files are opened when the page requests them.
    pub fn bind(registry: &Registry, options: ViewOptions) -> Result<Self> {
        let cannot = |error| Error::io("cannot listen on 127.0.0.1", error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let port = listener.local_addr().map_err(cannot)?.port();
        let guard = Guard::new(port)?;
        let address = format!("http://127.0.0.1:{port}/#{}", guard.code());
        let files = Files::new(&options.files);
        let state = State { guard, files, options, registry: registry.clone() };
        Ok(Viewer { listener, state: Arc::new(state), address })
    }

    /// Opens the files. One that is missing is an error, and so is a condition that does not fit the columns; one that is
    /// broken can be looked at.
    pub fn check(&self) -> Result<()> {
        self.state.files.all().iter().try_for_each(|file| file.check(&self.state))
    }

    /// The address of the page. Its code works once.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Answers until the control of the options is cancelled.
    pub fn serve(self) -> Result<()> {
        let connections = Arc::new(AtomicUsize::new(0));
        loop {
            self.state.options.open.control.check()?;
            if connections.load(Ordering::Acquire) >= MOST_CONNECTIONS {
                std::thread::sleep(PAUSE);
                continue;
            }
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let (state, counted) = (Arc::clone(&self.state), Counted::new(&connections));
                    let serve = move || {
                        let _counted = counted;
                        // An error of one connection does not affect others.
                        let _ = http::serve(&stream, |request| routes::answer(&state, request));
                    };
                    // If no thread can be started, the connection is closed.
                    let _ = std::thread::Builder::new().spawn(serve);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
                // The client disconnected before it was accepted.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(Error::io("cannot accept a connection", error)),
            }
        }
    }
}

/// A connection that is counted as long as it lasts.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(connections: &Arc<AtomicUsize>) -> Self {
        connections.fetch_add(1, Ordering::AcqRel);
        Counted(Arc::clone(connections))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
