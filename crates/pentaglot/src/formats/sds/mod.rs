//! simple-sds.
