"""Tables as frames of pandas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import pyarrow


def frame_of(table: pyarrow.Table, options: dict[str, Any]) -> pandas.DataFrame:
    """A frame, through pyarrow. Integers and truth values of which some are missing have a nullable type."""
    if options.get("types_mapper") is not None or options.get("integer_object_nulls"):
        return table.to_pandas(**options)
    if options.pop("ignore_metadata", False):
        table = table.replace_schema_metadata(None)
    names, table = table.column_names, _with_nullable_types(table)
    is_renamed = table.column_names != names
    # With self_destruct=True the table is gone afterwards.
    frame = table.to_pandas(**options)
    if is_renamed:
        frame.columns = names
    return frame


def _with_nullable_types(table: pyarrow.Table) -> pyarrow.Table:
    """The table with metadata of pandas that names nullable types: pyarrow would make floats or objects of them."""
    metadata = table.schema.metadata or {}
    pandas = json.loads(metadata.get(b"pandas", b"null"))
    own = {"index_columns": [], "column_indexes": [], "columns": []} if pandas is None else pandas
    stored = {column.get("field_name", column.get("name")): column for column in own["columns"]}
    index = {name for name in own["index_columns"] if isinstance(name, str)}
    wanted = {}
    for place, (field, column) in enumerate(zip(table.schema, table.columns)):
        nullable = _nullable_type(field.type)
        if nullable is None or field.name in index or not column.null_count:
            continue
        said = stored.get(field.name, {}).get("numpy_type")
        # Types that begin with a capital letter are nullable already; truth values among objects are kept by pyarrow.
        is_kept = said is not None and (said[:1].isupper() or said == "boolean" or nullable == "boolean")
        if not is_kept:
            wanted[place] = nullable
    if not wanted:
        return table
    if pandas is None and len(set(table.column_names)) < table.num_columns:
        table = table.rename_columns([str(place) for place in range(table.num_columns)])
    for place, nullable in wanted.items():
        name = table.column_names[place]
        known = stored.get(name)
        if known is None:
            known = {"name": name, "field_name": name, "pandas_type": nullable.lower(), "metadata": None}
            own["columns"].append(known)
        known["numpy_type"] = nullable
    return table.replace_schema_metadata({**metadata, b"pandas": json.dumps(own).encode()})


def _nullable_type(kind: pyarrow.DataType) -> str | None:
    """The name of pandas' nullable type for integers and truth values."""
    import pyarrow

    if pyarrow.types.is_boolean(kind):
        return "boolean"
    if pyarrow.types.is_integer(kind):
        sign = "Int" if pyarrow.types.is_signed_integer(kind) else "UInt"
        return f"{sign}{kind.bit_width}"
    return None
