//! From shape to shape and from type to type, as streams.
