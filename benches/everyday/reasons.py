"""Where the time goes in what is below its target, by profiles of the command (`perf record`, `perf stat`)."""

#: By conversion or work.
REASONS = {
    "arrow to parquet": "zstd takes 40 % of the processor time (the same library in both programs), dictionaries 11 %, comparing texts for the smallest and largest value of each page 7 %, reading the input and checking its offsets and UTF-8 8 %: Polars maps the file and trusts it. With two threads both cores are busy from beginning to end. The sync of the output, which Polars does not do, takes 30 to 50 ms. Tried: columns that do not wait for each other, no dictionary where it had been full.",
    "parquet to arrow": "The sync of the output, which Polars does not do, takes 80 to 90 of 370 ms, write(2) 75 to 100 ms; decompressing zstd takes 30 % of the processor time.",
    "arrow to csv": "One thread formats and writes in turn; pyarrow writes without a sync.",
    "arrow to bsondf": "A column of BSON DataFrame is one LZ4 block, which the C library compresses as a whole (its bytes are those of the original programs), so that all rows are in memory before the first column is complete; Feather compresses batches while it reads. On a virtual machine that takes memory from its host at first use, half of the time is spent there.",
    "bsondf to arrow": "A column is one LZ4 block, which one thread decompresses from beginning to end, piece by piece; the largest column decides. Feather's buffers are compressed batch by batch.",
    "arrow to dbdf frame": "Copying in the kernel moves each byte once; here it is moved twice, from the source to rows and from rows to the file. With one thread nothing overlaps.",
    "dbdf frame to arrow": "As the other way.",
    "arrow to dynd structs": "Columns become rows of structs: each value is moved alone (about 1 ns), where a copy moves 16 bytes.",
    "dynd structs to arrow": "As the other way.",
    "npz to dbdf CSR": "SciPy's uncompressed npz is the arrays as they are: it copies. Here each column number is checked and written with its row.",
    "dbdf CSR to npz": "As the other way; two arrays are spooled, since a member's length is written before its bytes.",
    "mtx to dbdf CSR": "Today's SciPy reads Matrix Market with fast_matrix_market, which parses on all cores; parsing takes 80 % here too.",
    "dbdf CSR to mtx": "Copying pieces of text takes 31 % of the processor time, the digits of the floats 22 %. Of 500 ms with one thread, write(2) takes 130 and the sync, which SciPy does not do, 50.",
    "hash of Arrow IPC": "BLAKE3 hashes the mapped file in place at 6 GB/s a core; here each byte is first copied by read(2), and every chunk of 65,536 rows is a hash of its own.",
    "store get": "Chunks of 16 KiB are decompressed one by one and checked by BLAKE3; with one thread nothing overlaps.",
    "describe of a dbdf frame": "Ten statistics of each value, against reading alone.",
    "spy plot of CSR": "At this size the start, the font and the PNG take as long as reading; at 1e8 entries the figure is 0.8.",
}
