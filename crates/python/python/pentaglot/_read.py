"""``read``: a file in memory."""

from __future__ import annotations

from collections.abc import Sequence

from pentaglot._args import Limits, Options, Progress, Source, rows_of
from pentaglot._document import open
from pentaglot._table import Table


def read(
    source: Source,
    columns: Sequence[str] | str | None = None,
    *,
    rows: range | slice | None = None,
    start: int = 0,
    stop: int | None = None,
    where: str | None = None,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Table:
    """Reads a file of any format into memory.

    ``source`` is a path, several paths or a pattern that are read as one, bytes, a buffer, or a file object.
    ``format`` names the format and dialect (``"dbdf:daphne"``) if its content does not tell; ``type`` is the type of data
    that does not carry its own; ``where`` keeps the rows that match.

    >>> import pentaglot as pg
    >>> table = pg.read(b"a,b\\n1,x\\n2,y\\n3,z\\n", columns=["b"], start=1, format="csv")
    >>> table.to_pydict()
    {'b': ['y', 'z']}
    """
    start, stop = rows_of(rows, start, stop)
    document = open(
        source, format=format, type=type, member=member, options=options, limits=limits, threads=threads
    )
    return document.read(columns, start=start, stop=stop, where=where, progress=progress)
