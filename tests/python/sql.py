"""The same queries over the same data in every format that holds it: equal results, and equal to DuckDB on Parquet.

Needs duckdb, pyarrow; run by `cargo xtask test` with PENTAGLOT = the built command (feature `sql`).
"""

import atexit
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from shared.queries import FORMATS, QUERIES, ROWS, make_tables, named

FOLDER = pathlib.Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
COMMAND = os.environ["PENTAGLOT"]


def run(*words, status=0, stdin=None):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, input=stdin)
    assert done.returncode == status, (words, done.returncode, done.stdout[-500:], done.stderr)
    return done.stdout if status == 0 else done.stderr


def sql(text, *words, **how):
    return run("sql", text, *words, **how)


make_tables(FOLDER, run)
random = np.random.default_rng(8)


def plain(value):
    return round(value, 9) if isinstance(value, float) and math.isfinite(value) else value


def ours(query, extension):
    lines = sql(named(query, extension, FOLDER), "--output", "jsonl").splitlines()
    return [[plain(value) for value in json.loads(line).values()] for line in lines]


def theirs(query):
    source = {"T": "trades.parquet", "R": "ref.parquet", "E": "empty.parquet"}
    connection = duckdb.connect()
    for letter, file in source.items():
        connection.execute(f"CREATE VIEW {letter} AS SELECT * FROM read_parquet('{FOLDER / file}')")
    connection.execute(
        f"CREATE VIEW P AS SELECT * FROM read_parquet('{FOLDER}/parts/*/*.parquet', hive_partitioning=true)"
    )
    rows = connection.execute(query.replace("T AS t", "T AS t")).fetchall()
    return [[plain(int(value) if hasattr(value, "is_signed") else value) for value in row] for row in rows]


wrong = []
for query in QUERIES:
    expected = theirs(query)
    for extension in FORMATS:
        # An empty text file does not tell the types of its columns.
        if " E" in query and extension in ("csv", "csv.gz", "jsonl", "json"):
            continue
        # Text files do not tell a missing text from an empty one.
        found = ours(query, extension)
        if extension.startswith("csv"):
            empty_as_null = lambda rows: [[None if value == "" else value for value in row] for row in rows]
            same = sorted(map(repr, empty_as_null(found))) == sorted(map(repr, empty_as_null(expected)))
        else:
            same = found == expected
        if not same:
            wrong.append((query, extension, found[:3], expected[:3]))
assert not wrong, "\n".join(map(str, wrong))

# Structs and lists, and numbers only: what these formats hold.
nested = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "p": pa.array([{"x": i, "y": f"n{i % 3}"} for i in range(40)]),
        "l": pa.array([[i, i * 2][: i % 3] for i in range(40)], pa.list_(pa.int64())),
    }
)
numbers = pa.table(
    {
        "a": pa.array(random.integers(-5, 5, 3000), pa.int64()),
        "b": pa.array(random.random(3000), pa.float64()),
        "c": pa.array(random.integers(0, 100, 3000), pa.int32()),
    }
)
NESTED = [
    "SELECT id, p['x'] AS x FROM N WHERE p['y'] = 'n1' ORDER BY id",
    "SELECT p['y'] AS y, sum(p['x']) AS s FROM N GROUP BY p['y'] ORDER BY 1",
    "SELECT id, l[1] AS one, l[2] AS two FROM N ORDER BY id",
]
NUMBERS = [
    "SELECT * FROM N ORDER BY b",
    "SELECT count(*) AS n FROM N",
    "SELECT a, count(*) AS n, sum(c) AS s FROM N GROUP BY a ORDER BY a",
    "SELECT c FROM N WHERE a < 0 AND b > 0.5 ORDER BY b LIMIT 9",
    "SELECT x.a, count(*) AS n FROM N AS x JOIN N AS y ON x.a = y.a AND x.c = y.c GROUP BY x.a ORDER BY x.a",
]
for table, queries, extensions in [
    (nested, NESTED, ["parquet", "arrow", "bson", "ds", "dynd", "jsonl", "json"]),
    (numbers, NUMBERS, ["parquet", "dbdf", "arrow", "bson", "ds", "dynd", "npy", "csv", "jsonl"]),
]:
    pa.parquet.write_table(table, FOLDER / "n.parquet")
    for extension in extensions:
        if extension != "parquet":
            run("convert", "--force", "--allow-lossy", FOLDER / "n.parquet", FOLDER / f"n.{extension}", *(["-O", "as=table"] if extension == "npy" else []))
        for query in queries:
            names = query.replace(" N ", f" '{FOLDER}/n.{extension}' ") if " N " in query else query.replace(" N", f" '{FOLDER}/n.{extension}'")
            found = [[plain(value) for value in json.loads(line).values()] for line in sql(names, "--output", "jsonl").splitlines()]
            duck = names.replace(f"n.{extension}'", "n.parquet'")
            expected = [[plain(int(v) if hasattr(v, "is_signed") else v) for v in row] for row in duckdb.connect().execute(duck).fetchall()]
            assert found == expected, (extension, query, found[:3], expected[:3])

# Partitioned output, as DuckDB reads it.
sql(f"COPY (SELECT * FROM '{FOLDER}/trades.bson') TO '{FOLDER}/out' STORED AS PARQUET PARTITIONED BY (sym)")
written = duckdb.connect().execute(
    f"SELECT count(*), count(DISTINCT sym), sum(id) FROM read_parquet('{FOLDER}/out/*/*.parquet', hive_partitioning=true)"
).fetchall()
assert written == [(ROWS, 5, ROWS * (ROWS - 1) // 2)], written

# A sort that does not fit into the memory that it may use spills.
big = FOLDER / "big.npy"
np.save(big, random.random((2_000_000, 2)))
spilled = sql(
    f"SELECT count(*) AS n, max(r) AS m FROM (SELECT row_number() OVER (ORDER BY col_0) AS r FROM '{big}')",
    "--max-alloc", "48M",
)
assert json.loads(spilled) == {"n": 2_000_000, "m": 2_000_000}

# Outputs, files of statements, standard input.
query = f"SELECT sym, weight FROM '{FOLDER}/ref.parquet' ORDER BY sym"
assert json.loads(sql(query, "--output", "json"))[0] == {"sym": "A", "weight": 1}
assert sql(query, "--output", "csv").splitlines()[1] == "A,1"
assert "weight" in sql(query, "--output", "table")
(FOLDER / "s.sql").write_text(f"CREATE VIEW v AS {query}; -- comment;\nSELECT count(*) AS n FROM v;")
assert json.loads(run("sql", "-f", FOLDER / "s.sql")) == {"n": 4}
assert json.loads(run("sql", stdin="SELECT 1 AS a; SELECT 2 AS a").splitlines()[1]) == {"a": 2}
run("sql", query, "-o", FOLDER / "out.bson")
assert run("count", FOLDER / "out.bson").split()[0] == "4"
assert "exists already" in run("sql", query, "-o", FOLDER / "out.bson", status=2)
run("sql", query, "-o", FOLDER / "out.bson", "--force")
# Errors: one line, status 2, the file's own error.
(FOLDER / "cut.parquet").write_bytes((FOLDER / "trades.parquet").read_bytes()[:-100])
for bad in ["SELEC 1", "SELECT * FROM missing", f"SELECT * FROM '{FOLDER}/none.csv'", f"SELECT * FROM '{FOLDER}/cut.parquet'"]:
    assert sql(bad, status=2).count("\n") == 1, bad
assert "cut.parquet: parquet: at byte" in sql(f"SELECT * FROM '{FOLDER}/cut.parquet'", status=2)
print(f"sql: {len(QUERIES)} queries over {len(FORMATS)} formats, equal to DuckDB")
