"""Tables in collections: a real server on loopback, written and read by the command, looked at by pymongo.

Needs SecantusDB, pymongo, lz4, numpy; run by `cargo xtask test` with PENTAGLOT = the built command (feature `mongodb`).
"""

import atexit
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta

import bson
import lz4.block
import numpy
import pymongo
from bson import json_util
from bson.objectid import ObjectId

KILLS = int(os.environ.get("MONGODB_KILLS", "10"))
ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
COMMAND = os.environ["PENTAGLOT"]
SERVER = pathlib.Path(sys.executable).parent / "secantusd-py"
PASSWORD = "s3cret-passw0rd"
printed = []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


PORT = free_port()
HOST = f"127.0.0.1:{PORT}"
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": str(FOLDER), "PENTAGLOT_REMOTE_TIMEOUT": "20"}
server = None


def start_server():
    global server
    words = [
        SERVER, "--port", str(PORT), "--storage-path", str(FOLDER / "storage"), "--standalone", "--sync-on-commit",
    ]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1200):
        assert server.poll() is None, "the server ended"
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", PORT)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("the server does not answer")


def kill_server():
    server.kill()
    server.wait()


atexit.register(lambda: server and server.poll() is None and kill_server())


def run(*words, status=0, stdin=None, environment=None):
    done = subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, input=stdin, cwd=FOLDER,
        env={**ENVIRONMENT, **(environment or {})},
    )
    printed.append(done.stdout + done.stderr)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    if status:
        assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stdout if status == 0 else done.stderr


def place(collection, host=HOST, **parameters):
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"mongodb://{host}/market/{collection}" + (f"?{query}" if query else "")


def database():
    return pymongo.MongoClient(HOST, serverSelectionTimeoutMS=20000)["market"]


def ticks(path, first, count):
    """Rows of ten columns whose order is that of `time`."""
    generator = random.Random(first)
    names = ["time", "price", *(f"c{i}" for i in range(8))]
    lines = [",".join(names)]
    for row in range(first, first + count):
        seconds = row % 86400
        day = 2 + row // 86400
        stamp = f"2024-01-{day:02}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        noise = [f"{generator.random():.15f}" for _ in range(8)]
        lines.append(",".join([stamp, f"{100 + generator.random():.4f}", *noise]))
    path.write_text("\n".join(lines) + "\n")


def parts(collection):
    """How many documents each of the three collections has."""
    store = database()
    return [store[name].count_documents({}) for name in (collection, f"{collection}.versions", f"{collection}.keys")]


class Proxy:
    """Counts what the server answers."""

    def __init__(self):
        self.answered = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            remote = socket.create_connection(("127.0.0.1", PORT))
            threading.Thread(target=self.copy, args=(client, remote, False), daemon=True).start()
            threading.Thread(target=self.copy, args=(remote, client, True), daemon=True).start()

    def copy(self, source, target, counted):
        try:
            while piece := source.recv(1 << 16):
                if counted:
                    self.answered += len(piece)
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            end.close()

    def bytes_of(self, *words):
        before = self.answered
        return run(*words), self.answered - before


start_server()
ticks(FOLDER / "a.csv", 0, 20_000)
ticks(FOLDER / "b.csv", 20_000, 5_000)
run("convert", "a.csv", "a.parquet")

# A table goes in and comes out the same, in every way that a file is read.
small = ["-O", "max-bytes=64K"]
table = place("ticks", key="AAPL", order="time")
run("convert", "a.parquet", table, *small)
assert run("hash", table).split()[0] == run("hash", "a.parquet").split()[0]
assert run("count", table).split()[0] == "20000"
for words in [
    ["--rows", "12345..12350"],
    ["--columns", "c3,time", "--rows", "19990.."],
    ["--where", "time >= '2024-01-02T01:00:00' and time < '2024-01-02T01:00:05'"],
    ["--where", "price > 100.999", "--columns", "price"],
    ["--rows", "5..5"],
]:
    assert run("cat", table, *words) == run("cat", "a.parquet", *words), words
assert run("tail", "-n", 3, table) == run("tail", "-n", 3, "a.parquet")
ranged = place("ticks", key="AAPL", **{"from": "2024-01-02T01:00:00", "to": "2024-01-02T01:00:05"})
same = ["--where", "time >= '2024-01-02T01:00:00' and time < '2024-01-02T01:00:05'"]
assert run("cat", ranged) == run("cat", "a.parquet", *same)
assert run("validate", table) == "" or "valid" in run("validate", table)
described = json.loads(run("inspect", "--json", table))
assert described["rows"] == 20_000 and len(described["columns"]) == 10, described
assert described["metadata"]["key"] == "AAPL" and described["metadata"]["order"] == "time", described
run("diff", table, "a.parquet")

# What pymongo sees.
store = database()
version = store["ticks.versions"].find_one()
assert (version["k"], version["state"], version["rows"]) == ("AAPL", "done", 20_000), version
assert store["ticks.keys"].find_one() == {"_id": "AAPL", "v": version["_id"]}
chunks = [store["ticks"].find_one({"_id": identity}) for identity in version["chunks"]]
assert [list(chunk) for chunk in chunks] == [["_id", "k", "first", "rows", "min", "max", "df"]] * len(chunks)
assert [chunk["_id"]["n"] for chunk in chunks] == list(range(len(chunks))) and len(chunks) > 10
assert [chunk["first"] for chunk in chunks] == list(numpy.cumsum([0] + [chunk["rows"] for chunk in chunks])[:-1])
assert all(chunk["min"] <= chunk["max"] for chunk in chunks)
assert all(one["max"] < other["min"] for one, other in zip(chunks, chunks[1:]))
assert max(len(bson.encode(chunk)) for chunk in chunks) <= 64 << 10
assert {index["name"] for index in store["ticks"].list_indexes()} >= {"k_1__id.v_1__id.n_1", "k_1_min_1_max_1"}


def values(column, kind):
    packed = bytes(column["d"])
    return numpy.frombuffer(lz4.block.decompress(packed), dtype=kind)


prices = numpy.concatenate([values(chunk["df"]["price"], "<f8") for chunk in chunks])
expected = [json.loads(line)["price"] for line in run("cat", "a.parquet", "--columns", "price").splitlines()]
assert prices.tolist() == expected

# Only what is needed is fetched.
proxy = Proxy()
through = place("ticks", host=proxy.host, key="AAPL")
_, everything = proxy.bytes_of("hash", through)
column, fetched = proxy.bytes_of("cat", through, "--columns", "c3", "--output", "csv")
assert len(column.splitlines()) == 20_001
assert fetched <= 0.15 * everything, (fetched, everything)
some = ["--where", "time >= '2024-01-02T02:00:00' and time < '2024-01-02T02:03:20'"]
found, fetched = proxy.bytes_of("cat", through, *some)
assert len(found.splitlines()) == 200
assert fetched <= 0.1 * everything, (fetched, everything)

# An existing key is refused, replaced with --force, and appended to; old versions stay until they are pruned.
assert "exists already" in run("convert", "b.csv", table, status=2)
first = version["_id"]
run("mongodb", "append", "b.csv", place("ticks", key="AAPL"), *small)
assert run("count", table).split()[0] == "25000"
appended = store["ticks.versions"].find_one({"_id": store["ticks.keys"].find_one()["v"]})
assert appended["chunks"][: len(chunks)] == version["chunks"]
assert run("count", place("ticks", key="AAPL", version=first)).split()[0] == "20000"
assert run("cat", table, "--rows", "19999..20001").count("\n") == 2
assert "2024-01-02T06:00:00" in run("cat", table, "--where", "time = '2024-01-02T06:00:00'")
narrow = FOLDER / "narrow.csv"
narrow.write_text("time,price\n2024-01-09T00:00:00,1.5\n")
before = parts("ticks")
assert "same columns" in run("mongodb", "append", narrow, place("ticks", key="AAPL"), status=2)
assert parts("ticks") == before
run("convert", "b.csv", table, "--force", *small)
assert run("count", table).split()[0] == "5000"
listed = [json.loads(line) for line in run("mongodb", "list", "--json", table).splitlines()]
assert [one["rows"] for one in listed] == [20_000, 25_000, 5_000] and listed[-1]["current"], listed
assert run("count", place("ticks", key="AAPL", version=listed[1]["version"])).split()[0] == "25000"
assert "is the one that" in run(
    "mongodb", "delete", place("ticks", key="AAPL", version=listed[2]["version"]), status=2
)
run("mongodb", "delete", place("ticks", key="AAPL", version=listed[0]["version"]))
# Its chunks are shared.
assert run("hash", place("ticks", key="AAPL", version=listed[1]["version"]))
run("mongodb", "prune", place("ticks"))
chunk_count, versions, keys = parts("ticks")
assert (versions, keys) == (1, 1) and chunk_count == listed[2]["chunks"], parts("ticks")

# Several keys are members.
run("convert", "a.parquet", place("ticks", key="MSFT"))
described = json.loads(run("inspect", "--json", place("ticks")))
assert described["members"] == ["AAPL", "MSFT"], described
assert run("count", place("ticks") + "::MSFT").split()[0] == "20000"
assert "AAPL, MSFT" in run("cat", place("ticks"), status=2)
assert "there is AAPL, MSFT" in run("cat", place("ticks", key="IBM"), status=2)
assert "no key is named" in run("convert", "b.csv", place("ticks"), status=2)

# Collections in SQL: read, joined, and written by COPY.
picked = place("picked", key="x", order="time")
query = f"SELECT time, price FROM '{table}' WHERE price > 100.5 ORDER BY time"
run("sql", f"COPY ({query}) TO '{picked}'")
run("sql", query, "-o", "picked.parquet")
run("diff", "picked.parquet", picked)
assert store["picked.versions"].find_one()["schema"]["order"] == "time"
assert "exists already" in run("sql", f"COPY ({query}) TO '{picked}'", status=2)
run("sql", f"COPY ({query} LIMIT 3) TO '{picked}' OPTIONS (overwrite true)")
assert run("count", picked).split()[0] == "3"
assert "partitioned" in run("sql", f"COPY ({query}) TO '{picked}' PARTITIONED BY (price)", status=2)
joined = f"SELECT count(*) AS n FROM '{table}' JOIN 'b.csv' AS other USING (time)"
assert json.loads(run("sql", joined, "--output", "jsonl"))["n"] == 5000

verified = json.loads(run("convert", "--json", "--verify", "b.csv", place("proved", key="k")))["verified"]
assert verified["written"] == verified["read"] == run("hash", place("proved", key="k")).split()[0]

# A dump of the collection lists its keys; what lies under a key is the table.
dumped = b"".join(bson.encode(chunk) for chunk in store["ticks"].find())
(FOLDER / "whole.bson").write_bytes(dumped)
assert {"AAPL", "MSFT"} <= set(json.loads(run("inspect", "--json", "whole.bson"))["members"])
assert "AAPL, MSFT" in run("count", "whole.bson", status=2)
assert run("hash", "whole.bson::MSFT").split()[0] == run("hash", "a.parquet").split()[0]

# A row that is longer than a chunk should be has a chunk of its own.
(FOLDER / "long.jsonl").write_text("".join(
    json.dumps({"n": n, "text": random.Random(n).randbytes(size // 2).hex()}) + "\n"
    for n, size in enumerate([10, 9_000_000, 20])
))
run("convert", "long.jsonl", place("long"))
assert store["long"].count_documents({}) == 3
run("diff", "long.jsonl", place("long"))
run("mongodb", "delete", place("ticks", key="MSFT"))
assert parts("ticks")[1:] == [1, 1]
run("convert", place("ticks", key="AAPL"), "out.parquet")
run("diff", "out.parquet", "b.csv")
(FOLDER / "empty.csv").write_text("a,b\n")
run("convert", "empty.csv", place("empty"), "--type", "{a: ?int64, b: ?string}")
assert run("count", place("empty")).split()[0] == "0"
assert [column["name"] for column in json.loads(run("inspect", "--json", place("empty")))["columns"]] == ["a", "b"]

# Two writers: the one that commits last loses, and leaves nothing.
race = place("race", key="k")
run("convert", "b.csv", race, *small)
slow = subprocess.Popen(
    [COMMAND, "convert", "-", race, "--from", "csv", "--force", *small], cwd=FOLDER, env=ENVIRONMENT,
    stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
)
text = (FOLDER / "a.csv").read_text()
slow.stdin.write(text)
slow.stdin.flush()
while parts("race")[1] < 2:
    time.sleep(0.05)
run("convert", "b.csv", race, "--force", *small)
# One that is being written is not touched by cleaning, and its chunks are not by pruning.
run("mongodb", "prune", place("race"))
assert parts("race")[1] == 2
_, errors = slow.communicate()
assert slow.returncode == 2 and "another writer changed the key" in errors, errors
assert run("count", race).split()[0] == "5000"
assert parts("race")[1:] == [1, 1] and parts("race")[0] == len(store["race.versions"].find_one()["chunks"])

# What a writer left behind is removed after ten minutes of silence, and not before.
dead, busy = ObjectId(), ObjectId()
now = store.command("hello")["localTime"]
for identity, minutes in [(dead, 11), (busy, 5)]:
    store["race.versions"].insert_one({
        "_id": identity, "k": "k", "state": "writing", "heartbeat": now - timedelta(minutes=minutes),
        "rows": 0, "schema": None, "chunks": [],
    })
    store["race"].insert_one({"_id": {"v": identity, "n": 0}, "k": "k", "first": 0, "rows": 1, "df": {}})
assert "being written" in run("cat", place("race", version=busy), status=1)
run("convert", "b.csv", race, "--force", *small)
assert store["race.versions"].find_one({"_id": dead}) is None and store["race"].find_one({"_id.v": dead}) is None
assert store["race.versions"].find_one({"_id": busy}) and store["race"].find_one({"_id.v": busy})

# Stores that are broken: one line that names the place.
broken = place("broken", key="k")
run("convert", "b.csv", broken, *small)
version = store["broken.versions"].find_one()
second = store["broken"].find_one({"_id": version["chunks"][1]})
store["broken"].delete_one({"_id": version["chunks"][1]})
assert f"chunk 1 of version {version['_id']}" in run("cat", broken, status=1)
other = {**second, "df": {**second["df"], "price": second["df"]["time"]}}
store["broken"].insert_one(other)
assert "price: expected float64, as the version says" in run("cat", broken, status=1)
store["broken"].replace_one({"_id": other["_id"]}, {**second, "df": {"x": 1}})
assert "chunk 1 of version" in run("cat", broken, status=1)
store["broken"].replace_one({"_id": other["_id"]}, {**second, "first": 7})
assert "to begin with row" in run("cat", broken, status=1)
store["broken.keys"].replace_one({"_id": "k"}, {"_id": "k", "v": "text"})
assert "object id" in run("cat", broken, status=1)
store["plain"].insert_one({"name": "no frame"})
assert "no table is in this collection" in run("cat", place("plain"), status=2)
noise = numpy.random.default_rng(1).random(2_500_000)
numpy.save(FOLDER / "noise.npy", noise)
assert "16777216" in run("convert", "noise.npy", place("large"), "-O", "max-bytes=20M", "-O", "target-bytes=20M", status=4)
assert parts("large") == [0, 0, 0]

# Servers that are not there, do not answer, or refuse.
nobody = f"mongodb://me:{PASSWORD}@127.0.0.1:{free_port()}/market/ticks?key=AAPL"
quick = {"PENTAGLOT_REMOTE_TIMEOUT": "2"}
assert "mongodb:" in run("cat", nobody, status=2, environment=quick)
refused = run("cat", f"mongodb://me:{PASSWORD}@{HOST}/market/ticks?key=AAPL", status=2)
assert "credentials" in refused or "uthentication" in refused, refused
assert "password" not in run("cat", "mongodb:///market/ticks", status=2).lower().replace(PASSWORD, "password")
assert run("count", "mongodb:///market/ticks?key=AAPL", environment={"MONGODB_URI": f"mongodb://{HOST}"})
server.send_signal(signal.SIGSTOP)
assert "mongodb:" in run("cat", table, status=2, environment=quick)
server.send_signal(signal.SIGCONT)
assert run("count", table).split()[0] == "5000"

# Files: documents of pymongo are read, ours are read by pymongo.
frames = [chunk["df"] for chunk in chunks[:3]]
(FOLDER / "dump.bson").write_bytes(b"".join(bson.encode({"_id": ObjectId(), "sy": "AAPL", **frame}) for frame in frames))
rows = sum(chunk["rows"] for chunk in chunks[:3])
assert run("cat", "dump.bson") == run("cat", "a.parquet", "--rows", f"0..{rows}")
assert run("count", "dump.bson::1").split()[0] == str(chunks[1]["rows"])
(FOLDER / "nested.bson").write_bytes(bson.encode({"_id": 5, "df": frames[0]}))
assert run("cat", "nested.bson::df") == run("cat", "dump.bson::0")
(FOLDER / "export.json").write_text("".join(json_util.dumps(chunk) + "\n" for chunk in chunks[:3]))
assert run("cat", "export.json") == run("cat", "dump.bson")
canonical = json_util.CANONICAL_JSON_OPTIONS
(FOLDER / "array.json").write_text(json_util.dumps(chunks[:3], json_options=canonical))
assert run("cat", "array.json") == run("cat", "dump.bson")
chunked = ["-O", "max-bytes=64K", "-O", "key=AAPL", "-O", "order=time"]
run("convert", "a.parquet", "chunks.bson", *chunked)
ours = bson.decode_all((FOLDER / "chunks.bson").read_bytes())
assert [chunk["df"] for chunk in ours] == [chunk["df"] for chunk in chunks]
for name in ["canonical", "relaxed"]:
    run("convert", "a.parquet", f"{name}.bson.json", "-O", f"json={name}", *chunked)
    lines = (FOLDER / f"{name}.bson.json").read_text().splitlines()
    loaded = [json_util.loads(line) for line in lines]
    assert [chunk["df"] for chunk in loaded] == [chunk["df"] for chunk in ours], name
    assert run("hash", f"{name}.bson.json").split()[0] == run("hash", "a.parquet").split()[0]

# The server is killed while a table is replaced: the old version is whole, whatever came of the new one.
killed = place("killed", key="k", order="time")
started = time.monotonic()
run("convert", "a.parquet", killed, *small)
duration = time.monotonic() - started
run("convert", "b.csv", killed, "--force", *small)
old = run("hash", killed).split()[0]
new = run("hash", "a.parquet").split()[0]
outcomes = {old: 0, new: 0}
generator = random.Random(5)
environment = {"PENTAGLOT_REMOTE_TIMEOUT": "4"}
for _ in range(KILLS):
    writer = subprocess.Popen(
        [COMMAND, "convert", "a.parquet", killed, "--force", *small], cwd=FOLDER, env={**ENVIRONMENT, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    time.sleep(generator.random() * duration)
    kill_server()
    _, errors = writer.communicate()
    printed.append(errors)
    assert writer.returncode in (0, 2), errors
    assert len(errors.splitlines()) <= 1, errors
    start_server()
    found = run("hash", killed).split()[0]
    assert found == old or found == new, (found, errors)
    assert writer.returncode == 2 or found == new
    outcomes[found] += 1
    if found == new:
        run("convert", "b.csv", killed, "--force", *small)
print(f"mongodb.py: {KILLS} kills, {outcomes[old]} before the commit, {outcomes[new]} after it")
run("mongodb", "prune", place("killed"))
assert run("hash", killed).split()[0] == old

# The tutorial's commands run as they are.
tour = FOLDER / "tour"
tour.mkdir()
ticks(tour / "day-1.csv", 9 * 3600, 500)
ticks(tour / "day-2.csv", 33 * 3600, 500)
shutil.copy(COMMAND, tour / "pentaglot")
database().client.drop_database("market")
shown = {}
for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/mongodb.md").read_text(), re.DOTALL):
    for line in block.splitlines():
        if line.startswith("export "):
            continue
        done = subprocess.run(
            ["bash", "-c", line], cwd=tour, capture_output=True, text=True,
            env={**ENVIRONMENT, "PATH": f"{tour}:{os.environ['PATH']}", "MONGODB_URI": f"mongodb://{HOST}"},
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        shown[line] = done.stdout
assert shown["pentaglot count 'mongodb:///market/ticks?key=AAPL'"].split()[0] == "1000"
assert [shown[line].count("\n") for line in shown if "from=" in line] == [5]

assert not any(PASSWORD in text for text in printed)
kill_server()
