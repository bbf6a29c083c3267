//! Runs laps on demand.

use std::io::{BufRead, Write};

use crate::lanes::Field;

/// Nanoseconds of this thread's processor time: other programs do not count.
pub fn thread_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub fn serve(arguments: &[String]) {
    let n: f64 = arguments[1].parse().expect("a number of bits");
    let parameter: f64 = arguments[2].parse().expect("a density or an alphabet");
    let mut field = Field::default();
    match arguments[0].as_str() {
        "bits" => crate::bits::enter(&mut field, n as u64, parameter),
        "clustered" => crate::bits::enter_clustered(&mut field, n as u64),
        "ef" => crate::elias_fano::enter(&mut field, n as u64, parameter),
        "wavelet" => crate::wavelet::enter(&mut field, n as u64, parameter as u64),
        "runs" => crate::runs::enter(&mut field, n as u64, parameter as u64),
        "load" => crate::load::enter(&mut field, n as u64, parameter),
        other => panic!("no group {other}"),
    }
    let mut output = std::io::stdout().lock();
    for contestant in &field.contestants {
        writeln!(output, "{}|{}|{}", contestant.row, contestant.name, contestant.ops).unwrap();
    }
    writeln!(output, "ready").unwrap();
    output.flush().unwrap();
    for line in std::io::stdin().lock().lines() {
        let index: usize = line.unwrap().parse().expect("a contestant");
        let start = thread_time();
        let checksum = std::hint::black_box((field.contestants[index].run)());
        let time = thread_time() - start;
        writeln!(output, "{time} {checksum}").unwrap();
        output.flush().unwrap();
    }
}
