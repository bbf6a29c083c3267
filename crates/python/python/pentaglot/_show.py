"""Tables as text and HTML, for people."""

from __future__ import annotations

import re
from html import escape

from pentaglot import _native

#: Columns that are shown.
COLUMNS = 20
#: Characters of a cell.
WIDTH = 32


#: What a terminal or a browser obeys instead of showing it: control characters, and those that turn the direction of text.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Text with control characters as escapes; line ends stay.

    >>> print(visible("a\u202eb"))
    a\\u202eb
    """
    return _CONTROLS.sub(lambda found: "\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def cut(text: str, width: int = WIDTH) -> str:
    """Text of at most so many characters, in one line."""
    text = visible(text.replace("\n", " "))
    return text if len(text) <= width else text[: width - 1] + "…"


def cells(batches: _native.Batches, rows: int) -> tuple[list[str], list[list[str]]]:
    """The names of the columns and the first rows, as they are shown."""
    names = batches.schema.names
    shown = [name for name in names[:COLUMNS]]
    lines = [[cut(cell) for cell in line[:COLUMNS]] for line in batches.cells(rows)]
    if len(names) > COLUMNS:
        shown.append("…")
        lines = [[*line, "…"] for line in lines]
    return [cut(name) for name in shown], lines


def text_table(batches: _native.Batches, rows: int) -> str:
    """The first rows in columns."""
    names, lines = cells(batches, rows)
    widths = [max(len(line[index]) for line in [names, *lines]) for index in range(len(names))]
    rows_of_text = [[cell.ljust(width) for cell, width in zip(line, widths)] for line in [names, *lines]]
    return "\n".join("  ".join(line).rstrip() for line in rows_of_text)


def html_title(title: str) -> str:
    """A title, which may come from a file."""
    return f"<p>{escape(visible(title))}</p>"


def html_table(title: str, names: list[str], lines: list[list[str]]) -> str:
    """A table with a title."""
    head = "".join(f"<th>{escape(visible(name))}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(visible(cell))}</td>" for cell in line) + "</tr>" for line in lines)
    return f"{html_title(title)}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def spy(points: list[tuple[float, float]], rows: int, cols: int) -> str:
    """The places of the entries of a sparse matrix, as SVG."""
    size = 200.0
    width = size * min(1.0, cols / max(rows, 1))
    height = size * min(1.0, rows / max(cols, 1))
    dots = "".join(
        f'<rect x="{x * width:.1f}" y="{y * height:.1f}" width="1.5" height="1.5"/>' for y, x in points
    )
    return (
        f'<svg width="{width + 2:.0f}" height="{height + 2:.0f}" style="background:white">'
        f'<rect width="{width + 2:.0f}" height="{height + 2:.0f}" fill="none" stroke="#999"/>{dots}</svg>'
    )
