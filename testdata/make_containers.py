"""Writes the small pangenome containers in testdata/sds: small.gbz, small.gbwt, small.gg, small.meta, small.chains; the
same graph in later versions, small-2.gbz, small-3.gbz and small-6.gbwt, and as text, small.gfa; and one without segments,
nodes.gbz.

Every structure is written from its description, by none of our own code. The graph has three nodes, an id without a node,
and three paths; its BWT is sorted naively. No vector has supports, as the C++ programs write them. Frames of zstd hold
their bytes as they are, in one raw block.
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


SAMPLES = ["anna", "ben", "_gbwt_ref"]
PATHS = [(0, 0, 1, 0), (1, 0, 2, 7), (2, 0, 0xFFFFFFFF, 0)]
WALKS = [[(1, 0), (2, 0), (4, 0)], [(1, 0), (2, 0), (4, 1)], [(1, 0), (2, 0), (4, 0)]]
SEQUENCES = ["GATTACA", "C", "", "TTG"]


def metadata():
    body = elements(len(PATHS)) + b"".join(struct.pack("<IIII", *path) for path in PATHS)
    return header(0x6B375E7A, 2, 3, 3, 1, 7) + body + dictionary(SAMPLES) + dictionary(["chr1"])


def zstd(data):
    """A frame of one raw block."""
    assert len(data) < 256
    return b"\x28\xb5\x2f\xfd\x20" + bytes([len(data)]) + struct.pack("<I", 1 | len(data) << 3)[:3] + data


def byte_code(number):
    data = b""
    while number >= 128:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def record(edges, visits):
    """Edges as (node, offset); visits as the ranks of the edges that they take."""
    data, last = byte_code(len(edges)), 0
    for node, offset in edges:
        data += byte_code(node - last) + byte_code(offset)
        last = node
    start = 0
    while start < len(visits):
        end = start
        while end < len(visits) and visits[end] == visits[start]:
            end += 1
        length, longest = end - start, 256 // len(edges)
        data += bytes([visits[start] + len(edges) * (min(length, longest) - 1)])
        if length >= longest:
            data += byte_code(length - longest)
        start = end
    return data


def bwt():
    """The records of all paths in both directions, the endmarker's first, and how many visits they have."""
    sequences = []
    for walk in WALKS:
        forward = [2 * node + reverse for node, reverse in walk]
        sequences += [forward, [node ^ 1 for node in reversed(forward)]]
    # A visit is sorted by the nodes before it, the nearest first, then by its sequence.
    visits = {}
    for number, nodes in enumerate(sequences):
        for place, node in enumerate(nodes + [0]):
            before = nodes[:place][::-1] + [0]
            following = (nodes + [0])[place + 1] if place < len(nodes) else nodes[0]
            key = (before, number) if place < len(nodes) else ([], number)
            visits.setdefault(node, []).append((key, following))
    records, total = [], 0
    for node in [0] + list(range(2, 10)):
        following = [following for _, following in sorted(visits.get(node, []))]
        total += len(following)
        successors = sorted(set(following))
        edges = []
        for successor in successors:
            arriving = [other for other in visits if other < node for _, to in visits[other] if to == successor]
            edges.append((successor, len(arriving) if node != 0 and successor != 0 else 0))
        records.append(record(edges, [successors.index(to) for to in following]) if edges else b"\0")
    return records, total


def gbwt(version=5):
    records, total = bwt()
    starts = [sum(map(len, records[:index])) for index in range(len(records))]
    data = b"".join(records)
    inner = metadata()
    return (
        header(0x6B376B37, version, 2 * len(WALKS), total, 1, 10, 7)
        + tags([("source", "testdata"), ("reference_samples", "anna")])
        + sparse_vector(len(data), starts, 1)
        + byte_vector(zstd(data) if version >= 6 else data)
        + elements(0)
        + elements(len(inner) // 8)
        + inner
    )


def graph(version=3, translation=True):
    if version >= 4:
        text = "".join(SEQUENCES).encode()
        starts = [sum(len(part) for part in SEQUENCES[:index]) for index in range(len(SEQUENCES))]
        sequences = sparse_vector(starts[-1] + 1, starts, 2) + elements(len(text)) + byte_vector(zstd(text))
    else:
        sequences = string_array(SEQUENCES)
    if translation:
        return header(0x6B3764AF, version, 3, 3) + sequences + string_array(["s1", "s2", "s3"]) + sparse_vector(5, [1, 3, 4], 1)
    return header(0x6B3764AF, version, 3, 2) + sequences + string_array([]) + sparse_vector(0, [], 64)


def gbz(version=1, translation=True):
    return (
        header(0x205A4247, version, 0)
        + tags([("source", "testdata")])
        + gbwt(6 if version >= 3 else 5)
        + graph(4 if version >= 2 else 3, translation)
    )


def chains():
    return elements(2) + int_vector([2, 4, 6], 6) + int_vector([8, 10], 4)


for name, data in [
    ("small.gbz", gbz()),
    ("small-2.gbz", gbz(2)),
    ("small-3.gbz", gbz(3)),
    ("nodes.gbz", gbz(3, translation=False)),
    ("small.gbwt", gbwt()),
    ("small-6.gbwt", gbwt(6)),
    ("small.gg", graph()),
    ("small.meta", metadata()),
    ("small.chains", chains()),
]:
    (FOLDER / name).write_bytes(data)

LINES = [
    "H VN:Z:1.1 RS:Z:anna",
    "S s1 GATTACAC",
    "S s3 TTG",
    "L s1 + s3 + 0M",
    "L s1 + s3 - 0M",
    "P chr1 s1+,s3+ *",
    "W anna 1 chr1 0 11 >s1>s3",
    "W ben 2 chr1 7 18 >s1<s3",
]
(FOLDER / "small.gfa").write_text("".join(line.replace(" ", "\t") + "\n" for line in LINES))
