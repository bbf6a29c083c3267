"""Feather with LZ4, on request: a line `read` or `write` on stdin does it once and answers with a number on stdout."""
import sys

import pyarrow as pa
import pyarrow.feather as feather

table = pa.ipc.open_file(sys.argv[1]).read_all().combine_chunks()
threads = int(sys.argv[2])
pa.set_cpu_count(threads)


def write():
    sink = pa.BufferOutputStream()
    feather.write_feather(table, sink, compression="lz4")
    return sink.getvalue()


packed = write()
assert feather.read_table(pa.BufferReader(packed)).equals(table)
print(packed.size, flush=True)
for line in sys.stdin:
    if line.strip() == "read":
        answer = feather.read_table(pa.BufferReader(packed), use_threads=threads > 1).num_rows
    else:
        answer = write().size
    print(answer, flush=True)
