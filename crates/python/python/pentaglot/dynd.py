"""DyND values: one byte string per value.

>>> from pentaglot import dynd
>>> data = dynd.serialize([{"x": 1, "y": "a"}], "var * {x: int32, y: string}")
>>> data
b'\\x01\\x01\\x00\\x00\\x00\\x01a'
>>> dynd.deserialize(data, "var * {x: int32, y: string}")
[{'x': 1, 'y': 'a'}]

Numbers, text and bytes are Python's own; lists are dimensions, tuples and dicts are tuples and structs; ``None`` is a
missing value (and a value that may be ``None`` itself comes in a tuple of one); a date is a number of days, a time a
number of ticks of 100 ns; ``float128`` is 16 bytes; ``array[T]`` is a pair of a type and a value.

``serialize`` takes more: ``datetime.date``, ``time`` and ``datetime`` (aware ones for a type with a time zone, naive ones for
others), and the text of a type in its place. A number that the type does not hold exactly is a :class:`pentaglot.Lossy`.
"""

from __future__ import annotations

from typing import Any

from pentaglot import _native
from pentaglot._native import DyndType as Type

__all__ = ["Type", "deserialize", "serialize"]


def serialize(value: Any, type: str | Type) -> bytes:
    """The one serialization of a value of a type.

    >>> serialize([1, None], "2 * ?int16").hex()
    '01000080'
    """
    return _native.dynd_serialize(value, Type(type) if isinstance(type, str) else type)


def deserialize(data: bytes | bytearray | memoryview, type: str | Type) -> Any:
    """The value of its one serialization; other bytes are an error.

    >>> deserialize(b"\\x01\\x02", "(int8, int8)")
    (1, 2)
    """
    return _native.dynd_deserialize(data, Type(type) if isinstance(type, str) else type)
