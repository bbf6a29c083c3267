"""``Table``: rows in memory, and the ways from there to other libraries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pentaglot import _native
from pentaglot._errors import Unsupported, Usage
from pentaglot._numpy import array_of, shares_memory
from pentaglot._pandas import frame_of
from pentaglot._show import cells, html_table, html_title, spy, text_table, visible

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars
    import pyarrow
    import scipy.sparse

#: Rows that a representation shows.
SHOWN = 10
#: Entries of a sparse matrix that a plot shows.
SPY_ENTRIES = 5000


class Table:
    """Rows in memory: a table, a matrix, an array or a single value (``schema.kind``).

    It speaks the Arrow PyCapsule interface: ``pyarrow.table(t)``, ``polars.DataFrame(t)`` and DuckDB take it as it is,
    without a copy. Memory is shared and read-only; it lives as long as anybody holds it, whatever becomes of the file.
    """

    def __init__(self, data: object) -> None:
        """From anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``."""
        self._native = data if isinstance(data, _native.Batches) else _native.Batches.from_arrow(data)

    @property
    def schema(self) -> _native.Schema:
        """Names and types of the columns, and what the data is."""
        return self._native.schema

    @property
    def num_rows(self) -> int:
        """How many rows."""
        return self._native.num_rows

    @property
    def num_columns(self) -> int:
        """How many columns; of a matrix, its own."""
        cols = self.schema.matrix_cols
        return len(self.schema) if cols is None else cols

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns; of a matrix, its own."""
        if self.schema.form == "coo":
            return self.schema.matrix_rows or 0, self.num_columns
        return self.num_rows, self.num_columns

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._native.nbytes

    def __len__(self) -> int:
        return self.num_rows

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def slice(self, start: int = 0, stop: int | None = None) -> Table:
        """Some rows; nothing is copied."""
        if start < 0 or (stop is not None and stop < 0):
            raise ValueError("expected start and stop of at least 0")
        return Table(self._native.slice(start, self.num_rows if stop is None else stop))

    def reshape(self, form: str) -> Table:
        """A matrix in another form: ``columns``, ``coo``, ``dense``, ``sparse``, or an array as a ``table``."""
        return Table(self._native.reshape(form))

    def _as_columns(self) -> Table:
        """A matrix with a column for each of its columns (or row, col, value); anything else as it is."""
        form = {"dense": "columns", "sparse": "coo"}.get(self.schema.form)
        return self if form is None else self.reshape(form)

    def to_pyarrow(self) -> pyarrow.Table:
        """A table of pyarrow, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self, **options: Any) -> pandas.DataFrame:
        """A frame of pandas (through pyarrow, whose ``to_pandas`` takes the options).

        A dense matrix has a column for each of its columns, a sparse one the columns ``row``, ``col``, ``value``. Integers
        and truth values of which some are missing have a nullable type such as ``Int64``, unless ``types_mapper`` is given.
        """
        return frame_of(self._as_columns().to_pyarrow(), options)

    def to_polars(self) -> polars.DataFrame:
        """A frame of Polars. Matrices become columns as in :meth:`to_pandas`."""
        import polars

        return polars.DataFrame(self._as_columns())

    def to_pydict(self) -> dict[str, list[Any]]:
        """The columns as lists of Python values, as JSON knows them.

        >>> import pentaglot as pg
        >>> pg.read(b'{"a": 1}\\n{"a": null}\\n', format="jsonl").to_pydict()
        {'a': [1, None]}
        """
        names = self.schema.names
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise Usage(f"a dict has each key once, and there are {names.count(twice)} columns {twice!r}")
        rows = self._native.cells(self.num_rows)
        return {name: [json.loads(row[index]) for row in rows] for index, name in enumerate(names)}

    def to_numpy(self) -> numpy.ndarray[Any, Any]:
        """An array of NumPy: a matrix as two dimensions, an array as its own, a table as a structured array.

        Matrices and arrays of numbers share memory with the table, and are read-only. A copy is made of bits, of a matrix
        that was stored column by column (and is again), of a sparse matrix, of tables, and where values are missing: floats
        are NaN there, times NaT, and integers and truth values an array with a mask (``numpy.ma``). What NumPy wrote has the
        type that it had, such as ``<U3`` or ``>f8``.
        """
        return array_of(self)

    def to_scipy(self, format: str | None = None) -> scipy.sparse.sparray:
        """A sparse matrix of SciPy in a format such as ``"csr"`` or ``"csc"``: by default that of the file, or CSR.

        In CSR, values and column numbers share memory with the table.
        """
        import numpy
        import scipy.sparse

        native = self._native_type("npz")
        if self.schema.form != "sparse":
            if self.schema.kind != "matrix":
                raise Unsupported(f"a {self.schema.kind} is not a matrix")
            return self.reshape("sparse").to_scipy(format or native.get("layout"))
        pointers, indices, values, shape = self._native.csr()
        columns = numpy.asarray(indices)
        # SciPy takes signed numbers; these have the same bits.
        signed = columns.view(columns.dtype.str.replace("u", "i"))
        if columns.dtype.itemsize == 4 and (shape[1] > 2**31 or native.get("index_bytes") == 8):
            signed = columns.astype(numpy.int64)
        ends = numpy.asarray(pointers)
        # SciPy wants row pointers and column numbers of the same type: the former are few.
        if signed.dtype == numpy.int32 and len(signed) < 2**31:
            ends = ends.astype(numpy.int32)
        parts = (numpy.asarray(values), signed, ends)
        matrix = scipy.sparse.csr_array(parts, shape=shape, copy=False)
        if format in (None, "bsr") and native.get("layout") == "bsr":
            return matrix.tobsr(blocksize=tuple(native["block"]))
        return matrix.asformat(format or native.get("layout") or "csr")

    def _native_type(self, format: str) -> dict[str, Any]:
        """What the schema says of a format's own type, if the data was in that format."""
        native = json.loads(self.schema.metadata.get("pentaglot.native", "{}"))
        return native["type"] if native.get("format") == format and isinstance(native["type"], dict) else {}

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
        import numpy

        # Who asks for a plain array would lose a mask.
        values = array_of(self, masks=False)
        is_other = dtype is not None and values.dtype != dtype
        if copy is False and (is_other or not shares_memory(values)):
            raise ValueError("an array of these values is a copy, and copy=False refuses one")
        if is_other:
            return values.astype(dtype)
        return numpy.array(values) if copy else values

    def __dlpack__(self, **options: Any) -> object:
        return array_of(self, masks=False).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def _title(self) -> str:
        rows, cols = self.shape
        return f"{self.schema.kind}, {rows} x {cols}" if self.schema.kind == "matrix" else f"{rows} rows"

    def __repr__(self) -> str:
        more = f"\n… {self.num_rows - SHOWN} more rows" if self.num_rows > SHOWN else ""
        return f"Table: {self._title()}\n{visible(str(self.schema))}\n{text_table(self._native, SHOWN)}{more}"

    def _html(self, title: str) -> str:
        if self.schema.form == "sparse":
            try:
                return html_title(title) + self._spy()
            except ModuleNotFoundError:
                # Without NumPy and SciPy the rows are shown.
                pass
        return html_table(title, *cells(self._native, SHOWN)) + self._images()

    def _repr_html_(self) -> str:
        return self._html(f"{self._title()}: {self.schema}")

    def _spy(self) -> str:
        import numpy

        matrix: Any = self.to_scipy("csr")
        rows, cols = matrix.shape
        step = max(1, matrix.nnz // SPY_ENTRIES)
        places = numpy.arange(0, matrix.nnz, step)
        ys = numpy.searchsorted(matrix.indptr, places, side="right") - 1
        xs = matrix.indices[places]
        return spy([(y / max(rows, 1), x / max(cols, 1)) for y, x in zip(ys.tolist(), xs.tolist())], rows, cols)

    def _images(self) -> str:
        """The first images that a browser knows, of columns that hold such."""
        import base64

        shown = []
        for index, name in enumerate(self.schema.names):
            extension = self._native.extension(index)
            if extension is None or extension[0] != "pentaglot.image":
                continue
            kind = json.loads(extension[1] or "{}").get("format")
            if kind not in ("png", "jpeg"):
                continue
            for value in self.slice(0, 4).to_pyarrow().column(name).to_pylist():
                if value is not None:
                    data = base64.b64encode(value).decode()
                    shown.append(f'<img src="data:image/{kind};base64,{data}"/>')
        return "".join(shown)
