"""The tables and queries that `sql.py` and `cluster.py` ask."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet

FORMATS = ["parquet", "arrow", "bson", "ds", "dynd", "csv", "jsonl", "json", "csv.gz"]
ROWS = 5_000

# T, R, E: the tables of trades, of symbols, and the empty one; P: the partitioned folder.
QUERIES = [
    "SELECT * FROM T ORDER BY id",
    "SELECT id, px FROM T WHERE px > 1 ORDER BY id",
    "SELECT id FROM T WHERE px IS NULL ORDER BY id",
    "SELECT id FROM T WHERE sym = 'dé' AND qty >= 2 ORDER BY id",
    "SELECT id FROM T WHERE buy ORDER BY id",
    "SELECT id FROM T WHERE buy IS NOT TRUE AND sym IN ('A', '') ORDER BY id",
    "SELECT count(*) AS n FROM T",
    "SELECT count(px) AS n, count(DISTINCT sym) AS d FROM T",
    "SELECT sym, sum(qty) AS s, min(px) AS lo, max(px) AS hi FROM T GROUP BY sym ORDER BY sym",
    "SELECT sym, avg(px) AS a FROM T GROUP BY sym HAVING count(*) > 10 ORDER BY sym",
    "SELECT buy, qty, count(*) AS n FROM T GROUP BY buy, qty ORDER BY buy NULLS FIRST, qty NULLS FIRST",
    "SELECT T.id, R.weight FROM T JOIN R ON T.sym = R.sym WHERE T.id < 50 ORDER BY T.id",
    "SELECT R.sym, count(T.id) AS n FROM R LEFT JOIN T ON T.sym = R.sym GROUP BY R.sym ORDER BY R.sym",
    "SELECT sym FROM R EXCEPT SELECT sym FROM T ORDER BY sym",
    "SELECT sym FROM R INTERSECT SELECT sym FROM T ORDER BY sym",
    "SELECT sym, weight FROM R UNION ALL SELECT sym, id FROM T WHERE id < 3 ORDER BY 1, 2",
    "SELECT id, row_number() OVER (PARTITION BY sym ORDER BY id) AS r FROM T ORDER BY id LIMIT 100",
    "SELECT id, sum(qty) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM T ORDER BY id LIMIT 50",
    "SELECT id FROM T ORDER BY px DESC NULLS LAST, id LIMIT 7 OFFSET 3",
    "SELECT CASE WHEN qty > 2 THEN 'many' WHEN qty IS NULL THEN 'none' ELSE 'few' END AS c, count(*) AS n FROM T GROUP BY 1 ORDER BY 1",
    "WITH big AS (SELECT * FROM T WHERE qty = 3) SELECT upper(sym) AS u, count(*) AS n FROM big GROUP BY 1 ORDER BY 1",
    "SELECT count(*) AS n, sum(id) AS s FROM E",
    "SELECT * FROM E",
    "SELECT year, count(*) AS n, sum(id) AS s FROM P GROUP BY year ORDER BY year",
    "SELECT id, year FROM P WHERE year = 2024 AND qty = 1 ORDER BY id",
    "SELECT t.id FROM T AS t WHERE EXISTS (SELECT 1 FROM R WHERE R.sym = t.sym AND R.weight > 2) ORDER BY t.id LIMIT 20",
]


def make_tables(folder, run, formats=FORMATS):
    """Writes the tables to a folder, in these formats, of which the first is parquet; `run` runs the command."""
    random = np.random.default_rng(7)
    trades = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "sym": pa.array(random.choice(["A", "B", "C", "dé", ""], ROWS)),
            "px": pa.array(random.choice([0.5, 1.25, -3.0, 1e10, None], ROWS), pa.float64()),
            "qty": pa.array(random.choice([1, 2, 3, None], ROWS), pa.int64()),
            "buy": pa.array(random.choice([True, False, None], ROWS), pa.bool_()),
        }
    )
    ref = pa.table({"sym": ["A", "B", "C", "X"], "weight": pa.array([1, 2, 3, 4], pa.int64())})
    empty = trades.slice(0, 0)
    for name, table in [("trades", trades), ("ref", ref), ("empty", empty)]:
        pa.parquet.write_table(table, folder / f"{name}.parquet")
    for extension in formats[1:]:
        for name in ["trades", "ref", "empty"]:
            run("convert", folder / f"{name}.parquet", folder / f"{name}.{extension}", "--allow-lossy")
    # Partition columns.
    for year in [2023, 2024]:
        for part in range(2):
            parts = folder / f"parts/year={year}"
            parts.mkdir(parents=True, exist_ok=True)
            pa.parquet.write_table(trades.slice((year - 2023) * 2000 + part * 1000, 1000), parts / f"{part}.parquet")
    for extension in formats[1:]:
        for file in sorted((folder / "parts").rglob("*.parquet")):
            target = folder / f"parts-{extension}" / file.parent.name / f"{file.stem}.{extension}"
            target.parent.mkdir(parents=True, exist_ok=True)
            run("convert", file, target, "--allow-lossy")


def named(query, extension, folder):
    """A query over the files of one format."""
    parts = "parts" if extension == "parquet" else f"parts-{extension}"
    tables = {"T": f"trades.{extension}", "R": f"ref.{extension}", "E": f"empty.{extension}", "P": parts}
    for letter, file in tables.items():
        query = query.replace(f" FROM {letter} ", f" FROM '{folder / file}' AS {letter} ")
        query = query.replace(f" JOIN {letter} ", f" JOIN '{folder / file}' AS {letter} ")
        if query.endswith(f" FROM {letter}"):
            query = query[: -len(letter)] + f"'{folder / file}' AS {letter}"
    return query.replace(" AS T AS t ", " AS t ")
