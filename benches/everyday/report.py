"""Writes RESULTS.md, results.json and plots/*.svg."""
import importlib.metadata, json, pathlib, subprocess, tomllib

import targets
from reasons import GROWTH, ONE_STREAM, REASONS

#: The peers: packages of Python, and crates of the benches written in Rust.
PACKAGES = ["blake3", "duckdb", "h5py", "msgpack", "msgspec", "numpy", "polars", "pyarrow", "scipy"]
CRATES = [
    "arrow-json", "base64-simd", "bincode", "bitm", "borsh", "lz4-sys", "postcard", "prost", "qwt", "rkyv", "rmp-serde", "serde_json", "simd-json",
    "simple-sds", "sucds", "sux", "vers-vecs",
]


def versions(command):
    """What was measured: the command and its compiler, packages of Python, crates."""
    lock = tomllib.loads((pathlib.Path(__file__).parent.parent / "Cargo.lock").read_text())
    crates = {package["name"]: package["version"] for package in lock["package"] if package["name"] in CRATES}
    programs = [subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[:2] for words in ([command, "--version"], ["rustc", "--version"])]
    return {"programs": dict(programs), "packages": {name: importlib.metadata.version(name) for name in PACKAGES}, "crates": crates}


def bars(path, title, entries, unit, line=None):
    """A bar chart: `entries` are a label and a value each; `line` is a value to compare with."""
    top = max([value for _, value in entries] + [line or 0]) * 1.1
    height, left, width = 24, 230, 400
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


def report(out, results):
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    render(out)


def render(out):
    """Writes RESULTS.md and the plots from results.json."""
    results = json.loads((out / "results.json").read_text())
    (out / "RESULTS.md").write_text(text(results))
    plot(out / "plots", results)


def is_rendered(out):
    """Whether RESULTS.md is what results.json and the reasons give."""
    return (out / "RESULTS.md").read_text() == text(json.loads((out / "results.json").read_text()))


def text(results):
    return "\n\n".join(sections(results)) + "\n"


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def sections(results):
    yield "# Measured"
    yield (
        "Written by `cargo xtask bench`; do not edit. The command against the Python API of the best of DuckDB, Polars and\n"
        "pyarrow on the same files, data on disk on both sides. The start of a program is not counted, nor are imports of Python.\n"
        "A figure above 1: the command is faster. Pentaglot also syncs its output to the disk before it gets its name; the peers do not."
    )
    yield table(
        ["conversion", "threads", "target", "wall time, of the best", "processor time, of the best"],
        [[row["pair"], row["threads"], targets.PAIRS[row["threads"]], f"{row['wall']:.2f}x of {row['wall_peer']}", f"{row['cpu']:.2f}x of {row['cpu_peer']}"] for row in results["ratios"]],
    )
    yield "## Our formats"
    yield (
        f"Tables and matrices of about {results['megabytes']} MB. The peer's time over ours, the target (of the first peer, with two threads), and the most memory that the\n"
        "command held. Copying, reading, zstd, NumPy and SciPy (except Matrix Market) have one thread in all rows."
    )
    yield table(
        ["work", "against", "threads", "target", "wall time", "processor time", "peak MB"],
        [[row["work"], row["peer"], row["threads"], row["target"] or "", f"{row['wall']:.2f}x", f"{row['cpu']:.2f}x", row["peak_mb"]] for row in results["own_ratios"]],
    )
    in_process = targets.records(results)
    if in_process:
        yield "## In one process, one thread"
        yield table(["work", "target", "time"], [[name, target, f"{ratio:.2f}x"] for name, _, ratio, target in in_process])
    yield "## Below the target, and why"
    short = targets.below(targets.pairs(results) + targets.own(results) + in_process)
    yield table(
        ["work", "threads", "wall time", "target", "where the time goes"],
        [[name, threads, f"{ratio:.2f}x", target, REASONS.get(name, "not profiled")] for name, threads, ratio, target in short],
    )
    yield from over_threads(results)
    yield from over_size(results)
    yield from all_times(results)
    machine = results["machine"]
    yield "## Machine"
    yield f"{machine['cores']} cores, {machine['processor']}, {machine['system']}; {results['rows']} rows of six columns, seed 7; median of {results['rounds']} round(s). While they ran, the host gave {machine['stolen']:.1%} of the processors' time to others."
    yield "\n".join(f"- {kind}: " + ", ".join(f"{name} {version}" for name, version in found.items()) for kind, found in results["versions"].items())
    yield (
        "Flags: Parquet with zstd level 1, Arrow without compression, CSV with a header, threads as given; the command and the benches in the profile `release`, for any\n"
        "processor of its kind, a native build with `-Ctarget-cpu=native`."
    )


def over_threads(results):
    rows = list(targets.second_thread(results))
    if not rows:
        return
    short = targets.below(rows)
    yield "## Two threads against one"
    yield (
        f"At least {targets.SECOND_THREAD} where the work is not one stream of bytes. Beside it: how many cores are busy with two threads, the processor\n"
        "time of two threads over that of one, and the share of it that the kernel takes, with two threads and with one."
    )
    why = [ONE_STREAM.get(row[0], "not profiled") if row in short else "" for row in rows]
    yield table(
        ["work", "wall time", "busy cores", "processor time", "in the kernel", "what decides where it is less"],
        [[work, f"{ratio:.2f}x", f"{busy:.2f}", f"{more:.2f}x", f"{two:.0%}, {one:.0%}", reason] for (work, _, ratio, _, busy, more, two, one), reason in zip(rows, why)],
    )


def over_size(results):
    def why(pair, ratio, peak):
        is_more = round(ratio, 2) > targets.GROWTH or peak > targets.MEMORY
        return GROWTH.get(pair, "not profiled") if is_more else ""

    yield "## Growth, two threads"
    yield (
        f"The time of a megabyte in the largest file over that in one of a tenth of its size, at most {targets.GROWTH}, and the same for the processor time outside of\n"
        f"the kernel. The floor is a program that writes as many bytes as the output has, evenly over the time that would be linear, and syncs them: its time over\n"
        f"that time. Peak memory is at most {targets.MEMORY} MB."
    )
    yield table(
        ["conversion", "input MB", "time of a megabyte", "outside of the kernel", "floor: writing alone", "peak MB", "why it is more"],
        [
            [pair, mb, f"{wall:.2f}x", f"{program:.2f}x", f"{writing:.2f}x", peak, why(pair, wall, peak)]
            for pair, mb, wall, program, writing, peak in targets.growth(results)
        ],
    )
    yield table(
        ["conversion", "input MB", "wall s", "linear s", "writing alone in that time, s", "processor s", "in the kernel", "processor ms a MB", "peak MB"],
        [
            [row["pair"], row["mb"], f"{row['wall']:.2f}", f"{row['linear']:.2f}" if row["linear"] else "", f"{row['writing']:.2f}", f"{row['cpu']:.2f}", f"{row['kernel'] / max(row['cpu'], 1e-3):.0%}", f"{row['cpu'] * 1000 / max(row['mb'], 1):.2f}", row["peak_mb"]]
            for row in by_pair(results)
        ],
    )


def all_times(results):
    if results["records"]:
        yield "## In one process: the benches of the formats"
        # Figures of an earlier run say where they were measured.
        elsewhere = sorted({row["machine"] for row in results["records"] if "machine" in row})
        yield "Each against the first of its group." + (f" Measured in an earlier run: {'; '.join(elsewhere)}." if elsewhere else "")
        yield table(
            ["bench", "group", "program", "ms", "ratio"],
            [[row["bench"], row["race"], row["name"], f"{row['ms']:.3f}", f"{row['ratio']:.2f}x"] for row in results["records"]],
        )
    yield "## Times"
    rows = [row | {"work": row["pair"]} for row in results["times"]] + results["own_times"]
    yield table(
        ["conversion", "threads", "program", "wall s", "processor s", "peak MB"],
        [[row["work"], row["threads"], row["program"], f"{row['wall']:.2f}", f"{row['cpu']:.2f}", row["peak_mb"]] for row in rows],
    )


def by_pair(results):
    return sorted(results["growth"], key=lambda row: row["pair"])


def plot(folder, results):
    folder.mkdir(exist_ok=True)
    for threads in sorted({row["threads"] for row in results["ratios"]}):
        entries = [(row["pair"], row["wall"]) for row in results["ratios"] if row["threads"] == threads]
        bars(folder / f"pairs-{threads}.svg", f"The best peer's time over ours, {threads} thread(s)", entries, "x", 1)
    entries = [(name, ratio) for name, threads, ratio, _ in targets.own(results) if threads == 2]
    bars(folder / "formats.svg", "Our formats: the peer's time over ours, 2 threads", entries, "x", 1)
    sized = [(f"{row['pair']}, {row['mb']} MB", row) for row in by_pair(results)]
    bars(folder / "growth.svg", "Processor time over size", [(label, row["cpu"]) for label, row in sized], " s")
    bars(folder / "memory.svg", "Peak memory over size", [(label, row["peak_mb"]) for label, row in sized], " MB", targets.MEMORY)
