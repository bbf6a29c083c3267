//! Bench `sds`: our structures against simple-sds and others. See README.md.
//!
//! The driver starts two workers, this program and the same program built for the native processor, and asks them in
//! turn: one lap of one contestant at a time. Ours runs in the ordinary build only, everybody else in both.

mod bits;
mod driver;
mod elias_fano;
mod lanes;
mod load;
mod runs;
mod wavelet;
mod worker;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("worker") => worker::serve(&arguments[1..]),
        _ => driver::drive(&arguments),
    }
}
