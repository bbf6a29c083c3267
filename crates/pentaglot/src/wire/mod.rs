//! Token readers and writers that formats share; private.
