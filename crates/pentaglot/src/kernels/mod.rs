//! The hot loops that need run-time CPU dispatch or writes into memory that nobody has zeroed: the fence round this
//! crate's unsafe code. One file a family; each has a plain twin that tests it.

pub(crate) mod csr;
