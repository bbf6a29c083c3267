//! Mantik DS.
