"""Twenty versions of a growing table, kept in three ways: how many bytes each takes.

The store of `$PENTAGLOT`; Parquet files in a chunk store (FastCDC, 64 KiB in the mean, each chunk once, 32 bytes for each link); the
same with Parquet's pages cut by content (`-O cdc=true`), as Hugging Face's Xet keeps them. The store must take the least.
Needs numpy and pyarrow. An argument says how many rows the first version has.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc

PENTAGLOT = os.environ["PENTAGLOT"]
WORDS = np.array(["calm", "gusty", "rain", "sensor replaced", "snow", "fog", "clear", "storm warning"])
GEAR = np.random.default_rng(7).integers(0, 2**64, 256, dtype=np.uint64)
LEAST, MEAN, MOST = 8 << 10, 64 << 10, 128 << 10


def readings(rows, seed):
    random = np.random.default_rng(seed)
    notes = zip(WORDS[random.integers(0, 8, rows)], random.integers(0, 100_000, rows))
    return {
        "time": 1_700_000_000_000_000 + seed * 10**9 + np.cumsum(400_000 + random.integers(0, 200_000, rows)),
        "station": random.integers(0, 500, rows).astype("i4"),
        "temperature": (random.integers(0, 60_000, rows) - 20_000) / 1000,
        "pressure": 900 + random.random(rows) * 150,
        "quality": random.integers(0, 5, rows).astype("i4"),
        "note": np.array([f"{word} {number}" for word, number in notes], dtype=object),
    }


def spliced(rows, start, end, fresh):
    return {name: np.concatenate([column[:start], fresh[name], column[end:]]) for name, column in rows.items()}


def versions(count):
    """What changed, and the table."""
    rows, random = readings(count, 1), np.random.default_rng(99)
    for number in range(20):
        length = len(rows["time"])
        part = length // 100
        if number == 0:
            change = "first"
        elif number % 5 == 0:
            rows, change = rows | {"temperature": rows["temperature"] + 0.5}, "a column is corrected"
        elif number % 3 == 0:
            start = int(random.integers(0, length - part))
            rows, change = spliced(rows, start, start + part, readings(part, 1000 + number)), "1 % changed"
        elif number % 2 == 0:
            start = int(random.integers(0, length))
            rows, change = spliced(rows, start, start, readings(part, 2000 + number)), "1 % inserted"
        else:
            rows, change = spliced(rows, length, length, readings(part, 3000 + number)), "1 % appended"
        missing = {"quality": rows["quality"] == 0}
        yield change, pa.table({name: pa.array(column, mask=missing.get(name)) for name, column in rows.items()})


def chunks(data):
    """FastCDC: the hash of the last 64 bytes at every place first, then the cuts."""
    gear = GEAR[np.frombuffer(data, np.uint8)]
    hashes = np.zeros(len(data), np.uint64)
    for shift in range(64):
        hashes[shift:] += gear[: len(gear) - shift] << np.uint64(shift)
    strict = np.flatnonzero(hashes >> np.uint64(64 - 18) == 0)
    lax = np.flatnonzero(hashes >> np.uint64(64 - 14) == 0)
    start = 0
    while start < len(data):
        end = min(len(data), start + MOST)
        for places, first, last in [(strict, start + LEAST, start + MEAN), (lax, start + MEAN, end)]:
            index = np.searchsorted(places, first)
            if index < len(places) and places[index] < min(last, end):
                end = int(places[index]) + 1
                break
        yield data[start:end]
        start = end


class ChunkStore:
    def __init__(self):
        self.chunks, self.links = {}, 0

    def put(self, data):
        for chunk in chunks(data):
            self.chunks[hashlib.sha256(chunk).digest()] = len(chunk)
            self.links += 1

    def bytes(self):
        return sum(self.chunks.values()) + 32 * (self.links + len(self.chunks))


def run(*words):
    subprocess.run([PENTAGLOT, *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60_000
    print("| version | change | Parquet | Parquet in chunks | Parquet cdc in chunks | store |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        folder, plain, whole = Path(folder), 0, {"false": ChunkStore(), "true": ChunkStore()}
        arrow, parquet, store = folder / "v.arrow", folder / "v.parquet", folder / "data.store"
        for number, (change, table) in enumerate(versions(count), 1):
            with pa.ipc.new_file(arrow, table.schema) as file:
                file.write_table(table, max_chunksize=65_536)
            for cdc, kept in whole.items():
                run("convert", "-q", "--force", arrow, parquet, "-O", f"cdc={cdc}")
                kept.put(parquet.read_bytes())
                plain += parquet.stat().st_size if cdc == "false" else 0
            run("store", "put", arrow, "--store", store)
            own = sum(file.stat().st_size for part in ["packs", "roots"] for file in (store / part).iterdir())
            others = [kept.bytes() for kept in whole.values()]
            print(f"| {number} | {change} | {plain} | {others[0]} | {others[1]} | {own} |")
        assert own <= min(others), "the store takes the least"
        print(f"store / Parquet cdc in chunks: {own / others[1]:.2f}")


if __name__ == "__main__":
    main()
