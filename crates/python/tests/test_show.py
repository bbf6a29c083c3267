"""What people see: nothing of a file is obeyed, and what is drawn is said."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import pentaglot as pg

EVIL = "<img src=x onerror=alert(1)>"


def save(path, matrix):
    path.parent.mkdir(exist_ok=True)
    scipy.sparse.save_npz(path, matrix)
    return path


def test_names_are_escaped_in_html(tmp_path):
    path = save(tmp_path / EVIL / "a.npz", scipy.sparse.eye_array(5).tocsr())
    html = pg.open(path)._repr_html_()
    assert "<svg" in html and "<img" not in html and "&lt;img" in html
    np.savez(tmp_path / EVIL / "z.npz", **{"<b>": np.arange(2), "c": np.arange(2)})
    assert "<img" not in pg.open(tmp_path / EVIL / "z.npz")._repr_html_()
    table = pg.Table(pa.table({EVIL: [EVIL]}))
    assert "<img" not in table._repr_html_()


def test_a_sparse_matrix_is_drawn_whole(tmp_path, monkeypatch):
    matrix = scipy.sparse.csr_array(([1.0], ([90], [3])), shape=(100, 50))
    document = pg.open(save(tmp_path / "s.npz", matrix))
    html = document._repr_html_()
    assert html.count("<rect") == 2 and "are drawn" not in html and "100 x 50" in html
    monkeypatch.setattr("pentaglot._document.DRAWN", 20)
    document = pg.open(save(tmp_path / "big.npz", scipy.sparse.eye_array(100).tocsr()))
    html = document._repr_html_()
    assert "100 x 100, the first 20 rows are drawn" in html and html.count("<rect") == 21


def test_without_numpy_the_rows_are_shown(tmp_path):
    path = save(tmp_path / "s.npz", scipy.sparse.eye_array(5).tocsr())
    code = textwrap.dedent(
        """
        import sys
        sys.modules["numpy"] = sys.modules["scipy"] = sys.modules["scipy.sparse"] = None
        import pentaglot as pg
        print(pg.open(sys.argv[1])._repr_html_())
        print(pg.open(sys.argv[1]).read()._repr_html_())
        """
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("<table>") == 2


@pytest.mark.parametrize("control", ["\u202e", "\u2066", "\u200f", "\x1b", "\x07"])
def test_control_characters_are_shown_and_not_obeyed(tmp_path, control):
    table = pg.Table(pa.table({f"a{control}b": [f"x{control}y"]}))
    pg.write(table, tmp_path / f"n{control}.parquet")
    document = pg.open(tmp_path / f"n{control}.parquet")
    plan = pg.plan(document, tmp_path / "x.csv")
    for text in [repr(table), repr(document), table._repr_html_(), document._repr_html_(), str(plan)]:
        assert control not in text
    assert f"\\u{ord(control):04x}" in repr(table)


def test_parts_past_the_end_and_negative_numbers_are_refused(tmp_path):
    np.save(tmp_path / "m.npy", np.eye(3))
    for at in (10**6, 200, -1):
        with pytest.raises(pg.Usage, match="expected a byte from 0 to 199"):
            pg.dump(tmp_path / "m.npy", at)
    assert pg.dump(tmp_path / "m.npy", 199).offset <= 199
    table = pg.read(tmp_path / "m.npy")
    for start, stop in [(-1, None), (0, -1)]:
        with pytest.raises(ValueError, match="at least 0"):
            table.slice(start, stop)


def test_a_dict_has_each_column_once():
    table = pg.Table(pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(pg.Usage, match="2 columns 'a'"):
        table.to_pydict()


class Path:
    """A path that is bytes, as `os.PathLike` allows."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return str(self.path).encode()


def test_a_path_may_be_bytes(tmp_path):
    path = Path(tmp_path / "m.dbdf")
    pg.write(np.eye(3), path, dialect="daphne")
    assert pg.read(path).shape == pg.read([path]).shape[:1] + (3,) == (3, 3)
    with pytest.raises(pg.Usage, match="input itself"):
        pg.convert(path, path, force=True)


def test_errors_made_in_python_have_their_kind(tmp_path):
    kinds = {
        pg.Usage: "usage",
        pg.Unsupported: "unsupported",
        pg.Truncated: "truncated",
        pg.Malformed: "malformed",
        pg.LimitReached: "limit",
        pg.Lossy: "lossy",
    }
    for kind, word in kinds.items():
        assert kind("x").kind == kind.kind == word
    assert issubclass(pg.Lossy, ValueError)
    zoned = pa.table({"t": pa.array([1], pa.timestamp("us", "Europe/Berlin"))})
    with pytest.raises(pg.Lossy) as lossy:
        pg.write(zoned, tmp_path / "t.dynd")
    assert (lossy.value.format, lossy.value.kind) == ("dynd", "lossy")
    with pytest.raises(pg.Unsupported) as impossible:
        pg.write(pa.table({"a": [[1, 2]]}), tmp_path / "t.dbdf")
    assert (impossible.value.format, impossible.value.plan.verdict) == ("dbdf", "impossible")


@pytest.mark.parametrize("packing", ["gz", "zst", "bz2"])
def test_a_dialect_goes_with_every_compression(tmp_path, packing):
    path = tmp_path / f"x.dbdf.{packing}"
    pg.write(np.eye(2), path, dialect="daphne")
    document = pg.open(path)
    assert document.dialect == "daphne" and np.array_equal(document.read().to_numpy(), np.eye(2))
