"""What must be reached: each function gives rows of name, threads, figure and target."""

#: What conversions between everyday formats must reach, by threads.
PAIRS = {2: 1.0, 1: 0.9}
#: What a second thread must give where work is not one stream of bytes.
SECOND_THREAD = 1.6
#: How much longer a megabyte may take in the largest file than in one of a tenth of its size.
GROWTH = 1.3
#: Peak MB of a conversion.
MEMORY = 400

#: Benches in one process: name, bench, our group and program, the group and program of the peer, target.
RECORDS = [
    ("ds: Arrow to MessagePack, of rmp-serde", "ds", ("Arrow to MessagePack, 1000000 rows, one thread", "pentaglot"), ("Arrow to MessagePack, 1000000 rows, one thread", "rmp-serde from tuples"), 1.7),
    ("rank in 1e8 bits, of sux native", "sds", ("bits 1e8 0.5: rank, a million", "pentaglot"), ("bits 1e8 0.5: rank, a million", "sux, native build"), 1.0),
    ("rank in 1e9 bits, of sux native", "sds", ("bits 1e9 0.5: rank, a million", "pentaglot"), ("bits 1e9 0.5: rank, a million", "sux, native build"), 1.0),
    ("rank batch in 1e6 bits, of sux native single", "sds", ("bits 1e6 0.5: rank batch, a million", "pentaglot"), ("bits 1e6 0.5: rank, a million", "sux, native build"), 0.9),
]


def pairs(results):
    return [(row["pair"], row["threads"], row["wall"], PAIRS[row["threads"]]) for row in results["ratios"]]


def own(results):
    return [(row["work"], row["threads"], row["wall"], row["target"]) for row in results["own_ratios"] if row["target"] is not None]


def records(results):
    """Of a run with the benches written in Rust; one that is missing is an error."""
    found = {(row["bench"], row["race"], row["name"]): row["ms"] for row in results["records"]}
    if not found:
        return []
    return [(name, 1, found[bench, *peer] / found[bench, *ours], target) for name, bench, ours, peer, target in RECORDS]


def second_thread(results):
    """What a second thread gives; then how many cores are busy, how much more processor time two threads take than one, and which
    share of it the kernel takes, with two threads and with one."""
    rows = [row | {"work": row["pair"]} for row in results["times"]] + results["own_times"]
    ours = {(row["work"], row["threads"]): row for row in rows if row["program"] == "pentaglot"}
    for (work, threads), two in ours.items():
        if threads == 2 and (work, 1) in ours:
            one = ours[work, 1]
            kernel = [row["kernel"] / max(row["cpu"], 1e-3) for row in (two, one)]
            yield work, 2, one["wall"] / two["wall"], SECOND_THREAD, two["cpu"] / two["wall"], two["cpu"] / max(one["cpu"], 1e-3), *kernel


def growth(results):
    """The time of a megabyte in the largest file over that in the one before it, the same for the processor outside of the kernel, and
    how much longer than evenly it takes to write the output and do nothing else; here less is better."""
    for pair in sorted({row["pair"] for row in results["growth"]}):
        *_, before, largest = sorted((row for row in results["growth"] if row["pair"] == pair), key=lambda row: row["size"])

        def each(seconds):
            return seconds(largest) / max(largest["mb"], 1) / (max(seconds(before), 1e-3) / max(before["mb"], 1))

        wall, program = each(lambda row: row["wall"]), each(lambda row: row["cpu"] - row["kernel"])
        yield pair, largest["mb"], wall, program, largest["writing"] / max(largest["linear"], 1e-3), largest["peak_mb"]


def below(rows):
    return [row for row in rows if round(row[2], 2) < row[3]]
