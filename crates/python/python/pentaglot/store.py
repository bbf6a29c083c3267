"""A content-addressed store: data under its identity, in chunks that versions and formats share.

>>> import tempfile
>>> import pentaglot as pg
>>> from pentaglot.store import Store
>>> folder = tempfile.TemporaryDirectory()
>>> store = Store(folder.name)
>>> stored = store.put(b"a,b\\n1,x\\n2,y\\n", format="csv", name="first")
>>> stored.identity == str(pg.identity(b"a,b\\n1,x\\n2,y\\n", format="csv"))
True
>>> store.open("first").schema.names
['a', 'b']
>>> [(entry.rows, entry.columns, entry.name) for entry in store.list()]
[(2, 2, 'first')]
>>> store.verify().valid
True
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from pentaglot import _native
from pentaglot._args import AllowLossy, Limits, Options, Progress, Source, Target, callback, settings, wanted
from pentaglot._convert import Report, _to, convert
from pentaglot._document import Document
from pentaglot._errors import Usage
from pentaglot._foreign import as_document, is_arrow

__all__ = ["Collected", "Entry", "Store", "Stored", "Verification"]


@dataclass(frozen=True)
class Stored:
    """What was put in."""

    identity: str
    rows: int
    #: Bytes that the store has in addition.
    new_bytes: int

    def __str__(self) -> str:
        return self.identity


@dataclass(frozen=True)
class Entry:
    """Data in a store."""

    identity: str
    #: table, matrix, array or value.
    shape: str
    rows: int
    columns: int
    #: Bytes that it takes in the store.
    bytes: int
    #: How many of them other data needs too.
    shared_bytes: int
    #: When it was put in last, in UTC.
    time: str
    name: str


@dataclass(frozen=True)
class Verification:
    """What checking a store found."""

    valid: bool
    packs: int
    bytes: int
    roots: int
    #: What is wrong: ``path``, ``message``.
    findings: list[dict[str, str]]

    def __bool__(self) -> bool:
        """Whether the store is sound."""
        return self.valid


@dataclass(frozen=True)
class Collected:
    """What a collection did."""

    #: Chunks that were dropped.
    chunks: int
    bytes_before: int
    bytes_after: int


class Store:
    """A store in a folder, or in a bucket (``s3://bucket/folder``): by default that which the environment variable
    ``PENTAGLOT_STORE`` names. ``create=False`` refuses a place that is none."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, create: bool = True) -> None:
        place = os.environ.get("PENTAGLOT_STORE", "") if folder is None else folder
        if folder is None and not place:
            raise Usage("no store is given (folder=... or $PENTAGLOT_STORE names a folder or a place in a bucket)")
        self._native = _native.Store(place, create)

    def put(
        self,
        data: Source | Document | Any,
        *,
        name: str | None = None,
        format: str | None = None,
        type: str | None = None,
        member: str | None = None,
        options: Options | None = None,
        limits: Limits | None = None,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Stored:
        """Stores a file, a document, Arrow data, an array of NumPy or a sparse matrix of SciPy under its identity."""
        told = callback(progress)
        if isinstance(data, Document):
            found = self._native.put(data._native, name, told)
        elif is_arrow(data):
            found = self._native.put_arrow(data, name, settings(None, None, options, limits, threads), told)
        else:
            foreign = as_document(data)
            if foreign is not None:
                data, format = foreign.content, foreign.format
            document = _native.Document(data, member, settings(format, type, options, limits, threads), True)
            if foreign is not None and foreign.mask is not None:
                masked = document.read(wanted(None, 0, None, None)).masked(foreign.mask)
                found = self._native.put_arrow(masked, name, settings(None, None, None, limits, threads), told)
            else:
                found = self._native.put(document, name, told)
        stored = json.loads(found)
        return Stored(stored["identity"], stored["rows"], stored["new_bytes"])

    def open(
        self,
        id: str,
        *,
        format: str | None = None,
        limits: Limits | None = None,
        threads: int = 0,
    ) -> Document:
        """Stored data as a document. ``id`` is an identity, the beginning of one, or a name.

        ``format`` is one that the data was put in from: the document then has the types of that format.
        """
        return Document(self._native.document(id, format, settings(None, None, None, limits, threads)))

    def get(
        self,
        id: str,
        target: Target,
        *,
        format: str | None = None,
        dialect: str | None = None,
        options: Options | None = None,
        force: bool = False,
        allow_lossy: AllowLossy = False,
        limits: Limits | None = None,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Report:
        """Writes stored data to a file of any format, as ``convert`` does."""
        to = _to(format, dialect, target)
        given = settings(None, None, options, limits, threads)
        document = Document(self._native.document(id, _format_of(to, target), given))
        return convert(
            document, target, format=to, force=force, allow_lossy=allow_lossy, progress=progress
        )

    def list(self) -> list[Entry]:
        """What the store has, the oldest first."""
        return [Entry(**json.loads(entry)) for entry in self._native.list()]

    def remove(self, id: str) -> str:
        """Removes data; :meth:`collect` frees its space. Gives the identity."""
        return self._native.remove(id)

    def verify(self, *, progress: Progress | None = None) -> Verification:
        """Checks every byte of the store."""
        return Verification(**json.loads(self._native.verify(callback(progress))))

    def collect(self) -> Collected:
        """Frees the space of what was removed."""
        return Collected(**json.loads(self._native.collect()))


def _format_of(to: str | None, target: Target) -> str | None:
    """The id of the format that is written, where a word or a name tells it."""
    if to is not None:
        return to.split(":")[0]
    return _native.format_of(os.fsdecode(target)) if isinstance(target, (str, os.PathLike)) else None
