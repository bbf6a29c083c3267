//! What the command and other front ends call.
