//! Hot loops that several formats share, and the fence round `unsafe` code.

#[cfg(any(feature = "npy", feature = "matrix_market"))]
pub(crate) mod column_major;
#[cfg(any(feature = "npy", feature = "matrix_market"))]
pub(crate) mod csr;
#[cfg(feature = "matrix_market")]
pub(crate) mod scan;
//! The hot loops that need run-time CPU dispatch or writes into memory that nobody has zeroed: the fence round this
//! crate's unsafe code. One file a family; each has a plain twin that tests it.

pub(crate) mod csr;
