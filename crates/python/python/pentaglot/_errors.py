"""What can go wrong. A file that is not there is a ``FileNotFoundError``, as everywhere in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pentaglot._convert import Plan


class Error(Exception):
    """An error of this package.

    >>> import pentaglot as pg
    >>> try:
    ...     pg.read(b"\\x93NUMPY", format="npy")
    ... except pg.Error as error:
    ...     error.kind, error.format
    ('truncated', 'npy')
    """

    #: Who is to blame: truncated, malformed, unsupported, limit, lossy, usage or cancelled.
    kind: str = "error"
    #: A stable word for the broken rule.
    rule: str | None = None
    #: The id of the format.
    format: str | None = None
    #: The byte of the faulty place.
    offset: int | None = None
    #: The place by name, such as ``block[0].value_type``.
    path: str | None = None
    #: What would help.
    hint: str | None = None
    #: The file.
    file: str | None = None
    #: The plan that is refused.
    plan: Plan | None = None


class Truncated(Error):
    """The file ends before its content does."""

    kind = "truncated"


class Malformed(Error):
    """The file breaks a rule of its format."""

    kind = "malformed"


class Unsupported(Error):
    """The file or the request is sound, but cannot be handled here; also an impossible conversion."""

    kind = "unsupported"


class LimitReached(Error):
    """A limit was reached; the message names it."""

    kind = "limit"


class Lossy(Error, ValueError):
    """The target cannot represent a value, and the loss is not allowed."""

    kind = "lossy"


class Usage(Error, ValueError):
    """The arguments contradict each other or name something that is not there."""

    kind = "usage"
