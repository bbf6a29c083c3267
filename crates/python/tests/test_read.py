"""Reading: sources, selections, consumers of the Arrow interface, memory."""

import gc
import io
import os
import threading

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import pentaglot as pg

CSV = b"a,b\n1,x\n2,y\n3,\n"


@pytest.fixture
def table() -> pa.Table:
    return pa.table({"n": pa.array([1, None, 3], pa.int64()), "s": ["x", None, "z"], "f": [0.5, 1.5, 2.5]})


def test_every_source_gives_the_same_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(CSV)
    with open(path, "rb") as file:
        sources = [
            str(path),
            path,
            CSV,
            bytearray(CSV),
            memoryview(CSV),
            io.BytesIO(CSV),
            file,
            [str(path)],
        ]
        for source in sources:
            found = pg.read(source, format="csv")
            assert found.to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", None]}, source


def test_an_object_with_read_alone_is_a_stream():
    class Reader:
        def __init__(self):
            self.inner = io.BytesIO(CSV)

        def read(self, count):
            return self.inner.read(min(count, 3))

    assert pg.read(Reader(), format="csv").num_rows == 3


def test_what_a_file_object_raises_is_raised():
    class Broken(io.RawIOBase):
        def seekable(self):
            return True

        def seek(self, offset, whence=0):
            return 100

        def read(self, count=-1):
            raise ZeroDivisionError("from the file")

    with pytest.raises(ZeroDivisionError, match="from the file"):
        pg.read(Broken())
    with pytest.raises(TypeError, match="binary mode"):
        pg.read(io.StringIO("a,b\n"), format="csv")
    with pytest.raises(TypeError, match="expected a path"):
        pg.read(17)


def test_several_files_are_read_as_one(tmp_path):
    (tmp_path / "1.csv").write_bytes(b"a\n1\n")
    (tmp_path / "2.csv").write_bytes(b"a\n2\n")
    assert pg.read([tmp_path / "1.csv", tmp_path / "2.csv"]).to_pydict() == {"a": [1, 2]}
    assert pg.read(str(tmp_path / "*.csv")).num_rows == 2


def test_selections(tmp_path, table):
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    assert pg.read(path, columns=["f", "n"]).schema.names == ["f", "n"]
    assert pg.read(path, columns="f").to_pydict() == {"f": [0.5, 1.5, 2.5]}
    assert pg.read(path, start=1, stop=2).to_pydict()["f"] == [1.5]
    assert pg.read(path, rows=range(1, 3)).to_pydict()["f"] == [1.5, 2.5]
    assert pg.read(path, rows=slice(1, None)).num_rows == 2
    assert pg.read(path, where="f > 1").num_rows == 2
    assert pg.count(path) == 3
    assert pg.count(path, "f > 1") == 2
    with pytest.raises(pg.Usage, match="there is no column"):
        pg.read(path, columns=["no"])
    with pytest.raises(ValueError):
        pg.read(path, rows=range(0, 3, 2))
    with pytest.raises(ValueError):
        pg.read(path, start=-1)


def test_consumers_take_a_table_as_it_is(tmp_path, table):
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    ours = pg.read(path)
    assert pa.table(ours) == table
    assert ours.to_pyarrow() == table
    assert pl.DataFrame(ours).equals(pl.DataFrame(table))
    assert ours.to_polars().equals(pl.DataFrame(table))
    pd.testing.assert_frame_equal(ours.to_pandas(), table.to_pandas().astype({"n": "Int64"}))
    assert duckdb.sql("select sum(n), count(s) from ours").fetchall() == [(4, 2)]
    document = pg.open(path)
    assert duckdb.sql("select max(f) from document").fetchall() == [(2.5,)]
    assert pa.RecordBatchReader.from_stream(document.rows(["f"])).read_all().num_columns == 1
    assert pa.schema(document.schema) == table.schema


def test_documents(tmp_path, table):
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    document = pg.open(path)
    assert document.format == "parquet"
    assert document.num_rows == 3
    assert document.summary["rows"] == 3
    assert [batch.num_rows for batch in document.rows(batch_rows=2)] == [2, 1]
    rows = document.rows()
    assert sum(batch.num_rows for batch in rows) == 3
    with pytest.raises(pg.Usage, match="read already"):
        pa.RecordBatchReader.from_stream(rows)
    assert document.read(stop=0).num_rows == 0
    assert document.read().to_pydict() == document.read().to_pydict()
    text = repr(document)
    assert "parquet" in text and "0.5" in text and "struct{n: ?int64" in text
    assert "<table>" in document._repr_html_()
    assert "3 rows" in repr(document.read())


def test_matrices_become_arrays_without_a_copy(tmp_path):
    for dtype in ["<i4", "<f8", "<u2", "<f4"]:
        matrix = np.arange(12).reshape(3, 4).astype(dtype)
        np.save(tmp_path / "m.npy", matrix)
        table = pg.read(tmp_path / "m.npy")
        assert table.shape == (3, 4)
        found = table.to_numpy()
        assert found.dtype == matrix.dtype and np.array_equal(found, matrix)
        assert np.shares_memory(found, table.to_numpy())
        assert not found.flags.writeable
        assert np.array_equal(np.from_dlpack(table), matrix)
        assert np.array_equal(np.asarray(table), matrix)
    assert list(table.to_pandas().columns) == ["col_0", "col_1", "col_2", "col_3"]
    assert table.to_polars().shape == (3, 4)


def test_daphne_matrices(tmp_path):
    dense = np.random.default_rng(1).normal(size=(50, 7))
    pg.write(dense, tmp_path / "d.dbdf", dialect="daphne")
    assert np.array_equal(pg.read(tmp_path / "d.dbdf").to_numpy(), dense)
    sparse = scipy.sparse.random_array((40, 30), density=0.1, rng=np.random.default_rng(2), format="csr")
    pg.write(sparse, tmp_path / "s.dbdf")
    found = pg.read(tmp_path / "s.dbdf").to_scipy()
    assert (found != sparse).nnz == 0
    assert found.indices.dtype == sparse.indices.dtype
    assert "<svg" in pg.read(tmp_path / "s.dbdf")._repr_html_()


def test_csr_shares_values_and_indices(tmp_path):
    sparse = scipy.sparse.random_array((40, 30), density=0.1, rng=np.random.default_rng(2), format="csr")
    pg.write(sparse, tmp_path / "s.dbdf")
    table = pg.read(tmp_path / "s.dbdf")
    first, second = table.to_scipy(), table.to_scipy()
    assert np.shares_memory(first.data, second.data)
    assert np.shares_memory(first.indices, second.indices)
    part = table.slice(10, 20).to_scipy()
    assert (part != sparse[10:20]).nnz == 0


def test_buffers_outlive_the_file_and_the_document(tmp_path):
    path = tmp_path / "m.npy"
    matrix = np.random.default_rng(3).integers(0, 1 << 40, (1000, 100))
    np.save(path, matrix)
    document = pg.open(path)
    table = document.read()
    array, arrow = table.to_numpy(), table.to_pyarrow()
    os.unlink(path)
    del document, table
    gc.collect()
    # New memory would overwrite what was freed.
    noise = [np.full((1000, 100), 7) for _ in range(10)]
    assert np.array_equal(array, matrix)
    assert arrow.column(0)[999].as_py() == matrix[999].tolist()
    del noise


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is measured on Linux")
def test_nothing_leaks_over_many_reads(tmp_path, table):
    paths = [tmp_path / "t.parquet", tmp_path / "m.npy"]
    pq.write_table(table, paths[0])
    np.save(paths[1], np.zeros((100, 100)))

    def reads(count):
        for index in range(count):
            found = pg.read(paths[index % 2])
            found.to_numpy() if index % 2 else found.to_pyarrow()
            with pytest.raises(pg.Error):
                pg.read(b"\x93NUMPY", format="npy")

    reads(1000)
    gc.collect()
    before = resident()
    reads(9000)
    gc.collect()
    # The matrix alone takes 80 kB: a leak of one in a hundred of them would show.
    assert resident() - before < 4 << 20


def test_threads_share_a_document(tmp_path):
    np.save(tmp_path / "m.npy", np.arange(30000).reshape(3000, 10))
    document, found = pg.open(tmp_path / "m.npy"), []

    def work(start):
        rows = document.read(start=start, stop=start + 100).to_numpy()
        found.append(int(rows[0, 0]) == start * 10)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 2000, 100)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 20 and all(found)


def test_a_child_process_reads_after_fork(tmp_path):
    np.save(tmp_path / "m.npy", np.arange(10))
    document = pg.open(tmp_path / "m.npy")
    assert document.read().num_rows == 10
    child = os.fork()
    if child == 0:
        ok = pg.open(tmp_path / "m.npy").read().num_rows == 10 and document.read().num_rows == 10
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_polars_scans_push_down(tmp_path):
    frame = pl.DataFrame({"a": range(1000), "b": [str(n) for n in range(1000)], "c": [n / 2 for n in range(1000)]})
    frame.write_parquet(tmp_path / "t.parquet")
    lazy = pg.scan(tmp_path / "t.parquet")
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(frame)
    assert lazy.select("c").head(3).collect().equals(frame.select("c").head(3))
    assert lazy.filter(pl.col("a") > 990).select("b").collect().equals(frame.filter(pl.col("a") > 990).select("b"))
    assert lazy.slice(10, 5).collect().equals(frame.slice(10, 5))
    assert pg.scan(tmp_path / "t.parquet", start=10, stop=12).collect().equals(frame[10:12])
    assert pg.scan(tmp_path / "t.parquet", "pyarrow").to_table().num_rows == 1000
    assert pg.scan(tmp_path / "t.parquet", "duckdb").aggregate("sum(a)").fetchall() == [(499500,)]


def test_scans_of_matrices(tmp_path):
    np.save(tmp_path / "m.npy", np.arange(12).reshape(3, 4))
    assert pg.scan(tmp_path / "m.npy").select("col_2").head(2).collect().to_dict(as_series=False) == {"col_2": [2, 6]}


def test_tables_from_the_repository(data):
    for name in ["ints_nulls", "factors", "list_struct_list"]:
        ours = pg.read(data / "bsondf" / f"{name}.bson").to_pyarrow()
        with pa.ipc.open_file(data / "bsondf" / f"{name}.arrow") as expected:
            assert ours.to_pylist() == expected.read_all().to_pylist(), name
