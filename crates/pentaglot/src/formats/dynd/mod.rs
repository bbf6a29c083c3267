//! DyND serialization.
