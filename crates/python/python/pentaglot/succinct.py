"""Succinct structures: rank, select and the like on bits and integers that are open in place.

>>> from pentaglot import succinct
>>> bits = succinct.BitVector([1, 4, 5], universe=10)
>>> bits.rank(5), bits.select(2), bits.select(3)
(2, 5, None)
>>> bits.rank([0, 2, 10]).tolist()
[0, 1, 3]

A question may be one number, which has one answer (``None`` where there is none), or many, which have an array of
answers (-1 where there is none). Many questions are answered without the interpreter's lock.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, TypeVar, Union, overload

from pentaglot import _native

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

__all__ = [
    "BitVector",
    "IntVector",
    "RunLengthVector",
    "RunLengthWaveletMatrix",
    "SparseVector",
    "WaveletMatrix",
    "open",
]

Numbers = Union[Sequence[int], "NDArray[Any]"]
Native = TypeVar("Native", bound=Any)


def _questions(numbers: Any) -> NDArray[numpy.uint64]:
    """Numbers as an array of 64 bits, without a copy where they have them."""
    import numpy

    array = numpy.asarray(numbers)
    if array.size == 0:
        return numpy.zeros(0, dtype=numpy.uint64)
    if array.ndim != 1:
        raise ValueError(f"expected one dimension, found {array.ndim}")
    if array.dtype.kind in "fO" and all(isinstance(number, int) for number in numbers):
        # NumPy makes floats of numbers of which some are past 2**63 - 1.
        if not all(0 <= number < 2**64 for number in numbers):
            raise ValueError("expected numbers from 0 to 2**64 - 1")
        array = numpy.array(numbers, dtype=numpy.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"expected integers, found {array.dtype}")
    if array.dtype.kind == "i" and int(array.min()) < 0:
        raise ValueError(f"expected numbers of at least 0, found {int(array.min())}")
    array = numpy.ascontiguousarray(array)
    return array.view(numpy.uint64) if array.dtype == numpy.int64 else array.astype(numpy.uint64, copy=False)


def _is_one(number: Any) -> bool:
    """Whether a question is one number: also an array of NumPy without dimensions."""
    import numpy

    return isinstance(number, (int, numpy.integer)) or (isinstance(number, numpy.ndarray) and number.ndim == 0)


def _ask(method: Any, *numbers: Any) -> Any:
    """One answer to one question, an array of answers to many."""
    import numpy

    if all(map(_is_one, numbers)):
        answer = int(method(*(_questions([number]) for number in numbers))[0])
        return None if answer < 0 else answer
    length = max(len(number) for number in numbers if not _is_one(number))
    many = [numpy.repeat(_questions([number]), length) if _is_one(number) else number for number in numbers]
    return method(*map(_questions, many))


class _Structure(Generic[Native]):
    _native: Native

    @classmethod
    def _of(cls, native: Native) -> Any:
        structure = cls.__new__(cls)
        structure._native = native
        return structure

    def __len__(self) -> int:
        return len(self._native)

    def save(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        supports: str = "full",
        force: bool = False,
    ) -> None:
        """Writes the structure: with the supports that simple-sds writes (``full``), with none (``lean``), or with those
        that it was opened with (``as_is``)."""
        self._native.save(target, supports, force)


class _Bits(_Structure[Native]):
    @property
    def universe(self) -> int:
        """The number of bits."""
        return int(self._native.universe)

    @property
    def ones(self) -> int:
        """The number of set bits."""
        return int(self._native.ones)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.ones} of {self.universe} bits)"

    @overload
    def get(self, index: int) -> int | None: ...
    @overload
    def get(self, index: Numbers) -> NDArray[numpy.int64]: ...
    def get(self, index: Any) -> Any:
        """The bit at an index."""
        return _ask(self._native.get, index)

    @overload
    def rank(self, index: int) -> int: ...
    @overload
    def rank(self, index: Numbers) -> NDArray[numpy.int64]: ...
    def rank(self, index: Any) -> Any:
        """The number of set bits before an index."""
        return _ask(self._native.rank, index)

    @overload
    def rank0(self, index: int) -> int | None: ...
    @overload
    def rank0(self, index: Numbers) -> NDArray[numpy.int64]: ...
    def rank0(self, index: Any) -> Any:
        """The number of unset bits before an index."""
        return _ask(self._native.rank0, index)

    @overload
    def select(self, rank: int) -> int | None: ...
    @overload
    def select(self, rank: Numbers) -> NDArray[numpy.int64]: ...
    def select(self, rank: Any) -> Any:
        """The position of the set bit that has so many set bits before it."""
        return _ask(self._native.select, rank)

    @overload
    def select0(self, rank: int) -> int | None: ...
    @overload
    def select0(self, rank: Numbers) -> NDArray[numpy.int64]: ...
    def select0(self, rank: Any) -> Any:
        """The position of the unset bit that has so many unset bits before it."""
        return _ask(self._native.select0, rank)

    @overload
    def predecessor(self, index: int) -> int | None: ...
    @overload
    def predecessor(self, index: Numbers) -> NDArray[numpy.int64]: ...
    def predecessor(self, index: Any) -> Any:
        """The position of the last set bit at or before an index."""
        return _ask(self._native.predecessor, index)

    @overload
    def successor(self, index: int) -> int | None: ...
    @overload
    def successor(self, index: Numbers) -> NDArray[numpy.int64]: ...
    def successor(self, index: Any) -> Any:
        """The position of the first set bit at or after an index."""
        return _ask(self._native.successor, index)


def _universe(positions: NDArray[numpy.uint64], universe: int | None) -> int:
    if universe is not None:
        return universe
    return int(positions[-1]) + 1 if len(positions) else 0


class BitVector(_Bits[_native.BitVector]):
    """Bits, all of them stored."""

    def __init__(self, positions: Numbers, universe: int | None = None) -> None:
        """From the sorted positions of the set bits. Without a universe the last of them is the last bit."""
        numbers = _questions(positions)
        self._native = _native.BitVector(numbers, _universe(numbers, universe))


class SparseVector(_Bits[_native.SparseVector]):
    """Few set bits, or a sorted multiset of numbers, in Elias-Fano code."""

    def __init__(self, positions: Numbers, universe: int | None = None) -> None:
        """From sorted positions, which may repeat."""
        numbers = _questions(positions)
        self._native = _native.SparseVector(numbers, _universe(numbers, universe))


class RunLengthVector(_Bits[_native.RunLengthVector]):
    """Runs of set bits."""

    def __init__(self, positions: Numbers, universe: int | None = None) -> None:
        """From the sorted positions of the set bits."""
        numbers = _questions(positions)
        self._native = _native.RunLengthVector(numbers, _universe(numbers, universe))


class _Values(_Structure[Native]):
    @property
    def width(self) -> int:
        """Bits of a value."""
        return int(self._native.width)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} values of {self.width} bits)"

    @overload
    def get(self, index: int) -> int | None: ...
    @overload
    def get(self, index: Numbers) -> NDArray[numpy.int64] | NDArray[numpy.uint64]: ...
    def get(self, index: Any) -> Any:
        """The value at an index. Many of them are an array of uint64 if one is past ``2**63 - 1``, else of int64."""
        return _ask(self._native.get, index)

    def to_numpy(self) -> NDArray[numpy.uint64]:
        """All values."""
        return self._native.values()  # type: ignore[no-any-return]


class IntVector(_Values[_native.IntVector]):
    """Integers of the same number of bits."""

    def __init__(self, values: Numbers, width: int | None = None) -> None:
        """From values: as wide as the largest if no width is given."""
        self._native = _native.IntVector(_questions(values), width)


class _Wavelet(_Values[Native]):
    @overload
    def rank(self, index: int, value: int) -> int: ...
    @overload
    def rank(self, index: Numbers, value: int | Numbers) -> NDArray[numpy.int64]: ...
    def rank(self, index: Any, value: Any) -> Any:
        """How often a value occurs before an index."""
        return _ask(self._native.rank, index, value)

    @overload
    def select(self, rank: int, value: int) -> int | None: ...
    @overload
    def select(self, rank: Numbers, value: int | Numbers) -> NDArray[numpy.int64]: ...
    def select(self, rank: Any, value: Any) -> Any:
        """The position of the occurrence of a value that has so many before it."""
        return _ask(self._native.select, rank, value)

    @overload
    def predecessor(self, index: int, value: int) -> int | None: ...
    @overload
    def predecessor(self, index: Numbers, value: int | Numbers) -> NDArray[numpy.int64]: ...
    def predecessor(self, index: Any, value: Any) -> Any:
        """The position of the last occurrence of a value at or before an index."""
        return _ask(self._native.predecessor, index, value)

    @overload
    def successor(self, index: int, value: int) -> int | None: ...
    @overload
    def successor(self, index: Numbers, value: int | Numbers) -> NDArray[numpy.int64]: ...
    def successor(self, index: Any, value: Any) -> Any:
        """The position of the first occurrence of a value at or after an index."""
        return _ask(self._native.successor, index, value)

    @overload
    def inverse_select(  # pyright: ignore[reportOverlappingOverload]
        self, index: int
    ) -> tuple[int, int] | None: ...
    @overload
    def inverse_select(self, index: Numbers) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]: ...
    def inverse_select(self, index: Any) -> Any:
        """The value at an index and how often it occurs before: the rank, then the value."""
        if not _is_one(index):
            return self._native.inverse_select(_questions(index))
        ranks, values = self._native.inverse_select(_questions([index]))
        return None if ranks[0] < 0 else (int(ranks[0]), int(values[0]))


class WaveletMatrix(_Wavelet[_native.WaveletMatrix]):
    """A sequence of integers with rank and select for every value."""

    def __init__(self, values: Numbers) -> None:
        self._native = _native.WaveletMatrix(_questions(values))


class RunLengthWaveletMatrix(_Wavelet[_native.RunLengthWaveletMatrix]):
    """The same for sequences with long runs."""

    def __init__(self, values: Numbers) -> None:
        self._native = _native.RunLengthWaveletMatrix(_questions(values))


Structure = Union[BitVector, SparseVector, RunLengthVector, IntVector, WaveletMatrix, RunLengthWaveletMatrix]


def open(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    kind: str | None = None,
    *,
    mmap: bool = False,
) -> Structure:
    """Opens a file of simple-sds. ``kind`` says what it is (``bit``, ``sparse``, ``rl``, ``int``, ``wm``, ``rlwm``) where
    several fit.

    ``mmap=True`` maps the file into memory instead of reading it: opening takes no time, whatever its size. A map *is* the
    file: if another process shortens it meanwhile, touching the lost part ends this process (SIGBUS); if another
    process writes into it, answers change. Ask for it only where nobody else writes.
    """
    native = _native.succinct_open(source, kind, mmap)
    opened: Structure = _CLASSES[type(native)]._of(native)
    return opened


_CLASSES: dict[type, type[_Structure[Any]]] = {
    _native.BitVector: BitVector,
    _native.SparseVector: SparseVector,
    _native.RunLengthVector: RunLengthVector,
    _native.IntVector: IntVector,
    _native.WaveletMatrix: WaveletMatrix,
    _native.RunLengthWaveletMatrix: RunLengthWaveletMatrix,
}
