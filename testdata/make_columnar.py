"""Makes testdata/arrow and testdata/parquet with pyarrow: one small table, written in many ways.

    python3 testdata/make_columnar.py        (needs pyarrow and pandas; the files here are from pyarrow 26.0)

The same table stands as `expected()` in the Rust tests of both formats.
"""

import datetime
import decimal
import pathlib

import pandas
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
ARROW = HERE / "arrow"
PARQUET = HERE / "parquet"

UTC = datetime.timezone.utc


def table():
    moment = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)
    columns = {
        "i": pa.array([1, None, -3, 2**31 - 1, 0], pa.int32()),
        "f": pa.array([0.5, -0.0, None, float("inf"), 1e-300], pa.float64()),
        "s": pa.array(["", "é日本", None, "a,b\n\"c\"", "x" * 40], pa.string()),
        "b": pa.array([True, False, None, True, True], pa.bool_()),
        "d": pa.array([datetime.date(1970, 1, 1), None, datetime.date(1582, 10, 15), datetime.date(9999, 12, 31), datetime.date(2024, 2, 29)], pa.date32()),
        "t": pa.array([moment, None, moment - datetime.timedelta(days=40000), moment, moment], pa.timestamp("us", "UTC")),
        "n": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-99999999.99"), decimal.Decimal("0.00"), decimal.Decimal("3.00")], pa.decimal128(10, 2)),
        "l": pa.array([[1, None, 3], [], None, [4], [5, 6]], pa.list_(pa.int64())),
        "o": pa.array([{"x": 1, "y": "one"}, {"x": None, "y": None}, None, {"x": 4, "y": ""}, {"x": 5, "y": "five"}],
                      pa.struct([("x", pa.int16()), ("y", pa.string())])),
        "c": pa.array(["red", "green", None, "red", "blue"], pa.string()).dictionary_encode(),
        "z": pa.array([b"\x00\xff", b"", None, b"abc", b"\x80"], pa.binary()),
    }
    return pa.table(columns).replace_schema_metadata({"origin": "make_columnar.py"})


def write_ipc(path, tables, stream=False, **options):
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), tables[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for one in tables:
            writer.write_table(one)


def dictionaries(*values):
    kind = pa.dictionary(pa.int32(), pa.string())
    arrays = [pa.DictionaryArray.from_arrays(pa.array(keys, pa.int32()), pa.array(words)) for keys, words in values]
    return [pa.table({"c": array.cast(kind)}) for array in arrays]


def main():
    whole = table()
    halves = [whole.slice(0, 2), whole.slice(2)]

    pyarrow.feather.write_feather(whole, str(ARROW / "lz4.feather"), compression="lz4")
    pyarrow.feather.write_feather(whole, str(ARROW / "zstd.feather"), compression="zstd")
    write_ipc(ARROW / "two_batches.arrow", halves)
    write_ipc(ARROW / "legacy.arrow", halves, use_legacy_format=True, metadata_version=pa.ipc.MetadataVersion.V4)
    write_ipc(ARROW / "two_batches.arrows", halves, stream=True)
    write_ipc(ARROW / "zstd.arrows", halves, stream=True, compression="zstd")
    write_ipc(ARROW / "legacy.arrows", halves, stream=True, use_legacy_format=True, metadata_version=pa.ipc.MetadataVersion.V4)
    # Dictionaries that grow (with and without deltas) and that are replaced.
    grown = dictionaries(([0, 1, 0], ["a", "b"]), ([2, 0, 1], ["a", "b", "c"]))
    replaced = dictionaries(([0, 1, 0], ["a", "b"]), ([1, 0, 1], ["b", "c"]))
    write_ipc(ARROW / "delta.arrow", grown, emit_dictionary_deltas=True)
    write_ipc(ARROW / "delta.arrows", grown, stream=True, emit_dictionary_deltas=True)
    write_ipc(ARROW / "replaced.arrows", replaced, stream=True)
    write_ipc(ARROW / "no_rows.arrow", [whole.slice(0, 0)])

    pq.write_table(whole, PARQUET / "v1_snappy.parquet", version="1.0", compression="snappy", row_group_size=2)
    pq.write_table(whole, PARQUET / "v2_zstd.parquet", data_page_version="2.0", compression="zstd", write_page_index=True)
    pq.write_table(whole, PARQUET / "checksums.parquet", compression="none", write_page_checksum=True)
    for codec in ["gzip", "brotli", "lz4"]:
        pq.write_table(whole, PARQUET / f"{codec}.parquet", compression=codec)
    pq.write_table(whole, PARQUET / "no_arrow_schema.parquet", store_schema=False)
    pq.write_table(whole, PARQUET / "plain.parquet", use_dictionary=False, compression="none")
    pq.write_table(whole.slice(0, 0), PARQUET / "no_rows.parquet")
    delta = {"i": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "z": "DELTA_LENGTH_BYTE_ARRAY", "f": "BYTE_STREAM_SPLIT"}
    pq.write_table(whole.select(["i", "f", "s", "z"]), PARQUET / "encodings.parquet", use_dictionary=False, column_encoding=delta)
    pq.write_table(pa.table({"t": whole["t"]}), PARQUET / "int96.parquet", use_deprecated_int96_timestamps=True)

    frame = pandas.DataFrame({"v": [1.5, 2.5]}, index=pandas.Index(["p", "q"], name="key"))
    frame.to_parquet(PARQUET / "pandas.parquet")


if __name__ == "__main__":
    main()
