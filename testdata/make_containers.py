"""Writes the small pangenome containers in testdata/sds: small.gbz, small.gbwt, small.gg, small.meta, small.chains.

Every structure is written from its description, by none of our own code. The graph has four nodes and two paths; the
records of the BWT are made up, since nothing here decodes them. No vector has supports, as the C++ programs write them.
"""

import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / "sds"


def elements(*values):
    return b"".join(struct.pack("<Q", value) for value in values)


def packed(values, width):
    """A raw vector: its bits and the words that hold them."""
    bits = len(values) * width
    whole = sum(value << (index * width) for index, value in enumerate(values))
    words = -(-bits // 64)
    return elements(bits, words) + whole.to_bytes(words * 8, "little")


def int_vector(values, width):
    return elements(len(values), width) + packed(values, width)


def bit_vector(bits):
    return elements(sum(bits)) + packed(bits, 1) + elements(0, 0, 0)


def sparse_vector(universe, values, width):
    """Elias-Fano: the low bits of each value, and for each bucket a one per value and a zero."""
    buckets = -(-universe // (1 << width))
    high = [0] * (len(values) + buckets)
    for index, value in enumerate(values):
        high[(value >> width) + index] = 1
    low = [value & ((1 << width) - 1) for value in values]
    return elements(universe) + bit_vector(high) + int_vector(low, width)


def byte_vector(data):
    return elements(len(data)) + data + bytes(-len(data) % 8)


def string_array(strings):
    """Where each string starts, the bytes that occur, and the characters as indices of those."""
    data = b"".join(text.encode() for text in strings)
    starts = [sum(len(text.encode()) for text in strings[:index]) for index in range(len(strings))]
    alphabet = bytes(sorted(set(data)))
    width = max(1, (max(len(alphabet), 1) - 1).bit_length())
    characters = [alphabet.index(byte) for byte in data]
    universe = starts[-1] + 1 if starts else 0
    return sparse_vector(universe, starts, 2) + byte_vector(alphabet) + int_vector(characters, width)


def dictionary(names):
    order = sorted(range(len(names)), key=lambda index: names[index])
    return string_array(names) + int_vector(order, max(1, (max(len(names), 1) - 1).bit_length()))


def tags(pairs):
    return string_array([text for pair in pairs for text in pair])


def header(tag, version, *payload):
    return struct.pack("<II", tag, version) + elements(*payload)


def metadata():
    paths = [(0, 0, 1, 0), (1, 0, 2, 7)]
    body = elements(len(paths)) + b"".join(struct.pack("<IIII", *path) for path in paths)
    return header(0x6B375E7A, 2, 2, 2, 1, 7) + body + dictionary(["anna", "ben"]) + dictionary(["chr1"])


def gbwt():
    records = [b"\x01\x02\x03", b"\x04", b"\x05\x06", b"\x07\x08\x09\x0a"]
    starts = [sum(map(len, records[:index])) for index in range(len(records))]
    data = b"".join(records)
    inner = metadata()
    return (
        header(0x6B376B37, 5, 4, 12, 1, 10, 7)
        + tags([("source", "testdata"), ("reference_samples", "anna")])
        + sparse_vector(len(data), starts, 1)
        + byte_vector(data)
        + elements(0)
        + elements(len(inner) // 8)
        + inner
    )


def graph():
    sequences = ["GATTACA", "C", "", "TTG"]
    segments = ["s1", "s2", "s3"]
    return header(0x6B3764AF, 3, 4, 3) + string_array(sequences) + string_array(segments) + sparse_vector(5, [1, 3, 4], 1)


def gbz():
    return header(0x205A4247, 1, 0) + tags([("source", "testdata")]) + gbwt() + graph()


def chains():
    return elements(2) + int_vector([2, 4, 6], 6) + int_vector([8, 10], 4)


for name, data in [
    ("small.gbz", gbz()),
    ("small.gbwt", gbwt()),
    ("small.gg", graph()),
    ("small.meta", metadata()),
    ("small.chains", chains()),
]:
    (FOLDER / name).write_bytes(data)
