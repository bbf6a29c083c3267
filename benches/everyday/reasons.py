"""Where the time goes in what is below its target, by profiles of the command (`perf record`, its samples by function and by thread)."""

#: What decides the time of one rank.
RANK = (
    "Both wait for two cache lines of each query, ours with as many queries in flight as the processor holds: fewer instructions change nothing (tried: shifts without "
    "copies of the position). From run to run it is 0.97 to 1.03"
)

#: By conversion or work.
REASONS = {
    "arrow to parquet": "zstd takes 35 % of the processor time (the same library in both programs), tables of values 14 %, comparing texts, for these and for the smallest and largest value of each page, 9 %, the kernel 14 %. Both cores are busy from the first batch to the last row group; start, sync and end take 15 ms of 280. From run to run it is 0.95 to 1.05. Tried and kept: differences instead of plain numbers, the last row group appended while it is encoded, smaller pieces of work, one pool of memory for two threads; tried and not kept: the allocators mimalloc and jemalloc, which were slower.",
    "parquet to arrow": "Decompressing zstd takes 30 % of the processor time, the copy of the output into the page cache a quarter.",
    "csv to arrow": "Finding the ends of fields takes 20 % of the processor time, handing cells to their columns 13 %, dates and times 14 %, floats 6 %, whole numbers 6 %, texts 4 %, the kernel 23 %. How long pyarrow takes depends on how fast the system gives it new memory (620 MB, where the command takes 32): on machines of one kind, 0.28 to 0.63 s with two threads for the same file.",
    "arrow to csv": "One thread formats and writes in turn; pyarrow writes without a sync.",
    "arrow to bsondf": "LZ4 takes 54 % of the processor time, as fast as the C library, whose bytes it writes, and the kernel 39 %, for reading, the page cache and the sync. A column of BSON DataFrame is one block, which one thread compresses from beginning to end: both cores are busy until the last of six columns, for a sixth of the time one is. Feather's buffers are compressed batch by batch.",
    "bsondf to arrow": "A column is one LZ4 block, which one thread decompresses from beginning to end, piece by piece; the largest column decides. Feather's buffers are compressed batch by batch. How long Feather takes depends on how fast the system gives it new memory (0.18 to 0.32 s for the same file, where the command takes 0.14 to 0.16 s): from run to run the row is 1.14 to 2.34.",
    "arrow to dbdf frame": "Reading, encoding and writing run side by side, so that each byte is copied once more than by a copy.",
    "dbdf frame to arrow": "As the other way.",
    "arrow to dynd structs": "Columns become rows of structs: each value is moved alone (about 1 ns), where a copy moves 16 bytes.",
    "dynd structs to arrow": "As the other way.",
    "npz to dbdf CSR": "SciPy's uncompressed npz is the arrays as they are, which it copies: a third of its time is less than the bare copy of the input takes (see the floor in the table above). Here, three quarters of the processor time are the kernel's, for reading, writing and new memory; joining column numbers and values and checking their order take 15 %, the checksum of zip 6 %.",
    "dbdf CSR to npz": "A member of npz is one array, so that the rows are read twice, once for the column numbers and once for the values: 290 MB are copied by the kernel, which has two thirds of the processor time, where a copy of the input takes 190 MB and two thirds of the target. Splitting the entries takes 10 %, the checksum of zip 7 %. Keeping the values in a temporary file instead was slower.",
    "mtx to dbdf CSR": "SciPy reads Matrix Market with fast_matrix_market, on as many threads. Parsing takes half of the processor time (2 GB/s a thread), and has both threads; then, since the last line may belong to the first row, one thread builds the rows and another copies them into the page cache, which two threads cannot share. New memory for the entries takes 20 %.",
    "dbdf CSR to mtx": "The shortest digits of the floats and building the lines take half of the processor time; one thread copies 255 MB into the page cache.",
    "hash of Arrow IPC": "BLAKE3 takes half of the processor time, read(2) a quarter: the peer hashes the mapped file in place.",
    "store get": "Chunks of 16 KiB are decompressed one by one and checked by BLAKE3.",
    "describe of a dbdf frame": "Ten statistics of each value, which take 63 % of the processor time, and sorting for the quantiles, 14 %, against reading alone.",
    "spy plot of CSR": "Counting 8 M entries takes 21 % of the processor time, new memory for the rows 17 %, splitting them into columns and values 9 %, drawing and the PNG 18 %, reading 8 %.",
    "compressed npz to dbdf CSR": "A member is one DEFLATE stream, which one thread inflates; two members are inflated side by side, but the values are most of the bytes: to inflate them alone takes more than a third of SciPy's time. zlib-rs takes 60 % of the processor time and is about 1.6 times as fast as the zlib of Python.",
    "dbdf CSR to compressed npz": "Deflating takes 85 % of the processor time, at the level that NumPy uses too.",
    "csv to parquet": "Finding the ends of fields takes 13 % of the processor time, zstd 15 %, dates and times 5 %; the rest is spread over parsing and encoding.",
    "rank in 1e8 bits, of sux native": RANK + ".",
    "rank in 1e9 bits, of sux native": RANK + "; the compiler makes gathers of the loop over sux.",
    "rank batch in 1e6 bits, of sux native single": "All data is in a near cache, so that the number of instructions decides: sux is built for this processor alone, one build of ours serves all.",
    "store verify": "BLAKE3 takes half of the processor time, the kernel, which copies the packs, a third; the peer hashes the mapped files in place. Start and end of the command take a quarter of the 22 ms.",
}

#: What one thread does alone in conversions whose output is large.
WRITING = "The output is one stream, which one thread copies into the page cache"

#: Why a second thread gives less than it could.
ONE_STREAM = {
    "parquet to csv": "Printing has both threads, in turn with decoding the columns of the next batch, of which the texts take longest; one thread copies the output into the page cache.",
    "arrow to csv": WRITING + ".",
    "parquet to jsonl": WRITING + ": six times the bytes of the input.",
    "jsonl to parquet": "Both cores are busy; two threads take more processor time than one, in the same functions. This virtual machine has no counters that tell whether caches or the host are the cause.",
    "parquet to arrow": "The texts take as long to decode as all other columns, one batch after the other; one thread copies the output into the page cache.",
    "arrow to parquet": "Both cores are busy from the first batch to the last row group; start, sync and the footer are not divided.",
    "bsondf to arrow": WRITING + ": 349 MB; decompressing has the other.",
    "arrow to bsondf": "A column is one LZ4 block, which one thread compresses: the last of six has one core, for a sixth of the time, beside writing the one before it.",
    "arrow to dbdf frame": WRITING + ": 358 MB; the other reads as many. Encoding, which is all that could be divided further, takes a tenth.",
    "dbdf frame to arrow": WRITING + ": 358 MB; the other reads as many.",
    "arrow to dynd structs": WRITING + ": 358 MB; packing the rows, which both threads do, takes a tenth.",
    "dynd structs to arrow": WRITING + ": 358 MB; the other reads as many and unpacks the rows.",
    "npz to dbdf CSR": WRITING + ": 97 MB; the start of threads and the sync are not small against the rest.",
    "dbdf CSR to npz": WRITING + ": 97 MB, one array after the other, for each of which the rows are read; both are the kernel's work.",
    "compressed npz to dbdf CSR": "A member is one DEFLATE stream, which one thread inflates; that of the values is most of it.",
    "dbdf CSR to compressed npz": "Deflating has all threads; reading the rows into a spool before it has not.",
    "mtx to dbdf CSR": "Rows are built and written after the last line has been parsed, by one thread each.",
    "dbdf CSR to mtx": WRITING + ": 255 MB.",
    "hash of Arrow IPC": "One thread reads, which takes as long as hashing on two; a batch is complete when the slowest column is.",
    "diff of equal files": "Comparing takes 10 % of the processor time, reading nearly all of the rest: the kernel has 79 %. With two threads batches wait in queues, so that reading needs other memory each time.",
    "store verify": "Packs are hashed side by side; start and end of the command, and looking up the chunks of each root, which one thread does, are not small against 22 ms.",
    "store put": "Cutting columns and compressing chunks have both threads, in turn with appending them to the pack and hashing it, which has one.",
    "store get": "The columns of a batch are decoded side by side and differ: texts take longest.",
    "describe of a dbdf frame": "The columns of a batch are divided and differ: floats take longer than whole numbers.",
    "describe of Parquet": "The columns are divided, and differ: texts take longer than numbers.",
    "hash of Parquet": "Columns are decoded side by side and differ: texts take longer than numbers.",
    "spy plot of CSR": "The file is one stream, read into new memory; counting the entries, the font and the PNG have one thread.",
}

#: What grows faster than the size where the output has gigabytes.
PAGES = (
    "Outside of the kernel the time is linear. The excess is the kernel's, which gets new memory for the page cache: free memory goes back to the host of this "
    "virtual machine after about two seconds, so that what is written later has to ask for it again"
)

#: Why a file of ten times the size takes more than ten times as long, or much memory.
GROWTH = {
    "parquet to csv": PAGES + ". Writing alone takes as long.",
    "parquet to jsonl": PAGES + ". Writing alone takes as long.",
    "parquet to arrow": PAGES + ". Writing alone takes as long.",
    "csv to arrow": PAGES + ". Writing alone has half or more of the excess; all of it is additional time in the kernel (see the table below).",
    "arrow to csv": PAGES + ". Writing alone has half or more of the excess; all of it is additional time in the kernel (see the table below).",
}
