"""DyND values."""

import datetime
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


UTC = datetime.timezone.utc
TIMES = [
    ("date", datetime.date(2020, 1, 1), 18262),
    ("date", datetime.date(1969, 12, 31), -1),
    ("time", datetime.time(1, 2, 3, 4), 37230000040),
    ("time[tz='UTC']", datetime.time(1, tzinfo=UTC), 36000000000),
    ("datetime", datetime.datetime(1970, 1, 2, 0, 0, 0, 1), 864000000010),
    ("datetime[tz='UTC']", datetime.datetime(1970, 1, 2, tzinfo=UTC), 864000000000),
    (
        "datetime[tz='UTC']",
        datetime.datetime(1970, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        828000000000,
    ),
]


@pytest.mark.parametrize("type,value,number", TIMES)
def test_times_of_python_are_taken(type, value, number):
    data = dynd.serialize(value, type)
    assert data == dynd.serialize(number, type)
    assert dynd.deserialize(data, type) == number
    assert dynd.serialize([value], f"var * ?{type}") == dynd.serialize([number], f"var * ?{type}")


def test_times_must_be_of_the_kind_of_their_type():
    naive, aware = datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="without a time zone"):
        dynd.serialize(aware, "datetime")
    with pytest.raises(ValueError, match="with a time zone"):
        dynd.serialize(naive, "datetime[tz='UTC']")
    with pytest.raises(TypeError, match="expected a date"):
        dynd.serialize(naive, "date")
    east = datetime.timezone(datetime.timedelta(hours=1))
    with pytest.raises(ValueError, match="in UTC"):
        dynd.serialize(datetime.time(1, tzinfo=east), "time[tz='UTC']")


def test_types_may_be_text():
    for type, text, value in [
        ("type", "3 * int32", dynd.Type("3 * int32")),
        ("array[Any]", ("2 * int8", [1, 2]), (dynd.Type("2 * int8"), [1, 2])),
        ("merkle[Any]", ("int8", b"\x00\x01\x05"), (dynd.Type("int8"), b"\x00\x01\x05")),
    ]:
        assert dynd.serialize(text, type) == dynd.serialize(value, type)
    with pytest.raises(TypeError, match="a Type or its text"):
        dynd.serialize(5, "type")


def test_bytes_may_be_in_any_buffer():
    data = dynd.serialize([1, 2], "var * int32")
    for buffer in (bytearray(data), memoryview(data), memoryview(data + b"x")[:-1]):
        assert dynd.deserialize(buffer, "var * int32") == [1, 2]
    with pytest.raises(TypeError):
        dynd.deserialize("text", "int8")


@pytest.mark.parametrize(
    "value,type,text",
    [
        (300, "int8", "300 is out of the range of int8"),
        (-129, "int8", "-129 is out of the range of int8"),
        (-1, "uint8", "-1 is out of the range of uint8"),
        (256, "uint8", "256 is out of the range of uint8"),
        (2**127, "int128", "is out of the range of int128"),
        (2**128, "uint128", "is out of the range of uint128"),
        pytest.param(10**5000, "int64", "a very large number is out of the range of int64", id="5001 digits"),
        (2**31, "date", "is out of the range of date"),
        (2**53 + 1, "float64", "9007199254740993 is not exactly a number of float64"),
        (2**2000, "float64", "is out of the range of float64"),
        (0.1, "float32", "0.1 is not exactly a number of float32"),
        (2**24 + 1, "float32", "16777217 is not exactly a number of float32"),
        (0.1 + 1j, "complex[float32]", "is not exactly a number of"),
        (2**53 + 1, "complex[float64]", "is not exactly a number of"),
    ],
)
def test_numbers_that_the_type_does_not_hold(value, type, text):
    with pytest.raises(pg.Lossy) as refused:
        dynd.serialize(value, type)
    assert text in str(refused.value) and isinstance(refused.value, ValueError)
    assert refused.value.kind == "lossy"


def test_numbers_at_the_ends_of_their_range():
    for bits in (8, 16, 32, 64, 128):
        for type, ends in [(f"int{bits}", (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)), (f"uint{bits}", (0, 2**bits - 1))]:
            for value in ends:
                assert dynd.deserialize(dynd.serialize(value, type), type) == value
    assert dynd.deserialize(dynd.serialize(2**53, "float64"), "float64") == 2.0**53
    assert math.isnan(dynd.deserialize(dynd.serialize(math.nan, "float32"), "float32"))
