"""Writes testdata/ds/images.json, testdata/ds/rows.json and testdata/dynd/cbor.json: files of other programs as base64 or hex, and what they mean.

Needs Pillow, NumPy, cbor2 and msgpack. Run from the repository's root: python testdata/make_images.py
"""

import base64
import io
import json

import cbor2
import msgpack
import numpy as np
import PIL
from PIL import Image

WIDTH, HEIGHT = 7, 5


def file_of(image, format, **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def base(data):
    return base64.b64encode(bytes(data)).decode()


def entry(name, file, channels, kind, samples, tolerance=0):
    """An image file and its samples: numbers in the order of rows, pixels, channels."""
    return {
        "name": name,
        "file": base(file),
        "format": "jpeg" if file[:2] == b"\xff\xd8" else "png",
        "channels": channels,
        "component": kind,
        "samples": [int(value) for value in np.asarray(samples).reshape(-1)],
        "tolerance": tolerance,
    }


def images():
    rng = np.random.default_rng(5)
    rgb = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    grey = rng.integers(0, 256, (HEIGHT, WIDTH), dtype=np.uint8)
    alpha = rng.integers(0, 256, (HEIGHT, WIDTH, 1), dtype=np.uint8)
    colours, black = ["red", "green", "blue"], ["black"]
    found = [
        entry("rgb", file_of(Image.fromarray(rgb), "PNG"), colours, "uint8", rgb),
        entry("grey", file_of(Image.fromarray(grey), "PNG"), black, "uint8", grey),
        # Pillow's own conversion to RGB leaves alpha out, too.
        entry("rgba", file_of(Image.fromarray(np.concatenate([rgb, alpha], 2)), "PNG"), colours, "uint8", rgb),
        entry("grey alpha", file_of(Image.merge("LA", [Image.fromarray(grey), Image.fromarray(alpha[:, :, 0])]), "PNG"), black, "uint8", grey),
        entry("transparent colour", file_of(Image.fromarray(rgb), "PNG", transparency=tuple(map(int, rgb[0, 0]))), colours, "uint8", rgb),
        entry("optimised", file_of(Image.fromarray(grey), "PNG", optimize=True), black, "uint8", grey),
    ]
    wide = rng.integers(0, 65536, (HEIGHT, WIDTH), dtype=np.uint16)
    found.append(entry("16 bits", file_of(Image.fromarray(wide), "PNG"), black, "uint32", wide))
    for bits in (1, 2, 4, 8):
        indices = rng.integers(0, 2**bits, (HEIGHT, WIDTH), dtype=np.uint8)
        image = Image.new("P", (WIDTH, HEIGHT))
        image.putdata(indices.reshape(-1).tolist())
        palette = rng.integers(0, 256, (2**bits, 3), dtype=np.uint8)
        image.putpalette(palette.reshape(-1).tolist())
        file = file_of(image, "PNG", bits=bits)
        found.append(entry(f"palette of {bits} bits", file, colours, "uint8", image.convert("RGB")))
        if bits == 8:
            file = file_of(image, "PNG", transparency=bytes(range(256)))
            found.append(entry("palette with alpha", file, colours, "uint8", image.convert("RGB")))
    bits = Image.fromarray((rng.integers(0, 2, (HEIGHT, WIDTH)) * 255).astype(np.uint8)).convert("1")
    found.append(entry("1 bit", file_of(bits, "PNG"), black, "uint8", bits.convert("L")))
    # JPEG decoders may differ by a little; Pillow's is libjpeg-turbo.
    y, x = np.mgrid[0:16, 0:24]
    smooth = np.stack([x * 10, y * 15, 255 - x * 5 - y * 3], 2).astype(np.uint8)
    for name, options in [
        ("jpeg", {"quality": 95, "subsampling": 0}),
        ("jpeg subsampled", {"quality": 90, "subsampling": 2}),
        ("jpeg progressive", {"quality": 90, "progressive": True, "subsampling": 0}),
    ]:
        file = file_of(Image.fromarray(smooth), "JPEG", **options)
        tolerance = 12 if "subsampled" in name else 3
        found.append(entry(name, file, colours, "uint8", Image.open(io.BytesIO(file)).convert("RGB"), tolerance))
    file = file_of(Image.fromarray(smooth[:, :, 0]), "JPEG", quality=95)
    found.append(entry("jpeg grey", file, black, "uint8", Image.open(io.BytesIO(file)), 3))
    for one in found:
        size = Image.open(io.BytesIO(base64.b64decode(one["file"]))).size
        one["width"], one["height"] = size
    return {"about": f"Pillow {PIL.__version__}", "images": found}


def rows():
    """Rows as an HTTP service of Mantik takes them: MessagePack without a header, and plain JSON."""
    values = [[1, "x", None], [-70000, "\u00e9\u20ac", 2.5], [2**31 - 1, "", -0.0]]
    return {
        "about": f"msgpack {'.'.join(map(str, msgpack.version))}",
        "type": {"type": "tabular", "columns": {"n": "int32", "s": "string", "f": {"type": "nullable", "underlying": "float64"}}},
        "msgpack": b"".join(msgpack.packb(row) for row in values).hex(),
        "json": json.dumps(values, ensure_ascii=False, separators=(",", ":")),
    }


def cbor():
    def case(type, value, file):
        return {"type": type, "value": value, "hex": file.hex()}

    def dumps(value):
        return cbor2.dumps(value, canonical=True)

    def array(order, dims, typed, values):
        values = np.asarray(values)
        flat = values.reshape(dims).tobytes(order="F" if order == 1040 else "C")
        return dumps(cbor2.CBORTag(order, [list(dims), cbor2.CBORTag(typed, flat)]))

    floats = np.arange(6, dtype="<f8") / 4
    shorts = np.arange(24, dtype="<i2") - 7
    return {
        "about": f"cbor2 {cbor2.__version__ if hasattr(cbor2, '__version__') else ''}, canonical".strip(),
        "cases": [
            case("bool", True, dumps(True)),
            case("int64", -5, dumps(-5)),
            case("float64", 1.5, dumps(1.5)),
            case("string", "h\u00e9", dumps("h\u00e9")),
            case("(int64, string)", [1, "x"], dumps([1, "x"])),
            case("{x: int64, name: string}", {"x": 7, "name": "n"}, dumps({"x": 7, "name": "n"})),
            case("2 * 3 * float64", floats.reshape(2, 3).tolist(), array(40, (2, 3), 86, floats)),
            case("storage[2 * 3 * float64, axis=[1, 0]]", floats.reshape(2, 3).tolist(), array(1040, (2, 3), 86, floats)),
            case("storage[2 * 3 * 4 * int16, axis=[2, 1, 0]]", shorts.reshape(2, 3, 4).tolist(), array(1040, (2, 3, 4), 77, shorts)),
        ],
    }


def write(path, value):
    with open(path, "w", encoding="utf-8") as out:
        json.dump(value, out, ensure_ascii=False, separators=(",", ":"))
        out.write("\n")


write("testdata/ds/images.json", images())
write("testdata/ds/rows.json", rows())
write("testdata/dynd/cbor.json", cbor())
