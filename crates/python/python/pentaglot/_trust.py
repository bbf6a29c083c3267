"""``identity``, ``diff`` and ``salvage``: being sure of data."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pentaglot import _native
from pentaglot._args import Limits, Options, Progress, Source, callback, settings
from pentaglot._convert import _to
from pentaglot._document import Document


def _document(
    source: Source | Document,
    format: str | None,
    type: str | None,
    member: str | None,
    options: Options | None,
    limits: Limits | None,
    threads: int,
) -> _native.Document:
    if isinstance(source, Document):
        return source._native
    return _native.Document(source, member, settings(format, type, options, limits, threads), True)


@dataclass(frozen=True)
class Identity:
    """The content identity of data: the same for the same typed data in every format."""

    #: CIDv1 in base32.
    identity: str
    rows: int
    #: Of each column: ``name``, ``type``, ``identity``.
    columns: list[dict[str, str]]

    def __str__(self) -> str:
        return self.identity


def identity(
    source: Source | Document,
    *,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Identity:
    """The content identity of a file.

    >>> import pentaglot as pg
    >>> a = pg.identity(b"a\\n1\\n2\\n", format="csv")
    >>> b = pg.identity(b'{"a": 1}\\n{"a": 2}\\n', format="jsonl")
    >>> a == b
    True
    """
    document = _document(source, format, type, member, options, limits, threads)
    found = json.loads(_native.identity(document, callback(progress)))
    return Identity(found["identity"], found["rows"], found["columns"])


def raw_digest(
    source: Source | Document,
    algorithm: Literal["blake3", "sha256"] = "blake3",
    *,
    format: str | None = None,
    type: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
) -> str:
    """The digest of the ``dynd:raw`` bytes of a dynd value, in hex."""
    if algorithm not in ("blake3", "sha256"):
        raise ValueError(f"expected blake3 or sha256, found {algorithm!r}")
    document = _document(source, format, type, None, options, limits, 0)
    return _native.raw_digest(document, algorithm == "sha256")


@dataclass(frozen=True)
class Diff:
    """What differs between two files."""

    equal: bool
    #: Columns that differ in name or type: ``column``, ``a``, ``b``.
    schema: list[dict[str, Any]]
    #: How many rows are ``added``, ``removed``, ``changed``.
    rows: dict[str, int]
    #: Columns with changed cells: ``name``, ``changed``, and the ``first`` of them.
    columns: list[dict[str, Any]]

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return not self.equal


def diff(
    a: Source | Document,
    b: Source | Document,
    *,
    key: Sequence[str] | str = (),
    abs: float = 0.0,
    rel: float = 0.0,
    ulp: int = 0,
    first: int = 20,
    format: str | None = None,
    type: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Diff:
    """Compares two files, of the same format or not: by position, or by the columns ``key``.

    >>> import pentaglot as pg
    >>> found = pg.diff(b"a,b\\n1,x\\n2,y\\n", b"a,b\\n1,x\\n2,z\\n", format="csv", key="a")
    >>> found.rows
    {'added': 0, 'removed': 0, 'changed': 1}
    >>> found.columns[0]["first"]
    [{'key': {'a': 2}, 'a': 'y', 'b': 'z'}]
    """
    one, other = (_document(side, format, type, None, options, limits, threads) for side in (a, b))
    comparison = {
        "key": [key] if isinstance(key, str) else list(key),
        "abs": abs,
        "rel": rel,
        "ulp": ulp,
        "first": first,
        "progress": callback(progress),
    }
    found = json.loads(_native.diff(one, other, comparison))
    return Diff(found["equal"], found["schema"], found["rows"], found["columns"])


@dataclass(frozen=True)
class Salvaged:
    """What was saved of a damaged file, and what was lost."""

    #: ``rows`` and ``bytes`` that were written; ``None`` if nothing could be saved.
    saved: dict[str, int] | None
    #: ``rows`` from and to, ``bytes`` from and to, ``reason``.
    lost_rows: list[dict[str, Any]]
    #: ``name``, ``reason``.
    lost_columns: list[dict[str, str]]


def salvage(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    from_format: str | None = None,
    format: str | None = None,
    dialect: str | None = None,
    type: str | None = None,
    options: Options | None = None,
    force: bool = False,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Salvaged:
    """Writes what is provably sound in a damaged file to ``target``."""
    given = settings(from_format, type, options, limits, 0)
    to = _to(format, dialect, target)
    found = json.loads(_native.salvage(source, target, to, force, given, callback(progress)))
    return Salvaged(found["saved"], found["lost_rows"], found["lost_columns"])
