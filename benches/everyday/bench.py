"""The command against other programs: everyday conversions, and our own formats.

    bench.py run   --command PATH --out FOLDER [--quick] [--rounds N] [--records FILE]   measures; writes RESULTS.md, results.json, plots/*.svg
    bench.py smoke --command PATH                                                        small data, no times: fails if an answer differs
    bench.py report --out FOLDER                                                         writes RESULTS.md and plots/*.svg again from results.json

The data is made from seeds. Each round runs all programs, with two threads and with one, one after the other, so that a slow moment of the machine meets
all of them; a figure is the median of the rounds. The start of a program is not counted, nor are imports of Python.
Times are given as wall time and as processor time (user and system), which other work on the machine disturbs less.
`--records` names the figures that the benches written in Rust left (`harness`).
"""
import argparse, json, os, pathlib, platform, tempfile

import data
import pairs
import works
from measure import stolen
from report import is_rendered, render, report, versions


def measure_all(given, folder):
    # Most of a quick run is the start of Python, so that it has two threads only, and few rounds.
    quick, full = (300_000, 40, 2, [1, 10], [2]), (3_000_000, 400, 5, [1, 10, 100], [2, 1])
    rows, megabytes, rounds, sizes, counts = quick if given.quick else full
    rounds = given.rounds or rounds
    before = stolen()
    table = data.table(rows)
    for kind in pairs.FORMATS:
        data.write(table, folder / f"data.{kind}")
    times = pairs.compare(given.command, folder, table, pairs.PAIRS, counts, list(pairs.PEERS), rounds)
    grown = pairs.growth(given.command, folder, rows // 10, sizes, 1 if given.quick else 3)
    works.make(given.command, folder, megabytes)
    own = works.run(given.command, folder, works.WORKS, counts, rounds)
    records = given.records.read_text().splitlines() if given.records else []
    return {
        "rows": rows, "megabytes": megabytes, "rounds": rounds,
        "ratios": list(pairs.ratios(times)), "times": times,
        "own_ratios": list(works.ratios(own)), "own_times": own,
        "growth": grown, "records": [json.loads(line) for line in records],
        "machine": {"cores": os.cpu_count(), "system": f"{platform.system()} {platform.machine()}", "processor": processor(), "stolen": share_since(before)},
        "versions": versions(given.command),
    }


def share_since(before):
    """The share of the processors' time that the host gave to others."""
    lost, all_seconds = (now - then for now, then in zip(stolen(), before))
    return lost / max(all_seconds, 1)


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def smoke(command, folder):
    table = data.table(20_000)
    for kind in pairs.FORMATS:
        data.write(table, folder / f"data.{kind}")
    pairs.compare(command, folder, table, pairs.PAIRS, [2], ["duckdb", "pyarrow"], 1)
    works.make(command, folder, 1)
    works.run(command, folder, works.WORKS, [2], 1)
    if not is_rendered(pathlib.Path(__file__).parent.parent):
        raise SystemExit("benches/RESULTS.md is not what `bench.py report` makes of results.json")
    print("all programs give the same answers")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["run", "smoke", "report"])
    parser.add_argument("--command")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--records", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    given = parser.parse_args()
    if given.mode == "report":
        return render(given.out)
    # It is started in other folders.
    given.command = os.path.abspath(given.command)
    with tempfile.TemporaryDirectory(prefix="pentaglot-bench-") as name:
        folder = pathlib.Path(name)
        if given.mode == "smoke":
            smoke(given.command, folder)
        else:
            report(given.out, measure_all(given, folder))


if __name__ == "__main__":
    main()
