"""Typed data in five published formats, with Apache Arrow in the middle.

>>> import pentaglot as pg
>>> table = pg.read(b"city,people\\nBern,134000\\n", format="csv")
>>> table.shape
(1, 2)
>>> table.schema
struct{city: ?utf8, people: ?int64}

Tables speak the Arrow PyCapsule interface, so pyarrow, Polars, pandas and DuckDB take them as they are. The package
needs no other package; what a method such as ``to_pandas`` needs is imported when it is called.
"""

from pentaglot import dynd, store, succinct
from pentaglot._convert import Plan, Report, Step, convert, plan, write
from pentaglot._document import Document, open
from pentaglot._errors import Error, LimitReached, Lossy, Malformed, Truncated, Unsupported, Usage
from pentaglot._inspect import Finding, Part, Validation, count, dump, formats, inspect, validate
from pentaglot._look import Picture, describe, plot
from pentaglot._native import Schema, __version__
from pentaglot._read import read
from pentaglot._scan import Dataset, scan
from pentaglot._table import Table
from pentaglot._trust import Diff, Identity, Salvaged, diff, identity, raw_digest, salvage

__all__ = [
    "Dataset",
    "Diff",
    "Document",
    "Error",
    "Finding",
    "Identity",
    "LimitReached",
    "Lossy",
    "Malformed",
    "Part",
    "Picture",
    "Plan",
    "Report",
    "Salvaged",
    "Schema",
    "Step",
    "Table",
    "Truncated",
    "Unsupported",
    "Usage",
    "Validation",
    "__version__",
    "convert",
    "count",
    "describe",
    "diff",
    "dump",
    "dynd",
    "formats",
    "identity",
    "inspect",
    "open",
    "plan",
    "plot",
    "raw_digest",
    "read",
    "salvage",
    "scan",
    "store",
    "succinct",
    "validate",
    "write",
]
