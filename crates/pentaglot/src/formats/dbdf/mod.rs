//! The DAPHNE binary data format.
