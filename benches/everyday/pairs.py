"""Everyday conversions through the command, against DuckDB, Polars and pyarrow.

    pairs.py peer NAME SOURCE TARGET THREADS    what a peer does, in a process of its own
    pairs.py floor TARGET BYTES SECONDS         so many bytes are written at an even pace, and synced
"""
import io, os, sys, time

from data import read, table, write
from measure import clock, measure, medians, rotated, settle

PAIRS = [
    ("parquet", "csv"), ("csv", "parquet"), ("parquet", "jsonl"), ("jsonl", "parquet"),
    ("parquet", "arrow"), ("arrow", "parquet"), ("csv", "arrow"), ("arrow", "csv"),
]
FORMATS = ["parquet", "csv", "jsonl", "arrow"]
PEERS = {
    "polars": {"read": FORMATS, "write": FORMATS},
    "duckdb": {"read": ["parquet", "csv", "jsonl"], "write": ["parquet", "csv", "jsonl"]},
    "pyarrow": {"read": FORMATS, "write": ["parquet", "csv", "arrow"]},
}


def peer(name, source, target, threads):
    """Does the work of a peer; prints the seconds that it takes, without imports."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    from_kind, to_kind = source.rsplit(".", 1)[1], target.rsplit(".", 1)[1]
    work = {"polars": with_polars, "duckdb": with_duckdb, "pyarrow": with_pyarrow}[name](threads)
    clock(lambda: work(source, target, from_kind, to_kind))


def with_polars(threads):
    import polars

    def work(source, target, from_kind, to_kind):
        data = {
            "csv": lambda: polars.read_csv(source, try_parse_dates=True),
            "jsonl": lambda: polars.read_ndjson(source),
            "parquet": lambda: polars.read_parquet(source),
            "arrow": lambda: polars.read_ipc(source),
        }[from_kind]()
        {
            "csv": lambda: data.write_csv(target),
            "jsonl": lambda: data.write_ndjson(target),
            "parquet": lambda: data.write_parquet(target, compression="zstd", compression_level=1),
            "arrow": lambda: data.write_ipc(target, compression="uncompressed"),
        }[to_kind]()

    return work


def with_duckdb(threads):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"set threads={threads}")

    def work(source, target, from_kind, to_kind):
        rows = {"csv": "read_csv", "jsonl": "read_json", "parquet": "read_parquet"}[from_kind]
        how = {"csv": "format csv, header", "jsonl": "format json", "parquet": "format parquet, compression zstd, compression_level 1"}[to_kind]
        connection.execute(f"copy (select * from {rows}('{source}')) to '{target}' ({how})")

    return work


def with_pyarrow(threads):
    import pyarrow, pyarrow.csv, pyarrow.feather, pyarrow.json, pyarrow.parquet

    pyarrow.set_cpu_count(threads)
    # Its first use imports more.
    pyarrow.feather.write_feather(pyarrow.table({"x": [1]}), io.BytesIO())
    several = threads > 1

    def work(source, target, from_kind, to_kind):
        data = {
            "csv": lambda: pyarrow.csv.read_csv(source, pyarrow.csv.ReadOptions(use_threads=several)),
            "jsonl": lambda: pyarrow.json.read_json(source, pyarrow.json.ReadOptions(use_threads=several)),
            "parquet": lambda: pyarrow.parquet.read_table(source, use_threads=several),
            "arrow": lambda: pyarrow.feather.read_table(source, use_threads=several, memory_map=False),
        }[from_kind]()
        {
            "csv": lambda: pyarrow.csv.write_csv(data, target),
            "parquet": lambda: pyarrow.parquet.write_table(data, target, compression="zstd"),
            "arrow": lambda: pyarrow.feather.write_feather(data, target, compression="uncompressed"),
        }[to_kind]()

    return work


def programs(command, source, target, threads, peers):
    from_kind, to_kind = source.suffix[1:], target.suffix[1:]
    yield "pentaglot", [command, "convert", source, target, "--force", "-q", "--threads", str(threads)]
    for name in peers:
        if from_kind in PEERS[name]["read"] and to_kind in PEERS[name]["write"]:
            yield name, [sys.executable, __file__, "peer", name, str(source), str(target), str(threads)]


def compare(command, folder, data, pairs, counts, peers, rounds):
    """Rows of `{pair, threads, program, wall, cpu, kernel, peak_mb}`, one of each program and number of threads; fails if an answer differs."""
    found = []
    for from_kind, to_kind in pairs:
        source, answer, times = folder / f"data.{from_kind}", folder / f"out.{to_kind}", {}
        ready = lambda: settle(folder, [source], memory(folder))
        for turn in range(rounds):
            of_all = [(threads, *program) for threads in counts for program in programs(command, source, answer, threads, peers)]
            for threads, name, words in rotated(of_all, turn):
                times.setdefault((threads, name), []).append(measure(words, ready))
                if turn == 0:
                    check(answer, data, f"{name}: {from_kind} to {to_kind}")
                answer.unlink()
        for (threads, name), runs in times.items():
            found.append({"pair": f"{from_kind} to {to_kind}", "threads": threads, "program": name} | medians(runs))
            print(found[-1], flush=True)
    return sorted(found, key=lambda row: -row["threads"])


def check(path, data, what):
    if not read(path, data.schema).equals(data):
        raise SystemExit(f"{what}: the answer differs")


def growth(command, folder, rows, sizes, rounds):
    """Conversions of `rows` rows and of multiples of them. Beyond ten times as many, the same rows are repeated.

    `linear` is the time that would be proportional to that of the size before, `writing` what a program takes that does nothing but
    write as many bytes as the output has within that time, evenly."""
    found, before = [], {}
    base = table(rows * min(max(sizes), 10))
    for size in sizes:
        data = repeated(base, rows * size)
        for kind in FORMATS:
            write(data, folder / f"data.{kind}")
        for from_kind, to_kind in PAIRS:
            source, target = folder / f"data.{from_kind}", folder / f"out.{to_kind}"
            words = next(programs(command, source, target, 2, []))[1]
            megabytes, runs, floors = source.stat().st_size / 1e6, [], []
            linear = before.get((from_kind, to_kind), 0) * megabytes
            ready = lambda: settle(folder, [source], largest(folder))
            for turn in range(rounds):
                runs.append(measure(words, ready))
                written = target.stat().st_size
                if turn == 0 and size <= 10:
                    check(target, data, f"{from_kind} to {to_kind}")
                target.unlink()
                floors.append(measure([sys.executable, __file__, "floor", str(target), str(written), str(linear)], ready))
                target.unlink()
            row = {"pair": f"{from_kind} to {to_kind}", "size": size, "mb": round(megabytes)}
            found.append(row | medians(runs) | {"linear": round(linear, 4), "writing": medians(floors)["wall"]})
            before[from_kind, to_kind] = found[-1]["wall"] / megabytes
            print(found[-1], flush=True)
    return found


def write_evenly(target, size, seconds):
    """Writes so many bytes in so many seconds and brings them to the disk, as the command does."""
    block, start = bytes(1 << 20), time.perf_counter()
    with open(target, "wb", buffering=0) as output:
        for place in range(0, size, len(block)):
            output.write(block[: size - place])
            time.sleep(max(0, start + seconds * place / size - time.perf_counter()))
        os.fsync(output.fileno())


def largest(folder):
    """The megabytes of the largest input: no output is much larger. More than 2 GB would have to go to the disk."""
    return min(max((folder / f"data.{kind}").stat().st_size >> 20 for kind in FORMATS), 2048)


def memory(folder):
    """What a program takes that holds its input, its table and its output in memory, as some peers do."""
    return min(4 * largest(folder), 1536)


def repeated(base, rows):
    """The first rows of a table, which is repeated if it has too few."""
    import pyarrow as pa

    return pa.concat_tables([base] * -(-rows // len(base))).slice(0, rows)


def ratios(found):
    """For each pair and number of threads: the best peer's time over ours."""
    for key in dict.fromkeys((row["pair"], row["threads"]) for row in found):
        same = [row for row in found if (row["pair"], row["threads"]) == key]
        ours = next(row for row in same if row["program"] == "pentaglot")
        peers = [row for row in same if row["program"] != "pentaglot"]
        best = {what: min(peers, key=lambda row: row[what]) for what in ("wall", "cpu")}
        yield {
            "pair": key[0], "threads": key[1],
            "wall": best["wall"]["wall"] / ours["wall"], "wall_peer": best["wall"]["program"],
            "cpu": best["cpu"]["cpu"] / ours["cpu"], "cpu_peer": best["cpu"]["program"],
        }


if __name__ == "__main__":
    if sys.argv[1] == "floor":
        clock(lambda: write_evenly(sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
    else:
        peer(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
