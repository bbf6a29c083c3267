//! From shape to shape ([`reshape`]) and from type to type ([`adapt`]), as streams. Knows no format.
//!
//! [`leaving::choose`] decides which form a stream takes for a target; [`reshape::reshape`] gives it that form.

pub mod adapt;
pub mod leaving;
mod matrix;
pub mod reshape;
mod tensor;
#[cfg(test)]
mod tests;
pub mod triplets;
pub mod union;
