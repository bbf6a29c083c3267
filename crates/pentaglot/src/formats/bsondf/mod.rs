//! BSON DataFrame.
