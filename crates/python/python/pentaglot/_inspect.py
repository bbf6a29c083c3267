"""What a file is, whether it is sound, and what its bytes mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pentaglot import _native
from pentaglot._args import Limits, Options, Progress, Source, callback, settings
from pentaglot._document import open
from pentaglot._errors import Usage
from pentaglot._show import visible


def inspect(
    source: Source,
    *,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """What a file says of itself: what ``pentaglot inspect --json`` prints.

    >>> import pentaglot as pg
    >>> pg.inspect(b"a\\n1\\n", format="csv")["shape"]
    'table'
    """
    return open(source, format=format, type=type, member=member, options=options, limits=limits).summary


def count(
    source: Source,
    where: str | None = None,
    *,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> int:
    """How many rows a file has, or how many match.

    >>> import pentaglot as pg
    >>> pg.count(b"a\\n1\\n2\\n", format="csv")
    2
    """
    document = open(source, format=format, type=type, member=member, options=options, limits=limits)
    return document.count(where, progress=progress)


def formats() -> list[dict[str, Any]]:
    """The formats: ids, titles, extensions, dialects, options.

    >>> import pentaglot as pg
    >>> [info["id"] for info in pg.formats()][:5]
    ['dbdf', 'ds', 'dynd', 'bsondf', 'sds']
    """
    return _native.formats()


@dataclass(frozen=True)
class Finding:
    """One thing that :func:`validate` found."""

    #: error, warning or note.
    severity: str
    #: A stable word for the rule.
    rule: str
    offset: int | None
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        place = "" if self.offset is None else f"at byte {self.offset}: "
        path = f"{self.path}: " if self.path else ""
        return f"{self.severity}: {place}{path}{self.message} [{self.rule}]"


@dataclass(frozen=True)
class Validation:
    """What :func:`validate` found. It is true if no rule is broken."""

    is_valid: bool
    #: The id of the format, if it could be told.
    format: str | None
    findings: list[Finding] = field(default_factory=list)
    #: Findings that were counted but not kept.
    more: int = 0

    def __bool__(self) -> bool:
        return self.is_valid

    def __str__(self) -> str:
        return "\n".join([("valid" if self.is_valid else "invalid"), *map(str, self.findings)])


def validate(
    source: Source,
    *,
    strict: bool = False,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Validation:
    """Compares a file with every rule of its format. ``strict`` makes a warning an error.

    >>> import pentaglot as pg
    >>> bool(pg.validate(b"a,b\\n1,2\\n", format="csv"))
    True
    """
    given = settings(format, type, options, limits, threads)
    found, valid, findings, more = _native.validate(source, member, strict, given, callback(progress))
    return Validation(valid, found, [Finding(*finding) for finding in findings], more)


class Part:
    """A named range of bytes, with a value or with parts, which are made when they are asked for."""

    def __init__(self, native: _native.Node, path: str = "") -> None:
        self._native = native
        #: The names from the whole file down to here.
        self.path = path

    @property
    def name(self) -> str:
        """Its own name."""
        return self._native.name

    @property
    def offset(self) -> int:
        """The first byte."""
        return self._native.offset

    @property
    def size(self) -> int:
        """How many bytes."""
        return self._native.bytes

    @property
    def value(self) -> str | None:
        """The decoded value or a short description."""
        return self._native.value

    @property
    def count(self) -> int | None:
        """How many parts, if that is known without walking them."""
        return self._native.count

    def head(self, limit: int = 12) -> bytes:
        """The first bytes."""
        return self._native.head(limit)

    def _part(self, native: _native.Node) -> Part:
        joint = "." if self.path and not native.name.startswith("[") else ""
        return Part(native, f"{self.path}{joint}{native.name}")

    def parts(self, start: int = 0) -> Iterator[Part]:
        """The parts, in the order of the file."""
        step = 256
        while True:
            nodes = self._native.parts(start, step)
            yield from map(self._part, nodes)
            if len(nodes) < step:
                return
            start += step

    def __iter__(self) -> Iterator[Part]:
        return self.parts()

    def at(self, place: str | int) -> Part:
        """The part at a path such as ``header.version`` or ``block[3]``, or the smallest that holds a byte."""
        if isinstance(place, int):
            if not self.offset <= place < self.offset + self.size:
                raise Usage(f"expected a byte from {self.offset} to {self.offset + self.size - 1}, found {place}")
            found = self._native.holding(self.path, place)
            return Part(found[1], found[0]) if found else self
        node = self._native.find(self.path, place)
        if node is None:
            raise Usage(f"there is no part {place!r}")
        return Part(node, place)

    def text(self, depth: int = 2, shown: int = 64) -> str:
        """The parts as lines: offset, first bytes, name and value."""
        return visible("\n".join(self._lines(depth, shown, 0)))

    def _lines(self, depth: int, shown: int, level: int) -> Iterator[str]:
        value = "" if self.value is None else f" = {self.value[:200]}"
        size = f" ({self.size} bytes)" if self._native.has_parts or self.size > 12 else ""
        more = "…" if self.size > 12 else " "
        yield f"{self.offset:010x}  {self.head().hex(' '):<35}{more} {'  ' * level}{self.name}{value}{size}"
        if level >= depth or not self._native.has_parts:
            return
        for index, part in enumerate(self.parts()):
            if index == shown:
                yield f"{'':<49}{'  ' * level}…"
                return
            yield from part._lines(depth, shown, level + 1)

    def __repr__(self) -> str:
        return self.text()


def dump(
    source: Source,
    at: str | int | None = None,
    *,
    format: str | None = None,
    type: str | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
) -> Part:
    """The bytes of a file by name: a tree that reads what is looked at. ``print`` shows it.

    >>> import pentaglot as pg
    >>> data = bytes([9]) + b"3 * int32" + bytes(12)
    >>> print(pg.dump(data, "type", format="dynd"))
    0000000001  33 20 2a 20 69 6e 74 33 32           type = 3 * int32
    """
    document = open(source, format=format, type=type, member=member, options=options, limits=limits)
    if isinstance(at, str):
        path, node = document._native.part(at)
        return Part(node, path)
    root = Part(document._native.outline())
    return root if at is None else root.at(at)
