"""Reads one line "npy PATH" or "npz PATH" after the other, answers with a checksum of what it read."""
import sys

import numpy as np

try:
    import scipy.sparse
except ImportError:
    scipy = None

for line in sys.stdin:
    kind, path = line.split()
    if kind == "have":
        print(int(path != "scipy" or scipy is not None), flush=True)
        continue
    values = np.load(path).reshape(-1) if kind == "npy" else scipy.sparse.load_npz(path).data
    bits = values[::4096].view(np.uint64) if values[::4096].flags.c_contiguous else values[::4096].copy().view(np.uint64)
    print(int(bits.sum(dtype=np.uint64)), flush=True)
