"""Content identities, computed again from their definition (docs/identity.md) and compared with the command's.

Needs blake3, numpy, pyarrow; run by `cargo xtask test` with PENTAGLOT = the built command. With the word `print` it prints
the identities of the vectors of the document instead.
"""

import base64
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
from blake3 import blake3

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHUNK = 65536
ROOT_TYPE = (
    "{version: int32, shape: string, rows: uint64, cols: uint64, "
    "columns: var * {name: string, type: string, digest: bytes[32]}}"
)
PACKED = {
    "int8": "b", "int16": "<h", "int32": "<i", "int64": "<q", "uint8": "B", "uint16": "<H", "uint32": "<I",
    "uint64": "<Q", "float16": "<e", "float32": "<f", "float64": "<d", "bool": "?",
}


def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(string):
    return varint(len(string.encode())) + string.encode()


def parse(words):
    """A type in Arrow text as nested tuples; `words` is the list of its tokens."""
    word = words.pop(0)
    if word == "?":
        return parse(words)
    if word in ("list", "map", "fixed_list"):
        words.pop(0)
        parts = []
        while True:
            parts.append(int(words.pop(0)) if words[0].isdigit() else parse(words))
            if words.pop(0) == "]":
                return (word, *parts)
    if word == "struct":
        words.pop(0)
        fields = []
        while words[0] != "}":
            name = words.pop(0)
            words.pop(0)
            fields.append((name, parse(words)))
            if words[0] == ",":
                words.pop(0)
        words.pop(0)
        return ("struct", fields)
    return (word,)


def parse_text(type_text):
    return parse(re.findall(r"[A-Za-z_0-9]+|[\[\]{}:,?]", type_text))


def print_type(kind):
    if kind[0] == "struct":
        return "struct{" + ", ".join(f"{name}: {print_type(inner)}" for name, inner in kind[1]) + "}"
    if len(kind) > 1:
        return kind[0] + "[" + ", ".join(part if isinstance(part, str) else str(part) if isinstance(part, int) else print_type(part) for part in kind[1:]) + "]"
    return kind[0]


def encode(kind, value):
    name = kind[0]
    if name in PACKED:
        return struct.pack(PACKED[name], float(value) if name.startswith("float") else value)
    if name == "utf8":
        return text(value)
    if name == "binary":
        return varint(len(value)) + value
    if name == "list":
        return varint(len(value)) + b"".join(slot(kind[1], item) for item in value)
    if name == "fixed_list":
        return b"".join(slot(kind[2], item) for item in value)
    if name == "struct":
        return b"".join(slot(inner, value[field]) for field, inner in kind[1])
    raise AssertionError(kind)


def slot(kind, value):
    return b"\0" if value is None else b"\1" + encode(kind, value)


def column_digest(kind, values):
    digests = []
    for start in range(0, len(values), CHUNK):
        chunk = values[start : start + CHUNK]
        if any(value is None for value in chunk):
            bits = np.packbits([value is not None for value in chunk], bitorder="little").tobytes()
            head = b"\1" + bits
        else:
            head = b"\0"
        digests.append(blake3(head + b"".join(encode(kind, value) for value in chunk if value is not None)).digest())
    return blake3(struct.pack("<Q", len(values)) + b"".join(digests)).digest()


def matrix_digest(kind, rows):
    digests = []
    for start in range(0, len(rows), CHUNK):
        out = b"\0"
        for row in rows[start : start + CHUNK]:
            entries = [(col, encode(kind, value)) for col, value in enumerate(row)]
            entries = [(col, value) for col, value in entries if any(value)]
            out += varint(len(entries)) + b"".join(varint(col) + value for col, value in entries)
        digests.append(blake3(out).digest())
    return blake3(struct.pack("<Q", len(rows)) + b"".join(digests)).digest()


def root(shape, rows, cols, columns):
    out = text(ROOT_TYPE) + struct.pack("<i", 1) + text(shape) + struct.pack("<QQ", rows, cols)
    out += varint(len(columns)) + b"".join(text(name) + text(kind) + digest for name, kind, digest in columns)
    cid = bytes([0x01, 0x55, 0x1E, 32]) + blake3(out).digest()
    return "b" + base64.b32encode(cid).decode().lower().rstrip("=")


def table_identity(kind, rows):
    columns = [
        (name, print_type(inner), column_digest(inner, [row.get(name) for row in rows])) for name, inner in kind[1]
    ]
    return root("table", len(rows), 0, columns)


def number(value):
    """JSON of the command: what is not finite is a string."""
    return float(value.replace("Infinity", "inf")) if value in ("NaN", "Infinity", "-Infinity") else value


def vector_identity(type_text, rows):
    matrix = re.fullmatch(r"matrix\[\d+, (\d+), (\w+)\]", type_text)
    if matrix:
        cols, kind = int(matrix[1]), (matrix[2],)
        return root("matrix", len(rows), cols, [("", kind[0], matrix_digest(kind, rows))])
    array = re.fullmatch(r"array\[(.*)\]", type_text)
    if array:
        kind = parse_text(array[1])
        return root("array", len(rows), 0, [("", print_type(kind), column_digest(kind, list(map(number, rows))))])
    kind = parse_text(type_text)
    plain = [{name: number(value) if isinstance(value, str) and dict(kind[1])[name][0].startswith("float") else value for name, value in row.items()} for row in rows]
    return table_identity(kind, plain)


def vectors():
    for line in (ROOT / "docs/identity.md").read_text().splitlines():
        cells = [cell.strip("|` ") for cell in line.split(" | ")]
        if len(cells) == 3 and line.startswith("| `") and cells[2] != "identity":
            yield cells[0], json.loads(cells[1]), cells[2]


def run(*words):
    done = subprocess.run([os.environ["PENTAGLOT"], *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def random_table(random, rows):
    maybe = lambda values: [None if random.random() < 0.1 else value for value in values]
    return pa.table(
        {
            "i": pa.array(maybe(random.integers(-(2**40), 2**40, rows).tolist()), pa.int64()),
            "f": pa.array(random.normal(size=rows)),
            "s": pa.array(maybe([("ä" * int(count)) for count in random.integers(0, 200, rows)]), pa.string()),
            "l": pa.array(maybe([random.normal(size=int(count)).tolist() for count in random.integers(0, 5, rows)]), pa.list_(pa.float64())),
            "b": pa.array(maybe((random.random(rows) < 0.5).tolist()), pa.bool_()),
            "p": pa.array(maybe([{"x": int(x), "y": str(x)} for x in random.integers(0, 99, rows)]), pa.struct([("x", pa.int32()), ("y", pa.string())])),
        }
    )


def main():
    found = 0
    for type_text, rows, expected in vectors():
        identity = vector_identity(type_text, rows)
        if sys.argv[1:] == ["print"]:
            print(f"| `{type_text}` | `{json.dumps(rows, ensure_ascii=False)}` | `{identity}` |")
        else:
            assert identity == expected, (type_text, rows, identity, expected)
        found += 1
    assert found >= 10, found
    if sys.argv[1:] == ["print"]:
        return
    folder = pathlib.Path(tempfile.mkdtemp())
    kind = parse_text("struct{i: int64, f: float64, s: utf8, l: list[float64], b: bool, p: struct{x: int32, y: utf8}}")
    for seed, rows in [(1, 0), (2, 1), (3, 1000), (4, CHUNK + 100)]:
        table = random_table(np.random.default_rng(seed), rows)
        expected = table_identity(kind, table.to_pylist())
        files = [folder / f"{seed}.arrow", folder / f"{seed}.parquet"]
        with pa.ipc.new_file(files[0], table.schema) as writer:
            writer.write_table(table, max_chunksize=777)
        pa.parquet.write_table(table, files[1], row_group_size=5000, use_dictionary=["s"])
        for file in files:
            assert run("hash", file) == f"{expected}  {file}\n", file
    dense = np.random.default_rng(5).integers(0, 3, (50, 7)).astype(np.float64)
    np.save(folder / "m.npy", dense)
    expected = root("matrix", 50, 7, [("", "float64", matrix_digest(("float64",), dense.tolist()))])
    run("convert", folder / "m.npy", folder / "m.mtx")
    for name in ["m.npy", "m.mtx"]:
        assert run("hash", folder / name).split()[0] == expected, name
    print("identities agree")


main()
