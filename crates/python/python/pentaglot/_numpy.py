"""Tables as arrays of NumPy."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from pentaglot import _native

if TYPE_CHECKING:
    import numpy

    from pentaglot._table import Table

    Array: TypeAlias = numpy.ndarray[Any, Any]

_UNCHECKED_BYTES = 2**26
"""The size up to which an array of texts gets the width that its file says."""


def array_of(table: Table, masks: bool = True) -> Array:
    """A matrix as two dimensions, an array as its own, a table as a structured array.

    Where integers or truth values are missing, the array has a mask, or objects and ``None`` without ``masks``.
    """
    import numpy

    batches, form = table._native, table.schema.form
    # Entries of two numbers are complex ones.
    if form == "sparse" or (form == "coo" and table.schema.types[2].startswith("fixed_list[2, float")):
        return table.to_scipy("csr").toarray()  # type: ignore[no-any-return]
    native = _native_dtype(table.schema)
    if form == "columns" and _has_own_columns(batches):
        columns = [_column(batches, index, None, masks) for index in range(len(table.schema))]
        has_mask = any(isinstance(column, numpy.ma.MaskedArray) for column in columns)
        values = (numpy.ma.stack if has_mask else numpy.stack)(columns, axis=1)
    elif form in ("columns", "coo"):
        return array_of(table.reshape("dense"), masks)
    elif form == "table":
        return _records(batches, native, masks)
    else:
        values = _column(batches, 0, native, masks)
        # Rows of a matrix of texts are arrays of their own.
        if form == "dense" and values.ndim == 1 and len(values):
            values = _in_type(numpy.stack(list(values)), native)
    if form == "value":
        return values[0] if values.ndim > 1 else values.reshape(())
    if form in ("dense", "columns") and table.schema.is_column_major:
        return numpy.asfortranarray(values)
    return values


def shares_memory(values: Array) -> bool:
    """Whether an array is a view of a table's memory."""
    import numpy

    base: Any = values
    while isinstance(base, numpy.ndarray):
        base = base.base
    return isinstance(base, _native.Values) and not base.is_copy


def _is_complex(batches: _native.Batches, index: int) -> bool:
    extension = batches.extension(index)
    return extension is not None and extension[0] == "pentaglot.complex"


def _has_own_columns(batches: _native.Batches) -> bool:
    """Whether columns of a matrix are complex, or not all numbers: then its dense form does not hold them."""
    columns = range(len(batches.schema))
    return any(_is_complex(batches, index) or batches.column_values(index) is None for index in columns)


def _native_dtype(schema: _native.Schema) -> numpy.dtype[Any] | None:
    """The type that the array had in a file of NumPy, or before it was written."""
    import ast

    import numpy

    native = json.loads(schema.metadata.get("pentaglot.native", "{}"))
    own = native.get("type")
    if native.get("format") not in ("npy", "npz") or not isinstance(own, dict) or "descr" not in own:
        return None
    try:
        return numpy.lib.format.descr_to_dtype(ast.literal_eval(own["descr"]))
    except (MemoryError, RecursionError, SyntaxError, TypeError, ValueError):
        return None


def _records(batches: _native.Batches, native: numpy.dtype[Any] | None, masks: bool) -> Array:
    """A structured array with a field for each column: of the native type if it holds the values."""
    import numpy

    names = batches.schema.names
    known = native if native is not None and native.names is not None else None
    types = [known[name] if known is not None and name in (known.names or ()) else None for name in names]
    columns = [_column(batches, index, own, masks) for index, own in enumerate(types)]
    found = [numpy.dtype((column.dtype, column.shape[1:])) for column in columns]
    if known is not None and known.names == tuple(names) and found == types:
        dtype = known
    else:
        dtype = numpy.dtype(list(zip(names, found)))
    has_mask = any(isinstance(column, numpy.ma.MaskedArray) for column in columns)
    records: Array = (numpy.ma.zeros if has_mask else numpy.zeros)(batches.num_rows, dtype=dtype)
    for name, column in zip(names, columns):
        records[name] = column
    return records


def _column(batches: _native.Batches, index: int, native: numpy.dtype[Any] | None, masks: bool) -> Array:
    """The values of a column, in the native type if it holds them."""
    import numpy

    # The type of an array within a field is that of its numbers.
    base = native.base if native is not None else None
    values = batches.column_values(index)
    if values is not None:
        return _in_type(_shaped(batches, index, numpy.asarray(values)), base)
    found = batches.column_with_missing(index)
    if found is not None:
        shaped = [_shaped(batches, index, numpy.asarray(part)) for part in found]
        return _with_missing(shaped[0], shaped[1], masks)
    fields = batches.fields(index)
    if fields is not None and len(fields.schema):
        return _records(fields, native, masks)
    # Text and other nested types: pyarrow knows what becomes of them.
    import pyarrow

    return _in_type(pyarrow.table(batches).column(index).to_numpy(zero_copy_only=False), base)


def _shaped(batches: _native.Batches, index: int, values: Array) -> Array:
    """Values of tensors in their dimensions."""
    extension = batches.extension(index)
    if extension is None or extension[0] != "arrow.fixed_shape_tensor":
        return values
    tensor = json.loads(extension[1] or "{}")
    values = values.reshape((len(values), *tensor["shape"]))
    if order := tensor.get("permutation"):
        values = values.transpose((0, *(axis + 1 for axis in order)))
    return values


def _with_missing(values: Array, missing: Array, masks: bool) -> Array:
    import numpy

    if values.dtype.kind in "fcmM":
        values = values.copy()
        values[missing] = "NaT" if values.dtype.kind in "mM" else numpy.nan
        return values
    if masks:
        return numpy.ma.MaskedArray(values.copy(), mask=missing)
    values = values.astype(object)
    values[missing] = None
    return values


def _in_type(values: Array, native: numpy.dtype[Any] | None) -> Array:
    """The values in the native type, if it holds them exactly."""
    if native is None or native.names is not None or native == values.dtype:
        return values
    if native.newbyteorder("=") == values.dtype.newbyteorder("="):
        return values.astype(native)
    if values.dtype.kind in "mM" and native.kind == values.dtype.kind:
        changed = values.astype(native)
        return changed if changed.astype(values.dtype).tobytes() == values.tobytes() else values
    if values.dtype.kind == "O" and native.kind in "USV":
        # The width is what a file says: a large array must be needed by its values.
        needed = max((len(value) for value in values.flat if isinstance(value, (str, bytes))), default=0)
        if values.size * native.itemsize > _UNCHECKED_BYTES and native.itemsize > 32 * needed:
            return values
        try:
            changed = values.astype(native)
        except (TypeError, ValueError):
            return values
        return changed if changed.tolist() == values.tolist() else values
    return values
