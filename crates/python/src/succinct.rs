//! Succinct structures: built, opened, saved, and asked many questions at a time without the interpreter's lock.

use std::io;

use numpy::PyArray1;
use pentaglot::formats::sds::{Mapped, Object, SdsKind};
use pentaglot::map::InPlace;
use pentaglot::{Budget, Context, Error, ErrorKind, Sink};
use pentaglot_succinct as structures;
use pentaglot_succinct::{BitQueries, ByteSink, SharedWords, Structure, Supports, WordCursor, WordSink};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::answers::{Answers, Numbers, Questions, all, build, many, many_pairs, many_values, slice};
use crate::error::{About, Outcome};
use crate::input::Input;
use crate::output::Output;
use crate::watch::{Pulse, apart};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BitVector>()?;
    module.add_class::<SparseVector>()?;
    module.add_class::<RunLengthVector>()?;
    module.add_class::<IntVector>()?;
    module.add_class::<WaveletMatrix>()?;
    module.add_class::<RunLengthWaveletMatrix>()?;
    module.add_function(wrap_pyfunction!(succinct_open, module)?)
}

/// An error of the structures as one of the library.
fn failed(error: structures::Error) -> Error {
    match error {
        structures::Error::Limit { .. } => Error::new(ErrorKind::Limit, error.to_string()),
        other => Error::usage(other.to_string()),
    }
}

/// A structure that was built, as one over elements that are shared: the same type as one that was opened.
fn shared<A: Structure<Vec<u64>>, B: Structure<SharedWords>>(built: &A) -> Result<B, Error> {
    let mut cursor = WordCursor::new(SharedWords::new(built.to_words(Supports::AsIs)));
    B::from_words(&mut cursor).map_err(failed)
}

fn save(
    py: Python<'_>,
    structure: &(impl Structure<SharedWords> + Sync),
    output: &Bound<'_, PyAny>,
    supports: &str,
    force: bool,
) -> Outcome<()> {
    let supports = match supports {
        "as_is" => Supports::AsIs,
        "full" => Supports::Full,
        "lean" => Supports::Lean,
        other => {
            let message = format!("expected supports \"full\", \"lean\" or \"as_is\", found {other:?}");
            return Err(Error::usage(message).into());
        }
    };
    let output = Output::new(output)?;
    py.detach(|| {
        let mut sink = Watched { sink: ByteSink(output.create(force)?), pulse: Pulse::new() };
        structure.write_words(supports, &mut sink).map_err(Error::from)?;
        sink.sink.0.finish()?;
        Ok(())
    })
}

/// A sink that looks at signals between writes.
struct Watched {
    sink: ByteSink<Sink>,
    pulse: Pulse,
}

impl WordSink for Watched {
    fn put(&mut self, words: &[u64]) -> io::Result<()> {
        for part in words.chunks(1 << 16) {
            self.sink.put(part)?;
            self.pulse.look()?;
        }
        Ok(())
    }
}

macro_rules! bit_class {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "pentaglot._native")]
        pub(crate) struct $name(structures::$name<SharedWords>);
    };
}

bit_class! {
    /// Bits, all of them stored.
    BitVector
}
bit_class! {
    /// Few set bits, or a sorted multiset of numbers, in Elias-Fano code.
    SparseVector
}
bit_class! {
    /// Runs of set bits.
    RunLengthVector
}

macro_rules! bit_methods {
    ($name:ident, |$positions:ident, $universe:ident, $py:ident| $build:expr $(, $extra:item)*) => {
        #[pymethods]
        impl $name {
            /// From sorted positions of set bits and the number of bits.
            #[new]
            fn new($py: Python<'_>, $positions: Questions<'_>, $universe: u64) -> Outcome<Self> {
                let built = build($py, &$positions, $universe, move |$positions| {
                    shared(&$build.map_err(failed)?)
                });
                Ok($name(built?))
            }

            fn __len__(&self) -> PyResult<usize> {
                usize::try_from(self.0.len()).map_err(|_| PyOverflowError::new_err("too many bits for len()"))
            }

            /// The number of bits.
            #[getter]
            fn universe(&self) -> u64 {
                self.0.len()
            }

            /// The number of set bits.
            #[getter]
            fn ones(&self) -> u64 {
                self.0.count_ones()
            }

            fn get<'py>(&self, py: Python<'py>, indexes: Questions<'py>) -> Outcome<Answers<'py>> {
                many(py, slice(&indexes)?, None, |q, a| self.0.get_many(q, a), |bit| bit.map(u64::from))
            }

            fn rank<'py>(&self, py: Python<'py>, indexes: Questions<'py>) -> Outcome<Answers<'py>> {
                many(py, slice(&indexes)?, 0, |q, a| self.0.rank_many(q, a), Some)
            }

            fn rank0<'py>(&self, py: Python<'py>, indexes: Questions<'py>) -> Outcome<Answers<'py>> {
                many(py, slice(&indexes)?, None, |q, a| self.0.rank0_many(q, a), |found| found)
            }

            fn select<'py>(&self, py: Python<'py>, ranks: Questions<'py>) -> Outcome<Answers<'py>> {
                many(py, slice(&ranks)?, None, |q, a| self.0.select_many(q, a), |found| found)
            }

            fn select0<'py>(&self, py: Python<'py>, ranks: Questions<'py>) -> Outcome<Answers<'py>> {
                many(py, slice(&ranks)?, None, |q, a| self.0.select0_many(q, a), |found| found)
            }

            fn predecessor<'py>(&self, py: Python<'py>, indexes: Questions<'py>) -> Outcome<Answers<'py>> {
                many(py, slice(&indexes)?, None, |q, a| self.0.predecessor_many(q, a), |found| found)
            }

            fn successor<'py>(&self, py: Python<'py>, indexes: Questions<'py>) -> Outcome<Answers<'py>> {
                many(py, slice(&indexes)?, None, |q, a| self.0.successor_many(q, a), |found| found)
            }

            fn save(
                &self,
                py: Python<'_>,
                output: &Bound<'_, PyAny>,
                supports: &str,
                force: bool,
            ) -> Outcome<()> {
                save(py, &self.0, output, supports, force)
            }
            $($extra)*
        }
    };
}

bit_methods!(BitVector, |positions, universe, py| structures::BitVector::from_positions(
    universe,
    positions.iter().copied()
));
bit_methods!(SparseVector, |positions, universe, py| structures::SparseVector::from_sorted_with(
    universe,
    positions.iter().copied(),
    structures::SparseOptions::default().multiset(positions.windows(2).any(|pair| pair[0] == pair[1])),
));
bit_methods!(RunLengthVector, |positions, universe, py| structures::RunLengthVector::from_sorted(
    universe,
    positions.iter().copied()
));

/// Integers of the same number of bits.
#[pyclass(frozen, module = "pentaglot._native")]
pub(crate) struct IntVector(structures::IntVector<SharedWords>);

#[pymethods]
impl IntVector {
    /// From values: as wide as the largest if no width is given.
    #[new]
    fn new(py: Python<'_>, values: Questions<'_>, width: Option<u32>) -> Outcome<Self> {
        let built = build(py, &values, 0, move |values| {
            let built = match width {
                Some(width) if (1..64).contains(&width) && values.iter().any(|value| value >> width > 0) => {
                    return Err(Error::usage(format!("a value needs more than {width} bits")));
                }
                Some(width) => {
                    structures::IntVector::from_values(width, values.iter().copied()).map_err(failed)?
                }
                None => structures::IntVector::from_values_packed(values),
            };
            shared(&built)
        });
        Ok(IntVector(built?))
    }

    fn __len__(&self) -> PyResult<usize> {
        usize::try_from(self.0.len()).map_err(|_| PyOverflowError::new_err("too many values for len()"))
    }

    /// Bits of a value.
    #[getter]
    fn width(&self) -> u32 {
        self.0.width()
    }

    fn get<'py>(&self, py: Python<'py>, indexes: Questions<'py>) -> Outcome<Numbers<'py>> {
        many_values(py, slice(&indexes)?, |q, a| self.0.get_many(q, a))
    }

    fn values<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyArray1<u64>>> {
        all(py, self.0.iter())
    }

    fn save(&self, py: Python<'_>, output: &Bound<'_, PyAny>, supports: &str, force: bool) -> Outcome<()> {
        save(py, &self.0, output, supports, force)
    }
}

/// Questions on a value: an index and a value each.
fn pairs(indexes: &Questions<'_>, values: &Questions<'_>) -> Outcome<Vec<(u64, u64)>> {
    let (indexes, values) = (slice(indexes)?, slice(values)?);
    if indexes.len() != values.len() {
        let message =
            format!("expected {} values, one for each index, found {}", indexes.len(), values.len());
        return Err(Error::usage(message).into());
    }
    Ok(indexes.iter().copied().zip(values.iter().copied()).collect())
}

macro_rules! wavelet_class {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "pentaglot._native")]
        pub(crate) struct $name(structures::$name<SharedWords>);

        #[pymethods]
        impl $name {
            /// From values.
            #[new]
            fn new(py: Python<'_>, values: Questions<'_>) -> Outcome<Self> {
                let built = build(py, &values, 0, |values| {
                    shared(&structures::$name::from_values(values).map_err(failed)?)
                });
                Ok($name(built?))
            }

            fn __len__(&self) -> PyResult<usize> {
                usize::try_from(self.0.len())
                    .map_err(|_| PyOverflowError::new_err("too many values for len()"))
            }

            /// Bits of a value.
            #[getter]
            fn width(&self) -> u32 {
                self.0.width()
            }

            fn get<'py>(&self, py: Python<'py>, indexes: Questions<'py>) -> Outcome<Numbers<'py>> {
                many_values(py, slice(&indexes)?, |q, a| self.0.access_many(q, a))
            }

            /// How often the value at an index occurs before it, and the value.
            fn inverse_select<'py>(
                &self,
                py: Python<'py>,
                indexes: Questions<'py>,
            ) -> Outcome<(Answers<'py>, Numbers<'py>)> {
                many_pairs(py, slice(&indexes)?, |q, a| self.0.inverse_select_many(q, a))
            }

            fn rank<'py>(
                &self,
                py: Python<'py>,
                indexes: Questions<'py>,
                values: Questions<'py>,
            ) -> Outcome<Answers<'py>> {
                let pairs = pairs(&indexes, &values)?;
                many(py, &pairs, 0, |q, a| self.0.rank_many(q, a), Some)
            }

            fn select<'py>(
                &self,
                py: Python<'py>,
                ranks: Questions<'py>,
                values: Questions<'py>,
            ) -> Outcome<Answers<'py>> {
                let pairs = pairs(&ranks, &values)?;
                many(py, &pairs, None, |q, a| self.0.select_many(q, a), |found| found)
            }

            fn predecessor<'py>(
                &self,
                py: Python<'py>,
                indexes: Questions<'py>,
                values: Questions<'py>,
            ) -> Outcome<Answers<'py>> {
                let pairs = pairs(&indexes, &values)?;
                let number = |found: Option<(u64, u64)>| found.map(|(_, position)| position);
                many(py, &pairs, None, |q, a| self.0.predecessor_many(q, a), number)
            }

            fn successor<'py>(
                &self,
                py: Python<'py>,
                indexes: Questions<'py>,
                values: Questions<'py>,
            ) -> Outcome<Answers<'py>> {
                let pairs = pairs(&indexes, &values)?;
                let number = |found: Option<(u64, u64)>| found.map(|(_, position)| position);
                many(py, &pairs, None, |q, a| self.0.successor_many(q, a), number)
            }

            fn values<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyArray1<u64>>> {
                all(py, self.0.iter())
            }

            fn save(
                &self,
                py: Python<'_>,
                output: &Bound<'_, PyAny>,
                supports: &str,
                force: bool,
            ) -> Outcome<()> {
                save(py, &self.0, output, supports, force)
            }
        }
    };
}

wavelet_class! {
    /// A sequence of integers with rank and select for every value.
    WaveletMatrix
}
wavelet_class! {
    /// The same for sequences with long runs.
    RunLengthWaveletMatrix
}

/// Opens a file: in place if `mmap`, else in memory.
#[pyfunction]
#[pyo3(signature = (source, kind, mmap))]
fn succinct_open(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    kind: Option<&str>,
    mmap: bool,
) -> Outcome<Py<PyAny>> {
    let input = Input::new(source)?;
    let name = input.name();
    let kind = kind.map(SdsKind::parse).transpose()?;
    let object = apart(py, move || {
        let source = input.source()?.seekable()?;
        let in_place = mmap.then(permit);
        Ok(Mapped::open(&source, kind, in_place, &Budget::default()).in_format("sds")?.object)
    });
    Ok(match object.about(&name)? {
        Object::Bit(structure) => Py::new(py, BitVector(structure))?.into_any(),
        Object::Sparse(structure) => Py::new(py, SparseVector(structure))?.into_any(),
        Object::RunLength(structure) => Py::new(py, RunLengthVector(structure))?.into_any(),
        Object::Int(structure) => Py::new(py, IntVector(structure))?.into_any(),
        Object::Wavelet(structure) => Py::new(py, WaveletMatrix(structure))?.into_any(),
        Object::RunLengthWavelet(structure) => Py::new(py, RunLengthWaveletMatrix(structure))?.into_any(),
        other => {
            let message =
                format!("queries on sds:{} (bit, sparse, rl, int, wm, rlwm have them)", other.kind());
            return Err(Error::unsupported(message).in_format("sds")).about(&name);
        }
    })
}

/// The caller's permission, by `mmap=True`, to map a file.
#[expect(unsafe_code, reason = "Python has no unsafe: the argument is the permission")]
fn permit() -> InPlace {
    // SAFETY: `mmap=True` is documented as the caller's promise that no process changes the file while it is open.
    unsafe { InPlace::permit() }
}
