"""The ticks of the bench as Arctic's TickStore keeps them: arctic.py ROWS. Documents of 100,000 rows, each column LZ4-packed.

Prints seconds to write and to read, and the bytes that are stored.
"""
import os, sys, time

import lz4.block
import numpy
import pymongo

ROWS, CHUNK = int(sys.argv[1]), 100_000
collection = pymongo.MongoClient(os.environ["MONGODB_URI"])["pentaglot_bench"]["arctic"]
collection.drop()
generator = numpy.random.default_rng(7)
stored, start = 0, time.perf_counter()
made = 0.0
for first in range(0, ROWS, CHUNK):
    count = min(CHUNK, ROWS - first)
    before = time.perf_counter()
    times = 1_700_000_000_000 + numpy.arange(first, first + count)
    columns = {"volume": generator.integers(0, 500, count) * 100}
    for place in range(8):
        columns[f"price_{place}"] = numpy.round(100 + numpy.cumsum(generator.integers(-10, 11, count)) / 100, 2)
    made += time.perf_counter() - before
    packed = {name: {"d": lz4.block.compress(values.tobytes()), "t": values.dtype.str} for name, values in columns.items()}
    index = lz4.block.compress(numpy.diff(times, prepend=0).astype("<u8").tobytes(), mode="high_compression")
    stored += len(index) + sum(len(column["d"]) for column in packed.values())
    collection.insert_one({"_id": first, "sy": "K", "c": count, "i": index, "cs": packed})
written = time.perf_counter() - start - made
start = time.perf_counter()
rows = 0
for document in collection.find().sort("_id", 1):
    times = numpy.cumsum(numpy.frombuffer(lz4.block.decompress(document["i"]), "<u8"))
    for column in document["cs"].values():
        numpy.frombuffer(lz4.block.decompress(column["d"]), column["t"])
    rows += len(times)
assert rows == ROWS
print(f"write {written:.2f} s, read {time.perf_counter() - start:.2f} s, {stored} bytes")
