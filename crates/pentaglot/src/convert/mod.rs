//! Changes the shape ([`reshape`]) and the types ([`adapt`]) of streams. Independent of formats.
//!
//! [`target_form::choose`] decides which form a stream takes for a target; [`reshape::reshape`] gives it that form.

pub mod adapt;
mod matrix;
pub mod reshape;
pub mod target_form;
mod tensor;
#[cfg(test)]
mod tests;
pub mod triplets;
pub mod union;
