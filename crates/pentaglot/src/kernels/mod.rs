//! The hot loops that need run-time CPU dispatch or unchecked array building: the fence round unsafe code.
//! One file a family; each loop stands beside its plain version, which is also what other processors run.

#[cfg(feature = "bsondf")]
pub(crate) mod arrays;
#[cfg(feature = "bsondf")]
pub(crate) mod scan;
