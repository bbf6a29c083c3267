"""Everyday conversions through the command, against DuckDB, Polars and pyarrow.

    pairs.py run   --command PATH --out FOLDER [--quick]   measures, and writes RESULTS.md, results.json and plots/*.svg
    pairs.py smoke --command PATH                          small data, no times: fails if an answer differs
    pairs.py peer  NAME SOURCE TARGET THREADS              what a peer does, in a process of its own

The data is made from a seed. Each round runs all programs one after the other, so that a slow moment of the machine meets
all of them; a figure is the median of the rounds. The start of Python and its imports are not counted, that of the command is.
Times are given as wall time and as processor time (user and system), which other work on the machine disturbs less.
"""
import argparse, json, os, pathlib, platform, statistics, subprocess, sys, tempfile, time

PAIRS = [
    ("parquet", "csv"), ("csv", "parquet"), ("parquet", "jsonl"), ("jsonl", "parquet"),
    ("parquet", "arrow"), ("arrow", "parquet"), ("csv", "arrow"), ("arrow", "csv"),
]
GROWTH = [("parquet", "csv"), ("csv", "parquet"), ("jsonl", "parquet"), ("arrow", "parquet")]
FORMATS = ["parquet", "csv", "jsonl", "arrow"]
PEERS = {
    "polars": {"read": FORMATS, "write": FORMATS},
    "duckdb": {"read": ["parquet", "csv", "jsonl"], "write": ["parquet", "csv", "jsonl"]},
    "pyarrow": {"read": FORMATS, "write": ["parquet", "csv", "arrow"]},
}


def table(rows):
    import numpy as np, pyarrow as pa

    random = np.random.default_rng(7)
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])
    names = np.char.add(words[random.integers(0, 8, rows)], random.integers(0, 100_000, rows).astype(str))
    times = 1_700_000_000_000_000 + random.integers(0, 10**13, rows)
    return pa.table({
        "id": pa.array(np.arange(rows, dtype=np.int64) * 7 + 1000),
        "price": pa.array(np.round(random.normal(100, 25, rows), 4)),
        "name": pa.array(names),
        "kind": pa.array(words[random.integers(0, 8, rows)]),
        "at": pa.array(times.astype("datetime64[us]")),
        "count": pa.array(random.integers(0, 1000, rows).astype(np.int64), mask=random.random(rows) < 0.1),
    })


def write(data, path):
    import pyarrow as pa, pyarrow.csv, pyarrow.feather, pyarrow.parquet

    kind = path.suffix[1:]
    if kind == "parquet":
        pyarrow.parquet.write_table(data, path, compression="zstd", row_group_size=1 << 20)
    elif kind == "arrow":
        pyarrow.feather.write_feather(data, str(path), compression="uncompressed", chunksize=1 << 16)
    elif kind == "csv":
        pyarrow.csv.write_csv(data, path)
    else:
        with open(path, "w") as out:
            for batch in data.to_batches(1 << 16):
                for row in batch.to_pylist():
                    row["at"] = row["at"].isoformat(timespec="microseconds")
                    out.write(json.dumps(row, separators=(",", ":")) + "\n")


def read(path, schema):
    """The data of a file, whoever wrote it, with the types of the original."""
    import pyarrow as pa, pyarrow.csv, pyarrow.feather, pyarrow.json, pyarrow.parquet

    kind = path.suffix[1:]
    if kind == "parquet":
        data = pyarrow.parquet.read_table(path)
    elif kind == "arrow":
        data = pyarrow.feather.read_table(str(path), memory_map=False)
    elif kind == "csv":
        data = pyarrow.csv.read_csv(path)
    else:
        options = pyarrow.json.ParseOptions(explicit_schema=pa.schema([schema.field("at").with_type(pa.string())]))
        data = pyarrow.json.read_json(path, parse_options=options)
    columns = []
    for field in schema:
        column = data.column(field.name)
        if pa.types.is_string(column.type) and pa.types.is_timestamp(field.type):
            # Programs write a T or a space between date and time, and fractions of three, six or nine digits.
            column = pa.compute.replace_substring(column, "T", " ")
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=schema).combine_chunks()


def peer(name, source, target, threads):
    """Does the work of a peer; prints the seconds that it takes, without imports."""
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    from_kind, to_kind = source.rsplit(".", 1)[1], target.rsplit(".", 1)[1]
    work = {"polars": with_polars, "duckdb": with_duckdb, "pyarrow": with_pyarrow}[name](threads)
    start, before = time.perf_counter(), os.times()
    work(source, target, from_kind, to_kind)
    after = os.times()
    print(time.perf_counter() - start, after.user + after.system - before.user - before.system)


def with_polars(threads):
    import polars

    def work(source, target, from_kind, to_kind):
        data = {
            "csv": lambda: polars.read_csv(source, try_parse_dates=True),
            "jsonl": lambda: polars.read_ndjson(source),
            "parquet": lambda: polars.read_parquet(source),
            "arrow": lambda: polars.read_ipc(source, memory_map=False),
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
        how = {"csv": "format csv, header", "jsonl": "format json", "parquet": "format parquet, compression zstd"}[to_kind]
        connection.execute(f"copy (select * from {rows}('{source}')) to '{target}' ({how})")

    return work


def with_pyarrow(threads):
    import pyarrow, pyarrow.csv, pyarrow.feather, pyarrow.json, pyarrow.parquet

    pyarrow.set_cpu_count(threads)
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


def measure(words):
    """Wall seconds, processor seconds and peak MB of a process. A peer prints its own seconds."""
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    peak, done = 0, 0
    while not done:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max([peak] + [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")])
        except OSError:
            pass
        done, status, used = os.wait4(process.pid, os.WNOHANG)
        time.sleep(0 if done else 0.002)
    wall, cpu = time.perf_counter() - start, used.ru_utime + used.ru_stime
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {process.returncode}")
    own = process.stdout.read().split()
    if len(own) == 2:
        wall, cpu = map(float, own)
    return wall, cpu, peak / 1024


def programs(command, source, target, threads, peers):
    from_kind, to_kind = source.suffix[1:], target.suffix[1:]
    yield "pentaglot", [command, "convert", source, target, "--force", "-q", "--threads", str(threads)]
    for name in peers:
        if from_kind in PEERS[name]["read"] and to_kind in PEERS[name]["write"]:
            yield name, [sys.executable, __file__, "peer", name, str(source), str(target), str(threads)]


def compare(command, folder, data, pairs, threads, peers, rounds):
    """Rows of `{pair, threads, program, wall, cpu, peak_mb}`, one of each program; fails if an answer differs."""
    found = []
    for from_kind, to_kind in pairs:
        source, times = folder / f"data.{from_kind}", {}
        for turn in range(rounds):
            for name, words in programs(command, source, folder / f"out.{to_kind}", threads, peers):
                figures = measure(words)
                times.setdefault(name, []).append(figures)
                answer = folder / f"out.{to_kind}"
                if turn == 0 and not read(answer, data.schema).equals(data):
                    raise SystemExit(f"{name}: {from_kind} to {to_kind}: the answer differs")
                answer.unlink()
        for name, figures in times.items():
            wall, cpu, peak = (statistics.median(column) for column in zip(*figures))
            row = {"pair": f"{from_kind} to {to_kind}", "threads": threads, "program": name}
            found.append(row | {"wall": round(wall, 3), "cpu": round(cpu, 3), "peak_mb": round(peak)})
            print(found[-1], flush=True)
    return found


def growth(command, folder, rows, sizes):
    found = []
    for size in sizes:
        data = table(rows * size)
        for kind in sorted({kind for kind, _ in GROWTH}):
            write(data, folder / f"data.{kind}")
        for from_kind, to_kind in GROWTH:
            source, target = folder / f"data.{from_kind}", folder / f"out.{to_kind}"
            words = next(programs(command, source, target, 2, []))[1]
            wall, cpu, peak = measure(words)
            target.unlink()
            row = {"pair": f"{from_kind} to {to_kind}", "size": size, "mb": round(source.stat().st_size / 1e6)}
            found.append(row | {"wall": round(wall, 3), "cpu": round(cpu, 3), "peak_mb": round(peak)})
            print(found[-1], flush=True)
    return found


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


def bars(path, title, entries, unit, line=None):
    """A bar chart: `entries` are a label and a value each; `line` is a value to compare with."""
    top = max([value for _, value in entries] + [line or 0]) * 1.1
    height, left, width = 24, 190, 420
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{60 + height * len(entries)}" font-family="sans-serif" font-size="13">']
    out.append(f'<text x="10" y="24" font-size="16">{title}</text>')
    for index, (label, value) in enumerate(entries):
        y = 42 + index * height
        out.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{label}</text>')
        out.append(f'<rect x="{left}" y="{y}" width="{width * value / top:.1f}" height="{height - 7}" fill="#4477aa"/>')
        out.append(f'<text x="{left + width * value / top + 6:.1f}" y="{y + 13}">{value:.2f}{unit}</text>')
    if line:
        x = left + width * line / top
        out.append(f'<line x1="{x:.1f}" y1="36" x2="{x:.1f}" y2="{44 + height * len(entries)}" stroke="#cc3311" stroke-dasharray="4 3"/>')
    out.append("</svg>\n")
    path.write_text("\n".join(out))


def versions(command):
    import duckdb, polars, pyarrow

    ours = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"pentaglot": ours, "polars": polars.__version__, "duckdb": duckdb.__version__, "pyarrow": pyarrow.__version__}


def report(out, results):
    lines = [
        "# Measured", "",
        "Written by `cargo xtask bench`; do not edit. The command against the Python API of the best of DuckDB, Polars and",
        "pyarrow on the same files, data on disk on both sides. The start of the command is counted, that of Python and its",
        "imports is not. A figure above 1: the command is faster. Pentaglot also syncs its output to the disk before it gets its name; the peers do not.", "",
        "| conversion | threads | wall time, of the best | processor time, of the best |", "|---|---|---|---|",
    ]
    for row in results["ratios"]:
        lines.append(f"| {row['pair']} | {row['threads']} | {row['wall']:.2f}x of {row['wall_peer']} | {row['cpu']:.2f}x of {row['cpu_peer']} |")
    lines += ["", "## Times", "", "| conversion | threads | program | wall s | processor s | peak MB |", "|---|---|---|---|---|---|"]
    for row in results["times"]:
        lines.append(f"| {row['pair']} | {row['threads']} | {row['program']} | {row['wall']:.2f} | {row['cpu']:.2f} | {row['peak_mb']} |")
    lines += ["", "## Growth, two threads", "", "| conversion | input MB | wall s | processor s | peak MB |", "|---|---|---|---|---|"]
    for row in results["growth"]:
        lines.append(f"| {row['pair']} | {row['mb']} | {row['wall']:.2f} | {row['cpu']:.2f} | {row['peak_mb']} |")
    machine = results["machine"]
    lines += ["", "## Machine", "", f"{machine['cores']} cores, {machine['system']}; {results['rows']} rows of six columns, seed 7.", ""]
    lines += [f"- {name} {version}" for name, version in results["versions"].items()]
    lines += ["", "Flags: Parquet with zstd level 1, Arrow without compression, CSV with a header, threads as given.", ""]
    (out / "RESULTS.md").write_text("\n".join(lines))
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    plots = out / "plots"
    plots.mkdir(exist_ok=True)
    for threads in sorted({row["threads"] for row in results["ratios"]}):
        entries = [(row["pair"], row["cpu"]) for row in results["ratios"] if row["threads"] == threads]
        bars(plots / f"pairs-{threads}.svg", f"Processor time of the best peer over ours, {threads} thread(s)", entries, "x", 1)
    entries = [(f"{row['pair']}, {row['mb']} MB", row["cpu"]) for row in results["growth"]]
    bars(plots / "growth.svg", "Processor time over size", entries, " s")
    entries = [(f"{row['pair']}, {row['mb']} MB", row["peak_mb"]) for row in results["growth"]]
    bars(plots / "memory.svg", "Peak memory over size", entries, " MB", 400)


def main():
    if sys.argv[1:2] == ["peer"]:
        return peer(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["run", "smoke"])
    parser.add_argument("--command", required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    is_smoke = given.mode == "smoke"
    rows, rounds = (20_000, 1) if is_smoke else (300_000, 3) if given.quick else (3_000_000, 5)
    with tempfile.TemporaryDirectory(prefix="pentaglot-bench-") as name:
        folder, data = pathlib.Path(name), table(rows)
        for kind in FORMATS:
            write(data, folder / f"data.{kind}")
        peers = ["duckdb", "pyarrow"] if is_smoke else list(PEERS)
        times = []
        for threads in [2, 1]:
            times += compare(given.command, folder, data, PAIRS, threads, peers, rounds)
        if is_smoke:
            return print("all programs give the same answers")
        sizes = [1, 10] if given.quick else [1, 10, 100]
        results = {
            "rows": rows, "ratios": list(ratios(times)), "times": times,
            "growth": growth(given.command, folder, rows // 10, sizes),
            "machine": {"cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}"},
            "versions": versions(given.command),
        }
        report(given.out, results)


if __name__ == "__main__":
    main()
