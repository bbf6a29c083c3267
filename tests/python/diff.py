"""`pentaglot diff` against pandas: the same cells differ, by position and by key.

Needs numpy, pandas, pyarrow; run by `cargo xtask test` with PENTAGLOT = the built command.
"""

import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

FOLDER = pathlib.Path(tempfile.mkdtemp())


def diff(*words):
    done = subprocess.run([os.environ["PENTAGLOT"], "diff", "--json", *map(str, words)], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert found["equal"] == (done.returncode == 0), found
    return found


def frame(random, rows):
    return pd.DataFrame(
        {
            "id": np.arange(rows),
            "n": random.integers(0, 3, rows),
            "f": random.choice([0.5, 1.5, np.nan], rows),
            "s": random.choice(["a", "b", "ä"], rows),
        }
    )


def write(data, seed, side):
    table = pa.Table.from_pandas(data, preserve_index=False)
    # NaN is a value here, as pandas sees it.
    table = table.set_column(2, "f", pa.array(data["f"].to_numpy(), from_pandas=False))
    if side == "a":
        path = FOLDER / f"{seed}.a.parquet"
        pa.parquet.write_table(table, path, row_group_size=7)
    else:
        path = FOLDER / f"{seed}.b.arrow"
        pa.feather.write_feather(table, path, compression="uncompressed", chunksize=5)
    return path


def check(found, a, b):
    """`a` and `b` have the same index."""
    columns = ["n", "f", "s"]
    expected = a.compare(b)
    counts = {column["name"]: column["changed"] for column in found["columns"]}
    for column in columns:
        differing = expected[column].dropna(how="all") if column in expected.columns else []
        assert counts.get(column, 0) == len(differing), (column, counts, expected)
    assert found["rows"]["changed"] == len(expected), (found["rows"], expected)


for seed in range(12):
    random = np.random.default_rng(seed)
    rows = int(random.integers(0, 60))
    first, second = frame(random, rows), frame(random, rows)
    second = second.where(random.random(second.shape) < 0.2, first).astype(first.dtypes.to_dict())
    found = diff(write(first, seed, "a"), write(second, seed, "b"), "-n", "5")
    check(found, first, second)
    for column in found["columns"]:
        assert len(column["first"]) == min(5, column["changed"])
    # By key: in another order, some rows dropped, some added.
    kept = second.sample(frac=0.8, random_state=seed)
    more = frame(random, 4).assign(id=[1000, 1001, 1002, 1003])
    moved = pd.concat([more, kept]).astype(first.dtypes.to_dict())
    found = diff(write(first, f"{seed}k", "a"), write(moved, f"{seed}k", "b"), "--key", "id")
    assert found["rows"]["added"] == 4 and found["rows"]["removed"] == rows - len(kept), found["rows"]
    both = kept.sort_values("id").set_index("id")
    check(found, first.set_index("id").loc[both.index], both)
print("differences agree")
