//! Matrix Market.
