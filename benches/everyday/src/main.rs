//! Matrix Market against SciPy and fast_matrix_market (`PYTHON` names an interpreter that has both).

use std::io::Write;
use std::process::Command;
use std::time::Instant;

use pentaglot::arrow::array::cast::AsArray;
use pentaglot::arrow::array::types::Float64Type;
use pentaglot::formats::matrix_market::MatrixMarket;
use pentaglot::formats::{Format, ReadOptions, Request};
use pentaglot::{Result, Source};

const ENTRIES: u64 = 1_600_000;
const SIZE: u64 = 100_000;

fn main() -> Result<()> {
    let path = std::env::temp_dir().join("pentaglot-everyday.mtx");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
    writeln!(file, "%%MatrixMarket matrix coordinate real general\n{SIZE} {SIZE} {ENTRIES}")?;
    let mut state = 7u64;
    for index in 0..ENTRIES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let value = (state >> 11) as f64 / (1u64 << 53) as f64;
        let (row, col) = ((state >> 20) % SIZE + 1, index * SIZE / ENTRIES + 1);
        writeln!(file, "{row} {col} {value:?}")?;
    }
    file.flush()?;
    drop(file);
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    for threads in [1usize, 2] {
        let mut best = f64::INFINITY;
        let mut sum = 0.0;
        for _ in 0..3 {
            let start = Instant::now();
            sum = read(&path, threads)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("## mtx, {threads} threads: {best:.3} s");
        for peer in ["scipy", "fmm"] {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers.py");
            let out =
                Command::new(&python).arg(script).arg(peer).arg(&path).arg(threads.to_string()).output()?;
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let [seconds, _, total] = numbers.as_slice() else {
                println!("{peer}: not there");
                continue;
            };
            assert!((total - sum).abs() < 1e-6 * sum.abs(), "{peer}: the sums differ");
            println!("{peer}: {seconds:.3} s, we are {:.2}x", seconds / best);
        }
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

fn read(path: &std::path::Path, threads: usize) -> Result<f64> {
    let mut options = ReadOptions::default();
    options.threads = threads;
    let document = MatrixMarket.open(Source::open(path)?, &options)?;
    let mut sum = 0.0;
    for batch in document.rows(&Request::default())? {
        let batch = batch?;
        let list = batch.column(0).as_list::<i64>();
        let (from, to) = (list.value_offsets()[0] as usize, list.value_offsets()[batch.num_rows()] as usize);
        let values = list.values().as_struct().column(1).as_primitive::<Float64Type>();
        sum += values.values()[from..to].iter().sum::<f64>();
    }
    Ok(sum)
}
