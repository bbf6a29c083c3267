"""A scheduler and two executors on this machine: the queries of `sql.py` give what they give in one process, also when an
executor is killed; a lost process or a broken file is an error in one line, never a hang, and COPY is whole or absent.

Needs pyarrow; run by `cargo xtask test` with PENTAGLOT = the built command (feature `cluster`) and S3_SERVER = the program
`s3s-fs`. CLUSTER_KILLS is how often an executor is killed during COPY.
"""

import atexit
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from shared.queries import QUERIES, make_tables, named

COMMAND = os.environ["PENTAGLOT"]
KILLS = int(os.environ.get("CLUSTER_KILLS", "3"))
JOIN_KILLS = 8
FORMATS = ["parquet", "bson", "dynd", "csv.gz"]
FOLDER = pathlib.Path(tempfile.mkdtemp()).resolve()
DATA = FOLDER / "data"
OUTSIDE = FOLDER / "outside"
BUCKETS = FOLDER / "buckets"
for folder in (DATA, OUTSIDE, BUCKETS / "data"):
    folder.mkdir(parents=True)
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
started = []


def kill_all():
    for process in started:
        process.kill()
        process.wait()


atexit.register(kill_all)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


s3_port = free_port()
ENVIRONMENT = {
    **os.environ,
    "AWS_ACCESS_KEY_ID": "AKIATEST",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3_port}",
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "us-east-1",
}
s3 = [os.environ["S3_SERVER"], "--host", "127.0.0.1", "--port", str(s3_port)]
s3 += ["--access-key", "AKIATEST", "--secret-key", "secret", str(BUCKETS)]
started.append(subprocess.Popen(s3, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


class Server:
    """A process of the cluster; `said` are the lines that it has printed."""

    def __init__(self, *words, ready):
        words = [COMMAND, "cluster", *map(str, words)]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        started.append(self.process)
        self.said = []
        self.is_ready = threading.Event()
        threading.Thread(target=self.listen, args=(ready,), daemon=True).start()
        assert self.is_ready.wait(60), self.said

    def listen(self, ready):
        for line in self.process.stderr:
            self.said.append(line)
            if ready in line:
                self.is_ready.set()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def seconds(self):
        """Processor time so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Executor(Server):
    def __init__(self):
        self.work = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        super().__init__(
            "executor", "--scheduler-port", PORT, "--bind-port", free_port(), "--bind-grpc-port", free_port(),
            "--work-dir", self.work, "--data-root", DATA, "--data-root", "s3://data", "--threads", 2,
            ready="the executor listens",
        )

    def output(self):
        """Whether it holds output of a finished task."""
        return any(file.stat().st_size > 0 for file in self.work.rglob("*") if file.is_file())


scheduler = Server("scheduler", "--bind-port", 0, ready="the scheduler listens on")
PORT = scheduler.said[0].rsplit(":", 1)[1].strip()
WHERE = ["--cluster", f"df://127.0.0.1:{PORT}", "--threads", "4"]
CLUSTER = [*WHERE, "--deadline", "120"]


def run(*words, status=0, environment=ENVIRONMENT):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == status, (words, done.returncode, done.stdout[-500:], done.stderr)
    return done.stdout if status == 0 else done.stderr


def there(text, *words, **how):
    return run("sql", *CLUSTER, text, *words, **how)


def rows(text, *words):
    return [json.loads(line) for line in run("sql", text, "--output", "jsonl", *words).splitlines()]


def begun(text):
    """A query that runs."""
    words = [COMMAND, "sql", *CLUSTER, "--output", "jsonl", text]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def until(holds, query):
    """Waits for something, or for the end of a query."""
    while not holds() and query.poll() is None:
        time.sleep(0.005)


def ended(query):
    """The rows of a query; None after an error, which must be one line."""
    out, err = query.communicate(timeout=200)
    if query.returncode == 0:
        return [json.loads(line) for line in out.splitlines()]
    assert query.returncode == 2 and err.count("\n") == 1 and "panicked" not in err, (query.returncode, err)
    assert "deadline" not in err, err
    print("  error:", err.strip()[:160])
    return None


# Addresses that others reach, and executors that could open everything.
assert "--insecure" in run("cluster", "scheduler", "--bind-host", "0.0.0.0", "--bind-port", 0, status=2)
assert "--insecure" in run("cluster", "executor", "--bind-host", "0.0.0.0", status=2)
assert "--data-root" in run("cluster", "executor", "--insecure", status=2)
assert "cannot use the data root" in run("cluster", "executor", "--data-root", DATA / "none", status=2)
assert "df://HOST:PORT" in run("sql", "--cluster", "nowhere", "SELECT 1", status=2)

make_tables(DATA, run, FORMATS)
# Nobody there: an error, not a hang.
error = run("sql", "--cluster", f"df://127.0.0.1:{free_port()}", f"SELECT sum(id) FROM '{DATA}/trades.bson'", status=2)
assert "cannot reach the scheduler" in error and error.count("\n") == 1, error
error = run("sql", *WHERE, "--deadline", "2", f"SELECT sum(id) FROM '{DATA}/trades.bson'", status=2)
assert "the deadline of 2 seconds has passed" in error, error

executors = [Executor(), Executor()]
text = ";\n".join(f"SELECT {number} AS query; {query}" for number, query in enumerate(QUERIES))
for extension in FORMATS:
    # An empty text file does not tell the types of its columns.
    chosen = [query for query in QUERIES if " E" not in query or not extension.startswith("csv")]
    text = ";\n".join(f"SELECT {n} AS query; {named(query, extension, DATA)}" for n, query in enumerate(chosen))
    here, elsewhere = rows(text), rows(text, *CLUSTER)
    for one, other in zip(here, elsewhere):
        same = one == other or all(
            abs(a - b) <= 1e-9 * abs(a) if isinstance(a, float) and isinstance(b, float) else a == b
            for a, b in zip(one.values(), other.values())
        )
        assert same, (extension, one, other)
    assert len(here) == len(elsewhere), extension
assert all(executor.seconds() > 0 for executor in executors)
print(f"  {len(QUERIES)} queries over {', '.join(FORMATS)}: equal")

# Names that executors may not open; links count as what they lead to.
(OUTSIDE / "secret.csv").write_text("x\n1\n")
os.symlink(OUTSIDE / "secret.csv", DATA / "link.csv")
for name in [OUTSIDE / "secret.csv", DATA / "link.csv", "/etc/passwd"]:
    error = there(f"CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{name}'; SELECT * FROM t", status=2)
    assert "outside the data root" in error and str(name) in error and error.count("\n") == 1, error
error = there(f"COPY (SELECT id FROM '{DATA}/trades.bson') TO '{OUTSIDE}/out/' STORED AS PARQUET", status=2)
assert "outside the data root" in error and not list(OUTSIDE.glob("out*")), error

# A file that breaks in the middle.
lines = [json.dumps({"x": i, "y": "text"}) for i in range(20_000)]
lines[15_000] = '{"x": 1, "y": oops}'
(DATA / "broken.jsonl").write_text("\n".join(lines))
error = there(f"SELECT sum(x) FROM '{DATA}/broken.jsonl'", status=2)
assert f"{DATA}/broken.jsonl: jsonl: at byte" in error and error.count("\n") == 1, error
assert not list(DATA.glob("never*"))
error = there(f"COPY (SELECT * FROM '{DATA}/broken.jsonl') TO '{DATA}/never/' STORED AS PARQUET", status=2)
assert "broken.jsonl: jsonl: at byte" in error and not list(DATA.glob("never*")), error
for bad in ["SELEC 1", "SELECT * FROM missing", f"SELECT * FROM '{DATA}/none.csv'"]:
    assert there(bad, status=2).count("\n") == 1, bad

# Output: files, folders, buckets.
there(f"COPY (SELECT * FROM '{DATA}/trades.bson' WHERE id < 1000) TO '{DATA}/one.dynd'")
assert rows(f"SELECT count(*) AS n FROM '{DATA}/one.dynd'") == [{"n": 1000}]
copy = f"COPY (SELECT * FROM '{DATA}/parts-bson') TO '{DATA}/copied/' STORED AS PARQUET PARTITIONED BY (year, sym)"
there(copy)
expected = rows(f"SELECT year, sym, sum(id) AS s FROM '{DATA}/parts-bson' GROUP BY year, sym ORDER BY year, sym")
copied = rows(f"SELECT year, sym, sum(id) AS s FROM '{DATA}/copied' GROUP BY year, sym ORDER BY year, sym")
assert copied == expected and len(copied) == 10, copied
assert "exists already" in there(copy, status=2)
there(copy, "--force")
bucket = f"COPY (SELECT * FROM '{DATA}/trades.bson') TO 's3://data/copied/' STORED AS BSONDF"
there(bucket)
summed = "SELECT count(*) AS n, sum(id) AS s FROM"
assert rows(f"{summed} 's3://data/copied/'", *CLUSTER) == rows(f"{summed} '{DATA}/trades.bson'")
assert "exists already" in there(bucket, status=2)
there(f"COPY (SELECT * FROM '{DATA}/broken.jsonl') TO 's3://data/never/' STORED AS PARQUET", status=2)
assert not [file for file in (BUCKETS / "data").rglob("*part-*") if "never" in str(file)]

# Functions on lists, and fields of structs that are missing, are the same there.
(DATA / "lists.jsonl").write_text('{"l":[3,1],"s":{"x":1}}\n{"l":[],"s":null}\n{"l":[5],"s":{"x":4}}\n')
lists = f"SELECT l[1] AS first, array_length(l) AS n, array_sort(l) AS sorted, s.x AS x FROM '{DATA}/lists.jsonl' ORDER BY x"
assert rows(lists, *CLUSTER) == rows(lists) and [row["x"] for row in rows(lists)] == [1, 4, None], rows(lists)

# Executors that are killed: enough rows that each runs for a while.
big = DATA / "big"
big.mkdir()
COUNT, FILES = 60_000, 16
for number in range(FILES):
    text = "\n".join(f"{number * COUNT + i},{i % 1000},name{i % 77},{i * 0.25}" for i in range(COUNT))
    (big / f"{number:02}.csv").write_text(f"id,k,name,v\n{text}\n")
ALL = {"n": COUNT * FILES, "s": COUNT * FILES * (COUNT * FILES - 1) // 2}


def replaced(victim):
    victim.kill()
    executors[executors.index(victim)] = Executor()


# During a scan.
before = [executor.seconds() for executor in executors]
query = begun(f"SELECT count(*) AS n, sum(id) AS s FROM '{big}' WHERE v >= 0")
until(lambda: executors[1].seconds() > before[1] + 0.3, query)
replaced(executors[1])
answer = ended(query)
assert answer in (None, [ALL]), answer
print("  killed during a scan:", "an error" if answer is None else "the right answer")

# With finished output of an earlier stage: the small side of a join is done long before the large one.
join = f"SELECT count(*) AS n, sum(b.id) AS s FROM '{big}' AS b JOIN (SELECT DISTINCT k FROM '{big}/00.csv') AS a ON a.k = b.k"
for executor in executors:
    shutil.rmtree(executor.work)
    executor.work.mkdir()
query = begun(join)
until(lambda: any(executor.output() for executor in executors), query)
holding = [executor for executor in executors if executor.output()]
replaced((holding or executors)[0])
answer = ended(query)
assert answer in (None, [ALL]), answer
print(f"  killed with output ({len(holding)} had some):", "an error" if answer is None else "the right answer")

# At any time of a join of two large sides, whose output is on both executors.
join = f"SELECT count(*) AS n, sum(a.id) AS s FROM '{big}' AS a JOIN '{big}' AS b ON a.id = b.id"
begun_at = time.monotonic()
assert ended(begun(join)) == [ALL]
duration = time.monotonic() - begun_at
outcomes = []
for number in range(JOIN_KILLS):
    query = begun(join)
    time.sleep(duration * (number + 1) / (JOIN_KILLS + 1))
    replaced(executors[number % 2])
    answer = ended(query)
    assert answer in (None, [ALL]), answer
    outcomes.append("error" if answer is None else "right")
print("  killed during a join:", ", ".join(outcomes))

# During COPY: every row once, or an error and no folder.
outcomes = []
for number in range(KILLS):
    out = DATA / f"out{number}"
    query = begun(f"COPY (SELECT * FROM '{big}') TO '{out}/' STORED AS PARQUET")
    wanted = number % 5
    until(lambda: len([f for p in DATA.glob(f"out{number}.pentaglot-*") for f in p.glob("part-*")]) >= wanted, query)
    if wanted == 0:
        time.sleep(0.1 * (number % 3))
    replaced(executors[number % 2])
    answer = ended(query)
    left = list(DATA.glob(f"out{number}.pentaglot-*"))
    assert not left, left
    if answer is None:
        assert not out.exists()
    else:
        assert rows(f"SELECT count(*) AS n, sum(id) AS s, count(DISTINCT id) AS d FROM '{out}'") == [{**ALL, "d": ALL["n"]}]
        shutil.rmtree(out)
    outcomes.append("error" if answer is None else "whole")
print("  killed during COPY:", ", ".join(outcomes))

# A deadline ends a query and its job.
query = f"SELECT count(*) AS n FROM '{big}' AS a JOIN '{big}' AS b ON a.k = b.k WHERE a.v < b.v"
error = run("sql", *WHERE, "--deadline", "1", query, status=2)
assert "the deadline of 1 seconds has passed" in error and error.count("\n") == 1, error
assert rows(f"{summed} '{DATA}/trades.bson'", *CLUSTER) == rows(f"{summed} '{DATA}/trades.bson'")

# The scheduler goes: an error.
jobs = lambda: {folder.name for executor in executors for folder in executor.work.iterdir()}
before = jobs()
query = begun(f"SELECT k, count(*) AS n FROM (SELECT k, name FROM '{big}' GROUP BY k, name) GROUP BY k")
until(lambda: jobs() - before, query)
scheduler.kill()
answer = ended(query)
assert answer is None or len(answer) == 1000, answer
print(f"cluster: {len(QUERIES)} queries on two executors, equal to one process; {KILLS + JOIN_KILLS + 2} executors killed")
