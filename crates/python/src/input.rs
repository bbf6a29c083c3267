//! Where bytes come from in Python: names, bytes, buffers, file objects.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_buffer::Buffer;
use pentaglot::formats::OptionMap;
use pentaglot::job::{self, OpenOptions, Opened};
use pentaglot::{Control, Error, Limits, ReadAt, Registry, Source, redacted};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple};

/// The formats, and the object stores that names such as `s3://bucket/key` lead to. Stores connect when a name asks for
/// it: a process that forks before has nothing to share.
pub(crate) fn registry() -> Registry {
    let registry = Registry::default();
    #[cfg(feature = "remote")]
    let registry = registry.with_remote(Arc::new(pentaglot_remote::Stores::from_env()));
    #[cfg(feature = "mongodb")]
    let registry = registry.with_remote(Arc::new(pentaglot_mongodb::Collections::from_env()));
    registry
}

/// What is opened: names (several are read as one), or bytes that have none.
pub(crate) enum Input {
    /// Names or patterns of files.
    Names(Vec<String>),
    /// Bytes and what messages call them.
    Bytes(Source),
}

impl Input {
    /// From a name, a path, a list of them, bytes, a buffer or a file object.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
            let names = object.try_iter()?.map(|name| path_text(&name?)).collect::<PyResult<_>>()?;
            return Ok(Input::Names(names));
        }
        if object.is_instance_of::<PyString>() || object.hasattr("__fspath__")? {
            return Ok(Input::Names(vec![path_text(object)?]));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Input::Bytes(Source::from_bytes("bytes", shared(bytes))));
        }
        if object.hasattr("read")? {
            return Ok(Input::Bytes(PyFile::source(object)?));
        }
        // Others may still write to a buffer, so its bytes are copied.
        let view = PyMemoryView::from(object).map_err(|_| {
            let found = object.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
            PyTypeError::new_err(format!("expected a path, bytes or a file object, found {found}"))
        })?;
        let bytes = view.call_method0("tobytes")?;
        Ok(Input::Bytes(Source::from_bytes("buffer", shared(bytes.cast::<PyBytes>()?))))
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Input::Names(names) => names.iter().map(|name| redacted(name)).collect::<Vec<_>>().join(", "),
            Input::Bytes(source) => source.name().to_owned(),
        }
    }

    /// Opens it.
    pub(crate) fn open(self, member: Option<&str>, options: &OpenOptions) -> Result<Opened, Error> {
        let registry = &registry();
        match (self, member) {
            (Input::Bytes(source), member) => job::open_source(registry, source, member, options),
            (Input::Names(names), None) => job::open_all(registry, &job::expand(registry, &names)?, options),
            (input, member) => job::open_source(registry, input.source()?, member, options),
        }
    }

    /// The bytes of one file.
    pub(crate) fn source(self) -> Result<Source, Error> {
        match self {
            Input::Bytes(source) => Ok(source),
            Input::Names(names) => match names.as_slice() {
                [name] => job::source(&registry(), name),
                _ => Err(Error::usage("expected one file, found several names")),
            },
        }
    }
}

/// The text of a path. `-` is a file of that name: standard input is `sys.stdin.buffer`.
pub(crate) fn path_text(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let os = object.py().import("os")?;
    let path = os.call_method1("fspath", (object,))?;
    // An object may give its path as bytes; bytes themselves are content.
    let is_encoded = path.is_instance_of::<PyBytes>() && !object.is_instance_of::<PyBytes>();
    let path = if is_encoded { os.call_method1("fsdecode", (path,))? } else { path };
    let text: String = path.extract()?;
    Ok(if text == "-" { "./-".to_owned() } else { text })
}

/// The bytes of an object that never changes them: shared, not copied.
fn shared(bytes: &Bound<'_, PyBytes>) -> Buffer {
    Buffer::from(bytes::Bytes::from_owner(PyBackedBytes::from(bytes.clone())))
}

/// How files are opened, from the arguments that all functions share.
pub(crate) fn open_options(settings: &Bound<'_, PyDict>) -> PyResult<OpenOptions> {
    let mut options = OpenOptions::default();
    options.spool = true;
    let mut limits = Limits::default();
    for (key, value) in settings {
        match key.extract::<String>()?.as_str() {
            "format" => options.from = value.extract()?,
            "type" => options.type_text = value.extract()?,
            "threads" => options.control = Control::new(value.extract()?),
            "options" => options.options = option_map(&value)?,
            "max_alloc" => limits.max_alloc = value.extract()?,
            "max_depth" => limits.max_depth = value.extract()?,
            "max_ratio" => limits.max_ratio = value.extract()?,
            "max_free_rows" => limits.max_free_rows = value.extract()?,
            "max_spool" => limits.max_spool = value.extract()?,
            other => return Err(PyTypeError::new_err(format!("unknown setting {other:?}"))),
        }
    }
    options.budget = limits.budget();
    Ok(options)
}

/// `{key: value}` with values as the command line writes them.
fn option_map(value: &Bound<'_, PyAny>) -> PyResult<OptionMap> {
    let mut map = OptionMap::default();
    if value.is_none() {
        return Ok(map);
    }
    for (key, value) in value.cast::<PyDict>()? {
        let text = match value.extract::<bool>() {
            Ok(flag) => flag.to_string(),
            Err(_) => value.str()?.to_string(),
        };
        map.set(key.extract::<String>()?, text);
    }
    Ok(map)
}

/// A file object of Python.
struct PyFile {
    object: Py<PyAny>,
    len: u64,
    /// Seeking and reading are two calls.
    turn: Mutex<()>,
}

impl PyFile {
    /// A source that is read at any offset if the object can seek, else once, from its present place.
    fn source(object: &Bound<'_, PyAny>) -> PyResult<Source> {
        let name = match object.getattr("name") {
            Ok(name) => name.extract::<String>().unwrap_or_else(|_| "file".to_owned()),
            Err(_) => "file".to_owned(),
        };
        let can_seek = match object.getattr("seekable") {
            Ok(method) => method.call0()?.is_truthy()?,
            Err(_) => object.hasattr("seek")? && object.hasattr("tell")?,
        };
        let (object, py) = (object.clone().unbind(), object.py());
        if !can_seek {
            return Ok(Source::from_reader(name, PyReader(object)));
        }
        let len = object.bind(py).call_method1("seek", (0, 2))?.extract::<Option<u64>>()?;
        let len = match len {
            Some(len) => len,
            None => object.call_method0(py, "tell")?.extract(py)?,
        };
        Ok(Source::from_read_at(name, Arc::new(PyFile { object, len, turn: Mutex::new(()) })))
    }
}

impl ReadAt for PyFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Python::attach(|py| {
            self.object.call_method1(py, "seek", (offset,))?;
            fill(self.object.bind(py), buffer)
        })
    }

    /// A call of Python costs more than a read of memory.
    fn is_costly(&self) -> bool {
        true
    }
}

struct PyReader(Py<PyAny>);

impl Read for PyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| read_some(self.0.bind(py), buffer))
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &Bound<'_, PyAny>, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match read_some(file, &mut buffer[count..])? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

fn read_some(file: &Bound<'_, PyAny>, buffer: &mut [u8]) -> io::Result<usize> {
    let bytes = file.call_method1("read", (buffer.len(),))?;
    let Ok(bytes) = bytes.cast::<PyBytes>() else {
        let wrong = PyTypeError::new_err("expected a file that is open in binary mode: read() gave no bytes");
        return Err(wrong.into());
    };
    let bytes = bytes.as_bytes();
    let count = bytes.len().min(buffer.len());
    buffer[..count].copy_from_slice(&bytes[..count]);
    Ok(count)
}
