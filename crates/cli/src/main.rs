//! The command `pentaglot`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(pentaglot_cli::run_command(&words))
}
