//! [`Sink`]: the output of a writer. A file that appears complete or not at all, memory, a pipe, or any other
//! [`Output`].
//!
//! A sink that is dropped unfinished leaves nothing behind. Side files ([`Sink::put_sibling`]) appear in the same step
//! as the data, just before it.

mod behind;
mod deflate;
mod ends;
mod file;
mod group;
mod kept;
mod memory;
mod output;
mod pack;
mod pending;
mod pipe;
mod reread;
#[cfg(test)]
mod tests;
mod write_back;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::ReadAt;
use crate::control::Control;
use crate::error::{Error, Hint, Result};
use crate::limits::{Budget, OVERLAP_BUDGET};
use crate::source::{Packing, Spool};

pub(crate) use deflate::Deflater;
pub(crate) use ends::{END_BYTES, Ends};
pub(crate) use group::SinkGroup;
pub(crate) use kept::Kept;
pub use memory::Memory;
pub use output::Output;

use behind::Behind;
use file::{FileOutput, exists, sibling_path};
use pack::Encoder;
use pipe::Pipe;

/// Small writes are buffered up to this size; larger ones are passed on directly.
const BUFFER_BYTES: usize = 64 << 10;

/// The output of a writer.
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
    /// The name of the output in errors.
    name: Option<String>,
    path: Option<PathBuf>,
    force: bool,
    packing: Option<Packing>,
    ends: Option<Box<Ends>>,
    /// A check of the complete bytes before the commit.
    check: Option<Check>,
    /// The buffer of [`Sink::append`] for a target that is not memory.
    piece: Vec<u8>,
    /// What waits until all files of a group have their names.
    later: Option<Later>,
    /// The threads that compress.
    control: Control,
}

/// Steps that follow once the last file of a group has its name.
pub(crate) type Later = Arc<Mutex<Vec<Box<dyn FnOnce() + Send>>>>;

enum Body {
    Plain(Target),
    Packed(Box<Encoder<Target>>),
    /// Bytes are spooled, because the target cannot be patched; `finish` copies them to it.
    Spool {
        spool: Box<Spool>,
        target: Target,
    },
}

/// Checks the complete bytes of an output before it is committed; an error prevents the commit.
pub type Check = Box<dyn FnOnce(Arc<dyn ReadAt>) -> Result<()> + Send>;

/// Memory is an output like the others, but [`Sink::append`] reaches its bytes.
enum Target {
    Memory(Memory),
    Output(BufWriter<Raw>),
}

/// Implements `Write` for an output.
struct Raw(Box<dyn Output>);

impl Sink {
    /// A file. With `force`, an existing one is replaced at the end; without it, an existing one is an error
    /// at once. A device or a named pipe is written directly.
    pub fn create(path: impl AsRef<Path>, force: bool) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        Sink::create_file(path, force).map(|sink| sink.named(&name)).map_err(|error| error.in_output(name))
    }

    fn create_file(path: &Path, force: bool) -> Result<Self> {
        let cannot = |error| Error::io("cannot write", error);
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return Err(Error::usage("expected a file to write, found a directory"));
            }
            Ok(meta) if !meta.is_file() => {
                let file = File::options().write(true).open(path).map_err(cannot)?;
                return Ok(Sink::pipe(file));
            }
            Ok(_) if !force => return Err(Error::usage("the file exists already").hint(Hint::Force)),
            _ => {}
        }
        // A link stays a link: the file that it names is replaced.
        let path =
            if path.is_symlink() { std::fs::canonicalize(path).map_err(cannot)? } else { path.to_path_buf() };
        let sink = Sink::from_output(Box::new(FileOutput::create(&path, force)?));
        Ok(Sink { path: Some(path), force, ..sink })
    }

    /// Memory; the bytes are complete after [`finish`](Self::finish).
    pub fn memory() -> (Self, Memory) {
        Sink::memory_in(Vec::new())
    }

    /// Memory that reuses the capacity of `room`; its content is dropped.
    pub fn memory_in(room: Vec<u8>) -> (Self, Memory) {
        let memory = Memory::with_room(room);
        (Sink::new(Target::Memory(memory.clone())), memory)
    }

    /// A pipe, or anything else that takes bytes in order.
    pub fn pipe(writer: impl Write + Send + 'static) -> Self {
        Sink::from_output(Box::new(Pipe(writer)))
    }

    /// Any output, such as an upload. It is committed by [`finish`](Self::finish).
    ///
    /// ```
    /// use std::io::Write;
    /// use pentaglot::Sink;
    /// let memory = pentaglot::sink::Memory::default();
    /// let mut sink = Sink::from_output(Box::new(memory.clone()));
    /// sink.write_all(b"bytes")?;
    /// sink.finish()?;
    /// assert_eq!(memory.take(), b"bytes");
    /// # Ok::<(), pentaglot::Error>(())
    /// ```
    pub fn from_output(output: Box<dyn Output>) -> Self {
        Sink::new(Target::Output(BufWriter::with_capacity(BUFFER_BYTES, Raw(output))))
    }

    fn new(target: Target) -> Self {
        Sink {
            body: Body::Plain(target),
            position: 0,
            name: None,
            path: None,
            force: false,
            packing: None,
            ends: None,
            check: None,
            piece: Vec::new(),
            later: None,
            control: Control::new(1),
        }
    }

    /// Any output, treated as a file that may replace an existing one.
    #[cfg(test)]
    pub(crate) fn in_place_of(path: PathBuf, output: Box<dyn Output>) -> Self {
        Sink { path: Some(path), force: true, ..Sink::from_output(output) }
    }

    /// Writes a file on a thread of its own, while the next bytes are encoded, and compresses on the threads of the job, if it has
    /// several threads and enough memory. Called before the first byte.
    #[must_use]
    pub(crate) fn overlapped(mut self, control: &Control, budget: &Budget) -> Self {
        debug_assert_eq!(self.position, 0);
        if control.threads() == 1 || budget.limits().max_alloc < OVERLAP_BUDGET {
            return self;
        }
        self.control = control.clone();
        if self.path.is_none() {
            return self;
        }
        if let Body::Plain(Target::Output(output)) = &mut self.body {
            let raw = output.get_mut();
            let inner = std::mem::replace(&mut raw.0, Box::new(Memory::default()));
            raw.0 = Box::new(Behind::new(inner, control));
        }
        self
    }

    /// Gives the output a name, which its errors carry (see [`Error::output`]). A file has its path.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Compresses the bytes written. Called before the first byte.
    #[must_use]
    pub fn packed(mut self, packing: Packing) -> Self {
        debug_assert_eq!(self.position, 0);
        self.packing = Some(packing);
        self
    }

    /// Compresses the bytes written if a name has the extension of a compression. Called before the first
    /// byte.
    #[must_use]
    pub fn packed_for(self, name: &str) -> Self {
        match Packing::of_name(name) {
            Some(packing) => self.packed(packing),
            None => self,
        }
    }

    /// Sets a check of the complete bytes before the commit. An output that cannot be read back is then an error.
    #[must_use]
    pub fn before_commit(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// The file's path, if this is a file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Where steps go that follow the naming of the file, if that happens after [`finish`](Self::finish).
    pub(crate) fn later(&self) -> Option<Later> {
        self.later.clone()
    }

    /// Whether an existing file is replaced.
    pub(crate) fn is_forced(&self) -> bool {
        self.force
    }

    /// Whether the output is compressed.
    pub(crate) fn is_packed(&self) -> bool {
        self.packing.is_some()
    }

    /// How many bytes have been written so far, before compression.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Makes sure that earlier bytes can be patched: pipes and compressed outputs are spooled from here on. Called
    /// before the first byte.
    pub fn enable_patching(&mut self) -> Result<()> {
        match &self.body {
            Body::Plain(target) if self.packing.is_none() && target.can_patch() => return Ok(()),
            Body::Spool { .. } => return Ok(()),
            _ if self.position > 0 => {
                return Err(Error::usage("patching must be enabled before the first byte"));
            }
            _ => {}
        }
        let spool = Box::new(Spool::on_disk());
        self.body = match std::mem::replace(&mut self.body, Body::Plain(Target::Memory(Memory::default()))) {
            Body::Plain(target) => Body::Spool { spool, target },
            other => other,
        };
        Ok(())
    }

    /// Inserts the encoder before the target, at the first byte or at the end.
    fn start_packing(&mut self) -> io::Result<()> {
        if let (Some(packing), Body::Plain(_)) = (self.packing, &self.body) {
            self.body =
                match std::mem::replace(&mut self.body, Body::Plain(Target::Memory(Memory::default()))) {
                    Body::Plain(target) => {
                        Body::Packed(Box::new(Encoder::new(packing, target, &self.control)?))
                    }
                    other => other,
                };
        }
        Ok(())
    }

    /// Keeps the first and the last [`END_BYTES`] bytes (before compression), for [`ends`](Self::ends). A sink in
    /// memory keeps none. Called before the first byte.
    pub(crate) fn keep_ends(&mut self) {
        debug_assert_eq!(self.position, 0);
        self.ends = self.output().is_some().then(Box::default);
    }

    /// The bytes that [`keep_ends`](Self::keep_ends) keeps.
    pub(crate) fn ends(&self) -> Option<&Ends> {
        self.ends.as_deref()
    }

    /// Memory that bytes can be appended to in place.
    fn open_memory(&self) -> Option<&Memory> {
        match &self.body {
            Body::Plain(Target::Memory(memory)) if self.packing.is_none() => Some(memory),
            _ => None,
        }
    }

    /// Announces how many bytes come next, so that memory grows only once.
    #[expect(clippy::disallowed_methods, reason = "sized by bytes that are there already")]
    pub(crate) fn expect(&mut self, bytes: usize) {
        if let Some(memory) = self.open_memory() {
            memory.lock().reserve(bytes);
        }
    }

    /// Writes what `fill` appends. If the target is memory, bytes are appended in place; otherwise they are
    /// collected in a buffer first, so they should fit in a cache.
    pub(crate) fn append(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        if let Some(memory) = self.open_memory() {
            let mut bytes = memory.lock();
            let before = bytes.len();
            fill(&mut bytes);
            let count = bytes.len() - before;
            drop(bytes);
            self.position += count as u64;
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
        let patched = match &mut self.body {
            Body::Plain(target) if target.can_patch() => target.patch(offset, bytes),
            Body::Spool { spool, .. } => spool.patch(offset, bytes),
            Body::Plain(_) | Body::Packed(_) => {
                return Err(Error::usage("patching must be enabled before the first byte"));
            }
        };
        if let Some(ends) = &mut self.ends {
            ends.patch(offset, bytes);
        }
        patched.map_err(|error| self.fault(error))
    }

    /// The path of a side file, if this is a file.
    pub(crate) fn sibling_path(&self, suffix: &str) -> Option<PathBuf> {
        Some(sibling_path(self.path.as_deref()?, suffix))
    }

    /// Returns an error if there is a side file that may not be replaced. Without its data it would be taken for
    /// one of the new file.
    pub(crate) fn check_sibling(&self, suffix: &str) -> Result<()> {
        match self.sibling_path(suffix) {
            Some(path) if !self.force && path.symlink_metadata().is_ok() => {
                Err(self.fault(exists(&path).into()))
            }
            _ => Ok(()),
        }
    }

    /// Writes a side file, named like this file with `suffix` appended; it appears together with the data.
    /// Returns `false`, and writes nothing, if this output has no side files.
    pub fn put_sibling(&mut self, suffix: &str, bytes: &[u8]) -> Result<bool> {
        let put = |output: &mut dyn Output| match output.sibling(suffix)? {
            Some(mut sibling) => {
                sibling.write(bytes)?;
                sibling.commit().map(|()| true)
            }
            None => Ok(false),
        };
        self.output().map_or(Ok(false), put).map_err(|error| self.fault(error))
    }

    /// Removes a side file of the data that is replaced, just before the new data appears.
    pub(crate) fn remove_sibling(&mut self, suffix: &str) -> Result<()> {
        let removed = self.output().map_or(Ok(()), |output| output.remove_sibling(suffix));
        removed.map_err(|error| self.fault(error))
    }

    /// The underlying output, unless it is memory.
    fn output(&mut self) -> Option<&mut dyn Output> {
        let target = match &mut self.body {
            Body::Plain(target) | Body::Spool { target, .. } => target,
            Body::Packed(encoder) => encoder.get_mut(),
        };
        match target {
            Target::Memory(_) => None,
            Target::Output(output) => Some(&mut *output.get_mut().0),
        }
    }

    /// Completes and commits the output. Returns the number of bytes written, before compression.
    pub fn finish(mut self) -> Result<u64> {
        if let Err(error) = self.start_packing() {
            return Err(self.fault(error));
        }
        let body = std::mem::replace(&mut self.body, Body::Plain(Target::Memory(Memory::default())));
        match finish(body, (self.packing, &self.control), self.check.take()) {
            Ok(()) => Ok(self.position),
            Err(error) => Err(self.fault(error)),
        }
    }

    /// An error of the output, with its name.
    fn fault(&self, error: io::Error) -> Error {
        let error = match error.get_ref() {
            Some(inner) if inner.is::<Error>() => Error::from(error),
            _ => Error::io("cannot write", error),
        };
        match &self.name {
            Some(name) => error.in_output(name.clone()),
            None => error,
        }
    }
}

/// Flushes the buffers and commits.
fn finish(
    body: Body,
    (packing, control): (Option<Packing>, &Control),
    check: Option<Check>,
) -> io::Result<()> {
    let target = match body {
        Body::Plain(target) => target,
        Body::Packed(encoder) => encoder.finish()?,
        Body::Spool { mut spool, mut target } => {
            if let Some(packing) = packing {
                let mut encoder = Encoder::new(packing, target, control)?;
                spool.copy_to(&mut encoder)?;
                encoder.finish()?
            } else {
                spool.copy_to(&mut target)?;
                target
            }
        }
    };
    let mut output: Box<dyn Output> = match target {
        Target::Memory(memory) => Box::new(memory),
        Target::Output(output) => output.into_inner().map_err(|error| error.into_error())?.0,
    };
    if let Some(check) = check {
        let cannot = || Error::usage("an output that cannot be read back cannot be verified");
        check(output.reread()?.ok_or_else(cannot)?)?;
    }
    output.commit()
}

impl Target {
    fn can_patch(&self) -> bool {
        match self {
            Target::Memory(memory) => memory.can_patch(),
            Target::Output(output) => output.get_ref().0.can_patch(),
        }
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            Target::Memory(memory) => memory.patch(offset, bytes),
            Target::Output(output) => {
                output.flush()?;
                output.get_mut().0.patch(offset, bytes)
            }
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.start_packing()?;
        let written = match &mut self.body {
            Body::Plain(target) => target.write(bytes),
            Body::Packed(encoder) => encoder.write(bytes),
            Body::Spool { spool, .. } => spool.write(bytes),
        };
        let count = written.map_err(|error| io::Error::from(self.fault(error)))?;
        self.position += count as u64;
        if let Some(ends) = &mut self.ends {
            ends.push(&bytes[..count]);
        }
        Ok(count)
    }

    /// Flushes a pipe. Does nothing for outputs that can be patched or are compressed: [`Sink::finish`] flushes
    /// them.
    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.body {
            Body::Plain(Target::Output(output)) if !output.get_ref().0.can_patch() => output.flush(),
            _ => Ok(()),
        };
        flushed.map_err(|error| self.fault(error).into())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Memory(memory) => memory.lock().write(bytes),
            Target::Output(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Memory(_) => Ok(()),
            Target::Output(output) => output.flush(),
        }
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sink").field("path", &self.path).field("position", &self.position).finish()
    }
}
