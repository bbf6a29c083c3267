"""What other programs write is converted by the command, and what it writes is read equal by them.

Needs numpy, pyarrow, pandas, scipy; run by `cargo xtask test` with PENTAGLOT = the built command.
"""

import datetime
import decimal
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import scipy.io
import scipy.sparse

PENTAGLOT = os.environ["PENTAGLOT"]
FOLDER = pathlib.Path(tempfile.mkdtemp())
ORACLES = pathlib.Path(__file__).resolve().parent / "oracles"


def run(*words):
    done = subprocess.run([PENTAGLOT, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def convert(source, name, *words):
    target = FOLDER / name
    run("convert", source, target, "--force", "-q", *words)
    return target


def table():
    day = datetime.date(2024, 2, 29)
    moment = datetime.datetime(2024, 2, 29, 12, 30, 1, 123456)
    return pa.table(
        {
            "flag": pa.array([True, None, False]),
            "small": pa.array([-128, 127, None], pa.int8()),
            "large": pa.array([0, 2**64 - 1, None], pa.uint64()),
            "real": pa.array([1.5, -0.0, None], pa.float64()),
            "half": pa.array(np.array([1.5, -2, 0], np.float16)),
            "text": pa.array(["ä", "", None]),
            "bytes": pa.array([b"\0\xff", b"", None]),
            "day": pa.array([day, None, day]),
            "moment": pa.array([moment, None, moment], pa.timestamp("us", "Europe/Zurich")),
            "clock": pa.array([datetime.time(1, 2, 3), None, datetime.time(23, 59)], pa.time64("ns")),
            "money": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-9.99")], pa.decimal128(9, 2)),
            "list": pa.array([[1, None], [], None], pa.list_(pa.int32())),
            "pair": pa.array([{"x": 1, "y": "a"}, {"x": None, "y": None}, None], pa.struct([("x", pa.int64()), ("y", pa.string())])),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        }
    )


def read_stream(path):
    with pa.ipc.open_stream(path) as reader:
        return reader.read_all()


READERS = {
    "arrow": pyarrow.feather.read_table,
    "arrows": read_stream,
    "parquet": pyarrow.parquet.read_table,
}


def test_arrow_and_parquet():
    original = table()
    sources = {}
    for compression in ["lz4", "zstd", "uncompressed"]:
        sources[f"feather-{compression}"] = FOLDER / f"{compression}.arrow"
        pyarrow.feather.write_feather(original, sources[f"feather-{compression}"], compression=compression)
    sources["parquet"] = FOLDER / "source.parquet"
    pyarrow.parquet.write_table(original, sources["parquet"])
    sources["stream"] = FOLDER / "source.arrows"
    with pa.OSFile(str(sources["stream"]), "wb") as file, pa.ipc.new_stream(file, original.schema) as writer:
        writer.write_table(original)
    for name, source in sources.items():
        for extension, reader in READERS.items():
            back = reader(convert(source, f"{name}.{extension}"))
            assert back.equals(original), (name, extension, back.schema, original.schema)


def test_numbers_that_leave_the_dictionary():
    """Whole numbers become differences where the dictionary is full; texts stay plain, which older programs read."""
    rng = np.random.default_rng(5)
    rows = 600_000
    integers = np.iinfo(np.int64)
    any_int = rng.integers(integers.min, integers.max, rows, endpoint=True)
    original = pa.table(
        {
            "any": any_int,
            "unsigned": any_int.view(np.uint64),
            "rising": pa.array(np.arange(rows) * 1000, pa.timestamp("us", "UTC")),
            "short": pa.array((any_int >> 32).astype(np.int32), mask=rng.random(rows) < 0.3),
            "bytes": pa.array((any_int & 127).astype(np.int8)),
            "lists": pa.ListArray.from_arrays(pa.array(np.arange(0, rows + 1) // 2 * 2, pa.int32()), pa.array(any_int)),
            "text": [f"text {number}" for number in any_int],
        }
    )
    pyarrow.feather.write_feather(original, FOLDER / "numbers.arrow")
    files = [convert(FOLDER / "numbers.arrow", f"numbers{threads}.parquet", "--threads", threads) for threads in (1, 2, 7)]
    assert len({file.read_bytes() for file in files}) == 1
    file = pyarrow.parquet.ParquetFile(files[0])
    assert file.read().equals(original)
    group = file.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    delta = {column.path_in_schema for column in columns if "DELTA_BINARY_PACKED" in column.encodings}
    assert delta == {"any", "unsigned", "rising", "short", "lists.list.item"}, delta
    others = {column.path_in_schema: set(column.encodings) for column in columns if column.path_in_schema not in delta}
    assert "PLAIN" in others["text"] and all(used <= {"PLAIN", "RLE", "RLE_DICTIONARY"} for used in others.values()), others


def test_pandas():
    frame = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"], "c": pd.to_datetime(["2020-01-01", None, "2021-05-06"])})
    frame = frame.set_index(pd.Index([10, 20, 30], name="key"))
    frame.to_parquet(FOLDER / "pandas.parquet")
    for extension in ["parquet", "arrow"]:
        path = convert(FOLDER / "pandas.parquet", f"pandas2.{extension}")
        back = pd.read_parquet(path) if extension == "parquet" else pd.read_feather(path)
        pd.testing.assert_frame_equal(back, frame)


def test_csv_and_json_lines():
    frame = pd.DataFrame({"n": [1, -2, 3], "x": [0.1, 1e300, -0.5], "s": ['a,"b"', "line\nbreak", "ä"], "b": [True, False, True]})
    frame.to_csv(FOLDER / "p.csv", index=False)
    back = pd.read_parquet(convert(FOLDER / "p.csv", "p.parquet"))
    pd.testing.assert_frame_equal(back, frame)
    pd.testing.assert_frame_equal(pd.read_csv(convert(FOLDER / "p.parquet", "p2.csv")), frame)
    frame.to_json(FOLDER / "p.jsonl", orient="records", lines=True)
    pd.testing.assert_frame_equal(pd.read_parquet(convert(FOLDER / "p.jsonl", "p3.parquet")), frame)
    lines = convert(FOLDER / "p.parquet", "p4.jsonl")
    pd.testing.assert_frame_equal(pd.read_json(lines, orient="records", lines=True), frame)


def test_numpy():
    rng = np.random.default_rng(1)
    for dtype in ["?", "i1", "u2", "<i4", ">i4", "u8", "f2", "f4", "<f8", ">f8", "c8", "c16"]:
        for order in "CF":
            matrix = np.asarray(rng.integers(0, 2, (5, 3)) if dtype == "?" else rng.normal(0, 50, (5, 3)))
            with np.errstate(all="ignore"):
                matrix = np.array(np.abs(matrix), dtype=dtype, order=order)
            np.save(FOLDER / "m.npy", matrix)
            back = np.load(convert(FOLDER / "m.npy", "m2.npy"))
            assert np.array_equal(back, matrix) and back.flags.f_contiguous == matrix.flags.f_contiguous
            if dtype[-2:] not in ("c8", "16"):
                columns = pyarrow.parquet.read_table(convert(FOLDER / "m.npy", "m.parquet"))
                assert np.array_equal(np.stack([c.to_numpy() for c in columns.columns], axis=1), matrix), dtype
                assert np.array_equal(np.load(convert(FOLDER / "m.parquet", "m3.npy")), matrix), dtype
    cube = rng.integers(0, 100, (2, 3, 4))
    np.save(FOLDER / "cube.npy", cube)
    assert np.array_equal(np.load(convert(FOLDER / "cube.npy", "cube2.npy")), cube)
    np.savez(FOLDER / "two.npz", a=cube, b=np.arange(5))
    assert np.array_equal(np.load(convert(f"{FOLDER}/two.npz::b", "b.npy")), np.arange(5))


def test_scipy():
    rng = np.random.default_rng(2)
    matrix = scipy.sparse.random(40, 30, 0.1, "csr", random_state=rng)
    matrix.sort_indices()
    for name, form in [("csr", matrix), ("csc", matrix.tocsc()), ("coo", matrix.tocoo())]:
        scipy.sparse.save_npz(FOLDER / f"{name}.npz", form)
        path = convert(FOLDER / f"{name}.npz", f"{name}.mtx")
        assert (scipy.io.mmread(path).tocsr() != matrix).nnz == 0, name
        again = scipy.sparse.load_npz(convert(path, f"{name}2.npz"))
        assert (again != matrix).nnz == 0 and again.shape == matrix.shape, name
    entries = pyarrow.parquet.read_table(convert(FOLDER / "csr.npz", "csr.parquet"))
    assert entries.column_names == ["row", "col", "value"] and entries.num_rows == matrix.nnz
    assert (scipy.sparse.load_npz(convert(FOLDER / "csr.parquet", "csr3.npz")) != matrix).nnz == 0
    for field in ["real", "complex", "integer", "pattern"]:
        scipy.io.mmwrite(FOLDER / "m.mtx", (matrix * 10).astype(int) if field == "integer" else matrix, field=field)
        expected = scipy.io.mmread(FOLDER / "m.mtx").tocsr()
        back = scipy.io.mmread(convert(FOLDER / "m.mtx", "m2.mtx")).tocsr()
        assert (back != expected).nnz == 0, field


def test_some_rows_of_a_damaged_sparse_matrix_are_refused():
    """A flipped bit anywhere in a member is noticed, whichever rows are asked for, also where the member is deflated."""
    matrix = scipy.sparse.random_array((2000, 300), density=0.05, rng=np.random.default_rng(1)).tocsr()
    path = FOLDER / "damaged.npz"
    for compressed in (False, True):
        scipy.sparse.save_npz(path, matrix, compressed=compressed)
        sound = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.getinfo(name) for name in ("data.npy", "indices.npy", "indptr.npy")}
        for name, member in members.items():
            damaged = bytearray(sound)
            # Behind the local header, which has 20 bytes for large files.
            damaged[member.header_offset + 30 + len(name) + 20 + member.compress_size * 2 // 3] ^= 0x10
            path.write_bytes(damaged)
            for rows in ("0..3", "1500..1503", "1990.."):
                done = subprocess.run([PENTAGLOT, "cat", path, "--rows", rows], capture_output=True, text=True)
                assert done.returncode == 1, (compressed, name, rows, done.stderr)
        path.unlink()


def test_oracles():
    """Bytes of the five formats, read by independent implementations."""
    sys.path.insert(0, str(ORACLES))
    import bsondf_oracle
    import dbdf_decode
    import ds_oracle

    original = table().drop_columns(["money"])
    pyarrow.parquet.write_table(original, FOLDER / "o.parquet")
    document = convert(FOLDER / "o.parquet", "o.bson").read_bytes()
    decoded = bsondf_oracle.decode_table(document)
    for name in original.column_names:
        assert decoded.column(name).to_pylist() == original.column(name).combine_chunks().to_pylist(), name
    # Parquet does not keep what stands under a null struct.
    kept = pyarrow.parquet.read_table(FOLDER / "o.parquet")
    assert bsondf_oracle.encode_table(kept.combine_chunks()) == document

    matrix = scipy.sparse.random(6, 5, 0.3, "csr", random_state=3)
    scipy.sparse.save_npz(FOLDER / "d.npz", matrix)
    dbdf_decode.dec(convert(FOLDER / "d.npz", "d.dbdf", "--to", "dbdf:daphne").read_bytes())

    plain = pa.table({"n": pa.array([1, -70000], pa.int32()), "s": ["a", "b"], "f": pa.array([0.5, 2.0], pa.float32())})
    schema = pa.schema([field.with_nullable(False) for field in plain.schema])
    pyarrow.feather.write_feather(plain.cast(schema), FOLDER / "s.arrow")
    for dialect, profile in [("ds:msgpack", "min"), ("ds:msgpack-fixed", "fixed")]:
        data = convert(FOLDER / "s.arrow", "s.ds", "--to", dialect).read_bytes()
        kind, value = ds_oracle.decode_msgpack(data)
        assert ds_oracle.encode_msgpack(kind, value, profile=profile) == data, dialect


if __name__ == "__main__":
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                print(f"ok {name}")
            except Exception as error:  # every test is run, whatever the others do
                failed += 1
                print(f"FAILED {name}: {type(error).__name__}: {error}")
    sys.exit(1 if failed else 0)
