//! Cancelling, and the memory of a job.

use arrow_array::RecordBatch;

use super::TABLES;
use crate::error::ErrorKind;
use crate::job::{Conversion, ConvertOptions, OpenOptions, View, open_source, target};
use crate::testing::conformance::collect;
use crate::{Registry, Sink, Source};

/// A CSV file that never ends.
struct Endless;

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let line = b"1,2\n";
        let count = buffer.len() / line.len() * line.len();
        buffer[..count].chunks_mut(line.len()).for_each(|place| place.copy_from_slice(line));
        Ok(count)
    }
}

#[test]
fn a_cancelled_job_ends_with_its_own_error_and_leaves_nothing() {
    let registry = Registry::default();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.arrow");
    for threads in [1, 2] {
        let mut options = ConvertOptions::default();
        options.open.from = Some("csv".to_owned());
        options.open.control = crate::Control::new(threads);
        let opened = open_source(&registry, Source::from_reader("-", Endless), None, &options.open).unwrap();
        let target = target(&registry, "arrow").unwrap();
        let conversion = Conversion::plan_opened(opened, target, None, &options).unwrap();
        let control = options.open.control.clone();
        let watcher = std::thread::spawn(move || {
            while control.progress().rows == 0 {
                std::thread::yield_now();
            }
            control.cancel();
        });
        let error = conversion.run(output.to_str().unwrap(), false).unwrap_err();
        watcher.join().unwrap();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Cancelled, "cancelled"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let progress = options.open.control.progress();
        assert!(progress.rows > 0 && progress.bytes > 0 && progress.total_bytes.is_none(), "{progress:?}");
        assert_eq!(progress.total_rows, None);
        // What the job held is given back; the thread that reads a stream ends by itself.
        while options.open.budget.used() > 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_job_gives_all_memory_back_whatever_it_reads_and_writes() {
    let registry = Registry::default();
    let csv: String = (0..5000).fold("a,b\n".to_owned(), |text, row| text + &format!("{row},{}\n", row % 7));
    let mut sources = vec![("csv".to_owned(), csv.into_bytes())];
    for format in TABLES.into_iter().chain(["npy", "npz", "mtx"]) {
        let (from, bytes) = sources[0].clone();
        let mut options = ConvertOptions::default();
        options.open.from = Some(from);
        options.allow_lossy = crate::hub::LossKinds::ALL;
        let opened = open_source(&registry, Source::from_bytes("data", bytes), None, &options.open).unwrap();
        let conversion =
            Conversion::plan_opened(opened, target(&registry, format).unwrap(), None, &options).unwrap();
        assert!(options.open.budget.used() > 0, "the schema is paid for");
        let (sink, memory) = Sink::memory();
        conversion.run_into(sink).unwrap();
        assert_eq!(options.open.budget.used(), 0, "writing {format}");
        sources.push((format.split(':').next().unwrap().to_owned(), memory.take()));
    }
    for (format, bytes) in sources {
        let mut options = OpenOptions::default();
        options.from = Some(format.clone());
        let opened = open_source(&registry, Source::from_bytes("data", bytes), None, &options).unwrap();
        let before = options.budget.used();
        let batches: Vec<RecordBatch> = opened.rows(&View::default()).unwrap().map(Result::unwrap).collect();
        assert!(options.budget.used() > before, "{format}: batches are paid for");
        drop(opened);
        assert!(options.budget.used() > 0, "{format}: as long as they are held");
        drop(batches);
        assert_eq!(options.budget.used(), 0, "reading {format}");
    }
}

#[test]
fn progress_tells_bytes_and_rows_of_how_many() {
    let registry = Registry::default();
    let csv = "a\n".to_owned() + &"7\n".repeat(5000);
    let mut options = ConvertOptions::default();
    let source = Source::from_bytes("data.csv", csv.into_bytes());
    let opened = open_source(&registry, source, None, &options.open).unwrap();
    let conversion =
        Conversion::plan_opened(opened, target(&registry, "arrow").unwrap(), None, &options).unwrap();
    let (sink, memory) = Sink::memory();
    conversion.run_into(sink).unwrap();
    let progress = options.open.control.progress();
    assert_eq!((progress.rows, progress.total_rows), (5000, Some(5000)));
    options.open.control = crate::Control::default();
    options.rows = Some(1000..9000);
    let source = Source::from_bytes("data.arrow", memory.take());
    let bytes = source.len();
    let opened = open_source(&registry, source, None, &options.open).unwrap();
    let conversion =
        Conversion::plan_opened(opened, target(&registry, "csv").unwrap(), None, &options).unwrap();
    conversion.run_into(Sink::memory().0).unwrap();
    let progress = options.open.control.progress();
    assert_eq!((progress.rows, progress.total_rows), (4000, Some(4000)));
    assert_eq!(progress.total_bytes, bytes);
    assert!(progress.bytes > 0);
}

#[test]
fn many_columns_cost_memory() {
    let registry = Registry::default();
    let names: Vec<String> = (0..20_000).map(|index| format!("c{index}")).collect();
    let csv = names.join(",") + "\n" + &vec!["1"; names.len()].join(",") + "\n";
    let pairs: Vec<String> = names.iter().map(|name| format!("{name:?}:1")).collect();
    for (format, text) in [("csv", csv), ("jsonl", format!("{{{}}}\n", pairs.join(",")))] {
        let mut options = OpenOptions::default();
        options.from = Some(format.to_owned());
        options.budget = crate::Limits { max_alloc: 4 << 20, ..crate::Limits::default() }.budget();
        let source = || Source::from_bytes("data", text.clone().into_bytes());
        let error = open_source(&registry, source(), None, &options).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
        assert_eq!(options.budget.used(), 0);
        options.budget = crate::Limits { max_alloc: 64 << 20, ..crate::Limits::default() }.budget();
        let opened = open_source(&registry, source(), None, &options).unwrap();
        assert_eq!(collect(opened.rows(&View::default()).unwrap()).unwrap().num_columns(), names.len());
    }
}
