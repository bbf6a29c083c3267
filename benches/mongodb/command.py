"""A table in a collection through the command, against plain binary documents by pymongo (the bytes of the values, and the
encoded bytes that the command sends, as if compressing them took no time), and against LZ4-packed NumPy columns as Arctic
stores them (`arctic.py`). Also how many bytes a column and a range of rows fetch.

    command.py COMMAND [MEGABYTES]

Needs SecantusDB, pymongo, lz4 and numpy, which `cargo xtask test` installs in `python-mongodb` of the build folder.
"""
import os, pathlib, socket, statistics, subprocess, sys, tempfile, threading, time

import bson
import bson.raw_bson
import numpy
import pymongo

ROUNDS = 3
PLAIN_BYTES = 4 << 20


def start_server(folder):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    program = pathlib.Path(sys.executable).parent / "secantusd-py"
    words = [program, "--port", str(port), "--storage-path", str(folder / "storage"), "--standalone"]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        assert server.poll() is None, "the server ended"
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return server, port
        time.sleep(0.05)


class Proxy:
    """Counts the bytes that the server sends."""

    def __init__(self, port):
        self.port, self.count = port, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.port))
            threading.Thread(target=self.pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, True), daemon=True).start()

    def pump(self, source, target, counts):
        try:
            while block := source.recv(1 << 16):
                self.count += len(block) if counts else 0
                target.sendall(block)
        except OSError:
            pass
        target.close()


def ticks(path, megabytes):
    rows = megabytes * 12_500
    random = numpy.random.default_rng(7)
    columns = [("time", "<M8[ns]"), ("volume", "<i8")] + [(f"price_{place}", "<f8") for place in range(8)]
    table = numpy.zeros(rows, dtype=columns)
    table["time"] = 1_700_000_000_000_000_000 + numpy.arange(rows) * 1_000_000
    table["volume"] = random.integers(0, 500, rows) * 100
    for place in range(8):
        table[f"price_{place}"] = numpy.round(100 + numpy.cumsum(random.integers(-10, 11, rows)) / 100, 2)
    numpy.save(path, table)
    return rows


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak(words):
    """Runs a program; the most memory that it held, in MB."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            most = max([most] + [int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM")])
        except OSError:
            pass
        time.sleep(0.01)
    assert process.returncode == 0, words
    return most / 1024


def main(command, folder, megabytes):
    rows = ticks(folder / "ticks.npy", megabytes)
    server, port = start_server(folder)
    run = lambda *words: subprocess.run([command, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    run("convert", "-q", folder / "ticks.npy", folder / "ticks.arrow")
    run("convert", "-q", folder / "ticks.arrow", folder / "ticks.bson", "-O", "max-bytes=15M", "-O", "key=K", "-O", "order=time")
    documents = [document.raw for document in bson.decode_file_iter(open(folder / "ticks.bson", "rb"), bson.codec_options.CodecOptions(document_class=bson.raw_bson.RawBSONDocument))]
    total = sum(map(len, documents))
    database = pymongo.MongoClient("127.0.0.1", port)["bench"]
    values = numpy.load(folder / "ticks.npy", mmap_mode="r").view("u1").reshape(-1)
    place = lambda host: f"mongodb://{host}/bench/ticks?key=K&order=time"

    def insert(name, parts):
        database[name].drop()
        for number, part in enumerate(parts):
            database[name].insert_one({"_id": number, "data": bytes(part)})

    def fetch(name, size):
        assert sum(len(found["data"]) for found in database[name].find()) == size

    plain = {"values": ([values[at : at + PLAIN_BYTES] for at in range(0, len(values), PLAIN_BYTES)], len(values)), "encoded": (documents, total)}
    own = place(f"127.0.0.1:{port}")
    times = {}
    note = lambda name, work: times.setdefault(name, []).append(timed(work))
    for _ in range(ROUNDS):
        for name, (parts, size) in plain.items():
            note(f"insert {name}", lambda: insert(name, parts))
            note(f"fetch {name}", lambda: fetch(name, size))
            database[name].drop()
        note("write", lambda: run("convert", "-q", folder / "ticks.arrow", own, "--force"))
        note("read", lambda: run("convert", "-q", own, "-", "--to", "arrow-stream"))
    found = {name: statistics.median(values) for name, values in times.items()}
    print(f"{rows} rows, {megabytes} MB of values, {total / 1e6:.0f} MB encoded")
    for own_name, peer in [("write", "insert"), ("read", "fetch")]:
        ratios = [f"{found[f'{peer} {name}'] / found[own_name]:.2f}x of plain documents of the {name}" for name in plain]
        print(f"{own_name} {found[own_name]:.2f} s: {' (target 0.8), '.join(ratios)}")
    print(f"resident: writing {peak([command, 'convert', '-q', folder / 'ticks.arrow', own, '--force']):.0f} MB, reading {peak([command, 'convert', '-q', own, folder / 'back.arrow', '--force']):.0f} MB (target 300)")
    proxy = Proxy(port)
    through = place(proxy.host)

    def fetched(*words):
        before = proxy.count
        run(*words)
        return proxy.count - before

    everything = fetched("hash", through)
    column = fetched("convert", "-q", through, folder / "one.arrow", "--columns", "price_3", "--force")
    middle = rows // 2
    part = fetched("convert", "-q", through, folder / "part.arrow", "--rows", f"{middle}..{middle + rows // 100}", "--force")
    print(f"one column of ten: {column / everything:.3f} of the bytes (target 0.15); 1 % of the rows: {part / everything:.4f} (target 0.03)")
    script = pathlib.Path(__file__).with_name("arctic.py")
    done = subprocess.run([sys.executable, script, str(rows)], check=True, capture_output=True, text=True, env={**os.environ, "MONGODB_URI": f"mongodb://127.0.0.1:{port}"})
    print(f"LZ4-packed NumPy columns: {done.stdout.strip()}")
    server.kill()
    server.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="pentaglot-mongodb-") as name:
        main(sys.argv[1], pathlib.Path(name), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
