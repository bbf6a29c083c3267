"""`pentaglot describe` against pandas, DuckDB and SciPy on random data.

Needs duckdb, numpy, pandas, pyarrow, scipy; run by `cargo xtask test` with PENTAGLOT = the built command.
"""

import json
import math
import os
import pathlib
import subprocess
import tempfile

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import scipy.sparse

FOLDER = pathlib.Path(tempfile.mkdtemp())
QUANTILES = ["0.05", "0.25", "0.5", "0.75", "0.95"]


def describe(*words):
    done = subprocess.run([os.environ["PENTAGLOT"], "describe", "--json", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def table(random, rows):
    """Columns of many types, with nulls and NaN."""
    missing = random.random(rows) < 0.1
    floats = random.normal(100, 20, rows).round(1)
    floats[random.random(rows) < 0.05] = np.nan
    words = np.array(["alpha", "beta", "gamma", "délta", "", "zz"])
    start = np.datetime64("2020-01-01T00:00:00", "us")
    return pa.table(
        {
            "whole": pa.array(random.integers(-50, 50, rows), mask=missing),
            "big": pa.array(random.integers(2**60, 2**62, rows)),
            "real": pa.array(floats, mask=missing, from_pandas=False),
            "small": pa.array(random.normal(0, 1, rows).astype(np.float32)),
            "word": pa.array(random.choice(words, rows), mask=missing),
            "key": pa.array([f"k{number}" for number in random.integers(0, rows * 2 + 1, rows)]),
            "truth": pa.array(random.random(rows) < 0.3, mask=missing),
            "when": pa.array(start + random.integers(0, 10**12, rows).astype("timedelta64[us]")),
            "none": pa.array([None] * rows, pa.int32()),
        }
    )


def near(found, expected, what, tolerance=1e-9):
    if expected is None or (isinstance(expected, float) and math.isnan(expected)):
        assert found is None, (what, found)
        return
    assert math.isclose(float(found), float(expected), rel_tol=tolerance, abs_tol=1e-9), (what, found, expected)


def check_column(found, data, path):
    name = found["name"]
    column = data[name]
    assert found["nulls"] == column.null_count, name
    plain = column.drop_null()
    nans = 0
    if pa.types.is_floating(column.type):
        values = plain.to_numpy()
        nans = int(np.isnan(values).sum())
        plain = pa.array(values[~np.isnan(values)])
    assert found["nans"] == nans, name
    series = plain.to_pandas()
    distinct = series.nunique()
    if distinct <= 10_000:
        assert found["distinct_exact"] and found["distinct"] == distinct, (name, found["distinct"], distinct)
    else:
        assert not found["distinct_exact"], name
        assert abs(found["distinct"] - distinct) <= 0.03 * distinct, (name, found["distinct"], distinct)
    counts = series.value_counts()
    if found["top_exact"]:
        assert [count for _, count in found["top"]] == counts.head(10).tolist(), name
    for value, count in found["top"]:
        key = pd.Timestamp(value) if name == "when" else np.float32(value) if name == "small" else value
        assert count <= counts[key], (name, value)
        assert not found["top_exact"] or count == counts[key], (name, value)
    if len(series) == 0:
        assert found["min"] is found["max"] is found["mean"] is found["quantiles"] is None
        return
    if name in ("whole", "big", "real", "small"):
        near(found["min"], series.min(), name, 1e-7)
        near(found["max"], series.max(), name, 1e-7)
        near(found["mean"], series.astype(float).mean(), name, 1e-7)
        near(found["std"], None if len(series) < 2 else series.astype(float).std(), name, 1e-6)
        ordered = np.sort(series.to_numpy().astype(float))
        for quantile in QUANTILES:
            if len(series) <= 100_000:
                near(found["quantiles"][quantile], np.quantile(ordered, float(quantile)), (name, quantile), 1e-7)
            else:
                value = found["quantiles"][quantile]
                low = np.searchsorted(ordered, value, "left") / len(ordered)
                high = np.searchsorted(ordered, value, "right") / len(ordered)
                assert low - 0.01 <= float(quantile) <= high + 0.01, (name, quantile, low, high)
        assert sum(found["histogram"]["counts"]) == len(series), name
    if name in ("word", "key"):
        assert found["min"] == min(series, key=lambda text: text.encode()), name
        assert found["max"] == max(series, key=lambda text: text.encode()), name
        lengths = series.str.len()
        assert (found["lengths"]["min"], found["lengths"]["max"]) == (lengths.min(), lengths.max())
        near(found["lengths"]["mean"], lengths.mean(), name)
    if name == "truth":
        assert (found["true"], found["false"]) == (int(series.sum()), int((~series).sum()))
    if name == "when":
        assert pd.Timestamp(found["min"]) == series.min() and pd.Timestamp(found["max"]) == series.max()
        assert abs(pd.Timestamp(found["mean"]) - series.mean()) <= pd.Timedelta("1us")
        if len(series) <= 100_000:
            for quantile in QUANTILES:
                expected = series.quantile(float(quantile))
                assert abs(pd.Timestamp(found["quantiles"][quantile]) - expected) <= pd.Timedelta("1us"), quantile


def check_duckdb(found, path):
    """DuckDB's SUMMARIZE of the same file, where NaN does not stand in the way."""
    summary = duckdb.sql(f"SUMMARIZE SELECT * FROM '{path}'").df().set_index("column_name")
    for column in found["columns"]:
        theirs = summary.loc[column["name"]]
        assert int(theirs["count"]) == found["rows"]
        if column["name"] in ("whole", "big"):
            assert str(column["min"]) == theirs["min"] and str(column["max"]) == theirs["max"]
            near(column["mean"], theirs["avg"], column["name"], 1e-7)
            near(column["std"], theirs["std"], column["name"], 1e-6)


def tables():
    for seed, rows in enumerate([0, 1, 2, 37, 5_000, 30_000, 250_000]):
        random = np.random.default_rng(seed)
        data = table(random, rows)
        parquet, arrow = FOLDER / f"{seed}.parquet", FOLDER / f"{seed}.arrow"
        pa.parquet.write_table(data, parquet, row_group_size=max(rows // 7, 1))
        pa.feather.write_feather(data, arrow, compression="uncompressed", chunksize=max(rows // 5, 1))
        for path in (parquet, arrow):
            found = describe(path)
            assert found["rows"] == rows
            assert [column["name"] for column in found["columns"]] == data.column_names
            for column in found["columns"]:
                check_column(column, data, path)
        if rows > 1:
            check_duckdb(describe(parquet), parquet)
        one = describe(parquet, "--threads", "1", "--columns", "word,whole", "--where", "whole > 10")
        kept = data.to_pandas()
        kept = kept[kept["whole"] > 10]
        assert one["rows"] == len(kept), (one["rows"], len(kept))
        assert one["columns"][0]["nulls"] == int(kept["word"].isna().sum())


def matrices():
    for seed, (rows, cols, density) in enumerate([(30, 30, 0.2), (200, 50, 0.05), (1, 7, 1.0), (500, 500, 0.001)]):
        random = np.random.default_rng(seed)
        sparse = scipy.sparse.random(rows, cols, density, format="csr", random_state=random)
        if seed == 3:
            sparse = (sparse + sparse.T).tocsr()
        path = FOLDER / f"{seed}.npz"
        scipy.sparse.save_npz(path, sparse)
        dense = FOLDER / f"{seed}.npy"
        np.save(dense, sparse.toarray())
        entries = sparse.tocoo()
        for file, values in ((path, sparse.data), (dense, sparse.toarray().ravel())):
            found = describe(file)
            assert (found["rows"], found["cols"], found["nonzeros"]) == (rows, cols, sparse.nnz)
            near(found["density"], sparse.nnz / (rows * cols), "density")
            near(found["min"], values.min(), "min")
            near(found["max"], values.max(), "max")
            near(found["mean"], values.mean(), "mean")
            assert found["symmetric"] == (rows == cols and abs(sparse - sparse.T).nnz == 0)
            assert found["bandwidth"] == int(abs(entries.row - entries.col).max())
            for key, axis in (("row_counts", 1), ("col_counts", 0)):
                counts = np.asarray((sparse != 0).sum(axis=axis)).ravel()
                for quantile in QUANTILES:
                    near(found[key][quantile], np.quantile(counts, float(quantile)), (key, quantile))


tables()
matrices()
print("describe: equal to pandas, DuckDB and SciPy")
