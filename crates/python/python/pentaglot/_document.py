"""``open``: a file whose rows are read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pentaglot import _native
from pentaglot._args import Limits, Options, Progress, Source, rows_of, settings, wanted
from pentaglot._show import html_table, text_table, visible
from pentaglot._table import Table

#: Rows that a representation shows.
SHOWN = 10
#: Entries of a sparse matrix that are read for a plot.
DRAWN = 1_000_000


def open(
    source: Source,
    *,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    threads: int = 0,
) -> Document:
    """Opens a file of any format: only its headers are read.

    >>> import pentaglot as pg
    >>> document = pg.open(b"a,b\\n1,x\\n2,y\\n", format="csv")
    >>> document.schema.names
    ['a', 'b']
    >>> [batch.num_rows for batch in document.rows(["a"], batch_rows=1)]
    [1, 1]
    """
    return Document(_native.Document(source, member, settings(format, type, options, limits, threads), True))


class Rows:
    """Rows that are still to come: an iterator of tables, and an Arrow stream. They are read once."""

    def __init__(self, native: _native.Stream) -> None:
        self._native = native

    @property
    def schema(self) -> _native.Schema:
        """The schema of the rows."""
        return self._native.schema

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[Table]:
        while (batch := self._native.next()) is not None:
            yield Table(batch)


class Document:
    """An open file. It can be used by several threads, and read as often as needed."""

    def __init__(self, native: _native.Document) -> None:
        self._native = native

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._native.name

    @property
    def format(self) -> str:
        """The id of the format."""
        return self._native.format

    @property
    def dialect(self) -> str | None:
        """The dialect, where the format has several."""
        return self._native.dialect

    @property
    def schema(self) -> _native.Schema:
        """Names and types of the columns, and what the data is."""
        return self._native.schema

    @property
    def num_rows(self) -> int | None:
        """How many rows, if that is known without a full read."""
        return self._native.num_rows

    @property
    def members(self) -> list[str]:
        """The members of a container."""
        return self._native.members

    @property
    def summary(self) -> dict[str, Any]:
        """What the file says of itself: what ``pentaglot inspect --json`` prints."""
        return self._native.summary()

    def rows(
        self,
        columns: Sequence[str] | str | None = None,
        *,
        start: int = 0,
        stop: int | None = None,
        where: str | None = None,
        batch_rows: int = 0,
        form: str | None = None,
        progress: Progress | None = None,
    ) -> Rows:
        """Rows as a stream, in batches of at most ``batch_rows`` (0: what suits the format).

        ``form`` asks for a matrix in another form: ``columns``, ``coo``, ``dense``, ``sparse``. ``progress`` is called
        after each batch.
        """
        return Rows(self._native.rows(wanted(columns, start, stop, where, batch_rows, form, progress)))

    def read(
        self,
        columns: Sequence[str] | str | None = None,
        *,
        rows: range | slice | None = None,
        start: int = 0,
        stop: int | None = None,
        where: str | None = None,
        form: str | None = None,
        progress: Progress | None = None,
    ) -> Table:
        """Rows in memory."""
        start, stop = rows_of(rows, start, stop)
        return Table(self._native.read(wanted(columns, start, stop, where, 0, form, progress)))

    def count(self, where: str | None = None, *, progress: Progress | None = None) -> int:
        """How many rows there are, or how many match."""
        return self._native.count(where, wanted(None, 0, None, None, progress=progress)["progress"])

    def head(self, rows: int = SHOWN) -> Table:
        """The first rows."""
        return self.read(stop=rows)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.rows().__arrow_c_stream__(requested_schema)

    def _title(self) -> str:
        dialect = f":{self.dialect}" if self.dialect else ""
        if self.members and not len(self.schema):
            return f"{self.name}: {self.format}{dialect}, {len(self.members)} members"
        rows = "unknown" if self.num_rows is None else str(self.num_rows)
        if self.schema.matrix_cols is not None:
            size = f"matrix, {rows} x {self.schema.matrix_cols}"
        else:
            size = f"{self.schema.kind}, {rows} rows"
        return f"{self.name}: {self.format}{dialect}, {size}"

    def _first(self) -> Table | None:
        return None if self.members and not len(self.schema) else self.head()

    def __repr__(self) -> str:
        first = self._first()
        if first is None:
            return visible("\n".join([self._title(), *(f"  {member}" for member in self.members[:20])]))
        return f"{visible(self._title())}\n{visible(str(self.schema))}\n{text_table(first._native, SHOWN)}"

    def _repr_html_(self) -> str:
        first = self._first()
        if first is None:
            return html_table(self._title(), ["member"], [[member] for member in self.members[:20]])
        if self.schema.form == "sparse":
            drawn, note = self._drawn()
            return drawn._html(f"{self._title()}{note}")
        return first._html(self._title())

    def _drawn(self) -> tuple[Table, str]:
        """The rows of a sparse matrix that a plot shows, all if they are few, and what is said of others."""
        rows, entries = self.num_rows or 0, self.summary.get("nonzeros")
        if entries is not None and entries <= DRAWN:
            return self.read(), ""
        # As many rows as have so many entries, if these are spread evenly.
        stop = max(1, min(rows, DRAWN if entries is None else rows * DRAWN // entries))
        note = f", the first {stop} rows are drawn" if stop < rows or self.num_rows is None else ""
        return self.read(stop=stop), note
