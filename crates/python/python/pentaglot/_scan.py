"""``scan``: lazy frames over a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

from pentaglot._args import Limits, Options, Source
from pentaglot._document import Document, Rows, open
from pentaglot._table import Table

if TYPE_CHECKING:
    import duckdb
    import polars
    import pyarrow.dataset


@overload
def scan(
    source: Source | Document,
    engine: Literal["polars"] = "polars",
    *,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    start: int = 0,
    stop: int | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
) -> polars.LazyFrame: ...
@overload
def scan(
    source: Source | Document,
    engine: Literal["pyarrow"],
    *,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    start: int = 0,
    stop: int | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
) -> Dataset: ...
@overload
def scan(
    source: Source | Document,
    engine: Literal["duckdb"],
    *,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    start: int = 0,
    stop: int | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
) -> duckdb.DuckDBPyRelation: ...


def scan(
    source: Source | Document,
    engine: str = "polars",
    *,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    start: int = 0,
    stop: int | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
) -> Any:
    """A lazy view of a file: a ``LazyFrame`` of Polars, a :class:`Dataset` for pyarrow or a relation of DuckDB.

    Polars reads only the columns and the first rows that a query needs, a dataset the columns. ``start`` and ``stop``
    choose rows in the file itself. A matrix has a column for each of its columns, or ``row``, ``col``, ``value`` if it
    is sparse. Every query reads the file anew.
    """
    document = source if isinstance(source, Document) else open(
        source, format=format, type=type, member=member, options=options, limits=limits
    )  # fmt: skip
    if engine == "polars":
        return _polars(document, _form(document), start, stop)
    if engine == "pyarrow":
        return Dataset(document, start, stop)
    if engine == "duckdb":
        import duckdb

        return duckdb.from_arrow(Dataset(document, start, stop))
    raise ValueError(f"expected the engine 'polars', 'pyarrow' or 'duckdb', found {engine!r}")


def _form(document: Document) -> str | None:
    """The form that has columns, of a matrix that is stored otherwise."""
    return {"dense": "columns", "sparse": "coo"}.get(document.schema.form)


class Dataset:
    """A file in the manner of pyarrow's datasets. Each call reads it anew, and only the columns that are asked for.

    It speaks the Arrow PyCapsule interface, as a table does.
    """

    def __init__(self, document: Document, start: int = 0, stop: int | None = None) -> None:
        self._document, self._start, self._stop = document, start, stop
        self._form = _form(document)

    def _rows(self, columns: list[str] | None = None, stop: int | None = None, batch_rows: int = 0) -> Rows:
        # A form that is made of lists has no columns that could be left out before it is made.
        columns = columns if self._form is None else None
        stop = self._stop if stop is None else stop
        return self._document.rows(columns, start=self._start, stop=stop, batch_rows=batch_rows, form=self._form)

    @property
    def schema(self) -> pyarrow.Schema:
        """Names and types of the columns."""
        import pyarrow

        return pyarrow.schema(self)

    def __arrow_c_schema__(self) -> object:
        return self._rows(stop=self._start).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows().__arrow_c_stream__(requested_schema)

    def scanner(
        self,
        columns: list[str] | dict[str, Any] | None = None,
        filter: Any = None,
        batch_size: int = 0,
    ) -> pyarrow.dataset.Scanner:
        """A scanner of pyarrow, which reads once. With a filter, which may need any column, all columns are read."""
        import pyarrow
        import pyarrow.dataset

        names = list(columns) if isinstance(columns, (list, tuple)) and filter is None else None
        reader = pyarrow.RecordBatchReader.from_stream(self._rows(names, batch_rows=batch_size))
        return pyarrow.dataset.Scanner.from_batches(reader, columns=columns, filter=filter)

    def to_table(self, columns: list[str] | dict[str, Any] | None = None, filter: Any = None) -> pyarrow.Table:
        """The rows in memory, as a table of pyarrow."""
        return self.scanner(columns, filter).to_table()

    def to_batches(
        self, columns: list[str] | dict[str, Any] | None = None, filter: Any = None, batch_size: int = 0
    ) -> Iterator[pyarrow.RecordBatch]:
        """The rows in batches."""
        batches: Iterator[pyarrow.RecordBatch] = self.scanner(columns, filter, batch_size).to_batches()
        return batches

    def head(self, num_rows: int, columns: list[str] | None = None, filter: Any = None) -> pyarrow.Table:
        """The first rows."""
        return self.scanner(columns, filter).head(num_rows)

    def count_rows(self, filter: Any = None) -> int:
        """How many rows there are, or how many match."""
        return int(self.scanner(None, filter).count_rows())


def _polars(document: Document, form: str | None, start: int, stop: int | None) -> polars.LazyFrame:
    import polars
    from polars.io.plugins import register_io_source

    def frame(table: Table) -> polars.DataFrame:
        return polars.DataFrame(table)

    def batches(
        with_columns: list[str] | None,
        predicate: polars.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[polars.DataFrame]:
        # A form that is made of lists has no columns that could be left out before it is made.
        columns = with_columns if form is None else None
        end = stop
        if n_rows is not None and form != "coo":
            end = start + n_rows if stop is None else min(stop, start + n_rows)
        left = n_rows
        stream = document.rows(columns, start=start, stop=end, batch_rows=batch_size or 0, form=form)
        for table in stream:
            found = frame(table)
            if with_columns is not None:
                found = found.select(with_columns)
            if left is not None:
                found = found.head(left)
                left -= found.height
            yield found if predicate is None else found.filter(predicate)
            if left == 0:
                return

    empty = frame(document.read(stop=0, form=form))
    return register_io_source(batches, schema=empty.schema, validate_schema=True)
