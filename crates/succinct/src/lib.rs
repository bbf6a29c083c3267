//! Succinct bit and integer structures.
