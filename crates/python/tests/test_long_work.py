"""Signals and forks: long work answers to the one and outlives the other."""

import contextlib
import http.server
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import pentaglot as pg
from pentaglot import dynd, succinct


class Interrupted(Exception):
    pass


def delay(work) -> float:
    """How long after a signal its handler's exception ends the work, which is done again and again."""

    def stop(number, frame):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, stop)
    try:
        wait, begun = 0.2, time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, wait)
        with pytest.raises(Interrupted):
            while True:
                work()
        return time.monotonic() - begun - wait
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


#: Seconds: five times what is promised, since machines may be busy.
SOON = 1.0
COUNT = 10_000_000


class Nowhere(io.RawIOBase):
    def write(self, data):
        time.sleep(0.01)
        return len(data)


@pytest.mark.parametrize("kind", [succinct.BitVector, succinct.SparseVector, succinct.RunLengthVector])
def test_structures_of_bits_answer_to_signals(kind):
    positions = np.arange(0, 2 * COUNT, 2, dtype=np.uint64)
    assert delay(lambda: kind(positions)) < SOON
    bits = kind(positions[: COUNT // 10])
    questions = np.resize(np.arange(0, COUNT // 5, 7, dtype=np.uint64), COUNT)
    assert delay(lambda: bits.rank(questions)) < SOON
    if kind is succinct.BitVector:
        assert delay(lambda: bits.save(Nowhere())) < SOON


def test_structures_of_integers_answer_to_signals():
    values = np.arange(COUNT, dtype=np.uint64) % 1000
    for kind in (succinct.IntVector, succinct.WaveletMatrix):
        assert delay(lambda: kind(values)) < SOON
        some = kind(values[:100_000])
        questions = values[: COUNT // 2]
        assert delay(lambda: some.get(questions)) < SOON
    assert delay(lambda: some.rank(questions, 5)) < SOON
    assert delay(lambda: some.inverse_select(questions)) < SOON


def test_values_of_dynd_answer_to_signals():
    values = list(range(2_000_000))
    assert delay(lambda: dynd.serialize(values, "var * int64")) < SOON
    data = dynd.serialize(values[:1_000_000], "var * int64")
    assert delay(lambda: dynd.deserialize(data, "var * int64")) < SOON


@pytest.mark.parametrize("extension", ["bson", "parquet", "arrow", "npy", "csv"])
def test_a_document_is_read_before_and_after_fork(tmp_path, extension):
    path = tmp_path / f"t.{extension}"
    if extension == "npy":
        pg.write(np.arange(200_000).reshape(-1, 2), path)
    else:
        pg.write(pa.table({name: range(100_000) for name in "ab"}), path)
    read_before_and_after_fork(path)


@pytest.mark.parametrize("extension", ["bson", "csv", "jsonl", "parquet"])
def test_rows_that_are_partly_read_go_on_in_both_processes_after_fork(tmp_path, extension):
    path = tmp_path / f"t.{extension}"
    pg.write(pa.table({name: range(1_000_000) for name in "ab"}), path)
    code = """
        import os, sys
        import pentaglot as pg
        document = pg.open(sys.argv[1], threads=3)
        unread, rows = document.rows(), iter(document.rows())
        first = next(rows).num_rows

        def count_is_right():
            return first + sum(batch.num_rows for batch in rows) == 1_000_000

        child = os.fork()
        if child == 0:
            left = iter(document.rows())
            next(left)
            del left
            os._exit(0 if count_is_right() and sum(batch.num_rows for batch in unread) == 1_000_000 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert count_is_right()
        """
    run_and_end(code, path)


@pytest.mark.parametrize("extension", ["bson", "parquet"])
def test_rows_of_a_file_object_can_be_left(tmp_path, extension):
    path = tmp_path / f"t.{extension}"
    # Larger than the cache of a file object.
    numbers = np.random.default_rng(7).integers(0, 1 << 60, (3, 1_000_000))
    pg.write(pa.table(list(numbers), names=list("abc")), path)
    code = """
        import sys
        import pentaglot as pg
        for _ in range(30):
            rows = iter(pg.open(open(sys.argv[1], "rb"), threads=3).rows())
            assert next(rows).num_rows > 0 and next(rows).num_rows > 0
            del rows
        """
    run_and_end(code, path)


def test_a_remote_document_is_read_before_and_after_fork(tmp_path):
    pg.write(pa.table({name: range(100_000) for name in "ab"}), tmp_path / "t.parquet")
    with serve((tmp_path / "t.parquet").read_bytes()) as address:
        read_before_and_after_fork(f"{address}/t.parquet")


@contextlib.contextmanager
def serve(content):
    """The address of a server that answers every request with a range of these bytes."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            if not self.path.endswith(".parquet"):
                return self.send_error(404)
            first, last = (int(end) for end in self.headers["Range"].removeprefix("bytes=").split("-"))
            part = content[first : last + 1]
            self.send_response(206)
            self.send_header("Content-Length", str(len(part)))
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(content)}")
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(part)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def read_before_and_after_fork(name):
    code = """
        import os, sys
        import pentaglot as pg
        document = pg.open(sys.argv[1], threads=3)
        assert sum(batch.num_rows for batch in document.rows()) == 100_000
        first = document.read()
        child = os.fork()
        if child == 0:
            same = document.read().to_pyarrow().equals(first.to_pyarrow())
            grandchild = os.fork()
            if grandchild == 0:
                os._exit(0 if same and document.read().num_rows == 100_000 else 1)
            status = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
            # What is left of the parent's threads is not waited for.
            del document
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert document.read().num_rows == 100_000
        """
    run_and_end(code, name)


def run_and_end(code, name):
    """Runs a program, which ends within a minute."""
    command = [sys.executable, "-c", textwrap.dedent(code), str(name)]
    parent = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        errors = parent.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        # The children too.
        os.killpg(parent.pid, signal.SIGKILL)
        raise
    assert parent.returncode == 0, errors
