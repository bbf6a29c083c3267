//! [`Sink`]: where bytes go. A file that appears whole or not at all, memory, or a pipe.
//!
//! A file is written beside its name, synced and renamed by [`Sink::finish`]; a sink that is dropped unfinished leaves
//! nothing behind. Side files ([`Sink::put_sibling`]) are renamed in the same step, the data last.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Small writes are gathered up to this size; larger ones go through as they are.
const BUFFER_BYTES: usize = 64 << 10;

/// Temporary files of unfinished sinks, for [`remove_unfinished`].
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the temporary files of all unfinished sinks: for a signal handler that is about to end the process.
pub fn remove_unfinished() {
    for path in UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // The process ends next; a file that is gone already is as good as removed.
        let _ = std::fs::remove_file(path);
    }
}

/// Where bytes go.
///
/// ```
/// use std::io::Write;
/// let (mut sink, memory) = pentaglot::Sink::memory();
/// sink.write_all(b"????, world")?;
/// sink.patch(0, b"Hiya")?;
/// sink.finish()?;
/// assert_eq!(memory.take(), b"Hiya, world");
/// # Ok::<(), pentaglot::Error>(())
/// ```
pub struct Sink {
    body: Body,
    position: u64,
    path: Option<PathBuf>,
    force: bool,
    gzip: bool,
    siblings: Vec<(Pending, PathBuf)>,
    /// Where [`Sink::append`] puts bytes together for a target that is not memory.
    piece: Vec<u8>,
}

enum Body {
    Plain(Target),
    Gzip(Box<GzEncoder<Target>>),
    /// Bytes wait here, because the target cannot be patched; `finish` copies them on.
    Spool {
        spool: BufWriter<File>,
        target: Target,
    },
}

enum Target {
    File(BufWriter<Pending>),
    Memory(Memory),
    Pipe(Box<dyn Write + Send>),
}

/// What a [`Sink::memory`] wrote.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// Takes the bytes out.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A temporary file that is listed in [`UNFINISHED`] for as long as it exists under its temporary name.
#[derive(Debug)]
struct Pending(Option<NamedTempFile>);

impl Pending {
    fn beside(path: &Path) -> Result<Self> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".pentaglot-").suffix(".tmp");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(|error| {
            Error::io(format_args!("cannot write in {}", folder.display()), io::Error::from(error.kind()))
        })?;
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).push(file.path().to_path_buf());
        Ok(Pending(Some(file)))
    }

    fn file(&mut self) -> &mut File {
        self.0.as_mut().expect("a pending file is there until it is kept").as_file_mut()
    }

    fn keep(mut self, path: &Path, force: bool) -> Result<()> {
        let file = self.0.take().expect("a pending file is kept once");
        let temporary = file.path().to_path_buf();
        let kept = if force { file.persist(path) } else { file.persist_noclobber(path) };
        forget(&temporary);
        kept.map(drop).map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(path),
            _ => Error::io(format_args!("cannot rename to {}", path.display()), error.error),
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            forget(file.path());
        }
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

fn forget(temporary: &Path) {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| path != temporary);
}

fn exists(path: &Path) -> Error {
    Error::usage(format!("{} exists; --force overwrites it", path.display()))
}

impl Sink {
    /// A file. An existing one is replaced with `force`, at the end, and refused without it, at once.
    /// A device or a named pipe is written directly.
    pub fn create(path: impl AsRef<Path>, force: bool) -> Result<Self> {
        let path = path.as_ref();
        let cannot = |error| Error::io("cannot write", error);
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return Err(Error::usage("expected a file to write, found a directory"));
            }
            Ok(meta) if !meta.is_file() => {
                let file = File::options().write(true).open(path).map_err(cannot)?;
                return Ok(Sink::pipe(file));
            }
            Ok(_) if !force => return Err(exists(path)),
            _ => {}
        }
        // A link stays a link: the file that it names is replaced.
        let path =
            if path.is_symlink() { std::fs::canonicalize(path).map_err(cannot)? } else { path.to_path_buf() };
        let target = Target::File(BufWriter::with_capacity(BUFFER_BYTES, Pending::beside(&path)?));
        Ok(Sink { path: Some(path), force, ..Sink::new(target) })
    }

    /// Memory; the bytes are there after [`finish`](Self::finish).
    pub fn memory() -> (Self, Memory) {
        Sink::memory_in(Vec::new())
    }

    /// Memory that is there already: what `room` holds is dropped, its capacity is used again.
    pub fn memory_in(mut room: Vec<u8>) -> (Self, Memory) {
        room.clear();
        let memory = Memory(Arc::new(Mutex::new(room)));
        (Sink::new(Target::Memory(memory.clone())), memory)
    }

    /// A pipe, or anything else that takes bytes in order.
    pub fn pipe(writer: impl Write + Send + 'static) -> Self {
        Sink::new(Target::Pipe(Box::new(BufWriter::with_capacity(BUFFER_BYTES, writer))))
    }

    fn new(target: Target) -> Self {
        Sink {
            body: Body::Plain(target),
            position: 0,
            path: None,
            force: false,
            gzip: false,
            siblings: Vec::new(),
            piece: Vec::new(),
        }
    }

    /// Packs what is written with gzip. Called before the first byte.
    #[must_use]
    pub fn gzip(mut self) -> Self {
        debug_assert_eq!(self.position, 0);
        self.gzip = true;
        self
    }

    /// The file's path, if this is a file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// How many bytes have been written so far (before gzip).
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Makes sure that earlier bytes can be patched: pipes and gzip spool from here on. Called before the first byte.
    pub fn enable_patching(&mut self) -> Result<()> {
        match self.body {
            Body::Plain(Target::File(_) | Target::Memory(_)) if !self.gzip => return Ok(()),
            Body::Spool { .. } => return Ok(()),
            _ if self.position > 0 => {
                return Err(Error::usage("patching must be enabled before the first byte"));
            }
            _ => {}
        }
        let spool =
            tempfile::tempfile().map_err(|error| Error::io("cannot spool to a temporary file", error))?;
        let spool = BufWriter::with_capacity(BUFFER_BYTES, spool);
        self.body = match std::mem::replace(&mut self.body, Body::Plain(Target::Memory(Memory::default()))) {
            Body::Plain(target) => Body::Spool { spool, target },
            other => other,
        };
        Ok(())
    }

    /// Puts the gzip encoder in front of the target, when the first byte comes or at the end.
    fn start_gzip(&mut self) {
        if self.gzip && matches!(self.body, Body::Plain(_)) {
            self.body =
                match std::mem::replace(&mut self.body, Body::Plain(Target::Memory(Memory::default()))) {
                    Body::Plain(target) => {
                        Body::Gzip(Box::new(GzEncoder::new(target, Compression::default())))
                    }
                    other => other,
                };
        }
    }

    /// Says how many bytes come next, so that memory grows once.
    #[expect(clippy::disallowed_methods, reason = "sized by bytes that are there already")]
    pub(crate) fn expect(&mut self, bytes: usize) {
        if let (Body::Plain(Target::Memory(memory)), false) = (&self.body, self.gzip) {
            memory.lock().reserve(bytes);
        }
    }

    /// Writes what `fill` appends. It is appended in place where the target is memory; elsewhere it is put together
    /// first, so it should be of a size that a cache holds.
    pub(crate) fn append(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if let (Body::Plain(Target::Memory(memory)), false) = (&self.body, self.gzip) {
            let mut bytes = memory.lock();
            let before = bytes.len();
            fill(&mut bytes);
            self.position += (bytes.len() - before) as u64;
            return Ok(());
        }
        let mut piece = std::mem::take(&mut self.piece);
        piece.clear();
        fill(&mut piece);
        let written = self.write_all(&piece);
        self.piece = piece;
        written
    }

    /// Overwrites bytes that were written before.
    pub fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.position) {
            return Err(Error::usage("only bytes that were written can be patched"));
        }
        fn patch_file(file: &mut File, offset: u64, bytes: &[u8]) -> io::Result<()> {
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(bytes)?;
            file.seek(SeekFrom::End(0)).map(drop)
        }
        match &mut self.body {
            Body::Plain(Target::File(file)) => {
                file.flush()?;
                patch_file(file.get_mut().file(), offset, bytes)?;
            }
            Body::Plain(Target::Memory(memory)) => {
                memory.lock()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            }
            Body::Spool { spool, .. } => {
                spool.flush()?;
                patch_file(spool.get_mut(), offset, bytes)?;
            }
            Body::Plain(Target::Pipe(_)) | Body::Gzip(_) => {
                return Err(Error::usage("patching must be enabled before the first byte"));
            }
        }
        Ok(())
    }

    /// Writes a side file whose name is this file's and `suffix`; it appears together with the data.
    /// Gives `false`, and writes nothing, if this is no file.
    pub fn put_sibling(&mut self, suffix: &str, bytes: &[u8]) -> Result<bool> {
        let Some(path) = &self.path else { return Ok(false) };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        let path = path.with_file_name(name);
        if path.exists() && !self.force {
            return Err(exists(&path));
        }
        let mut pending = Pending::beside(&path)?;
        pending.write_all(bytes).map_err(|error| Error::io("cannot write", error))?;
        self.siblings.push((pending, path));
        Ok(true)
    }

    /// Ends the writing: flushes, syncs and renames. Gives the bytes written (before gzip).
    pub fn finish(mut self) -> Result<u64> {
        self.start_gzip();
        let cannot = |error: io::Error| match Error::from(error) {
            ours if ours.kind() != crate::ErrorKind::Io || ours.is_broken_pipe() => ours,
            other => Error::new(crate::ErrorKind::Io, format!("cannot write: {other}")),
        };
        let target = match self.body {
            Body::Plain(target) => target,
            Body::Gzip(encoder) => encoder.finish().map_err(cannot)?,
            Body::Spool { spool, mut target } => {
                let mut spool = spool.into_inner().map_err(|error| cannot(error.into_error()))?;
                spool.seek(SeekFrom::Start(0)).map_err(cannot)?;
                if self.gzip {
                    let mut encoder = GzEncoder::new(target, Compression::default());
                    io::copy(&mut spool, &mut encoder).map_err(cannot)?;
                    encoder.finish().map_err(cannot)?
                } else {
                    io::copy(&mut spool, &mut target).map_err(cannot)?;
                    target
                }
            }
        };
        match target {
            Target::Memory(_) => {}
            Target::Pipe(mut pipe) => pipe.flush().map_err(cannot)?,
            Target::File(file) => {
                let mut pending = file.into_inner().map_err(|error| cannot(error.into_error()))?;
                pending.file().sync_all().map_err(cannot)?;
                for (sibling, _) in &self.siblings {
                    let file = sibling.0.as_ref().expect("a sibling is pending until it is kept");
                    file.as_file().sync_all().map_err(cannot)?;
                }
                for (sibling, path) in self.siblings {
                    sibling.keep(&path, self.force)?;
                }
                pending.keep(&self.path.expect("a file has a path"), self.force)?;
            }
        }
        Ok(self.position)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.start_gzip();
        let count = match &mut self.body {
            Body::Plain(target) => target.write(bytes),
            Body::Gzip(encoder) => encoder.write(bytes),
            Body::Spool { spool, .. } => spool.write(bytes),
        }?;
        self.position += count as u64;
        Ok(count)
    }

    /// Does nothing for a file, which is flushed by [`Sink::finish`]; passes on to a pipe.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.body {
            Body::Plain(Target::Pipe(pipe)) => pipe.flush(),
            _ => Ok(()),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::File(file) => file.write(bytes),
            Target::Memory(memory) => memory.lock().write(bytes),
            Target::Pipe(pipe) => pipe.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::File(file) => file.flush(),
            Target::Memory(_) => Ok(()),
            Target::Pipe(pipe) => pipe.flush(),
        }
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("path", &self.path).field("position", &self.position).finish()
    }
}
