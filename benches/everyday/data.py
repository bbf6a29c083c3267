"""The data of the benches, made from seeds, in the formats that pyarrow and SciPy write."""
import json


def table(rows):
    import numpy as np, pyarrow as pa

    random = np.random.default_rng(7)
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])
    names = np.char.add(words[random.integers(0, 8, rows)], random.integers(0, 100_000, rows).astype(str))
    times = 1_700_000_000_000_000 + random.integers(0, 10**13, rows)
    return pa.table({
        "id": pa.array(np.arange(rows, dtype=np.int64) * 7 + 1000),
        "price": pa.array(np.round(random.normal(100, 25, rows), 4)),
        "name": pa.array(names),
        "kind": pa.array(words[random.integers(0, 8, rows)]),
        "at": pa.array(times.astype("datetime64[us]")),
        "count": pa.array(random.integers(0, 1000, rows).astype(np.int64), mask=random.random(rows) < 0.1),
    })


def frame(rows):
    """Numbers alone, none missing."""
    import numpy as np, pyarrow as pa

    random = np.random.default_rng(8)
    columns = {f"x{index}": random.normal(size=rows) for index in range(5)}
    columns |= {"id": np.arange(rows, dtype=np.int64), "count": random.integers(0, 1000, rows).astype(np.int32)}
    return pa.table(columns | {"level": random.integers(0, 100, rows).astype(np.int32)})


def sparse(entries):
    """A square matrix with about fifty entries a row."""
    import numpy as np, scipy.sparse

    random = np.random.default_rng(9)
    size = max(entries // 50, 100)
    return scipy.sparse.random_array((size, size), density=entries / size / size, format="csr", rng=random)


def write(data, path):
    import pyarrow as pa, pyarrow.csv, pyarrow.feather, pyarrow.parquet

    kind = path.suffix[1:]
    if kind == "parquet":
        pyarrow.parquet.write_table(data, path, compression="zstd", row_group_size=1 << 20)
    elif kind == "arrow":
        pyarrow.feather.write_feather(data, str(path), compression="uncompressed", chunksize=1 << 16)
    elif kind == "csv":
        pyarrow.csv.write_csv(data, path)
    else:
        with open(path, "wb") as out:
            for batch in data.to_batches(1 << 16):
                out.write(json_lines(batch))


def json_lines(batch):
    """An object a line. Texts have no character that is escaped."""
    import pyarrow as pa, pyarrow.compute as pc

    parts = []
    for index, (field, column) in enumerate(zip(batch.schema, batch.columns)):
        parts.append(("{" if index == 0 else ",") + f'"{field.name}":')
        text = column.cast(pa.string())
        if pa.types.is_timestamp(field.type):
            text = pc.replace_substring(text, " ", "T")
        if pa.types.is_string(field.type) or pa.types.is_timestamp(field.type):
            text = pc.binary_join_element_wise('"', text, '"', "")
        parts.append(text.fill_null("null"))
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    return b"".join(lines.cast(pa.binary()).to_pylist())


def read(path, schema):
    """The data of a file, whoever wrote it, with the types of the original."""
    import pyarrow as pa, pyarrow.csv, pyarrow.feather, pyarrow.json, pyarrow.parquet

    kind = path.suffix[1:]
    if kind == "parquet":
        data = pyarrow.parquet.read_table(path)
    elif kind == "arrow":
        data = pyarrow.feather.read_table(str(path), memory_map=False)
    elif kind == "csv":
        data = pyarrow.csv.read_csv(path)
    else:
        options = pyarrow.json.ParseOptions(explicit_schema=pa.schema([schema.field("at").with_type(pa.string())]))
        data = pyarrow.json.read_json(path, parse_options=options)
    columns = []
    for field in schema:
        column = data.column(field.name)
        if pa.types.is_string(column.type) and pa.types.is_timestamp(field.type):
            # Programs write a T or a space between date and time, and fractions of three, six or nine digits.
            column = pa.compute.replace_substring(column, "T", " ")
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=schema).combine_chunks()
