//! Arrow IPC, file and stream.
