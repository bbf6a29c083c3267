"""Where the time goes in what is below its target, by profiles of the command (`perf record`, `perf stat`)."""

#: By conversion or work.
REASONS = {
    "arrow to parquet": "zstd takes 40 % of the processor time (the same library in both programs), dictionaries 11 %, comparing texts for the smallest and largest value of each page 7 %, reading the input and checking its offsets and UTF-8 8 %: Polars maps the file and trusts it. The sync of the output takes less than 10 ms. Tried: columns that do not wait for each other, no dictionary where it had been full.",
    "parquet to arrow": "write(2) takes 75 to 100 of 370 ms; decompressing zstd takes 30 % of the processor time.",
    "arrow to csv": "One thread formats and writes in turn; pyarrow writes without a sync.",
    "arrow to bsondf": "LZ4 takes most of the processor time: a column of BSON DataFrame is one block, which the C library compresses as a whole, since its bytes are those of the original programs. Columns are read and compressed one by one on each thread, so that the table is never in memory; the sync of the output, which pyarrow does not do, comes on top.",
    "bsondf to arrow": "A column is one LZ4 block, which one thread decompresses from beginning to end, piece by piece; the largest column decides. Feather's buffers are compressed batch by batch.",
    "arrow to dbdf frame": "Reading, encoding and writing run side by side, so that each byte is copied once more than by a copy; the figure depends on whether the host of the virtual machine has to provide memory for the output (0.27 to 0.86 s for the same run).",
    "dbdf frame to arrow": "As the other way.",
    "arrow to dynd structs": "Columns become rows of structs: each value is moved alone (about 1 ns), where a copy moves 16 bytes.",
    "dynd structs to arrow": "As the other way.",
    "npz to dbdf CSR": "SciPy's uncompressed npz is the arrays as they are: it copies them, and does not sync. Reading and writing these bytes in the kernel take 57 % of the processor time here; checking the column numbers and joining them with the values take 15 %.",
    "dbdf CSR to npz": "As the other way: writing takes 31 % and reading 7 % of the processor time in the kernel; the rows are read twice, since a member is one array.",
    "mtx to dbdf CSR": "SciPy reads Matrix Market with fast_matrix_market, on as many threads. Of the processor time, the numbers take 35 %, the copy of the output into the page cache 23 %, new memory 10 %, reading 8 %. The output is written after the last line has been parsed, since that could belong to the first row, and then synced, which SciPy does not do.",
    "dbdf CSR to mtx": "Copying the text into the page cache takes 43 % of the processor time, the shortest digits of the floats 15 %, building the lines 12 %.",
    "hash of Arrow IPC": "BLAKE3 hashes the mapped file in place at 6 GB/s a core; here each byte is first copied by read(2), and every chunk of 65,536 rows is a hash of its own.",
    "store get": "Chunks of 16 KiB are decompressed one by one and checked by BLAKE3; with one thread nothing overlaps.",
    "describe of a dbdf frame": "Ten statistics of each value, against reading alone.",
    "spy plot of CSR": "At this size the start, the font and the PNG take as long as reading; at 1e8 entries the figure is 0.8.",
    "compressed npz to dbdf CSR": "Inflating. A member is one stream, which one thread inflates; two members are inflated side by side, but the values are most of the bytes. zlib-rs is about 1.6 times as fast as the zlib of Python.",
    "dbdf CSR to compressed npz": "Deflating, at the level that NumPy uses too; with several threads in pieces of 256 KiB.",
    "csv to parquet": "Finding the ends of fields takes 13 % of the processor time, zstd 15 %, checking UTF-8 5 %, dates and times 6 %; the rest is spread over parsing and encoding. Processor time is below that of DuckDB, which does not sync: the two cores are not busy all the time.",
    "rank batch in 1e6 bits, of sux native single": "All data is in a near cache, so that the number of instructions decides: 3.4 ns against 2.9. sux is built for this processor alone; one build of ours serves all. The instructions were not counted. Single queries take 3.3 ns here, so that a batch has nothing left to save.",
    "store verify": "read(2) copies the packs, which takes 48 % of the processor time, BLAKE3 20 %; the peer hashes the mapped files in place.",
}

#: What one thread does alone in conversions whose output is large.
WRITING = "The output is one stream, which one thread copies into the page cache: "

#: Why a second thread gives less than it could.
ONE_STREAM = {
    "parquet to csv": WRITING + "200 MB; a third of the processor time is in the kernel.",
    "arrow to csv": WRITING + "200 MB; a third of the processor time is in the kernel.",
    "parquet to jsonl": WRITING + "337 MB; half of the processor time is in the kernel.",
    "parquet to arrow": WRITING + "164 MB; two thirds of the processor time are in the kernel.",
    "bsondf to arrow": WRITING + "349 MB; two thirds of the processor time are in the kernel.",
    "arrow to bsondf": "Half of the processor time is in the kernel: the output is one stream, and columns need new memory.",
    "arrow to dbdf frame": WRITING + "358 MB; nine tenths of the processor time are in the kernel.",
    "dbdf frame to arrow": WRITING + "358 MB; nine tenths of the processor time are in the kernel.",
    "arrow to dynd structs": WRITING + "358 MB; nine tenths of the processor time are in the kernel.",
    "dynd structs to arrow": WRITING + "358 MB; more than four fifths of the processor time are in the kernel.",
    "npz to dbdf CSR": WRITING + "97 MB; more than four fifths of the processor time are in the kernel.",
    "dbdf CSR to npz": WRITING + "97 MB; four fifths of the processor time are in the kernel. The rows are read twice, one array after the other.",
    "compressed npz to dbdf CSR": "A member is one DEFLATE stream, which one thread inflates.",
    "dbdf CSR to compressed npz": "Deflating has all threads; reading the rows into a spool before it has not.",
    "mtx to dbdf CSR": "Rows are written after the last line has been parsed, by one thread; 60 % of the processor time is in the kernel.",
    "dbdf CSR to mtx": WRITING + "about 260 MB; 60 % of the processor time is in the kernel.",
}

#: What large outputs have in common.
HOST = "Not separated. Supposed: the output needs more memory for the page cache than was free a moment before, and the host of this virtual machine has to provide it; conversions of 160 to 360 MB had up to six times the kernel time in that state."

#: Why a file of ten times the size takes more than ten times as long, or much memory.
GROWTH = {"parquet to csv": HOST, "parquet to jsonl": HOST, "parquet to arrow": HOST}
