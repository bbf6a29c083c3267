"""Identities, comparisons, verified conversions and salvage, against pandas and the command's own words."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pentaglot as pg


def table(seed: int, rows: int = 500) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {"id": np.arange(rows), "x": random.random(rows), "s": [f"t{value}" for value in random.integers(0, 9, rows)]}
    )


def test_one_identity_in_every_format(tmp_path):
    found = set()
    for extension in ["parquet", "arrow", "ds", "dynd", "bson", "jsonl"]:
        path = tmp_path / f"x.{extension}"
        report = pg.write(table(1), path, verify=True)
        assert report.identity == str(pg.identity(path))
        found.add(report.identity)
    assert len(found) == 1
    assert [column["name"] for column in pg.identity(path).columns] == ["id", "x", "s"]


def test_the_table_of_the_definition(tmp_path):
    data = pa.table(
        {
            "a": pa.array([1, None, 3], pa.int32()),
            "s": pa.array(["x", "", None]),
            "l": pa.array([[1.5], None, []], pa.list_(pa.float64())),
        }
    )
    pg.write(data, tmp_path / "x.arrow")
    expected = "bafkr4iembasmya7jd2bmzbterkxv7lmzaauoj3tawq4lufmkaxva72qtqm"
    assert str(pg.identity(tmp_path / "x.arrow")) == expected


@pytest.mark.parametrize("seed", range(5))
def test_diff_agrees_with_pandas(tmp_path, seed):
    a, random = table(seed), np.random.default_rng(seed + 100)
    b = a.copy()
    b.loc[random.choice(len(b), 20, replace=False), "x"] = -1.0
    b.loc[random.choice(len(b), 7, replace=False), "s"] = "other"
    expected = a.compare(b)
    pg.write(a, tmp_path / "a.parquet")
    pg.write(b, tmp_path / "b.bson")
    found = pg.diff(tmp_path / "a.parquet", tmp_path / "b.bson")
    assert found and found.rows == {"added": 0, "removed": 0, "changed": len(expected)}
    changed = {column["name"]: column["changed"] for column in found.columns}
    assert changed == {name: int(expected[name, "self"].notna().sum()) for name in ["x", "s"]}
    pg.write(b.sample(frac=1, random_state=seed), tmp_path / "shuffled.ds")
    keyed = pg.diff(tmp_path / "a.parquet", tmp_path / "shuffled.ds", key="id")
    assert keyed.rows == found.rows
    assert not pg.diff(tmp_path / "a.parquet", tmp_path / "a.parquet")


def test_salvage(tmp_path):
    pg.write(table(2), tmp_path / "x.ds")
    whole = (tmp_path / "x.ds").read_bytes()
    (tmp_path / "cut.ds").write_bytes(whole[: len(whole) // 2])
    found = pg.salvage(tmp_path / "cut.ds", tmp_path / "saved.parquet")
    assert found.saved is not None and 200 < found.saved["rows"] < 300
    assert found.lost_rows[0]["rows"][0] == found.saved["rows"]
    saved = pg.read(tmp_path / "saved.parquet").to_pandas()
    pd.testing.assert_frame_equal(saved, table(2).head(len(saved)), check_dtype=False)


def test_raw_digest(tmp_path):
    import hashlib

    (tmp_path / "x.dynd").write_bytes(pg.dynd.serialize([1, 2, 3], "3 * int32"))
    raw = np.array([1, 2, 3], "<i4").tobytes()
    assert pg.raw_digest(tmp_path / "x.dynd", "sha256", format="dynd:raw", type="3 * int32") == hashlib.sha256(raw).hexdigest()
