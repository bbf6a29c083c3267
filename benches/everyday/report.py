"""Writes RESULTS.md, results.json and plots/*.svg."""
import json, subprocess

from reasons import REASONS

#: What conversions between everyday formats must reach, by threads.
PAIR_TARGETS = {2: 1.0, 1: 0.9}


def versions(command):
    import duckdb, polars, pyarrow

    ours = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"pentaglot": ours, "polars": polars.__version__, "duckdb": duckdb.__version__, "pyarrow": pyarrow.__version__}


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


def scaling(results):
    """What a second thread gives, for every conversion of ours."""
    rows = [row | {"work": row["pair"]} for row in results["times"]] + results["own_times"]
    ours = {(row["work"], row["threads"]): row["wall"] for row in rows if row["program"] == "pentaglot"}
    return [(work, ours[work, 1] / wall) for (work, threads), wall in ours.items() if threads == 2 and (work, 1) in ours]


def below(results):
    """What is below its target: name, threads, figure, target."""
    pairs = [(row["pair"], row["threads"], row["wall"], PAIR_TARGETS[row["threads"]]) for row in results["ratios"]]
    own = [(row["work"], row["threads"], row["wall"], row["target"]) for row in results["own_ratios"]]
    return [row for row in pairs + own if round(row[2], 2) < row[3]]


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
    lines += ["", "## Our formats", "", f"Tables and matrices of about {results['megabytes']} MB. The peer's time over ours, the target, and the most memory that the command held.", ""]
    lines += ["| work | against | threads | target | wall time | processor time | peak MB |", "|---|---|---|---|---|---|---|"]
    for row in results["own_ratios"]:
        lines.append(f"| {row['work']} | {row['peer']} | {row['threads']} | {row['target']} | {row['wall']:.2f}x | {row['cpu']:.2f}x | {row['peak_mb']} |")
    lines += ["", "## Below the target, and why", "", "| work | threads | wall time | target | where the time goes |", "|---|---|---|---|---|"]
    for name, threads, ratio, target in below(results):
        lines.append(f"| {name} | {threads} | {ratio:.2f}x | {target} | {REASONS.get(name, 'not profiled')} |")
    if scaling(results):
        lines += ["", "## Two threads against one", "", "| work | wall time |", "|---|---|"]
    for name, ratio in scaling(results):
        lines.append(f"| {name} | {ratio:.2f}x |")
    if results["records"]:
        # Figures of an earlier run say where they were measured.
        elsewhere = sorted({row["machine"] for row in results["records"] if "machine" in row})
        note = f" Measured in an earlier run: {'; '.join(elsewhere)}." if elsewhere else ""
        lines += ["", "## In one process: the benches of the formats", "", f"Each against the first of its group.{note}", "", "| bench | group | program | ms | ratio |", "|---|---|---|---|---|"]
    for row in results["records"]:
        lines.append(f"| {row['bench']} | {row['race']} | {row['name']} | {row['ms']:.3f} | {row['ratio']:.2f}x |")
    lines += ["", "## Times", "", "| conversion | threads | program | wall s | processor s | peak MB |", "|---|---|---|---|---|---|"]
    for row in results["times"]:
        lines.append(f"| {row['pair']} | {row['threads']} | {row['program']} | {row['wall']:.2f} | {row['cpu']:.2f} | {row['peak_mb']} |")
    for row in results["own_times"]:
        lines.append(f"| {row['work']} | {row['threads']} | {row['program']} | {row['wall']:.2f} | {row['cpu']:.2f} | {row['peak_mb']} |")
    lines += ["", "## Growth, two threads", "", "| conversion | input MB | wall s | processor s | processor ms a MB | peak MB |", "|---|---|---|---|---|---|"]
    for row in sorted(results["growth"], key=lambda row: row["pair"]):
        each = row["cpu"] * 1000 / max(row["mb"], 1)
        lines.append(f"| {row['pair']} | {row['mb']} | {row['wall']:.2f} | {row['cpu']:.2f} | {each:.2f} | {row['peak_mb']} |")
    machine = results["machine"]
    lines += ["", "## Machine", "", f"{machine['cores']} cores, {machine['processor']}, {machine['system']}; {results['rows']} rows of six columns, seed 7; median of {results['rounds']} round(s).", ""]
    lines += [f"- {name} {version}" for name, version in results["versions"].items()]
    lines += ["", "Flags: Parquet with zstd level 1, Arrow without compression, CSV with a header, threads as given.", ""]
    (out / "RESULTS.md").write_text("\n".join(lines))
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    plots = out / "plots"
    plots.mkdir(exist_ok=True)
    for threads in sorted({row["threads"] for row in results["ratios"]}):
        entries = [(row["pair"], row["wall"]) for row in results["ratios"] if row["threads"] == threads]
        bars(plots / f"pairs-{threads}.svg", f"The best peer's time over ours, {threads} thread(s)", entries, "x", 1)
    entries = [(f"{row['work']}", row["wall"]) for row in results["own_ratios"] if row["threads"] == 2]
    bars(plots / "formats.svg", "Our formats: the peer's time over ours, 2 threads", entries, "x", 1)
    grown = sorted(results["growth"], key=lambda row: row["pair"])
    entries = [(f"{row['pair']}, {row['mb']} MB", row["cpu"]) for row in grown]
    bars(plots / "growth.svg", "Processor time over size", entries, " s")
    entries = [(f"{row['pair']}, {row['mb']} MB", row["peak_mb"]) for row in grown]
    bars(plots / "memory.svg", "Peak memory over size", entries, " MB", 400)


