import pentaglot as pg
import pytest

CSV = b"a,b\n1,x\n2,\n4,x\n"


def test_describe_gives_the_figures_of_the_command():
    found = pg.describe(CSV, format="csv")
    assert found["rows"] == 3
    a, b = found["columns"]
    assert (a["min"], a["max"], a["quantiles"]["0.5"]) == (1, 4, 2.0)
    assert (b["nulls"], b["top"]) == (1, [["x", 2]])


def test_describe_takes_columns_and_a_filter():
    found = pg.describe(CSV, format="csv", columns=["a"], where="a > 1")
    assert found["rows"] == 2
    assert [column["name"] for column in found["columns"]] == ["a"]
    with pytest.raises(pg.Error):
        pg.describe(CSV, format="csv", columns=["c"])


def test_plot_gives_files():
    svg = pg.plot(CSV, format="csv", columns=["b"])
    assert svg.startswith(b"<svg ") and svg.count(b'class="bar"') == 2
    assert svg._repr_svg_() == svg.decode()
    png = pg.plot(CSV, format="csv", kind="histogram", columns=["a"], size=(300, 200), output="png")
    assert png.startswith(b"\x89PNG")
    for wrong in ({"kind": "pie"}, {"size": (1, 1)}, {"kind": "spy"}):
        with pytest.raises(pg.Error):
            pg.plot(CSV, format="csv", **wrong)
    with pytest.raises(ValueError):
        pg.plot(CSV, format="csv", output="gif")
