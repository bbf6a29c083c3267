"""Makes testdata/shapes: what pandas, NumPy and SciPy write of data that changes its shape on the way.

Needs numpy, pandas, pyarrow and scipy. Run in this folder: python make_shapes.py
"""
import json
import pathlib

import numpy as np
import pandas as pd
import scipy.sparse as sp

folder = pathlib.Path(__file__).parent / "shapes"

# pandas writes NaN as null.
pd.DataFrame(
    {
        "a": [1.5, np.nan, -3.0],
        "b": np.array([1, 2, 3], dtype="i4"),
        "c": np.array([np.nan, 0.25, np.inf], dtype="f4"),
    }
).to_parquet(folder / "nan.parquet")
np.save(folder / "nan.npy", np.array([[1.5, 1, np.nan], [np.nan, 2, 0.25], [-3.0, 3, np.inf]]))

pd.DataFrame({"kind": pd.Categorical(["x", "longer", "x"]), "n": pd.Categorical([7, 7, 9])}).to_parquet(
    folder / "category.parquet"
)
pd.DataFrame({"i": np.array([1, 2], "i8"), "x": [0.5, 1.0], "n": np.array([3, 4], "i2")}).to_parquet(folder / "mixed.parquet")
pd.DataFrame({"i": np.array([1, 2**53 + 1], "i8"), "x": [0.5, 1.0]}).to_parquet(folder / "mixed_large.parquet")

# A sparse matrix as SciPy has it and as a table of its entries, in an order of no promise.
matrix = sp.random(40, 30, 0.1, random_state=7, format="coo")
order = np.random.default_rng(1).permutation(matrix.nnz)
table = pd.DataFrame({"row": matrix.row[order], "col": matrix.col[order], "value": matrix.data[order]})
table.to_csv(folder / "triplets.csv", index=False)
lines = [json.dumps(record) + "\n" for record in table.to_dict("records")]
(folder / "triplets.jsonl").write_text("".join(lines))
table.to_parquet(folder / "triplets.parquet")
values = pd.read_csv(folder / "triplets.csv")
sp.save_npz(
    folder / "triplets.npz",
    sp.coo_array((values["value"], (values["row"], values["col"])), shape=(40, 30)).tocsr(),
)

np.save(folder / "cube.npy", np.arange(24, dtype="f4").reshape(2, 3, 4))
np.save(folder / "rows.npy", np.arange(24, dtype="f4").reshape(2, 12))
np.save(folder / "four.npy", np.arange(120, dtype="u1").reshape(2, 3, 4, 5))
np.savez(
    folder / "members.npz",
    x=np.arange(3, dtype="i8"),
    cube=np.arange(24, dtype="f4").reshape(2, 3, 4),
    table=np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")]),
    text=np.array("one"),
)
