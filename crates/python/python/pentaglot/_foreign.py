"""Arrays and matrices of other libraries, as bytes that a format reads."""

from __future__ import annotations

import io
import sys
from typing import Any


def as_document(data: Any) -> tuple[bytes, str] | None:
    """The bytes of an array, a sparse matrix or a tensor, and the format that they are in; ``None`` for other objects."""
    if "scipy.sparse" in sys.modules and sys.modules["scipy.sparse"].issparse(data):
        return _sparse(data), "npz"
    if "numpy" in sys.modules and isinstance(data, sys.modules["numpy"].ndarray):
        return _array(data), "npy"
    if hasattr(data, "__dlpack__"):
        import numpy

        return _array(numpy.from_dlpack(data)), "npy"
    return None


def _array(array: Any) -> bytes:
    """An array with the header of a ``.npy`` file before it: one copy."""
    import numpy

    if array.dtype.hasobject:
        raise TypeError(f"expected an array of numbers, times or text, found one of {array.dtype}")
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
