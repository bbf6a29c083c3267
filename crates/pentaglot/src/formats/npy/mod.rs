//! NumPy .npy and .npz.
