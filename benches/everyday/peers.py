"""Reads a Matrix Market file with a peer: peers.py scipy|fmm FILE THREADS. Prints seconds, entries and the sum."""
import sys, time

peer, path, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
if peer == "fmm":
    import fast_matrix_market

    fast_matrix_market.PARALLELISM = threads
    read = fast_matrix_market.mmread
else:
    # The reader of SciPy up to 1.11; later ones are fast_matrix_market.
    from scipy.io._mmio import mmread as read
best = float("inf")
for _ in range(3):
    start = time.perf_counter()
    matrix = read(path).tocsr()
    best = min(best, time.perf_counter() - start)
print(best, matrix.nnz, float(matrix.data.sum()))
