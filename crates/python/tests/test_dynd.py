"""DyND values."""

import math

import numpy as np
import pytest

import pentaglot as pg
from pentaglot import dynd

PAIRS = [
    ("bool", True),
    ("int8", -5),
    ("int128", -(2**120)),
    ("uint128", 2**127 + 5),
    ("float16", 1.5),
    ("float32", -2.25),
    ("float64", math.pi),
    ("float128", bytes(range(16))),
    ("complex[float64]", 1 - 2j),
    ("complex[float128]", (bytes(16), bytes(range(16)))),
    ("string", "äöü"),
    ("json", '{"a": 1}'),
    ("char", "é"),
    ("fixed_string[4]", "ab"),
    ("bytes", b"\x00\xff"),
    ("bytes[2]", b"ab"),
    ("void", None),
    ("date", 19000),
    ("datetime", 123456789),
    ("type", dynd.Type("3 * int32")),
    ("var * ?int16", [1, None, 3]),
    ("2 * 3 * uint8", [[1, 2, 3], [4, 5, 6]]),
    ("(int32, string)", (7, "x")),
    ("{x: int32, y: ?string}", {"x": 1, "y": None}),
    ("var * ?pointer[?int8]", [None, (None,), (5,)]),
    ("array[Any]", (dynd.Type("2 * int8"), [1, 2])),
    ("merkle[Any]", (dynd.Type("int8"), b"\x00\x01\x05")),
]


@pytest.mark.parametrize("type,value", PAIRS)
def test_values_come_back(type, value):
    data = dynd.serialize(value, type)
    assert dynd.deserialize(data, type) == value
    assert dynd.serialize(value, dynd.Type(type)) == data


def test_arrays_of_numpy():
    data = dynd.serialize(np.arange(3, dtype="i4"), "3 * int32")
    assert data == np.arange(3, dtype="<i4").tobytes()


def test_types():
    assert str(dynd.Type("3*{x : int, 'y': option[real]}")) == "3 * {x: int32, y: ?float64}"
    assert dynd.Type("3 * int32").fixed_size == 12
    assert dynd.Type("var * int32").fixed_size is None
    assert not dynd.Type("Fixed * T").is_concrete
    assert dynd.Type("Fixed * int32").matches(dynd.Type("3 * int32"))
    assert dynd.Type("int32") == dynd.Type("int32") != dynd.Type("int64")
    assert len({dynd.Type("int32"), dynd.Type("int32")}) == 1
    assert repr(dynd.Type("int32")) == 'Type("int32")'


def test_values_that_do_not_fit():
    for value, type in [(300, "int8"), (0.1, "float32"), ([1], "2 * int8"), ("ab", "char"), ({"y": 1}, "{x: int8}")]:
        with pytest.raises((pg.Error, ValueError, OverflowError)):
            dynd.serialize(value, type)
    with pytest.raises(TypeError):
        dynd.serialize("ab", "var * int8")
    with pytest.raises(pg.Error):
        dynd.deserialize(b"\x01", "int32")
    with pytest.raises(pg.Error):
        dynd.serialize(1, "Any")
