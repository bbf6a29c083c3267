"""Arrays and matrices of other libraries, as bytes that a format reads."""

from __future__ import annotations

import io
import sys
from typing import Any, NamedTuple


class Foreign(NamedTuple):
    """Data of another library in a format of its own."""

    content: bytes
    format: str
    #: Which values are missing: a byte for each, row by row.
    mask: bytes | None = None


def is_arrow(data: Any) -> bool:
    """Whether it speaks the Arrow PyCapsule interface."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def is_foreign(data: Any) -> bool:
    """Whether it is an array, a sparse matrix or a tensor."""
    return _is_sparse(data) or _is_array(data) or hasattr(data, "__dlpack__")


def _is_sparse(data: Any) -> bool:
    return "scipy.sparse" in sys.modules and bool(sys.modules["scipy.sparse"].issparse(data))


def _is_array(data: Any) -> bool:
    return "numpy" in sys.modules and isinstance(data, sys.modules["numpy"].ndarray)


def as_document(data: Any) -> Foreign | None:
    """The bytes of an array, a sparse matrix or a tensor, and the format that they are in; ``None`` for other objects."""
    if _is_sparse(data):
        return Foreign(_sparse(data), "npz")
    if _is_array(data):
        return _masked(data) or Foreign(_array(data), "npy")
    if hasattr(data, "__dlpack__"):
        import numpy

        return Foreign(_array(numpy.from_dlpack(data)), "npy")
    return None


def _masked(array: Any) -> Foreign | None:
    """An array of which some values are masked; ``None`` if none are."""
    import numpy

    if not isinstance(array, numpy.ma.MaskedArray) or not _is_any_masked(array):
        return None
    if array.dtype.names is not None or array.ndim not in (1, 2):
        what = "a structured array" if array.dtype.names is not None else f"an array of {array.ndim} dimensions"
        raise TypeError(f"expected masked values in an array of one or two dimensions, found them in {what}")
    mask = numpy.ascontiguousarray(numpy.ma.getmaskarray(array))
    return Foreign(_array(numpy.ascontiguousarray(array.data)), "npy", mask.tobytes())


def _is_any_masked(array: Any) -> bool:
    import numpy

    mask = numpy.ma.getmask(array)
    if mask is numpy.ma.nomask:
        return False
    # A structured array has a mask of the same fields, each a truth value.
    return bool(numpy.ascontiguousarray(mask).reshape(-1).view(numpy.uint8).any())


def _array(array: Any) -> bytes:
    """An array with the header of a ``.npy`` file before it: one copy."""
    import numpy

    if array.dtype.hasobject:
        raise TypeError(f"expected an array of numbers, times or text, found one of {array.dtype}")
    # The values of an array without masked ones.
    array = numpy.asarray(array)
    header = io.BytesIO()
    numpy.lib.format.write_array_header_2_0(header, numpy.lib.format.header_data_from_array_1_0(array))
    # Fortran order is the C order of the transposed array.
    flat = array.T if array.flags.f_contiguous and not array.flags.c_contiguous else array
    return b"".join([header.getvalue(), numpy.ascontiguousarray(flat).reshape(-1).view(numpy.uint8).data])


def _sparse(matrix: Any) -> bytes:
    """A sparse matrix as SciPy stores it."""
    import scipy.sparse

    file = io.BytesIO()
    if matrix.format not in ("csr", "csc", "coo", "bsr", "dia"):
        matrix = matrix.tocsr()
    scipy.sparse.save_npz(file, matrix, compressed=False)
    return file.getvalue()
