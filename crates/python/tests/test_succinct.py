"""Succinct structures against plain NumPy."""

import io

import numpy as np
import pytest

import pentaglot as pg
from pentaglot import succinct

RNG = np.random.default_rng(11)
UNIVERSE = 5000
POSITIONS = np.unique(RNG.integers(0, UNIVERSE, 700))
BITS = np.zeros(UNIVERSE, dtype=np.int64)
BITS[POSITIONS] = 1


@pytest.mark.parametrize("kind", [succinct.BitVector, succinct.SparseVector, succinct.RunLengthVector])
def test_bits(kind, tmp_path):
    path = tmp_path / "bits.sds"
    built = kind(POSITIONS, universe=UNIVERSE)
    built.save(path)
    name = {"BitVector": "bit", "SparseVector": "sparse", "RunLengthVector": "rl"}[kind.__name__]
    opened = [succinct.open(path, name), succinct.open(path, name, mmap=True), succinct.open(path.read_bytes(), name)]
    for bits in [built, *opened]:
        assert type(bits) is kind
        assert (len(bits), bits.universe, bits.ones) == (UNIVERSE, UNIVERSE, len(POSITIONS))
        every = np.arange(UNIVERSE)
        ranks = np.concatenate([[0], np.cumsum(BITS)])
        assert np.array_equal(bits.get(every), BITS)
        assert np.array_equal(bits.rank(np.arange(UNIVERSE + 1)), ranks)
        assert np.array_equal(bits.rank0(every), every - ranks[:-1])
        assert np.array_equal(bits.select(np.arange(len(POSITIONS))), POSITIONS)
        assert np.array_equal(bits.select0(np.arange(5)), np.flatnonzero(BITS == 0)[:5])
        assert bits.select(np.array([0, len(POSITIONS)])).tolist() == [POSITIONS[0], -1]
        assert np.array_equal(bits.successor(POSITIONS), POSITIONS)
        assert np.array_equal(bits.predecessor(POSITIONS), POSITIONS)
        assert bits.select(len(POSITIONS)) is None
        assert bits.rank(UNIVERSE) == len(POSITIONS)
        assert bits.rank(np.zeros(0)).tolist() == []
    assert "700" not in repr(built) and str(UNIVERSE) in repr(built)


def test_a_multiset_and_its_file():
    bits = succinct.SparseVector([3, 3, 8])
    assert bits.universe == 9 and bits.ones == 3
    assert bits.select([0, 1, 2]).tolist() == [3, 3, 8]
    out = io.BytesIO()
    bits.save(out, supports="lean")
    assert pg.read(out.getvalue(), format="sds:sparse").to_numpy().tolist() == [3, 3, 8]


def test_integers(tmp_path):
    values = RNG.integers(0, 1000, 500)
    vector = succinct.IntVector(values)
    assert vector.width == 10 and len(vector) == 500
    assert np.array_equal(vector.get(np.arange(500)), values)
    assert np.array_equal(vector.to_numpy(), values)
    assert vector.get(500) is None
    assert succinct.IntVector([1, 2], width=33).width == 33
    with pytest.raises(pg.Usage, match="more than 3 bits"):
        succinct.IntVector([8], width=3)
    vector.save(tmp_path / "v.sds")
    assert pg.read(tmp_path / "v.sds", format="sds:int").to_numpy().tolist() == values.tolist()


@pytest.mark.parametrize("kind", [succinct.WaveletMatrix, succinct.RunLengthWaveletMatrix])
def test_wavelet_matrices(kind, tmp_path):
    values = np.repeat(RNG.integers(0, 20, 100), 5)
    matrix = kind(values)
    matrix.save(tmp_path / "w.sds")
    opened = succinct.open(tmp_path / "w.sds", {"WaveletMatrix": "wm"}.get(kind.__name__, "rlwm"))
    for matrix in [matrix, opened]:
        assert type(matrix) is kind
        assert np.array_equal(matrix.get(np.arange(500)), values)
        assert np.array_equal(matrix.to_numpy(), values)
        assert matrix.rank(500, 7) == int((values == 7).sum())
        places = np.flatnonzero(values == 7)
        assert np.array_equal(matrix.select(np.arange(len(places)), 7), places)
        assert matrix.select(len(places), 7) is None
        assert matrix.successor(0, 7) == places[0]
        assert matrix.predecessor(499, 7) == places[-1]


def test_bad_questions():
    bits = succinct.BitVector([1, 2])
    with pytest.raises(ValueError, match="at least 0"):
        bits.rank([-1])
    with pytest.raises(TypeError, match="integers"):
        bits.rank([0.5])
    with pytest.raises(ValueError, match="one dimension"):
        bits.rank(np.zeros((2, 2), dtype=int))
    with pytest.raises(pg.Error):
        succinct.BitVector([5, 3])
    with pytest.raises(pg.Error):
        succinct.BitVector([5], universe=3)
    with pytest.raises(pg.Usage, match="supports"):
        bits.save(io.BytesIO(), supports="none")
    with pytest.raises(FileNotFoundError):
        succinct.open("no-such.sds")


def test_values_past_63_bits():
    vector = succinct.IntVector([1, 2**64 - 1, 2**63])
    assert vector.get(1) == 2**64 - 1 and vector.get(3) is None
    found = vector.get([0, 1, 2])
    assert found.dtype == np.uint64 and found.tolist() == [1, 2**64 - 1, 2**63]
    found = vector.get([0, 3])
    assert found.dtype == np.int64 and found.tolist() == [1, -1]
    with pytest.raises(pg.Usage, match="past the end"):
        vector.get([1, 3])
    for numbers in ([-1, 2**64 - 1], [2**64]):
        with pytest.raises(ValueError, match="from 0 to"):
            succinct.IntVector(numbers)


@pytest.mark.parametrize("kind", [succinct.WaveletMatrix, succinct.RunLengthWaveletMatrix])
def test_inverse_select(kind):
    values = RNG.integers(0, 20, 10_000)
    matrix = kind(values)
    ranks, found = matrix.inverse_select(np.arange(10_001))
    assert np.array_equal(found, [*values, -1]) and ranks[-1] == -1
    assert np.array_equal(matrix.select(ranks[:-1], values), np.arange(10_000))
    assert matrix.inverse_select(7) == (ranks[7], values[7])
    assert matrix.inverse_select(10_000) is None


def test_an_array_without_dimensions_is_one_number():
    bits = succinct.BitVector([1, 4, 5], universe=10)
    assert bits.rank(np.array(5)) == bits.rank(np.int8(5)) == bits.rank(5) == 2
    matrix = succinct.WaveletMatrix([3, 1, 3])
    assert matrix.rank(np.array(3), 3) == 2
    assert matrix.rank(np.array(3), [3, 1]).tolist() == [2, 1]
