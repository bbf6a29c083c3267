//! Apache Parquet.
