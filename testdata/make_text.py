"""Writes the files of pandas and of Python's json module in testdata/csv and testdata/json. Needs pandas and numpy.

    python testdata/make_text.py
"""

import bz2
import json
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent

FRAME = pd.DataFrame(
    {
        "id": [1, 2, 3],
        "ratio": [0.5, None, 1e300],
        "name": ["plain", 'says "hi", twice', "line\nend é"],
        "flag": [True, False, True],
        "when": pd.to_datetime(
            ["2024-02-29T12:30:00", "1969-12-31T23:59:59.999", "2038-01-19T03:14:08"], format="ISO8601"
        ),
        "maybe": pd.array([7, None, -9], dtype="Int64"),
    }
)

# Characters of Western European code pages, with the separators that spreadsheets there use.
WEST = pd.DataFrame({"ville": ["Zürich", "Genève", "Åre"], "prix": [1.5, 22.25, 3.0], "note": ["à", None, "ok"]})


def main() -> None:
    folder = HERE / "json"
    iso = {"date_format": "iso"}
    FRAME.to_json(folder / "pandas_records.json", orient="records", **iso)
    FRAME.to_json(folder / "pandas_indented.json", orient="records", indent=2, **iso)
    FRAME.to_json(folder / "pandas_columns.json", orient="columns", **iso)
    FRAME.set_index("name").to_json(folder / "pandas_labelled.json", orient="columns", **iso)
    FRAME.to_json(folder / "pandas_values.json", orient="values", **iso)
    pd.DataFrame({"a": [1.5, 2.0], "b": [3.0, -4.0]}).to_json(folder / "pandas_matrix.json", orient="values")
    columns = {"a": [1, 2, 3], "b": ["x", None, "é"], "c": [[1], [], [2, 3]]}
    (folder / "python_lists.json").write_text(json.dumps(columns))
    (folder / "python_array.json").write_text(json.dumps([1, 2**70, -3], indent=1) + "\n")

    folder = HERE / "csv"
    WEST.to_csv(folder / "west_latin1.csv", index=False, sep=";", decimal=".", encoding="latin-1")
    WEST.to_csv(folder / "west_utf16.csv", index=False, sep="\t", encoding="utf-16")
    WEST.to_csv(folder / "west_utf16be.csv", index=False, sep="|", encoding="utf-16-be")
    WEST.to_csv(folder / "west_bom.csv", index=False, sep=";", encoding="utf-8-sig", na_rep="NA")
    WEST.to_csv(folder / "west_quote.csv", index=False, quotechar="'", quoting=2, na_rep="NULL")
    with open(folder / "west_preamble.csv", "w", encoding="utf-8", newline="") as file:
        file.write("report of 2024\nmade by hand\n# the columns\n")
        WEST.to_csv(file, index=False)
        file.write("# the end\n")
    text = WEST.to_csv(index=False).encode()
    (folder / "west.csv.bz2").write_bytes(bz2.compress(text))


if __name__ == "__main__":
    main()
