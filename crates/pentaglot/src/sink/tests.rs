//! Which files exist after each way in which a write can end.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::file::{FileOutput, fault};
use super::*;
use crate::error::{ErrorKind, Hint};

fn names(folder: &Path) -> Vec<String> {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}

/// An output that fails at one call, counted over itself and its siblings.
struct Failing {
    inner: Box<dyn Output>,
    left: Arc<AtomicUsize>,
}

impl Failing {
    fn count(&self) -> io::Result<()> {
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            0 => Err(io::Error::from_raw_os_error(28)),
            _ => Ok(()),
        }
    }
}

impl Output for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.count()?;
        self.inner.write(bytes)
    }

    fn can_patch(&self) -> bool {
        self.inner.can_patch()
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.count()?;
        self.inner.patch(offset, bytes)
    }

    fn sibling(&mut self, suffix: &str) -> io::Result<Option<Box<dyn Output>>> {
        self.count()?;
        let inner = self.inner.sibling(suffix)?.unwrap();
        Ok(Some(Box::new(Failing { inner, left: Arc::clone(&self.left) })))
    }

    fn remove_sibling(&mut self, suffix: &str) -> io::Result<()> {
        self.count()?;
        self.inner.remove_sibling(suffix)
    }

    fn commit(self: Box<Self>) -> io::Result<()> {
        self.count()?;
        self.inner.commit()
    }
}

fn write_all_kinds(mut sink: Sink) -> Result<u64> {
    for _ in 0..40 {
        sink.write_all(&[7; 10_000])?;
    }
    sink.write_all(&[8; 200_000])?;
    sink.patch(3, b"patched")?;
    sink.put_sibling(".meta", b"new side")?;
    sink.remove_sibling(".idx")?;
    sink.finish()
}

#[test]
fn a_fault_at_any_call_leaves_the_old_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let old = || {
        fs::write(&path, "old").unwrap();
        fs::write(folder.path().join("x.meta"), "old side").unwrap();
        fs::write(folder.path().join("x.idx"), "old index").unwrap();
    };
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    for gzip in [false, true] {
        old();
        let mut calls = 0;
        loop {
            let inner = Box::new(FileOutput::create(&path, true).unwrap());
            let output = Failing { inner, left: Arc::new(AtomicUsize::new(calls)) };
            let sink = Sink::from_output(Box::new(output)).named("x");
            let mut sink = if gzip { sink.packed(crate::source::Packing::Gzip) } else { sink };
            sink.enable_patching().unwrap();
            let Err(error) = write_all_kinds(sink) else { break };
            assert_eq!(error.to_string(), "cannot write: No space left on device (os error 28)", "{calls}");
            assert_eq!(error.output(), Some("x"));
            assert_eq!(names(folder.path()), ["x", "x.idx", "x.meta"], "{calls}");
            assert_eq!((read("x"), read("x.meta")), (b"old".to_vec(), b"old side".to_vec()), "{calls}");
            calls += 1;
        }
        assert!(calls > 5, "{calls}");
        assert_eq!(names(folder.path()), ["x", "x.meta"]);
        assert_eq!(read("x.meta"), b"new side");
        assert_ne!(read("x"), b"old");
    }
}

#[test]
fn an_unfinished_file_has_no_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = Sink::create(folder.path().join("x"), false).unwrap();
    sink.write_all(&[1; 100_000]).unwrap();
    sink.put_sibling(".meta", b"side").unwrap();
    #[cfg(target_os = "linux")]
    assert!(names(folder.path()).is_empty());
    drop(sink);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_file_that_comes_into_being_meanwhile_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let mut sink = Sink::create(&path, false).unwrap();
    sink.put_sibling(".meta", b"side").unwrap();
    fs::write(&path, "another").unwrap();
    let error = sink.finish().unwrap_err();
    assert_eq!((error.kind(), error.advice()), (ErrorKind::Usage, Some(&Hint::Force)));
    assert_eq!(names(folder.path()), ["x"]);
    assert_eq!(fs::read(&path).unwrap(), b"another");
}

#[test]
fn an_existing_file_or_side_file_is_refused_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    fs::write(folder.path().join("x.meta"), "orphan").unwrap();
    let mut sink = Sink::create(&path, false).unwrap();
    for error in [sink.check_sibling(".meta").unwrap_err(), sink.put_sibling(".meta", b"").unwrap_err()] {
        assert_eq!((error.kind(), error.advice()), (ErrorKind::Usage, Some(&Hint::Force)));
        assert!(error.to_string().ends_with("x.meta exists already"), "{error}");
        assert_eq!(error.output(), path.to_str());
    }
    fs::write(&path, "old").unwrap();
    let error = Sink::create(&path, false).unwrap_err();
    assert_eq!((error.kind(), error.advice()), (ErrorKind::Usage, Some(&Hint::Force)));
}

#[cfg(unix)]
#[test]
fn links_stay_and_the_mask_decides_the_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "old").unwrap();
    symlink(&file, &link).unwrap();
    let mut sink = Sink::create(&link, true).unwrap();
    sink.write_all(b"new").unwrap();
    sink.finish().unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"new");
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&file), mode(&plain));
}

#[test]
fn a_fault_names_the_folder() {
    let path = Path::new("no/such/folder/x.npy");
    let error = Sink::create(path, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.to_string(), "there is no folder no/such/folder");
    assert_eq!(error.advice(), Some(&Hint::MakeFolder("no/such/folder".to_owned())));
    assert_eq!(error.output(), path.to_str());
    let error = Error::from(fault(Path::new("x.npy"), io::Error::from_raw_os_error(24)));
    assert!(error.to_string().starts_with("cannot write in .: Too many open files"), "{error}");
}

#[test]
fn a_broken_pipe_is_one_of_a_pipe_only() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sink = Sink::pipe(Gone);
    sink.write_all(b"bytes").unwrap();
    assert!(sink.finish().unwrap_err().is_broken_pipe());
    let error = Error::from(fault(Path::new("x"), io::ErrorKind::BrokenPipe.into()));
    assert!(!error.is_broken_pipe());
}

#[test]
fn the_ends_are_those_of_what_was_written() {
    let end = END_BYTES;
    for sizes in
        [vec![], vec![1], vec![end], vec![end - 1, 2], vec![1; 300], vec![3 * end, 5], vec![end / 3; 20]]
    {
        let memory = Memory::default();
        let mut sink = Sink::from_output(Box::new(memory.clone()));
        sink.keep_ends();
        let mut next = 0u8;
        for size in &sizes {
            let piece: Vec<u8> = (0..*size)
                .map(|_| {
                    next = next.wrapping_mul(5).wrapping_add(1);
                    next
                })
                .collect();
            sink.write_all(&piece).unwrap();
        }
        let len = sink.position();
        for offset in [0, len / 2, len.saturating_sub(2), len.saturating_sub(end as u64 + 1)] {
            let patch = [9; 2];
            sink.patch(offset, &patch[..2.min((len - offset) as usize)]).unwrap();
        }
        let (found, first, last) = sink.ends().unwrap().parts();
        let (first, last) = (first.to_vec(), last.to_vec());
        assert_eq!(found, len);
        sink.finish().unwrap();
        let all = memory.take();
        assert_eq!(first, all[..all.len().min(end)], "{sizes:?}");
        assert_eq!(last, all[all.len().saturating_sub(end)..], "{sizes:?}");
    }
}

/// More than the thread of `Behind` is started for.
const LARGE: usize = 9 << 20;

/// Bytes in pieces of odd sizes, which differ everywhere.
fn large_pieces() -> Vec<Vec<u8>> {
    let bytes: Vec<u8> =
        (0..LARGE as u32).map(|place| (place.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    bytes.chunks(77_777).map(<[u8]>::to_vec).collect()
}

#[test]
fn a_file_that_is_written_behind_has_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bin");
    let mut sink = Sink::create(&path, false).unwrap().overlapped(&Control::new(2), &Budget::default());
    let pieces = large_pieces();
    for piece in &pieces {
        sink.write_all(piece).unwrap();
    }
    sink.patch(5 << 20, b"patched").unwrap();
    sink.write_all(b"the end").unwrap();
    assert!(sink.put_sibling(".side", b"side").unwrap());
    sink.finish().unwrap();
    let mut expected = pieces.concat();
    expected[5 << 20..][..7].copy_from_slice(b"patched");
    expected.extend_from_slice(b"the end");
    assert!(fs::read(&path).unwrap() == expected);
    assert_eq!(names(folder.path()), ["x.bin", "x.bin.side"]);
}

#[test]
fn a_fault_of_a_write_behind_is_reported_and_leaves_nothing() {
    // Every call may fail: before the thread starts, on it, at the patch, at the commit.
    let mut failed = 0;
    for call in 0..30 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.bin");
        let inner = Box::new(FileOutput::create(&path, false).unwrap());
        let failing = Failing { inner, left: Arc::new(AtomicUsize::new(call)) };
        let sink = Sink::in_place_of(path.clone(), Box::new(failing));
        let mut sink = sink.overlapped(&Control::new(2), &Budget::default());
        let run = |sink: &mut Sink| {
            large_pieces().iter().try_for_each(|piece| sink.write_all(piece))?;
            sink.patch(1, b"!").map_err(io::Error::from)
        };
        let done = run(&mut sink).and_then(|()| sink.finish().map_err(io::Error::from));
        match done {
            Ok(_) => assert_eq!(fs::metadata(&path).unwrap().len(), LARGE as u64),
            Err(error) => {
                failed += 1;
                assert!(error.to_string().contains("No space left"), "{error}");
                assert_eq!(names(folder.path()), Vec::<String>::new());
            }
        }
    }
    assert!((5..30).contains(&failed), "{failed}");
}

#[test]
fn what_failed_behind_is_not_committed_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.bin");
    let inner = Box::new(FileOutput::create(&path, false).unwrap());
    let failing = Failing { inner, left: Arc::new(AtomicUsize::new(1)) };
    let mut output = Box::new(Behind::new(Box::new(failing), &Control::new(2)));
    let piece = vec![1; 1 << 20];
    output.write(&piece).unwrap();
    assert!(output.write(&piece).unwrap_err().to_string().contains("No space left"));
    assert!(output.write(&piece).is_err(), "the output would succeed now, but bytes are missing");
    assert!(output.commit().is_err());
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

/// Data that cannot appear leaves the old side files.
#[test]
fn side_files_are_restored_if_the_data_cannot_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    for suffix in [".meta", ".idx"] {
        std::fs::write(folder.path().join(format!("data{suffix}")), "old").unwrap();
    }
    let mut output = Box::new(FileOutput::create(&path, true).unwrap());
    output.write(b"new").unwrap();
    let mut side = output.sibling(".meta").unwrap().unwrap();
    side.write(b"new").unwrap();
    side.commit().unwrap();
    output.remove_sibling(".idx").unwrap();
    // No file can replace a folder.
    std::fs::create_dir_all(path.join("inside")).unwrap();
    (output as Box<dyn Output>).commit().unwrap_err();
    for suffix in [".meta", ".idx"] {
        assert_eq!(std::fs::read(folder.path().join(format!("data{suffix}"))).unwrap(), b"old", "{suffix}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}
