"""The store: what is put in comes out, in every format, and damage is found."""

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import pentaglot as pg
from pentaglot.store import Store


def table(rows: int = 2000) -> pa.Table:
    random = np.random.default_rng(5)
    return pa.table(
        {
            "id": np.arange(rows),
            "x": random.random(rows),
            "s": pa.array([None if value == 3 else f"t{value}" for value in random.integers(0, 9, rows)]),
        }
    )


def test_every_format_has_one_name_and_comes_back(tmp_path):
    store = Store(tmp_path / "data.store")
    found = set()
    for extension in ["parquet", "arrow", "ds", "dynd", "bson", "jsonl"]:
        path = tmp_path / f"x.{extension}"
        pg.write(table(), path)
        found.add(store.put(path, name=extension).identity)
        store.get("bafkr4i", tmp_path / f"again.{extension}")
        assert not pg.diff(path, tmp_path / f"again.{extension}")
        if extension in ("ds", "dynd", "bson", "jsonl"):
            assert path.read_bytes() == (tmp_path / f"again.{extension}").read_bytes()
    assert found == {str(pg.identity(path))}
    assert [entry.name for entry in store.list()] == ["jsonl"]
    assert store.verify()


def test_data_in_memory_is_stored(tmp_path):
    store = Store(tmp_path / "data.store")
    assert store.put(table(), name="table").rows == 2000
    assert pa.table(store.open("table").read()).equals(table())
    store.put(np.arange(12.0).reshape(3, 4), name="dense")
    sparse = scipy.sparse.random(50, 60, 0.1, "csr", random_state=1)
    first = store.put(sparse, name="sparse")
    assert [entry.shape for entry in store.list()] == ["table", "matrix", "matrix"]
    store.get("sparse", tmp_path / "sparse.npz")
    assert (scipy.sparse.load_npz(tmp_path / "sparse.npz") != sparse).nnz == 0
    assert store.put(sparse.toarray()).identity == first.identity


def test_versions_share_and_are_freed(tmp_path):
    store = Store(tmp_path / "data.store")
    first = store.put(table(50_000), name="first")
    second = store.put(pa.concat_tables([table(50_000), table(100)]), name="second")
    assert second.new_bytes * 4 < first.new_bytes
    assert store.remove("first") == first.identity
    done = store.collect()
    assert done.bytes_after <= done.bytes_before
    assert store.verify()
    assert store.open("second").num_rows == 50_100
    store.remove("second")
    assert store.collect().bytes_after == 0


def test_damage_is_found_and_refused(tmp_path):
    store = Store(tmp_path / "data.store")
    store.put(table(), name="x")
    pack = next((tmp_path / "data.store" / "packs").iterdir())
    data = bytearray(pack.read_bytes())
    data[500] ^= 1
    pack.write_bytes(data)
    found = store.verify()
    assert not found.valid and found.findings[0]["path"] == f"packs/{pack.name}"
    with pytest.raises(pg.Malformed, match="expected the chunk"):
        store.open("x").read()


def test_what_is_not_there_is_an_error(tmp_path):
    with pytest.raises(pg.Usage, match="is not a store"):
        Store(tmp_path, create=False)
    with pytest.raises(pg.Usage, match="is named 'nothing'|is named \"nothing\""):
        Store(tmp_path / "data.store").open("nothing")


def test_the_environment_names_the_store(tmp_path, monkeypatch):
    monkeypatch.delenv("PENTAGLOT_STORE", raising=False)
    with pytest.raises(pg.Usage, match="PENTAGLOT_STORE"):
        Store()
    monkeypatch.setenv("PENTAGLOT_STORE", str(tmp_path / "s"))
    identity = Store().put(b"a\n1\n", format="csv").identity
    assert Store(tmp_path / "s", create=False).list()[0].identity == identity
