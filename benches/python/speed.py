"""The Python package against NumPy, SciPy and pyarrow; needs all of them, pandas, and a release build of the package.

    cd crates/python && maturin develop --release && python ../../benches/python/speed.py [MEGABYTES]

Files are read once before anything is timed. Both sides take turns; a figure is the ratio of their medians (above 1: ours is
faster), except where a time in itself is meant.
"""
import json, pathlib, statistics, subprocess, sys, tempfile, time

import numpy as np
import pandas, pyarrow as pa, pyarrow.feather, scipy.sparse

import pentaglot as pg

ROUNDS = 10


def race(name, target, ours, theirs):
    """Times both in turns; they give the same sum."""
    assert np.isclose(ours(), theirs()), name
    times = ([], [])
    for turn in range(ROUNDS):
        # Who comes first meets memory that the system has to fetch.
        order = list(zip((ours, theirs), times))[:: 1 if turn % 2 else -1]
        for work, found in order:
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    own, other = map(statistics.median, times)
    best = min(times[1]) / min(times[0])
    print(f"{name:50} {other / own:6.2f}x (target {target}; best rounds {best:.2f}x)   {own * 1e3:9.2f} ms against {other * 1e3:9.2f} ms", flush=True)


def each(count, work):
    """The median time of a call."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def rust_program(name):
    """An example of the crate of succinct structures, built."""
    root = pathlib.Path(__file__).parents[2]
    command = ["cargo", "build", "--release", "--package", "pentaglot-succinct", "--example", name, "--message-format", "json"]
    lines = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return next(found for found in (json.loads(line).get("executable") for line in lines) if found)


def main(folder, megabytes):
    random = np.random.default_rng(5)
    rows = megabytes * 1250
    dense = random.normal(size=(rows, 100))
    pg.write(dense, folder / "dense.dbdf")
    dense.tofile(folder / "dense.bin")
    ours = lambda: pg.read(folder / "dense.dbdf").to_numpy()
    theirs = lambda: np.fromfile(folder / "dense.bin").reshape(rows, 100)
    assert np.array_equal(ours(), theirs())
    race("dense dbdf to NumPy, of numpy.fromfile", 0.9, lambda: ours()[-1].sum(), lambda: theirs()[-1].sum())
    del dense

    size = megabytes * 1600
    matrix = scipy.sparse.random_array((size, size), density=50 / size, format="csr", rng=random)
    pg.write(matrix, folder / "csr.dbdf")
    scipy.sparse.save_npz(folder / "csr.npz", matrix, compressed=False)
    assert (pg.read(folder / "csr.dbdf").to_scipy() != matrix).nnz == 0
    race("CSR dbdf to SciPy, of load_npz", 1.0, lambda: pg.read(folder / "csr.dbdf").to_scipy().data[-1], lambda: scipy.sparse.load_npz(folder / "csr.npz").data[-1])

    count = megabytes * 20_000
    frame = pandas.DataFrame({
        "time": pandas.date_range("2024-01-01", periods=count, freq="ms"), "price": np.round(random.normal(100, 5, count), 2),
        "volume": random.integers(0, 500, count), "bid": np.round(random.normal(100, 5, count), 2), "side": random.integers(0, 2, count).astype(np.int8),
    })
    pg.write(frame, folder / "ticks.bson")
    pyarrow.feather.write_feather(frame, str(folder / "ticks.feather"), compression="lz4")
    ours = lambda: pa.table(pg.read(folder / "ticks.bson")).to_pandas()
    theirs = lambda: pyarrow.feather.read_feather(str(folder / "ticks.feather"))
    pandas.testing.assert_frame_equal(ours(), theirs())
    race("bsondf to pandas, of Feather LZ4", 1.2, lambda: ours().price.iloc[-1], lambda: theirs().price.iloc[-1])

    positions = np.unique(random.integers(0, 100_000_000, 10_000_000).astype(np.uint64))
    pg.succinct.SparseVector(positions, universe=100_000_000).save(folder / "bits.sds")
    pg.succinct.BitVector(positions, universe=100_000_000).save(folder / "plain.sds")
    asked = random.integers(0, 100_000_000, 10_000_000).astype(np.uint64)
    asked.tofile(folder / "asked")
    program = rust_program("rank_many")
    for kind, name in [("plain", "plain.sds"), ("sparse", "bits.sds")]:
        vector = pg.succinct.open(folder / name)
        assert np.array_equal(vector.rank(asked[:1000]), np.searchsorted(positions, asked[:1000]))
        total, own, other = int(vector.rank(asked).sum()), [], []
        for _ in range(ROUNDS):
            own.append(each(1, lambda: vector.rank(asked)) * 1e9 / len(asked))
            answer = subprocess.run([program, kind, folder / name, folder / "asked"], capture_output=True, text=True, check=True).stdout.split()
            other.append(float(answer[0]))
            assert int(answer[1]) == total, name
        own, other = map(statistics.median, (own, other))
        print(f"{f'rank of 1e7 random positions, {kind}, of the batch in Rust':50} {other / own:6.2f}x (target 0.8)   {own:9.2f} ns against {other:9.2f} ns each")

    (folder / "small.csv").write_text("a,b\n" + "1,2\n" * 200)
    pg.convert(folder / "small.csv", folder / "small.bson")
    pg.convert(folder / "small.csv", folder / "small.dbdf")
    for name in ["small.bson", "small.dbdf", "small.csv"]:
        print(f"read of a small file, {name:20} {each(500, lambda: pg.read(folder / name)) * 1e6:8.1f} us (target 100)")
    program = "import time; t = time.perf_counter(); import pentaglot; print(time.perf_counter() - t)"
    imports = [float(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout) for _ in range(9)]
    print(f"import pentaglot {statistics.median(imports) * 1e3:.1f} ms (target 50)")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="pentaglot-python-") as name:
        main(pathlib.Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
