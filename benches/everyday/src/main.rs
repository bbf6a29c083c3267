//! Matrix Market against SciPy and fast_matrix_market (`PYTHON` names an interpreter that has both); `.npy` to Arrow
//! against a copy of the file; the memory of the command on 2 GiB (`PENTAGLOT` names the released command).

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use harness::Race;
use pentaglot::arrow::array::cast::AsArray;
use pentaglot::arrow::array::types::Float64Type;
use pentaglot::formats::matrix_market::MatrixMarket;
use pentaglot::formats::{Format, ReadOptions};
use pentaglot::job::{Conversion, ConvertOptions};
use pentaglot::{Registry, Result, Source};

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
    npy_to_arrow()?;
    memory_of_the_command()
}

/// Writes a `.npy` of `rows` x 100 float64.
fn write_npy(path: &Path, rows: usize) -> Result<()> {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 100), }}");
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(b"\x93NUMPY\x01\x00\x76\x00")?;
    writeln!(file, "{header:<117}")?;
    let row: Vec<u8> = (0..100u64).flat_map(|col| (col as f64).sqrt().to_le_bytes()).collect();
    (0..rows).try_for_each(|_| file.write_all(&row))?;
    Ok(file.flush()?)
}

/// Converts in this process, rows kept as lists.
fn convert(from: &str, to: &str) -> Result<u64> {
    let registry = Registry::default();
    let mut options = ConvertOptions::default();
    options.open.options.set("as", "rows");
    Ok(Conversion::plan(&registry, &[from], to, &options)?.run(to, true)?.rows)
}

fn npy_to_arrow() -> Result<()> {
    let folder = std::env::temp_dir();
    let (from, copy, to) =
        (folder.join("pentaglot.npy"), folder.join("pentaglot.copy"), folder.join("pentaglot.arrow"));
    let rows = 400_000;
    write_npy(&from, rows)?;
    let (from_name, to_name) = (from.display().to_string(), to.display().to_string());
    let mut race = Race::new("320 MB .npy to Arrow, as=rows");
    race.add("copy of the file, and sync", || {
        std::fs::copy(&from, &copy).and_then(|_| std::fs::File::open(&copy)?.sync_all()).expect("copied");
        rows as u64
    });
    race.add("pentaglot", || convert(&from_name, &to_name).expect("converted"));
    let laps = race.run(5);
    assert_eq!(laps[0].checksum, laps[1].checksum);
    [&from, &copy, &to].into_iter().try_for_each(std::fs::remove_file)?;
    Ok(())
}

/// The peak of the command's resident memory, as the system tells it while the command runs.
fn memory_of_the_command() -> Result<()> {
    let Ok(command) = std::env::var("PENTAGLOT") else {
        println!("PENTAGLOT does not name the command: its memory is not measured");
        return Ok(());
    };
    let from = std::env::temp_dir().join("pentaglot-large.npy");
    write_npy(&from, (2 << 30) / 800)?;
    for extension in ["parquet", "arrow"] {
        let to = std::env::temp_dir().join(format!("pentaglot-large.{extension}"));
        let mut child = Command::new(&command).arg("convert").arg(&from).arg(&to).arg("--force").spawn()?;
        let mut peak = 0;
        while child.try_wait()?.is_none() {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
            peak = peak.max(kilobytes.unwrap_or(0));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        println!("## 2 GiB .npy to {extension}: {} MB resident at the most", peak / 1000);
        std::fs::remove_file(&to)?;
    }
    Ok(std::fs::remove_file(&from)?)
}

fn read(path: &Path, threads: usize) -> Result<f64> {
    let mut options = ReadOptions::default();
    options.control = pentaglot::Control::new(threads);
    let document = MatrixMarket.open(Source::open(path)?, &options)?;
    let mut sum = 0.0;
    for batch in document.all_rows()? {
        let batch = batch?;
        let list = batch.column(0).as_list::<i64>();
        let (from, to) = (list.value_offsets()[0] as usize, list.value_offsets()[batch.num_rows()] as usize);
        let values = list.values().as_struct().column(1).as_primitive::<Float64Type>();
        sum += values.values()[from..to].iter().sum::<f64>();
    }
    Ok(sum)
}
