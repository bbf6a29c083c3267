"""Arguments that several functions share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Protocol, TypeAlias, Union, runtime_checkable

#: A path, several paths that are read as one, bytes, a buffer, or a file object that is open in binary mode.
Source: TypeAlias = Union[
    str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], bytes, bytearray, memoryview, BinaryIO
]

#: A path, or a file object that is open in binary mode.
Target: TypeAlias = Union[str, "os.PathLike[str]", BinaryIO]

#: Options of formats: ``{"delimiter": ";"}``.
Options: TypeAlias = Mapping[str, Union[str, int, float, bool]]

#: What a file may cost: ``{"max_alloc": 1 << 30}``.
Limits: TypeAlias = Mapping[str, int]

#: ``True``, or the kinds of loss that are allowed: ``"precision,range"``, ``["names"]``.
AllowLossy: TypeAlias = Union[bool, str, Iterable[str]]


#: New types or names of columns: ``{"price": "float32"}``.
Changes: TypeAlias = Mapping[str, str]


@runtime_checkable
class Bar(Protocol):
    """A progress bar such as tqdm's."""

    n: Any
    total: Any

    def update(self, n: Any = 1, /) -> Any: ...


#: Called with the bytes read and the bytes in all (``None`` if unknown), or a progress bar such as tqdm's.
Progress: TypeAlias = Union[Callable[[int, Union[int, None]], object], Bar]

END = 2**64 - 1


def settings(
    format: str | None,
    type: str | None,
    options: Options | None,
    limits: Limits | None,
    threads: int,
) -> dict[str, Any]:
    """How a file is opened, as the native part takes it."""
    found: dict[str, Any] = {"format": format, "type": type, "threads": threads}
    if options:
        found["options"] = dict(options)
    for name, value in (limits or {}).items():
        found[name] = value
    return found


def wanted(
    columns: Sequence[str] | str | None,
    start: int,
    stop: int | None,
    filter: str | None,
    batch_rows: int = 0,
    form: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Which rows are wanted, as the native part takes it."""
    if start < 0 or (stop is not None and stop < 0):
        raise ValueError("expected start and stop of at least 0")
    return {
        "columns": [columns] if isinstance(columns, str) else None if columns is None else list(columns),
        "start": start,
        "stop": END if stop is None else stop,
        "filter": filter,
        "batch_rows": batch_rows,
        "form": form,
        "progress": callback(progress),
    }


def rows_of(rows: range | slice | None, start: int, stop: int | None) -> tuple[int, int | None]:
    """``rows=range(10, 20)`` or ``rows=slice(10, 20)`` in the place of ``start`` and ``stop``."""
    if rows is None:
        return start, stop
    if start or stop is not None:
        raise ValueError("rows is given, and so are start or stop")
    if rows.step not in (None, 1):
        raise ValueError("expected rows in steps of 1")
    return rows.start or 0, rows.stop


def allowed(kinds: AllowLossy) -> str:
    """The kinds of loss that are allowed, as the native part takes them."""
    if isinstance(kinds, bool):
        return "all" if kinds else ""
    return kinds if isinstance(kinds, str) else ",".join(kinds)


def callback(progress: Progress | None) -> Callable[[int, int | None], object] | None:
    """A callable of any kind of progress."""
    if progress is None:
        return None
    if not isinstance(progress, Bar):
        return progress
    bar = progress

    def update(done: int, total: int | None) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return update
