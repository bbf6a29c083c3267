"""``write``, ``convert`` and ``plan``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from pentaglot import _native
from pentaglot._args import (
    AllowLossy,
    Changes,
    Limits,
    Options,
    Progress,
    Source,
    Target,
    allowed,
    rows_of,
    settings,
    wanted,
)
from pentaglot._document import Document
from pentaglot._errors import Usage
from pentaglot._foreign import as_document, is_arrow, is_foreign
from pentaglot._show import visible
from pentaglot._table import Table


@dataclass(frozen=True)
class Step:
    """What a conversion does to one field (to the whole, if ``field`` is empty)."""

    field: str
    source: str
    target: str
    #: exact, widened, checked, lossy or impossible.
    verdict: str
    #: What is lost, or what would let values pass that do not fit.
    kinds: list[str]
    note: str | None

    def __str__(self) -> str:
        field = f"{self.field}: " if self.field else ""
        kinds = f", {','.join(self.kinds)}" if self.kinds else ""
        note = f" ({self.note})" if self.note else ""
        return visible(f"{field}{self.source} -> {self.target}: {self.verdict}{kinds}{note}")


class Plan(Sequence[Step]):
    """What a conversion will do, field by field."""

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        self.steps = [
            Step(step["field"], step["from"], step["to"], step["verdict"], step["kinds"], step["note"])
            for step in steps
        ]

    @property
    def verdict(self) -> str:
        """The worst verdict of all steps."""
        order = ["exact", "widened", "checked", "lossy", "impossible"]
        return max((step.verdict for step in self.steps), key=order.index, default="exact")

    def __len__(self) -> int:
        return len(self.steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        return self.steps[index]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __repr__(self) -> str:
        return "\n".join(str(step) for step in self.steps) or "nothing to do"


@dataclass(frozen=True)
class Report:
    """What a conversion did."""

    rows: int
    #: Bytes written, before gzip.
    bytes: int
    #: What the user should know.
    notes: list[str]
    #: What was lost, by kind and column.
    lost: list[dict[str, Any]]
    #: The content identity of what was written, if it was verified.
    identity: str | None = None


def write(
    data: object,
    target: Target,
    *,
    format: str | None = None,
    dialect: str | None = None,
    as_type: str | None = None,
    exclude: Sequence[str] | str = (),
    cast: Changes | None = None,
    rename: Changes | None = None,
    options: Options | None = None,
    force: bool = False,
    allow_lossy: AllowLossy = False,
    verify: bool = False,
    limits: Limits | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Writes data to a file, in the format that its name or ``format`` says.

    ``data`` is anything with ``__arrow_c_stream__`` or ``__arrow_c_array__`` (tables and columns of pyarrow, Polars, pandas,
    DuckDB and of this package), an array of NumPy, also with a mask, a sparse matrix of SciPy, or anything with
    ``__dlpack__``. The file appears when
    it is whole. An existing one is replaced only with ``force=True``. With ``verify=True`` the file is read back before it
    gets its name, and must be the same data.

    >>> import io, pentaglot as pg
    >>> out = io.BytesIO()
    >>> pg.write(pg.read(b"a\\n1\\n2\\n", format="csv"), out, format="jsonl").rows
    2
    >>> out.getvalue()
    b'{"a":1}\\n{"a":2}\\n'
    """
    choice = wanted(None, 0, None, None, progress=progress)
    choice |= _target(target, format, dialect, as_type, exclude, cast, rename, allow_lossy, verify)
    conversion = _of_data(data, target, choice, options, limits, threads)
    return _report(conversion.run(force))


def convert(
    source: Source | Document,
    target: Target,
    *,
    columns: Sequence[str] | str | None = None,
    rows: range | slice | None = None,
    start: int = 0,
    stop: int | None = None,
    where: str | None = None,
    from_format: str | None = None,
    format: str | None = None,
    dialect: str | None = None,
    type: str | None = None,
    as_type: str | None = None,
    exclude: Sequence[str] | str = (),
    cast: Changes | None = None,
    rename: Changes | None = None,
    member: str | None = None,
    options: Options | None = None,
    force: bool = False,
    allow_lossy: AllowLossy = False,
    verify: bool = False,
    limits: Limits | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Converts a file: rows pass through, they are not all held in memory.

    ``from_format`` names the format of the source, ``format`` that of the target. Columns are left out by ``exclude``,
    get other types by ``cast={"price": "float32"}`` and other names by ``rename={"px": "price"}``. With ``verify=True`` the file is read
    back before it gets its name, and must be the same data. See :func:`plan`.

    >>> import io, pentaglot as pg
    >>> out = io.BytesIO()
    >>> pg.convert(b"a,b\\n1,2\\n", out, from_format="csv", format="jsonl", columns="b").rows
    1
    >>> out.getvalue()
    b'{"b":2}\\n'
    """
    choice = wanted(columns, *rows_of(rows, start, stop), where, progress=progress)
    choice |= _target(target, format, dialect, as_type, exclude, cast, rename, allow_lossy, verify)
    opening = settings(from_format, type, options, limits, threads)
    conversion = _of_source(source, target, member, choice, opening)
    return _report(conversion.run(force))


def plan(
    source: object,
    target: Target,
    *,
    columns: Sequence[str] | str | None = None,
    rows: range | slice | None = None,
    start: int = 0,
    stop: int | None = None,
    where: str | None = None,
    from_format: str | None = None,
    format: str | None = None,
    dialect: str | None = None,
    type: str | None = None,
    as_type: str | None = None,
    exclude: Sequence[str] | str = (),
    cast: Changes | None = None,
    rename: Changes | None = None,
    member: str | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    threads: int = 0,
) -> Plan:
    """What :func:`convert` would do to each field; nothing is written. Of data in memory, what :func:`write` would do.

    >>> import io, pentaglot as pg
    >>> plan = pg.plan(b"a\\n1\\n", io.BytesIO(), from_format="csv", format="parquet")
    >>> plan.verdict
    'exact'
    """
    choice = wanted(columns, *rows_of(rows, start, stop), where)
    choice |= _target(target, format, dialect, as_type, exclude, cast, rename, False, False)
    if _is_data(source):
        if from_format is not None or type is not None or member is not None:
            raise Usage("from_format, type and member say what a file is; the source is data in memory")
        conversion = _of_data(source, target, choice, options, limits, threads)
    else:
        opening = settings(from_format, type, options, limits, threads)
        conversion = _of_source(source, target, member, choice, opening)
    return Plan(conversion.steps())


def _to(format: str | None, dialect: str | None, target: Target) -> str | None:
    """The format and dialect of a target, as one word."""
    if dialect is None:
        return format
    if format is None:
        name = os.fsdecode(target) if isinstance(target, (str, os.PathLike)) else ""
        format = _native.format_of(name)
        if format is None:
            raise Usage(f"cannot tell a format from the name {name!r} (format=... names one)")
    return f"{format}:{dialect}"


def _target(
    target: Target,
    format: str | None,
    dialect: str | None,
    as_type: str | None,
    exclude: Sequence[str] | str,
    cast: Changes | None,
    rename: Changes | None,
    allow_lossy: AllowLossy,
    verify: bool,
) -> dict[str, Any]:
    """What is written, as the native part takes it."""
    return {
        "to": _to(format, dialect, target),
        "as_type": as_type,
        "exclude": [exclude] if isinstance(exclude, str) else list(exclude),
        "cast": list((cast or {}).items()),
        "rename": list((rename or {}).items()),
        "allow_lossy": allowed(allow_lossy),
        "verify": verify,
    }


def _of_source(
    source: Any, target: Target, member: str | None, choice: dict[str, Any], opening: dict[str, Any]
) -> _native.Conversion:
    _check_apart(source, target)
    if isinstance(source, Document):
        document = source._native
    elif _is_data(source):
        raise Usage("data in memory is written by write; convert takes files")
    else:
        document = _native.Document(source, member, opening, False)
    return _native.Conversion.of_document(document, target, choice)


def _is_data(source: Any) -> bool:
    """Whether it is data in memory, and not a file or its bytes."""
    if isinstance(source, (str, bytes, bytearray, memoryview, Document)):
        return False
    return is_arrow(source) or is_foreign(source)


def _of_data(
    data: Any,
    target: Target,
    choice: dict[str, Any],
    options: Options | None,
    limits: Limits | None,
    threads: int,
) -> _native.Conversion:
    if isinstance(data, Table):
        data = data._native
    elif not is_arrow(data):
        foreign = as_document(data)
        if foreign is None:
            found = type(data).__name__
            raise TypeError(f"expected Arrow data, an array, a sparse matrix or a tensor, found {found}")
        document = _native.Document(
            foreign.content, None, settings(foreign.format, None, options, limits, threads), False
        )
        if foreign.mask is None:
            return _native.Conversion.of_document(document, target, choice)
        data = document.read(wanted(None, 0, None, None)).masked(foreign.mask)
    # What has a length is in memory; what has none is a stream, whose rows pass through.
    whole = hasattr(data, "__len__") or hasattr(data, "num_rows")
    given = settings(None, None, options, limits, threads)
    return _native.Conversion.of_arrow(data, whole, target, choice, given)


def _report(report: dict[str, Any]) -> Report:
    return Report(report["rows"], report["bytes"], report["notes"], report["lost"], report["identity"])


def _check_apart(source: object, target: object) -> None:
    if not isinstance(target, (str, os.PathLike)) or not os.path.isfile(target):
        return
    for name in source if isinstance(source, (list, tuple)) else [source]:
        if isinstance(name, (str, os.PathLike)) and os.path.isfile(name) and os.path.samefile(name, target):
            raise Usage(f"{os.fspath(target)} is the input itself")
