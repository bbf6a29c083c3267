"""Frames and columns of pandas, Polars and pyarrow."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import pentaglot as pg


def test_integers_with_missing_values_keep_their_value(tmp_path):
    frame = pd.DataFrame(
        {
            "a": pd.array([2**60 + 1, None], dtype="Int64"),
            "b": pd.array([True, None], dtype="boolean"),
            "c": pd.array([None, 3], dtype="UInt8"),
            "d": [1, 2],
            "e": [True, False],
        }
    )
    for extension in ["bson", "parquet", "arrow", "dynd"]:
        path = tmp_path / f"t.{extension}"
        pg.write(frame, path)
        found = pg.read(path).to_pandas()
        pd.testing.assert_frame_equal(found, frame)
        assert found.a[0] == 2**60 + 1


def test_what_the_caller_or_the_metadata_decides_stays(tmp_path):
    table = pg.Table(pa.table({"a": [1, None]}))
    mapped = table.to_pandas(types_mapper={pa.int64(): pd.ArrowDtype(pa.int64())}.get)
    assert str(mapped.a.dtype) == "int64[pyarrow]"
    assert table.to_pandas(integer_object_nulls=True).a.dtype == object
    assert table.to_pandas(self_destruct=True, split_blocks=True).a.tolist() == [1, pd.NA]
    assert str(table.to_pandas(ignore_metadata=True).a.dtype) == "Int64"
    twice = pg.Table(pa.table([pa.array([1, None]), pa.array(["x", "y"])], names=["a", "a"])).to_pandas()
    assert list(twice.columns) == ["a", "a"] and str(twice.dtypes.iloc[0]) == "Int64"
    # Objects of pandas: numbers keep their value, truth values are what they were.
    frame = pd.DataFrame({"n": pd.Series([2**60 + 1, None], dtype=object), "b": pd.Series([True, None], dtype=object)})
    pg.write(frame, tmp_path / "o.parquet")
    found = pg.read(tmp_path / "o.parquet").to_pandas()
    assert found.n[0] == 2**60 + 1 and found.b.tolist() == [True, None]
    index = pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}, index=pd.Index([7, 8], name="k"))
    pg.write(index, tmp_path / "i.arrow")
    pd.testing.assert_frame_equal(pg.read(tmp_path / "i.arrow").to_pandas(), index)


@pytest.mark.parametrize("extension", ["parquet", "arrow"])
@pytest.mark.parametrize("ordered", [False, True])
def test_categories_come_back(tmp_path, extension, ordered):
    values = pd.Categorical(["hi", "lo", "mid"], categories=["lo", "mid", "hi", "never"], ordered=ordered)
    frame = pd.DataFrame({"c": values})
    pg.write(frame, tmp_path / f"c.{extension}")
    pd.testing.assert_frame_equal(pg.read(tmp_path / f"c.{extension}").to_pandas(), frame)


COLUMNS = [
    (pl.Series("x", [1, 2]), {"x": [1, 2]}),
    (pl.Series([1, 2]), {"item": [1, 2]}),
    (pd.Series([1, 2], name="x"), {"x": [1, 2]}),
    (pd.Series([1, 2], name=3), {"3": [1, 2]}),
    (pd.Series([1, 2]), {"item": [1, 2]}),
    (pa.chunked_array([[1, 2], [3]]), {"item": [1, 2, 3]}),
    (pa.array([1, None]), {"item": [1, None]}),
    (pa.array([{"a": 1}, {"a": 2}]), {"a": [1, 2]}),
    (pa.array([{"a": 1}, None]), {"item": [{"a": 1}, None]}),
]


@pytest.mark.parametrize("data,expected", COLUMNS, ids=lambda value: type(value).__name__)
def test_a_column_is_written_as_a_table_or_an_array(tmp_path, data, expected):
    pg.write(data, tmp_path / "c.parquet")
    found = pg.read(tmp_path / "c.parquet")
    assert found.to_pydict() == expected
    assert found.schema.kind == ("array" if "item" in expected else "table")
    assert pg.Table(data).to_pydict() == expected


def test_data_that_arrow_does_not_know_is_refused(tmp_path):
    for data in [pd.Series([1 + 2j]), pd.DataFrame({"a": [object()]})]:
        with pytest.raises(pg.Unsupported, match="as Arrow data"):
            pg.write(data, tmp_path / "no.parquet")
    for data in [pa.scalar(1), [1, 2], 5]:
        with pytest.raises(TypeError, match="expected Arrow data"):
            pg.write(data, tmp_path / "no.parquet")


def test_plans_of_data_in_memory(tmp_path):
    frame = pd.DataFrame({"a": [1.5], "t": pd.to_datetime(["2024-01-01"]).tz_localize("Europe/Berlin")})
    plan = pg.plan(frame, tmp_path / "x.dynd")
    assert plan.verdict == "lossy" and {step.field for step in plan[:]} == {"a", "t"}
    assert pg.plan(np.eye(2), tmp_path / "x.dbdf").verdict == "exact"
    assert pg.plan(frame, tmp_path / "x.parquet", columns=["a"])[0].field == "a"
    assert not list(tmp_path.iterdir())
    with pytest.raises(pg.Usage, match="data in memory"):
        pg.plan(frame, tmp_path / "x.dynd", from_format="csv")


def test_scans_are_read_again_and_push_columns_down(tmp_path):
    path = tmp_path / "t.parquet"
    pg.write(pa.table({"a": range(100), "b": [str(n) for n in range(100)]}), path)
    dataset = pg.scan(path, "pyarrow", start=10, stop=90)
    assert dataset.schema.names == ["a", "b"]
    for _ in range(2):
        assert dataset.to_table().num_rows == dataset.count_rows() == 80
    assert dataset.to_table(columns=["b"]).schema.names == ["b"]
    assert dataset._rows(["b"]).schema.names == ["b"]
    wanted = pyarrow.dataset.field("a") >= 88
    assert dataset.to_table(["b"], filter=wanted).to_pydict() == {"b": ["88", "89"]}
    assert dataset.count_rows(wanted) == 2
    assert dataset.head(2, ["a"]).to_pydict() == {"a": [10, 11]}
    assert [batch.num_rows for batch in dataset.to_batches(batch_size=50)] == [50, 30]
    assert pl.DataFrame(dataset).height == 80
    relation = pg.scan(path, "duckdb")
    for _ in range(2):
        assert relation.aggregate("sum(a)").fetchall() == [(4950,)]
    assert relation.filter("a > 97").project("b").fetchall() == [("98",), ("99",)]
    np.save(tmp_path / "m.npy", np.arange(6).reshape(3, 2))
    assert pg.scan(tmp_path / "m.npy", "pyarrow").to_table(["col_1"]).to_pydict() == {"col_1": [1, 3, 5]}
    assert duckdb.sql("select 1").fetchall() == [(1,)]
