"""Arrays of NumPy: types, masks, copies."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import pentaglot as pg


def through(array, path):
    pg.write(array, path, force=True)
    return pg.read(path)


NESTED = np.dtype([("a", "<i4"), ("n", [("x", "<i2"), ("y", "<f4"), ("s", "<U2")])])
ALIGNED = np.dtype([("a", "i1"), ("b", "<f8")], align=True)


@pytest.mark.parametrize("extension", ["npy", "parquet", "arrow"])
@pytest.mark.parametrize(
    "array",
    [
        np.array(["a", "bcd", ""]),
        np.array([b"a", b"bcd"]),
        np.array(["a"], dtype="U7"),
        np.array("abc"),
        np.array([1, 2], dtype="M8[h]"),
        np.array([[1 + 2j, 3], [4, 5j]]),
        np.array([[1 + 2j, 3], [4, 5j]], dtype="c8", order="F"),
        np.array([(1, (2, 3.5, "x")), (4, (5, 6, "yz"))], dtype=NESTED),
        np.array([(1, 2.5), (3, 4.5)], dtype=ALIGNED),
        np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "<i4"), ("b", "<f8")]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_types_come_back(tmp_path, array, extension):
    found = through(array, tmp_path / f"a.{extension}").to_numpy()
    assert found.dtype == array.dtype and found.shape == array.shape
    assert np.array_equal(found, array)


def test_members_of_npz_have_their_types(tmp_path):
    np.savez(tmp_path / "z.npz", text=np.array(["a", "bcd"]), big=np.arange(3, dtype=">i4"))
    for name in ("text", "big"):
        found = pg.read(tmp_path / "z.npz", member=name).to_numpy()
        with np.load(tmp_path / "z.npz") as stored:
            assert found.dtype == stored[name].dtype and np.array_equal(found, stored[name])


def test_byte_order_is_that_of_the_file(tmp_path):
    array = np.array([[1.5, 2], [3, 4]], dtype=">f8")
    np.save(tmp_path / "b.npy", array)
    found = pg.read(tmp_path / "b.npy").to_numpy()
    assert found.dtype == array.dtype and np.array_equal(found, array)
    # Values that the type does not hold stay as they are.
    table = pg.read(tmp_path / "b.npy", columns=["col_1"])
    assert np.array_equal(table.to_numpy().ravel(), array[:, 1])


def test_complex_numbers_of_a_sparse_matrix(tmp_path):
    array = np.array([[0, 1 + 2j], [3, 0]])
    for extension in ("npz", "parquet", "arrow"):
        found = through(scipy.sparse.csr_array(array), tmp_path / f"s.{extension}").to_numpy()
        assert found.dtype == array.dtype and np.array_equal(found, array)


def test_texts_of_a_matrix(tmp_path):
    array = np.array([["a", "bc"], ["d", "e"]])
    found = through(array, tmp_path / "t.npy").to_numpy()
    assert found.dtype == array.dtype and np.array_equal(found, array)
    found = through(array, tmp_path / "t.parquet").to_numpy()
    assert found.shape == (2, 2) and np.array_equal(found, array)


@pytest.mark.parametrize("extension", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "array",
    [
        np.ma.array([1, 2**60 + 1, 3], mask=[1, 0, 0]),
        np.ma.array([True, False], mask=[0, 1]),
        np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]], dtype="i2"),
        np.ma.array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]).T,
    ],
)
def test_masks_are_kept(tmp_path, array, extension):
    found = through(array, tmp_path / f"m.{extension}").to_numpy()
    assert isinstance(found, np.ma.MaskedArray) and found.dtype == array.dtype
    assert np.array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(array))
    assert np.array_equal(found.compressed(), array.compressed())


def test_masked_floats_texts_and_complex_numbers_are_missing(tmp_path):
    for extension in ("parquet", "arrow"):
        path = tmp_path / f"m.{extension}"
        floats = through(np.ma.array([[1.0, 2], [3, 4]], mask=[[0, 1], [0, 0]]), path)
        assert np.array_equal(floats.to_numpy(), [[1, np.nan], [3, 4]], equal_nan=True)
        numbers = through(np.ma.array([[1 + 1j, 2]], mask=[[0, 1]]), path).to_numpy()
        assert numbers.dtype == np.complex128 and numbers[0, 0] == 1 + 1j and np.isnan(numbers[0, 1])
        assert through(np.ma.array(["a", "b"], mask=[0, 1]), path).to_numpy().tolist() == ["a", None]


def test_a_mask_is_never_lost(tmp_path):
    masked = np.ma.array([1, 2], mask=[0, 1])
    with pytest.raises(pg.Lossy, match="no null"):
        pg.write(masked, tmp_path / "m.npy")
    with pytest.raises(TypeError, match="3 dimensions"):
        pg.write(np.ma.array(np.zeros((1, 2, 1)), mask=[[[0], [1]]]), tmp_path / "m.npy")
    records = np.ma.array([(1, 2)], mask=[(0, 1)], dtype=[("a", "i4"), ("b", "i4")])
    with pytest.raises(TypeError, match="structured"):
        pg.write(records, tmp_path / "m.npy")
    pg.write(np.ma.array(np.zeros((1, 2, 1))), tmp_path / "m.npy")
    assert not isinstance(pg.read(tmp_path / "m.npy").to_numpy(), np.ma.MaskedArray)
    store = pg.store.Store(tmp_path / "store")
    assert store.open(store.put(masked).identity).read().to_pydict() == {"item": [1, None]}


def test_missing_integers_of_a_table():
    table = pg.Table(pa.table({"a": [2**60 + 1, None], "b": [0.5, None], "t": pa.array([None, 1], pa.timestamp("s"))}))
    found = table.to_numpy()
    assert isinstance(found, np.ma.MaskedArray) and found.dtype["a"] == np.int64
    assert found["a"].tolist() == [2**60 + 1, None]
    assert np.isnan(found.data["b"][1]) and np.isnat(found.data["t"][0])
    # Those who ask for a plain array get no wrong numbers.
    assert np.asarray(table)["a"].tolist() == [2**60 + 1, None]


def test_copies(tmp_path):
    np.save(tmp_path / "m.npy", np.eye(3))
    np.save(tmp_path / "b.npy", np.eye(3, dtype=bool))
    table = pg.read(tmp_path / "m.npy")
    assert np.shares_memory(np.array(table, copy=False), table.to_numpy())
    assert np.asarray(table, dtype="f4").dtype == np.float32
    assert np.array(table, copy=True).flags.writeable
    for other, dtype in [(table, "f4"), (pg.read(tmp_path / "b.npy"), None), (pg.Table(pa.table({"a": [1]})), None)]:
        with pytest.raises(ValueError, match="copy=False"):
            np.array(other, dtype=dtype, copy=False)
