"""Python's msgpack and msgspec: peers.py ROWS_MSGPACK ROWS_JSON, each file one array of rows.

Answers one line after the other with a number. "msgpack read", "msgspec read" and "msgspec-json read" make an Arrow table of the
rows: the answer is its checksum. "write" encodes the rows, which are tuples: the answer is the number of bytes.
"""
import sys

import msgpack
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

packed, text = (open(path, "rb").read() for path in sys.argv[1:])
rows_type = list[tuple[int, int, float, bool, str]]
column_types = [pa.int32(), pa.int64(), pa.float64(), pa.bool_(), pa.string()]
read = {
    "msgpack": lambda: msgpack.unpackb(packed, use_list=False),
    "msgspec": lambda decode=msgspec.msgpack.Decoder(rows_type).decode: decode(packed),
    "msgspec-json": lambda decode=msgspec.json.Decoder(rows_type).decode: decode(text),
}
write = {
    "msgpack": lambda pack=msgpack.Packer().pack: pack(rows),
    "msgspec": lambda encode=msgspec.msgpack.Encoder().encode: encode(rows),
    "msgspec-json": lambda encode=msgspec.json.Encoder().encode: encode(rows),
}
rows = read["msgspec"]()
for name in write:
    assert write[name]() == (text if name == "msgspec-json" else packed), f"{name} writes other bytes"


def checksum(table):
    """The sum over all columns that the bench takes."""
    a, b, c, d, e = (column.combine_chunks() for column in table.columns)
    bits = pa.Array.from_buffers(pa.int64(), len(c), c.buffers())
    return sum(pc.sum(part).as_py() for part in [a, b, bits, d, pc.binary_length(e)]) % 2**64


for line in sys.stdin:
    name, way = line.split()
    if way == "read":
        columns = zip(*read[name]())
        answer = checksum(pa.table([pa.array(*pair) for pair in zip(columns, column_types)], names=list("abcde")))
    else:
        answer = len(write[name]())
    print(answer, flush=True)
