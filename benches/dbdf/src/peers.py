"""Answers one line "WHAT PATH" after the other with a number.

npy, npz and h5 read the file: the answer is a checksum of its values. hold keeps the values of a .npy file, which save-npy and
save-h5 write and sync: the answer is 0, or "none" without h5py.
"""
import os, sys

import numpy as np

try:
    import scipy.sparse
except ImportError:
    scipy = None
try:
    import h5py
except ImportError:
    h5py = None

held = None


def read(kind, path):
    if kind == "npy":
        return np.load(path).reshape(-1)
    if kind == "npz":
        return scipy.sparse.load_npz(path).data
    with h5py.File(path, "r") as file:
        return file["values"][...].reshape(-1)


def save(kind, path):
    if kind == "save-npy":
        np.save(path, held)
    else:
        with h5py.File(path, "w") as file:
            file["values"] = held
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


for line in sys.stdin:
    kind, path = line.split()
    if kind == "have":
        answer = int(path != "scipy" or scipy is not None)
    elif kind == "hold":
        held, answer = np.load(path), 0
    elif kind == "save-h5" and h5py is None:
        answer = "none"
    elif kind.startswith("save"):
        save(kind, path)
        answer = 0
    else:
        answer = int(read(kind, path)[::4096].copy().view(np.uint64).sum(dtype=np.uint64))
    print(answer, flush=True)
