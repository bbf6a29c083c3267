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
//! The hot loops that need run-time CPU dispatch or unchecked array building: the fence round unsafe code.
//! One file a family; each loop stands beside its plain version, which is also what other processors run.

#[cfg(feature = "bsondf")]
pub(crate) mod arrays;
#[cfg(feature = "bsondf")]
pub(crate) mod scan;
//! The hot loops that need unchecked memory access or run-time CPU dispatch: the fence round unsafe code.
//!
//! One file per family. Every function here is safe to call: what its unsafe blocks need is checked first.

#[cfg(feature = "dynd")]
pub(crate) mod records;
