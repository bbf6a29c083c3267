"""Reads a store as `docs/store.md` describes it, without Pentaglot's own code, and checks every chunk.

Data is put in with the command `$PENTAGLOT`; roots and packs are then read here: the seal, the identity in the file's name, every
link, every digest. A table's values are decoded from its chunks and compared, and its cuts are computed again.
"""

import base64
import os
import struct
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from blake3 import blake3 as hasher

ROOT = Path(__file__).resolve().parents[2]
PENTAGLOT = os.environ["PENTAGLOT"]
ROOT_TYPE = (
    "{version: int32, shape: string, rows: uint64, cols: uint64, "
    "columns: var * {name: string, type: string, digest: bytes[32], "
    "chunks: var * {rows: uint32, bytes: uint32, data: merkle[bytes]}}, "
    "origins: var * {format: string, name: string, time: datetime[tz='UTC'], schema: bytes, native: string, "
    "dictionaries: var * {column: uint32, chunks: var * {rows: uint32, bytes: uint32, data: merkle[bytes]}}}, "
    "seal: bytes[32]}"
)
IDENTITY_TYPE = (
    "{version: int32, shape: string, rows: uint64, cols: uint64, "
    "columns: var * {name: string, type: string, digest: bytes[32]}}"
)


def blake3(data):
    return hasher(data).digest()


def cid(digest):
    return "b" + base64.b32encode(b"\x01\x55\x1e\x20" + digest).decode().lower().rstrip("=")


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def text(value):
    value = value.encode()
    return varint(len(value)) + value


class Bytes:
    """Bytes that are taken one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        assert self.at + count <= len(self.data), "cut short"
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def slice(self):
        return self.take(self.varint())

    def chunks(self):
        found = []
        for _ in range(self.varint()):
            rows, size = self.number("I"), self.number("I")
            assert self.slice() == b"bytes", "a link to bytes"
            hashed = self.slice()
            assert hashed[:2] == b"\x1e\x20" and len(hashed) == 34, "a BLAKE3 multihash"
            found.append((rows, size, hashed[2:]))
        return found


def read_root(path):
    """The columns and dictionaries of a root, which is checked."""
    data = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd").read()
    assert data[-32:] == blake3(data[:-32]), "the seal"
    body = Bytes(data[:-32])
    assert body.slice().decode() == ROOT_TYPE
    version, shape = body.number("i"), body.slice().decode()
    rows, cols = body.number("Q"), body.number("Q")
    assert version == 1
    columns, dictionaries = [], []
    for _ in range(body.varint()):
        name, kind, digest = body.slice().decode(), body.slice().decode(), body.take(32)
        columns.append((name, kind, digest, body.chunks()))
    origins = body.varint()
    for _ in range(origins):
        for _ in range(2):
            body.slice()
        body.number("q")
        body.slice()
        body.slice()
        dictionaries += [(body.number("I"), body.chunks()) for _ in range(body.varint())]
    assert body.at == len(body.data), "nothing follows"
    root = text(IDENTITY_TYPE) + struct.pack("<i", 1) + text(shape) + struct.pack("<QQ", rows, cols)
    root += varint(len(columns)) + b"".join(text(name) + text(kind) + digest for name, kind, digest, _ in columns)
    assert cid(blake3(root)) == path.name, "the identity is the name"
    for *_, chunks in columns:
        assert sum(rows_of for rows_of, _, _ in chunks) == rows
    return rows, columns, dictionaries


def read_packs(folder):
    """Every chunk by its digest, checked."""
    chunks = {}
    for path in sorted(folder.glob("*.pack")):
        data = path.read_bytes()
        assert cid(blake3(data)) + ".pack" == path.name, "a pack is named by its bytes"
        assert data[:8] == data[-8:] == b"pgpack 1"
        count = struct.unpack("<Q", data[-16:-8])[0]
        index = data[-16 - 48 * count : -16]
        for at in range(0, len(index), 48):
            digest = index[at : at + 32]
            offset, stored, size = struct.unpack("<QII", index[at + 32 : at + 48])
            plain = pa.Codec("zstd").decompress(data[offset : offset + stored], size, asbytes=True)
            assert blake3(plain) == digest, "a chunk is named by its bytes"
            chunks[digest] = plain
    return chunks


def values_of(plain, rows, kind):
    """The values of a chunk of int64, float64 or utf8."""
    body = Bytes(plain)
    present = [True] * rows
    if body.take(1) == b"\x01":
        bits = body.take((rows + 7) // 8)
        present = [bits[row // 8] >> (row % 8) & 1 == 1 for row in range(rows)]
    read = {
        "int64": lambda: body.number("q"),
        "float64": lambda: body.number("d"),
        "utf8": lambda: body.slice().decode(),
    }[kind]
    found = [read() if there else None for there in present]
    assert body.at == len(plain)
    return found


GEAR = [struct.unpack("<Q", blake3(bytes([byte]))[:8])[0] for byte in range(256)]


def cut_point(data):
    """How many of the first bytes are a chunk, before values are looked at."""
    state = 0
    for at in range(4096, min(len(data), 65536)):
        state = (2 * state + GEAR[data[at]]) & (2**64 - 1)
        if state >> (48 if at < 16384 else 52) == 0:
            return at + 1
    return min(len(data), 65536)


def expected_cuts(encoded):
    """The numbers of rows in chunks of encoded rows."""
    counts, first = [], 0
    while first < len(encoded):
        ends, total = [], 0
        for row in encoded[first:]:
            total += len(row)
            ends.append(total)
            if total >= 65536 and len(ends) > 1:
                break
        point = cut_point(b"".join(encoded[first : first + len(ends)]))
        count = next(number + 1 for number, end in enumerate(ends) if end >= point)
        if ends[count - 1] > 65536 and count > 1:
            count -= 1
        counts.append(count)
        first += count
    return counts


def encode(value, kind):
    if value is None:
        return bytes({"int64": 8, "float64": 8, "utf8": 1}[kind])
    if kind == "utf8":
        return text(value)
    return struct.pack("<q" if kind == "int64" else "<d", value)


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        state, numbers = 12345, []
        for _ in range(12_000):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            numbers.append(state >> 12)
        table = pa.table(
            {
                "n": pa.array([None if n % 11 == 0 else n for n in numbers], pa.int64()),
                "x": pa.array([n / 7 for n in numbers], pa.float64()),
                "s": pa.array([None if n % 5 == 0 else f"{n:x}" * (n % 4) for n in numbers], pa.string()),
            }
        )
        pq.write_table(table, folder / "t.parquet")
        pq.write_table(table.slice(0, 100).append_column("d", pa.array(["a", "b"] * 50).dictionary_encode()), folder / "d.parquet")
        store = folder / "data.store"
        put = [PENTAGLOT, "store", "put", "--store", str(store)]
        files = [str(folder / name) for name in ["t.parquet", "d.parquet"]]
        files += [str(ROOT / "examples/data" / name) for name in ["ratings.mtx", "stations.csv"]]
        printed = subprocess.run(put + files, check=True, capture_output=True, text=True).stdout
        packs = read_packs(store / "packs")
        used = set()
        for line in printed.splitlines():
            rows, columns, dictionaries = read_root(store / "roots" / line.split(" ")[0])
            for chunks in [column[3] for column in columns] + [chunks for _, chunks in dictionaries]:
                for _, size, digest in chunks:
                    assert len(packs[digest]) == size
                    used.add(digest)
            if line.endswith("t.parquet"):
                for name, kind, _, chunks in columns:
                    found = [value for count, _, digest in chunks for value in values_of(packs[digest], count, kind)]
                    wanted = table[name].to_pylist()
                    assert found == wanted, name
                    counts = [count for count, _, _ in chunks]
                    assert counts == expected_cuts([encode(value, kind) for value in wanted]), name
        assert used == set(packs), "every chunk is somebody's"
        print(f"{len(packs)} chunks of {len(printed.splitlines())} roots")


if __name__ == "__main__":
    main()
