"""``describe`` and ``plot``: what data is like."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from pentaglot import _native
from pentaglot._args import Limits, Options, Progress, Source, callback
from pentaglot._document import Document
from pentaglot._trust import _document

Kind = Literal["histogram", "bar", "line", "scatter", "spy", "sheet", "runs", "treemap"]


def describe(
    source: Source | Document,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """What the values are like: what ``pentaglot describe --json`` prints.

    >>> import pentaglot as pg
    >>> found = pg.describe(b"a\\n1\\n2\\n4\\n", format="csv")
    >>> found["columns"][0]["max"]
    4
    """
    document = _document(source, format, type, member, options, limits, threads)
    chosen = None if columns is None else list(columns)
    found: dict[str, Any] = json.loads(_native.describe(document, chosen, where, callback(progress)))
    return found


class Picture(bytes):
    """A picture as SVG; a notebook shows it."""

    def _repr_svg_(self) -> str:
        return self.decode()


def plot(
    source: Source | Document,
    *,
    kind: Kind | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    size: tuple[int, int] = (800, 500),
    output: Literal["svg", "png"] = "svg",
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> bytes:
    """A picture of the kind that suits the data, as the bytes of an SVG or PNG file.

    >>> import pentaglot as pg
    >>> pg.plot(b"a\\n1\\n2\\n", format="csv").startswith(b"<svg ")
    True
    """
    if output not in ("svg", "png"):
        raise ValueError(f"expected svg or png, found {output!r}")
    document = _document(source, format, type, member, options, limits, threads)
    chosen = None if columns is None else list(columns)
    drawn = _native.plot(document, kind, chosen, where, size, output == "png", callback(progress))
    return Picture(drawn) if output == "svg" else bytes(drawn)
