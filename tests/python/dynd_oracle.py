#!/usr/bin/env python3
"""Random types and values through the command, compared with the independent program in oracles/.

PENTAGLOT is the path of the built command.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORACLES = ROOT / "tests" / "python" / "oracles"
COMMAND = os.environ.get("PENTAGLOT", str(ROOT / "target" / "debug" / "pentaglot"))
CASES = int(os.environ.get("DYND_CASES", "60"))

sys.path.insert(0, str(ORACLES))
import dynd_cbor_oracle as cbor  # noqa: E402
import dynd_oracle as dynd  # noqa: E402

LEAVES = (
    ["bool", "void", "string", "bytes", "type", "json", "date", "time", "datetime", "datetime[tz='UTC']", "char",
     "char['ascii']", "bytes[3]", "bytes[8, align=4]", "fixed_string[4]", "fixed_string[3, 'utf16']", "array[Any]"]
    + [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64, 128)]
    + [f"float{bits}" for bits in (16, 32, 64, 128)]
    + [f"complex[float{bits}]" for bits in (16, 32, 64, 128)]
)
NAMES = ["x", "y", "long name", "é", "", "'", "a\nb", "😀", "type", "Any"]


def random_type(rng, depth):
    kind = rng.randrange(9) if depth else 8
    inner = lambda: random_type(rng, depth - 1)
    if kind == 0:
        return ("fixed", rng.randrange(4), inner())
    if kind == 1:
        return ("var", inner())
    if kind == 2:
        return ("tuple", tuple(inner() for _ in range(rng.randrange(4))), False)
    if kind == 3:
        return ("struct", tuple((name, inner()) for name in rng.sample(NAMES, rng.randrange(4))), False)
    if kind in (4, 5):
        of = inner()
        return of if of[0] == "option" else ("option", of)
    if kind == 6:
        return ("pointer", inner())
    return dynd.parse(rng.choice(LEAVES))


def text(rng, longest):
    return "".join(chr(rng.choice([rng.randrange(1, 128), 0xE9, 0x65E5, 0x1F600])) for _ in range(rng.randrange(longest)))


def random_value(rng, ty, depth=0):
    kind = ty[0]
    some = lambda of: random_value(rng, of, depth + 1)
    if kind == "bool":
        return rng.random() < 0.5
    if kind in ("int", "uint"):
        bits, low = ty[1], -(1 << ty[1] - 1) if kind == "int" else 0
        high = low + (1 << bits) - 1
        return rng.choice([low, high, 0, 1, rng.randint(low, high)])
    if kind == "float":
        bits = ty[1]
        special = {16: [0x7E0A, 0x7E00, 0x7C01], 32: [0x7F8007A2, 0x7FC007A2], 64: [0x7FF00000000007A2, 1 << 63], 128: [0]}
        return rng.choice(special[bits] + [rng.randrange(1 << bits)])
    if kind == "complex":
        return (random_value(rng, ("float", ty[1])), random_value(rng, ("float", ty[1])))
    if kind == "date":
        return rng.randint(-(1 << 31), (1 << 31) - 1)
    if kind in ("time", "datetime"):  # past what nanoseconds hold, too
        return rng.choice([rng.randint(-(1 << 56), 1 << 56), rng.randint(1 - (1 << 63), (1 << 63) - 1)])
    if kind == "char":
        return rng.randrange(128) if ty[1] == "ascii" else rng.choice([0, 0x41, 0xE9, 0xD7FF, 0xE000, 0xFFFF])
    if kind in ("string", "json"):
        return text(rng, 6)
    if kind == "fixed_string":
        return rng.choice(["", "a", "é", "ab"])
    if kind == "bytes":
        return rng.randbytes(rng.choice([0, 1, 127, 128, 300]))
    if kind == "fixed_bytes":
        return rng.randbytes(ty[1])
    if kind == "void":
        return dynd.VOID
    if kind == "type":
        return rng.choice([random_type(rng, 2), dynd.parse("Any"), dynd.parse("Dims... * T")])
    if kind == "fixed":
        return [some(ty[2]) for _ in range(ty[1])]
    if kind == "var":
        return [some(ty[1]) for _ in range(rng.randrange(4))]
    if kind == "tuple":
        return tuple(some(of) for of in ty[1])
    if kind == "struct":
        return tuple(some(of) for _, of in ty[1])
    if kind == "option":
        if rng.random() < 0.3:
            return dynd.NA
        value = dynd.Some(some(ty[1]))
        try:
            dynd.serialize(ty, value)
            return value
        except dynd.DyndError:  # the sentinel itself has no serialization
            return dynd.NA
    if kind == "pointer":
        return some(ty[1])
    if kind == "array":
        stored = random_type(rng, 0 if depth > 3 else 1)
        return dynd.Arr(stored, some(stored))
    raise AssertionError(ty)


def run(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True)
    assert done.returncode in (0, 1, 2, 3, 4), (arguments, done)
    return done.returncode, done.stdout, done.stderr.decode()


def convert(source, target, *arguments):
    status, _, talk = run("convert", source, target, "--force", "-q", *arguments)
    assert status == 0, (source.read_bytes().hex(), arguments, talk)
    return target.read_bytes()


def values(rng, folder):
    for _ in range(CASES):
        ty = random_type(rng, 3)
        value = random_value(rng, ty)
        data = dynd.serialize(ty, value)
        whole = dynd.serialize("array[Any]", dynd.Arr(ty, value))
        other = cbor.to_cbor(dynd.Arr(ty, value))
        files = {name: folder / f"in.{name}" for name in ("dynd", "raw", "cbor")}
        for name, content in (("dynd", whole), ("raw", data), ("cbor", other)):
            files[name].write_bytes(content)
        out, shown = folder / "out.dynd", dynd.show(ty)
        assert convert(files["dynd"], out, "--from", "dynd") == whole, shown
        assert convert(files["dynd"], out, "--from", "dynd", "--to", "dynd:cbor") == other, shown
        assert convert(files["cbor"], out, "--from", "dynd:cbor", "--to", "dynd") == whole, shown
        assert convert(files["raw"], out, "--from", "dynd:raw", "--type", shown, "--to", "dynd:raw") == data, shown
    print(f"{CASES} values: the bytes of the oracle, in three dialects")


def broken(rng, folder):
    """A file is valid exactly if the oracle reads it; what breaks it has the oracle's name."""
    file, agreed = folder / "broken", 0
    for _ in range(CASES):
        ty = random_type(rng, 3)
        data = bytearray(dynd.serialize(ty, random_value(rng, ty)))
        change = rng.randrange(4)
        if change == 0 and data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif change == 1 and data:
            del data[rng.randrange(len(data)):]
        elif change == 2:
            data.append(rng.randrange(256))
        elif data:
            data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
        file.write_bytes(data)
        try:
            dynd.deserialize(bytes(data), ty)
            expected = None
        except dynd.DyndError as error:
            expected = error.code
        status, out, talk = run("validate", file, "--from", "dynd:raw", "--type", dynd.show(ty), "--json")
        report = json.loads(out)
        assert report["valid"] == (expected is None), (dynd.show(ty), data.hex(), expected, report, talk)
        assert status == (0 if expected is None else 1), (dynd.show(ty), data.hex(), expected, status)
        agreed += expected is not None and report["findings"][0]["rule"] == expected
    print(f"{CASES} broken files: refused exactly where the oracle refuses ({agreed} with the same first rule)")


def types(rng):
    spaces = lambda shown: "".join(rng.choice(["", " "]) + c + rng.choice(["", " "]) if c in "*,:[]{}()?" else c for c in shown)
    texts = [spaces(dynd.show(random_type(rng, 3))) for _ in range(CASES // 2)]
    texts += ["int33", "?option[int8]", "{x: int8, x: int8}", "3 * * int8", "bytes[0]", "(x: int8)", "T...", "Fixed"]
    texts += ["Any", "Dims... * T", "(int, x: real) -> ?T", "A**N * var * complex", "fixed[3]*intptr"]
    for given in texts:
        if not given.strip() or given.startswith(("{\"", "\"")):
            continue
        try:
            expected = dynd.show(dynd.parse(given))
        except dynd.DyndError:
            expected = None
        status, out, talk = run("type", given, "--from", "dynd")
        assert status == (0 if expected is not None else 1), (given, expected, status, talk)
        assert expected is None or out.decode().rstrip("\n") == expected, (given, out, expected)
    print(f"{len(texts)} type texts: the oracle's canonical form")


def main():
    seed = int(os.environ.get("DYND_SEED", "1"))
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        values(rng, pathlib.Path(folder))
        broken(rng, pathlib.Path(folder))
    types(rng)


if __name__ == "__main__":
    main()
