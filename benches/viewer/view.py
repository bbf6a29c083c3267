"""`pentaglot view` on large files: the first rows, any rows, memory, a sort.

    view.py COMMAND [GIGABYTES]

The large file is a matrix in a sparse file: it takes no room on the disk, and its pages are read as zeros.
"""
import http.client, json, pathlib, random, re, statistics, subprocess, sys, tempfile, time


class View:
    def __init__(self, command, path):
        self.started = time.perf_counter()
        self.process = subprocess.Popen([command, "view", path, "--no-open"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = self.process.stdout.readline()
        port, code = re.search(r"127\.0\.0\.1:(\d+)/#(\S+)", line).groups()
        self.host = f"127.0.0.1:{port}"
        self.token = None
        self.token = json.loads(self.ask("POST", "/api/login", {"code": code}))["token"]

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.host)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connection.request(method, path, body and json.dumps(body), headers)
        answer = connection.getresponse()
        found = answer.read()
        assert answer.status == 200, (path, found)
        return found

    def resident(self):
        """The most memory so far, in MB."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024

    def close(self):
        self.process.terminate()
        self.process.wait()


def npy(path, rows, columns):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".ljust(117).encode() + b"\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        out.truncate(out.tell() + rows * columns * 8)


def large(command, folder, gigabytes):
    columns = 100
    rows = gigabytes * 10**9 // (8 * columns)
    npy(folder / "large.npy", rows, columns)
    view = View(command, folder / "large.npy")
    view.ask("GET", "/api/files")
    view.ask("GET", "/api/rows?file=0&from=0&to=60&first=0&last=20")
    print(f"{gigabytes} GB: first rows after {time.perf_counter() - view.started:.3f} s (target 1)")
    times = []
    for _ in range(100):
        start = random.Random(len(times)).randrange(rows - 100)
        before = time.perf_counter()
        view.ask("GET", f"/api/rows?file=0&from={start}&to={start + 100}&first=0&last=20")
        times.append(time.perf_counter() - before)
    print(f"any 100 rows: median {statistics.median(times) * 1e3:.1f} ms, most {max(times) * 1e3:.1f} ms (target 200)")
    print(f"resident: {view.resident():.0f} MB (target 300)")
    view.close()


def sort(command, folder):
    """1e7 rows."""
    import numpy, pyarrow, pyarrow.parquet

    numbers = numpy.random.default_rng(3)
    rows = 10_000_000
    table = {"id": numpy.arange(rows), "x": numbers.normal(size=rows), "k": numbers.integers(0, 1000, rows)}
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "many.parquet")
    view = View(command, folder / "many.parquet")
    for what, body in [("sorted by x", {"sort": "x"}), ("sorted by k, k < 500", {"sort": "k", "filter": "k < 500"})]:
        before = time.perf_counter()
        answer = json.loads(view.ask("POST", "/api/view?file=0", body))
        taken = time.perf_counter() - before
        view.ask("GET", f"/api/rows?file=0&view={answer.get('view', answer.get('id'))}&from=0&to=60&first=0&last=3")
        print(f"1e7 rows {what}: {taken:.2f} s, first screen {time.perf_counter() - before - taken:.3f} s, {answer}")
    print(f"resident: {view.resident():.0f} MB")
    view.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="pentaglot-view-") as name:
        large(sys.argv[1], pathlib.Path(name), int(sys.argv[2]) if len(sys.argv) > 2 else 10)
        sort(sys.argv[1], pathlib.Path(name))
