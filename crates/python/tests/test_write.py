"""Writing: what goes in, plans, errors, round trips."""

import datetime
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import pentaglot as pg

FRAME = pa.table({"n": [1, 2, 3], "s": ["x", "y", "z"]})


def test_everything_that_speaks_arrow_is_written(tmp_path):
    for index, data in enumerate(
        [
            FRAME,
            FRAME.to_batches()[0],
            FRAME.to_reader(),
            FRAME.to_pandas(),
            pl.DataFrame(FRAME),
            pg.Table(FRAME),
            pg.read(_ipc(FRAME)),
            pg.open(_ipc(FRAME)),
            pg.open(_ipc(FRAME)).rows(),
        ]
    ):
        path = tmp_path / f"{index}.bson"
        report = pg.write(data, path)
        assert report.rows == 3 and report.bytes == path.stat().st_size
        assert pg.read(path).to_pydict() == FRAME.to_pydict()
    with pytest.raises(TypeError, match="expected Arrow data"):
        pg.write(object(), tmp_path / "no.bson")


def _ipc(table):
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_outputs(tmp_path):
    path = tmp_path / "t.csv"
    pg.write(FRAME, path)
    with pytest.raises(pg.Usage, match="force=True"):
        pg.write(FRAME, path)
    pg.write(FRAME.slice(1), path, force=True)
    assert pg.count(path) == 2
    with open(tmp_path / "o.csv", "wb") as file:
        pg.write(FRAME, file, format="csv")
    assert (tmp_path / "o.csv").read_bytes().count(b"\n") == 4
    pg.write(FRAME, str(tmp_path / "z.csv.gz"))
    assert (tmp_path / "z.csv.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert pg.count(tmp_path / "z.csv.gz") == 3
    with pytest.raises(pg.Usage, match="format=... names one"):
        pg.write(FRAME, tmp_path / "t.unknown")
    with pytest.raises(pg.Usage, match="input itself"):
        pg.convert(path, path, force=True)


def test_what_an_output_raises_is_raised():
    class Full(io.RawIOBase):
        def write(self, data):
            raise ZeroDivisionError("full")

    with pytest.raises(ZeroDivisionError, match="full"):
        pg.write(FRAME, Full(), format="csv")


def test_conversions(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,x\n2,y\n")
    told = []
    report = pg.convert(path, tmp_path / "b.parquet", progress=lambda done, total: told.append((done, total)))
    assert report.rows == 2 and told
    assert pg.read(tmp_path / "b.parquet").to_pydict() == {"a": [1, 2], "b": ["x", "y"]}
    pg.convert(path, tmp_path / "c.jsonl", columns=["b"], start=1, options={"in.header": True})
    assert (tmp_path / "c.jsonl").read_bytes() == b'{"b":"y"}\n'
    pg.convert(pg.open(path), tmp_path / "d.jsonl", where="a > 1")
    assert pg.count(tmp_path / "d.jsonl") == 1


def test_plans_are_shown_and_refused(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a": [1, 2], "b": 1}\n')
    plan = pg.plan(path, tmp_path / "t.dbdf")
    assert plan.verdict == "impossible"
    assert {step.field for step in plan} >= {"a"}
    with pytest.raises(pg.Unsupported) as refused:
        pg.convert(path, tmp_path / "t.dbdf")
    assert refused.value.plan is not None and refused.value.plan.verdict == "impossible"
    assert not (tmp_path / "t.dbdf").exists()


def test_a_loss_must_be_allowed(tmp_path):
    table = pa.table({"t": pa.array([1], pa.timestamp("us", "Europe/Berlin"))})
    with pytest.raises(pg.Lossy, match="allow_lossy=True") as refused:
        pg.write(table, tmp_path / "t.dynd")
    assert refused.value.plan.verdict == "lossy"
    report = pg.write(table, tmp_path / "t.dynd", allow_lossy=True)
    assert [loss["kind"] for loss in report.lost] == ["timezone"]
    pg.write(table, tmp_path / "u.dynd", allow_lossy=["timezone"])


def test_errors(tmp_path, data):
    with pytest.raises(FileNotFoundError) as missing:
        pg.read(tmp_path / "no.csv")
    assert missing.value.filename.endswith("no.csv")
    with pytest.raises(pg.Truncated) as truncated:
        pg.read(b"\x93NUMPY", format="npy")
    error = truncated.value
    assert (error.kind, error.format, error.file) == ("truncated", "npy", "bytes")
    assert isinstance(error.offset, int)
    np.save(tmp_path / "m.npy", np.zeros((1000, 1000)))
    with pytest.raises(pg.LimitReached, match='limits={"max_alloc"'):
        pg.read(tmp_path / "m.npy", limits={"max_alloc": 1000})
    with pytest.raises(TypeError, match="unknown setting"):
        pg.read(b"", limits={"max_nothing": 1})
    for name in ["block_truncated", "bson_len_over", "lz4_far_offset", "missing_t", "unknown_type"]:
        path = data / "bsondf" / "bad" / f"{name}.bson"
        assert not pg.validate(path), name
        with pytest.raises((pg.Malformed, pg.Truncated)):
            pg.read(path)


def test_validation(tmp_path, data):
    path = tmp_path / "t.npy"
    np.save(path, np.arange(5))
    found = pg.validate(path)
    assert found and found.format == "npy" and not found.findings
    path.write_bytes(path.read_bytes()[:-1])
    found = pg.validate(path)
    assert not found and found.findings[0].severity == "error"
    assert "invalid" in str(found)
    assert not pg.validate(path.read_bytes(), format="npy")


def test_dumps(tmp_path):
    pg.write(np.arange(12.0).reshape(3, 4), tmp_path / "m.dbdf")
    root = pg.dump(tmp_path / "m.dbdf")
    parts = list(root)
    assert parts and parts[0].offset == 0
    for part in parts:
        assert root.at(part.path).offset == part.offset
        assert root.at(part.offset).offset >= part.offset
    assert str(root).count("\n") > 2
    with pytest.raises(pg.Usage, match="there is no part"):
        root.at("nothing")


@pytest.mark.parametrize("extension", ["npy", "dbdf"])
def test_arrays_keep_type_and_order(tmp_path, extension):
    path = tmp_path / f"m.{extension}"
    for dtype in ["i1", "i4", "i8", "u1", "u4", "u8", "f4", "f8"]:
        for order in "CF":
            matrix = np.asarray(np.arange(12).reshape(3, 4), dtype=dtype, order=order)
            pg.write(matrix, path, force=True)
            found = pg.read(path).to_numpy()
            assert found.dtype == matrix.dtype and np.array_equal(found, matrix)
            if extension == "npy":
                assert found.flags.f_contiguous == matrix.flags.f_contiguous
                assert np.array_equal(np.load(path), matrix)


def test_arrays_of_other_shapes_and_types(tmp_path):
    path = tmp_path / "a.npy"
    arrays = [
        np.arange(5),
        np.array([True, False]),
        np.array([1 + 2j, 3 - 4j]),
        np.array(["2020-01-01", "2021-02-03"], dtype="M8[D]"),
        np.array([1, 2], dtype="m8[us]"),
        np.arange(24).reshape(2, 3, 4),
        np.arange(10)[::2],
        np.zeros((0, 3)),
        np.float64(3.5),
    ]
    for array in arrays:
        array = np.asarray(array)
        pg.write(array, path, force=True)
        found = pg.read(path).to_numpy()
        assert found.dtype == array.dtype and np.array_equal(found, array), array
    records = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])
    pg.write(records, tmp_path / "a.bson")
    assert np.array_equal(pg.read(tmp_path / "a.bson").to_numpy(), records)
    with pytest.raises(TypeError, match="array of numbers"):
        pg.write(np.array([object()]), path, force=True)


class Tensor:
    """Anything with DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_tensors(tmp_path):
    array = np.arange(6.0).reshape(2, 3)
    pg.write(Tensor(array), tmp_path / "t.npy")
    assert np.array_equal(np.from_dlpack(pg.read(tmp_path / "t.npy")), array)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_sparse_matrices(tmp_path, kind):
    rng = np.random.default_rng(5)
    matrix = scipy.sparse.random_array((20, 30), density=0.2, rng=rng).asformat(kind)
    for extension in ["npz", "parquet", "arrow", "mtx", "dbdf"]:
        path = tmp_path / f"m.{extension}"
        pg.write(matrix, path)
        found = pg.read(path).to_scipy()
        assert (found.tocsr() != matrix.tocsr()).nnz == 0 and found.shape == matrix.shape
        keeps = extension in ("npz", "parquet", "arrow") and kind not in ("lil", "dok")
        assert found.format == (kind if keeps else "csr")
    stored = scipy.sparse.load_npz(tmp_path / "m.npz")
    assert (stored.tocsr() != matrix.tocsr()).nnz == 0
    assert pg.read(tmp_path / "m.npz").to_scipy(kind).format == kind


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_matrices_keep_format_and_index_width(tmp_path, kind):
    matrix = scipy.sparse.random_array((20, 30), density=0.2, rng=np.random.default_rng(6)).asformat(kind)
    names = {"coo": ["coords"], "dia": ["offsets"]}.get(kind, ["indices", "indptr"])
    for width in (np.int32, np.int64):
        for name in names:
            old = getattr(matrix, name)
            setattr(matrix, name, tuple(part.astype(width) for part in old) if kind == "coo" else old.astype(width))
        source, path = tmp_path / f"s{width.__name__}.npz", tmp_path / f"m{width.__name__}.npz"
        scipy.sparse.save_npz(source, matrix)
        pg.convert(source, path)
        found = pg.read(path).to_scipy()
        assert (found.tocsr() != matrix.tocsr()).nnz == 0
        assert pg.read(source).to_scipy().format == kind
        assert found.format == scipy.sparse.load_npz(path).format == kind
        assert isinstance(scipy.sparse.load_npz(path), scipy.sparse.sparray)
        if kind in ("csr", "csc"):
            assert found.indices.dtype == found.indptr.dtype == width


def test_sparse_matrices_stay_matrices_and_arrays_arrays(tmp_path):
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        pg.write(kind(np.eye(3)), tmp_path / "m.npz", force=True)
        assert type(scipy.sparse.load_npz(tmp_path / "m.npz")) is kind


def test_pandas_round_trips(tmp_path):
    frame = pd.DataFrame(
        {
            "cat": pd.Categorical(["a", "b", "a"], categories=["b", "a"], ordered=True),
            "int": pd.array([1, None, 3], dtype="Int64"),
            "small": pd.array([1, None, 3], dtype="Int8"),
            "bool": pd.array([True, None, False], dtype="boolean"),
            "zone": pd.date_range("2024-03-30", periods=3, freq="h", tz="Europe/Berlin"),
            "text": ["x", None, "z"],
        },
        index=pd.Index([10, 20, 30], name="key"),
    )
    for extension in ["parquet", "arrow"]:
        path = tmp_path / f"t.{extension}"
        pg.write(frame, path)
        pd.testing.assert_frame_equal(pg.read(path).to_pandas(), frame)


def test_polars_round_trips(tmp_path):
    frame = pl.DataFrame(
        {
            "enum": pl.Series(["a", "b", "a"], dtype=pl.Enum(["b", "a"])),
            "cat": pl.Series(["x", "y", None], dtype=pl.Categorical),
            "when": pl.Series([datetime.datetime(2024, 1, 1), None, None], dtype=pl.Datetime("us", "UTC")),
            "list": [[1, 2], [], None],
        }
    )
    for extension in ["arrow", "parquet"]:
        path = tmp_path / f"t.{extension}"
        pg.write(frame, path)
        found = pg.read(path).to_polars()
        assert found.schema == frame.schema, extension
        assert found.equals(frame), extension


def test_structured_arrays(tmp_path):
    kind = np.dtype([("name", "U5"), ("when", "M8[us]"), ("at", "<f4", (2, 3)), ("n", "<i2"), ("ok", "?")])
    array = np.zeros(3, dtype=kind)
    array["name"], array["n"], array["ok"] = ["a", "bcdef", ""], [1, -2, 3], [True, False, True]
    array["at"] = np.arange(18.0).reshape(3, 2, 3)
    array["when"] = np.datetime64("2024-01-02", "us")
    pg.write(array, tmp_path / "a.npy")
    assert np.array_equal(np.load(tmp_path / "a.npy"), array)
    found = pg.read(tmp_path / "a.npy").to_numpy()
    assert found.dtype.names == kind.names
    assert all(np.array_equal(found[name], array[name]) for name in kind.names)
    pg.write(array, tmp_path / "a.parquet")
    columns = pg.read(tmp_path / "a.parquet").to_numpy()
    assert all(np.array_equal(columns[name], array[name]) for name in kind.names)


def test_columns_are_cast_renamed_and_left_out(tmp_path):
    table = pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": ["x", "y"]})
    pg.write(table, tmp_path / "t.parquet", exclude="c", cast={"a": "int8"}, rename={"b": "price"})
    found = pl.read_parquet(tmp_path / "t.parquet")
    assert found.schema == {"a": pl.Int8, "price": pl.Float64}
    pg.convert(tmp_path / "t.parquet", tmp_path / "u.csv", rename={"a": "n"}, columns=["a"])
    assert (tmp_path / "u.csv").read_text() == "n\n1\n2\n"
    plan = pg.plan(tmp_path / "t.parquet", tmp_path / "v.csv", cast={"price": "int64"})
    assert plan.verdict in ("checked", "lossy")
    with pytest.raises(pg.Lossy):
        pg.convert(tmp_path / "t.parquet", tmp_path / "v.csv", cast={"price": "int64"})
    assert not (tmp_path / "v.csv").exists()


def test_streams_tell_how_far_they_are(tmp_path):
    np.save(tmp_path / "m.npy", np.zeros((1000, 100)))
    document = pg.open(tmp_path / "m.npy")
    told = []
    for _ in document.rows(batch_rows=100, progress=lambda done, total: told.append((done, total))):
        pass
    size = (tmp_path / "m.npy").stat().st_size
    assert len(told) >= 10 and {total for _, total in told} == {size}
    assert told == sorted(told) and told[-1][0] > size // 2
    with pytest.raises(ZeroDivisionError):
        list(document.rows(batch_rows=100, progress=lambda done, total: 1 / 0))


def test_a_bar_such_as_that_of_tqdm_is_moved(tmp_path):
    class Bar:
        n, total = 0, None

        def update(self, n=1):
            self.n += n

    bar = Bar()
    np.save(tmp_path / "m.npy", np.zeros((1000, 100)))
    pg.read(tmp_path / "m.npy", progress=bar)
    assert bar.total == (tmp_path / "m.npy").stat().st_size
    assert 0 < bar.n <= bar.total


def test_an_exception_in_a_callback_ends_the_work(tmp_path):
    def stop(done, total):
        raise RuntimeError("enough")

    np.save(tmp_path / "m.npy", np.zeros((1000, 1000)))
    document = pg.open(tmp_path / "m.npy")
    with pytest.raises(RuntimeError, match="enough"):
        document.read(progress=stop)
    # The document is as good as before.
    assert document.read().num_rows == 1000
    with pytest.raises(RuntimeError, match="enough"):
        pg.convert(tmp_path / "m.npy", tmp_path / "m.csv", progress=stop)


def test_documents_of_a_database(tmp_path):
    """Chunks, several documents in one file, Extended JSON."""
    path = tmp_path / "chunks.bson"
    table = pa.table({"x": pa.array(range(5000), pa.int64()), "y": pa.array([str(i) for i in range(5000)])})
    pg.write(table, path, options={"max-bytes": "4K", "key": "K", "order": "x"})
    members = pg.open(path).members
    assert len(members) > 3 and members[0] == "0"
    assert pg.read(path).to_pydict() == table.to_pydict()
    first = pg.read(f"{path}::0").to_pydict()["x"]
    assert first == list(range(len(first)))
    text = tmp_path / "chunks.bson.json"
    pg.convert(path, text, options={"json": "relaxed"})
    assert text.read_bytes().startswith(b'{"x":{"d":{"$binary"')
    assert pg.read(text).to_pydict() == table.to_pydict()
    whole = tmp_path / "two.bson"
    pg.write(FRAME, tmp_path / "one.bson")
    whole.write_bytes((tmp_path / "one.bson").read_bytes() * 2)
    assert pg.count(whole) == 2 * FRAME.num_rows
    with pytest.raises(pg.Usage, match="there is no document 2"):
        pg.read(f"{whole}::2")
    # This build has no driver.
    with pytest.raises(pg.Unsupported, match="mongodb://"):
        pg.read("mongodb://localhost/db/ticks?key=K")
