//! Hot loops that several formats share, and the fence round `unsafe` code.

#[cfg(any(feature = "npy", feature = "matrix_market"))]
pub(crate) mod column_major;
#[cfg(any(feature = "npy", feature = "matrix_market"))]
pub(crate) mod csr;
#[cfg(feature = "matrix_market")]
pub(crate) mod scan;

#[cfg(all(test, any(feature = "npy", feature = "matrix_market")))]
pub(crate) mod plain;
