"""``scan``: lazy frames over a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

from pentaglot._args import Limits, Options, Source
from pentaglot._document import Document, open
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
) -> pyarrow.dataset.Scanner: ...
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
    """A lazy view of a file: a ``LazyFrame`` of Polars, a ``Scanner`` of pyarrow or a relation of DuckDB.

    Polars reads only the columns and the first rows that a query needs. ``start`` and ``stop`` choose rows in the file
    itself. A matrix has a column for each of its columns, or ``row``, ``col``, ``value`` if it is sparse.
    A scanner and a relation read the file once.
    """
    document = source if isinstance(source, Document) else open(
        source, format=format, type=type, member=member, options=options, limits=limits
    )  # fmt: skip
    form = {"dense": "columns", "sparse": "coo"}.get(document.schema.form)
    if engine == "polars":
        return _polars(document, form, start, stop)
    if engine == "pyarrow":
        import pyarrow
        import pyarrow.dataset

        rows = document.rows(start=start, stop=stop, form=form)
        return pyarrow.dataset.Scanner.from_batches(pyarrow.RecordBatchReader.from_stream(rows))
    if engine == "duckdb":
        import duckdb
        import pyarrow

        rows = document.rows(start=start, stop=stop, form=form)
        return duckdb.from_arrow(pyarrow.RecordBatchReader.from_stream(rows))
    raise ValueError(f"expected the engine 'polars', 'pyarrow' or 'duckdb', found {engine!r}")


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
