"""Our formats through the command, against programs that do comparable work and against floors.

    works.py peer WORK PEER FOLDER THREADS    what a peer does, in a process of its own

A work names its target: with two threads, the time of its first peer over ours is at least that. A floor (copying, reading, hashing the bytes
alone) is a peer too. Further peers are measured for comparison.
"""
import io, os, pathlib, shutil, subprocess, sys
from dataclasses import dataclass, field
from typing import Callable

import data
from measure import clock, measure, medians, rotated, settle


@dataclass
class Work:
    """What the command is given, what the peers do (the target is of the first), and what must come out. A peer is a function, whose
    `reads` names its input."""

    name: str
    target: float
    words: list
    peers: dict[str, Callable] = field(default_factory=dict)
    #: The floor is the command itself with these words.
    floor: tuple[str, list] | None = None
    #: An output that must hold the same data as this input: by its identity, and as other programs read it where they can.
    same: tuple[str, str] | None = None
    #: What brings the data of an output to a file that `same` names.
    back: list | None = None
    #: A folder that is removed before each run.
    fresh: str | None = None


def make(command, folder, megabytes):
    """All inputs: a table of six columns, a frame of numbers, a sparse and a dense matrix."""
    import pyarrow.feather, pyarrow.parquet, scipy.io, scipy.sparse

    table = data.table(megabytes * 16_000)
    data.write(table, folder / "data.arrow")
    data.write(table, folder / "data.parquet")
    pyarrow.feather.write_feather(table, str(folder / "data.feather"), compression="lz4")
    pyarrow.feather.write_feather(table, str(folder / "zstd.feather"), compression="zstd")
    pyarrow.parquet.write_table(table, folder / "lz4.parquet", compression="lz4")
    data.write(data.frame(megabytes * 16_000), folder / "frame.arrow")
    matrix = data.sparse(megabytes * 20_000)
    scipy.sparse.save_npz(folder / "csr.npz", matrix, compressed=False)
    scipy.io.mmwrite(folder / "csr.mtx", matrix)
    # Compressing takes SciPy long.
    small = data.sparse(megabytes * 5_000)
    scipy.sparse.save_npz(folder / "packed.npz", small)
    scipy.sparse.save_npz(folder / "small.npz", small, compressed=False)
    made = [("data.arrow", "data.bson"), ("frame.arrow", "frame.dbdf"), ("frame.arrow", "frame.dynd"), ("csr.npz", "csr.dbdf"), ("small.npz", "small.dbdf")]
    for source, target in made:
        subprocess.run([command, "convert", folder / source, folder / target, "--force", "-q"], check=True)
    put = [command, "store", "put", folder / "data.arrow", "--name", "data", "--store", folder / "kept.store"]
    subprocess.run(put, check=True, stdout=subprocess.DEVNULL)
    compress("data.arrow", "data.arrow.zst")(folder, 2)


def copy(source):
    """Copies a file and syncs it, as the command syncs its output."""

    def work(folder, threads):
        with open(folder / source, "rb") as input, open(folder / "copy.out", "wb") as output:
            while block := input.read(1 << 20):
                output.write(block)
            output.flush()
            os.fsync(output.fileno())

    work.reads = source
    return work


def read_bytes(source):
    def work(folder, threads):
        import numpy

        numpy.fromfile(folder / source, dtype=numpy.uint8)

    work.reads = source
    return work


def feather(source, target, compression):
    def work(folder, threads):
        import pyarrow, pyarrow.feather

        pyarrow.set_cpu_count(threads)
        table = pyarrow.feather.read_table(str(folder / source), use_threads=threads > 1, memory_map=False)
        pyarrow.feather.write_feather(table, str(folder / target), compression=compression)

    work.reads = source
    return work


def parquet(source, target):
    def work(folder, threads):
        import pyarrow, pyarrow.feather, pyarrow.parquet

        pyarrow.set_cpu_count(threads)
        if source.endswith(".parquet"):
            table = pyarrow.parquet.read_table(folder / source, use_threads=threads > 1)
            pyarrow.feather.write_feather(table, str(folder / target), compression="uncompressed")
        else:
            table = pyarrow.feather.read_table(str(folder / source), use_threads=threads > 1, memory_map=False)
            pyarrow.parquet.write_table(table, folder / target, compression="lz4")

    work.reads = source
    return work


def synced(work, target):
    """The same, and the output is brought to the disk, as the command does."""

    def with_sync(folder, threads):
        work(folder, threads)
        with open(folder / target, "rb") as written:
            os.fsync(written.fileno())

    with_sync.reads = work.reads
    return with_sync


def scipy_convert(source, target, compressed=False):
    def work(folder, threads):
        import scipy.io, scipy.sparse

        scipy.io._fast_matrix_market.PARALLELISM = threads
        reads_mtx = source.endswith(".mtx")
        matrix = scipy.io.mmread(folder / source).tocsr() if reads_mtx else scipy.sparse.load_npz(folder / source)
        if target.endswith(".mtx"):
            scipy.io.mmwrite(folder / target, matrix)
        else:
            scipy.sparse.save_npz(folder / target, matrix, compressed=compressed)

    work.reads = source
    return work


def hash_bytes(source):
    def work(folder, threads):
        import blake3

        blake3.blake3(max_threads=threads).update_mmap(folder / source).hexdigest()

    work.reads = source
    return work


def compress(source, target):
    """zstd -1, synced as the store syncs its packs."""

    def work(folder, threads):
        import pyarrow

        # Its default level is 1.
        with open(folder / source, "rb") as input, pyarrow.output_stream(folder / target, compression="zstd") as output:
            while block := input.read(1 << 20):
                output.write(block)
        with open(folder / target, "rb") as written:
            os.fsync(written.fileno())

    work.reads = source
    return work


def decompress(source, target):
    def work(folder, threads):
        import pyarrow

        with pyarrow.input_stream(folder / source, compression="zstd") as input, open(folder / target, "wb") as output:
            while block := input.read(1 << 20):
                output.write(block)

    work.reads = source
    return work


def hash_packs(folder, threads):
    import blake3

    for pack in (folder / "kept.store/packs").iterdir():
        blake3.blake3(max_threads=threads).update_mmap(pack).hexdigest()


def decode_parquet(folder, threads):
    import pyarrow, pyarrow.parquet

    pyarrow.set_cpu_count(threads)
    pyarrow.parquet.read_table(folder / "data.parquet", use_threads=threads > 1)


def summarize(folder, threads):
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"set threads={threads}")
    connection.execute(f"summarize select * from read_parquet('{folder / 'data.parquet'}')").fetchall()


def convert(source, target, name, goal, peers, *options):
    return Work(name, goal, ["convert", source, target, "--force", "-q", *options], peers, same=(source, target))


def with_scipy(source, target, name, reads, writes, *options):
    work = scipy_convert(reads, writes, compressed="compressed=true" in options)
    peers = {"SciPy": work, "SciPy, synced": synced(work, writes), "copy of the input": copy(source)}
    return convert(source, target, name, 3, peers, *options)


hash_packs.reads = "kept.store"
decode_parquet.reads = summarize.reads = "data.parquet"

WORKS = [
    convert("data.arrow", "out.bson", "arrow to bsondf", 1.2, {
        "Feather LZ4": feather("data.arrow", "peer.feather", "lz4"),
        "Feather LZ4, synced": synced(feather("data.arrow", "peer.feather", "lz4"), "peer.feather"),
        "Feather Zstd": feather("data.arrow", "peer.feather", "zstd"),
        "Parquet LZ4": parquet("data.arrow", "peer.parquet"),
    }),
    convert("data.bson", "out.arrow", "bsondf to arrow", 1.2, {
        "Feather LZ4": feather("data.feather", "peer.arrow", "uncompressed"),
        "Feather LZ4, synced": synced(feather("data.feather", "peer.arrow", "uncompressed"), "peer.arrow"),
        "Feather Zstd": feather("zstd.feather", "peer.arrow", "uncompressed"),
        "Parquet LZ4": parquet("lz4.parquet", "peer.arrow"),
    }),
    convert("frame.arrow", "out.dbdf", "arrow to dbdf frame", 0.7, {"copy": copy("frame.arrow")}),
    convert("frame.dbdf", "out.arrow", "dbdf frame to arrow", 0.7, {"copy": copy("frame.dbdf")}),
    convert("frame.arrow", "out.dynd", "arrow to dynd structs", 0.7, {"copy": copy("frame.arrow")}),
    convert("frame.dynd", "out.arrow", "dynd structs to arrow", 0.7, {"copy": copy("frame.dynd")}),
    with_scipy("csr.npz", "out.dbdf", "npz to dbdf CSR", "csr.npz", "peer.npz"),
    with_scipy("csr.dbdf", "out.npz", "dbdf CSR to npz", "csr.npz", "peer.npz"),
    with_scipy("packed.npz", "out.dbdf", "compressed npz to dbdf CSR", "packed.npz", "peer.npz"),
    with_scipy("small.dbdf", "out.npz", "dbdf CSR to compressed npz", "small.npz", "peer.npz", "-O", "compressed=true"),
    with_scipy("csr.mtx", "out.dbdf", "mtx to dbdf CSR", "csr.mtx", "peer.npz"),
    with_scipy("csr.dbdf", "out.mtx", "dbdf CSR to mtx", "csr.npz", "peer.mtx"),
    Work("hash of Arrow IPC", 0.5, ["hash", "frame.arrow"], {"BLAKE3 of the file": hash_bytes("frame.arrow")}),
    Work("hash of Parquet", 0.8, ["hash", "data.parquet"], {"pyarrow decodes it": decode_parquet}),
    Work("diff of equal files", 0.77, ["diff", "frame.arrow", "frame.dbdf"], floor=("hash of both", ["hash", "frame.arrow", "frame.dbdf"])),
    Work("store put", 0.4, ["store", "put", "data.arrow", "--name", "data", "--store", "out.store"], {"zstd -1": compress("data.arrow", "peer.zst")},
        same=("data.arrow", "out.arrow"), back=["store", "get", "data", "out.arrow", "--force", "-q", "--store", "out.store"], fresh="out.store"),
    Work("store get", 0.5, ["store", "get", "data", "out.arrow", "--force", "--store", "kept.store"], {"zstd -d": decompress("data.arrow.zst", "peer.out")}, same=("data.arrow", "out.arrow")),
    Work("store verify", 0.5, ["store", "verify", "--store", "kept.store"], {"BLAKE3 of the packs": hash_packs}),
    Work("describe of Parquet", 1.0, ["describe", "data.parquet"], {"DuckDB SUMMARIZE": summarize}),
    Work("describe of a dbdf frame", 0.5, ["describe", "frame.dbdf"], {"reading it": read_bytes("frame.dbdf")}),
    Work("spy plot of CSR", 0.5, ["plot", "csr.dbdf", "-o", "out.png", "--force"], {"reading it": read_bytes("csr.dbdf")}),
]


def check(command, folder, work):
    if work.back:
        subprocess.run([command, *work.back], check=True, cwd=folder)
    source, target = (folder / name for name in work.same)
    if identity(command, source) != identity(command, target):
        raise SystemExit(f"{work.name}: the output does not hold the data of the input")
    original = ORIGINALS.get(source.name, source)
    if target.suffix in READERS and not READERS[target.suffix](target, folder / original):
        raise SystemExit(f"{work.name}: another program reads other data in the output than in the input")


def same_tables(path, original):
    import pyarrow.feather

    one, other = (pyarrow.feather.read_table(str(name), memory_map=False) for name in (path, original))
    return one.cast(other.schema).equals(other)


def same_matrices(path, original):
    import scipy.io, scipy.sparse

    one, other = (scipy.io.mmread(name).tocsr() if name.suffix == ".mtx" else scipy.sparse.load_npz(name).tocsr() for name in (path, original))
    return one.shape == other.shape and one.nnz == other.nnz and (one != other).nnz == 0


#: How other programs compare an output with the input.
READERS = {".arrow": same_tables, ".npz": same_matrices, ".mtx": same_matrices}
#: What inputs of our formats were made from.
ORIGINALS = {"data.bson": "data.arrow", "frame.dbdf": "frame.arrow", "frame.dynd": "frame.arrow", "csr.dbdf": "csr.npz", "small.dbdf": "small.npz"}


def identity(command, path):
    done = subprocess.run([command, "hash", path], check=True, capture_output=True, text=True)
    return done.stdout.split()[0]


def run(command, folder, works, counts, rounds):
    """Rows of `{work, threads, target, program, wall, cpu, kernel, peak_mb}`; fails if an output does not hold the input's data."""
    found = []
    for work in works:
        times = {}
        # Enough for a peer that holds its input, its table and its output.
        memory = 3 * ((folder / "frame.arrow").stat().st_size >> 20)
        ready = lambda: settle(folder, inputs(folder, work), memory)
        for turn in range(rounds):
            for threads, name, words in rotated(programs(command, folder, work, counts), turn):
                if work.fresh:
                    shutil.rmtree(folder / work.fresh, ignore_errors=True)
                times.setdefault((threads, name), []).append(measure(words, ready, folder))
                if work.same and name == "pentaglot" and turn == 0:
                    check(command, folder, work)
                # Who overwrites a file uses its memory again; who replaces it, as the command does, needs more.
                remove_outputs(folder)
        for (threads, name), runs in times.items():
            found.append({"work": work.name, "threads": threads, "target": work.target, "program": name} | medians(runs))
            print(found[-1], flush=True)
    return sorted(found, key=lambda row: -row["threads"])


def programs(command, folder, work, counts):
    """What runs in a round: number of threads, name, words of the command line."""
    for threads in counts:
        yield threads, "pentaglot", [command, *work.words, "--threads", str(threads)]
        if work.floor:
            yield threads, work.floor[0], [command, *work.floor[1], "--threads", str(threads)]
        for name in work.peers:
            yield threads, name, [sys.executable, __file__, "peer", work.name, name, str(folder), str(threads)]


def inputs(folder, work):
    """The files and folders that the command and the peers of a work read."""
    names = [word for word in work.words if not word.startswith("out.")] + [peer.reads for peer in work.peers.values()]
    return [folder / name for name in dict.fromkeys(names) if (folder / name).exists()]


def remove_outputs(folder):
    for made in [*folder.glob("out.*"), *folder.glob("peer.*"), *folder.glob("copy.*")]:
        shutil.rmtree(made) if made.is_dir() else made.unlink()


def ratios(found):
    """For each work, number of threads and peer: the time of the peer over ours. Only the first peer has a target, with two threads."""
    for key in dict.fromkeys((row["work"], row["threads"]) for row in found):
        ours, *others = [row for row in found if (row["work"], row["threads"]) == key]
        for place, other in enumerate(others):
            row = {"work": key[0], "threads": key[1], "target": ours["target"] if place == 0 and key[1] == 2 else None, "peer": other["program"], "peak_mb": ours["peak_mb"]}
            yield row | {"wall": other["wall"] / ours["wall"], "cpu": other["cpu"] / max(ours["cpu"], 1e-3)}


def peer(work, name, folder, threads):
    """Does the work of a peer; prints the seconds that it takes, without imports."""
    import blake3, duckdb, numpy, pyarrow.feather, pyarrow.parquet, scipy.io, scipy.sparse

    # Its first use imports more.
    pyarrow.feather.write_feather(pyarrow.table({"x": [1]}), io.BytesIO())
    function = next(item for item in WORKS if item.name == work).peers[name]
    clock(lambda: function(pathlib.Path(folder), threads))


if __name__ == "__main__":
    peer(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
