//! `view`: files in the browser.

use pentaglot::Error;

use crate::args::ViewFiles;
use crate::{Outcome, Session};

#[cfg(feature = "view")]
pub(crate) fn run(session: &Session, args: &ViewFiles) -> Outcome {
    use pentaglot_viewer::{ViewOptions, Viewer};

    use crate::{DONE, screen};

    let mut options = ViewOptions::default();
    options.files = pentaglot::job::expand(&session.registry, &args.files)?;
    if options.files.iter().any(|file| file == "-") {
        return Err(Error::usage("standard input cannot be looked at more than once: name a file").into());
    }
    options.open = args.open.options(&session.global);
    options.port = args.port;
    options.read_only = args.read_only;
    options.filter = args.filter.clone();
    options.folder = std::env::current_dir()?;
    let viewer = Viewer::bind(&session.registry, options)?;
    viewer.check()?;
    screen::print(format!("{}\n", viewer.address()).as_bytes())?;
    if !args.no_open && !open_browser(viewer.address()) {
        screen::say("no browser could be started: open the address in one");
    }
    viewer.serve()?;
    Ok(DONE)
}

#[cfg(not(feature = "view"))]
pub(crate) fn run(_: &Session, _: &ViewFiles) -> Outcome {
    let message = "this build has no viewer: install it with `--features view`";
    Err(Error::unsupported(message).into())
}

/// Opens the address with the system's default program.
#[cfg(feature = "view")]
fn open_browser(address: &str) -> bool {
    use std::process::{Command, Stdio};
    let words: &[&str] = match std::env::consts::OS {
        "macos" => &["open"],
        "windows" => &["rundll32", "url.dll,FileProtocolHandler"],
        _ => &["xdg-open"],
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}
