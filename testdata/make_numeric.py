#!/usr/bin/env python3
"""Makes testdata/npy, testdata/npz and testdata/mtx with NumPy, SciPy and nothing else.

    python3 make_numeric.py        (made with NumPy 2.4 and SciPy 1.17)

Beside each file stands what must be read from it: NAME.json, one JSON value, made by the program that wrote the file.
A matrix is a list of rows, a table a list of objects, complex a pair, bytes base64, NaT null, NaN and infinities
strings; a sparse matrix is {"rows", "cols", "entries"} with entries by row, then as stored.
"""
import base64, io, json, math, pathlib
import numpy as np, scipy.sparse as sp, scipy.io

here = pathlib.Path(__file__).parent


def plain(value):
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.void):
        if value.dtype.names:
            return {name: plain(value[name]) for name in value.dtype.names}
        return base64.b64encode(value.tobytes()).decode()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        if np.isnat(value):
            return None
        if isinstance(value, np.datetime64):
            days = np.datetime_data(value.dtype)[0] in "YMWD"
            if days:
                return str(value.astype("M8[D]"))
            unit = np.datetime_data(value.dtype)[0]
            return str(value.astype("M8[s]") if unit in "hm" else value)
        unit = np.datetime_data(value.dtype)[0]
        return int((value.astype("m8[s]") if unit in "WDhm" else value).astype(np.int64))
    if isinstance(value, (np.complexfloating, complex)):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, np.generic):
        if isinstance(value, np.floating):
            number = float(value)
            if math.isnan(number):
                return "NaN"
            if math.isinf(number):
                return "Infinity" if number > 0 else "-Infinity"
            return number
        return plain(value.item()) if isinstance(value.item(), (bytes, complex)) else value.item()
    return value


def expect(path, value):
    path.with_suffix(path.suffix + ".json").write_text(json.dumps(value) + "\n")


def npy(name, array, expected=None, version=None):
    path = here / "npy" / f"{name}.npy"
    with open(path, "wb") as file:
        np.lib.format.write_array(file, array, version=version, allow_pickle=False)
    expect(path, plain(array[()]) if expected is None else expected)


def sparse(matrix):
    rows = matrix.tocsr() if matrix.format != "csr" else matrix
    coo = rows.tocoo()
    entries = [[int(r), int(c), plain(v)] for r, c, v in zip(coo.row, coo.col, coo.data)]
    return {"rows": int(matrix.shape[0]), "cols": int(matrix.shape[1]), "entries": entries}


def make_npy():
    for letter in ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]:
        base = np.arange(12).reshape(3, 4) - (3 if letter[0] in "ifc" else 0)
        array = (base % 2 == 0) if letter == "b1" else base.astype(letter)
        if letter[0] == "c":
            array = array + 1j * array[::-1]
        array = array.astype(letter)
        npy(f"c_{letter}", np.ascontiguousarray(array))
        npy(f"f_{letter}", np.asfortranarray(array))
        if letter not in ("b1", "i1", "u1"):
            npy(f"big_{letter}", array.astype(">" + letter))
    npy("one", np.arange(5, dtype="<i8"))
    npy("value", np.array(2.5))
    npy("empty", np.zeros(0, "<f4"))
    npy("no_rows", np.zeros((0, 3)))
    npy("no_cols", np.zeros((4, 0)))
    npy("tensor_c", np.arange(24, dtype="<i4").reshape(2, 3, 4))
    npy("tensor_f", np.asfortranarray(np.arange(120, dtype="<i2").reshape(2, 3, 4, 5)))
    npy("special", np.array([[np.nan, np.inf], [-np.inf, -0.0]]))
    npy("text", np.array(["", "a", "h\u00e9llo", "\U0001f980 b", "x\0y"]))
    npy("big_text", np.array(["ab", "\u00e9"]).astype(">U3"))
    npy("bytes", np.array([b"", b"ab", b"a\0b"], dtype="S4"))
    npy("void", np.array([b"\0\1\2", b"abc"], dtype="V3"))
    for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "25s"]:
        npy(f"datetime_{unit}", np.array([0, 1, -400, "NaT", 1000], dtype=f"M8[{unit}]"))
    for unit in ["W", "D", "h", "m", "s", "ms", "us", "ns"]:
        npy(f"timedelta_{unit}", np.array([0, 1, -400, "NaT", 1000], dtype=f"m8[{unit}]"))
    record = np.dtype([("x", "<i4"), ("y", "<f8", (3,)), ("n", [("a", "u1"), ("b", "S2")]), ("t", "<U3")])
    rows = np.zeros(3, record)
    rows["x"], rows["y"] = [1, 2, 3], np.arange(9).reshape(3, 3)
    rows["n"]["a"], rows["n"]["b"], rows["t"] = [7, 8, 9], [b"q", b"", b"zz"], ["a", "bc", ""]
    npy("records", rows)
    aligned = np.zeros(2, np.dtype([("a", "u1"), ("b", "<f8"), ("c", "<u2")], align=True))
    aligned["a"], aligned["b"], aligned["c"] = [1, 2], [0.5, -1], [3, 4]
    npy("aligned", aligned)
    npy("titled", np.array([(1, 2.0)], dtype=[(("a title", "p"), ">i2"), ("q", "f4")]))
    npy("version2", np.arange(6.0).reshape(2, 3), version=(2, 0))
    npy("version3", np.array([(1,)], dtype=[("\u540d", "i4")]))
    npy("wide_header", np.zeros(1, [(f"column_number_{i}", "u1") for i in range(2600)]))
    # A header as programs older than NumPy 1.14 padded it: to 16 bytes.
    old = io.BytesIO()
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2L,), }"
    pad = -(10 + len(text) + 1) % 16
    old.write(b"\x93NUMPY\x01\x00" + (len(text) + pad + 1).to_bytes(2, "little") + text + b" " * pad + b"\n")
    old.write(np.array([1.5, -2.0]).tobytes())
    (here / "npy" / "old.npy").write_bytes(old.getvalue())
    expect(here / "npy" / "old.npy", [1.5, -2.0])


def make_npz():
    folder = here / "npz"
    np.savez(folder / "single.npz", np.arange(6.0).reshape(2, 3))
    expect(folder / "single.npz", plain(np.arange(6.0).reshape(2, 3)))
    np.savez(folder / "several.npz", a=np.arange(3), b=np.ones((2, 2), "f4"))
    np.savez_compressed(folder / "several_packed.npz", a=np.arange(3), b=np.asfortranarray(np.arange(6).reshape(2, 3)))
    dense = np.array([[0, 1.5, 0, 0], [0, 0, 0, 0], [-2, 0, 0, 4], [0, 0, 0.25, 0]])
    for kind in ["csr", "csc", "coo", "bsr"]:
        for suffix, packed in [("", False), ("_packed", True)]:
            matrix = getattr(sp, kind + "_matrix")(dense)
            path = folder / f"{kind}{suffix}.npz"
            sp.save_npz(path, matrix, compressed=packed)
            expect(path, sparse(matrix))
    for name, dtype in [("csr_i2", "i2"), ("csr_bool", "?"), ("csr_c8", "c8"), ("csr_u8", "u8")]:
        matrix = sp.csr_matrix(np.abs(dense).astype(dtype))
        sp.save_npz(folder / f"{name}.npz", matrix)
        expect(folder / f"{name}.npz", sparse(matrix))
    zeros = sp.csr_array((np.array([0.0, 3.0, 4.0]), np.array([2, 0, 1]), np.array([0, 2, 2, 3])), shape=(3, 3))
    sp.save_npz(folder / "explicit_zero.npz", zeros, compressed=False)
    expect(folder / "explicit_zero.npz", sparse(zeros))
    repeats = sp.csr_matrix((np.array([1, 2, 4, 8]), np.array([1, 0, 1, 2]), np.array([0, 3, 4])), shape=(2, 3))
    sp.save_npz(folder / "repeats.npz", repeats, compressed=False)
    expect(folder / "repeats.npz", {"rows": 2, "cols": 3, "entries": [[0, 1, 5], [0, 0, 2], [1, 2, 8]]})
    coo = sp.coo_matrix((np.array([1, 2, 4]), (np.array([1, 0, 1]), np.array([0, 0, 0]))), shape=(2, 1))
    sp.save_npz(folder / "coo_repeats.npz", coo, compressed=False)
    expect(folder / "coo_repeats.npz", {"rows": 2, "cols": 1, "entries": [[0, 0, 2], [1, 0, 5]]})
    # Diagonals hold cells outside of the matrix, and zeros, which SciPy drops.
    data = np.array([[1.0, 2.0, 0.0, 4.0, 9.0], [5.0, 6.0, 7.0, 8.0, 9.0], [0.5, 1.5, 2.5, 3.5, 4.5]])
    for name, dtype, packed in [("dia", "<f8", False), ("dia_packed", "<f8", True), ("dia_i4", "<i4", False)]:
        matrix = sp.dia_array((data.astype(dtype), np.array([0, -2, 3])), shape=(4, 6))
        sp.save_npz(folder / f"{name}.npz", matrix, compressed=packed)
        expect(folder / f"{name}.npz", sparse(matrix))
    empty = sp.csr_matrix((5, 7))
    sp.save_npz(folder / "no_entries.npz", empty)
    expect(folder / "no_entries.npz", sparse(empty))


def mtx(name, text, expected=None):
    path = here / "mtx" / f"{name}.mtx"
    path.write_bytes(text.encode("latin-1"))
    if expected is None:
        # SciPy sorts a row's entries; so are those of these files.
        matrix = scipy.io.mmread(path)
        expected = sparse(matrix) if sp.issparse(matrix) else plain(np.asarray(matrix))
    expect(path, expected)


def make_mtx():
    rng = np.random.default_rng(7)
    dense = np.where(rng.random((9, 7)) < 0.3, np.round(rng.normal(size=(9, 7)), 3), 0)
    for name, matrix in [
        ("scipy_real", sp.coo_matrix(dense)),
        ("scipy_integer", sp.coo_matrix((dense * 10).astype("i8"))),
        ("scipy_complex", sp.coo_matrix(dense + 1j * dense[:, ::-1])),
        ("scipy_unsigned", sp.coo_matrix(np.abs(dense * 10).astype("u8"))),
        ("scipy_array", dense),
        ("scipy_array_complex", dense + 2j),
        ("scipy_array_integer", (dense * 10).astype("i8")),
    ]:
        out = io.BytesIO()
        scipy.io.mmwrite(out, matrix)
        mtx(name, out.getvalue().decode("latin-1"))
    symmetric = np.array([[2.0, -1, 0], [-1, 2, 0.5], [0, 0.5, 0]])
    for name, matrix, kind in [
        ("scipy_symmetric", symmetric, "symmetric"),
        ("scipy_skew", np.tril(symmetric, -1) - np.tril(symmetric, -1).T, "skew-symmetric"),
        ("scipy_hermitian", symmetric + 1j * (np.tril(symmetric, -1) - np.tril(symmetric, -1).T), "hermitian"),
    ]:
        for form, value in [("", sp.coo_matrix(matrix)), ("_array", matrix)]:
            out = io.BytesIO()
            scipy.io.mmwrite(out, value, symmetry=kind)
            mtx(name + form, out.getvalue().decode("latin-1"))
    mtx("pattern", "%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 2\n3 1\n3 3\n",
        {"rows": 3, "cols": 3, "entries": [[0, 1, 1], [2, 0, 1], [2, 2, 1]]})
    mtx("pattern_symmetric", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
        {"rows": 3, "cols": 3, "entries": [[0, 1, 1], [1, 0, 1], [2, 2, 1]]})
    mtx("odd", "%%matrixmarket MATRIX Coordinate REAL General\r\n% a comment\r\n\r\n%\r\n  2\t3  4 \r\n\r\n"
        " 1 1 1e0\r\n2   3  -2.5E-1  \r\n\r\n1 2 +.5\r\n2 1 inf\r\n",
        {"rows": 2, "cols": 3, "entries": [[0, 0, 1.0], [0, 1, 0.5], [1, 2, -0.25], [1, 0, "Infinity"]]})
    mtx("repeats", "%%MatrixMarket matrix coordinate integer general\n2 2 4\n1 1 1\n2 2 5\n1 1 2\n1 1 4\n",
        {"rows": 2, "cols": 2, "entries": [[0, 0, 7], [1, 1, 5]]})
    mtx("explicit_zero", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 0\n2 1 -0.0\n",
        {"rows": 2, "cols": 2, "entries": [[0, 0, 0.0], [1, 0, -0.0]]})
    mtx("order", "%%MatrixMarket matrix coordinate integer general\n1 3 3\n1 3 1\n1 1 2\n1 2 3\n",
        {"rows": 1, "cols": 3, "entries": [[0, 2, 1], [0, 0, 2], [0, 1, 3]]})
    mtx("no_entries", "%%MatrixMarket matrix coordinate real general\n4 5 0\n", {"rows": 4, "cols": 5, "entries": []})
    mtx("no_rows", "%%MatrixMarket matrix array real general\n0 3\n", [])
    mtx("no_cols", "%%MatrixMarket matrix array real general\n2 0\n", [[], []])
    mtx("no_final_newline", "%%MatrixMarket matrix array integer general\n2 1\n1\n-9223372036854775808", [[1], [-2**63]])


make_npy()
make_npz()
make_mtx()
